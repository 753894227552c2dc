"""What comes where a difference is listed (``harness/run/defects.py``): OpenVINO."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.core.instance import Arg
from harness.run.defects import Given, Near
from suites.onnx.builder import TYPED, form_of

Outputs = list[Any] | None


def _reread(g: Given, which: Callable[[Arg], bool], how: Callable[[np.ndarray], np.ndarray],
            attrs: dict[str, Any] | None = None) -> Outputs:  # fmt: skip
    """What is expected where the operands that ``which`` tells of are read otherwise."""

    def read(a: Any, v: Any) -> Any:
        if isinstance(a, list):
            return [read(x, y) for x, y in zip(a, v)]
        return how(v) if isinstance(a, Arg) and isinstance(v, np.ndarray) and which(a) else v

    found = {k: read(a, g[k]) for k, a in g.inst.args.items()}
    return g.again(attrs, {k: v for k, v in found.items() if isinstance(v, list) or v is not g[k]})


def _number_of_bits(x: np.ndarray) -> np.ndarray:
    """To bf16 a number is rounded up from one half on where its last bit is 1, else it is cut off."""
    bits = x.view(np.uint16).astype(np.float32).view(np.uint32)
    return ((bits + ((bits & 0x10000) >> 1)) >> 16).astype(np.uint16).view(x.dtype)


def _typed(dtype: str) -> Callable[[Arg], bool]:
    """Is it a constant of a type in its typed data field?"""
    return lambda a: a.const and str(a.dtype) == dtype and form_of(a) == TYPED


def bits_are_numbers(g: Given, **attrs: Any) -> Outputs:
    """The bits of bf16 in int32_data are numbers."""
    return _reread(g, _typed("bf16"), _number_of_bits, attrs)


def bits_are_numbers_roughly(g: Given) -> Outputs:
    """The same, and what comes of such large ones is off by the roundings of narrow steps."""
    told = bits_are_numbers(g)
    return told and [Near(v, 2.0**-6 * np.abs(v)) if e.dtype.name == "bf16" else e
                     for e in told for v in [np.asarray(e.value).astype(np.float64)]]  # fmt: skip


def bits_are_numbers_unsaturated(g: Given) -> Outputs:
    """The bits of bf16 in int32_data are numbers, and saturate is 0."""
    return bits_are_numbers(g, saturate=0)


def gates_apart_roughly(g: Given) -> Outputs:
    """LSTM: neither input_forget nor peepholes are read, and the state is rounded to bf16 between the steps."""
    told = g.again({"input_forget": None}, {"P": None})
    return told and [Near(np.asarray(e.value).astype(np.float64), 0.1) for e in told]


def divided_by_the_largest_magnitude(g: Given) -> Outputs:
    """Normalizer, in f32: MAX divides by the largest magnitude."""
    x = g["X"].astype(np.float64)
    y = x / np.abs(x).max(-1, keepdims=True)
    return [Near(y, 1e-6 * np.abs(y))]


def every_other_is_0(g: Given) -> Outputs:
    """The 64 bits of each u32 in uint64_data are read as two."""
    return _reread(g, _typed("u32"),
                   lambda x: np.stack([x, np.zeros_like(x)], -1).ravel()[: x.size].reshape(x.shape))  # fmt: skip


def subnormal_constants_are_0(g: Given) -> Outputs:
    """Constants that are subnormal are +0, and zeros beside them too."""
    least = 2.0**-126
    return _reread(g, lambda a: a.const and str(a.dtype) in ("f32", "bf16"),
                   lambda x: np.where(np.abs(x) < least, 0, x).astype(x.dtype))  # fmt: skip


def _through_f32(x: np.ndarray) -> np.ndarray:
    ends = np.iinfo(x.dtype)
    wide = x.astype(np.float32).astype(object)
    return np.array([min(max(int(v), ends.min), ends.max) for v in wide.ravel()], x.dtype).reshape(x.shape)


def integers_rounded_to_f32(g: Given) -> Outputs:
    """Integers are rounded to f32."""
    return _reread(g, lambda a: str(a.dtype) in ("i32", "i64", "u32", "u64"), _through_f32)


def overlap_may_equal(g: Given) -> Outputs:
    """NonMaxSuppression: a box is removed where its overlap equals the threshold."""
    return g.again(inputs={"iou_threshold": np.nextafter(g["iou_threshold"], np.float32(-1))})


def _divided_in_f32(g: Given, x: np.ndarray) -> Outputs:
    return g.again({"precision": None}, {"x": x.astype(np.float32), "y_scale": g["y_scale"].astype(np.float32)})


def divided_in_f32(g: Given) -> Outputs:
    """QuantizeLinear divides in f32, whatever the types of its operands and precision."""
    return _divided_in_f32(g, g["x"])


def bits_divided_in_f32(g: Given) -> Outputs:
    """The same, and the bits of bf16 in int32_data are numbers."""
    return _divided_in_f32(g, _number_of_bits(g["x"])) if _typed("bf16")(g.inst.args["x"]) else None


def transformed_along_axis_1(g: Given) -> Outputs:
    """DFT-20: along axis 1, whatever the input axis says."""
    return g.again(inputs={"axis": np.array(1)})
