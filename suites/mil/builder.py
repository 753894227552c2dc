"""Instances -> one plain MIL program, every op side by side in one function.

A run-time argument is a function input, a constant one is written into the program.  A list argument is made first
(``make_list``, then one ``list_write`` for each item) and a list result is read out again (``list_gather``), since
lists cross no function boundary.  A state argument is a state input, whose value at the end is an output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, DType
from harness.core.errors import Unsupported
from harness.core.instance import Arg, Graph, Instance, Node
from harness.core.outcome import Model
from harness.declare.schema import OpSchema
from suites.mil.plain import Program
from suites.semantics.integers import places

_MIL = {"f16": "fp16", "f32": "fp32", "c64": "complex64", "bool": "bool", "str": "string"}
# Types that coremltools turns into i32 and f32 without a word.
_ABSENT = ("i64", "u64", "f64", "bf16")


def mil_name(d: DType) -> str:
    """How MIL spells a type in a string parameter: fp16, int32, uint8, bool."""
    return _MIL.get(d.name) or d.name.replace("u", "uint").replace("i", "int", d.name[0] == "i")


def letter_types(schema: OpSchema, inst: Instance) -> dict[str, DType]:
    """Type letter -> dtype of this instance: from its arguments, from "@U" marks; that of x for what only parameters
    have, where nothing is marked (a gamma that gave it may have been left out)."""
    out: dict[str, DType] = {}
    for slot in schema.inputs:
        a = inst.args.get(slot.name)
        a = a[0] if isinstance(a, list) and a else a
        if isinstance(a, Arg) and slot.element in schema.types:
            out.setdefault(slot.element, a.dtype)
    for k, v in inst.attrs.items():
        if k.startswith("@") and isinstance(v, str) and v in BY_NAME:
            out[k[1:]] = BY_NAME[v]
    same = out.get("T")
    for letter in (schema.extra.get("attr_types") or {}).values():
        if same is not None and same.name in schema.types.get(letter, ()):
            out.setdefault(letter, same)
    return out


def literal(prog: Program, value: Any, kind: str, dtype: DType | None) -> dict[str, Any]:
    """A reference to an attribute's value, typed where a bare Python value would not do."""
    if isinstance(value, DType):
        return {"p": mil_name(value)}
    if isinstance(value, np.ndarray):
        return prog.const(value, dtype)
    if isinstance(value, str) or (isinstance(value, bool) and (dtype is None or dtype.kind == "b")):
        return {"p": value}
    if kind == "strs":
        return {"s": list(value)}
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], str):
            return {"p": list(value)}
        d = dtype or BY_NAME["bool" if value and isinstance(value[0], bool) else "i32"]
        return prog.const(_array(list(value), d), d)
    if isinstance(value, int) and (dtype is None or dtype.name == "i32"):
        return {"p": value}
    d = dtype or BY_NAME["f32"]
    return prog.const(_array(value, d), d)


def _array(value: Any, d: DType) -> np.ndarray:
    """A value in a type; one that an invalid instance's type does not hold wraps."""
    a = np.array(value)
    if d.kind in "iu" and a.dtype.kind in "if":
        return (places(a) if a.dtype.kind == "f" else a.astype(np.int64)).astype(d.np)
    return np.array(value, d.np)


class Writer:
    """Adds instances to a program."""

    def __init__(self, schemas: Any, opset: str) -> None:
        self.schemas = schemas  # (op, opset, domain) -> OpSchema
        self.prog = Program(opset)
        self.inputs: list[list[tuple[str, str, int | None]]] = []
        self.outputs: list[list[str]] = []

    def instance(self, n: int, inst: Instance, arrays: dict[str, Any], schema: OpSchema) -> None:
        """One instance's op and whatever has to stand around it."""
        ins: list[tuple[str, str, int | None]] = []
        args: dict[str, Any] = {}
        outer: dict[str, Any] = {}  # what the blocks of this instance see of the program around them
        slots = {s.name for s in schema.inputs}
        shared = inst.shared()
        for slot, a in sorted(inst.args.items(), key=lambda x: x[0] in shared):
            given: Any = arrays.get(slot)
            if shared.get(slot) in args:
                args[slot] = args[shared[slot]]
                continue
            if slot not in slots and not isinstance(a, list):  # a tensor that only the blocks use
                outer[slot] = self._arg(f"i{n}_{slot}", slot, None, a, given, ins)
                continue
            if isinstance(a, list):
                several: list[Any] = []
                for j, x in enumerate(a):
                    first = shared.get(f"{slot}#{j}", "").partition("#")[2]
                    several.append(
                        several[int(first)] if first else self._arg(f"i{n}_{slot}_{j}", slot, j, x, given[j], ins)
                    )
                args[slot] = {"l": several}
            elif a.kind == "list":
                args[slot] = self._list(f"i{n}_{slot}", slot, a, given, ins, inst.attrs)
            else:
                args[slot] = self._arg(f"i{n}_{slot}", slot, None, a, given, ins)
        types = letter_types(schema, inst)
        for name, v in inst.attrs.items():
            if not name.startswith("@"):
                args[name] = self.attribute(schema, name, v, types, outer)
        read = inst.attrs.get("@read")
        outs = [f"o{n}_{i}" for i in range(max(1, inst.outs - (read == "state")))]  # the state comes last
        self.prog.ops.append([inst.op, args, outs])
        if read in ("list", "length"):
            size = f"o{n}_n"
            self.prog.ops.append(["list_length", {"ls": {"v": outs[0]}}, [size]])
            if read == "list":
                every = {"start": {"p": 0}, "end": {"v": size}, "step": {"p": 1}}
                self.prog.ops.append(["range_1d", every, [f"o{n}_r"]])
                pick = {"ls": {"v": outs[0]}, "indices": {"v": f"o{n}_r"}}
                self.prog.ops.append(["list_gather", pick, [f"o{n}_all"]])
            outs = [f"o{n}_all" if read == "list" else size]
        elif read == "places":
            how, at = ("list_read", "index") if "index" in args else ("list_gather", "indices")
            self.prog.ops.append([how, {"ls": {"v": outs[0]}, at: args[at]}, [f"o{n}_all"]])
            outs = [f"o{n}_all"]
        elif read == "state" and "state" in args:
            self.prog.ops.append(["read_state", {"input": args["state"]}, [f"o{n}_state"]])
            outs = [*outs, f"o{n}_state"]
        self.prog.outputs += outs
        self.inputs.append(ins)
        self.outputs.append(outs)

    def attribute(
        self, schema: OpSchema, name: str, v: Any, types: dict[str, DType], outer: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """An attribute of any kind as a reference: literal, typed constant or block."""
        if isinstance(v, Graph):
            return {"b": self.block(v, outer or {})}
        letter = schema.extra.get("attr_types", {}).get(name)
        dtype = types.get(letter) or BY_NAME.get(letter or "")
        if dtype is None and letter in schema.types:
            dtype = BY_NAME[schema.types[letter][0]]
        a = schema.attrs.get(name)
        kind = a.type if a is not None else ""
        if letter is None and kind in ("ints", "bools") and isinstance(v, (list, tuple)):
            return {"l": [{"p": x} for x in v]}  # a tuple of constants
        if kind in ("int", "ints") and dtype is not None and dtype.kind == "f":
            dtype = None
        if dtype is not None and dtype.kind == "s":
            dtype = None
        return literal(self.prog, v, kind, dtype)

    def _arg(self, name: str, slot: str, at: int | None, a: Arg, array: Any, ins: list[Any]) -> dict[str, Any]:
        if a.dtype.name in _ABSENT:
            raise Unsupported(f"MIL programs have no {a.dtype} tensors")
        if a.const:
            return self.prog.const(np.asarray(array), a.dtype)
        dims: list[Any] = [f"{name}_d{i}" if i in a.dynamic else n for i, n in enumerate(a.shape)]
        kind = "state" if a.kind == "state" else "tensor"
        self.prog.inputs.append([name, a.dtype.name, dims, kind])
        ins.append((name, slot, at))
        return {"v": name}

    def _list(
        self, name: str, slot: str, a: Arg, arrays: list[Any], ins: list[Any], attrs: dict[str, Any]
    ) -> dict[str, Any]:
        items = a.items or []
        shape, at = {"l": [{"p": n} for n in a.shape]}, attrs.get("@places") or range(len(items))
        args = {
            "init_length": {"p": attrs.get("@length") or len(items)},
            "elem_shape": shape,
            "dtype": {"p": mil_name(a.dtype)},
        }
        self.prog.ops.append(["make_list", {**args, "dynamic_length": {"p": False}}, [f"{name}_0"]])
        for j, x in enumerate(items):
            value = self._arg(f"{name}_i{j}", slot, j, x, arrays[j], ins)
            write = {"ls": {"v": f"{name}_{j}"}, "index": {"p": at[j]}, "value": value}
            self.prog.ops.append(["list_write", write, [f"{name}_{j + 1}"]])
        return {"v": f"{name}_{len(items)}"}

    def block(self, g: Graph, outer: dict[str, Any]) -> dict[str, Any]:
        """A control-flow block; names that are not its own are looked up in ``outer``."""
        ops = []
        for node in g.nodes:
            schema = self.schemas(node.op, self.prog.opset)
            args: dict[str, Any] = {}
            for slot, v in node.inputs.items():
                if v is not None:
                    args[slot] = (
                        {"l": [self._ref(g, x, outer) for x in v]} if isinstance(v, list) else self._ref(g, v, outer)
                    )
            for name, v in node.attrs.items():
                if not name.startswith("@"):
                    args[name] = self.attribute(schema, name, v, self.node_types(node), outer)
            ops.append([node.op, args, list(node.outputs)])
        return {"inputs": [n for n, _ in g.inputs], "ops": ops, "outputs": [self._ref(g, o, outer) for o in g.outputs]}

    def node_types(self, node: Node) -> dict[str, DType]:
        """The element type of each type letter of a node, as far as it is told."""
        return {}

    def _ref(self, g: Graph, name: str, outer: dict[str, Any]) -> dict[str, Any]:
        return self.prog.const(g.consts[name]) if name in g.consts else outer.get(name, {"v": name})


def build(dialect: Any, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
    """Pack instances into one model.  Raises Unsupported for instances of different opsets."""
    opset = instances[0].opset
    if any(i.opset != opset for i in instances):
        raise Unsupported("one program has one opset")

    def schema_of(op: str, at: Any) -> OpSchema:
        return dialect.effective(op, at).schema

    w = Writer(schema_of, str(opset))
    for n, (inst, given) in enumerate(zip(instances, arrays)):
        w.instance(n, inst, given, dialect.version_of(inst).schema)
    return Model("mil", w.prog.dumps(), w.inputs, w.outputs)
