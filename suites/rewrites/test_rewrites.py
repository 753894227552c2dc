"""Laws over the programs: they are valid ONNX, ours read back, and the optimiser of a real runtime has something to do
in every kind of them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from harness.cases.case import fill
from harness.core.errors import OpconformError
from harness.core.instance import Graph, Instance, Node
from harness.core.outcome import Verdict
from harness.declare import OpVersion
from harness.engine.batching import build
from harness.engine.engine import Engine
from harness.generate.draw_engines import Prng, case_seed
from suites.meta.runtimes import running
from suites.onnx import run_model
from suites.rewrites import dialect
from suites.rewrites.program import LANGUAGE

VERSIONS = list(dialect.versions.values())
# Kinds of which ONNX Runtime's optimiser for processors leaves all as they are; others fold them.
LEFT_ALONE = {
    "bias_softmax": "fused for graphics processors alone (graph_transformer_utils.cc)",
    "gelu_tanh": "FastGelu is fused for graphics processors alone (graph_transformer_utils.cc)",
    "gemm_batchnorm": "a product is merged with what follows where it is a MatMul",
    "space_to_depth": "no such rewriting in ONNX Runtime 1.32",
}


def drawn(v: OpVersion, count: int, opset: int = 17) -> list[Instance]:
    """At this opset, or the first one that the programs have."""
    return [v.draw(Prng(case_seed(9, v.key, i)), max(opset, v.opsets[0])) for i in range(count)]


def models(v: OpVersion, count: int) -> list[tuple[Instance, bytes, dict[str, Any]]]:
    out = []
    for inst in drawn(v, count):
        case = fill(v, inst)
        model = build(dialect, [case])
        given = case.draws[0]["inputs"]
        out.append((inst, model.data, {name: given[i] for name, _, i in model.inputs[0]}))
    return out


@pytest.mark.parametrize("v", VERSIONS, ids=lambda v: v.op)
def test_programs_are_valid_and_run_as_models_too(v: OpVersion) -> None:
    for inst, data, fed in models(v, 6):
        onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
        for got, expected in zip(run_model(data, fed), dialect.evaluate(inst, {"inputs": list(fed.values())})):
            assert np.array_equal(got, expected.value, equal_nan=got.dtype.kind == "f")


def _written(c: np.ndarray) -> bool:
    """Can onnx's parser read the constant?  Long ones are told in part; it knows no f16, NaN or infinity."""
    return c.size <= 16 and c.dtype != np.float16 and (c.dtype.kind != "f" or bool(np.isfinite(c).all()))


@pytest.mark.parametrize("v", VERSIONS, ids=lambda v: v.op)
def test_the_text_is_onnx_s_own_syntax(v: OpVersion) -> None:
    for inst in drawn(v, 3):
        if all(_written(c) for c in inst.attrs["program"].consts.values()):
            onnx.parser.parse_model(dialect.notation(inst))


@pytest.mark.parametrize("v", VERSIONS, ids=lambda v: v.op)
def test_an_optimiser_rewrites_some_of_each_kind(v: OpVersion, tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime")
    changed = 0
    for inst, data, _ in models(v, 40):
        if "respelt" in inst.attrs["program"].meta:
            continue
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.optimized_model_filepath = str(tmp_path / "after.onnx")
        try:
            ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception:
            continue  # a listed difference, or a gap
        before, after = (
            Counter((n.domain, n.op_type) for n in m.graph.node)
            for m in (onnx.load_from_string(data), onnx.load(str(tmp_path / "after.onnx")))
        )
        changed += before != after
    assert bool(changed) == (v.op not in LEFT_ALONE), f"{changed} changed"


def wrong(op: str, change: Any) -> int:
    """How many of twelve answers of a runtime with its first output changed are told of; of no elements none is."""
    v = dialect.versions[f"rewrites/{op}/1"]
    with running("onnxruntime-all") as h:
        collect = h.collect

        def spoiled(wait: bool = False) -> Any:
            results = collect(wait)
            for r in results:
                for row in r.outcomes:
                    for o in row:
                        if o.outputs and o.outputs[0] is not None:
                            o.outputs[0] = change(o.outputs[0])
            return results

        h.collect = spoiled  # type: ignore[method-assign]
        judged = Engine([h]).judge([fill(v, inst) for inst in drawn(v, 12)])
        return sum(j.verdict not in (Verdict.AGREE, Verdict.UNINFORMATIVE, Verdict.UNSUPPORTED) for j in judged)


@pytest.mark.parametrize(
    ("op", "change"),
    [
        ("conv_batchnorm", lambda x: x * np.float32(1.0001)),
        ("layer_norm", lambda x: x + np.float32(1e-4)),
        ("qdq_conv", lambda x: x ^ 1),
        ("transpose_pushed", lambda x: np.flip(x)),
    ],
)
def test_what_a_rewriting_gets_wrong_is_reported(op: str, change: Any) -> None:
    assert wrong(op, change) >= 6


def test_steps_that_choose_an_axis_are_not_taken_on_a_scalar() -> None:
    """One in 700 programs comes to a value of rank 0."""
    v = dialect.versions["rewrites/transpose_pushed/1"]
    for i in range(4000):
        v.draw(Prng(case_seed(3, v.key, i)))


def test_a_node_with_more_names_than_results_is_no_program() -> None:
    """ONNX Relu-13 has one output; Split-13 one for each entry of ``split``."""
    relu = Node("Relu", {"X": "p0"}, ["a", "b"], {})
    with pytest.raises(OpconformError, match="1 results for 2 names"):
        LANGUAGE.hold(Graph([], [relu], ["a", "b"], {}, {}), [np.ones(2, np.float32)], 13)
    split = Node("Split", {"input": "p0", "split": "c0"}, ["a", "b"], {"axis": 0})
    g = Graph([], [split], ["a", "b"], {"c0": np.array([2], np.int64)}, {})
    with pytest.raises(OpconformError, match="one-length-per-output"):
        LANGUAGE.hold(g, [np.ones(2, np.float32)], 13)
