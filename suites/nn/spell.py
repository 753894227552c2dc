"""How NeuralNetwork spells what a meaning takes: the codecs, and the format's two general rules.

Blobs are float32 and have at least one axis: a bool or index result is written as float, a scalar as [1].
Source: NeuralNetwork.proto ("N rank tensors, where N >= 1"; comparisons give 1.0f or 0.0f).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Build, Call, Codec, Fn, T, gathered
from harness.declare.semantics import Semantics


def ints(x: np.ndarray) -> tuple[int, ...]:
    """Sizes and positions that travel as floats."""
    return tuple(int(v) for v in x.reshape(-1))


def sizes(slot: str) -> Fn:
    """A list parameter that is always an input."""
    return Fn(lambda c: ints(c.inputs[slot]), lambda v, b: b.tensor(slot, T((len(v),), values=[float(x) for x in v])))


def several(slot: str = "xs") -> Fn:
    """A variadic input of two or more."""

    def read(c: Call) -> list[np.ndarray]:
        if len(c.inputs[slot]) < 2:
            raise RuleError("two-or-more", f"{len(c.inputs[slot])} inputs")
        return c.inputs[slot]

    def write(v: list[T], b: Build) -> None:
        for t in v:
            b.tensor(slot, t)

    return Fn(read, write)


def finish(out: Any) -> Callable[[Call, list[Any]], list[Any]]:
    """The results as blobs, laid out by ``out`` before, if it is given."""

    def finish(call: Call, results: list[Any]) -> list[Any]:
        return [blob(r) for r in (out(call, results) if out is not None else results)]

    return finish


def with_meaning(ambiguous: Callable[[Call], Any], meaning: Semantics) -> Callable[[Call], Any]:
    """What this layer's text leaves open, then what the meaning does."""

    def unclear(call: Call) -> Any:
        assert meaning.ambiguous is not None
        return gathered(ambiguous(call), meaning.underspecified(*call.version.decode(call)))

    return unclear


def blob(r: Any) -> np.ndarray:
    """A result as a blob: float, rank at least 1.  Raises RuleError "rank-1-to-5"."""
    a = np.asarray(r)
    if a.ndim > 5:
        raise RuleError("rank-1-to-5", f"a result of {list(a.shape)}")
    if a.dtype.kind == "b":
        a = a.astype(np.float32)
    elif a.dtype.kind in "iu":
        a = a.astype(np.float64)
    return a.reshape(1) if a.ndim == 0 else a


class Weight(Codec):
    """A tensor parameter stored in the layer under ``slot``.

    flag: the parameter that says whether it is there.  load: stored array -> the meaning's.
    """

    def __init__(
        self, slot: str, *, flag: str | None = None, load: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> None:
        self.slot, self.flag, self.load = slot, flag, load

    def decode(self, call: Call) -> Any:
        if self.flag is not None and not call.attr(self.flag):
            return None
        v = call.inputs.get(self.slot)
        return v if v is None or self.load is None else self.load(v)

    def encode(self, value: Any, b: Build) -> None:
        if self.flag is not None:
            b.attrs[self.flag] = True
        b.tensor(self.slot, T(value.shape, value.recipe, value.dtype, True, value.values))


class Or(Codec):
    """A value in which 0 stands for a default: epsilon, scale, groups, repetitions."""

    def __init__(self, name: str, default: Any) -> None:
        self.name, self.default = name, default

    def decode(self, call: Call) -> Any:
        return call.attr(self.name) or self.default

    def encode(self, value: Any, b: Build) -> None:
        if value != self.default or b.draw.bool():
            b.attrs[self.name] = value
        elif b.draw.bool():
            b.attrs[self.name] = type(value)(0)


class ListOr(Codec):
    """A list whose absence stands for a default, such as a kernel size of [3, 3]."""

    def __init__(self, name: str, default: Sequence[int]) -> None:
        self.name, self.default = name, tuple(default)

    def decode(self, call: Call) -> Any:
        return tuple(call.attr(self.name) or self.default)

    def encode(self, value: Any, b: Build) -> None:
        if tuple(value) != self.default or b.draw.bool():
            b.attrs[self.name] = list(value)


class Const(Codec):
    """A scalar tensor parameter that the layer holds as a plain number."""

    def __init__(self, name: str) -> None:
        self.name = name

    def decode(self, call: Call) -> Any:
        return np.array(call.attr(self.name), np.float32)

    def encode(self, value: T, b: Build) -> None:
        v = value.values[0] if value.values else b.draw.int(-32, 32) / 8
        b.attr(self.name, float(v))
