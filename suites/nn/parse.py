"""A NeuralNetwork specification (bytes, path, or the official message) -> ``Graph``.

Nodes are layers; weights become constants named ``<layer>/<slot>``; nested networks become graph attributes whose nodes
use the names of the network around them.  meta: "mapping", "image_mapping", "specification", "preprocessing",
"classifier" (the label fields, if any), "outputs" (declared output types).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.core.dtypes import F32
from harness.core.errors import FormatError, RuleError, reading
from harness.core.instance import Arg, Graph, Node
from suites.nn import layers, schemas, weights, wire
from suites.nn.wire import Message

_NETWORKS = ("neuralNetwork", "neuralNetworkClassifier", "neuralNetworkRegressor")


def load(model: Any) -> Message:
    """Model message of bytes, a path to a .mlmodel, an official message, or an object with ``get_spec``."""
    if hasattr(model, "get_spec"):
        model = model.get_spec()
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if isinstance(model, (str, Path)):
        model = Path(model).read_bytes()
    if not isinstance(model, (bytes, bytearray, memoryview)):
        raise FormatError(f"nn model: expected bytes, a path or a specification, got {type(model).__name__}")
    return wire.decode("Model", bytes(model) if isinstance(model, bytearray) else model)


def parse(model: Any) -> Graph:
    """Raises FormatError for bytes that are no neural network, RuleError for a layer without an input that it needs."""
    with reading("nn model"):
        return _graph(load(model))


def _graph(spec: Message) -> Graph:
    kind = next((n for n in _NETWORKS if n in spec), None)
    if kind is None:
        raise FormatError("nn model: holds no neural network")
    net = spec[kind]
    g = Graph(meta={"specification": spec.get("specificationVersion", 0), "opset": 1})
    _fill(g, net, g)
    about = spec.get("description", {})
    for f in about.get("input", ()):
        shape, where = _shape(f)
        g.inputs.append((f["name"], Arg(F32, shape)))
        if where is not None:
            g.meta.setdefault("images", {})[f["name"]] = where
    g.outputs = [f["name"] for f in about.get("output", ())]
    g.meta["outputs"] = {f["name"]: f.get("type", {}) for f in about.get("output", ())}
    g.meta["mapping"] = net.get("arrayInputShapeMapping", "RANK5_ARRAY_MAPPING")
    g.meta["image_mapping"] = net.get("imageInputShapeMapping", "RANK5_IMAGE_MAPPING")
    g.meta["preprocessing"] = net.get("preprocessing", [])
    if kind == "neuralNetworkClassifier":
        g.meta["classifier"] = {
            "labels": (net.get("stringClassLabels") or net.get("int64ClassLabels") or {}).get("vector", []),
            "blob": net.get("labelProbabilityLayerName", ""),
            "label": about.get("predictedFeatureName", ""),
            "probabilities": about.get("predictedProbabilitiesName", ""),
        }
    return g


def _shape(f: Message) -> tuple[tuple[int, ...], str | None]:
    t = f.get("type", {})
    if "imageType" in t:
        i = t["imageType"]
        color = i.get("colorSpace", "RGB")
        return (1 if color.startswith("GRAY") else 3, i.get("height", 0), i.get("width", 0)), color
    return tuple(t.get("multiArrayType", {}).get("shape", ())), None


def _fill(g: Graph, net: Message, top: Graph) -> None:
    for k, layer in enumerate(net.get("layers", ())):
        g.nodes.append(_node(layer, k, top))


def _node(layer: Message, k: int, top: Graph) -> Node:
    kind = next((n for n in layer if wire.fields("NeuralNetworkLayer")[n][3] == "layer"), None)
    label = layer.get("name", f"layer {k}")
    if kind is None:
        raise FormatError(f"nn layer {label}: of no known type")
    for one, names in (("inputTensor", "input"), ("outputTensor", "output")):
        tensors = layer.get(one, ())
        if tensors and len(tensors) != len(layer.get(names, ())):
            raise RuleError(f"tensor-per-{names}", f"{kind} {label}: {len(tensors)} {one} for {layer.get(names, [])}")
        for t in tensors:  # coremltools writes a rank alone where it knows no extents
            if t.get("dimValue") and len(t["dimValue"]) != t.get("rank", 0):
                raise RuleError("dims-per-rank", f"{kind} {label}: {t}")
    body = layer[kind]
    s = schemas.of_layer(kind, body)

    def network(net: Message) -> Graph:
        inner = Graph()
        _fill(inner, net, top)
        return inner

    attrs, held = layers.decode(s, body, network)

    def attr(name: str) -> Any:
        return attrs.get(name, s.attrs[name].default)

    inputs: dict[str, Any] = {}
    given = list(layer.get("input", ()))
    for slot in s.inputs:
        if slot.const or not given:
            continue
        inputs[slot.name] = given if slot.variadic else given.pop(0)
        if slot.variadic:
            given = []
    if given:
        raise FormatError(f"nn layer {label}: {kind} does not take {len(layer['input'])} inputs")
    for slot in s.inputs:
        if not slot.optional and slot.name not in inputs:
            raise RuleError(f"required-input:{slot.name}", f"{kind} {label}")
    for slot_name, w in held.items():
        shape = weights.stored_shape(s.op, slot_name, attr)
        if not w and shape is not None and len(shape) == 1 and shape[0] and slot_name != "data":
            continue  # a vector that lacks its numbers is none: a bias that is switched off
        name = f"{label}/{slot_name}"
        while name in top.consts:
            name += "'"
        if bool(body.get("int8DynamicQuantize")) != ("int8RawValue" in w) and slot_name == "weights":
            raise RuleError(
                "int8-weights",
                f"{kind} {label}: int8RawValue is of a layer with int8DynamicQuantize, and the other way",
            )
        top.consts[name] = weights.array(w, shape, name, weights.groups_of(s.op, attr))
        inputs[slot_name] = name
    return Node(s.op, inputs, list(layer.get("output", ())), attrs, 1)
