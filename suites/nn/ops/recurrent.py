"""Recurrent layers.  Source: NeuralNetwork.proto, SimpleRecurrent, GRU, LSTMParams, Uni- and BiDirectionalLSTM."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T
from suites.nn import op
from suites.semantics.coreml_recurrent import unrolled
from suites.semantics.recurrent import DEFAULTS, extreme_sizes

# text of an activation -> (name, alpha, beta); one without numbers, which coremltools writes, has the usual ones (of
# MIL's linear_activation, scaled_tanh and sigmoid_hard), as the layer tests of the package expect
_NAMES = {
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "ReLU": "relu",
    "linear": "affine",
    "scaledTanh": "scaled_tanh",
    "sigmoidHard": "hard_sigmoid",
}
_TEXTS = (
    "sigmoid",
    "tanh",
    "ReLU",
    "linear(1.0,0.0)",
    "scaledTanh(1.7159,0.6666667)",
    "sigmoidHard(0.2,0.5)",
    "linear(1.5,-0.25)",
    "linear(-0.5,0.0)",
    "linear",
    "scaledTanh",
    "sigmoidHard",
)


def _activation(text: str) -> tuple[str, float, float]:
    name, _, rest = text.rstrip(")").partition("(")
    if name not in _NAMES:
        raise RuleError("activation-known", text)
    a, b = (float(np.float32(float(v))) for v in rest.split(",")) if rest else (0.0, 0.0)
    if not a and not b:  # as not given
        a, b = DEFAULTS.get(_NAMES[name], (0.0, 0.0))
    return _NAMES[name], a, b


def _steps(c: Call) -> np.ndarray:
    x = c.inputs["x"]
    if x.ndim != 5 or x.shape[3:] != (1, 1):
        raise RuleError("sequence-shape", f"{list(x.shape)}, expected [Seq, Batch, C, 1, 1]")
    return x[..., 0, 0]


def _state(*slots: str) -> Fn:
    """[1, B, C, 1, 1] of every direction as [e, B, C]; also [B, C, 1, 1, 1], which coremltools makes of the state of a
    simple layer: the text tells no shape."""

    def read(c: Call) -> Any:
        got = [c.inputs[s] for s in slots if s in c.inputs]
        b, n = c.inputs["x"].shape[1], c.attr("outputVectorSize")
        for g in got:
            if g.shape not in ((1, b, n, 1, 1), (b, n, 1, 1, 1)):
                raise RuleError("state-shape", f"{list(g.shape)}, expected {[1, b, n, 1, 1]} or {[b, n, 1, 1, 1]}")
        return None if not got else np.stack([g.reshape(b, n) for g in got])

    return Fn(read)


def _stacked(
    prefixes: tuple[str, ...], names: tuple[str, ...], flag: str | None = None, forget: int | None = None
) -> Fn:
    """Weights of all gates as one array [e, g, ...]."""

    def read(c: Call) -> Any:
        if flag is not None and not c.attr(flag):
            return None
        out = np.stack([np.stack([c.inputs[f"{p}{n}"] for n in names]) for p in prefixes])
        if forget is not None and c.attr("params.forgetBias"):
            out = out.copy()
            out[:, forget] += 1.0
        return out

    return Fn(read)


def _listed(name: str) -> Fn:
    return Fn(lambda c: [_activation(t) for t in c.attr(name) or ()])


def _alike(forward: str, *backward: str) -> Fn:
    """Activations; those of the backward direction "must be same as the ones for the forward"."""

    def read(c: Call) -> list[Any]:
        if any(list(c.attr(n) or ()) != list(c.attr(forward) or ()) for n in backward):
            raise RuleError("directions-alike", f"{c.attr(forward)}, backward {[c.attr(n) for n in backward]}")
        return [_activation(t) for t in c.attr(forward) or ()]

    return Fn(read)


def _turned(draw: Any) -> Any:
    def fn(d: Draw) -> dict[str, Any]:
        return {
            **draw(d),
            "activationsForwardLSTM": ["sigmoid", "tanh", "tanh"],
            "activationsBackwardLSTM": ["sigmoid", "ReLU", "tanh"],
        }

    return fn


def _shaped(c: Call, y: np.ndarray, states: list[np.ndarray], sequence: bool, directions: int) -> list[np.ndarray]:
    """Results as blobs of rank 5.  The last output of no steps is the state before them."""
    if not sequence and not y.shape[0]:
        y = np.concatenate(states[:: len(states) // directions], -1)[None]
    elif not sequence:
        n = y.shape[-1] // directions
        y = y[-1:] if directions == 1 else np.concatenate([y[-1:, :, :n], y[:1, :, n:]], -1)
    return [y[..., None, None], *(s[None, :, :, None, None] for s in states)]


def _sizes(d: Draw) -> tuple[int, int, int, int]:
    if d.chance(16):
        return extreme_sizes(d) if d.int(0, 2) else (1, 1, 520, 4)  # a sum that f16 does not count
    t, b, i, h = d.int(1, 4), d.int(1, 3), d.int(1, 5), d.int(1, 4)
    return (1, b, h, h) if d.chance(6) else (t, b, i, h)  # an input that may be a state too


def _weight(shape: tuple[int, ...]) -> T:
    return T(shape, recipe="uniform:-1:1", const=True)


_STEPS = ("unit", "small", "uniform:-2:2")


def _basic(d: Draw) -> tuple[dict[str, Any], tuple[int, int, int, int]]:
    t, b, i, h = sizes = _sizes(d)
    out: dict[str, Any] = {"x": T((t, b, i, 1, 1), recipe=d.pick(_STEPS)), "inputVectorSize": i, "outputVectorSize": h}
    return out, sizes


def _ends(d: Draw, out: dict[str, Any], b: int, h: int, slots: tuple[str, ...], outs: int) -> dict[str, Any]:
    """Initial states, all or none, and how many outputs are asked for."""
    if d.bool():
        out.update({s: T((1, b, h, 1, 1), recipe="unit") for s in slots})
    return {**out, "@outs": d.pick((1, outs))}


def _sequence_apart(draw: Any) -> Any:
    def fn(d: Draw) -> dict[str, Any]:
        out = draw(d)
        t, b, i = out["x"].shape[:3]
        return {**out, "x": T((t, b, i, 2, 1))}

    return fn


def _wrong_size(draw: Any) -> Any:
    def fn(d: Draw) -> dict[str, Any]:
        out = draw(d)
        t, b, i = out["x"].shape[:3]
        return {**out, "x": T((t, b, i + 1, 1, 1))}

    return fn


def _state_apart(draw: Any, slots: tuple[str, ...]) -> Any:
    def fn(d: Draw) -> dict[str, Any]:
        out = draw(d)
        b, h = out["x"].shape[1], out["outputVectorSize"]
        return {**out, **{s: T((1, b, h + 1, 1, 1), recipe="unit") for s in slots}}

    return fn


def _breaks(draw: Any, *slots: str) -> dict[str, Any]:
    return {
        "sequence-shape": _sequence_apart(draw),
        "sizes-agree": _wrong_size(draw),
        "state-shape": _state_apart(draw, slots),
    }


def _ones_alone(c: Call) -> str | None:
    """forgetBias adds ones to b_f; whether they are there where "no biases are added" is not said."""
    alone = c.attr("params.forgetBias") and not c.attr("params.hasBiasVectors")
    return "forget-bias-without-biases" if alone else None


# what a cell with one state and no peepholes says
_ONE_STATE = Spelling(
    x=Fn(_steps),
    h0=_state("h"),
    p=Fn(lambda c: None),
    c0=Fn(lambda c: None),
    reverse="reverseInput",
    out=lambda c, r: _shaped(c, r[0], r[1:2], c.attr("sequenceOutput"), 1),
)

# -- simpleRecurrent


def _draw_simple(d: Draw) -> dict[str, Any]:
    out, (_, b, i, h) = _basic(d)
    out.update(
        weightMatrix=_weight((h, i)),
        recursionMatrix=_weight((h, h)),
        activation=d.pick(_TEXTS),
        sequenceOutput=d.bool(),
        reverseInput=d.bool(),
    )
    if d.bool():
        out.update(hasBiasVector=True, biasVector=_weight((h,)))
    return _ends(d, out, b, h, ("h",), 2)


def _one(name: str, flag: str | None = None) -> Fn:
    return Fn(lambda c: c.inputs[name][None, None] if flag is None or c.attr(flag) else None)


op(
    "simpleRecurrent",
    unrolled,
    _ONE_STATE,
    Spelling(
        w=_one("weightMatrix"),
        r=_one("recursionMatrix"),
        b=_one("biasVector", "hasBiasVector"),
        activations=Fn(lambda c: [_activation(c.attr("activation") or "linear")]),
        fixed={"cell": "rnn", "cell_clip": 50.0, "coupled": False},
    ),
    Sampling(_draw_simple),
    Checks(breaks=_breaks(_draw_simple, "h")),
)

# -- gru

_GRU = ("updateGate", "resetGate", "outputGate")


def _names(gates: tuple[str, ...], what: str) -> tuple[str, ...]:
    return tuple(f"{g}{what}" for g in gates)


def _draw_gru(d: Draw) -> dict[str, Any]:
    out, (_, b, i, h) = _basic(d)
    for g in _GRU:
        out[f"{g}WeightMatrix"], out[f"{g}RecursionMatrix"] = _weight((h, i)), _weight((h, h))
    if d.bool():
        out.update({f"{g}BiasVector": _weight((h,)) for g in _GRU}, hasBiasVectors=True)
    out.update(
        activations=["sigmoid", "tanh"] if d.bool() else [d.pick(_TEXTS), d.pick(_TEXTS)],
        sequenceOutput=d.bool(),
        reverseInput=d.bool(),
    )
    return _ends(d, out, b, h, ("h",), 2)


op(
    "gru",
    unrolled,
    _ONE_STATE,
    Spelling(
        w=_stacked(("",), _names(_GRU, "WeightMatrix")),
        r=_stacked(("",), _names(_GRU, "RecursionMatrix")),
        b=_stacked(("",), _names(_GRU, "BiasVector"), "hasBiasVectors"),
        activations=_listed("activations"),
        fixed={"cell": "gru", "cell_clip": 50.0, "coupled": False},
    ),
    Sampling(_draw_gru),
    Checks(breaks=_breaks(_draw_gru, "h")),
)

# -- lstm

_LSTM = ("inputGate", "forgetGate", "blockInput", "outputGate")
_PEEP = tuple(f"{g}PeepholeVector" for g in ("inputGate", "forgetGate", "outputGate"))


def _lstm_weights(d: Draw, prefix: str, i: int, h: int, bias: bool, peep: bool) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for g in _LSTM:
        out[f"{prefix}{g}WeightMatrix"] = _weight((h, i))
        out[f"{prefix}{g}RecursionMatrix"] = _weight((h, h))
        if bias:
            out[f"{prefix}{g}BiasVector"] = _weight((h,))
    if peep:
        out.update({f"{prefix}{n}": _weight((h,)) for n in _PEEP})
    return out


def _draw_lstm(prefixes: tuple[str, ...], acts: tuple[str, ...]) -> Any:
    both = len(prefixes) == 2

    def draw(d: Draw) -> dict[str, Any]:
        out, (_, b, i, h) = _basic(d)
        bias, peep = d.bool(), d.bool()
        for p in prefixes:
            out.update(_lstm_weights(d, p, i, h, bias, peep))
        for name, on in (
            ("hasBiasVectors", bias),
            ("hasPeepholeVectors", peep),
            ("sequenceOutput", d.bool()),
            ("forgetBias", bias and d.bool()),
            ("coupledInputAndForgetGate", d.chance(3)),
        ):
            if on or d.bool():
                out[f"params.{name}"] = on
        if d.bool():
            out["params.cellClipThreshold"] = d.pick((0.25, 0.5, 3.0))
        texts = ["sigmoid", "tanh", "tanh"] if d.bool() else [d.pick(_TEXTS) for _ in range(3)]
        out.update(dict.fromkeys(acts, texts))
        if not both:
            out["reverseInput"] = d.bool()
        return _ends(d, out, b, h, ("h", "c", "h_back", "c_back") if both else ("h", "c"), 5 if both else 3)

    return draw


def _lstm_entry(name: str, prefixes: tuple[str, ...], acts: tuple[str, ...], **more: Any) -> None:
    draw = _draw_lstm(prefixes, acts)
    op(
        name,
        unrolled,
        Spelling(
            x=Fn(_steps),
            w=_stacked(prefixes, _names(_LSTM, "WeightMatrix")),
            r=_stacked(prefixes, _names(_LSTM, "RecursionMatrix")),
            b=_stacked(prefixes, _names(_LSTM, "BiasVector"), "params.hasBiasVectors", 1),
            p=_stacked(prefixes, _PEEP, "params.hasPeepholeVectors"),
            activations=_alike(*acts),
            cell_clip=Fn(lambda c: float(c.attr("params.cellClipThreshold") or 50.0)),
            coupled=Fn(lambda c: bool(c.attr("params.coupledInputAndForgetGate"))),
            out=lambda c, r: _shaped(c, r[0], r[1:], c.attr("params.sequenceOutput"), len(prefixes)),
        ),
        Sampling(draw),
        Checks(
            breaks={
                **_breaks(draw, "h", "c", *(("h_back", "c_back") if len(prefixes) == 2 else ())),
                **({"directions-alike": _turned(draw)} if len(acts) == 2 else {}),
            },
            ambiguous=_ones_alone,
        ),
        **more,
    )


_lstm_entry(
    "uniDirectionalLSTM",
    ("weightParams.",),
    ("activations",),
    h0=_state("h"),
    c0=_state("c"),
    reverse="reverseInput",
    fixed={"cell": "lstm"},
)
_lstm_entry(
    "biDirectionalLSTM",
    ("weightParams.0.", "weightParams.1."),
    ("activationsForwardLSTM", "activationsBackwardLSTM"),
    h0=_state("h", "h_back"),
    c0=_state("c", "c_back"),
    fixed={"cell": "lstm", "reverse": False},
)
