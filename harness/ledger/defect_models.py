"""Models of defects: what a backend with a known difference returns, so that the entry excuses no other wrong answer.

The field ``defect_model`` of an entry names a function of ``defects/*.py`` next to the entry's file.  It gets an
instance and the result that the specification expects (``Given``), and returns a list with one item for each output:

* ``None``: the output is right,
* an array: each element is right, or equals this element exactly,
* ``Near(array, within)``: the same, but for an absolute error of at most ``within`` (a number or an array; where it is
  infinite any value may stand, NaN too); ``Near(array, within, other)``: or exactly the element of ``other``,
* an ``Expected`` of ``Given.reevaluate``: the answer is judged as the answer to that other instance,
* ``Turned(expected, how)``: the same, after a function has brought the answer into the order of that instance,
* ``Such(test, shows)``: any array that passes a test, if nothing narrower is possible: its elements were never written,
* ``NOTHING``: no output.

For a program it may return ``PerNode`` instead: a wrong ``NodeAnswer`` for some of its nodes.  The reference computes
the other nodes from those.  If that is not the answer, the backend runs them one by one
(``harness.evidence.attribution``).

It may return ``Edited`` as well (``harness.ledger.edits``): the backend computes another program, of which the models
of other entries may speak in turn.

A function that has no prediction returns None, and the entry does not explain that answer.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harness.cases.case import Case
from harness.cases.given import Given
from harness.cases.result import Result
from harness.compare import judge
from harness.core.dtypes import BY_NAME, of
from harness.core.errors import FormatError, UsageError
from harness.core.instance import SKIPPED, Instance
from harness.core.outcome import TypeOnly, Verdict
from harness.core.quiet import quiet
from harness.declare import Expected, Underspecified, open_at, registry
from harness.declare.interpreter import Unfolded
from harness.ledger.edits import Edited, Near
from harness.workers.info import BackendInfo

FOLDER = "defects"


class Turned(NamedTuple):
    """An output that is judged as another instance's once its elements are in the order of that: how turns them, and
    raises ValueError where they cannot be.  shows: an answer of that kind, where the expected one is none."""

    expected: Expected
    how: Callable[[Any], Any]  # of an array, or of the list of a sequence
    shows: Any = None


class Such(NamedTuple):
    """An output that only a test describes: a function of the array that came.  Its shape is part of the test.

    shows: an answer that passes.
    type_alone: the test looks at no element.  So it also takes an output that was too large to travel, of which only
        the type came.
    """

    test: Callable[[np.ndarray], Any]
    shows: np.ndarray
    type_alone: bool = False


NOTHING = object()


class NodeAnswer(NamedTuple):
    """The wrong answer of one node of a program.

    row: for each of its results an array, and how far the backend's answer may be from it.
    over: name -> array that the nodes behind it read in place of the value that has the name.
    """

    row: list[tuple[np.ndarray, Any]]
    over: Mapping[str, np.ndarray]


class PerNode(NamedTuple):
    """A defect that shows in single nodes of a program.

    node: (number of the node, its instance) -> its answer there; None where it answers as it does alone.
    """

    node: Callable[[int, Given], NodeAnswer | None]


Model = Callable[[Given], "Sequence[Any] | PerNode | Edited | None"]


def taken_for(edit: Mapping[str, Mapping[str, Any]]) -> Model:
    """The model of ``behaves_as``: the answer is right for the instance with other attributes and without some
    operands."""
    return lambda g: g.reevaluate(edit["attrs"], edit["args"])


@cache
def _functions(folder: Path) -> dict[str, Model]:
    """Of all files of a folder, by name."""
    out: dict[str, Model] = {}
    for path in sorted(folder.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"opconform_defects_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        own = {
            n: f
            for n, f in vars(module).items()
            if not n.startswith("_") and callable(f) and getattr(f, "__module__", "") == module.__name__
        }
        if twice := sorted(out.keys() & own.keys()):
            raise FormatError(f"{path}: {twice[0]} is the name of a model in another file already")
        out |= own
    return out


def model(folder: Path, name: str) -> Model:
    """The function of that name in the files of the folder ``defects`` beside those of ``folder``.  Raises FormatError
    where there is none."""
    found = _functions((folder / FOLDER).resolve()).get(name)
    if found is None:
        raise FormatError(f"defect_model {name!r}: expected a function of {FOLDER}/*.py beside the file, got none")
    return found


def overwritten(inst: Instance, arrays: Mapping[str, Any], over: Mapping[str, np.ndarray]) -> Unfolded:
    """The nodes of a program whose inputs are those of ``over`` where it has them."""
    inputs = [over.get(f"p{i}", x) for i, x in enumerate(arrays["inputs"])]
    program = registry.version_of(inst).dialect.unfold(inst, {**arrays, "inputs": inputs})
    if program is None:
        raise UsageError(f"{inst.dialect}/{inst.op}: expected a program, got a single op")
    return program


def outputs_told(told: Model, g: Given) -> Sequence[Any] | None:
    """What a model says of the outputs; of a program that it looks into, what the reference makes of its nodes."""
    said = told(g)
    if isinstance(said, Edited):
        return said.outputs()
    if not isinstance(said, PerNode):
        return said
    program = overwritten(g.inst, g.arrays, {})
    scope, given, off, over = dict(program.values), dict[str, Any](), dict[str, Any](), dict[str, Any]()
    for k, names in enumerate(program.names):
        inst = program.node(k, scope)
        case = Case(registry.version_of(inst), inst, 0)
        if not case.expected:
            return None
        node = said.node(k, Given(case, 0))
        if node is None:
            scope.update(zip(names, [e.value for e in case.expected[0]]))
            continue
        scope.update(zip(names, [x for x, _ in node.row]))
        given.update(zip(names, [x for x, _ in node.row]))
        off.update(zip(names, [b for _, b in node.row]))
        over.update(node.over)
    return overwritten(g.inst, g.arrays, over).expected(given | over, off) if given else None


def explains(told: Model, result: Result, info: BackendInfo) -> bool:
    """Is the answer what the model of a defect says?  What the specification leaves open may be anything."""
    given = Given(result.case, result.draw)
    with quiet:
        outputs = outputs_told(told, given)
    return outputs is not None and answered(outputs, given, result, info)


def answered(outputs: Sequence[Any], given: Given, result: Result, info: BackendInfo) -> bool:
    """Is the answer what a model has said of the outputs?  given: of what it has said that."""
    got = result.outcome.outputs
    if got is None:
        return False
    if len(outputs) != len(given.expected):
        raise FormatError(f"{len(outputs)} outputs told of {len(given.expected)}")
    if len(got) != len(outputs):
        return False
    row, answer = [], []
    skipped = given.attr(SKIPPED, ())
    for i, (e, told_, a) in enumerate(zip(given.expected, outputs, got)):
        if told_ is NOTHING or i in skipped:
            if a is not None:
                return False
            continue
        if isinstance(told_, Such):
            if told_.type_alone and isinstance(a, TypeOnly) and a.dtype:
                extents = [n for n in a.shape or () if isinstance(n, int)]
                if min(extents, default=0) < 0:  # an array has no such extent
                    if not told_.test(a):  # type: ignore[arg-type]
                        return False
                    continue
                if len(extents) == len(a.shape or ()):
                    a = np.broadcast_to(np.zeros((), BY_NAME[a.dtype].np), extents)
            if not isinstance(a, np.ndarray) or not told_.test(a):
                return False
            continue
        if isinstance(told_, Turned):
            try:
                a, told_ = told_.how(a), told_.expected
            except (ValueError, IndexError):  # it has not even that shape
                return False
        if told_ is None or isinstance(told_, Expected):
            other = given.origin(told_) if told_ is not None else None
            e, a = _settled(
                e if told_ is None else told_,
                a,
                *(other or (result.case, i)),
                0 if other else result.draw,
                None if other else result,
            )
            row.append(e)
            answer.append(a)
        elif not _same(told_, a, e, _right(result, info, e, i, a)):
            return False
    outcome = replace(result.outcome, outputs=answer)
    return not row or judge(row, outcome, acc=info.acc, flushes=info.flushes).verdict in (
        Verdict.AGREE,
        Verdict.UNINFORMATIVE,
    )


def room(told: Model, result: Result) -> list[Any]:
    """How far each output of a defect's model may be off, an array; None where it says nothing of that."""
    given = Given(result.case, result.draw)
    with quiet:
        outputs = outputs_told(told, given) or [None] * len(given.expected)
    return [np.broadcast_to(x.within, np.shape(x.value)) if isinstance(x, Near) else None for x in outputs]


def tested(told: Model, result: Result) -> bool:
    """Does a defect's model only test an output?"""
    with quiet:
        return any(isinstance(x, Such) for x in outputs_told(told, Given(result.case, result.draw)) or ())


def _settled(e: Expected, a: Any, case: Case, i: int, run: int, result: Result | None) -> tuple[Expected, Any]:
    """An output and what came of it, as if it were right where the specification leaves it open, or the judgement on
    that output left it out."""
    mask = _open(case, e, a, i, run)
    j = result.judgement if result is not None else None
    left_out = j.open() if j is not None and j.output == i else None
    if left_out is not None and left_out.shape == np.shape(a):
        mask = mask | left_out
    if not np.any(mask):
        return e, a
    return replace(e, open=mask), np.where(mask, e.value, a).astype(a.dtype)


def _right(result: Result, info: BackendInfo, e: Expected, i: int, a: Any) -> Any:
    """Mask of the elements of an output that need no model: they are right, or the specification leaves them open."""
    j = result.judgement
    if j is not None and j.output == i:
        wrong = j.bad()
        return False if wrong is None else ~wrong
    one = judge([e], replace(result.outcome, outputs=[a]), acc=info.acc, flushes=info.flushes)
    wrong = one.bad() if one.verdict is Verdict.MISMATCH else np.zeros(np.shape(a), bool)
    return False if wrong is None else ~wrong | _open(result.case, e, a, i, result.draw)


def _open(case: Case, e: Expected, a: Any, i: int, run: int) -> Any:
    """Mask of the elements of an output that the specification leaves open."""
    underspecified = case.underspecified
    why = underspecified[min(run, len(underspecified) - 1)] if underspecified else None
    if not isinstance(why, Underspecified) or why.masks(0) is None or getattr(a, "shape", None) != e.value.shape:
        return False
    v, arrays = case.version, case.draws[min(run, len(case.draws) - 1)]
    with quiet:
        return open_at(v.dialect.call_of(case.inst, arrays, v), why, i, a)


def _same(told: Any, a: Any, e: Expected, right: Any) -> bool:
    """Is it the array that was told of, where it is not right?  It has the type that is expected."""
    at = _at(told, a, e)
    return at is not None and bool(np.all(at | right))


def _at(told: Any, a: Any, e: Expected) -> Any:
    """Mask of the elements that are those of the array that was told of; None where type or shape are not."""
    value, within = (told.value, told.within) if isinstance(told, Near) else (told, 0.0)
    value = np.asarray(value)
    if type(a) is not np.ndarray or a.shape != value.shape or (a.dtype != e.value.dtype and a.dtype.kind not in "OSU"):
        return None
    free: Any = np.asarray(within) == np.inf
    if isinstance(told, Near) and told.other is not None:
        other = np.asarray(told.other, a.dtype)
        free = free | (a == other) | ((a != a) & (other != other))
    if a.dtype.kind in "OSU" or value.dtype.kind in "OSU":
        return (a == value) | free
    if a.dtype.kind in "iub" and value.dtype.kind in "iub":
        return (np.abs(a.astype(object) - value.astype(object)) <= within) | free
    wide = np.complex128 if value.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), value.astype(wide)
    with quiet:
        return (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= within) | free


def share(told: Model, result: Result, finite: bool) -> list[Any] | None:
    """Of a wrong answer, the part that is what the model of a defect says: of each output a mask, True for all of it,
    or False.  None where the model says nothing of single elements.  finite: leave out what is not finite, or should
    not be."""
    given, got = Given(result.case, result.draw), result.outcome.outputs or ()
    with quiet:
        outputs = outputs_told(told, given)
        if outputs is None or len(outputs) != len(got) or len(got) != len(given.expected):
            return None
        masks: list[Any] = []
        for e, x, a in zip(given.expected, outputs, got):
            if isinstance(x, (Such, Turned)):
                return None
            if isinstance(x, Expected):
                x = Near(x.value, x.error.bound(x.context()))
            at = None if x is None or x is NOTHING or type(e.value) is not np.ndarray else _at(x, a, e)
            if at is not None and finite and of(a).kind == "f":
                at = at & np.isfinite(a.astype(np.float64)) & np.isfinite(e.value.astype(np.float64))
            masks.append(a is None if x is NOTHING else False if at is None or at.shape != e.value.shape else at)
    return masks
