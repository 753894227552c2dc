"""Respellings of parameters: axes in the other sign, 0 and -1 in a shape, axes that are kept or not."""

from __future__ import annotations

from typing import Any

import numpy as np

from suites.programs.respell.view import Site, View


def _axes(v: View, i: int) -> list[tuple[str, int]]:
    """(parameter, how many axes it counts from) of a node."""
    x = v.main(i)
    if x is None:
        return []
    out = []
    op = v.g.nodes[i].op
    for p in v.parameters(i):
        value = v.parameter(i, p.name)
        if p.kind not in ("axis", "axes") or value is None:
            continue
        if p.name in v.words.perms.values() and v.words.perms.get(op) != p.name:
            continue
        rank = len(x.shape) + (np.size(value) if op in v.words.inserts_axes else 0)
        if rank and p.name != "batch_dims":
            out.append((p.name, rank))
    return out


def signed(v: View) -> list[Site]:
    """Axes that a node names, and permutations."""
    out = []
    for i in range(len(v.g.nodes)):
        for name, rank in _axes(v, i):
            value = np.asarray(v.parameter(i, name)).ravel().tolist()
            out += [(i, name, k, rank) for k, a in enumerate(value) if isinstance(a, int) and -rank <= a < rank]
    return out


def other_sign(v: View, at: Site) -> None:
    """One axis counted from the other end."""
    i, name, k, rank = at
    value: Any = v.parameter(i, name)
    array = np.array(value)
    flat = array.reshape(-1)
    flat[k] += -rank if flat[k] >= 0 else rank
    v.set_parameter(i, name, array if isinstance(value, np.ndarray) else array.tolist())


def _reshapes(v: View) -> list[tuple[int, np.ndarray, tuple[int, ...]]]:
    op, slot, shape = v.words.reshape
    out = []
    for i, node in enumerate(v.g.nodes):
        if node.op != op or any(x for k, x in node.attrs.items() if k == "allowzero"):
            continue
        told = v.parameter(i, shape)
        given = v.values.get(str(node.inputs.get(slot)))
        if told is not None and given is not None:
            out.append((i, np.asarray(told).ravel(), given.shape))
    return out


def sized(v: View) -> list[Site]:
    """Extents of a reshape of which one may be left to the runtime."""
    if not v.words.minus_one:
        return []
    return [(i, k) for i, told, _ in _reshapes(v) if (told > 0).all() for k in range(len(told))]


def kept(v: View) -> list[Site]:
    """Extents of a reshape that are those of its operand, at the same place."""
    if not v.words.zero:
        return []
    found = _reshapes(v)
    return [(i, k) for i, told, s in found for k in range(min(len(told), len(s))) if told[k] == s[k] > 0]


def _set(v: View, at: Site, n: int) -> None:
    name = v.words.reshape[2]
    value = v.parameter(at[0], name)
    array = np.array(value)
    array.reshape(-1)[at[1]] = n
    v.set_parameter(at[0], name, array if isinstance(value, np.ndarray) else array.tolist())


def minus_one(v: View, at: Site) -> None:
    _set(v, at, -1)


def zero(v: View, at: Site) -> None:
    _set(v, at, 0)


def reducing(v: View) -> list[Site]:
    """Nodes that keep the axes they reduce, or not."""
    name = v.words.keepdims
    out: list[Site] = []
    for i in range(len(v.g.nodes)):
        version = v.version(i) if name else None
        if version is not None and (name in version.schema.attrs or version.schema.input(name) is not None):
            out.append((i,))
    return out


def keep(v: View, at: Site) -> None:
    """The other way about; the default is the other one's opposite where nothing is said."""
    name = v.words.keepdims
    was = v.parameter(at[0], name)
    if was is None:
        version = v.version(at[0])
        assert version is not None
        default = version.schema.attrs[name].default
        v.g.nodes[at[0]].attrs[name] = type(default)(not default)
    elif isinstance(was, np.ndarray):
        v.set_parameter(at[0], name, ~was if was.dtype == bool else 1 - was)
    else:
        v.g.nodes[at[0]].attrs[name] = type(was)(not was)
