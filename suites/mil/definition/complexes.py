"""Complex numbers and their transforms, as sums over all elements.

The pages refer to torch.fft and torch.stft for what they leave out: the norms, shapes beside dims, the place of a short
window.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np

from suites.mil.definition.reading import Arrays, Attrs, Read, reader

READ: dict[str, Read] = {}
reads = reader(READ)


@reads("complex")
def _complex(at: Attrs, a: Arrays, version: str) -> list[Any]:
    return [a["real_data"].astype(np.complex128) + 1j * a["imag_data"].astype(np.complex128)]


@reads("complex_real")
def _real(at: Attrs, a: Arrays, version: str) -> list[Any]:
    return [np.array([complex(v).real for v in a["data"].ravel()]).reshape(a["data"].shape)]


@reads("complex_imag")
def _imag(at: Attrs, a: Arrays, version: str) -> list[Any]:
    return [np.array([complex(v).imag for v in a["data"].ravel()]).reshape(a["data"].shape)]


@reads("complex_abs")
def _abs(at: Attrs, a: Arrays, version: str) -> list[Any]:
    parts = [(complex(v).real, complex(v).imag) for v in a["x"].ravel()]
    return [np.array([sqrt(re * re + im * im) for re, im in parts]).reshape(a["x"].shape)]


@reads("complex_shape")
def _shape(at: Attrs, a: Arrays, version: str) -> list[Any]:
    return [np.array(a["x"].shape)]


def _every(at: Attrs, rank: int, many: bool) -> list[tuple[int, int | None]]:
    """(axis, length) of every transform; no length: that of the axis."""
    if not many:
        return [(at.get("dim", -1) % rank, at.get("n"))]
    shapes = at.get("shapes")
    axes = at.get("dims", range(-len(shapes), 0) if shapes is not None else range(rank))
    return [(k % rank, None if n == -1 else n) for k, n in zip(axes, shapes or [-1] * len(axes))]


def _fitted(x: np.ndarray, n: int) -> np.ndarray:
    """The last axis cut to n elements, or zeros behind it."""
    out = np.zeros((*x.shape[:-1], n), np.complex128)
    for k in range(min(n, x.shape[-1])):
        out[..., k] = x[..., k]
    return out


def _scale(n: int, norm: str, inverse: bool) -> float:
    return {"ortho": 1 / sqrt(n), "backward": 1 / n if inverse else 1.0, "forward": 1.0 if inverse else 1 / n}[norm]


def _transform(x: np.ndarray, axis: int, n: int | None, norm: str, inverse: bool) -> np.ndarray:
    """X[k] = sum of x[m] exp(-2 pi i k m / n); the other sign for the inverse."""
    lanes = np.moveaxis(x, axis, -1)
    n = n or lanes.shape[-1]
    lanes, out = _fitted(lanes, n), np.zeros((*lanes.shape[:-1], n), np.complex128)
    for k in range(n):
        for m in range(n):
            out[..., k] += lanes[..., m] * np.exp((2j if inverse else -2j) * pi * (k * m % n) / n)
    return np.moveaxis(out * _scale(n, norm, inverse), -1, axis)


def _fft(inverse: bool, many: bool) -> Read:
    def read(at: Attrs, a: Arrays, version: str) -> list[Any]:
        y = a["data"]
        for axis, n in _every(at, y.ndim, many):
            y = _transform(y, axis, n, at.get("norm", "backward"), inverse)
        return [y]

    return read


def _rfft(many: bool) -> Read:
    """What is left of the transform: the frequencies from 0 to n / 2 of the last axis named."""

    def read(at: Attrs, a: Arrays, version: str) -> list[Any]:
        (y,) = _fft(False, many)(at, a, version)
        last = _every(at, y.ndim, many)[-1][0]
        return [y.take(range(y.shape[last] // 2 + 1), last)]

    return read


def _irfft(many: bool) -> Read:
    """x[m] = (X[0] + sum over 0 < k < n of X[k] exp(2 pi i k m / n)) / n with X[n - k] the conjugate of X[k]."""

    def read(at: Attrs, a: Arrays, version: str) -> list[Any]:
        y, norm = a["data"], at.get("norm", "backward")
        *others, (last, n) = _every(at, y.ndim, many)
        for axis, length in others:
            y = _transform(y, axis, length, norm, True)
        n = n or 2 * (y.shape[last] - 1)
        half = _fitted(np.moveaxis(y, last, -1), n // 2 + 1)
        whole = np.zeros((*half.shape[:-1], n), np.complex128)
        for k in range(n):
            whole[..., k] = half[..., k] if k <= n // 2 else np.conj(half[..., n - k])
        for k in {0, n // 2} if n % 2 == 0 else {0}:
            whole[..., k] = whole[..., k].real
        return [np.moveaxis(_transform(whole, -1, n, norm, True).real, -1, last)]

    return read


for _many in (False, True):
    _end = "n" if _many else ""
    READ[f"complex_fft{_end}"], READ[f"complex_ifft{_end}"] = _fft(False, _many), _fft(True, _many)
    READ[f"complex_rfft{_end}"], READ[f"complex_irfft{_end}"] = _rfft(_many), _irfft(_many)


@reads("complex_stft")
def _stft(at: Attrs, a: Arrays, version: str) -> list[Any]:
    """X[w, m] = sum over k < n_fft of window[k] input[m hop + k] exp(-2 pi i w k / n_fft)."""
    x, n = a["input"], at["n_fft"]
    hop: Any = at.get("hop_length", n // 4)
    width: Any = at.get("win_length", n)
    given, before = a.get("window"), (n - width) // 2
    window = [0.0] * n
    for k in range(width):
        window[before + k] = 1.0 if given is None else float(given[k])
    count = n // 2 + 1 if at.get("onesided", True) else n
    out = np.zeros((*x.shape[:-1], count, (x.shape[-1] - n) // hop + 1), np.complex128)
    for w in range(count):
        for m in range(out.shape[-1]):
            for k in range(n):
                out[..., w, m] += window[k] * x[..., m * hop + k] * np.exp(-2j * pi * (w * k % n) / n)
    return [out / sqrt(n) if at.get("normalized", False) else out]
