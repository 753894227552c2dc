"""Tensors made from a shape, a number or a pattern: fills, ranges, diagonals, triangles and bands."""

from __future__ import annotations

from typing import Annotated
from typing import Any as Object

import numpy as np

from harness.core.dtypes import DType, of
from harness.core.errors import RuleError
from harness.declare import Any, Array, Choice, ElementType, Flag, Integer, Ints, Num, T, exact, rounded, semantics
from harness.generate.draw import Draw
from harness.tolerance.underspecified import Underspecified, other_shape
from suites.semantics.movement.common import INT32_MAX, fixed, norm_axis, options, tagged


@semantics(error=exact(), source="ONNX ConstantOfShape-9; MIL fill iOS15; TFLite FILL; NN fillDynamic, fillStatic")
def fill(value: Any[Array, "*v"], *, shape: Ints) -> Array:
    """A tensor of ``shape`` whose every element is the only element of ``value``.  Raises RuleError
    "extents-nonnegative"."""
    if any(s < 0 for s in shape):
        raise RuleError("extents-nonnegative", f"shape {list(shape)}")
    out = np.empty(tuple(int(s) for s in shape), value.dtype)
    out[...] = value.reshape(-1)[0]
    return out


@fill.draw
def _draw_fill(d: Draw) -> dict:
    far = tagged(d, "far", 32)  # a result as long as any, without elements
    return {"value": T(()), "shape": (INT32_MAX, 0) if far else d.shape(0)}


@fill.breaks("extents-nonnegative")
def _fill_negative(d: Draw) -> dict:
    return {"value": T(()), "shape": (*d.shape(0, 3), -1)}


@semantics(error=exact(), source="MIL fill_like iOS16; NN fillLike; TFLite ZEROS_LIKE (value 0)")
def fill_like(x: Any[Array, "*d"], value: Any[Array, ""]) -> Any[Array, "*d"]:
    """A tensor shaped like ``x`` whose every element is ``value``."""
    out = np.empty(x.shape, value.dtype)
    out[...] = value.reshape(-1)[0]
    return out


@semantics(error=exact(), source="ONNX ConstantOfShape-9 zeros; TFLite ZEROS_LIKE")
def zeros_like(x: Any[Array, "*d"]) -> Any[Array, "*d"]:
    """Zeros (false, empty strings) of the shape and type of ``x``."""
    return np.zeros(x.shape, x.dtype) if x.dtype.kind != "O" else np.full(x.shape, "", object)


def count_in_type(inputs: dict[str, Object], params: dict[str, Object]) -> Underspecified | None:
    """Whether the number of elements is that of the exact quotient or of the one in the type is not said."""
    start, limit, delta = (inputs[n].reshape(-1)[0] for n in ("start", "limit", "delta"))
    if of(inputs["start"]).kind != "f" or not float(delta):
        return None
    with np.errstate(all="ignore"):
        exact_one = np.ceil((float(limit) - float(start)) / float(delta))
        in_type = float(np.ceil(np.float64((limit - start) / delta)))
    if exact_one == in_type or not np.isfinite(in_type) or max(in_type, exact_one) < 1:
        return None
    other = float(start) + np.arange(max(in_type, 0.0)) * float(delta)
    return other_shape("the precision of the quotient that gives the number of elements", 0, other.astype(start.dtype))


@semantics(
    error=rounded(1),
    source="ONNX Range-11; MIL range_1d iOS15; TFLite RANGE; NN rangeStatic, rangeDynamic",
    ambiguous=count_in_type,
)
def range_of(start: Num[Array, ""], limit: Num[Array, ""], delta: Num[Array, ""]) -> Array:
    """start + i * delta for i in 0 .. max(ceil((limit - start) / delta), 0) - 1.

    Integers are exact; floats are computed wide, element by element (not by repeated addition).
    Raises RuleError "step-nonzero".
    """
    if start.dtype.kind in "iu":
        first, end, by = (int(v.reshape(-1)[0]) for v in (start, limit, delta))
        if by == 0:
            raise RuleError("step-nonzero", "delta 0")
        return np.array(range(first, end, by), start.dtype)
    s, e, k = (float(v.reshape(-1)[0]) for v in (start, limit, delta))
    if k == 0:
        raise RuleError("step-nonzero", "delta 0")
    steps = np.ceil((e - s) / k)
    count = 0 if steps == -np.inf else max(int(steps), 0)
    return s + np.arange(count, dtype=np.float64) * k


@range_of.draw
def _draw_range(d: Draw) -> dict:
    """Steps that every float type holds exactly, so that the element count has one answer."""
    count = d.int(0 if d.allow_empty else 1, 12)
    dt = d.dtype("start")
    step: float = d.pick((1, 2, 3, 7, -1, -2, -5)) if dt.kind in "i" else d.pick((1, 2, 3))
    scale: float = 1
    if dt.kind == "f":
        step, scale = d.pick((0.5, 1.0, 2.0, -0.5, -1.0, 0.25, 3.0)), d.pick((1, 0.5))
    start = d.int(-20, 20) * scale if dt.kind != "u" else d.int(0, 20)
    limit = start + step * count
    if count and d.bool():  # a limit inside the last step
        limit -= step / 2 if dt.kind == "f" else (1 if step > 1 else -1 if step < -1 else 0)
    elif count == 0 and d.bool() and dt.kind != "u":
        limit = start - step
    return {"start": T((), values=[start]), "limit": T((), values=[limit]), "delta": T((), values=[step])}


@range_of.breaks("step-nonzero")
def _range_still(d: Draw) -> dict:
    return {"start": T((), values=[0]), "limit": T((), values=[5]), "delta": T((), values=[0])}


@semantics(error=exact(), source="ONNX EyeLike-9, -22")
def eye_like(
    x: Any[Array, "r c"], *, k: Annotated[int, Integer(-6, 6)] = 0, dtype: ElementType | None = None
) -> Any[Array, "r c"]:
    """Ones on diagonal ``k`` (above the main one for k > 0) of a zero matrix shaped like ``x``; dtype: None
    is that of ``x``."""
    return np.eye(x.shape[0], x.shape[1], k=k).astype((dtype or of(x)).np)


def _other(d: Draw) -> DType | None:
    """A type that the result can have, or None for that of the input."""
    slot = d.version.schema.outputs[0]
    return d.pick(d.version.schema.dtypes(slot.element)) if d.bool() else None


@eye_like.draw
def _draw_eye(d: Draw) -> dict:
    return {"x": T((d.dim(), d.dim())), "k": d.int(-6, 6), "dtype": fixed(d, "dtype", lambda: _other(d))}


def _matrices(x: np.ndarray) -> None:
    if x.ndim < 2:
        raise RuleError("matrices", f"rank {x.ndim}")


@semantics(error=exact(), source="ONNX Trilu-14; NN lowerTriangular, upperTriangular")
def triangle(
    x: Any[Array, "*d r c"], *, k: Annotated[int, Integer(-6, 6)] = 0, upper: Flag = True
) -> Any[Array, "*d r c"]:
    """The part on and above (upper) or on and below diagonal ``k`` of each matrix, zero elsewhere.

    Raises RuleError "matrices".
    """
    _matrices(x)
    if not x.size:  # its matrices may be as large as no memory is
        return np.zeros(x.shape, x.dtype)
    keep = np.triu(np.ones(x.shape[-2:], np.bool_), k) if upper else np.tril(np.ones(x.shape[-2:], np.bool_), k)
    return np.where(keep, x, x.dtype.type(0))


@semantics(error=exact(), source="MIL band_part iOS15; NN matrixBandPart; tf.linalg.band_part")
def band_part(
    x: Any[Array, "*d r c"], *, lower: Annotated[int, Integer(-1, 5)], upper: Annotated[int, Integer(-1, 5)]
) -> Any[Array, "*d r c"]:
    """``lower`` sub-diagonals and ``upper`` super-diagonals of each matrix kept (-1: all), zero elsewhere.

    Raises RuleError "matrices".
    """
    _matrices(x)
    if not x.size:
        return np.zeros(x.shape, x.dtype)
    i, j = np.arange(x.shape[-2])[:, None], np.arange(x.shape[-1])
    keep = ((lower < 0) | (i - j <= lower)) & ((upper < 0) | (j - i <= upper))
    return np.where(keep, x, x.dtype.type(0))


@semantics(error=exact(), source="TFLite MATRIX_DIAG")
def diag(x: Any[Array, "*d n"]) -> Any[Array, "*d n n"]:
    """Square matrices with ``x`` on the diagonal and zero elsewhere."""
    out = np.zeros((*x.shape, x.shape[-1]), x.dtype)
    if not x.size:
        return out
    i = np.arange(x.shape[-1])
    out[..., i, i] = x
    return out


@semantics(error=exact(), source="TFLite MATRIX_SET_DIAG")
def set_diag(x: Any[Array, "*d r c"], diagonal: Any[Array, "*d min(r,c)"]) -> Any[Array, "*d r c"]:
    """``x`` with the main diagonal of each matrix replaced.  diagonal: [*d, min(r, c)]."""
    out = np.array(x)
    if not x.size:
        return out
    i = np.arange(min(x.shape[-2:]))
    out[..., i, i] = diagonal
    return out


@semantics(error=exact(), source="NN cropping: two-sided crop of the last two axes; ONNX Crop (experimental)")
def crop_spatial(x: Any[Array, "*d h w"], *, border: Ints) -> Array:
    """border: (left, top, right, bottom) elements cut from the last two axes.  Raises RuleError
    "crops-inside"."""
    left, top, right, bottom = (int(b) for b in border)
    h, w = x.shape[-2:]
    if min(border) < 0 or top + bottom > h or left + right > w:
        raise RuleError("crops-inside", f"border {list(border)} of {h} x {w}")
    return x[..., top : h - bottom, left : w - right]


@crop_spatial.draw
def _draw_crop(d: Draw) -> dict:
    border = tuple(d.int(0, 3) for _ in range(4))
    h, w = border[1] + border[3] + d.dim(hi=6), border[0] + border[2] + d.dim(hi=6)
    return {"x": T((*d.shape(0, 3), h, w)), "border": border}


@semantics(error=exact(), source="NN sequenceRepeat, tile along one axis")
def repeat_axis(
    x: Any[Array, "*d"],
    *,
    axis: Integer,
    times: Annotated[int, Integer(1, 4)],
    mode: Choice[str, "tile", "each"] = "tile",
) -> Array:
    """``x`` several times along ``axis``: as a whole ("tile") or element by element ("each")."""
    a = norm_axis(axis, x.ndim)
    return np.repeat(x, times, a) if mode == "each" else np.concatenate([x] * times, a)


@repeat_axis.draw
def _draw_repeat(d: Draw) -> dict:
    shape = d.shape(1)
    return {
        "x": T(shape),
        "axis": fixed(d, "axis", lambda: d.axis(len(shape))),
        "times": d.int(1, 4),
        "mode": d.pick(options(d, "mode")),
    }
