"""Hybrid forms: float activations beside weights of 8 bits and fewer, symmetric, per tensor or per output channel."""

from __future__ import annotations

from typing import Any

from harness.core.dtypes import I4, DType, int_range
from harness.declare import Checks, Draw, Fn, Sampling, Spelling, T
from suites.semantics.quantised import dynamic as h
from suites.semantics.quantised.fixed import f32
from suites.semantics.quantised.output import draw_activation
from suites.semantics.window import draw_window
from suites.tflite import op
from suites.tflite.codecs import Each, Q, fused, later, mostly, nan_activation, nhwc, nhwc_out
from suites.tflite.ops.conv import (
    FILTER,
    HW,
    PADDING,
    _Depthwise,
    _Turned,
    draw_depthwise,
    draw_transposed,
    filters,
    transposed_pads,
)
from suites.tflite.ops.linear import PLAIN_WEIGHTS, Rows
from suites.tflite.ops.linear import draw_rows as draw_float_rows
from suites.tflite.ops.sparse import draw_sparse

# A range without NaN and infinity: quantisation by the range of such a tensor means nothing.
RECIPES = ("small", "unit", "unit", "ties", "uniform:-4:4", "uniform:0:6", "uniform:-3:1")


def weight_scales(d: Draw, channels: int, axis: int) -> dict[str, Any]:
    """Symmetric parameters: one scale, or one per channel of ``axis``."""
    n = channels if channels > 1 else 1
    return {
        "scale": [f32(0.002 * (1 + d.int(0, 40))) for _ in range(n)],
        "zero_point": [0] * n,
        "axis": axis if n > 1 else 0,
    }


def full_range(dt: DType) -> str:
    """All values but the lowest: symmetric weights do not use it."""
    lo, hi = int_range(dt)
    return f"ints:{lo + 1}:{hi}"


def sums(d: Draw, dt: DType) -> tuple[str, str]:
    """Recipes of weights and activations.  Half of the time neither changes its sign: sums of products then are large
    beside what the steps of the activations may add to them, where others cancel."""
    if d.bool():
        return full_range(dt), d.pick(RECIPES)
    return f"ints:1:{int_range(dt)[1]}", d.pick(("uniform:0:6", "uniform:1:4", "uniform:-3:0", "uniform:0.25:1"))


def quantise(d: Draw, out: dict[str, Any], slot: str, axis: int, per_channel: bool) -> None:
    """Turn the drawn weights into quantised constants, and make the activations finite."""
    w, dt = out[slot], d.types["W"]
    channels = w.shape[axis] if per_channel and d.bool() else 1
    recipe, data = sums(d, dt)
    out[slot] = T(w.shape, recipe, dtype=dt, const=True, quant=weight_scales(d, channels, axis))
    out["input"] = T(out["input"].shape, data)
    if out.get("bias") is not None:
        out["bias"] = T(out["bias"].shape, "small", const=mostly(d))


_OPTION = Fn(lambda call: bool(call.attr("asymmetric_quantize_inputs", False)))


def asymmetric(d: Draw, out: dict[str, Any]) -> dict[str, Any]:
    """The option, where the version has it."""
    if not later(d, "hybrid_asymmetric") and d.bool():
        out["asymmetric_quantize_inputs"] = True
    return out


# -- rows


def _draw_rows(d: Draw) -> dict[str, Any]:
    """Sparse weights, where the version has them: rows dense and columns compressed, elements or blocks of 1 x 16."""
    out = draw_float_rows(d)
    if not later(d, "sparse") and d.types["W"].name == "i8" and not d.empty and d.chance(4):
        block = {1: 16} if d.bool() else {}
        rows, columns = d.int(1, 4), d.int(1, 3) * (16 if block else 5)
        order, csr = ([0, 1, 2], [False, True, False]) if block else ([0, 1], [False, True])
        q = weight_scales(d, 1, 0)
        t, layout = draw_sparse(d, d.types["W"], (rows, columns), block, order, csr, q)
        out |= {"filter": t, "@sparsity": {"filter": layout}, "bias": T((rows,), "small", const=True)}
        out["input"] = T((*out["input"].shape[:-1], columns), d.pick(RECIPES), const=False)
        return asymmetric(d, out)
    quantise(d, out, "filter", 0, not later(d, "hybrid_per_channel"))
    if d.types["W"] is I4 and not d.empty and d.chance(4):
        in_blocks(d, out)
    return asymmetric(d, out)


def in_blocks(d: Draw, out: dict[str, Any]) -> None:
    """A scale (f16) for every 32 elements of a row."""
    rows, blocks = out["filter"].shape[0], d.int(2, 3)
    scales = [d.int(1, 40) / 512 for _ in range(rows * blocks)]
    q = {"scale": scales, "zero_point": [0] * len(scales), "axis": 0, "block": 32}
    out["filter"] = T((rows, 32 * blocks), full_range(I4), dtype=I4, const=True, quant=q)
    out["input"] = T((*out["input"].shape[:-1], 32 * blocks), d.pick(RECIPES), const=False)


op(
    "FULLY_CONNECTED",
    h.linear,
    Spelling(x=Rows(), w="filter", b="bias", wq=Q("filter"), asymmetric=_OPTION, out=fused()),
    Sampling(_draw_rows, tags=("fused",)),
    Checks(only=PLAIN_WEIGHTS, ambiguous=nan_activation(h.linear)),
    domain="hybrid",
)


def _draw_matmul(d: Draw) -> dict[str, Any]:
    tx, ty = d.bool(), d.bool()
    m, k, n = d.dim(0, 6), d.dim(1, 12), d.dim(0, 6)
    lead = d.part(0, 2, 1)
    return asymmetric(
        d,
        {
            "x": T((*lead, *((k, m) if tx else (m, k))), d.pick(RECIPES)),
            "adj_x": tx,
            "adj_y": ty,
            "y": T(
                (*d.broadcast_from(lead), *((n, k) if ty else (k, n))),
                full_range(d.types["W"]),
                const=True,
                quant=weight_scales(d, 1, 0),
            ),
        },
    )


op(
    "BATCH_MATMUL",
    h.matmul,
    Sampling(_draw_matmul, ranks=(2, 5)),
    domain="hybrid",
    x="x",
    y="y",
    yq=Q("y"),
    transpose_x="adj_x",
    transpose_y="adj_y",
    asymmetric=_OPTION,
)

# -- windows


def _draw_conv(d: Draw) -> dict[str, Any]:
    w = draw_window(d, 2)
    c, m, n = d.pick((1, 2, 3, 5, 8)), filters(d), d.dim(0, 3)
    groups = d.pick((2, 3)) if not later(d, "grouped") and d.chance(4) else 1
    out: dict[str, Any] = {
        "input": T((n, *w.extents, c * groups)),
        "filter": T((m * groups, *w.kernel, c)),
        "bias": T((m * groups,)),
        "stride_h": w.strides[0],
        "stride_w": w.strides[1],
        "dilation_h_factor": w.dilations[0],
        "dilation_w_factor": w.dilations[1],
        "padding": PADDING.table[w.padding],
    }
    if d.chance(8):
        del out["bias"]
    quantise(d, out, "filter", 0, not later(d, "hybrid_per_channel"))
    return out


def _draw_depthwise(d: Draw) -> dict[str, Any]:
    out = draw_depthwise(d)
    quantise(d, out, "filter", 3, not later(d, "hybrid_per_channel"))
    return out


_CONV = (
    Spelling(
        x=nhwc("input"),
        b="bias",
        strides=Each("stride_{}", HW),
        dilations=Each("dilation_{}_factor", HW),
        padding=PADDING,
        wq=Q("filter"),
        out=fused(nhwc_out),
    ),
    Sampling(ranks=(4, 4), tags=("fused",)),
)
op(
    "CONV_2D",
    h.conv,
    *_CONV,
    Sampling(_draw_conv),
    Checks(ambiguous=nan_activation(h.conv)),
    domain="hybrid",
    w=FILTER,
    groups=Fn(lambda call: call.inputs["input"].shape[-1] // max(1, call.inputs["filter"].shape[-1])),
)
op(
    "DEPTHWISE_CONV_2D",
    h.conv,
    *_CONV,
    Sampling(_draw_depthwise),
    Checks(ambiguous=nan_activation(h.conv)),
    domain="hybrid",
    w=_Depthwise(),
    groups=Fn(lambda call: call.inputs["input"].shape[-1]),
)


def _draw_transposed(d: Draw) -> dict[str, Any]:
    out = draw_transposed(HW)(d)
    quantise(d, out, "weights", 0, True)
    if not later(d, "fused_activation") and d.bool():
        out["fused_activation_function"] = draw_activation(d)
    return out


op(
    "TRANSPOSE_CONV",
    h.conv_transpose,
    Spelling(
        x=nhwc("input"),
        w=_Turned("weights"),
        b="bias",
        wq=Q("weights"),
        strides=Each("stride_{}", HW),
        pads=Fn(transposed_pads),
        out=fused(nhwc_out),
    ),
    Sampling(_draw_transposed),
    Checks(ambiguous=nan_activation(h.conv_transpose)),
    domain="hybrid",
)
