"""What comes where a difference is listed (``harness/ledger/defect_models.py``): the tools of the onnx package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.dtypes import of
from harness.ledger.defect_models import Near, Turned

Outputs = list[Any] | None


def _typed(e: Any, dtype: str | None = None, shape: tuple[int, ...] | None = None) -> Turned:
    """An output of which a tool tells this type, and this shape where it tells its extents."""
    kind, extents = dtype or str(e.dtype), e.value.shape if shape is None else shape

    def due(a: Any) -> Any:
        told = a.shape
        if str(a.dtype) != kind or (told is not None and len(told) != len(extents)):
            raise ValueError("another type")
        if told is not None and any(isinstance(t, int) and t != n for t, n in zip(told, extents)):
            raise ValueError("another shape")
        return e.value

    return Turned(e, due)


def type_of_x(g: Given) -> Outputs:
    """The result has the type of X."""
    return [_typed(e, str(of(g["X"]))) for e in g.expected]


def axes_in_order(g: Given) -> Outputs:
    """Squeeze: an axis that is not after the one before it in the list is not taken away."""
    x, axes, kept, at = g["data"], [a % g["data"].ndim for a in g.attr("axes")], [], 0
    for a, n in enumerate(x.shape):
        if at < len(axes) and axes[at] == a:
            at += 1
        else:
            kept.append(n)
    return [_typed(g.expected[0], None, tuple(kept))]


def shape_of_the_other_branch(g: Given) -> Outputs:
    """If: the shape is that of the other branch."""
    told = g.reevaluate(None, {"cond": ~g["cond"]})
    if told is None:
        return None
    shapes = [getattr(t.value, "shape", None) for t in told]
    return [_typed(e, None, s) if s is not None and s != e.value.shape else None for e, s in zip(g.expected, shapes)]


def _shaped(e: Any, fits: Callable[[tuple[int, ...], tuple[int, ...]], bool]) -> Turned:
    """An output of which a tool tells a shape that is not the one that is due; symbols stand for any extent."""

    def due(a: Any) -> Any:
        told, right = a.shape, e.value.shape
        if str(a.dtype) != str(e.dtype):
            raise ValueError("another type")
        if told is None:
            return e.value
        if not fits(tuple(n if not isinstance(t, int) else t for t, n in zip(told, right)), right[: len(told)]):
            raise ValueError("another shape")
        if len(told) > len(right):
            raise ValueError("another rank")
        return e.value

    return Turned(e, due)


def unknown_extents_are_0(g: Given) -> Outputs:
    """An extent of V or of the past that is not known is 0."""
    keys = g["K"].shape[-2]
    return [_shaped(e, lambda a, b: all(x in (0, keys, y) for x, y in zip(a, b))) for e in g.expected]


def the_rest_is_missing(g: Given) -> Outputs:
    """The shape ends early."""
    return [_shaped(e, lambda a, b: a == b) for e in g.expected]


def a_window_too_many(g: Given) -> Outputs:
    """Along some axes there is a window too many."""
    return [_shaped(e, lambda a, b: a[:2] == b[:2] and all(x in (y, y + 1) for x, y in zip(a, b))) for e in g.expected]


def bins_too_many(g: Given) -> Outputs:
    """STFT: all bins, or one too many."""
    n = int(g["frame_length"]) if g["frame_length"] is not None else len(g["window"])

    def fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
        return (*a[:2], *a[3:]) == (*b[:2], *b[3:]) and a[2] in (n, b[2] + 1)

    return [_shaped(g.expected[0], fits)]


def filled_up_behind(g: Given) -> Outputs:
    """The second operand gets its missing axes behind its own, whatever axis says."""
    fn = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power}[g.inst.op]
    a, b = (g[k.name].astype(np.float64) for k in g.case.version.schema.inputs[:2])
    y = fn(a, b.reshape(*b.shape, *[1] * (a.ndim - b.ndim)))
    kind = g.expected[0].value.dtype
    return [Near(y.astype(kind), 2.0 ** (2 - (g.expected[0].dtype.frac or 52)) * np.abs(y))]


def slope_at_the_end(g: Given) -> Outputs:
    """PRelu: the slope is aligned with the last axis."""
    x = g["X"].astype(np.float64)
    y = np.where(x < 0, x * g["slope"].astype(np.float64), x)
    return [Near(y.astype(g["X"].dtype), 2.0 ** (2 - (of(g["X"]).frac or 0)) * np.abs(np.nan_to_num(y)))]


def as_version_6(g: Given) -> Outputs:
    """The node is that of version 6."""
    return g.reevaluate(version=6)


def as_version_8(g: Given) -> Outputs:
    """The node is that of version 8."""
    return g.reevaluate(version=8)


def as_scan_9(g: Given) -> Outputs:
    """Scan: the node is that of version 9."""
    turned = {"directions": None, "scan_input_directions": g.attr("directions")}
    return g.reevaluate(turned, {"sequence_lens": None}, version=9)


def as_version_11(g: Given) -> Outputs:
    """The node is that of version 11."""
    return g.reevaluate(version=11)


def as_version_13(g: Given) -> Outputs:
    """The node is that of version 13."""
    return g.reevaluate(version=13)


def as_pool_before_22(g: Given) -> Outputs:
    """AveragePool is that of version 19, MaxPool that of version 12."""
    return g.reevaluate(version=19 if g.inst.op == "AveragePool" else 12)


def as_version_21(g: Given) -> Outputs:
    """The node is that of version 21."""
    return g.reevaluate(version=21)


def dequantized_to_the_scale(g: Given) -> Outputs:
    """DequantizeLinear: the result has the type of the scale."""
    e, kind = g.expected[0], g["x_scale"].dtype
    step = 2.0 ** (1 - min(of(g["x_scale"]).frac or 0, e.dtype.frac or 0))

    def due(a: Any) -> Any:
        x, y = a.astype(np.float64), e.value.astype(np.float64)
        if a.dtype != kind or a.shape != y.shape or not np.all((np.abs(x - y) <= step * np.abs(y) + 1e-7) | (x == y)):
            raise ValueError("another type or value")
        return e.value

    return [Turned(e, due)]


def through_f32(g: Given) -> Outputs:
    """Integers are cast to f32 and back."""
    cast = {k: x.astype(np.float32) for k, x in g.arrays.items() if isinstance(x, np.ndarray) and x.dtype.kind in "iu"}
    told = g.reevaluate(None, cast)
    if told is None:
        return None
    e, y = g.expected[0], told[0].value
    if e.value.dtype == np.bool_:
        return [y]
    within = told[0].error.bound(told[0].context()) if told[0].wide is not None else 0
    return [Near(y.astype(np.float64), within, np.clip(y.astype(np.float64), *_ends(e.value.dtype)))]


def _ends(dtype: Any) -> tuple[float, float]:
    ends = np.iinfo(dtype)
    return float(ends.min), float(ends.max)
