"""Hybrid recurrent operators: float inputs, states and biases beside int8 weights with one scale each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from harness.core.dtypes import F32, I8
from harness.core.instance import SAME
from harness.declare import Call, Checks, Context, Draw, Evaluation, Sampling, T, composed
from suites.semantics.quantised import dynamic_recurrent as h
from suites.semantics.quantised.fixed import f32, real
from suites.semantics.tensorflow_recurrent import rnn, svdf
from suites.semantics.tensorflow_sequence import cell
from suites.tflite import op
from suites.tflite.ops import recurrent as plain
from suites.tflite.ops.hybrid import asymmetric, full_range

Inputs = dict[str, Any]
_RECIPES = ("unit", "uniform:-1:1", "uniform:0:1", "uniform:-0.5:2")  # beyond, gates saturate and show nothing
_SOURCE = "TensorFlow Lite dynamic range quantization; TFLite "


def hybrid(draw: Callable[[Draw], dict[str, Any]]) -> Callable[[Draw], dict[str, Any]]:
    """The plain draw with its weights quantised (scales that keep them around 1), everything else float and finite.

    Layer normalisation and biases stay float.  Recurrent weights along a diagonal have no hybrid form."""

    def drawn(d: Draw) -> dict[str, Any]:
        out = draw(d)
        if out.pop("diagonal_recurrent_tensors", False):
            units = out["input_to_forget_weights"].shape[0]
            out |= {n: T((units, units)) for n in out if n.startswith("recurrent_to_")}
        positive = d.bool()  # products that add up are large beside what the steps of the activations add to them
        one = out.pop(SAME, None) is not None
        q: dict[str, Any] = {}
        for slot in d.version.schema.inputs:
            t = out.get(slot.name)
            if t is None or slot.name.endswith("state"):
                continue
            if "norm" in slot.name or slot.type in ("f32", "B", "N"):
                out[slot.name] = T(t.shape, t.recipe, dtype=F32, const=not d.chance(8))
            elif slot.type in ("W", "P", "V"):
                if not q or not one:
                    q = {"scale": [f32(0.001 * (2 + d.int(0, 10)))], "zero_point": [0], "axis": 0}
                recipe = "ints:1:127" if positive else full_range(I8)
                out[slot.name] = T(t.shape, recipe, dtype=I8, const=True, quant=q)
        recipes = ("uniform:0:1", "uniform:0.25:1") if positive else _RECIPES
        out["input"] = T(out["input"].shape, d.pick(recipes), const=d.chance(16))
        return asymmetric(d, plain.one_tensor(d, out) if one else out)

    return drawn


def real_inputs(call: Call) -> Inputs:
    """Every operand as the real numbers that it stands for."""
    return {
        n: None if x is None else real(x, call.quant[n]) if call.quant.get(n) else np.asarray(x, np.float64)
        for n, x in call.inputs.items()
    }


def entry(
    name: str,
    draw: Callable[[Draw], dict[str, Any]],
    value: Callable[[Call, Inputs], list[Any]],
    error: Callable[[Call, Inputs, float], list[Any]],
    stated: dict[str, Any],
    lenient: bool = False,
) -> None:
    """value and error, of all outputs, from real operands; the bound adds an ulp.  stated: shapes, which are
    not drawn otherwise where that is lenient."""

    def bound(ctx: Context, i: int) -> Any:
        return h.around(ctx.wide, error(ctx.call, real_inputs(ctx.call), ctx.acc_u)[i]) + ctx.ulp

    text = "the largest error that quantising every operand of a product can make, carried through the cell; + ulp"
    classes = tuple(composed(partial(bound, i=i), text) for i in range(2))
    op(
        name,
        Evaluation(lambda call: value(call, real_inputs(call)), classes, _SOURCE + name),
        Sampling(hybrid(draw)),
        Checks(
            stated=stated,
            breaks=plain.LENIENT if lenient else {},
            ambiguous=plain.opened(lambda call, u: error(call, real_inputs(call), u)),
        ),
        domain="hybrid",
    )


def _option(call: Call) -> bool:
    return bool(call.attr("asymmetric_quantize_inputs", False))


def _activation(call: Call) -> str:
    return call.attr("fused_activation_function", "NONE")


# -- one direction


def _rnn_value(x: Any, w: Any, r: Any, b: Any, activation: str) -> Any:
    return rnn(x, w, r, b, np.zeros((x.shape[1], w.shape[0])), activation)[0]


def _rnn_error(call: Call, u: float) -> Callable[..., Any]:
    return lambda x, w, r, b, activation, *aux: h.rnn_error(x, w, r, b, activation, _option(call), u, *aux)


for _name, _sequence in (("RNN", False), ("UNIDIRECTIONAL_SEQUENCE_RNN", True)):
    entry(
        _name,
        plain.draw_rnn(_sequence),
        lambda call, v: plain.rnn_values(call, v, _rnn_value),
        lambda call, v, u: plain.rnn_values(call, v, _rnn_error(call, u)),
        plain.SEQUENCE_RNN_SHAPES if _sequence else plain.RNN_SHAPES,
        not _sequence,
    )


def _lstm_error(call: Call, u: float) -> Callable[..., Any]:
    """In place of the cell: the same operands, its error."""

    def run(x: Any, v: Inputs, prefix: str, activation: str, cell_clip: float, proj_clip: float, diagonal: bool) -> Any:
        return h.lstm_error(x, cell(v, prefix), activation, cell_clip, proj_clip, _option(call), u)

    return run


for _name, _sequence in (("LSTM", False), ("UNIDIRECTIONAL_SEQUENCE_LSTM", True)):
    entry(
        _name,
        plain.draw_lstm(_sequence),
        lambda call, v: [plain.direction(v, call)],
        lambda call, v, u: [plain.direction(v, call, run=_lstm_error(call, u))],
        plain.lstm_shapes(3 if _sequence else 2, ""),
    )


def _svdf_operands(v: Inputs) -> tuple[Any, Any, Any, Any]:
    return v["input"], v["feature_weights"], v["time_weights"], v.get("input_gate_bias")


entry(
    "SVDF",
    plain.draw_svdf,
    lambda call, v: [svdf(*_svdf_operands(v), call.attr("rank"), _activation(call), plain.calls_of(call))],
    lambda call, v, u: [
        h.svdf_error(*_svdf_operands(v), call.attr("rank"), _option(call), u, plain.calls_of(call), _activation(call))
    ],
    plain.SVDF_SHAPES,
    True,
)

# -- both directions

entry(
    "BIDIRECTIONAL_SEQUENCE_RNN",
    plain.draw_both_rnn,
    lambda call, v: plain.both_rnn(call, v),
    lambda call, v, u: plain.both_rnn(call, v, _rnn_error(call, u)),
    plain.BOTH_RNN_SHAPES,
    True,
)
entry(
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    plain.draw_both,
    lambda call, v: plain.both_directions(call, v),
    lambda call, v, u: plain.both_directions(call, v, _lstm_error(call, u)),
    plain.lstm_shapes(3, "fw_", "bw_") | plain.AUXILIARY,
)
