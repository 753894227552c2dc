"""A network under construction: layers in order, and the specification version that they need."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.instance import Graph
from harness.declare.schema import OpSchema
from suites.nn import layers, schemas
from suites.nn.wire import Message


class Network:
    """Layers with the features that go in and out.  spec: the specification version that they ask for."""

    def __init__(self) -> None:
        self.layers: list[Message] = []
        self.inputs: list[Message] = []
        self.outputs: list[Message] = []
        self.spec = 1

    def add(
        self,
        name: str,
        op: str,
        inputs: list[str],
        outputs: list[str],
        attrs: dict[str, Any],
        constants: dict[str, Any] | None = None,
        to: list[Message] | None = None,
    ) -> None:
        """Append a layer; ``to``: a nested network's list."""
        s = schemas.named(op)
        body = layers.encode(s, attrs, constants or {}, self.network)
        self.spec = max(self.spec, s.extra["min_spec"], needs_spec(s, attrs, len(inputs), constants or {}))
        layer = {"name": name, "input": inputs, "output": outputs, s.extra["layer"]: body}
        (self.layers if to is None else to).append(layer)

    def network(self, g: Graph) -> Message:
        """A nested network from a graph; it shares the names of the network around it."""
        out: list[Message] = []
        for k, node in enumerate(g.nodes):
            s = schemas.named(node.op)
            held = {n: (g.consts[v], None) for n, v in node.inputs.items() if isinstance(v, str) and v in g.consts}
            names = [n for slot in s.inputs if not slot.const for n in _names(node.inputs.get(slot.name))]
            self.add(
                f"{node.outputs[0] if node.outputs else node.op}_{k}",
                node.op,
                names,
                node.outputs,
                node.attrs,
                held,
                out,
            )
        return {"layers": out}


def _names(v: str | list[str] | None) -> list[str]:
    return [] if v is None else [v] if isinstance(v, str) else list(v)


def needs_spec(s: OpSchema, attrs: dict[str, Any], inputs: int, constants: dict[str, Any]) -> int:
    """Specification version that a use of a layer asks for beyond what NeuralNetwork.proto says of the layer itself.

    constants: slot -> (array, quantisation).  Source: Model.proto, "Specification Versions"; coremltools,
    ``iOS14Features`` and the minimum versions that the package states; NeuralNetwork.proto, ConvolutionLayerParams,
    ReorganizeDataLayerParams, ConcatNDLayerParams.
    """
    layer = s.extra["layer"]
    if s.op == "convolution" and inputs > 1:
        return 4
    if (
        attrs.get("mode") == "PIXEL_SHUFFLE"
        or s.op == "concatND.interleave"
        or (layer == "upsample" and attrs.get("fractionalScalingFactor"))
        or (layer == "upsample" and attrs.get("linearUpsampleMode") in ("ALIGN_CORNERS_TRUE", "ALIGN_CORNERS_FALSE"))
        or (layer == "tile" and inputs > 1)
        or (layer in ("sliceStatic", "sliceDynamic") and (attrs.get("squeezeMasks") or inputs == 7))
    ):
        return 5
    if attrs.get("int8DynamicQuantize"):
        return 5
    if layer in ("cropResize", "resizeBilinear") or any(quant is not None for _, quant in constants.values()):
        return 3
    return 2 if any(np.asarray(array).dtype == np.float16 for array, _ in constants.values()) else 1
