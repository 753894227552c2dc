"""Matrix products and convolutions against exact loops: every way of multiplying, every shape of tile edge."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import native_ref as native
from native_ref.tests import plain

FLOATS = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn)
INTS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, ml_dtypes.int4)


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    d = np.dtype(dtype)
    if d.kind in "iu" or d == ml_dtypes.int4:
        lo = 0 if d.kind == "u" else -8
        return rng.integers(lo, 8, shape).astype(d)
    return rng.standard_normal(shape).astype(d)


def correct(got: np.ndarray, want: np.ndarray, digits: float = 2.0**-32) -> None:
    """Integers are exact; floats, rounded to f32, are the once-rounded exact result (object array), and closer than
    ``digits`` before that rounding (2**-52 for f64 operands)."""
    if got.dtype.kind in "iu":
        assert got.astype(object).tolist() == want.tolist()
    else:
        np.testing.assert_array_equal(got.astype(np.float32), plain.as_float(want).astype(np.float32))
        np.testing.assert_allclose(got, plain.as_float(want), rtol=digits, atol=0)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (3, 5, 7), (9, 4, 25), (8, 3, 24), (17, 6, 49), (1, 7, 3), (20, 2, 1), (4, 0, 5)]
)
def test_matmul(dtype: Any, m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(m * 100 + k * 10 + n)
    a, b = draw(rng, (m, k), dtype), draw(rng, (k, n), dtype)
    want = plain.matmul(plain.exact(a), plain.exact(b))
    correct(native.matmul(a, b), want)
    # strides of every kind
    correct(native.matmul(np.asfortranarray(a), b[::-1][::-1]), want)
    correct(native.matmul(a.T.copy().T, np.repeat(b, 2, 1)[:, ::2]), want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int16, np.int64], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("k", [255, 256, 257, 600])
def test_depth_beyond_a_block(dtype: Any, k: int) -> None:
    rng = np.random.default_rng(k)
    a, b = draw(rng, (3, k), dtype), draw(rng, (k, 5), dtype)
    digits = 2.0**-52 if dtype is np.float64 else 2.0**-32
    correct(native.matmul(a, b), plain.matmul(plain.exact(a), plain.exact(b)), digits)


@pytest.mark.parametrize("extremes", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64])
def test_integers_at_their_limits(extremes: type) -> None:
    info = np.iinfo(extremes)
    a: np.ndarray = np.array([[info.min, info.max] * 300], extremes)
    b: np.ndarray = np.array([[info.max], [info.min]] * 300, extremes)
    want = plain.matmul(plain.exact(a), plain.exact(b))[0, 0]
    assert int(native.matmul(a, b)[0, 0]) == (want + 2**63) % 2**64 - 2**63
    got = native.matmul(a, b, out=np.dtype(np.int32))
    assert got.dtype == np.int32
    assert int(got[0, 0]) == (want + 2**31) % 2**32 - 2**31


def test_batches_and_vectors() -> None:
    rng = np.random.default_rng(1)
    for a, b in [
        ((4,), (4,)),
        ((4,), (2, 4, 3)),
        ((2, 3, 4), (4,)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((0, 3, 4), (4, 2)),
        ((2, 1, 3, 4), (1, 6, 4, 1)),
        ((3, 0), (0, 3)),
    ]:
        x, y = rng.standard_normal(a), rng.standard_normal(b)
        got, want = native.matmul(x, y), np.matmul(x, y)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
    spread = np.broadcast_to(rng.standard_normal((3, 4)).astype(np.float32), (5, 3, 4))
    np.testing.assert_allclose(
        native.matmul(spread, spread.swapaxes(1, 2)), spread.astype(float) @ spread.swapaxes(1, 2)
    )


def test_cancellation_is_rounded_right() -> None:
    """The second half is minus the first, off by the last bits: plain f64 sums would miss the f32 result."""
    rng = np.random.default_rng(2)
    for dtype, step in ((np.float32, 2.0**-22), (np.float64, 2.0**-30)):
        half = rng.standard_normal((12, 128)).astype(dtype)
        other = rng.standard_normal((128, 12)).astype(dtype)
        a = np.concatenate([half, -(half * dtype(1 + step))], 1)
        b = np.concatenate([other, other], 0)
        want = plain.as_float(plain.matmul(plain.exact(a), plain.exact(b)))
        got = native.matmul(a, b)
        np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))
        np.testing.assert_allclose(got, want, rtol=4e-16)


def test_infinities_and_nan_stay_in_their_cells() -> None:
    a = np.ones((9, 300), np.float32)
    b = np.ones((300, 30), np.float32)
    a[2, 7], b[9, 4], b[10, 5] = np.inf, np.nan, -np.inf
    for dtype in (np.float32, np.float64):
        got = native.matmul(a.astype(dtype), b.astype(dtype))
        with np.errstate(invalid="ignore"):
            want = a.astype(float) @ b.astype(float)
        np.testing.assert_array_equal(got, want)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="3 columns against 4 rows"):
        native.matmul(np.ones((2, 3)), np.ones((4, 2)))
    with pytest.raises(ValueError, match="groups"):
        native.conv(np.ones((1, 3, 4)), np.ones((2, 1, 1)), groups=2)
    with pytest.raises(ValueError, match="input channels"):
        native.conv(np.ones((1, 3, 4)), np.ones((2, 2, 1)))


def _window(rng: np.random.Generator, most: int = 3) -> dict:
    n = int(rng.integers(1 if most == 3 else 4, most + 1))
    pick = lambda lo, hi: tuple(int(v) for v in rng.integers(lo, hi, n))  # noqa: E731
    return {
        "s": pick(1, 6 if n < 4 else 3),
        "k": pick(1, 4 if n < 4 else 3),
        "strides": pick(1, 4),
        "dilations": pick(1, 3),
        "pads": (*pick(-1, 4), *pick(0, 4)),
    }


@pytest.mark.parametrize("seed", range(60))
def test_conv(seed: int) -> None:
    rng = np.random.default_rng(seed)
    v = _window(rng, 3 if seed < 40 else 6)
    groups, per_in, per_out = (int(i) for i in rng.integers(1, 4, 3))
    dtype = [*FLOATS[:4], *INTS[:6]][seed % 10]
    x = draw(rng, (int(rng.integers(1, 3)), groups * per_in, *v["s"]), dtype)
    w = draw(rng, (groups * per_out, per_in, *v["k"]), dtype)
    bias = (np.int32 if x.dtype.kind in "iu" else dtype) if seed % 3 else None
    b = None if bias is None else draw(rng, (groups * per_out,), bias)
    if seed % 4 == 0:  # channels last in memory
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    how = (v["strides"], v["dilations"], v["pads"], groups)
    want = plain.conv(plain.exact(x), plain.exact(w), None if b is None else plain.exact(b), *how)
    correct(native.conv(x, w, b, *how), want)


@pytest.mark.parametrize("seed", range(60))
def test_conv_transpose(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    v = _window(rng, 3 if seed < 40 else 6)
    groups, per_in, per_out = (int(i) for i in rng.integers(1, 4, 3))
    dtype = [*FLOATS[:4], *INTS[:6]][seed % 10]
    x = draw(rng, (int(rng.integers(1, 3)), groups * per_in, *v["s"]), dtype)
    w = draw(rng, (groups * per_in, per_out, *v["k"]), dtype)
    b = draw(rng, (groups * per_out,), np.int32 if x.dtype.kind in "iu" else dtype) if seed % 3 else None
    sizes = tuple(int(i) for i in rng.integers(1, 8 if len(v["s"]) < 4 else 3, len(v["s"])))
    n = len(sizes)
    got = native.conv_transpose(x, w, b, v["strides"], v["dilations"], v["pads"], groups, sizes=sizes)
    want = plain.conv_transpose(
        plain.exact(x),
        plain.exact(w),
        None if b is None else plain.exact(b),
        v["strides"],
        v["dilations"],
        v["pads"][:n],
        groups,
        sizes,
    )
    if got.dtype.kind in "iu":
        assert got.astype(object).tolist() == want.tolist()
    else:
        scale = plain.as_float(
            plain.conv_transpose(
                plain.exact(abs(x)),
                plain.exact(abs(w)),
                None if b is None else plain.exact(abs(b)),
                v["strides"],
                v["dilations"],
                v["pads"][:n],
                groups,
                sizes,
            )
        )
        # narrow types add up their taps in f64, f64 carries the errors of these additions along
        digits = 2e-16 if dtype is np.float64 else 2e-15
        assert (abs(got - plain.as_float(want)) <= digits * scale).all()


def test_transposed_is_the_adjoint() -> None:
    """<conv(x), y> = <x, conv_transpose(y)> in exact integers, without any shared code path to hide behind."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        v = _window(rng)
        pads = tuple(max(0, p) for p in v["pads"])
        s = tuple(a + b for a, b in zip(v["s"], (d * (k - 1) for d, k in zip(v["dilations"], v["k"]))))
        x, w = draw(rng, (1, 2, *s), np.int32), draw(rng, (3, 2, *v["k"]), np.int32)
        y = native.conv(x, w, None, v["strides"], v["dilations"], pads)
        g = draw(rng, y.shape, np.int32)
        back = native.conv_transpose(g, w, None, v["strides"], v["dilations"], pads, sizes=s)
        assert int((y * g).sum()) == int((back * x).sum())


def test_windows_far_apart() -> None:
    """Strides and padding between which nothing lies take no memory."""
    far = 2**31 - 1
    x, w = np.full((1, 2, 4, 4), 3, np.float32), np.full((2, 1, 3, 3), 2, np.float32)
    y = native.conv(x, w, None, (far, 1), (1, 1), (far, 1, far, 1), 2)  # rows before, at and behind the image
    assert (y == np.array([[0] * 4, [36, 54, 54, 36], [0] * 4])).all()
    y = native.conv(x, w, None, (1, far), (1, 1), (1, far, 1, far), 2)
    assert (y == np.array([[0] * 4, [36, 54, 54, 36], [0] * 4]).T).all()


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 9, 2**31 - 1])
def test_transposed_windows_far_apart(stride: int) -> None:
    rng = np.random.default_rng(stride)
    x, w = (rng.integers(-4, 5, s).astype(np.float32) for s in ((2, 3, 2, 1), (3, 2, 2, 3)))
    y = native.conv_transpose(x, w, None, (2, stride), sizes=(4, 3))  # one column: all strides give the same
    want = np.zeros((2, 2, 4, 3))
    for i, t in np.ndindex(2, 2):
        want[:, :, 2 * i + t] += np.einsum("nc,cmw->nmw", x[:, :, i, 0], w[:, :, t])
    assert (y == want).all()


@pytest.mark.parametrize("call", ["convert", "matmul", "conv", "pool", "softmax", "moments"])
def test_strings_are_no_numbers(call: str) -> None:
    words = np.array([[["a", None]]], object)
    rest = {"convert": [np.float32], "matmul": [words], "conv": [words], "softmax": [1], "moments": []}
    with pytest.raises(TypeError, match="expected numbers, got strings"):
        native.pool("max", words, (1,)) if call == "pool" else getattr(native, call)(words, *rest[call])
