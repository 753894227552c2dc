"""Binary functions against plain loops over Python integers and floats, broadcasting and strides included."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

import native_ref

INTS = {
    "i8": (np.int8, 8, True),
    "i16": (np.int16, 16, True),
    "i32": (np.int32, 32, True),
    "i64": (np.int64, 64, True),
    "u8": (np.uint8, 8, False),
    "u16": (np.uint16, 16, False),
    "u32": (np.uint32, 32, False),
    "u64": (np.uint64, 64, False),
    "i4": (ml_dtypes.int4, 4, True),
    "u4": (ml_dtypes.uint4, 4, False),
    "i2": (ml_dtypes.int2, 2, True),
    "u2": (ml_dtypes.uint2, 2, False),
}


def wrap(v: int, bits: int, signed: bool) -> int:
    v &= (1 << bits) - 1
    return v - (1 << bits) if signed and v >> (bits - 1) else v


def trunc_div(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def int_pow(a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << 64)  # callers wrap to at most 64 bits
    return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


# The meaning on Python integers; the result is wrapped to the type.  b == 0 in divisions: as documented.
LOOPS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b, n: a + b,
    "sub": lambda a, b, n: a - b,
    "mul": lambda a, b, n: a * b,
    "div": lambda a, b, n: trunc_div(a, b) if b else 0,
    "trunc_div": lambda a, b, n: trunc_div(a, b) if b else 0,
    "floor_div": lambda a, b, n: a // b if b else 0,
    "fmod": lambda a, b, n: a - trunc_div(a, b) * b if b else a,
    "floor_mod": lambda a, b, n: a % b if b else a,
    "pow": lambda a, b, n: int_pow(a, b),
    "maximum": lambda a, b, n: max(a, b),
    "minimum": lambda a, b, n: min(a, b),
    "squared_difference": lambda a, b, n: (a - b) ** 2,
    "prelu": lambda a, b, n: a * b if a < 0 else a,
    "bitwise_and": lambda a, b, n: a & b,
    "bitwise_or": lambda a, b, n: a | b,
    "bitwise_xor": lambda a, b, n: a ^ b,
    "shift_left": lambda a, b, n: a << b if 0 <= b < n else 0,
    "shift_right": lambda a, b, n: a >> (b if 0 <= b < n else 64),
    "equal": lambda a, b, n: a == b,
    "not_equal": lambda a, b, n: a != b,
    "less": lambda a, b, n: a < b,
    "less_equal": lambda a, b, n: a <= b,
    "greater": lambda a, b, n: a > b,
    "greater_equal": lambda a, b, n: a >= b,
    "logical_and": lambda a, b, n: bool(a) and bool(b),
    "logical_or": lambda a, b, n: bool(a) or bool(b),
    "logical_xor": lambda a, b, n: bool(a) != bool(b),
}
FLOAT_ONLY = {"fmax", "fmin", "atan2"}
COMPARISONS = {
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
}


def test_every_function_has_a_loop() -> None:
    assert set(LOOPS) | FLOAT_ONLY == set(native_ref.BINARY)


@pytest.mark.parametrize("name", sorted(LOOPS))
@pytest.mark.parametrize("kind", INTS)
def test_integers(name: str, kind: str) -> None:
    dtype, bits, signed = INTS[kind]
    lo, hi = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    some = {lo, lo + 1, -3, -2, -1, 0, 1, 2, 3, 5, bits - 1, bits, hi - 1, hi, 2**53 + 1, hi // 3, 46341, 3037000500}
    values = sorted(v for v in some if lo <= v <= hi)
    pairs = list(itertools.product(values, values))
    x: np.ndarray = np.array([p[0] for p in pairs], dtype)
    y: np.ndarray = np.array([p[1] for p in pairs], dtype)
    got = native_ref.binary(name, x, y)
    want = [LOOPS[name](a, b, bits) for a, b in pairs]
    if name in COMPARISONS:
        assert got.dtype == bool
        assert got.tolist() == want
    else:
        assert got.dtype == x.dtype
        assert [int(v) for v in got] == [wrap(w, bits, signed) for w in want]


SOME = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.25, 1e-40, -1e30, 3.4e38, math.inf, -math.inf, math.nan, 2.0**-149, 0.1]


def ieee(name: str, a: float, b: float) -> float:
    """One pair in Python floats, C99 special values."""
    with np.errstate(all="ignore"):
        x, y = np.float64(a), np.float64(b)
        if name in ("maximum", "minimum"):
            if a != a or b != b:
                return math.nan
            if a == b:
                negative = math.copysign(1, a) < 0, math.copysign(1, b) < 0
                sign = any(negative) if name == "minimum" else all(negative)
                return math.copysign(a, -1.0) if a == 0 and sign else abs(a) if a == 0 else a
            return max(a, b) if name == "maximum" else min(a, b)
        if name in ("fmax", "fmin"):
            if a != a:
                return b
            return a if b != b else ieee("maximum" if name == "fmax" else "minimum", a, b)
        if name == "prelu":
            return float(x * y) if a < 0 else a
        fn = {
            "add": np.add,
            "sub": np.subtract,
            "mul": np.multiply,
            "div": np.divide,
            "fmod": np.fmod,
            "pow": np.power,
            "atan2": np.arctan2,
            "floor_mod": np.mod,
        }.get(name)
        if fn is not None:
            return float(fn(x, y))
        if name == "squared_difference":
            return float((x - y) * (x - y))
        q = float(x / y)
        if math.isinf(q) or q != q or math.isinf(b):
            return float(np.floor(q)) if name == "floor_div" else float(np.trunc(q))
        exact = Fraction(a) / Fraction(b)
        n = math.floor(exact) if name == "floor_div" else math.trunc(exact)
        return math.copysign(0.0, q) if n == 0 else float(n)


BITWISE = {n for n in native_ref.BINARY if n[:3] in ("bit", "shi")}


@pytest.mark.parametrize("name", sorted(set(native_ref.BINARY) - COMPARISONS - BITWISE))
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
def test_floats(name: str, dtype: type) -> None:
    pairs = list(itertools.product([float(dtype(v)) for v in SOME], repeat=2))
    x: np.ndarray = np.array([p[0] for p in pairs], dtype)
    y: np.ndarray = np.array([p[1] for p in pairs], dtype)
    got = native_ref.binary(name, x, y)
    assert got.dtype == np.float64
    want = np.array([ieee(name, a, b) for a, b in pairs])
    if name in ("pow", "atan2"):
        np.testing.assert_allclose(got, want, rtol=1e-15)
    else:
        np.testing.assert_array_equal(got, want)
    if name not in ("pow", "atan2"):
        ok = want == want
        np.testing.assert_array_equal(np.signbit(got[ok]), np.signbit(want[ok]), err_msg="sign of zero")


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum", *sorted(COMPARISONS)])
def test_f32_in_a_row_and_apart(name: str) -> None:
    """Arrays of f32 go to f32 or bool without blocks of f64 in between: same bits as when they lie apart, NaNs too.
    Of two NaNs either may be the one whose payload comes: IEEE 754-2019, 6.2.3, does not say which, and Arm prefers a
    signalling one, which the way through f64 has made quiet."""
    nans = np.uint32([0x7F800001, 0xFF800002, 0xFFC00003]).view(np.float32)
    x, y = (v.ravel() for v in np.meshgrid(*2 * [np.concatenate([np.float32(SOME), nans])]))
    # results down among the subnormals, too
    full = [native_ref.fill("full", seed, (60_000,), np.float32) for seed in (1, 2)]
    x, y = (np.concatenate([v, w, w * np.float32(1e-30)]) for v, w in zip((x, y), full))
    a, b = (np.stack([v, v], 1)[:, 0] for v in (x, y))  # the same values, apart in memory
    got, want = native_ref.binary(name, x, y, np.float32), native_ref.binary(name, a, b, np.float32)
    assert got.dtype == want.dtype
    both = np.isnan(x) & np.isnan(y)
    if got.dtype == np.float32 and name[:2] not in ("ma", "mi"):
        assert np.isnan(got[both]).all()
        assert np.isnan(want[both]).all()
        got[both] = want[both] = np.nan
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


@pytest.mark.parametrize("name", sorted(COMPARISONS))
def test_float_comparisons(name: str) -> None:
    pairs = list(itertools.product(SOME, repeat=2))
    x, y = (np.array([p[i] for p in pairs]) for i in (0, 1))
    assert native_ref.binary(name, x, y).tolist() == [LOOPS[name](a, b, 0) for a, b in pairs]


def test_floor_div_where_the_quotient_rounds_up() -> None:
    # 4503599627370497.5 is not an f64 quotient: x / y rounds up to an integer, the exact floor is one less
    y = np.array([0.1, 0.3, 1 - 2.0**-53])
    x = np.array([1.0, 0.9, 1.0 - 2.0**-52])
    want = [math.floor(Fraction(float(a)) / Fraction(float(b))) for a, b in zip(x, y)]
    assert native_ref.binary("floor_div", x, y).tolist() == want


@pytest.mark.parametrize("narrow", [np.float16, ml_dtypes.bfloat16, np.float32], ids=["f16", "bf16", "f32"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_arithmetic_is_correctly_rounded(name: str, narrow: type) -> None:
    x, y = (native_ref.fill("full", s, (4000,), narrow) for s in (1, 2))
    got = native_ref.binary(name, x, y, out=narrow).astype(np.float64)
    step = {"add": 0, "sub": 1, "mul": 2, "div": 3}[name]
    for a, b, g in zip(x.astype(np.float64), y.astype(np.float64), got):
        if not (math.isfinite(a) and math.isfinite(b)) or (step == 3 and b == 0):
            continue
        fa, fb = Fraction(float(a)), Fraction(float(b))
        exact = (fa + fb, fa - fb, fa * fb, fa / fb if fb else Fraction(0))[step]
        below, above = neighbours(float(g), np.dtype(narrow))
        # g is nearest: no representable neighbour is closer
        if math.isfinite(g):
            d = abs(exact - Fraction(float(g)))
            assert all(not math.isfinite(n) or d <= abs(exact - Fraction(n)) for n in (below, above)), (name, a, b, g)
        else:
            top = Fraction(float(ml_dtypes.finfo(narrow).max))
            assert abs(exact) >= top + (top - Fraction(neighbours(float(top), np.dtype(narrow))[0])) / 2


def neighbours(g: float, dtype: np.dtype) -> tuple[float, float]:
    u = np.dtype(f"u{dtype.itemsize}")
    raw = int(np.array(g).astype(dtype).view(u))
    top = 1 << (8 * dtype.itemsize - 1)
    key = -(raw & (top - 1)) if raw & top else raw

    def value(k: int) -> float:
        return float(np.array(abs(k) | (top if k < 0 else 0), u).view(dtype))

    return value(key - 1), value(key + 1)


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 4), (4,)),
        ((3, 1), (1, 4)),
        ((2, 1, 5), (3, 1)),
        ((), (2, 2)),
        ((0, 3), (1, 3)),
        ((1,), (1, 1, 1)),
        ((2, 3, 4, 5, 6), (3, 1, 5, 1)),
        ((700,), (700,)),
        ((2, 600), (600,)),
    ],
)
def test_broadcasting(shapes: tuple) -> None:
    x = native_ref.fill("small", 1, shapes[0], np.float32)
    y = native_ref.fill("small", 2, shapes[1], np.float32)
    np.testing.assert_array_equal(native_ref.binary("sub", x, y), x.astype(np.float64) - y)
    i, j = x.astype(np.int64), y.astype(np.int64)
    np.testing.assert_array_equal(native_ref.binary("sub", i, j), i - j)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(native_ref.where(x > 0, x, y), np.where(x > 0, x, y))


def test_strides() -> None:
    base = native_ref.fill("small", 1, (6, 8, 10), np.float32)
    for view in (base[::2], base[:, ::-1], base.T, base[1:5, 2:7:3, ::-4], np.broadcast_to(base[:1], (3, 8, 10))):
        np.testing.assert_array_equal(native_ref.unary("neg", view), -view.astype(np.float64))
        np.testing.assert_array_equal(native_ref.binary("add", view, view[:1]), view.astype(np.float64) + view[:1])
        ints = view.astype(np.int32)[..., ::-1]
        np.testing.assert_array_equal(native_ref.binary("mul", ints, ints), ints * ints)


def test_result_types_and_errors() -> None:
    i8, f32, u64 = np.ones(2, np.int8), np.ones(2, np.float32), np.ones(2, np.uint64)
    assert native_ref.binary("add", i8, i8).dtype == np.int8
    assert native_ref.binary("add", f32, f32, out=np.float16).dtype == np.float16
    assert native_ref.binary("pow", f32, i8).dtype == np.float64
    with pytest.raises(ValueError, match=r"add: shapes \[2\] \[3\] do not broadcast"):
        native_ref.binary("add", np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match="u64 do not mix"):
        native_ref.binary("add", i8, u64)
    with pytest.raises(ValueError, match="an integer result cannot be stored as f32"):
        native_ref.binary("add", i8, i8, out=np.float32)
    with pytest.raises(ValueError, match="expected one type"):
        native_ref.where(np.ones(2, bool), i8, f32)


def exact_power(a: float, b: float) -> Fraction | None:
    """a**b where it is a number with few bits: whole exponents, halves of squares."""
    if a == 0 or not math.isfinite(a) or b * 2 != int(b * 2) or abs(b) > 8:
        return None
    root = math.isqrt(abs(Fraction(a).numerator)), math.isqrt(Fraction(a).denominator)
    if b != int(b):
        if a < 0 or root[0] ** 2 != Fraction(a).numerator or root[1] ** 2 != Fraction(a).denominator:
            return None
        return Fraction(*root) ** int(2 * b)
    return Fraction(a) ** int(b)


def test_powers_that_f64_holds_are_exact() -> None:
    """Among them the ties of f32: 1 + 2^-12 squared lies in the middle of two of them."""
    rng = np.random.default_rng(8)
    base = np.concatenate(
        [
            1 + rng.integers(-(2**12), 2**12, 300) * 2.0**-12,
            1 + rng.integers(-(2**6), 2**6, 300) * 2.0**-8,
            rng.integers(-4096, 4096, 300),
            rng.integers(1, 4096, 300) ** 2,
            2.0 ** rng.integers(-60, 60, 100),
        ]
    ).astype(np.float32)
    power = rng.choice([2, 3, 1, 0, -1, -2, 0.5, 1.5, -0.5, 4, 5], base.size).astype(np.float32)
    got = native_ref.binary("pow", base, power)
    checked = 0
    for a, b, g in zip(base.tolist(), power.tolist(), got.tolist()):
        want = exact_power(a, b)
        if want is None or Fraction(float(want)) != want:
            continue
        checked += 1
        assert g == float(want), (a, b)
    assert checked > 600


def test_pow_is_correctly_rounded() -> None:
    n = 20_000
    x = np.concatenate([native_ref.fill(r, 1, (n,), np.float32) for r in ("positive", "full", "uniform:0:4")])
    y = np.concatenate([native_ref.fill(r, 2, (n,), np.float32) for r in ("uniform:-8:8", "wide", "uniform:-60:60")])
    x[::7], y[::7] = -x[::7], np.round(y[::7])  # negative bases with whole powers
    wide = native_ref.binary("pow", x, y)
    with np.errstate(all="ignore"):
        library = np.power(x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(wide), np.isnan(library))
    np.testing.assert_array_equal(np.signbit(wide[wide == wide]), np.signbit(library[wide == wide]))
    same = np.isinf(library) | (library == 0)
    np.testing.assert_array_equal(wide[same], library[same])
    rest = np.flatnonzero(np.isfinite(library) & (library != 0))
    assert rest.size > n
    np.testing.assert_array_max_ulp(wide[rest], library[rest], 1)
    # where the two part, a third says who is right before rounding to f32
    bad = 0
    with mpmath.mp.workprec(120):
        for i in rest[:3000]:
            exact = mpmath.mpf(float(abs(x[i]))) ** mpmath.mpf(float(y[i]))
            error = abs(mpmath.mpf(float(abs(wide[i]))) - exact) / mpmath.mpf(float(np.spacing(abs(wide[i]))))
            bad += error > 0.56
    assert bad == 0


def test_pow_of_wide_operands_takes_all_their_bits() -> None:
    x = 1 + np.arange(1, 200) * 2.0**-52
    np.testing.assert_array_max_ulp(native_ref.binary("pow", x, np.full(199, 2.0**40)), np.power(x, 2.0**40), 1)
    i = np.array([2**62 + 1, 3**39], np.int64)
    np.testing.assert_array_max_ulp(
        native_ref.binary("pow", i, np.array([0.5, 0.5], np.float32)), np.sqrt(i.astype(np.float64)), 1
    )
