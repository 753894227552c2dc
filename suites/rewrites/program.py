"""Small ONNX programs that optimisers rewrite: how they are written down, run, and how far one may be off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.core.dtypes import F32, DType, of
from harness.core.instance import Graph, Node
from harness.declare import Call, Context, Draw, T, Tolerance, composed, quantised
from suites.onnx import dialect as onnx
from suites.onnx import schemas
from suites.onnx.builder import positions
from suites.onnx.interpret import Run
from suites.semantics.programs import Language, grid

MOST = 4  # outputs of a program
Make = Callable[[Draw], dict[str, Any]]


def ints(*values: int) -> np.ndarray:
    """Axes, extents, places: a vector of int64."""
    return np.array(values, np.int64)


class Program:
    """A program under construction: ``p.input``, ``p.op`` give names; what is not a name becomes an initializer."""

    def __init__(self, d: Draw, dtype: DType = F32) -> None:
        self.d, self.g = d, Graph()
        self.dtype = dtype
        self.tensors: list[T] = []

    def input(self, shape: Any, recipe: str | None = None, dtype: DType | None = None) -> str:
        """A graph input; the data of floats is moderate, so that nothing overflows on the way."""
        recipe = recipe or self.d.pick(("unit", "small", "uniform:-4:4"))
        self.tensors.append(T(tuple(shape), recipe, dtype or self.dtype, False))
        return f"p{len(self.tensors) - 1}"

    def const(self, value: Any) -> str:
        """An initializer: an array; floats take the program's type, Python's integers are int64."""
        a = np.asarray(value)
        if a.dtype == np.float64:
            a = a.astype(self.dtype.np)
        name = f"c{len(self.g.consts)}"
        self.g.consts[name] = a
        return name

    def weights(self, shape: Any, lo: int = -4, hi: int = 4, scale: float = 0.25) -> np.ndarray:
        """Values on a grid, from one draw."""
        return grid(self.d, shape, lo, hi, scale)

    def given(self, value: np.ndarray, recipe: str = "unit") -> str:
        """Most often an initializer, which a rewriting may compute with; else an input of that shape."""
        return self.input(value.shape, recipe) if self.d.chance(8) else self.const(value)

    def op(self, op: str, *given: Any, outs: int = 1, **rest: Any) -> Any:
        """A node on operands in the order of the op's slots; ``rest`` names attributes, or slots where the opset has a
        slot of that name (axes of a reduction).  Returns the name of its output, or a list of names."""
        schema = schemas.effective(op, int(self.d.opset))
        assert schema is not None, f"no {op} at opset {self.d.opset}"
        slots: dict[str, Any] = {}
        for slot, v in zip(schema.inputs, given):
            if slot.variadic:
                slots[slot.name] = [self._ref(x) for x in given[len(slots) :]]
            elif v is not None:
                slots[slot.name] = self._ref(v)
        attrs = {}
        for k, v in rest.items():
            if schema.input(k) is None:
                attrs[k] = v
            else:
                slots[k] = self._ref(v)
        names = [f"{op.lower()}_{len(self.g.nodes)}" + (f"_{i}" if outs > 1 else "") for i in range(outs)]
        self.g.nodes.append(Node(op, slots, names, attrs))
        return names[0] if outs == 1 else names

    def _ref(self, v: Any) -> str:
        return v if isinstance(v, str) else self.const(v)

    def done(self, *outputs: str, pattern: str = "match") -> dict[str, Any]:
        """What the generator of an entry returns.  pattern: what the program is to show, for the report.

        Now and then a value on the way is an output as well, or an extent is left open: both keep a careful optimiser
        from what it would do otherwise."""
        outs = list(outputs)
        between = [o for n in self.g.nodes for o in n.outputs if o not in outs]
        if between and len(outs) < MOST and self.d.chance(6):
            outs.append(self.d.pick(between))
        self.g.outputs = outs
        if self.tensors and self.d.chance(4):
            self.g.meta["open"] = {
                f"p{i}": [k for k in range(len(t.shape)) if self.d.bool()] for i, t in enumerate(self.tensors)
            }
        return {"inputs": self.tensors, "program": self.g, "pattern": pattern, "@outs": len(outs)}


class _Onnx(Language):
    def node(self, node: Node, scope: dict[str, Any], opset: Any) -> list[Any]:
        return Run(onnx.at, int(opset)).expect(node, scope)  # type: ignore[arg-type]


LANGUAGE = _Onnx()


def run(call: Call) -> list[Any]:
    """The outputs of the program."""
    scope = LANGUAGE.run(call)
    results = [np.array(scope[n]) for n in call.attrs["program"].outputs]
    call.outs = [{"dtype": of(r)} for r in results]
    return [r.astype(np.float64) if r.dtype.kind == "f" else r for r in results]  # wide: judged by the bound


def _last(call: Call, k: int) -> Node | None:
    """The QuantizeLinear that gives output k."""
    g = call.attrs["program"]
    node = next((n for n in g.nodes if g.outputs[k] in n.outputs), None)
    return node if node is not None and node.op == "QuantizeLinear" else None


def _scales(call: Call, node: Node, like: np.ndarray) -> tuple[Any, Any]:
    consts = call.attrs["program"].consts
    scale = consts[node.inputs["y_scale"]].astype(np.float64)
    zero = node.inputs.get("y_zero_point")
    zero = consts[zero].astype(np.float64) if zero else np.zeros_like(scale)
    if scale.ndim:
        shape = [1] * like.ndim
        shape[node.attrs.get("axis", 1)] = -1
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    return scale, zero


def _steps(ctx: Context, k: int) -> Any:
    """The result in steps before it is rounded."""
    node = _last(ctx.call, k)
    if node is None:
        return ctx.wide
    x = LANGUAGE.run(ctx.call)[node.inputs["x"]].astype(np.float64)
    scale, zero = _scales(ctx.call, node, x)
    return x / scale + zero


def _tie(ctx: Context, k: int) -> Any:
    """How far the unrounded steps may be off: what is quantised by the program's bound, and the division."""
    node = _last(ctx.call, k)
    if node is None:
        return 0.0
    x = node.inputs["x"]
    value = LANGUAGE.run(ctx.call)[x].astype(np.float64)
    scale, _ = _scales(ctx.call, node, value)
    bound = LANGUAGE.bounds(ctx.call, names=[x])[0]
    return bound / scale + np.abs(value / scale) * 2.0**-20 + 2.0**-20


def _class(k: int, integers: bool) -> Tolerance:
    if integers:
        return quantised(0, real=lambda ctx: _steps(ctx, k), tie=lambda ctx: _tie(ctx, k))

    def bound(ctx: Context) -> Any:
        return LANGUAGE.bounds(ctx.call)[k]

    return composed(bound, "every op's own error, propagated through the program, twice, + ulp")


def error_classes(integers: bool) -> tuple[Tolerance, ...]:
    """integers: of programs whose first output is quantised; the others are judged as they come."""
    return tuple(_class(k, integers and k == 0) for k in range(MOST))


def either(*makes: Make) -> Make:
    """One of several generators."""
    return lambda d: d.pick(makes)(d)


def operands(node: Node, opset: int) -> list[str]:
    """Names of a node's operands in order, "" for one left out."""
    schema = schemas.effective(node.op, opset)
    assert schema is not None
    return [x or "" for _, _, x in positions(schema, node.inputs)]
