"""Whole models that keep something: variables from one invocation to the next, tables, initialisation done once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.core.dtypes import F32, I64, STR
from harness.core.errors import OpconformError, RuleError, UsageError
from harness.core.instance import Arg, Graph, Node
from harness.declare.interpreter import run_graph
from suites.tflite import Session, dialect
from suites.tflite.builder import build_graph

HANDLE = {"dtype": "resource", "shape": ()}


def words(*items: Any) -> Any:
    out = np.empty(len(items), object)
    out[:] = items
    return out


def node(op: str, outputs: Any = (), attrs: Any = None, **inputs: Any) -> Any:
    return Node(op, inputs, list(outputs), attrs or {}, 1)


def variable(out: Any, name: str = "total") -> Any:
    return node("VAR_HANDLE", [out], {"container": "", "shared_name": name})


def table(out: Any) -> Any:
    return node("HASHTABLE", [out], {"table_id": 7, "key_dtype": "str", "value_dtype": "i64"})


def counting_model() -> Any:
    """Initialisation: total = 10, 20; a table of two words.  Each invocation: total += x; look up words; the size."""
    init = Graph(
        [],
        [
            variable("h"),
            node("ASSIGN_VARIABLE", resource_id="h", value="start"),
            table("t"),
            node("HASHTABLE_IMPORT", hash_table="t", keys="k", values="v"),
        ],
        [],
        {"start": np.array([10, 20], np.float32), "k": words("one", "two"), "v": np.array([1, 2], np.int64)},
        {"tensors": {"h": HANDLE, "t": HANDLE}},
    )
    tensors = {
        "h": HANDLE,
        "t": HANDLE,
        "old": {"dtype": F32, "shape": (2,)},
        "new": {"dtype": F32, "shape": (2,)},
        "found": {"dtype": I64, "shape": (3,)},
        "size": {"dtype": I64, "shape": (1,)},
    }
    return Graph(
        [("x", Arg(F32, (2,))), ("asked", Arg(STR, (3,))), ("other", Arg(I64, (1,)))],
        [
            node("CALL_ONCE", attrs={"init_subgraph_index": init}),
            variable("h"),
            node("READ_VARIABLE", ["old"], resource_id="h"),
            node("ADD", ["new"], lhs="old", rhs="x"),
            node("ASSIGN_VARIABLE", resource_id="h", value="new"),
            node("CALL_ONCE", attrs={"init_subgraph_index": init}),
            table("t"),
            node("HASHTABLE_FIND", ["found"], hash_table="t", keys="asked", default_value="other"),
            node("HASHTABLE_SIZE", ["size"], hash_table="t"),
        ],
        ["new", "found", "size"],
        {},
        {"opset": 1, "tensors": tensors},
    )


STEPS = [
    {"x": np.array(x, np.float32), "asked": words(*asked), "other": np.array([-1], np.int64)}
    for x, asked in (((1, 2), ("one", "two", "one")), ((3, -4), ("none", "two", "x")), ((0.5, 0), ("one",) * 3))
]


def test_a_session_keeps_variables_and_initialises_once() -> None:
    session = Session(dialect, build_graph(counting_model()))
    got = [session.invoke(s) for s in STEPS]
    assert [g[0].tolist() for g in got] == [[11, 22], [14, 18], [14.5, 18]]
    assert [g[1].tolist() for g in got] == [[1, 2, 1], [-1, 2, -1], [1, 1, 1]]
    assert all(g[2].tolist() == [2] for g in got)


def test_run_model_starts_afresh_every_time() -> None:
    data = build_graph(counting_model())
    first, second = (dialect.run_model(data, STEPS[0])[0].tolist() for _ in range(2))
    assert first == second == [11, 22]


def test_a_session_agrees_with_the_runtime() -> None:
    interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="needs ai-edge-litert")
    data = build_graph(counting_model())
    session, runtime = Session(dialect, data), interpreter.Interpreter(model_content=data)
    runtime.allocate_tensors()
    slots = {t["name"]: t["index"] for t in runtime.get_input_details()}
    for step in STEPS:
        for name, v in step.items():
            runtime.set_tensor(slots[name], v if v.dtype != object else np.array([s.encode() for s in v], object))
        runtime.invoke()
        got = [runtime.get_tensor(t["index"]) for t in runtime.get_output_details()]
        for g, w in zip(got, session.invoke(step), strict=True):
            np.testing.assert_array_equal(g, w)


def test_a_variable_read_before_it_is_assigned_breaks_a_rule() -> None:
    g = Graph(
        [],
        [variable("h"), node("READ_VARIABLE", ["y"], resource_id="h")],
        ["y"],
        {},
        {"opset": 1, "tensors": {"h": HANDLE, "y": {"dtype": F32, "shape": (1,)}}},
    )
    with pytest.raises(RuleError, match="read before it is assigned"):
        dialect.run_model(build_graph(g), {})


def test_resources_need_a_session() -> None:
    g = dialect.parse(build_graph(counting_model()))
    with pytest.raises((UsageError, OpconformError), match="need a session"):
        run_graph(dialect, g, STEPS[0], 1)
