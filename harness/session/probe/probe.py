"""Finds by experiment what a backend can claim: it runs small instances of each kind and sees which the backend takes.

An instance is *taken* if the backend returns a value, right or wrong, or if its process dies or hangs: a crash is a
defect and not a gap.  It is not taken if it is rejected or unsupported.  A kind of which nothing is taken is left out
of the claims; the reader of the file decides whether that is a gap or a defect.  Existing claims are not tested.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from harness.cases.case import Case, draw_case
from harness.cases.result import Result, first_words
from harness.cases.wanted import shaped
from harness.core.dtypes import BY_NAME
from harness.core.instance import Arg, Instance
from harness.core.outcome import Status
from harness.declare import OpVersion
from harness.session.probe import arithmetic
from harness.session.probe.experiment import DRAWS, OPS, Experiment, odd, rank_of
from harness.workers.claims import ALL_BUT_FIRST, Claims, tensors_of

ENOUGH = 4  # instances of a kind, of which none is taken, before that counts as a gap
CONSTANTS = Claims(constant=(ALL_BUT_FIRST,))


class Probe(Experiment):
    """One backend.  selection: op versions to ask.  cases: instances of each of them."""

    def run(self, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
        """The attributes that a class, a runner or ``--claims`` takes; ``measured``: what was asked, in sentences."""
        steps = (
            ("opsets", self._opsets),
            ("element types", self._dtypes),
            ("ops", self._ops),
            ("ranks", self._ranks),
            ("empty extents", self._empty),
            ("symbolic extents", self._static),
            ("operands that must be constant", self._constant),
            ("wide integers", partial(arithmetic.int64, self)),
            ("subnormals", partial(arithmetic.flushes, self)),
            ("sums", partial(arithmetic.sums, self)),
            ("invalid models", self._validates),
        )
        for name, step in steps:
            progress(f"probing {name}")
            step()
        return {**self.found, "measured": self.measured}

    # -- asking

    def _takes(self, results: Sequence[Result]) -> int:
        for r in results:
            if not taken(r):
                self.why[first_words(r.outcome.message)] += 1
        return sum(map(taken, results))

    def _of_kind(self, fits: Callable[[Case], object], n: int = 2) -> tuple[int, int]:
        """(how many instances of a kind are taken, how many were asked), for ops of which others are taken.

        An instance counts as taken if it is taken with constants for all operands but the first.
        """
        step, got, of = max(1, len(self.takers) // OPS), 0, 0
        for v in self.takers[::step][:OPS]:
            for c in self.drawn(v, n, fits):
                of += 1
                forms = {x.inst.dumps(): x for x in (c, shaped(c, CONSTANTS))}
                got += any(taken(r) for r in self.results(forms.values()))
        return got, of

    # -- the questions

    def _opsets(self) -> None:
        numbers = sorted({o for v in self.versions for o in v.opsets if isinstance(o, int)})
        if not numbers or self.opset is not None:
            return
        held = []
        for o in numbers:
            there = [v for v in self.versions if o in v.opsets]
            step = max(1, len(there) // 6)
            cases = (draw_case(v, o, 1, i, invalid=False) for v in there[::step][:6] for i in range(2))
            if self._takes(self.results(simple(c) for c in cases)):
                held.append(o)
        self.tell(f"opsets: of {numbers[0]} to {numbers[-1]} it takes {_spans(held) or 'none'}")
        if held:
            self.claims = replace(self.claims, opsets=(held[0], held[-1]))
            self.found["opsets"] = [held[0], held[-1]]

    def _dtypes(self) -> None:
        by: dict[str, list[Case]] = defaultdict(list)
        ops: dict[str, Counter[str]] = defaultdict(Counter)
        for most in (1, ENOUGH):  # of many ops one instance each, of few ops several
            for v in self.versions:
                opsets = self.claims.opsets_of(v.opsets)
                for i in range(DRAWS // 2 if opsets else 0):
                    c = draw_case(v, opsets[-1], 1, i, invalid=False, lazy=True)
                    name = c.dtype_name
                    if name not in BY_NAME or len(by[name]) >= 6 * ENOUGH or ops[name][v.op] >= most or rank_of(c) > 3:
                        continue
                    if any(0 in a.shape for _, a in tensors_of(c.inst)):
                        continue
                    ops[name][v.op] += 1
                    both = {x.inst.dumps(): x for x in (simple(c), simple(shaped(c, CONSTANTS)))}
                    by[name] += both.values()
        told = {name: (self._takes(r), len(r)) for name, some in sorted(by.items()) if (r := self.results(some))}
        held = [name for name, (n, _) in told.items() if n]
        self.tell("element types: " + ", ".join(f"{name} {n} of {of}" for name, (n, of) in told.items()))
        if held:
            self.claims = replace(self.claims, dtypes=frozenset(held))
            self.found["dtypes"] = held

    def _ops(self) -> None:
        refused: dict[str, list[OpVersion]] = defaultdict(list)
        asked: dict[str, list[OpVersion]] = defaultdict(list)
        for v in self.versions:
            fixed = self.claims.both(CONSTANTS)
            drawn = self.drawn(v, self.cases, lambda c: not odd(c)) + self.drawn(v, self.cases, lambda _: True)
            drawn += self.drawn(v, self.cases, lambda c: 0 < rank_of(c) < 4 and len(c.inst.args) > 1, fixed)
            results = self.results({c.inst.dumps(): c for c in map(simple, drawn)}.values())
            if not results:
                continue
            asked[v.op].append(v)
            if self._takes(results):
                self.takers.append(v)
            else:
                refused[v.op].append(v)
        gaps = []
        for op, some in refused.items():
            gaps += [f"{some[0].dialect.name}/{op}"] if len(some) == len(asked[op]) else [v.key for v in some]
        n = sum(map(len, asked.values()))
        self.tell(f"ops: it takes {len(self.takers)} of {n} op versions; {len(refused)} of {len(asked)} ops have gaps")
        for words, many in self.why.most_common(5):
            self.tell(f"  not taken, {many} times: {words or '(no words)'}")
        if gaps:
            self.claims = replace(self.claims, unsupported_ops=tuple(gaps))
            self.found["unsupported_ops"] = sorted(gaps)

    def _ranks(self) -> None:
        told = {}
        for rank in range(9):
            n, of = self._of_kind(partial(_has_rank, rank), n=1)
            if of:
                told[rank] = (n, of)
        self.tell("ranks: " + ", ".join(f"{r}: {n} of {of}" for r, (n, of) in told.items()))
        held = [r for r, (n, _) in told.items() if n]
        beyond = [(n, of) for r, (n, of) in told.items() if held and r > held[-1]]
        if held and sum(of for _, of in beyond) >= ENOUGH:
            self.limit("max_rank", held[-1], max_rank=held[-1])

    def _none(self, what: str, fits: Callable[[Case], object]) -> bool:
        """Is nothing of a kind taken, of enough?"""
        n, of = self._of_kind(fits)
        self.tell(f"{what}: {n} of {of} taken")
        return not n and of >= ENOUGH

    def _empty(self) -> None:
        if self._none("extents of 0", lambda c: any(0 in a.shape for _, a in tensors_of(c.inst))):
            self.limit("empty", False, empty=False)

    def _static(self) -> None:
        fits = lambda c: c.inst.reruns or any(a.dynamic for _, a in tensors_of(c.inst))  # noqa: E731
        if self._none("symbolic extents", fits):
            self.limit("static", True, static=True)

    def _constant(self) -> None:
        """Operands of which only constants are taken, of ops that have several."""
        found, asked = [], 0
        for v in self.takers:
            slots = [s for s in v.schema.inputs[1:] if not s.const and not s.variadic]
            if not slots or len(v.schema.inputs) < 2:
                continue
            drawn = self.drawn(v, 3, lambda c: len(c.inst.args) > 1)
            for s in slots:
                some = [c for c in drawn if isinstance(c.inst.args.get(s.name), Arg)]
                if len(some) < 2:
                    continue
                asked += 1
                at_run, fixed = ([_with(c, s.name, const) for c in some] for const in (False, True))
                if not self._takes(self.results(at_run)) and self._takes(self.results(fixed)):
                    found.append(f"{v.key}:{s.name}")
        self.tell(f"operands: {len(found)} of {asked} must be constant")
        if found:
            self.limit("constant", found, constant=tuple(found))

    def _validates(self) -> None:
        cases: list[Case] = []
        for v in self.takers[:: max(1, len(self.takers) // OPS)][:OPS]:
            opsets = self.claims.opsets_of(v.opsets)
            drawn = (draw_case(v, opsets[-1], 1, i) for i in range(7, 40, 8))
            cases += [c for c in drawn if c.inst.rule is not None][:2]
        results = [r for r in self.results(cases) if r.outcome.status in (Status.VALUE, Status.REJECTED)]
        rejected = sum(r.outcome.status is Status.REJECTED for r in results)
        self.tell(f"invalid models: {rejected} of {len(results)} rejected")
        if len(results) >= ENOUGH and rejected * 2 < len(results):
            self.found["validates"] = False


def taken(result: Result) -> bool:
    """Did the backend take the instance on?  A crash is a defect and no gap."""
    return result.outcome.status in (Status.VALUE, Status.CRASHED, Status.TIMED_OUT)


def simple(case: Case) -> Case:
    """The case with known extents, run once."""
    if case.problem or (not case.inst.reruns and not any(a.dynamic for _, a in tensors_of(case.inst))):
        return case
    args: Any = {s: [_still(a) for a in x] if isinstance(x, list) else _still(x) for s, x in case.inst.args.items()}
    return Case(case.version, replace(case.inst, args=args, reruns=(), choices=None), case.index)


def _still(a: Arg) -> Arg:
    return replace(a, dynamic=())


def _with(case: Case, slot: str, const: bool) -> Case:
    """The case with one operand constant or not, and all others at run time."""
    inst: Instance = simple(case).inst
    args: Any = {
        s: replace(a, const=const if s == slot else a.const and s != slot)
        if isinstance(a, Arg) and a.items is None
        else a
        for s, a in inst.args.items()
    }
    return Case(case.version, replace(inst, args=args, choices=None), case.index)


def _spans(numbers: Sequence[int]) -> str:
    """7 to 13, 15."""
    out: list[list[int]] = []
    for n in numbers:
        if out and out[-1][1] == n - 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in out)


def _has_rank(rank: int, c: Case) -> bool:
    return rank_of(c) == rank and not odd(c)
