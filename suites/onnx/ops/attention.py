"""Attention and what goes with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BF16, F16, F32, F64, DType, of
from harness.core.errors import RuleError
from harness.core.instance import Arg, Graph, Node
from harness.declare import (
    Build,
    Call,
    Checks,
    Codec,
    Context,
    Draw,
    Evaluation,
    Named,
    OpVersion,
    Param,
    Sampling,
    Spelling,
    T,
    bounded,
)
from harness.tolerance import unit
from suites.onnx import dialect, op
from suites.onnx.codecs import ToType
from suites.semantics import attention as s
from suites.semantics import streaming


def _outs(d: Draw, values: dict) -> int:
    """The updated caches come with the old ones; without, they are skipped where the products are asked for."""
    return d.pick((3, 4)) if values.get("past_k") is not None else d.pick((1, 1, 4))


_ATTENTION: dict[str, Any] = {
    "q": "Q",
    "k": "K",
    "v": "V",
    "mask": "attn_mask",
    "past_k": "past_key",
    "past_v": "past_value",
    "causal": "is_causal",
    "q_heads": "q_num_heads",
    "kv_heads": "kv_num_heads",
    "qk_mode": "qk_matmul_output_mode",
    "softmax_type": ToType("softmax_precision"),
}
op(
    "Attention",
    s.attention,
    Spelling(fixed={"mask_ends": False}, **_ATTENTION),
    Sampling(outs=_outs),
    Checks(breaks={"lengths-in-range": None}),  # no lengths until version 24
    until=23,
)
op(
    "Attention",
    s.attention,
    Sampling(outs=_outs),
    since=24,
    lengths="nonpad_kv_seqlen",
    left="left_window_size",
    right="right_window_size",
    **_ATTENTION,
)

op(
    "RotaryEmbedding",
    streaming.rotary_embedding,
    x="X",
    cos="cos_cache",
    sin="sin_cache",
    at="position_ids",
    size="rotary_embedding_dim",
    heads="num_heads",
)
op("CausalConvWithState", streaming.causal_conv, Sampling(outs=2), x="input", w="weight", b="bias", past="past_state")


class Rule(Named):
    """The rule of the update; beside it the size of a chunk, a hint that affects no result."""

    def bind(self, version: OpVersion, param: Param) -> Codec:
        out = Rule(self.name)
        out.__dict__.update(super().bind(version, param).__dict__)
        return out

    def encode(self, value: Any, b: Build) -> None:
        super().encode(value, b)
        if b.draw.bool():
            b.attrs["chunk_size"] = b.draw.pick((1, 2, 64, 2**31 - 1))


op(
    "LinearAttention",
    streaming.linear_attention,
    Spelling(
        q="query",
        k="key",
        v="value",
        past="past_state",
        q_heads="q_num_heads",
        kv_heads="kv_num_heads",
        rule=Rule("update_rule"),
        out_dtype=lambda c, i: _state_type(c, i),
    ),
    Sampling(outs=2),
)


def _state_type(call: Call, i: int) -> DType:
    """The state keeps its own type; a first one has that of the query."""
    past = call.inputs.get("past_state")
    return of(past) if i == 1 and past is not None else of(call.inputs["query"])


# -- FlexAttention: blocks change the scores and the weights


def _flex(call: Call) -> np.ndarray:
    """Raises RuleError "rank-4", "batch-agrees", "head-size-agrees", "keys-per-value", "heads-divide"."""
    q, k, v = (call.inputs[n].astype(np.float64) for n in "QKV")
    shapes = f"Q {q.shape}, K {k.shape}, V {v.shape}"
    if {q.ndim, k.ndim, v.ndim} != {4}:
        raise RuleError("rank-4", shapes)
    if q.shape[0] != k.shape[0]:
        raise RuleError("batch-agrees", shapes)
    if q.shape[3] != k.shape[3]:
        raise RuleError("head-size-agrees", shapes)
    if k.shape[:3] != v.shape[:3]:
        raise RuleError("keys-per-value", shapes)
    if q.shape[1] % max(1, k.shape[1]) or (q.shape[1] and not k.shape[1]):
        raise RuleError("heads-divide", f"{q.shape[1]} query heads, {k.shape[1]} key heads")
    group = q.shape[1] // max(1, k.shape[1])
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scale = call.attr("scale")
    precision = call.attr("softmax_precision") or (F64 if of(call.inputs["Q"]) is F64 else F32)
    scores = np.matmul(q, k.swapaxes(-1, -2)) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    scores = _through(call, "score_mod", scores, precision)
    with np.errstate(all="ignore"):
        e = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
        weights = _through(call, "prob_mod", e / e.sum(-1, keepdims=True), precision)
    return np.matmul(weights, v)


def _flex_unit(ctx: Context) -> float:
    """Roundoff of the sums, or that of a stated softmax_precision."""
    stage = ctx.call.attrs.get("softmax_precision")
    return max(ctx.acc_u, 0.0 if stage is None else unit(stage))


def _through(call: Call, name: str, x: np.ndarray, precision: DType) -> np.ndarray:
    block = call.attrs.get(name)
    if block is None:
        return x
    assert call.run is not None
    return call.run(block, [dialect.round(x, precision)])[0].astype(np.float64)


def _draw_flex(d: Draw) -> dict:
    b, kv, group, lq, lk, e, ev = (
        d.int(1, 2),
        d.int(1, 2),
        d.int(1, 2),
        d.int(1, 4),
        d.int(1, 4),
        d.pick((1, 2, 4)),
        d.int(1, 4),
    )
    if d.chance(12):  # one size beyond the blocks of a kernel
        b, kv, group, lq, lk, e, ev = (d.int(1, 2) for _ in range(7))
        long = d.int(0, 2)
        lq, lk = (d.pick((17, 129, 300)) if long == k else n for k, n in enumerate((lq, lk)))
        e = ev = d.pick((64, 300)) if long == 2 else e
    elif d.chance(10) and not d.breaking:  # of nothing: no key sums to 0
        sizes = [b, kv, lq, lk, ev]
        sizes[d.int(0, 4)] = 0
        b, kv, lq, lk, ev = sizes
    dtype = d.types["T1"]
    out: dict[str, Any] = {
        "Q": T((b, kv * group, lq, e), "unit"),
        "K": T((b, kv, lk, e), "unit"),
        "V": T((b, kv, lk, ev), "unit"),
    }
    if d.bool():
        out["scale"] = d.pick((0.5, 1.0))
    inner = F64 if dtype is F64 else F32
    if d.chance(3):
        inner = out["softmax_precision"] = d.pick((F32, F16, BF16, F64))
    for name in ("score_mod", "prob_mod"):
        if d.bool():
            k = np.array(d.pick((0.5, 2.0)), inner.np)
            node = (
                Node("Mul", {"A": "s", "B": "k"}, ["o"])
                if name == "prob_mod"
                else Node("Add", {"A": "s", "B": "k"}, ["o"])
            )
            out[name] = Graph(
                [("s", Arg(inner, (-1, -1, -1, -1)))], [node], ["o"], {"k": k}, {"out_types": {"o": inner.name}}
            )
    return out


def _qkv(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> Any:
    return lambda d: {"Q": T(q), "K": T(k), "V": T(v)}


op(
    "FlexAttention",
    Evaluation(
        _flex,
        bounded(
            lambda c: 512 * _flex_unit(c) * (1 + np.abs(c.wide).max(initial=0.0)) + 2 * c.ulp,
            "512 u of the largest result",
        ),
        "ONNX ai.onnx.preview FlexAttention-1",
    ),
    Spelling(out_dtype=lambda c, i: of(c.inputs["Q"])),
    Sampling(_draw_flex, tags=("scalar-body",)),
    Checks(
        breaks={
            "heads-divide": _qkv((1, 3, 2, 4), (1, 2, 2, 4), (1, 2, 2, 4)),
            "rank-4": _qkv((2, 3, 4), (2, 3, 4), (2, 3, 4)),
            "batch-agrees": _qkv((2, 1, 2, 4), (3, 1, 2, 4), (3, 1, 2, 4)),
            "head-size-agrees": _qkv((1, 1, 2, 4), (1, 1, 2, 3), (1, 1, 2, 4)),
            "keys-per-value": _qkv((1, 1, 2, 4), (1, 1, 2, 4), (1, 1, 3, 4)),
        }
    ),
    domain="ai.onnx.preview",
)
