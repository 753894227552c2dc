"""The first layer that leaves its bound: planted faults in a chain of plain layers are blamed on the right one."""

from __future__ import annotations

import numpy as np
import pytest

from harness.compare import Layer, first_out_of_bounds
from harness.core.errors import UsageError

DEPTH = 5


def _weights() -> list[np.ndarray]:
    rng = np.random.Generator(np.random.PCG64(3))
    return [rng.standard_normal((8, 8)) / np.sqrt(8) for _ in range(DEPTH)]


def _chain(weights: list[np.ndarray], narrow: bool) -> list[Layer]:
    """``weights`` in half precision against the chain's own in f64; bounds: what one rounded dot product allows."""
    own = _weights()
    x = np.random.Generator(np.random.PCG64(4)).standard_normal((3, 8)).astype(np.float16).astype(np.float64)
    want, got, layers = x, x, []
    for i, (w, v) in enumerate(zip(own, weights)):
        fed = got @ w
        want = want @ w
        scale = np.abs(got) @ np.abs(w)
        got = (
            (got @ v.astype(np.float16).astype(np.float64)).astype(np.float16).astype(np.float64) if narrow else got @ v
        )
        layers.append(Layer(f"dense{i}", want, got, 2.0**-11 * (scale + np.abs(fed)) * (1 + 2.0**-9), fed=fed))
    return layers


def test_a_sound_chain_passes_and_states_how_sharp_its_bounds_are() -> None:
    report = first_out_of_bounds(_chain(_weights(), narrow=True))
    assert report
    assert report.first is None
    assert 0.1 < report.share <= 1
    assert "5 layers within their bounds" in str(report)
    assert report.rows[0].carried == 0
    assert all(r.carried > 1e-4 for r in report.rows[1:])


@pytest.mark.parametrize("at", range(DEPTH))
def test_one_wrong_weight_is_blamed_on_its_layer(at: int) -> None:
    wrong = _weights()
    wrong[at][2, 5] += 0.05
    report = first_out_of_bounds(_chain(wrong, narrow=True))
    assert not report
    assert report.first is not None
    assert report.first.name == f"dense{at}"
    assert report.first.index[1] == 5
    assert [r.out for r in report.rows] == [i == at for i in range(DEPTH)]  # those behind were fed something else
    assert f"layer {at + 1} of 5, dense{at}, is the first" in str(report)


def test_at_the_bound_is_within_it_and_the_next_number_is_not() -> None:
    want = np.array([1.0, 2.0])
    assert first_out_of_bounds([Layer("a", want, want + 0.25, 0.25)])
    assert first_out_of_bounds([Layer("a", want, want + 0.25, 0.125, carried=0.125)])
    bad = first_out_of_bounds([Layer("a", want, want + np.array([0, 0.25 + 2.0**-50]), 0.25)])
    assert bad.first is not None
    assert bad.first.index == (1,)
    assert bad.first.beyond == 1
    assert not first_out_of_bounds([Layer("a", want, want + np.array([0, 5e-16]), 0.0)])


def test_elements_without_a_bound_are_counted() -> None:
    report = first_out_of_bounds([Layer("a", np.ones(3), np.array([1.0, 9.0, 1.0]), np.array([0.0, np.inf, 0.0]))])
    assert report
    assert report.free == 1
    assert str(report).endswith("1 elements have none")


@pytest.mark.parametrize(
    ("got", "why"),
    [
        ([1.0, np.nan, np.inf], "NaN elsewhere"),
        ([1.0, 2.0, -np.inf], "infinities elsewhere"),
        ([1.0, np.inf, np.inf], "infinities elsewhere"),
        ([1.0, 2.0], "shape [2], expected [3]"),
    ],
)
def test_no_bound_excuses_a_shape_or_a_special_value(got: list[float], why: str) -> None:
    report = first_out_of_bounds([Layer("sum", np.array([1.0, 2.0, np.inf]), np.array(got), np.inf)])
    assert not report
    assert why in str(report)


def test_bounds_and_layers_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="no layers"):
        first_out_of_bounds([])
    for bound in (-1.0, np.nan):
        with pytest.raises(UsageError, match="dense: a bound is negative or NaN"):
            first_out_of_bounds([Layer("dense", np.ones(2), np.ones(2), bound)])
