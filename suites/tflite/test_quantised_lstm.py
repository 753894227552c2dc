"""The LSTM in 8 bits: its bound on integer layer normalisation, and what a model of a defect may replace."""

import numpy as np
import pytest

from harness.core.errors import Unsupported
from suites.semantics.quantised.dynamic_recurrent import Numbers
from suites.semantics.quantised.recurrent import Stages, normalised, summed


@pytest.mark.parametrize("n", [1, 2, 5, 17, 257])
@pytest.mark.parametrize("spread", [1.0, 20.0, 3000.0])
def test_integer_layer_normalisation_is_within_its_bound(n: int, spread: float) -> None:
    """As Li and Alvarez compute it: a row with 10 places more, a whole variance, 10 places after the division."""
    rng = np.random.default_rng(n)
    q = rng.normal(rng.normal() * spread, spread, (50, n)).round()
    coefficients, bias = rng.integers(-32767, 32768, n), rng.integers(-20000, 20001, n)
    mean = np.trunc(q.sum(-1, keepdims=True) * 1024 / n)
    variance = np.maximum(1.0, np.trunc((q**2).mean(-1, keepdims=True) - (mean / 1024) ** 2))
    brought = np.rint((1024 * q - mean) / np.sqrt(variance))
    steps = np.rint((brought * coefficients + bias) / 1024)
    before, of, gate = 2.0**-11, 2.0**-14, 2.0**-12
    stored = np.rint(steps * of / gate) * gate
    found = normalised(Numbers(q * before, 0.5 * before), coefficients * of, bias * of / 1024, before, (of, of / 1024))
    assert (np.abs(stored - found.value) <= found.error).all()


def test_a_sum_beyond_32_bits_is_declined() -> None:
    ends = Numbers(np.array([-(2.0**31), 2.0**31 - 1]))
    assert summed(ends, 1.0) is ends
    with pytest.raises(Unsupported):
        summed(Numbers(np.array([2.0**31 + 1])), 1.0)


def test_a_limit_lets_what_is_one_step_inside_stand() -> None:
    got = Stages().limited(Numbers(np.array([0.1, 0.5])), 0.4, {"scale": [0.03], "zero_point": [0]})
    np.testing.assert_allclose(got.value, [0.1, 0.4])
    np.testing.assert_allclose(got.error, [0.0, 0.03])
