"""What comes where a difference is listed (``harness/ledger/defect_models.py``): other readings of
NeuralNetwork.proto."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.ledger.defect_models import Near, Turned

Outputs = list[Any] | None


def nn_in_order_of_the_input(g: Given) -> Outputs:
    """A reversed sequence comes out as it went in: the result of the last step first."""
    return [Turned(g.expected[0], lambda a: a[::-1]), *[None] * (len(g.expected) - 1)]


def nn_longer_before(g: Given) -> Outputs:
    """An even window of channels reaches one further before than after."""

    def turned(a: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(np.flip(a, -3))

    again = g.reevaluate(inputs={"x": turned(g["x"])})
    return again and [Turned(again[0], turned)]


def nn_epsilon_beside_the_root(g: Given) -> Outputs:
    """(x - mean) / (deviation + epsilon)."""
    x, epsilon = g["x"].astype(np.float64), float(np.float32(g.attr("epsilon") or 1e-6))
    axes = (-3, -2, -1) if g.attr("acrossChannels", False) else (-2, -1)
    away = x - x.mean(axes, keepdims=True)
    y = away / (np.sqrt(np.square(away).mean(axes, keepdims=True)) + epsilon)
    (e,) = g.expected
    # roundings as of the reading that is expected, which has as many
    return [Near(y.reshape(e.value.shape), 4 * np.max(e.error.bound(e.context()), initial=0.0))]


def nn_log_with_epsilon(g: Given) -> Outputs:
    """log(scale * x + shift + epsilon): as of a shift that is larger by epsilon."""
    return g.reevaluate({"shift": (g.attr("shift") or 0.0) + float(np.float32(g.attr("epsilon") or 1e-6))})


def _stored(text: str) -> str:
    """An activation with zeros for numbers that are not given, in a form that cannot be taken for "not given"."""
    name, _, rest = text.partition("(")
    numbers = [float(v) for v in rest.rstrip(")").split(",") if v]
    none = name in ("linear", "scaledTanh", "sigmoidHard") and not any(numbers)
    return "linear(1e-45,0.0)" if none else text


def nn_zeros_as_stored(g: Given) -> Outputs:
    """Activations whose numbers are 0 give 0: the formula with zeros, said with the least slope there is."""
    changed = {
        k: [_stored(t) for t in v] if isinstance(v, list) else _stored(v)
        for k, v in g.inst.attrs.items()
        if k.startswith("activation")
    }
    return g.reevaluate(changed)
