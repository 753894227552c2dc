"""Quantised recurrent operators: 8-bit activations and weights beside a 16-bit memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import I8, I16, I32
from harness.declare import Call, Checks, Context, Draw, Evaluation, Sampling, T, accepted
from suites.semantics.quantised import products, recurrent
from suites.semantics.quantised.elementwise import finish
from suites.semantics.quantised.fixed import CURVES, LIMITS, draw_parameters, f32, reachable, real, steps
from suites.semantics.tensorflow_recurrent import GATES
from suites.semantics.tensorflow_sequence import cell
from suites.tflite import op
from suites.tflite.codecs import OutQ, Q
from suites.tflite.extents import extents
from suites.tflite.ops.recurrent import (
    CALLS,
    LENIENT,
    ONE_EVERY,
    SVDF_SHAPES,
    calls,
    direction,
    lstm_shapes,
    one_tensor,
    rank_of_filters,
)


def _symmetric(scale: float) -> dict[str, Any]:
    return {"scale": [f32(scale)], "zero_point": [0], "axis": 0}


def _at_ends(d: Draw, shape: tuple[int, ...], lo: int, hi: int, beyond: int = 1) -> list[int]:
    """Elements at the ends of a type, beside few others."""
    found = (lo, hi, 0, -1, beyond)
    return [d.pick(found) for _ in range(int(np.prod(shape)))]


def _draw_svdf(d: Draw) -> dict[str, Any]:
    (b, i, u, m), rank = extents(d, 3, 6, 4, 6), d.int(1, 3)
    rank = rank_of_filters(d, u, rank)
    filters = u * rank
    xq = draw_parameters(d, I8)
    fq, tq = _symmetric(0.004 * (1 + d.int(0, 16))), _symmetric(0.0002 * (1 + d.int(0, 16)))
    ends = d.chance(12)  # weights or biases at the ends of their types, beside an input of zeros
    constant = not d.chance(16)
    # a memory that what is seen fills to a good part, an output that sums of it fill
    sq = _symmetric(xq["scale"][0] * fq["scale"][0] * 90 * 64 * max(i, 1) ** 0.5 / 32767 * (0.5 + d.int(0, 16) / 8))
    oq = draw_parameters(
        d,
        I8,
        zero=d.pick(("low", "low", None)),
        scale=sq["scale"][0] * tq["scale"][0] * 8000 * 4000 * rank**0.5 / 127 * (0.5 + d.int(0, 16) / 8),
    )
    if d.chance(16):
        oq = {**oq, "scale": xq["scale"]}
    out: dict[str, Any] = {
        "input": T((b, i), f"ints:{xq['zero_point'][0]}:{xq['zero_point'][0]}" if ends else "full", quant=xq),
        "feature_weights": T((filters, i), "ints:-127:127", dtype=I8, quant=fq, const=constant),
        "time_weights": T((filters, m), "ints:-8000:8000", dtype=I16, quant=tq, const=constant),
        "activation_state": T((b, m * filters), values=[0] * (b * m * filters), dtype=I16, quant=sq),
        "rank": rank,
        "fused_activation_function": d.pick((*("RELU",) * 6, "RELU6", "RELU_N1_TO_1", "NONE", *CURVES)),
        "@outputs": [{"dtype": I8.name, "quant": oq}],
    }
    if ends:
        values = _at_ends(d, (filters, m), -32768, 32767)
        out["time_weights"] = T((filters, m), values=values, dtype=I16, quant=tq, const=constant)
    if d.bool():
        bq = _symmetric(sq["scale"][0] * tq["scale"][0])
        found = _at_ends(d, (u,), -(2**31), 2**31 - 1, 2**24 + 2) if ends else None
        recipe = "ints:-20000000:20000000"
        out["input_gate_bias"] = T((u,), recipe, dtype=I32, quant=bq, const=constant, values=found)
    return out | calls(d, m + 1)


op(
    "SVDF",
    products.svdf_step,
    Sampling(_draw_svdf, types={"W": ("i8",)}, why="signed weights, as the specification asks"),
    Checks(stated=SVDF_SHAPES, breaks=LENIENT, only={"fused_activation_function": ("NONE", *LIMITS, *CURVES)}),
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
# where float activations stand beside such weights.  Recurrent weights along a diagonal have no such form.


def _draw_lstm(d: Draw) -> dict[str, Any]:
    one = d.chance(ONE_EVERY)
    b, t, i, u, o = extents(d, 3, 4, 6, 5, 4)
    if one:
        i = o = u
    edged = not one and d.chance(12)  # biases at the ends of 32 bits, beside sums of zeros
    coupled, peephole, norm = (not one and d.chance(3)), one or d.chance(3), d.chance(2 if u > 16 else 3)
    projected = one or d.chance(3) or (edged and d.bool())
    wide = not one and not edged and d.chance(6)  # vectors of 16 bits at their ends
    scale = d.pick((*(0.0078125, 0.0157, 0.0235) * 3, 1.0, 0.00003))
    xq = draw_parameters(d, I8, scale=scale)
    oq = draw_parameters(d, I8, scale=d.pick((0.0078125, 0.006, 0.0047)))
    hidden = xq if one else draw_parameters(d, I8, scale=d.pick((0.0078125, 0.006, 0.0047))) if projected else oq
    before = [d.pick((2.0**-12, 2.0**-11, 2.0**-10, 2.0**-9, 0.0007)) if norm else 2.0**-12 for _ in GATES]
    memory = _symmetric(2.0 ** -d.pick((15, 14, 12, 11, 10, 9)))
    outs = o if projected else u
    sequence = d.version.op == "UNIDIRECTIONAL_SEQUENCE_LSTM"
    major = sequence and d.bool()
    shape = ((t, b, i) if major else (b, t, i)) if sequence else (b, i)
    constant = not d.chance(24)
    out: dict[str, Any] = {
        "input": T(shape, f"ints:{xq['zero_point'][0]}:{xq['zero_point'][0]}" if edged else "full", quant=xq),
        "fused_activation_function": "TANH",
        "cell_clip": d.pick((0.0, 0.0, 0.5)),
        "proj_clip": d.pick((0.0, 0.0, 0.4)),
        "input_activation_state": T((b, outs), values=oq["zero_point"] * (b * outs), dtype=I8, quant=oq),
        "input_cell_state": T((b, u), values=[0] * (b * u), dtype=I16, quant=memory),
        "@intermediates": [*map(_symmetric, before), hidden],
        "@outputs": [{"dtype": I8.name, "quant": oq}],
    }
    if sequence:
        out["time_major"] = major
    shared: dict[tuple[Any, ...], float] = {}

    def scale_of(base: float, *key: Any) -> float:
        new = base * (1 + d.int(0, 8) / 4)
        return shared.setdefault((base, *key), new) if one else new

    def weights(name: str, *shape: int, dtype: Any = I8, top: int = 127, scale: float = 0.004) -> dict[str, Any]:
        q = _symmetric(scale_of(scale, dtype))
        lo, hi = -top, top
        ends = dtype is I16 and wide
        out[name] = T(
            shape,
            "full" if ends else f"ints:{lo}:{hi}",
            dtype=dtype,
            quant=q,
            const=constant,
            values=_at_ends(d, shape, -32768, 32767) if ends else None,
        )
        return q

    def bias(name: str, n: int, scale: float) -> None:
        values = _at_ends(d, (n,), -(2**31), 2**31 - 1, 2**24 + 2) if edged and not d.chance(4) else None
        q = _symmetric(scale)
        out[name] = T((n,), "ints:-20000:20000", values=values, dtype=I32, quant=q, const=constant)

    for g in GATES:
        if coupled and g == "input":
            continue
        wq = weights(f"input_to_{g}_weights", u, i)
        weights(f"recurrent_to_{g}_weights", u, outs)
        if peephole and g != "cell":
            weights(f"cell_to_{g}_weights", u, dtype=I16, top=32767, scale=2.0**-15)
        of = xq["scale"][0] * wq["scale"][0]
        if norm:
            nq = weights(f"{g}_layer_norm_coefficients", u, dtype=I16, top=0 if edged else 32767, scale=2.0**-14)
            of = nq["scale"][0] * 2.0**-10
        bias("cell_bias" if g == "cell" else f"{g}_gate_bias", u, of)
    if projected:
        wq = weights("projection_weights", o, u, top=0 if edged else 127)
        if one or edged or d.bool():
            bias("projection_bias", o, hidden["scale"][0] * wq["scale"][0])
    return (one_tensor(d, out) if one else out) | calls(d)


def lstm_numbers(call: Call, stages: recurrent.Stages | None = None) -> Any:
    """Values and their errors in steps of the output, and its parameters."""
    v = {n: None if x is None else real(x, call.quant[n]) for n, x in call.inputs.items()}
    steps_of = {n: None if x is None else np.float64(call.quant[n]["scale"][0]) for n, x in call.inputs.items()}
    scales = {n: float(x) for n, x in cell(steps_of).items() if x is not None}
    q = call.outs[0]["quant"]  # type: ignore[index]
    memory, between = call.quant["input_cell_state"]["scale"][0], call.attrs["@intermediates"]
    before = {g: n["scale"][0] for g, n in zip(GATES, between)}

    def run(x: Any, v: Any, prefix: str, activation: str, cell_clip: float, proj_clip: float, *_: Any) -> Any:
        p = cell(v, prefix)
        y = recurrent.lstm(x, p, memory, between[4], q, cell_clip, proj_clip, scales, before, stages)
        return np.stack([steps(y.value, q), y.error / q["scale"][0]], -1)

    y = direction(v, call, run=run)
    return y[..., 0], y[..., 1], q


def _lstm(call: Call) -> list[Any]:
    r, _, q = lstm_numbers(call)
    return [finish(r, q, I8)]


def _lstm_ok(ctx: Context, actual: Any) -> Any:
    r, error, _ = lstm_numbers(ctx.call)
    return reachable(actual, r, 2.0**-6 + error, I8)


for _name in ("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"):
    op(
        _name,
        Evaluation(
            _lstm,
            accepted(_lstm_ok, "QUANT: every stored stage half a step, carried through the cell"),
            f"TFLite {_name}, full kernel; LiteRT op_version.cc (8-bit activations: version 1); Li and Alvarez, On"
            " the quantization of recurrent neural networks; tools/optimize/operator_property.cc, LSTM",
        ),
        Sampling(_draw_lstm, types={"T": ("i8",)}, why="the recipe of Li and Alvarez is for 8-bit activations"),
        Checks(
            stated=lstm_shapes(2 if _name == "LSTM" else 3, ""),
            only={"fused_activation_function": "TANH", "diagonal_recurrent_tensors": False},
        ),
        domain="quantised",
    )
