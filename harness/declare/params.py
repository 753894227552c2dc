"""Parameters of a meaning: each kind draws a value, reads one from a model, and states what is forbidden."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, DType
from harness.core.errors import RuleError
from harness.generate.draw import Draw


class Param:
    """Base.  ``draw(d, env)`` gives a valid value; ``read(v)`` turns an attribute or a constant input's array into the
    semantic value; ``invalid(d, env)`` yields (rule, value) pairs outside the domain."""

    def draw(self, d: Draw, env: dict[str, Any]) -> Any:
        raise NotImplementedError

    def read(self, v: Any) -> Any:
        return v.tolist() if isinstance(v, np.ndarray) else v

    def invalid(self, d: Draw, env: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        return iter(())

    def __or__(self, other: None) -> Param:
        """``Axes[Ints, "d"] | None``: the annotation of a parameter that may be absent."""
        return self

    needs_rank: str | None = None  # the variadic dim that must have at least one axis


def _domain(kind: type, item: Any) -> tuple[Any, ...]:
    """What follows the value's type in ``Axes[Ints, "d"]``; raises TypeError where there is no type or nothing else."""
    if not (isinstance(item, tuple) and len(item) > 1) or isinstance(item[0], (str, int)):
        raise TypeError(f"expected {kind.__name__}[type, domain], got {item!r}")
    return item[1:]


class _OfDim(Param):
    def __init__(self, dim: str, *args: Any, **kw: Any) -> None:
        self.dim = dim
        self.init(*args, **kw)

    def init(self) -> None: ...

    def __class_getitem__(cls, item: Any) -> Any:
        return cls(*_domain(cls, item))


class Axes(_OfDim):
    """Distinct axes of ``dim`` in any order and sign; None is all of them; ``least`` of them."""

    def init(self, least: int = 0, none: bool = True) -> None:
        self.least, self.none = least, none

    def draw(self, d: Draw, env: dict[str, Any]) -> Any:
        r = len(env[self.dim])
        if self.none and d.int(0, 4) == 4:
            return None
        chosen = d.subset(range(r), min(max(self.least, 1), r))
        return tuple(a - r if d.int(0, 2) == 2 else a for a in chosen)

    def read(self, v: Any) -> Any:
        if v is None:
            return None
        return _whole(v)

    def invalid(self, d: Draw, env: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        r = len(env[self.dim])
        yield "axes-in-range", (r + d.int(0, 2),)


class Axis(_OfDim):
    """One axis of ``dim``, of either sign."""

    def init(self, signed: bool = True) -> None:
        self.signed = signed
        self.needs_rank = self.dim

    def draw(self, d: Draw, env: dict[str, Any]) -> Any:
        r = len(env[self.dim])
        return d.axis(r) if self.signed else d.int(0, r - 1)

    def read(self, v: Any) -> Any:
        return v if v is None or type(v) is int else int(np.asarray(v).ravel()[0])

    def invalid(self, d: Draw, env: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        r = len(env[self.dim])
        yield "axis-in-range", d.pick((r, -r - 1, r + 3))


def _whole(v: Any) -> tuple[int, ...]:
    """Integers of a written list or an array."""
    return tuple(map(int, v)) if type(v) is list else tuple(map(int, np.asarray(v).ravel().tolist()))


class Each(_OfDim):
    """One integer in lo..hi for every axis of ``dim``."""

    def init(self, lo: int = 1, hi: int = 3) -> None:
        self.lo, self.hi = lo, hi

    def draw(self, d: Draw, env: dict[str, Any]) -> Any:
        return tuple(d.int(self.lo, self.hi) for _ in env[self.dim])

    def read(self, v: Any) -> Any:
        return None if v is None else _whole(v)


class Pads(_OfDim):
    """Begins then ends for every axis of the first dim, each below the window extent given by the second."""

    def init(self, k: str | None = None, hi: int = 2) -> None:
        self.k, self.hi = k, hi

    def draw(self, d: Draw, env: dict[str, Any]) -> Any:
        n = len(env[self.dim])
        tops = [min(self.hi, k - 1) for k in env[self.k]] if self.k and self.k in env else [self.hi] * n
        if d.bool():
            return (0,) * (2 * n)
        return tuple(d.int(0, max(0, tops[i % n])) for i in range(2 * n))

    def read(self, v: Any) -> Any:
        return None if v is None else _whole(v)


class Divisor(_OfDim):
    """A positive divisor of one extent."""

    def draw(self, d: Draw, env: dict[str, Any]) -> Any:
        n = env[self.dim]
        return d.pick([k for k in range(1, max(n, 1) + 1) if n % k == 0])

    def read(self, v: Any) -> Any:
        return int(np.asarray(v).ravel()[0])


class Flag(Param):
    """A boolean."""

    def draw(self, d: Draw, env: dict[str, Any]) -> Any:
        return d.bool()

    def read(self, v: Any) -> Any:
        return None if v is None else bool(v) if type(v) in (int, bool) else bool(np.asarray(v).ravel()[0])


class Choice(Param):
    """One of the named modes: ``Choice[str, "linear", "cubic"]``, or ``Choice[str, MODES]`` of a collection."""

    def __init__(self, *options: Any) -> None:
        self.options = options

    def __class_getitem__(cls, item: Any) -> Any:
        options = _domain(cls, item)
        return cls(*(options if isinstance(options[0], (str, int)) else options[0]))

    def draw(self, d: Draw, env: dict[str, Any]) -> Any:
        return d.pick(self.options)

    def read(self, v: Any) -> Any:
        if isinstance(v, bytes):
            v = v.decode()
        elif isinstance(v, np.ndarray):
            v = v.ravel()[0] if v.size else None
        if v is not None and v not in self.options:
            raise RuleError("known-mode", f"{v!r}, expected {' or '.join(map(str, self.options))}")
        return v


class Real(Param):
    """A float in lo..hi on a grid that every float type can hold exactly where the range is small; ``also`` are
    values worth trying by name (0, 1, defaults, limits)."""

    def __init__(self, lo: float = -4.0, hi: float = 4.0, also: tuple[float, ...] = ()) -> None:
        self.lo, self.hi, self.also = lo, hi, also

    def draw(self, d: Draw, env: dict[str, Any]) -> Any:
        if self.also and d.int(0, 3) == 3:
            return float(d.pick(self.also))
        return self.lo + (self.hi - self.lo) * d.int(0, 64) / 64.0

    def read(self, v: Any) -> Any:
        return v if v is None or type(v) is float else float(np.asarray(v).ravel()[0])


class Integer(Param):
    """An integer in lo..hi."""

    def __init__(self, lo: int = 0, hi: int = 4) -> None:
        self.lo, self.hi = lo, hi

    def draw(self, d: Draw, env: dict[str, Any]) -> Any:
        return d.int(self.lo, self.hi)

    def read(self, v: Any) -> Any:
        return v if v is None or type(v) is int else int(np.asarray(v).ravel()[0])


class Ints(Param):
    """A list of integers whose drawing the meaning does itself."""

    def read(self, v: Any) -> Any:
        return None if v is None else _whole(v)


class Reals(Param):
    """A list of floats whose drawing the meaning does itself."""

    def read(self, v: Any) -> Any:
        return None if v is None else tuple(float(x) for x in np.asarray(v).ravel())


class Strings(Param):
    """A list of strings whose drawing the meaning does itself."""

    def read(self, v: Any) -> Any:
        return None if v is None else tuple(x.decode() if isinstance(x, bytes) else x for x in np.asarray(v).ravel())


class ElementType(Param):
    """A DType of ours."""

    def __init__(self, *options: DType) -> None:
        self.options = options

    def draw(self, d: Draw, env: dict[str, Any]) -> Any:
        return d.pick(self.options)

    def read(self, v: Any) -> Any:
        return BY_NAME[v] if isinstance(v, str) and v in BY_NAME else v


class Opaque(Param):
    """Anything: passed through as it is; drawn by the meaning itself."""

    def read(self, v: Any) -> Any:
        return v
