"""The derived bounds of composed ops: plain f32 arithmetic in any order of summation passes, one lost digit does not.

Each implementation below follows the formula of its meaning with every operation rounded to f32; sums run in a shuffled
order.  The bound must hold for it, and must notice the same result scaled by one and a 10,000th.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from harness.core.dtypes import F32
from harness.declare import Semantics
from harness.tolerance import Context
from suites.semantics import attention, linear, norm, recurrent, reduction
from suites.semantics.resize import resize

Array = np.ndarray
f32 = np.float32


def total(x: Array, axis: int, rng: np.random.Generator) -> Array:
    """Sum in f32, one element after the other, in a random order; the axis stays."""
    x = np.moveaxis(x.astype(f32), axis, 0)[rng.permutation(x.shape[axis])]
    s = np.zeros(x.shape[1:], f32)
    for row in x:
        s = s + row
    return np.expand_dims(s, axis)


def product(a: Array, b: Array, rng: np.random.Generator) -> Array:
    return total(a[..., :, :, None].astype(f32) * b[..., None, :, :].astype(f32), -2, rng)[..., 0, :]


def softmax(x: Array, rng: np.random.Generator) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / total(e, -1, rng)


def layer_norm(x: Array, scale: Array, bias: Array, rng: np.random.Generator) -> Array:
    n = f32(x.shape[-1])
    c = x - total(x, -1, rng) / n
    return c / np.sqrt(total(c * c, -1, rng) / n + f32(1e-5)) * scale + bias


def one_pass_layer_norm(x: Array, scale: Array, bias: Array, rng: np.random.Generator) -> Array:
    n = f32(x.shape[-1])
    mean = total(x, -1, rng) / n
    var = total(x * x, -1, rng) / n - mean * mean
    return (x - mean) / np.sqrt(var + f32(1e-5)) * scale + bias


def group_norm(x: Array, scale: Array, bias: Array, rng: np.random.Generator) -> Array:
    g = x.reshape(x.shape[0], 2, -1)
    y = layer_norm(g, f32(1), f32(0), rng).reshape(x.shape)
    return y * scale[:, None, None] + bias[:, None, None]


def attend(q: Array, k: Array, v: Array, rng: np.random.Generator) -> Array:
    s = product(q, np.swapaxes(k, -1, -2), rng) * f32(1 / np.sqrt(q.shape[-1]))
    return product(softmax(s, rng), v, rng)


def gru(x: Array, w: Array, r: Array, b: Array, rng: np.random.Generator) -> Array:
    n, h, out = r.shape[-1], np.zeros((x.shape[1], r.shape[-1]), f32), []
    sigmoid = lambda v: f32(1) / (f32(1) + np.exp(-v))  # noqa: E731
    for step in x:
        wx, rh = product(step, w[0].T, rng) + b[0, : 3 * n], product(h, r[0].T, rng) + b[0, 3 * n :]
        z, s = sigmoid(wx[:, :n] + rh[:, :n]), sigmoid(wx[:, n : 2 * n] + rh[:, n : 2 * n])
        inner = product(s * h, r[0, 2 * n :].T, rng) + b[0, 5 * n :]
        h = (f32(1) - z) * np.tanh(wx[:, 2 * n :] + inner) + z * h
        out.append(h)
    return np.stack(out)[:, None]


def bilinear(x: Array, rng: np.random.Generator) -> Array:
    for axis in (2, 3):
        n, m = x.shape[axis], (7, 11)[axis - 2]
        at = (np.arange(m, dtype=f32) + f32(0.5)) * f32(n / m) - f32(0.5)
        lo = np.floor(at)
        t = (at - lo).reshape([-1 if k == axis else 1 for k in range(4)])
        low, high = (np.take(x, np.clip(lo.astype(int) + i, 0, n - 1), axis) for i in (0, 1))
        x = (f32(1) - t) * low + t * high
    return x


RECURRENT = {
    "direction": "forward",
    "activations": None,
    "activation_alpha": None,
    "activation_beta": None,
    "clip": None,
    "steps_first": True,
    "reset_after": False,
    "gates": "zrh",
}
RESIZE = {
    "sizes": (2, 3, 7, 11),
    "scales": None,
    "axes": None,
    "mode": "linear",
    "coordinates": "half_pixel",
    "nearest": "round_prefer_floor",
    "cubic_a": -0.75,
    "exclude_outside": False,
    "antialias": False,
    "extrapolation": 0.0,
    "policy": "stretch",
}
CASES: dict[str, tuple[Semantics, dict[str, tuple[int, ...]], dict, Callable[..., Array]]] = {
    "softmax": (norm.softmax, {"x": (4, 37)}, {"axis": -1, "beta": 1.0}, lambda x, rng: softmax(x, rng)),
    "log_softmax": (norm.log_softmax, {"x": (4, 37)}, {"axis": -1}, lambda x, rng: np.log(softmax(x, rng))),
    "layer_norm": (
        norm.layer_norm,
        {"x": (5, 29), "scale": (29,), "bias": (29,)},
        {"axis": -1, "axes": None, "epsilon": 1e-5, "stash": F32},
        layer_norm,
    ),
    "layer_norm, one pass": (
        norm.layer_norm,
        {"x": (5, 29), "scale": (29,), "bias": (29,)},
        {"axis": -1, "axes": None, "epsilon": 1e-5, "stash": F32},
        one_pass_layer_norm,
    ),
    "group_norm": (
        norm.group_norm,
        {"x": (2, 4, 3, 5), "scale": (4,), "bias": (4,)},
        {"groups": 2, "epsilon": 1e-5, "per_group": False, "stash": F32},
        group_norm,
    ),
    "rms_norm": (
        norm.rms_norm,
        {"x": (5, 29), "scale": (29,)},
        {"axis": -1, "epsilon": 1e-5, "stash": F32},
        lambda x, s, rng: x / np.sqrt(total(x * x, -1, rng) / f32(29) + f32(1e-5)) * s,
    ),
    "reduce_l2": (
        reduction.reduce_l2,
        {"x": (4, 50)},
        {"axes": (1,), "keepdims": True},
        lambda x, rng: np.sqrt(total(x * x, 1, rng)),
    ),
    "reduce_mean": (
        reduction.reduce_mean,
        {"x": (4, 50)},
        {"axes": (1,), "keepdims": True},
        lambda x, rng: total(x, 1, rng) / f32(50),
    ),
    "reduce_log_sum_exp": (
        reduction.reduce_log_sum_exp,
        {"x": (4, 50)},
        {"axes": (1,), "keepdims": True, "in_double": False},
        lambda x, rng: np.log(total(np.exp(x), 1, rng)),
    ),
    "gemm": (
        linear.gemm,
        {"a": (6, 40), "b": (40, 5), "c": (5,)},
        {"alpha": -0.5, "beta": 2.0, "trans_a": False, "trans_b": False},
        lambda a, b, c, rng: f32(-0.5) * product(a, b, rng) + f32(2) * c,
    ),
    "attention": (attention.scaled_dot_product_attention, {"q": (2, 5, 8), "k": (2, 7, 8), "v": (2, 7, 4)}, {}, attend),
    "gru": (recurrent.gru, {"x": (4, 2, 3), "w": (1, 15, 3), "r": (1, 15, 5), "b": (1, 30)}, RECURRENT, gru),
    "resize": (resize, {"x": (2, 3, 5, 6)}, RESIZE, bilinear),
}


def context(meaning: Semantics, inputs: dict[str, Array], params: dict) -> Context:
    def run(values: dict[str, Array]) -> Array:
        raw = meaning.fn(**values, **params)
        return raw[0] if isinstance(raw, (tuple, list)) else raw

    wide = {n: v.astype(np.float64) for n, v in inputs.items()}
    env = meaning.bind(inputs, params)
    return Context(wide, params, run(inputs), F32, dims=env, rerun=run, count=lambda e: float(eval(e, {}, env)))


@pytest.mark.parametrize("name", CASES)
def test_bound(name: str) -> None:
    meaning, shapes, params, plain = CASES[name]
    noticed = tried = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        size = f32((1.0, 3.0, 0.1)[seed % 3])
        inputs = {n: (rng.standard_normal(s) * size).astype(f32) for n, s in shapes.items()}
        ctx = context(meaning, inputs, params)
        got = plain(*inputs.values(), rng)
        assert got.dtype == np.float32
        assert got.shape == ctx.wide.shape
        bound = np.asarray(meaning.error_of(0).bound(ctx))
        off = np.abs(got.astype(np.float64) - ctx.wide)
        assert (off <= bound).all(), f"seed {seed}: {np.max(off / bound):.2f} times the bound"
        wrong = np.abs(got.astype(np.float64) * (1 + 1e-4) - ctx.wide)
        tried += 1
        noticed += bool((wrong > bound).any())
    assert noticed == tried
