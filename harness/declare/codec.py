"""Spelling: how a dialect writes what a meaning takes.

A codec works both ways.  ``decode(call)`` reads the semantic value from a model's node (attributes, arrays);
``encode(value, b)`` writes a drawn value into an instance.  Most entries need only a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from harness.core.dtypes import DType, f32
from harness.declare.params import Opaque, Param
from harness.declare.schema import Attr
from harness.generate.draw import Draw, T

# The op version of a call or a build: ``harness.declare.OpVersion``, which is made of codecs and so stands above them.
Version = Any


def _no_blocks(*given: Any) -> Any:
    raise TypeError("expected a call that can evaluate blocks")


class Call:
    """One use of an op version, seen by decoders: attributes as written, arrays of the inputs.

    inputs: slot -> array, list (variadic) or container; an absent input is missing.
    quant: slot -> {"scale", "zero_point", "axis"}.
    outs: declared outputs [{"dtype": DType, "shape":, "quant":}], if the dialect declares them.
    n_outs: how many outputs are asked for.
    run: evaluates a ``Graph`` attribute (control flow).
    args: slot -> ``Arg`` of an instance; None for a node of a program.
    """

    __slots__ = ("args", "attrs", "inputs", "n_outs", "opset", "outs", "quant", "run", "version")

    def __init__(
        self,
        version: Version,
        attrs: dict[str, Any],
        inputs: dict[str, Any],
        opset: int | str,
        quant: dict[str, Any] | None = None,
        outs: list[dict[str, Any]] | None = None,
        n_outs: int = 1,
        run: Callable[..., Any] | None = None,
        args: Mapping[str, Any] | None = None,
    ) -> None:
        self.version = version
        self.attrs = attrs
        self.inputs = inputs
        self.opset = opset
        self.quant = quant or {}
        self.outs = outs
        self.n_outs = n_outs
        self.run: Callable[..., Any] = _no_blocks if run is None else run
        self.args = args

    def has(self, name: str) -> bool:
        """Is the attribute written or the input given?"""
        return name in self.attrs or self.inputs.get(name) is not None

    def declared(self, i: int) -> dict[str, Any]:
        """What the model declares output ``i`` as.  Raises TypeError where it declares none."""
        if self.outs is None:
            raise TypeError(f"{self.version.key}: expected declared outputs")
        return self.outs[i]

    def attr(self, name: str, default: Any = None) -> Any:
        """The attribute as written, else the schema's default, else ``default``."""
        v = self.attrs.get(name)
        if v is None:
            a = self.version.schema.attrs.get(name)
            v = default if a is None or a.default is None else a.default
        return v

    def get(self, name: str) -> Any:
        """Attribute or input of that name, whichever this version has; None when absent without default."""
        v = self.inputs.get(name)
        return v if v is not None else self.attr(name)


class Build:
    """The instance under construction, seen by encoders."""

    __slots__ = ("args", "attrs", "draw", "values", "version")

    def __init__(self, version: Version, draw: Draw, values: dict[str, Any]) -> None:
        self.version = version
        self.draw = draw
        self.values = values  # all drawn semantic values, for codecs that look at a neighbour
        self.attrs: dict[str, Any] = {}
        self.args: dict[str, Any] = {}

    def attr(self, name: str, value: Any) -> None:
        """Write an attribute; one equal to its default is left out half of the time."""
        if value is None:
            return
        a = self.version.schema.attrs.get(name)
        if a is not None and not a.required and _means_default(a, value) and self.draw.bool():
            return
        if (value is True or value is False) and a is not None and a.type != "bool":
            value = int(value)
        self.attrs[name] = list(value) if isinstance(value, tuple) else value

    def tensor(self, slot: str, t: T, as_const: bool | None = None) -> None:
        """Give a slot its tensor (a variadic slot gathers them in order)."""
        version = self.version
        arg = version.make_arg(self.draw, slot, t, as_const)
        if slot in version.variadic:
            self.args.setdefault(slot, []).append(arg)
        else:
            self.args[slot] = arg

    def value(self, slot: str, value: Any, dtype: DType | None = None) -> None:
        """Give a slot a small literal tensor."""
        if value is None:
            return
        shape = np.shape(value)
        flat = list(np.asarray(value, object).ravel()) if shape else [value]
        self.tensor(slot, T(shape, values=flat, dtype=dtype))

    def put(self, name: str, value: Any) -> None:
        """Attribute or input, whichever this version has."""
        if name in self.version.slots_of_schema:
            self.value(name, value)
        else:
            self.attr(name, value)


def _means_default(a: Attr, value: Any) -> bool:
    """A default of type float may stand in the schema as the f32 number that a file holds: 0.9 drawn is the same."""
    default = a.default
    if default is None:
        return False
    if isinstance(default, (list, tuple)) or isinstance(value, (list, tuple)):
        return isinstance(default, (list, tuple)) and isinstance(value, (list, tuple)) and list(default) == list(value)
    if a.type == "float" and isinstance(default, float) and isinstance(value, float):
        return f32(default) == f32(value)
    return default == value


class Codec:
    """Base: subclass and give both directions.  Those of tensors get and give ``T``s in encode."""

    def decode(self, call: Call) -> Any:
        raise NotImplementedError

    def encode(self, value: Any, b: Build) -> None:
        raise NotImplementedError

    def bind(self, version: Version, param: Param) -> Codec:
        """Called once per op version; return self or a specialised copy."""
        return self


_UNBOUND = object()


class Named(Codec):
    """A parameter under a dialect name, an attribute in some versions and an input in others."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.param: Param = Opaque()
        self.default: Any = _UNBOUND  # the schema's, once bound
        self.is_input: bool | None = None  # or an attribute, once bound

    def bind(self, version: Version, param: Param) -> Codec:
        out = Named(self.name)
        out.param = param
        a = version.schema.attrs.get(self.name)
        out.default = None if a is None else a.default
        out.is_input = self.name in version.slots_of_schema
        return out

    def decode(self, call: Call) -> Any:
        v = call.inputs.get(self.name)
        if v is None:
            v = call.attrs.get(self.name)
            if v is None:
                v = call.attr(self.name) if self.default is _UNBOUND else self.default
        return None if v is None else self.param.read(v)

    def encode(self, value: Any, b: Build) -> None:
        if self.is_input is False:
            b.attr(self.name, value)
        else:
            b.put(self.name, value)


class Fn(Codec):
    """A codec of two plain functions: ``decode(call)`` and ``encode(value, b)`` (None: nothing is written).

    names: the attributes that the value is spelled by, each of the same kind."""

    def __init__(
        self,
        decode: Callable[[Call], Any],
        encode: Callable[[Any, Build], None] | None = None,
        names: tuple[str, ...] = (),
    ) -> None:
        self._decode, self._encode, self.names = decode, encode, names

    def decode(self, call: Call) -> Any:
        return self._decode(call)

    def encode(self, value: Any, b: Build) -> None:
        if self._encode is not None:
            self._encode(value, b)


class Map(Codec):
    """A parameter whose values have other names in the dialect: ``Map("mode", {"dcr": "DCR"})``, ours to theirs."""

    def __init__(self, name: str, table: dict[Any, Any]) -> None:
        self.name, self.table = name, table
        self.back = {v: k for k, v in table.items()}

    def decode(self, call: Call) -> Any:
        v = call.get(self.name)
        if isinstance(v, np.ndarray):
            v = v.ravel()[0] if v.dtype.kind in "OUS" else v.ravel()[0].item()
        return None if v is None else self.back[v]

    def encode(self, value: Any, b: Build) -> None:
        if value is not None:
            b.put(self.name, self.table[value])


class Slotted(Codec):
    """A tensor parameter under a slot name, with an optional change of layout both ways.

    to_ours: array -> array.  to_theirs: shape -> shape (the layout change applied to a drawn shape)."""

    def __init__(
        self,
        slot: str,
        to_ours: Callable[[Any], Any] | None = None,
        to_theirs: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None,
        const: bool | None = None,
    ) -> None:
        self.slot, self.to_ours, self.to_theirs, self.const = slot, to_ours, to_theirs, const

    def decode(self, call: Call) -> Any:
        v = call.inputs.get(self.slot)
        if v is None or self.to_ours is None:
            return v
        return [self.to_ours(x) for x in v] if isinstance(v, list) else self.to_ours(v)

    def encode(self, value: Any, b: Build) -> None:
        for t in value if isinstance(value, list) else (value,):
            if self.to_theirs is not None:
                if t.values is not None:
                    raise ValueError(f"{self.slot}: literal values cannot change layout")
                t = T(self.to_theirs(t.shape), t.recipe, t.dtype, t.const, None, t.quant)
            b.tensor(self.slot, t, self.const)


def permuted(slot: str, ours: str, theirs: str) -> Slotted:
    """A tensor whose axes come in another order: ``permuted("input", "nchw", "nhwc")``."""
    read = [theirs.index(a) for a in ours]
    write = [ours.index(a) for a in theirs]
    return Slotted(slot, lambda x: x.transpose(read), lambda s: tuple(s[i] for i in write))
