"""The judge: expected outputs against a backend's, one tolerance per output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.compare import statistics, unordered
from harness.compare.floats import complex, context, floats, passed
from harness.compare.judgement import AGREE, UNINFORMATIVE, Judgement, wrong
from harness.core.dtypes import BY_NAME, DType, int_range, of
from harness.core.outcome import Outcome, TypeOnly, Verdict
from harness.declare.expected import Expected
from harness.tolerance import Accepted, AnyOrder, Statistical, Tolerance, exact
from harness.tolerance.claimed import NONE, Accuracy
from native_ref import MOST, brief, compare

UNSEEN = 1 << 28  # bytes of an output of which a worker sends the type alone


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
    claimed: Accuracy = NONE,
) -> Judgement:
    """Judge the outputs of one run.  acc, flushes: what the backend declares of its arithmetic (``BackendInfo``);
    claimed: the accuracy that it claims for this op beside the tolerance."""
    got = outcome.outputs or ()
    if seen := look(expected, got, flushes):
        return AGREE if seen == 1 else UNINFORMATIVE
    if len(got) != len(expected):
        e = expected[min(len(got), len(expected) - 1)]
        return wrong(
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
            j = _output(e, got[i], i, got, acc, flushes, claimed)
        except Exception as x:  # a bound that cannot be computed is our defect: no verdict, said aloud
            text = f"output {i}: {type(x).__name__}: {x}"
            return Judgement(Verdict.UNKNOWN, i, "bound", e.error.label, e.error.formula, text)
        total += getattr(e.value, "size", 1)
        if j is AGREE:
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
    return UNINFORMATIVE if says_nothing else AGREE


def _output(
    e: Any, a: Any, i: int, got: Any, acc: Mapping[str, str] | None, flushes: Sequence[str], claimed: Accuracy = NONE
) -> Judgement:
    want = e.value
    if type(want) is not np.ndarray:
        return _container(e, want, a, i, flushes)
    if type(a) is not np.ndarray:
        return _not_an_array(e, a, i)
    error: Tolerance = e.error
    if a.dtype != want.dtype:
        if not (a.dtype.kind in "OSU" and want.dtype.kind in "OSU"):
            return wrong(e, a, i, "dtype", f"{_name(a)}, expected {e.dtype}")
        return _strings(e, a, i)
    if a.shape != want.shape:
        return wrong(e, a, i, "shape", f"{list(a.shape)}, expected {list(want.shape)}")
    if not a.size:
        return AGREE
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
        return complex(e, error, a, i)
    flush = d.name in flushes
    if d.kind == "f":
        return floats(e, error, a, i, acc, flush, claimed)
    c = compare(a, want, error.fixed_steps)
    if not c.bad:
        return AGREE
    bound: Any = 0.0
    if error.moves_integers:
        bound = np.asarray(error.toward(context(e, acc), a), np.float64)
        c = compare(a, want, bound)
        if not c.bad:
            low, high = int_range(d)
            useless = np.broadcast_to(~(bound <= (high - low) / 10), a.shape) & (a != want)
            return passed(AGREE, i, int(np.count_nonzero(useless)), a.size)
    return wrong(e, a, i, "integer", "", c, bound)


def _strings(e: Any, a: Any, i: int) -> Judgement:
    if a.shape != e.value.shape:
        return wrong(e, a, i, "shape", f"{list(a.shape)}, expected {list(e.value.shape)}")
    same = [_text(x) == _text(y) for x, y in zip(a.ravel(), e.value.ravel(), strict=True)]
    return AGREE if all(same) else wrong(e, a, i, "string")


def _text(x: Any) -> Any:
    return x.decode("utf-8", "surrogateescape") if isinstance(x, bytes) else str(x)


def _choice(e: Any, error: Accepted, a: Any, i: int, got: Any) -> Judgement:
    """Elements of which the definition allows several."""
    ctx = e.context()
    ctx.outputs = got
    if a.dtype.kind not in "OSU" and not compare(a, e.value).bad:
        return AGREE  # the reference's own choice
    ok = np.broadcast_to(np.asarray(error.fn(ctx, a), bool), a.shape)
    if e.open is not None:
        ok = ok | e.open
    if ok.all():
        return AGREE
    return wrong(e, a, i, "choice", f"{int((~ok).sum())} elements are not allowed", bound=ok)


def _draws(e: Any, error: Statistical, a: Any, i: int, got: Any) -> Judgement:
    """Draws of a random op."""
    ctx = e.context()
    ctx.outputs = got
    why, sample = statistics.check(error, ctx, a)
    if why:
        return wrong(e, a, i, "distribution", why)
    return Judgement(Verdict.AGREE, i, sample=sample)


def _not_an_array(e: Any, a: Any, i: int) -> Judgement:
    if type(a) is TypeOnly:
        want = e.value.shape
        if a.dtype is not None and a.dtype != e.dtype.name and BY_NAME[a.dtype].np != e.value.dtype:
            return wrong(e, None, i, "dtype", f"inferred {a.dtype}, expected {e.dtype}")
        if a.shape is not None and (
            len(a.shape) != len(want) or any(isinstance(x, int) and x != y for x, y in zip(a.shape, want, strict=True))
        ):
            return wrong(e, a, i, "shape", f"inferred {list(a.shape)}, expected {list(want)}")
        if e.value.nbytes > UNSEEN:
            return Judgement(Verdict.UNKNOWN, i, "bound", e.error.label, e.error.formula, "too large to be sent")
        return AGREE
    if a is None:
        return wrong(e, None, i, "missing", "no output")
    return wrong(e, None, i, "type", f"{type(a).__name__}, expected an array")


def _container(e: Any, want: Any, a: Any, i: int, flushes: Sequence[str]) -> Judgement:
    """Sequences, optionals and maps: structure first, then each element as exactly as its class can be applied."""
    if isinstance(want, np.generic):
        return _output(_Part(np.asarray(want), e.wide, e.dtype, e.error, e.context), a, i, (a,), None, flushes)
    if type(a) is TypeOnly:
        return AGREE
    if want is None:
        return AGREE if a is None else wrong(e, None, i, "type", f"{type(a).__name__}, expected nothing")
    if isinstance(want, (list, tuple)):
        if not isinstance(a, (list, tuple)):
            return wrong(e, None, i, "missing" if a is None else "type", f"{type(a).__name__}, expected a sequence")
        if len(a) != len(want):
            return wrong(e, None, i, "length", f"{len(a)} elements, expected {len(want)}")
        pairs = list(zip(want, a, strict=True))
    elif isinstance(want, dict):
        if not isinstance(a, dict) or {str(k) for k in a} != {str(k) for k in want}:
            return wrong(e, None, i, "type", "expected a map with the same keys")
        theirs = {str(k): v for k, v in a.items()}
        pairs = [(np.asarray(v), np.asarray(theirs[str(k)])) for k, v in want.items()]
    else:
        return wrong(e, None, i, "type", f"the reference gave {type(want).__name__}")
    error = e.error if e.error.fixed_ulps is not None else exact()
    for w, x in pairs:
        part = _Part(w, None, of(w) if isinstance(w, np.ndarray) else e.dtype, error, e.context)
        j = _output(part, x, i, (x,), None, flushes)
        if j.verdict is Verdict.MISMATCH:
            return j
    return AGREE


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
