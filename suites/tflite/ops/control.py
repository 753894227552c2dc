"""Control flow: branches and loops over further subgraphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BOOL, F32, I32, DType
from harness.core.instance import Arg, Graph, Node
from harness.spec import Call, Draw, T, rounded
from suites.tflite import op

_OPS = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")


def carried(k: int) -> str:
    """Name of a loop's k-th value."""
    return f"v{k}"


def _block(d: Draw, shapes: list[tuple[int, ...]], dt: DType, results: int, depth: int = 0) -> Graph:
    """A few elementwise nodes over the inputs; every result has the shape of the input of its number."""
    g = Graph([(f"in{k}", Arg(dt, s)) for k, s in enumerate(shapes)])
    tensors: dict[str, Any] = {f"in{k}": {"dtype": dt, "shape": s} for k, s in enumerate(shapes)}
    outs = []
    for k in range(results):
        now = f"in{k}"
        for step in range(d.int(1, 3)):
            const = f"c{k}_{step}"
            g.consts[const] = np.asarray(d.int(-3, 3), dt.np)
            name = d.pick(_OPS)
            other = const if d.bool() else f"in{k}"
            out = f"r{k}_{step}"
            slots = ("lhs", "rhs")
            g.nodes.append(Node(name, dict(zip(slots, (now, other))), [out], version=1))
            tensors[out] = {"dtype": dt, "shape": shapes[k]}
            now = out
        outs.append(now)
    g.outputs = outs
    g.meta = {"opset": 1, "tensors": tensors}
    return g


def _draw_if(d: Draw) -> dict[str, Any]:
    dt = d.pick((F32, I32))
    shapes = [d.shape(0, 3, 1) for _ in range(d.int(1, 3))]
    results = d.int(1, len(shapes))
    return {
        "cond": T((), "bool", BOOL), "input": [T(s, "small", dt) for s in shapes],
        "then_subgraph_index": _block(d, shapes, dt, results), "else_subgraph_index": _block(d, shapes, dt, results),
        "@outputs": [{"dtype": dt.name, "shape": list(shapes[k])} for k in range(results)], "@outs": results,
    }  # fmt: skip


def _if(call: Call) -> list[Any]:
    which = "then_subgraph_index" if bool(call.inputs["cond"].ravel()[0]) else "else_subgraph_index"
    return call.run(call.attrs[which], list(call.inputs["input"]))


_BLOCKS = rounded(64)  # a few roundings of small integers: in fact exact, since nothing here leaves 2**24
op("IF", None, evaluate=_if, draw=_draw_if, error=_BLOCKS, source="TFLite IF: the branch's subgraph over the operands")


def _draw_while(d: Draw) -> dict[str, Any]:
    """A counter and carried tensors; the body adds one to the counter, so that the loop ends."""
    dt = d.pick((F32, I32))
    shapes: list[tuple[int, ...]] = [d.shape(0, 3, 1) for _ in range(d.int(1, 2))]
    limit = d.int(0, 4)
    args = [Arg(I32, ())] + [Arg(dt, s) for s in shapes]
    types = {carried(k): {"dtype": a.dtype, "shape": a.shape} for k, a in enumerate(args)}
    cond = Graph(
        [(carried(k), a) for k, a in enumerate(args)],
        [Node("LESS", {"lhs": "v0", "rhs": "limit"}, ["go"], version=1)],
        ["go"],
        {"limit": np.asarray(limit, np.int32)},
        {"opset": 1, "tensors": {**types, "go": {"dtype": BOOL, "shape": ()}}},
    )
    body = Graph(
        [(carried(k), a) for k, a in enumerate(args)],
        [Node("ADD", {"lhs": "v0", "rhs": "one"}, ["n0"], version=1)],
        ["n0"],
        {"one": np.asarray(1, np.int32)},
        {},
    )
    types["n0"] = {"dtype": I32, "shape": ()}
    for k, s in enumerate(shapes, 1):
        body.consts[f"c{k}"] = np.asarray(d.int(-2, 2), dt.np)
        body.nodes.append(Node(d.pick(_OPS), {"lhs": carried(k), "rhs": f"c{k}"}, [f"n{k}"], version=1))
        types[f"n{k}"] = {"dtype": dt, "shape": s}
        body.outputs.append(f"n{k}")
    body.meta = {"opset": 1, "tensors": types}
    start = d.int(0, 5)
    return {
        "input": [T((), dtype=I32, values=[start]), *(T(s, "small", dt) for s in shapes)],
        "cond_subgraph_index": cond, "body_subgraph_index": body, "@outs": len(args),
        "@outputs": [{"dtype": a.dtype.name, "shape": list(a.shape)} for a in args],
    }  # fmt: skip


def _while(call: Call) -> list[Any]:
    values = list(call.inputs["input"])
    for _ in range(10_000):
        if not bool(np.asarray(call.run(call.attrs["cond_subgraph_index"], values)[0]).ravel()[0]):
            return values
        values = call.run(call.attrs["body_subgraph_index"], values)
    raise ValueError("WHILE: no end after 10000 turns")


op(
    "WHILE",
    None,
    evaluate=_while,
    draw=_draw_while,
    error=_BLOCKS,
    source="TFLite WHILE: while cond(values): values = body(values)",
)
