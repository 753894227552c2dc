"""A frozen instance: a drawn case with its model and the rules of its outputs, before it becomes files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol

from harness.cases.case import Case
from harness.core.outcome import Model
from harness.declare import Expected, gathered
from harness.engine.batching import build, feed
from harness.ledger.ledger import Ledger
from harness.packs.bounds import Rule, rule_of
from harness.workers.info import BackendInfo

NOBODY = BackendInfo("pack")  # a backend of which nothing is known


class LeftOut(Exception):
    """Why a form cannot say an instance."""


@dataclass
class Frozen:
    """inputs[r]: name in the model -> value in run r.  outputs[r]: what is expected and its rule; none of an instance
    that breaks a rule."""

    id: str
    case: Case
    model: Model
    inputs: list[dict[str, Any]]
    outputs: list[list[tuple[Expected, Rule]]]

    @property
    def names(self) -> list[str]:
        """Names of the outputs, "" of one that is skipped."""
        return self.model.outputs[0]

    @property
    def slots(self) -> dict[str, str]:
        """Input of the model -> slot of the op."""
        return {name: slot for name, slot, _ in self.model.inputs[0]}


class Form(Protocol):
    """A form of pack.  name: on the command line.  dialects: that it takes, empty for all."""

    name: str
    dialects: tuple[str, ...]

    def files(self, frozen: Frozen) -> tuple[dict[str, bytes], str, dict[str, Any]]:
        """The files of an instance, the path of its model, and what the manifest says of it beside.  Raises LeftOut."""
        ...

    def rest(self) -> dict[str, bytes]:
        """Files that hold several instances, once all are frozen."""
        ...


def freeze(case: Case, ledger: Ledger) -> Frozen:
    """Build the model of a case, and state the rules of its outputs.  Raises Unsupported where the format has no model
    of it, LeftOut where the reference has no answer."""
    expected = case.expected
    if case.problem or (expected is None and case.inst.rule is None):
        raise LeftOut(case.problem or "the reference has no answer")
    model = build(case.version.dialect, [case])
    runs = max(1, len(case.draws))
    names = [n for n, _, _ in model.inputs[0]]
    inputs = [dict(zip(names, feed(case, model.inputs[0], r), strict=True)) for r in range(runs)]
    outputs: list[list[tuple[Expected, Rule]]] = []
    for r in range(runs if expected is not None else 0):
        assert expected is not None
        why = case.underspecified
        if case.problem:
            raise LeftOut(case.problem)
        listed = ledger.underspecified(case, NOBODY, r)
        call = case.version.dialect.call_of(case.inst, case.draws[r], case.version)
        open_ = gathered(why[r] if r < len(why) else None, listed)
        outputs.append([(e, rule_of(e, call, open_, i)) for i, e in enumerate(expected[r])])
    return Frozen(identity(case), case, model, inputs, outputs)


def identity(case: Case) -> str:
    """A name for files: op, version and number of the draw."""
    _, op, version = case.version.key.split("/")
    return f"{re.sub('[^A-Za-z0-9_.]', '_', op)}-{version}-{case.index:03}"
