"""The LSTM cell on 8-bit activations and weights with a 16-bit memory, and how far its stages are from real numbers.

* gates: 16-bit numbers, with 12 places before their activation and 15 after it; before layer normalisation, which
  takes 10 places for a row brought to deviation 1, they have a scale of their own
* memory: 16-bit, its scale a power of two
* what leaves the cell: 8-bit, with parameters of its own; where a projection follows it has those of an intermediate

The cell runs in f64 and carries the largest error that storing each of these can have made so far.  What a format
cannot hold is clamped.  That counts as an error where another order of rounding and clamping could see it.

Sums of products with their bias are of 32 bits: of a sum beyond them nothing is said.

Source: Li and Alvarez, "On the quantization of recurrent neural networks" (2021), sections 3 and 4: Q3.12 gates, Q0.15
activations, a power-of-two scale of the cell state, hidden state and projection as 8-bit operands, integer layer
normalisation.  tools/optimize/operator_property.cc, LSTM: which operand has which bits and whose scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.core.dtypes import I8, int_range
from harness.core.errors import Unsupported
from suites.semantics.quantised.dynamic_recurrent import Numbers
from suites.semantics.quantised.fixed import Quant
from suites.semantics.tensorflow_recurrent import GATES, sigmoid

Array = np.ndarray
GATE, UNIT = 2.0**-12, 2.0**-15  # places of a gate before and after its activation
FUNCTION = 8 * UNIT  # granted to a fixed-point activation function
STORED = 0.5 + 2.0**-6  # steps: one rounding, of a product that itself was rounded once
NORMAL = 2.0**-10  # places of a row brought to deviation 1


def held(n: Numbers, low: float, high: float) -> Numbers:
    """What a format of this range holds."""
    beyond = np.maximum(0.0, np.maximum(n.value + n.error - high, low - n.value + n.error))
    error = n.error + np.minimum(beyond, 2 * n.error)
    return Numbers(np.clip(n.value, low, high), np.minimum(error, high - low))


def _wide(row: Array, like: Array) -> Numbers:
    return Numbers(np.broadcast_to(row, like.shape))


def _stored(n: Numbers, q: Quant) -> Numbers:
    """After being kept in 8 bits."""
    low, high = (q["scale"][0] * (limit - q["zero_point"][0]) for limit in int_range(I8))
    return held(Numbers(n.value, n.error + STORED * q["scale"][0]), low, high)


def summed(n: Numbers, scale: float) -> Numbers:
    """A sum of products with its bias.  scale: of what it counts.  Raises Unsupported beyond 32 bits."""
    if n.value.size and (np.abs(n.value) + n.error).max() > scale * 2.0**31 * (1 + 2.0**-40):
        raise Unsupported("a sum of products and bias beyond 32 bits")
    return n


def normalised(
    z: Numbers, scale: Array, bias: Array, before: float, steps: tuple[float, float], off: Array | float = 0.0
) -> Numbers:
    """A row of 16-bit numbers brought to mean 0 and deviation 1, times ``scale``, plus ``bias``.

    before: the scale of the row.  steps: those of ``scale`` and of ``bias``.  off: a further error of the row.

    Beside the error of the row count the mean, of 10 places more than the row, the variance, a whole number of squared
    steps, the result, of 10 places, and the sum with the bias, which is rounded to steps of ``scale``."""
    if not z.value.size:
        return z
    n = z.normalised(np.ones(z.value.shape[-1]), 0.0)
    apart = z.value - z.value.mean(-1, keepdims=True)
    spread = np.sqrt((apart**2).mean(-1, keepdims=True)) - np.sqrt((z.error**2).mean(-1, keepdims=True))
    whole = np.maximum(1.0, spread / before)
    error = n.error + np.abs(n.value) * 0.5 / whole**2 + NORMAL / whole + STORED * NORMAL
    error = np.minimum(error, np.abs(n.value) + np.sqrt(z.value.shape[-1]) + NORMAL)
    summed(Numbers(n.value * scale + bias, error * np.abs(scale)), steps[1])
    error = error + off
    return Numbers(n.value * scale + bias, error * np.abs(scale) + STORED * (steps[0] + GATE))


class Stages:
    """The stages of the cell that the model of a defect may replace."""

    def scaled(self, sums: Array, scale: float, place: float) -> Array:
        """Sums over the input with the bias, which count ``scale``, as they are brought to steps of ``place``."""
        return sums

    def peephole(self, memory: Numbers, weights: Array) -> Numbers:
        """What the memory adds to a gate."""
        return memory.by(_wide(weights, memory.value), 0.0)

    def spread(self, n: Numbers, place: float) -> Array | float:
        """How far off a row, brought to deviation 1, may be beside what its own error makes of it."""
        return 0.0

    def hidden(self, n: Numbers, q: Quant) -> Numbers:
        """What leaves the output gate, as it is projected."""
        return _stored(n, q)

    def limited(self, n: Numbers, limit: float, state: Quant) -> Numbers:
        """What is projected, limited to what of ``limit`` is a whole number of steps: that may be up to one less."""
        step = state["scale"][0]
        near = np.abs(n.value) + n.error + step >= limit
        error = np.minimum(n.error, 2 * limit) + np.where(near, step, 0.0)
        return Numbers(np.clip(n.value, -limit, limit), error)


def lstm(
    x: Array,
    p: Mapping[str, Any],
    cell: float,
    hidden: Quant,
    state: Quant,
    cell_clip: float,
    proj_clip: float = 0.0,
    scales: Mapping[str, float] | None = None,
    before: Mapping[str, float] | None = None,
    stages: Stages | None = None,
) -> Numbers:
    """The cell over x [t, b, i] from zero states: what it gives [t, b, outputs], not yet rounded to 8 bits, with the
    bound on its error.

    p: real operands as ``tensorflow_recurrent.lstm`` takes them.  cell: scale of the memory.  hidden: parameters of
    what leaves the output gate where a projection follows.  state: those of what the next step sees.  scales: of the
    operands in ``p``.  before: of each gate before layer normalisation.  The last stage, rounding to the output, is
    the caller's."""
    units = p["w_forget"].shape[0]
    outs = units if p["proj"] is None else p["proj"].shape[0]
    h, c = Numbers(np.zeros((x.shape[1], outs))), Numbers(np.zeros((x.shape[1], units)))
    top, out, scales, stages = 32767 * cell, [], scales or {}, stages or Stages()

    def pre(gate: str, now: Array, memory: Numbers) -> Numbers:
        norm = p.get(f"n_{gate}")
        place = GATE if norm is None or before is None else before[gate]
        low, high = -32768 * place, 32767 * place
        first = now @ p[f"w_{gate}"].T
        if norm is None:
            of = scales.get(f"b_{gate}", np.inf)
            first = stages.scaled(summed(Numbers(first + p[f"b_{gate}"]), of).value, of, place)
        z = Numbers(first).plus(h.times(p[f"r_{gate}"], 0.0), 0.0)
        parts = 2
        if p.get(f"p_{gate}") is not None:
            z, parts = z.plus(stages.peephole(memory, p[f"p_{gate}"]), 0.0), 3
        kept = held(Numbers(z.value, z.error + parts * STORED * place), low, high)
        alone = np.clip(first, low, high)  # what x gives may be clamped before what the state gives is added
        apart = np.abs(np.clip(alone + (z.value - first), low, high) - kept.value)
        kept = Numbers(kept.value, np.minimum(kept.error + apart, high - low))
        if norm is None:
            return kept
        steps = scales[f"n_{gate}"], scales[f"b_{gate}"]
        off = stages.spread(kept, place)
        return held(normalised(kept, norm, p[f"b_{gate}"], place, steps, off), -8.0, 8.0 - GATE)

    def gate(z: Numbers) -> Numbers:
        return Numbers(sigmoid(z.value), np.minimum(z.error / 4, 1.0) + FUNCTION)

    def squashed(z: Numbers) -> Numbers:
        return Numbers(np.tanh(z.value), np.minimum(z.error, 2.0) + FUNCTION)

    for now in x:
        z = {g: pre(g, now, c) for g in GATES[:3] if p.get(f"w_{g}") is not None}
        f = gate(z["forget"])
        i = gate(z["input"]) if "input" in z else Numbers(1 - f.value, f.error + UNIT)
        c = f.by(c, 0.0).plus(i.by(squashed(z["cell"]), 0.0), 0.0)
        c = held(Numbers(c.value, c.error + 2 * STORED * cell), -top - cell, top)
        if cell_clip > 0:
            c = Numbers(np.clip(c.value, -cell_clip, cell_clip), np.minimum(c.error, 2 * cell_clip) + cell)
        h = gate(pre("output", now, c)).by(squashed(c), 0.0)
        h = Numbers(h.value, h.error + UNIT)
        if p["proj"] is not None:
            h = stages.hidden(h, hidden).times(p["proj"], 0.0)
            if p.get("proj_bias") is not None:
                h = summed(h.plus(_wide(p["proj_bias"], h.value), 0.0), scales.get("proj_bias", np.inf))
            if proj_clip > 0:
                h = stages.limited(h, proj_clip, state)
        out.append(h)
        h = _stored(h, state)
    if not out:
        return Numbers(np.zeros((0, *h.value.shape)))
    return Numbers(np.stack([h.value for h in out]), np.stack([h.error for h in out]))
