"""Data recipes: what they promise, the same bits as a NumPy version, every type."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import native_ref
from harness.core import dtypes as D

TYPES = [d for d in D.ALL if d.kind != "s"]
RECIPES = [
    "small",
    "unit",
    "wide",
    "special",
    "ties",
    "branch",
    "iota",
    "ints:-3:5",
    "uniform:-2:3",
    "bool",
    "positive",
    "prob",
    "full",
    "all",
    "nonzero",
    "shift",
    "index:7",
    "signed_index:7",
    "perm:9",
]


def hashes(seed: int, n: int) -> np.ndarray:
    """The stated hash, in NumPy."""
    with np.errstate(over="ignore"):
        i = np.arange(1, n + 1, dtype=np.uint64)
        z = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + i * np.uint64(0xD1342543DE82EF95)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def test_same_bits_as_numpy() -> None:
    h = hashes(42, 2000)
    np.testing.assert_array_equal(native_ref.fill("full", 42, (2000,), np.uint64), h)
    fraction = ((h >> np.uint64(12)) | np.uint64(0x3FF0000000000000)).view(np.float64) - 1
    np.testing.assert_array_equal(native_ref.fill("unit", 42, (2000,), np.float64), fraction * 2 - 1)
    want = (fraction * 2 - 1).astype(np.float32)
    np.testing.assert_array_equal(native_ref.fill("unit", 42, (2000,), np.float32), want)
    small = ((h >> np.uint64(32)) * np.uint64(17) >> np.uint64(32)).astype(np.int64) - 8
    for dtype in (np.int8, np.int64, np.float16):
        np.testing.assert_array_equal(native_ref.fill("small", 42, (2000,), dtype), small.astype(dtype))


def test_bits_do_not_change() -> None:
    """A digest over every recipe and type: a recorded instance must keep its data."""

    def digest(types: list[D.DType]) -> str:
        h = hashlib.sha256()
        for d in types:
            for r in RECIPES:
                h.update(native_ref.fill(r, 7, (3, 67), d).tobytes())
        return h.hexdigest()[:16]

    six = [D.F6E2M3, D.F6E3M2]
    assert digest([d for d in TYPES if d not in six]) == "b679e2fa72579136"
    assert digest(six) == "e887b03869988229"


@pytest.mark.parametrize("d", TYPES, ids=str)
def test_ranges(d: D.DType) -> None:
    n = 3000

    def wide(recipe: str) -> np.ndarray:
        x = native_ref.fill(recipe, 5, (n,), d)
        if d.kind == "c":
            x = x.view(np.float32 if d is D.C64 else np.float64)
        return native_ref.convert(x, D.F64) if d.name not in ("u1", "u3", "u6") else x.astype(np.float64)

    lo, hi = D.int_range(d) if d.kind in "iub" else (-1e300, 1e300)
    if d is D.F8E8M0:
        assert np.isfinite(wide("positive")).all()
        return
    small = wide("small")
    assert set(small) == {v for v in range(-8, 9) if lo <= v <= hi} or d.bits <= 6
    assert small.min() >= max(lo, -8)
    assert small.max() <= min(hi, 8)
    nonzero = wide("nonzero")
    assert (nonzero != 0).all() or d.kind == "b"
    assert (wide("prob") >= 0).all()
    assert (wide("prob") <= 1).all()
    assert set(wide("bool")) == {0, 1}
    assert wide("ints:0:1").max() == 1
    assert wide("ints:0:1").min() == 0
    if d.kind in "fc" and d.bits > 8:
        assert np.isfinite(wide("wide")).all()
        unit = wide("unit")
        assert -1 <= unit.min() < -0.9
        assert 0.9 < unit.max() <= 1
        special = wide("special")
        assert np.isnan(special).any()
        assert np.isposinf(special).any()
        assert np.isneginf(special).any()
        assert (np.signbit(special) & (special == 0)).any()
        assert (wide("positive") > 0).all()
    if d.kind in "iu":
        special = wide("special")
        assert special.min() == float(lo)
        assert special.max() == float(hi)


def test_special_reaches_every_class_of_f32() -> None:
    x = native_ref.fill("special", 1, (4000,), np.float32)
    tiny, top = np.float32(1e-45), np.finfo(np.float32).max
    for v in (tiny, -tiny, top, -top, np.finfo(np.float32).tiny, np.float32(1), np.float32(-1)):
        assert (x == v).any(), v


def test_branch_sits_next_to_its_points() -> None:
    x = native_ref.fill("branch", 1, (4000,), np.float32)
    for p in (0.5, 1, 2, 2.5, 3, 6, 20):
        p = np.float32(p)
        near = {float(v) for v in np.unique(x) if abs(v - p) <= 4 * np.spacing(p)}
        want = {float(p), float(np.nextafter(p, np.float32(99))), float(np.nextafter(p, np.float32(0)))}
        assert want <= near, p
    assert (x == 0).any()
    assert np.abs(x[x != 0]).min() <= np.float32(3e-45)


def test_permutation_and_indices() -> None:
    p = native_ref.fill("perm:9", 3, (4, 9), np.int64)
    assert all(sorted(row) == list(range(9)) for row in p.tolist())
    assert len({tuple(r) for r in p.tolist()}) > 1
    i = native_ref.fill("signed_index:4", 3, (500,), np.int32)
    assert set(i.tolist()) == set(range(-4, 4))
    assert set(native_ref.fill("index:4", 3, (500,), np.int32).tolist()) == set(range(4))
    assert set(native_ref.fill("shift", 3, (500,), np.uint8).tolist()) == set(range(8))


def test_all_patterns() -> None:
    x = native_ref.fill("all", 0, (1 << 16,), np.float16)
    np.testing.assert_array_equal(x.view(np.uint16), np.arange(1 << 16))


def test_seeds_differ_and_shapes_do_not_matter() -> None:
    a = native_ref.fill("unit", 1, (60,), np.float32)
    assert (a != native_ref.fill("unit", 2, (60,), np.float32)).any()
    np.testing.assert_array_equal(a.reshape(3, 20), native_ref.fill("unit", 1, (3, 20), np.float32))
    assert native_ref.fill("unit", -1, (0, 3), np.float32).shape == (0, 3)
    words = native_ref.fill("strings", 1, (5, 4), D.STR)
    assert words.dtype == object
    assert all(isinstance(w, str) for w in words.ravel())


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("nope", "unknown recipe 'nope', expected one of small unit"),
        ("ints:3", "expected another number"),
        ("ints:3:x", "expected a number, got 'x'"),
        ("small:3", "':3' left over"),
        ("ints:3:1", "upper end is below"),
    ],
)
def test_bad_recipes(recipe: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        native_ref.fill(recipe, 0, (1,), np.float32)


def test_strings_are_words_by_the_numbers_that_a_range_gives() -> None:
    words = ["", "a", "b", "ab", "abc", "Hello", "hello", "World", "tic tac", " x ", "12", "-3.5", "é", "日本"]
    words += ["a,b,,c", "ZZZ"]
    for shape in ((), (0, 3), (7,), (40, 5)):
        got = native_ref.fill("strings", 5, shape, D.STR)
        assert got.dtype == object
        assert got.shape == shape
        which = native_ref.fill(f"ints:0:{len(words) - 1}", 5, shape, D.I64)
        assert got.ravel().tolist() == [words[i] for i in which.ravel()]
    assert set(got.ravel()) == set(words)
