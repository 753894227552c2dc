"""Respellings of operands: exchanged, the same twice, constants in other forms and with other users."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from suites.programs.respell.view import Site, View, plain
from suites.programs.values import Use

MOST_RANK = 6  # of a constant that gets more axes


def use(site: Site) -> Use:
    """An operand, as a site names it."""
    return Use(site[0], site[1], site[2])


def site(u: Use) -> Site:
    """The plain form of an operand."""
    return (u.node, u.slot, u.position)


def commutative(v: View) -> list[Site]:
    """Nodes whose two operands may be exchanged."""
    out = []
    for i, node in enumerate(v.g.nodes):
        pair = v.pair(i) if node.op in v.words.commutative else None
        if pair is not None and pair[0] != pair[1]:
            out.append((i,))
    return out


def exchange(v: View, at: Site) -> None:
    v.exchange(at[0])


def constant_right(v: View) -> list[Site]:
    """Nodes whose operands mean different things, with a constant on the right."""
    out = []
    for i, node in enumerate(v.g.nodes):
        pair = v.pair(i) if node.op in v.words.ordered else None
        if pair is not None and pair[1] in v.g.consts and pair[0] not in v.g.consts:
            out.append((i,))
    return out


def pairs_of_a_type(v: View) -> list[Site]:
    """Nodes with two operands of one type and shape."""
    out = []
    for i in range(len(v.g.nodes)):
        pair = v.pair(i)
        if pair is not None and pair[0] != pair[1]:
            a, b = v.values[pair[0]], v.values[pair[1]]
            if a.dtype is b.dtype and a.shape == b.shape:
                out.append((i, 0))
                out.append((i, 1))
    return out


def same_twice(v: View, at: Site) -> None:
    """One operand in both places."""
    i, which = at
    slots, pair = v.words.slots(v, v.g.nodes[i].op), v.pair(i)
    assert slots is not None
    assert pair is not None
    if slots[0] == slots[1]:
        v.g.nodes[i].inputs[slots[0]] = [pair[which]] * 2
    else:
        v.g.nodes[i].inputs[slots[0]] = v.g.nodes[i].inputs[slots[1]] = pair[which]


def alike(v: View) -> list[Site]:
    """Constants of one type and shape, of which one may stand for the other."""
    found = list(v.const_uses())
    out = []
    for a, u in found:
        for b, w in found:
            same = a.dtype is b.dtype and a.shape == b.shape and a.dtype.kind != "s"
            if (same and a.name < b.name) or (a.name == b.name and site(u) < site(w)):
                out.append((a.name, *site(w)))
    return out


def share(v: View, at: Site) -> None:
    """One constant for two users."""
    v.give(use(at[1:]), at[0])
    v.words.share(v, at[0])


def constants(v: View) -> list[Site]:
    """Constants of numbers that are data."""
    found = [(c.name, u.node) for c, u in v.const_uses() if plain(c.dtype) and v.words.exposable(v, c.name)]
    return list(dict.fromkeys(found))


def second_user_of_constant(v: View, at: Site) -> None:
    """Another node uses the constant too, before its first user; its result is an output."""
    v.words.share(v, at[0])
    v.expose(v.words.second(v, at[1], at[0]))


def of_broadcasts(v: View) -> list[Site]:
    """Constants that are one of two operands that broadcast."""
    out = []
    for c, u in v.const_uses():
        if v.words.slots(v, v.g.nodes[u.node].op) is not None and v.pair(u.node) is not None and plain(c.dtype):
            out.append(site(u))
    return out


def _reshaped(v: View, at: Site, change: Callable[[np.ndarray, int], np.ndarray]) -> None:
    u = use(at)
    pair = v.pair(u.node)
    assert pair is not None
    rank = max(len(v.values[n].shape) for n in pair)
    v.give(u, v.const(change(v.g.consts[v.operand(u)], rank)))


def with_elements(v: View) -> list[Site]:
    """Of these the ones with an element."""
    return [s for s in of_broadcasts(v) if _value(v, s).size]


def _value(v: View, at: Site) -> np.ndarray:
    return v.g.consts[v.operand(use(at))]


def not_scalar(v: View) -> list[Site]:
    return [s for s in with_elements(v) if _value(v, s).ndim]


def scalar(v: View, at: Site) -> None:
    """One element, of rank 0."""
    _reshaped(v, at, lambda a, r: np.asarray(a.ravel()[0]))


def not_one(v: View) -> list[Site]:
    return [s for s in with_elements(v) if _value(v, s).shape != (1,)]


def one(v: View, at: Site) -> None:
    """One element, of shape [1]."""
    _reshaped(v, at, lambda a, r: a.ravel()[:1])


def below_rank(v: View) -> list[Site]:
    out = []
    for s in of_broadcasts(v):
        pair = v.pair(s[0])
        assert pair is not None
        if _value(v, s).ndim < max(len(v.values[n].shape) for n in pair):
            out.append(s)
    return out


def same_rank(v: View, at: Site) -> None:
    """Axes of extent 1 in front, until the constant has the rank of the other operand."""
    _reshaped(v, at, lambda a, r: a.reshape((1,) * (r - a.ndim) + a.shape))


def may_rise(v: View) -> list[Site]:
    out = []
    for s in of_broadcasts(v):
        pair = v.pair(s[0])
        assert pair is not None
        if max(len(v.values[n].shape) for n in pair) < MOST_RANK:
            out.append(s)
    return out


def higher_rank(v: View, at: Site) -> None:
    """One axis more than the other operand has, so that the result has it too."""
    _reshaped(v, at, lambda a, r: a.reshape((1,) * (r + 1 - a.ndim) + a.shape))


def spread_sites(v: View) -> list[Site]:
    out = []
    for s in with_elements(v):
        pair = v.pair(s[0])
        assert pair is not None
        other = v.values[pair[0] if v.values[pair[1]].const else pair[1]]
        if other.shape and _value(v, s).shape != other.shape and np.prod(other.shape) <= 1024:
            out.append(s)
    return out


def spread(v: View, at: Site) -> None:
    """A constant of all elements that it broadcasts to: equal ones where it was a scalar."""
    pair = v.pair(at[0])
    assert pair is not None
    shape = np.broadcast_shapes(*(v.values[n].shape for n in pair))
    _reshaped(v, at, lambda a, r: np.broadcast_to(a, shape).copy())
