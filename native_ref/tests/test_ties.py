"""Functions with parameters where their results lie next to a tie of a narrow type: rounded as the exact value is.

Near 0 such a function is a line, c x with a correction that f64 loses; where c is a short number, c x is a tie for half
of all x."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import native_ref
from native_ref.tests import reference

F16 = (np.dtype(np.float16), 16, 65520.0)
BF16 = (np.dtype(ml_dtypes.bfloat16), 16, float(np.ldexp(2.0 - 2.0**-8, 127)))
F32 = (np.dtype(np.float32), 32, float(np.ldexp(2.0 - 2.0**-24, 127)))
FORMS = {"f16": F16, "bf16": BF16, "f32": F32}
SHORT = (1.5, 0.75, -1.5, 2.5, 1.0, 0.0, 3.0, -0.625)
PAIRS: list[tuple[float, ...]] = [
    (1.5, 0.5),
    (0.5, 0.75),
    (-1.5, 1.25),
    (0.25, 0.375),
    (1.5, 1.0),
    (2.0, -0.75),
    (3.0, 0.25),
    (0.0, 1.5),
]
PARAMS: dict[str, list[tuple[float, ...]]] = {
    "elu": [(a,) for a in SHORT],
    "celu": [(abs(a),) for a in SHORT if a],
    "selu": PAIRS,
    "leaky_relu": [(a,) for a in SHORT],
    "thresholded_relu": [(a,) for a in SHORT],
    "thresholded_relu_inclusive": [(a,) for a in SHORT],
    "clamp": [(-1.5, 0.75)],
    "linear": PAIRS,
    "hard_sigmoid": PAIRS,
    "hard_swish": PAIRS,
    "swish": [(a,) for a in SHORT],
    "scaled_tanh": PAIRS,
    "hard_swish6": [()],
    "gelu_exact": [()],
    "gelu_tanh": [()],
    "gelu_sigmoid": [()],
    "mish": [()],
    "softsign": [()],
    "sigmoid": [()],
    "tanh": [()],
    "expm1": [()],
    "log1p": [()],
    "softplus": [()],
}
CASES = [(name, p) for name, some in PARAMS.items() for p in some]


def points(form: tuple, n: int, seed: int) -> np.ndarray:
    """Of every exponent, with few bits and with many; subnormal numbers are as many as the others."""
    dtype, bits, _ = form
    rng = np.random.default_rng(seed)
    if bits == 16:
        return np.arange(1 << 16, dtype=np.uint16).view(dtype)
    out = np.ldexp(rng.integers(1 << 23, 1 << 24, n).astype(np.float64), rng.integers(-172, -18, n))
    few = np.ldexp(rng.integers(1, 64, n).astype(np.float64), rng.integers(-149, 2, n))
    small = np.ldexp(rng.integers(1, 1 << 23, n).astype(np.float64), -149)
    x = np.concatenate([out, few, small]).astype(dtype)
    return np.where(rng.integers(0, 2, x.size) == 0, x, -x)


def test_every_function_with_parameters_is_here() -> None:
    assert {n for n, r in reference.UNARY.items() if r.params} <= set(PARAMS)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("name", "params"), CASES)
def test_correctly_rounded_next_to_ties(name: str, params: tuple[float, ...], form: str) -> None:
    dtype, bits, overflow = FORMS[form]
    ref = reference.Ref(
        params, reference.UNARY[name].wide, reference.UNARY[name].mp, reference.UNARY[name].domain, 40, 1e-4900
    )
    x = points(FORMS[form], 3000, 5)
    got = native_ref.unary(name, x, *params, out=dtype)
    bad, _ = reference.wrong(ref, x, got, bits, overflow)
    some = [(x[i].item(), got[i].item()) for i in bad[:5]]
    assert bad.size == 0, f"{name}{params}: {bad.size} of {x.size} not correctly rounded, first (x, got): {some}"
