"""Looks for the cause of a program's difference in its nodes, before the program is blamed.

An instance may be a program of ops of another dialect (``Dialect.unfold``).  If a backend differs on it, each node runs
alone on that backend and is judged as an instance of its op.  Its inputs are the values that the earlier nodes gave on
the backend.  If the program equals what its nodes give, within the error of each, the nodes decide.  The program is
right if all nodes are right.  A known difference or an ambiguity of a node explains the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness.cases.case import Case
from harness.cases.given import Given
from harness.cases.result import Result
from harness.compare import judge
from harness.core.errors import OpconformError, RuleError
from harness.core.instance import Instance
from harness.core.outcome import Outcome, Status, TypeOnly, Verdict
from harness.core.quiet import quiet
from harness.declare import Expected, registry
from harness.declare.interpreter import Unfolded
from harness.declare.validation import misfit_of_call
from harness.engine.requery import hanging, job_of
from harness.engine.verdict import judge_case
from harness.evidence.nodes import (
    DEFAULT,
    Nodes,
    Query,
    all_constant,
    at_run_time,
    fitted,
    of_inferred_shape,
    other_forms,
    same,
)
from harness.ledger.defect_models import overwritten
from harness.ledger.ledger import Ledger
from harness.workers.info import BackendInfo
from harness.workers.pool import BackendHandle

_EXPLAINED = (Verdict.KNOWN, Verdict.AMBIGUOUS)
_RIGHT = (Verdict.AGREE, Verdict.UNINFORMATIVE)


class Attribution:
    """The verdict on a program after its nodes were asked one by one.

    handle: gives a second handle of a backend by name.  ledger: listed differences of single ops."""

    def __init__(self, handle: Callable[[str], BackendHandle], ledger: Ledger | None = None) -> None:
        self.handle, self.ledger = handle, ledger

    def __call__(self, result: Result, info: BackendInfo) -> Result:
        """The result itself where the instance is no program, or where its nodes explain nothing."""
        case = result.case
        if not result.verdict.bad or result.asked is not None or case.inst.rule is not None or not case.draws:
            return result
        program = case.version.dialect.unfold(case.inst, case.draws[min(result.draw, len(case.draws) - 1)])
        if program is None:
            return result
        try:
            with quiet:
                found = self._ask(program, result, info)
                told = self._settle(program, result, found, info)
                if told is result and found.folded:  # the backend itself may compute constants, too
                    found = self._ask(program, result, info, Query(folds=False))
                    told = self._settle(program, result, found, info)
                wrong = result.verdict is Verdict.MISMATCH
                if told is result and found.loads and found.end is None and wrong:
                    asked = self._ask(program, result, info, Query(loaded=True))
                    told = self._settle(program, result, asked, info)
                if told is result and found.told and wrong:
                    asked = self._ask(program, result, info, Query(tests=True))
                    told = self._settle(program, result, asked, info) if asked.undefined else told
                left = None if found.told or found.end is not None else self._left_to(result, info)
                if left is not None:
                    found = self._ask(program, result, left)
                    if not any(_types(r) for r in found.told):
                        return result
                    told = self._settle(program, result, found, info)
                return self._inside(result, info) if told is result else told
        except OpconformError:  # a node that the reference declines on what came before it
            return result
        except Exception as e:  # our own defect: no verdict, and the record says why
            failed = Outcome(Status.HARNESS_ERROR, result.outcome.outputs, "judge", f"nodes: {type(e).__name__}: {e}")
            return replace(result, verdict=Verdict.UNKNOWN, outcome=failed, judgement=None)

    def _inside(self, result: Result, info: BackendInfo) -> Result:
        """The verdict on a wrong program, if a listed difference gives the answers of some of its nodes.

        The other nodes are asked what follows from those.
        """
        if self.ledger is None or result.verdict is not Verdict.MISMATCH:
            return result
        case = result.case
        arrays = case.draws[min(result.draw, len(case.draws) - 1)]
        for entry, per_node in self.ledger.per_node(result, info):
            told = replace(result, verdict=Verdict.KNOWN, known=entry.id)
            program = overwritten(case.inst, arrays, {})
            found = self._ask(program, result, info, Query(told=told, per_node=per_node))
            if found.over:
                fixed = found.fixed | {n: (x, np.zeros(x.shape)) for n, x in found.over.items()}
                program = overwritten(case.inst, arrays, found.over)
                found = replace(self._ask(program, result, info, Query(told=told, fixed=fixed)), fixed=fixed)
            settled = self._settle(program, result, found, info) if found.fixed else result
            if settled is not result:
                self.ledger.met(entry.id)
                return settled
        return result

    def _ask(self, program: Unfolded, result: Result, info: BackendInfo, query: Query = DEFAULT) -> Nodes:
        """The answers of the nodes."""
        nodes = Nodes(dict(program.values), told=[query.told] if query.told is not None else [])
        for k, names in enumerate(program.names):
            if query.fixed and query.fixed.keys() >= set(names):
                nodes.take({n: query.fixed[n] for n in names})
                continue
            if nodes.undefined and nodes.undefined.intersection(program.reads(k)):
                nodes.undefined.update(names)
                continue
            inst, at_load = program.node(k, nodes.scope), program.at_load(k, nodes.scope)
            nodes.loads |= inst != at_load
            inst = at_load if query.loaded else inst
            one = Case(registry.version_of(inst), inst, result.case.index)
            try:
                one.hold()
                if nodes.told:
                    _check_types(one)
            except OpconformError:
                if not nodes.told:
                    raise
                if result.verdict is not Verdict.MISMATCH:
                    nodes.end = nodes.told[0]  # what a listed difference gave is nothing that the next op takes
                    return nodes
                nodes.undefined.update(names)
                continue
            damage = self._damage(one, info)
            if damage is not None:
                nodes.end = replace(result, verdict=Verdict.KNOWN, known=damage)
                return nodes
            answer = None if query.per_node is None else query.per_node.node(k, Given(one, 0))
            if answer is not None:
                nodes.over.update(answer.over)
                nodes.fixed.update(zip(names, answer.row))
                nodes.take(dict(zip(names, answer.row)))
                continue
            got = self._answer(one, at_load, result, info, query, nodes)
            if got is not None and got.verdict is Verdict.UNKNOWN:
                nodes.end = result
                return nodes
            outputs: Sequence[Any] | None = None
            if got is not None and got.outcome.status is Status.VALUE:
                outputs = got.outcome.outputs or ()
                if any(isinstance(x, TypeOnly) for x in outputs):  # the next node gets the reference's values
                    outputs = None
                    if result.verdict is not Verdict.MISMATCH and got.verdict is Verdict.KNOWN:
                        assert one.expected is not None
                        outputs = [
                            of_inferred_shape(x, e.value) for x, e in zip(got.outcome.outputs or (), one.expected[0])
                        ]
                if got.verdict in _EXPLAINED:
                    nodes.told.append(got)
                    if query.tests and self._only_tested(got, info):
                        nodes.undefined.update(names)
                        continue
                elif got.verdict not in _RIGHT:  # not listed: the minimiser comes down to this node
                    nodes.end = result
                    return nodes
            elif result.verdict is not Verdict.MISMATCH and got is not None:
                wrong = (nodes.mistyped[n] for n in program.reads(k) if n in nodes.mistyped)
                nodes.end = next(wrong, got) if got.verdict is Verdict.WRONGLY_REJECTED else got
                return nodes
            assert one.expected is not None
            row = one.expected[0]
            if outputs is not None and got is not None and got.verdict is Verdict.KNOWN:
                types = [getattr(e.value, "dtype", None) for e in row]
                nodes.mistyped.update(
                    (n, got) for n, x, t in zip(names, outputs, types) if t not in (None, getattr(x, "dtype", t))
                )
            outputs = [e.value for e in row] if outputs is None else outputs
            for read in (n for n in program.reads(k) if n in nodes.mistyped):  # its type goes on from node to node
                to = getattr(nodes.scope[read], "dtype", None)
                here = [n for n, x in zip(names, outputs) if to is not None and getattr(x, "dtype", None) == to]
                nodes.mistyped = {**dict.fromkeys(here, nodes.mistyped[read]), **nodes.mistyped}
            nodes.scope.update(zip(names, outputs))
            nodes.given.update(zip(names, outputs))
            nodes.off.update((n, b) for n, e in zip(names, row) if (b := e.off()) is not None)
            self._widen(nodes, names, got, info)
            nodes.take({n: query.fixed[n] for n in names if n in query.fixed})
        return nodes

    def _answer(
        self, one: Case, at_load: Instance, result: Result, info: BackendInfo, query: Query, nodes: Nodes
    ) -> Result | None:
        """The verdict on a node, of the backend that computes it in the program; None where it cannot be a model of its
        own.  at_load: the node with constants for all that a runtime may know when it loads the program."""
        got = self._folded(at_load, result, info) if query.folds else None
        nodes.folded |= got is not None
        got = got or self._one(one, info)
        if result.verdict is Verdict.MISMATCH and (got is None or got.verdict is Verdict.UNSUPPORTED):
            got = self._one(Case(one.version, at_run_time(one.inst), result.case.index), info)
            if got is not None and got.verdict is Verdict.UNSUPPORTED:
                got = self._explained_otherwise(one, info) or got
        if got is not None and got.verdict is Verdict.UNSUPPORTED and info.leaves_to:
            got = self._one(one, self.handle(info.leaves_to).info)
        if result.verdict is not Verdict.MISMATCH and got is not None and got.outcome.status is Status.VALUE:
            got = self._refused_at_load(one, at_load, info) or got
        return got

    def _explained_otherwise(self, one: Case, info: BackendInfo) -> Result | None:
        """The verdict on a node that the backend has no form for alone: in f32 or as a vector of one element, as it
        computes it in a program.  Only where its answer to that is listed."""
        if one.expected is None:
            return None
        for inst, scalars in other_forms(one.inst):
            got = self._one(Case(one.version, inst, one.index), info)
            if got is None or got.verdict not in _EXPLAINED or got.outcome.status is not Status.VALUE:
                continue
            outputs = fitted(got.outcome.outputs or (), [e.value for e in one.expected[0]], scalars)
            if outputs is not None:
                return replace(got, outcome=replace(got.outcome, outputs=outputs))
        return None

    def _damage(self, case: Case, info: BackendInfo) -> str | None:
        """The listed difference by which a node may damage the memory of the process, whatever it answers alone."""
        listed = None if self.ledger is None else self.ledger.listed(case.version.key, info)
        entry = None if listed is None else listed.corrupter(case)
        if entry is None or self.ledger is None:
            return None
        self.ledger.met(entry.id)
        return entry.id

    def _one(self, case: Case, info: BackendInfo) -> Result | None:
        """The verdict on a node; None where it cannot be a model of its own."""
        try:
            job = job_of([case], hanging(self.ledger, info)(case))
        except OpconformError:
            return None
        (answer,) = self.handle(info.name).run([job])
        return judge_case(case, info, [row[0] for row in answer.outcomes][:1], self.ledger)

    def _left_to(self, result: Result, info: BackendInfo) -> BackendInfo | None:
        """If all nodes are right alone: the backend that is asked next, which tells the types that they have in the
        program.
        """
        asks = info.leaves_to and (result.verdict is not Verdict.MISMATCH or _types(result))
        return self.handle(info.leaves_to).info if asks and info.leaves_to else None

    def _folded(self, inst: Instance, result: Result, info: BackendInfo) -> Result | None:
        """The verdict of the backend that computes constants on a node of a wrong program that has no other operand."""
        if info.leaves_to is None or result.verdict is not Verdict.MISMATCH or not all_constant(inst):
            return None
        case = Case(registry.version_of(inst), inst, result.case.index)
        return self._one(case, self.handle(info.leaves_to).info)

    def _refused_at_load(self, case: Case, inst: Instance, info: BackendInfo) -> Result | None:
        """The verdict on a node whose operands the runtime knows when it loads the program, where it refuses them."""
        if inst == case.inst:
            return None
        case = Case(case.version, inst, case.index)
        got = self._one(case, info)
        if got is not None and got.verdict is Verdict.UNSUPPORTED and info.leaves_to and all_constant(inst):
            got = self._one(case, self.handle(info.leaves_to).info)
        refused = got is not None and got.outcome.status is not Status.VALUE and got.verdict is not Verdict.UNSUPPORTED
        return got if refused else None

    def _only_tested(self, got: Result, info: BackendInfo) -> bool:
        """Is an answer listed as whatever passes a test?"""
        entry = self.ledger.by_id.get(got.known or "") if self.ledger is not None else None
        return entry is not None and entry.tests(got, info)

    def _widen(self, nodes: Nodes, names: Sequence[str], got: Result | None, info: BackendInfo) -> None:
        """A listed answer may be off as far as its model says: it is rounded at other numbers than the right one."""
        if self.ledger is None or got is None or got.verdict is not Verdict.KNOWN:
            return
        entry = self.ledger.by_id.get(got.known or "")
        for n, b in zip(names, entry.room(got, info) if entry is not None else ()):
            if b is not None and np.shape(b) == np.shape(nodes.given[n]):
                own = nodes.off.get(n)  # of the right answer, which may have another shape
                nodes.off[n] = b if own is None or np.shape(own) != np.shape(b) else np.maximum(own, b)

    def _settle(self, program: Unfolded, result: Result, nodes: Nodes, info: BackendInfo) -> Result:
        if nodes.end is not None:
            refused = result.verdict is not Verdict.MISMATCH or nodes.end.case is result.case
            return _as_node(result, nodes.end) if refused else result
        if result.verdict is not Verdict.MISMATCH:
            return result
        got = list(result.outcome.outputs or ())
        if nodes.told and any(isinstance(x, TypeOnly) for x in got):  # what follows from a wrong type is wrong too
            return _explained(result, nodes.told)
        names = program.outputs
        due = [k for k, o in enumerate(names) if o not in nodes.undefined]  # the others follow from what no op takes
        if len(got) == len(names) and all(same(got[k], nodes.scope[names[k]]) for k in due):
            return _explained(result, nodes.told)
        if (nodes.undefined and len(got) != len(names)) or (program.sums_errors and not nodes.told):
            return result
        expected, answer = _closed(program.expected(nodes.given, nodes.off), got)
        if nodes.undefined:
            expected, answer = [expected[k] for k in due], [answer[k] for k in due]
        judgement = judge(expected, replace(result.outcome, outputs=answer), acc=info.acc, flushes=info.flushes)
        return _explained(result, nodes.told) if judgement.verdict in _RIGHT else result


def _check_types(case: Case) -> None:
    """Raises RuleError where the operands of a node have not the types of its op, which the reference may not ask."""
    v = case.version
    why = misfit_of_call(v.dialect.call_of(case.inst, case.draws[0], v))
    if why is not None:
        raise RuleError("operands-fit", why)


def _types(result: Result) -> bool:
    """Is the answer the types of the outputs?"""
    return any(isinstance(x, TypeOnly) for x in result.outcome.outputs or ())


def _as_node(result: Result, node: Result) -> Result:
    """The verdict on a program that is refused, or that ends the process, as one of its nodes is alone."""
    if node is result or node.verdict.bad:
        return result
    if node.verdict is Verdict.UNSUPPORTED:
        told = f"{node.case.version.key}: {node.outcome.message}"
        outcome = Outcome(Status.UNSUPPORTED, None, result.outcome.phase, told, result.outcome.millis)
        return replace(result, verdict=Verdict.UNSUPPORTED, outcome=outcome, judgement=None)
    if node.verdict in _EXPLAINED:
        return _explained(result, [node])
    return result


def _explained(result: Result, told: Sequence[Result]) -> Result:
    """The program's difference is that of its nodes; that of the first known one, where there are several."""
    if not told:
        return replace(result, verdict=Verdict.AGREE, judgement=None)
    first = next((r for r in told if r.verdict is Verdict.KNOWN), told[0])
    return replace(result, verdict=first.verdict, known=first.known, ambiguity=first.ambiguity)


def _closed(expected: Sequence[Expected], got: Sequence[Any]) -> tuple[list[Expected], list[Any]]:
    """The answer with open elements as the reference has them."""
    answer = list(got)
    for i, (e, a) in enumerate(zip(expected, got)):
        if e.open is not None and isinstance(a, np.ndarray) and a.shape == e.open.shape and a.dtype == e.value.dtype:
            answer[i] = np.where(e.open, e.value, a).astype(a.dtype)
    return list(expected), answer
