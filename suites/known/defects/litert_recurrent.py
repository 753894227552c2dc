"""What comes where a difference is listed (``harness/ledger/defect_models.py``): LiteRT's recurrent kernels that step
otherwise through what they read."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.dtypes import I8, I16, int_range
from harness.ledger.defect_models import Near, Such
from suites.semantics.quantised.fixed import away, centred, real
from suites.semantics.quantised.output import finish
from suites.semantics.tensorflow_recurrent import ACTIVATIONS, GATES, newest

Outputs = list[Any] | None
_HIGHEST = float(np.finfo(np.float32).max)


def _misread(g: Given) -> np.ndarray | None:
    """The auxiliary input, read in steps as long as those through the input; None where these go beyond its end."""
    x, aux = g["input"], g["aux_input"]
    rows = 1 if not g.attr("time_major", False) else x.shape[1]
    starts = np.arange(x.shape[0] * x.shape[1] // max(1, rows)) * rows * x.shape[2]
    at = starts[:, None] + np.arange(rows * aux.shape[2])
    if at.size and at.max() >= aux.size:
        return None
    return np.asarray(aux.ravel()[at].reshape(aux.shape))


def auxiliary_steps_of_the_input(g: Given) -> Outputs:
    """Steps through the auxiliary input are as long as those through the input; beyond its end anything is read."""
    aux = _misread(g)
    return [Near(e.value, np.inf) for e in g.expected] if aux is None else g.reevaluate(inputs={"aux_input": aux})


def steps_run_once_per_step(g: Given) -> Outputs:
    """All steps are run as many times as there are steps, each time from the states that they have left.  Where a state
    leaves the range of its type on the way, no text says what its quantisation gives: from then on each step follows
    from the one before it in the answer."""
    return _run_again(g, g["aux_input"])


def auxiliary_steps_run_again(g: Given) -> Outputs:
    """The same, and steps through the auxiliary input are as long as those through the input."""
    if g["aux_input"] is None or g["aux_input"].shape == g["input"].shape:
        return None
    aux = _misread(g)
    return None if aux is None else _run_again(g, aux)


_FOLLOWED_ALONE = 16  # steps, above which squares of them are too many: then each follows from the one before it


def _run_again(g: Given, aux: np.ndarray | None) -> Outputs:
    inputs = {} if aux is None else {"aux_input": aux}
    steps = g["input"].shape[0]
    long = steps > _FOLLOWED_ALONE
    made = g.expected if long else g.reevaluate({"@calls": max(1, steps) * g.attr("@calls", 1)}, inputs)
    if made is None:
        return None
    bounds = [
        np.full(e.value.shape, np.inf)
        if long
        else np.broadcast_to(np.asarray(e.error.bound(e.context()), np.float64), e.value.shape)
        for e in made
    ]
    units = [len(g[p + "recurrent_weights"]) for p in ("fw_", "bw_")]
    out: list[Any] = []
    for k, (e, bound) in enumerate(zip(made, bounds)):
        lost = ~np.isfinite(e.value) | ~np.isfinite(bound)
        parts = (slice(0, units[0]), slice(units[0], None)) if len(made) == 1 else (slice(None),)

        def follows(
            a: np.ndarray, k: int = k, e: Any = e, b: Any = bound, lost: Any = lost, parts: Any = parts
        ) -> bool:
            if a.shape != e.value.shape or a.dtype != e.value.dtype:
                return False
            near = lost | (np.abs(a.astype(np.float64) - e.value) <= b)
            rows = [
                (_followed(g, aux, p + k, a[..., part]), lost[..., part].any((0, 2))) for p, part in enumerate(parts)
            ]
            return bool(near.all() and all((row | ~free).all() for row, free in rows))

        out.append(Such(follows, e.value) if lost.any() else e)
    return out


def _followed(g: Given, aux: Any, direction: int, y: np.ndarray) -> np.ndarray:
    """Of each sequence: does every step [t, b, u] of one direction follow from the one before it, where that is finite?
    The operands of its products may be off by a step of 8 bits."""
    prefix, order = (("fw_", slice(None)), ("bw_", slice(None, None, -1)))[direction]
    cross = g["fw_aux_weights"] is not None
    x = aux if direction and aux is not None and not cross else g["input"]
    y = y[order].astype(np.float64)
    pairs = [
        (x[order][1:], _weights(g, prefix + "input_to_input_weights")),
        (y[:-1], _weights(g, prefix + "recurrent_weights")),
    ]
    if cross:
        pairs.append((aux[order][1:], _weights(g, prefix + "aux_weights")))
    total, off = np.zeros_like(y[1:]) + g[prefix + "bias"], np.zeros_like(y[1:])
    told = np.ones_like(total, bool)
    for operand, w in pairs:
        size = np.abs(operand).max(-1, keepdims=True, initial=0.0)
        total = total + operand @ w.T
        off = off + (size / 64) * np.abs(w).sum(-1) + 1e-5 * (np.abs(operand) @ np.abs(w).T)
        told &= np.ptp(operand, -1, keepdims=True) < _HIGHEST if operand.shape[-1] else True
    activation = g.attr("fused_activation_function", "NONE")
    near = np.abs(y[1:] - ACTIVATIONS[activation](total)) <= off
    if activation == "SIGN_BIT":  # either sign, next to 0
        near |= np.abs(total) <= off
    known = told & np.isfinite(total) & np.isfinite(off) & (np.abs(total) + off < _HIGHEST)
    return np.asarray((~known | near).all((0, 2)))


def _weights(g: Given, slot: str) -> np.ndarray:
    return np.asarray(real(g[slot], g.inst.tensor(slot).quantised), np.float64)


def filters_summed_in_32_bits(g: Given) -> Outputs:
    """Sums of the memory with the time weights wrap at 32 bits; then the result saturates, with no activation applied.

    A place of the memory whose rounding is nearly a tie may be a step off.  Where such a step decides whether the sum
    wraps, any value may stand."""
    quants = {s: g.inst.tensor(s).quantised for s in ("input", "feature_weights", "time_weights", "activation_state")}
    scale = {s: q["scale"][0] for s, q in quants.items()}
    out, rank = g.attr("@outputs")[0]["quant"], g.attr("rank")
    seen = centred(g["input"], quants["input"]) @ centred(g["feature_weights"], quants["feature_weights"]).T
    steps = seen * (scale["input"] * scale["feature_weights"] / scale["activation_state"])
    memory = np.clip(away(steps), *int_range(I16))
    loose = np.abs(np.abs(steps - np.trunc(steps)) - 0.5) < 2.0**-14
    weights = newest(centred(g["time_weights"], quants["time_weights"]), g.attr("@calls", 1)).sum(-1)

    def summed(values: np.ndarray) -> np.ndarray:
        return values.reshape(len(values), -1, rank).sum(-1).astype(np.int64)

    bias = g["input_gate_bias"]
    total = summed(memory * weights) + (0 if bias is None else bias)
    off = summed(loose * np.abs(weights))
    if not (np.abs(total + 0.5) > 2.0**31 - off).any():
        return None
    wrapped = (total + 2**31) % 2**32 - 2**31
    ratio = scale["activation_state"] * scale["time_weights"] / out["scale"][0]
    edge = np.abs(wrapped + 0.5) > 2.0**31 - 1 - off
    given = finish(wrapped * ratio + out["zero_point"][0], out, I8)
    return [Near(given, np.where(edge & (off > 0), np.inf, 1 + np.ceil(off * ratio)))]


class _Clamped(np.ndarray):
    """A matrix whose products with others are clamped to the range of finite floats, and then added to a bias."""

    bias: Any

    def __array_finalize__(self, other: Any) -> None:
        self.bias = getattr(other, "bias", 0.0)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kw: Any) -> Any:
        out = getattr(ufunc, method)(*(np.asarray(x) if isinstance(x, _Clamped) else x for x in inputs), **kw)
        biases = [x.bias for x in inputs if isinstance(x, _Clamped)]
        return np.clip(out, -_HIGHEST, _HIGHEST) + biases[0] if ufunc is np.matmul else out


def products_clamped(g: Given) -> Outputs:
    """LSTM of floats: each product of a matrix is clamped to the range of finite floats; the first one is added to the
    bias, then the next one to that."""
    inputs = dict(g.call.inputs)
    for k, v in g.call.inputs.items():
        if k.endswith("_weights") and v is not None and v.ndim == 2:
            inputs[k] = v.astype(np.float64).view(_Clamped)
    if any("layer_norm" in k and v is not None for k, v in inputs.items()):
        return None
    for prefix in ("", "fw_", "bw_"):
        for gate in GATES:
            w, name = inputs.get(f"{prefix}input_to_{gate}_weights"), f"{prefix}{gate}_gate_bias"
            name = f"{prefix}cell_bias" if gate == "cell" else name
            if w is not None and inputs.get(name) is not None:
                w.bias, inputs[name] = inputs[name].astype(np.float64), np.zeros_like(inputs[name])
    evaluation, call = g.case.version.entry.evaluation, copy(g.call)
    if evaluation is None:
        return None
    call.inputs = inputs
    made = evaluation.fn(call)
    return [Near(np.asarray(y), 1e-5 * np.maximum(1, np.nan_to_num(np.abs(y), posinf=0))) for y in made]


def projections_within_range(g: Given) -> Outputs:
    """A projection is limited to the finite numbers, as a product without an activation is."""
    return g.reevaluate({"proj_clip": float(np.finfo(np.float32).max)}) if not g.attr("proj_clip", 0.0) else None
