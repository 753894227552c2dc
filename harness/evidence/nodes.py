"""What the nodes of a program gave when they were asked one by one, and how they were asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from harness.cases.result import Result
from harness.core.dtypes import F16, F32
from harness.core.instance import Arg, Instance
from harness.core.outcome import TypeOnly
from harness.ledger.defect_models import PerNode


@dataclass(frozen=True)
class Query:
    """How the nodes are asked.

    folds: a node whose operands are all constants goes to the backend that computes constants, where there is one.
    loaded: operands that follow from constants or shapes are constants.
    told: a listed difference of the whole program.
    per_node: what that difference says of single nodes.
    fixed: name -> value and how far it may be off, whatever the node gives.
    tests: a value of which a listed difference only tells whether it passes a test is undefined: a program may give
    another one than the node alone.
    """

    folds: bool = True
    loaded: bool = False
    told: Result | None = None
    per_node: PerNode | None = None
    fixed: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    tests: bool = False


DEFAULT = Query()


@dataclass
class Nodes:
    """What the nodes gave, one after the other.

    scope: values by name; the reference's, where a node runs only as a part of the program.
    given: name -> value that a node gave.  off: how far that may be off.
    told: results of nodes that are excused.
    undefined: names of values that the specification says nothing of: a listed difference gave an operand that the op
    does not take, or (``Query.tests``) any value that passes its test.
    end: the result of the node that settles the verdict.
    mistyped: values that a listed difference gives with another type, and the result that says so.
    folded: was the backend asked that computes constants?
    loads: has a node an operand that follows from constants or shapes?  A runtime may know it before the program runs.
    over: name -> value that stands in place of the one with that name.
    fixed: what nodes give as a listed difference says.
    """

    scope: dict[str, Any]
    given: dict[str, Any] = field(default_factory=dict)
    off: dict[str, Any] = field(default_factory=dict)
    told: list[Result] = field(default_factory=list)
    undefined: set[str] = field(default_factory=set)
    end: Result | None = None
    mistyped: dict[str, Result] = field(default_factory=dict)
    folded: bool = False
    loads: bool = False
    over: dict[str, Any] = field(default_factory=dict)
    fixed: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def take(self, values: Mapping[str, tuple[Any, Any]]) -> None:
        """Values by name, each with how far it may be off."""
        for n, (x, b) in values.items():
            self.scope[n] = self.given[n] = x
            self.off[n] = b


def all_constant(inst: Instance) -> bool:
    """Are all operands constants?"""
    return all(x.const for a in inst.args.values() for x in (a if isinstance(a, list) else [a]))


def at_run_time(inst: Instance) -> Instance:
    """The instance with its constants as inputs, as a delegate may want them."""
    return _changed(inst, lambda x: replace(x, const=False))


def other_forms(inst: Instance) -> list[tuple[Instance, bool]]:
    """What a program may make of an instance that is no model alone: f32 in place of f16, and (True) scalars as vectors
    of one element; all as inputs."""
    plain = at_run_time(inst)
    wide = _changed(plain, lambda x: replace(x, dtype=F32) if x.dtype == F16 else x)
    types = {t: F32.name if d == F16.name else d for t, d in inst.attrs.get("@types", {}).items()}
    wide = replace(wide, attrs=inst.attrs | ({"@types": types} if types else {}))
    scalar = all(x.shape == () for a in inst.args.values() for x in (a if isinstance(a, list) else [a]))
    vector = [(_changed(wide, lambda x: replace(x, shape=(1,))), True)] if scalar else []
    return [*([(wide, False)] if wide != plain else []), *vector]


def _changed(inst: Instance, change: Callable[[Arg], Arg]) -> Instance:
    args: dict[str, Any] = {
        s: [change(x) for x in a] if isinstance(a, list) else change(a) for s, a in inst.args.items()
    }
    return replace(inst, args=args)


_MOST = 1 << 28  # elements


def of_inferred_shape(a: Any, due: Any) -> Any:
    """The expected value, brought into the shape that a backend inferred in place of its own."""
    shape = a.shape if isinstance(a, TypeOnly) else None
    if shape is None or not isinstance(due, np.ndarray) or not all(isinstance(n, int) and n >= 0 for n in shape):
        return due
    elements = math.prod(n for n in shape if isinstance(n, int) and n)
    if elements > _MOST:  # extents from memory that nobody wrote, beside one of 0
        return due
    return np.resize(due, tuple(shape))


def fitted(outputs: Sequence[Any], due: Sequence[Any], scalars: bool) -> list[Any] | None:
    """Answers to another form of an instance in the types of its own; None where they do not fit.  scalars: vectors of
    one element stand for scalars."""
    pairs = list(zip(outputs, due))
    if not all(isinstance(x, np.ndarray) and isinstance(y, np.ndarray) for x, y in pairs):
        return None
    if scalars and not all(x.size == y.size for x, y in pairs):
        return None
    return [x.astype(y.dtype).reshape(y.shape if scalars else x.shape) for x, y in pairs]


def same(a: Any, b: Any) -> bool:
    """The same type, shape and bits?"""
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return a is None and b is None
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
