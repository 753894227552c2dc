"""The recurrent operators of TFLite as meanings: operands by the dialect's names, states from zero."""

from __future__ import annotations

from typing import Any as Object

import numpy as np

from harness.declare import Float, Opaque, composed, semantics
from suites.semantics.tensorflow_recurrent import GATES, Array, lstm, recurrent_bound, rnn, svdf, svdf_bound

_BOUND = composed(recurrent_bound)


def _time_first(x: Array, time_major: bool) -> Array:
    x = np.asarray(x, np.float64)
    return x if time_major else np.swapaxes(x, 0, 1)


@semantics(error=_BOUND, source="TFLite UNIDIRECTIONAL_SEQUENCE_RNN, RNN")
def sequence_rnn(
    x: Float[Array, "*d i"],
    w: Float[Array, "u i"],
    r: Float[Array, "u u"],
    b: Float[Array, "u"],
    *,
    time_major: Opaque,
    activation: Opaque,
    calls: Opaque = 1,
) -> Array:
    """h = act(w x + r h + b) along time.  x: [b, t, i], [t, b, i] when time_major, or one step [b, i].  calls: how
    often it is given, each time with the state that the time before left; the last one answers."""
    one = x.ndim == 2
    xt = np.asarray(x, np.float64)[None] if one else _time_first(x, time_major)
    y, h = rnn(
        np.concatenate([xt] * calls),
        w.astype(np.float64),
        r.astype(np.float64),
        b.astype(np.float64),
        np.zeros((xt.shape[1], w.shape[0])),
        activation,
    )
    y = y[len(y) - len(xt) :]
    return h if one else (y if time_major else np.swapaxes(y, 0, 1))


def cell(v: dict[str, Object], prefix: str = "") -> dict[str, Object]:
    """Operands under the dialect's names -> the cell's parameters.  "@aux": the auxiliary input [t, b, a]."""
    out: dict[str, Object] = {"aux": v.get("@aux")}
    for g in GATES:
        bias = "cell_bias" if g == "cell" else f"{g}_gate_bias"
        for key, name in (
            ("w", f"input_to_{g}_weights"),
            ("r", f"recurrent_to_{g}_weights"),
            ("b", bias),
            ("p", f"cell_to_{g}_weights"),
            ("n", f"{g}_layer_norm_coefficients"),
        ):
            a = v.get(prefix + name)
            out[f"{key}_{g}"] = None if a is None else np.asanyarray(a, np.float64)
        a = v.get(f"{prefix}aux_input_to_{g}_weights")
        out[f"aux_w_{g}"] = None if a is None else np.asarray(a, np.float64)
    for key, name in (("proj", "projection_weights"), ("proj_bias", "projection_bias")):
        a = v.get(prefix + name)
        out[key] = None if a is None else np.asarray(a, np.float64)
    return out


def run_cell(
    x: Array,
    v: dict[str, Object],
    prefix: str,
    activation: str,
    cell_clip: float,
    proj_clip: float,
    diagonal: bool = False,
) -> Array:
    """One direction over x [t, b, i] from zero states."""
    p = cell(v, prefix)
    units = p["w_forget"].shape[0]
    outs = units if p["proj"] is None else p["proj"].shape[0]
    b = x.shape[1]
    y, _, _ = lstm(
        x,
        p,
        np.zeros((b, outs)),
        np.zeros((b, units)),
        activation=activation,
        cell_clip=cell_clip,
        proj_clip=proj_clip,
        diagonal=diagonal,
    )
    return y


@semantics(error=composed(svdf_bound), source="TFLite SVDF (feature and time weights of a rank decomposition)")
def svdf_step(
    x: Float[Array, "n i"],
    features: Float[Array, "f i"],
    times: Float[Array, "f m"],
    b: Float[Array, "u"] | None = None,
    *,
    rank: Opaque,
    activation: Opaque,
    calls: Opaque = 1,
) -> Array:
    """The last of some calls with the same x: the memory held nothing before the first."""
    return svdf(
        x.astype(np.float64),
        features.astype(np.float64),
        times.astype(np.float64),
        None if b is None else b.astype(np.float64),
        rank,
        activation,
        calls,
    )
