"""Spelling of MIL: parameters that may be left out, and small draws that several families share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from harness.core.dtypes import BY_NAME, DType, int_range, of
from harness.core.errors import RuleError
from harness.declare import Build, Call, Draw, Named, OpVersion, Param, T, underspecified


class Usual(Named):
    """A parameter whose default is computed: left out half of the time when the value is that default.

    usual(value, b) -> is it the default.  missing(call) -> the default, where the meaning does not know it."""

    def __init__(
        self,
        name: str,
        usual: Callable[[Any, Build], bool],
        missing: Callable[[Call], Any] | None = None,
    ) -> None:
        super().__init__(name)
        self.usual, self.missing = usual, missing

    def bind(self, version: OpVersion, param: Param) -> Usual:
        out = Usual(self.name, self.usual, self.missing)
        out.param = param
        return out

    def decode(self, call: Call) -> Any:
        v = super().decode(call)
        return self.missing(call) if v is None and self.missing is not None else v

    def encode(self, value: Any, b: Build) -> None:
        if not (self.usual(value, b) and b.draw.bool()):
            super().encode(value, b)


def fill(name: str, n: Any, x: str = "x", lead: int = 2, times: int = 1) -> Usual:
    """A list with one entry for every axis of ``x`` after the first ``lead`` (``times`` entries each), ``n`` by
    default.
    """

    def missing(call: Call) -> tuple[Any, ...]:
        return (n,) * (times * (call.inputs[x].ndim - lead))

    return Usual(name, lambda v, b: v is not None and all(k == n for k in v), missing)


def flags(name: str) -> Usual:
    """A mask that is false everywhere by default."""
    return Usual(name, lambda v, b: not any(v))


class Held(Named):
    """A scalar that has x's type when it is left out: its default is rounded to that type."""

    def bind(self, version: OpVersion, param: Param) -> Held:
        out = Held(self.name)
        out.param = param
        return out

    def decode(self, call: Call) -> Any:
        v = super().decode(call)
        return v if call.has(self.name) else float(np.array(v, call.inputs["x"].dtype))


def maybe(d: Draw, out: dict[str, Any], name: str, value: Any, default: Any) -> None:
    """Write a parameter, or leave it out half of the time when it is the default."""
    if value != default or d.bool():
        out[name] = value


def typed(d: Draw, letter: str) -> DType:
    """The type that a letter is drawn with: an input's, or one drawn here and noted for the builder."""
    if letter not in d.types:
        names = d.version.schema.types[letter]
        d.types[letter] = BY_NAME[d.pick(names)]
    return d.types[letter]


HEAVY = 300  # one instance in so many
FAR = (1 << 24) + 1  # a position that f32 does not count


def heavy(d: Draw, letter: str) -> bool:
    """Is this one of the few instances whose elements are so many that a position is no f32 number?  They are of the
    narrowest type of the letter then."""
    if d.breaking or not d.chance(HEAVY):
        return False
    d.types[letter] = min((BY_NAME[n] for n in d.version.schema.types[letter]), key=lambda dtype: dtype.bits)
    return True


def scalar(call: Call, name: str, default: Any = None) -> Any:
    """A scalar parameter as a Python number, from an attribute or an input."""
    v = call.get(name)
    if v is None:
        return default
    if isinstance(v, np.ndarray):
        v = v.reshape(-1)[0]
    return v.item() if isinstance(v, np.generic) else v


def overflowing(exact: Callable[..., np.ndarray]) -> Callable[[Call], str | None]:
    """An ``ambiguous`` predicate of an elementwise op: integers beyond their type, as of reductions and products; what
    comes of floats is IEEE 754's.  exact: the op on wider integers."""

    def why(call: Call) -> str | None:
        arrays = [np.asarray(x) for x in call.inputs.values()]
        if arrays[0].dtype.kind not in "iu":
            return None
        lo, hi = int_range(of(arrays[0]))
        wide = exact(*(x.astype(np.int64) for x in arrays))
        return underspecified("integer overflow: the op set does not say what comes out", (wide < lo) | (wide > hi))

    return why


@overload
def ints(call: Call, name: str, default: Sequence[int], axes: int = 1) -> tuple[int, ...]: ...


@overload
def ints(call: Call, name: str, default: None = None, axes: int = 1) -> tuple[int, ...] | None: ...


def ints(call: Call, name: str, default: Sequence[int] | None = None, axes: int = 1) -> tuple[int, ...] | None:
    """A list parameter as a tuple of ints.  axes: its rank, as the page states it; another breaks "rank-of-list"."""
    v = call.get(name)
    if v is None:
        return None if default is None else tuple(default)
    a = np.asarray(v)
    need(a.ndim == axes, "rank-of-list", f"{name}: expected rank {axes}, got {list(a.shape)}")
    return tuple(int(x) for x in a.ravel())


def signed(d: Draw, axes: Sequence[int], rank: int) -> list[int]:
    """The axes again, some counted from the end."""
    return [a - rank if d.int(0, 2) == 2 else a for a in axes]


def vector(values: Sequence[Any], dtype: DType | None = None, const: bool | None = None) -> T:
    """A small literal vector for a slot."""
    return T((len(values),), values=list(values), dtype=dtype, const=const)


def need(ok: bool, rule: str, detail: str = "") -> None:
    """Raise RuleError where a stated rule does not hold."""
    if not ok:
        raise RuleError(rule, detail)
