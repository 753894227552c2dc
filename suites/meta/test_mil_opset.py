"""A program that names no opset has that of iOS 13, and is read as one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.cases.case import fill
from harness.core.errors import UsageError
from harness.generate.draw_engines import Prng
from suites.mil import dialect as mil
from suites.passes import dialect as passes


def program() -> Any:
    coremltools = pytest.importorskip("coremltools")
    from coremltools.converters.mil import Builder as mb

    @mb.program(input_specs=[mb.TensorSpec(shape=(2, 3))])
    def prog(x: Any) -> Any:
        return mb.reduce_sum(x=mb.relu(x=x), axes=[1])

    assert prog.functions["main"].opset_version is coremltools.target.iOS13
    return prog


def test_a_program_without_an_opset_is_run() -> None:
    prog = program()
    assert mil.parse(prog).meta["opset"] == "ios13"
    (y,) = mil.run_model(prog, {"x": np.array([[1.0, -2.0, 3.0], [-1.0, 0.5, 0.25]], np.float32)})
    assert y.tolist() == [4.0, 0.75]


def test_what_ios15_brought_is_not_in_it() -> None:
    assert mil.effective("conv", "ios13") is mil.effective("conv", "ios15")
    for op in ("affine", "resample"):
        assert mil.effective(op, "ios15").op == op
        for opset in ("ios13", "ios14"):
            with pytest.raises(UsageError, match=f"no {op} at opset {opset}"):
                mil.effective(op, opset)


def test_a_pass_sees_programs_without_an_opset() -> None:
    v = passes.versions["passes/fuse_linear_bias/1"]
    assert "ios13" in v.opsets
    case = fill(v, v.draw(Prng(5), "ios13"))
    assert case.expected is not None, case.problem
    newer = fill(v, replace(case.inst, opset="ios15"))
    for a, b in zip(case.expected[0], newer.expected[0]):
        assert np.array_equal(a.value, b.value)
