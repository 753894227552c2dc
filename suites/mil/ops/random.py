"""Random tensors, judged by distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, of
from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T
from suites.mil import op
from suites.mil.codecs import typed, vector
from suites.semantics import random as s


def _shape(d: Draw) -> list[int]:
    """Large enough for a distribution test to say something, now and then small."""
    return [d.pick((64, 128, 96)), d.pick((8, 16))] if d.bool() else list(d.shape(1, lo=1))


def _seed(d: Draw, out: dict[str, Any]) -> dict[str, Any]:
    if d.bool():
        out["seed"] = d.pick((-1, 0, 1, 42, 2**31 - 1, -(2**31)))
    return out


def _draw(**ranges: Any) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        out: dict[str, Any] = {"shape": vector(_shape(d))}
        if not d.chance(4):
            out["@T"] = typed(d, "T").name
            for name, pick in ranges.items():
                out[name] = pick(d)
        return _seed(d, out)

    return draw


def _uniform(d: Draw) -> dict[str, Any]:
    out = _draw(low=lambda d: d.int(-16, 8) / 8)(d)
    if "low" in out:
        out["high"] = out["low"] + d.pick((0.0, 0.5, 1.0, 3.0))
    return _seed(d, out)


def _break_shape(d: Draw) -> dict[str, Any]:
    return {"shape": vector([d.dim(1, 5), -1], const=True)}


def _dtype(call: Call, i: int) -> Any:
    """That of the parameters; f32 where none is given."""
    return BY_NAME[call.attrs.get("@T", "f32")]


_BREAKS = {"extents-positive": _break_shape}
_KEYS = (
    Spelling(dtype=Fn(lambda c: None), out_dtype=_dtype),
    Checks(breaks=_BREAKS),
)
op("random_uniform", s.uniform, *_KEYS, Sampling(_uniform))
op(
    "random_normal",
    s.normal,
    *_KEYS,
    Sampling(_draw(mean=lambda d: d.int(-16, 16) / 8, stddev=lambda d: d.pick((0.5, 1.0, 2.0)))),
    std="stddev",
)
op("random_bernoulli", s.bernoulli, *_KEYS, Sampling(_draw(prob=lambda d: d.int(0, 16) / 16)), p="prob")


_TOP = {"f16": 65504.0, "f32": 3.4028234663852886e38}
_ODD = (np.nan, np.nan, np.inf, -np.inf, 0.0, -0.0, 2.0**-24, 2.0**24 + 2)


def _odd_logits(d: Draw, shape: tuple[int, ...]) -> T:
    """Logits that no network makes, at either end."""
    n, top = int(np.prod(shape)), _TOP[d.dtype("x").name]
    values = [float(i % 5 - 2) / 4 for i in range(n)]
    for at in d.pick(((0,), (-1,), (0, -1))):
        values[at] = d.pick([v for v in (*_ODD, top, -top) if not abs(v) > top or np.isinf(v)])
    if n > 2 and d.bool():
        values[:2] = [0.5, -0.5]
    return T(shape, values=values)


def _no_distribution(c: Call) -> str | None:
    """Logits of which an exponential is not a number, or a difference overflows, make no distribution."""
    with np.errstate(all="ignore"):
        calm = (np.abs(c.inputs["x"].astype(np.float64)) < (1e4 if c.inputs["x"].dtype == np.float16 else 1e30)).all()
    return None if calm else "logits without a distribution"


def _draw_categorical(d: Draw) -> dict[str, Any]:
    logits = d.bool()
    shape = (*d.shape(0, 4, lo=1), d.pick((2, 3, 4, 5, 6, 1)))
    out: dict[str, Any] = {"x": T(shape, recipe="uniform:-2:2") if logits else s.distributions(d, shape)}
    if logits and d.chance(4):
        out["x"] = _odd_logits(d, shape)
    if len(shape) > 1 and d.chance(12):
        out["x"] = T((*shape[:-2], 0, shape[-1]) if d.bool() else (0, *shape[1:]), recipe="unit")
    if not logits or d.bool():
        out["mode"] = "logits" if logits else "probs"
    if not d.chance(4):
        out["size"] = d.pick((1, 2, 256))
    return _seed(d, out)


op(
    "random_categorical",
    s.categorical,
    Spelling(
        logits=Fn(lambda c: c.attr("mode", "logits") == "logits"),
        out=lambda c, r: [r[0].astype(c.inputs["x"].dtype)],
        out_dtype=lambda c, i: of(c.inputs["x"]),
    ),
    Sampling(_draw_categorical),
    Checks(ambiguous=_no_distribution),
)
