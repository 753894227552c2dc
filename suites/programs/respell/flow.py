"""Respellings of what flows where: more outputs, more users, and nodes that change nothing."""

from __future__ import annotations

import math

from harness.core.dtypes import DType
from suites.programs.respell.operands import site, use
from suites.programs.respell.view import Site, View, plain

MOST_OUTPUTS = 4  # of a program; see ``suites.programs.dialect.MOST``


def hidden(v: View) -> list[Site]:
    """Values between two nodes that are no output."""
    return [(x.name,) for x in v.between() if not x.output and v.words.exposable(v, x.name)]


def output_too(v: View, at: Site) -> None:
    v.expose(at[0])


def made(v: View) -> list[Site]:
    """Values that a node makes, of numbers."""
    return [(x.name,) for x in v.data() if x.producer is not None and plain(x.dtype) and v.words.exposable(v, x.name)]


def second_user(v: View, at: Site) -> None:
    """Another node uses the value too; its result is an output."""
    producer = v.values[at[0]].producer
    assert producer is not None
    v.expose(v.words.second(v, producer + 1, at[0]))


def twice_sites(v: View) -> list[Site]:
    """Nodes of one result that another node uses."""
    out = []
    for x in v.between():
        assert x.producer is not None
        node = v.g.nodes[x.producer]
        if len(node.outputs) == 1 and not x.output:
            out += [(x.producer, *site(u)) for u in v.uses(x)]
    return out


def twice(v: View, at: Site) -> None:
    """The node is there twice, and one of its users takes the result of the second."""
    node = v.g.nodes[at[0]]
    u = use(at[1:])
    again = v.node(u.node, node.op, dict(node.inputs), dict(node.attrs))
    v.words.copied(v, node.outputs[0], again)
    v.give(type(u)(u.node + 1, u.slot, u.position), again)


def operands(v: View) -> list[Site]:
    """Operands that are data, constants among them."""
    return [(x.name, *site(u)) for x in v.data() for u in v.uses(x)]


def numbers(v: View) -> list[Site]:
    """Operands of numbers."""
    return [s for s in operands(v) if plain(v.values[s[0]].dtype)]


def _through(v: View, at: Site, name: str, added: int) -> None:
    u = use(at[1:])
    v.give(type(u)(u.node + added, u.slot, u.position), name)


def identity(v: View, at: Site) -> None:
    _through(v, at, v.words.identity(v, at[1], at[0]), 1)


def _casts(v: View, table: dict[DType, DType]) -> list[Site]:
    return [s for s in operands(v) if v.values[s[0]].dtype in table]


def widened_sites(v: View) -> list[Site]:
    return _casts(v, dict(v.words.wider))


def narrowed_sites(v: View) -> list[Site]:
    return _casts(v, dict(v.words.narrower))


def _cast_pair(v: View, at: Site, to: DType) -> None:
    was = v.values[at[0]].dtype
    there = v.words.cast(v, at[1], at[0], to)
    _through(v, at, v.words.cast(v, at[1] + 1, there, was), 2)


def cast_wider(v: View, at: Site) -> None:
    """A Cast to a wider type and back."""
    _cast_pair(v, at, v.words.wider[v.values[at[0]].dtype])


def cast_narrower(v: View, at: Site) -> None:
    """A Cast to a narrower type and back, which rounds."""
    _cast_pair(v, at, v.words.narrower[v.values[at[0]].dtype])


def turned_sites(v: View) -> list[Site]:
    return [s for s in operands(v) if 2 <= len(v.values[s[0]].shape) <= 5]


def transpose_pair(v: View, at: Site) -> None:
    """A Transpose and its inverse."""
    rank = len(v.values[at[0]].shape)
    perm = v.d.shuffle(list(range(rank)))
    back = [perm.index(k) for k in range(rank)]
    there = v.words.transpose(v, at[1], at[0], perm)
    _through(v, at, v.words.transpose(v, at[1] + 1, there, back), 2)


def laid_out_sites(v: View) -> list[Site]:
    return [s for s in operands(v) if 0 not in v.values[s[0]].shape and len(v.values[s[0]].shape) <= 5]


def reshape_pair(v: View, at: Site) -> None:
    """A reshape to one axis, or with an axis of extent 1 more, and back."""
    shape = v.values[at[0]].shape
    k = v.d.int(0, len(shape))
    there = (math.prod(shape),) if v.d.bool() else (*shape[:k], 1, *shape[k:])
    one = v.words.reshaped(v, at[1], at[0], there)
    _through(v, at, v.words.reshaped(v, at[1] + 1, one, shape), 2)
