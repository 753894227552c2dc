"""Run a whole MIL program with the reference: plain bytes, an mlprogram spec, an ``.mlpackage``, or a pymil Program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, of
from harness.core.errors import UsageError
from harness.core.instance import Graph, Node

_DTYPES = {"fp16": "f16", "fp32": "f32", "fp64": "f64", "bool": "bool", "string": "str"}


class Items(Sequence[Any]):
    """A list: the tensors that were written to it, by place, and ``blank`` at all others.

    fixed: "init_length is the fixed length of the list throughout runtime" (make_list, dynamic_length = false), as the
    builder makes every operand that is a list."""

    def __init__(self, written: Mapping[int, np.ndarray], length: int, fixed: bool, blank: Any = None) -> None:
        self.written, self.length, self.fixed, self.blank = dict(written), length, fixed, blank

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, at: Any) -> Any:
        if not 0 <= at < self.length:
            raise IndexError(at)
        return self.written.get(at, self.blank)

    @property
    def one(self) -> Any:
        """One of the tensors; None of an empty list."""
        return next(iter(self.written.values()), self.blank)

    def with_items(self, items: Mapping[int, np.ndarray]) -> Items:
        """The list with other tensors; one of dynamic length grows."""
        length = max((self.length, *(i + 1 for i in items)))
        blank = next((np.zeros_like(x) for x in items.values()), None) if self.blank is None else self.blank
        return Items({**self.written, **items}, length, self.fixed, blank)


class State:
    """A state of a running program: ``value`` is what ``read_state`` sees."""

    def __init__(self, value: np.ndarray) -> None:
        self.value = np.array(value)

    def __repr__(self) -> str:
        return f"State({self.value.shape})"


def our_dtype(name: str) -> Any:
    """DType for a string of MIL: fp16, int32, uint8."""
    return BY_NAME[_DTYPES.get(name) or name.replace("uint", "u").replace("int", "i")]


def settle(dialect: Any, g: Graph, opset: Any) -> Graph:
    """Move constant arguments that are parameters of their op from the inputs to the attributes, in place."""
    for node in g.nodes:
        _settle_node(dialect, g, node, opset)
        for v in node.attrs.values():
            if isinstance(v, Graph):
                v.consts = {**g.consts, **v.consts}
                settle(dialect, v, opset)
    return g


def _settle_node(dialect: Any, g: Graph, node: Node, opset: Any) -> None:
    if node.op.startswith("complex"):
        node.attrs["@domain"] = "complex"
    elif node.op == "coreml_update_state":
        node.attrs["@domain"] = "coreml"
    if node.op == "matmul":  # mixed types: the result has that of the operand that is not constant
        const = [k for k in ("x", "y") if node.inputs.get(k) in g.consts]
        if len(const) == 1:
            node.attrs["@const"] = const[0]
    schema = dialect.effective(node.op, opset, node.attrs.get("@domain", "")).schema
    for slot in list(node.inputs):
        a, name = schema.attrs.get(slot), node.inputs[slot]
        if a is None or name is None:
            continue
        names = name if isinstance(name, list) else [name]
        if any(n not in g.consts for n in names):
            continue  # computed in the program: stays an input, which decoders also accept
        arrays = [g.consts[n] for n in names]
        node.inputs.pop(slot)
        letter = schema.extra["attr_types"].get(slot)
        if letter in schema.types:
            node.attrs[f"@{letter}"] = of(arrays[0]).name
        value = [x.item() for x in arrays] if isinstance(name, list) else attribute(arrays[0], a.type)
        node.attrs[slot] = value


def attribute(x: np.ndarray, kind: str) -> Any:
    """The value of a constant array as an attribute of the given kind."""
    if kind == "dtype":
        return our_dtype(str(x.item() if x.ndim == 0 else x.ravel()[0]))
    if kind == "tensor":
        return x
    if kind.endswith("s"):
        return [v.item() if isinstance(v, np.generic) else v for v in np.atleast_1d(x)]
    v = x.ravel()[0]
    v = v.item() if isinstance(v, np.generic) else v
    return {"str": str, "bool": bool, "int": int, "float": float}.get(kind, lambda y: y)(v)


def feed(g: Graph, inputs: dict[str, Any]) -> dict[str, Any]:
    """Inputs by name, states wrapped."""
    out = {}
    for name, a in g.inputs:
        if name in inputs:
            x = inputs[name]
            try:
                out[name] = State(np.asarray(x, a.dtype.np)) if a.kind == "state" and not isinstance(x, State) else x
            except (TypeError, ValueError) as e:
                raise UsageError(f"state {name}: expected {a.dtype}, got {type(x).__name__}: {e}") from None
    return out
