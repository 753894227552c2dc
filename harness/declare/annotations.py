"""Annotations of a meaning, in the form of jaxtyping: ``Float[Array, "n c *s"]``, ``Each[Ints, "s", 1, 3]``.

First comes the type of the value that the function gets.  A type checker reads nothing else, since each kind is
``typing.Annotated`` to it.  Then comes what the harness reads: the shape pattern of a tensor (grammar:
``core/dims.py``), or the domain of a parameter (``declare/params.py``).  A kind without a domain is written as its name
alone (``Flag``).  A domain with keywords is written ``Annotated[float, Real(0.0, 2.0, also=(1.0,))]``.
"""

from __future__ import annotations

import types
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Union, get_args, get_origin
from typing import Any as Object

import numpy as np

from harness.core import dims
from harness.declare.params import Param

__all__ = [
    "Any",
    "Array",
    "Axes",
    "Axis",
    "Bool",
    "Choice",
    "Complex",
    "Divisor",
    "Each",
    "ElementType",
    "Flag",
    "Float",
    "Int",
    "Integer",
    "Ints",
    "Num",
    "Numeric",
    "Opaque",
    "Pads",
    "Real",
    "Real_",
    "Reals",
    "Str",
    "Strings",
    "Tensor",
    "Variadic",
    "stated",
]

Array = np.ndarray

_KINDS = {
    "num": "fiu",
    "real": "fiub",
    "float": "f",
    "int": "iu",
    "bool": "b",
    "any": "fiubcs",
    "complex": "c",
    "str": "s",
    "numeric": "fiuc",
}


@dataclass(frozen=True)
class Tensor:
    """What an annotation says of a tensor: element kinds, shape pattern, whether it may be absent, whether it
    repeats."""

    kind: str
    pattern: str
    optional: bool = False
    variadic: bool = False

    @property
    def kinds(self) -> str:
        return _KINDS[self.kind]

    @property
    def tokens(self) -> tuple[dims.Token, ...]:
        return dims.parse(self.pattern)

    def __or__(self, other: None) -> Tensor:
        return replace(self, optional=True)


class _Kind:
    """``Float[Array, "n c"]``.  Raises TypeError where the type is missing, ValueError for a bad pattern."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __getitem__(self, item: Object) -> Tensor:
        if not (isinstance(item, tuple) and len(item) == 2 and item[0] is Array and isinstance(item[1], str)):
            raise TypeError(f'expected {self.kind.capitalize()}[Array, "pattern"], got {item!r}')
        dims.parse(item[1])
        return Tensor(self.kind, item[1])


class _Variadic:
    """``xs: Variadic[Num[Array, "*d"]]``: one or more tensors, given to the function as a list."""

    def __class_getitem__(cls, item: Tensor) -> Tensor:
        return replace(item, variadic=True)


if TYPE_CHECKING:
    from typing import Annotated as Any
    from typing import Annotated as Axes
    from typing import Annotated as Axis
    from typing import Annotated as Bool
    from typing import Annotated as Choice
    from typing import Annotated as Complex
    from typing import Annotated as Divisor
    from typing import Annotated as Each
    from typing import Annotated as Float
    from typing import Annotated as Int
    from typing import Annotated as Num
    from typing import Annotated as Numeric
    from typing import Annotated as Pads
    from typing import Annotated as Real_
    from typing import Annotated as Str

    from harness.core.dtypes import DType as ElementType

    Variadic = list
    Flag = bool
    Integer = int
    Ints = tuple[int, ...]
    Opaque = Object
    Real = float
    Reals = tuple[float, ...]
    Strings = tuple[str, ...]
else:
    from harness.declare.params import (
        Axes,
        Axis,
        Choice,
        Divisor,
        Each,
        ElementType,
        Flag,
        Integer,
        Ints,
        Opaque,
        Pads,
        Real,
        Reals,
        Strings,
    )

    Num, Real_, Float, Int, Bool = _Kind("num"), _Kind("real"), _Kind("float"), _Kind("int"), _Kind("bool")
    Any, Complex, Str, Numeric = _Kind("any"), _Kind("complex"), _Kind("str"), _Kind("numeric")
    Variadic = _Variadic


def stated(annotation: Object) -> Tensor | Param | None:
    """What an annotation says; None where it is an ordinary type.  ``X | None`` says what X says."""
    if get_origin(annotation) in (Union, types.UnionType):
        some = [a for a in get_args(annotation) if a is not type(None)]
        return stated(some[0]) if len(some) == 1 else None
    if get_origin(annotation) is Annotated:
        return stated(annotation.__metadata__[0])
    if isinstance(annotation, type) and issubclass(annotation, Param):
        return annotation()
    return annotation if isinstance(annotation, (Tensor, Param)) else None
