"""coremltools' lowering of MIL to a NeuralNetwork, which the interpreter of the dialect ``nn`` executes.

This file runs in a worker process, as ``coremltools_mil.py`` does.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from opconform_worker import Unsupported, sibling

mil = sibling("coremltools_mil", __spec__)
program = mil.program


_NOT_IN_NN = re.compile(
    r"not supported in 'neuralnetwork|doesn't support dynamic|Unsupported mode for Pad|greater than 1"
)


class NeuralNetwork:
    """Lowered to a NeuralNetwork spec, which our NeuralNetwork interpreter executes."""

    name = "coremltools-nn"
    formats = ("mil",)
    packages = ("coremltools",)
    family = "coremltools"
    # A NeuralNetwork has an input, which has one axis at least; integers and truth values come as f32.  The last
    # specification that gained layers is that of iOS 14.
    opsets = ("ios15", "ios15")
    limits = {"min_rank": 1, "input": True, "input_dtypes": ["f32", "i32", "bool"]}
    recycle = mil.RECYCLE

    def info(self) -> dict[str, Any]:
        return {"leaves_to": mil.Fold.name}  # what is constant is folded before it is lowered

    def version(self) -> str:
        return program.ct.__version__

    def load(self, model: bytes, format: str) -> Any:
        from coremltools.converters.mil.backend.nn.load import load as lower
        from coremltools.converters.mil.mil.passes.pass_pipeline import PassPipeline, PassPipelineManager

        h, consts = program.unpack(model)
        if h["opset"] != "ios15":
            raise Unsupported("the NeuralNetwork back end takes the ops of iOS 15 and before")
        if any(not i[2] for i in h["inputs"]):
            raise Unsupported("a neural network has no inputs of rank 0")
        if not h["inputs"]:
            raise Unsupported("a neural network has inputs")
        if any(0 in i[2] for i in h["inputs"]):
            raise Unsupported("a neural network has no empty inputs")
        for c in consts:
            _f32_holds(c)
        if any(i[1] not in ("f32", "i32", "bool") for i in h["inputs"]):
            raise Unsupported("a neural network computes in f32")
        run = program.dialect("nn").run_model
        try:
            prog = program.build(h, consts, opset=program.AvailableTarget.iOS14)
        except ValueError as e:
            if "No available version" not in str(e):
                raise
            raise Unsupported("the op is newer than neural networks") from None
        wants = [(program.ours(v.dtype), tuple(v.shape) == ()) for v in prog.functions["main"].outputs]
        prog.functions["main"].input_types = []
        try:
            with program.quietly():
                PassPipelineManager.apply_pipeline(prog, PassPipeline.get_pipeline("backend_neuralnetwork"))
                spec = lower(prog)
        except Exception as e:
            if isinstance(e, NotImplementedError) or _NOT_IN_NN.search(str(e)):
                raise Unsupported(str(e) or "not implemented in the lowering to a neural network") from None
            raise
        names = [o.name for o in spec.description.output]
        return run, spec.SerializeToString(), names, list(zip(h["outputs"], wants))

    def run(self, handle: Any, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        run, model, names, wants = handle
        for v in inputs.values():
            _f32_holds(v)
        floats = {k: np.asarray(v, np.float32) for k, v in inputs.items()}
        got = dict(zip(names, run(model, floats)))
        out = {}
        for (n, (dtype, scalar)), theirs in zip(wants, names):
            a = np.asarray(got[theirs])
            if dtype == "i32":
                _f32_holds(a, integers=True)
            a = a.astype(mil.np_type(dtype)) if dtype != "f32" else np.asarray(a, np.float32)
            out[n] = a.reshape(()) if scalar and a.size == 1 else a  # it has no rank 0
        return out


def _f32_holds(a: np.ndarray, integers: bool = False) -> None:
    """Neural networks carry integers in f32, which is exact up to 2**24."""
    a = np.asarray(a)
    if (integers or a.dtype.kind in "iu") and a.size and np.abs(a.astype(np.float64)).max() > 2**24:
        raise Unsupported("a neural network carries integers in f32")
