"""coremltools-fold notices a value that was folded although an operand is known at run time alone."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from suites.mil import plain

pytest.importorskip("coremltools")


def fold_module() -> Any:
    import harness.backends  # noqa: F401 - gives the module its worker helpers
    from harness.backends import coremltools_mil

    return coremltools_mil


@pytest.fixture(scope="module")
def fold() -> Any:
    return fold_module().Fold()


def program(op: str, shape: list[int], **args: Any) -> bytes:
    """One op over an input ``x`` of run time; arrays are constants."""
    p = plain.Program("ios15")
    p.inputs.append(["x", "f32", shape, "tensor"])
    refs = {k: p.const(v) if isinstance(v, np.ndarray) else v for k, v in args.items()}
    p.ops.append([op, refs, ["y"]])
    p.outputs.append("y")
    return p.dumps()


X = np.array([2.0, 3.0], np.float32)
MUL = {"x": {"v": "x"}, "y": np.array([5.0, 0.0], np.float32)}


def test_a_product_is_folded_from_both_operands(fold: Any) -> None:
    assert fold.run(fold.load(program("mul", [2], **MUL), "mil"), {"x": X})["y"].tolist() == [10.0, 0.0]


def _class(name: str) -> Any:
    return getattr(importlib.import_module("coremltools.converters.mil.mil.ops.defs.iOS15.elementwise_binary"), name)


def test_a_value_folded_from_one_operand_alone_is_the_answer(fold: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole result is right where all is constant."""
    mul = _class("mul")
    whole = mul.value_inference
    monkeypatch.setattr(mul, "value_inference", lambda s: s.y.val if s.x.val is None else whole(s))
    assert fold.run(fold.load(program("mul", [2], **MUL), "mil"), {"x": X})["y"].tolist() == [5.0, 0.0]


def test_elements_folded_from_one_operand_alone_are_the_answer(fold: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from coremltools.converters.mil.mil import get_new_symbol

    mul = _class("mul")
    whole = mul.value_inference

    def partly(s: Any) -> Any:
        return whole(s) if s.x.val is not None else np.array([get_new_symbol(), 7], object)

    monkeypatch.setattr(mul, "value_inference", partly)
    assert fold.run(fold.load(program("mul", [2], **MUL), "mil"), {"x": X})["y"].tolist() == [10.0, 7.0]


def test_an_extent_is_known_before_the_run(fold: Any) -> None:
    """Of a symbol, too, once the real extent stands in its place."""
    handle = fold.load(program("shape", [2, 3], x={"v": "x"}), "mil")
    assert [known["y"][0].tolist() for known in handle[2]] == [[2, 3], [2, 3]]
    assert all(known["y"][1].all() for known in handle[2])


def test_constants_are_those_of_the_model_whatever_coremltools_makes_of_them(fold: Any) -> None:
    """Type inference of a slice counts a negative end from the front, in the array that it was given."""
    args = {"begin": np.array([1], np.int32), "end": np.array([-1], np.int32), "x": {"v": "x"}}
    _, consts, _ = fold.load(program("slice_by_index", [4], **args), "mil")
    assert [c.tolist() for c in consts] == [[1], [-1]]


def test_an_op_that_is_folded_when_asked_has_no_value_without_that_of_its_operand(fold: Any) -> None:
    """reshape_like has no value inference, so the dequantize behind it has nothing to compute with."""
    p = plain.Program("ios17")
    p.inputs.append(["x", "i8", [1], "tensor"])
    ints, truth = np.array(0, np.int32), np.array(True)
    like = {"x": {"v": "x"}, "ref_tensors": {"l": [{"v": "x"}]}}
    like |= {k: {"l": [p.const(v)]} for k, v in (("begins", ints), ("ends", ints), ("end_masks", truth))}
    scale = {"scale": p.const(np.array([0.5], np.float16)), "axis": p.const(ints)}
    p.ops += [["reshape_like", like, ["r"]], ["dequantize", {"input": {"v": "r"}, **scale}, ["y"]]]
    p.outputs.append("y")
    handle = fold.load(p.dumps(), "mil")
    with pytest.raises(fold_module().Unsupported, match="dequantize has no value inference"):
        fold.run(handle, {"x": np.array([3], np.int8)})
