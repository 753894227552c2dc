"""Limits of one reduction, and what the steps of it share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from harness.core.instance import Arg, Instance

Fails = Callable[[Instance], bool]


@dataclass
class Budget:
    """Limits of one reduction: evaluations and seconds."""

    evaluations: int = 800
    seconds: float = 6.0

    def __post_init__(self) -> None:
        self.until = time.monotonic() + self.seconds
        self.used = 0

    def spent(self) -> bool:
        return self.used >= self.evaluations or time.monotonic() > self.until


def as_list(a: Arg | list[Arg]) -> list[Arg]:
    return a if isinstance(a, list) else [a]
