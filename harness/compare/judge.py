"""The judge: expected outputs against a backend's, one tolerance per output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.compare import diff as diffs
from harness.compare import statistics, unordered
from harness.core.dtypes import BY_NAME, F8E8M0, DType, int_range, of, smallest_normal
from harness.core.outcome import Outcome, TypeOnly, Verdict
from harness.declare.expected import Expected
from harness.tolerance import Accepted, AnyOrder, Context, Statistical, Tolerance, exact, ulp
from native_ref import DULL, MOST, SMALL, brief, compare

UNSEEN = 1 << 28  # bytes of an output of which a worker sends the type alone


@dataclass(slots=True)
class Judgement:
    """verdict: agree, mismatch, uninformative, or unknown when the bound itself could not be computed.
    output: number of the output that decided.  kind: what is wrong: missing, type, length, dtype, shape, nan, inf,
    zero_sign, flush, value, integer, string, choice, distribution, bound, or "".
    unjudged: elements that passed only because their bound is infinite or wider than a tenth of the expected value (of
    a quantised result: of the type's range), in all outputs. klass, formula: of the tolerance.  comparison: the
    native kernel's counts.  sample: of a random op, probability integral transform of the elements, for pooling."""

    verdict: Verdict
    output: int = 0
    kind: str = ""
    klass: str = ""
    formula: str = ""
    detail: str = ""
    comparison: Any = None
    sample: np.ndarray | None = None
    _expected: Any = None
    _actual: Any = None
    _bound: Any = None
    _ulps: float = 0.0
    unjudged: int = 0
    _diff: dict[str, Any] | None = field(default=None, repr=False)

    def diff(self) -> dict[str, Any]:
        """The numbers of a mismatch (see the record format); computed on demand, {} where there is none."""
        if self._diff is None:
            if self.verdict is not Verdict.MISMATCH or self._expected is None:
                self._diff = {}
            else:
                self._diff = diffs.describe(self._expected, self._actual, self._bound, self._ulps, self.kind)
                if self.detail:
                    self._diff["detail"] = self.detail
        return self._diff

    def numbers(self) -> dict[str, Any]:
        """Those of ``diff`` that say how much is wrong and by how much: a fraction of its price."""
        if self._diff is not None or self.verdict is not Verdict.MISMATCH or self._expected is None:
            return self.diff()
        m = diffs.measure(self._expected, self._actual, self._bound, self._ulps, self.kind)
        return {} if m is None else m.numbers

    def wrong(self) -> tuple[list[tuple[Any, Any]], list[tuple[int, ...]]]:
        """Of the wrong elements what is expected and what came, as Python's numbers or texts, and where they stand;
        none where a whole is wrong."""
        bad = self.bad()
        if bad is None:
            return [], []
        pairs = list(zip(*(_plain(x[bad]) for x in (self._expected.value, self._actual))))
        return pairs, list(map(tuple, np.argwhere(bad).tolist()))

    def bad(self) -> np.ndarray | None:
        """Mask of the wrong elements; None where a whole is wrong, or nothing is."""
        if self.verdict is not Verdict.MISMATCH or self._expected is None:
            return None
        m = diffs.measure(self._expected, self._actual, self._bound, self._ulps, self.kind)
        return None if m is None else m.bad

    def open(self) -> Any:
        """Mask of the elements of the wrong output that were left out of the judgement; None where none were."""
        return None if self._expected is None else self._expected.open

    def came(self) -> tuple[int, ...]:
        """Shape of the wrong output as it came, or was inferred; empty of what is no array."""
        return tuple(getattr(self._actual, "shape", None) or ())


def _plain(x: np.ndarray) -> list[Any]:
    """Elements as Python's own."""
    d = of(x)
    out: list[Any] = (x.astype(np.float64) if d.kind == "f" else x.astype(object) if d.kind in "iub" else x).tolist()
    return out


_AGREE = Judgement(Verdict.AGREE)
_UNINFORMATIVE = Judgement(Verdict.UNINFORMATIVE)


def look(expected: Sequence[Expected], got: Sequence[Any], flushes: Sequence[str]) -> int:
    """A first look at the outputs of one run: 1 when all pass at once, as those of most do, 2 when they do and all say
    nothing, 0 when more has to be known."""
    if len(got) != len(expected):
        return 0
    best = 0
    for e, a in zip(expected, got):
        first = e.error.brief
        if first is None:
            return 0
        how, ulps, signed = first
        seen = brief(a, e.value, e.wide, how, ulps, signed, e.dtype.name in flushes)
        if not seen:
            return 0
        if best != 1:
            best = seen
    return best


def judge(
    expected: Sequence[Expected],
    outcome: Outcome,
    *,
    acc: Mapping[str, str] | None = None,
    flushes: Sequence[str] = (),
) -> Judgement:
    """Judge the outputs of one run.  acc, flushes: the backend's numeric profile by dtype name."""
    got = outcome.outputs or ()
    if seen := look(expected, got, flushes):
        return _AGREE if seen == 1 else _UNINFORMATIVE
    if len(got) != len(expected):
        e = expected[min(len(got), len(expected) - 1)]
        return _wrong(
            e,
            None,
            min(len(got), len(expected) - 1),
            "missing" if len(got) < len(expected) else "type",
            f"{len(got)} outputs, expected {len(expected)}",
        )
    if len(expected) > 1 and any(isinstance(e.error, AnyOrder) for e in expected):
        got = unordered.reorder(expected, got)
    dull = unjudged = total = 0
    samples: list[np.ndarray] = []
    for i, e in enumerate(expected):
        try:
            j = _output(e, got[i], i, got, acc, flushes)
        except Exception as x:  # a bound that cannot be computed is our defect: no verdict, said aloud
            text = f"output {i}: {type(x).__name__}: {x}"
            return Judgement(Verdict.UNKNOWN, i, "bound", e.error.label, e.error.formula, text)
        total += getattr(e.value, "size", 1)
        if j is _AGREE:
            continue
        if j.verdict in (Verdict.MISMATCH, Verdict.UNKNOWN):
            return j
        unjudged += j.unjudged
        if j.verdict is Verdict.UNINFORMATIVE:
            dull += 1
        elif j.sample is not None:
            samples.append(j.sample)
    if samples:
        return Judgement(Verdict.AGREE, sample=np.concatenate(samples))
    says_nothing = (dull and dull == len(expected)) or unjudged > MOST * total
    if unjudged:
        return Judgement(Verdict.UNINFORMATIVE if says_nothing else Verdict.AGREE, unjudged=unjudged)
    return _UNINFORMATIVE if says_nothing else _AGREE


def _output(e: Any, a: Any, i: int, got: Any, acc: Mapping[str, str] | None, flushes: Sequence[str]) -> Judgement:
    want = e.value
    if type(want) is not np.ndarray:
        return _container(e, want, a, i, flushes)
    if type(a) is not np.ndarray:
        return _not_an_array(e, a, i)
    error: Tolerance = e.error
    if a.dtype != want.dtype:
        if not (a.dtype.kind in "OSU" and want.dtype.kind in "OSU"):
            return _wrong(e, a, i, "dtype", f"{_name(a)}, expected {e.dtype}")
        return _strings(e, a, i)
    if a.shape != want.shape:
        return _wrong(e, a, i, "shape", f"{list(a.shape)}, expected {list(want.shape)}")
    if not a.size:
        return _AGREE
    if isinstance(error, AnyOrder):
        if len(got) == 1:
            a = unordered.reorder([e], [a])[0]
        error = error.within
    elif isinstance(error, Accepted):
        return _choice(e, error, a, i, got)
    elif isinstance(error, Statistical):
        return _draws(e, error, a, i, got)
    d: DType = e.dtype
    if d.kind == "s":
        return _strings(e, a, i)
    if d.kind == "c":
        return _complex(e, error, a, i)
    flush = d.name in flushes
    if d.kind == "f":
        return _floats(e, error, a, i, acc, flush)
    c = compare(a, want, error.fixed_steps)
    if not c.bad:
        return _AGREE
    bound: Any = 0.0
    if error.moves_integers:
        bound = np.asarray(error.toward(_context(e, acc), a), np.float64)
        c = compare(a, want, bound)
        if not c.bad:
            low, high = int_range(d)
            useless = np.broadcast_to(~(bound <= (high - low) / 10), a.shape) & (a != want)
            return _passed(_AGREE, i, int(np.count_nonzero(useless)), a.size)
    return _wrong(e, a, i, "integer", "", c, bound)


def _floats(e: Any, error: Tolerance, a: Any, i: int, acc: Any, flush: bool) -> Judgement:
    """Floats: the rounded value for exact classes, else the wide result, cheap bounds first."""
    wide = e.wide
    signed = error.signed_zero
    if e.dtype is F8E8M0 and wide is not None:
        wide = np.where(np.isnan(e.value.astype(np.float64)), np.nan, wide)  # a type without sign and zero
    if error.exact or wide is None:
        # Without a wide result the reference has moved data or computed in the type itself.
        ulps = error.fixed_ulps or 0.0
        c = compare(a, e.value, ulps=ulps, signed_zero=signed, flush=flush)
        if not c.bad and not (flush and c.flushed):
            return _AGREE
        return _settle(e, error, a, i, c, e.value, 0.0, ulps, flush, acc)
    if (k := error.fixed_ulps) is not None:
        c = compare(a, wide, ulps=k, signed_zero=signed, flush=flush)
        if not c.bad and not (flush and c.flushed):
            return _AGREE if c.size < SMALL or c.uninformative <= MOST * c.size else _UNINFORMATIVE
        return _settle(e, error, a, i, c, wide, 0.0, k, flush, acc)
    c = compare(a, wide, ulps=error.first_ulps, signed_zero=signed)
    if not c.bad:
        return _dull(e, c)
    ctx = _context(e, acc)
    if error.sums:  # of the others half an ulp was the screen
        c = compare(a, wide, _array(error.screen(ctx), wide), signed_zero=signed)
        if not c.bad:
            return _dull(e, c)
    bound = _array(error.bound(ctx), wide)
    c = compare(a, wide, bound, signed_zero=signed, flush=flush)
    if c.nan_bad:
        # Where partial results may overflow in both directions, inf - inf may come out: nothing is bound there.
        free = np.isnan(a.astype(np.float64)) & np.isinf(bound) & np.isfinite(wide)
        if free.any():
            c = compare(np.where(free, e.value, a), wide, bound, signed_zero=signed, flush=flush)
    if (c.inf_bad or c.nan_bad) and error.sums:
        # So it is where our own partial sums left the range of f64: other orders, or fused ones, may have stayed in it.
        free = ~np.isfinite(wide) & np.isfinite(_smaller(ctx))
        if free.any():
            c = compare(np.where(free, e.value, a), wide, bound, signed_zero=signed, flush=flush)
    if not c.bad and not (flush and c.flushed):
        return _passed(_dull(e, c), i, c.uninformative, c.size)
    return _settle(e, error, a, i, c, wide, bound, 0.0, flush, acc)


def _passed(plain: Judgement, i: int, unjudged: int, size: int) -> Judgement:
    """An output within its bounds, some of which bind too little."""
    if not unjudged:
        return plain
    return Judgement(Verdict.UNINFORMATIVE if unjudged > MOST * size else plain.verdict, i, unjudged=unjudged)


def _settle(
    e: Any, error: Tolerance, a: Any, i: int, c: Any, want: Any, bound: Any, ulps: float, flush: bool, acc: Any
) -> Judgement:
    """A comparison that did not simply pass: the kind of difference; flushing must hold for all subnormals or none."""
    kind = "value"
    if c.bad and flush and _flushed(e, error, a, bound, ulps, acc):
        return _AGREE
    subnormal: Any = False
    if flush and c.flushed:
        w = np.abs(np.asarray(want, np.float64))
        subnormal = (w > 0) & (w < smallest_normal(e.dtype)) & (np.asarray(e.value, np.float64) != 0)
        if e.open is not None:
            subnormal &= ~e.open
    if not c.bad:
        gone = np.asarray(a, np.float64) == 0
        # what rounds to zero is not flushed; what rounds to the smallest normal number may be kept or flushed, since
        # IEEE 754-2019, 7.5 lets an implementation detect tininess before or after rounding
        normal = np.abs(np.asarray(e.value, np.float64)) >= smallest_normal(e.dtype)
        kept, flushed = (int(np.count_nonzero(subnormal & x)) for x in (~gone & ~normal, gone & ~normal))
        if not kept or not flushed:
            return _AGREE
        kind, detail = "flush", f"{flushed} subnormal results flushed to zero, {kept} not"
        return _wrong(e, a, i, kind, detail, c, bound, ulps)
    if c.nan_bad == c.bad:
        kind = "nan"
    elif c.inf_bad == c.bad:
        kind = "inf"
    elif error.signed_zero and c.zero_sign == c.bad:
        kind = "zero_sign"
    elif c.nan_bad:
        kind = "nan"
    if subnormal is not False:  # what may be flushed is not wrong beside what is, and not told as its error
        a = np.where(subnormal & (np.asarray(a, np.float64) == 0), e.value, a)
    return _wrong(e, a, i, kind, "", c, bound, ulps)


def _flushed(e: Any, error: Tolerance, a: Any, bound: Any, ulps: float, acc: Any) -> bool:
    """Is it the result of an implementation that takes subnormal inputs, results and partial results for zero?  The
    zero that stands for a subnormal is of either sign, any other has the one that the operator fixes."""
    ctx = _context(e, acc)
    tiny = smallest_normal(e.dtype)
    try:
        wide = ctx.finished(**{k: _without_subnormals(v, tiny) for k, v in ctx.inputs.items()})
        partial = tiny * error.roundings(ctx)
    except Exception:  # an op that evaluates itself, or whose inputs must not change
        return False
    if wide.shape != a.shape:
        return False
    if e.open is not None:
        a = np.where(e.open, wide, a).astype(a.dtype)
    bound = np.asarray(bound, np.float64) + partial
    if not error.signed_zero:
        return not compare(a, wide, bound, ulps=ulps, flush=True).bad
    free = (np.asarray(a, np.float64) == 0) & (wide == 0) & (np.asarray(e.value, np.float64) != 0)
    a = np.where(free, wide.astype(a.dtype), a)
    return not compare(a, wide, bound, ulps=ulps, signed_zero=True, flush=True).bad


def _smaller(ctx: Context) -> np.ndarray:
    """The result for inputs 2^-200 times as large: infinite where an input is, not where finite ones add up to it."""

    def small(v: Any) -> Any:
        if isinstance(v, (list, tuple)):
            return [small(x) for x in v]
        return v * 2.0**-200 if isinstance(v, np.ndarray) and v.dtype == np.float64 else v

    return np.asarray(ctx.reevaluate(**{k: small(v) for k, v in ctx.inputs.items()}), np.float64)


def _without_subnormals(v: Any, tiny: float) -> Any:
    if isinstance(v, (list, tuple)):
        return [_without_subnormals(x, tiny) for x in v]
    if not isinstance(v, np.ndarray) or v.dtype != np.float64:
        return v
    return np.where(np.abs(v) < tiny, np.copysign(0.0, v), v)


def _dull(e: Any, c: Any) -> Judgement:
    """A pass that says little: mostly zeros, one value, NaN or infinities."""
    if c.size < SMALL:
        return _AGREE
    if c.zeros > DULL * c.size:
        return _UNINFORMATIVE
    v = e.value
    if v.dtype.kind == "f" and (v.ravel()[0] == v).all():
        return _UNINFORMATIVE
    if np.count_nonzero(np.isfinite(e.wide)) < (1 - DULL) * c.size:
        return _UNINFORMATIVE
    return _AGREE


def _context(e: Any, acc: Mapping[str, str] | None) -> Context:
    ctx = e.context()
    if acc and e.dtype.name in acc:
        ctx.acc = BY_NAME[acc[e.dtype.name]]
    return ctx


def _array(bound: Any, wide: np.ndarray) -> np.ndarray:
    """The bound per element: an undefined one binds nothing, an infinite result must be met exactly."""
    b = np.fmin(np.asarray(bound, np.float64), np.inf)  # which makes NaN infinite
    return np.where(np.isinf(wide), 0.0, b)


def _complex(e: Any, error: Tolerance, a: Any, i: int) -> Judgement:
    """Real and imaginary parts, each within the bound of the modulus."""
    part = BY_NAME["f32"] if e.dtype.name == "c64" else BY_NAME["f64"]
    flat = np.ascontiguousarray(a).reshape(-1).view(part.np)
    if error.exact or e.wide is None:
        want = np.ascontiguousarray(e.value).reshape(-1).view(part.np)
        bound: Any = 0.0
        k = error.fixed_ulps or 0.0
        c = compare(flat, want, ulps=k, signed_zero=error.signed_zero)
    else:
        wide = np.ascontiguousarray(e.wide, np.complex128).reshape(-1)
        want = wide.view(np.float64)
        if error.fixed_ulps is not None:
            b = error.fixed_ulps * ulp(np.abs(wide), part)
        else:
            b = np.broadcast_to(np.asarray(error.bound(e.context()), np.float64), e.wide.shape).reshape(-1)
        b = np.where(np.isnan(b), np.inf, b)  # a NaN in one part leaves no modulus to measure the other by
        c = compare(flat, want, np.repeat(b, 2))
        bound = b.reshape(a.shape)
    return _AGREE if not c.bad else _wrong(e, a, i, "nan" if c.nan_bad == c.bad else "value", "", c, bound)


def _strings(e: Any, a: Any, i: int) -> Judgement:
    if a.shape != e.value.shape:
        return _wrong(e, a, i, "shape", f"{list(a.shape)}, expected {list(e.value.shape)}")
    same = [_text(x) == _text(y) for x, y in zip(a.ravel(), e.value.ravel(), strict=True)]
    return _AGREE if all(same) else _wrong(e, a, i, "string")


def _text(x: Any) -> Any:
    return x.decode("utf-8", "surrogateescape") if isinstance(x, bytes) else str(x)


def _choice(e: Any, error: Accepted, a: Any, i: int, got: Any) -> Judgement:
    """Elements of which the definition allows several."""
    ctx = e.context()
    ctx.outputs = got
    if a.dtype.kind not in "OSU" and not compare(a, e.value).bad:
        return _AGREE  # the reference's own choice
    ok = np.broadcast_to(np.asarray(error.fn(ctx, a), bool), a.shape)
    if e.open is not None:
        ok = ok | e.open
    if ok.all():
        return _AGREE
    return _wrong(e, a, i, "choice", f"{int((~ok).sum())} elements are not allowed", bound=ok)


def _draws(e: Any, error: Statistical, a: Any, i: int, got: Any) -> Judgement:
    """Draws of a random op."""
    ctx = e.context()
    ctx.outputs = got
    why, sample = statistics.check(error, ctx, a)
    if why:
        return _wrong(e, a, i, "distribution", why)
    return Judgement(Verdict.AGREE, i, sample=sample)


def _not_an_array(e: Any, a: Any, i: int) -> Judgement:
    if type(a) is TypeOnly:
        want = e.value.shape
        if a.dtype is not None and a.dtype != e.dtype.name and BY_NAME[a.dtype].np != e.value.dtype:
            return _wrong(e, None, i, "dtype", f"inferred {a.dtype}, expected {e.dtype}")
        if a.shape is not None and (
            len(a.shape) != len(want) or any(isinstance(x, int) and x != y for x, y in zip(a.shape, want, strict=True))
        ):
            return _wrong(e, a, i, "shape", f"inferred {list(a.shape)}, expected {list(want)}")
        if e.value.nbytes > UNSEEN:
            return Judgement(Verdict.UNKNOWN, i, "bound", e.error.label, e.error.formula, "too large to be sent")
        return _AGREE
    if a is None:
        return _wrong(e, None, i, "missing", "no output")
    return _wrong(e, None, i, "type", f"{type(a).__name__}, expected an array")


def _container(e: Any, want: Any, a: Any, i: int, flushes: Sequence[str]) -> Judgement:
    """Sequences, optionals and maps: structure first, then each element as exactly as its class can be applied."""
    if isinstance(want, np.generic):
        return _output(_Part(np.asarray(want), e.wide, e.dtype, e.error, e.context), a, i, (a,), None, flushes)
    if type(a) is TypeOnly:
        return _AGREE
    if want is None:
        return _AGREE if a is None else _wrong(e, None, i, "type", f"{type(a).__name__}, expected nothing")
    if isinstance(want, (list, tuple)):
        if not isinstance(a, (list, tuple)):
            return _wrong(e, None, i, "missing" if a is None else "type", f"{type(a).__name__}, expected a sequence")
        if len(a) != len(want):
            return _wrong(e, None, i, "length", f"{len(a)} elements, expected {len(want)}")
        pairs = list(zip(want, a, strict=True))
    elif isinstance(want, dict):
        if not isinstance(a, dict) or {str(k) for k in a} != {str(k) for k in want}:
            return _wrong(e, None, i, "type", "expected a map with the same keys")
        theirs = {str(k): v for k, v in a.items()}
        pairs = [(np.asarray(v), np.asarray(theirs[str(k)])) for k, v in want.items()]
    else:
        return _wrong(e, None, i, "type", f"the reference gave {type(want).__name__}")
    error = e.error if e.error.fixed_ulps is not None else exact()
    for w, x in pairs:
        part = _Part(w, None, of(w) if isinstance(w, np.ndarray) else e.dtype, error, e.context)
        j = _output(part, x, i, (x,), None, flushes)
        if j.verdict is Verdict.MISMATCH:
            return j
    return _AGREE


@dataclass(slots=True)
class _Part:
    """An element of a container, with the shape of ``Expected``."""

    value: Any
    wide: Any
    dtype: Any
    error: Tolerance
    context: Any
    open: Any = None


def _name(a: np.ndarray) -> str:
    try:
        return str(of(a))
    except ValueError:
        return str(a.dtype)


def _wrong(
    e: Any, a: Any, i: int, kind: str, detail: str = "", comparison: Any = None, bound: Any = 0.0, ulps: float = 0.0
) -> Judgement:
    error: Tolerance = e.error
    formula = error.formula
    if kind == "value":
        try:
            formula = error.numbers(e.context())
        except Exception:  # the formula without its numbers is still the formula
            formula = error.formula
    if kind == "integer" and not error.moves_integers:
        formula = "EXACT: integers are equal"
    return Judgement(
        Verdict.MISMATCH, i, kind, formula.split(":")[0], formula, detail, comparison, None, e, a, bound, ulps
    )
