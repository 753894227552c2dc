"""Elements of an instance's tensors: recipe + seed -> array, the same bits everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

import native_ref
from harness.core.dtypes import DType
from harness.core.errors import FormatError
from harness.core.instance import Arg, Instance

SHIFT = 0x51ED270B  # between the seeds of two data draws


def materialize(a: Arg, draw: int = 0) -> Any:
    """The array of an Arg (a list of arrays for a sequence or list).  draw: number of the data draw; literal values and
    structured recipes are the same in all draws."""
    if a.values is None and a.items is None:
        return native_ref.fill(a.recipe, a.seed + draw * SHIFT, a.shape, a.dtype)
    if a.items is not None:
        values = [materialize(x, draw) for x in a.items]
        if a.kind == "optional":  # the element itself, or None for an empty one
            return values[0] if values else None
        if a.kind == "map":
            wide = values[1].dtype == np.float64  # which a float would not tell from f32
            return dict(zip(values[0].tolist(), values[1] if wide else values[1].tolist()))
        return values
    assert a.values is not None
    return literal(a.values, a.dtype, a.shape)


def literal(values: list[Any], dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Literal elements as an array; raises FormatError when their number does not fit."""
    out: np.ndarray
    if dtype.kind == "s":
        out = np.empty(len(values), object)
        out[:] = values
    else:
        out = np.array(values, dtype.np) if dtype.np.kind in "fbc" else _whole(values, dtype)
    try:
        return out.reshape(shape)
    except ValueError:
        raise FormatError(f"literal values: expected {shape}, got {len(values)} elements") from None


def _whole(values: list[Any], dtype: DType) -> np.ndarray:
    """Integers, and the narrow floats; what a retyped invalid instance cannot hold wraps."""
    if dtype.np.kind not in "iu":
        return np.array(values, np.float64).astype(dtype.np)
    try:
        return np.array(values, dtype.np)
    except (OverflowError, ValueError):  # NaN and infinities of a float input, or a number that is too large
        if any(isinstance(v, float) for v in values):
            finite = np.nan_to_num(np.array(values, np.float64), posinf=1, neginf=-1)
            return native_ref.convert(finite, np.dtype(np.int64)).astype(dtype.np)
        return np.array(values, np.int64).astype(dtype.np)


def arrays_of(inst: Instance, draw: int = 0) -> dict[str, Any]:
    """slot -> array (list for a variadic slot)."""
    return {
        k: [materialize(x, draw) for x in a] if isinstance(a, list) else materialize(a, draw)
        for k, a in inst.args.items()
    }
