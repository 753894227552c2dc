"""Running error analysis: a value and how far a correct implementation may be from it, carried through a computation.

Every operation adds its own rounding (unit roundoff ``u`` of the accumulation type) to what its operands bring along.
Bounds of chains that no closed formula describes well (recurrent layers, attention) are made of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.tolerance import gamma

Array = np.ndarray


class Running:
    """value, error: f64 arrays of one shape.  u: unit roundoff.  tiny: what underflow may cost."""

    __slots__ = ("error", "tiny", "u", "value")
    __array_ufunc__ = None  # arrays on the left leave the operation to us

    def __init__(self, value: Array, u: float, tiny: float, error: Array | float = 0.0) -> None:
        self.value = value = np.asarray(value, np.float64)
        fits = isinstance(error, np.ndarray) and error.shape == value.shape and error.dtype == np.float64
        self.error: Array = error if fits else np.broadcast_to(np.asarray(error, np.float64), value.shape)  # type: ignore[assignment]
        self.u, self.tiny = u, tiny

    def like(self, value: Array, error: Array | float = 0.0) -> Running:
        return Running(value, self.u, self.tiny, error)

    def of(self, other: Running | Array | float) -> Running:
        return other if isinstance(other, Running) else self.like(np.asarray(other, np.float64))

    def __getitem__(self, key: Any) -> Running:
        return self.like(self.value[key], self.error[key])

    def replaced(self, rows: Array, by: Running) -> Running:
        """The same with some rows taken from ``by``."""
        if len(rows) == len(self.value):
            return by
        value, error = self.value.copy(), self.error.copy()
        value[rows], error[rows] = by.value, by.error
        return self.like(value, error)

    def __add__(self, other: Running | Array | float) -> Running:
        if not isinstance(other, Running):  # exact
            v = self.value + other
            return self.like(v, self.error + self.u * np.abs(v))
        v = self.value + other.value
        return self.like(v, self.error + other.error + self.u * np.abs(v))

    def __sub__(self, other: Running | Array | float) -> Running:
        o = self.of(other)
        v = self.value - o.value
        return self.like(v, self.error + o.error + self.u * np.abs(v))

    def __mul__(self, other: Running | Array | float) -> Running:
        o = self.of(other)
        v = self.value * o.value
        e = np.abs(self.value) * o.error + np.abs(o.value) * self.error + self.error * o.error
        return self.like(v, e + self.u * np.abs(v) + self.tiny * (o.value != 0) * (self.value != 0))

    def dot(self, w: Array) -> Running:
        """self [..., k] times w [k, n], in any order of summation."""
        v = self.value @ w
        size = (np.abs(self.value) + self.error) @ np.abs(w)
        k = w.shape[0]
        return self.like(v, self.error @ np.abs(w) + gamma(k + 1, self.u) * size + k * self.tiny)

    def through(self, f: Callable[[Array], Array], rounding: float = 6.0, extra: Array | float = 0.0) -> Running:
        """A monotone function with ``rounding`` units of its own error relative to the result, plus ``extra``."""
        v, up, down = f(np.stack([self.value, self.value + self.error, self.value - self.error]))
        spread = np.maximum(np.abs(up - v), np.abs(down - v))
        return self.like(v, spread + rounding * self.u * np.abs(v) + extra + self.tiny)

    def clipped(self, limit: float) -> Running:
        """Limited to -limit..limit: an error does not grow by it."""
        return self.like(np.clip(self.value, -limit, limit), self.error)

    def joined(self, *others: Running, axis: int) -> Running:
        return self.like(
            np.concatenate([self.value, *(o.value for o in others)], axis),
            np.concatenate([self.error, *(o.error for o in others)], axis),
        )
