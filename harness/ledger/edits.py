"""Programs that a backend computes in place of the one that it was given: models of defects that follow one another.

A defect of a program's fusion is often an edit: the backend computes another program.  Two such defects may meet in one
program, and the answer is then that of the program with both edits, which neither model gives alone.  So a model says
what the edited program is, and another model may go on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.cases.given import Given
from harness.core.instance import Graph
from harness.declare import Expected

DEEPEST = 3  # models that follow one another


Model = Callable[[Given], Any]
Finish = Callable[[Sequence[Any]], Sequence[Any]]


class Near(NamedTuple):
    """An output that is known but for an absolute error.  other: what an element may be as well, an array."""

    value: Any
    within: Any
    other: Any = None


class Edited(NamedTuple):
    """The instance that the backend computes in place of the one that it was given.

    finish: from the outputs of that instance, each as a model gives them, to the outputs of the instance given.
    """

    given: Given
    finish: Finish

    def outputs(self) -> Sequence[Any]:
        """What the model says where nothing follows it."""
        return self.finish(self.given.expected)


def edited(
    g: Given,
    program: Graph,
    finish: Finish = lambda row: row,
    inputs: Mapping[str, Any] | None = None,
) -> Edited | None:
    """What a model returns where the backend computes another program; None where that one breaks a rule.

    inputs: those of the edited program, where they are others.
    """
    given = g.changed({"program": program}, inputs)
    return None if given is None else Edited(given, finish)


def near(item: Any) -> Near | None:
    """An output that a model gives as an array and how far it may be off; None where it gives no such thing."""
    if isinstance(item, Expected):
        return Near(item.value, item.error.bound(item.context()))
    return item if isinstance(item, Near) else None


def each_or_right(row: Sequence[Any]) -> list[Any]:
    """``finish`` of an edit that the backend makes for some elements alone: floats are right or near those of the
    edited program."""
    return [near(x) if isinstance(x, Expected) and x.value.dtype.kind == "f" else x for x in row]


class _Step(NamedTuple):
    """A program after some edits: the models that made them, and how to come back from its outputs."""

    given: Given
    models: tuple[tuple[Any, Model], ...]
    finishes: tuple[Finish, ...]

    def by(self, whose: Any, model: Model, edit: Edited) -> _Step:
        """The step after another edit."""
        return _Step(edit.given, (*self.models, (whose, model)), (*self.finishes, edit.finish))

    def back(self, row: Sequence[Any]) -> Sequence[Any]:
        """Of outputs of the edited program, None for a right one, those of the program given."""
        row = [e if x is None else x for e, x in zip(self.given.expected, row, strict=True)]
        for finish in reversed(self.finishes):
            row = list(finish(row))
        return row


def followed(
    models: Sequence[tuple[Any, Model]], g: Given, outputs_of: Callable[[Model, Given], Sequence[Any] | None]
) -> Iterator[tuple[list[Any], Sequence[Any]]]:
    """Outputs that follow from two or more of these models, of which all but the last edit the program.

    models: each with what it belongs to.  Gives what those belong to that made the outputs, and the outputs; two models
    before three.  A model that fails on a program which another has edited says nothing.
    """
    steps = [_Step(g, (), ())]
    for _ in range(DEEPEST):
        later: list[_Step] = []
        for step in steps:
            for whose, model in models:
                if any(model is m for _, m in step.models):
                    continue
                try:
                    said = model(step.given)
                    row = said.outputs() if isinstance(said, Edited) else outputs_of(model, step.given)
                    found = step.back(row) if step.models and row is not None else None
                except Exception:  # the model is written for programs as they are given
                    continue
                if found is not None:
                    yield [w for w, _ in step.models] + [whose], found
                if isinstance(said, Edited):
                    later.append(step.by(whose, model, said))
        steps = later
