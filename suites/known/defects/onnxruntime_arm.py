"""What comes where a difference is listed (``harness/ledger/defect_models.py``): ONNX Runtime's kernels for Arm."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.ledger.defect_models import Near

Array = np.ndarray


def _rounded(x: Any, to: Any = np.float16) -> Array:
    """A step in the type, said in f64 (which holds products and fused sums of it)."""
    return np.asarray(x, np.float64).astype(to).astype(np.float64)


def _inverse(x: Array, to: Any) -> Array:
    """1 / x by the instruction FRECPE, an estimate of 8 bits (Arm ARM, RecipEstimate), and two of FRECPS, 2 - x * y."""
    m, e = np.frexp(np.abs(x))
    y = np.ldexp(np.floor((np.floor(2.0**19 / (2 * np.floor(m * 512) + 1)) + 1) / 2) / 256, -e)
    y = np.where(np.abs(x) < np.ldexp(1.0, np.finfo(to).minexp - 2), np.inf, np.where(np.isinf(x), 0.0, y))
    y = _rounded(np.copysign(y, x), to)
    for _ in range(2):
        both = np.where((x == 0) | np.isinf(x), 0.0, x * y)  # FRECPS: infinity times 0 is 0 in it
        y = _rounded(y * _rounded(2 - both, to), to)
    return y


def ort_arm_reciprocal(g: Given) -> list[Array]:
    """Whole vectors of four come of an estimate refined twice: some are off by more than an ulp, and that of a
    number below 2**-128 is infinite with the sign turned."""
    due = g.expected[0].value.copy()
    whole = due.size // 4 * 4
    due.reshape(-1)[:whole] = _inverse(g["X"].ravel()[:whole].astype(np.float64), np.float32)
    return [due]


def ort_sve_exp(g: Given) -> list[Array]:
    """Below -86.64 the exponential is 0, above 88.37 infinite."""
    x, due = g["input"], g.expected[0].value
    return [np.where(x < np.float32(-86.64), 0, np.where(x > np.float32(88.37), np.inf, due)).astype(due.dtype)]


# Of erf(x) = 1 - poly(t) exp(-x**2), t = 1 / (1 + P x), and of exp(-y) = num(y) / den(y) for it, rounded to f16.
_P, *_POLY = map(float, np.array([0.328, 0.2505, -0.2881, 1.4102, -1.423, 1.0547], np.float16))
_NUM, _DEN = ([float(v) for v in np.array(c, np.float16)] for c in ([0.0288, -0.39, 1.33], [0.467, 0.848, 1.338]))


def _erf(x: Array, fused: bool) -> Array:
    """Every step in f16; fused: the last product is not rounded."""
    z = np.minimum(np.abs(x), 4.0)
    t = power = _inverse(_rounded(_P * z + 1), np.float16)
    poly = _rounded(_POLY[0] * t)
    for c in _POLY[1:]:
        power = _rounded(power * t)
        poly = _rounded(c * power + poly)
    y = np.minimum(_rounded(z * z), 6.0)
    num, den = (_rounded(a * _rounded(y * y) + _rounded(b * y + c)) for a, b, c in (_NUM, _DEN))
    product = poly * _rounded(num * _inverse(den, np.float16))
    return np.where(z < 4, np.minimum(_rounded(1 - (product if fused else _rounded(product))), 1.0), 1.0)


def ort_arm_erf(g: Given) -> list[Near]:
    """A formula of absolute accuracy in f16 steps, the last of them fused by NEON, not by SVE; what is left of NEON's
    vectors of eight in f32, with the constants of f16 and a true exponential."""
    x = g["input"].astype(np.float64)
    z = np.abs(x)
    t = 1 / (1 + _P * z)
    plain = np.where(z > 4, 1, np.clip(1 - sum(c * t ** (k + 1) for k, c in enumerate(_POLY)) * np.exp(-z * z), -1, 1))
    left = (np.arange(x.size) >= x.size // 8 * 8).reshape(x.shape)
    ways = [_erf(x, True), _erf(x, False), np.where(left, plain, _erf(x, True))]
    low, high = np.min(ways, axis=0), np.max(ways, axis=0)
    slack = np.where(left, 2.0**-21 + np.abs(plain) * 2.0**-11, 0.0)
    return [Near(np.where(x < 0, -1, 1) * (low + high) / 2, (high - low) / 2 + slack)]


def ort_arm_attention(g: Given) -> list[Any]:
    """Where three rows or more are multiplied with the values, of the last four columns, unless these make eight, zeros
    are packed: a load of part of a vector is of less than four."""
    y = g.expected[0].value.copy()
    heads = y.reshape(*y.shape[:-1], 1 if y.ndim == 4 else g.attr("q_num_heads"), -1)
    if y.shape[-2] > 2 and heads.shape[-1] % 8 == 4:
        heads[..., -4:] = 0
    return [y, *[None] * (len(g.expected) - 1)]


def ort_arm_bf16(g: Given) -> list[Near] | None:
    """BFMMLA takes subnormal operands for 0, and gives 0 for subnormal products and sums (Arm ARM, BFloat16)."""
    least = 2.0**-126
    out = g.reevaluate(
        inputs={"Inputs": [np.where(np.abs(x.astype(np.float32)) < least, 0, x).astype(x.dtype) for x in g["Inputs"]]}
    )
    if out is None:
        return None
    terms = float(sum(x.size for x in g["Inputs"]))
    return [Near(out[0].real, out[0].error.bound(out[0].context()) + terms * least)]
