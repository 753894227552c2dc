"""Layers of autoregressive models: rotary embedding, causal convolution with state, linear attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as Object

import numpy as np

from harness.core.dtypes import of
from harness.core.errors import RuleError
from harness.declare import (
    Choice,
    Context,
    Flag,
    Float,
    Int,
    Integer,
    Real,
    T,
    accumulates,
    composed,
    semantics,
    summed,
    underspecified,
)
from harness.generate.draw import Draw
from harness.tolerance import gamma
from suites.semantics.bounds import overflows

Array = np.ndarray


def _heads(x: Array, heads: int) -> Array:
    """[b, t, h * d] as [b, t, h, d]; raises RuleError "heads-divide"."""
    if heads < 1 or x.shape[2] % heads:
        raise RuleError("heads-divide", f"{x.shape[2]} channels for {heads} heads")
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads)


def _rotation_bound(ctx: Context) -> Array:
    """gamma(4) * (|x cos| + |x' sin|) + ulp: two products and a sum, either sign"""
    x, c, s = (np.abs(ctx.inputs[n]) for n in ("x", "cos", "sin"))
    scale = np.maximum(ctx.reevaluate(x=x, cos=c, sin=s), ctx.reevaluate(x=x, cos=c, sin=-s))
    return gamma(4, ctx.acc_u) * np.abs(scale) + ctx.ulp


@semantics(
    error=composed(_rotation_bound),
    source="ONNX RotaryEmbedding-23",
    data=("unit", "small", "uniform:-4:4", "uniform:-99:99"),
)
def rotary_embedding(
    x: Float[Array, "*a"],
    cos: Float[Array, "*b"],
    sin: Float[Array, "*c"],
    at: Int[Array, "n t"] | None = None,
    *,
    interleaved: Flag = False,
    size: Integer = 0,
    heads: Integer | None = None,
) -> Array:
    """Pairs of the first ``size`` (0: all) channels of each head turned by the angles of their position.

    x: [n, h, t, d], or [n, t, h * d] with ``heads``.  cos, sin: a table [positions, size / 2] looked up by ``at``, or
    [n, t, size / 2].  interleaved: pairs are neighbours, else the two halves.  Raises RuleError "heads-given",
    "heads-divide", "pairs", "positions-fit", "positions-in-range", "table-fits".
    """
    v = x.astype(np.float64)
    if x.ndim not in (3, 4):
        raise RuleError("ranks-agree", f"x {list(x.shape)}, expected 3 or 4 axes")
    if x.ndim == 3 and not heads:
        raise RuleError("heads-given", "three axes need the number of heads")
    v = v.transpose(0, 2, 1, 3) if x.ndim == 4 else _heads(v, heads or 0)
    size = size or v.shape[3]
    if size % 2 or not 0 <= size <= v.shape[3]:
        raise RuleError("pairs", f"{size} channels to turn, of {v.shape[3]}")
    if at is not None and at.shape != v.shape[:2]:
        raise RuleError("positions-fit", f"positions {list(at.shape)} for {list(v.shape[:2])} tokens")
    if cos.shape != sin.shape or cos.ndim != (3 if at is None else 2):
        raise RuleError("table-fits", f"tables {list(cos.shape)}, {list(sin.shape)}")
    if at is not None and at.size and not 0 <= at.min() <= at.max() < cos.shape[0]:
        raise RuleError("positions-in-range", f"positions {at.min()} to {at.max()} of {cos.shape[0]}")
    c, s = (t.astype(np.float64) if at is None else t.astype(np.float64)[at] for t in (cos, sin))
    want = (*v.shape[:2], size // 2)
    if c.shape != want:
        raise RuleError("table-fits", f"tables {list(cos.shape)}, {list(sin.shape)} for rotations {list(want)}")
    c, s = c[:, :, None], s[:, :, None]
    turned = v[..., :size]
    a, b = (turned[..., 0::2], turned[..., 1::2]) if interleaved else np.split(turned, 2, -1)
    re, im = c * a - s * b, s * a + c * b
    out = np.stack([re, im], -1).reshape(turned.shape) if interleaved else np.concatenate([re, im], -1)
    out = np.concatenate([out, v[..., size:]], -1)
    return out.transpose(0, 2, 1, 3) if x.ndim == 4 else out.reshape(x.shape)


@rotary_embedding.draw
def _draw_rotary(d: Draw) -> dict:
    n, t, h, half, rest = d.extent(1, 2), d.extent(1, 4), d.extent(1, 3), d.extent(1, 4), d.pick((0, 0, 2))
    if d.empty and not d.breaking:
        half, rest = (0, 0) if d.bool() else (half, rest)
        n = 0 if d.bool() else n
    elif d.chance(12) and not d.breaking:
        n, t, h, half = d.pick(((1, 17, 1, 130), (1, 130, 1, 17), (2, 1100, 1, 1), (300, 1, 1, 1)))
    flat = d.bool()
    width = 2 * half + rest
    out: dict[str, Object] = {
        "x": T((n, t, h * width) if flat else (n, h, t, width)),
        "interleaved": d.bool(),
        "size": 2 * half if rest or d.bool() else 0,
        "heads": h if flat or d.bool() else None,
    }
    if d.bool():
        positions = t + d.int(0, 5)
        if not half and d.bool():  # a table of more rows than an f32 counts, without a column
            last = [2**24 + d.int(0, 1) for _ in range(n * t)]
            empty = T((2**24 + 2, 0))
            return {**out, "cos": empty, "sin": empty, "at": T((n, t), values=last)}
        out |= {"cos": T((positions, half)), "sin": T((positions, half)), "at": T((n, t), f"ints:0:{positions - 1}")}
    else:
        out |= {"cos": T((n, t, half)), "sin": T((n, t, half))}
    return out


@rotary_embedding.breaks("heads-divide")
def _odd_heads(d: Draw) -> dict:
    """Five columns in two heads."""
    x = T((1, d.int(1, 2), 5))
    return {"x": x, "cos": T((1, x.shape[1], 1)), "sin": T((1, x.shape[1], 1)), "heads": 2}


@rotary_embedding.breaks("pairs")
def _odd_pairs(d: Draw) -> dict:
    """An odd number of channels to turn, or more of them than there are."""
    table = T((1, 2, 1))
    return {"x": T((1, 1, 2, 4)), "cos": table, "sin": table, "size": d.pick((3, 6))}


@rotary_embedding.breaks("positions-in-range")
def _no_position(d: Draw) -> dict:
    """A position behind the last row, or before the first."""
    table = T((3, 1))
    at = T((1, 2), values=[0, d.pick((3, 4, -1))])
    return {"x": T((1, 1, 2, 2)), "cos": table, "sin": table, "at": at}


@rotary_embedding.breaks("heads-given")
def _no_heads(d: Draw) -> dict | None:
    """Three axes without the number of heads."""
    out = _draw_rotary(d)
    return None if len(out["x"].shape) == 4 else {**out, "heads": None}


@rotary_embedding.breaks("table-fits")
def _short_table(d: Draw) -> dict:
    """A table of one column more than there are pairs to turn."""
    out = _draw_rotary(d)
    for name in ("cos", "sin"):
        t = out[name]
        out[name] = T((*t.shape[:-1], t.shape[-1] + 1))
    return out


@rotary_embedding.breaks("positions-fit")
def _other_positions(d: Draw) -> dict | None:
    """A position more than there are tokens."""
    out = _draw_rotary(d)
    if "at" not in out:
        return None
    n, t = out["at"].shape
    return {**out, "at": T((n, t + 1), out["at"].recipe)}


def _conv_bound(ctx: Context) -> Array:
    """gamma(k + 3) of |x||w| + |b|, and 8 roundings of the activation"""
    total = _conv_size(ctx.inputs, ctx.params)
    return gamma(ctx.inputs["w"].shape[2] + 3, ctx.acc_u) * 1.2 * total + 8 * ctx.acc_u * np.abs(ctx.wide) + ctx.ulp


def _conv_size(inputs: Mapping[str, Object], params: Mapping[str, Object]) -> Array:
    """|x||w| + |b|, which no partial sum exceeds"""
    i: dict[str, Object] = {k: None if v is None else np.abs(np.asarray(v, np.float64)) for k, v in inputs.items()}
    return _causal(i["x"], i["w"], i.get("b"), i.get("past"))[0]


def _causal(x: Array, w: Array, b: Object, past: Object) -> tuple[Array, Array]:
    k, length = w.shape[2], x.shape[2]
    if w.shape[:2] != (x.shape[1], 1):
        raise RuleError("kernel-fits", f"w {list(w.shape)} for {x.shape[1]} channels")
    if k < 1:
        raise RuleError("kernel-positive", f"w {list(w.shape)}")
    if past is not None and past.shape != (*x.shape[:2], k - 1):
        raise RuleError("state-fits", f"past {list(past.shape)}, expected {[*x.shape[:2], k - 1]}")
    before = np.zeros((*x.shape[:2], k - 1)) if past is None else past.astype(np.float64)
    whole = np.concatenate([before, x.astype(np.float64)], -1)
    y = sum(whole[:, :, j : j + length] * w[:, 0, j].astype(np.float64)[None, :, None] for j in range(k))
    if b is not None:
        y = y + b.astype(np.float64)[None, :, None]
    return y, whole[:, :, whole.shape[2] - (k - 1) :]


@semantics(
    error=(summed(_conv_bound, lambda ctx: _conv_size(ctx.inputs, ctx.params)), accumulates(0.0)),
    source="ONNX CausalConvWithState-27",
    ambiguous=overflows(_conv_size, 0),
    data=("unit", "small", "uniform:-4:4"),
)
def causal_conv(
    x: Float[Array, "n c t"],
    w: Float[Array, "c u k"],
    b: Float[Array, "c"] | None = None,
    past: Float[Array, "n c s"] | None = None,
    *,
    activation: Choice[str, "none", "silu", "swish"] = "none",
) -> tuple[Array, Array]:
    """Depthwise convolution over the past and the present, and the last k - 1 elements of what it saw.

    past: zeros if absent.  silu, swish: y * sigmoid(y).  Raises RuleError "kernel-fits", "kernel-positive",
    "state-fits".
    """
    y, state = _causal(x, w, b, past)
    if activation != "none":
        y = y / (1 + np.exp(-y))
    return y, state.astype(x.dtype)


@causal_conv.draw
def _draw_causal(d: Draw) -> dict:
    n, c, t, k = d.extent(1, 3), d.extent(1, 4), d.extent(1, 8), d.extent(1, 4)
    if d.empty and not d.breaking:
        n, c = d.pick(((0, c), (n, 0), (n, c)))
    elif d.chance(24) and not d.breaking:
        n, c, k = d.pick(((1, 17, 130), (1, 300, 9), (130, 1, 17), (1, 1, 300)))
    out = {"x": T((n, c, t)), "w": T((c, 1, k)), "activation": d.pick(("none", "silu", "swish"))}
    if d.bool():
        out["b"] = T((c,))
    if d.bool():
        out["past"] = T((n, c, k - 1))
    return out


@causal_conv.breaks("kernel-positive")
def _no_kernel(d: Draw) -> dict:
    c = d.int(1, 3)
    return {"x": T((1, c, d.int(1, 3))), "w": T((c, 1, 0)), "activation": "none"}


@causal_conv.breaks("state-fits")
def _other_state(d: Draw) -> dict:
    """A state that is longer than a kernel less one, or of another batch."""
    out = _draw_causal(d)
    (n, c, _), k = out["x"].shape, out["w"].shape[2]
    return {**out, "past": T(d.pick(((n, c, k), (n + 1, c, k - 1))))}


@causal_conv.breaks("kernel-fits")
def _other_channels(d: Draw) -> dict:
    """A kernel of one channel more, or one that mixes two channels."""
    out = _draw_causal(d)
    c, _, k = out["w"].shape
    return {**out, "w": T((c + 1, 1, k) if d.bool() else (c, 2, k))}


RULES = ("linear", "gated", "delta", "gated_delta")


def _recur(i: Mapping[str, Object], p: Mapping[str, Object], sign: float = 1.0) -> tuple[Array, Array]:
    """Outputs and last state; sign -1 adds where the delta rule subtracts (for bounds on absolute inputs)."""
    hq, hk = p["q_heads"], p["kv_heads"]
    if hq < 1 or hk < 1 or hq % hk:
        raise RuleError("heads-multiply", f"{hq} query heads, {hk} heads of keys and values")
    q, k, v = (_heads(i[n].astype(np.float64), h) for n, h in (("q", hq), ("k", hk), ("v", hk)))
    b, t, _, dk = k.shape
    dv = v.shape[3]
    if q.shape != (b, t, hq, dk) or v.shape[:2] != (b, t):
        raise RuleError("heads-agree", f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)} in heads")
    for name, wants in (
        ("past", [(b, hk, dk, dv)]),
        ("decay", [(b, t, hk * dk), (b, t, hk)]),
        ("beta", [(b, t, hk), (b, t, 1)]),
    ):
        if i[name] is not None and i[name].shape not in wants:
            raise RuleError(f"{name}-fits", f"{list(i[name].shape)}, expected {' or '.join(map(str, wants))}")
    for part, name in (("gated", "decay"), ("delta", "beta")):
        if part in p["rule"] and i[name] is None:
            raise RuleError(f"{name}-given", p["rule"])
    scale = p["scale"] or 1 / np.sqrt(dk)
    if not b:
        return np.zeros((b, t, hq * dv)), np.zeros((b, hk, dk, dv))
    state = np.zeros((b, hk, dk, dv)) if i["past"] is None else i["past"].astype(np.float64)
    g = None if i["decay"] is None else _heads(i["decay"].astype(np.float64), hk)
    beta = None if i["beta"] is None else i["beta"].astype(np.float64)
    rule, out = p["rule"], np.zeros((b, t, hq, dv))
    for s in range(t):
        if "gated" in rule and g is not None:
            state = state * np.exp(g[:, s])[..., None]
        new = v[:, s]
        if "delta" in rule and beta is not None:
            new = (new - sign * np.einsum("bhkv,bhk->bhv", state, k[:, s])) * beta[:, s, :, None]
        state = state + k[:, s][..., None] * new[:, :, None, :]
        out[:, s] = scale * np.einsum("bhkv,bhk->bhv", np.repeat(state, hq // hk, 1), q[:, s])
    return out.reshape(b, t, hq * dv), state


def _linear_bound(which: int) -> Object:
    def bound(ctx: Context) -> Array:
        """gamma(T (dk + 12)) times the recurrence on absolute values"""
        i = {
            k: None if v is None else (np.asarray(v, np.float64) if k == "decay" else np.abs(np.asarray(v, np.float64)))
            for k, v in ctx.inputs.items()
        }
        top = _recur(i, ctx.params, -1.0)[which]
        steps = ctx.inputs["k"].shape[1]
        width = ctx.inputs["k"].shape[2] // ctx.params["kv_heads"]
        far = 0.0 if i["decay"] is None else float(np.abs(i["decay"]).max(initial=0.0))
        return gamma(steps * (width + 12 + 4 * far) + 16, ctx.acc_u) * top + 2 * ctx.ulp

    return composed(bound)


_FAR = 1e4  # so far no product of the recurrence leaves f32, nor f16 unless the result does


def _recurrence_mixed(inputs: dict[str, Object]) -> str | None:
    """A state of 0 times an infinite gate, infinities and NaN: in which order the factors meet, no text states."""
    for name, a in inputs.items():
        if a is not None and a.size:
            far = 10.0 if name == "decay" else _FAR if of(a).bits >= 32 or of(a).name == "bf16" else 64.0
            wide = a.astype(np.float64)
            if not bool((np.abs(wide) < far).all()):
                why = f"{name} is not finite, or so large that the order of the factors of a state shows"
                return underspecified(why, np.True_)
    return None


@semantics(
    error=(_linear_bound(0), _linear_bound(1)),
    source="ONNX LinearAttention-27",
    data={"decay": ("uniform:-2:0",), "beta": ("prob", "prob", "unit"), "k": ("unit",), "q": ("unit",), "v": ("unit",)},
    ambiguous=lambda i, p: _recurrence_mixed(i),
)
def linear_attention(
    q: Float[Array, "b t d"],
    k: Float[Array, "b t e"],
    v: Float[Array, "b t f"],
    past: Float[Array, "*s"] | None = None,
    decay: Float[Array, "*g"] | None = None,
    beta: Float[Array, "*h"] | None = None,
    *,
    q_heads: Integer,
    kv_heads: Integer,
    rule: Choice[str, RULES] = "gated_delta",
    scale: Real = 0.0,
) -> tuple[Array, Array]:
    """The recurrence S <- exp(g) S + beta k (v - S'k)' token by token, o = scale S'q; the outputs and the last state.

    Which of g and beta take part, ``rule`` says; scale 0 is 1 / sqrt(d_k).  Raises RuleError "heads-divide",
    "heads-multiply", "heads-agree", "past-fits", "decay-fits", "beta-fits", "decay-given", "beta-given".
    """
    i = {"q": q, "k": k, "v": v, "past": past, "decay": decay, "beta": beta}
    return _recur(i, {"q_heads": q_heads, "kv_heads": kv_heads, "rule": rule, "scale": scale})


@linear_attention.draw
def _draw_linear(d: Draw) -> dict:
    b, t, hk, group, dk, dv = d.extent(1, 2), d.extent(1, 4), d.int(1, 2), d.int(1, 2), d.extent(1, 4), d.extent(1, 4)
    rule = d.pick(RULES)
    if d.empty:
        at = d.int(0, 4)
        b, t, dk, dv = (0 if k == at else v for k, v in enumerate((b, t, dk, dv)))
        if at == 4:
            b, dk, dv = 0, 1, 1
            hk, group = (2**31 - 1, 1) if d.bool() else (1, 2**31 - 1)
    elif d.chance(8) and not d.breaking:
        how = d.int(0, 4)
        b, t, hk, group = (d.pick((17, 300)) if how == 0 else b), (d.pick((17, 130)) if how == 1 else t), hk, group
        hk = 12 if how == 2 else hk
        group = 12 if how == 3 else group
        dk, dv = (d.pick(((17, 2), (130, 2), (300, 1), (2, 300), (64, 40)))) if how == 4 else (dk, dv)
    out: dict[str, Object] = {
        "q": T((b, t, hk * group * dk)),
        "k": T((b, t, hk * dk)),
        "v": T((b, t, hk * dv)),
        "q_heads": hk * group,
        "kv_heads": hk,
        "rule": rule,
        "scale": d.pick((0.0, 0.5, 1.0)) if dk else 0.5,
    }
    if d.bool():
        out["past"] = T((b, hk, dk, dv), "unit")
    if "gated" in rule:
        out["decay"] = T((b, t, hk * dk if d.bool() else hk), "special" if d.chance(24) else None)
    if "delta" in rule:
        out["beta"] = T((b, t, hk if d.bool() else 1), "special" if d.chance(16) else None)
        if hk * group * dk == out["beta"].shape[2] and d.bool():  # rates that the query may be, too
            out["beta"], out["q"] = T(out["beta"].shape, "unit"), T(out["beta"].shape, "unit")
    return out


@linear_attention.breaks("decay-given")
def _no_decay(d: Draw) -> dict | None:
    out = _draw_linear(d)
    return None if out.pop("decay", None) is None else out


@linear_attention.breaks("beta-given")
def _no_beta(d: Draw) -> dict | None:
    out = _draw_linear(d)
    return None if out.pop("beta", None) is None else out


def _fat(d: Draw, name: str) -> dict | None:
    """Two elements more along the last axis, where the tensor is given."""
    out = _draw_linear(d)
    if name not in out:
        return None
    t = out[name]
    return {**out, name: T((*t.shape[:-1], t.shape[-1] + out["kv_heads"] * (2 + out["k"].shape[2])), t.recipe)}


@linear_attention.breaks("decay-fits")
def _other_decay(d: Draw) -> dict | None:
    return _fat(d, "decay")


@linear_attention.breaks("beta-fits")
def _other_beta(d: Draw) -> dict | None:
    return _fat(d, "beta")


@linear_attention.breaks("heads-divide")
def _half_heads(d: Draw) -> dict:
    """Three columns in two heads, of the query or of the values."""
    b, t = d.extent(1, 2), d.extent(1, 4)
    q, v = d.pick(((3, 4), (4, 3)))
    return {"q": T((b, t, q)), "k": T((b, t, 4)), "v": T((b, t, v)), "q_heads": 2, "kv_heads": 2, "rule": "linear"}


@linear_attention.breaks("heads-agree")
def _other_keys(d: Draw) -> dict:
    """Keys that are longer than the query, or values of another length of sequence."""
    b, t = d.extent(1, 2), d.extent(1, 4)
    k, v = d.pick((((b, t, 6), (b, t, 4)), ((b, t, 4), (b, t + 1, 4))))
    return {"q": T((b, t, 4)), "k": T(k), "v": T(v), "q_heads": 2, "kv_heads": 2, "rule": "linear"}


@linear_attention.breaks("past-fits")
def _other_past(d: Draw) -> dict:
    """A state of another batch, or of longer keys."""
    out = {**_draw_linear(d), "q": T((2, 1, 2)), "k": T((2, 1, 2)), "v": T((2, 1, 2)), "q_heads": 1, "kv_heads": 1}
    past = T(d.pick(((1, 1, 2, 2), (2, 1, 3, 2), (2, 1, 2, 3))), "unit")
    return {**{n: x for n, x in out.items() if n not in ("decay", "beta")}, "past": past, "rule": "linear"}


@linear_attention.breaks("heads-multiply")
def _heads_apart(d: Draw) -> dict:
    """Three query heads over two of keys."""
    b, t = d.extent(1, 2), d.extent(1, 4)
    return {"q": T((b, t, 6)), "k": T((b, t, 4)), "v": T((b, t, 4)), "q_heads": 3, "kv_heads": 2, "rule": "linear"}
