"""Quantised pools, reductions, normalisations, resizing and comparison; resizing of plain tensors beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import F32, I8
from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T, underspecified
from suites.semantics import resize as r
from suites.semantics.movement.common import INT32_MAX, norm_axes
from suites.semantics.quantised import window as q
from suites.semantics.quantised.fixed import draw_parameters, near_or_apart
from suites.semantics.quantised.output import draw_activation
from suites.semantics.window import FAR, draw_window
from suites.tflite import op
from suites.tflite.codecs import Each, OutQ, Q, axes_breaks, both, later, nhwc
from suites.tflite.ops.conv import HW, PADDING

# -- pools


def _draw_pool(d: Draw) -> dict[str, Any]:
    w = draw_window(d, 2, padded_below_kernel=True)
    if w.padding == "valid":
        extents = tuple(max(s, k) for s, k in zip(w.extents, w.kernel))
    else:
        extents = w.extents
    return {
        "input": T((d.dim(1, 3), *extents, d.dim(1, 5)), "full"),
        "filter_height": w.kernel[0],
        "filter_width": w.kernel[1],
        "stride_h": w.strides[0],
        "stride_w": w.strides[1],
        "padding": PADDING.table[w.padding],
        "fused_activation_function": draw_activation(d),
    }


_POOL = (
    Spelling(
        x=nhwc("input"),
        q=Q("input"),
        kernel=Each("filter_{}", HW, words=("height", "width")),
        strides=Each("stride_{}", HW),
        padding=PADDING,
        activation="fused_activation_function",
    ),
    Sampling(_draw_pool, ranks=(4, 4)),
)
op("AVERAGE_POOL_2D", q.avg_pool, *_POOL, domain="quantised")
op("MAX_POOL_2D", q.max_pool, *_POOL, domain="quantised")

# -- reductions


def _axes(slot: str) -> Fn:
    def decode(call: Call) -> Any:
        n = call.inputs["input"].ndim
        given = np.asarray(call.inputs[slot]).ravel().tolist()
        return tuple(sorted(norm_axes(given, n)))

    return Fn(decode)


def _draw_fold(slot: str, mean: bool) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        shape = () if d.chance(24) else d.shape(1, 4, 1)
        axes = d.subset(range(len(shape)), min(1, len(shape)))
        kept = [a for a in range(len(shape)) if a not in axes]
        if kept and d.chance(16):  # nothing is left
            shape = tuple(0 if a == kept[-1] else n for a, n in enumerate(shape))
        n = int(np.prod([shape[a] for a in axes]))
        dt = d.types["T"]
        xq = draw_parameters(d, dt)
        near = xq["scale"][0] * (1 if mean else n**0.5) * (0.3 + d.int(0, 16) / 16)
        oq = draw_parameters(d, dt, scale=near_or_apart(d, near, xq))
        if mean and d.bool():
            oq = xq
        return {
            "input": T(shape, "full", quant=xq),
            slot: [a - len(shape) if d.chance(3) else a for a in axes],
            "keep_dims": d.bool(),
            "@outputs": [{"dtype": dt.name, "quant": oq}],
        }

    return draw


for _name, _slot, _mean in (("MEAN", "axis", True), ("SUM", "axes", False)):
    op(
        _name,
        q.fold,
        Spelling(
            x="input", xq=Q("input"), oq=OutQ("input"), axes=_axes(_slot), keepdims="keep_dims", fixed={"mean": _mean}
        ),
        Sampling(_draw_fold(_slot, _mean)),
        axes_breaks(_slot),
        domain="quantised",
    )

# -- normalisations

op("SOFTMAX", q.softmax, domain="quantised", x="input", xq=Q("input"), oq=OutQ("input"), beta="beta")
op("LOG_SOFTMAX", q.log_softmax, domain="quantised", x="input", xq=Q("input"), oq=OutQ("input"))
op(
    "L2_NORMALIZATION",
    q.l2_normalize,
    domain="quantised",
    x="input",
    xq=Q("input"),
    oq=OutQ("input"),
    activation="fused_activation_function",
)

# -- resizing


def _sizes(call: Call) -> Any:
    return tuple(int(n) for n in call.inputs["size"])


def _coordinates(call: Call) -> str:
    if call.attr("align_corners", False):
        return "align_corners"
    return "half_pixel" if call.attr("half_pixel_centers", False) else "asymmetric"


def _nearest_coordinates(call: Call) -> str:
    return "tf_half_pixel_for_nn" if call.attr("half_pixel_centers", False) else _coordinates(call)


def _draw_resize(d: Draw) -> dict[str, Any]:
    """At most one of the two conventions; half pixels only where the version has them."""
    how = d.int(0, 1 if later(d, "half_pixel_centers") else 2)
    h, w = d.dim(1, 7), d.dim(1, 7)
    size = [d.pick((h, 2 * h, 3 * h, d.int(1, 12))), d.pick((w, 2 * w, (w + 1) // 2, d.int(1, 12)))]
    recipe = d.pick(("small", "unit", "iota") if d.types["T"] is F32 else ("full", "small"))
    n, c = d.dim(0, 3), d.dim(0, 5)
    if not n and d.bool():  # of no image as long a result as any
        size[d.int(0, 1)] = FAR
    return {
        "input": T((n, h, w, c), recipe),
        "size": size,
        "align_corners": how == 1,
        "half_pixel_centers": how == 2,
    }


_LINEAR = (
    Spelling(roi=Fn(lambda call: None), sizes=Fn(_sizes), coordinates=Fn(_coordinates)),
    Sampling(_draw_resize),
)
_PINNED = {
    "scales": None,
    "axes": (1, 2),
    "cubic_a": -0.75,
    "exclude_outside": False,
    "antialias": False,
    "extrapolation": 0.0,
    "policy": "stretch",
}
_IMAGES = {"input": "_n _h _w _c", "size": "2"}  # ranks by tfl resize_bilinear and resize_nearest_neighbor
op(
    "RESIZE_BILINEAR",
    r.resize,
    *_LINEAR,
    Spelling(x="input", fixed={**_PINNED, "mode": "linear", "nearest": "floor"}),
    Checks(stated=_IMAGES),
)
op(
    "RESIZE_BILINEAR",
    q.resize_bilinear,
    Sampling(_draw_resize),
    Checks(stated=_IMAGES),
    domain="quantised",
    x="input",
    sizes=Fn(_sizes),
    coordinates=Fn(_coordinates),
)
both(
    "RESIZE_NEAREST_NEIGHBOR",
    r.resize,
    Spelling(
        x="input",
        roi=Fn(lambda call: None),
        sizes=Fn(_sizes),
        coordinates=Fn(_nearest_coordinates),
        nearest=Fn(lambda call: "round_prefer_ceil" if call.attr("align_corners", False) else "floor"),
        fixed={**_PINNED, "mode": "nearest"},
    ),
    Sampling(_draw_resize),
    Checks(stated=_IMAGES),
)

# -- comparison

for _name, _x, _y in (
    ("EQUAL", "x", "y"),
    ("NOT_EQUAL", "lhs", "rhs"),
    ("LESS", "lhs", "rhs"),
    ("LESS_EQUAL", "lhs", "rhs"),
    ("GREATER", "lhs", "rhs"),
    ("GREATER_EQUAL", "lhs", "rhs"),
):
    op(_name, q.compare(_name.lower()), domain="quantised", x=_x, y=_y, xq=Q(_x), yq=Q(_y))

# -- fake quantisation


def _draw_fake(d: Draw) -> dict[str, Any]:
    low = d.pick((-6.0, -1.0, 0.0, -0.5, -3.7))
    out: dict[str, Any] = {
        "input": T(d.shape(), d.pick(("uniform:-8:8", "small", "unit"))),
        "min": low,
        "max": low + d.pick((1.0, 6.0, 12.0, 7.3)) if low > -1 else d.pick((1.0, 6.0, 3.3)),
        "num_bits": d.pick((2, 4, 8, 8, 16)),
    }
    if not later(d, "narrow_range"):
        out["narrow_range"] = d.bool()
    return out


_NAN = "NaN beyond neither end of [min, max], to which the text clamps: NaN, or one of the ends"

op(
    "FAKE_QUANT",
    q.fake_quant,
    Sampling(_draw_fake),
    Checks(ambiguous=lambda call: underspecified(_NAN, call.inputs["input"] != call.inputs["input"])),
    x="input",
    low="min",
    high="max",
    bits="num_bits",
    narrow="narrow_range",
)

# -- embeddings


def _draw_rows(d: Draw) -> dict[str, Any]:
    dt = d.types["T"]
    if d.chance(24):  # rows as many as any, without elements
        return {
            "lookup": T((d.int(1, 4),), f"index:{INT32_MAX}"),
            "value": T((INT32_MAX, 0), "full", quant=draw_parameters(d, dt, zero=0), const=not d.chance(4)),
        }
    per = 8 // dt.bits
    last = d.dim(1, 6) if per == 1 or d.chance(8) else per * d.int(1, 4)  # rows of whole bytes, mostly
    if d.chance(16):
        last = 0
    shape = (d.int(1, 8), *(d.part(0, 6, 0) if d.chance(8) else d.part(0, 1, 1)), last)
    quant = draw_parameters(d, dt, zero=None if dt.bits == 8 and d.chance(6) else 0)
    if not later(d, "per_channel") and dt is I8 and d.bool():
        quant = {
            "scale": [draw_parameters(d, dt)["scale"][0] for _ in range(shape[0])],
            "zero_point": [0] * shape[0],
            "axis": 0,
        }
    return {
        "lookup": T((d.dim(1, 6),), f"index:{shape[0]}"),
        "value": T(shape, "full", quant=quant, const=not d.chance(8)),
    }


def _rows_outside(d: Draw) -> dict[str, Any]:
    rows = T((2,), values=[0, d.pick((3, 7, -1))])
    return {"lookup": rows, "value": T((3, 4), "full", quant=draw_parameters(d, d.types["T"], zero=0), const=True)}


op(
    "EMBEDDING_LOOKUP",
    q.embedding_rows,
    Spelling(table="value", indices="lookup", q=Q("value"), out_dtype=lambda call, i: F32),
    Sampling(_draw_rows),
    # tfl embedding_lookup: TFL_OperandHasRankAtLeast<1, 2>
    Checks(stated={"value": "_r _c *_d"}, breaks={"index-in-range": _rows_outside}),
    domain="quantised",
)
