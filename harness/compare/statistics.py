"""Random ops: do the draws follow the distribution that the operator states?

A draw is carried through its distribution function (probability integral transform), so that continuous draws of
instances with different parameters pool into one uniform sample.  The test is the Dvoretzky-Kiefer-Wolfowitz
inequality with Massart's constant, P(sup|F_n - F| > d) <= 2 exp(-2 n d^2): exact for every n and conservative for
discrete distributions, so the stated false alarm rate holds.  ``ALPHA`` is that rate for one case, ``POOLED`` for
one pool of a whole run.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.tolerance import Context, Statistical, ulp

ALPHA = 1e-9
POOLED = 1e-9
ENOUGH = 50_000  # draws of a pool
START = 6  # draws by which a stream is recognised
FEW = 16  # from so many continuous draws on, two thirds of them being equal is no accident


def check(error: Statistical, ctx: Context, actual: np.ndarray) -> tuple[str, np.ndarray | None]:
    """("", sample to pool or None) when the draws can be what is stated, else (why not, None)."""
    a = np.asarray(actual, np.float64).ravel()
    if not a.size:
        return "", None
    if np.isnan(a).any():
        return "a draw is NaN", None
    low, high, below, upto, discrete = distribution(error, ctx)
    slack = 0.0 if discrete else ulp(np.maximum(np.abs(a), max(abs(low), abs(high)) if high < math.inf else 0), ctx.out)
    outside = (a < low - slack) | (a > high + slack)
    if outside.any():
        return f"{int(outside.sum())} draws outside [{low:g}, {high:g}], such as {a[outside][0]:g}", None
    if not discrete and a.size >= FEW and low < high:
        _, counts = np.unique(a, return_counts=True)
        if counts.max() > 2 * a.size / 3:
            return f"{int(counts.max())} of {a.size} draws are equal", None
    u = transform(a, below, upto, discrete)
    d = distance(u)
    if 2 * math.exp(-2 * a.size * d * d) < ALPHA:
        return f"distance {d:.4f} from the stated distribution over {a.size} draws (false alarm < {ALPHA:g})", None
    return "", None if discrete else u  # equal generator states do not show in discrete draws: no pooling there


def transform(a: np.ndarray, below: Any, upto: Any, discrete: bool) -> np.ndarray:
    """F(x), spread evenly over [F(x-), F(x)] where the distribution jumps; the spread depends on the draws alone."""
    hi = np.asarray(upto(a), np.float64)
    if not discrete:
        return np.clip(hi, 0.0, 1.0)
    lo = np.asarray(below(a), np.float64)
    seed = int.from_bytes(hashlib.sha256(a.tobytes()).digest()[:8], "little")
    v = np.random.Generator(np.random.PCG64(seed)).random(a.size)
    return np.clip(lo + v * (hi - lo), 0.0, 1.0)


def distance(u: np.ndarray) -> float:
    """Kolmogorov distance of a sample from the uniform distribution."""
    s = np.sort(u)
    n = s.size
    i = np.arange(1, n + 1)
    return float(max(np.max(i / n - s), np.max(s - (i - 1) / n)))


def distribution(error: Statistical, ctx: Context) -> tuple[float, float, Any, Any, bool]:
    """(lowest, highest, x -> P(X < x), x -> P(X <= x), is it discrete)."""

    def given(name: str, default: float) -> np.ndarray:
        v = error.params.get(name, name)
        if callable(v):
            v = v(ctx)
        elif isinstance(v, str):
            v = ctx.params.get(v, default)
        return np.asarray(default if v is None else v, np.float64).ravel()

    def p(name: str, default: float) -> float:
        return float(given(name, default)[0])

    if callable(error.dist):
        return error.dist(ctx)
    if error.dist == "uniform":
        low, high = p("low", 0.0), p("high", 1.0)
        span = high - low

        def cdf(x: np.ndarray) -> np.ndarray:
            return (x - low) / span if span else (x >= low).astype(np.float64)

        def under(x: np.ndarray) -> np.ndarray:
            return cdf(x) if span else (x > low).astype(np.float64)

        return min(low, high), max(low, high), under, cdf, span == 0
    if error.dist == "normal":
        mean, std = p("mean", 0.0), p("std", 1.0)

        def cdf(x: np.ndarray) -> np.ndarray:
            z = (x - mean) / (std * math.sqrt(2)) if std else np.where(x >= mean, np.inf, -np.inf)
            return np.array([0.5 * math.erfc(-t) for t in z])

        def under(x: np.ndarray) -> np.ndarray:
            return cdf(x) if std else (x > mean).astype(np.float64)

        return -math.inf, math.inf, under, cdf, std == 0
    if error.dist == "bernoulli":
        q = 1.0 - given("p", 0.5)  # one for all, or one for each element
        return (0.0, 1.0, lambda x: np.where(x > 0, q, 0.0), lambda x: np.where(x >= 1, 1.0, q), True)
    if error.dist == "categorical":
        return _categorical(np.asarray(error.params["weights"](ctx), np.float64))
    raise ValueError(f"statistical: unknown distribution {error.dist!r}, give a function of the context instead")


def _categorical(weights: np.ndarray) -> tuple[float, float, Any, Any, bool]:
    """weights: rows that sum to 1 [*d, n]; the draws are [*d, size], so that each row owns as many consecutive ones."""
    rows = weights.reshape(-1, weights.shape[-1])
    edges = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, 1)], 1)

    def at(x: np.ndarray, step: int) -> np.ndarray:
        row = np.arange(x.size) // max(1, x.size // len(rows))
        return edges[row, np.clip(x, 0, rows.shape[1] - 1).astype(np.int64) + step]

    return 0.0, rows.shape[1] - 1.0, lambda x: at(x, 0), lambda x: at(x, 1), True


@dataclass
class Pool:
    """Samples of a whole run, by op version, dtype and backend: about the first ``ENOUGH`` draws of each, so that
    memory stays flat.  examples: what the first sample came from."""

    samples: dict[tuple[str, ...], list[np.ndarray]] = field(default_factory=lambda: defaultdict(list))
    examples: dict[tuple[str, ...], Any] = field(default_factory=dict)
    sizes: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def add(self, key: tuple[str, ...], sample: np.ndarray | None, example: Any = None) -> None:
        if sample is not None and sample.size and self.sizes[key] < ENOUGH:
            self.samples[key].append(sample)
            self.sizes[key] += sample.size
            self.examples.setdefault(key, example)

    def failures(self) -> dict[tuple[str, ...], str]:
        """Pools that do not look like their stated distribution; false alarm rate POOLED each."""
        out = {}
        for key, parts in self.samples.items():
            streams = self._streams(parts)
            if not streams:
                continue
            u = np.concatenate(streams)
            d = distance(u)
            if 2 * math.exp(-2 * u.size * d * d) < POOLED:
                out[key] = f"distance {d:.5f} over {u.size} pooled draws (false alarm < {POOLED:g})"
        return out

    @staticmethod
    def _streams(parts: list[np.ndarray]) -> list[np.ndarray]:
        """Independent samples: draws that begin alike come from one generator state (equal seeds, or a process that
        seeds every session alike, which no operator set forbids), so the longest stands for them all."""
        longest: dict[tuple[float, ...], np.ndarray] = {}
        for p in parts:
            if p.size >= START:
                start = tuple(np.round(p[:START], 1))
                if start not in longest or longest[start].size < p.size:
                    longest[start] = p
        return list(longest.values())
