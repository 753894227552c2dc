"""``check`` and ``conforms``: one Python callable against the drawn instances of an op."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from harness.cases.case import Case, draw_case, fill
from harness.cases.result import Result
from harness.core.dtypes import BY_NAME
from harness.core.errors import FormatError, UsageError
from harness.core.instance import Instance
from harness.core.outcome import Outcome, Verdict
from harness.core.quiet import quiet
from harness.declare import OpVersion, registry
from harness.engine.case_record import paragraph, record
from harness.engine.verdict import judge_case
from harness.evidence.budget import Budget
from harness.evidence.failure import complete
from harness.evidence.minimize import minimize
from harness.kernels.arrays import giver
from harness.kernels.call import Call, called, outcomes
from harness.kernels.isolated import Isolated, safe
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo

TRIES = 64  # draws for one case of a wanted element type
SHOWN = 3  # kinds of failure that are made small and shown
HANGS = 3  # hangs after which the rest is not asked
LONG = 2000  # characters of an instance in a line that runs it again


@dataclass
class Conformance:
    """What came of a check.  op: the op version.  kernel: name of the callable.  verdicts: how many instances got which
    verdict (``docs/verdicts.md``).  failures: one paragraph for each kind of failure, about its smallest instance."""

    op: str
    kernel: str
    verdicts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counts = ", ".join(f"{n} {v.label}" for v in Verdict if (n := self.verdicts[v.value]))
        return "\n\n".join([f"{self.op}, {self.kernel}: {counts}", *self.failures])


class NonConformance(AssertionError):
    """A kernel failed.  Its text shows the smallest instances; ``conformance`` holds the counts."""

    def __init__(self, conformance: Conformance) -> None:
        super().__init__(str(conformance))
        self.conformance = conformance


def check(
    op: str,
    kernel: Callable[..., Any],
    *,
    dtypes: Sequence[str] = (),
    device: Any = None,
    cases: int = 50,
    seed: int = 0,
    opset: Any = None,
    invalid: bool = False,
    acc: Mapping[str, str] | None = None,
    flushes: Sequence[str] = (),
    seconds: float = 10.0,
    instance: Instance | str | None = None,
    isolate: bool | None = None,
    deadline: float = 20.0,
) -> Conformance:
    """Run a Python callable over drawn instances of an op, and judge its results as those of a backend.

    The callable gets the operands by position, in the order of the op's inputs in the specification.  An optional
    operand that is absent is None; a variadic input, or a sequence, is one list.  It gets every attribute as a keyword
    of its name in the specification: as given, else with its default, else None.  An attribute that names an element
    type is a NumPy dtype.

    The callable returns one array, or a tuple with one array for each output.  Outputs after the last one that the
    instance asks for are ignored.  Results may be NumPy arrays, or anything that supports DLPack.

    An exception, a wrong shape or a wrong element type is a failure of the kernel.  NotImplementedError says that it
    does not claim the instance.  Instances with a graph as attribute or with quantised operands are not asked.

    op: "onnx/Softmax-13"; without a version the newest.
    dtypes: element types of the first operand, such as "f32"; None: all that are drawn.  Each gets ``cases`` instances.
    device: where the operands live: None for NumPy arrays, "torch", "torch:cuda:0", "jax", "cupy:1", or a callable that
        makes an operand of a NumPy array.
    seed: of the instances.
    opset: None: the newest of the op version.
    invalid: also draw instances that break a rule, which the callable must refuse.
    acc, flushes: what the kernel's arithmetic does, as for a backend (``docs/backends.md``).
    seconds: time to make failures small.
    instance: judge this one alone, an ``Instance`` or its JSON.
    isolate: run the callable in a forked process, so that a crash or a hang is a failure and not the end.  What it
        writes to variables then stays in that process.  Default: on Linux, if ``device`` is None or torch's CPU.
    deadline: seconds for one call in that process.

    Returns the counts.  Raises NonConformance (an AssertionError) that shows the smallest failing instances, and
    UsageError for an op or a type that does not exist, or if no instance was judged.
    """
    __tracebackhide__ = True  # pytest shows the text alone
    version = find(op)
    name = getattr(kernel, "__name__", type(kernel).__name__)
    info = BackendInfo(f"kernel {name}", formats=(version.dialect.format,), acc=dict(acc or {}), flushes=tuple(flushes))
    for d in (*dtypes, *info.acc, *info.acc.values(), *flushes):
        if d not in BY_NAME:
            raise UsageError(f"element type {d!r}: expected one of {' '.join(BY_NAME)}")
    ledger = load_ledger(backends=[info])
    give = giver(device)
    isolated = Isolated(kernel, give, deadline) if (safe(device) if isolate is None else isolate) else None
    asked = _Asked(version, isolated or partial(_here, kernel, give), info, ledger, seconds, deadline)
    if instance is not None:
        drawn: Iterator[Case] = iter([_given(version, instance)])
    else:
        at = _opset(version, opset)
        wanted: Sequence[str | None] = tuple(dict.fromkeys(dtypes)) or (None,)
        drawn = (c for d in wanted for c in _drawn(version, at, d, cases, seed, invalid))
    try:
        found = asked.judge(drawn, name)
    finally:
        if isolated is not None:
            isolated.close()
    if found.failures:
        raise NonConformance(found)
    if not any(found.verdicts[v.value] for v in Verdict if v.judged or v is Verdict.UNINFORMATIVE):
        raise UsageError(f"no instance was judged: {found}" + asked.why())
    return found


def _here(kernel: Callable[..., Any], give: Any, call: Call) -> Outcome:
    return called(kernel, call, give)


@dataclass
class _Asked:
    """A kernel with all that its answers are judged by."""

    version: OpVersion
    ask: Callable[[Call], Outcome]
    info: BackendInfo
    ledger: Ledger
    seconds: float
    deadline: float
    gaps: Counter[str] = field(default_factory=Counter)

    def result(self, case: Case) -> Result:
        """The verdict on one case."""
        with quiet:
            return judge_case(case, self.info, outcomes(case, self.ask), self.ledger)

    def judge(self, cases: Iterator[Case], name: str) -> Conformance:
        """Verdicts on all cases; the first failures of different kinds are made small.  After ``HANGS`` hangs the rest
        is not asked."""
        found = Conformance(self.version.key, name)
        first: dict[Any, Result] = {}
        for case in cases:
            r = self.result(case)
            found.verdicts[r.verdict.value] += 1
            if r.verdict is Verdict.UNSUPPORTED:
                self.gaps[r.outcome.message] += 1
            if r.verdict.bad or r.verdict is Verdict.UNKNOWN:
                first.setdefault(r.signature, r)
            if found.verdicts[Verdict.TIMED_OUT.value] == HANGS:
                break
        for r in list(first.values())[:SHOWN]:
            small = self.smallest(r, self.seconds / min(SHOWN, len(first)))
            found.failures.append(self.text(small))
        if found.verdicts[Verdict.TIMED_OUT.value] == HANGS:
            found.failures.append(f"the rest was not asked after {HANGS} hangs")
        if len(first) > SHOWN:
            found.failures.append(f"{len(first) - SHOWN} more kinds of failure")
        return found

    def smallest(self, result: Result, seconds: float) -> Result:
        """The same failure on a smaller instance, or the same result."""
        case, found = result.case, dict[str, Result]()

        def fails(inst: Instance) -> bool:
            candidate = fill(case.version, inst)
            if candidate.problem or (inst.rule is None) != (case.inst.rule is None):
                return False
            if candidate.dtype_name != case.dtype_name or (complete(case) and not complete(candidate)):
                return False
            got = self.result(candidate)
            if got.signature != result.signature:
                return False
            found[inst.dumps()] = got
            return True

        hangs = result.verdict is Verdict.TIMED_OUT and 4 * self.deadline > seconds
        if not result.verdict.bad or hangs:  # to make a hang small takes a deadline for each step
            return result
        small = minimize(case.version, case.inst, fails, Budget(seconds=seconds))
        return found.get(small.dumps(), result)

    def text(self, result: Result) -> str:
        """A failure in words, with the call that runs it again."""
        told = result.case.inst.dumps()
        op, _, v = self.version.key.rpartition("/")
        again = f"check({op + '-' + v!r}, ..., instance={told!r})" if len(told) <= LONG else ""
        rec = record(result, {result.backend: result.verdict.value}, replay=again)
        lines = paragraph(rec).split("\n")
        return "\n".join(line for line in lines if not line.startswith("  votes: "))  # nobody else was asked

    def why(self) -> str:
        """The commonest reason for which an instance was not judged."""
        return f"; {self.gaps.most_common(1)[0][0]}" if self.gaps else ""


def find(op: str) -> OpVersion:
    """The op version that "onnx/Softmax-13", "onnx/Softmax/13" or "onnx/Softmax" (the newest) names.  Raises
    UsageError."""
    name, slash, rest = op.partition("/")
    if not slash:
        raise UsageError(f"op {op!r}: expected DIALECT/OP-VERSION, such as onnx/Softmax-13")
    dialect = registry.dialect(name)
    for mark in ("/", "-"):
        base, cut, version = rest.rpartition(mark)
        found = dialect.versions.get(f"{name}/{base}/{version}") if cut else None
        if found is not None:
            return found
    same = [v for v in dialect.versions.values() if v.op == rest]
    if same:
        return max(same, key=lambda v: dialect.order(v.version))
    known = [f"{v.op}-{v.version}" for v in dialect.versions.values()]
    raise UsageError(f"no op version {op!r}{registry.near(rest, known)}")


def _opset(version: OpVersion, opset: Any) -> Any:
    if opset is None:
        return version.opsets[-1]
    if opset not in version.opsets:
        known = ", ".join(map(str, version.opsets))
        raise UsageError(f"{version.key}: expected an opset among {known}, got {opset!r}")
    return opset


def _given(version: OpVersion, instance: Instance | str) -> Case:
    """The case of an instance that the caller has."""
    if isinstance(instance, str):
        try:
            instance = Instance.from_json(json.loads(instance))
        except ValueError as e:
            raise FormatError(f"instance: not JSON: {e}") from None
    if instance.key != version.key:
        raise UsageError(f"instance: expected one of {version.key}, got {instance.key}")
    case = fill(version, instance)
    if case.problem:
        raise UsageError(f"{version.key}: {case.problem}")
    return case


def _drawn(version: OpVersion, opset: Any, dtype: str | None, cases: int, seed: int, invalid: bool) -> Iterator[Case]:
    """So many cases of an element type.  Raises UsageError where none is drawn."""
    left, seen = cases, set[str]()
    for index in range(TRIES * cases):
        case = draw_case(version, opset, seed, index, invalid=invalid, lazy=True)
        seen.add(case.dtype_name)
        if case.problem or dtype not in (None, case.dtype_name):
            continue
        _ = case.expected or case.draws
        if case.problem:
            continue
        yield case
        left -= 1
        if not left:
            return
    if left == cases:
        raise UsageError(f"{version.key}: drew no instance of {dtype}; there are {' '.join(sorted(seen))}")
