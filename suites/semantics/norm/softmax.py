"""Softmax, its logarithm, and the one-hot of the maximum; along an axis, or over everything from an axis on."""

from __future__ import annotations

from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.errors import RuleError
from harness.declare import Axis, Flag, Float, Real, T, composed, exact, semantics
from harness.generate.draw import Draw
from harness.tolerance import Context
from suites.semantics.bounds import has_nan, quiet, tiny
from suites.semantics.drawing import param, product
from suites.semantics.movement.common import norm_axis

Array = np.ndarray


def flattened(x: Array, axis: int, behind: bool = True) -> tuple[Array, int]:
    """``x`` as a matrix, the axes from ``axis`` on in one row.  behind: may ``axis`` be the rank, so that each element
    is a row?  Raises RuleError "axis-in-range"."""
    a = axis + x.ndim if axis < 0 else axis
    if not 0 <= a <= x.ndim - (not behind):
        raise RuleError("axis-in-range", f"axis {axis} for rank {x.ndim}")
    return x.reshape(product(x.shape[:a]), product(x.shape[a:])), a


def _rows(ctx: Context, whole_tail: bool) -> tuple[Array, Object]:
    x = np.asarray(ctx.inputs["x"], np.float64) * float(ctx.params.get("beta", 1.0) or 1.0)
    if not whole_tail:
        return x, ctx.params["axis"]
    return flattened(x, ctx.params["axis"])[0], 1


def _parts(ctx: Context, whole_tail: bool) -> tuple[Array, Array, Array, float]:
    """|x - max|, the softmax-weighted mean of it, log of the sum, count."""
    x, axis = _rows(ctx, whole_tail)
    d = x - x.max(axis=axis, keepdims=True)
    p = np.exp(d)
    s = p.sum(axis=axis, keepdims=True)
    mean = np.where(p > 0, p * np.abs(d), 0).sum(axis=axis, keepdims=True) / s
    return np.abs(d), mean, np.log(s), float(x.shape[axis])


def softmax_bound(whole_tail: bool) -> Object:
    """The bound of a softmax.  whole_tail: over all axes from the given one on, not along one."""

    @quiet
    def bound(ctx: Context) -> Array:
        """h * (2|x-m| + 2 E|x-m| + K + 8) acc_u + ulp, E the softmax mean (rounding of x-m, exp to 3+2|x| units)"""
        if ctx.wide.size == 0:
            return np.zeros(ctx.wide.shape)
        d, mean, _, k = _parts(ctx, whole_tail)
        r = ((2 * d + 2 * mean + k + 8) * ctx.acc_u).reshape(ctx.wide.shape)
        return np.abs(ctx.wide) * r + ctx.ulp + tiny(ctx)

    return bound


def log_softmax_bound(whole_tail: bool) -> Object:
    """The bound of a log-softmax.  whole_tail: as of ``softmax_bound``."""

    @quiet
    def bound(ctx: Context) -> Array:
        """(2|x-m| + 2 E|x-m| + |log sum| + K + 8) acc_u + 2 ulp"""
        if ctx.wide.size == 0:
            return np.zeros(ctx.wide.shape)
        d, mean, log_sum, k = _parts(ctx, whole_tail)
        return ((2 * d + 2 * mean + log_sum + k + 8) * ctx.acc_u).reshape(ctx.wide.shape) + 2 * ctx.ulp

    return bound


def _draw_tail(d: Draw) -> dict[str, Object]:
    """Shape with something to normalise: empty only before the axis."""
    shape = d.shape(1)
    axis = param(d, "axis", lambda: d.axis(len(shape)))
    a = axis % len(shape)
    shape = (*shape[:a], *(max(1, n) for n in shape[a:]))
    return {"x": T(shape), "axis": axis}


def _draw_axis(d: Draw) -> dict[str, Object]:
    out = _draw_tail(d)
    if d.version.meaning is not None and "beta" in d.version.meaning.params:
        out["beta"] = param(d, "beta", lambda: d.pick((1.0, 1.0, 0.5, 2.0, 0.125)))
    return out


@semantics(
    error=composed(softmax_bound(False)),
    source="ONNX Softmax-13; MIL softmax iOS15; TFLite SOFTMAX; NN Softmax",
    draw=_draw_axis,
)
def softmax(x: Float[Array, "*d"], *, axis: Axis[int, "d"] = -1, beta: Real = 1.0) -> Float[Array, "*d"]:
    """exp(beta x) / sum exp(beta x) along ``axis``.  Raises RuleError "axis-in-range"."""
    y = x if beta == 1 else x.astype(np.float64) * beta
    return native.softmax(y, norm_axis(axis, x.ndim))


@semantics(error=composed(softmax_bound(True)), source="ONNX Softmax-1, -11", draw=_draw_tail)
def softmax_flattened(x: Float[Array, "*d"], *, axis: Axis[int, "d"] = 1, behind: Flag) -> Float[Array, "*d"]:
    """Softmax over all axes from ``axis`` on together.  behind: may ``axis`` be the rank?  Version 11 states the range
    [-r, r-1].  Raises RuleError "axis-in-range"."""
    return native.softmax(flattened(x, axis, behind)[0], 1).reshape(x.shape)


@semantics(error=composed(log_softmax_bound(False)), source="ONNX LogSoftmax-13; TFLite LOG_SOFTMAX", draw=_draw_axis)
def log_softmax(x: Float[Array, "*d"], *, axis: Axis[int, "d"] = -1) -> Float[Array, "*d"]:
    """x - log(sum exp(x)) along ``axis``.  Raises RuleError "axis-in-range"."""
    return native.softmax(x, norm_axis(axis, x.ndim), True)


@semantics(error=composed(log_softmax_bound(True)), source="ONNX LogSoftmax-1, -11", draw=_draw_tail)
def log_softmax_flattened(x: Float[Array, "*d"], *, axis: Axis[int, "d"] = 1, behind: Flag) -> Float[Array, "*d"]:
    """Logarithm of ``softmax_flattened``.  Raises RuleError "axis-in-range"."""
    return native.softmax(flattened(x, axis, behind)[0], 1, True).reshape(x.shape)


def _one_hot(x: Array, axis: int) -> Array:
    y = np.zeros(x.shape, x.dtype)
    if x.size:
        np.put_along_axis(y, native.arg_reduce("max", x, axis, True), np.ones((), x.dtype), axis)
    return y


def _together(count: int | None) -> Object:
    """Which elements are normalised with one of ``x``: over so many axes from ``axis`` on, None is all."""

    def over(x: Array, params: dict[str, Object]) -> Array:
        a = norm_axis(params["axis"], x.ndim)
        return native.reduce("max", x, list(range(a, x.ndim))[:count], True)

    return over


@semantics(
    error=exact(),
    source="ONNX Hardmax-13",
    draw=_draw_axis,
    ambiguous=has_nan("x", _together(1)),
    data=("ties", "small", "unit", "special"),
)
def hardmax(x: Float[Array, "*d"], *, axis: Axis[int, "d"] = -1) -> Float[Array, "*d"]:
    """1 at the first maximum along ``axis``, 0 elsewhere.  Raises RuleError "axis-in-range"."""
    return _one_hot(x, norm_axis(axis, x.ndim))


@semantics(
    error=exact(),
    source="ONNX Hardmax-1, -11",
    draw=_draw_tail,
    ambiguous=has_nan("x", _together(None)),
    data=("ties", "small", "unit", "special"),
)
def hardmax_flattened(x: Float[Array, "*d"], *, axis: Axis[int, "d"] = 1, behind: Flag) -> Float[Array, "*d"]:
    """1 at the first maximum over all axes from ``axis`` on together, 0 elsewhere.  behind: as ``softmax_flattened``.
    Raises RuleError "axis-in-range"."""
    return _one_hot(flattened(x, axis, behind)[0], 1).reshape(x.shape)
