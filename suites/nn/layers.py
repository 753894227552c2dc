"""A layer's parameter message <-> attributes under dotted paths, by the schema.

``mode.samplingMethod`` is a field of a field, ``weightParams.0.x`` a field of a list's first element.  A oneof is an
attribute that names the chosen member.  Borders are flat lists (start, end of height, start, end of width); an
activation inside another layer is text such as ``sigmoid`` or ``scaledTanh(1.7159,0.6667)``; nested networks are
graphs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from harness.core.errors import FormatError, RuleError
from harness.core.instance import Graph
from harness.declare.schema import OpSchema
from suites.nn import schemas, weights, wire
from suites.nn.wire import Message

_CALL = re.compile(r"^(\w+)(?:\((.*)\))?$")
# lists whose length is stated, by layer; a border is a pair of amounts for each of two axes
_LENGTHS = {
    "convolution": {"kernelSize": 2, "stride": 2, "dilationFactor": 2, "outputShape": 2, "valid.paddingAmounts": 4},
    "pooling": {"kernelSize": 2, "stride": 2, "valid.paddingAmounts": 4, "includeLastPixel.paddingAmounts": 2},
    "resizeBilinear": {"targetSize": 2},
    "cropResize": {"targetSize": 2},
    "crop": {"offset": 2},
    "loadConstant": {"shape": 3},
}
# among them those that are ignored, always or beside an output shape
_IGNORED = {
    ("convolution", "outputShape"),
    ("convolution.isDeconvolution", "dilationFactor"),
    ("convolution.isDeconvolution", "valid.paddingAmounts"),
}


def activation(text: str) -> Message:
    """ActivationParams from its text."""
    m = _CALL.match(text)
    if m is None:
        raise FormatError(f"activation: cannot read {text!r}")
    names = list(wire.fields(wire.fields("ActivationParams")[m.group(1)][1][1:]))
    numbers = [float(x) for x in m.group(2).split(",")] if m.group(2) else []
    return {m.group(1): dict(zip(names, numbers))}


def activation_text(params: Message) -> str:
    """Text of ActivationParams; raises FormatError for one that carries weights."""
    (name, body), *_ = list(params.items()) or [("linear", {})]
    fields = wire.fields(wire.fields("ActivationParams")[name][1][1:])
    if any(kind == "@WeightParams" for _, kind, _, _ in fields.values()):
        raise FormatError(f"activation {name} inside another layer")
    return name + (f"({','.join(repr(float(body.get(f, 0.0))) for f in fields)})" if fields else "")


def encode(
    schema: OpSchema,
    attrs: dict[str, Any],
    constants: dict[str, tuple[np.ndarray, Any]],
    network: Callable[[Graph], Message],
) -> Message:
    """Parameter message of a layer.  constants: slot -> (array, quantisation).  network: Graph -> NeuralNetwork."""
    message = schema.extra["message"]
    root: Message = {}
    select = schema.extra["select"]
    prefix = ""
    if select is not None and select[0] in wire.fields(message):
        root[select[0]] = select[1]
    elif select is not None:
        root[select[1]] = {}
        prefix = select[1] + "."
    for name, value in attrs.items():
        if value is None or name.startswith("@"):
            continue
        a = schema.attrs.get(name)
        if a is None:
            raise FormatError(f"{schema.op}: no parameter {name!r}, expected one of {', '.join(schema.attrs)}")
        if a.type == "graph":
            value = network(value)
        _set(root, message, (prefix + name).split("."), value)
    for name, (array, quant) in constants.items():
        _set(root, message, (prefix + name).split("."), weights.message(array, quant))
    return root


def _set(root: Message, message: str, path: list[str], value: Any) -> None:
    head, rest = path[0], path[1:]
    fields = wire.fields(message)
    if head not in fields:  # a oneof: choose the member, keep what is already in it
        if not any(f[3] == head for f in fields.values()):
            raise FormatError(f"{message}: no field or choice {head!r}")
        for other in [n for n, f in fields.items() if f[3] == head and n != value]:
            root.pop(other, None)
        root.setdefault(value, {})
        return
    _, kind, repeated, oneof = fields[head]
    if rest:
        if oneof is not None and head not in root and any(f[3] == oneof and n in root for n, f in fields.items()):
            return  # a parameter of a member that is not the chosen one
        if repeated:
            items = root.setdefault(head, [])
            while len(items) <= int(rest[0]):
                items.append({})
            _set(items[int(rest[0])], kind[1:], rest[1:], value)
        else:
            _set(root.setdefault(head, {}), kind[1:], rest, value)
    elif kind == "@BorderAmounts":
        pairs = zip(value[::2], value[1::2])
        root[head] = {"borderAmounts": [{"startEdgeSize": s, "endEdgeSize": e} for s, e in pairs]}
    elif kind == "@ActivationParams":
        root[head] = [activation(v) for v in value] if repeated else activation(value)
    elif kind == "@CustomLayerParamValue" or (head == "parameters" and isinstance(value, dict)):
        root[head] = [{"key": k, "value": _custom(v)} for k, v in value.items()]
    else:
        root[head] = value


def _custom(v: Any) -> Message:
    kind = {bool: "boolValue", int: "longValue", float: "doubleValue", str: "stringValue"}[type(v)]
    return {kind: v}


@cache
def _choices(message: str) -> dict[str, str]:
    """Member -> oneof."""
    return {n: f[3] for n, f in wire.fields(message).items() if f[3] is not None}


def decode(
    schema: OpSchema, root: Message, network: Callable[[Message], Graph]
) -> tuple[dict[str, Any], dict[str, Message]]:
    """(attributes, weight messages by slot) of a parameter message: what is set, nothing else."""
    attrs: dict[str, Any] = {}
    held: dict[str, Message] = {}
    select = schema.extra["select"]
    message = schema.extra["message"]
    if select is not None and select[0] in wire.fields(message):
        root = {k: v for k, v in root.items() if k != select[0]}
    elif select is not None:
        message = wire.fields(message)[select[1]][1][1:]
        root = root.get(select[1], {})
    _get(root, message, "", attrs, held, network)
    return attrs, held


def _get(
    root: Message,
    message: str,
    prefix: str,
    attrs: dict[str, Any],
    held: dict[str, Message],
    network: Callable[[Message], Graph],
) -> None:
    for name, value in root.items():
        path = prefix + name
        _, kind, repeated, _ = wire.fields(message)[name]
        oneof = _choices(message).get(name)
        if oneof is not None:
            attrs[prefix + oneof] = name
        if kind[0] != "@":
            attrs[path] = list(value) if repeated else value
        elif kind == "@WeightParams":
            held[path] = value
        elif kind == "@BorderAmounts":
            edges = value.get("borderAmounts", [])
            attrs[path] = [e.get(k, 0) for e in edges for k in ("startEdgeSize", "endEdgeSize")]
        elif kind == "@ActivationParams":
            attrs[path] = [activation_text(v) for v in value] if repeated else activation_text(value)
        elif kind == "@NeuralNetwork":
            attrs[path] = network(value)
        elif name == "parameters" and repeated:
            attrs[path] = {e.get("key", ""): next(iter(e.get("value", {}).values()), None) for e in value}
        elif repeated:
            for i, v in enumerate(value):
                _get(v, kind[1:], f"{path}.{i}.", attrs, held, network)
        else:
            _get(value, kind[1:], path + ".", attrs, held, network)


def lengths(s: OpSchema) -> dict[str, int]:
    """Lists whose length is stated, and read: parameter -> length."""
    return {n: k for n, k in _LENGTHS.get(s.extra["layer"], {}).items() if n in s.attrs and (s.op, n) not in _IGNORED}


def chosen(s: OpSchema, attrs: dict[str, Any], name: str) -> bool:
    """Is a parameter that of the chosen member of its oneof, or of none?  A model has no others."""
    member = name.partition(".")[0]
    choice = _choices(s.extra["message"]).get(member)
    return choice not in attrs or attrs[choice] == member


def check_lists(s: OpSchema, attrs: dict[str, Any]) -> None:
    """Raises RuleError "list-length:<parameter>"; a list without entries is one that is left out."""
    for name, n in lengths(s).items():
        if attrs.get(name) and chosen(s, attrs, name) and len(attrs[name]) != n:
            raise RuleError(f"list-length:{name}", f"{list(attrs[name])}, {s.op} states {n}")


@cache
def unsigned(op: str) -> frozenset[str]:
    """Parameters of a layer whose field is a uint64, which holds no negative number; so are the amounts of a border."""
    s = schemas.named(op)
    select = s.extra["select"]
    message = s.extra["message"]
    if select is not None and select[0] not in wire.fields(message):
        message = wire.fields(message)[select[1]][1][1:] or message
    return frozenset(n for n in s.attrs if _kind(message, n.split(".")) in ("uint64", "@BorderAmounts"))


def _kind(message: str, path: list[str]) -> str:
    """Kind of the field at the end of a path; none of a choice."""
    fields = wire.fields(message)
    if path[0] not in fields:
        return ""
    kind = str(fields[path[0]][1])
    rest = [p for p in path[1:] if not p.isdigit()]
    return _kind(kind[1:], rest) if rest else kind


def check_unsigned(s: OpSchema, attrs: dict[str, Any]) -> None:
    """Raises FormatError where a uint64 field would hold a negative number."""
    for name in unsigned(s.op) & attrs.keys():
        v = attrs[name]
        if min(v if isinstance(v, list) else [v], default=0) < 0:
            raise FormatError(f"{s.op}: {name}: expected a number of a uint64 field, got {v}")
