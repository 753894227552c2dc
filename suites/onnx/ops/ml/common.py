"""What the ops of ai.onnx.ml share: rows of numbers, labels, and the rules that their attributes follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.core.dtypes import F32, DType
from harness.core.errors import RuleError
from harness.declare import Call, Draw, T

ML = "ai.onnx.ml"
Array = np.ndarray
WORDS = ("a", "bb", "Z", "", "é")


def objects(values: list[Any], shape: tuple[int, ...]) -> Array:
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(shape)


def arranged(values: list[Any], shape: tuple[int, ...], dtype: DType) -> Array:
    return objects(values, shape) if dtype.kind == "s" else np.array(values, dtype.np).reshape(shape)


def require(ok: Any, rule: str, detail: str) -> None:
    """Raises RuleError where a stated rule does not hold."""
    if not ok:
        raise RuleError(rule, detail)


def one_of(c: Call, rule: str, *names: str) -> str:
    """The only one of some attributes that is given; an empty list beside others is none."""
    written = [n for n in names if n in c.attrs]
    given = [n for n in written if not isinstance(c.attrs[n], (list, tuple)) or c.attrs[n]] or written
    require(len(given) == 1, rule, f"{', '.join(given) or 'none'} given of {', '.join(names)}")
    return given[0]


def single(c: Call, i: int) -> DType:
    """f32, whatever goes in."""
    return F32


def quarters(d: Draw, n: int, lo: int = -12, hi: int = 12) -> list[float]:
    """Multiples of 1/4, whose products and sums are exact."""
    return [d.int(lo, hi) / 4 for _ in range(n)]


def rows(d: Draw, dtype: DType, n: int, f: int, lo: int = -12, hi: int = 12) -> T:
    """N rows of F features on the grid of quarters, or whole."""
    return T(
        (n, f),
        values=quarters(d, n * f, lo, hi) if dtype.kind == "f" else [d.int(lo // 2, hi // 2) for _ in range(n * f)],
    )


def shaped(d: Draw, dtype: DType, shape: tuple[int, ...], odd: bool = False) -> T:
    """As ``rows``, of any shape.  odd: floats that are no numbers, or have no end, among them."""
    t = rows(d, dtype, 1, int(np.prod(shape)))
    values = t.values
    if odd and dtype.kind == "f" and values and d.chance(3):
        values[d.int(0, len(values) - 1)] = d.pick((float("nan"), float("inf"), -float("inf"), -0.0))
    return T(shape, values=values)


def changed(draw: Callable[[Draw], dict[str, Any]], how: Callable[[Any], Any], *names: str) -> Any:
    """A draw of which those of ``names`` that are there go through ``how``."""

    def fn(d: Draw) -> dict[str, Any]:
        out = draw(d)
        return {**out, **{n: how(out[n]) for n in names if n in out}}

    return fn
