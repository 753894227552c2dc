"""Elementwise layers."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from suites.nn.definition.common import Array, broadcast, check, layer, weights

_ONE = {
    "ceil": np.ceil,
    "floor": np.floor,
    "sign": np.sign,
    "exp2": np.exp2,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "round": np.rint,
    "copy": np.array,
}
for _name, _fn in _ONE.items():
    layer(_name)(lambda p, x, *, fn=_fn: fn(x))

_TWO = {
    "addBroadcastable": np.add,
    "subtractBroadcastable": np.subtract,
    "multiplyBroadcastable": np.multiply,
    "divideBroadcastable": np.divide,
    "powBroadcastable": np.power,
    "maxBroadcastable": np.maximum,
    "minBroadcastable": np.minimum,
}
for _name, _fn in _TWO.items():
    layer(_name)(lambda p, a, b, *, fn=_fn: fn(*broadcast(a, b)))

_RELATION = {
    "equal": np.equal,
    "notEqual": np.not_equal,
    "lessThan": np.less,
    "lessEqual": np.less_equal,
    "greaterThan": np.greater,
    "greaterEqual": np.greater_equal,
}
for _name, _fn in _RELATION.items():
    layer(_name)(lambda p, a, b=None, *, fn=_fn: fn(a, p.alpha) if b is None else fn(*broadcast(a, b)))

_LOGIC = {"logicalAnd": np.logical_and, "logicalOr": np.logical_or, "logicalXor": np.logical_xor}
for _name, _fn in _LOGIC.items():
    layer(_name)(lambda p, a, b, *, fn=_fn: fn(*broadcast(a != 0, b != 0)))
layer("logicalNot")(lambda p, x: x == 0)
layer("whereBroadcastable")(lambda p, c, a, b: np.where(*broadcast(c != 0, a, b)))


def _each(fn: Any, x: Array) -> Array:
    return np.array([fn(float(v)) for v in x.ravel()]).reshape(x.shape)


def _exact_floor(a: float, b: float) -> float:
    """floor(a / b) from the exact remainder, the quotient's own rounding taken out."""
    if b == 0 or math.isinf(a) or math.isnan(a) or math.isnan(b):
        return float(np.floor(np.float64(a) / np.float64(b)))
    if math.isinf(b):
        return 0.0 if a == 0 or (a > 0) == (b > 0) else -1.0
    r = math.fmod(a, b)
    q = (a - r) / b
    return float(round(q)) - (1.0 if r != 0 and (r < 0) != (b < 0) else 0.0)


@layer("floorDivBroadcastable")
def floor_div(p: Any, a: Array, b: Array) -> Array:
    """Largest whole number not above a / b."""
    a, b = broadcast(a, b)
    return np.array([_exact_floor(float(u), float(v)) for u, v in zip(a.ravel(), b.ravel())]).reshape(a.shape)


@layer("modBroadcastable")
def mod(p: Any, a: Array, b: Array) -> Array:
    """Remainder with the sign of the divisor."""
    return np.mod(*broadcast(a, b))


@layer("erf")
def erf(p: Any, x: Array) -> Array:
    """Gauss error function."""
    return _each(math.erf, x)


@layer("gelu")
def gelu(p: Any, x: Array) -> Array:
    """Three forms of x * Phi(x)."""
    if p.mode == 0:
        return 0.5 * x * (1.0 + _each(math.erf, x / math.sqrt(2.0)))
    if p.mode == 1:
        return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))
    return x * _sigmoid(1.702 * x)


@layer("clip")
def clip(p: Any, x: Array) -> Array:
    """min(max(x, minVal), maxVal)."""
    return np.minimum(np.maximum(x, p.minVal), p.maxVal)


@layer("clampedReLU")
def clamped_relu(p: Any, x: Array) -> Array:
    """Leaky below zero, capped at beta."""
    return np.minimum(np.where(x >= 0, x, p.alpha * x), p.beta)


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _log1pexp(x: Array) -> Array:
    return np.where(x > 0, x + np.log1p(np.exp(-np.abs(x))), np.log1p(np.exp(x)))


def _channel(w: Any, x: Array) -> Array:
    """A parameter of length C or 1 along axis -3."""
    check(x.ndim >= 3, "rank below 3")
    v = weights(w)
    check(v.size in (1, x.shape[-3]), "parameter of another length")
    return v.reshape(-1, 1, 1)


@layer("activation")
def activation(p: Any, x: Array) -> Array:
    """The chosen member of ActivationParams."""
    kind = p.WhichOneof("NonlinearityType")
    q = getattr(p, kind)
    if kind == "linear":
        return q.alpha * x + q.beta
    if kind == "ReLU":
        return np.maximum(0.0, x)
    if kind == "leakyReLU":
        return np.where(x >= 0, x, q.alpha * x)
    if kind == "thresholdedReLU":
        return np.where(x >= q.alpha, x, np.where(np.isnan(x), x, 0.0))
    if kind == "PReLU":
        return np.where(x >= 0, x, _channel(q.alpha, x) * x)
    if kind == "tanh":
        return np.tanh(x)
    if kind == "scaledTanh":
        return q.alpha * np.tanh(q.beta * x)
    if kind == "sigmoid":
        return _sigmoid(x)
    if kind == "sigmoidHard":
        return np.minimum(np.maximum(q.alpha * x + q.beta, 0.0), 1.0)
    if kind == "ELU":
        return np.where(x >= 0, x, q.alpha * np.expm1(x))
    if kind == "softsign":
        return x / (1.0 + np.abs(x))
    if kind == "softplus":
        return _log1pexp(x)
    return _channel(q.alpha, x) * _log1pexp(_channel(q.beta, x) * x)


@layer("unary")
def unary(p: Any, x: Array) -> Array:
    """f(scale * x + shift)."""
    eps = p.epsilon or float(np.float32(1e-6))
    t = (p.scale or 1.0) * x + p.shift
    return (
        lambda: np.sqrt(t),
        lambda: 1.0 / np.sqrt(t + eps),
        lambda: 1.0 / (t + eps),
        lambda: np.power(t, p.alpha),
        lambda: np.exp(t),
        lambda: np.log(t),
        lambda: np.abs(t),
        lambda: np.maximum(p.alpha, t),
    )[p.type]()


@layer("add")
def add(p: Any, x: Array, *more: Array) -> Array:
    """Sum; of a single input, with alpha."""
    first, *others = broadcast(x, *more)
    return sum(others, first) if others else first + p.alpha


@layer("multiply")
def multiply(p: Any, x: Array, *more: Array) -> Array:
    """Product; of a single input, with alpha."""
    first, *others = broadcast(x, *more)
    return reduce(np.multiply, others, first) if others else first * p.alpha


@layer("average")
def average(p: Any, *xs: Array) -> Array:
    """Mean of two or more."""
    check(len(xs) > 1, "one input")
    first, *others = broadcast(*xs)
    return sum(others, first) / len(xs)


@layer("max")
def largest(p: Any, *xs: Array) -> Array:
    """Maximum of two or more."""
    check(len(xs) > 1, "one input")
    return reduce(np.maximum, broadcast(*xs))


@layer("min")
def smallest(p: Any, *xs: Array) -> Array:
    """Minimum of two or more."""
    check(len(xs) > 1, "one input")
    return reduce(np.minimum, broadcast(*xs))


def _stretched(w: Any, shape: Any, x: Array) -> Array:
    check(len(shape) in (1, 3), f"expected a shape of 1 or 3 extents, got {list(shape)}")
    check(x.ndim >= 3, "rank below 3")
    c, h, k = x.shape[-3:]
    s = tuple(int(n) for n in shape)
    check(s in ((1,), (c,), (1, h, k), (c, h, k)), f"shape {s}")
    v = weights(w, *s)
    return v[:, None, None] if v.ndim == 1 else v


@layer("scale")
def scale(p: Any, x: Array) -> Array:
    """x * scale, + bias when there is one."""
    y = x * _stretched(p.scale, p.shapeScale, x)
    return y + _stretched(p.bias, p.shapeBias, x) if p.hasBias else y


@layer("bias")
def bias(p: Any, x: Array) -> Array:
    """x + bias."""
    return x + _stretched(p.bias, p.shape, x)
