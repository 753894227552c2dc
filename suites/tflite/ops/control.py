"""Control flow: branches and loops over further subgraphs, and the stateful operators, which need company.

An instance of a stateful operator carries a small program (``@program``) that the builder writes in place of one node:
a variable is assigned before it is read, a table is filled before it is asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BOOL, BY_NAME, F32, I32, I64, DType, of
from harness.core.errors import Unsupported
from harness.core.instance import Arg, Graph, Node
from harness.spec import Call, Draw, T, exact, rounded
from suites.tflite import op

# the handle and the contents belong to the program around the node, so an instance has no argument to drop
_HANDLES = dict.fromkeys(f"required-input:{n}" for n in ("resource_id", "hash_table", "keys", "values"))


def _program_of(call: Call) -> Graph:
    """The program of an instance; a parsed model has none, since its resources live outside the graph."""
    if "@program" not in call.attrs:
        raise Unsupported(f"{call.version.op}: variables and hash tables are not interpreted in whole models")
    return call.attrs["@program"]


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

# -- variables


def _dt(name: str) -> DType:
    return BY_NAME[name]


def _program(nodes: list[Node], out: str, dt: DType, shape: tuple[int, ...], consts: dict[str, Any] | None = None,
             inputs: list[tuple[str, Arg]] | None = None) -> Graph:  # fmt: skip
    g = Graph(inputs or [], nodes, [out], consts or {})
    g.meta = {"opset": 1, "tensors": {out: {"dtype": dt, "shape": shape}, "handle": {"dtype": "resource", "shape": ()}}}
    return g


def _variable(value: str, name: str) -> list[Node]:
    """Assigned, then read."""
    return [
        Node("VAR_HANDLE", {}, ["handle"], {"container": "", "shared_name": name}, 1),
        Node("ASSIGN_VARIABLE", {"resource_id": "handle", "value": value}, [], version=1),
        Node("READ_VARIABLE", {"resource_id": "handle"}, ["out"], version=1),
    ]


def _draw_assign(d: Draw) -> dict[str, Any]:
    dt, shape = d.types["T"], d.shape(0, 4, 1)
    nodes = _variable("value", f"v{d.int(0, 1 << 30)}")
    return {
        "value": T(shape, dtype=dt),
        "@program": _program(nodes, "out", dt, shape, None, [("value", Arg(dt, shape))]),
        "@outputs": [{"dtype": dt.name}],
        "@outs": 1,
    }


_VARIABLE = {"T": ("f32", "i32", "i64", "i8", "bool", "f64")}
op(
    "ASSIGN_VARIABLE",
    None,
    breaks=_HANDLES,
    evaluate=lambda call: [call.inputs["value"]],
    draw=_draw_assign,
    error=exact(),
    types=_VARIABLE,
    why="the other types are read back by the same copy",
    source="TFLite ASSIGN_VARIABLE: READ_VARIABLE gives the value",
)


def _draw_read(d: Draw) -> dict[str, Any]:
    dt, shape = d.pick((F32, I32)), d.shape(0, 3, 1)
    value = np.array([d.int(-9, 9) for _ in range(int(np.prod(shape)))], dt.np).reshape(shape)
    nodes = _variable("value", f"v{d.int(0, 1 << 30)}")
    return {
        "@program": _program(nodes, "out", dt, shape, {"value": value}),
        "@outputs": [{"dtype": dt.name}],
        "@outs": 1,
    }


def _stored(call: Call) -> list[Any]:
    return [_program_of(call).consts["value"]]


for _name in ("READ_VARIABLE", "VAR_HANDLE"):
    op(_name, None, evaluate=_stored, draw=_draw_read, error=exact(), breaks=_HANDLES,
       source=f"TFLite {_name}: the value last assigned")

# -- hash tables: filled once, then immutable; keys and values are int64 and strings or the other way round


def _entries(d: Draw) -> tuple[Any, Any, str, str]:
    n = d.int(1, 5)
    numbers = np.array([d.int(-5, 5) * 10 + k for k in range(n)], np.int64)
    words = np.empty(n, object)
    words[:] = [f"w{k}{'x' * d.int(0, 3)}" for k in range(n)]
    return (numbers, words, "i64", "str") if d.bool() else (words, numbers, "str", "i64")


def _table(table: int, keys: str, values: str) -> list[Node]:
    return [
        Node("HASHTABLE", {}, ["handle"], {"table_id": table, "key_dtype": keys, "value_dtype": values}, 1),
        Node("HASHTABLE_IMPORT", {"hash_table": "handle", "keys": "k", "values": "v"}, [], version=1),
    ]


def _draw_find(d: Draw) -> dict[str, Any]:
    keys, values, kt, vt = _entries(d)
    n = d.int(1, 4)
    queries = [keys[d.int(0, len(keys) - 1)] if d.int(0, 3) else (999 if kt == "i64" else "none") for _ in range(n)]
    queries = [int(q) if kt == "i64" else q for q in queries]
    k, v = _dt(kt), _dt(vt)
    default = -1 if vt == "i64" else "?"
    nodes = [
        *_table(d.int(0, 1 << 20), kt, vt),
        Node(
            "HASHTABLE_FIND",
            {"hash_table": "handle", "keys": "keys", "default_value": "default_value"},
            ["out"],
            version=1,
        ),
    ]
    g = _program(
        nodes, "out", v, (n,), {"k": keys, "v": values}, [("keys", Arg(k, (n,))), ("default_value", Arg(v, (1,)))]
    )
    return {
        "keys": T((n,), dtype=k, values=queries),
        "default_value": T((1,), dtype=v, values=[default]),
        "@program": g,
        "@outputs": [{"dtype": vt}],
        "@outs": 1,
    }


def _find(call: Call) -> list[Any]:
    g = _program_of(call)
    table = dict(zip(g.consts["k"].tolist(), g.consts["v"].tolist()))
    default = call.inputs["default_value"].ravel()[0]
    found = [table.get(q, default) for q in call.inputs["keys"].tolist()]
    out = np.empty(len(found), g.consts["v"].dtype)
    out[:] = found
    return [out]


op("HASHTABLE_FIND", None, evaluate=_find, draw=_draw_find, error=exact(), breaks=_HANDLES,
   out_dtype=lambda call, i: _dt_of(call),
   source="TFLite HASHTABLE_FIND: the value of each key, or the default")  # fmt: skip


def _dt_of(call: Call) -> DType:
    return of(_program_of(call).consts["v"])


def _draw_size(d: Draw) -> dict[str, Any]:
    keys, values, kt, vt = _entries(d)
    nodes = [*_table(d.int(0, 1 << 20), kt, vt), Node("HASHTABLE_SIZE", {"hash_table": "handle"}, ["out"], version=1)]
    return {
        "@program": _program(nodes, "out", I64, (1,), {"k": keys, "v": values}),
        "@outputs": [{"dtype": "i64"}],
        "@outs": 1,
    }


def _size(call: Call) -> list[Any]:
    return [np.array([len(set(_program_of(call).consts["k"].tolist()))], np.int64)]


for _name in ("HASHTABLE", "HASHTABLE_IMPORT", "HASHTABLE_SIZE"):
    op(_name, None, evaluate=_size, draw=_draw_size, error=exact(), breaks=_HANDLES, out_dtype=lambda call, i: I64,
       source=f"TFLite {_name}: the number of elements in the table")  # fmt: skip
