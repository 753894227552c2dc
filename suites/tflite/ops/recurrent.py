"""Recurrent operators on float tensors; states are variable tensors that start from zero.

From zero, the recurrent weights of a single step meet nothing, nor do those of cell and memory: any would do.  So one
instance in three has several calls (``@calls``): nodes on the same operands, states among them, of which the last one
answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from harness.core.dtypes import F32
from harness.core.instance import SAME
from harness.declare import (
    Call,
    Checks,
    Context,
    Draw,
    Evaluation,
    Fn,
    Pattern,
    Sampling,
    Spelling,
    T,
    composed,
    gathered,
    underspecified,
)
from suites.semantics import tensorflow_sequence as s
from suites.semantics.quantised.dynamic_recurrent import FLOAT, around, error_of, lstm_error, rnn_error, svdf_error
from suites.semantics.tensorflow_recurrent import GATES, rnn
from suites.tflite import op
from suites.tflite.codecs import later
from suites.tflite.extents import extents

_ACTIVATIONS = ("TANH", "TANH", "RELU", "RELU6", "NONE", "RELU_N1_TO_1", "TANH", "SIGN_BIT")
_RECIPE = ("unit", "uniform:-1:1", "unit")
_PREFIXES = ("fw_", "bw_")
ONE_EVERY = 24  # one instance in so many has one tensor for all operands that may have it
_HUGE = 1e15  # below it no product of two or three leaves the range of f32
CLAMPED_NAN = "a fused activation after NaN or infinity"
OVERFLOWING = "sums that may leave the range of f32 on their way"


def calls(d: Draw, most: int = 2) -> dict[str, Any]:
    """In one instance of three further calls, which find the states as the one before left them.  most: of a single
    step; a sequence goes on by itself."""
    return {"@calls": d.int(2, most)} if d.chance(3) else {}


def carried(x: Any, call: Call) -> Any:
    """What all calls are given, along the first axis: each goes on where the one before it ended."""
    return np.concatenate([x] * calls_of(call))


def calls_of(call: Call) -> int:
    return int(call.attrs.get("@calls", 1))


CALLS = Fn(calls_of)


def _state(*shape: int) -> T:
    return T(shape, values=[0.0] * int(np.prod(shape)), dtype=F32)


def _w(d: Draw, *shape: int) -> T:
    return T(shape, d.pick(_RECIPE), const=bool(d.int(0, 2)))


def one_tensor(d: Draw, out: dict[str, Any]) -> dict[str, Any]:
    """The operands with one tensor for all that are alike in type, shape and parameters."""
    first: dict[tuple[Any, ...], str] = {}
    same: dict[str, str] = {}
    for slot in d.version.schema.inputs:
        t = out.get(slot.name)
        if isinstance(t, T) and t.values is None and slot.name not in d.version.schema.extra["states"]:
            name = first.setdefault((slot.type, tuple(t.shape), t.dtype, repr(t.quant)), slot.name)
            out[slot.name] = out[name]
            if name != slot.name:
                same[slot.name] = name
    return {**out, SAME: same} if same else out


# -- RNN


def draw_rnn(sequence: bool) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        b, t, i, u = extents(d, 3, 4, 6, 5)
        out: dict[str, Any] = {"fused_activation_function": d.pick(_ACTIVATIONS), "hidden_state": _state(b, u)}
        names = (
            ("input_to_input_weights", "recurrent_to_input_weights", "input_gate_bias")
            if sequence
            else ("input_weights", "recurrent_weights", "bias")
        )
        out |= {names[0]: _w(d, u, i), names[1]: _w(d, u, u), names[2]: _w(d, u)}
        if sequence:
            out["time_major"] = d.bool()
            out["input"] = T((t, b, i) if out["time_major"] else (b, t, i), d.pick(_RECIPE))
        else:
            out["input"] = T((b, i), d.pick(_RECIPE))
        return out | calls(d, 2 if sequence else 3)

    return draw


def rnn_values(call: Call, v: Mapping[str, Any], run: Callable[..., Any]) -> list[Any]:
    """The outputs of RNN and UNIDIRECTIONAL_SEQUENCE_RNN from operands by their slots.  run: what is done with x
    [t, b, i], weights and bias."""
    one = call.version.op == "RNN"
    names = (
        ("input_weights", "recurrent_weights", "bias")
        if one
        else ("input_to_input_weights", "recurrent_to_input_weights", "input_gate_bias")
    )
    x = np.asarray(v["input"], np.float64)
    major = bool(call.attr("time_major", False))
    xt = x[None] if one else x if major else np.swapaxes(x, 0, 1)
    operands = (np.asarray(v[n], np.float64) for n in names)
    y = run(carried(xt, call), *operands, call.attr("fused_activation_function", "NONE"))
    y = y[len(y) - len(xt) :]
    return [y[0] if one else y if major else np.swapaxes(y, 0, 1)]


def _rnn_bound(ctx: Context) -> Any:
    """the roundings of every product, sum and function, carried along the sequence step by step; + ulp"""
    return around(ctx.wide, _rnn_errors(ctx.call, ctx.acc_u)[0]) + ctx.ulp


def _rnn_errors(call: Call, u: float) -> list[Any]:
    def run(x: Any, w: Any, r: Any, b: Any, activation: str) -> Any:
        return rnn_error(x, w, r, b, activation, FLOAT, u)

    return rnn_values(call, call.inputs, run)


def opened(errors: Callable[[Call, float], list[Any]]) -> Callable[[Call], str | None]:
    """What the text leaves open: a limit (activation, clip) of NaN, and sums of huge numbers, which may overflow on
    their way.  errors: bounds on the error of each output for a unit roundoff, infinite where that may be, or values
    with such bounds."""

    def reason(call: Call) -> str | None:
        sizes = [np.abs(x).max(initial=0.0) for x in call.inputs.values() if x is not None and x.dtype.kind == "f"]
        activation = call.attr("fused_activation_function", "NONE")
        if all(n < _HUGE for n in sizes) and activation not in ("NONE", "RELU"):  # with these states grow step by step
            return None
        limits = activation not in ("NONE", "TANH")
        limits = limits or any(call.attr(k, 0.0) > 0 for k in ("cell_clip", "proj_clip"))
        with np.errstate(all="ignore"):
            own, values = call.version.entry.evaluation, None
            if own is not None:
                values = own.fn(call)
            elif call.version.meaning is not None:
                tensors, params = call.version.decode(call)
                values = [call.version.meaning.fn(**tensors, **params)]
            bounds = errors(call, 2.0**-24)
        assert values is not None
        nan = tuple(np.isnan(y) & limits for y in values)
        free = tuple(~np.isfinite(error_of(e)) & ~_nan_in_both(y, e) for y, e in zip(values, bounds))
        return gathered(underspecified(CLAMPED_NAN, nan), underspecified(OVERFLOWING, free))

    return reason


def _nan_in_both(y: Any, found: Any) -> Any:
    """Where a result is NaN, whatever is made of that of which nothing is told: values found with their bounds have
    none of the NaN that is quantised on the way."""
    return np.isnan(y) & (np.isnan(found["value"]) if found.dtype.names else True)


# not drawn with an axis too many: no text names these ranks, only the products do
LENIENT: dict[str, Any] = {"shapes-stated": None}
_HIDDEN = Pattern(lambda call: f"{batch_of(call)} u", (2, 2))  # NNAPI RNN, operand 4: "[batch_size, num_units]"
RNN_SHAPES: dict[str, Any] = {
    "input": "_b i",
    "input_weights": "u i",
    "recurrent_weights": "u u",
    "bias": "u",
    "hidden_state": _HIDDEN,
}
SEQUENCE_RNN_SHAPES: dict[str, Any] = {
    "input": "_b _t i",
    "input_to_input_weights": "u i",
    "recurrent_to_input_weights": "u u",
    "input_gate_bias": "u",
    "hidden_state": _HIDDEN,
}
op(
    "UNIDIRECTIONAL_SEQUENCE_RNN",
    s.sequence_rnn,
    Sampling(draw_rnn(True)),
    Checks(stated=SEQUENCE_RNN_SHAPES, error=composed(_rnn_bound), ambiguous=opened(_rnn_errors)),
    x="input",
    w="input_to_input_weights",
    r="recurrent_to_input_weights",
    b="input_gate_bias",
    calls=CALLS,
    activation="fused_activation_function",
)
op(
    "RNN",
    s.sequence_rnn,
    Spelling(
        x="input",
        w="input_weights",
        r="recurrent_weights",
        b="bias",
        calls=CALLS,
        activation="fused_activation_function",
        fixed={"time_major": False},
    ),
    Sampling(draw_rnn(False)),
    Checks(stated=RNN_SHAPES, breaks=LENIENT, error=composed(_rnn_bound), ambiguous=opened(_rnn_errors)),
)


def rank_of_filters(d: Draw, units: int, rank: int) -> int:
    """The rank, now and then a higher one.  svdf.cc, Prepare: num_filters % rank == 0, which no filter at all is too,
    whatever the rank."""
    if not d.chance(24 if units else 4):
        return rank
    return d.int(9, 17) if units else 2**31 - 1


def draw_svdf(d: Draw) -> dict[str, Any]:
    (b, i, u, m), rank = extents(d, 3, 6, 4, 6), d.int(1, 3)
    rank = rank_of_filters(d, u, rank)
    out: dict[str, Any] = {
        "input": T((b, i), d.pick(_RECIPE)),
        "feature_weights": _w(d, u * rank, i),
        "time_weights": _w(d, u * rank, m),
        "activation_state": _state(b, m * u * rank),
        "rank": rank,
        "fused_activation_function": d.pick(("NONE", "RELU", "RELU6", "RELU_N1_TO_1", "TANH", "SIGN_BIT")),
    }
    if d.bool():
        out["input_gate_bias"] = _w(d, u)
    return out | calls(d, m + 1)


def _svdf_errors(call: Call, u: float) -> list[Any]:
    v = {n: np.asarray(x, np.float64) for n, x in call.inputs.items() if x is not None}
    operands = v["input"], v["feature_weights"], v["time_weights"], v.get("input_gate_bias")
    return [svdf_error(*operands, call.attr("rank"), FLOAT, u, calls_of(call))]


SVDF_SHAPES: dict[str, Any] = {
    "input": "_b i",
    "feature_weights": "n i",
    "time_weights": "n _m",
    "input_gate_bias": Pattern(lambda call: str(len(call.inputs["feature_weights"]) // call.attr("rank")), (1, 1)),
    # svdf.cc, Prepare: the state has batch_size rows and memory_size * num_filters columns
    "activation_state": Pattern(lambda call: f"{batch_of(call)} {call.inputs['time_weights'].size}", (2, 2)),
}
op(
    "SVDF",
    s.svdf_step,
    Sampling(draw_svdf),
    Checks(stated=SVDF_SHAPES, breaks=LENIENT, ambiguous=opened(_svdf_errors)),
    x="input",
    features="feature_weights",
    times="time_weights",
    b="input_gate_bias",
    calls=CALLS,
    activation="fused_activation_function",
)


# -- LSTM: forty operands, so decoded by name rather than by annotation


def gates(
    d: Draw,
    prefix: str,
    i: int,
    u: int,
    *,
    coupled: bool,
    peephole: bool,
    projection: int | None,
    norm: bool,
    diagonal: bool = False,
) -> dict[str, Any]:
    """Weights of one direction under the dialect's names."""
    out: dict[str, Any] = {}
    o = u if projection is None else projection
    for g in GATES:
        if coupled and g == "input":
            continue
        out[f"{prefix}input_to_{g}_weights"] = _w(d, u, i)
        out[f"{prefix}recurrent_to_{g}_weights"] = _w(d, u) if diagonal else _w(d, u, o)
        out[prefix + ("cell_bias" if g == "cell" else f"{g}_gate_bias")] = _w(d, u)
        if peephole and g != "cell":
            out[f"{prefix}cell_to_{g}_weights"] = _w(d, u)
        if norm:
            out[f"{prefix}{g}_layer_norm_coefficients"] = _w(d, u)
    if projection is not None:
        out[f"{prefix}projection_weights"] = _w(d, projection, u)
        if d.bool():
            out[f"{prefix}projection_bias"] = _w(d, projection)
    return out


def lstm_shapes(rank: int, *prefixes: str) -> dict[str, Any]:
    """Of the operands of an LSTM: the ranks that its definition in the converter's dialect states, and the extents that
    its products ask for: i values in, u units, o values out, each with the letter of its direction."""
    out: dict[str, Any] = {"input": " ".join((*("_b", "_t")[: rank - 1], "i"))}
    for k, prefix in enumerate(prefixes):
        u, o = f"u{k}", f"o{k}"

        def recurrent(call: Call, prefix: str = prefix, u: str = u, o: str = o) -> str:
            if rank == 3 and call.attr("diagonal_recurrent_tensors", False):
                return u
            return f"{u} {o}" if call.inputs.get(f"{prefix}projection_weights") is not None else f"{u} {u}"

        parallel = "fw_aux_input_to_cell_weights" if k == 1 else ""
        for g in GATES:
            out[f"{prefix}input_to_{g}_weights"] = Pattern(partial(_seen, u, parallel), (2, 2))
            # of "at most" 2 axes where they may be a diagonal
            out[f"{prefix}recurrent_to_{g}_weights"] = Pattern(recurrent, (2 if rank == 2 or prefix else 1, 2))
            out[prefix + ("cell_bias" if g == "cell" else f"{g}_gate_bias")] = u
            out[f"{prefix}{g}_layer_norm_coefficients"] = u
            if prefix:
                out[f"{prefix}aux_input_to_{g}_weights"] = f"{u} _x"
            if g != "cell":
                out[f"{prefix}cell_to_{g}_weights"] = u
        out[f"{prefix}projection_weights"] = f"{o} {u}"
        out[f"{prefix}projection_bias"] = o
        out[f"{prefix}input_activation_state"] = Pattern(partial(_kept, prefix, True), (2, 2))
        out[f"{prefix}input_cell_state"] = Pattern(partial(_kept, prefix, False), (2, 2))
    return out


def _seen(u: str, weights: str, call: Call) -> str:
    """Shape of the weights of what a direction runs over: the input, or the auxiliary one, without ``weights`` of its
    own (parallel linking)."""
    over_other = weights and call.inputs.get("aux_input") is not None and call.inputs.get(weights) is None
    return f"{u} {'_a' if over_other else 'i'}"


def _kept(prefix: str, activation: bool, call: Call) -> str:
    """Shape of a state of an LSTM.  NNAPI LSTM, operands 18 and 19: "A 2-D tensor of shape [batch_size, output_size]",
    "[batch_size, num_units]"."""
    projection, weights = call.inputs.get(f"{prefix}projection_weights"), call.inputs[f"{prefix}input_to_cell_weights"]
    return f"{batch_of(call)} {len(weights if projection is None or not activation else projection)}"


def _beside(call: Call) -> str:
    """NNAPI BIDIRECTIONAL_SEQUENCE_LSTM, operand 39: the auxiliary input has the steps and rows of the input."""
    b, t = call.inputs["input"].shape[:2]
    return f"{b} {t} _a"


AUXILIARY: dict[str, Any] = {"aux_input": Pattern(_beside, (3, 3))}


def batch_of(call: Call) -> int:
    """Rows of the input that are computed side by side."""
    shape = call.inputs["input"].shape
    return int(shape[1 if len(shape) > 2 and call.attr("time_major", False) else 0])


def _options(d: Draw) -> dict[str, Any]:
    return {
        "fused_activation_function": d.pick(("TANH", "TANH", *_ACTIVATIONS)),
        "cell_clip": d.pick((0.0, 0.0, 0.5)),
        "proj_clip": d.pick((0.0, 0.0, 0.4)),
    }


def draw_lstm(sequence: bool) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        one = d.chance(ONE_EVERY)
        b, t, i, u, o = extents(d, 3, 4, 6, 5, 4)
        if one:
            i = o = u
        projection = o if one or d.chance(3) else None
        diagonal = sequence and not one and not later(d, "diagonal_recurrent_tensors") and d.chance(4)
        if diagonal and projection is not None:
            projection = u  # as many values as units, each beside its own
        out = gates(
            d,
            "",
            i,
            u,
            coupled=not one and d.chance(3),
            peephole=one or d.chance(3),
            projection=projection,
            norm=one or d.chance(3),
            diagonal=diagonal,
        )
        out |= _options(d)
        out |= {
            "input_activation_state": _state(b, u if projection is None else projection),
            "input_cell_state": _state(b, u),
        }
        if sequence:
            out["time_major"] = d.bool()
            if diagonal:
                out["diagonal_recurrent_tensors"] = True
            out["input"] = T((t, b, i) if out["time_major"] else (b, t, i), d.pick(_RECIPE))
        else:
            out["input"] = T((b, i), d.pick(_RECIPE))
        return (one_tensor(d, out) if one else out) | calls(d, 2 if sequence else 3)

    return draw


def _auxiliary(d: Draw, out: dict[str, Any], weights: Callable[[str, int], dict[str, T]], one: bool) -> None:
    """One time in three an auxiliary input, always where one tensor is for all: with weights of its own it is added in
    both directions (cross-linking), without them the backward direction runs over it in place of the input (parallel
    linking).  weights: those of one direction for so many values."""
    if not (one or d.chance(3)):
        return
    *lead, i = out["input"].shape
    cross = one or d.bool()
    a = extents(d, 5)[0] if cross and not one else i
    out["aux_input"] = T((*lead, a), d.pick(_RECIPE), const=d.chance(3 if d.empty else 8))
    if cross:
        out |= weights("fw_", a) | weights("bw_", a)


def auxiliary(v: Mapping[str, Any], weights: str) -> tuple[Any, Any]:
    """(what is added in both directions, what the backward one runs over), either may be None.  NNAPI
    BIDIRECTIONAL_SEQUENCE_RNN, _LSTM: cross-linking where auxiliary weights are present, else parallel linking."""
    aux = v.get("aux_input")
    return (aux, None) if v.get(weights) is not None else (None, aux)


def _lstm(call: Call) -> list[Any]:
    return [direction(call.inputs, call)]


def direction(
    v: dict[str, Any],
    call: Call,
    prefix: str = "",
    backward: bool = False,
    x: Any = None,
    aux: Any = None,
    run: Any = s.run_cell,
) -> Any:
    """One direction of an LSTM in the layout of the output, over x or the input.  aux: what is added to it.  run: what
    is done with x [t, b, i] and the operands."""
    x = np.asarray(v["input"] if x is None else x, np.float64)
    one = x.ndim == 2
    time_major = bool(call.attr("time_major", False))
    xt = x[None] if one else x if time_major else np.swapaxes(x, 0, 1)
    if aux is not None:
        aux = np.asarray(aux, np.float64)
        aux = aux if time_major else np.swapaxes(aux, 0, 1)
        v = {**v, "@aux": carried(aux[::-1] if backward else aux, call)}
    if backward:
        xt = xt[::-1]
    y = run(
        carried(xt, call),
        v,
        prefix,
        call.attr("fused_activation_function", "NONE"),
        float(call.attr("cell_clip", 0.0)),
        float(call.attr("proj_clip", 0.0)),
        bool(call.attr("diagonal_recurrent_tensors", False)),
    )
    y = y[len(y) - len(xt) :]
    if backward:
        y = y[::-1]
    return y[0] if one else y if time_major else np.swapaxes(y, 0, 1)


def _lstm_errors(call: Call, unit: float) -> list[Any]:
    def run(x: Any, v: dict[str, Any], prefix: str, act: str, cell_clip: float, proj_clip: float, _: bool) -> Any:
        return lstm_error(x, s.cell(v, prefix), act, cell_clip, proj_clip, FLOAT, unit)

    both = call.version.op.startswith("BIDIRECTIONAL")
    return both_directions(call, call.inputs, run) if both else [direction(call.inputs, call, run=run)]


def _lstm_bound(ctx: Context, i: int) -> Any:
    """the roundings of every product, sum and function, carried through the cell step by step; + ulp"""
    return around(ctx.wide, _lstm_errors(ctx.call, ctx.acc_u)[i]) + ctx.ulp


_BOUND = tuple(composed(partial(_lstm_bound, i=i), _lstm_bound.__doc__) for i in range(2))
op(
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    Evaluation(_lstm, _BOUND, "TFLite UNIDIRECTIONAL_SEQUENCE_LSTM"),
    Sampling(draw_lstm(True)),
    Checks(stated=lstm_shapes(3, ""), ambiguous=opened(_lstm_errors)),
)
op(
    "LSTM",
    Evaluation(_lstm, _BOUND, "TFLite LSTM, full kernel"),
    Sampling(draw_lstm(False)),
    Checks(stated=lstm_shapes(2, ""), ambiguous=opened(_lstm_errors)),
)


def draw_both(d: Draw) -> dict[str, Any]:
    one = d.chance(ONE_EVERY)
    b, t, i, u, o = extents(d, 3, 4, 6, 5, 4)
    projected = _PREFIXES if one else d.pick(((), (), (), (), _PREFIXES, _PREFIXES, ("fw_",), ("bw_",)))
    if one:
        i = u
    if one or len(projected) == 1:
        o = u  # both directions give as many outputs
    out, coupled = _options(d), {}
    for prefix in _PREFIXES:
        coupled[prefix], projection = not one and d.chance(4), o if prefix in projected else None
        peephole = one or d.chance(3)
        out |= gates(d, prefix, i, u, coupled=coupled[prefix], peephole=peephole, projection=projection, norm=False)
        out |= {
            f"{prefix}input_activation_state": _state(b, u if projection is None else projection),
            f"{prefix}input_cell_state": _state(b, u),
        }
    out["time_major"], out["merge_outputs"] = d.bool(), d.bool()
    out["input"] = T((t, b, i) if out["time_major"] else (b, t, i), d.pick(_RECIPE))
    out["@outs"] = 1 if out["merge_outputs"] else 2
    _auxiliary(
        d,
        out,
        lambda prefix, a: {
            f"{prefix}aux_input_to_{g}_weights": _w(d, u, a) for g in GATES if not (coupled[prefix] and g == "input")
        },
        one,
    )
    return (one_tensor(d, out) if one else out) | calls(d)


def both_directions(call: Call, v: dict[str, Any], run: Any = s.run_cell) -> list[Any]:
    """Forward and backward outputs, joined along the units where the option says so."""
    added, other = auxiliary(v, "fw_aux_input_to_cell_weights")
    fw = direction(v, call, "fw_", aux=added, run=run)
    bw = direction(v, call, "bw_", True, x=other, aux=added, run=run)
    return [np.concatenate([fw, bw], -1)] if call.attr("merge_outputs", False) else [fw, bw]


op(
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    Evaluation(
        lambda call: both_directions(call, call.inputs),
        _BOUND,
        "TFLite BIDIRECTIONAL_SEQUENCE_LSTM; NNAPI BIDIRECTIONAL_SEQUENCE_LSTM: auxiliary input",
    ),
    Sampling(draw_both),
    Checks(stated=lstm_shapes(3, "fw_", "bw_") | AUXILIARY, ambiguous=opened(_lstm_errors)),
)


def draw_both_rnn(d: Draw) -> dict[str, Any]:
    one = d.chance(ONE_EVERY)
    b, t, i, *units = extents(d, 3, 4, 6, 5, 5)
    if one:
        units = [i, i]
    out: dict[str, Any] = {
        "fused_activation_function": d.pick(_ACTIVATIONS),
        "time_major": d.bool(),
        "merge_outputs": d.bool(),
    }
    for prefix, u in zip(_PREFIXES, units):
        out |= {
            f"{prefix}input_to_input_weights": _w(d, u, i),
            f"{prefix}recurrent_weights": _w(d, u, u),
            f"{prefix}bias": _w(d, u),
            f"{prefix}hidden_state": _state(b, u),
        }
    out["input"] = T((t, b, i) if out["time_major"] else (b, t, i), d.pick(_RECIPE))
    out["@outs"] = 1 if out["merge_outputs"] else 2
    _auxiliary(d, out, lambda prefix, a: {f"{prefix}aux_weights": _w(d, units[_PREFIXES.index(prefix)], a)}, one)
    return (one_tensor(d, out) if one else out) | calls(d)


def _run_rnn(x: Any, w: Any, r: Any, b: Any, activation: str, *aux: Any) -> Any:
    return rnn(x, w, r, b, np.zeros((x.shape[1], w.shape[0])), activation, *aux)[0]


def both_rnn(call: Call, v: Mapping[str, Any], run: Any = _run_rnn) -> list[Any]:
    """Forward and backward outputs, joined along the units where the option says so."""
    act = call.attr("fused_activation_function", "NONE")
    major = bool(call.attr("time_major", False))

    def time_first(x: Any) -> Any:
        x = np.asarray(x, np.float64)
        return x if major else np.swapaxes(x, 0, 1)

    added, other = auxiliary(v, "fw_aux_weights")
    results = []
    for prefix, step in (("fw_", 1), ("bw_", -1)):
        w, r, b = (v[prefix + n].astype(np.float64) for n in ("input_to_input_weights", "recurrent_weights", "bias"))
        x = time_first(v["input"] if other is None or step > 0 else other)
        aux = (
            ()
            if added is None
            else (carried(time_first(added)[::step], call), v[f"{prefix}aux_weights"].astype(np.float64))
        )
        y = run(carried(x[::step], call), w, r, b, act, *aux)
        y = y[len(y) - len(x) :][::step]
        results.append(y if major else np.swapaxes(y, 0, 1))
    return [np.concatenate(results, -1)] if call.attr("merge_outputs", False) else results


def _both_rnn_errors(call: Call, unit: float) -> list[Any]:
    def run(x: Any, w: Any, r: Any, b: Any, activation: str, *aux: Any) -> Any:
        return rnn_error(x, w, r, b, activation, FLOAT, unit, *aux)

    return both_rnn(call, call.inputs, run)


def _both_rnn_bound(ctx: Context, i: int) -> Any:
    """the roundings of every product, sum and function, carried along the sequence step by step; + ulp"""
    return around(ctx.wide, _both_rnn_errors(ctx.call, ctx.acc_u)[i]) + ctx.ulp


BOTH_RNN_SHAPES: dict[str, Any] = {
    "input": "_b _t i",
    "fw_input_to_input_weights": "u i",
    "fw_recurrent_weights": "u u",
    "fw_bias": "u",
    "bw_input_to_input_weights": Pattern(partial(_seen, "v", "fw_aux_weights"), (2, 2)),
    "bw_recurrent_weights": "v v",
    "bw_bias": "v",
    "fw_hidden_state": _HIDDEN,
    "bw_hidden_state": Pattern(lambda call: f"{batch_of(call)} v", (2, 2)),
    "fw_aux_weights": "u _x",
    "bw_aux_weights": "v _x",
    **AUXILIARY,
}
op(
    "BIDIRECTIONAL_SEQUENCE_RNN",
    Evaluation(
        lambda call: both_rnn(call, call.inputs),
        tuple(composed(partial(_both_rnn_bound, i=i), _both_rnn_bound.__doc__) for i in range(2)),
        "TFLite BIDIRECTIONAL_SEQUENCE_RNN; NNAPI BIDIRECTIONAL_SEQUENCE_RNN: auxiliary input",
    ),
    Sampling(draw_both_rnn),
    Checks(stated=BOTH_RNN_SHAPES, breaks=LENIENT, ambiguous=opened(_both_rnn_errors)),
)
