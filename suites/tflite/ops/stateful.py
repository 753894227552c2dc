"""Variables, hash tables and initialisation: operators that need neighbours.

An instance carries a small program (``@program``) that the builder writes in place of one node: a variable is assigned
before it is read, a table is filled before it is asked.  In a whole model the same operators work on the session's
resources; an instance's program is run that way, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, F32, I32, I64, DType
from harness.core.errors import Unsupported
from harness.core.instance import Arg, Graph, Node
from harness.declare import Call, Checks, Draw, Evaluation, Group, Sampling, T, exact
from suites.tflite import op
from suites.tflite.quantisation import draw_quant
from suites.tflite.resources import Store, Table, Variable, current, using

# the handle and the contents belong to the program around the node, so an instance has no argument to drop
_HANDLES = dict.fromkeys(f"required-input:{n}" for n in ("resource_id", "hash_table", "keys", "values"))


def _handle(call: Call, slot: str, kind: type) -> Any:
    v = call.inputs.get(slot)
    if not isinstance(v, kind):
        raise Unsupported(f"{call.version.op}: {slot} is no resource of this model")
    return v


def stateful(name: str, draw: Any, node: Any, source: str, *groups: Group, domain: str = "") -> None:
    """An entry whose instance is its program, run with resources of its own; ``node(call)`` is the operator itself, on
    the session's resources."""

    def evaluate(call: Call) -> list[Any]:
        program = call.attrs.get("@program")
        if program is None:
            return node(call)
        assert call.run is not None
        with using(Store()):
            return call.run(program, {n: call.inputs[n] for n, _ in program.inputs})

    op(name, Evaluation(evaluate, exact(), source), Sampling(draw), Checks(breaks=_HANDLES), *groups, domain=domain)


def _program(
    nodes: list[Node],
    out: str,
    dt: DType,
    shape: tuple[int, ...],
    consts: dict[str, Any] | None = None,
    inputs: list[tuple[str, Arg]] | None = None,
    quant: Any = None,
) -> Graph:
    """A graph with resources under the names "handle" and "handle2"; values named like constants and inputs."""
    g = Graph(inputs or [], nodes, [out], consts or {})
    handle = {"dtype": "resource", "shape": ()}
    tensors: dict[str, Any] = {out: {"dtype": dt, "shape": shape}, "handle": handle, "handle2": handle}
    if quant:
        tensors = {k: {**t, "quant": quant} if k == out else t for k, t in tensors.items()}
        tensors |= {name: {"dtype": dt, "shape": shape, "quant": quant} for name in g.consts}
    g.meta = {"opset": 1, "tensors": tensors}
    return g


def _declares(dt: DType, quant: Any = None) -> dict[str, Any]:
    return {"@outputs": [{"dtype": dt.name, **({"quant": quant} if quant else {})}], "@outs": 1}


# -- variables


def _var(name: str, out: str = "handle") -> Node:
    return Node("VAR_HANDLE", {}, [out], {"container": "", "shared_name": name}, 1)


def _assign(value: str, handle: str = "handle") -> Node:
    return Node("ASSIGN_VARIABLE", {"resource_id": handle, "value": value}, [], version=1)


def _read(out: str = "out", handle: str = "handle") -> Node:
    return Node("READ_VARIABLE", {"resource_id": handle}, [out], version=1)


def _name(d: Draw) -> str:
    return f"v{d.int(0, 1 << 30)}"


def _quant(d: Draw, dt: DType) -> Any:
    return draw_quant(d, dt) if d.version.schema.domain == "quantised" else None


def _draw_assign(d: Draw) -> dict[str, Any]:
    dt, shape = d.types["T"], d.shape(0, 4, 1) if d.int(0, 2) else d.part(0, 8, 0)
    if shape and d.chance(16):
        at = d.int(0, len(shape) - 1)
        shape = (*shape[:at], 0, *shape[at + 1 :])
    q = _quant(d, dt)
    nodes = [_var(_name(d)), _assign("value"), _read()]
    g = _program(nodes, "out", dt, shape, None, [("value", Arg(dt, shape, quant=q))], q)
    return {"value": T(shape, dtype=dt, quant=q), "@program": g, **_declares(dt, q)}


def _draw_read(d: Draw) -> dict[str, Any]:
    """The last of several assignments, through one handle or two of the same name, another variable in between."""
    q, dt = None, d.pick((F32, I32))
    if d.version.schema.domain == "quantised":
        dt = d.pick(d.version.schema.dtypes("T"))
        q = draw_quant(d, dt)
    shape = d.shape(0, 3, 1)
    low = -9 if dt.kind != "u" else 0

    def value() -> np.ndarray:
        return np.array([d.int(low, 9) for _ in range(int(np.prod(shape)))], dt.np).reshape(shape)

    name, consts = _name(d), {"value": value()}
    nodes = [_var(name), _assign("value")]
    if d.bool():
        consts["later"] = value()
        nodes.append(_var(name if d.bool() else name + "x", "handle2"))
        nodes.append(_assign("later", "handle2"))
    return {"@program": _program([*nodes, _read()], "out", dt, shape, consts, None, q), **_declares(dt, q)}


def _do_assign(call: Call) -> list[Any]:
    _handle(call, "resource_id", Variable).value = call.inputs["value"]
    return []


_STORED = ("f32", "i32", "i64", "i8", "u8", "bool", "f64", "c64", "c128", "i16")
for _domain in ("", "quantised"):
    stateful(
        "ASSIGN_VARIABLE",
        _draw_assign,
        _do_assign,
        "TFLite ASSIGN_VARIABLE: READ_VARIABLE gives the value",
        Sampling(types={"T": _STORED}),
        domain=_domain,
    )
    stateful(
        "READ_VARIABLE",
        _draw_read,
        lambda call: [_handle(call, "resource_id", Variable).read()],
        "TFLite READ_VARIABLE: the value last assigned",
        domain=_domain,
    )


def _var_handle(call: Call) -> list[Any]:
    return [current().variable(call.attr("container") or "", call.attr("shared_name") or "")]


stateful("VAR_HANDLE", _draw_read, _var_handle, "TFLite VAR_HANDLE: handles of one name are the same variable")

# -- hash tables: filled once, then immutable; keys and values are int64 and strings or the other way round


_FAR = (0, -1, 2**40, 2**63 - 1, -(2**63))


def _several(d: Draw) -> tuple[int, ...]:
    """How keys lie: a few in a row as a rule, else none or many, or along any axes."""
    how = d.int(0, 7)
    if how == 0:
        return d.part(0, 8)
    if how == 1:
        n = d.pick((0, 16, 130, 260, 260, 2100))
        return (*(1,) * d.int(0, 3), n, *(1,) * d.int(0, 3))
    return (d.int(1, 5),)


def _entries(d: Draw, several: bool = False) -> tuple[Any, Any, str, str]:
    """Keys and values.  several: of any number and shape, a pair among them twice."""
    shape = _several(d) if several else (d.int(1, 5),)
    n = int(np.prod(shape, dtype=int))
    numbers = np.array([d.int(-5, 5) * 10 ** len(str(n)) + k for k in range(n)], np.int64)
    words = np.empty(n, object)
    words[:] = [f"w{k}{'x' * d.int(0, 3)}" for k in range(n)]
    if n and d.chance(3):
        at, far = d.int(0, n - 1), d.pick(_FAR)
        numbers[at] = far if far not in numbers else numbers[at]
        words[at] = d.pick(("", words[at]))
        if several and n > 1:
            numbers[at - 1], words[at - 1] = numbers[at], words[at]
    keyed: Any = numbers.reshape(shape)
    named: Any = words.reshape(shape)
    return (keyed, named, "i64", "str") if d.bool() else (named, keyed, "str", "i64")


def _table(table: int, keys: str, values: str) -> list[Node]:
    return [
        Node("HASHTABLE", {}, ["handle"], {"table_id": table, "key_dtype": keys, "value_dtype": values}, 1),
        Node("HASHTABLE_IMPORT", {"hash_table": "handle", "keys": "k", "values": "v"}, [], version=1),
    ]


def _find_node() -> Node:
    operands: dict[str, Any] = {"hash_table": "handle", "keys": "keys", "default_value": "default_value"}
    return Node("HASHTABLE_FIND", operands, ["out"], version=1)


def _queries(d: Draw, keys: Any, kt: str, n: int | None = None) -> list[Any]:
    """A known key three times in four, else one that no table has."""
    return [
        (int(k) if kt == "i64" else k) if d.int(0, 3) else (d.pick((999, 999, *_FAR)) if kt == "i64" else "none")
        for k in (keys[d.int(0, len(keys) - 1)] for _ in range(d.int(1, 4) if n is None else n))
    ]


def _draw_find(d: Draw) -> dict[str, Any]:
    keys, values, kt, vt = _entries(d)
    shape, k, v = _several(d), BY_NAME[kt], BY_NAME[vt]
    queries = _queries(d, keys, kt, int(np.prod(shape, dtype=int)))
    nodes = [*_table(d.int(2, 1 << 20), kt, vt), _find_node()]
    single = () if d.chance(4) else (1,)
    ins = [("keys", Arg(k, shape)), ("default_value", Arg(v, single))]
    g = _program(nodes, "out", v, shape, {"k": keys, "v": values}, ins)
    return {
        "keys": T(shape, dtype=k, values=queries),
        "default_value": T(single, dtype=v, values=[d.pick((-1, *_FAR)) if vt == "i64" else d.pick(("?", ""))]),
        "@program": g,
        **_declares(v),
    }


def _find(call: Call) -> list[Any]:
    return [_handle(call, "hash_table", Table).find(call.inputs["keys"], call.inputs["default_value"])]


stateful("HASHTABLE_FIND", _draw_find, _find, "TFLite HASHTABLE_FIND: the value of each key, or the default")


_ENDS = (0, 1, -1, 2**31 - 1, -(2**31))  # numbers of tables that no other instance draws


def _entries_of(number: int) -> tuple[Any, Any, str, str]:
    """The entries of a table at an end: always the same, since one model may hold several instances with it."""
    n = 1 + _ENDS.index(number)
    words = np.empty(n, object)
    words[:] = [f"e{k}" for k in range(n)]
    return np.arange(n, dtype=np.int64) + number, words, "i64", "str"


def _draw_size(d: Draw) -> dict[str, Any]:
    if d.chance(12):
        number = d.pick(_ENDS)
        keys, values, kt, vt = _entries_of(number)
    else:
        keys, values, kt, vt = _entries(d)
        number = d.int(2, 1 << 30) * d.pick((1, -1))  # its own: one model may hold the tables of many instances
    nodes = [*_table(number, kt, vt), Node("HASHTABLE_SIZE", {"hash_table": "handle"}, ["out"], version=1)]
    said = {"table_id": number, "key_dtype": kt, "value_dtype": vt} if d.version.op == "HASHTABLE" else {}
    return {**said, "@program": _program(nodes, "out", I64, (1,), {"k": keys, "v": values}), **_declares(I64)}


def _draw_import(d: Draw) -> dict[str, Any]:
    """What is imported comes at run time, or stands in the model."""
    keys, values, kt, vt = _entries(d, several=True)
    nodes = [*_table(d.int(2, 1 << 20), kt, vt), Node("HASHTABLE_SIZE", {"hash_table": "handle"}, ["out"], version=1)]
    nodes[1] = Node("HASHTABLE_IMPORT", {"hash_table": "handle", "keys": "keys", "values": "values"}, [], version=1)
    k, v = BY_NAME[kt], BY_NAME[vt]
    ins = [("keys", Arg(k, keys.shape)), ("values", Arg(v, values.shape))]
    return {
        "keys": T(keys.shape, dtype=k, values=keys.ravel().tolist()),
        "values": T(values.shape, dtype=v, values=values.ravel().tolist()),
        "@program": _program(nodes, "out", I64, (1,), None, ins),
        **_declares(I64),
    }


def _import(call: Call) -> list[Any]:
    _handle(call, "hash_table", Table).fill(call.inputs["keys"], call.inputs["values"])
    return []


def _size(call: Call) -> list[Any]:
    return [np.array([len(_handle(call, "hash_table", Table).entries or ())], np.int64)]


def _open(call: Call) -> list[Any]:
    return [current().table(call.attr("table_id", 0))]


for _op, _drawn, _node in (
    ("HASHTABLE", _draw_size, _open),
    ("HASHTABLE_IMPORT", _draw_import, _import),
    ("HASHTABLE_SIZE", _draw_size, _size),
):
    stateful(_op, _drawn, _node, f"TFLite {_op}: the number of elements in the table")

# -- initialisation


def _call_once(init: Graph) -> Node:
    return Node("CALL_ONCE", {}, [], {"init_subgraph_index": init}, 1)


def _draw_once(d: Draw) -> dict[str, Any]:
    """An initialisation that assigns a variable, or fills a table.

    In half of the former the variable is assigned anew and the initialisation called again, which does nothing.
    """
    if d.chance(3):
        keys, values, kt, vt = _entries(d)
        number, v = d.int(0, 1 << 20), BY_NAME[vt]
        init = _program(_table(number, kt, vt), "k", BY_NAME[kt], keys.shape, {"k": keys, "v": values})
        init.outputs = []
        queries = _queries(d, keys, kt)
        default = np.empty(1, v.np)
        default[0] = -1 if vt == "i64" else "?"
        asked = np.empty(len(queries), keys.dtype)
        asked[:] = queries
        nodes = [_call_once(init), _table(number, kt, vt)[0], _find_node()]
        consts = {"keys": asked, "default_value": default}
        return {"@program": _program(nodes, "out", v, asked.shape, consts), **_declares(v)}
    dt, shape, name = d.pick((F32, I32)), d.shape(0, 3, 1), _name(d)
    value = np.array([d.int(-9, 9) for _ in range(int(np.prod(shape)))], dt.np).reshape(shape)
    init = _program([_var(name), _assign("start")], "start", dt, shape, {"start": value})
    init.outputs = []
    nodes = [_call_once(init), _var(name)]
    consts = {}
    if d.bool():
        consts["next"] = np.asarray(value + dt.np.type(1))
        nodes += [_assign("next"), _call_once(init)]
    return {"@program": _program([*nodes, _read()], "out", dt, shape, consts), **_declares(dt)}


def _run_once(call: Call) -> list[Any]:
    graph = call.attrs["init_subgraph_index"]
    if current().first_time(graph):
        assert call.run is not None
        call.run(graph, [])
    return []


stateful("CALL_ONCE", _draw_once, _run_once, "tfl call_once: the session's initialisation function")
