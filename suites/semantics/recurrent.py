"""Recurrent layers: LSTM, GRU and the simple one, in ONNX's general form (other forms map onto it)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import I32, float_max, of
from harness.core.errors import RuleError
from harness.declare import (
    Choice,
    Flag,
    Float,
    Int,
    Real,
    Reals,
    Semantics,
    Strings,
    T,
    composed,
    first_of,
    semantics,
    underspecified,
)
from harness.generate.draw import Draw
from harness.tolerance import Context
from suites.semantics.bounds import quiet, tiny
from suites.semantics.drawing import given, param
from suites.semantics.running import Running

Array = np.ndarray

DIRECTIONS = ("forward", "reverse", "bidirectional")
# name -> (alpha, beta) when not given.  Source: ONNX LSTM-14 "same as of corresponding ONNX operators"
DEFAULTS = {
    "affine": (1.0, 0.0),
    "leaky_relu": (0.01, 0.0),
    "thresholded_relu": (1.0, 0.0),
    "scaled_tanh": (1.0, 1.0),
    "hard_sigmoid": (0.2, 0.5),
    "elu": (1.0, 0.0),
}
_ORDER = {"lstm": "iofc", "gru": "zrh", "rnn": "i"}
_NAMED = {"lstm": ("sigmoid", "tanh", "tanh"), "gru": ("sigmoid", "tanh"), "rnn": ("tanh",)}
_PLAIN = {name.replace("_", ""): name for name in native.ACTIVATIONS}

FUNCTIONS = {
    "affine": lambda x, a, b: a * x + b,
    "relu": lambda x, a, b: np.maximum(x, 0),
    "tanh": lambda x, a, b: np.tanh(x),
    "sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)),
    "leaky_relu": lambda x, a, b: np.where(x < 0, a * x, x),
    "thresholded_relu": lambda x, a, b: np.where(x > a, x, 0),
    "scaled_tanh": lambda x, a, b: a * np.tanh(b * x),
    "hard_sigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "elu": lambda x, a, b: np.where(x < 0, a * np.expm1(x), x),
    "softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "softplus": lambda x, a, b: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
}


def functions(cell: str, count: int, names: Object, alphas: Object, betas: Object) -> list[tuple[str, float, float]]:
    """(name, alpha, beta) for every activation of every direction; given alphas and betas are handed out in order to
    those that take one.  Raises RuleError "activations-known", "activations-count"."""
    per = _NAMED[cell]
    chosen = list(names) if names else list(per) * count
    if len(chosen) != len(per) * count:
        raise RuleError("activations-count", f"{len(chosen)} activations, expected {len(per) * count}")
    left_a, left_b = list(alphas or ()), list(betas or ())
    out = []
    for raw in chosen:
        name = _PLAIN.get(raw.lower().replace("_", ""))
        if name is None:
            raise RuleError("activations-known", f"{raw!r}, expected one of {' '.join(native.ACTIVATIONS)}")
        a, b = DEFAULTS.get(name, (0.0, 0.0))
        if name in DEFAULTS and left_a:
            a = left_a.pop(0)
        if name in ("affine", "scaled_tanh", "hard_sigmoid") and left_b:
            b = left_b.pop(0)
        out.append((name, float(a), float(b)))
    return out


def ordered(v: Object, cell: str, gates: str) -> Object:
    """Blocks of gates [..., g * h, *] brought from the order ``gates`` into ONNX's; the axis is the first but
    directions."""
    want = _ORDER[cell]
    if v is None or gates == want:
        return v
    blocks = np.split(v, len(want), axis=0)
    return np.concatenate([blocks[gates.index(c)] for c in want], axis=0)


def _wide(v: Object) -> Object:
    return None if v is None else np.asarray(v, np.float64)


def layer(
    cell: str,
    x: Array,
    w: Array,
    r: Array,
    b: Object,
    lengths: Object,
    h0: Object,
    c0: Object = None,
    p: Object = None,
    *,
    direction: str,
    activations: Object,
    alphas: Object,
    betas: Object,
    clip: Object,
    coupled: bool = False,
    reset_after: bool = False,
    steps_first: bool = True,
    gates: str = "",
    cell_clip: Object = None,
) -> list[Array]:
    """Y [t, dirs, b, h], last h and (lstm) last c [dirs, b, h], in f64; batch before steps and directions when not
    ``steps_first``.

    Raises RuleError "directions-agree", "gates-agree", "states-agree", "lengths-in-range" and those of ``functions``.
    """
    if not steps_first:
        x = np.swapaxes(x, 0, 1)
        h0, c0 = (None if v is None else np.swapaxes(v, 0, 1) for v in (h0, c0))
    count = 2 if direction == "bidirectional" else 1
    g = len(_ORDER[cell])
    t, batch, size = x.shape
    h = r.shape[-1]
    if w.shape[0] != count or r.shape[0] != count:
        raise RuleError("directions-agree", f"w {list(w.shape)}, r {list(r.shape)} for {direction}")
    if w.shape[1:] != (g * h, size) or r.shape[1] != g * h:
        raise RuleError("gates-agree", f"w {list(w.shape)}, r {list(r.shape)} for {g} gates, {size} inputs")
    wanted = (
        ("b", b, (count, 2 * g * h)),
        ("p", p, (count, 3 * h)),
        ("h0", h0, (count, batch, h)),
        ("c0", c0, (count, batch, h)),
    )
    for name, v, want in wanted:
        if v is not None and np.shape(v) != want:
            raise RuleError("states-agree", f"{name} {list(np.shape(v))}, expected {list(want)}")
    if lengths is not None and (lengths.shape != (batch,) or ((lengths < 0) | (lengths > t)).any()):
        raise RuleError("lengths-in-range", f"{lengths.tolist()} for {batch} sequences of at most {t}")
    acts = functions(cell, count, activations, alphas, betas)
    if not h:
        return _of_nothing(cell, t, count, batch, steps_first)
    order = gates or _ORDER[cell]
    if cell_clip:
        given = {"x": x, "w": w, "r": r, "b": b, "lengths": lengths, "h0": h0, "c0": c0, "p": p}
        params = {
            "direction": direction,
            "activations": activations,
            "activation_alpha": alphas,
            "activation_beta": betas,
            "clip": clip,
            "coupled": coupled,
            "gates": gates,
            "cell_clip": cell_clip,
        }
        with np.errstate(all="ignore"):
            wide = _running(cell, given, params, 0.0, 0.0)
        y, *last = (v.value for v in wide)
        return [np.moveaxis(y, 2, 0), *(np.swapaxes(v, 0, 1) for v in last)] if not steps_first else [y, *last]
    out: list[Object] = []
    for d in range(count):
        bias_w, bias_r = (None, None) if b is None else np.split(np.asarray(b[d]), 2)
        peep = None if p is None else p[d]
        out.append(
            native.recurrent(
                cell,
                x,
                ordered(w[d], cell, order),
                ordered(r[d], cell, order),
                bias_w=ordered(bias_w, cell, order),
                bias_r=ordered(bias_r, cell, order),
                peephole=peep,
                lengths=None if lengths is None else [int(n) for n in lengths],
                h0=None if h0 is None else h0[d],
                c0=None if c0 is None else c0[d],
                activations=acts[d * len(_NAMED[cell]) : (d + 1) * len(_NAMED[cell])],
                clip=float(clip or 0),
                coupled=coupled,
                reset_after=reset_after,
                backward=direction == "reverse" or d == 1,
            )
        )
    y = np.stack([o[0] for o in out], 1)
    last = [np.stack([o[k] for o in out]) for k in ((1, 2) if cell == "lstm" else (1,))]
    if not steps_first:
        return [np.moveaxis(y, 2, 0), *(np.swapaxes(v, 0, 1) for v in last)]
    return [y, *last]


def _of_nothing(cell: str, t: int, count: int, batch: int, steps_first: bool) -> list[Array]:
    """What a layer without hidden elements gives, whatever the steps, which may be as many as 32 bits count."""
    y, end = (t, count, batch, 0), (count, batch, 0)
    if not steps_first:
        y, end = (batch, t, count, 0), (batch, count, 0)
    return [np.zeros(y), *[np.zeros(end)] * (2 if cell == "lstm" else 1)]


# -- how far an implementation may be


def _act(x: Running, how: tuple[str, float, float], clip: float) -> Running:
    name, a, b = how
    x = x.clipped(clip) if clip else x
    extra = x.u * (np.abs(a * x.value) + abs(b)) * 2 if name in ("affine", "hard_sigmoid") else 0.0
    return x.through(lambda v: FUNCTIONS[name](v, a, b), extra=extra)


def cell_step(
    cell: str,
    px: Running,
    h: Running,
    c: Running | None,
    r: Array,
    br: Array,
    p: Object,
    acts: list,
    clip: float,
    coupled: bool,
    reset_after: bool,
    cell_clip: float = 0.0,
) -> tuple[Running, Running | None]:
    """One step of a cell, each value with its bound, of state h (and c of an LSTM), [b, n].

    cell: "rnn", "gru" or "lstm".  px: the product of the input with its weights, and their biases.  r, br: recurrent
    weights and biases of all gates.  p: peepholes.  acts: activations in the order of the gates.  clip: limit of what
    enters them; cell_clip: of c.  coupled: f is 1 - i.  Returns the new h and c."""
    n = r.shape[1]
    hr = h.dot(r.T)

    def part(k: int) -> slice:
        return slice(k * n, (k + 1) * n)

    if cell == "rnn":
        return _act(px + hr + br, acts[0], clip), None
    if cell == "gru":
        z = _act(px[:, part(0)] + hr[:, part(0)] + br[part(0)], acts[0], clip)
        reset = _act(px[:, part(1)] + hr[:, part(1)] + br[part(1)], acts[0], clip)
        if reset_after:
            inner = px[:, part(2)] + reset * (hr[:, part(2)] + br[part(2)])
        else:
            inner = px[:, part(2)] + (reset * h).dot(r[part(2)].T) + br[part(2)]
        return (z.of(np.ones_like(z.value)) - z) * _act(inner, acts[1], clip) + z * h, None
    assert c is not None
    gate = [px[:, part(k)] + hr[:, part(k)] + br[part(k)] for k in range(4)]
    peep = [0.0] * 3 if p is None else [p[part(k)] for k in range(3)]
    i = _act(gate[0] + c * peep[0], acts[0], clip)
    f = i.of(np.ones_like(i.value)) - i if coupled else _act(gate[2] + c * peep[2], acts[0], clip)
    fresh = f * c + i * _act(gate[3], acts[1], clip)
    fresh = fresh.clipped(cell_clip) if cell_clip else fresh
    o = _act(gate[1] + fresh * peep[1], acts[0], clip)
    return o * _act(fresh, acts[2], 0), fresh


def _running(cell: str, i: Mapping[str, Object], q: Mapping[str, Object], u: float, low: float) -> list[Running]:
    """Y, the last h and the last c with how far they may be, as ``layer`` lays them out: all sequences of a batch step
    together, one that has ended keeps its state.  u, low: unit roundoff and what underflow may cost."""
    steps_first = q.get("steps_first", True)
    laid: list[Object] = [i["x"], i.get("h0"), i.get("c0")]
    if not steps_first:
        laid = [None if v is None else np.swapaxes(v, 0, 1) for v in laid]
    x, h0, c0 = laid
    count = i["w"].shape[0]
    acts = functions(cell, count, q["activations"], q["activation_alpha"], q["activation_beta"])
    per, order = len(_NAMED[cell]), q.get("gates") or _ORDER[cell]
    t, batch, _ = x.shape
    n = i["r"].shape[-1]
    if not n:
        return [Running(v, u, low) for v in _of_nothing(cell, t, count, batch, steps_first)]
    lengths = i.get("lengths")
    lengths = np.full(batch, t) if lengths is None else np.asarray(lengths, np.int64)
    clip, coupled, reset_after = float(q["clip"] or 0), bool(q.get("coupled")), bool(q.get("reset_after"))
    cell_clip = float(q.get("cell_clip") or 0)
    ys, hs, cs = [], [], []
    for d in range(count):
        w, r = (ordered(_wide(i[k][d]), cell, order) for k in ("w", "r"))
        b = _wide(i["b"][d]) if i.get("b") is not None else np.zeros(2 * w.shape[0])
        bw, br = (ordered(v, cell, order) for v in np.split(b, 2))
        p = None if i.get("p") is None else _wide(i["p"][d])
        zero = np.zeros((batch, n))
        h, c = (Running(zero if s is None else s[d], u, low) for s in (h0, c0))
        entering = Running(x, u, low).dot(w.T) + bw
        backward = q["direction"] == "reverse" or d == 1
        y = Running(np.zeros((t, batch, n)), u, low, np.zeros((t, batch, n)))
        for s in range(int(np.max(lengths, initial=0))):
            live = np.flatnonzero(lengths > s)
            at = lengths[live] - 1 - s if backward else np.full(live.size, s)
            new_h, new_c = cell_step(
                cell,
                entering[at, live],
                h[live],
                c[live],
                r,
                br,
                p,
                acts[d * per : (d + 1) * per],
                clip,
                coupled,
                reset_after,
                cell_clip,
            )
            y.value[at, live], y.error[at, live] = new_h.value, new_h.error
            h = h.replaced(live, new_h)
            if new_c is not None:
                c = c.replaced(live, new_c)
        ys.append(y)
        hs.append(h)
        cs.append(c)

    def stacked(parts: list[Running], axis: int) -> Running:
        return Running(np.stack([v.value for v in parts], axis), u, low, np.stack([v.error for v in parts], axis))

    y, *ends = stacked(ys, 1), stacked(hs, 0), stacked(cs, 0)
    if steps_first:
        return [y, *ends]
    return [
        Running(np.moveaxis(v.value, *to), u, low, np.moveaxis(v.error, *to))
        for v, to in ((y, (2, 0)), *((e, (0, 1)) for e in ends))
    ]


def running_bound(cell: str, output: int) -> Object:
    """The bound of an output (y, last h, last c) of a whole sequence."""

    @quiet
    def bound(ctx: Context) -> Array:
        """running error analysis of the equations: gamma(K) per product, six units per activation, through all steps"""
        all_ = ctx.once("recurrent", lambda: _running(cell, ctx.inputs, ctx.params, ctx.acc_u, tiny(ctx)))
        return all_[output].error.reshape(ctx.wide.shape) + ctx.ulp

    return bound


def _errors(cell: str) -> tuple:
    return tuple(composed(running_bound(cell, k)) for k in range(3 if cell == "lstm" else 2))


def _jumps(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """ThresholdedRelu jumps at alpha: ONNX says >= in the layer's list and > in the operator."""
    names = [n.lower().replace("_", "") for n in params["activations"] or ()]
    return "ThresholdedRelu at its threshold" if "thresholdedrelu" in names else None


def _runs_over(cell: str) -> Object:
    """States that the type does not hold, or whose products with the weights it does not hold: what infinities then
    meet depends on how the equations are grouped.  Open is what comes of that sequence in that direction."""

    def check(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
        meaning = {"lstm": lstm, "gru": gru, "rnn": rnn}[cell]
        tensors = {k: v for k, v in inputs.items() if v is not None}
        if not inputs["r"].size:
            return None  # no state, over any number of steps
        if not all(np.isfinite(np.asarray(v, np.float64)).all() for v in tensors.values()):
            return None
        with np.errstate(all="ignore"):
            found = [np.asarray(v) for v in meaning(**tensors, **params)]
            steps_first = params.get("steps_first", True)
            began = inputs.get("h0")
            states = found if began is None else [*found, began.astype(np.float64)]
            y, *ends = states if steps_first else (np.moveaxis(v, 0, -2) for v in states)  # dirs, b, h last
            largest = np.max([np.abs(v).max(-1, initial=0.0) for v in (*y, *ends)], 0)
            weights = np.abs(inputs["r"].astype(np.float64)).sum(-1).max(-1, initial=0.0)
            over = ~(largest * (1.0 + weights[:, None]) < float_max(of(inputs["x"])))[..., None]
        last = over if steps_first else np.swapaxes(over, 0, 1)
        rows = over if steps_first else last[:, None]
        at = tuple(np.broadcast_to(m, v.shape) for m, v in zip((rows, *[last] * (len(found) - 1)), found))
        return underspecified("a state or its product beyond the range of the type", at)

    return check


# -- draws


def draw_layer(d: Draw, cell: str) -> dict[str, Object]:
    """Sizes, optional inputs and parameters of a layer in ONNX's form."""
    direction = param(d, "direction", lambda: d.pick(DIRECTIONS))
    steps_first = param(d, "steps_first", d.bool)
    count, g = (2 if direction == "bidirectional" else 1), len(_ORDER[cell])
    t, b, i, h = d.extent(1, 5), d.extent(1, 4), d.extent(1, 6), d.extent(1, 5)
    if d.chance(12):
        t, i, h = d.pick((1, 9, 17)), d.pick((1, 17)), d.pick((1, 9, 16))
    elif d.empty and not d.breaking and d.chance(3):
        t, b, i, h = 2**31 - 1 if d.chance(6) else d.int(1, 3), d.int(1, 2), 0, 0
    elif d.empty or d.chance(16):
        t, b, i, h = extreme_sizes(d)
    elif d.chance(16) and not d.breaking:
        t, b, i, h = _alike_sizes(d, count, g)
    state = (count, b, h) if steps_first else (b, count, h)
    out: dict[str, Object] = {
        "x": T((t, b, i) if steps_first else (b, t, i)),
        "w": T((count, g * h, i)),
        "r": T((count, g * h, h)),
        "direction": direction,
        "steps_first": steps_first,
        "clip": param(d, "clip", lambda: d.pick((None, None, 0.5, 3.0))),
    }
    if given(d, "b"):
        out["b"] = T((count, 2 * g * h))
    if given(d, "lengths"):
        lengths = [t if t > MOST_STEPS else d.int(0 if d.chance(8) else min(1, t), t) for _ in range(b)]
        out["lengths"] = T((b,), values=lengths, dtype=I32)
    if given(d, "h0"):
        out["h0"] = T(state)
    if cell == "lstm":
        if given(d, "c0"):
            out["c0"] = T(state)
        if given(d, "p"):
            out["p"] = T((count, 3 * h))
        out["coupled"] = param(d, "coupled", d.bool)
    if cell == "gru":
        out["reset_after"] = param(d, "reset_after", d.bool)
    out |= _draw_activations(d, cell, count)
    return out


MOST_STEPS = 1 << 16  # beyond it no state has elements


def _alike_sizes(d: Draw, count: int, g: int) -> tuple[int, int, int, int]:
    """Steps, batch, inputs and hidden size with which operands have one shape, or a vector of weights is long."""
    if count == 2 and d.chance(6):
        return 1, 1, d.int(1, 2), 342 if g == 4 else 513
    h = d.int(1, 3)
    return count, g * h, h, h


_LONG = ((17, 257), (17, 257, 2049), (17, 257), (65, 257))  # steps, batch, inputs, hidden: beyond a block of any kernel


def extreme_sizes(d: Draw) -> tuple[int, int, int, int]:
    """Steps, batch, inputs and hidden size, one of them long, or 0 where an instance may be empty."""
    sizes = [d.int(1, 2) for _ in range(4)]
    at = d.int(0, 3)
    sizes[at] = 0 if d.empty else d.pick(_LONG[at])
    t, b, i, h = sizes
    return t, b, i, h


def _draw_activations(d: Draw, cell: str, count: int) -> dict[str, Object]:
    per = len(_NAMED[cell]) * count
    names = param(
        d,
        "activations",
        lambda: (
            None
            if d.bool()
            else tuple(
                d.pick(
                    (
                        "Sigmoid",
                        "Tanh",
                        "Relu",
                        "HardSigmoid",
                        "LeakyRelu",
                        "Affine",
                        "ScaledTanh",
                        "Elu",
                        "Softsign",
                        "Softplus",
                    )
                )
                for _ in range(per)
            )
        ),
    )
    alphas = betas = None
    if names and d.bool():
        takers = [n for n in names if _PLAIN.get(n.lower().replace("_", ""), "") in DEFAULTS]
        if takers:
            alphas = param(d, "activation_alpha", lambda: tuple(d.pick((0.5, 0.25, 1.0)) for _ in takers))
            both = [n for n in takers if n in ("Affine", "ScaledTanh", "HardSigmoid")]
            betas = param(d, "activation_beta", lambda: tuple(d.pick((0.5, 0.25)) for _ in both) or None)
    return {"activations": names, "activation_alpha": alphas, "activation_beta": betas}


_DATA = {
    "x": ("unit", "small", "uniform:-2:2", "uniform:-60:60", "wide"),
    "w": ("unit", "uniform:-1:1", "small", "wide"),
    "r": ("unit", "uniform:-1:1", "small", "wide"),
    "b": ("unit", "small", "wide"),
    "h0": ("unit", "small", "wide"),
    "c0": ("unit", "small", "wide"),
    "p": ("unit", "small"),
}


def _cell(source: str) -> Callable[[Callable[..., Object]], Semantics]:
    """A meaning named after its cell, with what all three have: bounds, data, draws, ambiguities, what breaks rules."""

    def make(fn: Callable[..., Object]) -> Semantics:
        cell = fn.__name__
        meaning = semantics(
            error=_errors(cell),
            source=source,
            data=_DATA,
            draw=lambda d: draw_layer(d, cell),
            ambiguous=first_of(_jumps, _runs_over(cell)),
        )(fn)
        meaning.breaks("gates-agree")(lambda d: _wider(draw_layer(d, cell)))
        meaning.breaks("states-agree")(lambda d: _grown(d, draw_layer(d, cell)))
        return meaning

    return make


@_cell(source="ONNX LSTM-1, -7, -14, -22; MIL lstm iOS15 (gates ifoc)")
def lstm(
    x: Float[Array, "t b i"],
    w: Float[Array, "e g i"],
    r: Float[Array, "e g h"],
    b: Float[Array, "e q"] | None = None,
    lengths: Int[Array, "*l"] | None = None,
    h0: Float[Array, "*s"] | None = None,
    c0: Float[Array, "*u"] | None = None,
    p: Float[Array, "e v"] | None = None,
    *,
    direction: Choice[str, DIRECTIONS] = "forward",
    activations: Strings | None = None,
    activation_alpha: Reals | None = None,
    activation_beta: Reals | None = None,
    clip: Real | None = None,
    coupled: Flag = False,
    steps_first: Flag = True,
    gates: Choice[str, "iofc", "ifoc", "ifco"] = "iofc",
    cell_clip: Real | None = None,
) -> list[Array]:
    """Y [t, dirs, b, h], last h and last c [dirs, b, h].

    i o f c = f(x W + h R + P c + b), C = f C + i c, H = o h(C); f g h are ``activations`` (sigmoid tanh tanh).
    b holds the biases of W, then of R.  coupled: f = 1 - i.  lengths: steps beyond give 0 and leave the states.
    clip bounds what enters f and g, cell_clip the state C before it leaves the step.  steps_first: x [t, b, i], else
    batch comes first everywhere.
    Raises RuleError as ``layer`` does.
    """
    return layer(
        "lstm",
        x,
        w,
        r,
        b,
        lengths,
        h0,
        c0,
        p,
        direction=direction,
        activations=activations,
        alphas=activation_alpha,
        betas=activation_beta,
        clip=clip,
        coupled=bool(coupled),
        steps_first=bool(steps_first),
        gates=gates,
        cell_clip=cell_clip,
    )


@_cell(source="ONNX GRU-1, -3, -7, -14, -22; MIL gru iOS15 (gates rhz, reset_after)")
def gru(
    x: Float[Array, "t b i"],
    w: Float[Array, "e g i"],
    r: Float[Array, "e g h"],
    b: Float[Array, "e q"] | None = None,
    lengths: Int[Array, "*l"] | None = None,
    h0: Float[Array, "*s"] | None = None,
    *,
    direction: Choice[str, DIRECTIONS] = "forward",
    activations: Strings | None = None,
    activation_alpha: Reals | None = None,
    activation_beta: Reals | None = None,
    clip: Real | None = None,
    reset_after: Flag = False,
    steps_first: Flag = True,
    gates: Choice[str, "zrh", "rzh", "rhz"] = "zrh",
) -> list[Array]:
    """Y [t, dirs, b, h] and last h [dirs, b, h]: H = (1 - z) ht + z H, ht = g(x W + (r H) R + b).

    reset_after: ht = g(x W + r (H R + rb) + wb).  The rest as ``lstm``.  Raises RuleError as ``layer`` does.
    """
    return layer(
        "gru",
        x,
        w,
        r,
        b,
        lengths,
        h0,
        direction=direction,
        activations=activations,
        alphas=activation_alpha,
        betas=activation_beta,
        clip=clip,
        reset_after=bool(reset_after),
        steps_first=bool(steps_first),
        gates=gates,
    )


@_cell(source="ONNX RNN-1, -7, -14, -22; MIL rnn iOS15")
def rnn(
    x: Float[Array, "t b i"],
    w: Float[Array, "e g i"],
    r: Float[Array, "e g h"],
    b: Float[Array, "e q"] | None = None,
    lengths: Int[Array, "*l"] | None = None,
    h0: Float[Array, "*s"] | None = None,
    *,
    direction: Choice[str, DIRECTIONS] = "forward",
    activations: Strings | None = None,
    activation_alpha: Reals | None = None,
    activation_beta: Reals | None = None,
    clip: Real | None = None,
    steps_first: Flag = True,
) -> list[Array]:
    """Y [t, dirs, b, h] and last h [dirs, b, h]: H = f(x W + H R + b).  The rest as ``lstm``."""
    return layer(
        "rnn",
        x,
        w,
        r,
        b,
        lengths,
        h0,
        direction=direction,
        activations=activations,
        alphas=activation_alpha,
        betas=activation_beta,
        clip=clip,
        steps_first=bool(steps_first),
    )


def _grown(d: Draw, v: dict[str, Object]) -> dict[str, Object] | None:
    """A bias, peephole or state of one element more, where one is given."""
    some = [n for n in ("b", "h0", "c0", "p") if n in v]
    if not some:
        return None
    name = d.pick(some)
    shape = v[name].shape
    return {**v, name: T((*shape[:-1], shape[-1] + 1))}


def _wider(v: dict[str, Object]) -> dict[str, Object]:
    e, g, i = v["w"].shape
    v["w"] = T((e, g, i + 1))
    return v


def split_bias(b: Sequence[Array]) -> Array:
    """A single bias per direction as ONNX's pair: it on the input side, zeros on the other."""
    return np.stack([np.concatenate([v, np.zeros_like(v)]) for v in b])
