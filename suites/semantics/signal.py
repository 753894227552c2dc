"""Signals: discrete Fourier transforms, windows, mel filters."""

from __future__ import annotations

from math import prod
from typing import Any as Object

import numpy as np

from harness.core.dtypes import of
from harness.core.errors import RuleError
from harness.declare import (
    Choice,
    Context,
    ElementType,
    Flag,
    Float,
    Integer,
    Opaque,
    T,
    bounded,
    semantics,
    summed,
    underspecified,
)
from harness.generate.draw import Draw
from suites.semantics.bounds import unordered

Array = np.ndarray


def _hold_parts(x: Array) -> None:
    """Raises RuleError "real-or-complex" where the last axis holds neither real numbers nor pairs."""
    if x.shape[-1] not in (1, 2):
        raise RuleError("real-or-complex", f"last axis {x.shape[-1]}")


def _complex(x: Array) -> Array:
    """[..., 1] or [..., 2] as complex; raises RuleError as ``_hold_parts``."""
    _hold_parts(x)
    v = x.astype(np.float64)
    return v[..., 0] + (1j * v[..., 1] if x.shape[-1] == 2 else 0)


def _pair(z: Array) -> Array:
    return np.stack([z.real, z.imag], -1)


def _half(z: Array, n: int, axis: int) -> Array:
    """The full spectrum of a real signal from its first half."""
    have = np.take(z, np.arange(min(z.shape[axis], n // 2 + 1)), axis=axis)
    out = np.zeros([n if i == axis else m for i, m in enumerate(z.shape)], complex)
    at: list[Object] = [slice(None)] * z.ndim
    at[axis] = slice(0, have.shape[axis])
    out[tuple(at)] = have
    for k in range(n // 2 + 1, n):
        src, dst = list(at), list(at)
        src[axis], dst[axis] = n - k, k
        out[tuple(dst)] = np.conj(out[tuple(src)])
    return out


def _terms_bound(ctx: Context) -> Array:
    """(9 n + 16) u sum|x| along the axis, over n for the inverse: products with rounded twiddle factors, any order"""
    axis = ctx.params["axis"] % ctx.inputs["x"].ndim
    n = max(ctx.wide.shape[axis], ctx.inputs["x"].shape[axis], 1)
    n = n if ctx.params["length"] is None else max(int(ctx.params["length"]), 1)
    total = 2 * _terms(ctx)
    return (
        np.broadcast_to((9 * n + 16) * ctx.acc_u * total / (n if ctx.params["inverse"] else 1), ctx.wide.shape)
        + ctx.ulp
    )


def _terms(ctx: Context) -> Array:
    """The sum of |x| along the axis, real and imaginary parts together."""
    x = np.asarray(ctx.inputs["x"], np.float64)
    return np.asarray(np.abs(x).sum(axis=(ctx.params["axis"] % x.ndim, -1), keepdims=True))


_MIXED = "inf, NaN or a sum beyond the type: the text states no order of the terms of a transform"


@semantics(
    error=summed(_terms_bound, _terms),
    source="ONNX DFT-17, -20",
    data=("unit", "small", "uniform:-4:4", "wide"),
    ambiguous=lambda i, p: unordered(_MIXED, i["x"], (p["axis"] % i["x"].ndim, i["x"].ndim - 1)),
)
def dft(
    x: Float[Array, "*d k"],
    *,
    axis: Integer = -2,
    length: Integer | None = None,
    inverse: Flag = False,
    onesided: Flag = False,
) -> Array:
    """The (inverse, 1/n) transform along ``axis`` of a signal cut or padded with zeros to ``length``.

    x: last axis 1 (real) or 2 (real and imaginary).  onesided: the first length // 2 + 1 bins of a real signal, or
    (inverse) a real signal of such bins.  Raises RuleError "real-or-complex", "axis-is-signal", "onesided-is-real",
    "half-is-complex", "length-not-negative".
    """
    r = x.ndim
    if not -r <= axis < r - 1 or axis == -1:
        raise RuleError("axis-is-signal", f"axis {axis} for rank {r}")
    a = axis % r
    if onesided and not inverse and x.shape[-1] == 2:
        raise RuleError("onesided-is-real", "a complex signal has no one-sided spectrum")
    if onesided and inverse and x.shape[-1] != 2:
        raise RuleError("half-is-complex", "a one-sided spectrum is complex")
    if length is not None and length < 0:
        raise RuleError("length-not-negative", f"length {length}")
    _hold_parts(x)
    n = length if length is not None else 2 * (x.shape[a] - 1) if onesided and inverse else x.shape[a]
    if not prod([*x.shape[:a], *x.shape[a + 1 :]]):  # whatever the length, there is nothing
        bins = n // 2 + 1 if onesided and not inverse else n
        return np.zeros((*x.shape[:a], bins, *x.shape[a + 1 : -1], 1 if onesided and inverse else 2))
    if not n:  # the sum over no sample
        return np.zeros((*x.shape[:a], int(onesided and not inverse), *x.shape[a + 1 : -1], 2 - (onesided and inverse)))
    z = _complex(x)
    if onesided and inverse:
        return np.fft.ifft(_half(z, n, a), axis=a).real[..., None]
    y = (np.fft.ifft if inverse else np.fft.fft)(z, n, axis=a)
    return _pair(np.take(y, np.arange(n // 2 + 1), axis=a) if onesided else y)


def draw_signal(d: Draw, axis_first: int = 0) -> dict:
    """Shapes, axis and length of a transform."""
    onesided, inverse = d.bool(), d.bool()
    sizes = d.shape(1 if not axis_first and d.chance(8) else 2, 4, lo=1)
    k = 2 if onesided and inverse else 1 if onesided else d.int(1, 2)
    r = len(sizes) + 1
    axis = d.int(axis_first, r - 2)
    n = sizes[axis]
    if onesided and inverse and n < 2:
        sizes = (*sizes[:axis], 3, *sizes[axis + 1 :])
        n = 3
    length = d.pick((None, n, d.int(1, n), n + d.int(1, 3)))
    if onesided and inverse and length is not None:
        length = max(2, min(length, 2 * n - 1))
    if d.chance(24) and not d.breaking:
        length = 0
    if d.empty and len(sizes) > 1 and not d.breaking:  # no signal, of whatever length
        sizes = tuple(m if i == axis else 0 for i, m in enumerate(sizes))
        length = 2**31 - 1 if not inverse and d.bool() else length
    return {
        "x": T((*sizes, k)),
        "axis": axis - r if d.bool() else axis,
        "length": length,
        "inverse": inverse,
        "onesided": onesided,
    }


dft.draw(draw_signal)


@dft.breaks("onesided-is-real")
def _half_of_complex(d: Draw) -> dict:
    return {"x": T((d.int(1, 2), d.int(2, 5), 2)), "axis": 1, "length": None, "inverse": False, "onesided": True}


@dft.breaks("axis-is-signal")
def _axis_of_parts(d: Draw) -> dict:
    """The axis of real and imaginary parts, or one that there is not."""
    x = T((d.int(1, 2), d.int(2, 5), 1))
    return {"x": x, "axis": d.pick((2, 3, -4)), "length": None, "inverse": False, "onesided": False}


@dft.breaks("length-not-negative")
def _no_length(d: Draw) -> dict:
    x = T((d.int(1, 2), d.int(2, 5), 1))
    return {"x": x, "axis": 1, "length": d.pick((-2, -1)), "inverse": False, "onesided": False}


@dft.breaks("real-or-complex")
def _parts_beyond(d: Draw) -> dict:
    x = T((d.int(1, 2), d.int(2, 5), d.int(3, 4)))
    return {"x": x, "axis": 1, "length": None, "inverse": False, "onesided": False}


@dft.breaks("half-is-complex")
def _real_half(d: Draw) -> dict:
    """Half a spectrum, to be transformed back, without imaginary parts."""
    out = draw_signal(d)
    return {**out, "x": T((*out["x"].shape[:-1], 1)), "inverse": True, "onesided": True, "length": None}


def _frames_bound(ctx: Context) -> Array:
    """(9 n + 17) u sum |x w| of the frame"""
    n = _frame(ctx.inputs["x"].shape[1], ctx.inputs.get("window"), ctx.params["length"])
    return np.broadcast_to((18 * n + 34) * ctx.acc_u * _frame_sums(ctx), ctx.wide.shape) + ctx.ulp


def _frame_sums(ctx: Context) -> Array:
    """[batch, frame, 1, 1]: the sum of |x w| of each frame"""
    i = ctx.inputs
    x = np.abs(np.asarray(i["x"], np.float64)).sum(-1)
    w = None if i.get("window") is None else np.abs(np.asarray(i["window"], np.float64))
    n, step = _frame(x.shape[1], w, ctx.params["length"]), int(ctx.params["step"])
    total = np.stack(
        [(x[:, t * step : t * step + n] * (1.0 if w is None else w)).sum(-1) for t in range(ctx.wide.shape[1])], 1
    )
    return np.asarray(total[..., None, None])


def _frame(signal: int, window: Object, length: Object) -> int:
    return int(length) if length is not None else window.shape[0] if window is not None else signal


def _frames_mixed(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    x, window = inputs["x"], inputs["window"]
    wide = x if window is None else (np.abs(x.astype(np.float64)) * np.abs(window.astype(np.float64)).max(initial=0.0))
    with np.errstate(all="ignore"):
        at = unordered(_MIXED, np.asarray(wide).astype(x.dtype), (1, 2))
    return None if at is None else underspecified(_MIXED, at.parts[0].at[..., None])


@semantics(
    error=summed(_frames_bound, _frame_sums),
    source="ONNX STFT-17",
    data=("unit", "small", "uniform:-4:4", "wide"),
    ambiguous=_frames_mixed,
)
def stft(
    x: Float[Array, "b n k"],
    window: Float[Array, "w"] | None = None,
    *,
    step: Integer,
    length: Integer | None = None,
    onesided: Flag = True,
) -> Array:
    """Transforms of windowed frames, ``step`` apart: [b, (n - length) // step + 1, bins, 2].

    Raises RuleError "window-length", "frame-fits", "step-positive", "onesided-is-real", "real-or-complex".
    """
    n = _frame(x.shape[1], window, length)
    if window is not None and window.shape[0] != n:
        raise RuleError("window-length", f"window of {window.shape[0]} for frames of {n}")
    if step < 1:
        raise RuleError("step-positive", f"step {step}")
    if not 1 <= n <= x.shape[1]:
        raise RuleError("frame-fits", f"frames of {n} in a signal of {x.shape[1]}")
    if onesided and x.shape[2] == 2:
        raise RuleError("onesided-is-real", "a complex signal has no one-sided spectrum")
    frames, bins = (x.shape[1] - n) // step + 1, n // 2 + 1 if onesided else n
    _hold_parts(x)
    if not x.shape[0]:
        return np.zeros((0, frames, bins, 2))
    z = _complex(x)
    w = np.ones(n) if window is None else window.astype(np.float64)
    rows = [np.fft.fft(z[:, t * step : t * step + n] * w, axis=-1) for t in range(frames)]
    y = np.stack(rows, 1)
    return _pair(y[..., : n // 2 + 1] if onesided else y)


@stft.draw
def _draw_stft(d: Draw) -> dict:
    n = d.int(1, 12)
    if d.chance(16):
        n = d.pick((17, 130, 300))
    signal = n + d.int(0, 12)
    batch = 0 if d.empty else d.int(1, 3)
    if not batch and d.bool():
        n = signal = 2**31 - 1
    onesided = d.bool()
    out: dict[str, Object] = {
        "x": T((batch, signal, 1 if onesided else d.int(1, 2))),
        "step": d.int(1, 5),
        "onesided": onesided,
    }
    if n > 1 << 20:
        return {**out, "length": n}
    if n == signal and d.bool():  # a frame of the whole signal
        return out
    how = d.int(0, 2)
    if how != 1:
        out["window"] = T((n,), "unit")
    if how != 0:
        out["length"] = n
    return out


@stft.breaks("window-length")
def _other_window(d: Draw) -> dict:
    n = d.int(2, 4)
    return {"x": T((1, 8, 1)), "step": 1, "window": T((n,), "unit"), "length": n + d.int(1, 2), "onesided": True}


@stft.breaks("step-positive")
def _no_step(d: Draw) -> dict:
    return {"x": T((1, 8, 1)), "step": d.pick((0, -1)), "length": d.int(2, 4), "onesided": True}


@stft.breaks("frame-fits")
def _long_frame(d: Draw) -> dict:
    n = d.int(2, 4)
    return {"x": T((1, n, 1)), "step": 1, "length": n + d.int(1, 3), "onesided": True}


@stft.breaks("onesided-is-real")
def _complex_half(d: Draw) -> dict:
    return {"x": T((1, d.int(4, 8), 2)), "step": 1, "length": d.int(2, 4), "onesided": True}


@stft.breaks("real-or-complex")
def _three_parts(d: Draw) -> dict:
    return {"x": T((1, d.int(4, 8), 3)), "step": 1, "length": d.int(2, 4), "onesided": False}


_WINDOWS = {"hann": (0.5, -0.5, 0.0), "hamming": (25 / 46, -21 / 46, 0.0), "blackman": (0.42, -0.5, 0.08)}


@semantics(
    error=bounded(lambda ctx: 16 * max(ctx.u, ctx.acc_u) + ctx.ulp, "16u of a sum of cosines, each at most 1"),
    source="ONNX HannWindow-17, HammingWindow-17, BlackmanWindow-17 (function bodies)",
)
def window(
    *, size: Integer, kind: Choice[str, _WINDOWS] = "hann", periodic: Flag = True, dtype: ElementType | None = None
) -> Array:
    """a + b cos(2 pi i / n) + c cos(4 pi i / n) with n = size (periodic) or size - 1."""
    a, b, c = _WINDOWS[kind]
    n = size if periodic else size - 1
    with np.errstate(all="ignore"):
        t = 2 * np.pi * np.arange(size) / n
    return a + b * np.cos(t) + c * np.cos(2 * t)


@semantics(
    error=bounded(lambda ctx: 4 * ctx.ulp, "4 ulp"), source="ONNX MelWeightMatrix-17; the bins as in its reference code"
)
def mel_matrix(
    *, bins: Integer, length: Integer, rate: Integer, low: Opaque, high: Opaque, dtype: ElementType | None = None
) -> Array:
    """Triangles on the mel scale: [length // 2 + 1, bins].

    Raises RuleError "edges-in-spectrum": "the spectrogram only contains the nonredundant DFT bins".
    """
    rows = length // 2 + 1
    lo, hi = (2595 / np.log(10) * np.log1p(float(v) / 700) for v in (low, high))
    mel = np.arange(bins + 2) * (hi - lo) / (bins + 2) + lo
    hertz = 700 * np.expm1(mel / 2595 * np.log(10))
    at = np.floor((length + 1) * hertz / rate).astype(int)
    if at.min() < 0 or at[:-1].max() >= rows or at[-1] > rows:
        raise RuleError("edges-in-spectrum", f"bins {at.tolist()} of {rows}")
    out = np.zeros((rows, bins))
    for i in range(bins):
        lower, centre, upper = at[i], at[i + 1], at[i + 2]
        if centre == lower:
            out[centre, i] = 1
        for j in range(lower, centre + 1):
            if centre > lower:
                out[j, i] = (j - lower) / (centre - lower)
        for j in range(centre, upper):
            out[j, i] = (upper - j) / (upper - centre)
    return out


__all__ = ["dft", "mel_matrix", "of", "stft", "window"]
