"""Convolution, plain, transposed and on integers."""

from __future__ import annotations

from typing import Any

from harness.declare import Build, Call, Map, Slotted
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


def _negative(call: Call) -> str | None:
    """SAME with a stride above the window wants a negative padding; the text speaks of cells that are added."""
    tensors, p = call.version.decode(call)
    x, w = tensors["x"], tensors["w"]
    if p["padding"].startswith("same") or p.get("output_shape"):
        *_, pads, _ = s.transposed_geometry(
            x.shape[2:],
            w.shape[2:],
            p["strides"],
            p["dilations"],
            p["pads"],
            p["padding"],
            p["output_padding"],
            p["output_shape"],
            True,
        )
        if any(a + b < 0 for a, b in zip(pads[: x.ndim - 2], pads[x.ndim - 2 :])):
            return "a stride above the window: negative padding by the formula, none by its text"
    return s.conv_transpose.ambiguous(tensors, p)  # type: ignore[misc]


def filters(slot: str) -> dict[str, Any]:
    """``kernel_shape`` of the ops that have a filter: its spatial extents, which are taken from there if it is absent
    (ONNX Conv, kernel_shape)."""
    return {"agrees": {"kernel_shape": lambda c: list(c.inputs[slot].shape[2:])}}


_CONV: dict[str, Any] = {"groups": "group", "padding": AUTO_PAD}
op("Conv", s.conv, x="X", w=Weight("W"), b="B", **filters("W"), **_CONV)
op(
    "ConvTranspose",
    s.conv_transpose,
    x="X",
    w=Weight("W"),
    b="B",
    until=10,
    fixed={"odd": "upper_begin"},
    **filters("W"),
    **_CONV,
)
op(
    "ConvTranspose",
    s.conv_transpose,
    x="X",
    w=Weight("W"),
    b="B",
    since=11,
    fixed={"odd": "upper_end"},
    ambiguous=_negative,
    **filters("W"),
    **_CONV,
)
op(
    "ConvInteger",
    s.conv_integer,
    x="x",
    w=Weight("w"),
    x_zero="x_zero_point",
    w_zero="w_zero_point",
    **filters("w"),
    **_CONV,
)
