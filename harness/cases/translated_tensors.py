"""Tensors on their way into another dialect: types that it takes, layouts undone, equality to the last bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, DType, int_range, of
from harness.core.errors import Unsupported
from harness.core.instance import Arg, Instance
from harness.declare.codec import Slotted
from harness.declare.op_version import OpVersion
from harness.generate.draw import T

Arrays = dict[str, Any]


class Untranslatable(Unsupported):
    """The instance cannot be said in the other dialect; the text says why."""


def same(a: Any, b: Any) -> bool:
    """Equal to the last bit, lists and tuples alike; NaN equals NaN."""
    if a is None or b is None:
        return a is b
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype.kind == "O":
            return list(a.ravel()) == list(b.ravel())
        if a.tobytes() == b.tobytes():
            return True
        if a.dtype.kind != "f":
            return False
        nan = np.isnan(a) & np.isnan(b)  # whatever its sign and payload
        return bool(np.all(nan | ((a == b) & (np.signbit(a) == np.signbit(b)))))
    if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
        if not (isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b)):
            return False
        return all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, float) and isinstance(b, float) and a != a:
        return b != b
    return bool(a == b)


def taken(twin: OpVersion, tensors: Arrays) -> tuple[Arrays, dict[str, DType]]:
    """The tensors in the types that the other op version takes, and its type names bound by them.

    Indices may change their type where it lacks theirs: they are numbers, not data.  Raises Untranslatable for a type
    that it does not take.
    """
    types: dict[str, DType] = {}
    out: Arrays = {}
    for name, x in tensors.items():
        codec = twin.tensor_codecs.get(name)
        if x is None:
            out[name] = None
            continue
        if codec is None:
            raise Untranslatable(f"{twin.key} has no operand for {name}")
        slot = twin.schema.input(codec.slot) if isinstance(codec, Slotted) else None
        ones = []
        for one in x if isinstance(x, list) else (x,):
            if not isinstance(one, (np.ndarray, np.generic)):
                raise Untranslatable(f"{name} is no tensor")
            a = np.asarray(one)
            if slot is not None:
                allowed = twin.candidates.get(slot.element) or twin.schema.dtypes(slot.element)
                if twin.meaning is not None and twin.meaning.tensors[name].kind == "int":
                    a = _as_index(a, allowed)
                have = of(a)
                if have not in allowed:
                    raise Untranslatable(f"{twin.key} takes no {have} for {slot.name}")
                if types.setdefault(slot.element, have) is not have:
                    told = f"{types[slot.element]} and {have}"
                    raise Untranslatable(f"{twin.key} wants one type {slot.element}, got {told}")
            ones.append(a)
        out[name] = ones if isinstance(x, list) else ones[0]
    return out, types


def _as_index(a: np.ndarray, allowed: Sequence[DType]) -> np.ndarray:
    """Integers in the first allowed type that holds them all, unless theirs is allowed."""
    if of(a) in allowed or a.dtype.kind not in "iu":
        return a
    for d in allowed:
        if d.kind in "iu":
            lo, hi = int_range(d)
            if not a.size or (lo <= int(a.min()) and int(a.max()) <= hi):
                return a.astype(d.np)
    return a


def types_of(x: Any) -> Any:
    return [types_of(one) for one in x] if isinstance(x, list) else None if x is None else of(np.asarray(x))


def slot_arrays(twin: OpVersion, inst: Instance, tensors: Arrays) -> Arrays:
    """Arrays of every slot: the tensors in the twin's layout, literals as written."""
    out: Arrays = {}
    by_slot: dict[str, list[Any]] = {}
    for name, codec in twin.tensor_codecs.items():
        x = tensors.get(name)
        if x is not None and isinstance(codec, Slotted):
            ones = x if isinstance(x, list) else [x]
            by_slot.setdefault(codec.slot, []).extend(spelled(codec, one) for one in ones)
    for slot, a in inst.args.items():
        given = by_slot.get(slot)
        if given is not None:
            out[slot] = given if isinstance(a, list) else given[0]
        else:
            out[slot] = [_literal(x) for x in a] if isinstance(a, list) else _literal(a)
    return out


def _literal(a: Arg) -> np.ndarray:
    if a.values is None:
        raise Untranslatable("an operand that the meaning does not know")
    d = a.dtype if isinstance(a.dtype, DType) else BY_NAME[a.dtype]
    return np.array(a.values, d.np).reshape(a.shape)


def spelled(codec: Slotted, a: np.ndarray) -> np.ndarray:
    """The array that ``codec.to_ours`` reads as ``a``: the change of layout undone, whatever movement it is."""
    if codec.to_ours is None:
        return a
    if codec.to_theirs is None:
        raise Untranslatable(f"the layout of {codec.slot} is read one way only")
    shape = tuple(codec.to_theirs(a.shape))
    if int(np.prod(shape)) != a.size:
        raise Untranslatable(f"the layout of {codec.slot} holds another number of elements")
    at = np.asarray(codec.to_ours(np.arange(a.size).reshape(shape)))
    if at.shape != a.shape:
        raise Untranslatable(f"the layout of {codec.slot} cannot be undone for {list(a.shape)}")
    out = np.empty(a.size, a.dtype)
    out[at.ravel()] = a.ravel()
    return out.reshape(shape)


def as_drawn(x: Any) -> Any:
    """A tensor as encoders of parameters see their neighbours."""
    if isinstance(x, list):
        return [as_drawn(one) for one in x]
    return x if x is None else T(np.shape(x), dtype=of(np.asarray(x)))


def short(v: Any) -> str:
    text = f"{of(v)}{list(v.shape)}" if isinstance(v, np.ndarray) else repr(v)
    return text if len(text) <= 60 else text[:57] + "..."
