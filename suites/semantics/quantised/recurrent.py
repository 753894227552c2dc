"""The LSTM cell on 8-bit activations and weights with a 16-bit memory, and how far its stages are from real numbers.

* gates: 16-bit numbers, with 12 places before their activation and 15 after it
* memory: 16-bit, its scale a power of two
* what leaves the cell: 8-bit, with parameters of its own

The cell runs in f64 and carries the largest error that storing each of these can have made so far.  What a format
cannot hold is clamped.  That counts as an error where another order of rounding and clamping could see it.

Source: Li and Alvarez, "On the quantization of recurrent neural networks" (2021), sections 3 and 4: Q3.12 gates, Q0.15
activations, a power-of-two scale of the cell state, hidden state and projection as 8-bit operands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.core.dtypes import I8, int_range
from suites.semantics.quantised.dynamic_recurrent import Numbers
from suites.semantics.quantised.fixed import Quant
from suites.semantics.tensorflow_recurrent import GATES, sigmoid

Array = np.ndarray
GATE, UNIT = 2.0**-12, 2.0**-15  # places of a gate before and after its activation
FUNCTION = 8 * UNIT  # granted to a fixed-point activation function
STORED = 0.5 + 2.0**-6  # steps: one rounding, of a product that itself was rounded once


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


def lstm(x: Array, p: Mapping[str, Any], cell: float, hidden: Quant, state: Quant, cell_clip: float) -> Numbers:
    """The cell over x [t, b, i] from zero states: what it gives [t, b, outputs], not yet rounded to 8 bits, with the
    bound on its error.

    p: real operands as ``tensorflow_recurrent.lstm`` takes them.  cell: scale of the memory.  hidden: parameters of
    what leaves the output gate where a projection follows.  state: those of what the next step sees.  The last stage,
    rounding to the output, is the caller's."""
    units = p["w_forget"].shape[0]
    outs = units if p["proj"] is None else p["proj"].shape[0]
    h, c = Numbers(np.zeros((x.shape[1], outs))), Numbers(np.zeros((x.shape[1], units)))
    top, out = 32767 * cell, []

    def pre(gate: str, now: Array, memory: Numbers) -> Numbers:
        first = now @ p[f"w_{gate}"].T + p[f"b_{gate}"]
        z = Numbers(first).plus(h.times(p[f"r_{gate}"], 0.0), 0.0)
        parts = 2
        if p.get(f"p_{gate}") is not None:
            z, parts = z.plus(memory.by(_wide(p[f"p_{gate}"], memory.value), 0.0), 0.0), 3
        kept = held(Numbers(z.value, z.error + parts * STORED * GATE), -8.0, 8.0 - GATE)
        alone = np.clip(first, -8.0, 8.0 - GATE)  # what x gives may be clamped before what the state gives is added
        apart = np.abs(np.clip(alone + (z.value - first), -8.0, 8.0 - GATE) - kept.value)
        return Numbers(kept.value, np.minimum(kept.error + apart, 16.0))

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
            h = _stored(h, hidden).times(p["proj"], 0.0)
            if p.get("proj_bias") is not None:
                h = h.plus(_wide(p["proj_bias"], h.value), 0.0)
        out.append(h)
        h = _stored(h, state)
    if not out:
        return Numbers(np.zeros((0, *h.value.shape)))
    return Numbers(np.stack([h.value for h in out]), np.stack([h.error for h in out]))
