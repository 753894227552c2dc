"""A second reading of the NeuralNetwork specification, as a backend: ``nn-definition``.

Written from the comments of NeuralNetwork.proto with plain NumPy and loops, one function a layer.  It shares nothing
with the reference: no meaning, no kernel, no codec; it reads models with the official message classes of coremltools.
Where the two readings differ, one of them is wrong.  Slow by design.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from suites.nn.definition import (
    arithmetic,
    control,
    images,
    indexing,
    normalisation,
    products,
    randomness,
    recurrent,
    reductions,
    shapes,
)
from suites.nn.definition.common import LAYERS, Forbidden, Unsupported

__all__ = ["Definition"]

FAMILIES = (arithmetic, control, images, indexing, normalisation, products, randomness, recurrent, reductions, shapes)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """coremltools prints eight lines about its missing macOS library."""
    fd, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(fd, 2)
        os.close(fd)
        os.close(null)


class Definition:
    """The backend.  ``load`` gives the parsed message; ``run`` walks the layers."""

    name = "nn-definition"
    formats = ("nn",)
    pack = 16
    rejects = ("Forbidden",)

    def __init__(self) -> None:
        with _quiet():
            from coremltools.proto import Model_pb2
            from coremltools.version import __version__
        self._model, self._version = Model_pb2, __version__

    def version(self) -> str:
        """Version of the message classes."""
        return f"NeuralNetwork.proto of coremltools {self._version}"

    def load(self, model: bytes, format: str) -> Any:
        """Parse; refuse a layer that has no definition here."""
        spec = self._model.Model()
        spec.ParseFromString(model)
        for layer in spec.neuralNetwork.layers:
            kind = layer.WhichOneof("layer")
            if kind not in LAYERS and kind not in control.KINDS:
                raise Unsupported(f"no definition of {kind}")
            for names, tensors in ((layer.input, layer.inputTensor), (layer.output, layer.outputTensor)):
                if len(tensors) not in (0, len(names)):
                    raise Forbidden(f"{layer.name}: {len(tensors)} tensors for {len(names)} names")
        return spec

    def run(self, spec: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        """{output: float32 array}."""
        net = spec.neuralNetwork
        blobs: dict[str, np.ndarray] = {}
        rank5 = net.arrayInputShapeMapping == 0
        for feature in spec.description.input:
            x = np.asarray(inputs[feature.name], np.float32)
            blobs[feature.name] = _rank5(x, len(feature.type.multiArrayType.shape)) if rank5 else x
        with np.errstate(all="ignore"):
            control.run(net.layers, blobs)
        return {f.name: blobs[f.name] for f in spec.description.output}


def _rank5(x: np.ndarray, rank: int) -> np.ndarray:
    """[C] -> [1, 1, C, 1, 1]; [C, H, W] -> [1, 1, C, H, W]; other declared ranks are invalid."""
    if rank == 1:
        return x[None, None, :, None, None]
    if rank == 3:
        return x[None, None]
    raise Forbidden(f"rank {rank} under the rank-5 mapping")
