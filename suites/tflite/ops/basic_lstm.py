"""The basic LSTM cell, which shares its builtin with the full one: one step, one matrix for all gates, in floats or in
8 and 16 bits.

States are operands and results, so an instance begins with any state.  The two temporaries among the results are the
kernel's own; nothing says what they hold, and whatever they hold is taken.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from harness.core.dtypes import F32, I16, I32, U8
from harness.declare import Call, Checks, Context, Draw, Evaluation, Sampling, T, accepted, composed
from suites.semantics.basic_lstm import fixed_cell, float_cell
from suites.semantics.quantised.elementwise import finish
from suites.semantics.quantised.fixed import f32, reachable, real, steps
from suites.semantics.tensorflow_recurrent import ACTIVATIONS
from suites.tflite import op
from suites.tflite.extents import extents
from suites.tflite.ops.recurrent import opened

_OPERANDS = ("data_input", "prev_activ_input", "weights_input", "biases_input", "prev_state_input")
_CELL: dict[str, Any] = {
    "data": {"scale": [2.0**-7], "zero_point": [128], "axis": 0},
    "state": {"scale": [2.0**-11], "zero_point": [0], "axis": 0},
    "gates": {"scale": [2.0**-12], "zero_point": [0], "axis": 0},
}
_SOURCE = "tfl basic_lstm; TensorFlow BasicLSTMCell (matrix [x, h], gates i, j, f, o), its forget bias in the biases"


def _draw(d: Draw) -> dict[str, Any]:
    b, i, u = extents(d, 3, 6, 5)
    out: dict[str, Any] = {
        "kernel_type": "BASIC",
        "fused_activation_function": "TANH",
        "cell_clip": 0.0,
        "proj_clip": 0.0,
    }
    shapes = ((b, i), (b, u), (4 * u, i + u), (4 * u,), (b, u))
    if d.version.schema.domain != "quantised":
        if d.chance(4):
            out["fused_activation_function"] = d.pick(tuple(ACTIVATIONS))
            out["cell_clip"], out["proj_clip"] = d.pick((0.0, 0.5)), d.pick((0.0, 0.4))  # nothing is projected
        for name, shape in zip(_OPERANDS, shapes):
            const = None if name in ("weights_input", "biases_input") else d.chance(16)
            out[name] = T(shape, d.pick(("unit", "uniform:-1:1", "uniform:-3:3")), const=const)
        return out
    w: dict[str, Any] = {
        "scale": [f32(0.002 * (1 + d.int(0, 9)))],
        "zero_point": [d.pick((128, 0, 255, 100, 131))],
        "axis": 0,
    }
    bias = {"scale": [w["scale"][0] * 2.0**-7], "zero_point": [0], "axis": 0}
    ends = d.chance(12)  # biases at the ends of 32 bits, beside sums of zeros
    data = "ints:128:128" if ends else "full"
    plan = (
        (U8, data, _CELL["data"]),
        (U8, data, _CELL["data"]),
        (U8, "full", w),
        (I32, "ints:-20000:20000", bias),
        (I16, d.pick(("full", "ints:-4000:4000")), _CELL["state"]),
    )
    for name, shape, (dtype, recipe, quant) in zip(_OPERANDS, shapes, plan):
        const = not d.chance(16) if name in ("weights_input", "biases_input") else d.chance(16)
        values = None
        if dtype is I32 and ends:
            values = [d.pick((-(2**31), 2**31 - 1, 0, -1, 2**24 + 2)) for _ in range(shape[0])]
        out[name] = T(shape, recipe, dtype=dtype, quant=quant, const=const, values=values)
    out["@outputs"] = [
        {"dtype": t.name, "quant": _CELL[kind]}
        for t, kind in ((U8, "data"), (I16, "state"), (U8, "data"), (I16, "gates"))
    ]
    return out


def _temporaries(call: Call, x: Any, h: Any, w: Any, b: Any) -> list[Any]:
    """What they might hold: the operand of the product, and the product."""
    both = np.concatenate([x, h], -1)
    return [both, both @ w.T + b]


def _cell(call: Call, u: float) -> Any:
    x, h, w, b, c = (np.asarray(call.inputs[n], np.float64) for n in _OPERANDS)
    limit = float(call.attr("cell_clip", 0.0))
    return float_cell(x, h, w, b, c, u, call.attr("fused_activation_function", "NONE"), limit)


def _float(call: Call) -> list[Any]:
    x, h, w, b = (np.asarray(call.inputs[n], np.float64) for n in _OPERANDS[:4])
    return [*(r.value for r in _cell(call, 0.0)), *_temporaries(call, x, h, w, b)]


def _errors(call: Call, u: float) -> list[Any]:
    """Bounds on the error of each result; of the temporaries anything is taken."""
    return [*(r.error for r in _cell(call, u)), np.zeros(1), np.zeros(1)]


def _bound(ctx: Context, i: int) -> Any:
    """the roundings of every product, sum and function, carried through the cell; + ulp"""
    return _errors(ctx.call, ctx.acc_u)[i] + ctx.ulp


def _anything(ctx: Context, actual: Any) -> Any:
    """a temporary, of which nothing is said"""
    return np.ones(actual.shape, bool)


def _steps(call: Call) -> list[tuple[Any, Any]]:
    """Activation and state in steps, each with its error in steps."""
    x, h, w, b, c = (real(call.inputs[n], call.quant[n]) for n in _OPERANDS)
    found = fixed_cell(x, h, w, b, c)
    return [
        (steps(r.value, _CELL[kind]), r.error / _CELL[kind]["scale"][0]) for r, kind in zip(found, ("data", "state"))
    ]


def _quantised(call: Call) -> list[Any]:
    (h, _), (c, _) = _steps(call)
    x, before, w, b = (real(call.inputs[n], call.quant[n]) for n in _OPERANDS[:4])
    both, gates = _temporaries(call, x, before, w, b)
    return [
        finish(h, _CELL["data"], U8),
        finish(c, _CELL["state"], I16),
        finish(steps(both, _CELL["data"]), _CELL["data"], U8),
        finish(steps(gates, _CELL["gates"]), _CELL["gates"], I16),
    ]


def _near(ctx: Context, actual: Any, i: int) -> Any:
    r, error = _steps(ctx.call)[i]
    return reachable(actual, r, 2.0**-6 + error, (U8, I16)[i])


_UNTOLD = accepted(_anything)
_SHAPES = dict(zip(_OPERANDS, ("b i", "b u", "4*u i+u", "4*u", "b u")))
# NNAPI QUANTIZED_16BIT_LSTM has neither: its cell is one of tanh, and nothing limits it but its formats
_ONLY = {"fused_activation_function": "TANH", "cell_clip": 0.0, "proj_clip": 0.0}
op(
    "BASIC_LSTM",
    Evaluation(
        _float, (*(composed(partial(_bound, i=i), _bound.__doc__) for i in range(2)), _UNTOLD, _UNTOLD), _SOURCE
    ),
    Sampling(_draw, types={"T": (F32.name,)}),
    Checks(
        stated=_SHAPES,
        only={"fused_activation_function": tuple(ACTIVATIONS)},
        ambiguous=opened(_errors),
    ),
)
op(
    "BASIC_LSTM",
    Evaluation(
        _quantised,
        (
            *(
                accepted(partial(_near, i=i), "QUANT: every stored stage half a step, carried through the cell")
                for i in range(2)
            ),
            _UNTOLD,
            _UNTOLD,
        ),
        f"{_SOURCE}; NNAPI QUANTIZED_16BIT_LSTM: data at 1/128 around 128, a state of 4 integer bits",
    ),
    Sampling(_draw, types={"T": (U8.name,)}),
    Checks(stated=_SHAPES, only=_ONLY),
    domain="quantised",
)
