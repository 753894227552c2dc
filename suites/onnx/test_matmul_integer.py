"""MatMulInteger against a definition loop: zero points for all, a row of A, a column of B; vectors that fit nowhere."""

from __future__ import annotations

import numpy as np
import pytest

from harness.core.errors import RuleError
from suites.semantics.linear import matmul_integer


@pytest.mark.parametrize("rows", [None, 0, 3], ids=["none", "scalar", "per row"])
@pytest.mark.parametrize("columns", [None, 0, 2], ids=["none", "scalar", "per column"])
def test_zero_points_belong_to_rows_and_columns(rows: int | None, columns: int | None) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 256, (3, 4), np.uint8), rng.integers(-128, 128, (4, 2), np.int8)
    za = None if rows is None else rng.integers(0, 256, (rows,) if rows else (), np.uint8)
    zb = None if columns is None else rng.integers(-128, 128, (columns,) if columns else (), np.int8)
    want = np.zeros((3, 2), np.int32)
    for i, j, k in np.ndindex(3, 2, 4):
        left = int(a[i, k]) - (0 if za is None else int(za[i] if rows else za))
        want[i, j] += left * (int(b[k, j]) - (0 if zb is None else int(zb[j] if columns else zb)))
    assert matmul_integer(a, b, za, zb).tolist() == want.tolist()


@pytest.mark.parametrize(
    ("a", "b", "za", "zb"),
    [
        ((1, 2), (2, 1), 2, None),
        ((2,), (2,), 2, None),
        ((3, 2), (2, 4), None, 2),
        ((3, 2), (2, 4), 2, None),
        ((2,), (2, 4), (1, 1, 1), None),  # of more axes than A: the product would have them too
        ((3, 2), (1, 2, 4), None, 4),  # "if the input is 2D"
        ((1, 3, 2), (1, 1, 2, 4), None, (1, 0, 1, 4)),  # "[D1, D2, 1, N]" of [D1, D2, K, N]
        ((1, 3, 2), (1, 2, 4), (1, 3, 2), None),
    ],
)
def test_zero_points_of_another_shape_are_refused(a: tuple, b: tuple, za: object, zb: object) -> None:
    zeros = [None if n is None else np.zeros(n, np.uint8) for n in (za, zb)]
    with pytest.raises(RuleError, match="zero-points-agree"):
        matmul_integer(np.zeros(a, np.uint8), np.zeros(b, np.uint8), *zeros)
