"""coremltools' in-memory programs (pymil) -> plain programs.  Needs coremltools."""

from __future__ import annotations

from typing import Any

import numpy as np
from coremltools.converters.mil._deployment_compatibility import AvailableTarget
from coremltools.converters.mil.mil import ListVar, types

from harness.core.dtypes import BY_NAME
from suites.mil import plain

_NAMES = {"fp16": "f16", "fp32": "f32", "fp64": "f64", "complex64": "c64", "string": "str"}  # theirs -> ours
_BLOCKS = {"cond": ("_true_fn", "_false_fn"), "while_loop": ("_cond", "_body")}  # slots of the blocks of an op


def packed(prog: Any, function: str | None = None) -> bytes:
    """The plain program of a function of a pymil Program: "main" if none is named, or the first where there is none."""
    if function is None:
        function = "main" if "main" in prog.functions else next(iter(prog.functions))
    return _Reader(prog.functions[function]).program.dumps()


def ours(builtin: Any) -> str:
    """Our name of a coremltools element type."""
    s = str(types.builtin_to_string(builtin))
    return _NAMES.get(s) or s.replace("uint", "u").replace("int", "i")


class _Reader:
    """One function; every result gets a name of its own."""

    def __init__(self, f: Any) -> None:
        version = f.opset_version or AvailableTarget.iOS15
        self.program = plain.Program(version.name.replace("iOS", "ios"))
        self.names: dict[int, str] = {}
        self.taken: set[str] = set()
        for n, v in f.inputs.items():
            self.names[id(v)] = n
            self.taken.add(n)
            self.program.inputs.append(_input(n, v))
        self.program.ops = [self.op(op) for op in f.operations if op.op_type != "const"]
        for i, v in enumerate(f.outputs):
            if _is_const(v):
                self.program.ops.append(["identity", {"x": self.literal(v)}, [f"out.const.{i}"]])
                self.program.outputs.append(f"out.const.{i}")
            else:
                self.program.outputs.append(self.name(v))

    def name(self, v: Any) -> str:
        if id(v) not in self.names:
            self.names[id(v)] = v.name if v.name not in self.taken else f"{v.name}.{len(self.names)}"
            self.taken.add(self.names[id(v)])
        return self.names[id(v)]

    def literal(self, v: Any) -> dict[str, Any]:
        val = v.op.outputs[0].val if _is_const(v) else v.val
        if isinstance(val, (str, bytes)):
            return self.program.const(np.array(val, dtype=object), BY_NAME["str"])
        if isinstance(v, ListVar):
            return {"s": [x.item() if isinstance(x, np.generic) else x for x in getattr(val, "ls", val)]}
        dtype, array = BY_NAME[ours(v.dtype)], np.asarray(val)
        if array.dtype == object:  # extents that a pass has put together: np.int32 beside int
            array = array.astype(dtype.np)
        return self.program.const(array, dtype)

    def ref(self, v: Any) -> dict[str, Any]:
        if isinstance(v, (list, tuple)):
            return {"l": [self.ref(x) for x in v]}
        return self.literal(v) if _is_const(v) else {"v": self.name(v)}

    def op(self, op: Any) -> list[Any]:
        args = {slot: self.ref(v) for slot, v in op.inputs.items() if v is not None and not slot.startswith("_")}
        for slot, block in zip(_BLOCKS[op.op_type], op.blocks) if op.blocks else ():
            args[slot] = {
                "b": {
                    "inputs": [self.name(v) for v in block.inputs],
                    "ops": [self.op(o) for o in block.operations if o.op_type != "const"],
                    "outputs": [self.ref(v) for v in block.outputs],
                }
            }
        return [op.op_type, args, [self.name(v) for v in op.outputs]]


def _is_const(v: Any) -> bool:
    op = getattr(v, "op", None)
    return op is not None and op.op_type == "const"


def _input(name: str, v: Any) -> list[Any]:
    """[name, dtype, shape, kind]; an axis of unknown extent has its symbol in place of a number."""
    state = types.is_state(v.sym_type)
    t = v.sym_type.wrapped_type() if state else v.sym_type
    tensor = types.is_tensor(t)
    dims = t.get_shape() if tensor else ()
    shape = [int(d) if isinstance(d, (int, np.integer)) else str(d) for d in dims]
    return [name, ours(t.get_primitive() if tensor else t), shape, "state" if state else "tensor"]
