"""Reading by index."""

from __future__ import annotations

from typing import Any as Anything

import numpy as np

import native_ref as native
from harness.core.errors import RuleError
from harness.declare import Any, Array, Flag, Int, Integer, T, copied, semantics
from harness.generate.draw import Draw
from suites.semantics.indexing.common import (
    fixed,
    in_extent,
    index_recipe,
    indices_of,
    prod,
    resolve,
    spoiled,
    within_data,
)
from suites.semantics.movement.common import norm_axis


def _room(d: Draw, most: int, *ranks: int) -> int:
    """How many more axes tensors of these ranks may have, ``most`` at most: Core ML takes five of any tensor, others do
    not state a limit."""
    return min(most, *(max(0, d.max_rank - r) for r in ranks)) if d.max_rank <= 5 else most


def more_rows(d: Draw, rows: tuple[int, ...], rest: int) -> tuple[int, ...]:
    """Now and then more axes of index tuples, of one tuple or none, where no limit below eight is stated.

    rest: the axes of the slices that are named."""
    room = d.max_rank - len(rows) - max(1, rest)
    if d.max_rank < 8 or not d.allow_empty or room < 1 or not d.chance(6):
        return rows
    return (*rows, *(d.pick((1, 1, 1, 0)) for _ in range(d.int(1, room))))


@semantics(error=copied(), source="ONNX Gather-1, -11, -13; MIL gather iOS15-17; TFLite GATHER")
def gather(
    x: Any[Array, "*d"], indices: Int[Array, "*e"], *, axis: Integer = 0, batch_dims: Integer = 0, signed: Flag = True
) -> Array:
    """Slices of ``x`` along ``axis`` picked by ``indices``.

    Result: x.shape[:axis] + indices.shape[batch_dims:] + x.shape[axis+1:]; the first batch_dims axes of both run
    together.
    signed: negative indices count from the end (ONNX from version 11 on).
    Raises RuleError "axis-in-range", "batch-in-range", "batch-agrees", "index-in-range".
    """
    a = norm_axis(axis, x.ndim)
    b = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    if not 0 <= b <= min(a, indices.ndim):
        raise RuleError("batch-in-range", f"batch_dims {batch_dims} for axis {axis}, indices of rank {indices.ndim}")
    if x.shape[:b] != indices.shape[:b]:
        raise RuleError("batch-agrees", f"{list(x.shape)} and {list(indices.shape)}, batch_dims {b}")
    if x.dtype != object:
        with in_extent():
            return native.gather(x, indices, a, b, signed)
    i = resolve(indices, x.shape[a], signed)
    if b == 0:
        return np.take(x, i, axis=a)
    lead = x.shape[:b]
    flat = x.reshape(prod(lead), *x.shape[b:])
    rows = i.reshape(prod(lead), *i.shape[b:])
    out = (
        np.stack([np.take(f, r, axis=a - b) for f, r in zip(flat, rows)])
        if prod(lead)
        else np.zeros((0, *x.shape[b:a], *i.shape[b:], *x.shape[a + 1 :]), x.dtype)
    )
    return out.reshape(*lead, *out.shape[1:])


@gather.draw
def _draw_gather(d: Draw) -> dict:
    shape = d.shape(1)
    axis = fixed(d, "axis", lambda: d.axis(len(shape)))
    a = axis % len(shape)
    signed = fixed(d, "signed", d.bool) if "signed" in d.fixed else True
    out = {"x": T(shape), "axis": axis, "signed": signed}
    lead: tuple[int, ...] = ()
    if "batch_dims" in d.version.param_codecs and d.bool():
        b = d.int(0, a)
        lead = shape[:b]
        out["batch_dims"] = b
    more = d.shape(0, _room(d, 6 if d.chance(6) else 3, len(shape) - 1, len(lead)))
    out["indices"] = indices_of(d, (*lead, *more), shape[a], signed) if shape[a] else T((*lead, 0), "small")
    return out


@gather.breaks("index-in-range")
def _gather_outside(d: Draw) -> dict:
    v = _draw_gather(d)
    return spoiled(d, v, "indices", v["x"].shape[v["axis"]], v["signed"])


@gather.breaks("axis-in-range")
def _gather_axis(d: Draw) -> dict:
    v = _draw_gather(d)
    r = len(v["x"].shape)
    return {**v, "axis": d.pick((r, -r - 1))}


@semantics(error=copied(), source="ONNX GatherElements-11; MIL gather_along_axis iOS15")
def gather_elements(
    x: Any[Array, "*d"], indices: Int[Array, "*e"], *, axis: Integer = 0, signed: Flag = True
) -> Any[Array, "*e"]:
    """out[i, j, k] = x[indices[i, j, k], j, k] for axis 0, and so on; ``indices`` is nowhere longer than ``x`` but on
    the axis.

    Raises RuleError "axis-in-range", "indices-within-data", "index-in-range".
    """
    a = norm_axis(axis, x.ndim)
    within_data(indices, x, a)
    if x.dtype != object:
        with in_extent():
            return native.gather_elements(x, indices, a, signed)
    i = resolve(indices, x.shape[a], signed)
    cut = tuple(slice(None) if k == a else slice(n) for k, n in enumerate(indices.shape))
    return np.take_along_axis(x[cut], i, a)


@gather_elements.draw
def _draw_elements(d: Draw) -> dict:
    shape = d.shape(1)
    axis = fixed(d, "axis", lambda: d.axis(len(shape)))
    a = axis % len(shape)
    signed = fixed(d, "signed", lambda: True)
    keep = d.int(0, 2)
    e = [d.dim(1) if k == a else (n if keep else d.int(min(1, n), n)) for k, n in enumerate(shape)]
    if shape[a] == 0:
        e[a] = 0
    return {
        "x": T(shape),
        "indices": T(e, index_recipe(shape[a], signed) if prod(e) else "small"),
        "axis": axis,
        "signed": signed,
    }


@gather_elements.breaks("index-in-range")
def _elements_outside(d: Draw) -> dict:
    v = _draw_elements(d)
    return spoiled(d, v, "indices", v["x"].shape[v["axis"]], v["signed"])


@semantics(error=copied(), source="ONNX GatherND-11, -12; MIL gather_nd iOS15-17; TFLite GATHER_ND")
def gather_nd(
    x: Any[Array, "*d"], indices: Int[Array, "*e"], *, batch_dims: Integer = 0, signed: Flag = True, least: Integer = 1
) -> Array:
    """Slices of ``x`` named by the index tuples in the last axis of ``indices``.

    Result: indices.shape[:-1] + x.shape[batch_dims + indices.shape[-1]:].  least: fewest indices of a tuple; a tuple of
    none names all that is left.
    Raises RuleError "tuple-within-rank", "batch-agrees", "index-in-range".
    """
    b = batch_dims
    if not 0 <= b < min(x.ndim, indices.ndim):
        raise RuleError("batch-agrees", f"batch_dims {b} for ranks {x.ndim} and {indices.ndim}")
    k = indices.shape[-1]
    if not least <= k <= x.ndim - b:
        raise RuleError("tuple-within-rank", f"tuples of {k} into rank {x.ndim - b}")
    if x.shape[:b] != indices.shape[:b]:
        raise RuleError("batch-agrees", f"{list(x.shape[:b])} against {list(indices.shape[:b])}")
    if k == 0:
        whole = np.broadcast_to(
            x.reshape(*x.shape[:b], *(1,) * (indices.ndim - 1 - b), *x.shape[b:]), (*indices.shape[:-1], *x.shape[b:])
        )
        return np.array(whole)
    if x.dtype != object:
        with in_extent():
            return native.gather_nd(x, indices, b, signed)
    i = resolve(indices, np.array(x.shape[b : b + k], np.int64), signed)
    lead = tuple(
        np.arange(n).reshape([-1 if j == t else 1 for j in range(i.ndim - 1)]) for t, n in enumerate(x.shape[:b])
    )
    of_x: tuple[Anything, ...] = (*lead, *(i[..., t] for t in range(k)))
    out = x[of_x]
    if isinstance(out, np.ndarray):
        return out
    one = np.empty((), x.dtype)  # NumPy gives the element itself where no axis is left
    one[()] = out
    return one


@gather_nd.draw
def _draw_nd(d: Draw) -> dict:
    shape = d.shape(1, lo=1)
    signed = fixed(d, "signed", lambda: True)
    b = d.int(0, len(shape) - 1) if "batch_dims" in d.version.param_codecs and d.bool() else 0
    k = d.int(1, len(shape) - b)
    rows = (*shape[:b], *d.shape(0, _room(d, 2, len(shape) - k, b + 1)))
    rows = more_rows(d, rows, len(shape) - b - k)
    ends = shape[b : b + k]
    t = T((*rows, k), values=_tuples(d, prod(rows), ends, signed))
    out: dict[str, Anything] = {"x": T(shape), "indices": t, "signed": signed}
    if "batch_dims" in d.version.param_codecs:
        out["batch_dims"] = b
    return out


def _tuples(d: Draw, count: int, ends: tuple[int, ...], signed: bool) -> list[int]:
    """Index tuples, duplicates allowed: multiples of a random number in mixed radix."""
    total = prod(ends)
    step, start, flip = d.int(1, max(total, 1)), d.int(0, max(total - 1, 0)), d.int(2, 5)
    out: list[int] = []
    for r in range(count):
        at = (start + r * step) % total
        one: list[int] = []
        for n in reversed(ends):
            i = at % n
            at //= n
            one.append(i - n if signed and (r + len(one)) % flip == 1 else i)
        out += reversed(one)
    return out


@gather_nd.breaks("index-in-range")
def _nd_outside(d: Draw) -> dict:
    v = _draw_nd(d)
    return spoiled(d, v, "indices", max(v["x"].shape), v["signed"])
