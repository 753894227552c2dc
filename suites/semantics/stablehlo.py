"""Meanings of the StableHLO operators that TFLite carries.  Source: StableHLO specification, section Ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as Object

import numpy as np

from harness.core.dtypes import BOOL, DType, int_range, of
from harness.core.errors import RuleError
from harness.declare import Any, Choice, Context, Int, Num, Opaque, T, bounded, exact, semantics
from harness.generate.draw import Draw
from harness.tolerance import gamma
from suites.semantics.bounds import above_one, tiny, top, zero_meets_infinity
from suites.semantics.window import FAR

Array = np.ndarray
_TOP = 2**31 - 1


@semantics(error=exact, source="StableHLO and: logical on booleans, bitwise on integers", data=("full", "small"))
def conjunction(x: Any[Array, "*d"], y: Any[Array, "*d"]) -> Any[Array, "*d"]:
    """x & y."""
    return x & y


@semantics(error=exact, source="StableHLO pad: negative low and high crop, interior cells between the elements")
def pad(x: Any[Array, "*d"], value: Any[Array, ""], *, low: Opaque, high: Opaque, interior: Opaque) -> Array:
    """Raises RuleError "one-per-axis", "interior-nonnegative", "extents-fit" (a shape of TFLite is of i32)."""
    if {len(low), len(high), len(interior)} != {x.ndim}:
        raise RuleError("one-per-axis", f"{len(low)} low, {len(high)} high, {len(interior)} interior, rank {x.ndim}")
    if any(i < 0 for i in interior):
        raise RuleError("interior-nonnegative", f"{list(interior)}")
    shape = [max(n - 1, 0) * i + n for n, i in zip(x.shape, interior)]
    extents = [max(0, n + lo + hi) for n, lo, hi in zip(shape, low, high)]
    if max(extents, default=0) > _TOP:
        raise RuleError("extents-fit", f"a result of {extents}")
    wide = np.full(shape, value.reshape(()), x.dtype)
    wide[tuple(slice(None, None, i + 1) for i in interior)] = x
    out = np.full(extents, value.reshape(()), x.dtype)
    src, dst = [], []
    for n, lo, hi in zip(shape, low, high):
        begin, end = max(0, -lo), n - max(0, -hi)
        src.append(slice(begin, max(begin, end)))
        dst.append(slice(max(0, lo), max(0, lo) + max(0, end - begin)))
    out[tuple(dst)] = wide[tuple(src)]
    return out


@pad.draw
def _draw_pad(d: Draw) -> dict[str, Object]:
    if d.chance(24):  # as far as integers reach, beside an axis without elements
        n, before, behind, inside = d.pick(
            (
                (0, _TOP, 0, 0),
                (2, _TOP, -3, 1),
                (2, -2, _TOP, 0),
                (1, -_TOP - 1, _TOP, 0),
                (1, _TOP, -_TOP - 1, 0),
                (1, 0, 0, _TOP),
                (3, 12, 12, 0),
            )
        )
        x = T((n, 2 if n == 3 else 0))
        return {"x": x, "value": T(()), "low": [before, 0], "high": [behind, 0], "interior": [inside, 0]}
    shape = d.shape(0)
    low, high, interior = [], [], []
    for n in shape:
        i = d.pick((0, 0, 1, 2)) if len(shape) < 5 else 0
        full = max(n - 1, 0) * i + n
        lo = d.pick((0, 1, 2, -1 if full > 1 else 0))
        high.append(d.pick((0, 1, 3, -1 if full + lo > 1 else 0)))
        low.append(lo)
        interior.append(i)
    return {"x": T(shape), "value": T(()), "low": low, "high": high, "interior": interior}


@pad.breaks("extents-fit")
def _beyond(d: Draw) -> dict[str, Object]:
    low, high, interior = d.pick(((_TOP, 0, 0), (0, _TOP - 1, 1), (_TOP, _TOP, 0)))
    return {"x": T((2, 0)), "value": T(()), "low": [low, 0], "high": [high, 0], "interior": [interior, 0]}


@pad.breaks("one-per-axis")
def _pad_count(d: Draw) -> dict[str, Object]:
    low = d.pick(([0], [0, 1, 0]))
    return {"x": T((2, 3)), "value": T(()), "low": low, "high": [0, 0], "interior": [0, 0]}


@pad.breaks("interior-nonnegative")
def _pad_inside(d: Draw) -> dict[str, Object]:
    return {"x": T((2, 3)), "value": T(()), "low": [0, 0], "high": [0, 0], "interior": d.pick(([-1, 0], [0, -2]))}


_FOLDS = {
    "add": np.add,
    "mul": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "all": np.logical_and,
    "any": np.logical_or,
}


def windows(
    x: Array,
    start: Array,
    fold: str | Callable[[Array, Array], Array],
    size: Object,
    strides: Object,
    base: Object,
    dilations: Object,
    pads: Object,
) -> Array:
    """reduce_window: x with base dilation and padding holding ``start``, then every window folded from ``start`` on,
    its last axis innermost."""
    f = _FOLDS[fold] if isinstance(fold, str) else fold
    wide = x.astype(np.float64) if of(x).kind == "f" else x.astype(np.int64) if of(x).kind in "iu" else x
    init = wide.dtype.type(start.reshape(()).item())
    shape = [max(n - 1, 0) * (b - 1) + n for n, b in zip(x.shape, base)]
    padded = [max(0, n + lo + hi) for n, (lo, hi) in zip(shape, pads)]
    reach = [(k - 1) * e + 1 for k, e in zip(size, dilations)]
    outs = [max(0, (n - r) // s + 1) if n >= r else 0 for n, r, s in zip(padded, reach, strides)]
    out = np.full(outs, init, wide.dtype)
    if not out.size:
        return out if of(x).kind == "f" else out.astype(x.dtype)
    full = np.full(padded, init, wide.dtype)
    places = [_places(n, b, lo, m) for n, b, (lo, _), m in zip(x.shape, base, pads, padded)]
    full[tuple(to for _, to in places)] = wide[tuple(of_x for of_x, _ in places)]
    with np.errstate(all="ignore"):
        for at in np.ndindex(*size):
            part = full[
                tuple(
                    slice(a * e, a * e + (o - 1) * s + 1 if o else 0, s)
                    for a, e, o, s in zip(at, dilations, outs, strides)
                )
            ]
            out = f(out, part)
    return out if of(x).kind == "f" else out.astype(x.dtype)


def _places(n: int, base: int, low: int, most: int) -> tuple[slice, slice]:
    """Which of ``n`` elements, ``base`` apart behind ``low`` cells, lie in the first ``most`` cells, and in which."""
    first = max(0, -(low // base))
    last = min(n, max(first, (most - 1 - low) // base + 1))
    begin = first * base + low
    return slice(first, last), slice(
        begin, begin + max(0, last - first - 1) * base + 1, base
    ) if last > first else slice(0)


def _fold_bound(ctx: Context) -> Array:
    """gamma(window) times the same fold of |x|, + ulp, + window * tiny * the largest partial product; free where a
    partial sum or product may overflow; exact for minimum and maximum"""
    p, fold = ctx.params, ctx.params["fold"]
    if fold in ("minimum", "maximum"):
        return np.zeros(ctx.wide.shape)
    n = int(np.prod(p["size"])) + 1
    reach = ctx.scale()
    bound = gamma(n, ctx.acc_u) * reach + ctx.ulp
    if fold == "mul":
        x, start = (above_one(ctx.inputs[name]) for name in ("x", "start"))
        reach = windows(x, start, "mul", p["size"], p["strides"], p["base"], p["dilations"], p["pads"])
        bound = bound + n * tiny(ctx) * reach
    return np.where(reach >= top(ctx) * (1 - n * ctx.acc_u), np.inf, bound)


def _product_open(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """StableHLO reduce: the order of the reductions is left to the implementation."""
    x, p = inputs["x"], params
    if p["fold"] != "mul" or of(x).kind != "f":
        return None
    zero = np.zeros((), np.float64)
    return zero_meets_infinity(
        x, lambda a: windows(a, zero, "add", p["size"], p["strides"], p["base"], p["dilations"], p["pads"])
    )


@semantics(
    error=bounded(_fold_bound),
    source="StableHLO reduce_window with one of six bodies; TFLite REDUCE_WINDOW",
    ambiguous=_product_open,
)
def reduce_window(
    x: Any[Array, "*d"],
    start: Any[Array, ""],
    *,
    fold: Choice[str, _FOLDS],
    size: Opaque,
    strides: Opaque,
    base: Opaque,
    dilations: Opaque,
    pads: Opaque,
) -> Array:
    """Every window folded, beginning with ``start``; integers wrap.

    Raises RuleError "one-per-axis" or "window-positive"."""
    each = {"sizes": size, "strides": strides, "base dilations": base, "window dilations": dilations}
    for what, values in each.items():
        if len(values) != x.ndim:
            raise RuleError("one-per-axis", f"{len(values)} {what} for rank {x.ndim}")
        if any(v < 1 for v in values):
            raise RuleError("window-positive", f"expected {what} from 1 on, got {list(values)}")
    if len(pads) != x.ndim:
        raise RuleError("one-per-axis", f"{len(pads)} pads for rank {x.ndim}")
    return windows(x, start, fold, size, strides, base, dilations, pads)


def _far_window(
    d: Draw,
    plain: bool,
    shape: list[int],
    size: list[int],
    strides: list[int],
    base: list[int],
    dilations: list[int],
    pads: list[tuple[int, int]],
) -> None:
    """On one axis a number far beyond it: a stride from the only window, steps between the elements of windows of one
    or of inputs of one, a window that nothing holds, or a border of no element."""
    a, far = d.int(0, len(shape) - 1), d.pick((16, 300, FAR))
    how = d.pick(("stride", "dilation", "size") if plain else ("stride", "dilation", "size", "base", "pads", "crop"))
    if how == "stride":
        strides[a] = far
    elif how == "dilation":
        size[a], dilations[a] = 1, far
    elif how == "size":
        size[a] = far
    elif how == "base":
        shape[a], base[a] = 1, far
    elif how == "pads":  # nothing of as long a one is held where another axis has no element
        pads[a] = d.pick(((300, 0), (0, 300)))
        if far == FAR and len(shape) > 1:
            pads[a], size[a], strides[a] = d.pick(((far, 0), (0, far))), far, far
            b = (a + 1) % len(shape)
            shape[b], pads[b] = 0, (0, 0)
    else:
        pads[a] = (-(2**31), 2**31 - 1)


def _folded(d: Draw, dt: DType, fold: str) -> tuple[T, str]:
    """What a fold begins with, which leaves the others as they are wherever it is taken in again, and the elements.

    A minimum or maximum may begin with any number, a sum or product with none but 0 or 1."""
    start = {"add": 0, "mul": 1, "minimum": 5, "maximum": -5 if dt.kind != "u" else 0, "all": True, "any": False}[fold]
    if dt is BOOL:
        return T((), values=[d.bool()]), "bool"
    some = ("special", "wide", "ties") if dt.kind == "f" else ("special", "full")
    if fold in ("minimum", "maximum"):
        lo = 0 if dt.kind == "f" else int_range(dt)[0]
        ends = (float("-inf"), float("inf"), -0.0) if dt.kind == "f" else (lo, max(lo, -1))
        first = T((), d.pick(some)) if d.bool() else T((), values=[d.pick((start, *ends))])
        return first, d.pick(("small", *some))
    recipe = {"mul": "ints:-2:2" if dt.kind != "u" else "ints:0:2"}.get(fold, "small")
    return T((), values=[start]), d.pick(some) if d.chance(6) else recipe


def draw_windows(d: Draw, plain: bool) -> dict[str, Object]:
    """A window per axis; plain: no base dilation and no padding."""
    dt = d.dtype("x")
    fold = d.pick(("all", "any") if dt is BOOL else ("add", "mul", "minimum", "maximum"))
    shape: list[int] = []
    size: list[int] = []
    strides: list[int] = []
    base: list[int] = []
    dilations: list[int] = []
    pads: list[tuple[int, int]] = []
    rank = d.int(d.min_rank, d.max_rank) if d.chance(6) else d.int(1, 3)
    long = d.int(0, rank - 1) if rank and d.chance(16) else None
    for a in range(rank):
        most = 3 if rank < 4 else 1
        k, e, b = d.int(1, min(most + 1, 3)), d.pick((1, 1, 2)), 1 if plain else d.pick((1, 1, 2))
        lo, hi = (0, 0) if plain else (d.pick((0, 0, 1, 2, -1)), d.pick((0, 0, 1, -1)))
        lo, hi = (lo, hi) if rank < 4 else (max(0, lo), 0)
        reach = (k - 1) * e + 1
        n = max(0 if d.empty else 1, reach - lo - hi) + d.int(0, most)
        shape.append(d.pick((17, 130, 300, 2051)) if a == long else n)
        for v, to in ((k, size), (d.pick((1, 1, 2, 3)), strides), (b, base), (e, dilations)):
            to.append(v)
        pads.append((lo, hi))
    if rank and d.chance(12):
        _far_window(d, plain, shape, size, strides, base, dilations, pads)
    if rank and d.empty and d.bool():
        shape[d.int(0, rank - 1)] = 0
    start, recipe = _folded(d, dt, fold)
    return {
        "x": T(shape, recipe),
        "start": start,
        "fold": fold,
        "size": size,
        "strides": strides,
        "base": base,
        "dilations": dilations,
        "pads": pads,
    }


# -- gather and scatter


def _distinct(rule: str, axes: Object, rank: int) -> list[int]:
    """Axes as they are; raises RuleError(rule) unless they are distinct and in [0, rank)."""
    axes = [int(a) for a in axes]
    if len(set(axes)) != len(axes) or any(not 0 <= a < rank for a in axes):
        raise RuleError(rule, f"expected distinct axes in [0, {rank}), got {axes}")
    return axes


def index_tuples(indices: Array, index_dim: int, mapped: Object) -> Array:
    """``indices`` with the components of every index tuple last; index_dim = rank: tuples of one component each.

    Raises RuleError "index-vector-dim-in-range" or "index-tuples-fit" (one component per mapped axis)."""
    if not 0 <= index_dim <= indices.ndim:
        raise RuleError("index-vector-dim-in-range", f"expected at most the rank {indices.ndim}, got {index_dim}")
    whole = indices.reshape(*indices.shape, 1) if index_dim == indices.ndim else indices
    if whole.shape[index_dim] != len(mapped):
        raise RuleError("index-tuples-fit", f"{whole.shape[index_dim]} components for {len(mapped)} axes")
    return np.moveaxis(whole, index_dim, -1)


@semantics(error=exact, source="StableHLO gather: start indices clamped so that the slice lies inside")
def gather(
    x: Any[Array, "*d"],
    indices: Int[Array, "*e"],
    *,
    offset_dims: Opaque,
    collapsed: Opaque,
    start_map: Opaque,
    index_dim: Opaque,
    sizes: Opaque,
) -> Array:
    """Slices of ``sizes`` at the index tuples along ``index_dim``; ``collapsed`` axes of the slice are dropped, the
    others stand at ``offset_dims`` of the result.

    Raises RuleError "collapsed-axes-exist", "mapped-axes-exist", "offset-axes-exist", "slices-fit" and those of
    ``index_tuples``."""
    collapsed, start_map = (
        _distinct(f"{what}-axes-exist", axes, x.ndim)
        for what, axes in (("collapsed", collapsed), ("mapped", start_map))
    )
    idx = index_tuples(indices, index_dim, start_map)
    batch = idx.shape[:-1]
    fits = len(sizes) == x.ndim and all(0 <= k <= n for k, n in zip(sizes, x.shape))
    if not fits or any(sizes[a] > 1 for a in collapsed) or len(offset_dims) != x.ndim - len(collapsed):
        want = f"sizes within {list(x.shape)}, at most 1 on dropped axes, a place for every axis that stays"
        raise RuleError("slices-fit", f"expected {want}, got {list(sizes)}, {collapsed}, {list(offset_dims)}")
    offset_dims = _distinct("offset-axes-exist", offset_dims, len(batch) + len(offset_dims))
    kept = [n for a, n in enumerate(sizes) if a not in collapsed]
    out = np.empty((*batch, *kept), x.dtype)
    for at in np.ndindex(*batch):
        start = [0] * x.ndim
        for k, a in enumerate(start_map):
            of_idx: tuple[Object, ...] = (*at, k)
            start[a] = min(max(int(idx[of_idx]), 0), x.shape[a] - sizes[a])
        part = x[tuple(slice(b, b + n) for b, n in zip(start, sizes))]
        out[at] = part.reshape(kept)
    rank = len(batch) + len(kept)
    rest = [a for a in range(rank) if a not in offset_dims]
    order = [0] * rank
    for i, a in enumerate(rest):
        order[a] = i
    for i, a in enumerate(offset_dims):
        order[a] = len(batch) + i
    return out.transpose(order)


_MOST_AXES = 8
_FAR = (2**31 - 1, -(2**31), 2**25)  # beyond each extent


def _axes_of(d: Draw, most: int) -> tuple[int, ...]:
    """A shape of any rank up to ``most``; now and then with an axis without elements, or of very many."""
    shape = list(d.part(1, 3, 1) if not d.chance(4) else d.part(0, most, 0))
    if len(shape) > 3:
        shape = [min(n, 3) for n in shape]
    if shape and d.chance(16):
        shape[d.int(0, len(shape) - 1)] = 0
    return tuple(shape)


def _start(d: Draw, room: int) -> int:
    """Where a slice begins: within its room, or far from it."""
    return d.int(0, room) if room >= 0 and d.int(0, 5) else d.pick((-2, room + 2, *_FAR))


@gather.draw
def _draw_gather(d: Draw) -> dict[str, Object]:
    shape = (0, 2**31 - 1) if d.chance(64) else _axes_of(d, _MOST_AXES)
    r = len(shape)
    mapped = d.subset(range(r), 0 if d.chance(8) else min(r, 1))
    sizes = [
        n if n > _MOST_AXES**4 else d.pick((min(n, 1), n, d.int(0 if d.chance(8) else min(n, 1), n))) for n in shape
    ]
    collapsed = [a for a in range(r) if sizes[a] == 1 and d.bool()]
    kept = r - len(collapsed)
    most = _MOST_AXES - kept
    batch = d.part(0 if d.chance(4) else min(most, 1), most if d.chance(4) else min(most, 2), 0)
    if len(batch) > 3:
        batch = tuple(min(n, 2) for n in batch)
    rank = len(batch) + kept
    offsets = sorted(d.shuffle(range(rank))[:kept])
    values = []
    for _ in range(int(np.prod(batch))):
        values += [_start(d, shape[a] - sizes[a]) for a in mapped]
    tuples, at = np.array(values, np.int64).reshape(*batch, len(mapped)), d.int(0, len(batch))
    rows = tuples.reshape(-1, len(mapped)).tolist() if mapped else []
    tuples = np.moveaxis(tuples, -1, at)
    if len(mapped) == 1 and (len(batch) == _MOST_AXES or d.chance(24)):  # elements are index tuples of one component
        tuples, at = tuples.reshape(batch), len(batch)
    elif len(batch) == _MOST_AXES:
        return _draw_gather(d)
    return {
        "x": T(shape),
        "indices": T(tuples.shape, values=tuples.ravel().tolist()),
        "sorted": rows == sorted(rows),
        "offset_dims": offsets,
        "collapsed": collapsed,
        "start_map": mapped,
        "index_dim": at,
        "sizes": sizes,
    }


def _scatter_bound(ctx: Context) -> Array:
    """updates of one element may be added in any order: gamma(updates, u) * S + ulp"""
    return gamma(max(1, np.size(ctx.inputs["updates"])), ctx.acc_u) * ctx.scale() + ctx.ulp


@semantics(
    error=bounded(_scatter_bound),
    source="StableHLO scatter: updates outside are ignored; body add, mul, min, max or the update itself",
)
def scatter(
    x: Num[Array, "*d"],
    indices: Int[Array, "*e"],
    updates: Num[Array, "*u"],
    *,
    window_dims: Opaque,
    inserted: Opaque,
    to_operand: Opaque,
    index_dim: Opaque,
    body: Choice[str, "add", "mul", "minimum", "maximum", "update"],
) -> Array:
    """x with every element of ``updates`` folded in at its place.

    Raises RuleError "inserted-axes-exist", "mapped-axes-exist", "window-axes-exist", "updates-fit" and those of
    ``index_tuples``."""
    inserted, to_operand = (
        _distinct(f"{what}-axes-exist", axes, x.ndim) for what, axes in (("inserted", inserted), ("mapped", to_operand))
    )
    window_dims = _distinct("window-axes-exist", window_dims, updates.ndim)
    idx = index_tuples(indices, index_dim, to_operand)
    scatter_dims = [a for a in range(updates.ndim) if a not in window_dims]
    axes = [a for a in range(x.ndim) if a not in inserted]
    if (
        [updates.shape[a] for a in scatter_dims] != list(idx.shape[:-1])
        or len(window_dims) != len(axes)
        or any(updates.shape[w] > x.shape[a] for w, a in zip(window_dims, axes))
    ):
        raise RuleError(
            "updates-fit",
            f"updates {list(updates.shape)} with windows along {window_dims} for "
            f"{list(idx.shape[:-1])} index tuples and {list(x.shape)} without axes {inserted}",
        )
    wide = x.astype(np.float64 if of(x).kind == "f" else np.uint64 if of(x).kind == "u" else np.int64)
    out, f = np.array(wide), (lambda old, new: new) if body == "update" else _FOLDS[body]
    up = updates.astype(wide.dtype)
    with np.errstate(all="ignore"):
        for at in np.ndindex(*updates.shape):
            where = [0] * x.ndim
            tuple_ = idx[tuple(at[a] for a in scatter_dims)]
            for k, a in enumerate(to_operand):
                where[a] += int(tuple_[k])
            for k, a in enumerate(axes):
                where[a] += at[window_dims[k]]
            if all(0 <= w < n for w, n in zip(where, x.shape)):
                out[tuple(where)] = f(out[tuple(where)], up[at])
    return out if of(x).kind == "f" else out.astype(x.dtype)


@scatter.draw
def _draw_scatter(d: Draw) -> dict[str, Object]:
    shape = _axes_of(d, _MOST_AXES)
    r = len(shape)
    mapped = d.subset(range(r), 0 if d.chance(8) else min(r, 1))
    inserted = sorted(a for a in (range(r) if d.chance(4) else mapped) if d.bool() and shape[a])
    window = [n if a not in mapped else d.int(0 if d.chance(16) else min(n, 1), n) for a, n in enumerate(shape)]
    kept = [window[a] for a in range(r) if a not in inserted]
    most = _MOST_AXES - len(kept)
    batch = (d.int(1, 4),) if most and d.int(0, 2) else d.part(0, most, 0)
    if len(batch) > 2:
        batch = tuple(min(n, 2) for n in batch)
    count = int(np.prod(batch))
    values = []
    for _ in range(count):
        room = [shape[a] - (1 if a in inserted else window[a]) for a in mapped]
        values.append([d.int(0, n) if n >= 0 and d.int(0, 7) else d.pick((-1, n + 1, *_FAR)) for n in room])
    unique = len({tuple(v) for v in values}) == count
    apart = unique and all(a in inserted or window[a] == 1 for a in mapped)  # no element is written twice
    tuples: Array = np.array(values, np.int64).reshape(*batch, len(mapped))
    at = d.int(0, len(batch))
    tuples = np.moveaxis(tuples, -1, at)
    if len(mapped) == 1 and (len(batch) == _MOST_AXES or d.chance(3)):  # elements are index tuples of one component
        tuples, at = tuples.reshape(batch), len(batch)
    elif len(batch) == _MOST_AXES:
        return _draw_scatter(d)
    places = sorted(d.shuffle(range(len(batch) + len(kept)))[: len(kept)])
    outer, inner = iter(batch), iter(kept)
    regime = d.pick(("small", "small", "full" if d.types["T"].kind in "iu" else "wide", "special"))
    return {
        "x": T(shape, regime),
        "indices": T(tuples.shape, values=tuples.ravel().tolist()),
        "sorted": values == sorted(values),
        "unique": unique,
        "updates": T([next(inner if a in places else outer) for a in range(len(batch) + len(kept))], regime),
        "window_dims": places,
        "inserted": inserted,
        "to_operand": mapped,
        "index_dim": at,
        "body": d.pick(("add", "mul", "minimum", "maximum", *(["update"] * 2 if apart else ()))),
    }
