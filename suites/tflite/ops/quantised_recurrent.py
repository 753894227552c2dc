"""Quantised recurrent operators: 8-bit activations and weights beside a 16-bit memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import I8, I16, I32
from harness.declare import Call, Checks, Context, Draw, Evaluation, Sampling, T, accepted
from suites.semantics.quantised import products, recurrent
from suites.semantics.quantised.elementwise import finish
from suites.semantics.quantised.fixed import draw_parameters, f32, reachable, real, steps
from suites.semantics.tensorflow_recurrent import GATES
from suites.semantics.tensorflow_sequence import cell
from suites.tflite import op
from suites.tflite.codecs import OutQ, Q
from suites.tflite.extents import extents
from suites.tflite.ops.recurrent import CALLS, LENIENT, SVDF_SHAPES, calls, direction, lstm_shapes


def _symmetric(scale: float) -> dict[str, Any]:
    return {"scale": [f32(scale)], "zero_point": [0], "axis": 0}


def _draw_svdf(d: Draw) -> dict[str, Any]:
    (b, i, u, m), rank = extents(d, 3, 6, 4, 6), d.int(1, 3)
    xq = draw_parameters(d, I8)
    fq, tq = _symmetric(0.004 * (1 + d.int(0, 16))), _symmetric(0.0002 * (1 + d.int(0, 16)))
    # a memory that what is seen fills to a good part, an output that sums of it fill
    sq = _symmetric(xq["scale"][0] * fq["scale"][0] * 90 * 64 * max(i, 1) ** 0.5 / 32767 * (0.5 + d.int(0, 16) / 8))
    oq = draw_parameters(
        d,
        I8,
        zero=d.pick(("low", "low", None)),
        scale=sq["scale"][0] * tq["scale"][0] * 8000 * 4000 * rank**0.5 / 127 * (0.5 + d.int(0, 16) / 8),
    )
    out: dict[str, Any] = {
        "input": T((b, i), "full", quant=xq),
        "feature_weights": T((u * rank, i), "ints:-127:127", dtype=I8, quant=fq, const=True),
        "time_weights": T((u * rank, m), "ints:-8000:8000", dtype=I16, quant=tq, const=True),
        "activation_state": T((b, m * u * rank), values=[0] * (b * m * u * rank), dtype=I16, quant=sq),
        "rank": rank,
        "fused_activation_function": d.pick(("RELU", "RELU", "RELU", "RELU6", "RELU_N1_TO_1", "NONE")),
        "@outputs": [{"dtype": I8.name, "quant": oq}],
    }
    if d.bool():
        bq = _symmetric(sq["scale"][0] * tq["scale"][0])
        out["input_gate_bias"] = T((u,), "ints:-20000000:20000000", dtype=I32, quant=bq, const=True)
    return out | calls(d, m + 1)


op(
    "SVDF",
    products.svdf_step,
    Sampling(_draw_svdf, types={"W": ("i8",)}, why="signed weights, as the specification asks"),
    Checks(stated=SVDF_SHAPES, breaks=LENIENT),
    domain="quantised",
    x="input",
    features="feature_weights",
    times="time_weights",
    b="input_gate_bias",
    calls=CALLS,
    xq=Q("input"),
    fq=Q("feature_weights"),
    tq=Q("time_weights"),
    sq=Q("activation_state"),
    activation="fused_activation_function",
    oq=OutQ("input"),
)


# -- LSTM: 8-bit activations and weights, 16-bit memory, in every version: the version rules ask for more than 1 only
# where float activations stand beside such weights.  Recurrent weights along a diagonal have no such form.  Neither
# layer normalisation nor projection is drawn: the first has shifts of its own; with the second LiteRT reads the zero
# point of what is projected with the other sign, and beyond that differs in rows after the first for a reason that is
# not found yet.


def _draw_lstm(d: Draw) -> dict[str, Any]:
    b, t, i, u = extents(d, 3, 4, 6, 5)
    coupled, peephole = d.chance(3), d.chance(3)
    xq = draw_parameters(d, I8, scale=d.pick((0.0078125, 0.0157, 0.0235)))
    oq = draw_parameters(d, I8, scale=d.pick((0.0078125, 0.006, 0.0047)))
    memory = _symmetric(2.0 ** -d.pick((15, 14, 12, 11, 10, 9)))
    out: dict[str, Any] = {
        "input": T((b, i), "full", quant=xq),
        "fused_activation_function": "TANH",
        "cell_clip": d.pick((0.0, 0.0, 0.5)),
        "proj_clip": 0.0,
        "input_activation_state": T((b, u), values=oq["zero_point"] * (b * u), dtype=I8, quant=oq),
        "input_cell_state": T((b, u), values=[0] * (b * u), dtype=I16, quant=memory),
        "@intermediates": [*[_symmetric(2.0**-12)] * 4, oq],
        "@outputs": [{"dtype": I8.name, "quant": oq}],
    }
    if d.version.op == "UNIDIRECTIONAL_SEQUENCE_LSTM":
        out["time_major"] = d.bool()
        shape = (t, b, i) if out["time_major"] else (b, t, i)
        out["input"] = T(shape, "full", quant=xq)

    def weights(name: str, *shape: int, dtype: Any = I8, top: int = 127, scale: float = 0.004) -> dict[str, Any]:
        q = _symmetric(scale * (1 + d.int(0, 8) / 4))
        out[name] = T(shape, f"ints:-{top}:{top}", dtype=dtype, quant=q, const=True)
        return q

    for g in GATES:
        if coupled and g == "input":
            continue
        wq = weights(f"input_to_{g}_weights", u, i)
        weights(f"recurrent_to_{g}_weights", u, u)
        bias, bq = "cell_bias" if g == "cell" else f"{g}_gate_bias", xq["scale"][0] * wq["scale"][0]
        out[bias] = T((u,), "ints:-20000:20000", dtype=I32, quant=_symmetric(bq), const=True)
        if peephole and g != "cell":
            weights(f"cell_to_{g}_weights", u, dtype=I16, top=32767, scale=2.0**-15)
    return out | calls(d)


def _lstm_numbers(call: Call) -> Any:
    """Values and their errors in steps of the output, and its parameters."""
    v = {n: None if x is None else real(x, call.quant[n]) for n, x in call.inputs.items()}
    q = call.outs[0]["quant"]  # type: ignore[index]
    memory, hidden = call.quant["input_cell_state"]["scale"][0], call.attrs["@intermediates"][4]

    def run(x: Any, v: Any, prefix: str, activation: str, cell_clip: float, *_: Any) -> Any:
        y = recurrent.lstm(x, cell(v, prefix), memory, hidden, q, cell_clip)
        return np.stack([steps(y.value, q), y.error / q["scale"][0]], -1)

    y = direction(v, call, run=run)
    return y[..., 0], y[..., 1], q


def _lstm(call: Call) -> list[Any]:
    r, _, q = _lstm_numbers(call)
    return [finish(r, q, I8)]


def _lstm_ok(ctx: Context, actual: Any) -> Any:
    r, error, _ = _lstm_numbers(ctx.call)
    return reachable(actual, r, 2.0**-6 + error, I8)


for _name in ("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"):
    op(
        _name,
        Evaluation(
            _lstm,
            accepted(_lstm_ok, "QUANT: every stored stage half a step, carried through the cell"),
            f"TFLite {_name}, full kernel; LiteRT op_version.cc (8-bit activations: version 1); Li and Alvarez, On"
            " the quantization of recurrent neural networks",
        ),
        Sampling(_draw_lstm, types={"T": ("i8",)}, why="the recipe of Li and Alvarez is for 8-bit activations"),
        Checks(
            stated=lstm_shapes(2 if _name == "LSTM" else 3, ""),
            only={"fused_activation_function": "TANH", "proj_clip": 0.0, "diagonal_recurrent_tensors": False},
        ),
        domain="quantised",
    )
