"""Gradient (ai.onnx.preview.training): the derivative of the graph around the node.

An instance carries that graph beside its attributes, under "@around"; the builder writes it into the model, and the
interpreter hands over the graph that it runs.  Operators with a rule here: ``RULES``; no runtime at hand has Gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.core.dtypes import DType, of
from harness.core.errors import RuleError, UsageError
from harness.core.instance import Arg, Graph, Node
from harness.declare import (
    Call,
    Checks,
    Context,
    Draw,
    Evaluation,
    Sampling,
    Spelling,
    T,
    bounded,
    gathered,
    other_shape,
)
from harness.generate import ends
from suites.onnx import op
from suites.onnx.builder import AROUND
from suites.semantics.gradient import Tape, Var

Array = np.ndarray
DOMAIN = "ai.onnx.preview.training"


def _reduce(t: Tape, node: Node, xs: list[Var], mean: bool) -> Var:
    x, axes = xs[0], node.attrs.get("axes")
    if len(xs) > 1:
        axes = [int(v) for v in xs[1].value]
    at = tuple(range(len(x.shape))) if not axes else tuple(a % len(x.shape) for a in axes)
    if not axes and node.attrs.get("noop_with_empty_axes"):
        return x
    y = t.total(x, at)
    if mean:
        y = t.mul(y, Var(1.0 / max(1, int(np.prod([x.shape[a] for a in at])))))
    keep = node.attrs.get("keepdims", 1)
    return y if keep else t.reshape(y, tuple(n for i, n in enumerate(x.shape) if i not in at))


def _matrices(xs: list[Var]) -> None:
    if any(len(x.shape) != 2 for x in xs[:2]):
        raise UsageError("Gradient: products of matrices only")


def _matmul(t: Tape, node: Node, xs: list[Var]) -> Var:
    _matrices(xs)
    return t.matmul(*xs)


def _gemm(t: Tape, node: Node, xs: list[Var]) -> Var:
    _matrices(xs)
    a, b = (t.transpose(x, (1, 0)) if node.attrs.get(n) else x for x, n in zip(xs, ("transA", "transB")))
    y = t.mul(t.matmul(a, b), Var(node.attrs.get("alpha", 1.0)))
    return y if len(xs) < 3 else t.add(y, t.mul(xs[2], Var(node.attrs.get("beta", 1.0))))


def _transpose(t: Tape, node: Node, xs: list[Var]) -> Var:
    return t.transpose(xs[0], node.attrs.get("perm") or range(len(xs[0].shape))[::-1])


RULES: dict[str, Callable[[Tape, Node, list[Var]], Var]] = {
    "Identity": lambda t, n, xs: xs[0],
    "Add": lambda t, n, xs: t.add(*xs),
    "Mul": lambda t, n, xs: t.mul(*xs),
    "Sub": lambda t, n, xs: t.add(xs[0], t.neg(xs[1])),
    "Div": lambda t, n, xs: t.mul(xs[0], t.reciprocal(xs[1])),
    "Neg": lambda t, n, xs: t.neg(xs[0]),
    "Exp": lambda t, n, xs: t.exp(xs[0]),
    "Log": lambda t, n, xs: t.log(xs[0]),
    "Sqrt": lambda t, n, xs: t.sqrt(xs[0]),
    "Tanh": lambda t, n, xs: t.tanh(xs[0]),
    "Sigmoid": lambda t, n, xs: t.sigmoid(xs[0]),
    "Softplus": lambda t, n, xs: t.softplus(xs[0]),
    "Cast": lambda t, n, xs: xs[0],
    "Size": lambda t, n, xs: Var(xs[0].value.size),
    "Relu": lambda t, n, xs: t.relu(xs[0]),
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Transpose": _transpose,
    "ReduceSum": lambda t, n, xs: _reduce(t, n, xs, False),
    "ReduceMean": lambda t, n, xs: _reduce(t, n, xs, True),
}


def _names(node: Node) -> list[str]:
    """Operands in the order of the schema's slots, which is how a node keeps them."""
    return [n for v in node.inputs.values() for n in (v if isinstance(v, list) else [v]) if n]


class _Reading:
    """Values of the tensors of a graph, found from the one that is asked for; given: those of xs and zs."""

    def __init__(self, tape: Tape, around: Graph, given: dict[str, Var], outer: _Reading | None = None) -> None:
        self.tape, self.around, self.given = tape, around, given
        self.maker = {o: n for n in around.nodes for o in n.outputs if o}

    def __call__(self, name: str) -> Var:
        v = self.given.get(name)
        if v is not None:
            return v
        if name in self.around.consts:
            v = Var(self.around.consts[name])
        elif (node := self.maker.get(name)) is None:
            raise RuleError("independent-set", f"{name} is neither in xs nor in zs, and no node makes it")
        elif node.op == "Constant":
            v = Var(node.attrs["value"])
        elif node.op == "Gradient":
            parts = gradient(self.tape, self.around, node.attrs, [self(n) for n in _names(node)])
            self.given |= {o: part for o, part in zip(node.outputs, parts) if o}
            return self.given[name]
        elif node.op not in RULES:
            raise UsageError(f"Gradient: no derivative here for {node.op}")
        else:
            v = RULES[node.op](self.tape, node, [self(n) for n in _names(node)])
        self.given[name] = v
        return v


def gradient(tape: Tape, around: Graph, attrs: dict[str, Any], values: list[Var]) -> list[Var]:
    """Of "y" with respect to each of "xs".  Raises RuleError "value-per-name", "independent-set"; UsageError for an
    operator without a rule."""
    xs, zs = list(attrs["xs"]), list(attrs.get("zs") or ())
    if len(values) != len(xs) + len(zs):
        raise RuleError("value-per-name", f"{len(values)} inputs for {len(xs)} xs and {len(zs)} zs")
    # leaves of their own: what the values depend on is differentiated by an outer gradient, not by this one
    leaves = [Var(v.value, [(v, lambda g: g)]) for v in values]
    read = _Reading(tape, around, dict(zip([*xs, *zs], leaves)))
    return tape.gradient(read(attrs["y"]), leaves[: len(xs)])


def _around(c: Call) -> Graph:
    if AROUND not in c.attrs:
        raise UsageError("Gradient: the graph around the node is not told")
    return c.attrs[AROUND]


def _evaluate(c: Call, u: float = 0.0, seed: int = 0) -> list[Array]:
    values = [Var(v) for v in c.inputs["Inputs"]]
    with np.errstate(all="ignore"):
        return [g.value for g in gradient(Tape(u, seed), _around(c), c.attrs, values)][: c.n_outs]


def _bound(output: int) -> Any:
    def bound(ctx: Context) -> Array:
        """eight times what relative errors of random sign in every value, both ways, do to the result"""
        u = 4 * max(ctx.acc_u, ctx.u)  # a value between two nodes is rounded to its type
        moved = [_evaluate(ctx.call, u, seed)[output] for seed in range(6)]
        return 8 * np.max([np.abs(m - ctx.wide) for m in moved], axis=0) + 2 * ctx.ulp

    return bounded(bound, "8 times first-order propagation of 4 u in every value, plus 2 ulp")


def _open(c: Call) -> str | None:
    """Of several elements: the sum of their derivatives, as the reference has it, or the derivative of each."""
    xs, zs = c.attrs["xs"], c.attrs.get("zs") or ()
    tape, leaves = Tape(), [Var(v) for v in c.inputs["Inputs"]]
    with np.errstate(all="ignore"):
        y = _Reading(tape, _around(c), dict(zip([*xs, *zs], leaves)))(c.attrs["y"])
        if y.value.size == 1:
            return None
        rows = []
        for k in range(y.value.size):
            one = np.zeros(y.value.size)
            one[k] = 1
            rows.append([g.value for g in tape.gradient(tape.mul(y, Var(one.reshape(y.shape))), leaves[: len(xs)])])
    why = "Gradient of a tensor of several elements: the text tells neither their weights nor a shape"
    found = []
    for i in range(c.n_outs):
        each = np.stack([r[i] for r in rows])
        x = leaves[i].shape
        first, last = each.reshape(*y.shape, *x), np.moveaxis(each, 0, -1).reshape(*x, *y.shape)
        within = 2.0**-8 * float(np.abs(each).max(initial=0.0))
        found.append(other_shape(why, i, first, last, within=within))
    return gathered(*found)


# -- drawing

_UNARY = ("Neg", "Exp", "Tanh", "Sigmoid", "Softplus", "Relu", "Identity")
_SLOTS = {
    "Identity": ("input",),
    "Neg": ("X",),
    "Relu": ("X",),
    "Sigmoid": ("X",),
    "Softplus": ("X",),
    "Size": ("data",),
}


def _node(op_type: str, names: list[str], out: str, attrs: dict[str, Any] | None = None) -> Node:
    slots = _SLOTS.get(op_type, ("input",) if len(names) == 1 else ("A", "B"))
    return Node(op_type, dict(zip(slots, names)), [out], attrs or {})


def _factor(have: DType, to: DType, by_elements: bool, now: str) -> list[Node]:
    """A factor of any type, which is not differentiated: its elements, or their number."""
    count = [] if by_elements else [_node("Size", ["z"], "size_of_z")]
    cast = Node("Cast", {"input": "z" if by_elements else "size_of_z"}, ["factor"], {"to": to})
    return [*count, cast, _node("Mul", [now, "factor"], "times_z")]


def _draw(d: Draw) -> dict[str, Any]:
    """Two matrices through a few nodes to a scalar; now and then times a factor of another type, the gradient's own sum
    of squares besides, or a value in between as an independent one.  "All outputs are optional": the last ones are left
    out now and then, and those of the inner gradient that nothing reads are skipped."""
    dtype: DType = d.pick(d.version.schema.dtypes("T2"))
    n, k = d.int(1, 3), d.int(1, 3)
    shapes: dict[str, tuple[int, ...]] = {"a": (n, k), "b": (n, k), "w": (k, d.int(1, 3))}
    whole = d.chance(3)  # of any rank, and then without a product
    if whole:
        shapes |= dict.fromkeys("ab", d.shape(0, 8))
    nodes: list[Node] = []
    consts: dict[str, Any] = {}
    used, now = ["a"], "a"
    for i in range(d.int(1, 4)):
        how, out = d.int(0, 4), f"t{i}"
        if how <= 1:
            nodes.append(_node(d.pick(_UNARY), [now], out))
        elif how == 2 and "w" not in used and not whole:
            nodes.append(_node("MatMul", [now, "w"], out))
            used.append("w")
        elif how == 3 and "w" not in used:
            nodes.append(_node(d.pick(("Add", "Sub", "Mul")), [now, "b"], out))
            used += [] if "b" in used else ["b"]
        else:
            consts[f"c{i}"] = np.array([d.pick((1.5, -2.0, 0.75))], dtype.np)
            nodes.append(_node(d.pick(("Add", "Mul", "Div")), [now, f"c{i}"], out))
        now = out
    types = dict.fromkeys(used, dtype)
    if d.chance(4):
        types["z"] = d.pick(d.version.schema.dtypes("T1"))
        shapes["z"] = shapes["a"] if "w" not in used and types["z"].kind in "fiub" else d.shape(0, 3)
        nodes += _factor(types["z"], dtype, shapes["z"] == shapes["a"] and "w" not in used, now)
        now = "times_z"
    nodes.append(_node("ReduceSum", [now], "y", {"keepdims": 0}))
    nodes[-1].inputs = {"data": now}
    zs = [x for x in used[1:] if d.chance(3)]
    xs = [x for x in used if x not in zs]
    zs += [x for x in types if x not in used]
    y = "y"
    if d.chance(3):
        grads = [f"g{i}" for i in range(len(xs))]
        named = {"xs": xs, "y": "y", **({"zs": zs} if zs else {})}
        nodes.append(Node("Gradient", {"Inputs": [*xs, *zs]}, grads, named))
        read = d.pick(grads)
        if d.bool():
            nodes[-1].outputs = [g if g == read else "" for g in grads]
        nodes.append(_node("Mul", [read, read], "square"))
        nodes.append(Node("ReduceSum", {"data": "square"}, ["y2"], {"keepdims": 0}))
        y = "y2"
    elif d.chance(4):
        y = now
    inputs = [(x, Arg(types[x], shapes[x])) for x in (*xs, *zs)]
    values = None
    if "z" in types and types["z"].kind == "f" and 0 < np.prod(shapes["z"]) <= ends.MOST and d.bool():
        values = ends.elements(d, Arg(types["z"], shapes["z"]))
    return {
        "xs": xs,
        "y": y,
        **({"zs": zs} if zs else {}),
        AROUND: Graph(inputs, nodes, [y], consts),
        "Inputs": [
            T(shapes[x], "", types[x], values=values) if x == "z" else T(shapes[x], "unit", types[x])
            for x in (*xs, *zs)
        ],
        "@outs": len(xs) if d.bool() else d.int(1, len(xs)),
    }


op(
    "Gradient",
    Evaluation(_evaluate, tuple(_bound(i) for i in range(3)), "ONNX Gradient-1"),
    Spelling(out_dtype=lambda c, i: of(c.inputs["Inputs"][i])),
    Sampling(_draw, why="the operators around it are those with a rule"),
    Checks(ambiguous=_open),
    domain=DOMAIN,
)
