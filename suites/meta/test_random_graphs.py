"""Random graphs: they are valid, they are data, what goes wrong in them is found, made small, and traced to a node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest

from harness.cases.case import Case, draw_case, fill
from harness.cases.result import Result
from harness.core.dtypes import F16, F32
from harness.core.instance import Arg, Graph, Instance, Node
from harness.core.outcome import Verdict
from harness.declare import Draw, OpVersion, registry
from harness.engine.batching import build
from harness.engine.engine import Engine
from harness.evidence.attribution import Attribution
from harness.evidence.budget import Budget
from harness.evidence.failure import Evidence
from harness.evidence.minimize import minimize
from harness.generate.draw_engines import Prng
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from harness.workers.pool import BackendHandle
from harness.workers.spec import Spec
from suites.graphs.draw import LARGEST, Discarded, Drawing, Value
from suites.graphs.pool import Pool
from suites.meta.runtimes import running
from suites.programs import operands

VERSIONS = [v for n in ("onnx-graphs", "tflite-graphs", "mil-graphs") for v in registry.dialect(n).versions.values()]
SMALL, _, BIG = VERSIONS[:3]
EACH = pytest.mark.parametrize("v", VERSIONS, ids=lambda v: f"{v.dialect.name}/{v.op}")
PROGRAMS = list(registry.dialect("tflite-programs").versions.values())


def drawn(v: OpVersion, count: int) -> Iterator[Case]:
    for i in range(count):
        case = draw_case(v, v.opsets[-1 - i % len(v.opsets)], 3, i)
        assert not case.problem, case.problem
        yield case


@EACH
def test_a_graph_is_valid_and_runs_as_a_model_too(v: OpVersion) -> None:
    dialect = v.dialect
    for case in drawn(v, 12):
        model = build(dialect, [case])
        if dialect.format == "onnx":
            onnx.checker.check_model(onnx.load_from_string(model.data))
        fed = {name: case.draws[0]["inputs"][i] for name, _, i in model.inputs[0]}
        assert case.expected is not None
        for got, e in zip(dialect.run_model(model.data, fed), case.expected[0], strict=True):
            assert np.array_equal(got, e.value, equal_nan=got.dtype.kind == "f")


@EACH
def test_a_graph_has_its_size_and_each_node_has_a_use(v: OpVersion) -> None:
    kind = v.dialect.kinds[v.op]
    least, most = kind.nodes
    for case in drawn(v, 12):
        g: Graph = case.inst.attrs["program"]
        assert least <= len(g.nodes) <= most
        read = {x for n in g.nodes for _, _, x in operands(n)}
        for node in g.nodes:
            assert all(o in read or o in g.outputs for o in node.outputs if o)
        for i, node in enumerate(g.nodes[1:], 1):
            before = {o for n in g.nodes[:i] for o in n.outputs}
            assert before.intersection(x for _, _, x in operands(node)) or node.op in kind.shapes_by_data


@pytest.mark.parametrize("v", [*VERSIONS, *PROGRAMS], ids=lambda v: f"{v.dialect.name}/{v.op}")
def test_a_graph_is_data_and_each_node_an_instance_of_its_op(v: OpVersion) -> None:
    for case in drawn(v, 6):
        again = Instance.from_json(case.inst.to_json())
        assert again.dumps() == case.inst.dumps()
        other = fill(v, again)
        assert build(v.dialect, [other]).data == build(v.dialect, [case]).data
        program = v.dialect.unfold(again, other.draws[0])
        assert program is not None
        scope = dict(program.values)
        for k, names in enumerate(program.names):
            inst = program.node(k, scope)
            one = fill(registry.version_of(inst), inst)
            assert one.expected is not None, one.problem
            scope.update(zip(names, [e.value for e in one.expected[0]]))
        assert case.expected is not None
        for o, e in zip(program.outputs, case.expected[0], strict=True):
            assert scope[o].tobytes() == e.value.tobytes()


@EACH
def test_most_graphs_have_finite_values(v: OpVersion) -> None:
    cases = list(drawn(v, 40))
    finite = sum(
        all(np.isfinite(np.asarray(e.value, np.float64)).all() for e in (case.expected or [[]])[0]) for case in cases
    )
    assert finite > 0.8 * len(cases)


# -- what goes wrong


def chain(*ops: str) -> Case:
    """A chain of unary ops; an Add takes its operand twice."""
    nodes, last = [], "p0"
    for i, op in enumerate(ops):
        slots: dict[str, Any] = {"A": last, "B": last} if op == "Add" else {"input" if op == "Abs" else "X": last}
        if op in ("Sqrt", "Relu", "Neg", "Abs"):
            slots = {registry.dialect("onnx").effective(op, 17).schema.inputs[0].name: last}
        last = f"v{i}"
        nodes.append(Node(op, slots, [last], {}))
    g = Graph([], nodes, [last])
    x = Arg(F32, (3,), values=[0.5, 1.0, -2.0])
    attrs = {"program": g, "pattern": " ".join(ops)}
    return fill(SMALL, Instance("onnx-graphs", "small", 1, 17, attrs, {"inputs": [x]}, 1))


def judged(fault: str, case: Case, ledger: Ledger | None = None) -> tuple[Result, Result | None]:
    """The verdict with attribution, and the smallest graph that fails alike."""
    with BackendHandle(Spec(fault, fault, module="suites.meta.graph_backends")) as h:
        evidence = Evidence(lambda _: h, None, ledger=ledger)
        engine = Engine([h], ledger=ledger, attribute=Attribution(lambda _: h, ledger))
        result = next(iter(engine.judge([case])))
        return result, evidence.shrink(result, Budget(seconds=30)) if result.verdict.bad else None


def nodes_of(result: Result | None) -> list[str]:
    assert result is not None
    return [n.op for n in result.case.inst.attrs["program"].nodes]


@pytest.mark.parametrize(
    ("fault", "left"), [("OneOp", ["Neg"]), ("TwoOps", ["Add", "Relu"])], ids=["one op", "two ops"]
)
def test_a_fault_is_found_and_the_graph_made_small(fault: str, left: list[str]) -> None:
    result, small = judged(fault, chain("Abs", "Neg", "Add", "Abs", "Relu", "Abs"))
    assert result.verdict is Verdict.MISMATCH
    assert nodes_of(small) == left


def test_no_fault_is_found_where_none_is() -> None:
    result, _ = judged("Right", chain("Abs", "Neg", "Add", "Abs", "Relu", "Abs"))
    assert result.verdict is Verdict.AGREE


LISTED = """
[[known]]
id = "neg-is-shifted"
status = "unreported"
backend = "OneOp"
op = "onnx/Neg"
reason = "planted"
clause = "Neg-13"
"""


def test_a_listed_difference_of_a_node_explains_the_graph(tmp_path: Any) -> None:
    (tmp_path / "planted.toml").write_text(LISTED)
    ledger = load_ledger([tmp_path])
    result, _ = judged("OneOp", chain("Abs", "Neg"), ledger)
    assert (result.verdict, result.known) == (Verdict.KNOWN, "neg-is-shifted")
    # the model of all nodes is shifted at its end, which the shift of the Neg alone does not explain
    result, _ = judged("OneOp", chain("Neg", "Add"), ledger)
    assert result.verdict is Verdict.MISMATCH


def test_minimising_asks_the_reference_for_each_smaller_graph() -> None:
    case = next(c for c in drawn(BIG, 40) if sum(n.op == "Relu" for n in c.inst.attrs["program"].nodes))

    def fails(inst: Instance) -> bool:
        return not fill(case.version, inst).problem and any(n.op == "Relu" for n in inst.attrs["program"].nodes)

    small = minimize(case.version, case.inst, fails, Budget(seconds=30))
    assert [n.op for n in small.attrs["program"].nodes] == ["Relu"]
    assert small.outs == len(small.attrs["program"].outputs) == 1


# -- what a runtime knows in a graph and not of a node alone


def mil_graph(outputs: list[str], nodes: list[Node], consts: dict[str, Any], *inputs: np.ndarray) -> Case:
    args = [Arg(F32, x.shape, values=x.ravel().tolist()) for x in inputs]
    attrs = {"program": Graph([], nodes, outputs, consts), "pattern": "nodes"}
    inst = Instance("mil-graphs", "graph", 1, "ios18", attrs, {"inputs": args}, len(outputs))
    return fill(registry.version_of(inst), inst)


def explained(case: Case, backend: str, second: str = "coremltools-types") -> tuple[Verdict, str | None]:
    with running(backend) as h, running(second) as spare:
        ledger = load_ledger(backends=[h.info, spare.info])
        attribute = Attribution(lambda name: spare if name == spare.name else h, ledger)
        result = next(iter(Engine([h], ledger=ledger, attribute=attribute).judge([case])))
        return result.verdict, result.known or result.ambiguity


@pytest.mark.parametrize("backend", ["coremltools-types", "coremltools-roundtrip"])
def test_a_node_of_values_known_at_load_is_asked_with_constants(backend: str) -> None:
    """flatten2d of what follows from constants, or from a shape, is folded and refused; at run time it is not."""
    consts = {"c": np.array([[1, 0], [2, 3]], np.float32), "two": np.array([2], np.int32)}
    nodes = [
        Node("non_zero", {"x": "c"}, ["at"], {}),
        Node("flatten2d", {"x": "at"}, ["flat"], {"axis": 0}),
        Node("relu", {"x": "p0"}, ["y"], {}),
    ]
    x = np.ones((2, 3), np.float32)
    assert explained(mil_graph(["flat", "y"], nodes, consts, x), backend) == (Verdict.KNOWN, "ct-flatten2d-leading")
    nodes[:2] = [Node("shape", {"x": "p0"}, ["at"], {}), Node("flatten2d", {"x": "at"}, ["flat"], {"axis": 0})]
    assert explained(mil_graph(["flat", "y"], nodes, consts, x), backend) == (Verdict.KNOWN, "ct-flatten2d-leading")
    nodes[1] = Node("add", {"x": "at", "y": "two"}, ["flat"], {})
    assert explained(mil_graph(["flat", "y"], nodes, consts, x), backend) == (Verdict.AGREE, None)


def test_a_node_whose_extents_the_graph_tells_is_asked_with_known_extents() -> None:
    """Alone, the axis of the slice may be a symbol; beside a constant of four columns it is none."""
    begin, end, stride = (np.array(v, np.int32) for v in ([0, 3], [2, -5], [1, -1]))
    nodes = [
        Node("add", {"x": "p0", "y": "c"}, ["s"], {}),
        Node("slice_by_index", {"x": "s", "begin": "begin", "end": "end", "stride": "stride"}, ["y"], {}),
    ]
    consts = {"c": np.ones((2, 4), np.float32), "begin": begin, "end": end, "stride": stride}
    case = mil_graph(["y"], nodes, consts, np.ones((2, 1), np.float32))
    assert explained(case, "coremltools-symbolic") == (Verdict.KNOWN, "ct-slice-past-start")


def test_a_refusal_of_a_type_that_was_inferred_wrong_is_explained_by_it() -> None:
    """The slice is said to have lost a column, which the concat behind it does not take."""
    nodes = [
        Node("slice_by_index", {s: s if s != "x" else "p0" for s in ("x", "begin", "end", "stride")}, ["s"], {}),
        Node("concat", {"values": ["s", "p1"]}, ["y"], {"axis": 0}),
    ]
    consts = {s: np.array(v, np.int32) for s, v in (("begin", [0, 3]), ("end", [2, -5]), ("stride", [1, -1]))}
    case = mil_graph(["y"], nodes, consts, np.ones((2, 4), np.float32), np.ones((1, 4), np.float32))
    assert explained(case, "coremltools-types") == (Verdict.KNOWN, "ct-slice-past-start")
    nodes[1] = Node("concat", {"values": ["p0", "p1"]}, ["y"], {"axis": 0})
    case = mil_graph(["s", "y"], nodes, consts, np.ones((2, 3), np.float32), np.ones((1, 3), np.float32))
    assert explained(case, "coremltools-types")[0] is Verdict.KNOWN


def test_a_constant_node_is_asked_of_the_backend_that_folds_it() -> None:
    """scatter_along_axis of constants is folded before the program becomes a NeuralNetwork."""
    nodes = [
        Node("scatter_along_axis", {"data": "d", "indices": "i", "updates": "d"}, ["s"], {"axis": 0, "mode": "mul"}),
        Node("add", {"x": "p0", "y": "s"}, ["y"], {}),
    ]
    consts = {"d": np.array([2, 3], np.float32), "i": np.array([0, 0], np.int32)}
    case = mil_graph(["y"], nodes, consts, np.ones(2, np.float32))
    case = fill(case.version, replace(case.inst, opset="ios15"))
    told = (Verdict.KNOWN, "ct-fold-scatter-along-axis-mode")
    assert explained(case, "coremltools-nn", "coremltools-fold") == told


def test_a_node_of_scalars_is_asked_as_a_vector_where_no_model_has_scalars() -> None:
    """A NeuralNetwork has no input of rank 0; the reduction makes one of one element."""
    nodes = [
        Node("reduce_max", {"x": "p0"}, ["m"], {"axes": [0, 1], "keep_dims": False, "@types": {"T": "f32"}}),
        Node("log", {"x": "m"}, ["y"], {"epsilon": 0.25, "@types": {"T": "f32"}}),
    ]
    case = mil_graph(["y"], nodes, {}, np.ones((2, 3), np.float32))
    case = fill(case.version, replace(case.inst, opset="ios15"))
    assert explained(case, "coremltools-nn", "coremltools-fold") == (Verdict.AMBIGUOUS, "mil-nn-log-epsilon")


def test_an_operand_that_must_be_a_constant_is_one() -> None:
    """MIL's matmul of two element types takes one constant; which it is stands in the instance."""
    mil, graphs = registry.dialect("mil"), registry.dialect("mil-graphs")
    only = Pool(mil, "ios17", lambda v: v.op != "matmul")
    kind, found = replace(graphs.kinds["graph"], types=(F16,), nodes=(3, 3)), 0
    for seed in range(60):
        d = Draw(Prng(seed), graphs.versions["mil-graphs/graph/1"], "ios17", {}, {}, 4, False, LARGEST, 0)
        drawing = Drawing(mil, only, kind, "ios17", d, graphs.node_attrs)
        with suppress(Discarded):
            drawing.grow()
        for node in drawing.g.nodes:
            if "@const" in node.attrs:
                found += 1
                assert node.inputs[node.attrs["@const"]] in drawing.g.consts
    assert found


@pytest.mark.parametrize(("extents", "taken"), [((0, 3), True), ((0, 1 << 31), False)])
def test_no_node_takes_a_value_with_a_far_extent(extents: tuple[int, ...], taken: bool) -> None:
    """A generator would draw lists of as many entries beside it.  It stays as an output."""
    mil, graphs = registry.dialect("mil"), registry.dialect("mil-graphs")
    d = Draw(Prng(1), graphs.versions["mil-graphs/graph/1"], "ios17", {}, {}, 4, False, LARGEST, 0)
    made = Drawing(mil, Pool(mil, "ios17", lambda v: False), graphs.kinds["graph"], "ios17", d, graphs.node_attrs)
    made._offer(Value("far", F32, extents))
    assert (made._target() is not None) == taken
