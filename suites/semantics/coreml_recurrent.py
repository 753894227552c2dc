"""Recurrent layers as NeuralNetwork defines them: gate sums limited to +-50, cells limited, peepholes.

The equations are written once over ``Running``: their values are the result, their errors the bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as Object

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Choice, Context, Flag, Float, Opaque, Real, composed, semantics
from suites.semantics.bounds import quiet, tiny
from suites.semantics.recurrent import FUNCTIONS
from suites.semantics.running import Running

Array = np.ndarray
LIMIT = 50.0  # of what enters an activation of a gate


def _act(x: Running, how: tuple[str, float, float]) -> Running:
    name, a, b = how
    extra = x.u * (np.abs(a * x.value) + abs(b)) * 2 if name in ("affine", "hard_sigmoid") else 0.0
    return x.through(lambda v: FUNCTIONS[name](v, a, b), extra=extra)


def _gate(x: Running, h: Running, w: Array, r: Array, b: Object, more: Object = None) -> Running:
    total = x.dot(w.T) + h.dot(r.T)
    total = total if b is None else total + b
    return (total if more is None else total + more).clipped(LIMIT)


def _step(
    cell: str,
    x: Running,
    h: Running,
    c: Running,
    w: Array,
    r: Array,
    b: Object,
    p: Object,
    acts: list,
    cell_clip: float,
    coupled: bool,
) -> tuple[Running, Running]:
    """Output and cell after one element.  Gates: rnn one; gru update reset output; lstm input forget block output."""

    def gate(k: int, state: Running, more: Object = None) -> Running:
        return _gate(x, state, w[k], r[k], None if b is None else b[k], more)

    if cell == "rnn":
        return _act(gate(0, h), acts[0]), c
    if cell == "gru":
        z, reset = _act(gate(0, h), acts[0]), _act(gate(1, h), acts[0])
        o = _act(gate(2, h * reset), acts[1])
        return (z.of(np.ones_like(z.value)) - z) * o + z * h, c
    peep: Object = [None] * 3 if p is None else p
    i = _act(gate(0, h, None if p is None else c * peep[0]), acts[0])
    if coupled:
        f = i.of(np.ones_like(i.value)) - i
    else:
        f = _act(gate(1, h, None if p is None else c * peep[1]), acts[0])
    c = (c * f + i * _act(gate(2, h), acts[1])).clipped(cell_clip)
    o = _act(gate(3, h, None if p is None else c * peep[2]), acts[0])
    return _act(c, acts[2]) * o, c


def _run(
    u: float,
    low: float,
    q: Mapping[str, Object],
    x: Array,
    w: Array,
    r: Array,
    b: Object,
    p: Object,
    h0: Object,
    c0: Object,
) -> list[Running]:
    """Y [t, b, e * h], then h and c [b, h] of every direction."""
    x, w, r = (np.asarray(v, np.float64) for v in (x, w, r))
    b, p, h0, c0 = (None if v is None else np.asarray(v, np.float64) for v in (b, p, h0, c0))
    t, batch, _ = x.shape
    n = r.shape[-1]
    ys, states = [], []
    for e in range(w.shape[0]):
        zero = np.zeros((batch, n))
        h, c = (Running(zero if s is None else s[e], u, low) for s in (h0, c0))
        back = bool(q["reverse"]) or e == 1
        steps: list[Object] = []
        for k in range(t)[::-1] if back else range(t):
            h, c = _step(
                q["cell"],
                Running(x[k], u, low),
                h,
                c,
                w[e],
                r[e],
                None if b is None else b[e],
                None if p is None else p[e],
                q["activations"],
                q["cell_clip"],
                q["coupled"],
            )
            steps.append(h)
        steps = steps[::-1] if e == 1 else steps
        ys.append(steps)
        states += [h, c]
    rows = [ys[0][k].joined(*(d[k] for d in ys[1:]), axis=1) for k in range(t)]
    empty = np.zeros((0, batch, n * w.shape[0]))
    values, errors = [np.stack(a) if a else empty for a in ([v.value for v in rows], [v.error for v in rows])]
    y = Running(values, u, low, errors)
    return [y, *states]


def _bound(output: int) -> Object:
    @quiet
    def bound(ctx: Context) -> Array:
        """running error analysis of the equations: gamma(K) per product, six units per activation, through all steps"""
        i = ctx.inputs
        given = (i.get(k) for k in ("b", "p", "h0", "c0"))
        out = _run(ctx.acc_u, tiny(ctx), ctx.params, i["x"], i["w"], i["r"], *given)[output]
        e = out.error
        if e.shape != ctx.wide.shape and e.ndim == 3 and ctx.wide.shape[0] == 1:  # the last step only
            n = e.shape[-1] // (2 if i["w"].shape[0] == 2 else 1)
            if not e.shape[0]:  # of no steps the state as it was given
                return np.zeros(ctx.wide.shape) + ctx.ulp
            e = e[-1:] if i["w"].shape[0] == 1 else np.concatenate([e[-1:, :, :n], e[:1, :, n:]], -1)
        return e.reshape(ctx.wide.shape) + ctx.ulp

    return bound


@semantics(
    error=tuple(composed(_bound(k)) for k in range(5)),
    source="NN SimpleRecurrentLayerParams, GRULayerParams, LSTMParams, BiDirectionalLSTMLayerParams",
    data={"x": ("unit", "small", "uniform:-2:2"), "w": ("unit", "uniform:-1:1"), "r": ("unit", "uniform:-1:1")},
)
def unrolled(
    x: Float[Array, "t b i"],
    w: Float[Array, "e g h i"],
    r: Float[Array, "e g h h"],
    b: Float[Array, "e g h"] | None = None,
    p: Float[Array, "e p h"] | None = None,
    h0: Float[Array, "e b h"] | None = None,
    c0: Float[Array, "e b h"] | None = None,
    *,
    cell: Choice[str, "rnn", "gru", "lstm"],
    activations: Opaque,
    reverse: Flag = False,
    cell_clip: Real = 50.0,
    coupled: Flag = False,
) -> list[Array]:
    """Y [t, b, e * h], then h and c [b, h] of every direction, e of them; the second direction runs backwards.

    Gates in order: gru update, reset, output; lstm input, forget, block, output; peepholes input, forget, output.  Gate
    sums are limited to +-50, cells to +-cell_clip.  coupled: forget is 1 - input.  activations: (name, alpha, beta) of
    f, g, h.  reverse: the steps are taken from the last one, and Y comes in that order.  Raises RuleError
    "sizes-agree".
    """
    if x.shape[2] != w.shape[-1]:
        raise RuleError("sizes-agree", f"{x.shape[2]} elements, weights for {w.shape[-1]}")
    q = {"cell": cell, "activations": activations, "reverse": reverse, "cell_clip": cell_clip, "coupled": coupled}
    with np.errstate(all="ignore"):
        return [v.value for v in _run(0.0, 0.0, q, x, w, r, b, p, h0, c0)]
