"""Normalisation.  Source: NeuralNetwork.proto, Batchnorm, MeanVarianceNormalize, L2Normalize, Softmax, LRN,
LayerNormalization."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T
from suites.nn import op
from suites.nn.spell import Or, Weight
from suites.semantics import coreml, norm

op(
    "softmaxND",
    norm.softmax,
    Checks(breaks={"axis-in-range": lambda d: {"x": T(d.shape(1, 3)), "axis": d.pick((3, -4))}}),
)
op(
    "softmax",
    norm.softmax,
    Sampling(lambda d: {"x": T(d.shape(3))}),
    Checks(breaks={"axis-in-range": lambda d: {"x": T(d.shape(1, 2))}}),
    axis=Fn(lambda c: -3),
)
op(
    "l2normalize",
    norm.l2_normalization,
    Spelling(epsilon=Or("epsilon", 1e-6), fixed={"axes": (-3, -2, -1), "under": "sum"}),
    Sampling(ranks=(3, 5)),
)


def _image(c: Call) -> np.ndarray:
    """[..., C, H, W] with one batch axis."""
    x = c.inputs["x"]
    if x.ndim < 3:
        raise RuleError("rank-at-least-3", f"rank {x.ndim}")
    return x.reshape(-1, *x.shape[-3:])


def _back(c: Call, results: list[Any]) -> list[Any]:
    return [results[0].reshape(c.inputs["x"].shape)]


def _channelled(c: Call) -> np.ndarray:
    x = _image(c)
    if x.shape[1] != c.attr("channels"):
        raise RuleError("channels-agree", f"{x.shape[1]} channels, expected {c.attr('channels')}")
    return x


def _statistics(c: Call) -> str:
    if not c.attr("computeMeanVar"):
        return "given"
    return "instance" if c.attr("instanceNormalization") else "batch"


_STEPS = ("unit", "small", "uniform:-4:4")


def _draw_batchnorm(d: Draw) -> dict[str, Any]:
    shape = d.shape(3)
    c = shape[-3]
    out: dict[str, Any] = {
        "x": T(shape, recipe=d.pick(_STEPS)),
        "channels": c,
        "epsilon": d.pick((0.0, 1e-5, 1e-3, 0.25)),
    }
    computed = d.int(0, 2) > 0
    if computed:
        out.update(computeMeanVar=True, instanceNormalization=d.bool())
    if not computed or d.chance(3):  # beside computed ones they are ignored
        out.update(mean=T((c,), recipe="unit", const=True), variance=T((c,), recipe="uniform:0.25:4", const=True))
    return {**out, "gamma": T((c,), const=True), "beta": T((c,), const=True)}


def _batch_apart(d: Draw) -> dict[str, Any]:
    out = _draw_batchnorm(d)
    *lead, c, h, w = out["x"].shape
    return {**out, "x": T((*lead, c + 1, h, w), recipe=out["x"].recipe)}


op(
    "batchnorm",
    coreml.batchnorm,
    Spelling(
        x=Fn(_channelled),
        scale=Weight("gamma"),
        bias=Weight("beta"),
        mean=Weight("mean"),
        var=Weight("variance"),
        epsilon=Or("epsilon", 1e-5),
        statistics=Fn(_statistics),
        out=_back,
    ),
    Sampling(_draw_batchnorm),
    Checks(breaks={"channels-agree": _batch_apart}),
)


def _mvn_axes(c: Call) -> tuple[int, ...]:
    if c.inputs["x"].ndim < 3:
        raise RuleError("rank-at-least-3", f"rank {c.inputs['x'].ndim}")
    return (-3, -2, -1) if c.attr("acrossChannels") else (-2, -1)


def _draw_mvn(d: Draw) -> dict[str, Any]:
    return {
        "x": T(d.shape(3), recipe=d.pick((*_STEPS, "uniform:-1024:1024"))),
        "acrossChannels": d.bool(),
        "normalizeVariance": d.bool(),
        "epsilon": d.pick((0.0, 1e-6, 1e-3, 0.25)),
    }


def _flat(d: Draw) -> dict[str, Any]:
    return {"x": T(d.shape(1, 2))}


op(
    "mvn",
    norm.mean_variance_normalization,
    Spelling(axes=Fn(_mvn_axes), epsilon=Or("epsilon", 1e-6), divide="normalizeVariance", fixed={"outside": False}),
    Sampling(_draw_mvn),
    Checks(breaks={"rank-at-least-3": _flat}),
)


def _draw_lrn(d: Draw) -> dict[str, Any]:
    size = 2**31 - 1 if d.chance(24) else d.pick((1, 3, 5, 3, 2, 7))
    return {
        "x": T(d.shape(3), recipe=d.pick(_STEPS)),
        "localSize": size,
        "alpha": d.pick((1e-4, 0.5, 1.0)),
        "beta": d.pick((0.75, 0.5, 1.0)),
        "k": d.pick((0.0, 1.0, 2.0)),
    }


def _window(c: Call) -> int:
    if c.attr("localSize") < 1 or c.attr("k") < 0:
        raise RuleError("window-and-k-positive", f"localSize {c.attr('localSize')}, k {c.attr('k')}")
    return int(c.attr("localSize"))


op(
    "lrn",
    norm.lrn,
    Spelling(x=Fn(_image), size=Fn(_window), bias=Or("k", 1.0), fixed={"scaled": True, "axis": 1}, out=_back),
    Sampling(_draw_lrn),
    Checks(
        breaks={
            "rank-at-least-3": lambda d: {**_flat(d), "localSize": 3},
            "window-and-k-positive": lambda d: {**_draw_lrn(d), **d.pick(({"localSize": 0}, {"k": -1.0}))},
        }
    ),
)


def _trailing(c: Call) -> tuple[int, ...]:
    shape, x = tuple(c.attr("normalizedShape")), c.inputs["x"]
    if not shape or x.shape[x.ndim - len(shape) :] != shape:
        raise RuleError("normalized-shape-trails", f"{list(shape)} of {list(x.shape)}")
    return tuple(range(-len(shape), 0))


def _draw_layer(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    tail = shape[d.int(0, len(shape) - 1) :]
    return {
        "x": T(shape, recipe=d.pick(_STEPS)),
        "normalizedShape": list(tail),
        "eps": d.pick((1e-5, 1e-3, 1.0)),
        "gamma": T(tail, const=True),
        "beta": T(tail, const=True),
    }


def _not_trailing(d: Draw) -> dict[str, Any]:
    return {
        "x": T((2, 3, 4)),
        "normalizedShape": [3],
        "eps": 1e-5,
        "gamma": T((3,), const=True),
        "beta": T((3,), const=True),
    }


op(
    "layerNormalization",
    norm.layer_norm,
    Spelling(scale=Weight("gamma"), bias=Weight("beta"), axes=Fn(_trailing), epsilon="eps", fixed={"axis": None}),
    Sampling(_draw_layer),
    Checks(breaks={"normalized-shape-trails": _not_trailing}),
)
