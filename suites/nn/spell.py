"""How NeuralNetwork spells what a meaning takes: the codecs, and ``op`` with the format's two general rules.

Blobs are float32 and have at least one axis: a bool or index result is written as float, a scalar as [1].
Source: NeuralNetwork.proto ("N rank tensors, where N >= 1"; comparisons give 1.0f or 0.0f).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.spec import Build, Call, Codec, Context, Entry, ErrorClass, Fn, Param, T
from harness.spec.semantics import Semantics

if TYPE_CHECKING:
    from harness.spec import OpVersion
    from suites.nn.dialect import Nn


def ints(x: np.ndarray) -> tuple[int, ...]:
    """Sizes and positions that travel as floats."""
    return tuple(int(v) for v in x.reshape(-1))


def sizes(slot: str) -> Fn:
    """A list parameter that is always an input."""
    return Fn(lambda c: ints(c.inputs[slot]), lambda v, b: b.tensor(slot, T((len(v),), values=[float(x) for x in v])))


def tensor(read: Callable[[Call], Any]) -> Fn:
    """A tensor parameter that a function reads from the call."""
    out = Fn(read)
    out.for_tensor = True
    return out


def declare(dialect: Nn) -> Callable[..., Entry]:
    """``op`` of this dialect."""

    def op(name: str, meaning: Semantics | None = None, *, out: Any = None, **kw: Any) -> Entry:
        def finish(call: Call, results: list[Any]) -> list[Any]:
            return [blob(r) for r in (out(call, results) if out is not None else results)]

        return dialect.op(name, meaning, out=finish, **kw)

    return op


def blob(r: Any) -> np.ndarray:
    """A result as a blob: float, rank at least 1."""
    a = np.asarray(r)
    if a.dtype.kind == "b":
        a = a.astype(np.float32)
    elif a.dtype.kind in "iu":
        a = a.astype(np.float64)
    return a.reshape(1) if a.ndim == 0 else a


def folded(error: ErrorClass) -> ErrorClass:
    """An error class for an entry that shows its meaning another shape than the layer's: the bound is asked for in the
    shape of the meaning's first tensor and given in that of the result."""
    assert error.fn is not None
    inner = error.fn

    def bound(ctx: Context) -> np.ndarray:
        seen = copy.copy(ctx)
        seen.wide = ctx.wide.reshape(np.shape(ctx.inputs["x"]))
        return np.broadcast_to(np.asarray(inner(seen), np.float64), seen.wide.shape).reshape(ctx.wide.shape)

    return replace(error, fn=bound)


class Weight(Codec):
    """A tensor parameter stored in the layer under ``slot``.

    flag: the parameter that says whether it is there.  sizes: parameters that repeat extents of its shape, name ->
    axis,
    or a function of the shape -> {name: value}.  stored: semantic shape -> stored shape; load: stored array ->
    semantic.
    """

    for_tensor = True

    def __init__(
        self,
        slot: str,
        *,
        flag: str | None = None,
        sizes: Any = None,
        stored: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None,
        load: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> None:
        self.slot, self.flag, self.sizes, self.stored, self.load = slot, flag, sizes, stored, load

    def decode(self, call: Call) -> Any:
        if self.flag is not None and not call.attr(self.flag):
            return None
        v = call.inputs.get(self.slot)
        return v if v is None or self.load is None else self.load(v)

    def encode(self, value: Any, b: Build) -> None:
        if self.flag is not None:
            b.attrs[self.flag] = True
        if callable(self.sizes):
            b.attrs.update(self.sizes(value.shape))
        elif self.sizes:
            b.attrs.update({name: value.shape[axis] for name, axis in self.sizes.items()})
        shape = value.shape if self.stored is None else self.stored(value.shape)
        b.tensor(self.slot, T(shape, value.recipe, value.dtype, True, value.values if self.stored is None else None))


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


class Dynamic(Codec):
    """A parameter that an input overrides.  slot: the input.  name: the layer's parameter, None where there is none.

    read: array -> value."""

    def __init__(self, slot: str, name: str | None, read: Callable[[np.ndarray], Any] | None = None) -> None:
        self.slot, self.name = slot, name
        self.read = read
        self.param: Param | None = None

    def bind(self, version: OpVersion, param: Param) -> Codec:
        out = Dynamic(self.slot, self.name, self.read)
        out.param = param
        return out

    def decode(self, call: Call) -> Any:
        v = call.inputs.get(self.slot)
        if v is not None:
            return self.read(v) if self.read is not None else tuple(int(x) for x in v.reshape(-1))
        v = call.attr(self.name) if self.name is not None else None
        return v if v is None or self.param is None else self.param.read(v)

    def encode(self, value: Any, b: Build) -> None:
        if value is None:
            return
        if self.name is None or (b.values.get("@dynamic", True) and b.draw.bool()):
            flat = [float(x) for x in np.asarray(value).reshape(-1)]
            b.tensor(self.slot, T((len(flat),), values=flat))
        else:
            b.attrs[self.name] = list(value) if isinstance(value, tuple) else value


class Const(Codec):
    """A scalar tensor parameter that the layer holds as a plain number."""

    for_tensor = True

    def __init__(self, name: str) -> None:
        self.name = name

    def decode(self, call: Call) -> Any:
        return np.array(call.attr(self.name), np.float32)

    def encode(self, value: T, b: Build) -> None:
        v = value.values[0] if value.values else b.draw.int(-32, 32) / 8
        b.attr(self.name, float(v))
