"""Write ``schema.json`` and ``messages.json`` from the protobuf descriptors of the installed coremltools.

    python -m suites.nn.extract            rewrite both
    python -m suites.nn.extract --check    fail if a file differs from what would be written

The descriptors give layers, fields, numbers, types, oneofs and enums.  ``slots.txt`` gives names and counts of inputs
and outputs, which the format states in prose only.

An op is a layer, with two exceptions.  A layer in which one field chooses the function becomes one op for each function
(``unary.SQRT``).  A flag that is set makes an op of its own (``convolution.isDeconvolution``).

A layer's parameters become attributes under dotted paths (``mode.samplingMethod``).  A oneof becomes an attribute that
names the chosen member.  Weights become constant input slots.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
VARIANTS = {
    "activation": "NonlinearityType",
    "unary": "type",
    "reduce": "mode",
    "gelu": "mode",
    "pooling": "type",
    "pooling3d": "type",
    "globalPooling3d": "type",
    "upsample": "mode",
    "convolution": "isDeconvolution",
    "convolution3d": "isDeconvolution",
    "concatND": "interleave",
}
ROOTS = ("Model", "NeuralNetworkClassifier", "NeuralNetworkRegressor", "NeuralNetwork")
# Members of Model.Type and FeatureType that have nothing to do with networks stay out.
KEPT_TYPES = ("neuralNetwork", "neuralNetworkClassifier", "neuralNetworkRegressor")
_KINDS = {
    1: "double",
    2: "float",
    3: "int64",
    4: "uint64",
    5: "int32",
    8: "bool",
    9: "string",
    12: "bytes",
    13: "uint32",
}
_ATTRS = {
    "double": "float",
    "float": "float",
    "int64": "int",
    "uint64": "int",
    "int32": "int",
    "uint32": "int",
    "bool": "bool",
    "string": "str",
}
_ZERO = {"float": 0.0, "int": 0, "bool": False, "str": ""}


def min_spec(number: int) -> int:
    """Specification version that brought the layer: iOS13 added those from 600 on, iOS14 those from 1450 on."""
    return 1 if number < 600 else 4 if number < 1450 else 5


def slots() -> dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """Layer -> (inputs, outputs) as schema slots, from ``slots.txt``."""
    out = {}
    for line in (HERE / "slots.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            layer, rest = line.split(":")
            ins, outs = rest.split("->")
            out[layer.strip()] = ([_slot(s) for s in ins.split()], [_slot(s) for s in outs.split()])
    return out


def _slot(text: str) -> dict[str, Any]:
    return {"name": text.rstrip("?*+"), "type": "T", "optional": text[-1] in "?*", "variadic": text[-1] in "*+"}


def flatten(message: Any, prefix: str = "", only: str | None = None) -> tuple[list[dict], list[dict]]:
    """(attributes, weight slots) of a message; ``only`` keeps one member of its oneofs."""
    attrs: list[dict] = []
    weights: list[dict] = []
    for f in message.fields:
        name = prefix + f.name
        if only is not None and f.containing_oneof is not None and f.name != only:
            continue
        kind = f.message_type.name if f.message_type is not None else None
        if kind is None:
            attrs.append(_attr(f, name))
        elif kind == "WeightParams":
            slot = {"name": name, "type": "W", "optional": True, "variadic": f.is_repeated, "const": True}
            weights.append(slot)
        elif kind == "BorderAmounts":
            attrs.append({"name": name, "type": "ints", "default": []})
        elif kind == "NeuralNetwork":
            attrs.append({"name": name, "type": "graph", "default": None})
        elif kind == "ActivationParams":
            attrs.append({"name": name, "type": "strs" if f.is_repeated else "str", "default": None})
        elif f.message_type.GetOptions().map_entry:
            attrs.append({"name": name, "type": "dict", "default": None})
        else:
            for p in (f"{name}.0.", f"{name}.1.") if f.is_repeated else (f"{name}.",):
                if only is not None:
                    p = prefix
                a, w = flatten(f.message_type, p)
                attrs += a
                weights += w
    for o in message.oneofs:
        if only is None:
            names = [f.name for f in o.fields]
            attrs.append({"name": prefix + o.name, "type": "str", "default": None, "enum": names})
    return attrs, weights


def _attr(f: Any, name: str) -> dict[str, Any]:
    if f.enum_type is not None:
        names = [v.name for v in f.enum_type.values]
        return {"name": name, "type": "str", "default": names[0], "enum": names}
    kind = _ATTRS[_KINDS[f.type]]
    return {
        "name": name,
        "type": kind + "s" if f.is_repeated else kind,
        "default": [] if f.is_repeated else _ZERO[kind],
    }


def schema() -> dict[str, Any]:
    """The content of ``schema.json``."""
    from coremltools.proto import NeuralNetwork_pb2 as pb
    from coremltools.version import __version__

    layers = pb.NeuralNetworkLayer.DESCRIPTOR
    named, ops = slots(), []
    for f in sorted(layers.oneofs_by_name["layer"].fields, key=lambda f: f.number):
        m = f.message_type
        chooser = VARIANTS.get(f.name)
        if chooser is None:
            ops.append(_op(f, f.name, named[f.name], *flatten(m)))
        elif chooser in m.oneofs_by_name:
            for member in m.oneofs_by_name[chooser].fields:
                a, w = flatten(m, only=member.name)
                ops.append(_op(f, f"{f.name}.{member.name}", named[f.name], a, w, select=[chooser, member.name]))
        elif m.fields_by_name[chooser].enum_type is None:
            a, w = flatten(m)
            rest = [x for x in a if x["name"] != chooser]
            ops.append(_op(f, f.name, named[f.name], rest, w))
            ins, outs = named[f.name]
            once = ([s for s in ins if not s["optional"]], outs)  # a second input is only for the unset flag
            ops.append(_op(f, f"{f.name}.{chooser}", once, rest, w, select=[chooser, True]))
        else:
            a, w = flatten(m)
            for v in m.fields_by_name[chooser].enum_type.values:
                rest = [x for x in a if x["name"] != chooser]
                ops.append(_op(f, f"{f.name}.{v.name}", named[f.name], rest, w, select=[chooser, v.name]))
    return {"dialect": "nn", "source": f"coremltools {__version__}", "ops": ops}


def _op(f: Any, name: str, io: tuple[list, list], attrs: list, weights: list, select: Any = None) -> dict[str, Any]:
    taken = {s["name"] for s in io[0]}
    assert not taken & {w["name"] for w in weights}, (name, taken, weights)
    return {
        "op": name,
        "version": 1,
        "first_opset": 1,
        "last_opset": 1,
        "layer": f.name,
        "field": f.number,
        "message": f.message_type.name,
        "min_spec": min_spec(f.number),
        "select": select,
        "inputs": [{**s, "const": False} for s in io[0]] + weights,
        "outputs": io[1],
        "attrs": [{"required": False, "enum": None, **a} for a in attrs],
        "types": {"T": ["f32"], "W": ["f32", "f16"]},
    }


def messages() -> dict[str, Any]:
    """The content of ``messages.json``: message -> field -> [number, kind, repeated, oneof], and the enums."""
    from coremltools.proto import Model_pb2 as model
    from coremltools.proto import NeuralNetwork_pb2 as pb

    found: dict[str, Any] = {}
    enums: dict[str, Any] = {}

    def visit(m: Any) -> None:
        if m.name in found:
            return
        found[m.name] = {}
        for f in sorted(m.fields, key=lambda f: f.number):
            if m.name == "Model" and f.containing_oneof is not None and f.name not in KEPT_TYPES:
                continue
            kind = _KINDS.get(f.type)
            if f.message_type is not None:
                kind = f"@{f.message_type.name}"
                visit(f.message_type)
            elif f.enum_type is not None:
                kind = f"#{f.enum_type.full_name.split('.', 2)[2]}"
                enums[kind[1:]] = {v.name: v.number for v in f.enum_type.values}
            oneof = f.containing_oneof.name if f.containing_oneof is not None else None
            found[m.name][f.name] = [f.number, kind, f.is_repeated, oneof]

    visit(model.Model.DESCRIPTOR)
    for name in ROOTS[1:]:
        visit(pb.DESCRIPTOR.message_types_by_name[name])
    return {"messages": dict(sorted(found.items())), "enums": dict(sorted(enums.items()))}


def _lines(value: Any, depth: int) -> str:
    """JSON with one line per item down to ``depth``."""
    if depth and isinstance(value, dict) and value:
        return "{\n" + ",\n".join(f"{json.dumps(k)}: {_lines(v, depth - 1)}" for k, v in value.items()) + "\n}"
    if depth and isinstance(value, list) and value:
        return "[\n" + ",\n".join(_lines(v, depth - 1) for v in value) + "\n]"
    return json.dumps(value)


def main(argv: list[str]) -> int:
    """Rewrite both files, or compare with ``--check``; exit code 1 when they would change."""
    texts = {"schema.json": _lines(schema(), 2) + "\n", "messages.json": _lines(messages(), 2) + "\n"}
    stale = [n for n, t in texts.items() if not (HERE / n).exists() or (HERE / n).read_text() != t]
    if "--check" in argv:
        print(f"stale: {', '.join(stale)}" if stale else "up to date")
        return 1 if stale else 0
    for n, t in texts.items():
        (HERE / n).write_text(t)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
