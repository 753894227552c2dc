"""The draw interface: three primitive choices, and the helpers that every generator is written in.

An *engine* gives ``int(lo, hi)``; two stand behind it (``harness.gen``): a recorded counter-based PRNG and Hypothesis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from harness.core.dtypes import DType

if TYPE_CHECKING:
    from harness.spec.opversion import OpVersion

X = TypeVar("X")


class Engine(Protocol):
    """Gives integers; small ones are simpler, so a shrinker lowers them."""

    def int(self, lo: int, hi: int) -> int:
        """Uniform in lo..hi, both included."""
        ...


class T:
    """A tensor that a draw asks for, at the semantic level.

    shape; recipe: how to fill it (None: the regime of the instance); dtype: None takes the slot's drawn type;
    const: None lets the dialect decide; values: literal elements (flat or nested); quant: scale / zero point / axis.
    """

    __slots__ = ("const", "dtype", "items", "kind", "quant", "recipe", "shape", "values")

    def __init__(self, shape: Sequence[int] = (), recipe: str | None = None, dtype: DType | None = None,
                 const: bool | None = None, values: Any = None, quant: dict[str, Any] | None = None,
                 kind: str = "tensor", items: list[T] | None = None) -> None:  # fmt: skip
        self.shape = tuple(shape)
        self.recipe = recipe
        self.dtype = dtype
        self.const = const
        self.values = values
        self.quant = quant
        self.kind = kind
        self.items = items

    def __repr__(self) -> str:
        return f"T({self.shape}, {self.recipe or self.values})"


# extents: 1 and 2 are the ones bugs hide in, primes keep axes apart, 0 is the empty tensor
_EXTENTS = (1, 2, 3, 2, 3, 4, 5, 1, 7, 3, 2, 5, 4, 6, 8, 11, 13, 2, 3, 1)
_RANKS = (1, 2, 3, 4, 2, 3, 2, 4, 1, 0, 5, 6)


class Draw:
    """What a generator draws from.  version: the op version drawn for.  opset: the model's.  fixed: parameters that the
    entry pins.  min_rank, max_rank, allow_empty: limits of the entry and the dialect.  budget: elements a tensor may
    have.  breaking: is the instance to break a rule?"""

    __slots__ = (
        "allow_empty",
        "breaking",
        "budget",
        "empty",
        "engine",
        "extents",
        "fixed",
        "max_rank",
        "min_rank",
        "opset",
        "types",
        "version",
    )  # fmt: skip

    def __init__(self, engine: Engine, version: OpVersion, opset: int | str, fixed: dict[str, Any],
                 types: dict[str, DType], max_rank: int = 6, allow_empty: bool = True, budget: int = 1024,
                 min_rank: int = 0) -> None:  # fmt: skip
        self.engine = engine
        self.extents = getattr(engine, "extent", None)  # other extents where all the rest is played back
        self.version = version
        self.opset = opset
        self.fixed = fixed
        self.types = types
        self.max_rank = max_rank
        self.min_rank = min_rank
        self.allow_empty = allow_empty
        self.budget = budget
        self.breaking = False
        self.empty = allow_empty and engine.int(0, 19) == 19  # one instance in twenty may have empty axes

    def int(self, lo: int, hi: int) -> int:
        """Uniform in lo..hi, both included."""
        return self.engine.int(lo, hi)

    def bool(self) -> bool:
        return self.engine.int(0, 1) == 1

    def chance(self, n: int) -> bool:
        """True once in ``n``."""
        return self.engine.int(0, n - 1) == n - 1

    def pick(self, options: Sequence[X]) -> X:
        return options[self.engine.int(0, len(options) - 1)]

    def subset(self, options: Sequence[X], least: int = 0) -> list[X]:
        """Some of the options in any order."""
        pool, out = list(options), []
        for _ in range(self.engine.int(least, len(pool))):
            out.append(pool.pop(self.engine.int(0, len(pool) - 1)))
        return out

    def shuffle(self, options: Sequence[X]) -> list[X]:
        pool, out = list(options), []
        while pool:
            out.append(pool.pop(self.engine.int(0, len(pool) - 1)))
        return out

    def dim(self, lo: int = 0, hi: int = 13) -> int:
        """An extent; 0 only in the instances that may be empty, and only if ``lo`` is 0."""
        if self.empty and lo == 0 and self.engine.int(0, 3) == 3:
            return 0
        k = self.engine.int(0, 19)
        if self.extents is not None:
            k = self.extents(k, 0, 19)
        n = _EXTENTS[k]
        return n if lo <= n <= hi else lo + n % (hi - lo + 1) if lo > 0 else 1 + n % hi

    def extent(self, lo: int, hi: int) -> int:
        """Uniform in lo..hi as ``int``, for what is the extent of an axis and nothing else."""
        n = self.engine.int(lo, hi)
        return n if self.extents is None else self.extents(n, lo, hi)

    def rank(self, lo: int = 0, hi: int | None = None) -> int:
        """A rank, low ones favoured."""
        top = self.max_rank if hi is None else min(hi, self.max_rank)
        r = _RANKS[self.engine.int(0, len(_RANKS) - 1)]
        return r if lo <= r <= top else self.engine.int(lo, top)

    def shape(self, min_rank: int = 0, max_rank: int | None = None, lo: int = 0) -> tuple[int, ...]:
        """Shape of a tensor, its product within the budget, its rank within the limits of dialect and entry."""
        return self.part(max(min_rank, self.min_rank), max_rank, lo)

    def part(self, min_rank: int = 0, max_rank: int | None = None, lo: int = 0) -> tuple[int, ...]:
        """Some axes of a shape: as ``shape``, without the least rank of the dialect."""
        out, room = [], self.budget
        for _ in range(self.rank(min_rank, max_rank)):
            n = self.dim(lo)
            if n > room:
                n = max(1, room)
            out.append(n)
            room //= max(n, 1)
        return tuple(out)

    def broadcast_from(self, full: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts to ``full``: axes replaced by 1, leading ones dropped."""
        kind = self.engine.int(0, 5)
        if kind < 3:
            return full
        if kind == 3:
            return full[self.engine.int(0, max(0, len(full) - self.min_rank)) :]
        out = [1 if self.engine.int(0, 2) == 2 else n for n in full]
        if kind == 5:
            out = out[self.engine.int(0, max(0, len(out) - self.min_rank)) :]
        return tuple(out)

    def axis(self, rank: int) -> int:
        """A valid axis of either sign."""
        return self.engine.int(0, rank - 1) - (rank if self.engine.int(0, 2) == 2 else 0)

    def dtype(self, slot: str) -> DType:
        """The type drawn for a semantic tensor parameter or a dialect slot."""
        return self.version.slot_dtype(slot, self.types)
