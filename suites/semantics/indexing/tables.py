"""Tables: embedding rows, segments, buckets, sparse values, updates at a computed place."""

from __future__ import annotations

import numpy as np

import native_ref as native
from harness.core.dtypes import float_max, int_range, of
from harness.core.errors import RuleError
from harness.declare import (
    Any,
    Array,
    Choice,
    Int,
    Integer,
    Ints,
    Num,
    Real,
    Reals,
    T,
    accepted,
    bounded,
    exact,
    semantics,
)
from harness.generate.draw import Draw
from harness.tolerance import Context, gamma
from suites.semantics.indexing.common import resolve
from suites.semantics.movement.common import INT32_MAX, INT32_MIN


@semantics(error=exact(), source="TFLite EMBEDDING_LOOKUP")
def embedding_lookup(table: Any[Array, "r *d"], indices: Int[Array, "n"]) -> Any[Array, "n *d"]:
    """Rows of ``table``.  Raises RuleError "index-in-range"."""
    return table[resolve(indices, table.shape[0], False)]


@embedding_lookup.draw
def _draw_embedding(d: Draw) -> dict:
    if d.chance(24):  # rows as many as any, without elements
        return {"table": T((INT32_MAX, 0)), "indices": T((d.int(1, 4),), f"index:{INT32_MAX}")}
    rows = d.dim(0)
    shape = (rows, *d.part(1, 3))
    count = 0 if not rows else d.pick((257, 300)) if d.chance(32) else d.dim(0)
    return {"table": T(shape), "indices": T((count,), f"index:{rows}" if count else "small")}


@semantics(error=exact(), source="TFLite DYNAMIC_UPDATE_SLICE; XLA DynamicUpdateSlice")
def dynamic_update_slice(x: Any[Array, "*d"], update: Any[Array, "*e"], *, start: Ints) -> Any[Array, "*d"]:
    """``x`` with ``update`` written at ``start``; each start is clamped so that the update lies inside.

    Raises RuleError "update-fits", "start-per-axis".
    """
    if len(start) != x.ndim:
        raise RuleError("start-per-axis", f"{len(start)} starts for rank {x.ndim}")
    if update.ndim != x.ndim or any(u > n for u, n in zip(update.shape, x.shape)):
        raise RuleError("update-fits", f"update {list(update.shape)} in {list(x.shape)}")
    at = [min(max(int(s), 0), n - u) for s, n, u in zip(start, x.shape, update.shape)]
    out = np.array(x)
    out[tuple(slice(a, a + u) for a, u in zip(at, update.shape))] = update
    return out


@dynamic_update_slice.draw
def _draw_update(d: Draw) -> dict:
    shape = d.shape(0)
    update = tuple(d.int(min(1, n), n) for n in shape)
    start = tuple(d.pick((d.int(0, n - u), 0, n - u, -2, n + 1)) for n, u in zip(shape, update))
    if start and d.chance(12):
        i = d.int(0, len(start) - 1)
        start = (*start[:i], d.pick((INT32_MAX, INT32_MIN)), *start[i + 1 :])
    return {"x": T(shape), "update": T(update), "start": start}


@dynamic_update_slice.breaks("start-per-axis")
def _update_starts(d: Draw) -> dict:
    shape = d.shape(1, 4, lo=1)
    return {"x": T(shape), "update": T(shape), "start": (0,) * (len(shape) + d.pick((-1, 1)))}


@dynamic_update_slice.breaks("update-fits")
def _update_too_large(d: Draw) -> dict:
    shape = d.shape(1, 4, lo=1)
    return {"x": T(shape), "update": T((shape[0] + 1, *shape[1:])), "start": (0,) * len(shape)}


def _sums(ctx: Context) -> np.ndarray:
    """gamma(rows, u) times the same segments of |x|, + ulp"""
    return gamma(max(1, ctx.inputs["x"].shape[0]), ctx.acc_u) * ctx.scale() + ctx.ulp


_START = {"sum": 0, "prod": 1}


@semantics(error=bounded(_sums), source="TFLite UNSORTED_SEGMENT_SUM, _PROD, _MAX, _MIN; tf.math.unsorted_segment_sum")
def unsorted_segment(
    x: Num[Array, "n *d"], ids: Int[Array, "n"], *, count: Integer, mode: Choice[str, "sum", "prod", "max", "min"]
) -> Array:
    """Slices of ``x`` with the same id folded together; ``count`` segments.

    An empty segment holds 0, 1, the lowest or the highest value of the type.  A negative id drops its slice.
    Raises RuleError "id-in-range".
    """
    if (ids >= count).any():
        raise RuleError("id-in-range", f"ids {ids.tolist()} for {count} segments")
    d = of(x)
    wide = x.astype(np.float64) if d.kind == "f" else x.astype(np.int64)
    if mode in _START:
        start: float = _START[mode]
    else:
        lo, hi = int_range(d) if d.kind in "iu" else (-float_max(d), float_max(d))
        start = lo if mode == "max" else hi
    out = np.full((count, *x.shape[1:]), start, wide.dtype)
    fold = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[mode]
    with np.errstate(all="ignore"):
        for i, k in enumerate(ids.tolist()):
            if k >= 0:
                out[k] = fold(out[k], wide[i])
    return out if d.kind == "f" else out.astype(x.dtype)


@unsorted_segment.draw
def _draw_unsorted(d: Draw) -> dict:
    shape = d.shape(1, lo=1)
    count = d.int(1, 6)
    x = T(shape, d.pick(("small", "unit", "small")))
    if d.chance(8):  # some are dropped, and of no segment all are
        count = d.int(0, 2)
        ids = [d.pick((-1, INT32_MIN, d.int(-1, count - 1))) for _ in range(shape[0])]
        return {"x": x, "ids": T(shape[:1], values=ids), "count": count}
    if d.chance(24):  # segments as many as any, without elements
        return {"x": T((1, 0)), "ids": T((1,), values=[d.pick((0, 2**25))]), "count": INT32_MAX}
    if d.chance(24):  # nothing is folded
        return {"x": T((0, *shape[1:])), "ids": T((0,)), "count": count}
    return {"x": x, "ids": T(shape[:1], f"ints:0:{count - 1}"), "count": count}


@unsorted_segment.breaks("id-in-range")
def _unsorted_outside(d: Draw) -> dict:
    shape = d.shape(1, 3, lo=1)
    return {"x": T(shape), "ids": T(shape[:1], values=[3] * shape[0]), "count": 3}


@semantics(error=bounded(_sums), source="TFLite SEGMENT_SUM; tf.math.segment_sum")
def segment_sum(x: Num[Array, "n *d"], ids: Int[Array, "n"]) -> Array:
    """Sums of the slices with the same id; ids do not fall, the last one tells the segment count, gaps hold 0.

    Raises RuleError "ids-sorted".
    """
    if (np.diff(ids) < 0).any() or (ids < 0).any():
        raise RuleError("ids-sorted", f"ids {ids.tolist()}")
    empty = np.zeros((int(ids[-1]) + 1 if ids.size else 0, *x.shape[1:]), x.dtype)
    return native.scatter(empty, ids, x, 0, "add", signed=False)


@segment_sum.draw
def _draw_segments(d: Draw) -> dict:
    if d.chance(24):  # segments as many as any, without elements
        return {"x": T((1, 0)), "ids": T((1,), values=[d.pick((2**25, INT32_MAX - 1))])}
    shape = d.shape(1, 4, lo=1)
    ids: list[int] = []
    at = 0
    for _ in range(shape[0]):
        at += d.pick((0, 0, 1, 1, 2)) if ids else d.pick((0, 0, 1))
        ids.append(at)
    return {"x": T(shape, d.pick(("small", "unit"))), "ids": T(shape[:1], values=ids)}


@segment_sum.breaks("ids-sorted")
def _segments_falling(d: Draw) -> dict:
    shape = (d.int(2, 5), *d.shape(0, 2, lo=1))
    return {"x": T(shape), "ids": T(shape[:1], values=list(range(shape[0]))[::-1])}


@semantics(error=exact(), source="TFLite BUCKETIZE; tf.raw_ops.Bucketize")
def bucketize(x: Num[Array, "*d"], *, boundaries: Reals) -> Num[Array, "*d"]:
    """For each element the number of boundaries that are not above it, int32; boundaries rise.

    Raises RuleError "boundaries-rise"."""
    b = np.asarray(boundaries, np.float32).astype(np.float64)
    if (np.diff(b) < 0).any():
        raise RuleError("boundaries-rise", f"{boundaries}")
    return np.searchsorted(b, x.astype(np.float64), side="right").astype(np.int32)


@bucketize.draw
def _draw_buckets(d: Draw) -> dict:
    at, out = d.int(-8, 0) * 1.0, []
    for _ in range(d.int(1, 6)):
        out.append(at)
        at += d.pick((0.5, 1.0, 2.0, 3.0))
    return {
        "x": T(d.shape(), d.pick(("small", "ties", "uniform:-10:10") if d.dtype("x").kind == "f" else ("small",))),
        "boundaries": out,
    }


@bucketize.breaks("boundaries-rise")
def _buckets_falling(d: Draw) -> dict:
    return {"x": T(d.shape(1), "small"), "boundaries": [2.0, 1.0]}


@semantics(error=exact(), source="TFLite BROADCAST_ARGS")
def broadcast_args(x: Int[Array, "m"], y: Int[Array, "n"]) -> Array:
    """The shape that tensors of shapes ``x`` and ``y`` broadcast to.  Raises RuleError "shapes-broadcast"."""
    n = max(len(x), len(y))  # any number of axes
    a, b = ([1] * (n - len(s)) + s.tolist() for s in (x, y))
    if any(1 not in (p, q) and p != q for p, q in zip(a, b)):
        raise RuleError("shapes-broadcast", f"{a} and {b}")
    return np.array([q if p == 1 else p for p, q in zip(a, b)], x.dtype)


@broadcast_args.draw
def _draw_args(d: Draw) -> dict:
    full: tuple[int, ...] = d.shape(1, 5)
    if d.chance(16):  # no tensor has so many axes: shapes are vectors all the same
        full = tuple(d.pick((1, 2, 3)) for _ in range(d.pick((17, 130, 260))))
    elif d.chance(16):
        full = tuple(d.pick((1, 2**25, INT32_MAX)) for _ in full)
    a, b = d.broadcast_from(full), full
    if d.bool():
        a, b = b, a
    return {"x": T((len(a),), values=list(a)), "y": T((len(b),), values=list(b))}


@broadcast_args.breaks("shapes-broadcast")
def _args_clash(d: Draw) -> dict:
    return {"x": T((2,), values=[2, 3]), "y": T((2,), values=[2, 4])}


@semantics(error=exact(), source="TFLite SPARSE_TO_DENSE")
def sparse_to_dense(
    indices: Int[Array, "*i"], values: Any[Array, "*v"], default: Any[Array, ""], *, shape: Ints
) -> Array:
    """``default`` everywhere but at the index tuples, which hold ``values`` (one for all, if it is a scalar).

    indices: a scalar, a vector, or one tuple a row; they rise and do not repeat.
    """
    out = np.full(tuple(shape), default.reshape(()), values.dtype)
    if indices.ndim and not len(indices):
        return out
    at = indices.reshape(1, 1) if indices.ndim == 0 else indices.reshape(-1, 1) if indices.ndim == 1 else indices
    out[tuple(np.asarray(v) for v in at.astype(np.int64).T)] = values if values.ndim == 0 else values.reshape(-1)
    return out


def _rare_sparse(d: Draw) -> dict:
    """Nothing is set, or many elements; of a scalar, of a result as long as any."""
    n, scalar = 0, d.bool()
    how = d.int(0, 3)
    shape: tuple[int, ...]
    at: tuple[int, ...]
    values: list[int]
    if how == 0:
        n = d.int(0, 1)
        shape, at, values = (), (n, 0), []
    elif how == 1:
        shape = d.pick(((INT32_MAX, 0), (0, INT32_MAX)))
        at, values = (0, 2), []
    elif how == 2:
        n = d.pick((16, 130, 260, 2100))
        shape, at, values = (3000,), (n,) if d.bool() else (n, 1), [k + k // 3 for k in range(n)]
    else:
        shape = d.part(1, 3, 1)
        at, values = (0,) if len(shape) == 1 and d.bool() else (0, len(shape)), []
    given = () if scalar else (n,)
    return {"indices": T(at, values=values), "values": T(given), "default": T(()), "shape": shape}


@sparse_to_dense.draw
def _draw_sparse(d: Draw) -> dict:
    if d.chance(16):
        return _rare_sparse(d)
    form = d.int(0, 2)
    shape = d.part(1, 4, 1) if form == 2 else (d.dim(1),)
    total = int(np.prod(shape))
    flat = (
        sorted(d.shuffle(range(total))[: 1 if form == 0 else d.int(1, min(total, 6))])
        if total <= 64
        else [0, total - 1]
    )
    if form == 0:
        flat = flat[:1]
    tuples = np.stack(np.unravel_index(flat, shape), -1)
    at = {0: (), 1: (len(flat),), 2: tuples.shape}[form]
    scalar = form == 0 or d.chance(3)
    return {
        "indices": T(at, values=tuples.ravel().tolist()),
        "values": T(() if scalar else (len(flat),)),
        "default": T(()),
        "shape": shape,
    }


@semantics(error=exact(), source="TFLite HASHTABLE_LOOKUP (schema: outputs the rows and which keys were found)")
def hashtable_lookup(table: Any[Array, "r *d"], keys: Int[Array, "r"], queries: Int[Array, "n"]) -> tuple[Array, Array]:
    """Row of ``table`` whose key equals each query, zeros where there is none; and a uint8 that tells whether it was
    found.

    keys rise."""
    at = np.searchsorted(keys, queries)
    hit = (at < keys.size) & (keys[np.minimum(at, keys.size - 1)] == queries) if keys.size else np.zeros(at.shape, bool)
    out = np.zeros((queries.size, *table.shape[1:]), table.dtype)
    if table.dtype.kind == "O":
        out.fill(b"")
    out[hit] = table[at[hit]]
    return out, hit.astype(np.uint8)


@hashtable_lookup.draw
def _draw_lookup(d: Draw) -> dict:
    shape = d.shape(1, 3, lo=1) if not d.chance(8) else d.shape(1, None, lo=0)
    if d.chance(24):
        shape = (0, *shape[1:])
    keys, at = [], d.int(-5, 5)
    for _ in range(shape[0]):
        keys.append(at)
        at += d.int(1, 3)
    if keys and d.chance(8):
        keys[0], keys[-1] = d.pick((INT32_MIN, -(2**25), keys[0])), d.pick((INT32_MAX, 2**25, keys[-1]))
        keys.sort()
    first, last = (max(keys[0] - 1, INT32_MIN), min(keys[-1] + 1, INT32_MAX)) if keys else (0, 1)
    queries = [d.pick((d.pick(keys or [0]), d.int(first, last))) for _ in range(d.dim(1, 6))]
    return {"table": T(shape), "keys": T((len(keys),), values=keys), "queries": T((len(queries),), values=queries)}


def _combined(ctx: Context) -> np.ndarray:
    """gamma(2 k + 6) * sum |w x| / |divisor| * (sum |w| / |sum w| for MEAN) + ulp, over the k rows of a place: one
    rounding for each product, k - 1 for their sum, as many for the divisor, and its root, reciprocal and product"""
    x, w = np.abs(ctx.inputs["table"]), ctx.inputs["weights"].astype(np.float64)
    at = ctx.inputs["at"]
    lead = ctx.wide.shape[: at.shape[1] - 1]
    size, rows, signed, plain, squares = np.zeros(ctx.wide.shape), *(np.zeros(lead) for _ in range(4))
    for i, place, f in zip(ctx.inputs["ids"].tolist(), at.tolist(), w.tolist()):
        p = tuple(place[:-1])
        size[p] += x[i] * abs(f)
        rows[p] += 1
        signed[p] += f
        plain[p] += abs(f)
        squares[p] += f * f
    combiner = ctx.params["combiner"]
    by = np.ones(lead) if combiner == "SUM" else np.abs(signed) if combiner == "MEAN" else np.sqrt(squares)
    by = np.where(rows == 0, 1.0, by)
    worse = np.maximum(1.0, plain / by) if combiner == "MEAN" else 1.0
    steps = 2 * rows + 6
    factor = steps * ctx.acc_u / (1 - steps * ctx.acc_u) * worse / by
    return factor.reshape(*lead, *(1,) * (size.ndim - len(lead))) * size + ctx.ulp


@semantics(error=bounded(_combined), source="TFLite EMBEDDING_LOOKUP_SPARSE; TF embedding_lookup_sparse")
def embedding_lookup_sparse(
    table: Any[Array, "r *d"],
    ids: Int[Array, "n"],
    at: Int[Array, "n k"],
    shape: Int[Array, "k"],
    weights: Num[Array, "n"],
    *,
    combiner: Choice[str, "SUM", "MEAN", "SQRTN"],
) -> Array:
    """Weighted rows of ``table`` gathered where ``at`` says (its last index counts the rows of one place): their sum,
    over the sum of weights (MEAN), or over the root of the sum of squared weights (SQRTN), also where that is 0; 0
    where nothing is gathered."""
    lead = tuple(int(n) for n in shape[:-1])
    out = np.zeros((*lead, *table.shape[1:]))
    rows, total, squares = np.zeros(lead), np.zeros(lead), np.zeros(lead)
    each: list[float] = weights.astype(np.float64).ravel().tolist()
    for i, place, w in zip(ids.tolist(), at.tolist(), each):
        p = tuple(place[:-1])
        out[p] += table[i].astype(np.float64) * w
        rows[p] += 1
        total[p] += w
        squares[p] += w * w
    if combiner != "SUM":
        by = total if combiner == "MEAN" else np.sqrt(squares)
        by = np.where(rows == 0, 1.0, by).reshape(*lead, *(1,) * (table.ndim - 1))
        out = out / by
    return out


@embedding_lookup_sparse.draw
def _draw_sparse_rows(d: Draw) -> dict:
    if d.chance(24):  # rows as many as any, without elements, or one tensor for two operands
        return _sparse_rows_far(d)
    below = d.part(1, 2, 1) if not d.chance(4) else d.part(1, 7, 0)
    table = (0 if d.chance(16) else d.pick((17, 300)) if d.chance(32) else d.int(1, 6), *below[: 7 if below else 1])
    count = d.pick((129, 260, 1030)) if d.chance(24) else None
    lead, most = d.int(1, 4), d.int(1, 3)
    at = (
        [(g, k) for g in range(lead) for k in range(d.int(0, most))]
        if count is None
        else [(0, k) for k in range(count)]
    )
    most = max(most, count or 0)
    places, shape = [list(p) for p in at], [lead, most]
    how = d.int(0, 15)
    if how == 0 and len(below) < 7:  # places of three axes
        places, shape = [[p[0], 0, p[1]] for p in at], [lead, 1 + d.int(0, 1), most]
    elif how == 1:  # all rows in one place
        places, shape = [[k] for k in range(len(at))], [max(1, len(at))]
    elif how == 2:  # room for more rows than there are
        places, shape = [[p[0], p[1] + 2**25] for p in at], [lead, 2**31 - 1]
    if not table[0]:
        places = []
    n, axes = len(places), len(shape)
    return {
        "table": T(table, "small"),
        "ids": T((n,), f"index:{table[0]}" if n else "small"),
        "at": T((n, axes), values=[v for p in places for v in p]),
        "shape": T((axes,), values=shape),
        "weights": T((n,), "ints:1:4"),
        "combiner": d.pick(("SUM", "MEAN", "SQRTN")),
    }


def _sparse_rows_far(d: Draw) -> dict:
    n = d.int(1, 4)
    return {
        "table": T((INT32_MAX, 0)),
        "ids": T((n,), values=[d.int(0, INT32_MAX - 1) for _ in range(n)]),
        "at": T((n, 2), values=[v for k in range(n) for v in (0, k)]),
        "shape": T((2,), values=[1, n]),
        "weights": T((n,), "ints:1:4"),
        "combiner": d.pick(("SUM", "MEAN", "SQRTN")),
    }


def _boxes_overlap(a: np.ndarray, b: np.ndarray) -> float:
    (y1, x1), (y2, x2) = np.minimum(a[:2], a[2:]), np.maximum(a[:2], a[2:])
    (v1, u1), (v2, u2) = np.minimum(b[:2], b[2:]), np.maximum(b[:2], b[2:])
    area, other = (y2 - y1) * (x2 - x1), (v2 - v1) * (u2 - u1)
    if area <= 0 or other <= 0:
        return 0.0
    both = max(0.0, min(y2, v2) - max(y1, v1)) * max(0.0, min(x2, u2) - max(x1, u1))
    return float(both / (area + other - both))


def _filled(ctx: Context, actual: np.ndarray) -> np.ndarray:
    """the selected boxes; what follows them is padding of which nothing is said"""
    return (
        (ctx.wide == -1)
        | (actual == ctx.wide)
        | (np.abs(actual.astype(np.float64) - ctx.wide) <= 2.0**-16 * np.maximum(1.0, np.abs(ctx.wide)))
    )


_NEAR = 2.0**-20  # two overlaps that f32 cannot tell apart


def _undecided_boxes(inputs: dict[str, object], params: dict[str, object]) -> str | None:
    """What no document says: where NaN and equal scores stand, what a box overlaps that is not finite or whose area
    leaves the range of f32, and on which side of the threshold rounding puts an overlap."""
    b, s = np.asarray(inputs["boxes"], np.float64), np.asarray(inputs["scores"], np.float64)
    if np.isnan(s).any():
        return "scores that are NaN: no document says where they stand in the order"
    live = np.flatnonzero(s > float(np.asarray(params["score_threshold"])))
    if len(np.unique(s[live])) < len(live):
        return "equal scores: no document says which box comes first"
    b = b[live]
    if not np.isfinite(b).all():
        return "boxes that are not finite: no document says what they overlap"
    low, high = np.minimum(b[:, :2], b[:, 2:]), np.maximum(b[:, :2], b[:, 2:])
    sides = np.maximum(np.minimum(high[:, None], high) - np.maximum(low[:, None], low), 0.0)
    if ((sides > 2.0**60) | ((sides > 0) & (sides < 2.0**-60))).any():
        return "areas beyond the range of f32: no document says in which type they are taken"
    both, area = sides.prod(-1), (high - low).prod(-1)
    union = area[:, None] + area - both
    overlap = both / np.where(union > 0, union, 1.0)
    near = np.abs(overlap - float(np.asarray(params["iou_threshold"]))) <= _NEAR
    np.fill_diagonal(near, False)
    return "an overlap that rounding may put on either side of the threshold" if near.any() else None


@semantics(
    error=(accepted(_filled), accepted(_filled), exact()),
    ambiguous=_undecided_boxes,
    source="TFLite NON_MAX_SUPPRESSION_V4, _V5; Bodla et al. (soft-NMS)",
)
def soft_nms(
    boxes: Any[Array, "n 4"],
    scores: Any[Array, "n"],
    *,
    limit: Integer,
    iou_threshold: Real,
    score_threshold: Real,
    sigma: Real = 0.0,
) -> tuple[Array, Array, Array]:
    """(indices, scores, count) of the boxes kept by falling score, -1 beyond the count.

    A box at or below ``score_threshold`` goes; one that overlaps a kept box by the threshold or more goes; with sigma >
    0 a score is first multiplied by exp(-iou**2 / (2 sigma)) for every kept box, and the box waits for its turn
    again."""
    b, s = boxes.astype(np.float64), scores.astype(np.float64)
    queue = [(float(v), i, 0) for i, v in enumerate(s) if v > score_threshold]
    kept: list[int] = []
    values: list[float] = []
    while queue and len(kept) < limit:
        queue.sort(key=lambda q: (-q[0], q[1]))
        score, i, begin = queue.pop(0)
        before, hard = score, False
        for j in kept[begin:][::-1]:
            overlap = _boxes_overlap(b[i], b[j])
            if overlap >= iou_threshold:
                hard = True
                break
            if sigma > 0:
                score *= float(np.exp(-(overlap**2) / (2 * sigma)))
            if score <= score_threshold:
                break
        if hard:
            continue
        if score == before:
            kept.append(i)
            values.append(score)
        elif score > score_threshold:
            queue.append((score, i, len(kept)))
    pad = limit - len(kept)
    return (np.array(kept + [-1] * pad, np.int32), np.array(values + [-1.0] * pad), np.array(len(kept), np.int32))


@soft_nms.draw
def _draw_soft(d: Draw) -> dict:
    """Whole corners, half of the boxes over an earlier one, distinct scores in any order, thresholds that no overlap of
    whole boxes meets.  Now and then no box, very many, or corners in another unit."""
    n = 0 if d.chance(16) else d.pick((17, 129, 257, 513)) if d.chance(32) else d.int(1, 8)
    places = max(97, n + 1 | 1)
    step = d.pick((1, 30, 47, 61, 85)) if n < 97 else 1
    scores = [((k * step) % places + 1) / 128 for k in range(n)]
    if d.chance(8):  # none and negative ones among them
        scores = [v - 4 / 128 for v in scores]
    flat = d.chance(8)  # boxes without area
    corners: list[float] = []
    boxes: list[tuple[int, int, int, int]] = []
    unit, begin = d.pick((1.0, 1.0, 1.0, 0.5, 2.0**25)), d.pick((0, 0, -4))
    for _ in range(n):
        y, x = d.int(0, 7), d.int(0, 7)
        v, u = y + d.int(0 if flat else 1, 4), x + d.int(0 if flat else 1, 4)
        if boxes and d.bool():
            y, x, v, u = d.pick(boxes)
            v, u = v + d.int(0, 1), u + d.int(0, 1)
        boxes.append((y, x, v, u))
        corners += [(c + begin) * unit for c in ((y, x, v, u) if d.int(0, 3) else (v, u, y, x))]
    if n and d.chance(24):
        given = d.pick((corners, scores))
        given[d.pick((0, len(given) - 1))] = d.pick((float("nan"), float("inf"), -float("inf")))
    out = {
        "boxes": T((n, 4), values=corners),
        "scores": T((n,), values=scores),
        "limit": d.pick((0, 1, 2, n, n + 2)),
        "iou_threshold": (d.int(4, 60) + 0.37) / 64,
        "score_threshold": d.pick((0.0, 0.2539, 0.5039, -1.01)),
        "sigma": 0.0 if n > 8 else d.pick((0.0, 0.5, 1.0)),
    }
    if d.chance(16):
        out["sigma"] = d.pick((-0.0, float("inf"), 3.4028234663852886e38, 2.0**25, 1e-40))
    return out
