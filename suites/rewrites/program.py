"""Small ONNX programs that optimisers rewrite: how they are written down and run, and how far one may be off."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.instance import Node
from harness.declare import Call, Context, Tolerance, quantised
from suites import programs
from suites.onnx import dialect as onnx
from suites.onnx import schemas
from suites.onnx.builder import positions
from suites.programs import MOST, Language, Make

__all__ = ["LANGUAGE", "Make", "Program", "error_classes", "ints", "operands"]

LANGUAGE = Language(onnx)


def ints(*values: int) -> np.ndarray:
    """Axes, extents, places: a vector of int64."""
    return np.array(values, np.int64)


class Program(programs.Program):
    """A program under construction: ``p.input``, ``p.op`` give names; what is not a name becomes an initializer."""

    def literal(self, value: Any) -> np.ndarray:
        """Floats of Python take the program's type, its integers are int64; arrays keep their type."""
        a = np.asarray(value)
        return a.astype(self.dtype.np) if a.dtype == np.float64 else a

    def op(self, op: str, *given: Any, outs: Any = 1, **rest: Any) -> Any:
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
                attrs[k] = float(np.float32(v)) if isinstance(v, float) else v  # as the format holds it
            else:
                slots[k] = self._ref(v)
        return self.node(op, slots, attrs, outs)

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
        if self.tensors and self.d.chance(4):
            self.g.meta["open"] = {
                f"p{i}": [k for k in range(len(t.shape)) if self.d.bool()] for i, t in enumerate(self.tensors)
            }
        return self.finished(outs, pattern)


def _last(call: Call, k: int) -> Node | None:
    """The QuantizeLinear that gives output k."""
    g = call.attrs["program"]
    node = next((n for n in g.nodes if g.outputs[k] in n.outputs), None)
    return node if node is not None and node.op == "QuantizeLinear" else None


def _scales(scope: dict[str, Any], node: Node, like: np.ndarray) -> tuple[Any, Any]:
    scale = scope[node.value("y_scale")].astype(np.float64)
    given = node.inputs.get("y_zero_point")
    zero = scope[str(given)].astype(np.float64) if given else np.zeros_like(scale)
    if scale.ndim:
        shape = [1] * like.ndim
        shape[node.attrs.get("axis", 1)] = -1
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    return scale, zero


def _steps(ctx: Context, k: int) -> Any:
    """The result in steps before it is rounded; 0 of a NaN, which may become any integer."""
    node = _last(ctx.call, k)
    if node is None:
        return ctx.wide
    scope = LANGUAGE.run_call(ctx.call)
    x = scope[node.value("x")].astype(np.float64)
    scale, zero = _scales(scope, node, x)
    steps = x / scale + zero
    return np.where(np.isnan(steps), 0.0, steps)


def _tie(ctx: Context, k: int) -> Any:
    """How far the unrounded steps may be off: what is quantised by the program's bound, and the division.  Behind
    another node the integers are off by the program's bound."""
    node = _last(ctx.call, k)
    if node is None:
        return LANGUAGE.bounds(ctx.call)[k]
    x, scope = node.value("x"), LANGUAGE.run_call(ctx.call)
    value = scope[x].astype(np.float64)
    scale, zero = _scales(scope, node, value)
    bound = LANGUAGE.bounds(ctx.call, names=[x])[0]
    tie = bound / np.abs(scale) + np.abs(value / scale) * 2.0**-20 + 2.0**-20
    return np.where(np.isnan(value / scale + zero) | np.isnan(tie), np.inf, tie)


def error_classes(integers: bool) -> tuple[Tolerance, ...]:
    """integers: of programs whose first output is quantised; the others are judged as they come."""
    plain = [LANGUAGE.tolerance(k) for k in range(MOST)]
    if not integers:
        return tuple(plain)
    return (quantised(0, real=lambda ctx: _steps(ctx, 0), tie=lambda ctx: _tie(ctx, 0)), *plain[1:])


def operands(node: Node, opset: int) -> list[str]:
    """Names of a node's operands in order, "" for one left out."""
    schema = schemas.effective(node.op, opset)
    assert schema is not None
    return [x or "" for _, _, x in positions(schema, node.inputs)]
