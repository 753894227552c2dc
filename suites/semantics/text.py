"""Strings: concatenation, splitting, normalising, matching, counting n-grams.  Plain functions over object arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from harness.core.errors import RuleError


def _each(x: np.ndarray, fn: Callable[[str], object], dtype: np.typing.DTypeLike = object) -> np.ndarray:
    out = np.empty(x.shape, dtype)
    for i, v in np.ndenumerate(x):
        out[i] = fn(v)
    return out


def concat(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x followed by y, element by element with NumPy broadcasting.  Source: ONNX StringConcat-20."""
    a, b = np.broadcast_arrays(x, y)
    out = np.empty(a.shape, object)
    for i in np.ndindex(a.shape):
        out[i] = a[i] + b[i]
    return out


def split(x: np.ndarray, delimiter: str | None, limit: int | None) -> tuple[np.ndarray, np.ndarray]:
    """(substrings padded with "" along a new last axis, their int64 counts); no delimiter: runs of whitespace.

    limit: number of splits at most, from the left.  Source: ONNX StringSplit-20."""
    top = -1 if limit is None else limit
    parts = [s.split(delimiter or None, top) for s in x.ravel()]
    if delimiter and any(s == "" for s in x.ravel()):
        parts = [[] if s == "" else p for s, p in zip(x.ravel(), parts)]  # an empty string holds no substring
    wide = max((len(p) for p in parts), default=0)
    out = np.full((len(parts), wide), "", object)
    for i, p in enumerate(parts):
        out[i, : len(p)] = p
    counts = np.array([len(p) for p in parts], np.int64).reshape(x.shape)
    return out.reshape(*x.shape, wide), counts


def normalize(x: np.ndarray, case: str, stopwords: Sequence[str], sensitive: bool) -> np.ndarray:
    """x [c] or [1, c] without stop words, in lower, upper or its own case; one "" where nothing is left.

    Raises RuleError "vector-or-row".  Source: ONNX StringNormalizer-10."""
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
        raise RuleError("vector-or-row", f"shape {list(x.shape)}")
    stop = set(stopwords) if sensitive else {w.lower() for w in stopwords}
    kept = [s for s in x.ravel() if (s if sensitive else s.lower()) not in stop]
    change = {"LOWER": str.lower, "UPPER": str.upper}.get(case, str)
    out = np.array([change(s) for s in kept] or [""], object)
    return out.reshape(1, -1) if x.ndim == 2 else out


def full_match(x: np.ndarray, pattern: str) -> np.ndarray:
    """Whether the whole string matches the pattern in RE2 syntax, strings and pattern taken as UTF-8.

    Raises RuleError "re2-syntax".  Source: ONNX RegexFullMatch-20 ("This must be valid RE2 syntax"), and the page of
    that syntax, https://github.com/google/re2/wiki/Syntax."""
    import re2  # an extension module that this function alone needs

    options = re2.Options()
    options.log_errors = False
    try:
        regex = re2.compile(pattern, options)
    except re2.error as e:
        why = e.args[0].decode(errors="replace") if isinstance(e.args[0], bytes) else e
        raise RuleError("re2-syntax", f"expected a pattern in RE2 syntax, got {pattern!r}: {why}") from None
    return _each(x, lambda s: regex.fullmatch(s) is not None, bool)


def ngrams(
    x: np.ndarray,
    pool: Sequence[object],
    counts: Sequence[int],
    indexes: Sequence[int],
    *,
    shortest: int,
    longest: int,
    skips: int,
    mode: str,
    weights: Sequence[float] | None,
) -> np.ndarray:
    """Counts of each of the pool's n-grams in x [c] or [n, c], as f64 [rows, n-grams].

    counts[k]: where the (k+1)-grams start in the pool.  skips: elements of an n-gram stand 1 .. skips + 1 apart
    (1-grams count once).  mode: TF counts, IDF 0 or the weight, TFIDF count times weight.

    Source: ONNX TfIdfVectorizer-9.  Raises RuleError "counts-ascend", "whole-grams", "index-per-gram",
    "indexes-nonnegative", "weight-per-gram", "lengths-ordered", "skips-nonnegative"."""
    ends = [*counts[1:], len(pool)]
    if any(not 0 <= a <= b <= len(pool) for a, b in zip(counts, ends)):
        raise RuleError("counts-ascend", f"starts {list(counts)} in a pool of {len(pool)}")
    if any((b - a) % n for n, (a, b) in enumerate(zip(counts, ends), 1)):
        raise RuleError("whole-grams", f"starts {list(counts)}, end {len(pool)}")
    total = sum((b - a) // n for n, (a, b) in enumerate(zip(counts, ends), 1))
    if len(indexes) != total:
        raise RuleError("index-per-gram", f"{len(indexes)} indexes for {total} n-grams")
    if min(indexes, default=0) < 0:
        raise RuleError("indexes-nonnegative", f"indexes {list(indexes)}")
    if weights is not None and len(weights) != len(indexes):
        raise RuleError("weight-per-gram", f"{len(weights)} weights for {len(indexes)} indexes")
    if not 1 <= shortest <= longest:
        raise RuleError("lengths-ordered", f"from {shortest} to {longest}")
    if skips < 0:
        raise RuleError("skips-nonnegative", f"{skips} skipped")
    where: dict[tuple[object, ...], int] = {}
    number = 0
    for n, (a, b) in enumerate(zip(counts, ends), 1):
        for i in range(a, b - n + 1, n):
            if shortest <= n <= longest:
                where[tuple(pool[i : i + n])] = number
            number += 1
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    out = np.zeros((rows.shape[0], number))
    w = [1.0] * number if weights is None else list(weights)
    for r, row in enumerate(rows.tolist()):
        found = [0] * number
        for n in range(shortest, min(longest, len(counts)) + 1):  # longer ones are in no pool
            for gap in range(1, min(skips, len(row)) + 2):
                if n == 1 and gap > 1:
                    break
                for i in range(len(row) - (n - 1) * gap):
                    k = where.get(tuple(row[i + j * gap] for j in range(n)))
                    if k is not None:
                        found[k] += 1
        for k, c in enumerate(found):
            if c:
                out[r, k] = c if mode == "TF" else w[k] if mode == "IDF" else c * w[k]
    return out
