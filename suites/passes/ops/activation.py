"""Activations spelled out in smaller ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import F32
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program

ROOT_HALF = float(np.sqrt(0.5))


def gelu_exact(d: Draw) -> dict[str, Any]:
    """0.5 x (1 + erf(x / sqrt 2)), in three orders of multiplication."""
    p = Program(d, F32)
    x = p.input(d.shape(1, 4, lo=1))
    inner = p.op("real_div", x=x, y=float(np.sqrt(2))) if d.bool() else p.op("mul", x=x, y=ROOT_HALF)
    one = p.op("add", x=p.op("erf", x=inner), y=1.0)
    order = d.int(0, 2)
    if order == 0:
        y = p.op("mul", x=p.op("mul", x=x, y=one), y=0.5)
    elif order == 1:
        y = p.op("mul", x=p.op("mul", x=one, y=0.5), y=x)
    else:
        y = p.op("mul", x=p.op("mul", x=x, y=0.5), y=one)
    return p.done(p.op("relu", x=y), pattern=f"match order {order}")


def _gelu_near(d: Draw) -> dict[str, Any]:
    """One constant off, or the inner value needed elsewhere."""
    p = Program(d, F32)
    x = p.input(d.shape(1, 4, lo=1))
    kind = d.pick(("root", "half", "one", "second user"))
    root = float(np.sqrt(2)) if kind != "root" else 1.5
    e = p.op("erf", x=p.op("real_div", x=x, y=root))
    one = p.op("add", x=e, y=1.0 if kind != "one" else 1.25)
    y = p.op("mul", x=p.op("mul", x=x, y=one), y=0.5 if kind != "half" else 0.25)
    outs = [p.op("relu", x=y)] + ([p.op("abs", x=e)] if kind == "second user" else [])
    return p.done(*outs, fires=False, pattern=f"near miss {kind}")


declare("fuse_gelu_exact", gelu_exact, _gelu_near)


def _gelu_tanh(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    x = p.input(d.shape(1, 4, lo=1))
    cube = p.op("mul", x=p.op("pow", x=x, y=3.0), y=0.044715)
    t = p.op("tanh", x=p.op("mul", x=p.op("add", x=x, y=cube), y=float(np.sqrt(2 / np.pi))))
    one = p.op("add", x=t, y=1.0)
    if d.bool():
        y = p.op("mul", x=p.op("mul", x=x, y=0.5), y=one)
    else:
        y = p.op("mul", x=x, y=p.op("mul", x=one, y=0.5))
    return p.done(p.op("relu", x=y))


def _tanh_near(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    x = p.input(d.shape(1, 4, lo=1))
    cube = p.op("mul", x=p.op("pow", x=x, y=2.0), y=0.044715)
    t = p.op("tanh", x=p.op("mul", x=p.op("add", x=x, y=cube), y=float(np.sqrt(2 / np.pi))))
    return p.done(p.op("mul", x=p.op("mul", x=x, y=0.5), y=p.op("add", x=t, y=1.0)), fires=False)


declare("fuse_gelu_tanh_approximation", _gelu_tanh, _tanh_near)


def leaky(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    x = p.input(d.shape(1, 4, lo=1))
    alpha = d.pick((0.25, 0.0, 1.0, 0.125))
    scaled = p.op("mul", x=x, y=alpha) if d.bool() else p.op("mul", x=p.const(alpha), y=x)
    y = p.op("maximum", x=scaled, y=x) if d.bool() else p.op("maximum", x=x, y=scaled)
    return p.done(p.op("abs", x=y))


def _leaky_near(d: Draw) -> dict[str, Any]:
    """alpha above 1 or below 0 makes the maximum another function."""
    p = Program(d, F32)
    x = p.input(d.shape(1, 4, lo=1))
    kind = d.pick(("steep", "negative", "minimum", "vector"))
    alpha: Any = {"steep": 1.5, "negative": -0.5, "minimum": 0.25, "vector": np.array([0.25, 0.5])}[kind]
    if kind == "vector":
        x = p.op("relu", x=p.input((2, 2)))
    y = p.op("minimum" if kind == "minimum" else "maximum", x=p.op("mul", x=x, y=alpha), y=x)
    return p.done(p.op("abs", x=y), fires=False, pattern=f"near miss {kind}")


declare("fuse_leaky_relu", leaky, _leaky_near)


def _prelu(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    c = d.dim(1, 4)
    same = d.bool()
    alpha = np.full(c, 0.25) if same or c == 1 else np.arange(1, c + 1) * 0.25
    y = p.op("prelu", x=p.input((d.dim(1, 2), c, d.dim(1, 4), d.dim(1, 4))), alpha=alpha)
    return p.done(
        p.op("abs", x=y), fires=bool(same or c == 1), pattern="one slope" if same or c == 1 else "near miss slopes"
    )


declare("prelu_to_lrelu", _prelu)


def _spelled_prelu(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    c = d.int(2, 4)
    x = p.input((d.dim(1, 2), c, d.dim(1, 4), d.dim(1, 4)))
    alpha = p.weights((1, c, 1, 1) if d.bool() else (c, 1, 1))
    neg = p.op("relu", x=p.op("mul", x=x, y=-1.0))
    y = p.op("add", x=p.op("relu", x=x), y=p.op("mul", x=neg, y=alpha))
    return p.done(p.op("abs", x=y))


def _prelu_near(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    x = p.input((1, 3, 2, 4))
    neg = p.op("relu", x=p.op("mul", x=x, y=-2.0))
    return p.done(p.op("add", x=p.op("relu", x=x), y=p.op("mul", x=neg, y=p.weights((1, 3, 1, 1)))), fires=False)


declare("fuse_prelu", _spelled_prelu, _prelu_near)
