"""Discrete Fourier transforms over complex numbers, computed in complex128."""

from __future__ import annotations

from typing import Any as Anything
from typing import Literal

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Array, Choice, Context, Flag, Integer, Ints, Numeric, composed, exact, semantics

NORMS = ("forward", "backward", "ortho")


Norm = Literal["backward", "ortho", "forward"]


def _bound(ctx: Context) -> np.ndarray:
    """(8N + 10) u sum|x|: a product with a matrix whose angles, up to 2 pi N, are rounded"""
    x, p = np.asarray(ctx.inputs["x"]), ctx.params
    n = max(2.0, float(x.size), float(ctx.wide.size))
    window = ctx.inputs.get("window")
    total = float(np.abs(x.astype(np.complex128)).sum()) * (
        1.0 if window is None else float(np.abs(window).max(initial=0))
    )
    if p.get("norm", "backward") == "ortho":
        total /= np.sqrt(min(x.shape, default=1) or 1)
    return np.maximum((8 * n + 10) * 2.0**-24 * total, 4 * 2.0**-24 * np.abs(ctx.wide)) + 2.0**-126


_ERROR = composed(_bound)


def _sizes(x: np.ndarray, shapes: Anything, dims: Anything, one_sided: bool) -> tuple[list[int], list[int]]:
    """Extents and axes of a transform: torch's rules.  Raises RuleError "axes-in-range", "one-per-axis"."""
    if dims is None and shapes is not None and x.ndim and len(shapes) > x.ndim:
        raise RuleError("one-per-axis", f"{list(shapes)} for rank {x.ndim}")
    if dims is None:
        dims = range(x.ndim) if shapes is None else range(x.ndim - len(shapes), x.ndim)
    dims = list(dims)
    if not x.ndim:
        raise RuleError("axes-in-range", "a scalar has no axis")
    if any(not -x.ndim <= a < x.ndim for a in dims):
        raise RuleError("axes-in-range", f"{dims} for rank {x.ndim}")
    if shapes is not None and len(shapes) != len(dims):
        raise RuleError("one-per-axis", f"{list(shapes)} for axes {dims}")
    sizes = (
        [x.shape[a] for a in dims]
        if shapes is None
        else [x.shape[a] if n == -1 else int(n) for n, a in zip(shapes, dims)]
    )
    if one_sided and shapes is None:
        sizes[-1] = 2 * (x.shape[dims[-1]] - 1)
    if any(n < 1 for n in sizes):
        raise RuleError("extents-positive", f"{sizes}")
    return sizes, dims


def _named_twice(inputs: dict[str, Anything], params: dict[str, Anything]) -> str | None:
    """torch.fft, to which the pages refer, refuses it; they themselves say of one axis that it gets "shapes[dim]"."""
    dims, rank = params.get("dims") or (), inputs["x"].ndim
    return None if len({a % max(rank, 1) for a in dims}) == len(dims) else "a transform along one axis twice"


def _open(inputs: dict[str, Anything], params: dict[str, Anything]) -> str | None:
    """Every result is a sum over all elements, in an order and by an algorithm that no page states: where one is not
    finite, or a partial sum overflows, it may be anything."""
    x, window = inputs["x"], inputs.get("window")
    with np.errstate(all="ignore"):
        total = float(np.abs(x.astype(np.complex128)).sum())
        total *= 1.0 if window is None else float(np.abs(window.astype(np.complex128)).max(initial=0.0))
    if not total < 2.0**128:
        return "a sum in any order of what is not finite, or overflows"
    return _named_twice(inputs, params)


@semantics(error=_ERROR, source="MIL complex_fft, complex_fftn (torch.fft)", ambiguous=_open)
def fft(
    x: Numeric[Array, "*d"],
    *,
    shapes: Ints | None = None,
    dims: Ints | None = None,
    norm: Choice[Norm, NORMS] = "backward",
    inverse: Flag = False,
) -> Array:
    """Transform over ``dims`` (None: all, or the last len(shapes)), zero-padded or cut to ``shapes`` first."""
    sizes, axes = _sizes(x, shapes, dims, False)
    return (np.fft.ifftn if inverse else np.fft.fftn)(x.astype(np.complex128), sizes, axes, norm)


@semantics(error=_ERROR, source="MIL complex_rfft, complex_rfftn", ambiguous=_open)
def rfft(
    x: Numeric[Array, "*d"],
    *,
    shapes: Ints | None = None,
    dims: Ints | None = None,
    norm: Choice[Norm, NORMS] = "backward",
) -> Array:
    """The non-negative frequencies (n // 2 + 1 along the last axis) of a real input's transform."""
    sizes, axes = _sizes(x, shapes, dims, False)
    return np.fft.rfftn(x.astype(np.float64), sizes, axes, norm)


@semantics(error=_ERROR, source="MIL complex_irfft, complex_irfftn", ambiguous=_open)
def irfft(
    x: Numeric[Array, "*d"],
    *,
    shapes: Ints | None = None,
    dims: Ints | None = None,
    norm: Choice[Norm, NORMS] = "backward",
) -> Array:
    """Real inverse of ``rfft``; without ``shapes`` the last axis becomes 2 * (extent - 1)."""
    sizes, axes = _sizes(x, shapes, dims, True)
    return np.fft.irfftn(x.astype(np.complex128), sizes, axes, norm)


@semantics(error=exact(), source="MIL complex")
def pair(re: Numeric[Array, "*d"], im: Numeric[Array, "*d"]) -> Array:
    """re + i im."""
    out = np.empty(re.shape, np.complex64)
    out.real, out.imag = re, im
    return out


def _abs_bound(ctx: Context) -> np.ndarray:
    """two roundings under the root; free where a square overflows, and near zero where it underflows"""
    h = np.abs(ctx.wide)
    low = np.sqrt(2.0**-126)
    return np.where(h >= np.sqrt(2.0**127), np.inf, 4 * ctx.u * h + ctx.ulp + np.where(h < 64 * low, 2 * low, 0.0))


@semantics(error=composed(_abs_bound), source="MIL complex_abs")
def magnitude(x: Numeric[Array, "*d"]) -> Array:
    """sqrt(re^2 + im^2)."""
    return np.abs(x.astype(np.complex128))


@semantics(error=_ERROR, source="MIL complex_stft (torch.stft without centring)", ambiguous=_open)
def stft(
    x: Numeric[Array, "*d"],
    window: Numeric[Array, "w"] | None = None,
    *,
    n_fft: Integer,
    hop: Integer | None = None,
    width: Integer | None = None,
    normalized: Flag = False,
    onesided: Flag = True,
) -> Array:
    """Transforms of windows of ``n_fft`` samples every ``hop`` (a quarter of it), each times ``window`` centred in it.

    x: [samples] or [batch, samples]; torch.stft, input: "must be either a 1-D time sequence or a 2-D batch of time
    sequences".  Returns [..., frequencies, windows].  Raises RuleError "signal-or-batch", "window-fits".
    """
    if x.ndim not in (1, 2):
        raise RuleError("signal-or-batch", f"rank {x.ndim}")
    hop = n_fft // 4 if hop is None else hop
    width = n_fft if width is None else width
    if x.shape[-1] < n_fft or hop < 1 or not 0 < width <= n_fft:
        raise RuleError("window-fits", f"{x.shape[-1]} samples, n_fft {n_fft}, hop {hop}")
    if window is not None and window.shape != (width,):
        raise RuleError("window-fits", f"a window of {list(window.shape)}, of {width} samples")
    count = (x.shape[-1] - n_fft) // hop + 1
    if not x.size:
        return np.empty((*x.shape[:-1], n_fft // 2 + 1 if onesided else n_fft, count), np.complex128)
    w = np.ones(width) if window is None else window.astype(np.float64)
    left = (n_fft - width) // 2
    w = np.pad(w, (left, n_fft - width - left))
    frames = np.stack([x[..., i * hop : i * hop + n_fft] for i in range(count)], -2).astype(np.complex128) * w
    y = np.fft.fft(frames, axis=-1)
    if onesided:
        y = y[..., : n_fft // 2 + 1]
    if normalized:
        y = y / np.sqrt(n_fft)
    return np.moveaxis(y, -1, -2)
