"""The bound of 16-bit functions by table holds for any table of 513 points that a runtime may keep, and for none that
is coarser."""

import numpy as np
import pytest

from suites.semantics.quantised.functions import _UNARY, curvature

X = np.arange(-32768, 32768, dtype=np.int16)
CASES = [
    ("exp", 0.0003906250058207661, 0.01),  # clamped from 5.79 on
    ("exp", 0.0001953125, 0.05),
    ("tanh", 0.0001953125, 2.0**-15),
    ("logistic", 0.00039, 2.0**-15),
]


def looked_up(fn, scale, out, points, moved, spacing):
    """|result - real result| in steps, of a table that is read with slopes; moved: share of the gap in the middle."""
    step = 65536 // (points - 1)

    def entry(at):
        return np.clip(fn(at * scale) / out, -32768, 32767)

    at = -32768 + spacing * np.arange(points + 1)
    gaps = (entry(at[:-1]) + entry(at[1:])) / 2 - entry((at[:-1] + at[1:]) / 2)
    table = np.clip(np.round(entry(at[:-1]) - moved * gaps), -32768, 32767)
    q = X.astype(np.float64)
    i = ((q + 32768) // step).astype(int)
    got = np.round(table[i] + (table[i + 1] - table[i]) * ((q + 32768) % step) / step)
    return np.abs(got - entry(q))


@pytest.mark.parametrize("name, scale, out", CASES)
def test_tables_lie_within(name, scale, out):
    q = {"scale": [scale], "zero_point": [0], "axis": 0}, {"scale": [out], "zero_point": [0], "axis": 0}
    bound = 0.5 + curvature(_UNARY[name], X, *q)
    for moved in (0.0, 0.5, 1.0):
        for spacing in (128, 65535 / 512):
            assert (looked_up(_UNARY[name], scale, out, 513, moved, spacing) <= bound).all(), (moved, spacing)
    assert (looked_up(_UNARY[name], scale, out, 129, 0.0, 512) > bound).any()
    assert np.median(bound) < 4
