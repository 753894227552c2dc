"""Recurrent layers: one time step after another, as the formulas say."""

from __future__ import annotations

from typing import Any

import numpy as np

from suites.nn.definition.common import Array, check, layer, weights

_USUAL = {"linear": (1.0, 0.0), "scaledTanh": (1.0, 1.0), "sigmoidHard": (0.2, 0.5)}  # where neither is given


def _activate(a: Any, x: Array) -> Array:
    kind = a.WhichOneof("NonlinearityType")
    q = getattr(a, kind)
    unset = kind in _USUAL and not q.alpha and not q.beta
    alpha, beta = _USUAL[kind] if unset else (getattr(q, "alpha", 0.0), getattr(q, "beta", 0.0))
    if kind == "sigmoid":
        return 1 / (1 + np.exp(-x))
    if kind == "tanh":
        return np.tanh(x)
    if kind == "ReLU":
        return np.maximum(x, 0)
    if kind == "linear":
        return alpha * x + beta
    if kind == "scaledTanh":
        return alpha * np.tanh(beta * x)
    check(kind == "sigmoidHard", f"activation {kind}")
    return np.minimum(np.maximum(alpha * x + beta, 0), 1)


def _clip(x: Array) -> Array:
    return np.minimum(np.maximum(x, -50.0), 50.0)


def _sequence(x: Array, size: int) -> Array:
    check(x.ndim == 5 and x.shape[2] == size and x.shape[3:] == (1, 1), "shape")
    return x[:, :, :, 0, 0]


def _start(h: Array | None, batch: int, size: int) -> Array:
    if h is None:
        return np.zeros((batch, size))
    check(h.shape in ((1, batch, size, 1, 1), (batch, size, 1, 1, 1)), "state")
    return h.reshape(batch, size)


def _shaped(v: Array) -> Array:
    """[B, C] or [T, B, C] as rank 5."""
    return v.reshape(*((1,) if v.ndim == 2 else ()), *v.shape, 1, 1)


@layer("simpleRecurrent")
def simple(p: Any, x: Array, h: Array | None = None) -> list[Array]:
    """y = f(clip(W x + R y + b))."""
    n, m = p.outputVectorSize, p.inputVectorSize
    steps = _sequence(x, m)
    w, r = weights(p.weightMatrix, n, m), weights(p.recursionMatrix, n, n)
    b = weights(p.biasVector, n) if p.hasBiasVector else 0.0
    y, out = _start(h, steps.shape[1], n), []
    for v in steps[::-1] if p.reverseInput else steps:
        y = _activate(p.activation, _clip(v @ w.T + y @ r.T + b))
        out.append(y)
    return [_shaped(np.array(out) if p.sequenceOutput else y), _shaped(y)]


@layer("gru")
def gru(p: Any, x: Array, h: Array | None = None) -> list[Array]:
    """Update and reset gates by f, the candidate by g from the reset state."""
    n, m = p.outputVectorSize, p.inputVectorSize
    steps = _sequence(x, m)
    f, g = p.activations

    def gate(name: str) -> tuple[Array, Array, Any]:
        b = weights(getattr(p, f"{name}BiasVector"), n) if p.hasBiasVectors else 0.0
        return weights(getattr(p, f"{name}WeightMatrix"), n, m), weights(getattr(p, f"{name}RecursionMatrix"), n, n), b

    (wz, rz, bz), (wr, rr, br), (wo, ro, bo) = (gate(k) for k in ("updateGate", "resetGate", "outputGate"))
    y, out = _start(h, steps.shape[1], n), []
    for v in steps[::-1] if p.reverseInput else steps:
        z = _activate(f, _clip(v @ wz.T + y @ rz.T + bz))
        r = _activate(f, _clip(v @ wr.T + y @ rr.T + br))
        o = _activate(g, _clip(v @ wo.T + (y * r) @ ro.T + bo))
        y = (1 - z) * o + z * y
        out.append(y)
    return [_shaped(np.array(out) if p.sequenceOutput else y), _shaped(y)]


def _lstm(q: Any, w: Any, acts: Any, steps: Array, y: Array, c: Array, n: int, m: int) -> tuple[Array, Array, Array]:
    """All outputs, the last output, the last cell."""
    f, g, h = acts

    def part(name: str) -> tuple[Array, Array, Any]:
        b = weights(getattr(w, f"{name}BiasVector"), n) if q.hasBiasVectors else 0.0
        if name == "forgetGate" and q.forgetBias:
            b = b + 1.0
        return weights(getattr(w, f"{name}WeightMatrix"), n, m), weights(getattr(w, f"{name}RecursionMatrix"), n, n), b

    wi, wf, wz, wo = (part(k) for k in ("inputGate", "forgetGate", "blockInput", "outputGate"))
    pi, pf, po = (
        (weights(getattr(w, f"{k}PeepholeVector"), n) if q.hasPeepholeVectors else None)
        for k in ("inputGate", "forgetGate", "outputGate")
    )
    limit, out = q.cellClipThreshold or 50.0, []

    def into(gate: Any, v: Array, peephole: Any = None) -> Array:
        seen = 0.0 if peephole is None else peephole * c  # without peepholes an infinite cell adds nothing
        return _clip(v @ gate[0].T + y @ gate[1].T + seen + gate[2])

    for v in steps:
        i = _activate(f, into(wi, v, pi))
        keep = 1 - i if q.coupledInputAndForgetGate else _activate(f, into(wf, v, pf))
        z = _activate(g, into(wz, v))
        c = np.minimum(np.maximum(c * keep + i * z, -limit), limit)
        o = _activate(f, into(wo, v, po))
        y = _activate(h, c) * o
        out.append(y)
    return np.array(out), y, c


@layer("uniDirectionalLSTM")
def lstm(p: Any, x: Array, h: Array | None = None, c: Array | None = None) -> list[Array]:
    """One direction."""
    n, m = p.outputVectorSize, p.inputVectorSize
    steps = _sequence(x, m)
    b = steps.shape[1]
    out, y, cell = _lstm(
        p.params,
        p.weightParams,
        p.activations,
        steps[::-1] if p.reverseInput else steps,
        _start(h, b, n),
        _start(c, b, n),
        n,
        m,
    )
    return [_shaped(out if p.params.sequenceOutput else y), _shaped(y), _shaped(cell)]


@layer("biDirectionalLSTM")
def bi_lstm(
    p: Any, x: Array, h: Array | None = None, c: Array | None = None, hb: Array | None = None, cb: Array | None = None
) -> list[Array]:
    """Both directions; step t pairs forward t with the backward output for the same element."""
    n, m = p.outputVectorSize, p.inputVectorSize
    steps = _sequence(x, m)
    b = steps.shape[1]
    w, acts = p.weightParams, p.activationsForwardLSTM
    check(list(acts) == list(p.activationsBackwardLSTM), "activations of both directions")
    yf, hf, cf = _lstm(p.params, w[0], acts, steps, _start(h, b, n), _start(c, b, n), n, m)
    yb, hr, cr = _lstm(p.params, w[1], p.activationsBackwardLSTM, steps[::-1], _start(hb, b, n), _start(cb, b, n), n, m)
    both = np.concatenate([yf, yb[::-1]], -1) if p.params.sequenceOutput else np.concatenate([hf, hr], -1)
    return [_shaped(both), _shaped(hf), _shaped(cf), _shaped(hr), _shaped(cr)]
