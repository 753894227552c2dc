"""What the bounds on partial results tell of."""

import numpy as np
import pytest

from suites.semantics.linear import einsum


@pytest.mark.parametrize(("over", "open_"), [(813, True), (-(2**61), False)])
def test_a_sum_just_beyond_the_largest_integer_overflows(over: int, open_: bool) -> None:
    """Its f64 bound is 2**63, as that of the largest integer is."""
    x = np.array([2**62, 2**62 + over], np.int64)
    assert einsum.ambiguous is not None
    found = einsum.ambiguous({"xs": [x]}, {"equation": "i->"})
    assert (found is not None) == open_
