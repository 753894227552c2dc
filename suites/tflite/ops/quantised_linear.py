"""Quantised convolutions and matrix products: weights symmetric, per tensor or per output channel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from harness.core.dtypes import I2, I4, I8, I16, I32, I64, U8, DType
from harness.core.errors import RuleError
from harness.declare import Call, Draw, Fn, Sampling, Slotted, Spelling, T
from suites.semantics.quantised import linear as q
from suites.semantics.quantised.fixed import draw_parameters, f32, near_or_apart
from suites.semantics.quantised.output import draw_activation
from suites.semantics.window import draw_window
from suites.tflite import op
from suites.tflite.codecs import Each, OutQ, Q, later, mostly, nhwc, out_type
from suites.tflite.ops.conv import (
    FILTER,
    HW,
    PADDING,
    _Depthwise,
    _Turned,
    channels,
    draw_transposed,
    filters,
    said_multiplier,
    transposed_pads,
)
from suites.tflite.ops.linear import Rows, extents


class Filters:
    """Types and parameters of input, filter, bias and output, drawn together: they depend on each other."""

    def __init__(self, d: Draw, filter_shape: tuple[int, ...], axis: int, depth: int, per_channel: bool = True) -> None:
        schema = d.version.schema
        self.x: DType = d.types["T"]
        weights = [t for t in schema.dtypes("W") if (t is U8) == (self.x is U8)]
        if self.x is I16:  # 4-bit weights only from the version on that names them
            narrow = (I8, I4, I2) if d.version.op == "FULLY_CONNECTED" and not later(d, "i16xi4") else (I8,)
            weights = [t for t in weights if t in narrow]
        self.w = d.pick(weights)
        m = filter_shape[axis]
        scales: Any = (
            [0.004 * (1 + d.int(0, 16)) for _ in range(m)]
            if per_channel and m > 1 and self.w is not U8 and d.bool()
            else 0.02
        )
        self.wq = draw_parameters(d, self.w, zero=None if self.w is U8 else 0, scale=scales)
        self.wq["axis"] = axis if len(self.wq["scale"]) > 1 else 0
        if len(self.wq["scale"]) > 1:
            self.wq["zero_point"] = [0] * m
        self.xq = draw_parameters(d, self.x)
        # outputs of the size that sums of `depth` products of full-range operands have
        top = {8: 64.0, 16: 4096.0}[self.x.bits] * {4: 4.0, 8: 64.0}[max(4, min(8, self.w.bits))]
        out_top = {8: 127.0, 16: 32767.0}[self.x.bits]
        size = self.xq["scale"][0] * max(self.wq["scale"]) * top * max(1, depth) ** 0.5 * (0.3 + d.int(0, 16) / 8)
        self.oq = draw_parameters(d, self.x, scale=near_or_apart(d, size / out_top, self.xq))
        self.b = I64 if self.x is I16 else I32
        self.bias_type = None
        if self.x is I16 and "quantized_bias_type" in schema.attrs and not later(d, "quantized_bias_type") and d.bool():
            self.b = d.pick((I32, I64))
            self.bias_type = self.b.name
        self.bq = {
            "scale": [f32(s * self.xq["scale"][0]) for s in self.wq["scale"]],
            "zero_point": [0] * len(self.wq["scale"]),
            "axis": 0,
        }

    def tensors(
        self, d: Draw, x: tuple[int, ...], w: tuple[int, ...], bias: int | None, slot: str = "filter"
    ) -> dict[str, Any]:
        out: dict[str, Any] = {
            "input": T(x, "full", dtype=self.x, quant=self.xq),
            slot: T(w, "full", dtype=self.w, quant=self.wq, const=mostly(d)),
            "@outputs": [{"dtype": self.x.name, "quant": self.oq}],
        }
        if bias is not None:
            # of 64 bits as many as a multiplication by a fixed-point number leaves room for
            far = "special" if self.b is I32 else f"ints:{-(2**40)}:{2**40}"
            data = far if d.chance(12) else "ints:-2000:2000"
            out["bias"] = T((bias,), data, dtype=self.b, quant=self.bq, const=mostly(d))
            if self.bias_type is not None:
                out["quantized_bias_type"] = self.bias_type
        return out


def _activation(d: Draw, out: dict[str, Any]) -> dict[str, Any]:
    out["fused_activation_function"] = draw_activation(d)
    return out


def _draw_conv(d: Draw) -> dict[str, Any]:
    w = draw_window(d, 2)
    c, m, n = d.pick((1, 2, 3, 5, 8)), filters(d), d.dim(0, 3)
    groups = 1
    if not later(d, "grouped") and d.chance(4):
        groups = d.pick((2, 3))
        c, m = c * groups, m * groups
    shape = (m, *w.kernel, c // groups)
    f = Filters(d, shape, 0, c // groups * w.kernel[0] * w.kernel[1])
    out = f.tensors(d, (n, *w.extents, c), shape, None if d.chance(8) else m)
    return _activation(
        d,
        out
        | {
            "stride_h": w.strides[0],
            "stride_w": w.strides[1],
            "dilation_h_factor": w.dilations[0],
            "dilation_w_factor": w.dilations[1],
            "padding": PADDING.table[w.padding],
        },
    )


def _draw_depthwise(d: Draw) -> dict[str, Any]:
    w = draw_window(d, 2)
    (c, multiplier), n = channels(d), d.dim(0, 3)
    shape = (1, *w.kernel, c * multiplier)
    f = Filters(d, shape, 3, w.kernel[0] * w.kernel[1])
    out = f.tensors(d, (n, *w.extents, c), shape, None if d.chance(8) else c * multiplier)
    if not later(d, "dilation"):
        out |= {"dilation_h_factor": w.dilations[0], "dilation_w_factor": w.dilations[1]}
    return _activation(
        d,
        out
        | {
            "stride_h": w.strides[0],
            "stride_w": w.strides[1],
            "depth_multiplier": said_multiplier(d, multiplier),
            "padding": PADDING.table[w.padding],
        },
    )


_QUANT: dict[str, Any] = {
    "xq": Q("input"),
    "wq": Q("filter"),
    "oq": OutQ("input"),
    "activation": "fused_activation_function",
}
_CONV = (
    Spelling(
        **_QUANT,
        x=nhwc("input"),
        b="bias",
        strides=Each("stride_{}", HW),
        dilations=Each("dilation_{}_factor", HW),
        padding=PADDING,
    ),
    Sampling(ranks=(4, 4)),
)
op(
    "CONV_2D",
    q.conv,
    *_CONV,
    Sampling(_draw_conv),
    domain="quantised",
    w=FILTER,
    groups=Fn(lambda call: call.inputs["input"].shape[-1] // call.inputs["filter"].shape[-1]),
)
op(
    "DEPTHWISE_CONV_2D",
    q.conv,
    *_CONV,
    Sampling(_draw_depthwise),
    domain="quantised",
    w=_Depthwise(),
    groups=Fn(lambda call: call.inputs["input"].shape[-1]),
)


def _draw_transposed(d: Draw) -> dict[str, Any]:
    v = draw_transposed(HW)(d)
    shape, x = v["weights"].shape, v["input"].shape
    f = Filters(d, shape, 0, shape[-1] * 2)
    out = {**v, **f.tensors(d, x, shape, shape[0] if "bias" in v else None, "weights")}
    return _activation(d, out) if not later(d, "fused_activation") else out


def _declared_activation(call: Call) -> str:
    return call.attr("fused_activation_function", "NONE") or "NONE"


op(
    "TRANSPOSE_CONV",
    q.conv_transpose,
    Sampling(_draw_transposed),
    domain="quantised",
    x=nhwc("input"),
    w=_Turned("weights"),
    b="bias",
    strides=Each("stride_{}", HW),
    pads=Fn(transposed_pads),
    xq=Q("input"),
    wq=Q("weights"),
    oq=OutQ("input"),
    activation=Fn(_declared_activation),
)


_SHUFFLED = "SHUFFLED4x16INT8"


class _Weights(Slotted):
    """The weights as a matrix; shuffled ones are told row after row of blocks of 4 by 16, the sign bit turned over.

    Source: TensorFlow, toco/graph_transformations/shuffle_fc_weights.cc, which defines the format: input and weights
    are uint8, the result int16, their zero points 128 and 0 ("getting for free the subtraction of the zero_point value
    128"); rows of the input are 1 or 4.  Raises RuleError "known-mode", "shuffled-blocks"."""

    def __init__(self) -> None:
        super().__init__("filter")

    def decode(self, call: Call) -> Any:
        w = call.inputs["filter"]
        how = call.attr("weights_format", "DEFAULT")
        if how not in ("DEFAULT", _SHUFFLED):
            raise RuleError("known-mode", f"{how!r}, expected DEFAULT or {_SHUFFLED}")
        if how == "DEFAULT":
            return w
        x, (o, i) = call.inputs["input"], w.shape
        zeros = [q["zero_point"] for q in (call.quant["input"], call.quant["filter"], call.declared(0)["quant"])]
        types = (x.dtype, w.dtype, call.declared(0)["dtype"].np)
        rows = x.size // i if i else math.prod(x.shape[:-1])
        if types != (np.uint8, np.uint8, np.int16) or zeros != [[128], [128], [0]] or o % 4 or i % 16:
            raise RuleError("shuffled-blocks", f"{types} of zero points {zeros}, weights of {list(w.shape)}")
        if rows not in (1, 4):
            raise RuleError("shuffled-blocks", f"{rows} rows, expected 1 or 4")
        blocks = w.reshape(o // 4, i // 16, 4, 16).transpose(0, 2, 1, 3)
        return blocks.reshape(o, i) ^ np.uint8(0x80)


def _draw_shuffled(d: Draw) -> dict[str, Any]:
    """As toco's transformation leaves it: uint8 beside weights in blocks, a result of int16."""
    o, i = 4 * d.int(1, 4), 16 * d.int(1, 3)
    keep = not later(d, "keep_num_dims") and d.bool()
    if d.empty:
        o, i = (o, 0) if d.bool() else (0, i)
    n = d.pick((1, 4))
    lead = d.pick(((n,), (n,), (n, 1), () if n == 1 else (n,)))
    xq, wq = draw_parameters(d, U8, zero="mid"), draw_parameters(d, U8, zero="mid", scale=0.02)
    size = xq["scale"][0] * wq["scale"][0] * 64 * 64 * max(1, i) ** 0.5 * (0.3 + d.int(0, 16) / 8)
    oq = draw_parameters(d, I16, scale=near_or_apart(d, size / 32767, xq))
    out: dict[str, Any] = {
        "input": T((*lead, i), "full", dtype=U8, quant=xq),
        "filter": T((o, i), "full", dtype=U8, quant=wq, const=True),
        "weights_format": _SHUFFLED,
        "@outputs": [{"dtype": "i16", "quant": oq}],
    }
    if later(d, "no_bias") or not d.chance(8):
        bq = {"scale": [f32(xq["scale"][0] * wq["scale"][0])], "zero_point": [0], "axis": 0}
        out["bias"] = T((o,), "ints:-2000:2000", dtype=I32, quant=bq, const=True)
    if keep:
        out["keep_num_dims"] = True
    return _activation(d, out)


def _draw_rows(d: Draw) -> dict[str, Any]:
    if d.types["T"] is U8 and not later(d, "shuffled") and not d.breaking and d.chance(3):
        return _draw_shuffled(d)
    lead, i, o, keep = extents(d)
    f = Filters(d, (o, i), 0, i, per_channel=not later(d, "i16xi4"))
    out = f.tensors(d, (*lead, i), (o, i), o if later(d, "no_bias") or d.bool() else None)
    if keep:
        out["keep_num_dims"] = True
    return _activation(d, out)


op(
    "FULLY_CONNECTED",
    q.linear,
    Sampling(_draw_rows),
    domain="quantised",
    x=Rows(),
    w=_Weights(),
    b="bias",
    dtype=Fn(lambda call: out_type(call, 0)),
    **_QUANT,
)


def _draw_matmul(d: Draw) -> dict[str, Any]:
    tx, ty = d.bool(), d.bool()
    m, k, n = d.dim(1, 6), d.dim(1, 12), d.dim(1, 6)
    lead = d.part(0, 3 if d.chance(4) else 2)
    dt = d.types["T"]
    xq, yq = draw_parameters(d, dt), draw_parameters(d, dt)
    top = {8: 64.0 * 64, 16: 4096.0 * 4096}[dt.bits]
    size = xq["scale"][0] * yq["scale"][0] * top * k**0.5 * (0.3 + d.int(0, 16) / 8)
    oq = draw_parameters(d, dt, scale=near_or_apart(d, size / {8: 127, 16: 32767}[dt.bits], xq, yq))
    return {
        "x": T((*lead, *((k, m) if tx else (m, k))), "full", quant=xq),
        "adj_x": tx,
        "adj_y": ty,
        "y": T((*d.broadcast_from(lead), *((n, k) if ty else (k, n))), "full", dtype=dt, quant=yq),
        "@outputs": [{"dtype": dt.name, "quant": oq}],
    }


op(
    "BATCH_MATMUL",
    q.matmul,
    Sampling(_draw_matmul, ranks=(2, 5)),
    domain="quantised",
    xq=Q("x"),
    yq=Q("y"),
    oq=OutQ("x"),
    transpose_x="adj_x",
    transpose_y="adj_y",
)
