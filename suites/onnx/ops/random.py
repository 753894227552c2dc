"""Random ops, judged by distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import F32, I32, DType, of
from harness.spec import Call, Draw, Fn, T
from suites.onnx import op
from suites.onnx.codecs import ToType
from suites.semantics import random as s


def _bits(call: Call) -> int | None:
    """The seed attribute is a float: its bits seed the reference."""
    v = call.attr("seed")
    return None if v is None else int(np.float32(v).view(np.uint32))


_SEED = Fn(_bits, lambda v, b: b.attr("seed", float(v)) if v is not None else None)


def _type(default: DType | None):  # noqa: ANN202
    def read(call: Call, i: int = 0) -> DType:
        return ToType("dtype").decode(call) or default or of(call.inputs["input"])

    return read


def _draw(d: Draw) -> dict:
    """Enough elements for a distribution test."""
    out: dict[str, Any] = {}
    schema = d.version.schema
    rank = d.int(1, 3)
    shape = [d.int(8, 16) for _ in range(rank - 1)] + [256 // (8 ** (rank - 1)) * d.int(1, 3) or 8]
    if "shape" in schema.attrs:
        out["shape"] = shape
    else:
        out["input"] = T(shape, "prob" if d.version.op == "Bernoulli" else None)
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


_SHAPE = Fn(lambda c: tuple(c.inputs["input"].shape))
op("RandomUniform", s.uniform, dtype=Fn(lambda c: None), seed=_SEED, draw=_draw, out_dtype=_type(F32))
op("RandomNormal", s.normal, std="scale", dtype=Fn(lambda c: None), seed=_SEED, draw=_draw, out_dtype=_type(F32))
op("RandomUniformLike", s.uniform, shape=_SHAPE, dtype=Fn(lambda c: None), seed=_SEED, draw=_draw, out_dtype=_type(None))
op("RandomNormalLike", s.normal, shape=_SHAPE, std="scale", dtype=Fn(lambda c: None), seed=_SEED, draw=_draw,
   out_dtype=_type(None))  # fmt: skip


def _draw_multinomial(d: Draw) -> dict:
    out: dict[str, Any] = {"input": T((d.int(1, 3), d.int(1, 5)), "unit"), "sample_size": d.int(100, 300)}
    if d.bool():
        out["dtype"] = d.pick(d.version.schema.dtypes("T2"))
    if d.bool():
        out["seed"] = float(d.int(0, 1000))
    return out


def _as_type(call: Call, results: list[Any]) -> list[Any]:
    t = _type(None)(call)
    return results if t.kind == "f" else [results[0].astype(t.np)]


def _integers(call: Call, results: list[Any]) -> list[Any]:
    return [results[0].astype(_type(I32)(call).np)]


op("Multinomial", s.categorical, x="input", size="sample_size", fixed={"logits": True}, seed=_SEED, out=_integers,
   draw=_draw_multinomial, out_dtype=_type(I32))  # fmt: skip


op("Bernoulli", s.bernoulli_each, x="input", dtype=Fn(lambda c: None), seed=_SEED, draw=_draw, out=_as_type, out_dtype=_type(None))
