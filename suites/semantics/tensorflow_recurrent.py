"""TFLite's recurrent layers on float tensors: RNN, LSTM and SVDF cells, one direction or both.

Source: TFLite LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM (tfl dialect; peepholes as Sak et al. 2014, coupled gates as Greff et
al., layer normalisation as Ba et al.), UNIDIRECTIONAL_SEQUENCE_RNN, RNN, SVDF.  States start from zero and are kept by
the runtime; an instance is one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from harness.core.dtypes import float_max
from harness.tolerance import Context, gamma

Array = np.ndarray
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "NONE": lambda x: x,
    "RELU": lambda x: np.maximum(x, 0),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
    "RELU6": lambda x: np.clip(x, 0, 6),
    "TANH": np.tanh,
    "SIGN_BIT": lambda x: np.where(np.isnan(x), x, np.signbit(x)),
}
GATES = ("input", "forget", "cell", "output")


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) of floats, whatever overflows."""
    return 1 / (1 + np.exp(-x))


def rnn(
    x: Array,
    w: Array,
    r: Array,
    b: Array,
    h: Array,
    activation: str,
    aux: Array | None = None,
    aux_w: Array | None = None,
) -> tuple[Array, Array]:
    """h = act(w x + r h + b) over x [t, b, i]; returns (y [t, b, u], last h)."""
    act, out = ACTIVATIONS[activation], []
    for t in range(x.shape[0]):
        z = x[t] @ w.T + h @ r.T + b
        if aux is not None and aux_w is not None:
            z = z + aux[t] @ aux_w.T
        h = act(z)
        out.append(h)
    return np.stack(out) if out else np.zeros((0, *h.shape)), h


def _layer_norm(z: Array, scale: Array | None) -> Array:
    if scale is None or not z.size:
        return z
    mean = z.mean(-1, keepdims=True)
    var = ((z - mean) ** 2).mean(-1, keepdims=True)
    return (z - mean) / np.sqrt(var + 1e-8) * scale


def lstm(
    x: Array,
    p: Mapping[str, Any],
    h: Array,
    c: Array,
    *,
    activation: str,
    cell_clip: float = 0.0,
    proj_clip: float = 0.0,
    diagonal: bool = False,
) -> tuple[Array, Array, Array]:
    """x [t, b, i]; p: "w_<gate>" [u, i], "r_<gate>" [u, o] ([u] when diagonal), "b_<gate>" [u], "p_<gate>" peepholes
    [u], "n_<gate>" layer norm scales [u], "proj" [o, u], "proj_bias" [o]; no "w_input": the input gate is 1 - forget.

    Returns (y [t, b, o], h, c).  Gates see the peephole of the old cell, the output gate that of the new one.
    """
    act, out = ACTIVATIONS[activation], []

    def pre(gate: str, xt: Array, cell: Array) -> Array:
        z = xt @ p[f"w_{gate}"].T
        if p.get(f"aux_w_{gate}") is not None:
            z = z + p["aux_now"] @ p[f"aux_w_{gate}"].T
        r = p[f"r_{gate}"]
        z = z + (h * r if diagonal else h @ r.T)
        if p.get(f"p_{gate}") is not None:
            z = z + cell * p[f"p_{gate}"]
        norm = p.get(f"n_{gate}")
        return _layer_norm(z, norm) + p[f"b_{gate}"] if norm is not None else z + p[f"b_{gate}"]

    for t in range(x.shape[0]):
        xt = x[t]
        if p.get("aux") is not None:
            p = {**p, "aux_now": p["aux"][t]}
        f = sigmoid(pre("forget", xt, c))
        i = sigmoid(pre("input", xt, c)) if p.get("w_input") is not None else 1 - f
        g = act(pre("cell", xt, c))
        c = f * c + i * g
        if cell_clip > 0:
            c = np.clip(c, -cell_clip, cell_clip)
        o = sigmoid(pre("output", xt, c))
        h = o * act(c)
        if p.get("proj") is not None:
            h = h @ p["proj"].T + (p["proj_bias"] if p.get("proj_bias") is not None else 0)
            if proj_clip > 0:
                h = np.clip(h, -proj_clip, proj_clip)
        out.append(h)
    return (np.stack(out) if out else np.zeros((0, *h.shape))), h, c


def newest(times: Array, calls: int) -> Array:
    """The time weights [f, memory] that meet anything after so many calls from an empty memory."""
    return times[:, max(0, times.shape[1] - calls) :]


def svdf(
    x: Array, features: Array, times: Array, bias: Array | None, rank: int, activation: str, calls: int = 1
) -> Array:
    """The last of some calls with the same x, from an empty memory: filters of ``rank`` rows each see as many of their
    newest time weights.

    x [b, i], features [f, i], times [f, memory]; returns [b, f / rank]."""
    now = x @ features.T  # [b, f]
    met = newest(times, calls)
    y = now * met.sum(-1) + (times[:, : times.shape[1] - met.shape[1]] * 0.0).sum(-1)  # NaN where one is not finite
    y = y.reshape(x.shape[0], len(features) // rank, rank).sum(-1)
    return ACTIVATIONS[activation](y if bias is None else y + bias)


def svdf_bound(ctx: Context) -> Array:
    """what the activation makes of gamma(inputs + memory + rank + 4) times the sum of all |terms|, + 32 ulp of
    max(|h|, 1); any value where a partial sum may be beyond the type"""
    x, features, times = (ctx.inputs[k] for k in ("x", "features", "times"))
    b = ctx.inputs.get("b")
    rank, activation, calls = ctx.params["rank"], ctx.params["activation"], ctx.params.get("calls", 1)

    def size(v: Array) -> Array:
        return np.where(np.isfinite(v), np.abs(v), 0.0)

    with np.errstate(all="ignore"):
        plain = svdf(x, features, times, b, rank, "NONE", calls)
        most = svdf(size(x), size(features), size(times), None if b is None else size(b), rank, "NONE", calls)
        off = gamma(x.shape[-1] + times.shape[-1] + rank + 4, ctx.acc_u) * most
        off = np.where(most > float_max(ctx.acc), np.inf, off)
        act = ACTIVATIONS[activation]
        moved = np.maximum(np.abs(act(plain + off) - ctx.wide), np.abs(act(plain - off) - ctx.wide))
        moved = np.where(np.isinf(off), np.inf, np.where(np.isfinite(plain), moved, 0.0))
    return moved + 32 * ctx.u * np.maximum(np.abs(ctx.wide), 1.0)


def recurrent_bound(ctx: Context) -> Array:
    """8 times the largest change when every operand moves by gamma(4 (inputs + 8)) u relatively, + 32 ulp of
    max(|h|, 1)"""
    inputs = [v for v in ctx.inputs.values() if isinstance(v, np.ndarray) and v.dtype.kind == "f"]
    depth = max(v.shape[-1] for v in inputs if v.ndim) + 8
    rel = 4 * depth * ctx.acc_u
    return 8 * ctx.sensitivity(rel) + 32 * ctx.u * np.maximum(np.abs(ctx.wide), 1.0)
