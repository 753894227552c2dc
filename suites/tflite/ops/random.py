"""Draws from distributions; both seeds 0 ask for a fresh draw, anything else promises the same one again."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, F32
from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T
from suites.semantics import random as s
from suites.tflite import op


def _seed(call: Call) -> int | None:
    a, b = call.attr("seed", 0), call.attr("seed2", 0)
    return None if a == 0 and b == 0 else (a * 1_000_003 + b) & 0x7FFFFFFF


def _seeds(d: Draw) -> dict[str, int]:
    return {"seed": d.pick((0, 1, 42, d.int(1, 1 << 30), -1, -(2**31))), "seed2": d.pick((0, 7, d.int(1, 1 << 30)))}


def _draw_shape(d: Draw) -> dict[str, Any]:
    """Now and then as long as any, without elements."""
    shape = d.pick(((0, 2**31 - 1), (2**31 - 1, 0), (0,))) if d.chance(24) else d.shape(1, 4, 1)
    return {"shape": list(shape), **_seeds(d)}


def _negative(d: Draw) -> dict[str, Any]:
    return {"shape": [2, -1], **_seeds(d)}


_BREAKS = Checks(breaks={"extents-positive": _negative})


_SHAPE = Fn(lambda call: tuple(int(n) for n in call.inputs["shape"]))
op(
    "RANDOM_UNIFORM",
    s.uniform,
    Spelling(
        shape=_SHAPE,
        seed=Fn(_seed),
        fixed={"low": 0.0, "high": 1.0, "dtype": None, "empty": True},
        out_dtype=lambda call, i: F32,
    ),
    Sampling(_draw_shape),
    _BREAKS,
)
op(
    "RANDOM_STANDARD_NORMAL",
    s.normal,
    Spelling(
        shape=_SHAPE,
        seed=Fn(_seed),
        fixed={"mean": 0.0, "std": 1.0, "dtype": None, "empty": True},
        out_dtype=lambda call, i: F32,
    ),
    Sampling(_draw_shape),
    _BREAKS,
)


def _draw_multinomial(d: Draw) -> dict[str, Any]:
    shape, samples = (d.dim(1, 4), d.dim(2, 6)), d.int(1, 300)
    if d.chance(24):
        shape, samples = d.pick((((0, 3), 2**31 - 1), ((3, 700), 40)))
    return {
        "logits": T(shape, "unit"),
        "num_samples": samples,
        **_seeds(d),
        "@outputs": [{"dtype": d.pick(("i32", "i64"))}],
    }


def _width(call: Call) -> Any:
    t = call.declared(0)["dtype"]
    return BY_NAME[t] if isinstance(t, str) else t


op(
    "MULTINOMIAL",
    s.categorical,
    Spelling(
        x="logits",
        seed=Fn(_seed),
        size=Fn(lambda call: int(np.asarray(call.inputs["num_samples"]).ravel()[0])),
        fixed={"logits": True},
        out=lambda call, r: [r[0].astype(_width(call).np)],
        out_dtype=lambda call, i: _width(call),
    ),
    Sampling(_draw_multinomial),
    Checks(stated={"logits": "_b _c"}),  # TF Multinomial: "2-D Tensor with shape [batch_size, num_classes]"
)
