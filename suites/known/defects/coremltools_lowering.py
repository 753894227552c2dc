"""What comes where a difference is listed (``harness/ledger/defect_models.py``): MIL ops lowered to NeuralNetwork
layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.ledger.defect_models import Near, Turned
from suites.semantics.coreml_recurrent import _run
from suites.semantics.recurrent import functions

Outputs = list[Any] | None
_GATES = {"lstm": (0, 1, 3, 2), "gru": (2, 0, 1), "rnn": (0,)}  # the layer's gates among MIL's
_USUAL = {
    "lstm": (("recurrent_activation", "sigmoid"), ("cell_activation", "tanh"), ("activation", "tanh")),
    "gru": (("recurrent_activation", "sigmoid"), ("activation", "tanh")),
    "rnn": (("activation", "tanh"),),
}
_NAMES = {"linear": "affine", "sigmoid_hard": "hard_sigmoid"}
_TINY = 2.0**-149


def _limited(g: Given, lost: tuple[str, ...] = ()) -> Outputs:
    """What comes of gates with limits.  lost: vectors that the layer does not have."""
    cell, both = g.inst.op, g.attr("direction") == "bidirectional"
    backs, n = ("", "_back") if both else ("",), g["weight_hh"].shape[1]

    def stacked(name: str, order: tuple[int, ...]) -> Any:
        parts: list[Any] = [None if name + back in lost else g[name + back] for back in backs]
        if all(v is None for v in parts):
            return None
        parts = [np.zeros_like(next(v for v in parts if v is not None)) if v is None else v for v in parts]
        return np.stack([np.stack([np.split(v, len(order))[k] for k in order]) for v in parts])

    w, r, b = (stacked(name, _GATES[cell]) for name in ("weight_ih", "weight_hh", "bias"))
    h0, c0 = (
        None if g[k] is None else g[k].reshape(-1, len(backs), n).swapaxes(0, 1) for k in ("initial_h", "initial_c")
    )
    named = [g.attr(k, usual) for k, usual in _USUAL[cell]]
    acts = functions(cell, 1, [_NAMES.get(a, a) for a in named], None, None)
    q = {
        "cell": cell,
        "activations": acts,
        "reverse": g.attr("direction") == "reverse",
        "coupled": False,
        "cell_clip": 500.0 if g.attr("clip") is None else g.attr("clip"),
    }
    with np.errstate(all="ignore"):
        y, *states = _run(2.0**-24, _TINY, q, g["x"], w, r, b, stacked("peephole", (0, 1, 2)), h0, c0)
    ends = [[np.concatenate([getattr(v, of) for v in states[k::2]], -1) for of in ("value", "error")] for k in (0, 1)]
    whole = [y.value, y.error] if g.attr("output_sequence", False) else [v[None] for v in ends[0]]
    rows = [whole, *ends][: len(g.expected)]
    return [Near(v, 2 * e + 2.0**-23 * np.abs(v) + _TINY) for v, e in rows]


def limited_gates(g: Given) -> Outputs:
    """What enters an activation of a gate is limited to -50..50, a cell without a clip to -500..500."""
    return _limited(g)


def _of_backward_alone(g: Given) -> tuple[str, ...]:
    return tuple(f"{k}_back" for k in ("bias", "peephole") if g[k] is None and g[f"{k}_back"] is not None)


def lstm_with_forward_flags(g: Given) -> Outputs:
    """Biases and peepholes that only the backward direction has are lost."""
    lost = dict.fromkeys(_of_backward_alone(g))
    return g.reevaluate(inputs=lost) if lost else None


def limited_gates_with_forward_flags(g: Given) -> Outputs:
    """The same, where gates without these vectors reach their limits."""
    lost = _of_backward_alone(g)
    return _limited(g, lost) if lost else None


def channels_third_from_the_end(g: Given) -> Outputs:
    """local_response_norm: the layer's channels are the third axis from the end."""
    x = g["x"]
    turned = x.reshape(-1, *x.shape[-3:])
    again = g.reevaluate(inputs={"x": turned})
    return again and [Turned(again[0], lambda a: a.reshape(turned.shape))]


def power_of_shifted(g: Given) -> Outputs:
    """pow by one constant: the shift of 0 that the layer adds first makes 0 of -0."""
    return g.reevaluate(inputs={"x": g["x"] + np.float32(0)})


def silu_of_rounded_sigmoid(g: Given) -> Outputs:
    """The sigmoid is off by half of the least number before it is multiplied."""
    (e,) = g.expected
    return [Near(e.value, np.abs(g["x"].astype(np.float64)) * _TINY)]


def _between(x: np.ndarray, axis: int, size: int, whole: float) -> tuple[np.ndarray, np.ndarray]:
    """Linear interpolation between the corners, and the sum of the magnitudes that each element is made of.  whole: the
    extent by which the distance of two places is told, where ``size`` is that without its fraction."""
    n = x.shape[axis]
    at = np.minimum(np.arange(size) * ((n - 1) / (whole - 1) if size > 1 else 0.0), n - 1)
    low = np.floor(at).astype(int)
    part = (at - low).reshape([-1 if k == axis % x.ndim else 1 for k in range(x.ndim)])
    a, b = np.take(x, low, axis), np.take(x, np.minimum(low + 1, n - 1), axis)
    return np.where(part == 0, a, a * (1 - part) + b * part), np.abs(a) + np.where(part == 0, 0.0, np.abs(b))


def interpolated_between_corners(g: Given) -> Outputs:
    """The nearest element is not taken: both axes are interpolated linearly with aligned corners."""
    x, (e,) = g["x"].astype(np.float64), g.expected
    y, size = x, np.abs(x)
    for axis, name in ((-2, "height"), (-1, "width")):
        n, m = x.shape[axis], e.value.shape[axis]
        factor = g.attr(f"scale_factor_{name}", 1.0)
        if f"target_size_{name}" in g.inst.attrs:
            factor = m / n if m % n == 0 else (m + 1e-4) / n
        whole = n * float(np.float32(factor))
        y, size = _between(y, axis, m, whole)[0], _between(size, axis, m, whole)[1]
    # every product and sum is rounded to f32, whose spacing near zero is 2^-149
    return [Near(y, 2.0**-21 * size + 2.0**-147)]


def loop_variables_in_turn(g: Given) -> Outputs:
    """while_loop: a variable that is handed on as another one has its new value by then."""
    body = g.attr("_body")
    given = {n: i for i, (n, _) in enumerate(body.inputs)}
    outputs: list[str] = []
    for i, name in enumerate(body.outputs):
        j = given.get(name, i)
        outputs.append(outputs[j] if j < i else name)
    return g.reevaluate({"_body": replace(body, outputs=outputs)}) if outputs != list(body.outputs) else None


def loop_keeps_a_constant(g: Given) -> bool:
    """while_loop: does the body compute a variable, given as a constant, that has the same value again?"""
    body = g.attr("_body")
    given = {n for n, _ in body.inputs}
    kept = [np.array_equal(e.value, v) for e, v in zip(g.expected, g["loop_vars"], strict=True)]
    computed = [name not in given for name in body.outputs]
    return any(k and c and a.const for k, c, a in zip(kept, computed, g.inst.tensors("loop_vars"), strict=True))


def slopes_of_the_third_axis_from_the_end(g: Given) -> list[Any] | None:
    """prelu of rank 3 and 5: slopes that differ by 1e-5 at most from the first, as anything does from NaN, pass for
    equal.  The layer then takes them for those of the third axis from the end."""
    x, slopes = g["x"], g["alpha"]
    if x.ndim not in (3, 5) or x.shape[-3] != slopes.size or np.any(np.abs(slopes - slopes[0]) > 1e-5):
        return None
    told = g.reevaluate(inputs={"x": np.moveaxis(x, -3, 1)})
    return told and [np.moveaxis(told[0].value, 1, -3)]


def all_axes_where_none_is_named(g: Given) -> Outputs:
    """reduce_*: no axes at all are taken for all of them.  A result of rank 0 has one axis in a neural network."""
    again = g.reevaluate({"axes": list(range(g["x"].ndim))})
    return again and [Turned(again[0], lambda a: a.reshape(()) if a.shape == (1,) and not again[0].value.ndim else a)]
