"""The elementwise meanings: what their tolerances let pass and what not, and values that the specs print."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import native_ref
from harness.core import dtypes as D
from harness.declare import Context, Semantics
from harness.tolerance import Rounded
from suites.semantics import elementwise as s

F32 = np.float32
SEMANTICS = {n: v for n, v in vars(s).items() if isinstance(v, Semantics)}


def bound_of(f: Semantics, x: dict[str, Any], params: dict[str, Any], out: D.DType = D.F32) -> tuple[Any, Any]:
    wide = np.asarray(f(**x, **params), np.float64)
    inputs = {
        k: [v.astype(np.float64) for v in a] if isinstance(a, list) else a.astype(np.float64) for k, a in x.items()
    }
    return wide, f.error_of(0).bound(Context(inputs, params, wide, out))


def defaults(f: Semantics) -> dict[str, Any]:
    out = {}
    for name, p in f.params.items():
        out[name] = f.defaults.get(name, 0.5 if hasattr(p, "lo") else True)
    return out


@pytest.mark.parametrize("name", SEMANTICS)
def test_declared_with_source_and_doc(name: str) -> None:
    f = SEMANTICS[name]
    assert isinstance(f, Semantics)
    assert f.source
    assert f.__doc__
    assert f.result is not None


UNARY_FLOAT = [
    n
    for n, f in SEMANTICS.items()
    if list(f.tensors) == ["x"]
    and "f" in f.tensors["x"].kinds
    and f.result is not None
    and f.result[0].kind in ("float", "num")
]


@pytest.mark.parametrize("out", [D.F16, D.BF16, D.F32], ids=str)
@pytest.mark.parametrize("name", UNARY_FLOAT)
def test_the_correctly_rounded_result_passes(name: str, out: D.DType) -> None:
    f = SEMANTICS[name]
    x = native_ref.fill("special", 3, (3000,), out)
    params = defaults(f)
    wide, bound = bound_of(f, {"x": x}, params, out)
    once = native_ref.convert(wide, out)
    if f.error_of(0).exact:
        assert native_ref.compare(once, native_ref.convert(wide, out)).bad == 0
    else:
        assert native_ref.compare(once, wide, np.asarray(bound, np.float64)).bad == 0


@pytest.mark.parametrize("name", [n for n in UNARY_FLOAT if isinstance(SEMANTICS[n].error_of(0), Rounded)])
def test_one_ulp_beyond_the_class_fails(name: str) -> None:
    f = SEMANTICS[name]
    recipe = {"acosh": "uniform:1:9", "asin": "prob", "acos": "prob", "atanh": "prob"}.get(name, "positive")
    x = native_ref.fill(recipe, 3, (500,), F32)
    wide, bound = bound_of(f, {"x": x}, defaults(f))
    k = math.ceil(f.error_of(0).ulps) + 1
    off = native_ref.convert(wide, F32)
    off = (off.view(np.int32) + np.int32(k)).view(F32)
    with np.errstate(all="ignore"):
        usual = np.isfinite(wide) & (wide != 0) & (np.abs(wide) < 1e30)
    limit = np.broadcast_to(bound, wide.shape)[usual]
    assert native_ref.compare(off[usual], wide[usual], limit).bad > 0.45 * usual.sum()


def sigmoid(x: Any) -> Any:
    return F32(1) / (F32(1) + np.exp(-x))


def clip01(v: Any) -> Any:
    return np.maximum(F32(0), np.minimum(F32(1), v))


# The formula as the operator set prints it, every step in f32: the class must let it pass.
LITERAL: dict[str, tuple[Callable[..., Any], dict[str, float]]] = {
    "sigmoid": (sigmoid, {}),
    "softplus": (lambda x: np.log(np.exp(x) + F32(1)), {}),
    "softsign": (lambda x: x / (F32(1) + np.abs(x)), {}),
    "elu": (lambda x, alpha: np.where(x > 0, x, alpha * (np.exp(x) - F32(1))), {"alpha": 1.5}),
    "celu": (
        lambda x, alpha: np.maximum(F32(0), x) + np.minimum(F32(0), alpha * (np.exp(x / alpha) - F32(1))),
        {"alpha": 2.0},
    ),
    "selu": (
        lambda x, alpha, gamma: np.where(x > 0, gamma * x, gamma * (alpha * np.exp(x) - alpha)),
        {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    ),
    "hard_sigmoid": (lambda x, alpha, beta: clip01(alpha * x + beta), {"alpha": 0.2, "beta": 0.5}),
    "hard_swish": (lambda x: x * clip01(F32(1 / 6) * x + F32(0.5)), {}),
    "linear_activation": (lambda x, alpha, beta: alpha * x + beta, {"alpha": 0.3, "beta": -0.7}),
    "leaky_relu": (lambda x, alpha: np.where(x < 0, alpha * x, x), {"alpha": 0.01}),
    "gelu_sigmoid": (lambda x: x * sigmoid(F32(1.702) * x), {}),
    "gelu_tanh": (
        lambda x: F32(0.5) * x * (F32(1) + np.tanh(F32(math.sqrt(2 / math.pi)) * (x + F32(0.044715) * x * x * x))),
        {},
    ),
    "mish": (lambda x: x * np.tanh(np.log(F32(1) + np.exp(x))), {}),
    "swish": (lambda x, alpha: x * sigmoid(alpha * x), {"alpha": 1.3}),
    "scaled_tanh": (lambda x, alpha, beta: alpha * np.tanh(beta * x), {"alpha": 1.7, "beta": 0.6}),
    "inverse": (lambda x, epsilon: F32(1) / (x + epsilon), {"epsilon": 1e-4}),
    "rsqrt_epsilon": (lambda x, epsilon: F32(1) / np.sqrt(x + epsilon), {"epsilon": 1e-5}),
    "log_epsilon": (lambda x, epsilon: np.log(x + epsilon), {"epsilon": 1e-6}),
}


@pytest.mark.parametrize("name", LITERAL)
def test_the_literal_formula_passes(name: str) -> None:
    literal, params = LITERAL[name]
    recipe = "positive" if name in ("rsqrt_epsilon", "log_epsilon") else "uniform:-12:12"
    x = np.concatenate([native_ref.fill(recipe, 5, (20000,), F32), native_ref.fill("positive", 6, (2000,), F32)])
    wide, bound = bound_of(SEMANTICS[name], {"x": x}, params)
    with np.errstate(all="ignore"):
        got = literal(x, **{k: F32(v) for k, v in params.items()}).astype(F32)
    r = native_ref.compare(got, wide, np.asarray(bound, np.float64))
    assert r.bad == 0, f"{r.bad} of {r.size}, factor {r.max_ratio:.2f} at x = {x[r.worst]!r}"


def test_composed_bounds_still_bite() -> None:
    """A relative error of 2**-14 in the result, which no literal evaluation makes, is seen where the bound is
    informative."""
    x = native_ref.fill("uniform:-3:3", 5, (2000,), F32)
    for name, (_, params) in LITERAL.items():
        if name in ("rsqrt_epsilon", "log_epsilon"):
            continue
        wide, bound = bound_of(SEMANTICS[name], {"x": x}, params)
        bad = native_ref.compare((wide * (1 + 2.0**-14)).astype(F32), wide, np.asarray(bound, np.float64)).bad
        moved = int((wide != 0).sum())
        assert bad > 0.8 * moved, (name, bad, moved)


def test_printed_values() -> None:
    """Examples and tables of ONNX: Round-22, BitShift-11, Mod-28 (floor), Shrink-9, Clip-13 with min above max."""
    x = np.array([0.9, 2.5, 2.3, 1.5, -4.5], F32)
    assert s.round_half_even(x).tolist() == [1, 2, 2, 2, -4]
    u = np.array([1, 4], np.uint8)
    assert s.bit_shift(u, np.array([1, 1], np.uint8), direction="RIGHT").tolist() == [0, 2]
    assert s.bit_shift(np.array([1, 2], np.uint8), np.array([1, 2], np.uint8), direction="LEFT").tolist() == [2, 8]
    assert s.bit_shift(np.array([-8], np.int8), np.array([1], np.int8), direction="RIGHT").tolist() == [-4]
    inf, nan = math.inf, math.nan
    a = np.array([0.0, -0.0, inf, -inf, 1.0, 3.0, -3.0, 3.0, nan], F32)
    b = np.array([-2.0, 2.0, 2.0, 2.0, 0.0, inf, inf, -inf, 1.0], F32)
    want = [-0.0, 0.0, nan, nan, nan, 3.0, inf, -inf, nan]
    got = s.floor_mod(a, b)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[:2]), [True, False])
    assert s.shrink(np.array([-2, -1, 0, 1, 2], F32), lambd=1.5, bias=1.5).tolist() == [-0.5, 0, 0, 0, 0.5]
    assert s.clip(np.array([-2, 0, 5], F32), F32(3), F32(1)).tolist() == [1, 1, 1]
    assert s.clip(np.array([-2, 0, 5], np.int8), None, np.int8(1)).tolist() == [-2, 0, 1]


def test_integer_meanings() -> None:
    x, y = np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)
    assert s.div(x, y).tolist() == [3, -3, -3, 3]
    assert s.floor_div(x, y).tolist() == [3, -4, -4, 3]
    assert s.fmod(x, y).tolist() == [1, -1, 1, -1]
    assert s.floor_mod(x, y).tolist() == [1, 1, -1, -1]
    assert s.pow(x, np.array([2, 3, 0, 1], np.uint8)).tolist() == [49, -343, 1, -7]
    assert s.add(np.array([127], np.int8), np.array([1], np.int8)).tolist() == [-128]


def test_what_no_specification_decides_is_stated() -> None:
    i = np.array([5, -128], np.int8)
    assert s.div.ambiguous is not None
    assert s.bit_shift.ambiguous is not None
    assert s.maximum.ambiguous is not None
    assert "division by zero" in str(s.div.ambiguous({"x": i, "y": np.array([0, 1], np.int8)}, {}))
    assert "overflows" in str(s.div.ambiguous({"x": i, "y": np.array([1, -1], np.int8)}, {}))
    assert s.div.ambiguous({"x": i, "y": np.array([2, 3], np.int8)}, {}) is None
    assert s.bit_shift.ambiguous({"x": i, "y": np.array([8, 0], np.int8)}, {}) is not None
    assert s.bit_shift.ambiguous({"x": i, "y": np.array([7, 0], np.int8)}, {}) is None
    nan = np.array([math.nan], F32)
    assert "NaN" in str(s.maximum.ambiguous({"x": nan, "y": nan}, {}))
    assert s.maximum.ambiguous({"x": np.zeros(1, F32), "y": np.ones(1, F32)}, {}) is None
