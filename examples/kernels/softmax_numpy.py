"""A softmax in NumPy as a pytest test: ``pytest examples/kernels/softmax_numpy.py``."""

import numpy as np

from opconform import conforms


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    """Softmax along ``axis``, computed in f32 or wider."""
    wide = np.float64 if x.dtype == np.float64 else np.float32
    e = np.exp(x.astype(wide) - x.max(axis, keepdims=True, initial=-np.inf).astype(wide))
    return (e / e.sum(axis, keepdims=True)).astype(x.dtype)


test_softmax = conforms("onnx/Softmax-13", dtypes=("f32", "f16", "f64"))(softmax)
