"""Instances -> a NeuralNetwork specification: layers side by side in one network.

Blobs of instance i are called ``i<i>_...``.  A constant given to an ordinary input comes from a ``loadConstantND``
layer, one of rank 5 from ``loadConstant``.  All instances under the rank-5 mapping make a network with that mapping;
beside others they get an ``expandDims`` each, since the mapping belongs to the whole network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.instance import Arg, Instance
from harness.core.outcome import Model
from harness.declare.schema import OpSchema
from suites.nn import control, schemas, wire
from suites.nn.network import Network
from suites.nn.wire import Message

FLOAT32 = "FLOAT32"


def feature(name: str, shape: Sequence[int] | None) -> Message:
    """FeatureDescription of a float array; shape None is left open."""
    array: Message = {"dataType": FLOAT32}
    if shape is not None:
        array["shape"] = list(shape)
    return {"name": name, "type": {"multiArrayType": array}}


def can_load(shape: Sequence[int]) -> bool:
    """Does a layer make a constant of this shape: of rank 1 to 4, or [1, 1, C, H, W]?"""
    return 1 <= len(shape) <= 4 or (len(shape) == 5 and tuple(shape[:2]) == (1, 1))


def _load(b: Network, name: str, value: np.ndarray) -> None:
    """A constant blob; one of rank 5 that no layer loads is reshaped."""
    rank5, data = value.ndim == 5, {"data": (value, None)}
    if rank5 and can_load(value.shape):
        b.add(name, "loadConstant", [], [name], {"shape": list(value.shape[2:])}, data)
    elif rank5:
        b.add(f"{name}_flat", "loadConstantND", [], [f"{name}_flat"], {"shape": [value.size]}, data)
        b.add(name, "reshapeStatic", [f"{name}_flat"], [name], {"targetShape": list(value.shape)})
    else:
        b.add(name, "loadConstantND", [], [name], {"shape": list(value.shape)}, data)


def build(instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
    """One model; arrays[i]: slot -> array of instance i."""
    b = Network()
    rank5 = [inst.attrs.get("@mapping") == "rank5" for inst in instances]
    whole = all(rank5) and all(_is_old(schemas.named(i.op), i) for i in instances)
    ins, outs = [], []
    for k, inst in enumerate(instances):
        got, made = _place(b, k, inst, arrays[k], rank5[k] and not whole)
        ins.append(got)
        outs.append(made)
    network: Message = {"layers": b.layers}
    if not whole:
        network["arrayInputShapeMapping"] = "EXACT_ARRAY_MAPPING"
        b.spec = max(b.spec, 4)
    data = wire.encode(
        "Model",
        {
            "specificationVersion": b.spec,
            "description": {"input": b.inputs, "output": b.outputs},
            "neuralNetwork": network,
        },
    )
    return Model("nn", data, ins, outs, {"specification": b.spec})


def _describe(layer: Message, s: OpSchema, inst: Instance) -> None:
    """What a layer says of itself and no result depends on: ranks and shapes of its inputs, and that weights are
    updatable, which is ignored in a layer that is not.  Source: NeuralNetwork.proto, Tensor, NeuralNetworkLayer."""
    said = inst.attrs.get("@tensors")
    if said is not None:
        shapes = [a.shape for _, a in _plain(s, inst)]
        shapes += shapes[:1] or [(1,)] if said == "one more" else []
        known = {"ranks": lambda x: [], "unknown": lambda x: [-1] * len(x)}.get(said, list)
        layer["inputTensor"] = [{"rank": len(x), "dimValue": known(x)} for x in shapes]
    if inst.attrs.get("@updatable"):
        _mark_weights(layer[s.extra["layer"]])


def _mark_weights(body: Message) -> None:
    """Say of all weights below that they are updatable."""
    for v in body.values():
        if isinstance(v, dict) and v.keys() & {"floatValue", "float16Value", "rawValue", "int8RawValue"}:
            v["isUpdatable"] = True
        elif isinstance(v, dict):
            _mark_weights(v)


def _is_old(s: OpSchema, inst: Instance) -> bool:
    return s.extra["min_spec"] < 4 and not any(a.const for slot, a in _plain(s, inst))


def _plain(s: OpSchema, inst: Instance) -> list[tuple[str, Arg]]:
    """Arguments of the layer's ordinary inputs, in order."""
    out = []
    for slot in s.inputs:
        a = None if slot.const else inst.args.get(slot.name)
        if a is not None:
            out += [(slot.name, x) for x in (a if isinstance(a, list) else [a])]
    return out


def _place(b: Network, k: int, inst: Instance, arrays: dict[str, Any], lift: bool) -> tuple[list, list[str]]:
    s = schemas.named(inst.op)
    fed: list[tuple[str, str, int | None]] = []
    names: dict[str, list[str]] = {}
    shared = inst.shared()
    called: dict[str, str] = {}  # operand, or one of several -> its blob
    for slot in s.inputs:
        arg = None if slot.const else inst.args.get(slot.name)
        if arg is None:
            continue
        many = isinstance(arg, list)
        for j, a in enumerate(arg if isinstance(arg, list) else [arg]):
            place = f"{slot.name}#{j}" if many else slot.name
            if shared.get(place) in called:
                names.setdefault(slot.name, []).append(called[shared[place]])
                continue
            name = f"i{k}_{slot.name}" + (f"_{j}" if many else "")
            value = arrays[slot.name][j] if many else arrays[slot.name]
            if a.const:
                _load(b, name, np.asarray(value, np.float32))
            else:
                fed.append((name, slot.name, j if many else None))
                b.inputs.append(feature(name, a.shape))
                if lift:
                    axes = [0, 1] if len(a.shape) == 3 else [0, 1, 3, 4]
                    b.add(f"{name}_lift", "expandDims", [name], [f"{name}_lift"], {"axes": axes})
                    name = f"{name}_lift"
            names.setdefault(slot.name, []).append(name)
            called[place] = name
    constants = {
        n: (np.asarray(arrays[n]), a.quant)
        for n, a in inst.args.items()
        if isinstance(a, Arg) and (x := s.input(n)) is not None and x.const
    }
    if inst.op in control.OPS:
        outs = control.place(b, f"i{k}", inst, names)
    else:
        outs = [f"i{k}_out{j}" for j in range(inst.outs)]
        order = [n for slot in s.inputs for n in names.get(slot.name, ())]
        if inst.attrs.get("@extra_input"):
            b.add(f"i{k}_extra", "loadConstantND", [], [f"i{k}_extra"], {"shape": [1]}, {"data": (np.ones(1), None)})
            order.append(f"i{k}_extra")
        short = inst.attrs.get("@short_weight")
        if short is not None:
            array, quant = constants[short]
            constants[short] = (array.ravel()[:-1], quant)
        b.add(f"i{k}", inst.op, order, outs, inst.attrs, constants)
        _describe(b.layers[-1], s, inst)
    b.outputs += [feature(n, None) for n in outs]
    return fed, outs
