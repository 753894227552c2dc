"""Multi-precision reference of the unary functions, and the question "is this the correctly rounded result?".

Two steps.  A long double evaluation (64-bit significand where the platform has it) decides every result that is not
close to a rounding boundary; the few that are go to mpmath at 400 bits.  Without a wide long double mpmath decides all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

LD = np.longdouble
HAVE_WIDE = np.finfo(LD).nmant >= 63
PREC = 400  # next to a tie the cube of the smallest f32 decides


@dataclass(frozen=True)
class Ref:
    """params: passed to the kernel.  wide: long double version.  mp: mpmath version on finite x.

    at: results at x = -inf, 0 (of either sign: compared as values), inf; None means NaN.
    """

    params: tuple[float, ...]
    wide: Callable[..., Any]
    mp: Callable[..., Any]
    domain: Callable[[Any], Any] = lambda x: np.ones(x.shape, bool)  # where mp is defined and finite
    margin: int = 58  # the wide version is good to 2**-margin
    slack: float = 0.0  # and to this absolutely


mp = mpmath.mp


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _mp_softplus(x: Any) -> Any:
    return mp.log1p(mp.exp(-abs(x))) + max(x, mp.mpf(0))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _mp_sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _mish(x: Any) -> Any:
    e = np.exp(np.minimum(x, LD(60)))
    n = e * (e + 2)
    return np.where(x > 60, x, x * (n / (n + 2)))


def _mp_gelu_tanh(x: Any) -> Any:
    t = mp.sqrt(2 / mp.pi) * (x + mp.mpf(0.044715) * x**3)
    return x * _mp_sigmoid(2 * t)


def _gelu_tanh(x: Any) -> Any:
    t = np.sqrt(2 / LD("3.14159265358979323846264338327950288")) * (x + LD(0.044715) * x**3)
    return x * _sigmoid(2 * t)


def _each(f: Callable[[float], float], x: Any) -> Any:
    return np.fromiter(map(f, x.astype(np.float64).ravel().tolist()), np.float64, x.size).reshape(x.shape)


# no long double versions of these in NumPy: f64 ones and a wider margin
def _erf(x: Any) -> Any:
    return _each(math.erf, x)


def _erfc(x: Any) -> Any:
    return _each(math.erfc, x)


def _inside(x: Any) -> Any:
    return np.abs(x) <= 1


def _hard(v: Any) -> Any:
    return np.minimum(np.maximum(v, 0), 1)


def _mp_hard(v: Any) -> Any:
    return min(max(v, mp.mpf(0)), mp.mpf(1))


# attributes are f32 numbers: with 53-bit ones a product would sit on ties of the narrow types
_TENTH, _HALF = float(np.float32(0.1)), 0.5
_A, _G = 1.67326319217681884765625, 1.05070102214813232421875

UNARY: dict[str, Ref] = {
    "abs": Ref((), np.abs, abs),
    "neg": Ref((), np.negative, lambda x: -x),
    "sign": Ref((), np.sign, mp.sign),
    "ceil": Ref((), np.ceil, mp.ceil),
    "floor": Ref((), np.floor, mp.floor),
    "trunc": Ref((), np.trunc, lambda x: mp.floor(x) if x >= 0 else mp.ceil(x)),
    "round_half_even": Ref((), np.rint, mp.nint),
    "round_half_away": Ref(
        (),
        lambda x: np.trunc(x) + np.sign(x) * (np.abs(x - np.trunc(x)) >= 0.5),
        lambda x: mp.sign(x) * mp.floor(abs(x) + 0.5),
    ),
    "sqrt": Ref((), np.sqrt, mp.sqrt, lambda x: x >= 0),
    "reciprocal": Ref((), lambda x: 1 / x, lambda x: 1 / x, lambda x: x != 0),
    "square": Ref((), np.square, lambda x: x * x),
    "rsqrt": Ref((), lambda x: 1 / np.sqrt(x), lambda x: 1 / mp.sqrt(x), lambda x: x > 0),
    "exp": Ref((), np.exp, mp.exp),
    "exp2": Ref((), np.exp2, lambda x: mp.power(2, x)),
    "expm1": Ref((), np.expm1, mp.expm1),
    "log": Ref((), np.log, mp.log, lambda x: x > 0),
    "log2": Ref((), np.log2, lambda x: mp.log(x, 2), lambda x: x > 0),
    "log10": Ref((), np.log10, mp.log10, lambda x: x > 0),
    "log1p": Ref((), np.log1p, mp.log1p, lambda x: x > -1),
    "sin": Ref((), np.sin, mp.sin),
    "cos": Ref((), np.cos, mp.cos),
    "tan": Ref((), np.tan, mp.tan),
    "asin": Ref((), np.arcsin, mp.asin, _inside),
    "acos": Ref((), np.arccos, mp.acos, _inside),
    "atan": Ref((), np.arctan, mp.atan),
    "sinh": Ref((), np.sinh, mp.sinh),
    "cosh": Ref((), np.cosh, mp.cosh),
    "tanh": Ref((), np.tanh, mp.tanh),
    "asinh": Ref((), np.arcsinh, mp.asinh),
    "acosh": Ref((), np.arccosh, mp.acosh, lambda x: x >= 1),
    "atanh": Ref((), np.arctanh, mp.atanh, lambda x: np.abs(x) < 1),
    "erf": Ref((), _erf, mp.erf, margin=48),
    "erfc": Ref((), _erfc, mp.erfc, margin=46, slack=1e-300),
    "relu": Ref((), lambda x: np.maximum(x, 0), lambda x: max(x, mp.mpf(0))),
    "clamp": Ref((-1.25, 2.5), lambda x, a, b: np.minimum(np.maximum(x, a), b), lambda x, a, b: min(max(x, a), b)),
    "sigmoid": Ref((), _sigmoid, _mp_sigmoid),
    "log_sigmoid": Ref((), lambda x: -_softplus(-x), lambda x: -_mp_softplus(-x)),
    "softplus": Ref((), _softplus, _mp_softplus),
    "softsign": Ref((), lambda x: x / (1 + np.abs(x)), lambda x: x / (1 + abs(x))),
    "elu": Ref(
        (_TENTH,), lambda x, a: np.where(x > 0, x, a * np.expm1(x)), lambda x, a: x if x > 0 else a * mp.expm1(x)
    ),
    "celu": Ref(
        (1.75,), lambda x, a: np.where(x > 0, x, a * np.expm1(x / a)), lambda x, a: x if x > 0 else a * mp.expm1(x / a)
    ),
    "selu": Ref(
        (_A, _G),
        lambda x, a, g: np.where(x > 0, g * x, g * a * np.expm1(x)),
        lambda x, a, g: g * x if x > 0 else g * a * mp.expm1(x),
    ),
    "leaky_relu": Ref((_TENTH,), lambda x, a: np.where(x < 0, a * x, x), lambda x, a: a * x if x < 0 else x),
    "thresholded_relu": Ref((1.0,), lambda x, a: np.where(x > a, x, 0), lambda x, a: x if x > a else mp.mpf(0)),
    "thresholded_relu_inclusive": Ref(
        (1.0,), lambda x, a: np.where(x >= a, x, 0), lambda x, a: x if x >= a else mp.mpf(0)
    ),
    "hard_sigmoid": Ref((_TENTH, _HALF), lambda x, a, b: _hard(a * x + b), lambda x, a, b: _mp_hard(a * x + b)),
    "hard_swish": Ref((_TENTH, _HALF), lambda x, a, b: x * _hard(a * x + b), lambda x, a, b: x * _mp_hard(a * x + b)),
    "hard_swish6": Ref(
        (),
        lambda x: x * np.minimum(np.maximum(x + 3, 0), 6) / 6,
        lambda x: x * min(max(x + 3, mp.mpf(0)), mp.mpf(6)) / 6,
    ),
    "gelu_exact": Ref(
        (),
        lambda x: x / 2 * _erfc(-x / np.sqrt(2)),
        lambda x: x / 2 * mp.erfc(-x / mp.sqrt(2)),
        margin=40,
        slack=1e-250,
    ),
    "gelu_tanh": Ref((), _gelu_tanh, _mp_gelu_tanh),
    "gelu_sigmoid": Ref((), lambda x: x * _sigmoid(LD(1.702) * x), lambda x: x * _mp_sigmoid(mp.mpf(1.702) * x)),
    "mish": Ref((), _mish, lambda x: x * mp.tanh(_mp_softplus(x))),
    "swish": Ref((1.5,), lambda x, b: x * _sigmoid(b * x), lambda x, b: x * _mp_sigmoid(b * x)),
    "scaled_tanh": Ref(
        (float(np.float32(1.7)), float(np.float32(0.6))),
        lambda x, a, b: a * np.tanh(b * x),
        lambda x, a, b: a * mp.tanh(b * x),
    ),
    "linear": Ref((_TENTH, float(np.float32(0.7))), lambda x, a, b: a * x + b, lambda x, a, b: a * x + b),
}
PREDICATES = {"is_nan", "is_inf", "logical_not"}
INTEGER_ONLY = {"bitwise_not"}


@np.errstate(all="ignore")
def finite_neighbours(g: np.ndarray, bits: int, overflow: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Long double midpoints below and above each g of a 16 or 32 bit IEEE type, and whether g's pattern is even.

    Infinity stands for the first value beyond the range, so its lower midpoint is where overflow begins."""
    u = {16: np.uint16, 32: np.uint32}[bits]
    raw = g.view(u)
    low = raw & u((1 << (bits - 1)) - 1)
    key = np.where(raw >> u(bits - 1), -(low.astype(np.int64)), low.astype(np.int64))

    def value(k: np.ndarray) -> np.ndarray:
        m = np.abs(k).astype(u)
        v = (m | (u(1 << (bits - 1)) * (k < 0).astype(u))).astype(u).view(g.dtype).astype(np.float64)
        return np.where(np.isinf(v), np.copysign(2 * overflow, v), v).astype(LD)

    here = value(key)
    top = np.iinfo(np.int64).max
    below = np.where(np.isinf(g.astype(np.float64)) & (key < 0), -top, key - 1)
    above = np.where(np.isinf(g.astype(np.float64)) & (key > 0), top, key + 1)
    lo = np.where(below == -top, LD("-inf"), (value(np.where(below == -top, key, below)) + here) / 2)
    hi = np.where(above == top, LD("inf"), (value(np.where(above == top, key, above)) + here) / 2)
    return lo, hi, (low & u(1)) == 0


@np.errstate(all="ignore")
def wrong(ref: Ref, x: np.ndarray, got: np.ndarray, bits: int, overflow_mid: float) -> tuple[np.ndarray, int]:
    """Indices of finite x, inside the domain, where ``got`` is not the correctly rounded result; how many mpmath
    judged.

    overflow_mid: where rounding to infinity begins; the midpoint of the largest value and that times two is replaced.
    """
    xf = x.astype(np.float64)
    use = np.isfinite(xf)
    use[use] &= ref.domain(xf[use])
    at = np.flatnonzero(use)
    g = got[at]
    bad_nan = np.isnan(g.astype(np.float64))
    lo, hi, even = finite_neighbours(g, bits, overflow_mid)
    # the midpoint next to infinity is the overflow threshold
    big = LD(overflow_mid)
    gv = g.astype(np.float64)
    hi = np.where((hi > big) & np.isfinite(hi) & np.isfinite(gv), big, hi)
    lo = np.where((lo < -big) & np.isfinite(lo) & np.isfinite(gv), -big, lo)
    lo = np.where(gv == np.inf, big, lo)
    hi = np.where(gv == -np.inf, -big, hi)
    params = [LD(p) for p in ref.params]
    if HAVE_WIDE:
        with np.errstate(all="ignore"):
            w = ref.wide(xf[at].astype(LD), *params)
        margin = np.abs(w) * LD(2.0) ** -ref.margin + LD(ref.slack) + LD(2.0) ** -16000
        clear_in = (w > lo + margin) & (w < hi - margin) | np.isinf(w) & (w == gv)
        clear_out = (w < lo - margin) | (w > hi + margin)
        ask = ~(clear_in | clear_out)
        bad = clear_out | bad_nan
    else:
        ask = ~bad_nan
        bad = bad_nan.copy()
    idx = np.flatnonzero(ask & ~bad)
    with mp.workprec(PREC):
        mps = [mp.mpf(p) for p in ref.params]
        for i in idx:
            v = ref.mp(mp.mpf(float(xf[at[i]])), *mps)
            a, b = _mpf(lo[i]), _mpf(hi[i])
            inside = (a < v < b) or (bool(even[i]) and v in (a, b))
            # overflow begins AT the threshold: there infinity is right
            if (v == a and gv[i] == np.inf) or (v == b and gv[i] == -np.inf):
                inside = True
            bad[i] = not inside
    return at[bad], int(idx.size)


def _mpf(v: Any) -> Any:
    if np.isinf(v):
        return mp.inf if v > 0 else -mp.inf
    hi = float(v)
    return mp.mpf(hi) + mp.mpf(float(v - LD(hi)))
