"""Optimiser steps (ai.onnx.preview.training)."""

from __future__ import annotations

from typing import Any

from harness.core.dtypes import DType, of
from harness.declare import Call, Sampling, Spelling
from suites.onnx import op
from suites.onnx.codecs import Default
from suites.semantics import training as s

_DOMAIN = "ai.onnx.preview.training"


def _typed(parts: int) -> Any:
    """Each output has the type of the tensor that it renews."""

    def dtype(call: Call, i: int) -> DType:
        xs = call.inputs["inputs"]
        return of(xs[i % (len(xs) // parts)])

    return dtype


def _outs(parts: int, results: int) -> Any:
    return lambda d, v: len(v["xs"]) // parts * results


_COMMON = Spelling(rate="R", count="T", xs="inputs")
op(
    "Momentum",
    s.momentum,
    _COMMON,
    Spelling(norm="norm_coefficient", out_dtype=_typed(3)),
    Sampling(outs=_outs(3, 2)),
    domain=_DOMAIN,
)
op(
    "Adagrad",
    s.adagrad,
    _COMMON,
    Spelling(decay="decay_factor", norm="norm_coefficient", out_dtype=_typed(3)),
    Sampling(outs=_outs(3, 2)),
    domain=_DOMAIN,
)
op(
    "Adam",
    s.adam,
    _COMMON,
    Spelling(norm="norm_coefficient", norm_post=Default("norm_coefficient_post", 0.0), out_dtype=_typed(4)),
    Sampling(outs=_outs(4, 3)),
    domain=_DOMAIN,
)
