"""The draw interface: one primitive choice, and the helpers that every generator is written in.

An *engine* gives ``int(lo, hi)``.  There are two (``harness.generate``): a recorded counter-based PRNG, and Hypothesis.
``Draw`` itself is compiled (``native_ref/bind/draw.cc``), since every choice goes through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import native_ref
from harness.core.dtypes import DType

X = TypeVar("X")


class DrawEngine(Protocol):
    """Gives integers; small ones are simpler, so a shrinker lowers them."""

    def int(self, lo: int, hi: int) -> int:
        """Uniform in lo..hi, both included."""
        ...


class T:
    """A tensor that a draw asks for, at the semantic level.

    recipe: how to fill it; None: as the regime of the instance says.
    dtype: None: the slot's drawn type.
    const: None: the dialect decides.
    values: literal elements, flat or nested.
    quant: scale, zero point, axis.
    """

    __slots__ = ("const", "dtype", "items", "kind", "quant", "recipe", "shape", "values")

    def __init__(
        self,
        shape: Sequence[int] = (),
        recipe: str | None = None,
        dtype: DType | None = None,
        const: bool | None = None,
        values: Any = None,
        quant: dict[str, Any] | None = None,
        kind: str = "tensor",
        items: list[T] | None = None,
    ) -> None:
        self.shape = shape if type(shape) is tuple else tuple(shape)
        self.recipe = recipe
        self.dtype = dtype
        self.const = const
        self.values = values
        self.quant = quant
        self.kind = kind
        self.items = items

    def __repr__(self) -> str:
        return f"T({self.shape}, {self.recipe or self.values})"


if TYPE_CHECKING:
    from builtins import bool as _bool  # ``Draw.int`` and ``Draw.bool`` hide the types of that name
    from builtins import int as _int

    class Draw:
        """What a generator draws from.

        version: the op version drawn for.  opset: the model's.
        fixed: parameters that the entry pins.
        types: drawn type of each type name.
        min_rank, max_rank, allow_empty: limits of the entry and the dialect.
        budget: number of elements that a tensor may have.
        breaking: is the instance to break a rule?
        empty: may this instance have empty axes (one in twenty)?

        In one instance in twenty each, one tensor has an axis of up to 4096, or ranks are near ``max_rank``.
        """

        engine: DrawEngine
        version: Any  # the op version that is drawn (harness.declare.OpVersion)
        opset: _int | str
        fixed: dict[str, Any]
        types: dict[str, DType]
        max_rank: _int
        min_rank: _int
        allow_empty: _bool
        budget: _int
        breaking: _bool
        empty: _bool

        def __init__(
            self,
            engine: DrawEngine,
            version: Any,
            opset: _int | str,
            fixed: dict[str, Any],
            types: dict[str, DType],
            max_rank: _int = 6,
            allow_empty: _bool = True,
            budget: _int = 1024,
            min_rank: _int = 0,
        ) -> None: ...

        def int(self, lo: _int, hi: _int) -> _int:
            """Uniform in lo..hi, both included."""

        def bool(self) -> _bool: ...

        def chance(self, n: _int) -> _bool:
            """True once in ``n``."""

        def pick(self, options: Sequence[X]) -> X: ...

        def subset(self, options: Sequence[X], least: _int = 0) -> list[X]:
            """Some of the options in any order."""

        def shuffle(self, options: Sequence[X]) -> list[X]: ...

        def dim(self, lo: _int = 0, hi: _int = 13) -> _int:
            """An extent; 0 only in the instances that may be empty, and only if ``lo`` is 0."""

        def extent(self, lo: _int, hi: _int) -> _int:
            """Uniform in lo..hi as ``int``, for what is the extent of an axis and nothing else: it may be another one
            where all the rest is played back."""

        def rank(self, lo: _int = 0, hi: _int | None = None) -> _int:
            """A rank, low ones favoured."""

        def shape(self, min_rank: _int = 0, max_rank: _int | None = None, lo: _int = 0) -> tuple[_int, ...]:
            """Shape of a tensor, its product within the budget, its rank within the limits of dialect and entry."""

        def part(self, min_rank: _int = 0, max_rank: _int | None = None, lo: _int = 0) -> tuple[_int, ...]:
            """Some axes of a shape: as ``shape``, without the least rank of the dialect."""

        def broadcast_from(self, full: tuple[_int, ...]) -> tuple[_int, ...]:
            """A shape that broadcasts to ``full``: axes replaced by 1, leading ones dropped."""

        def axis(self, rank: _int) -> _int:
            """A valid axis of either sign."""

        def dtype(self, slot: str) -> DType:
            """The type drawn for a semantic tensor parameter or a dialect slot."""

else:
    Draw = native_ref.Draw
