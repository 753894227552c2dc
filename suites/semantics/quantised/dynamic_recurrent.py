"""How far the hybrid form of a recurrent cell may be from the cell with real weights.

An implementation may first quantise every operand of a matrix product, the state included, to 8 bits by its range.  The
functions run the cell in f64.  Element by element they carry the largest error that this can have made so far: a
product adds |w| (e + half a step), a sum adds the errors up, and an activation, which grows everywhere, maps the ends
of the interval.

Where a recurrence drives neighbouring states apart, two runs of the cell in f64 part as well.  So an error is kept with
the values around which it was found.  ``around`` counts it from another run of the same cell.

Source: TensorFlow Lite, "Post-training dynamic range quantization"; Higham, "Accuracy and Stability", ch. 3 (gamma).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.tolerance import gamma
from suites.semantics.quantised.dynamic import step, step_of
from suites.semantics.tensorflow_recurrent import ACTIVATIONS, GATES, newest, sigmoid

Array = np.ndarray
_HIGHEST = float(np.finfo(np.float32).max)
_OVERFLOWS = _HIGHEST * (1 + 2.0**-25)  # what is below it is rounded to the former
FLOAT = "float"  # in place of the option: nothing is quantised, only roundings add up
_FUNCTION = 32.0  # roundings granted to an activation function, of a result of about 1
_FOUND = np.dtype([("value", np.float64), ("error", np.float64)])


class Numbers:
    """Values with a bound on their error.  It is infinite where arithmetic may leave the range of f32 on its way: what
    comes of that may be infinite or NaN, though the value lies in the range.

    finite: how large the finite terms of a sum may become together, in whatever order they are added: no less than the
    value, but where others are infinite."""

    __slots__ = ("error", "finite", "value")

    def __init__(self, value: Array, error: Array | float = 0.0, finite: Array | None = None) -> None:
        self.value = value
        self.error = np.broadcast_to(np.asarray(error, np.float64), value.shape)
        self.finite = np.where(np.isfinite(value), np.abs(value), 0.0) + self.error if finite is None else finite

    def quantised(self, asymmetric: bool | str) -> Numbers:
        """After their quantisation: half a step of the range that all of them may have."""
        if asymmetric == FLOAT:
            return self
        with np.errstate(all="ignore"):
            low, high = (self.value - self.error).min(initial=0.0), (self.value + self.error).max(initial=0.0)
        if _untold(low, high):
            return Numbers(np.zeros(self.value.shape), np.inf)
        return Numbers(self.value, self.error + step(low, high, asymmetric))

    def times(self, w: Array, u: float) -> Numbers:
        """Rows times w', summed in any order."""
        with np.errstate(all="ignore"):
            value, a = self.value @ w.T, np.abs(w).T
            error = self.error @ a
            size = (np.abs(self.value) + self.error) @ a
            if np.isfinite(size).all() and size.max(initial=0.0) < _HIGHEST:
                return Numbers(value, error + gamma(w.shape[1] + 8, u) * size, size)
            finite = (np.where(np.isfinite(self.value), np.abs(self.value), 0.0) + self.error) @ np.where(
                np.isfinite(a), a, 0.0
            )
            error = np.where(size < _HIGHEST, error + gamma(w.shape[1] + 8, u) * size, np.inf)
            return Numbers(value, np.where(np.isinf(value) & (finite < _HIGHEST), 0.0, error), finite)

    def plus(self, other: Numbers, u: float) -> Numbers:
        with np.errstate(all="ignore"):
            value, error = self.value + other.value, self.error + other.error
            finite = self.finite + other.finite
            infinite = np.where(finite < _OVERFLOWS, error, np.inf)
            bound = _in_range(value, error + 2 * u * (np.abs(value) + error), infinite)
            many = (self.finite > np.abs(self.value) + self.error) | (other.finite > np.abs(other.value) + other.error)
            on_its_way = many & np.isfinite(value) & (finite >= _OVERFLOWS)  # one order of the terms may overflow
            return Numbers(value, np.where(on_its_way, np.inf, bound), finite)

    def by(self, other: Numbers, u: float) -> Numbers:
        """Element by element."""
        with np.errstate(all="ignore"):
            a, b = np.abs(self.value), np.abs(other.value)
            error = a * other.error + b * self.error + self.error * other.error
            value = self.value * other.value
            signs = np.where((a > self.error) & (b > other.error), 0.0, np.inf)
            return Numbers(value, _in_range(value, error + 2 * u * (a * b + error), signs))

    def through(self, activation: str, u: float) -> Numbers:
        value = ACTIVATIONS[activation](self.value)
        if activation == "SIGN_BIT":  # exact but where either sign, of a zero too, may be
            return Numbers(value, self.lost(np.where(np.abs(self.value) <= self.error, 1.0, 0.0)))
        error = self.image(ACTIVATIONS[activation])
        return Numbers(
            value, self.lost(_in_range(value, error + _FUNCTION * u * np.maximum(1.0, np.abs(value)), error))
        )

    def gate(self, u: float) -> Numbers:
        with np.errstate(all="ignore"):
            value = sigmoid(self.value)
        return Numbers(value, self.lost(np.minimum(1.0, self.image(sigmoid) + _FUNCTION * u)))

    def lost(self, error: Array) -> Array:
        """The error of a function of what may be anything: it may be NaN, which no function bounds."""
        return np.where(np.isinf(self.error), np.inf, error)

    def image(self, fn: Any) -> Array:
        """Error of a function that grows everywhere: how far it goes on either side of the value."""
        with np.errstate(all="ignore"):
            low, middle, high = (fn(self.value + s * self.error) for s in (-1, 0, 1))
            error = np.where(self.error == 0, 0.0, np.maximum(middle - low, high - middle))
            return np.nan_to_num(error, nan=np.inf)

    def clipped(self, limit: float) -> Numbers:
        if limit <= 0:
            return self
        return Numbers(np.clip(self.value, -limit, limit), self.lost(np.minimum(self.error, 2 * limit)))

    def normalised(self, scale: Array, u: float) -> Numbers:
        """Rows brought to mean 0 and deviation 1, times ``scale``.

        With v the results, S the deviation and d the errors, S' the deviation with them, m their mean:

            v'_i - v_i = (d_i - m - v_i (S' - S)) / S',   S'^2 - S^2 = 2 S mean(v d) + q,   0 <= q <= mean(d^2) = s^2

        S' differs from S by at most s (a norm), so that S' - S is mean(v d) and at most s (mean|v d| + s) / (2 S - s)
        more.  In first order the sums over j of (i = j) - (1 + v_i v_j) / n times d_j are left: an error that moves or
        stretches a row does nothing.  But the mean, off by t, moves what is left of it.  Results lie within the root of
        n - 1 + t^2 / (t^2 + 1e-8) anyway, the largest of (sqrt(n - 1) S + t) / sqrt(S^2 + t^2 + 1e-8)."""
        n = self.value.shape[-1]
        if not self.value.size:
            return self
        mean = self.value.mean(-1, keepdims=True)
        spread = np.sqrt(((self.value - mean) ** 2).mean(-1, keepdims=True) + 1e-8)
        value = (self.value - mean) / spread
        e = self.error + gamma(n + 8, u) * np.abs(self.value).max(-1, keepdims=True)
        s = np.sqrt((e * e).mean(-1, keepdims=True))
        first = np.abs(np.eye(n) - (1.0 + value[..., :, None] * value[..., None, :]) / n) @ e[..., None]
        with np.errstate(all="ignore"):
            more = np.abs(value) * s * ((np.abs(value) * e).mean(-1, keepdims=True) + s) / (2.0 * spread - s)
            of_mean = gamma(n + 2, u) * (np.abs(self.value) + self.error).mean(-1, keepdims=True)
            moved = np.where(spread > s, (first[..., 0] + more + of_mean) / (spread - s), np.inf)
            widest = np.abs(value) + np.sqrt(n - 1 + of_mean**2 / (of_mean**2 + 1e-8)) * (1 + 64 * u)
        error = np.minimum(moved, widest) + 64 * u * np.abs(value)
        beyond = (np.abs(self.value) + self.error).max(-1, keepdims=True) > np.sqrt(_HIGHEST / n)  # or its squares
        error = np.where(beyond | np.isinf(self.error).any(-1, keepdims=True), np.inf, error)
        with np.errstate(all="ignore"):
            value, error = value * scale, error * np.abs(scale) * (1 + 4 * u)
        return Numbers(value, _in_range(value, error, error))


def _in_range(value: Array, error: Array, infinite: Array) -> Array:
    """The error of a value; infinite where f32 may not hold it; ``infinite`` is that of an infinite value."""
    inside = np.abs(value) + error < _HIGHEST
    return np.where(np.isinf(value), np.where(np.isfinite(infinite), 0.0, np.inf), np.where(inside, error, np.inf))


def _sequence(steps: list[Numbers], shape: tuple[int, ...]) -> Array:
    """Values of all steps with their errors, [t, b, units], as one array that moves axes like any other."""
    found = np.zeros((len(steps), *shape), _FOUND)
    for t, now in enumerate(steps):
        found["value"][t], found["error"][t] = now.value, now.error
    return found


def error_of(found: Array) -> Array:
    """The bounds alone, of values with bounds or of bounds."""
    return found["error"] if found.dtype.names else found


def around(wide: Array, found: Array) -> Array:
    """Bound on how far a result may be from ``wide``: its error, and what ``wide`` itself is off the values that the
    error was found around.  found: as of ``error_of``."""
    if not found.dtype.names:
        return found
    value = found["value"]
    with np.errstate(all="ignore"):
        same = (value == wide) | (np.isnan(value) & np.isnan(wide))
        return found["error"] + np.where(same, 0.0, np.nan_to_num(np.abs(value - wide), nan=np.inf))


def _given(x: Array | None, asymmetric: bool | str) -> list[Numbers]:
    """An operand, step by step, after its quantisation by the range of all of it."""
    if x is None:
        return []
    if asymmetric == FLOAT:
        return [Numbers(now) for now in x]
    if _untold(x.min(initial=0.0), x.max(initial=0.0)):
        return [Numbers(np.zeros(now.shape), np.inf) for now in x]
    return [Numbers(now, step_of(x, asymmetric)) for now in x]


def _untold(low: Any, high: Any) -> bool:
    """Does no text tell what the quantisation of numbers between these gives: NaN, infinities, a range beyond f32?"""
    return not high - low < _HIGHEST


def rnn_error(
    x: Array,
    w: Array,
    r: Array,
    b: Array,
    activation: str,
    asymmetric: bool | str,
    u: float,
    aux: Array | None = None,
    aux_w: Array | None = None,
) -> Array:
    """act(w x + aux_w aux + r h + b) over x [t, b, i] from a zero state, with a bound on its error: [t, b, units]."""
    h, out, beside = Numbers(np.zeros((x.shape[1], w.shape[0]))), [], _given(aux, asymmetric)
    for t, now in enumerate(_given(x, asymmetric)):
        z = now.times(w, u)
        z = z if aux_w is None else z.plus(beside[t].times(aux_w, u), u)
        z = z.plus(h.quantised(asymmetric).times(r, u), u)
        h = z.plus(Numbers(np.broadcast_to(b, z.value.shape)), u).through(activation, u)
        out.append(h)
    return _sequence(out, h.value.shape)


def lstm_error(
    x: Array,
    p: Mapping[str, Any],
    activation: str,
    cell_clip: float,
    proj_clip: float,
    asymmetric: bool | str,
    u: float,
) -> Array:
    """The cell of ``tensorflow_recurrent.lstm`` over x [t, b, i] from zero states, with a bound on its error: [t, b,
    outputs].  Peephole weights meet the cell state element by element, which stays float."""
    units = p["w_forget"].shape[0]
    outs = units if p["proj"] is None else p["proj"].shape[0]
    h, c = Numbers(np.zeros((x.shape[1], outs))), Numbers(np.zeros((x.shape[1], units)))
    out, beside = [], _given(p.get("aux"), asymmetric)

    def pre(gate: str, t: int, now: Numbers, state: Numbers, cell: Numbers) -> Numbers:
        r = p[f"r_{gate}"]
        z = now.times(p[f"w_{gate}"], u)
        if p.get(f"aux_w_{gate}") is not None:
            z = z.plus(beside[t].times(p[f"aux_w_{gate}"], u), u)
        z = z.plus(state.by(Numbers(np.broadcast_to(r, z.value.shape)), u) if r.ndim == 1 else state.times(r, u), u)
        if p.get(f"p_{gate}") is not None:
            z = z.plus(cell.by(Numbers(np.broadcast_to(p[f"p_{gate}"], cell.value.shape)), u), u)
        if p.get(f"n_{gate}") is not None:
            z = z.normalised(p[f"n_{gate}"], u)
        return z.plus(Numbers(np.broadcast_to(p[f"b_{gate}"], z.value.shape)), u)

    for t, now in enumerate(_given(x, asymmetric)):
        state = h.quantised(asymmetric)
        gates = {g: pre(g, t, now, state, c) for g in GATES[:3] if p.get(f"w_{g}") is not None}
        f = gates["forget"].gate(u)
        i = gates["input"].gate(u) if "input" in gates else Numbers(1 - f.value, f.error + u)
        c = f.by(c, u).plus(i.by(gates["cell"].through(activation, u), u), u).clipped(cell_clip)
        h = pre("output", t, now, state, c).gate(u).by(c.through(activation, u), u)
        if p["proj"] is not None:
            h = h.quantised(asymmetric).times(p["proj"], u)
            if p.get("proj_bias") is not None:
                h = h.plus(Numbers(np.broadcast_to(p["proj_bias"], h.value.shape)), u)
            h = h.clipped(proj_clip)
        out.append(h)
    return _sequence(out, h.value.shape)


def svdf_error(
    x: Array,
    features: Array,
    times: Array,
    bias: Array | None,
    rank: int,
    asymmetric: bool | str,
    u: float,
    calls: int = 1,
    activation: str = "NONE",
) -> Array:
    """Bound on ``tensorflow_recurrent.svdf``: [b, units]; the memory stays float.  Of the activations only SIGN_BIT may
    make an error larger.  Where nothing is told of what is
    seen, with values that are NaN where the bias is."""
    seen = _given(x[None], asymmetric)[0].times(features, u)
    met = newest(times, calls).T
    parts = [seen.by(Numbers(np.broadcast_to(w, seen.value.shape)), u) for w in met]
    error, size, value = (
        np.asarray(sum(a, np.zeros(seen.value.shape))).reshape(len(x), len(features) // rank, rank).sum(-1)
        for a in ([y.error for y in parts], [np.abs(y.value) for y in parts], [y.value for y in parts])
    )
    bound = error + gamma(rank * len(met) + 8, u) * (size + error + (0.0 if bias is None else np.abs(bias)))
    if activation == "SIGN_BIT":
        bound = Numbers(value if bias is None else value + bias, bound).through(activation, u).error
    if asymmetric == FLOAT or not np.isinf(seen.error).all():
        return bound
    nan = np.zeros(bound.shape) if bias is None else np.broadcast_to(np.where(np.isnan(bias), bias, 0.0), bound.shape)
    return _sequence([Numbers(nan, np.inf)], bound.shape)[0]
