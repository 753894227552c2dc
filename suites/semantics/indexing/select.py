"""Choosing by truth, and spelling an index out."""

from __future__ import annotations

import numpy as np

from harness.core.dtypes import of
from harness.core.errors import RuleError
from harness.declare import Any, Array, Bool, Choice, Int, Integer, Numeric, T, exact, semantics
from harness.generate.draw import Draw
from suites.semantics.indexing.common import fixed, index_recipe, prod, resolve
from suites.semantics.movement.common import norm_axis


def _truth(x: np.ndarray) -> np.ndarray:
    d = of(x)
    if d.kind == "s":
        return np.array([bool(s) for s in x.ravel()], bool).reshape(x.shape)
    return (x.astype(np.float64) if d.kind == "f" else x.astype(np.int64) if d.bits < 8 else x) != 0


@semantics(
    error=exact(),
    source="ONNX NonZero-9, -13 (a scalar gives a tensor of shape [0, n])",
    data=("small", "ties", "bool", "special"),
)
def nonzero(x: Any[Array, "*d"]) -> Array:
    """Indices of the elements that are not zero, row-major: int64 [rank, count]."""
    t = _truth(x)
    if t.ndim == 0:
        return np.zeros((0, int(t)), np.int64)
    return np.stack(np.nonzero(t)).astype(np.int64)


@nonzero.draw
def _draw_nonzero(d: Draw) -> dict:
    return {"x": T(d.shape(0), _sparse_recipe(d))}


def _sparse_recipe(d: Draw) -> str | None:
    slot = d.version.tensor_codecs["x"]
    kind = d.dtype(slot.slot).kind if hasattr(slot, "slot") else "f"
    return {"b": "bool", "s": "strings"}.get(kind) or d.pick(
        ("ints:-1:1", "small") if kind != "u" else ("ints:0:1", "small")
    )


@semantics(error=exact(), source="MIL non_zero iOS15; NN whereNonZero; TFLite WHERE")
def nonzero_rows(x: Any[Array, "*d"]) -> Array:
    """Indices of the elements that are not zero, row-major: int64 [count, rank]."""
    return np.argwhere(_truth(x)).astype(np.int64)


@nonzero_rows.draw
def _draw_rows(d: Draw) -> dict:
    return {"x": T(d.shape(1), _sparse_recipe(d))}


@semantics(error=exact(), source="ONNX Compress-9, -11 (numpy.compress)")
def compress(x: Any[Array, "*d"], condition: Bool[Array, "n"], *, axis: Integer | None = None) -> Array:
    """Slices along ``axis`` (None: elements of the flattened tensor) where ``condition`` holds; beyond its end it is
    false.

    Raises RuleError "one-axis", "axis-in-range", "condition-within-extent".
    """
    if not x.ndim:
        raise RuleError("one-axis", "x is a scalar")
    a = None if axis is None else norm_axis(axis, x.ndim)
    n = x.size if a is None else x.shape[a]
    if condition.shape[0] > n:
        raise RuleError("condition-within-extent", f"{condition.shape[0]} conditions for {n}")
    at = np.flatnonzero(condition)
    return x.reshape(-1)[at] if a is None else np.take(x, at, axis=a)


@compress.breaks("one-axis")
def _compress_scalar(d: Draw) -> dict:
    """ "Tensor of rank r >= 1"."""
    return {"x": T(()), "condition": T((1,), "bool"), "axis": None}


@compress.draw
def _draw_compress(d: Draw) -> dict:
    shape = d.shape(1)
    axis = d.axis(len(shape)) if d.bool() else None
    if axis is not None and d.version.version == 9:
        axis %= len(shape)  # version 9 does not state negative axes
    n = prod(shape) if axis is None else shape[axis]
    return {"x": T(shape), "condition": T((n if d.bool() else d.int(0, n),), "bool"), "axis": axis}


@semantics(error=exact(), source="ONNX OneHot-9, -11; MIL one_hot iOS15; TFLite ONE_HOT")
def one_hot(
    indices: Numeric[Array, "*e"],
    on: Any[Array, "*u"],
    off: Any[Array, "*v"],
    *,
    depth: Integer,
    axis: Integer = -1,
    negative: Choice[str, "off", "wrap"] = "off",
) -> Array:
    """A new axis of ``depth`` at ``axis``: ``on`` where it equals the index, ``off`` elsewhere and for indices outside.

    on, off: one element each.  negative: an index in [-depth, -1] counts from the end ("wrap", ONNX from 11) or means
    none.  Float indices are truncated.  Raises RuleError "axis-in-range", "depth-not-negative".
    """
    a = norm_axis(axis, indices.ndim + 1)
    if depth < 0:
        raise RuleError("depth-not-negative", f"depth {depth}")
    if not indices.size:  # the classes of no index are not counted one by one
        return np.empty((*indices.shape[:a], depth, *indices.shape[a:]), np.result_type(on))
    i = indices.astype(np.float64).astype(np.int64) if of(indices).kind == "f" else indices.astype(np.int64)
    if negative == "wrap":
        i = np.where(i < 0, i + depth, i)
    hit = np.expand_dims(i, a) == np.arange(depth).reshape([-1 if k == a else 1 for k in range(indices.ndim + 1)])
    if of(indices).kind == "u":
        hit &= np.expand_dims(indices.astype(np.uint64) <= np.uint64(2**62), a)
    return np.where(hit, on.reshape(()), off.reshape(()))


def hot_indices(d: Draw, depth: int, negative: str, kind: str, shape: tuple[int, ...]) -> T:
    """Indices for ``one_hot``: mostly inside, some outside on either side where the type has a sign."""
    if kind == "u" or negative == "none":
        return T(shape, f"ints:0:{depth + 1}")
    return T(shape, f"ints:{-depth - 1}:{depth + 1}")


@one_hot.draw
def _draw_one_hot(d: Draw) -> dict:
    shape = d.shape(0, 4)
    depth = d.int(1, 9)
    negative = fixed(d, "negative", lambda: "off")
    kind = d.dtype("indices").kind
    return {
        "indices": hot_indices(d, depth, negative, kind, shape),
        "on": T(()),
        "off": T(()),
        "axis": fixed(d, "axis", lambda: d.int(-1, len(shape))),
        "depth": depth,
    }


@one_hot.breaks("axis-in-range")
def _one_hot_axis(d: Draw) -> dict:
    v = _draw_one_hot(d)
    return {**v, "axis": len(v["indices"].shape) + d.int(1, 3)}


@semantics(error=exact(), source="ONNX ai.onnx.ml ArrayFeatureExtractor-1")
def array_feature(x: Any[Array, "*d n"], indices: Int[Array, "*e"]) -> Array:
    """Columns of ``x`` (its last axis) picked by ``indices``: [*d, count].  A vector is one row.

    Raises RuleError "rank-1-or-more", "index-in-range"."""
    if not x.ndim:
        raise RuleError("rank-1-or-more", "X has no axis to take from")
    i = resolve(indices.reshape(-1), x.shape[-1], False)
    return np.take(x if x.ndim > 1 else x.reshape(1, -1), i, axis=-1)


@array_feature.draw
def _draw_feature(d: Draw) -> dict:
    """Indices in a row, or of any other shape; now and then none."""
    shape = d.shape(1, 3, lo=1)
    at: tuple[int, ...] = (d.int(1, 5),)
    if d.chance(12):
        at = tuple(d.int(0 if d.empty or d.bool() else 1, 2) for _ in range(d.int(1, 4)))
    return {"x": T(shape), "indices": T(at, index_recipe(shape[-1], False))}
