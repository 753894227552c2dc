"""Convolution, plain, transposed and on integers."""

from __future__ import annotations

from typing import Any

from harness.declare import Build, Call, Checks, Map, Slotted, Spelling, gathered
from suites.onnx import op
from suites.onnx.codecs import Default
from suites.semantics import conv as s

AUTO_PAD = Map(
    "auto_pad", {"explicit": "NOTSET", "valid": "VALID", "same_upper": "SAME_UPPER", "same_lower": "SAME_LOWER"}
)


class Weight(Slotted):
    """The filter; ``kernel_shape`` repeats its spatial extents or is left out."""

    def encode(self, value: Any, b: Build) -> None:
        super().encode(value, b)
        if b.draw.bool():
            b.attrs["kernel_shape"] = list(value.shape[2:])


class Extents(Default):
    """The extents of the result.  Pads may stand beside them: "If output_shape is specified pads values are ignored"
    (ConvTranspose-1)."""

    def __init__(self) -> None:
        super().__init__("output_shape", None)

    def encode(self, value: Any, b: Build) -> None:
        super().encode(value, b)
        if value is not None and b.draw.bool():
            beyond = b.draw.pick((0, 0, 16, 2**31 - 1))
            b.attrs["pads"] = [beyond, *(b.draw.int(0, 4) for _ in range(2 * len(value) - 1))]


def _transposed(call: Call) -> str | None:
    """Of the meaning; and whether a stride above the window wants a negative padding, or none."""
    tensors, p = call.version.decode(call)
    return gathered(s.negative_total(tensors, p), s.conv_transpose.underspecified(tensors, p))


def filters(slot: str) -> Checks:
    """``kernel_shape`` of the ops that have a filter: its spatial extents, which are taken from there if it is absent
    (ONNX Conv, kernel_shape)."""
    return Checks(agrees={"kernel_shape": lambda c: list(c.inputs[slot].shape[2:])})


_CONV: dict[str, Any] = {"groups": "group", "padding": AUTO_PAD}
op("Conv", s.conv, filters("W"), x="X", w=Weight("W"), b="B", **_CONV)
op(
    "ConvTranspose",
    s.conv_transpose,
    filters("W"),
    Spelling(x="X", w=Weight("W"), b="B", output_shape=Extents(), fixed={"odd": "upper_begin"}, **_CONV),
    Checks(ambiguous=_transposed),
    until=10,
)
op(
    "ConvTranspose",
    s.conv_transpose,
    filters("W"),
    Spelling(x="X", w=Weight("W"), b="B", output_shape=Extents(), fixed={"odd": "upper_end"}, **_CONV),
    Checks(ambiguous=_transposed),
    since=11,
)
op(
    "ConvInteger",
    s.conv_integer,
    filters("w"),
    x="x",
    w=Weight("w"),
    x_zero="x_zero_point",
    w_zero="w_zero_point",
    **_CONV,
)
