"""Recurrent layers upon each other, all their parameters in one vector."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.core.errors import RuleError
from suites.semantics import recurrent
from suites.semantics.running import Running

Array = np.ndarray
# cell -> (cell in ONNX's equations, order of its gates in the vector, activations)
CELLS = {
    "relu": ("rnn", "i", ("Relu",)),
    "tanh": ("rnn", "i", ("Tanh",)),
    "gru": ("gru", "rzh", ("Sigmoid", "Tanh")),
    "lstm": ("lstm", "ifco", ("Sigmoid", "Tanh", "Tanh")),
}


@dataclass
class Part:
    """One direction of one layer: w [g h, in], r [g h, h], biases of both sides [g h], gates in ONNX's order."""

    w: Array
    r: Array
    bias_w: Array
    bias_r: Array


def count(cell: str, size: int, hidden: int, layers: int, directions: int, skips: bool = False) -> int:
    """Number of parameters."""
    g = len(CELLS[cell][1]) * hidden
    inner = [0 if skips else size, *(hidden * directions for _ in range(layers - 1))]
    return sum(directions * g * (n + hidden + 2) for n in inner)


def unpacked(
    v: Array, cell: str, size: int, hidden: int, layers: int, directions: int, skips: bool = False
) -> list[list[Part]]:
    """Parts [layer][direction] of a vector with all matrices first, then all biases; of a part the input's come before
    the state's.  skips: the first layer's input goes to each gate as it is, without a matrix.  Raises RuleError
    "weights-size", "cell-known", "skipped-size"."""
    if cell not in CELLS:
        raise RuleError("cell-known", f"{cell!r}, expected one of {' '.join(CELLS)}")
    if skips and size != hidden:
        raise RuleError("skipped-size", f"an input of {size} for {hidden} neurons, without a matrix between them")
    need = count(cell, size, hidden, layers, directions, skips)
    if v.size != need:
        raise RuleError("weights-size", f"{v.size} parameters, expected {need}")
    name, gates, _ = CELLS[cell]
    g = len(gates) * hidden
    at = 0

    def take(*shape: int) -> Array:
        nonlocal at
        n = int(np.prod(shape))
        at += n
        return recurrent.ordered(v[at - n : at].reshape(shape), name, gates)

    inner = [size, *(hidden * directions for _ in range(layers - 1))]
    plain = np.tile(np.eye(hidden), (len(gates), 1))

    def of_input(k: int, n: int) -> Array:
        return plain if skips and k == 0 else take(g, n)

    matrices = [[(of_input(k, n), take(g, hidden)) for _ in range(directions)] for k, n in enumerate(inner)]
    return [[Part(w, r, take(g), take(g)) for w, r in layer] for layer in matrices]


def run(x: Array, parts: list[list[Part]], cell: str, h0: Array | None, c0: Array | None) -> list[Array]:
    """Output [t, b, dirs h], the last states and (lstm) cells [layers dirs, b, h], in f64."""
    name, _, acts = CELLS[cell]
    ends: list[list[Array]] = []
    for k, layer in enumerate(parts):
        n = len(layer)
        states = [None if s is None else s[k * n : (k + 1) * n] for s in (h0, c0)]
        y, *last = recurrent.layer(
            name,
            x,
            np.stack([p.w for p in layer]),
            np.stack([p.r for p in layer]),
            np.stack([np.concatenate([p.bias_w, p.bias_r]) for p in layer]),
            None,
            states[0],
            states[1] if name == "lstm" else None,
            None,
            direction="bidirectional" if n == 2 else "forward",
            activations=acts * n,
            alphas=None,
            betas=None,
            clip=None,
            reset_after=True,
        )
        x = np.moveaxis(y, 1, 2).reshape(*x.shape[:2], sum(p.r.shape[1] for p in layer))
        ends.append(last)
    return [x, *(np.concatenate(e) for e in zip(*ends))]


def bounds(
    x: Array, parts: list[list[Part]], cell: str, h0: Array | None, c0: Array | None, u: float, tiny: float
) -> list[Array]:
    """How far each result of ``run`` may be: running error analysis of the equations through all steps and layers."""
    name, _, names = CELLS[cell]
    acts = recurrent.functions(name, 1, names, None, None)
    t, batch, _ = x.shape
    flow = [Running(row, u, tiny) for row in x]
    last_h, last_c = [], []
    for k, layer in enumerate(parts):
        ways: list[list[Running]] = []
        for d, p in enumerate(layer):
            zero, at = np.zeros((batch, p.r.shape[1])), k * len(layer) + d
            h = Running(zero if h0 is None else h0[at], u, tiny)
            c: Running | None = Running(zero if c0 is None else c0[at], u, tiny)
            rows: list[Running] = [h] * t
            for i in reversed(range(t)) if d else range(t):
                px = flow[i].dot(p.w.T) + p.bias_w
                h, fresh = recurrent.cell_step(name, px, h, c, p.r, p.bias_r, None, acts, 0.0, False, True)
                c = c if fresh is None else fresh
                rows[i] = h
            ways.append(rows)
            last_h.append(h.error)
            last_c.append(np.zeros_like(h.error) if c is None else c.error)
        flow = [a[0].joined(*a[1:], axis=1) for a in zip(*ways)]
    width = sum(p.r.shape[1] for p in parts[-1])
    return [np.stack([f.error for f in flow]) if t else np.zeros((0, batch, width)), np.stack(last_h), np.stack(last_c)]
