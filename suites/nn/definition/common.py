"""Registry of the definitions and what they all need."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from itertools import zip_longest
from math import prod
from typing import Any

import numpy as np

Array = np.ndarray
Fn = Callable[..., Any]


class Forbidden(ValueError):
    """The definition forbids the model, or what came of its data: the only exception by which this reading rejects."""


class Unsupported(Exception):
    """A layer or form that this reading has no definition of."""


class Layer:
    """A layer's definition, and the numbers of inputs that its signature takes."""

    def __init__(self, name: str, fn: Fn) -> None:
        self.name, self.fn = name, fn
        inputs = [p for p in signature(fn).parameters.values() if p.kind is not p.KEYWORD_ONLY][1:]
        self.least = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in inputs)
        self.most = None if any(p.kind is p.VAR_POSITIONAL for p in inputs) else len(inputs)

    def __call__(self, params: Any, *inputs: Array) -> Any:
        """Array or list of arrays.  Raises Forbidden for another number of inputs."""
        enough = len(inputs) >= self.least and (self.most is None or len(inputs) <= self.most)
        wanted = f"{self.least}" if self.most == self.least else f"{self.least} to {self.most or 'any number'}"
        check(enough, f"{self.name}: expected {wanted} inputs, got {len(inputs)}")
        return self.fn(params, *inputs)


LAYERS: dict[str, Layer] = {}


def layer(*names: str) -> Callable[[Fn], Fn]:
    """Register ``fn(params, *inputs) -> array or list`` under layer names; inputs come as float64.  An argument that is
    no input is keyword-only."""

    def add(fn: Fn) -> Fn:
        for n in names:
            LAYERS[n] = Layer(n, fn)
        return fn

    return add


def check(ok: bool, what: str) -> None:
    """The definition forbids it otherwise."""
    if not ok:
        raise Forbidden(what)


def broadcast(*arrays: Array) -> list[Array]:
    """The arrays at their common shape: extents are equal or 1, counted from the last axis."""
    for extents in zip_longest(*(reversed(x.shape) for x in arrays), fillvalue=1):
        check(len({n for n in extents if n != 1}) <= 1, f"shapes {[x.shape for x in arrays]} do not broadcast")
    return list(np.broadcast_arrays(*arrays))


def axis_of(axis: int, rank: int) -> int:
    """A possibly negative axis, checked."""
    check(-rank <= axis < rank, f"axis {axis} of rank {rank}")
    return axis % rank


def weights(w: Any, *shape: int, second: int = 0) -> Array:
    """Values of WeightParams as float64, reshaped (no shape: flat).  second: number of groups of weights
    [in, out / groups, ...], whose scales go with the output channel."""
    if w.int8RawValue:
        (scale,) = w.quantization.linearQuantization.scale
        values = (np.frombuffer(w.int8RawValue, np.int8) * float(scale)).astype(np.float32)
    elif w.HasField("quantization"):
        values = _dequantised(w, shape, second)
    elif len(w.float16Value):
        values = np.frombuffer(w.float16Value, "<f2")
    else:
        values = np.array(w.floatValue, np.float32)
    check(not shape or values.size == prod(shape), f"expected weights of shape {shape}, got {values.size}")
    return values.reshape(shape).astype(np.float64) if shape else values.astype(np.float64)


def _dequantised(w: Any, shape: tuple[int, ...], groups: int) -> Array:
    q = w.quantization
    bits = int(q.numberOfBits)
    stream = "".join(f"{byte:08b}" for byte in w.rawValue)
    count = int(np.prod(shape)) if shape else len(stream) // bits
    codes = [int(stream[i * bits : (i + 1) * bits], 2) for i in range(count)]
    if q.WhichOneof("QuantizationType") == "lookupTableQuantization":
        table = q.lookupTableQuantization.floatValue
        return np.array([table[c] for c in codes], np.float32)
    scale, bias = list(q.linearQuantization.scale), list(q.linearQuantization.bias) or [0.0]
    channels = max(len(scale), len(bias))

    def channel(i: int) -> int:
        if not groups:
            return i // (count // channels)
        row, column = divmod(i // int(np.prod(shape[2:])), shape[1])
        return row // (shape[0] // groups) * shape[1] + column

    out = [codes[i] * scale[channel(i) % len(scale)] + bias[channel(i) % len(bias)] for i in range(count)]
    return np.array(out, np.float32)
