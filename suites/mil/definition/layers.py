"""Recurrent layers, normalisations, attention, running sums, activations."""

from __future__ import annotations

from typing import Any

import numpy as np

from suites.mil.definition.reading import Arrays, Attrs, Read, held, reader, wide

READ: dict[str, Read] = {}
reads = reader(READ)
_FUNCTIONS = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "linear": lambda x: x,
    "scaled_tanh": np.tanh,
}
_FUNCTIONS |= dict.fromkeys(("hard_sigmoid", "sigmoid_hard"), lambda x: np.clip(x / 5 + 0.5, 0, 1))


def _functions(at: Attrs, *names: tuple[str, str]) -> list[Any]:
    return [_FUNCTIONS[at.get(name, usual)] for name, usual in names]


def _given(a: Arrays, name: str, n: int) -> np.ndarray:
    return np.zeros(n) if a.get(name) is None else wide(a[name])


@reads("lstm")
def lstm(at: Attrs, a: Arrays, version: str, clipped: str = "state", steps: bool = True) -> list[Any]:
    """clipped: what clip bounds, the "state" c or the "gate" z after its activation.  steps: whether a reversed
    sequence comes out as it was computed."""
    limits = [np.inf if at.get("clip") is None or clipped != what else at["clip"] for what in ("gate", "state")]
    gate, cell, out = _functions(
        at, ("recurrent_activation", "sigmoid"), ("cell_activation", "tanh"), ("activation", "tanh")
    )
    n = a["weight_hh"].shape[1]

    def run(x: np.ndarray, h: np.ndarray, c: np.ndarray, back: str) -> list[np.ndarray]:
        w, u = wide(a[f"weight_ih{back}"]), wide(a[f"weight_hh{back}"])
        b, peep = _given(a, f"bias{back}", 4 * n), _given(a, f"peephole{back}", 3 * n).reshape(3, n)
        ys = []
        for v in x:
            i, f, o, z = np.split(v @ w.T + h @ u.T + b, 4, axis=1)
            z = np.clip(cell(z), -limits[0], limits[0])
            c = np.clip(gate(f + peep[1] * c) * c + gate(i + peep[0] * c) * z, -limits[1], limits[1])
            h = gate(o + peep[2] * c) * out(c)
            ys.append(h)
        return [np.stack(ys), h, c]

    x, h, c = (wide(a[name]) for name in ("x", "initial_h", "initial_c"))
    direction = at.get("direction", "forward")
    if direction == "bidirectional":
        ahead, behind = run(x, h[:, :n], c[:, :n], ""), run(x[::-1], h[:, n:], c[:, n:], "_back")
        behind[0] = behind[0][::-1]
        y, h, c = (np.concatenate(pair, -1) for pair in zip(ahead, behind))
    else:
        y, h, c = run(x[::-1] if direction == "reverse" else x, h, c, "")
        y = y[::-1] if direction == "reverse" and not steps else y
    return [y if at.get("output_sequence", False) else h[None], h, c]


@reads("gru")
def _gru(at: Attrs, a: Arrays, version: str) -> list[Any]:
    """One of the readings: the gate acts on the state, or with reset_after on the product and its bias."""
    gate, out = _functions(at, ("recurrent_activation", "sigmoid"), ("activation", "tanh"))
    x, h, w, u = (wide(a[name]) for name in ("x", "initial_h", "weight_ih", "weight_hh"))
    n, back = h.shape[1], at.get("direction", "forward") == "reverse"
    own, given = _given(a, "bias", 3 * n), _given(a, "input_bias", 3 * n)
    ur, uo, uz = np.split(u, 3)
    br, bo, bz = np.split(own, 3)
    ys = []
    for v in x[::-1] if back else x:
        xr, xo, xz = np.split(v @ w.T + given, 3, axis=1)
        r, z = gate(xr + h @ ur.T + br), gate(xz + h @ uz.T + bz)
        inner = r * (h @ uo.T + bo) if at.get("reset_after", False) else (r * h) @ uo.T + bo
        h = (1 - z) * out(xo + inner) + z * h
        ys.append(h)
    return [np.stack(ys) if at.get("output_sequence", False) else h[None], h]


@reads("rnn")
def _rnn(at: Attrs, a: Arrays, version: str) -> list[Any]:
    (out,) = _functions(at, ("activation", "tanh"))
    x, h, w, u = (wide(a[name]) for name in ("x", "initial_h", "weight_ih", "weight_hh"))
    back, b, ys = at.get("direction", "forward") == "reverse", _given(a, "bias", h.shape[1]), []
    for v in x[::-1] if back else x:
        h = out(v @ w.T + h @ u.T + b)
        ys.append(h)
    return [np.stack(ys) if at.get("output_sequence", False) else h[None], h]


@reads("scaled_dot_product_attention")
def _attention(at: Attrs, a: Arrays, version: str) -> list[Any]:
    q, k, v = (wide(a[name]) for name in ("query", "key", "value"))
    mask = a.get("attn_mask")
    scores = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + (np.where(mask, 0.0, -np.inf) if mask.dtype == np.bool_ else wide(mask))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return [weights / weights.sum(-1, keepdims=True) @ v]


@reads("layer_norm")
def _layer_norm(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, axes = wide(a["x"]), at.get("axes")
    axes = tuple(range(x.ndim)) if axes is None else tuple(k % x.ndim for k in axes)
    shape = [n if k in axes else 1 for k, n in enumerate(x.shape)]
    mean = x.mean(axes, keepdims=True)
    y = (x - mean) / np.sqrt(np.square(x - mean).mean(axes, keepdims=True) + at.get("epsilon", held(a["x"], 1e-5)))
    for name, put in (("gamma", np.multiply), ("beta", np.add)):
        y = y if a.get(name) is None else put(y, wide(a[name]).reshape(shape))
    return [y]


@reads("l2_norm")
def _l2_norm(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x = wide(a["x"])
    return [x / np.sqrt((x * x).sum((-3, -2, -1), keepdims=True) + at.get("epsilon", held(a["x"], 1e-6)))]


@reads("local_response_norm")
def _lrn(at: Attrs, a: Arrays, version: str) -> list[Any]:
    """One of the readings: an even neighbourhood is longer behind."""
    x, size = wide(a["x"]), at["size"]
    alpha, beta, k = (at.get(n, held(a["x"], v)) for n, v in (("alpha", 1e-4), ("beta", 0.75), ("k", 1.0)))
    y = np.empty_like(x)
    for c in range(x.shape[1]):
        near = x[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1]
        y[:, c] = x[:, c] / (k + alpha / size * (near * near).sum(1)) ** beta
    return [y]


@reads("cumsum")
def _cumsum(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, axis = wide(a["x"]), at.get("axis", 0)
    lanes = np.moveaxis(np.flip(x, axis) if at.get("reverse", False) else x, axis, 0)
    out, total = np.empty_like(lanes), np.zeros(lanes.shape[1:], lanes.dtype)
    for k, v in enumerate(lanes):
        out[k] = total if at.get("exclusive", False) else total + v
        total = total + v
    y = np.moveaxis(out, 0, axis)
    return [np.flip(y, axis) if at.get("reverse", False) else y]


@reads("clip")
def _clip(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x = a["x"]
    return [np.where(x < at["alpha"], at["alpha"], np.where(x > at["beta"], at["beta"], x)).astype(x.dtype)]


@reads("clamped_relu")
def _clamped(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x = wide(a["x"])
    return [np.minimum(at["beta"], np.where(x >= 0, x, at["alpha"] * x))]


@reads("prelu")
def _prelu(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x = wide(a["x"])
    return [np.where(x > 0, x, wide(a["alpha"]).reshape(-1, *(1,) * (x.ndim - 2)) * x)]


@reads("silu")
def _silu(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x = wide(a["x"])
    return [x * (1 / (1 + np.exp(-x)))]


@reads("batch_norm")
def _batch_norm(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, small, y = wide(a["x"]), at.get("epsilon", held(a["x"], 1e-5)), np.empty(a["x"].shape)
    mean, variance, gamma, beta = (wide(a.get(name)) for name in ("mean", "variance", "gamma", "beta"))
    for i in range(x.shape[1]):
        scale, offset = 1.0 if gamma is None else gamma[i], 0.0 if beta is None else beta[i]
        y[:, i] = scale * (x[:, i] - mean[i]) / np.sqrt(variance[i] + small) + offset
    return [y]


@reads("instance_norm")
def _instance_norm(at: Attrs, a: Arrays, version: str) -> list[Any]:
    """Every channel of every instance by its own mean and variance."""
    x, small, y = wide(a["x"]), at.get("epsilon", held(a["x"], 1e-5)), np.empty(a["x"].shape)
    gamma, beta = wide(a.get("gamma")), wide(a.get("beta"))
    for b, i in np.ndindex(x.shape[:2]):
        one = x[b, i]
        mean = one.sum() / one.size
        variance = ((one - mean) ** 2).sum() / one.size
        y[b, i] = (one - mean) / np.sqrt(variance + small) * (1.0 if gamma is None else gamma[i])
        y[b, i] += 0.0 if beta is None else beta[i]
    return [y]
