"""How the readings are written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

Attrs = dict[str, Any]
Arrays = dict[str, Any]
Read = Callable[[Attrs, Arrays, str], list[Any]]
R = TypeVar("R", bound=Read)


def reader(table: dict[str, Read]) -> Callable[..., Callable[[R], R]]:
    """A decorator that puts a reading into a table, under the names of its ops."""

    def of(*names: str) -> Callable[[R], R]:
        def keep(fn: R) -> R:
            table.update(dict.fromkeys(names, fn))
            return fn

        return keep

    return of


def wide(x: Any) -> Any:
    """f64, or Python-sized integers."""
    return None if x is None else x.astype(np.float64 if x.dtype.kind == "f" else np.int64)


def held(x: np.ndarray, value: float) -> float:
    """A default, in the type of x."""
    return float(np.array(value, x.dtype))
