"""How far rounding may move the values of a graph: a running error bound, node by node.

The error of a node's result has two parts: what the node rounds itself, and the errors of its inputs:

    bound(y) = local(y) + sum over inputs x of |df/dx| bound(x)

``local`` is half an ulp of the output's type if the implementation computes wide and rounds once, as the reference
does.  With ``acc`` it is the node's own tolerance under that accumulation type.  For the second part, the node's
meaning is evaluated in f64 around its inputs, in the way that its tolerance permits:

    exact, rounded      each element depends on one element of an input, or selects among several: all up, all down
    accumulates         sums of products: f(|x| + bound) - f(|x|), term by term the largest change there can be
    the others          one element at a time, the changes added up (first order)

A node with blocks (a loop, a branch) is rejected, since the roundings inside it are not followed.

At a value that is ``given`` the bound starts again from zero, and later nodes are judged on the given value.  So bounds
stay sharp at any depth.  An element out of bounds is the fault of the nodes after the last given values.

Source: Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., section 3.3 (running error analysis).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, DType, of
from harness.core.errors import OpconformError, UsageError
from harness.core.instance import Graph, Node
from harness.declare.codec import Call
from harness.declare.dialect import Dialect
from harness.declare.expected import Expected
from harness.declare.interpreter import call_of_node
from harness.tolerance import ulp

SECOND = 1 + 2.0**-8  # what is left out: products of two errors, each at most some 2**-10 of its value
MOST = 20000  # evaluations of one node, above which it is too large to be taken element by element

Array = np.ndarray


@dataclass(slots=True)
class Value:
    """One value of the graph.  value: the node's result.  wide: the same before rounding, from the values that it saw.
    bound: how far a correct run may be from the exact result, absolute, since the last given values.
    """

    value: Any
    wide: Any
    bound: Array


def propagate_error(
    dialect: Dialect,
    graph: Graph,
    inputs: Mapping[str, Any],
    opset: Any,
    *,
    given: Mapping[str, Any] | None = None,
    const: Callable[[str, Array], Any] | None = None,
    attrs: DType | None = None,
    acc: Mapping[str, str] | None = None,
) -> dict[str, Value]:
    """Run ``graph`` with the reference.  Returns every value that a node computes, by name, with its bound.

    inputs: by name, all of them.  They are exact.
    given: values after which bounds start anew: name -> the array of a tested run, or None for the reference's own.
    const: (name, array) -> absolute error of a constant; 0 if not stated.
    attrs: the type that float attributes were rounded to.
    acc: accumulation type by dtype name.

    Raises UsageError for a missing input or a node too large, OpconformError naming a node that cannot be evaluated.
    """
    values: dict[str, Any] = {**graph.consts, **inputs}
    missing = [n for n, _ in graph.inputs if n not in values]
    if missing:
        raise UsageError(f"graph inputs are missing: {missing}")
    off: dict[str, Array] = {}
    if const is not None:
        off = {n: _bound(const(n, v), v) for n, v in graph.consts.items() if _is_float(v)}
    out: dict[str, Value] = {}
    for node in graph.nodes:
        try:
            call = call_of_node(dialect, node, values, opset, graph.meta)
            step = _Step(node, call, off, attrs, acc)
            made = step.run()
        except OpconformError as e:
            raise type(e)(f"node {node.op} -> {node.outputs}: {e}") from None
        except Exception as e:
            raise OpconformError(f"node {node.op} -> {node.outputs}: {type(e).__name__}: {e}") from e
        for name, v in zip(node.outputs, made):
            if not name:
                continue
            out[name] = v
            values[name] = v.value
            off[name] = v.bound
            if given is not None and name in given:
                off[name] = np.zeros_like(v.bound)
                if given[name] is not None:
                    values[name] = np.asarray(given[name], v.value.dtype)
    return out


class _Step:
    """One node: its results, and how far they may be off."""

    def __init__(
        self, node: Node, call: Call, off: dict[str, Array], attrs: DType | None, acc: Mapping[str, str] | None
    ) -> None:
        self.node, self.call, self.off, self.attrs, self.acc = node, call, off, attrs, acc
        self.wide = {k: _map(_widened, v) for k, v in call.inputs.items()}
        self.evaluations = 0

    def run(self) -> list[Value]:
        if any(isinstance(v, Graph) for a in self.call.attrs.values() for v in (a if isinstance(a, list) else [a])):
            raise UsageError("what is rounded inside a block is not followed, so its result has no bound")
        opaque = [k for k, v in self.call.inputs.items() if not _is_tensor(v)]
        expected = self.call.version.evaluate(self.call)
        if opaque:
            return self._moved(expected, opaque)
        bounds = [self._local(e) for e in expected]
        if not all(isinstance(e.value, np.ndarray) for e in expected):
            raise UsageError("a result that is no tensor has no bound")
        for slot, part, b in self._inexact():
            for i, change in enumerate(self._change(expected, slot, part, b)):
                bounds[i] = bounds[i] + change
        for name, v in self.call.attrs.items():
            if self.attrs is not None and isinstance(v, float) and v and np.isfinite(v):
                changes = self._of_attr(name, v, float(ulp(v, self.attrs)) / 2)
                bounds = [b + c for b, c in zip(bounds, changes)]
        return [
            Value(e.value, e.value if e.wide is None else e.wide, np.asarray(b * SECOND, np.float64))
            for e, b in zip(expected, bounds)
        ]

    def _inexact(self) -> list[tuple[str, int | None, Array]]:
        """Inputs that may be off: slot, number within a list, bound."""
        found: list[tuple[str, int | None, Array]] = []
        for slot, names in self.node.inputs.items():
            many = isinstance(names, list)
            for i, n in enumerate(names if isinstance(names, list) else [names]):
                b = self.off.get(n) if n is not None else None
                if b is not None and b.any():
                    found.append((slot, i if many else None, b))
        return found

    def _local(self, e: Expected) -> Array:
        """What the node rounds itself."""
        if e.dtype.kind != "f":
            return np.zeros(np.shape(e.value))
        if self.acc is not None and e.error.pointwise and not e.error.exact:
            ctx = e.context()
            ctx.acc = BY_NAME[self.acc.get(e.dtype.name, ctx.acc.name)]
            return np.broadcast_to(np.asarray(e.error.bound(ctx), np.float64), np.shape(e.value))
        source = self._converts(e)
        if e.error.exact and (source is None or source.frac <= e.dtype.frac):
            return np.zeros(np.shape(e.value))
        return ulp(np.asarray(e.value if e.wide is None else e.wide, np.float64), e.dtype) / 2

    def _converts(self, e: Expected) -> DType | None:
        """The float type that an exact result was converted from."""
        ins = [of(v) for v in self.call.inputs.values() if isinstance(v, np.ndarray)]
        conversion = e.error.exact and len(ins) == 1 and ins[0].kind == e.dtype.kind == "f"
        return ins[0] if conversion and e.dtype is not ins[0] else None

    def _change(self, expected: Sequence[Expected], slot: str, part: int | None, b: Array) -> list[Array]:
        """Largest change of every result when one input moves by up to ``b``."""
        if self._converts(expected[0]):
            return [b]
        if all(e.error.fixed_ulps is not None for e in expected):
            return self._largest(expected, [self._at(slot, part, b), self._at(slot, part, -b)])
        if all(e.error.sums for e in expected):
            sizes = {k: _map(_absolute, v) for k, v in self.wide.items()}
            low = self._evaluate(sizes)
            return [_apart(h, w) for h, w in zip(self._evaluate(_shifted(sizes, slot, part, b)), low)]
        places = np.flatnonzero(b)
        if 2 * places.size + self.evaluations > MOST:
            raise UsageError(f"{slot}: {places.size} elements are too many to move one at a time")
        total = [np.zeros(np.shape(e.value)) for e in expected]
        for p in places:
            one = np.zeros(b.size)
            one[p] = b.flat[p]
            one = one.reshape(b.shape)
            moved = self._largest(expected, [self._at(slot, part, one), self._at(slot, part, -one)])
            total = [t + m for t, m in zip(total, moved)]
        return total

    def _of_attr(self, name: str, v: float, half: float) -> list[Array]:
        """Largest change when a float attribute was rounded; one that sets a shape, maybe to nothing, was not."""
        base = self._base()
        none = [np.zeros(np.shape(x)) for x in base]
        out = none
        for w in (v + half, v - half):
            try:
                moved = self._evaluate(self.wide, {**self.call.attrs, name: w})
            except (ArithmeticError, ValueError):
                return none
            if any(m.shape != x.shape for m, x in zip(moved, base)):
                return none
            out = [np.maximum(o, _apart(m, x)) for o, m, x in zip(out, moved, base)]
        return out

    def _at(self, slot: str, part: int | None, by: Array) -> list[Array]:
        return self._evaluate(_shifted(self.wide, slot, part, by))

    def _largest(self, expected: Sequence[Expected], moved: Sequence[list[Array]]) -> list[Array]:
        base = self._base()
        out = []
        for i, e in enumerate(expected):
            d = np.max([_apart(m[i], base[i]) for m in moved], axis=0)
            out.append(d if e.dtype.kind == "f" else np.where(d > 0, np.inf, 0.0))  # a decision that may fall otherwise
        return out

    def _base(self) -> list[Array]:
        if not hasattr(self, "_unmoved"):
            self._unmoved = self._evaluate(self.wide)
        return self._unmoved

    def _evaluate(self, inputs: dict[str, Any], attrs: dict[str, Any] | None = None) -> list[Array]:
        """The node's meaning on wide inputs."""
        self.evaluations += 1
        c = self.call
        again = Call(c.version, c.attrs if attrs is None else attrs, inputs, c.opset, None, None, c.n_outs, c.run)
        return [np.asarray(e.value if e.wide is None else e.wide).astype(np.float64) for e in c.version.evaluate(again)]

    def _moved(self, expected: Sequence[Expected], opaque: Sequence[str]) -> list[Value]:
        """States and the like: what was put in comes out, as far off as it was."""
        if any(not e.error.exact or e.wide is not None for e in expected):
            raise UsageError(f"{', '.join(opaque)}: no tensor, and the node does more than move values")
        came = [b for _, part, b in self._inexact() if part is None]
        out = []
        for e in expected:
            shape = np.shape(e.value)
            fitting = [b for b in came if b.shape == shape]
            if len(fitting) != len(came):
                raise UsageError("an input that may be off has another shape than the result")
            bound = np.max([*fitting, np.zeros(shape)], axis=0)
            out.append(Value(e.value, e.value, bound))
            for k in opaque:
                self.off[self.node.inputs[k]] = bound  # type: ignore[index]
        return out


def _apart(a: Array, b: Array) -> Array:
    """|a - b|: nothing between two equal infinities, and no bound where one of them is NaN or infinite alone."""
    with np.errstate(invalid="ignore"):
        d = np.where(a == b, 0.0, np.abs(a - b))
    return np.where(np.isnan(d), np.inf, d)


def _is_float(v: Any) -> bool:
    return isinstance(v, np.ndarray) and of(v).kind == "f"


def _is_tensor(v: Any) -> bool:
    return v is None or isinstance(v, np.ndarray) or (isinstance(v, list) and all(_is_tensor(x) for x in v))


def _bound(b: Any, v: Array) -> Array:
    return np.array(np.broadcast_to(np.asarray(b, np.float64), v.shape))


def _map(fn: Callable[[Any], Any], v: Any) -> Any:
    return [_map(fn, x) for x in v] if isinstance(v, list) else fn(v)


def _widened(v: Any) -> Any:
    return v.astype(np.float64) if _is_float(v) else v


def _absolute(v: Any) -> Any:
    return np.abs(v) if isinstance(v, np.ndarray) and v.dtype == np.float64 else v


def _shifted(inputs: dict[str, Any], slot: str, part: int | None, by: Array) -> dict[str, Any]:
    """``inputs`` with one of them moved."""
    v = inputs[slot]
    if part is None:
        return {**inputs, slot: v + by}
    v = copy.copy(v)
    v[part] = v[part] + by
    return {**inputs, slot: v}
