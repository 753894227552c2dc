"""The form ``onnx-node``: the folders of ONNX's backend tests, with a tolerance of its own for each instance."""

from __future__ import annotations

import json
from typing import Any

from harness.backends.exporting import onnx_files
from harness.packs.covering import Uncoverable, covering
from harness.packs.frozen import Frozen, LeftOut

KIND = "cases"  # the kind of test, as onnx.backend.test calls the folder above the tests


class OnnxNode:
    """``model.onnx``, ``test_data_set_N/*.pb``; ``config.txt`` for onnx_test_runner, ``data.json`` for
    onnx.backend.test."""

    name = "onnx-node"
    dialects: tuple[str, ...] = ("onnx",)

    def files(self, frozen: Frozen) -> tuple[dict[str, bytes], str, dict[str, Any]]:
        """See ``Form``."""
        if not frozen.outputs:
            raise LeftOut("the form has no instances that must be refused")
        at = f"{KIND}/test_{frozen.id.lower()}"
        try:
            line = covering([pair for row in frozen.outputs for pair in row])
        except Uncoverable as e:
            raise LeftOut(e.why) from None
        told = {
            "rtol": line.rtol,
            "atol": line.atol,
            "typical": line.typical,
            "loosest": line.loosest,
            "exact_loosened": line.exact,
        }
        config = f"per_sample_tolerance:{line.atol!r}\nrelative_per_sample_tolerance:{line.rtol!r}\n"
        out = {
            f"{at}/model.onnx": bytes(frozen.model.data),
            f"{at}/config.txt": (config + "post_processing:false\n").encode(),
            f"{at}/data.json": json.dumps(told).encode() + b"\n",
            f"{at}/instance.json": frozen.case.inst.dumps().encode() + b"\n",
        }
        for r, given in enumerate(frozen.inputs):
            folder = f"{at}/test_data_set_{r}"
            for k, (name, v) in enumerate(given.items()):
                out[f"{folder}/input_{k}.pb"] = proto(v, name)
            expected = [(n, e.value) for n, (e, _) in zip(frozen.names, frozen.outputs[r], strict=True) if n]
            for k, (name, v) in enumerate(expected):
                out[f"{folder}/output_{k}.pb"] = proto(v, name)
        return out, f"{at}/model.onnx", {"tolerance": told}

    def rest(self) -> dict[str, bytes]:
        """See ``Form``."""
        return {}


def proto(v: Any, name: str) -> bytes:
    """A TensorProto or SequenceProto.  Raises LeftOut for what neither says."""
    data = onnx_files.encoded(v, name)
    if data is None:
        raise LeftOut("an optional, a map or an empty sequence")
    return data
