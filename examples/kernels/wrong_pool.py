"""A kernel with a planted defect: ``python examples/kernels/wrong_pool.py`` prints the smallest instance that shows it.

The mean ignores NaN, since ``nanmean`` was the quick way to leave the padding out.
"""

import numpy as np

from opconform import NonConformance, check


def global_average_pool(x: np.ndarray) -> np.ndarray:
    """Mean over all axes after the second."""
    axes = tuple(range(2, x.ndim))
    return np.nanmean(x, axis=axes, keepdims=True, dtype=np.float64).astype(x.dtype)


if __name__ == "__main__":
    try:
        print(check("onnx/GlobalAveragePool-1", global_average_pool, dtypes=("f32",), cases=200))
    except NonConformance as failed:
        print(failed)
        raise SystemExit(1) from None
