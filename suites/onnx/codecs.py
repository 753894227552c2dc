"""Spelling of ONNX that differs from the meanings' own: old axis rules, defaults told in prose only, automatic
padding."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from harness.core.dtypes import DType
from harness.core.errors import RuleError
from harness.declare import Build, Call, Codec, OpVersion, Param, Slotted, T


class _Told(Codec):
    """A parameter whose default the codec tells, not the schema."""

    name: str
    default: Any = None
    param: Param | None = None

    def bind(self, version: OpVersion, param: Param) -> Codec:
        out = copy(self)
        out.param = param
        return out

    def decode(self, call: Call) -> Any:
        v = call.get(self.name)
        if v is None:
            return self.default
        return v if self.param is None else self.param.read(v)


class Default(_Told):
    """A parameter whose default the schema leaves to the prose; it is left out now and then."""

    def __init__(self, name: str, default: Any) -> None:
        self.name, self.default = name, default

    def encode(self, value: Any, b: Build) -> None:
        if value is None or (_same(value, self.default) and b.draw.bool()):
            return
        b.put(self.name, value)


def _same(a: Any, b: Any) -> bool:
    listy = isinstance(a, (list, tuple))
    return list(a) == list(b) if listy and isinstance(b, (list, tuple)) else not listy and bool(a == b)


class Front(_Told):
    """An axis, or axes, that this version wants counted from the front.

    of: the semantic tensor whose rank counts.  grown: the axes are those of the result, which has one more for each."""

    def __init__(self, name: str, of: str = "x", default: Any = None, grown: bool = False) -> None:
        self.name, self.of, self.default, self.grown = name, of, default, grown

    def encode(self, value: Any, b: Build) -> None:
        if value is None:
            return
        t = b.values[self.of]
        rank = len((t[0] if isinstance(t, list) else t).shape)
        if isinstance(value, (tuple, list)):
            rank += len(value) if self.grown else 0
            value = [a + rank if -rank <= a < 0 else a for a in value]
        elif -rank <= value < 0:
            value += rank
        default = self.default
        if default is not None and value == (default + rank if default < 0 else default) and b.draw.bool():
            return
        b.put(self.name, value)


class Channels(Slotted):
    """A tensor of channels, of which a vector has one: an (N, 1) is now and then spelled (N)."""

    def __init__(self, slot: str) -> None:
        super().__init__(slot, lambda x: x[:, None] if x.ndim == 1 else x)

    def encode(self, value: Any, b: Build) -> None:
        if len(value.shape) == 2 and value.shape[1] == 1 and value.values is None and b.draw.bool():
            value = T(value.shape[:1], value.recipe, value.dtype, value.const, None, value.quant)
        b.tensor(self.slot, value, self.const)

    def like(self, call: Call, results: list[Any]) -> list[Any]:
        """The first result in the shape of the tensor."""
        return [results[0].reshape(call.inputs[self.slot].shape), *results[1:]]


class ValueAttr(Codec):
    """A scalar tensor that this version takes as a float attribute."""

    def __init__(self, name: str, slot: str, default: float = 0.0) -> None:
        self.name, self.slot, self.default = name, slot, default

    def decode(self, call: Call) -> Any:
        like = call.inputs[self.slot]
        return np.array(call.attr(self.name, self.default), np.float64).astype(like.dtype)

    def encode(self, value: Any, b: Build) -> None:
        b.attr(self.name, b.draw.int(-16, 16) / 4)


def one_element(v: np.ndarray, slot: str) -> np.ndarray:
    """The element of a scalar or of a vector of one.  Raises RuleError "one-element"."""
    if v.size != 1 or v.ndim > 1:
        raise RuleError("one-element", f"{slot} has shape {list(v.shape)}")
    return v.reshape(())


class Scalar(Codec):
    """A one-element input read as a plain number; written with shape () or (1,).  Raises RuleError "one-element".

    ranks: which of the two shapes this version allows."""

    def __init__(self, slot: str, ranks: tuple[int, ...] = (0, 1), default: Any = None) -> None:
        self.slot, self.ranks, self.default = slot, ranks, default

    def decode(self, call: Call) -> Any:
        v = call.inputs.get(self.slot)
        return self.default if v is None else one_element(v, self.slot).item()

    def encode(self, value: Any, b: Build) -> None:
        if value is None:
            return
        s = b.version.schema.input(self.slot)
        if s is not None and s.optional and self.default is not None and value == self.default and b.draw.bool():
            return
        rank = b.draw.pick(self.ranks) if len(self.ranks) > 1 else self.ranks[0]
        b.tensor(self.slot, T((1,) * rank, values=[value]))


class ToType(Codec):
    """An element type as an attribute; None leaves it out."""

    def __init__(self, name: str) -> None:
        self.name = name

    def decode(self, call: Call) -> DType | None:
        v = call.attrs.get(self.name)
        if v is None:
            v = call.attr(self.name)
        if isinstance(v, str):
            from harness.core.dtypes import dtype

            return dtype(_OLD.get(v, v.lower()))
        return v if isinstance(v, DType) else None

    def encode(self, value: Any, b: Build) -> None:
        if value is not None:
            b.attrs[self.name] = value


# Cast-1 names its target in words, those of TensorProto.DataType
_OLD = {
    "FLOAT": "f32",
    "FLOAT16": "f16",
    "DOUBLE": "f64",
    "INT8": "i8",
    "INT16": "i16",
    "INT32": "i32",
    "INT64": "i64",
    "UINT8": "u8",
    "UINT16": "u16",
    "UINT32": "u32",
    "UINT64": "u64",
    "BOOL": "bool",
    "STRING": "str",
}
OLD_WORDS = {v: k for k, v in _OLD.items()}
