"""``onnx.reference``: the evaluator of the onnx package itself, written in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from opconform_worker import Backend, Unsupported

# Its kernels compute in the tensors' own type: sums of f16 are accumulated in f16.
_OWN = {"f16": "f16", "bf16": "bf16"}


# How a repro.py runs its MODEL, with OPTIONS, the keywords that the backend is created with.
SCRIPT = """
def run(runs):
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = ReferenceEvaluator(onnx.load(str(MODEL)))
    return [model.run(OUTPUTS, feeds) for feeds in runs][-1]
"""


class OnnxReference(Backend):
    name = "onnx-reference"
    formats = ("onnx",)
    packages = ("onnx",)
    script = SCRIPT
    pack = 16
    acc = _OWN

    def version(self) -> str:
        return onnx.__version__

    def info(self) -> dict[str, Any]:
        return {"opset": onnx.defs.onnx_opset_version(), "ir": int(onnx.IR_VERSION)}

    def load(self, model: bytes, format: str) -> Any:
        proto = onnx.load_model_from_string(model)
        for o in proto.opset_import:
            if o.domain in ("", "ai.onnx") and o.version > onnx.defs.onnx_opset_version():
                raise Unsupported(f"opset {o.version}, this release knows {onnx.defs.onnx_opset_version()}")
        try:
            return ReferenceEvaluator(proto)
        except Exception as e:
            raise _sorted(e) from None

    def run(self, handle: Any, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        try:
            return dict(zip(handle.output_names, handle.run(None, dict(inputs))))
        except Exception as e:
            raise _sorted(e) from None


def _sorted(e: Any) -> Any:
    """The exception as one of ours where the evaluator says that it has no implementation."""
    gap = isinstance(e, (NotImplementedError, ImportError)) or any(
        w in str(e) for w in ("not implemented", "No implementation for")
    )
    return Unsupported(str(e)) if gap else e
