"""Optimiser steps (ai.onnx.preview.training)."""

from __future__ import annotations

from harness.core.dtypes import DType, of
from harness.declare import Call
from suites.onnx import op
from suites.onnx.codecs import Default
from suites.semantics import training as s

_DOMAIN = "ai.onnx.preview.training"


def _typed(parts: int):
    """Each output has the type of the tensor that it renews."""

    def dtype(call: Call, i: int) -> DType:
        xs = call.inputs["inputs"]
        return of(xs[i % (len(xs) // parts)])

    return dtype


def _outs(parts: int, results: int):
    return lambda d, v: len(v["xs"]) // parts * results


_COMMON = {"rate": "R", "count": "T", "xs": "inputs", "domain": _DOMAIN}
op("Momentum", s.momentum, norm="norm_coefficient", outs=_outs(3, 2), out_dtype=_typed(3), **_COMMON)
op(
    "Adagrad",
    s.adagrad,
    decay="decay_factor",
    norm="norm_coefficient",
    outs=_outs(3, 2),
    out_dtype=_typed(3),
    **_COMMON,
)
op(
    "Adam",
    s.adam,
    norm="norm_coefficient",
    norm_post=Default("norm_coefficient_post", 0.0),
    outs=_outs(4, 3),
    out_dtype=_typed(4),
    **_COMMON,
)
