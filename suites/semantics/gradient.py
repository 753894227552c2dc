"""Derivatives of any order over a few operators: reverse mode on values that remember how they came about.

The rules of differentiation are written in the same operators, so that a gradient can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray


class Var:
    """A value in f64.  parents: (operand, what a cotangent of this value gives that operand)."""

    __slots__ = ("parents", "value")

    def __init__(self, value: Any, parents: Sequence[tuple[Var, Callable[[Var], Var]]] = ()) -> None:
        value = np.asarray(value)
        if value.dtype.kind in "OSUc":  # of strings and complex numbers the shape alone is read
            value = np.zeros(value.shape)
        self.value = value.astype(np.float64)
        self.parents = tuple(parents)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape


class Tape:
    """The operators.  u: every result is moved by up to so much, relatively, with random signs (for error bounds)."""

    def __init__(self, u: float = 0.0, seed: int = 0) -> None:
        self.u, self.rng = u, np.random.Generator(np.random.PCG64(seed))

    def make(self, value: Any, *parents: tuple[Var, Callable[[Var], Var]]) -> Var:
        v = np.asarray(value, np.float64)
        if self.u:
            v = v * (1.0 + self.u * self.rng.choice((-1.0, 1.0), v.shape))
        return Var(v, parents)

    # -- shapes

    def expand(self, x: Var, shape: tuple[int, ...]) -> Var:
        return Var(np.broadcast_to(x.value, shape), [(x, lambda g: self.fit(g, x.shape))])

    def reshape(self, x: Var, shape: tuple[int, ...]) -> Var:
        return Var(x.value.reshape(shape), [(x, lambda g: self.reshape(g, x.shape))])

    def transpose(self, x: Var, perm: Sequence[int]) -> Var:
        back = [int(i) for i in np.argsort(perm)]
        return Var(x.value.transpose(perm), [(x, lambda g: self.transpose(g, back))])

    def total(self, x: Var, axes: tuple[int, ...]) -> Var:
        """The sum over axes, which stay with an extent of 1."""
        return self.make(x.value.sum(axes, keepdims=True), (x, lambda g: self.expand(g, x.shape)))

    def fit(self, g: Var, shape: tuple[int, ...]) -> Var:
        """The sum over everything along which ``shape`` was broadcast."""
        if g.shape == shape:
            return g
        extra = len(g.shape) - len(shape)
        axes = (*range(extra), *(extra + i for i, n in enumerate(shape) if n == 1 and g.shape[extra + i] != 1))
        return self.reshape(self.total(g, axes), shape)

    # -- arithmetic

    def add(self, a: Var, b: Var) -> Var:
        return self.make(a.value + b.value, (a, lambda g: self.fit(g, a.shape)), (b, lambda g: self.fit(g, b.shape)))

    def neg(self, x: Var) -> Var:
        return Var(-x.value, [(x, self.neg)])

    def mul(self, a: Var, b: Var) -> Var:
        return self.make(
            a.value * b.value,
            (a, lambda g: self.fit(self.mul(g, b), a.shape)),
            (b, lambda g: self.fit(self.mul(g, a), b.shape)),
        )

    def matmul(self, a: Var, b: Var) -> Var:
        """Of two matrices."""
        return self.make(
            a.value @ b.value,
            (a, lambda g: self.matmul(g, self.transpose(b, (1, 0)))),
            (b, lambda g: self.matmul(self.transpose(a, (1, 0)), g)),
        )

    def through(self, x: Var, f: Callable[[Array], Array], slope: Callable[[Var], Var]) -> Var:
        """f of each element; slope: its derivative, given the result."""
        out = self.make(f(x.value))
        out.parents = ((x, lambda g: self.mul(g, slope(out))),)
        return out

    def reciprocal(self, x: Var) -> Var:
        return self.through(x, lambda v: 1 / v, lambda y: self.neg(self.mul(y, y)))

    def exp(self, x: Var) -> Var:
        return self.through(x, np.exp, lambda y: y)

    def log(self, x: Var) -> Var:
        return self.through(x, np.log, lambda y: self.reciprocal(x))

    def sqrt(self, x: Var) -> Var:
        return self.through(x, np.sqrt, lambda y: self.mul(Var(0.5), self.reciprocal(y)))

    def tanh(self, x: Var) -> Var:
        return self.through(x, np.tanh, lambda y: self.add(Var(1.0), self.neg(self.mul(y, y))))

    def sigmoid(self, x: Var) -> Var:
        return self.through(x, lambda v: 1 / (1 + np.exp(-v)), lambda y: self.mul(y, self.add(Var(1.0), self.neg(y))))

    def softplus(self, x: Var) -> Var:
        return self.through(x, lambda v: np.logaddexp(0, v), lambda y: self.sigmoid(x))

    def relu(self, x: Var) -> Var:
        """The slope at 0, which has none, is 0 here."""
        return self.through(x, lambda v: np.maximum(v, 0), lambda y: Var(x.value > 0))

    # -- the gradient

    def gradient(self, y: Var, xs: Sequence[Var]) -> list[Var]:
        """Of the sum of ``y`` with respect to each of ``xs``; zeros where ``y`` does not depend on one."""
        order: list[Var] = []
        seen: set[int] = set()
        stack: list[tuple[Var, bool]] = [(y, False)]
        while stack:
            v, done = stack.pop()
            if done:
                order.append(v)
            elif id(v) not in seen:
                seen.add(id(v))
                stack.append((v, True))
                stack.extend((p, False) for p, _ in v.parents)
        have: dict[int, Var] = {id(y): Var(np.ones(y.shape))}
        for v in reversed(order):
            g = have.get(id(v))
            if g is None:
                continue
            for p, pull in v.parents:
                part = pull(g)
                have[id(p)] = part if id(p) not in have else self.add(have[id(p)], part)
        return [have.get(id(x), Var(np.zeros(x.shape))) for x in xs]
