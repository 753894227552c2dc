"""Recurrent layers: one bias per direction, gates in MIL's order, directions side by side in states and results."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.declare import Call, Checks, Context, Draw, Fn, Sampling, Spelling, T, Tolerance, composed
from suites.mil import op
from suites.mil.codecs import maybe, need
from suites.semantics import recurrent as s

_ACTIVATIONS = {"linear": "affine", "sigmoid_hard": "hard_sigmoid"}
# of gru, whose page lists none.  Parameters of an activation are the defaults of the op of its name (sigmoid_hard
# iOS15: 0.2 and 0.5; scaled_tanh iOS15: 1 and 1)
_UNLISTED = ("hard_sigmoid", "linear", "relu", "scaled_tanh", "sigmoid", "tanh")


def _pair(call: Call, name: str) -> list[np.ndarray] | None:
    """A parameter of the forward direction, and of the backward one where both run."""
    v = call.inputs.get(name)
    if call.attr("direction", "forward") != "bidirectional":
        return None if v is None else [v]
    back = call.inputs.get(f"{name}_back")
    need(back is not None or not name.startswith("weight"), "back-weights-given", f"{name}_back")
    if v is None and back is None:
        return None
    return [np.zeros_like(back) if v is None else v, np.zeros_like(v) if back is None else back]


def _stack(name: str) -> Fn:
    def decode(call: Call) -> Any:
        v = _pair(call, name)
        return None if v is None else np.stack(v)

    return Fn(decode)


def _bias(call: Call) -> Any:
    v = _pair(call, "bias")
    return None if v is None else s.split_bias(v)


def _gru_bias(call: Call) -> Any:
    """iOS 18 may give the input side a bias of its own."""
    hidden, given = call.inputs.get("bias"), call.inputs.get("input_bias")
    if hidden is None and given is None:
        return None
    like: Any = hidden if hidden is not None else given
    zero = np.zeros_like(like)
    if "input_bias" not in call.version.slots_of_schema:
        return s.split_bias([like])
    return np.concatenate([zero if given is None else given, zero if hidden is None else hidden])[None]


def _peephole(call: Call) -> Any:
    """input, forget, output -> input, output, forget."""
    v = _pair(call, "peephole")
    if v is None:
        return None
    out = []
    for p in v:
        i, f, o = np.split(p, 3)
        out.append(np.concatenate([i, o, f]))
    return np.stack(out)


def _state(name: str) -> Fn:
    """[b, dirs * h] -> [dirs, b, h]."""

    def decode(call: Call) -> Any:
        v = call.inputs[name]
        n = 2 if call.attr("direction", "forward") == "bidirectional" else 1
        return v.reshape(v.shape[0], n, v.shape[1] // n).transpose(1, 0, 2)

    return Fn(decode)


def _activations(*names: tuple[str, str]) -> Fn:
    def decode(call: Call) -> Any:
        each = [call.attr(n, default) for n, default in names]
        count = 2 if call.attr("direction", "forward") == "bidirectional" else 1
        return tuple(_ACTIVATIONS.get(a, a) for a in each) * count

    return Fn(decode)


def _arrange(results: list[Any], whole: bool, turned: bool) -> list[Any]:
    """Y [t, dirs, b, h] and states [dirs, b, h] with the directions side by side; Y is the last step unless
    ``whole``.  turned: a reversed sequence comes out in the order of the steps, as the NeuralNetwork layer that it is
    lowered to is "applied to the reversed input sequence" (the other order stands in the ledger).
    """
    y, *states = results
    y = y[::-1] if turned else y
    flat = [np.concatenate(list(v), -1) for v in states]
    return [np.concatenate([y[:, k] for k in range(y.shape[1])], -1) if whole else flat[0][None], *flat]


def _results(call: Call, results: list[Any]) -> list[Any]:
    return _arrange(results, bool(call.attr("output_sequence", False)), call.attr("direction", "forward") == "reverse")


def _errors(meaning: Any, outputs: int) -> tuple[Tolerance, ...]:
    """The bounds of the general form, laid out as MIL lays out the results."""

    def of_output(i: int) -> Tolerance:
        def bound(ctx: Context) -> Any:
            plain = meaning.fn(**ctx.inputs, **ctx.params)
            each = []
            for k, wide in enumerate(plain):
                inner = Context(
                    ctx.inputs, ctx.params, np.asarray(wide), ctx.out, dims=ctx.dims, acc=ctx.acc, shared=ctx.shared
                )
                each.append(np.broadcast_to(meaning.error_of(k).bound(inner), np.shape(wide)))
            whole, turned = i > 0 or ctx.wide.shape[0] == plain[0].shape[0], ctx.params["direction"] == "reverse"
            return _arrange(each, whole, turned)[i]

        return composed(bound, "running error analysis through all steps")

    return tuple(of_output(i) for i in range(outputs))


def _draw(cell: str, gates: int) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        t, b, i, h = d.int(1, 4), d.dim(1, 3), d.dim(1, 4), d.dim(1, 4)
        if d.empty or d.chance(16):
            t, b, i, h = s.extreme_sizes(d)
        directions = ("forward", "reverse", "bidirectional") if cell == "lstm" else ("forward", "reverse")
        direction = d.pick(directions)
        n = 2 if direction == "bidirectional" else 1
        if d.chance(32):  # a sum that f16 does not count
            i, h = 700, 1
        if d.chance(10):  # states as large as weights
            h = d.int(1, 2)
            b, i = gates * h, n * h
        plain = cell == "gru" and d.bool()  # one step from zero: where the reset gate acts makes no difference
        if plain:
            t = 1
        elif cell == "gru" and d.bool():
            h = 1  # nor does it for a single unit
        out: dict[str, Any] = {"x": T((t, b, i)), "initial_h": T((b, n * h), recipe="ints:0:0" if plain else None)}
        if cell == "lstm":
            out["initial_c"] = T((b, n * h))
        unused = cell == "lstm" and n == 1 and d.chance(4)  # of the other direction, where there is but one
        backs = ("", "_back") if n == 2 or unused else ("",)
        for back in backs:
            for name, size in (("weight_ih", i), ("weight_hh", h)):
                if not unused or not back or d.bool():
                    out[name + back] = T((gates * h, size))
        for name, size in (("bias", gates * h), ("peephole", 3 * h)):
            if name == "bias" or cell == "lstm":
                both = d.bool()
                for back in backs:
                    if d.bool() if unused else both and (n == 1 or not d.chance(4)):  # either direction may do without
                        out[name + back] = T((size,))
        if "input_bias" in d.version.slots_of_schema and d.bool():
            out["input_bias"] = T((gates * h,))
        maybe(d, out, "direction", direction, "forward")
        maybe(d, out, "output_sequence", d.bool(), False)
        for name in ("recurrent_activation", "cell_activation", "activation"):
            if name in d.version.schema.attrs and d.chance(3):
                out[name] = d.pick(d.version.schema.attrs[name].enum or _UNLISTED)
        if "reset_after" in d.version.schema.attrs and d.bool():
            out["reset_after"] = d.bool()
        if cell == "lstm" and d.chance(4):
            out["clip"] = d.pick((0.25, 0.5, 1.0, 50.0))
        return out

    return draw


def _break(gates: int, cell: str) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        i, h = 2, d.int(2, 4)
        out: dict[str, Any] = {
            "x": T((2, 1, i)),
            "initial_h": T((1, h)),
            "weight_ih": T((gates * h, i)),
            "weight_hh": T((gates * h, h + 1)),
        }
        return {**out, "initial_c": T((1, h))} if cell == "lstm" else out

    return draw


def _break_back(d: Draw) -> dict[str, Any]:
    """ "Must be provided for bidirectional LSTM"."""
    i, h = 2, d.int(1, 3)
    weights = {f"weight_{n}{back}": T((4 * h, i if n == "ih" else h)) for n in ("ih", "hh") for back in ("", "_back")}
    weights.pop(d.pick(("weight_ih_back", "weight_hh_back")))
    states = {name: T((1, 2 * h)) for name in ("initial_h", "initial_c")}
    return {"x": T((2, 1, i)), **states, **weights, "direction": "bidirectional"}


def _sized(text: str, gates: int) -> Any:
    """A pattern in which {h} is the hidden size, {g} all gates of it and {n} one of each direction."""

    def pattern(call: Call) -> str:
        h = (call.inputs["weight_hh"].shape or (0,))[-1]
        n = 2 if call.attr("direction", "forward") == "bidirectional" else 1
        return text.format(h=h, g=gates * h, n=n * h, p=3 * h)

    return pattern


def _stated(gates: int, backs: tuple[str, ...] = ("",)) -> dict[str, Any]:
    """The shapes as the page of each op states them."""
    whole = {"x": "s b i", "initial_h": _sized("b {n}", gates), "initial_c": _sized("b {n}", gates)}
    parts = {"weight_ih": "{g} i", "weight_hh": "{g} {h}", "bias": "{g}", "input_bias": "{g}", "peephole": "{p}"}
    return whole | {name + back: _sized(text, gates) for name, text in parts.items() for back in backs}


_DATA = ("unit", "small", "uniform:-2:2")
_COMMON = (
    Spelling(
        w=_stack("weight_ih"),
        r=_stack("weight_hh"),
        h0=_state("initial_h"),
        lengths=Fn(lambda c: None),
        activation_alpha=Fn(lambda c: None),
        activation_beta=Fn(lambda c: None),
        steps_first=Fn(lambda c: True),
        out=_results,
    ),
    Sampling(data=_DATA),
)
_REC = ("recurrent_activation", "sigmoid")
op(
    "lstm",
    s.lstm,
    *_COMMON,
    Sampling(_draw("lstm", 4)),
    Checks(
        error=_errors(s.lstm, 3),
        breaks={"gates-agree": _break(4, "lstm"), "back-weights-given": _break_back},
        stated=_stated(4, ("", "_back")),
    ),
    b=Fn(_bias),
    c0=_state("initial_c"),
    p=Fn(_peephole),
    coupled=Fn(lambda c: False),
    gates=Fn(lambda c: "ifoc"),
    clip=Fn(lambda c: None),
    cell_clip="clip",
    activations=_activations(_REC, ("cell_activation", "tanh"), ("activation", "tanh")),
)
op(
    "gru",
    s.gru,
    *_COMMON,
    Sampling(_draw("gru", 3)),
    Checks(error=_errors(s.gru, 2), breaks={"gates-agree": _break(3, "gru")}, stated=_stated(3)),
    b=Fn(_gru_bias),
    gates=Fn(lambda c: "rhz"),
    clip=Fn(lambda c: None),
    reset_after=Fn(lambda c: bool(c.attr("reset_after", False))),
    activations=_activations(_REC, ("activation", "tanh")),
)
op(
    "rnn",
    s.rnn,
    *_COMMON,
    Sampling(_draw("rnn", 1)),
    Checks(error=_errors(s.rnn, 2), breaks={"gates-agree": _break(1, "rnn")}, stated=_stated(1)),
    b=Fn(_bias),
    clip=Fn(lambda c: None),
    activations=_activations(("activation", "tanh")),
)
