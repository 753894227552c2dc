"""Every model of a valid instance is valid ONNX: it passes the checker of the onnx package with full checks, and its
names are C90 identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

import onnx
import pytest

from harness.cases.case import Case, draw_case
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import OpVersion, registry
from harness.engine.batching import build
from harness.engine.verdict import judge_case
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
KEYWORDS = {
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "int",
    "long",
    "register",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
}
CASES = {"onnx": 8, "rewrites": 24}
CHECKER = BackendInfo("onnx-shape-inference", onnx.__version__)
RUNTIME = BackendInfo("a-runtime-that-asks-the-checker", "1")
VERSIONS = [v for name in CASES for v in registry.dialect(name).versions.values()]
GROUPS = [VERSIONS[i : i + 60] for i in range(0, len(VERSIONS), 60)]


def cases(v: OpVersion) -> Iterator[Case]:
    """Some valid instances, at opsets from the last of the version down."""
    for i in range(CASES[v.dialect.name]):
        case = draw_case(v, v.opsets[-1 - i % len(v.opsets)], 22, i, invalid=False)
        assert case.expected, case.problem
        yield case


def names(g: onnx.GraphProto) -> Iterator[str]:
    """Of the graph, its values, its nodes, their attributes, the symbols of its axes, and of its blocks."""
    yield g.name
    for v in (*g.input, *g.output, *g.value_info):
        yield v.name
        yield from (d.dim_param for d in v.type.tensor_type.shape.dim)
    yield from (t.name for t in g.initializer)
    for node in g.node:
        yield from (node.name, *node.input, *node.output)
        for a in node.attribute:
            yield a.name
            for block in (a.g, *a.graphs) if a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) else ():
                yield from names(block)


def listed(case: Case, ledger: Ledger) -> bool:
    """Is it known that the package's shape inference is wrong about the instance?"""
    key = f"{case.inst.dialect}/{case.inst.op}"
    return any(
        fnmatchcase(CHECKER.name, b) and fnmatchcase(key, o) and e.fails_beside_others(case, CHECKER)
        for e in ledger.entries
        for b in e.backends
        for o in e.ops
    )


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return load_ledger()


@pytest.mark.parametrize("versions", GROUPS, ids=lambda g: f"{g[0].op}-{g[-1].op}")
def test_models_of_valid_instances_pass_the_full_checks(versions: list[OpVersion], ledger: Ledger) -> None:
    """What the package's shape inference refuses on its own account is listed for it as a known difference; a
    deprecated op version, and one in no released operator set, may be refused."""
    bad = []
    for v in versions:
        for case in cases(v):
            model = onnx.load_from_string(build(v.dialect, [case]).data)
            odd = [n for n in names(model.graph) if n and (n in KEYWORDS or not IDENTIFIER.fullmatch(n))]
            if odd:
                bad.append(f"{v.key}: no C90 identifiers: {odd}")
            try:
                onnx.checker.check_model(model, full_check=True)
                continue
            except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as e:
                why = str(e)
            except ValueError as e:  # of its own, without the place
                why = f"InferenceError: {e}"
            judged = judge_case(case, RUNTIME, [Outcome(Status.REJECTED, None, "load", why)])
            if judged.verdict is not Verdict.UNSUPPORTED and not ("InferenceError" in why and listed(case, ledger)):
                bad.append(f"{v.key}: {why[:300]}: {case.inst.dumps()[:400]}")
    assert not bad, "\n".join(bad[:20])


@pytest.mark.parametrize("op", ["FC", "SpatialBN", "Normalize", "OptimizedRNN", "Caffe2ConvTranspose"])
def test_a_runtime_may_refuse_an_op_that_was_never_registered(op: str) -> None:
    v = registry.dialect("onnx").versions[f"onnx/{op}/1"]
    case = draw_case(v, 1, 22, 0, invalid=False)
    told = judge_case(case, RUNTIME, [Outcome(Status.REJECTED, None, "load", f"No Op registered for {op}")])
    assert told.verdict is Verdict.UNSUPPORTED
    assert "no released operator set" in told.outcome.message
    crashed = judge_case(case, RUNTIME, [Outcome(Status.CRASHED, None, "load", "signal 11")])
    assert crashed.verdict is Verdict.CRASHED
