"""Pooling, softmax, interpolation and recurrent layers against their definitions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import native_ref as native
from native_ref.tests import plain


@pytest.mark.parametrize("seed", range(90))
def test_pool(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4)) if seed < 60 else 4 + seed % 3
    pick = lambda lo, hi: tuple(int(v) for v in rng.integers(lo, hi, n))  # noqa: E731
    s, k, strides, dilations, pads = pick(2, 6), pick(1, 4), pick(1, 4), pick(1, 3), (*pick(0, 3), *pick(0, 3))
    sizes = pick(1, 5 if n < 4 else 3)
    if n > 3:
        s, k = pick(1, 4), pick(1, 3)
    dtype = (np.float32, np.float64, np.int8, ml_dtypes.bfloat16)[seed % 4]
    x = (rng.standard_normal((2, 2, *s)) * 5).astype(dtype)
    kw = {"strides": strides, "dilations": dilations, "pads": pads, "sizes": sizes}
    top, at = native.pool("max", x, k, positions=True, **kw)
    assert top.dtype == x.dtype
    assert (native.pool("max", x, k, **kw) == top).all()
    mean, with_pads = native.pool("avg", x, k, **kw), native.pool("avg", x, k, count_include_pad=True, **kw)
    norms = {p: native.pool("lp", x, k, p=p, **kw) for p in (1, 2, 3)}
    for o, (seen, cells) in plain.windows(s, k, strides, dilations, pads, sizes).items():
        for b in np.ndindex(2, 2):
            v = [float(x[b][i]) for i in seen]
            if not seen:
                of_at: tuple[Any, ...] = (*b, *o)
                assert at[of_at] == -1
                of_mean: tuple[Any, ...] = (*b, *o)
                assert np.isnan(mean[of_mean])
                of_top: tuple[Any, ...] = (*b, *o)
                assert float(top[of_top]) == (-128 if dtype is np.int8 else -np.inf)
                continue
            of_top = (*b, *o)
            assert float(top[of_top]) == max(v)
            of_at = (*b, *o)
            assert at[of_at] == np.ravel_multi_index(seen[v.index(max(v))], s)
            exact = sum(plain.Fraction(e) for e in v)
            of_mean = (*b, *o)
            assert mean[of_mean] == pytest.approx(float(exact / len(v)), rel=3e-16, abs=0)
            of_with_pads: tuple[Any, ...] = (*b, *o)
            assert with_pads[of_with_pads] == pytest.approx(float(exact / cells), rel=3e-16, abs=0)
            for p, y in norms.items():
                of_y: tuple[Any, ...] = (*b, *o)
                assert y[of_y] == pytest.approx(sum(abs(e) ** p for e in v) ** (1 / p), rel=2e-15)


def test_pool_nan_and_ties() -> None:
    x = np.array([[[1.0, np.nan, 3.0, 3.0, -np.inf, -np.inf]]])
    y, at = native.pool("max", x, (2,), (2,), positions=True)
    assert np.isnan(y[0, 0, 0])
    assert at.ravel().tolist() == [1, 2, 4]
    np.testing.assert_array_equal(native.pool("max", x[..., ::-1].copy(), (2,), (2,)), [[[-np.inf, 3, np.nan]]])


def test_ceil_cells_never_count() -> None:
    x = np.arange(1.0, 6.0).reshape(1, 1, 5)
    got = native.pool("avg", x, (2,), (2,), count_include_pad=True, extra_end=(1,))
    np.testing.assert_array_equal(got, [[[1.5, 3.5, 5.0]]])


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 33, 700])
def test_softmax(n: int, log: bool) -> None:
    rng = np.random.default_rng(n)
    for dtype in (np.float32, np.float64, np.float16):
        x = (rng.standard_normal((3, n, 4)) * 10).astype(dtype)
        for axis, order in ((1, (0, 1, 2)), (2, (0, 2, 1)), (-1, (0, 2, 1)), (0, (1, 0, 2))):
            y = x.transpose(order)
            w = y.astype(np.longdouble)
            e = np.exp(w - w.max(axis, keepdims=True))
            want = (
                (w - w.max(axis, keepdims=True) - np.log(e.sum(axis, keepdims=True)))
                if log
                else e / e.sum(axis, keepdims=True)
            )
            got = native.softmax(y, axis, log)
            np.testing.assert_allclose(got, want.astype(float), rtol=4e-15, atol=4e-15 if log else 0)


def test_softmax_special_values() -> None:
    inf, nan = np.inf, np.nan
    for row, want in [
        ((inf, 1), (nan, nan)),
        ((-inf, 1), (0, 1)),
        ((nan, 1), (nan, nan)),
        ((-inf, -inf), (nan, nan)),
        ((800, 0), (1, np.exp(-800.0))),
        ((0, -745), (1, 5e-324)),
    ]:
        for x in (np.array([row]), np.array([row, row]).T.copy().T):
            np.testing.assert_array_equal(native.softmax(x.astype(float), 1)[0], want)
    assert native.softmax(np.zeros((2, 0, 3)), 1).shape == (2, 0, 3)


@pytest.mark.parametrize("n", [3, 8, 13, 16, 24, 47, 500])
def test_softmax_of_lines_with_special_values(n: int) -> None:
    """f32, whose lines go through vectors: a NaN or an infinity at any place of them."""
    rng = np.random.default_rng(n)
    for planted in ((np.nan,), (np.inf,), (-np.inf,), (np.inf, -np.inf), (np.nan, np.inf), (-1e30, 1e30), (-800.0,)):
        x = rng.standard_normal((10, n)).astype(np.float32)
        for row in x[1:]:
            row[rng.choice(n, len(planted), replace=False)] = planted
        with np.errstate(all="ignore"):
            d = x.astype(float) - x.max(1, keepdims=True)
            e = np.exp(d)
            s = e.sum(1, keepdims=True)
            np.testing.assert_allclose(native.softmax(x, 1, out=np.dtype(float)), e / s, rtol=4e-15, atol=1e-320)
            np.testing.assert_allclose(
                native.softmax(x, 1, True, np.dtype(float)), d - np.log(s), rtol=4e-15, atol=4e-15
            )


def test_exponential_through_softmax_is_within_an_ulp() -> None:
    """softmax([0, x]) * (1 + exp(x)) is exp(x): down to the subnormals."""
    x = -np.concatenate([np.linspace(0, 40, 4001), np.linspace(600, 745, 1001)])
    got = native.softmax(np.stack([np.zeros_like(x), x], 1), 1)
    want = (np.exp(x.astype(np.longdouble)) / (1 + np.exp(x.astype(np.longdouble)))).astype(float)
    assert (abs(got[:, 1] - want) <= 3 * np.spacing(np.maximum(want, 5e-324))).all()


def test_interpolate() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 5, 4)).astype(np.float32)
    for axis, n in enumerate(x.shape):
        index, weight = rng.integers(0, n, (6, 3)), rng.standard_normal((6, 3))
        weight[2] = 0
        got = native.interpolate(x, axis, index, weight)
        moved = np.moveaxis(x.astype(float), axis, -1)
        want = np.moveaxis((moved[..., index] * weight).sum(-1), -1, axis)
        np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-15)
    y = native.interpolate(np.array([np.inf, 1.0]), 0, np.array([[0, 1]]), np.array([[0.0, 1.0]]))
    assert y[0] == 1
    with pytest.raises(ValueError, match="index 2 of 2"):
        native.interpolate(np.ones(2), 0, np.array([[2]]), np.array([[1.0]]))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


ACT = {
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "softsign": lambda x: x / (1 + abs(x)),
    "affine": lambda x: 0.5 * x + 0.25,
    "hard_sigmoid": lambda x: np.clip(0.5 * x + 0.25, 0, 1),
    "leaky_relu": lambda x: np.where(x < 0, 0.5 * x, x),
    "elu": lambda x: np.where(x < 0, 0.5 * np.expm1(x), x),
    "thresholded_relu": lambda x: np.where(x > 0.5, x, 0),
    "scaled_tanh": lambda x: 0.5 * np.tanh(0.25 * x),
    "softplus": lambda x: np.log1p(np.exp(x)),
}


def layer(
    cell: str,
    x: np.ndarray,
    w: np.ndarray,
    r: np.ndarray,
    bw: np.ndarray,
    br: np.ndarray,
    p: np.ndarray,
    length: list,
    h0: np.ndarray,
    c0: np.ndarray,
    acts: list,
    clip: float,
    coupled: bool,
    after: bool,
    back: bool,
) -> list:
    """One direction, one sequence at a time, equation by equation."""
    t, batch, _ = x.shape
    n = r.shape[1]
    f, g, hidden = ([ACT[a] for a in acts] + [None, None])[:3]
    cut = lambda v: np.clip(v, -clip, clip) if clip else v  # noqa: E731
    y, last_h, last_c = np.zeros((t, batch, n)), h0.copy(), c0.copy()
    for b in range(batch):
        h, c = h0[b].copy(), c0[b].copy()
        steps = list(range(length[b]))
        for k in steps[::-1] if back else steps:
            wx, rh = w @ x[k, b] + bw, r @ h + br
            part = lambda v, q: v[q * n : (q + 1) * n]  # noqa: E731
            if cell == "rnn":
                h = f(cut(wx + rh))
            elif cell == "gru":
                z, s = f(cut(part(wx, 0) + part(rh, 0))), f(cut(part(wx, 1) + part(rh, 1)))
                inner = s * part(rh, 2) if after else part(r, 2) @ (s * h) + part(br, 2)
                h = (1 - z) * g(cut(part(wx, 2) + inner)) + z * h
            else:
                i = f(cut(part(wx, 0) + part(rh, 0) + part(p, 0) * c))
                fg = 1 - i if coupled else f(cut(part(wx, 2) + part(rh, 2) + part(p, 2) * c))
                c = fg * c + i * g(cut(part(wx, 3) + part(rh, 3)))
                h = f(cut(part(wx, 1) + part(rh, 1) + part(p, 1) * c)) * hidden(c)
            y[k, b] = h
        last_h[b], last_c[b] = h, c
    return [y, last_h, last_c]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_recurrent(cell: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    t, b, i, n = (int(v) for v in rng.integers(1, 5, 4))
    g = {"rnn": 1, "gru": 3, "lstm": 4}[cell]
    a = lambda *s: rng.standard_normal(s)  # noqa: E731
    x, w, r, bw, br, p, h0, c0 = a(t, b, i), a(g * n, i), a(g * n, n), a(g * n), a(g * n), a(3 * n), a(b, n), a(b, n)
    names = list(ACT)
    acts = [names[int(v)] for v in rng.integers(0, len(names), {"rnn": 1, "gru": 2, "lstm": 3}[cell])]
    if seed % 2:
        acts = [*({"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}[cell])]
    length = [int(v) for v in rng.integers(0, t + 1, b)]
    clip, coupled, after, back = (0, 0.7)[seed % 3 == 0], seed % 4 == 0, seed % 5 < 2, seed % 2 == 1
    got = native.recurrent(
        cell,
        x,
        w,
        r,
        bias_w=bw,
        bias_r=br,
        peephole=p if cell == "lstm" else None,
        lengths=length,
        h0=h0,
        c0=c0 if cell == "lstm" else None,
        activations=[(q, 0.5, 0.25) for q in acts],
        clip=clip,
        coupled=coupled,
        reset_after=after,
        backward=back,
    )
    want = layer(cell, x, w, r, bw, br, p, length, h0, c0, acts, clip, coupled, after, back)
    for k in range(3 if cell == "lstm" else 2):
        np.testing.assert_allclose(got[k], want[k], rtol=1e-11, atol=1e-12)


def test_recurrent_without_options() -> None:
    x, w, r = np.ones((2, 1, 2)), np.ones((1, 2)) * 0.1, np.ones((1, 1)) * 0.5
    y, last, c, cells = native.recurrent("rnn", x, w, r, activations=[("tanh", 0, 0)])
    first = np.tanh(0.2)
    np.testing.assert_allclose(y.ravel(), [first, np.tanh(0.2 + 0.5 * first)], rtol=1e-15)
    assert last[0, 0] == y[1, 0, 0]
    assert c is None
    assert cells is None
    with pytest.raises(ValueError, match="expected contiguous f64"):
        native.recurrent("gru", x, w, r, activations=[("sigmoid", 0, 0), ("tanh", 0, 0)])


def test_nothing_to_do() -> None:
    """Empty axes everywhere: shapes come out right and nothing is read."""
    acts = [("sigmoid", 0, 0), ("tanh", 0, 0), ("tanh", 0, 0)]
    for t, b, i, h in [(0, 2, 3, 2), (2, 0, 3, 2), (2, 1, 0, 2), (2, 1, 3, 0)]:
        y, last, c, _ = native.recurrent(
            "lstm", np.ones((t, b, i)), np.ones((4 * h, i)), np.ones((4 * h, h)), activations=acts
        )
        assert y.shape == (t, b, h)
        assert last.shape == (b, h)
        assert c.shape == (b, h)
        assert not last.any() if t == 0 else True
    for shape in [(0, 2, 3), (2, 0, 3), (1, 2, 0)]:
        x = np.zeros(shape, np.float32)
        for kind in ("max", "avg", "lp"):
            assert native.pool(kind, x, (2,), pads=(1, 1)).shape == (*shape[:2], shape[2] + 1)
        assert native.conv(x, np.ones((3, shape[1], 2), np.float32), pads=(2, 2)).shape == (shape[0], 3, shape[2] + 3)
        assert not native.conv(x, np.ones((3, shape[1], 2), np.float32), pads=(2, 2)).any()
        assert native.softmax(x, 1).shape == shape
        assert native.cumulative("sum", x, 2).shape == shape
