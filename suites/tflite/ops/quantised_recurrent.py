"""Quantised recurrent operators: 8-bit activations and weights beside a 16-bit memory."""

from __future__ import annotations

from typing import Any

from harness.core.dtypes import I8, I16, I32
from harness.spec import Draw, T
from suites.semantics.quantised import products
from suites.semantics.quantised.fixed import draw_parameters, f32
from suites.tflite import op
from suites.tflite.codecs import OutQ, Q


def _symmetric(scale: float) -> dict[str, Any]:
    return {"scale": [f32(scale)], "zero_point": [0], "axis": 0}


def _draw_svdf(d: Draw) -> dict[str, Any]:
    b, i, u, rank, m = d.dim(1, 3), d.dim(1, 6), d.dim(1, 4), d.int(1, 3), d.int(1, 6)
    xq = draw_parameters(d, I8)
    fq, tq = _symmetric(0.004 * (1 + d.int(0, 16))), _symmetric(0.0002 * (1 + d.int(0, 16)))
    # a memory that what is seen fills to a good part, an output that sums of it fill
    sq = _symmetric(xq["scale"][0] * fq["scale"][0] * 90 * 64 * i**0.5 / 32767 * (0.5 + d.int(0, 16) / 8))
    oq = draw_parameters(d, I8, scale=sq["scale"][0] * tq["scale"][0] * 8000 * 4000 * rank**0.5 / 127
                         * (0.5 + d.int(0, 16) / 8))  # fmt: skip
    out: dict[str, Any] = {
        "input": T((b, i), "full", quant=xq),
        "feature_weights": T((u * rank, i), "ints:-127:127", dtype=I8, quant=fq, const=True),
        "time_weights": T((u * rank, m), "ints:-8000:8000", dtype=I16, quant=tq, const=True),
        "activation_state": T((b, m * u * rank), values=[0] * (b * m * u * rank), dtype=I16, quant=sq),
        "rank": rank,
        "fused_activation_function": d.pick(("RELU", "RELU", "RELU", "RELU6", "NONE")),
        "@outputs": [{"dtype": I8.name, "quant": oq}],
    }
    if d.bool():
        bq = _symmetric(sq["scale"][0] * tq["scale"][0])
        out["input_gate_bias"] = T((u,), "ints:-20000000:20000000", dtype=I32, quant=bq, const=True)
    return out


op("SVDF", products.svdf_step, domain="quantised", x="input", features="feature_weights", times="time_weights",
   b="input_gate_bias", xq=Q("input"), fq=Q("feature_weights"), tq=Q("time_weights"), sq=Q("activation_state"),
   activation="fused_activation_function", oq=OutQ("input"), draw=_draw_svdf, types={"W": ("i8",)},
   why="signed weights, as the specification asks")  # fmt: skip
