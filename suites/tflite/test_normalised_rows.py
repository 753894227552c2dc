"""The bound on a row brought to mean 0 and deviation 1: no error of its box exceeds it."""

import numpy as np
import pytest

from suites.semantics.quantised.dynamic_recurrent import Numbers

U = 2.0**-24


def brought(x: np.ndarray) -> np.ndarray:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-8)


def moved(value: np.ndarray, error: np.ndarray, seed: int) -> np.ndarray:
    """The largest differences that errors of the box made: its corners, those along the gradients, and points in it."""
    rng, most, n = np.random.default_rng(seed), np.zeros_like(value), value.shape[-1]
    v = brought(value)
    for i in range(n):
        slope = np.eye(n)[i] - (1.0 + v[..., i : i + 1] * v) / n
        for s in (-1, 1):
            most = np.maximum(most, np.abs(brought(value + s * np.sign(slope) * error) - v))
    for _ in range(300):
        d = rng.choice([-1.0, 1.0], value.shape) * rng.uniform(0, 1, value.shape) ** rng.choice([0.0, 1.0])
        most = np.maximum(most, np.abs(brought(value + d * error) - v))
    return most


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("size", [1e-4, 1e-2, 0.1, 0.5, 3.0])
def test_no_error_of_the_box_exceeds_the_bound(n: int, size: float) -> None:
    rng = np.random.default_rng(n)
    value = rng.normal(size=(40, n)) * rng.choice([0.2, 1.0, 5.0], (40, 1))
    error = size * rng.uniform(0, 1, value.shape)
    got = Numbers(value, error).normalised(np.ones(n), U)
    np.testing.assert_allclose(got.value, brought(value), rtol=1e-12, atol=1e-12)
    assert (moved(value, error, n) <= got.error * (1 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize("n", [3, 5, 8])
def test_small_errors_are_bounded_in_first_order(n: int) -> None:
    """Errors along the gradient reach almost all of it: a bound twice as wide would say less."""
    rng = np.random.default_rng(7)
    value, error = rng.normal(size=(40, n)), np.full((40, n), 1e-4)
    bound = Numbers(value, error).normalised(np.ones(n), U).error
    assert np.median(moved(value, error, n) / bound) > 0.9


def test_an_error_that_moves_a_row_does_nothing_to_two_elements() -> None:
    """Two elements are -1 and 1, however far apart."""
    got = Numbers(np.array([[0.25, 2.0]]), 0.1).normalised(np.ones(2), U)
    np.testing.assert_allclose(np.abs(got.value), 1.0, rtol=1e-6)
    assert (got.error < 0.02).all()


def test_a_row_without_spread_is_bounded_by_its_length() -> None:
    got = Numbers(np.zeros((1, 5)), 0.1).normalised(np.ones(5), U)
    assert (got.error <= 2.0 * (1 + 1e-4)).all()


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_mean_rounded_in_f32_stays_within_the_bound(n: int) -> None:
    """Of elements that nearly agree it moves the row by its rounding over their deviation."""
    rng = np.random.default_rng(n)
    value = (rng.uniform(0.5, 2, (4000, 1)) + 1e-3 * rng.normal(size=(4000, n))).astype(np.float32)
    mean = value.sum(-1, keepdims=True) / np.float32(n)
    d = value - mean
    narrow = d / np.sqrt((d * d).mean(-1, keepdims=True) + np.float32(1e-8))
    assert narrow.dtype == np.float32
    got = Numbers(value.astype(np.float64), 0.0).normalised(np.ones(n), U)
    assert (np.abs(narrow - got.value) <= got.error).all()
