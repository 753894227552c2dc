"""What results may be that leave the range of f32 on their way: no document states the order of the operations, or in
which type they are done.  Only elements on which the readings differ are open."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from harness.core.dtypes import int_range, of
from harness.declare import Call
from harness.tolerance.underspecified import Underspecified, of_result, other_shape, underspecified
from suites.semantics.quantised import fixed

_EPS = 2.0**-22
_ROOM = float(np.finfo(np.float32).max) / 4  # a transform of real data may add up pairs of sums before it halves them
_PRODUCTS = "products that may leave the range of f32 on their way: exact, or rounded after each row"
_LOOKUPS = "weighted rows that may leave the range of f32 on their way: exact, or rounded after each operation"
_ORDER = "updates of one element, whose order is not stated, may leave the range of the type on their way"
_SHRUNK = "an entry that takes one index, whose begin is masked: the element at begin, or at 0, where the axis begins"
_SCALES = "what is moved to a result of other parameters: the stored integers, or the real numbers they stand for"
_ENDLESS = "a step that is infinite: a sequence that begins at start, or the quotient of distance and step, which is 0"
_TRANSFORM = "a transform of NaN, infinities or sums beyond f32: no document states its sums, nor what 0 times them is"


def _same(a: Any, b: Any, off: Any) -> Any:
    return (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= off)


def _settled(x: Any) -> Any:
    return np.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)


def products(call: Call) -> Underspecified | None:
    """UNSORTED_SEGMENT_PROD."""
    x, ids = call.inputs["input"], call.inputs["segment_ids"]
    if x.dtype.kind != "f":
        return None
    shape = (int(np.ravel(call.inputs["num_segments"])[0]), *x.shape[1:])
    rounded, plain = np.ones(shape, x.dtype), np.ones(shape)
    mantissa, exponent = np.ones(shape), np.zeros(shape, np.int64)
    with np.errstate(all="ignore"):
        for row, k in zip(x, np.ravel(ids).tolist()):
            if 0 <= k < shape[0]:
                rounded[k], plain[k] = rounded[k] * row, plain[k] * row
                m, e = np.frexp(mantissa[k] * row.astype(np.float64))
                mantissa[k], exponent[k] = m, exponent[k] + e
        exact = np.ldexp(mantissa, exponent.clip(-2000, 2000)).astype(x.dtype)
        off = _settled(len(x) * _EPS * np.abs(exact.astype(np.float64))) + 2.0**-149
        near = off / 4  # which the bound of a product covers
        decided = _same(exact.astype(np.float64), rounded, near) & _same(exact.astype(np.float64), plain, near)
    return underspecified(_PRODUCTS, ~decided, exact, rounded, within=off)


def lookups(call: Call) -> Underspecified | None:
    """EMBEDDING_LOOKUP_SPARSE."""
    table, weights, at = call.inputs["value"], call.inputs["weights"], call.inputs["indices"]
    lead = tuple(int(n) for n in call.inputs["dense_shape"][:-1])

    def combined(dtype: Any) -> tuple[Any, Any]:
        """The results, and the sizes of what was added up, over the divisor."""
        out, sizes = np.zeros((*lead, *table.shape[1:]), dtype), np.zeros((*lead, *table.shape[1:]))
        total, squares, rows = np.zeros(lead, dtype), np.zeros(lead, dtype), np.zeros(lead, bool)
        for i, place, w in zip(call.inputs["ids"].tolist(), at.tolist(), weights.astype(dtype)):
            p = tuple(place[:-1])
            out[p] += table[i].astype(dtype) * w
            sizes[p] += np.abs(table[i].astype(np.float64) * np.float64(w))
            total[p], squares[p], rows[p] = total[p] + w, squares[p] + w * w, True
        by = {"MEAN": total, "SQRTN": np.sqrt(squares)}.get(call.attr("combiner", "SUM"), np.ones(lead, dtype))
        by = np.where(rows, by, dtype(1)).reshape(*lead, *(1,) * (table.ndim - 1))
        return out / by, sizes / np.abs(by)

    with np.errstate(all="ignore"):
        (wide, sizes), (rounded, _) = combined(np.float64), combined(np.float32)
        exact = wide.astype(np.float32)
        off = _settled((2 * len(at) + 6) * _EPS * sizes) + 2.0**-149
        decided = _same(exact.astype(np.float64), rounded, off)
    return underspecified(_LOOKUPS, ~decided, exact, rounded, within=off)


def transforms(call: Call) -> Underspecified | None:
    """RFFT2D: each part of an open element is NaN, infinite, or what the sum gives that leaves out terms times 0."""
    x, (h, w) = call.inputs["input"], (int(n) for n in call.inputs["fft_length"])
    window = np.zeros((*x.shape[:-2], h, w))
    window[..., : x.shape[-2], : x.shape[-1]] = x[..., :h, :w]
    with np.errstate(all="ignore"):
        total = np.abs(window).sum((-2, -1))
        lost = ~(total <= _ROOM)
        if not lost.any():
            return None
        finite = np.where(np.isfinite(window), window, 0.0)
        base = np.fft.rfft2(finite)
        for *lead, r, c in np.argwhere(~np.isfinite(window)).tolist():
            turn = (np.arange(h)[:, None] * r * w + np.arange(w // 2 + 1) * c * h) % (h * w)
            angle, place = 2 * np.pi * turn / (h * w), tuple(lead)
            value = window[place][r, c]
            base.real[place] += np.where(4 * turn % (2 * h * w) == h * w, 0.0, value * np.cos(angle))
            base.imag[place] += np.where(2 * turn % (h * w) == 0, 0.0, -value * np.sin(angle))
        readings = []
        for parts in product((None, np.nan, np.inf, -np.inf), repeat=2):
            reading = base.astype(np.complex64)
            if parts[0] is not None:
                reading.real = parts[0]
            if parts[1] is not None:
                reading.imag = parts[1]
            readings.append(reading)
    off = np.abs(finite).sum((-2, -1))[..., None, None] * 64 * _EPS + np.zeros(base.shape)
    return underspecified(_TRANSFORM, lost[..., None, None] & np.ones(base.shape, bool), *readings, within=off)


def scattered(call: Call, fold: str) -> Underspecified | None:
    """STABLEHLO_SCATTER: sums and products of three or more, of which some pair leaves the range of the type."""
    if call.version.meaning is None or fold not in ("add", "mul"):
        return None
    tensors, params = call.version.decode(call)
    x, updates = tensors["x"], tensors["updates"]
    if x.dtype.kind != "f":
        return None

    def total(of: Any) -> Any:
        """What ``of`` gives of all that meet in an element, added up."""
        wide = {k: of(np.abs(tensors[k].astype(np.float64))) for k in ("x", "updates")}
        return call.version.meaning.fn(**{**tensors, **wide, **params, "body": "add"})

    info = np.finfo(x.dtype)
    with np.errstate(all="ignore"):
        several = total(np.ones_like) > 2
        if not several.any() or not updates.size:
            return None
        if fold == "add":
            lost = ~(total(lambda v: v) <= float(info.max) / 2)
        else:
            above = total(lambda v: np.where(v > 1, np.log2(v), 0.0))
            below = total(lambda v: np.where(v < 1, np.log2(v), 0.0))
            lost = ~(above < info.maxexp - 1) | ~(below > info.minexp + 1)
    return underspecified(_ORDER, several & lost) if (several & lost).any() else None


def shrunk(call: Call) -> Underspecified | None:
    """STRIDED_SLICE: "begin[i] is ignored and the fullest possible range is used" where bit i of begin_mask is set;
    where that of shrink_axis_mask is, the axis takes "the value at index begin[i]"."""
    both = call.attr("begin_mask", 0) & call.attr("shrink_axis_mask", 0)
    if not both or call.version.meaning is None:
        return None
    tensors, params = call.version.decode(call)
    begin = tuple(0 if both >> i & 1 else b for i, b in enumerate(params["begin"]))
    fn = call.version.meaning.fn
    taken, first = fn(**tensors, **params), fn(**tensors, **{**params, "begin": begin})
    return underspecified(_SHRUNK, np.ones(taken.shape, bool), taken, first)


def endless_step(call: Call) -> Underspecified | None:
    """RANGE: "begins at start and extends by increments of delta up to but not including limit" (TF Range); the kernels
    of TensorFlow and LiteRT count ceil(abs((limit - start) / delta)) elements."""
    start, limit, delta = (call.inputs[k].reshape(-1) for k in ("start", "limit", "delta"))
    if delta.dtype.kind != "f" or not np.isinf(delta[0]) or start[0] == limit[0]:
        return None
    return other_shape(_ENDLESS, 0, start)


def rescaled(**operands: str) -> Callable[[Call], Underspecified | None]:
    """Of operators that move elements, for which no text demands that all have one scale and zero point: what such a
    result is where they differ.  operands: tensor of the meaning -> slot, for those whose elements are moved."""

    def found(call: Call) -> Underspecified | None:
        given: dict[str, Any] = {name: call.quant.get(slot) for name, slot in operands.items()}
        to = (call.outs[0] or {}).get("quant") if call.outs else None
        if call.version.meaning is None or to is None or any(q is None for q in given.values()):
            return None
        if all((q["scale"], q["zero_point"]) == (to["scale"], to["zero_point"]) for q in given.values()):
            return None
        tensors, params = call.version.decode(call)
        stored = call.version.meaning.fn(**tensors, **params)
        zero = to["zero_point"][0]

        def near(x: Any, q: Any, blur: float) -> Any:
            """Steps of the result, less its zero point, a blur away from where they are rounded."""
            real = fixed.real(x, q) / to["scale"][0]
            held = np.clip(fixed.away(real + blur * (1 + np.abs(real))), *(n - zero for n in int_range(of(x))))
            return held.astype(np.int32)  # what is moved may be viewed many times

        def read(blur: float) -> Any:
            if isinstance(stored, tuple):  # values are found before they are moved
                steps = near(stored[0], next(iter(given.values())), blur)
            else:
                moved = {k: near(tensors[k], q, blur) for k, q in given.items()}
                steps = call.version.meaning.fn(**{**tensors, **moved}, **params)
            return (steps + np.int32(zero)).astype(kept.dtype)

        kept = stored[0] if isinstance(stored, tuple) else stored
        low, high = read(-(2.0**-20)), read(2.0**-20)
        return underspecified(_SCALES, of_result(0, (kept != low) | (kept != high)), kept, low, high)

    return found
