"""Random ops, judged by distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BOOL, F32, I32, DType, float_max, of
from harness.core.errors import RuleError
from harness.declare import Call, Checks, Context, Draw, Evaluation, Fn, Sampling, Spelling, T, accepted
from suites.onnx import op
from suites.onnx.codecs import ToType
from suites.semantics import random as s


def _bits(call: Call) -> int | None:
    """The seed attribute is a float: its bits seed the reference."""
    v = call.attr("seed")
    return None if v is None else int(np.float32(v).view(np.uint32))


_SEED = Fn(_bits, lambda v, b: b.attr("seed", float(v)) if v is not None else None)


def _type(default: DType | None) -> Any:
    def read(call: Call, i: int = 0) -> DType:
        return ToType("dtype").decode(call) or default or of(call.inputs["input"])

    return read


def _draw(d: Draw) -> dict:
    """Enough elements for a distribution test."""
    out: dict[str, Any] = {}
    schema = d.version.schema
    rank = d.int(1, 3)
    shape = [d.int(8, 16) for _ in range(rank - 1)] + [256 // (8 ** (rank - 1)) * d.int(1, 3) or 8]
    if d.chance(8):  # of few elements their type, and that they stand in the range
        shape = list(d.shape(0, 4)) if d.bool() else [d.pick((0, 1, 1)) for _ in range(d.int(1, 4))]
    if "shape" in schema.attrs:
        out["shape"] = shape
    else:
        out["input"] = T(shape, "prob" if d.version.op == "Bernoulli" else None)
        if d.version.op == "Bernoulli" and d.chance(16):
            four = [d.pick((0.0, -0.0, 1.0, 0.5)) for _ in range(4)]
            out["input"] = T(shape, values=(four * (int(np.prod(shape)) // 4 + 1))[: int(np.prod(shape))])
    types = schema.dtypes(schema.outputs[0].element)
    if d.bool() or ("input" in out and d.dtype("input") not in types):
        out["dtype"] = d.pick(types)
    if d.bool():
        out["seed"] = float(d.int(0, 1000))
    for name in ("low", "mean"):
        if name in schema.attrs and d.bool():
            out[name] = d.int(-16, 0) / 4
    for name in ("high", "scale"):
        if name in schema.attrs and d.bool():
            out[name] = d.int(4, 16) / 4
    return out


_MAY_BE_EMPTY = {"empty": True}  # no extent is said to be positive
_LIKE = Checks(breaks={"extents-positive": None})  # no tensor has a negative extent
_SHAPE = Fn(lambda c: tuple(c.inputs["input"].shape))
op(
    "RandomUniform",
    s.uniform,
    Spelling(dtype=Fn(lambda c: None), seed=_SEED, out_dtype=_type(F32), fixed=_MAY_BE_EMPTY),
    Sampling(_draw),
)
op(
    "RandomNormal",
    s.normal,
    Spelling(std="scale", dtype=Fn(lambda c: None), seed=_SEED, out_dtype=_type(F32), fixed=_MAY_BE_EMPTY),
    Sampling(_draw),
)
op(
    "RandomUniformLike",
    s.uniform,
    Spelling(shape=_SHAPE, dtype=Fn(lambda c: None), seed=_SEED, out_dtype=_type(None), fixed=_MAY_BE_EMPTY),
    Sampling(_draw),
    _LIKE,
)
op(
    "RandomNormalLike",
    s.normal,
    Spelling(
        shape=_SHAPE, std="scale", dtype=Fn(lambda c: None), seed=_SEED, out_dtype=_type(None), fixed=_MAY_BE_EMPTY
    ),
    Sampling(_draw),
    _LIKE,
)


def _draw_multinomial(d: Draw) -> dict:
    out: dict[str, Any] = {"input": T((d.int(1, 3), d.int(1, 5)), "unit"), "sample_size": d.int(100, 300)}
    if d.chance(8):  # one outcome has all of the weight, or two share it; of -inf there is none
        dtype = d.dtype("input")
        high = float_max(dtype)
        some = (high, -high, 0.0, -0.0, -float("inf"), high / 2, -60000.0)
        n, k = d.int(1, 3), d.int(1, 5)
        rows = [[d.pick((high, high / 4, 0.0, -0.0)), *(d.pick(some) for _ in range(k - 1))] for _ in range(n)]
        out["input"] = T((n, k), values=[v for row in rows for v in d.shuffle(row)])
    if d.chance(8):  # "Number of times to sample"
        out["sample_size"] = d.pick((0, 1, 1, 2, 3, 4, 5))
        if out["sample_size"] == 1 and d.bool():
            del out["sample_size"]
        if d.chance(8):
            out = {"input": T((0, d.int(1, 3)), "unit"), "sample_size": 2**31 - 1}
    if d.bool():
        out["dtype"] = d.pick(d.version.schema.dtypes("T2"))
    if d.bool():
        out["seed"] = float(d.int(0, 1000))
    return out


def _as_type(call: Call, results: list[Any]) -> list[Any]:
    t = _type(None)(call)
    return results if t.kind == "f" else [results[0].astype(t.np)]


def _no_rows(d: Draw) -> dict:
    """One axis less, or one more."""
    shape = d.pick(((d.int(2, 5),), (2, d.int(1, 3), d.int(1, 5))))
    return {"input": T(shape, "unit"), "sample_size": d.int(100, 300)}


def _integers(call: Call, results: list[Any]) -> list[Any]:
    shape = call.inputs["input"].shape
    if len(shape) != 2:  # "shape [batch_size, class_size]"
        raise RuleError("two-axes", f"input has shape {list(shape)}")
    return [results[0].astype(_type(I32)(call).np)]


op(
    "Multinomial",
    s.categorical,
    Spelling(x="input", size="sample_size", seed=_SEED, fixed={"logits": True}, out=_integers, out_dtype=_type(I32)),
    Sampling(_draw_multinomial),
    Checks(breaks={"two-axes": _no_rows}),
)


op(
    "Bernoulli",
    s.bernoulli_each,
    Spelling(x="input", dtype=Fn(lambda c: None), seed=_SEED, out=_as_type, out_dtype=_type(None)),
    Sampling(_draw),
)


# -- Dropout: in training a choice of elements, otherwise a copy


def _ratio(c: Call) -> float:
    """The share of dropped elements; 0 where nothing is dropped."""
    if c.version.version >= 12:
        train = c.inputs.get("training_mode")
        if train is None or not train.reshape(-1)[0]:
            return 0.0
        r = c.inputs.get("ratio")
        return 0.5 if r is None else float(r.reshape(-1)[0])
    return float(c.attr("ratio")) if c.version.version < 7 and not c.attr("is_test") else 0.0


def _dropout(c: Call) -> tuple[np.ndarray, np.ndarray]:
    x, r = c.inputs["data"], _ratio(c)
    kept = np.random.default_rng(0).random(x.shape) >= r
    mask = kept if c.version.version >= 10 else kept.astype(x.dtype)
    with np.errstate(all="ignore"):
        return (x if r == 0 else np.where(kept, x.astype(np.float64) / (1 - r), 0.0)), mask


def _kept(ctx: Context, actual: np.ndarray) -> np.ndarray:
    """Zero or the scaled element (NaN for what an infinite one times zero is); all of them where nothing is dropped.
    Beyond a type without infinities stands NaN or the highest number: of a cast both exist (Cast-19, saturate)."""
    c = ctx.call
    x, r = c.inputs["data"].astype(np.float64), _ratio(c)
    y = np.asarray(actual, np.float64)
    with np.errstate(all="ignore"):
        full = x / (1 - r)
        highest = float_max(ctx.out)
        finite = not np.isinf(np.array(np.inf).astype(ctx.out.np).astype(np.float64))
        ends = np.isnan(y) | (np.abs(y) == highest) if finite else np.isinf(y)
        over = (np.abs(full) >= highest) & ends & (np.isnan(y) | (np.sign(full) == np.sign(y)))
        same = (y == full) | (np.isnan(x) & np.isnan(y))
        near = (np.abs(y - full) <= 4 * ctx.u * np.abs(full) + ctx.ulp) | same | over
    return near | ((r > 0) & ((y == 0) | (np.isnan(y) & ~np.isfinite(x))))


def _any_mask(ctx: Context, actual: np.ndarray) -> np.ndarray:
    """Outside of training all ones, which version 12 is the first to say."""
    free = ctx.call.version.version < 12 or _ratio(ctx.call)
    return np.ones(np.shape(actual), bool) if free else np.asarray(actual, bool)


def _draw_dropout(d: Draw) -> dict:
    v = d.version.version
    out: dict[str, Any] = {"data": T(d.shape(0, 4))}
    if v < 7 and (test := d.pick((None, 0, 1, 1, 1))) is not None:
        out["is_test"] = test
    if v < 12:
        return {**out, **({"ratio": d.int(0, 3) / 4} if d.bool() else {})}
    if d.bool():
        tiny = {16: 1e-7, 64: 1e-310}.get(d.types["T1"].bits if d.types["T1"].name != "bf16" else 32, 1e-40)
        out["ratio"] = T((), values=[d.pick((0.0, 0.25, 0.5, 0.75, *((-0.0, tiny) if d.chance(4) else ())))])
    if d.bool():
        out["training_mode"] = T((), values=[d.bool()])
    if d.chance(3):
        out["seed"] = d.int(0, 1000)
    return out


def _dropout_outs(d: Draw, values: dict) -> int:
    """In test mode the mask "is not filled", say the versions that have it; until 12 none says what it holds."""
    return 1 if values.get("is_test") else d.int(1, 2)


op(
    "Dropout",
    Evaluation(
        _dropout,
        (accepted(_kept, "zero or x / (1 - ratio)"), accepted(_any_mask, "any mask in training, else all ones")),
        "ONNX Dropout-1 .. -22",
    ),
    Spelling(out_dtype=lambda c, i: of(c.inputs["data"]) if i == 0 or c.version.version < 10 else BOOL),
    Sampling(_draw_dropout, outs=_dropout_outs),
)
