"""A dialect of five ops whose models are JSON, for tests of the harness itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

import native_ref as native
from harness.core.dtypes import of
from harness.core.instance import Instance
from harness.core.outcome import Model
from harness.declare import Any as Any_
from harness.declare import (
    Array,
    Axes,
    Axis,
    Dialect,
    Flag,
    Float,
    Ints,
    Num,
    OpSchema,
    OpVersion,
    accumulates,
    exact,
    rounded,
    semantics,
)
from harness.declare.schema import _one


@semantics(error=rounded(1), source="toy Add")
def add(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Num[Array, "*#d"]:
    return native.binary("add", x, y)


@semantics(error=accumulates("extent(d,axes)"), source="toy Sum")
def reduce_sum(x: Num[Array, "*d"], *, axes: Axes[Ints, "d"], keepdims: Flag) -> Num[Array, "*reduce(d,axes,keepdims)"]:
    return native.reduce("sum", x, axes, keepdims, out=of(x) if x.dtype.kind == "i" else None)


@semantics(error=exact, source="toy Flip")
def flip(x: Any_[Array, "*d"], *, axis: Axis[int, "d"]) -> Any_[Array, "*d"]:
    return np.flip(x, axis)


@semantics(error=exact, source="toy Max")
def maximum(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Num[Array, "*#d"]:
    return native.binary("maximum", x, y)


@semantics(error=accumulates("k"), source="toy MatMul")
def matmul(x: Float[Array, "n k"], y: Float[Array, "k m"]) -> Float[Array, "n m"]:
    return native.matmul(x, y)


def _schema(op: str, inputs: list[str], types: list[str], attrs: list[dict[str, Any]] = []) -> OpSchema:  # noqa: B006
    return _one(
        {
            "op": op,
            "version": 1,
            "first_opset": 1,
            "last_opset": 1,
            "inputs": [{"name": n, "type": "T"} for n in inputs],
            "outputs": [{"name": "out", "type": "T"}],
            "attrs": attrs,
            "types": {"T": types},
        }
    )


class Toy(Dialect):
    name = "toy"
    title = "Toy 1"
    format = "toy"
    opsets = (1,)
    extension = ".json"

    schemas = [
        _schema("Add", ["x", "y"], ["f32", "i32"]),
        _schema("Sum", ["x"], ["f32", "i32"], [{"name": "axes", "type": "ints"}, {"name": "keepdims", "type": "bool"}]),
        _schema("Flip", ["x"], ["f32", "i32", "bool"], [{"name": "axis", "type": "int", "required": True}]),
        _schema("Max", ["x", "y"], ["f32", "i32"]),
        _schema("MatMul", ["x", "y"], ["f32"]),
    ]

    def unsayable_rules(self, version: OpVersion) -> tuple[str, ...]:
        return ("unknown-attribute", "required-attribute")

    def load(self) -> None:
        if not self.entries:
            for name, meaning in (
                ("Add", add),
                ("Sum", reduce_sum),
                ("Flip", flip),
                ("Max", maximum),
                ("MatMul", matmul),
            ):
                self.op(name, meaning).family = "toy"

    def build(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
        nodes, ins, outs = [], [], []
        for i, (inst, given) in enumerate(zip(instances, arrays)):
            consts = {
                k: {
                    "dtype": a.dtype.name,
                    "shape": list(a.shape),
                    "hex": np.ascontiguousarray(given[k]).tobytes().hex(),
                }
                for k, a in inst.args.items()
                if a.const
            }
            free = [k for k, a in inst.args.items() if not a.const]
            types = {k: a.dtype.name for k, a in inst.args.items()}
            shapes = {k: list(a.shape) for k, a in inst.args.items()}
            nodes.append(
                {
                    "op": inst.op,
                    "attrs": inst.attrs,
                    "consts": consts,
                    "ins": {k: f"{k}{i}" for k in free},
                    "out": f"out{i}",
                    "types": types,
                    "shapes": shapes,
                }
            )
            ins.append([(f"{k}{i}", k, None) for k in free])
            outs.append([f"out{i}"])
        return Model("toy", json.dumps(nodes).encode(), ins, outs)

    def notation(self, inst: Instance) -> str:
        args = ", ".join(f"{k}: {a.dtype}{list(a.shape)}" for k, a in inst.args.items())
        return f"{inst.op}({args}) {inst.attrs}"


toy = Toy("suites.meta")
