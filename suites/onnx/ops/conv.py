"""Convolution, plain, transposed and on integers."""

from __future__ import annotations

from typing import Any

from harness.spec import Build, Map, Slotted
from suites.onnx import op
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


_CONV: dict[str, Any] = {"groups": "group", "padding": AUTO_PAD}
op("Conv", s.conv, x="X", w=Weight("W"), b="B", **_CONV)
op("ConvTranspose", s.conv_transpose, x="X", w=Weight("W"), b="B", until=10, fixed={"odd": "upper_begin"}, **_CONV)
op("ConvTranspose", s.conv_transpose, x="X", w=Weight("W"), b="B", since=11, fixed={"odd": "upper_end"}, **_CONV)
op("ConvInteger", s.conv_integer, x="x", w=Weight("w"), x_zero="x_zero_point", w_zero="w_zero_point", **_CONV)
