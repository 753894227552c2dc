"""What comes where a difference is listed (``harness/run/defects.py``): coremltools' value inference."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.run.defects import Given

Outputs = list[Any] | None


def put_along_axis(g: Given) -> Outputs:
    """Updates replace whatever the mode, the last of several; an index that the text does not check is not known."""
    out, axis = np.array(g["data"]), g.attr("axis", 0)
    indices = g["indices"].astype(np.int64)
    if indices.size and not (-out.shape[axis] <= indices.min() and indices.max() < out.shape[axis]):
        return None
    np.put_along_axis(out, indices, g["updates"], axis)
    return [out]
