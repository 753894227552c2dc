"""Random results, judged by their distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from harness.tolerance.base import Tolerance


@dataclass(frozen=True, eq=False)
class Statistical(Tolerance):
    """A random result.  dist, params: see ``statistical``."""

    dist: str | Callable[..., Any] = "uniform"
    params: dict[str, Any] = field(default_factory=dict)

    name: ClassVar[str] = "STATISTICAL"
    pointwise: ClassVar[bool] = False
    random: ClassVar[bool] = True

    @cached_property
    def brief(self) -> None:
        return None


def statistical(dist: str | Callable[..., Any], **params: Any) -> Statistical:
    """A random result, judged case by case and over pooled samples (``harness.compare.statistics``).

    dist: "uniform" (low, high), "normal" (mean, std), "bernoulli" (p), or ``fn(ctx)`` -> (lowest, highest, x -> P(X <
        x), x -> P(X <= x), is it discrete), where x holds all draws in order.
    params: names of parameters, or functions of the context.
    """
    name = dist if isinstance(dist, str) else (dist.__doc__ or dist.__name__).strip().split("\n")[0].rstrip(".")
    return Statistical(f"distribution: {name}", dist=dist, params=params)
