"""What the movement family shares: axis checks and the little draws that its generators are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from harness.core.dtypes import of
from harness.core.errors import RuleError
from harness.declare.codec import Map, Named
from harness.generate.draw import Draw

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


def norm_axis(axis: int, rank: int, rule: str = "axis-in-range") -> int:
    """``axis`` counted from the front; raises RuleError(rule) outside [-rank, rank)."""
    axis = int(axis)
    if not -rank <= axis < rank:
        raise RuleError(rule, f"axis {axis} for rank {rank}")
    return axis + rank if axis < 0 else axis


def norm_axes(axes: Sequence[int] | None, rank: int) -> list[int]:
    """Each axis counted from the front, in the given order; None is all of them.

    Raises RuleError "axes-in-range" or "axes-distinct".
    """
    if axes is None:
        return list(range(rank))
    out = [norm_axis(a, rank, "axes-in-range") for a in axes]
    if len(set(out)) != len(out):
        raise RuleError("axes-distinct", f"axes {list(axes)} for rank {rank}")
    return out


def signed(d: Draw, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """The axes again, some of them counted from the end."""
    return tuple(a - rank if d.int(0, 2) == 2 else a for a in axes)


def beyond(d: Draw, rank: int) -> int:
    """An axis that a tensor of ``rank`` does not have."""
    return d.pick((rank, -rank - 1, rank + 3))


def fixed(d: Draw, name: str, draw: Any) -> Any:
    """What the entry pins ``name`` to, else what ``draw()`` gives."""
    return d.fixed[name] if name in d.fixed else draw()


def tagged(d: Draw, tag: str, every: int = 1) -> bool:
    """Does the entry draw what the tag names?  Once in ``every`` instances."""
    return tag in d.version.entry.sampling.tags and d.chance(every)


def options(d: Draw, name: str) -> tuple[Any, ...]:
    """The values of a mode parameter that the dialect can spell at this op version: pinned, mapped, or in
    the schema."""
    if name in d.fixed:
        return (d.fixed[name],)
    codec = d.version.param_codecs.get(name)
    if isinstance(codec, Map):
        return tuple(codec.table)
    attr = d.version.schema.attrs.get(codec.name) if isinstance(codec, Named) else None
    known = d.version.meaning.params[name].options if d.version.meaning is not None else ()
    return tuple(o for o in attr.enum if o in known) if attr is not None and attr.enum else tuple(known)


def prod(values: Sequence[int]) -> int:
    """Exact product of Python integers; 1 for none."""
    out = 1
    for v in values:
        out *= int(v)
    return out


def divisors(n: int) -> list[int]:
    """Positive divisors of ``n`` >= 1."""
    return [k for k in range(1, n + 1) if n % k == 0]


def by_place(x: np.ndarray, f: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """``f`` of elements that are no numbers, where it only moves them: of their places, counted from 1.  Place 0 is a
    False, a zero, an empty string."""
    places = f(np.arange(1, x.size + 1, dtype=np.int64).reshape(x.shape))
    none = np.array([""], x.dtype) if of(x).kind == "s" else np.zeros(1, x.dtype)
    return np.concatenate([none, x.ravel()])[places]
