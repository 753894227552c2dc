"""Several tensors into one, one into several, and copies along axes."""

from __future__ import annotations

import itertools

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Any, Array, Axis, Integer, Ints, T, Variadic, copied, semantics
from harness.generate.draw import Draw
from suites.semantics.movement.common import INT32_MAX, beyond, fixed, norm_axis, tagged


@semantics(
    error=copied(),
    source="ONNX Concat-1, -4, -11, -13; MIL concat iOS15; TFLite CONCATENATION; NN concatND, sequenceConcat",
)
def concat(xs: Variadic[Any[Array, "*_d"]], *, axis: Integer) -> Array:
    """The parts one after another along ``axis``; a part may have extent 0 there.

    Raises RuleError "axis-in-range", "same-rank", "same-other-extents".
    """
    a = norm_axis(axis, xs[0].ndim)
    for x in xs[1:]:
        if x.ndim != xs[0].ndim:
            raise RuleError("same-rank", f"ranks {[x.ndim for x in xs]}")
        if x.shape[:a] != xs[0].shape[:a] or x.shape[a + 1 :] != xs[0].shape[a + 1 :]:
            raise RuleError("same-other-extents", f"{[list(x.shape) for x in xs]} along {a}")
    return np.concatenate(xs, a)


def _parts(d: Draw) -> tuple[list[tuple[int, ...]], int]:
    shape = d.shape(1)
    if "axis" in d.fixed:
        axis = d.fixed["axis"]
        shape = d.shape(max(1, axis + 1 if axis >= 0 else -axis))
    else:
        axis = d.axis(len(shape))
    a = axis % len(shape)
    return [shape, *((*shape[:a], d.dim(), *shape[a + 1 :]) for _ in range(d.int(0, 3)))], axis


@concat.draw
def _draw_concat(d: Draw) -> dict:
    shapes, axis = _parts(d)
    return {"xs": [T(s) for s in shapes], "axis": axis}


@concat.breaks("same-other-extents")
def _concat_extents(d: Draw) -> dict:
    shape = d.shape(max(2, _reach(d)), lo=1)
    axis = fixed(d, "axis", lambda: d.axis(len(shape)))
    other = d.pick([i for i in range(len(shape)) if i != axis % len(shape)])
    return {"xs": [T(shape), T((*shape[:other], shape[other] + 1, *shape[other + 1 :]))], "axis": axis}


def _reach(d: Draw) -> int:
    """Rank that a pinned axis needs."""
    axis = d.fixed.get("axis", 0)
    return axis + 1 if axis >= 0 else -axis


@concat.breaks("same-rank")
def _concat_ranks(d: Draw) -> dict:
    shape = d.shape(max(1, _reach(d)), max(1, d.max_rank - 1), lo=1)
    return {"xs": [T(shape), T((*shape, 1))], "axis": fixed(d, "axis", lambda: d.int(0, len(shape) - 1))}


@concat.breaks("axis-in-range")
def _concat_axis(d: Draw) -> dict:
    shape = d.shape(1)
    return {"xs": [T(shape), T(shape)], "axis": beyond(d, len(shape))}


def _same_shape(xs: list[np.ndarray]) -> None:
    if any(x.shape != xs[0].shape for x in xs):
        raise RuleError("same-shape", f"{[list(x.shape) for x in xs]}")


@semantics(error=copied(), source="MIL concat iOS15, interleave=True")
def concat_interleaved(xs: Variadic[Any[Array, "*_d"]], *, axis: Integer) -> Array:
    """Slices of equally shaped parts in turn: index i of part k lands at i * len(xs) + k.  Raises RuleError
    "same-shape"."""
    a = norm_axis(axis, xs[0].ndim)
    _same_shape(xs)
    shape = list(xs[0].shape)
    shape[a] *= len(xs)
    return np.stack(xs, a + 1).reshape(shape)


@concat_interleaved.draw
def _draw_interleaved(d: Draw) -> dict:
    shape = d.shape(1)
    return {"xs": [T(shape) for _ in range(d.int(1, 4))], "axis": d.axis(len(shape))}


@semantics(error=copied(), source="ONNX ConcatFromSequence-11 new_axis=1; MIL stack iOS15; TFLite PACK; NN stack")
def stack(xs: Variadic[Any[Array, "*d"]], *, axis: Integer) -> Array:
    """Equally shaped parts along a new axis, which stands at ``axis`` of the result.

    Raises RuleError "axis-in-range", "same-shape".
    """
    a = norm_axis(axis, xs[0].ndim + 1)
    _same_shape(xs)
    return np.stack(xs, a)


@stack.draw
def _draw_stack(d: Draw) -> dict:
    shape = d.shape(0, d.max_rank - 1)
    count = d.int(9, 20) if tagged(d, "many", 24) else d.int(1, 4)
    return {"xs": [T(shape) for _ in range(count)], "axis": d.axis(len(shape) + 1)}


@stack.breaks("same-shape")
def _stack_shapes(d: Draw) -> dict:
    shape = d.shape(1, d.max_rank - 1)
    return {"xs": [T(shape), T((shape[0] + 1, *shape[1:]))], "axis": d.axis(len(shape) + 1)}


@stack.breaks("axis-in-range")
def _stack_axis(d: Draw) -> dict:
    shape = d.shape(0, d.max_rank - 1)
    return {"xs": [T(shape), T(shape)], "axis": beyond(d, len(shape) + 1)}


@semantics(error=copied(), source="ONNX Split-1, -2, -11, -13, -18; MIL split iOS15; TFLite SPLIT_V; NN splitND")
def split(x: Any[Array, "*d"], *, axis: Integer, sizes: Ints) -> list[Array]:
    """Consecutive parts of the given extents along ``axis``, which sum to it; 0 is allowed.  Returns a list.

    Raises RuleError "axis-in-range", "sizes-sum", "sizes-nonnegative".
    """
    a = norm_axis(axis, x.ndim)
    if any(s < 0 for s in sizes):
        raise RuleError("sizes-nonnegative", f"sizes {list(sizes)}")
    if sum(sizes) != x.shape[a]:
        raise RuleError("sizes-sum", f"sizes {list(sizes)} for extent {x.shape[a]}")
    cuts = np.cumsum([0, *sizes]).tolist()
    return [x[(slice(None),) * a + (slice(lo, hi),)] for lo, hi in itertools.pairwise(cuts)]


def _with_extent(d: Draw, extent: int) -> tuple[tuple[int, ...], int]:
    """A shape that has ``extent`` along the axis returned with it."""
    shape = d.shape(max(1, _reach(d)))
    axis = fixed(d, "axis", lambda: d.axis(len(shape)))
    a = axis % len(shape)
    return (*shape[:a], extent, *shape[a + 1 :]), axis


@split.draw
def _draw_split(d: Draw) -> dict:
    if tagged(d, "far", 32):  # an axis as long as any, without elements
        first = d.pick((0, INT32_MAX, d.int(0, INT32_MAX)))
        return {"x": T((0, INT32_MAX)), "axis": d.pick((1, -1)), "sizes": (first, INT32_MAX - first)}
    sizes = tuple(d.dim(hi=5) for _ in range(d.int(1, 4)))
    if tagged(d, "far", 32):  # many more parts than elements
        sizes = tuple(d.shuffle((*sizes, *(0,) * (8 + sum(sizes)))))
    shape, axis = _with_extent(d, sum(sizes))
    return {"x": T(shape), "axis": axis, "sizes": sizes}


@split.breaks("sizes-nonnegative")
def _split_negative(d: Draw) -> dict:
    shape, axis = _with_extent(d, d.int(1, 4))
    return {"x": T(shape), "axis": axis, "sizes": (shape[axis] + 2, -2)}


@split.breaks("sizes-sum")
def _split_sum(d: Draw) -> dict:
    sizes = tuple(d.dim(1, hi=5) for _ in range(d.int(2, 4)))
    shape, axis = _with_extent(d, sum(sizes) + 1)
    return {"x": T(shape), "axis": axis, "sizes": sizes}


@split.breaks("axis-in-range")
def _split_axis(d: Draw) -> dict:
    shape = d.shape(1, lo=1)
    return {"x": T(shape), "axis": beyond(d, len(shape)), "sizes": (1, shape[0])}


@semantics(error=copied(), source="MIL split num_splits iOS15; TFLite SPLIT; NN split; ONNX Split-2 without sizes")
def split_even(x: Any[Array, "*d"], *, axis: Integer, count: Integer) -> list[Array]:
    """``count`` equal consecutive parts along ``axis``, as a list.  Raises RuleError "axis-in-range",
    "count-divides"."""
    a = norm_axis(axis, x.ndim)
    if count < 1 or x.shape[a] % count:
        raise RuleError("count-divides", f"{count} parts of extent {x.shape[a]}")
    return list(np.split(x, count, a))


@split_even.draw
def _draw_split_even(d: Draw) -> dict:
    count = d.int(9, 20) if tagged(d, "many", 24) else d.int(1, 4)
    shape, axis = _with_extent(d, count * d.dim(hi=4))
    return {"x": T(shape), "axis": axis, "count": count}


@split_even.breaks("axis-in-range")
def _split_even_axis(d: Draw) -> dict:
    shape = d.shape(1, lo=1)
    return {"x": T(shape), "axis": beyond(d, len(shape)), "count": 1}


@split_even.breaks("count-divides")
def _split_uneven(d: Draw) -> dict:
    count = d.int(2, 4)
    shape, axis = _with_extent(d, count * d.dim(hi=4) + 1)
    return {"x": T(shape), "axis": axis, "count": count}


def chunk_sizes(extent: int, count: int) -> list[int]:
    """ONNX Split-18 ``num_outputs``: chunks of ceil(extent / count), the last one smaller.

    Raises RuleError "chunks-fit" where nothing, or less, were left for the last.
    """
    chunk = -(-extent // count)
    last = extent - chunk * (count - 1)
    if last < 0:
        raise RuleError("chunks-fit", f"{count} chunks of {chunk} from {extent}")
    return [chunk] * (count - 1) + [last]


@semantics(error=copied(), source="TFLite UNPACK; MIL split with num_splits and squeeze")
def unstack(x: Any[Array, "*d"], *, axis: Axis[int, "d"]) -> list[Array]:
    """The slices along ``axis``, each without it, as a list of shape[axis] tensors.  Raises RuleError
    "axis-in-range"."""
    a = norm_axis(axis, x.ndim)
    return [x[((slice(None),) * a) + (i, ...)] for i in range(x.shape[a])]  # the ellipsis keeps rank 0 an array


@unstack.draw
def _draw_unstack(d: Draw) -> dict:
    shape, axis = _with_extent(d, d.int(9, 20) if tagged(d, "many", 24) else d.int(1, 4))
    return {"x": T(shape), "axis": axis}


@semantics(error=copied(), source="ONNX Tile-6, -13; MIL tile iOS15; TFLite TILE; NN tile")
def tile(x: Any[Array, "*d"], *, repeats: Ints) -> Array:
    """``x`` repeated repeats[i] times along axis i; 0 repeats give extent 0.

    Raises RuleError "repeats-per-axis", "repeats-nonnegative".
    """
    if len(repeats) != x.ndim:
        raise RuleError("repeats-per-axis", f"{len(repeats)} repeats for rank {x.ndim}")
    if any(r < 0 for r in repeats):
        raise RuleError("repeats-nonnegative", f"repeats {list(repeats)}")
    return np.tile(x, tuple(int(r) for r in repeats)) if x.ndim else x


@tile.draw
def _draw_tile(d: Draw) -> dict:
    if tagged(d, "far", 32):  # a result as long as any, without elements
        return {"x": T((1, 0)), "repeats": (INT32_MAX, d.int(0, 2))}
    shape, room, repeats = d.shape(0), 4096, []
    for n in shape:
        r = min(d.pick((1, 2, 1, 3, d.dim(hi=5))), max(1, room // max(n, 1)))
        repeats.append(r)
        room //= max(1, n * r)
    return {"x": T(shape), "repeats": tuple(repeats)}


@tile.breaks("repeats-per-axis")
def _tile_count(d: Draw) -> dict:
    shape = d.shape(1)
    return {"x": T(shape), "repeats": (1,) * (len(shape) + 1)}


def _together(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise RuleError("shapes-broadcast", f"{list(a)} with {list(b)}") from None


@semantics(error=copied(), source="ONNX Expand-8, -13")
def expand(x: Any[Array, "*d"], *, shape: Ints) -> Array:
    """``x`` broadcast *together with* ``shape``: either may hold the 1s, or the smaller rank.

    Raises RuleError "shapes-broadcast".
    """
    return np.broadcast_to(x, _together(x.shape, tuple(int(s) for s in shape)))


@expand.draw
def _draw_expand(d: Draw) -> dict:
    full = d.shape(0)
    x, shape = (full, d.broadcast_from(full)) if d.chance(3) else (d.broadcast_from(full), full)
    return {"x": T(x), "shape": tuple(shape)}


@semantics(error=copied(), source="TFLite BROADCAST_TO; NN broadcastToStatic")
def broadcast_to(x: Any[Array, "*d"], *, shape: Ints) -> Array:
    """``x`` stretched to exactly ``shape``; only ``x`` may hold the 1s or the smaller rank.

    Raises RuleError "shapes-broadcast".
    """
    target = tuple(int(s) for s in shape)
    if _together(x.shape, target) != target:
        raise RuleError("shapes-broadcast", f"{list(x.shape)} to {list(target)}")
    return np.broadcast_to(x, target)


@broadcast_to.draw
def _draw_broadcast_to(d: Draw) -> dict:
    if tagged(d, "far", 32):  # not of (INT32_MAX, 1), which has elements
        return {"x": T(d.pick(((INT32_MAX, 0), (1, 0), (0,), (1, 1), (1,), ()))), "shape": (INT32_MAX, 0)}
    full = d.shape(0)
    return {"x": T(d.broadcast_from(full)), "shape": full}


def _clash(d: Draw) -> dict:
    full = d.shape(1, lo=1)
    i = d.int(0, len(full) - 1)
    return {
        "x": T((*full[:i], full[i] + 2, *full[i + 1 :])),
        "shape": (*full[:i], full[i] + 1, *full[i + 1 :]),
    }


expand.breaks("shapes-broadcast")(_clash)
broadcast_to.breaks("shapes-broadcast")(_clash)
