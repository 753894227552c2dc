"""Kinds of goals about shapes: ranks, extents, limits that extents cross, broadcasting."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from harness.reach.facts import Facts, Filled, Operand

_AXES = 4  # positions whose extents are counted one by one
LIMITS = (16, 128, 256)  # a vector width, one above the highest i8 and the highest u8
_CONTRACTED = 2049  # elements whose sum an f16 accumulator no longer counts one by one


def ranks(f: Facts) -> list[str]:
    """Each rank that the annotation admits, of each operand."""
    return [f"rank:{o.name}={r}" for o in f.operands for r in range(o.low, o.high + 1)]


def ranks_met(f: Facts, x: Filled) -> Iterator[str]:
    for o in f.operands:
        for a in x.args.get(o.name, ()):
            yield f"rank:{o.name}={len(a.shape)}"


def extents(f: Facts) -> list[str]:
    """Each axis of each operand with extent 0 and 1; an empty operand beside each parameter that is no default."""
    out = [f"extent:{o.name}[{i}]={n}" for o in f.operands for i in range(min(o.high, _AXES)) for n in (0, 1)]
    out += [f"empty-with:{o.name},{p.name}" for o in f.operands if o.high for p in f.parameters]
    return out


def extents_met(f: Facts, x: Filled) -> Iterator[str]:
    for o in f.operands:
        for a in x.args.get(o.name, ()):
            shape = a.shape
            if 0 in shape or 1 in shape:
                for i, n in enumerate(shape[:_AXES]):
                    if n < 2:
                        yield f"extent:{o.name}[{i}]={n}"
                if 0 in shape:
                    for p in f.parameters:
                        given = x.case.inst.attrs.get(p.name)
                        if p.name in x.args or (given is not None and (p.attr is None or given != p.attr.default)):
                            yield f"empty-with:{o.name},{p.name}"


def limits(f: Facts) -> list[str]:
    """Extents that cross a vector width, 127 and 255; operands long enough that a narrow accumulator loses bits."""
    ranks = f.schema.extra.get("ranks", ())  # operands whose extent is a rank
    out = [f"limit:{o.name}>={n}" for o in f.operands if o.high and o.name not in ranks for n in LIMITS]
    summed = (o for o in f.operands if o.high > 1)  # a vector beside another operand, as a bias is, is no sum
    return out + [f"limit:{o.name}:elements>={_CONTRACTED}" for o in summed]


def limits_met(f: Facts, x: Filled) -> Iterator[str]:
    for o in f.operands:
        for a in x.args.get(o.name, ()):
            most = max(a.shape, default=0)
            if most >= LIMITS[0]:
                for n in LIMITS:
                    if most >= n:
                        yield f"limit:{o.name}>={n}"
            size = 1
            for n in a.shape:
                size *= n
            if size >= _CONTRACTED:
                yield f"limit:{o.name}:elements>={_CONTRACTED}"


def _pairs(f: Facts) -> list[tuple[Operand, Operand]]:
    return [(a, b) for a, b in combinations(f.operands, 2) if a.broadcasts and a.broadcasts == b.broadcasts]


def broadcasts(f: Facts) -> list[str]:
    """Each pair of operands that broadcast: either has the lower rank, either is stretched, both are, one is a scalar,
    beyond rank 4."""
    out = []
    for a, b in _pairs(f):
        for p, q in ((a.name, b.name), (b.name, a.name)):
            out += [f"broadcast:{p}<{q}", f"broadcast:{p}=scalar,{q}", f"broadcast:{p}=1,{q}"]
        out += [f"broadcast:{a.name}<>{b.name}"]
        out += [f"broadcast:{a.name},{b.name}:rank>4"] if max(a.high, b.high) > 4 else []
    return out


def broadcasts_met(f: Facts, x: Filled) -> Iterator[str]:
    for oa, ob in _pairs(f):
        given = x.args.get(oa.name), x.args.get(ob.name)
        if not given[0] or not given[1]:
            continue
        a, b = given[0][0].shape, given[1][0].shape
        if a == b:
            continue
        rank = min(len(a), len(b))
        pairs = list(zip(a[len(a) - rank :], b[len(b) - rank :]))
        left = any(m == 1 != n for m, n in pairs)
        right = any(n == 1 != m for m, n in pairs)
        for p, q, s, t, stretched in ((oa.name, ob.name, a, b, left), (ob.name, oa.name, b, a, right)):
            if len(s) < len(t):
                yield f"broadcast:{p}<{q}"
                if not s:
                    yield f"broadcast:{p}=scalar,{q}"
            if stretched:
                yield f"broadcast:{p}=1,{q}"
        if left and right:
            yield f"broadcast:{oa.name}<>{ob.name}"
        if max(len(a), len(b)) > 4:
            yield f"broadcast:{oa.name},{ob.name}:rank>4"
