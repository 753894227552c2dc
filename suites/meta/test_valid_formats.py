"""Models of valid instances pass the validation of their format: LiteRT's verifier of FlatBuffers, what coremltools
checks of a program and of a specification.  That of ONNX: ``test_valid_models.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from harness.cases.case import draw_case
from harness.core.outcome import Model
from harness.declare import registry
from harness.engine.batching import build

MIL_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_@]*")  # MIL.proto, Program: identifiers
GAP = "Didn't find op for builtin opcode|Encountered unresolved custom op"  # kernels that a release lacks


def models(name: str, count: int = 2) -> Iterator[tuple[str, Model]]:
    d = registry.dialect(name)
    for v in d.versions.values():
        for i in range(count):
            case = draw_case(v, v.opsets[-1 - i % len(v.opsets)], 22, i, invalid=False)
            assert not case.problem, case.problem
            assert case.draws, case.problem
            yield f"{v.key} case {i}", build(d, [case])


def test_litert_verifies_every_tflite_model() -> None:
    interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="needs ai-edge-litert")
    good = None
    bad = []
    for key, model in models("tflite"):
        try:
            interpreter.Interpreter(model_content=model.data, num_threads=1)
            good = model.data
        except (ValueError, RuntimeError) as e:
            if not re.search(GAP, str(e)):
                bad.append(f"{key}: {e}")
    assert not bad, "\n".join(bad[:20])
    assert good is not None
    with pytest.raises(ValueError, match="not a valid Flatbuffer"):  # it does look
        interpreter.Interpreter(model_content=good[: len(good) // 2])


def test_coremltools_validates_every_program() -> None:
    """``Program.validate`` of coremltools.  A program that it cannot even build for a defect of its own (type and value
    inference) has none; every run judges those, and they are few.  Programs for
    passes are validated in every run (``coremltools_mil.Passes``)."""
    pytest.importorskip("coremltools")
    from harness.backends import coremltools_program as program

    bad, seen, unbuilt = [], 0, []
    for key, model in models("mil"):
        h, consts = program.unpack(model.data)
        try:
            prog = program.build(h, consts)
        except Exception as e:  # its inference raises whatever NumPy and SymPy raise
            unbuilt.append(f"{key}: {type(e).__name__}: {e}")
            continue
        seen += 1
        try:
            prog.validate()
        except Exception as e:
            bad.append(f"{key}: {type(e).__name__}: {e}")
        names = [out.name for f in prog.functions.values() for o in f.operations for out in o.outputs]
        names += [n for f in prog.functions.values() for n in f.inputs]
        bad += [f"{key}: no identifier: {n!r}" for n in names if not MIL_IDENTIFIER.fullmatch(n)]
    assert not bad, "\n".join(bad[:20])
    assert len(unbuilt) < 0.03 * seen, "\n".join(unbuilt)


def test_coremltools_takes_every_specification() -> None:
    """The official classes know every field, all that is required is set, and ``MLModel`` takes the description."""
    ct = pytest.importorskip("coremltools")
    from coremltools.proto import Model_pb2
    from google.protobuf.unknown_fields import UnknownFieldSet

    bad = []
    for key, model in models("nn"):
        spec = Model_pb2.Model()
        spec.ParseFromString(model.data)
        try:
            ct.models.MLModel(spec, skip_model_load=True)
        except Exception as e:
            bad.append(f"{key}: {type(e).__name__}: {e}")
        if len(UnknownFieldSet(spec)) or len(UnknownFieldSet(spec.neuralNetwork)) or not spec.IsInitialized():
            bad.append(f"{key}: fields that the specification lacks, or lacks fields")
    assert not bad, "\n".join(bad[:20])
