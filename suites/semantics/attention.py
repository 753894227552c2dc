"""Scaled dot product attention: masks, causal alignment, windows, grouped heads, caches."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, prod
from typing import Annotated
from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import BF16, BOOL, F16, F32, F64, I64, DType, float_max, of
from harness.core.errors import RuleError
from harness.declare import (
    Any,
    ElementType,
    Flag,
    Float,
    Int,
    Integer,
    Real,
    T,
    composed,
    exact,
    first_of,
    semantics,
    underspecified,
)
from harness.generate.draw import Draw
from harness.tolerance import Context, gamma, ulp, unit
from suites.semantics.bounds import quiet
from suites.semantics.drawing import given, param

Array = np.ndarray


def _wide(v: Array) -> Array:
    return np.asarray(v).astype(np.float64)


def additive(mask: Array | None, keys: int) -> Array | None:
    """A mask as f64 terms; one shorter than the keys forbids the rest."""
    if mask is None:
        return None
    m = terms(mask, keys)
    short = keys - m.shape[-1]
    return m if short <= 0 else np.concatenate([m, np.full((*m.shape[:-1], short), -np.inf)], -1)


def terms(mask: Array, keys: int = 1) -> Array:
    """A mask as f64 terms: booleans give 0 or -inf.  One of no axis is the same for all keys."""
    mask = mask if mask.ndim else np.broadcast_to(mask, (keys,))
    return np.where(mask, 0.0, -np.inf) if mask.dtype == np.bool_ else _wide(mask)


def allowed(queries: int, keys: int, offset: Array | int, causal: bool, left: int, right: int) -> Array | None:
    """Which keys a query may see: j <= i + offset when causal, i + offset - left <= j <= i + offset + right where those
    are not negative.  An array of offsets gives a leading axis of batches and one of heads."""
    if not queries or (not causal and left < 0 and right < 0):
        return None
    off = np.asarray(offset, np.int64).reshape(-1, 1, 1, 1) if np.ndim(offset) else int(offset)
    ahead = np.arange(keys) - (np.arange(queries)[:, None] + off)
    ok = np.ones(ahead.shape, bool)
    if causal:
        ok &= ahead <= 0
    if left >= 0:
        ok &= -ahead <= left
    if right >= 0:
        ok &= ahead <= right
    return ok


class Attended:
    """One evaluation in f64.  scores: q k' * scale; capped; biased: with the mask; weights; y.  Kept for the bound."""

    def __init__(
        self, q: Array, k: Array, v: Array, bias: Array | None, scale: float, softcap: float, zero_rows: bool
    ) -> None:
        self.q, self.k, self.v, self.scale, self.softcap = _wide(q), _wide(k), _wide(v), scale, softcap
        with np.errstate(all="ignore"):
            self.scores = native.matmul(q, np.swapaxes(k, -1, -2)) * scale
            self.capped = softcap * np.tanh(self.scores / softcap) if softcap > 0 else self.scores
            self.bias = bias
            self.biased = self.capped if bias is None else self.capped + bias
            w = native.softmax(self.biased, -1) if self.biased.size else self.biased.copy()
            if zero_rows and bias is not None and bias.shape[-1]:
                w = np.where(np.max(bias, -1, keepdims=True) == -np.inf, 0.0, w)
            self.weights = w
            # a weight of exactly 0 hides an infinite value only where the mask says so: plain products otherwise
            self.y = native.matmul(w, self.v)

    def errors(self, u: float, low: float, acc_u: float, count: float) -> tuple[Array, Array, Array, Array]:
        """Bounds of the scores, those after softcap, the weights and y.  u, low: unit roundoff and half the spacing of
        subnormals of the types in between; acc_u: unit roundoff of sums."""
        e = float(self.q.shape[-1])
        size = native.matmul(np.abs(self.q), np.swapaxes(np.abs(self.k), -1, -2)) * abs(self.scale)
        each = np.abs(self.q).sum(-1, keepdims=True) + np.abs(self.k).sum(-1)[..., None, :] + e
        raw = score = (gamma(e + 2, acc_u) + 5 * u) * size + 4 * low * max(1.0, abs(self.scale)) * each
        if self.softcap > 0:
            score = score * (1 - np.tanh(np.maximum(np.abs(self.scores) - score, 0) / self.softcap) ** 2)
            score = score + 8 * max(u, acc_u) * np.abs(self.capped)
        moved = score + (u * np.abs(self.biased) if self.bias is not None else 0)
        moved = np.where(np.isfinite(self.biased), moved, 0.0)
        top = np.max(self.biased, -1, keepdims=True)
        d = np.where(np.isfinite(self.biased), np.abs(self.biased - top), 0.0)
        p = np.where(np.isnan(self.weights), 0.0, self.weights)
        mean = (p * (moved + 2 * acc_u * d)).sum(-1, keepdims=True)
        rel = 1.5 * (moved + mean) + (2 * d + count + 8) * max(acc_u, 0) + 3 * u
        weight = p * np.where(rel < 1, np.expm1(np.minimum(rel, 1.0)), np.inf)
        risen = np.where(np.isfinite(self.biased), np.exp(np.minimum(rel - d, 0.0)), 0.0)  # where p underflows
        weight = np.where(p == 0, risen + 2.0**-126, weight + max(2 * low, 2.0**-126))  # of exp, of the quotient
        weight = np.minimum(weight, np.maximum(p, 1 - p) + 4 * u)  # a weight is between 0 and 1
        y = native.matmul(weight, np.abs(self.v)) + gamma(count + 1, acc_u) * native.matmul(p, np.abs(self.v))
        return raw, score, weight, y


# -- ONNX


def _heads(x: Array, heads: int) -> Array:
    b, s, hidden = x.shape
    if heads < 1 or hidden % heads:
        raise RuleError("heads-divide", f"{hidden} channels for {heads} heads")
    return x.reshape(b, s, heads, hidden // heads).transpose(0, 2, 1, 3)


def _prepare(i: Mapping[str, Object], p: Mapping[str, Object]) -> tuple[Attended, Array, Array]:
    q, k, v = i["q"], i["k"], i["v"]
    if not q.ndim == k.ndim == v.ndim or q.ndim not in (3, 4):
        raise RuleError("ranks-agree", f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}")
    if (p.get("qk_mode") or 0) not in (0, 1, 2, 3):
        raise RuleError("stage-known", f"qk_mode {p['qk_mode']}")
    if q.ndim == 3:
        if not p.get("q_heads") or not p.get("kv_heads"):
            raise RuleError("heads-given", "inputs of three axes need the numbers of heads")
        q, k, v = _heads(q, p["q_heads"]), _heads(k, p["kv_heads"]), _heads(v, p["kv_heads"])
    elif any(p.get(n) not in (None, x.shape[1]) for n, x in (("q_heads", q), ("kv_heads", k))):
        stated = f"{p['q_heads']} and {p['kv_heads']} heads are stated"
        raise RuleError("heads-agree", f"q {list(q.shape)}, k {list(k.shape)}: {stated}")
    past_k, past_v, lengths = i.get("past_k"), i.get("past_v"), i.get("lengths")
    if (past_k is None) != (past_v is None):
        raise RuleError("past-together", "past key and value go together")
    if past_k is not None and past_v is not None:
        for past, new in ((past_k, k), (past_v, v)):
            if past.ndim != 4 or past.shape[:2] != new.shape[:2] or past.shape[3] != new.shape[3]:
                raise RuleError("past-fits", f"past {list(past.shape)} before {list(new.shape)}")
        k, v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    present_k, present_v = k, v
    queries, keys = q.shape[2], k.shape[2]
    if q.shape[1] % max(1, k.shape[1]):
        raise RuleError("heads-divide", f"{q.shape[1]} query heads, {k.shape[1]} key heads")
    if (
        q.shape[3] != k.shape[3]
        or v.shape[2] != keys
        or k.shape[1] != v.shape[1]
        or not (q.shape[0] == k.shape[0] == v.shape[0])
    ):
        raise RuleError("heads-agree", f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}")
    if q.shape[1] != k.shape[1]:
        k, v = (np.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))
    if lengths is not None and lengths.shape != q.shape[:1]:
        raise RuleError("lengths-in-range", f"{list(lengths.shape)} lengths for a batch of {q.shape[0]}")
    offset: Object = past_k.shape[2] if past_k is not None else 0
    if past_k is None and lengths is not None:
        offset = lengths.astype(np.int64) - queries
    if lengths is not None and ((lengths < 0) | (lengths > keys)).any():
        raise RuleError("lengths-in-range", f"{lengths.tolist()} valid ones of {keys} keys")
    mask = i.get("mask")
    bias = additive(mask, keys) if mask is None or p.get("mask_ends", True) else terms(mask, keys)
    if bias is not None and not _fits(bias.shape, (*q.shape[:3], keys)):
        raise RuleError("mask-fits", f"a mask {list(bias.shape)} for scores {[*q.shape[:3], keys]}")
    ok = allowed(queries, keys, offset, bool(p.get("causal")), int(p.get("left", -1)), int(p.get("right", -1)))
    if lengths is not None and queries:
        inside = (np.arange(keys) < lengths.astype(np.int64)[:, None])[:, None, None, :]
        ok = inside if ok is None else ok & inside
    if ok is not None:
        term = np.where(ok, 0.0, -np.inf)
        bias = term if bias is None else bias + term
    scale = p.get("scale")
    scale = 1 / np.sqrt(q.shape[3]) if scale is None else float(scale)
    return Attended(q, k, v, bias, scale, float(p.get("softcap") or 0), True), present_k, present_v


def _fits(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Does a shape broadcast to another, and not the other way round?"""
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(shape[::-1], to[::-1]))


def _qk(a: Attended, mode: int) -> Array:
    shape = np.broadcast_shapes(a.scores.shape, a.biased.shape)
    return (a.scores, a.capped, np.broadcast_to(a.biased, shape), a.weights)[mode]


def _between(ctx: Context) -> tuple[float, float]:
    """Unit roundoff of the types in between, and half the spacing of their subnormals."""
    stage = ctx.params.get("softmax_type")
    types = [ctx.out, stage] if isinstance(stage, DType) else [ctx.out]
    return max(map(unit, types)), max(float(ulp(0.0, t)) / 2 for t in types)


@quiet
def _y_bound(ctx: Context) -> Array:
    """scores: (gamma(E+2) + 5u) |q||k'| scale; weights: w expm1(1.5 (e + E e) + (2|d|+S+8) acc_u + 3u); y: their
    sum over |v|"""
    a, _, _ = _prepare(dict(ctx.inputs), ctx.params)
    e = a.errors(*_between(ctx), ctx.acc_u, float(a.k.shape[2]))[-1]
    if ctx.wide.ndim == 3:
        e = e.transpose(0, 2, 1, 3).reshape(ctx.wide.shape)
    return e.reshape(ctx.wide.shape) + ctx.ulp


@quiet
def _qk_bound(ctx: Context) -> Array:
    """as the first output's steps, up to the one asked for"""
    a, _, _ = _prepare(dict(ctx.inputs), ctx.params)
    mode = int(ctx.params["qk_mode"])
    raw, score, weight, _ = a.errors(*_between(ctx), ctx.acc_u, float(a.k.shape[2]))
    if mode == 0:
        return raw.reshape(ctx.wide.shape) + ctx.ulp
    if mode == 3:
        return weight.reshape(ctx.wide.shape) + ctx.ulp
    extra = ctx.u * np.abs(a.biased) if mode == 2 else 0.0
    return (
        np.broadcast_to(np.where(np.isfinite(a.biased), score + extra, 0.0) if mode == 2 else score, ctx.wide.shape)
        + ctx.ulp
    )


def _hidden_infinity(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """0 * inf: whether a masked position takes part in the last product."""
    for n in ("q", "k", "v", "past_k", "past_v"):
        x = inputs.get(n)
        if x is not None and not np.isfinite(_wide(x)).all():
            return f"inf or NaN in {n}: the op set does not say whether masked positions are multiplied"
    return None


def _hidden(inputs: dict[str, Object], params: dict[str, Object]) -> Object:
    """Opens what hangs on a key of weight 0 whose score or value is not finite: 0 times infinity, or left out."""
    a, _, _ = _prepare(inputs, params)
    if not a.scores.size:
        return None
    masked = np.broadcast_to(False if a.bias is None else np.isneginf(a.bias), a.scores.shape)
    endless = ~np.isfinite(a.scores) & masked
    stage = params.get("softmax_type")
    types = [of(inputs["q"]), *([stage] if isinstance(stage, DType) else [])]
    with np.errstate(all="ignore"):
        lost = masked | (a.weights < 2.0 ** -(24 if F16 in types else 126))
    rows = endless.any(-1, keepdims=True)
    y = rows | (native.matmul(lost.astype(np.float64), (~np.isfinite(a.v)).astype(np.float64)) > 0)
    if inputs["q"].ndim == 3:
        y = y.transpose(0, 2, 1, 3).reshape(*inputs["q"].shape[:2], y.shape[1] * y.shape[3])
    last = endless | rows if int(params.get("qk_mode") or 0) == 3 else endless
    why = "inf or NaN at a key of weight 0: the op set does not say whether masked positions are multiplied"
    return underspecified(why, (y, None, None, np.broadcast_to(last, a.scores.shape)))


def _beyond(a: Attended, types: list[DType]) -> Array:
    """Scores that may overflow on the way, before or after they are scaled or with their bias: softmax is "in the same
    precision as the input of softmax (Q and K)", the products are in no stated one."""
    with np.errstate(all="ignore"):
        top = min(map(float_max, types))
        size = native.matmul(np.abs(a.q), np.swapaxes(np.abs(a.k), -1, -2)) * max(1.0, abs(a.scale))
        over = np.asarray(~(size < top))
        if a.bias is None or not a.biased.size:
            return over
        highest = a.biased.max(-1, keepdims=True)  # what is far below it weighs nothing, however low
        low = (a.biased <= -0.99 * top) & (highest <= -0.99 * top)
        return over | (np.isfinite(a.bias) & (low | (a.biased >= 0.99 * top)))


_BEYOND = "a score beyond the range of the type: infinite, or held in a wider one"


def _overflowing(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """Opens rows of the result in which a score overflows, and these scores."""
    a, _, _ = _prepare(inputs, params)
    stage = params.get("softmax_type")
    over = _beyond(a, [of(inputs["q"]), *([stage] if isinstance(stage, DType) else [])])
    rows = np.broadcast_to(over.any(-1, keepdims=True), a.y.shape)
    if inputs["q"].ndim == 3:
        rows = rows.transpose(0, 2, 1, 3).reshape(*inputs["q"].shape[:2], rows.shape[1] * rows.shape[3])
    mode = int(params.get("qk_mode") or 0)
    stages = over | over.any(-1, keepdims=True) if mode == 3 else over
    return underspecified(_BEYOND, (rows, None, None, np.broadcast_to(stages, _qk(a, mode).shape)))


_DATA = {
    "q": ("unit", "small", "uniform:-2:2", "uniform:-60:60", "wide"),
    "k": ("unit", "small", "uniform:-2:2", "uniform:-60:60", "wide"),
    "v": ("unit", "small", "uniform:-2:2", "wide"),
    "past_k": ("unit", "uniform:-60:60"),
    "past_v": ("unit", "wide"),
}


@semantics(
    error=(composed(_y_bound), exact(), exact(), composed(_qk_bound)),
    source="ONNX Attention-23, -24, -25",
    data=_DATA,
    ambiguous=first_of(_hidden, _overflowing),
)
def attention(
    q: Float[Array, "*a"],
    k: Float[Array, "*b"],
    v: Float[Array, "*c"],
    mask: Any[Array, "*m"] | None = None,
    past_k: Float[Array, "*e"] | None = None,
    past_v: Float[Array, "*f"] | None = None,
    lengths: Int[Array, "*l"] | None = None,
    *,
    scale: Real | None = None,
    causal: Flag = False,
    q_heads: Integer | None = None,
    kv_heads: Integer | None = None,
    softcap: Real = 0.0,
    qk_mode: Integer = 0,
    softmax_type: Annotated[DType, ElementType(F32, F16, BF16, F64)] | None = None,
    left: Integer = -1,
    right: Integer = -1,
    mask_ends: Flag = True,
) -> tuple[Array, Array, Array, Array]:
    """softmax(softcap(q k' scale) + bias) v; the keys and values after appending to the past; one stage of the scores.

    Tensors are [batch, heads, length, size], or [batch, length, heads * size] with the numbers of heads.  Numbers that
    are given with four axes have to be those of the axis.  Key heads are shared by equal groups of query heads.

    bias: the mask (True takes part; floats are added), causal (key j <= query i + offset), left and right windows,
        lengths of valid keys.  A row that sees no key gives 0.
    offset: length of the past, or lengths - queries, or 0.
    qk_mode: 0 scores, 1 after softcap, 2 with bias, 3 weights.
    mask_ends: a mask of fewer keys forbids the rest, else it does not fit.

    Raises RuleError "ranks-agree", "heads-given", "heads-divide", "heads-agree", "past-together", "past-fits",
    "lengths-in-range", "mask-fits", "stage-known".
    """
    inputs = {"q": q, "k": k, "v": v, "mask": mask, "past_k": past_k, "past_v": past_v, "lengths": lengths}
    params = {
        "scale": scale,
        "causal": causal,
        "q_heads": q_heads,
        "kv_heads": kv_heads,
        "softcap": softcap,
        "qk_mode": int(qk_mode or 0),
        "left": left,
        "right": right,
        "mask_ends": mask_ends,
    }
    a, present_k, present_v = _prepare(inputs, params)
    y = a.y if q.ndim == 4 else a.y.transpose(0, 2, 1, 3).reshape(*q.shape[:2], a.y.shape[1] * a.y.shape[3])
    return y, present_k, present_v, _qk(a, int(qk_mode or 0))


@attention.draw
def _draw_attention(d: Draw) -> dict[str, Object]:
    b, kv, group = d.extent(1, 2), d.int(1, 2), d.pick((1, 1, 2, 3))
    if d.chance(24) and not d.breaking:
        kv, group = 17, 1
    queries, keys, e, ev = d.extent(1, 5), d.extent(1, 5), d.pick((1, 2, 4, 8)), d.pick((1, 2, 4, 8))
    longest = d.int(0, 4) if d.chance(12) else -1
    if longest >= 0:
        b, kv, group = d.pick((17, 257, 2049)) if longest == 0 else 1, 1, 1
        queries, keys = (d.pick((17, 129, 257)) if longest == k else d.int(1, 2) for k in (1, 2))
        e, ev = (d.pick((64, 128, 264)) if longest == 3 else d.pick((1, 4)) for _ in range(2))
    elif d.empty:
        b, kv, queries, ev = d.pick(((0, kv, queries, ev), (b, kv, 0, ev), (b, kv, queries, 0), (b, 0, queries, ev)))
        keys = 0 if not b * queries and d.chance(3) else keys
        e = 0 if d.chance(8) and not d.breaking else e
    heads = kv * group
    flat = d.bool() and heads > 0
    if flat and d.empty and not d.breaking and d.chance(3):  # as many heads as 32 bits count, of nothing
        b, kv, group = 0, 2**31 - 1, 1
        heads = kv
    out: dict[str, Object] = {"q_heads": heads if flat else None, "kv_heads": kv if flat else None}
    shapes = {"q": (b, heads, queries, e), "k": (b, kv, keys, e), "v": (b, kv, keys, ev)}
    for n, s in shapes.items():
        out[n] = T((s[0], s[2], s[1] * s[3]) if flat else s)
    past = 0
    cached = given(d, "lengths", 4)
    if given(d, "past_k", 3) and not cached:
        alike = queries and group == 1 and d.chance(4)  # as the queries are: the same tensor may be both
        past = d.pick((17, 129, 300)) if longest == 4 else queries if alike else d.int(1, 4)
        past = 0 if d.empty and not d.breaking and d.bool() else past
        out["past_k"], out["past_v"] = T((b, kv, past, e)), T((b, kv, past, ev))
        if d.chance(8):
            d.pick((out["past_k"], out["past_v"])).recipe = "special"
    if cached:
        out["lengths"] = T((b,), values=[d.int(min(1, keys), keys) for _ in range(b)], dtype=I64)
    if given(d, "mask"):
        full = (b, heads, queries, past + keys)
        shape = d.pick((full, full[2:], full[1:], (1, 1, *full[2:]), (b, 1, *full[2:])))
        if heads > 1 << 16:  # of which no other shape holds nothing
            shape = full
        elif d.chance(12) and not d.breaking:
            shape = d.pick(((past + keys,), ()))
        if (
            shape and "lengths" in d.version.slots_of and heads < 1 << 16 and d.chance(4)
        ):  # texts that name lengths let a mask end early
            least = max(out["lengths"].values, default=1) if cached else 1
            columns = max(2, d.int(least, past + keys))  # a single one would also broadcast
            shape = (*shape[:-1], min(columns, past + keys))
        kind = d.dtype("mask").kind
        out["mask"] = T(shape, "bool" if kind == "b" else d.pick(("small", "unit", "small", "unit", "special", "unit")))
        if kind == "f" and prod(shape) <= 512 and d.chance(6):  # the same as one of truth values
            out["mask"].values = [d.pick((0.0, 0.0, -inf)) for _ in range(prod(shape))]
    out["causal"] = param(d, "causal", d.bool)
    out["scale"] = param(d, "scale", lambda: d.pick((None, None, 0.5, 1.0, 0.125) if e else (0.5, 1.0)))
    out["softcap"] = param(d, "softcap", lambda: d.pick((0.0, 0.0, 2.0, 30.0)))
    out["qk_mode"] = param(d, "qk_mode", lambda: d.int(0, 3))
    if "softmax_type" in d.version.param_codecs and d.chance(3):
        out["softmax_type"] = d.pick((F32, F16, BF16, F64))
    if "left" in d.version.param_codecs and d.bool():
        for n in ("left", "right"):
            out[n] = param(d, n, lambda: d.pick((-1, -1, 0, 1, 2)))
    return out


def _of_two(**more: Object) -> dict[str, Object]:
    return {**{n: T((1, 1, 2, 4)) for n in "qkv"}, "causal": False, "qk_mode": 0, **more}


@attention.breaks("ranks-agree")
def _ranks_apart(d: Draw) -> dict[str, Object]:
    """Three axes and four."""
    name = d.pick(("q", "k", "v"))
    return _of_two(**{name: T((1, 2, 4)), "q_heads": 1, "kv_heads": 1})


@attention.breaks("mask-fits")
def _other_mask(d: Draw) -> dict[str, Object]:
    """A mask of other queries or of more keys than there are."""
    return _of_two(mask=T(d.pick(((3, 2), (2, 3), (2, 1, 2, 2)))))


@attention.breaks("stage-known")
def _no_stage(d: Draw) -> dict[str, Object]:
    return _of_two(qk_mode=d.pick((4, -1)))


@attention.breaks("lengths-in-range")
def _longer_than_keys(d: Draw) -> dict[str, Object] | None:
    """More valid keys than there are keys."""
    if "lengths" not in d.version.tensor_codecs:
        return None
    return _of_two(lengths=T((1,), values=[d.pick((3, 4, -1))]))


@attention.breaks("heads-divide")
def _heads_apart(d: Draw) -> dict[str, Object]:
    return {"q": T((1, 3, 2, 4)), "k": T((1, 2, 2, 4)), "v": T((1, 2, 2, 4)), "causal": False, "qk_mode": 0}


@attention.breaks("heads-given")
def _no_heads(d: Draw) -> dict[str, Object] | None:
    """Three axes, and how many heads lie in the last one is left out."""
    out = _draw_attention(d)
    if out["q_heads"] is None:
        return None
    return {**out, d.pick(("q_heads", "kv_heads")): None}


@attention.breaks("heads-agree")
def _other_heads(d: Draw) -> dict[str, Object] | None:
    """Four axes, and a number of heads that is not that of the axis."""
    shape = (1, 2, d.int(1, 3), 4)
    stated = dict.fromkeys(("q_heads", "kv_heads"), 2) | {d.pick(("q_heads", "kv_heads")): 4}
    return {**{n: T(shape) for n in "qkv"}, **stated, "causal": False, "qk_mode": 0}


@attention.breaks("past-fits")
def _other_past(d: Draw) -> dict[str, Object]:
    """Caches of a head more than there are of keys."""
    past = T((1, d.int(2, 3), d.int(1, 3), 4))
    return _of_two(past_k=past, past_v=past)


@attention.breaks("past-together")
def _half_a_past(d: Draw) -> dict[str, Object] | None:
    """Only one of the two caches."""
    shape = (1, d.int(1, 2), d.int(1, 3), 4)
    out: dict[str, Object] = {n: T(shape) for n in "qkv"}
    return {**out, d.pick(("past_k", "past_v")): T(shape), "causal": False, "qk_mode": 0}


# -- MIL


@quiet
def _sdpa_bound(ctx: Context) -> Array:
    """scores: (gamma(E+2) + 5u) |q||k'| scale; weights: w expm1(1.5 (e + E e) + (2|d|+S+8) acc_u + 3u); y: their
    sum over |v|"""
    i = ctx.inputs
    a = _plain(i["q"], i["k"], i["v"], i.get("mask"))
    return a.errors(*_between(ctx), ctx.acc_u, float(a.k.shape[-2]))[-1].reshape(ctx.wide.shape) + ctx.ulp


def _plain(q: Array, k: Array, v: Array, mask: Array | None) -> Attended:
    bias = None if mask is None else terms(mask, k.shape[-2])
    return Attended(q, k, v, bias, 1 / np.sqrt(q.shape[-1]), 0.0, False)


def _masked_row(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    m = inputs.get("mask")
    if m is not None and m.size and (np.max(terms(m), -1) == -np.inf).any():
        return "a row without any key: 0 / 0 by the formula"
    if why := _hidden_infinity(inputs, params):
        return why
    over = _beyond(_plain(inputs["q"], inputs["k"], inputs["v"], m), [of(inputs["q"])])
    return underspecified(_BEYOND, over.any(-1, keepdims=True))


@semantics(
    error=composed(_sdpa_bound), source="MIL scaled_dot_product_attention iOS18", data=_DATA, ambiguous=_masked_row
)
def scaled_dot_product_attention(
    q: Float[Array, "*b l e"],
    k: Float[Array, "*b s e"],
    v: Float[Array, "*b s f"],
    mask: Any[Array, "*m"] | None = None,
) -> Float[Array, "*b l f"]:
    """softmax(q k' / sqrt(e) + mask) v over the last two axes; a boolean mask forbids where False; it broadcasts.

    Raises RuleError "mask-kind" ("either be bool or float matching query, key, or value"), "mask-broadcasts".
    """
    if mask is not None and of(mask) is not of(q) and of(mask).kind != "b":
        raise RuleError("mask-kind", f"a mask of {of(mask)} for {of(q)}, expected that or bool")
    scores = (*q.shape[:-1], k.shape[-2])
    if mask is not None and (mask.shape[-1:] != scores[-1:] or not _spreads(mask.shape, scores)):
        raise RuleError("mask-broadcasts", f"{list(mask.shape)} to {list(scores)}")
    return _plain(q, k, v, mask).y


def _spreads(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    lead = len(to) - len(shape)
    return lead >= 0 and all(m in (1, n) for m, n in zip(shape, to[lead:]))


def _sdpa_misfit(d: Draw, name: str, axis: int) -> dict[str, Object]:
    """One extent more on an axis of an operand, with a mask where it is of that."""
    n, queries, keys, e = d.extent(1, 2), d.extent(2, 4), d.extent(2, 4), d.extent(2, 4)
    shapes = {"q": [n, queries, e], "k": [n, keys, e], "v": [n, keys, e]}
    if name == "mask":
        shapes["mask"] = [queries, keys]
    shapes[name][axis] += 1
    types = {"mask": d.dtype("q")}
    return {k: T(tuple(s), dtype=types.get(k)) for k, s in shapes.items()}


@scaled_dot_product_attention.breaks("shapes-agree")
def _sdpa_shapes(d: Draw) -> dict[str, Object]:
    """A key of another width, a value of another length, or another batch of either."""
    return _sdpa_misfit(d, *d.pick((("k", 2), ("v", 1), ("k", 0), ("v", 0))))


@scaled_dot_product_attention.breaks("mask-broadcasts")
def _sdpa_mask(d: Draw) -> dict[str, Object]:
    return _sdpa_misfit(d, "mask", d.int(0, 1))


@scaled_dot_product_attention.draw
def _draw_sdpa(d: Draw) -> dict[str, Object]:
    lead = tuple(max(1, n) for n in d.part(max(1, d.min_rank - 2), max(1, min(d.max_rank, 5) - 2)))
    lead = tuple(min(n, 3) for n in lead)
    queries, keys, e, ev = d.extent(1, 6), d.extent(1, 6), d.pick((1, 3, 4, 8)), d.pick((1, 3, 4, 8))
    longest = d.int(0, 2) if d.chance(12) else -1
    if longest >= 0:
        lead = (1,) * len(lead)
        queries, keys = (d.pick((17, 129, 257)) if longest == k else queries for k in range(2))
        e = d.pick((64, 128)) if longest == 2 else e
    out = {"q": T((*lead, queries, e)), "k": T((*lead, keys, e)), "v": T((*lead, keys, ev))}
    if given(d, "mask"):
        full = (*lead, queries, keys)
        some = tuple(n if d.bool() else 1 for n in full[:-1])
        shape = d.pick((full, full[-2:], (*(1 for _ in lead), *full[-2:]), (keys,), (*some, keys), (*some[-1:], keys)))
        # every row keeps a key: the first column stays open
        free = [n % keys == 0 or d.bool() for n in range(int(np.prod(shape)))]
        if d.bool():
            out["mask"] = T(shape, values=free, dtype=BOOL)
        elif d.chance(3):
            out["mask"] = T(shape, values=[0.0 if ok else -np.inf for ok in free], dtype=d.dtype("q"))
        else:
            out["mask"] = T(shape, "unit", dtype=d.dtype("q"))
    return out
