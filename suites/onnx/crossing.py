"""The cross-version law: one instance at two versions of its op.

Where an instance can be said at both (same slots, attributes and types) and both accept it, the results are equal bit
for bit, or the meaning changed: then the pair is listed in ``changed.toml`` with what changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from harness.core.dtypes import of
from harness.core.errors import OpconformError
from harness.core.instance import Arg, Instance
from harness.declare import OpVersion
from suites.onnx import dialect


def neighbours() -> Iterator[tuple[OpVersion, OpVersion]]:
    """Every declared version with the next one of its op."""
    by_op: dict[str, list[OpVersion]] = {}
    for v in dialect.versions.values():
        by_op.setdefault(v.op, []).append(v)
    for versions in by_op.values():
        versions.sort(key=lambda v: int(v.version))
        yield from itertools.pairwise(versions)


def said_at(inst: Instance, other: OpVersion) -> Instance | None:
    """The same instance at another version, or None where that has no such slot, attribute or type."""
    s = other.schema
    if any(k not in s.attrs for k in inst.attrs):
        return None
    if any(v not in (s.attrs[k].enum or (v,)) for k, v in inst.attrs.items()):
        return None
    if any(a.required and a.name not in inst.attrs for a in s.attrs.values()):
        return None
    slots = {x.name: x for x in s.inputs}
    if any(k not in slots for k in inst.args) or any(
        not x.optional and not x.variadic and x.name not in inst.args for x in s.inputs
    ):
        return None
    bound: dict[str, Any] = {}
    for k, a in inst.args.items():
        allowed = s.types.get(slots[k].element, (slots[k].element,))
        for one in a if isinstance(a, list) else [a]:
            if not _fits(one, allowed, slots[k].container):
                return None
            bound.setdefault(slots[k].element, one.dtype)
    if inst.outs > len(s.outputs) and not any(o.variadic for o in s.outputs):
        return None
    return Instance("onnx", inst.op, other.version, other.opsets[-1], inst.attrs, inst.args, inst.outs)


def _fits(a: Arg, allowed: tuple[str, ...], container: str | None) -> bool:
    name, inner = a.dtype.name, a.items[0] if a.items else None
    if inner is not None and inner.kind != "tensor":
        name = f"{inner.kind}({name})"
    if a.kind != "tensor" and container != a.kind:
        name = f"{a.kind}({name})"
    return name in allowed and (a.kind != "tensor" or container is None)


def values(inst: Instance, arrays: dict[str, Any]) -> list[Any] | None:
    """The reference's outputs, or None where the version refuses the instance."""
    try:
        return [e.value for e in dialect.evaluate(inst, arrays)]
    except (OpconformError, ValueError, KeyError, IndexError):  # a shape that only the other version takes
        return None


def same(a: Any, b: Any) -> bool:
    """Equal type, shape and bits (any NaN is as good as another)."""
    if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
        return isinstance(a, type(b)) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if a is None or b is None or isinstance(a, dict):
        return a is b or a == b
    if a.shape != b.shape or of(a) is not of(b):
        return False
    if of(a).kind == "f":
        x, y = a.astype(np.float64), b.astype(np.float64)
        return bool(np.all((x == y) & (np.signbit(x) == np.signbit(y)) | (np.isnan(x) & np.isnan(y))))
    if of(a).kind == "c":
        return same(a.real, b.real) and same(a.imag, b.imag)
    return bool(np.all(a == b))
