"""Registry of the definitions and what they all need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray
LAYERS: dict[str, Callable[..., Any]] = {}


class Unsupported(Exception):
    """A layer or form that this reading has no definition of."""


def layer(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register ``fn(params, *inputs) -> array or list`` under layer names; inputs come as float64."""

    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        for n in names:
            LAYERS[n] = fn
        return fn

    return add


def check(ok: bool, what: str) -> None:
    """The definition forbids it otherwise."""
    if not ok:
        raise ValueError(what)


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
