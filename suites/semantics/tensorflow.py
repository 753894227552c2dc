"""Meanings that only TensorFlow's operator sets have."""

from __future__ import annotations

from typing import Any as Anything

import numpy as np

import native_ref as native
from harness.core.errors import RuleError
from harness.declare import (
    Any,
    Bool,
    Choice,
    Complex,
    Context,
    Each,
    Flag,
    Float,
    Integer,
    Ints,
    Opaque,
    Pads,
    T,
    bounded,
    composed,
    exact,
    semantics,
    summed,
)
from harness.generate.draw import Draw
from harness.tolerance import gamma
from suites.semantics import elementwise as e
from suites.semantics import pool
from suites.semantics.window import FAR, MODES

Array = np.ndarray


def _gelu_bound(ctx: Context) -> Array:
    """as for the exact form, or for the tanh form where it is asked for"""
    kind = e.gelu_tanh if ctx.params["approximate"] else e.gelu_exact
    return kind.error_of(0).bound(ctx)


@semantics(error=composed(_gelu_bound), source="TFLite GELU: approximate takes the tanh form")
def gelu(x: Float[Array, "*d"], *, approximate: Flag = False) -> Float[Array, "*d"]:
    """x * Phi(x), or its approximation by tanh."""
    return (e.gelu_tanh if approximate else e.gelu_exact)(x)


@semantics(
    error=exact,
    data={"c": ("bool",)},
    source="TFLite SELECT: condition of the operands' shape, or rank 1 over the first axis",
)
def select_rows(c: Bool[Array, "*b"], x: Any[Array, "*d"], y: Any[Array, "*d"]) -> Any[Array, "*d"]:
    """x where c is true, else y."""
    return np.where(c.reshape(c.shape + (1,) * (x.ndim - c.ndim)), x, y)


@semantics(
    error=exact,
    source="TFLite BITCAST: the bytes under another type; a narrower one adds an axis, a wider one takes it",
)
def bitcast(x: Any[Array, "*d"], *, dtype: Opaque) -> Array:
    """Raises RuleError "last-axis-is-ratio" where a wider type does not find its parts in the last axis."""
    a, b = x.dtype.itemsize, dtype.np.itemsize
    if a == b:
        return np.ascontiguousarray(x).view(dtype.np).reshape(x.shape)
    if a > b:
        return np.ascontiguousarray(x).reshape(*x.shape, 1).view(dtype.np)
    if not x.shape or x.shape[-1] != b // a:
        raise RuleError("last-axis-is-ratio", f"{list(x.shape)} to {b // a} times the width")
    return np.ascontiguousarray(x).view(dtype.np).reshape(x.shape[:-1])


def _hypot(ctx: Context) -> Array:
    """4 ulp; free where a square overflows or vanishes"""
    big = np.sqrt(float(np.finfo(ctx.out.np).max))
    return np.where(ctx.wide > big / 2, np.inf, np.where(ctx.wide < 4 / big, 2 / big, 4 * ctx.ulp))


@semantics(error=bounded(_hypot), source="TFLite COMPLEX_ABS: sqrt(a**2 + b**2)", data=("unit", "small"))
def complex_abs(x: Complex[Array, "*d"]) -> Array:
    """Magnitude, in f64 for the entry to round."""
    return np.hypot(x.real.astype(np.float64), x.imag.astype(np.float64))


def _product_bound(ctx: Context) -> Array:
    """half an ulp; 3 ulp of the modulus of a complex product: each part is a sum of two rounded products"""
    if ctx.out.kind != "c":
        return 0.5 * ctx.ulp
    return 3 * np.abs(ctx.wide) * 2.0 ** -(23 if ctx.out.bits == 64 else 52)


@semantics(error=composed(_product_bound), source="TFLite MUL; IEEE 754", data=("small", "unit", "wide", "small"))
def product(x: Any[Array, "*#d"], y: Any[Array, "*#d"]) -> Any[Array, "*#d"]:
    """x * y, complex numbers included."""
    if x.dtype.kind == "c":
        return x.astype(np.complex128) * y.astype(np.complex128)
    return native.binary("mul", x, y)


@semantics(error=exact, source="TFLite REAL")
def real_part(x: Complex[Array, "*d"]) -> Array:
    """Real part."""
    return np.array(x.real)


@semantics(error=exact, source="TFLite IMAG")
def imaginary_part(x: Complex[Array, "*d"]) -> Array:
    """Imaginary part."""
    return np.array(x.imag)


def _norm_terms(ctx: Context) -> Array:
    """|h| (gamma(n+4)/2 + 3u) + ulp"""
    n = ctx.inputs["x"].shape[-1]
    return np.abs(ctx.wide) * (gamma(n + 4, ctx.acc_u) / 2 + 3 * ctx.acc_u) + ctx.ulp + np.abs(ctx.wide) * 2.0**-20


@semantics(
    error=composed(_norm_terms),
    source="TFLite L2_NORMALIZATION: over the last axis, norms below 1e-6 count as 1e-6",
    data=("small", "unit", "uniform:-4:4", "uniform:-1000:1000"),
    min_rank=1,
)
def l2_normalize(x: Float[Array, "*d n"]) -> Float[Array, "*d n"]:
    """x / max(||x||, 1e-6) over the last axis."""
    wide = x.astype(np.float64)
    norm = np.sqrt(native.reduce("sum_square", wide, (-1,), True))
    return wide / np.maximum(norm, 1e-6)


def _response_bound(ctx: Context) -> Array:
    """|h| (beta gamma(2r+6) sum/(bias + sum) + 8u) + ulp, of a radius that the channels fill"""
    p, radius = ctx.params, min(ctx.params["radius"], ctx.wide.shape[-1])
    return np.abs(ctx.wide) * ((abs(p["beta"]) + 1) * gamma(2 * radius + 8, ctx.acc_u) + 16 * ctx.acc_u) + ctx.ulp


@semantics(error=composed(_response_bound), source="TFLite LOCAL_RESPONSE_NORMALIZATION", data=("small", "unit"))
def local_response(
    x: Float[Array, "n h w c"], *, radius: Integer, bias: Opaque, alpha: Opaque, beta: Opaque
) -> Float[Array, "n h w c"]:
    """x / (bias + alpha * sum of squares within ``radius`` channels) ** beta, over the last axis."""
    radius = min(radius, x.shape[-1])  # as far as there are channels
    sq = np.pad(x.astype(np.float64) ** 2, [(0, 0)] * 3 + [(radius, radius)])
    total = sum(sq[..., k : k + x.shape[-1]] for k in range(2 * radius + 1))
    return x.astype(np.float64) / (np.float64(np.float32(bias)) + np.float64(np.float32(alpha)) * total) ** np.float64(
        np.float32(beta)
    )


@local_response.draw
def _draw_response(d: Draw) -> dict[str, Anything]:
    return {
        "x": T((d.dim(), d.dim(hi=5), d.dim(hi=5), d.dim())),
        "radius": 2**31 - 1 if d.chance(64) else d.int(0, 4),
        "bias": d.pick((1.0, 2.0, 0.5)),
        "alpha": d.pick((1.0, 0.25, 0.1)),
        "beta": d.pick((0.5, 0.75, 1.0)),
    }


def _transform_bound(ctx: Context) -> Array:
    """gamma(8 log2(h w) + 8) * sum of |x| that are finite: every twiddle product is rounded"""
    h, w = (int(n) for n in ctx.params["lengths"])
    total = _finite_sum(ctx)
    return np.broadcast_to(gamma(8 * np.log2(max(h * w, 2)) + 8, 2.0**-24) * total + 1e-37, ctx.wide.shape)


def _finite_sum(ctx: Context) -> Array:
    """The sum of what is finite of |x|, of each image."""
    h, w = (int(n) for n in ctx.params["lengths"])
    x = np.abs(ctx.inputs["x"][..., :h, :w].astype(np.float64))
    return np.asarray(np.where(np.isfinite(x), x, 0.0).sum((-2, -1), keepdims=True))


@semantics(error=summed(_transform_bound, _finite_sum), source="TFLite RFFT2D: last two axes, cropped or padded")
def rfft2d(x: Float[Array, "*d h w"], *, lengths: Opaque) -> Array:
    """Two-dimensional discrete Fourier transform of a real signal, the non-negative half of the last axis.

    lengths: (rows, columns), powers of two here."""
    h, w = (int(n) for n in lengths)
    return np.fft.rfft2(x.astype(np.float64), s=(h, w))


@rfft2d.draw
def _draw_rfft(d: Draw) -> dict[str, Anything]:
    h, w = d.pick((1, 2, 4, 8)), d.pick((2, 4, 8, 16))
    shape = (*d.shape(0, 2), max(1, h - d.pick((0, 0, 1, -2))), max(1, w - d.pick((0, 0, 1, -3))))
    return {"x": T(shape, d.pick(("small", "unit"))), "lengths": (h, w)}


@semantics(
    error=exact,
    source="TFLite DILATE: padding_value between the elements, dilations of at least 1 (dilate.cc, Eval); StableHLO "
    "pad with interior padding",
)
def dilate(x: Any[Array, "*d"], value: Any[Array, ""], *, dilations: Opaque) -> Array:
    """Elements ``dilations`` steps apart on each axis, ``value`` between them.

    Raises RuleError "dilations-positive"."""
    if any(k < 1 for k in dilations):
        raise RuleError("dilations-positive", f"{list(dilations)}")
    shape = [(n - 1) * k + 1 if n else 0 for n, k in zip(x.shape, dilations)]
    out = np.full(shape, value.reshape(()), x.dtype)
    out[tuple(slice(None, None, int(k)) for k in dilations)] = x
    return out


@dilate.draw
def _draw_dilate(d: Draw) -> dict[str, Anything]:
    shape = d.shape(1, 4)
    if d.chance(8):
        shape = tuple(d.dim(0, 2) for _ in range(d.int(5, 8)))
    dilations = [d.int(1, 3) for _ in shape]
    if d.chance(16):  # nothing stands between the elements of an axis of one
        at = d.int(0, len(shape) - 1)
        shape, dilations[at] = (*shape[:at], 1, *shape[at + 1 :]), d.pick((16, 300, FAR))
    return {"x": T(shape), "value": T(()), "dilations": tuple(dilations)}


@dilate.breaks("dilations-positive")
def _backwards(d: Draw) -> dict[str, Anything]:
    """No step, or one backwards, along an axis of one element or of several."""
    return {"x": T((2, d.pick((1, 3)))), "value": T(()), "dilations": (1, d.pick((0, -1, -FAR)))}


def _l2_pool_bound(ctx: Context) -> Array:
    """|h| (gamma(K+3)/2 + 2u) + ulp"""
    k = pool.seen(ctx.params["kernel"], ctx.inputs["x"].shape[2:])
    return (
        np.abs(ctx.wide) * (gamma(k + 3, ctx.acc_u) / 2 + 2 * ctx.acc_u) + ctx.ulp + (np.abs(ctx.wide) < 1e-15) * 1e-18
    )


@semantics(
    error=composed(_l2_pool_bound),
    source="TFLite L2_POOL_2D: root of the mean square over the elements of the window",
    draw=pool.avg_pool.drawer,
    data=("small", "unit", "uniform:-4:4", "uniform:-1000:1000"),
)
def l2_mean_pool(
    x: Float[Array, "n c *s"],
    *,
    kernel: Ints,
    strides: Each[Ints, "s", 1, 3] | None = None,
    dilations: Each[Ints, "s", 1, 2] | None = None,
    pads: Pads[Ints, "s"] | None = None,
    padding: Choice[str, MODES] = "explicit",
    ceil: Flag = False,
    last: Choice[str, "keep"] = "keep",
) -> Array:
    """sqrt(mean of x**2) of every window, padding not counted.  Raises RuleError as the pools do."""
    return np.sqrt(
        pool.avg_pool(
            x.astype(np.float64) ** 2,
            kernel=kernel,
            strides=strides,
            dilations=dilations,
            pads=pads,
            padding=padding,
            ceil=ceil,
            last=last,
        )
    )
