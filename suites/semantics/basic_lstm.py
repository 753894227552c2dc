"""One step of TensorFlow's BasicLSTMCell with a bound on its error: in floats, and in 8 and 16 bits.

x [b, i], h [b, o], c [b, o], w [4 o, i + o], bias [4 o]; the gates stand in a row: input, cell, forget, output.

Source: TensorFlow BasicLSTMCell (the matrix meets [x, h]; i, j, f, o; "activation: Activation function of the inner
states"), after Zaremba et al. 2014; schema LSTMOptions: cell_clip; for the fixed point
NNAPI QUANTIZED_16BIT_LSTM: data in steps of 1/128 around 128, the state in steps of 2**-11.
"""

from __future__ import annotations

import numpy as np

from suites.semantics.quantised.dynamic_recurrent import Numbers
from suites.semantics.quantised.recurrent import FUNCTION, GATE, STORED, UNIT, held

Array = np.ndarray
STATE = 2.0**-11  # a step of the state


def _gates(z: Numbers) -> list[Numbers]:
    return [Numbers(v, e) for v, e in zip(np.split(z.value, 4, -1), np.split(z.error, 4, -1))]


def float_cell(
    x: Array, h: Array, w: Array, b: Array, c: Array, u: float, activation: str = "TANH", cell_clip: float = 0.0
) -> tuple[Numbers, Numbers]:
    """(h, c) after the step.  u: unit roundoff of the arithmetic, 0 for the exact result.  activation: of the inner
    states.  cell_clip: limits the state, where above 0."""
    z = Numbers(np.concatenate([x, h], -1)).times(w, u).plus(Numbers(np.broadcast_to(b, (len(x), len(b)))), u)
    i, g, f, o = _gates(z)
    state = f.gate(u).by(Numbers(c), u).plus(i.gate(u).by(g.through(activation, u), u), u).clipped(cell_clip)
    return o.gate(u).by(state.through(activation, u), u), state


def fixed_cell(x: Array, h: Array, w: Array, b: Array, c: Array) -> tuple[Numbers, Numbers]:
    """(h, c) after the step, of real operands: gates with 12 places before their activation and 15 after it, neither
    result rounded to its own steps yet."""
    z = Numbers(np.concatenate([x, h], -1) @ w.T + b)
    i, g, f, o = _gates(held(Numbers(z.value, z.error + STORED * GATE), -8.0, 8.0 - GATE))

    def gate(z: Numbers) -> Numbers:
        return Numbers(1 / (1 + np.exp(-z.value)), z.error / 4 + FUNCTION)

    def squashed(z: Numbers) -> Numbers:
        return Numbers(np.tanh(z.value), z.error + FUNCTION)

    state = gate(f).by(Numbers(c), 0.0).plus(gate(i).by(squashed(g), 0.0), 0.0)
    state = held(Numbers(state.value, state.error + UNIT + 2 * STORED * STATE), -16.0, 16.0 - STATE)
    out = gate(o).by(squashed(state), 0.0)
    return Numbers(out.value, out.error + UNIT), state
