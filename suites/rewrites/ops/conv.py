"""What convolutions swallow: normalisation, products and sums by channel, activations, padding before them."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.declare import Draw
from suites.rewrites import declare
from suites.rewrites.program import Program

SOURCE = "ONNX Runtime documentation, Graph optimizations: {}"


def conv(p: Program, d: Draw, x: str | None = None, c: int = 0, bias: bool | None = None) -> tuple[str, int]:
    """A convolution over a fresh input or ``x`` of ``c`` channels: its result and number of channels."""
    groups = d.pick((1, 1, 2, 3)) if x is None else 1
    c = c or groups * d.dim(1, 3)
    m = groups * d.dim(1, 3)
    k = (d.int(1, 3), d.int(1, 3))
    if x is None:
        x = p.input((d.dim(1, 2), c, d.dim(4, 7), d.dim(4, 7)))
    attrs: dict[str, Any] = {} if groups == 1 and d.bool() else {"group": groups}
    if d.bool():
        attrs["strides"] = [d.int(1, 2), d.int(1, 2)]
    if d.bool():
        attrs["pads"] = [d.int(0, 2) for _ in range(4)]
    operands: list[Any] = [x, p.given(p.weights((m, c // groups, *k)))]
    if d.bool() if bias is None else bias:
        operands.append(p.given(p.weights((m,))))
    return p.op("Conv", *operands, **attrs), m


def batch_norm(p: Program, d: Draw, x: str, m: int) -> str:
    attrs = {"epsilon": d.pick((1e-3, 1e-2))} if d.bool() else {}
    scale, shift, mean = (p.given(p.weights((m,)) + 0.125) for _ in range(3))
    return p.op("BatchNormalization", x, scale, shift, mean, np.abs(p.weights((m,))) + 0.5, **attrs)


def per_channel(p: Program, d: Draw, m: int) -> tuple[np.ndarray, str]:
    """A constant beside a result of m channels: one number a channel, one for all, or along another axis."""
    kind = d.pick(("a channel", "a channel", "leading 1", "one", "rank 0", "columns"))
    shape = {"a channel": (m, 1, 1), "leading 1": (1, m, 1, 1), "one": (1,), "rank 0": (), "columns": (1, 1, 1)}[kind]
    return p.weights(shape) + 0.125, kind


def _normalised(d: Draw) -> dict[str, Any]:
    p = Program(d)
    y, m = conv(p, d)
    return p.done(batch_norm(p, d, y, m))


def _normalised_apart(d: Draw) -> dict[str, Any]:
    """The convolution has a second user, or something stands between."""
    p = Program(d)
    y, m = conv(p, d)
    if d.bool():
        return p.done(batch_norm(p, d, p.op("Relu", y), m), pattern="near miss between")
    return p.done(batch_norm(p, d, y, m), p.op("Abs", y), pattern="near miss second user")


def _with(op: str) -> Any:
    def make(d: Draw) -> dict[str, Any]:
        p = Program(d)
        y, m = conv(p, d)
        c, kind = per_channel(p, d, m)
        held = p.given(c)
        return p.done(p.op(op, *((held, y) if d.bool() else (y, held))), pattern=f"match {kind}")

    return make


def activation(p: Program, d: Draw, x: str) -> str:
    op = d.pick(("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Clip", "Elu", "HardSwish"))
    if op == "HardSwish" and int(d.opset) < 14:
        op = "Relu"
    if op == "Clip":
        lo, hi = d.pick(((0.0, 6.0), (-1.0, 1.0), (None, 2.0), (0.5, None)))
        return p.op("Clip", x, *(None if v is None else np.float32(v) for v in (lo, hi)))
    attrs: dict[str, Any] = {}
    if op in ("LeakyRelu", "HardSigmoid") and d.bool():
        attrs["alpha"] = d.pick((0.25, 0.5))
    if op == "HardSigmoid" and d.bool():
        attrs["beta"] = 0.25
    return p.op(op, x, **attrs)


def _activated(d: Draw) -> dict[str, Any]:
    p = Program(d)
    y, _ = conv(p, d)
    return p.done(activation(p, d, y))


def _residual(d: Draw) -> dict[str, Any]:
    """A sum of two convolutions of the same extents, then perhaps an activation: one adds to the other in place."""
    p = Program(d)
    n, c, m, h, w = d.dim(1, 2), d.dim(1, 3), d.dim(1, 4), d.dim(3, 5), d.dim(3, 5)
    x = p.input((n, c, h, w))
    a = p.op("Conv", x, p.weights((m, c, 3, 3)), pads=[1, 1, 1, 1])
    kind = d.pick(("two convolutions", "an input", "itself", "broadcast"))
    if kind == "two convolutions":
        b = p.op("Conv", x, p.weights((m, c, 1, 1)), p.weights((m,)))
    elif kind == "itself":
        b = a
    else:
        b = p.input((n, m, h, w) if kind == "an input" else (n, m, 1, 1))
    y = p.op("Add", *((a, b) if d.bool() else (b, a)))
    return p.done(activation(p, d, y) if d.bool() else y, pattern=f"match {kind}")


def _padded(d: Draw) -> dict[str, Any]:
    """A padding in front of what pads by itself: merged where it is by zeros (by the lowest number for a maximum)."""
    p = Program(d)
    c = d.dim(1, 3)
    x = p.input((1, c, d.dim(4, 6), d.dim(4, 6)))
    mode = d.pick(("constant", "constant", "constant", "reflect", "edge"))
    value = d.pick((None, 0.0, 0.0, 1.5)) if mode == "constant" else None
    least = -1 if mode == "constant" and d.chance(4) else 0
    channels = int(mode != "reflect" and d.chance(4))
    before, after = ([d.int(least, 2) for _ in range(2)] for _ in range(2))
    pads = [0, channels, *before, 0, 0, *after]
    operands: list[Any] = [x, np.array(pads, np.int64)]
    if value is not None:
        operands.append(np.float32(value))
    y = p.op("Pad", *operands, **({"mode": mode} if mode != "constant" or d.bool() else {}))
    c += channels
    tail = d.pick(("Conv", "Conv", "MaxPool", "AveragePool"))
    own: dict[str, Any] = {"pads": [d.int(0, 1) for _ in range(4)]} if d.bool() else {}
    if tail == "Conv":
        z = p.op("Conv", y, p.weights((d.dim(1, 3), c, 2, 2)), **own)
    else:
        if tail == "AveragePool" and d.bool():
            own["count_include_pad"] = 1
        z = p.op(tail, y, kernel_shape=[2, 2], **own)
    return p.done(z, pattern=f"match {mode} {tail}" + ("" if value is None else f" {value:g}"))


declare("conv_batchnorm", _normalised, _normalised, _normalised_apart, source=SOURCE.format("Conv BatchNorm fusion"))
declare("conv_mul", _with("Mul"), source=SOURCE.format("Conv Mul fusion"))
declare("conv_add", _with("Add"), source=SOURCE.format("Conv Add fusion"))
declare("conv_activation", _activated, source=SOURCE.format("Conv Activation fusion"))
declare("conv_add_activation", _residual, source=SOURCE.format("Conv Add Activation fusion"))
declare("pad_fusion", _padded, source=SOURCE.format("Pad fusion with Conv and MaxPool"))
