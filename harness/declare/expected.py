"""What the reference says about an output: its value, what its error may be, and where nothing is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from harness.core import dims
from harness.core.dtypes import DType, of
from harness.core.outcome import TypeOnly
from harness.declare.codec import Call
from harness.tolerance import Context, Tolerance, widened
from harness.tolerance.underspecified import Underspecified, fits


@dataclass(slots=True)
class Expected:
    """What the reference says about one output.

    value: rounded once, in the output type.
    wide: the f64 or complex128 result before rounding; None where the result is exact.
    error: the tolerance; ``context()``, what its bound may look at, is made when asked for.
    open: mask of the elements that the specification leaves open.  They are not judged; what is compared has ``value``
        there.
    """

    value: Any
    wide: np.ndarray | None
    dtype: DType
    error: Tolerance
    context: Callable[[], Context]
    open: np.ndarray | None = None

    @property
    def real(self) -> np.ndarray:
        """The result before it was rounded: ``wide``, or the value itself, widened, where that is exact."""
        return widened(self.value) if self.wide is None else self.wide

    def off(self) -> np.ndarray | None:
        """How far the value may be off, in its own unit, of each element; None of what is exact."""
        h = self.value
        if not isinstance(h, np.ndarray) or not h.size or (self.error.exact and self.wide is None):
            return None
        if self.dtype.kind == "f":
            b = np.asarray(self.error.bound(self.context()), np.float64)
        elif self.dtype.kind in "iu" and self.error.moves_integers:
            spans = self.error.spans(self.context())
            x = h.astype(np.float64)
            apart = [np.maximum(np.abs(x - low), np.abs(high - x)) for low, high in spans]
            b = np.maximum.reduce(apart) if apart else np.asarray(self.error.fixed_steps)
        else:
            return None
        b = np.broadcast_to(np.where(np.isnan(b), np.inf, b), h.shape)
        return b if b.any() else None


class OutputType(NamedTuple):
    """What the reference tells of an output tensor before the model is built.

    shape: in the first run.  varies: axes whose extents differ in another run."""

    dtype: DType
    shape: tuple[int, ...]
    varies: tuple[int, ...] = ()


Results = Sequence[OutputType | None]  # of each output, None of what is no tensor


Spelt = Callable[[Call, list[Any]], list[Any]]


def context_of(
    call: Call,
    i: int,
    out: DType,
    value: np.ndarray,
    wide: np.ndarray | None,
    tensors: dict[str, Any],
    params: dict[str, Any],
    shared: dict[Any, Any] | None,
    spelt: Spelt | None = None,
) -> Context:
    """What the error of output ``i`` may be bounded with.

    spelt: how the results are laid out in the end; None: as the entry says."""
    v = call.version
    m = v.meaning
    out_of = spelt or v.entry.spelling.out
    if wide is None:
        wide = widened(value)
    own = tensors if v.entry.evaluation is None else call.inputs  # an op that evaluates itself: its slots

    def inputs() -> dict[str, Any]:
        return {n: _wide(x) for n, x in own.items()}

    def rerun(changed: dict[str, Any], finish: bool = False) -> np.ndarray:
        assert m is not None
        raw = m.fn(**changed, **params)
        results = list(raw) if isinstance(raw, (tuple, list)) else [raw]
        if out_of is not None:
            results = (out_of if finish else getattr(out_of, "linear", out_of))(call, results)
        return results[i]

    def before() -> Context:
        """Of the result that a last function of the spelling is applied to."""
        linear = getattr(out_of, "linear", out_of)
        plain = widened(rerun(tensors))
        return context_of(call, i, out, plain, plain, tensors, params, shared, linear)

    bound: list[dict[str, Any]] = []

    def env() -> dict[str, Any]:
        if not bound:  # only some bounds count by names
            try:
                bound.append(m.bind(tensors, params) if m is not None else {})
            except dims.ShapeMismatch:
                bound.append(dict(params))
        return bound[0]

    def count(expr: str) -> float:
        return float(dims.evaluate(dims.compiled(expr), env()))

    if out_of is None or v.entry.error is not None or m is None:
        made = Context(inputs, params, wide, out, dims=env, rerun=rerun, count=count, shared=shared)
        made.call = call  # what an entry that evaluates by itself bounds its error with
        made.own, made.finish, made.before = own, partial(rerun, finish=True), before
        return made

    # A function of the inputs bounds the meaning's own result; the dialect's layout is laid over the bound.
    linear = getattr(out_of, "linear", out_of)

    def plain(changed: dict[str, Any]) -> list[Any]:
        raw = m.fn(**changed, **params)
        return list(raw) if isinstance(raw, (tuple, list)) else [raw]

    def inner() -> Context:
        own = widened(plain(tensors)[i])
        return Context(inputs, params, own, out, dims=env, rerun=lambda c: plain(c)[i], count=count, shared=shared)

    def carry(bound: np.ndarray) -> np.ndarray:
        results = [widened(x) for x in plain(tensors)]
        middle, bound = results[i], np.broadcast_to(bound, results[i].shape)

        def laid(values: np.ndarray, how: Callable[..., Any]) -> np.ndarray:
            return np.asarray(how(call, [*results[:i], np.array(values), *results[i + 1 :]])[i])

        plain_bound = np.abs(laid(bound, linear))
        if linear is out_of:
            return plain_bound
        with np.errstate(all="ignore"):  # what clamps in the end is monotone: nothing beyond its images can come out
            ends = [np.abs(laid(middle + s * bound, out_of) - laid(middle, out_of)) for s in (-1, 1)]
        clamped = np.maximum(*ends)
        return np.where(np.isnan(clamped), plain_bound, np.minimum(clamped * (1 + 2.0**-50), plain_bound))

    made = Context(inputs, params, wide, out, dims=env, rerun=rerun, count=count, within=(inner, carry), shared=shared)
    made.finish, made.before = partial(rerun, finish=True), before
    return made


def _wide(v: Any) -> Any:
    if isinstance(v, list):
        return [_wide(x) for x in v]
    return widened(v) if isinstance(v, np.ndarray) and of(v).kind in "fc" else v


def open_at(call: Call, why: Underspecified, i: int, actual: np.ndarray) -> np.ndarray:
    """Mask of the elements of output ``i`` that ``why``, which does not leave all open, does: where there are
    readings, those in which ``actual`` is one.  Raises ValueError for a mask that does not fit."""
    out = np.zeros(actual.shape, bool)
    for mask, part in why.masks(i) or ():
        at = _carried(call, i, mask)
        if part.readings:
            said = [_laid(call, i, np.asarray(r)) for r in part.readings]
            # how far from a reading is in the meaning's layout, as the readings are
            within = part.within if np.ndim(part.within) == 0 else _laid(call, i, np.asarray(part.within))
            at = at & np.logical_or.reduce([_is_reading(actual, r, within) for r in said])
        out |= at
    return out


def may_be(why: Underspecified, i: int, actual: np.ndarray | TypeOnly) -> bool:
    """May output ``i`` be ``actual``, of another shape than the reference's?  Of a type alone the shape is asked."""
    for _, part in why.masks(i) or ():
        if any(fits(actual.shape, s) for s in part.shapes):
            return True
        for other in part.others:
            if isinstance(actual, TypeOnly):
                if fits(actual.shape, other.shape):
                    return True
            elif actual.shape == other.shape and bool(np.all(_is_reading(actual, other, part.within))):
                return True
    return False


def open_mask(call: Call, why: Underspecified, i: int, shape: tuple[int, ...]) -> np.ndarray:
    """Mask of the elements of output ``i`` of which ``why`` says that there is no single answer, readings or not."""
    out = np.zeros(shape, bool)
    for mask, _ in why.masks(i) or ():
        out |= _carried(call, i, mask)
    return out


def _is_reading(actual: np.ndarray, reading: np.ndarray, within: np.ndarray | float) -> np.ndarray:
    if actual.dtype.kind == "c":
        both = [(getattr(actual, part), getattr(reading, part)) for part in ("real", "imag")]
        return np.logical_and(*(_is_reading(a, r, within) for a, r in both))
    same = (actual == reading) | ((actual != actual) & (reading != reading))
    if not np.any(within):
        return same
    with np.errstate(all="ignore"):
        return same | (np.abs(actual.astype(np.float64) - reading) <= within)


def _carried(call: Call, i: int, mask: np.ndarray) -> np.ndarray:
    """A mask of the meaning's result, in the layout of output ``i``: where a change there shows."""
    entry = call.version.entry
    if entry.spelling.out is None or entry.evaluation is not None:
        return mask
    probes = [_laid(call, i, np.where(mask, x, 0)) for x in (0, 1, -1, 100)]
    return np.logical_or.reduce([(p != probes[0]) & ~((p != p) & (probes[0] != probes[0])) for p in probes[1:]])


def _laid(call: Call, i: int, values: np.ndarray) -> np.ndarray:
    """Output ``i``, had the meaning given ``values`` for it."""
    v = call.version
    if v.entry.spelling.out is None or v.entry.evaluation is not None or v.meaning is None:
        return values
    tensors, params = v.decode(call)
    raw = v.meaning.fn(**tensors, **params)
    results = list(raw) if isinstance(raw, (tuple, list)) else [raw]
    results[i] = np.array(np.broadcast_to(values, results[i].shape)).astype(results[i].dtype)
    return np.asarray(v.entry.spelling.out(call, results)[i])
