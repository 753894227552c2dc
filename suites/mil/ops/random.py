"""Random tensors, judged by distribution."""

from __future__ import annotations

from typing import Any

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
        out["seed"] = d.pick((-1, 0, 1, 42, 2**31 - 1))
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


def _draw_categorical(d: Draw) -> dict[str, Any]:
    logits = d.bool()
    shape = (*d.shape(0, 2, lo=1), d.int(2, 6))
    out: dict[str, Any] = {"x": T(shape, recipe="uniform:-2:2") if logits else s.distributions(d, shape)}
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
)
