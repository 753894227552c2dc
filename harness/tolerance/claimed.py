"""What a backend claims of the accuracy of its approximation of an op, beside the tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.dtypes import DType
from harness.tolerance.numeric import ulp


@dataclass(frozen=True)
class Accuracy:
    """absolute: an error of that size.  ulp: units in the last place of the exact result.  ulp_per_log: as many
    more for each unit of |ln(exact result)|, which is |x| where exp(x) is computed."""

    absolute: float = 0.0
    ulp: float = 0.0
    ulp_per_log: float = 0.0

    def __bool__(self) -> bool:
        return self != NONE

    def beside(self, want: Any, out: DType) -> Any:
        """The error that is allowed beside the tolerance: an array of the shape of ``want``, the exact result."""
        if not self.ulp and not self.ulp_per_log:
            return self.absolute
        size = np.abs(np.asarray(want, dtype=np.float64))
        known = np.where(np.isfinite(size) & (size > 0), size, 1.0)
        return self.absolute + (self.ulp + self.ulp_per_log * np.abs(np.log(known))) * ulp(size, out)

    def larger(self, other: Accuracy) -> Accuracy:
        """The larger of each of the two."""
        return Accuracy(
            max(self.absolute, other.absolute),
            max(self.ulp, other.ulp),
            max(self.ulp_per_log, other.ulp_per_log),
        )


NONE = Accuracy()
