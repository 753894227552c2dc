"""Makes a failing instance smaller while the same failure stays.

First constants are written in the usual way, then the recorded choices (structure) shrink, then the elements (data).
``fails(instance)`` returns whether a candidate still fails in the same way; nothing else is known about the backend.
Choices that are lowered give valid instances by construction.  Any other candidate must bind to the signature, keep the
stated rules, and keep what all draws of its kind have in common (``invariants``).  A program loses nodes and outputs in
place of choices.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.cases.reruns import args_of, at_run
from harness.core.instance import Arg, Graph, Instance
from harness.declare import OpVersion
from harness.declare.interpreter import Unfolded
from harness.evidence.budget import Budget, Fails, as_list
from harness.evidence.invariants import Invariants
from harness.evidence.shrink.axes import crop, shorten
from harness.evidence.shrink.choices import shrink_choices
from harness.evidence.shrink.values import shrink_data
from harness.generate.recipes import arrays_of, materialize


def minimize(version: OpVersion, inst: Instance, fails: Fails, budget: Budget | None = None) -> Instance:
    """The smallest instance found that still fails; ``inst`` itself if nothing smaller does."""
    budget = budget or Budget()
    tried: set[str] = set()

    def check(candidate: Instance | None) -> bool:
        if candidate is None or budget.spent():
            return False
        text = candidate.dumps()
        if text in tried:
            return False
        tried.add(text)
        budget.used += 1
        try:
            return fails(candidate)
        except Exception:  # a candidate that cannot be drawn, built or judged is no smaller failure
            return False

    program = _program(version, inst)
    if program is not None and next(program.smaller(), None) is not None:
        return shrink_data(_fewer_nodes(version, inst, check, budget), check, budget)
    best = _fewer_runs(inst, check)
    plain = _usual(best)
    tidy = plain is not best and check(plain)
    if tidy:
        best = plain
    if best.choices is not None and not best.reruns:
        best = shrink_choices(version, best, check, budget, _usual if tidy else _as_drawn)
    if not tidy:
        best = _usual_one_by_one(best, check)
    if best.rule is None:
        known = Invariants(version, best)

        def valid(candidate: Instance) -> bool:
            return known.kept(candidate) and validates(version, candidate) and check(candidate)

        best = shrink_data(best, valid, budget)
        cropped = best if _declares_shapes(best) or best.reruns else crop(best, valid, budget)
        if cropped is not best:
            best = shrink_data(cropped, valid, budget)
        if not _declares_shapes(best) and not best.reruns:
            best = shorten(best, valid, budget)
    return best


def _program(version: OpVersion, inst: Instance) -> Unfolded | None:
    """The nodes of an instance that is a program."""
    if inst.rule is not None or inst.reruns:
        return None
    return version.dialect.unfold(inst, arrays_of(inst))


def _fewer_nodes(version: OpVersion, best: Instance, check: Fails, budget: Budget) -> Instance:
    """The program with the fewest nodes and outputs found.  ``check`` judges the reference's answer anew, which shows
    whether what is left still obeys the rules of its ops."""
    improved = True
    while improved and not budget.spent():
        program, improved = _program(version, best), False
        for candidate in program.smaller() if program is not None else ():
            if check(candidate):
                best, improved = candidate, True
                break
            if budget.spent():
                break
    return best


def _fewer_runs(inst: Instance, check: Fails) -> Instance:
    """One of its runs alone, else the instance without the first runs that nothing depends on."""
    for r in range(1 + len(inst.reruns) if inst.reruns else 0):
        if check(at_run(inst, r)):
            return at_run(inst, r)
    best = inst
    while len(best.reruns) > 1:
        second = at_run(best, 1)
        rest = tuple(
            {s: a for s, a in args_of(best, r).items() if a != second.args.get(s)}
            for r in range(2, 1 + len(best.reruns))
        )
        candidate = replace(second, reruns=rest, choices=None)
        if not check(candidate):
            break
        best = candidate
    return best


def _as_drawn(inst: Instance) -> Instance:
    return inst


def _usual(inst: Instance, only: tuple[str, int] | None = None) -> Instance:
    """The instance with constants (``only``: the one in a slot, at an index) encoded in the usual way; itself where
    they are."""

    def plain(slot: str, k: int, a: Arg) -> Arg:
        return replace(a, encoding="") if a.encoding and only in (None, (slot, k)) else a

    if not any(a.encoding for given in inst.args.values() for a in as_list(given)):
        return inst
    args: dict[str, Any] = {}
    for slot, given in inst.args.items():
        new = [plain(slot, k, a) for k, a in enumerate(as_list(given))]
        args[slot] = new if isinstance(given, list) else new[0]
    return replace(inst, args=args)


def _usual_one_by_one(best: Instance, check: Fails) -> Instance:
    """Constants that need no encoding of their own have none."""
    odd = [(s, k) for s, given in best.args.items() for k, a in enumerate(as_list(given)) if a.encoding]
    for at in odd if len(odd) > 1 else ():
        candidate = _usual(best, at)
        if check(candidate):
            best = candidate
    return best


def _declares_shapes(inst: Instance) -> bool:
    """Do attributes state shapes of operands or results?  Outputs that the model declares, and the parameters of
    blocks; a cut operand would no longer be what they say."""
    return any(
        n == "@outputs" or type(v) is Graph or (type(v) is list and v and type(v[0]) is Graph)
        for n, v in inst.attrs.items()
    )


def validates(version: OpVersion, inst: Instance) -> bool:
    """Do the shapes still bind to the signature, and the stated rules hold?"""
    m = version.meaning
    if m is None or version.entry.evaluation is not None:
        return True
    try:
        arrays = {
            k: [materialize(x) for x in a] if isinstance(a, list) else materialize(a) for k, a in inst.args.items()
        }
        tensors, params = version.decode(version.dialect.call_of(inst, arrays))
        m.check_rules(m.bind(tensors, params))
    except Exception:  # whatever the reason, it is no valid instance
        return False
    return True
