"""TFLite programs: what their nodes explain, and smaller ones of them."""

from __future__ import annotations

import numpy as np
import pytest

from harness.backends.registry import create
from harness.cases.case import Case, draw_case, fill
from harness.core.dtypes import F32, U8
from harness.core.instance import Arg, Graph, Instance, Node
from harness.core.outcome import Verdict
from harness.declare import OpVersion, registry
from harness.engine.engine import Engine
from harness.evidence.attribution import Attribution
from harness.ledger.loader import load_ledger

DIALECT = registry.dialect("tflite-programs")
VERSIONS = list(DIALECT.versions.values())


def quantised(*x: float) -> Case:
    """QUANTIZE, and a LOGISTIC behind it."""
    quants = {"q": {"scale": [1 / 32], "zero_point": [0], "axis": 0}, "y": {"scale": [1 / 256], "zero_point": [0]}}
    tensors = {n: {"dtype": U8, "quant": {"axis": 0, **q}, "shape": [len(x)]} for n, q in quants.items()}
    nodes = [
        Node("QUANTIZE", {"input": "p0"}, ["q"], {}, version=1),
        Node("LOGISTIC", {"x": "q"}, ["y"], {"@domain": "quantised"}, version="1q"),
    ]
    g = Graph([], nodes, ["y"], {}, {"tensors": tensors})
    attrs = {"program": g, "pattern": "QUANTIZE LOGISTIC"}
    given = {"inputs": [Arg(F32, (len(x),), values=list(x))]}
    return fill(VERSIONS[0], Instance(DIALECT.name, "quantised_chain", 1, 1, attrs, given, 1))


@pytest.mark.parametrize(
    ("x", "entry"), [((3e38, 1.0), "litert-quantize-beyond-int32"), ((7.0, 1.0), None)], ids=["beyond int32", "within"]
)
def test_what_a_listed_node_gives_explains_the_program(x: tuple[float, ...], entry: str | None) -> None:
    case = quantised(*x)
    with create("litert-ref") as h:
        ledger = load_ledger(backends=[h.info])
        result = next(iter(Engine([h], ledger=ledger, attribute=Attribution(lambda _: h, ledger)).judge([case])))
    assert (result.known, result.verdict) == (entry, Verdict.KNOWN if entry else Verdict.AGREE)


def test_a_node_that_the_delegate_leaves_runs_on_the_backend_that_computes_it() -> None:
    """XNNPACK gives NaN for the reciprocal root of 0, which is listed; FAKE_QUANT, which it does not take, clamps that.
    The reference knows nothing of a clamped NaN."""
    nodes = [
        Node("RSQRT", {"x": "p0"}, ["r"], {}, version=1),
        Node("FAKE_QUANT", {"input": "r"}, ["y"], {"min": -3.5, "max": 1.0, "num_bits": 16}, version=1),
    ]
    tensors = {n: {"dtype": F32, "shape": [1, 2]} for n in ("r", "y")}
    g = Graph([], nodes, ["r", "y"], {}, {"tensors": tensors})
    attrs = {"program": g, "pattern": "RSQRT FAKE_QUANT"}
    v = registry.dialect("tflite-graphs").versions["tflite-graphs/small/1"]
    case = fill(
        v, Instance("tflite-graphs", "small", 1, 1, attrs, {"inputs": [Arg(F32, (1, 2), values=[0.0, 4.0])]}, 2)
    )
    with create("litert-xnnpack") as h, create("litert-opt") as rest:
        ledger, handles = load_ledger(backends=[h.info]), {h.name: h, rest.name: rest}
        result = next(
            iter(Engine([h], ledger=ledger, attribute=Attribution(handles.__getitem__, ledger)).judge([case]))
        )
    assert (result.verdict, result.known) == (Verdict.KNOWN, "xnnpack-sqrt-by-reciprocal")


def test_a_constant_node_that_the_delegate_computes_is_asked_of_the_delegate_too() -> None:
    """XNNPACK, which may flush subnormals, gives 0 for the CEIL of a constant that LiteRT itself rounds to 1."""
    nodes = [Node("CEIL", {"x": "c0"}, ["y"], {}, version=1)]
    g = Graph(
        [],
        nodes,
        ["y"],
        {"c0": np.full((1, 16), 1e-45, np.float32)},
        {"tensors": {"y": {"dtype": F32, "shape": [1, 16]}}},
    )
    v = registry.dialect("tflite-graphs").versions["tflite-graphs/small/1"]
    case = fill(v, Instance("tflite-graphs", "small", 1, 1, {"program": g, "pattern": "CEIL"}, {"inputs": []}, 1))
    with create("litert-xnnpack") as h, create("litert-opt") as rest:
        ledger, handles = load_ledger(backends=[h.info]), {h.name: h, rest.name: rest}
        attribute = Attribution(handles.__getitem__, ledger)
        result = next(iter(Engine([h], ledger=ledger, attribute=attribute).judge([case])))
        (output,) = result.outcome.outputs or ()
    assert not output.any()
    assert result.verdict is Verdict.AGREE


@pytest.mark.parametrize("v", VERSIONS, ids=lambda v: v.op)
def test_smaller_programs_have_the_scales_of_the_whole(v: OpVersion) -> None:
    """What is left computes what the whole computes there."""
    same = 0
    for i in range(8):
        case = draw_case(v, 1, 11, i)
        program = DIALECT.unfold(case.inst, case.draws[0])
        assert program is not None
        whole = DIALECT.language.run(case.inst.attrs["program"], case.draws[0]["inputs"], 1)
        plain = {F32, *(a.dtype for a in case.inst.tensors("inputs") if a.quant is None)}  # beside the pattern
        for small in program.smaller():
            one, stated = fill(v, Instance.from_json(small.to_json())), small.attrs["program"].meta["tensors"]
            for k, a in enumerate(small.tensors("inputs")):
                assert a.quant == stated.get(f"p{k}", {}).get("quant")
                assert (a.dtype in plain) if a.quant is None else (a.dtype is not F32)
            outputs = small.attrs["program"].outputs
            same += one.expected is not None and all(
                np.array_equal(e.value, whole[o], equal_nan=e.dtype is F32) for o, e in zip(outputs, one.expected[0])
            )
    assert same > 8
