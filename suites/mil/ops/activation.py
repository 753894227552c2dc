"""Activations: the iOS 15 module of that name; from iOS 17 on the parameters may have another float type than x."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.declare import (
    Array,
    Checks,
    Choice,
    Draw,
    Float,
    Sampling,
    Spelling,
    T,
    bounded,
    semantics,
    underspecified,
)
from suites.mil import op
from suites.semantics import elementwise as s

for name in (
    "clamped_relu",
    "elu",
    "leaky_relu",
    "linear_activation",
    "relu",
    "relu6",
    "scaled_tanh",
    "sigmoid",
    "softplus",
):
    op(name, getattr(s, name))
op(
    "softsign",
    s.softsign,
    Checks(
        ambiguous=lambda c: underspecified(
            "x / (1 + |x|) at an infinity: NaN by the formula, else its limit", np.isinf(c.inputs["x"])
        )
    ),
)
op("sigmoid_hard", s.hard_sigmoid)
op("silu", s.swish, Spelling(fixed={"alpha": 1.0}))
op(
    "thresholded_relu",
    s.thresholded_relu_inclusive,
    Checks(
        ambiguous=lambda c: underspecified(
            "NaN is not at least alpha: 0 as it is written, itself with the condition turned round",
            np.isnan(c.inputs["x"]),
            np.zeros_like(c.inputs["x"]),
            c.inputs["x"],
        )
    ),
)

_GELU = {"EXACT": s.gelu_exact, "TANH_APPROXIMATION": s.gelu_tanh, "SIGMOID_APPROXIMATION": s.gelu_sigmoid}


@semantics(
    error=bounded(lambda ctx: _GELU[ctx.params["mode"]].error_of(0).bound(ctx), "that of the mode's formula"),
    data=s.gelu_exact.data,
    source="MIL gelu iOS15",
)
def gelu(x: Float[Array, "*d"], *, mode: Choice[str, _GELU]) -> Float[Array, "*d"]:
    """One of three formulas by name."""
    return _GELU[mode](x)


op("gelu", gelu)


_SLOPES = ("uniform:0.125:2", "uniform:-2:2")


def _channels(*slots: str) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        c = d.dim(1, 8)
        shape = (d.dim(1, 4), c, *d.part(1, 3 if len(slots) == 1 else None, lo=1))
        shape = shape[:3] + ((*shape[3:], 1)[:1] if len(slots) > 1 else shape[3:])
        out = {slot: T((c,), recipe=d.pick(_SLOPES), const=True) for slot in slots}
        if len(slots) == 1 and len(shape) != 4 and not d.chance(8):  # all that the package takes at ranks 3 and 5
            out = {slots[0]: T((c,), values=[d.pick((0.25, -0.5, 1.5))] * c, const=True)}
        return {"x": T(shape), **out}

    return draw


def _misfit(*slots: str) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        c = d.dim(2, 8)
        return {"x": T((2, c, 3, 1)), **{slot: T((c + 1,), recipe="uniform:0.125:2") for slot in slots}}

    return draw


op(
    "prelu",
    s.prelu_channels,
    Sampling(_channels("alpha")),
    Checks(breaks={"alpha-per-channel": _misfit("alpha")}, stated={"x": "b c h *_more", "alpha": "c"}),
)
op(
    "softplus_parametric",
    s.softplus_parametric,
    Sampling(_channels("alpha", "beta")),
    Checks(
        breaks={"alpha-per-channel": _misfit("alpha", "beta")},
        stated={"x": "b c h *_more", "alpha": "c", "beta": "c"},  # "x should be at least rank 3"
    ),
)
