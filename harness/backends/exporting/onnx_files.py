"""Tensors and models as ONNX's own package writes and reads them."""

from __future__ import annotations

from typing import Any

import numpy as np


def encoded(v: Any, name: str) -> bytes | None:
    """A TensorProto of an array, or a SequenceProto of a list of arrays; None for what neither says."""
    from onnx import numpy_helper

    if isinstance(v, np.ndarray):
        return bytes(numpy_helper.from_array(v, name).SerializeToString(deterministic=True))
    if isinstance(v, list) and v and all(isinstance(x, np.ndarray) for x in v):
        return bytes(numpy_helper.from_list(v, name).SerializeToString(deterministic=True))
    return None


def decoded(data: bytes) -> Any:
    """The array of a TensorProto, or the list of a SequenceProto.  Raises what the package raises for other bytes."""
    from onnx import SequenceProto, TensorProto, numpy_helper

    try:
        return numpy_helper.to_array(TensorProto.FromString(data))
    except Exception:
        return numpy_helper.to_list(SequenceProto.FromString(data))


def imported(model: bytes, op: str) -> int:
    """The version that the model imports of the domain of its first node ``op``."""
    import onnx

    m = onnx.load_from_string(model)
    node = next(n for n in m.graph.node if n.op_type == op)
    return next(i.version for i in m.opset_import if i.domain == node.domain)
