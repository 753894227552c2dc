"""A case: an instance with its data and what the reference expects of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.cases.reruns import args_of, at_run, fixed, other_extents, up_to
from harness.core.dtypes import DType, of
from harness.core.errors import RuleError
from harness.core.instance import Arg, Instance
from harness.core.limits import bounded, timed
from harness.core.quiet import quiet
from harness.declare import Expected, OpVersion
from harness.declare.invalid import draw_invalid, invalid_generators_of
from harness.declare.validation import evaluated
from harness.generate.draw_engines import InTurn, Prng, case_seed
from harness.generate.recipes import materialize

INVALID_EVERY = 8  # one case in so many breaks a rule


@dataclass(slots=True)
class Case:
    """An instance with its data and the expected result.  Both are made when first asked for.

    index: number of the case in its op version.
    count: how many data draws are wanted.
    problem: how the reference or the generator failed, in words; known once ``draws`` or ``expected`` was asked for.
    drawn: a generator made it, nobody asked for it.  Then a problem of one of its runs is told of that run alone
        (``at``), where that run shows it.
    """

    version: OpVersion
    inst: Instance
    index: int
    count: int = 1
    problem: str = ""
    drawn: bool = False
    _draws: list[dict[str, Any]] | None = None
    _expected: tuple[list[list[Expected]] | None] | None = None
    _underspecified: list[str | None] | None = None
    _types: tuple[Any, ...] | None = None
    _dtype: str | None = None

    @property
    def draws(self) -> list[dict[str, Any]]:
        """One {slot: array} per data draw, constants the same in all; [] when the data could not be made."""
        if self._draws is None:
            self._draws = self._fill() if not self.problem else []
        return self._draws

    @property
    def evaluated(self) -> bool:
        """Has the reference been asked?"""
        return self._expected is not None

    @property
    def expected(self) -> list[list[Expected]] | None:
        """One list of outputs per draw; None for an invalid instance or when the reference failed."""
        if self._expected is None:
            self._expected = (self._evaluate() if self.inst.rule is None and self.draws else None,)
        return self._expected[0]

    def _fill(self) -> list[dict[str, Any]]:
        inst = self.inst
        try:
            first: dict[str, Any] = {}
            for k, a in inst.args.items():
                first[k] = materialize(a) if type(a) is Arg else _arrays(a, 0)
            if inst.rule is not None or (self.count == 1 and not inst.reruns):
                return [first]
            if inst.reruns:
                later = [args_of(inst, r) for r in range(1, max(self.count, 1 + len(inst.reruns)))]
                return [
                    first,
                    *({k: first[k] if a is inst.args[k] else _arrays(a, 0) for k, a in args.items()} for args in later),
                ]
            again = range(1, self.count if varies(inst) else 1)
            return [first, *({k: first[k] if fixed(a) else _arrays(a, r) for k, a in inst.args.items()} for r in again)]
        except MemoryError as e:
            self.problem = f"data: more than this machine can hold: {e}"
        except Exception as e:
            self.problem = f"data: {type(e).__name__}: {e}"
        return []

    def set_data(self, draws: list[dict[str, Any]], expected: list[list[Expected]] | None = None) -> None:
        """Take data that is at hand, and what the reference says of it, so that neither is made again."""
        self._draws = draws
        self._expected = None if expected is None else (expected,)

    def release(self) -> None:
        """Let go of the data and of what the reference says of it, where both can be made again."""
        if self.drawn and not self.problem:
            self._draws = self._expected = self._underspecified = None

    def hold(self) -> None:
        """Evaluates what no generator drew.  Raises OpconformError where it breaks a rule after all, or the reference
        cannot evaluate it."""
        v, inst = self.version, self.inst
        with quiet, bounded(), timed:
            if inst.rule is None and self.draws:
                self._expected = ([evaluated(v.dialect.call_of(inst, arrays, v)) for arrays in self.draws],)

    def at(self, run: int) -> Case:
        """The case that has one of the runs as its only one."""
        case = Case(self.version, at_run(self.inst, run), self.index, 1, self.problem)
        if self._draws:
            case._draws = [self._draws[min(run, len(self._draws) - 1)]]
        if self._expected is not None and self._expected[0]:
            rows = self._expected[0]
            case._expected = ([rows[min(run, len(rows) - 1)]],)
        return case

    def up_to(self, run: int) -> Case:
        """The case of all runs to this one, as one request."""
        return Case(self.version, up_to(self.inst, run), self.index)

    def _evaluate(self) -> list[list[Expected]] | None:
        v, inst = self.version, self.inst
        try:
            with quiet, timed:  # NaN and infinities are what is drawn
                return [v.evaluate(v.dialect.call_of(inst, arrays, v)) for arrays in self.draws]
        except RuleError as e:
            late = e.rule == "fits-time"
            self.problem = f"reference: {e}" if late else f"reference refuses a valid instance: {e}"
        except Exception as e:
            self.problem = f"reference: {type(e).__name__}: {e}"
        return None

    @property
    def underspecified(self) -> list[str | None]:
        """Of every data draw, what the spec leaves open (``harness.tolerance.underspecified``); found when first
        asked for, since few cases need an excuse.  A predicate that fails leaves its words in ``problem``."""
        if self._underspecified is None:
            found: list[str | None] = []
            try:
                with quiet, timed:
                    v = self.version
                    for arrays in self.draws if self.expected is not None else ():
                        found.append(v.underspecified(v.dialect.call_of(self.inst, arrays, v)))
            except Exception as e:
                self.problem = f"ambiguity: {type(e).__name__}: {e}"
            self._underspecified = found
        return self._underspecified

    @property
    def size(self) -> int:
        """Elements of the expected results, over all runs."""
        rows = self.expected or ()
        if len(rows) == 1 and len(rows[0]) == 1:  # as most are
            return int(getattr(rows[0][0].value, "size", 1))
        return sum([getattr(e.value, "size", 1) for row in rows for e in row])

    @property
    def ambiguous(self) -> str | None:
        """Why the spec gives no single answer on some of the data."""
        return next((why for why in self.underspecified if why is not None), None)

    @property
    def dtype(self) -> DType | None:
        return dtype_of(self.inst, self.version)

    @property
    def dtype_name(self) -> str:
        """What the case is counted under."""
        if self._dtype is None:
            found = dtype_of(self.inst, self.version)
            self._dtype = found.name if found is not None else "None"
        return self._dtype

    @property
    def types(self) -> tuple[Any, ...]:
        """Op version, the types that attributes name or have, and those of the arguments: what a backend's
        learned_support are learned by."""
        if self._types is None:
            types: list[Any] = [self.version.key]
            for x in self.inst.attrs.values():
                if isinstance(x, (DType, np.ndarray)):
                    types.append(of(x) if isinstance(x, np.ndarray) else x)
            for a in self.inst.args.values():
                one: Any = a
                if type(one) is list:
                    one = one[0] if one else None
                types.append(None if one is None else one.dtype)
            self._types = tuple(types)
        return self._types


def dtype_of(inst: Instance, version: OpVersion) -> DType | None:
    """The type a case is counted under: that of the first slot that is given, in the order of the schema (a saved
    instance has lost the order of drawing)."""
    for slot in version.schema.inputs:
        one: Any = inst.args.get(slot.name)
        while isinstance(one, list):
            one = one[0] if one else None
        if one is not None:
            while one.items:
                one = one.items[0]
            found: DType = one.dtype
            return found
    return None


def draw_case(
    v: OpVersion, opset: Any, seed: int, index: int, draws: int = 1, invalid: bool = True, lazy: bool = False
) -> Case:
    """Case ``index`` of an op version in the run with ``seed``; lazy: without its data and the reference's answer,
    which come when asked for."""
    start = case_seed(seed, v.key, index)
    engine = Prng(start)
    if v.in_turn:
        engine = InTurn(engine, case_seed(seed, v.key, 0), index - index // INVALID_EVERY)
    inst = None
    if invalid and index % INVALID_EVERY == INVALID_EVERY - 1:
        rules = list(invalid_generators_of(v))
        if rules:
            rule = rules[index // INVALID_EVERY % len(rules)]
            try:
                inst = draw_invalid(v, rule, engine, opset)
            except Exception as e:  # one that cannot break this draw returns None, and a valid case is drawn below
                return Case(v, _empty(v, opset), index, draws, f"generator of {rule}: {type(e).__name__}: {e}")
            if inst is None:
                engine = Prng(start)
    if inst is None:
        try:
            inst = v.draw(engine, opset)
        except Exception as e:
            return Case(v, _empty(v, opset), index, draws, f"generator: {type(e).__name__}: {e}")
    inst.choices = engine.choices
    if inst.rule is None and v.dialect.reruns(inst, index):
        other = other_extents(v, inst, start)
        inst.reruns = () if other is None else (other,)
    case = Case(v, inst, index, draws, drawn=True)
    if inst.evaluated is not None:
        arrays, expected = inst.evaluated
        inst.evaluated = None
        if inst.rule is None and draws == 1 and not inst.reruns:
            case.set_data([arrays], [expected])
    if not lazy:
        _ = case.expected or case.draws
    return case


def _empty(v: OpVersion, opset: Any) -> Instance:
    return Instance(v.dialect.name, v.op, v.version, opset)


def fill(v: OpVersion, inst: Instance, index: int = 0, draws: int = 1) -> Case:
    """The case of an instance: its arrays, and the reference's answer for each data draw."""
    case = Case(v, inst, index, draws)
    _ = case.expected or case.draws
    return case


def _arrays(a: Arg | list[Arg], draw: int) -> Any:
    if isinstance(a, list):
        return [materialize(x, 0 if fixed(x) else draw) for x in a]
    return materialize(a, draw)


def varies(inst: Instance) -> bool:
    return any(not fixed(a) for a in inst.args.values())
