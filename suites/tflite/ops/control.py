"""Control flow: branches and loops over further subgraphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BOOL, F32, I32, I64, DType
from harness.core.instance import Arg, Graph, Node
from harness.declare import Call, Draw, Evaluation, Sampling, T, rounded
from suites.tflite import op

_OPS = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")


def carried(k: int) -> str:
    """Name of a loop's k-th value."""
    return f"v{k}"


def kinds(d: Draw, n: int) -> list[DType]:
    """Types of n values: one, or each its own."""
    one = d.pick((F32, I32))
    return [one] * n if d.bool() else [d.pick((F32, I32, I64, BOOL)) for _ in range(n)]


def _step(d: Draw, g: Graph, now: str, out: str, dt: DType, like: list[str]) -> str:
    """One node from ``now`` to ``out``; the other operand is a constant or one of ``like``."""
    if dt is BOOL:
        other = d.pick(like)
        name = d.pick(("LOGICAL_NOT", "LOGICAL_AND", "LOGICAL_OR"))
        given: dict[str, str | list[str] | None] = {"lhs": now} if name == "LOGICAL_NOT" else {"lhs": now, "rhs": other}
        g.nodes.append(Node(name, given, [out], version=1))
        return out
    const = f"c_{out}"
    g.consts[const] = np.asarray(d.int(-3, 3), dt.np)
    other = const if d.bool() else d.pick(like)
    g.nodes.append(Node(d.pick(_OPS), {"lhs": now, "rhs": other}, [out], version=1))
    return out


def block(d: Draw, args: list[Arg], results: int, depth: int = 0) -> Graph:
    """A few elementwise nodes over the inputs; every result has the shape of the input of its number, and now and then
    is that input.  depth: of the blocks around."""
    g = Graph([(f"in{k}", a) for k, a in enumerate(args)])
    tensors: dict[str, Any] = {f"in{k}": {"dtype": a.dtype, "shape": a.shape} for k, a in enumerate(args)}
    for k in range(results):
        now, a = f"in{k}", args[k]
        for step in range(0 if d.chance(8) else d.int(1, 3)):
            now = _step(d, g, now, f"r{k}_{step}", a.dtype, [f"in{k}"])
            tensors[now] = {"dtype": a.dtype, "shape": a.shape}
        g.outputs.append(now)
    tests = [f"in{k}" for k, a in enumerate(args) if a.dtype is BOOL and a.shape == ()]
    if tests and not depth and d.bool():  # a choice within the choice
        inner = [block(d, args[:1], 1, depth + 1) for _ in range(2)]
        g.nodes.append(
            Node(
                "IF",
                {"cond": tests[0], "input": [g.outputs[0]]},
                ["chosen"],
                {"then_subgraph_index": inner[0], "else_subgraph_index": inner[1]},
                version=1,
            )
        )
        tensors["chosen"] = tensors[g.outputs[0]]
        g.outputs[0] = "chosen"
    g.meta = {"opset": 1, "tensors": tensors}
    return g


def declared(args: list[Arg]) -> list[dict[str, Any]]:
    return [{"dtype": a.dtype.name, "shape": list(a.shape)} for a in args]


def given(args: list[Arg]) -> list[T]:
    return [T(a.shape, "bool" if a.dtype is BOOL else "small", a.dtype) for a in args]


def _draw_if(d: Draw) -> dict[str, Any]:
    args = [Arg(t, d.shape(0, 3, 0 if d.chance(8) else 1)) for t in kinds(d, d.int(1, 3))]
    if d.chance(3):
        args.append(Arg(BOOL, ()))
    results = d.int(1, len(args))
    return {
        "cond": T((1,) * d.int(0, 8) if d.chance(4) else (), "bool", BOOL),
        "input": given(args),
        "then_subgraph_index": block(d, args, results),
        "else_subgraph_index": block(d, args, results),
        "@outputs": declared(args[:results]),
        "@outs": results,
    }


def _if(call: Call) -> list[Any]:
    which = "then_subgraph_index" if bool(call.inputs["cond"].ravel()[0]) else "else_subgraph_index"
    return call.run(call.attrs[which], list(call.inputs["input"]))


_BLOCKS = rounded(64)  # a few roundings of small integers: in fact exact, since nothing here leaves 2**24
op("IF", Evaluation(_if, _BLOCKS, "TFLite IF: the branch's subgraph over the operands"), Sampling(_draw_if))


def _draw_while(d: Draw) -> dict[str, Any]:
    """A counter and carried tensors; the body adds one to the counter, so that the loop ends.  Of the others some take
    a step, some stay as they are, and two that are alike may change places."""
    shapes: list[tuple[int, ...]] = [
        d.shape(0, 3, 0 if d.chance(8) else 1) for _ in range(0 if d.chance(12) else d.int(1, 3))
    ]
    shapes = shapes[:1] * len(shapes) if d.chance(3) else shapes
    args = [Arg(I32, ()), *(Arg(t, s) for t, s in zip(kinds(d, len(shapes)), shapes))]
    inputs = [(carried(k), a) for k, a in enumerate(args)]
    types = {carried(k): {"dtype": a.dtype, "shape": a.shape} for k, a in enumerate(args)}
    cond = Graph(
        inputs,
        [Node("LESS", {"lhs": "v0", "rhs": "limit"}, ["go"], version=1)],
        ["go"],
        {"limit": np.asarray(d.int(0, 4), np.int32)},
        {"opset": 1, "tensors": {**types, "go": {"dtype": BOOL, "shape": ()}}},
    )
    body = Graph(
        inputs, [Node("ADD", {"lhs": "v0", "rhs": "one"}, ["n0"], version=1)], ["n0"], {"one": np.asarray(1, np.int32)}
    )
    types["n0"] = {"dtype": I32, "shape": ()}
    for k, a in enumerate(args[1:], 1):
        how = d.int(0, 7)
        alike = [carried(j) for j, b in enumerate(args) if 0 < j != k and (b.dtype, b.shape) == (a.dtype, a.shape)]
        if how == 0:
            body.outputs.append(carried(k))
        elif how == 1 and alike:
            body.outputs.append(d.pick(alike))
        elif a.dtype is BOOL:
            body.outputs.append(_step(d, body, carried(k), f"n{k}", BOOL, [carried(k), *alike]))
        else:
            body.consts[f"c{k}"] = np.asarray(d.int(-2, 2), a.dtype.np)
            body.nodes.append(Node(d.pick(_OPS), {"lhs": carried(k), "rhs": f"c{k}"}, [f"n{k}"], version=1))
            body.outputs.append(f"n{k}")
        types[f"n{k}"] = types[carried(k)]
    body.meta = {"opset": 1, "tensors": {n: t for n, t in types.items() if n[0] == "v" or n in body.outputs}}
    return {
        "input": [T((), dtype=I32, values=[d.int(0, 5)]), *given(args[1:])],
        "cond_subgraph_index": cond,
        "body_subgraph_index": body,
        "@outs": len(args),
        "@outputs": declared(args),
    }


def _while(call: Call) -> list[Any]:
    values = list(call.inputs["input"])
    for _ in range(10_000):
        if not bool(np.asarray(call.run(call.attrs["cond_subgraph_index"], values)[0]).ravel()[0]):
            return values
        values = call.run(call.attrs["body_subgraph_index"], values)
    raise ValueError("WHILE: no end after 10000 turns")


op(
    "WHILE",
    Evaluation(_while, _BLOCKS, "TFLite WHILE: while cond(values): values = body(values)"),
    Sampling(_draw_while),
)
