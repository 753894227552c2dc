"""What a program gives is explained by its nodes where it follows from what they give one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case, fill
from harness.cases.result import Result
from harness.compare import judge
from harness.core.dtypes import F32, F64, I8, I32, DType
from harness.core.instance import Arg, Graph, Instance, Node
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.engine.engine import Engine
from harness.evidence.attribution import Attribution
from harness.ledger.loader import load_ledger
from suites.meta.runtimes import running
from suites.rewrites import dialect


def program(
    kind: str, nodes: list[Node], consts: dict[str, Any], dtype: DType, *inputs: np.ndarray, opset: int = 17
) -> Case:
    g = Graph([], nodes, [nodes[-1].outputs[0]], consts)
    args = [Arg(dtype, x.shape, values=x.ravel().tolist()) for x in inputs]
    attrs = {"program": g, "pattern": "match"}
    return fill(
        dialect.versions[f"rewrites/{kind}/1"], Instance("rewrites", kind, 1, opset, attrs, {"inputs": args}, 1)
    )


def gelu(dtype: DType) -> Case:
    two, one, half = (np.array(x, dtype.np) for x in (1.4142135381698608, 1.0, 0.5))
    nodes = [
        Node("Div", {"A": "p0", "B": "two"}, ["d"], {}),
        Node("Erf", {"input": "d"}, ["e"], {}),
        Node("Add", {"A": "e", "B": "one"}, ["a"], {}),
        Node("Mul", {"A": "p0", "B": "a"}, ["m"], {}),
        Node("Mul", {"A": "m", "B": "half"}, ["y"], {}),
    ]
    return program("gelu", nodes, {"two": two, "one": one, "half": half}, dtype, np.array([0.3, -1.7, 2.5]))


def verdict(backend: str, case: Case, spoil: Callable[[np.ndarray], np.ndarray] | None = None) -> Result:
    """spoil: changes what the backend gives for the whole program, not for its nodes."""
    with running(backend) as h, running(backend) as spare:
        ledger = load_ledger(backends=[h.info])
        collect = h.collect

        def spoiled(wait: bool = False) -> Any:
            results = collect(wait)
            for r in results:
                for o in (o for row in r.outcomes for o in row):
                    o.outputs = [spoil(x) for x in o.outputs] if spoil and o.outputs else o.outputs
            return results

        h.collect = spoiled  # type: ignore[method-assign]
        return next(iter(Engine([h], ledger=ledger, attribute=Attribution(lambda _: spare, ledger)).judge([case])))


def test_a_listed_difference_of_one_node_explains_the_program() -> None:
    r = verdict("onnx-reference", gelu(F64))
    assert (r.verdict, r.known) == (Verdict.KNOWN, "oref-f64-through-f32")


def test_the_same_program_is_right_where_its_nodes_are() -> None:
    assert verdict("onnx-reference", gelu(F32)).verdict is Verdict.AGREE


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_an_answer_that_does_not_follow_from_the_nodes_is_wrong(dtype: DType) -> None:
    assert verdict("onnx-reference", gelu(dtype), lambda x: x * (1 + 2.0**-18)).verdict is Verdict.MISMATCH


def test_a_node_that_the_specification_leaves_open_opens_what_follows_from_it() -> None:
    """0 * inf in one order of the products, inf in the other."""
    names = ("X", "scale", "B", "input_mean", "input_var")
    values = [np.array([x], np.float32) for x in (np.inf, -0.875, -0.875, 1.5)]
    node = Node("BatchNormalization", dict(zip(names, ("m", "s", "b", "u", "v"))), ["y"], {})
    product = Node("MatMul", {"A": "p0", "B": "w"}, ["m"], {})
    consts = {"w": np.array([[-1]], np.float32), **dict(zip("sbuv", values))}
    case = program("matmul_batchnorm", [product, node], consts, F32, np.zeros((1, 1)))
    r = verdict("onnxruntime", case)
    assert (r.verdict, r.ambiguity) == (Verdict.AMBIGUOUS, "onnx-overflowing-products")


def test_a_node_is_asked_with_the_operands_that_a_runtime_computes_when_it_loads_the_program() -> None:
    """Weights that are constants are laid out in blocks of channels, in which another order of the sum overflows."""
    nodes = [
        Node("Cast", {"input": "c"}, ["d"], {"to": F64}),
        Node("Cast", {"input": "d"}, ["w"], {"to": F32}),
        Node("Conv", {"X": "p0", "W": "w"}, ["y"], {}),
    ]
    w = np.resize(np.array([0.75, 1, -1, -0.75, -0.5, -0.25, 0, 0.25, 0.5], np.float32), (3, 3, 2, 2))
    case = program("pad_fusion", nodes, {"c": w}, F32, np.full((1, 3, 3, 7), 3.4e38), opset=13)
    r = verdict("onnxruntime-all", case)
    assert np.isnan(np.asarray(r.outcome.outputs)).any()
    assert not r.verdict.bad


@pytest.mark.parametrize(("by", "told"), [(2.0**-22, Verdict.KNOWN), (2.0**-12, Verdict.MISMATCH)])
def test_a_listed_answer_may_be_off_as_far_as_its_model_says(by: float, told: Verdict) -> None:
    """onnx.reference normalises by the batch: to numbers near 1, where the right ones are near 1e-6."""
    names = ("X", "scale", "B", "mean", "var")
    values = [np.array([x], np.float32) for x in (1, 0, 0, 1e12)]
    node = Node("BatchNormalization", dict(zip(names, ("p0", "s", "b", "u", "v"))), ["y"], {"momentum": 0.0})
    x = np.array([1.0, 2.0, 3.0, 5.0]).reshape(1, 1, 4)
    case = program("conv_batchnorm", [node], dict(zip("sbuv", values)), F32, x, opset=13)
    assert verdict("onnx-reference", case, lambda y: (y * (1 + by)).astype(y.dtype)).verdict is told


def test_a_refusal_that_no_node_shares_is_wrong() -> None:
    """Every node runs alone, the program does not."""
    with running("onnx-reference") as h:
        ledger, case = load_ledger(backends=[h.info]), gelu(F64)
        refused = Outcome(Status.REJECTED, None, "run", "not today", 0.0)
        result = Result(case, h.name, Verdict.WRONGLY_REJECTED, refused)
        assert Attribution(lambda _: h, ledger)(result, h.info).verdict is Verdict.WRONGLY_REJECTED


def test_a_listed_answer_may_have_another_shape_than_the_right_one() -> None:
    """onnx.reference forgets the dilation of a window where the padding is automatic."""
    pool = {"auto_pad": "VALID", "dilations": [2], "kernel_shape": [3], "p": 3}
    nodes = [
        Node("LpPool", {"X": "p0"}, ["l"], pool),
        Node("Transpose", {"data": "l"}, ["t"], {"perm": [0, 2, 1]}),
        Node("Sqrt", {"X": "t"}, ["y"], {}),
    ]
    x = Arg(F32, (1, 1, 7), values=[1.0, 2, 3, 5, 7, 11, 13])
    attrs = {"program": Graph([], nodes, ["y"], {}), "pattern": "pooled"}
    inst = Instance("onnx-graphs", "small", 1, 22, attrs, {"inputs": [x]}, 1)
    r = verdict("onnx-reference", fill(registry.version_of(inst), inst))
    assert (r.verdict, r.known) == (Verdict.KNOWN, "oref-pool-explicit")


def test_a_defect_of_ours_in_the_search_for_a_cause_is_no_verdict_and_ends_no_run() -> None:
    def handle(name: str) -> Any:
        raise ValueError("shapes")

    case = gelu(F64)
    with running("onnx-reference") as h:
        wrong = Result(case, h.name, Verdict.MISMATCH, Outcome(Status.VALUE, [np.zeros(3)]))
        told = Attribution(handle)(wrong, h.info)
    assert (told.verdict, told.outcome.status) == (Verdict.UNKNOWN, Status.HARNESS_ERROR)
    assert told.outcome.message == "nodes: ValueError: shapes"


def scattered(spoiled: bool) -> Verdict:
    """GlobalMaxPool of onnx.reference drops the spatial axis; ScatterND then gets what it does not take."""
    nodes = [
        Node("GlobalMaxPool", {"X": "p0"}, ["m"], {}),
        Node("Add", {"A": "m", "B": "c"}, ["a"], {}),
        Node("ScatterND", {"data": "a", "indices": "i", "updates": "u"}, ["s"], {"reduction": "add"}),
        Node("Abs", {"X": "p0"}, ["b"], {}),
    ]
    consts = {"c": np.ones((5, 1, 1), np.float32), "i": np.full((1, 1, 1), 2), "u": np.ones((1, 1, 1, 1), np.float32)}
    x = Arg(F32, (5, 1, 1), values=[1.0, -2.0, 3.0, 4.0, 5.0])
    attrs = {"program": Graph([], nodes, ["s", "b"], consts), "pattern": "scattered"}
    inst = Instance("onnx-graphs", "small", 1, 22, attrs, {"inputs": [x]}, 2)
    case = fill(registry.version_of(inst), inst)
    return verdict(
        "onnx-reference", case, (lambda y: y + 1 if y.shape == (5, 1, 1) else y) if spoiled else None
    ).verdict


def test_what_no_op_takes_is_open_and_the_rest_is_not() -> None:
    assert scattered(False) is Verdict.KNOWN
    assert scattered(True) is Verdict.MISMATCH


def two_inputs(*nodes: Node) -> Case:
    attrs = {"program": Graph([], list(nodes), ["y"], {}), "pattern": "typed"}
    ones = [Arg(I32, (1, 1), values=[1]) for _ in range(2)]
    inst = Instance("onnx-graphs", "small", 1, 7, attrs, {"inputs": ones}, 1)
    return fill(registry.version_of(inst), inst)


def test_a_node_that_refuses_the_wrong_type_of_another_is_explained_by_it() -> None:
    squares = Node("ReduceSumSquare", {"data": "p0"}, ["squares"], {"axes": [0], "keepdims": 1})
    case = two_inputs(squares, Node("Sub", {"A": "squares", "B": "p1"}, ["y"], {}))
    result = verdict("onnx-reference", case)
    assert result.outcome.status is Status.REJECTED  # int64, where the operand beside it is int32
    assert (result.verdict, result.known) == (Verdict.KNOWN, "oref-reducesumsquare-integers")
    # where nothing reads the wrong type, it explains no refusal
    apart = two_inputs(squares, Node("Sub", {"A": "p0", "B": "p1"}, ["y"], {}))
    with running("onnx-reference") as h:
        refused = Result(apart, h.name, Verdict.WRONGLY_REJECTED, Outcome(Status.REJECTED, None, "run", "no", 0.0))
        told = Attribution(lambda _: h, load_ledger(backends=[h.info]))(refused, h.info)
        assert told.verdict is Verdict.WRONGLY_REJECTED


@pytest.mark.parametrize(("by", "told"), [(1.0, Verdict.KNOWN), (1.5, Verdict.MISMATCH)])
def test_what_follows_from_a_listed_difference_of_the_program_is_asked_of_the_nodes(by: float, told: Verdict) -> None:
    """The variance of the batch is written over the scale; exponentials of what that gives are beyond every type."""
    names = ("X", "scale", "B", "input_mean", "input_var")
    nodes = [
        Node("BatchNormalization", dict(zip(names, ("p0", *["p1"] * 4))), ["n", "u", "v"], {"training_mode": 1}),
        Node("ReduceLogSumExp", {"data": "n"}, ["s"], {"keepdims": 0}),
        Node("Neg", {"X": "v"}, ["y"], {}),
    ]
    attrs = {"program": Graph([], nodes, ["s", "y"], {}), "pattern": "overwritten"}
    values = [np.array([0.0, 300, 10, 500]), np.ones(1)]
    args = [Arg(F32, shape, values=x.tolist()) for shape, x in zip([(1, 1, 4), (1,)], values)]
    inst = Instance("onnx-graphs", "small", 1, 28, attrs, {"inputs": args}, 2)
    case = fill(registry.version_of(inst), inst)
    r = verdict("onnxruntime", case, lambda x: x * x.dtype.type(by) if x.shape == (1,) else x)
    assert np.isinf(np.asarray((r.outcome.outputs or [0])[0]))
    assert (r.verdict, r.known) == (told, "ort-graph-batchnorm-operands-overwritten" if told is Verdict.KNOWN else None)


def test_a_subnormal_scale_may_lose_digits_where_it_is_divided_first() -> None:
    per = [0.0, 2.0**-149]
    args: dict[str, Any] = {n: Arg(F32, (2,), values=per) for n in ("scale", "B", "mean", "var")}
    args["X"] = Arg(F32, (1, 2, 1), values=[0.0, 17.984403610229492])
    inst = Instance("onnx", "BatchNormalization", 7, 7, {}, args, 1)
    case = fill(registry.version_of(inst), inst)
    assert verdict("onnxruntime", case).verdict is Verdict.AGREE
    assert verdict("onnxruntime", case, lambda y: y + np.float32(2.0**-140)).verdict is Verdict.MISMATCH


def test_a_listed_sum_beyond_the_type_depends_on_its_order() -> None:
    """onnx.reference normalises by the batch: a convolution gives it axes in another order than that of the memory."""
    names = ("X", "scale", "B", "mean", "var")
    nodes = [
        Node("Transpose", {"data": "p0"}, ["t"], {"perm": [0, 2, 1]}),
        Node("BatchNormalization", dict(zip(names, ("t", *"sbuv"))), ["y"], {}),
    ]
    ones = {n: np.ones(2, np.float32) for n in "sbuv"}
    huge = np.array([[3e38, 1], [-3e38, 2], [3e38, 3], [-3e38, 4]]).reshape(1, 4, 2)
    case = program("conv_batchnorm", nodes, ones, F32, huge, opset=13)
    spoilt = {
        k: verdict("onnx-reference", case, f)
        for k, f in {
            "nan": lambda y: np.where(np.arange(2)[:, None] == 0, np.float32(np.nan), y),
            "other": lambda y: np.where(np.arange(2)[:, None] == 1, np.float32(7), y),
        }.items()
    }
    assert spoilt["nan"].verdict is Verdict.KNOWN
    assert spoilt["other"].verdict is Verdict.MISMATCH


@pytest.mark.parametrize(("row", "told"), [(0, Verdict.AGREE), (1, Verdict.MISMATCH), (2, Verdict.MISMATCH)])
def test_an_infinity_of_a_program_is_free_where_sums_of_finite_numbers_overflow(row: int, told: Verdict) -> None:
    """What such a sum gives depends on its order; an infinite operand leaves no choice."""
    nodes = [
        Node("MatMul", {"A": "p0", "B": "w"}, ["m"], {}),
        Node("Neg", {"X": "m"}, ["y"], {}),
    ]
    x = np.array([[3e38, 3e38, 1e38], [np.inf, 1, 2], [1, 2, 3]])
    case = program("matmul_scale", nodes, {"w": np.ones((3, 1), np.float32)}, F32, x)
    spoilt = verdict("onnx-reference", case, lambda y: np.where(np.arange(3)[:, None] == row, np.float32(np.nan), y))
    assert verdict("onnx-reference", case).verdict is Verdict.AGREE
    assert spoilt.verdict is told


def test_an_integer_on_a_tie_may_turn_over_behind_another_node_too() -> None:
    """The mean is 40.49999... steps in one order of rounding and 40.5 in another."""
    nodes = [
        Node("DequantizeLinear", {"x": "p0", "x_scale": "s", "x_zero_point": "z"}, ["d"], {}),
        Node("AveragePool", {"X": "d"}, ["m"], {"kernel_shape": [2, 2]}),
        Node("QuantizeLinear", {"x": "m", "y_scale": "t", "y_zero_point": "o"}, ["q"], {}),
        Node("Where", {"condition": "yes", "X": "q", "Y": "o"}, ["y"], {}),
    ]
    consts: dict[str, Any] = {"s": np.float32(0.02), "z": np.int8(-100), "t": np.float32(0.05), "o": np.int8(3)}
    consts = {k: np.asarray(v) for k, v in consts.items()} | {"yes": np.array([[[[True, True]]]])}
    x = np.array([[[[2, 1, 5], [0, 2, 9]]]], np.int8)
    case = program("qdq_unary", nodes, consts, I8, x)
    assert case.expected is not None
    (e,) = case.expected[0]
    assert e.value.ravel().tolist()[0] == 43
    for answer, verdict_of_it in (([43, 45], Verdict.AGREE), ([44, 45], Verdict.AGREE), ([43, 48], Verdict.MISMATCH)):
        judged = judge([e], Outcome(Status.VALUE, [np.array([[[answer]]], np.int8)]))
        assert judged.verdict is verdict_of_it, answer
