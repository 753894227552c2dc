"""Writing by index.  Without a reduction the order of writes is open, so indices are drawn distinct, unless the later
one of two updates of one place is said to stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any as Any_

import numpy as np

import native_ref as native
from harness.core.dtypes import DType, float_max, int_range, of, smallest_normal
from harness.core.errors import RuleError, Unsupported
from harness.declare import (
    Any,
    Array,
    Choice,
    Context,
    Flag,
    Int,
    Integer,
    Ints,
    T,
    bounded,
    copied,
    gathered,
    semantics,
    underspecified,
)
from harness.generate.draw import Draw
from harness.tolerance import gamma
from suites.semantics.indexing.common import distinct, fixed, in_extent, index_recipe, prod, spoiled, within_data
from suites.semantics.indexing.gather import _tuples, more_rows
from suites.semantics.movement.common import INT32_MAX, norm_axis, options

MODES = native.COMBINE


@contextmanager
def _rules() -> Iterator[None]:
    """What a kernel finds wrong with the places, as the rule broken: "index-in-range", "indices-distinct"."""
    try:
        with in_extent():
            yield
    except KeyError:
        raise RuleError("indices-distinct", "two updates of one place, and no order is stated") from None


def write(
    kernel: Callable[..., np.ndarray],
    x: np.ndarray,
    index: np.ndarray,
    updates: np.ndarray,
    mode: str,
    signed: bool,
    *axis: int,
    later: bool = False,
) -> np.ndarray:
    """A copy of ``x`` with ``updates`` combined by one of native_ref's scatter kernels.

    Floats are combined in f64 (one rounding later), integers in their own type with wrap-around.  later: of updates of
    one place, where nothing combines them, the last one in row-major order stays.  Raises RuleError "index-in-range",
    "indices-distinct" where order would decide, "integer-division"; Unsupported of a reduction that the type lacks."""
    d = of(x)
    if (d.kind == "s" and mode != "none") or (d.kind == "c" and mode in ("max", "min")):
        raise Unsupported(f"{mode} of {d}")
    if later and mode == "none":
        number = np.arange(1, updates.size + 1).reshape(updates.shape)
        with _rules():
            last = kernel(np.zeros(x.shape, np.int64), index, number, *axis, "max", signed)
        if not updates.size:
            return x.copy()
        return np.where(last > 0, updates.reshape(-1)[np.maximum(last, 1) - 1], x)
    if mode == "div" and d.kind in "iu":
        raise RuleError("integer-division", "not defined for scatter")
    with _rules():
        if d.kind != "s":
            return kernel(x, index, updates, *axis, mode, signed)
        # strings move as their positions
        both = np.concatenate([x.reshape(-1), updates.reshape(-1)])
        there = np.arange(x.size, both.size).reshape(updates.shape)
        return both[kernel(np.arange(x.size).reshape(x.shape), index, there, *axis, mode, signed)]


def _rounded(n: int, ctx: Context) -> np.ndarray:
    """gamma(n, u) * S; nothing where S is 0, also for so many updates that gamma is infinite."""
    scale = np.asarray(ctx.scale())
    with np.errstate(invalid="ignore"):
        return np.where(scale == 0, 0.0, gamma(n, ctx.u) * scale)


def _bound(ctx: Context) -> np.ndarray | float:
    """combining n updates in any order: gamma(n, u) * S, for complex numbers gamma(3n, u) * S; for products besides
    n steps of underflow, grown by the other factors; exact where nothing is added or multiplied"""
    mode = ctx.params.get("reduction", ctx.params.get("mode", "none"))
    if mode in ("none", "max", "min"):
        return 0.0
    n = max(np.size(ctx.inputs["updates"]), 1)
    if ctx.out.kind == "c":
        n *= 3  # a complex product is off by up to sqrt(5) u of its modulus (Brent, Percival, Zimmermann 2007)
    bound = _rounded(n, ctx) + ctx.ulp
    return bound + n * _underflow(ctx, mode) if mode in ("mul", "div") and n > 1 else bound


def _underflow(ctx: Context, mode: str) -> np.ndarray:
    """What one product in the output type loses among the subnormals, times all factors above 1 that may follow."""
    step = smallest_normal(ctx.out) * 2.0**-ctx.out.frac
    data = {k: np.asarray(v) for k, v in ctx.inputs.items() if np.asarray(v).dtype.kind in "fc"}
    grown = {k: np.maximum(np.abs(v), 1.0) for k, v in data.items()}
    if mode == "div":
        grown["updates"] = np.minimum(np.abs(data["updates"]), 1.0)
    with np.errstate(all="ignore"):
        return step * np.abs(ctx.reevaluate(**grown))


SUMMED = bounded(_bound)


def _overflows_on_the_way(inputs: dict[str, Any_], params: dict[str, Any_], meaning: Callable[..., Any_]) -> str | None:
    """Partial sums or products that leave the type in some order, none of which is stated: the same writes on absolute
    values (factors of at least 1) say so.  So do those of factors of at most 1 where a product that vanishes may meet
    an infinity.  meaning: of these inputs and parameters."""
    mode, x, updates = params.get("reduction", params.get("mode", "none")), inputs["x"], inputs["updates"]
    if of(x).kind not in "fc" or mode in ("none", "max", "min"):
        return None
    with np.errstate(all="ignore"):
        old, new = (np.abs(v.astype(np.complex128 if of(v).kind == "c" else np.float64)) for v in (x, updates))
        factors = mode in ("mul", "div")
        new = 1.0 / new if mode == "div" else new
        given = {k: v for k, v in inputs.items() if k not in ("x", "updates")}
        named = {k: ("mul" if factors else "add") if k in ("reduction", "mode") else v for k, v in params.items()}

        def written(part: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
            return np.asarray(meaning(part(old), updates=part(new), **given, **named))

        # what is infinite stays so in any order, but for complex factors: their infinities have parts that may cancel
        endless = np.inf if factors and of(x).kind == "c" else 0.0
        top = written(lambda v: np.maximum(np.where(np.isfinite(v), v, endless), 1.0 if factors else 0.0))
        grown = underspecified(
            "partial results that overflow: an infinity or NaN, by an order that is not stated", top > _largest(of(x))
        )
        if not factors or (np.isfinite(old).all() and np.isfinite(new).all()):
            return grown
        low = written(lambda v: np.where(v > 0, np.fmin(v, 1.0), 1.0))
        gone = underspecified(
            "a partial product that may vanish beside an infinity, by an order that is not stated",
            low < _smallest(of(x)),
        )
    return gathered(grown, gone)


def _largest(d: DType) -> float:
    return float(np.finfo(d.np).max) if d.kind == "c" else float_max(d)


def _smallest(d: DType) -> float:
    return float(np.finfo(d.np).smallest_normal) if d.kind == "c" else smallest_normal(d)


def _elements_overflow(inputs: dict[str, Any_], params: dict[str, Any_]) -> str | None:
    return _overflows_on_the_way(inputs, params, scatter_elements)


def _nd_overflow(inputs: dict[str, Any_], params: dict[str, Any_]) -> str | None:
    return _overflows_on_the_way(inputs, params, scatter_nd)


def _slices_overflow(inputs: dict[str, Any_], params: dict[str, Any_]) -> str | None:
    return _overflows_on_the_way(inputs, params, scatter)


def _modes(d: Draw, name: str = "reduction") -> tuple[str, ...]:
    if name in d.version.param_codecs or name in d.fixed:
        if d.dtype("x").kind == "s":
            return ("none",)
        unordered = ("max", "min") if d.dtype("x").kind == "c" else ()  # complex numbers have no order
        return tuple(m for m in options(d, name) if m != "div" and m not in unordered)
    return ("none",)


@semantics(
    error=SUMMED,
    source="ONNX ScatterElements-11, -16, -18; Scatter-9; MIL scatter_along_axis iOS15",
    ambiguous=_elements_overflow,
)
def scatter_elements(
    x: Any[Array, "*d"],
    indices: Int[Array, "*e"],
    updates: Any[Array, "*e"],
    *,
    axis: Integer = 0,
    reduction: Choice[str, MODES] = "none",
    signed: Flag = True,
    later: Flag = False,
) -> Any[Array, "*d"]:
    """out[indices[i, j, k], j, k] = combine(out[...], updates[i, j, k]) for axis 0, and so on, over a copy of ``x``.

    later: of two updates of one place the later one stays, with reduction none.  Raises RuleError "axis-in-range",
    "indices-within-data", "index-in-range", "indices-distinct" (reduction none, not later).
    """
    a = norm_axis(axis, x.ndim)
    within_data(indices, x, a)
    return write(native.scatter_elements, x, indices, updates, reduction, signed, a, later=later)


@scatter_elements.draw
def _draw_scatter_elements(d: Draw) -> dict:
    shape = d.shape(1)
    axis = fixed(d, "axis", lambda: d.axis(len(shape)))
    a = axis % len(shape)
    signed = fixed(d, "signed", lambda: True)
    mode = d.pick(_modes(d))
    keep = d.int(0, 2)
    e = [n if keep and k != a else d.int(min(1, n), n) for k, n in enumerate(shape)]
    if mode != "none" and shape[a]:
        e[a] = d.dim(1)  # duplicates, and more updates than places
    if mode == "none" and prod(e):
        n = shape[a]
        line = distinct(d, n, e[a], signed)
        grid = np.array(line).reshape([-1 if k == a else 1 for k in range(len(e))])
        shift = sum(
            (np.arange(m).reshape([-1 if j == k else 1 for j in range(len(e))]) for k, m in enumerate(e) if k != a),
            np.zeros([1] * len(e), np.int64),
        )
        whole = np.broadcast_to((grid % n + shift) % n - np.where(grid < 0, n, 0), e)
        t = T(e, values=whole.ravel().tolist())
    else:
        t = T(e, index_recipe(shape[a], signed) if prod(e) else "small")
    special = "special" if d.dtype("x").kind == "f" and d.chance(4) else None
    out = {"x": T(shape, special), "indices": t, "updates": T(e), "axis": axis, "signed": signed}
    if "reduction" in d.version.param_codecs:
        out["reduction"] = mode
    return out


@scatter_elements.breaks("index-in-range")
def _elements_outside(d: Draw) -> dict:
    v = _draw_scatter_elements(d)
    v["updates"] = T(tuple(max(1, n) for n in v["updates"].shape))
    return spoiled(d, v, "indices", v["x"].shape[v["axis"]], v["signed"])


def _nd(
    x: np.ndarray, indices: np.ndarray, updates: np.ndarray, mode: str, signed: bool, later: bool = False
) -> np.ndarray:
    k = indices.shape[-1]
    if k > x.ndim:
        raise RuleError("tuple-within-rank", f"tuples of {k} into rank {x.ndim}")
    if updates.shape != (*indices.shape[:-1], *x.shape[k:]):
        raise RuleError("updates-fit", f"updates {list(updates.shape)} for {list(indices.shape)} into {list(x.shape)}")
    return write(native.scatter_nd, x, indices, updates, mode, signed, later=later)


@semantics(
    error=SUMMED,
    source="ONNX ScatterND-11, -16, -18; MIL scatter_nd iOS15; TFLite TENSOR_SCATTER",
    ambiguous=_nd_overflow,
)
def scatter_nd(
    x: Any[Array, "*d"],
    indices: Int[Array, "*e"],
    updates: Any[Array, "*u"],
    *,
    reduction: Choice[str, MODES] = "none",
    signed: Flag = True,
    later: Flag = False,
) -> Any[Array, "*d"]:
    """out[indices[i]] = combine(out[indices[i]], updates[i]) for every index tuple, over a copy of ``x``.

    later: as of ``scatter_elements``.  Raises RuleError "tuple-within-rank", "updates-fit", "index-in-range",
    "indices-distinct" (reduction none, not later).
    """
    return _nd(x, indices, updates, reduction, signed, later)


@scatter_nd.draw
def _draw_scatter_nd(d: Draw) -> dict:
    shape = d.shape(1, lo=1)
    if d.max_rank >= 8 and d.chance(64) and not d.breaking:  # many places
        n = d.int(2050, 2100)
        return {"x": T((n,)), **_nd_updates(d, (n,), (n,))}
    return {"x": T(shape), **_nd_updates(d, shape)}


def _nd_updates(d: Draw, shape: tuple[int, ...], all_rows: tuple[int, ...] | None = None) -> dict:
    signed = fixed(d, "signed", lambda: True)
    mode = d.pick(_modes(d))
    k = d.int(1, len(shape))
    rows: tuple[int, ...] = all_rows or more_rows(d, d.shape(0, 2), len(shape) - k)
    if mode == "none":
        while prod(rows) > prod(shape[:k]):
            rows = rows[1:] if len(rows) > 1 else (prod(shape[:k]),)
        values: list[int] = []
        flip = d.int(2, 5)
        for r, spot in enumerate(distinct(d, prod(shape[:k]), prod(rows), False)):
            one = np.unravel_index(spot, shape[:k])
            values += [
                int(i) - n if signed and (r + j) % flip == 1 else int(i) for j, (i, n) in enumerate(zip(one, shape))
            ]
    else:
        values = _tuples(d, prod(rows), shape[:k], signed)
    out = {"indices": T((*rows, k), values=values), "updates": T((*rows, *shape[k:])), "signed": signed}
    if "reduction" in d.version.param_codecs:
        out["reduction"] = mode
    return out


@scatter_nd.breaks("index-in-range")
def _nd_outside(d: Draw) -> dict:
    v = _draw_scatter_nd(d)
    k = v["indices"].shape[-1]
    v["indices"] = T((1, k), values=[d.pick((max(v["x"].shape), max(v["x"].shape) + 3))] * k)
    v["updates"] = T((1, *v["x"].shape[k:]))
    return v


@scatter_nd.breaks("updates-fit")
def _nd_misfit(d: Draw) -> dict:
    v = _draw_scatter_nd(d)
    v["updates"] = T((v["indices"].shape[0] + 1, *v["updates"].shape[1:], 2))
    return v


@semantics(
    error=bounded(
        lambda ctx: _rounded(max(np.size(ctx.inputs["updates"]), 1), ctx) + ctx.ulp,
        "summing n duplicate updates in any order: gamma(n, u) * S",
    ),
    source="TFLite SCATTER_ND: indices, updates, shape; duplicates are summed",
)
def scatter_nd_new(indices: Int[Array, "*e"], updates: Any[Array, "*u"], *, shape: Ints) -> Array:
    """Zeros of ``shape`` with ``updates`` added at the index tuples; indices are not negative.

    Raises RuleError "tuple-within-rank", "updates-fit", "index-in-range".
    """
    return _nd(np.zeros([int(n) for n in shape], updates.dtype), indices, updates, "add", False)


@scatter_nd_new.draw
def _draw_new(d: Draw) -> dict:
    if d.chance(24):  # rows as many as any, without elements
        n, k = d.int(1, 3), d.int(0, 1)
        far = (INT32_MAX, 0) if not k else (0, INT32_MAX)
        at = [d.pick((2**25, INT32_MAX - 1, 0)) for _ in range(n)] if not k else []
        return {"indices": T((len(at), 1), values=at), "updates": T((len(at), far[1])), "shape": far}
    shape = d.shape(1, lo=1) if not d.chance(8) else d.shape(0, lo=0)
    k = d.int(0 if d.chance(12) or not shape else 1, len(shape))
    most = 7 - (len(shape) - k)
    rows: tuple[int, ...] = d.shape(1, 2) if not d.chance(4) else d.part(int(k == len(shape)), min(most, 7), 0)
    if len(rows) > 2:
        rows = tuple(min(n, 2) for n in rows)
    if 0 in shape[:k]:
        rows = (0, *rows[1:])
    values = _tuples(d, prod(rows), shape[:k], False)
    return {"indices": T((*rows, k), values=values), "updates": T((*rows, *shape[k:])), "shape": shape}


def _new_of(rule: str, indices: tuple[int, ...], values: list[int], updates: tuple[int, ...]) -> None:
    """Writing into two rows of three, but for what breaks a rule."""
    scatter_nd_new.breaks(rule)(
        lambda d: {"indices": T(indices, values=values), "updates": T(updates), "shape": (2, 3)}
    )


_new_of("tuple-within-rank", (1, 3), [0, 0, 0], (1,))
_new_of("updates-fit", (2, 1), [0, 1], (2, 4))


@scatter_nd_new.breaks("index-in-range")
def _new_outside(d: Draw) -> dict:
    values = [0, d.pick((2, 9, -1))]
    return {"indices": T((2, 1), values=values), "updates": T((2, 3)), "shape": (2, 3)}


@semantics(error=SUMMED, source="MIL scatter iOS15, iOS17; NN scatter", ambiguous=_slices_overflow)
def scatter(
    x: Any[Array, "*d"],
    indices: Int[Array, "*e"],
    updates: Any[Array, "*u"],
    *,
    axis: Integer = 0,
    mode: Choice[str, MODES] = "add",
    signed: Flag = True,
    later: Flag = False,
) -> Any[Array, "*d"]:
    """Slices ``updates`` combined into the slices of ``x`` along ``axis`` that ``indices`` names.

    updates: x.shape[:axis] + indices.shape + x.shape[axis+1:].  later: as of ``scatter_elements``.  Raises RuleError
    "axis-in-range", "updates-fit", "index-in-range", "indices-distinct" (mode none, not later).
    """
    a = norm_axis(axis, x.ndim)
    if updates.shape != (*x.shape[:a], *indices.shape, *x.shape[a + 1 :]):
        raise RuleError("updates-fit", f"updates {list(updates.shape)} for {list(indices.shape)} into {list(x.shape)}")
    return write(native.scatter, x, indices, updates, mode, signed, a, later=later)


@scatter.draw
def _draw_scatter(d: Draw) -> dict:
    shape = d.shape(1, 4, lo=1)
    axis = fixed(d, "axis", lambda: d.axis(len(shape)))
    a = axis % len(shape)
    signed = fixed(d, "signed", lambda: True)
    mode = d.pick(_modes(d, "mode"))
    if mode == "none":
        count = d.int(1, shape[a])
        t = T((count,), values=distinct(d, shape[a], count, signed))
    else:
        t = T(d.shape(1, 2, lo=1), index_recipe(shape[a], signed))
    out = {
        "x": T(shape),
        "indices": t,
        "updates": T((*shape[:a], *t.shape, *shape[a + 1 :])),
        "axis": axis,
        "signed": signed,
    }
    if "mode" in d.version.param_codecs:
        out["mode"] = mode
    return out


@semantics(error=copied(), source="ONNX TensorScatter-24")
def cache_write(
    x: Any[Array, "b *d"],
    update: Any[Array, "b *u"],
    starts: Int[Array, "b"] | None = None,
    *,
    axis: Integer = -2,
    mode: Choice[str, "linear", "circular"] = "linear",
) -> Any[Array, "b *d"]:
    """A copy of ``x`` with each sample's ``update`` written along ``axis`` from its own start on, "circular": around
    the end.

    Raises RuleError "axis-in-range", "batch-axis", "update-shape", "update-fits", "write-in-range"."""
    a = norm_axis(axis, x.ndim)
    if a == 0:
        raise RuleError("batch-axis", "the first axis holds the samples")
    if any(m != n for k, (m, n) in enumerate(zip(update.shape, x.shape)) if k != a) or update.ndim != x.ndim:
        raise RuleError("update-shape", f"update {list(update.shape)} of {list(x.shape)} along {a}")
    out, n, m = x.copy(), x.shape[a], update.shape[a]
    if m > n:
        raise RuleError("update-fits", f"{m} places to write in a cache of {n}")
    for b in range(x.shape[0]):
        first = int(starts[b]) if starts is not None else 0
        at = (first % n if mode == "circular" and n else first) + np.arange(m)
        if mode == "circular":
            at %= n
        elif not 0 <= first <= n - m:
            raise RuleError("write-in-range", f"{m} places from {first} on of {n}")
        np.moveaxis(out[b], a - 1, 0)[at] = np.moveaxis(update[b], a - 1, 0)
    return out


@cache_write.draw
def _draw_cache(d: Draw) -> dict:
    shape = [max(1, n) for n in d.shape(2, 4)]
    if d.max_rank >= 8 and d.chance(16):
        shape += [1] * d.int(1, 8 - len(shape))
    a = d.int(1, len(shape) - 1)
    n = shape[a]
    m = d.int(1, n)
    mode = d.pick(("linear", "circular"))
    out: dict = {
        "x": T(shape),
        "update": T([m if k == a else v for k, v in enumerate(shape)]),
        "mode": mode,
        "axis": a if d.bool() else a - len(shape),
    }
    if len(shape) == 2:
        out["axis"] = d.pick((1, -1))
    if d.int(0, 2):
        out["starts"] = T((shape[0],), values=[_first_place(d, n, m, mode == "circular") for _ in range(shape[0])])
    return out


def _first_place(d: Draw, n: int, m: int, around: bool) -> int:
    """Within the cache; where it goes around, once around it or from any integer on."""
    if around and d.chance(12):
        lo, hi = int_range(d.dtype("starts"))
        return int(d.pick((-1, lo, hi)))
    return d.int(0, 2 * n if around else n - m)


@cache_write.breaks("update-fits")
def _cache_too_short(d: Draw) -> dict:
    """An update longer than the cache, which would write some places twice."""
    v = _draw_cache(d)
    shape, n = list(v["update"].shape), v["x"].shape[v["axis"]]
    shape[v["axis"]] = n + d.int(1, 2)
    return {**v, "mode": "circular", "update": T(shape)}


@cache_write.breaks("write-in-range")
def _cache_beyond(d: Draw) -> dict:
    v = _draw_cache(d)
    shape, m = v["x"].shape, v["update"].shape[v["axis"]]
    return {**v, "mode": "linear", "starts": T((shape[0],), values=[shape[v["axis"]] - m + 1] * shape[0])}
