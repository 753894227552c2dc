"""``opconform.check`` and ``conforms``: what a kernel is given, what its results mean, and the examples."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from harness.core.errors import FormatError, UsageError
from opconform import NonConformance, check, conforms

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "kernels"


def relu(x):
    return np.maximum(x, np.zeros((), x.dtype))


def softmax(x, axis):
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(axis, keepdims=True, initial=-np.inf))
    return (e / e.sum(axis, keepdims=True)).astype(x.dtype)


def failing(op, kernel, **options):
    """The text of what ``check`` raises."""
    with pytest.raises(NonConformance) as found:
        check(op, kernel, **{"seconds": 2.0, **options})
    assert found.value.conformance.failures
    return str(found.value)


def test_right_kernel_passes_and_is_counted():
    found = check("onnx/Softmax-13", softmax, dtypes=("f32", "f16", "bf16"), cases=20)
    assert found.op == "onnx/Softmax/13"
    assert sum(found.verdicts.values()) == 60
    assert found.verdicts["agree"] > 40


def test_wrong_axis_is_shown_on_the_smallest_instance():
    text = failing("onnx/Softmax-13", lambda x, axis: softmax(x, -1), dtypes=("f32",))
    assert "mismatch" in text
    assert "float[2,1] input" in text or "float[1,2] input" in text, text


def test_the_line_of_a_failure_runs_it_again():
    text = failing("onnx/Relu-14", lambda x: -x, dtypes=("f32",))
    line = next(x for x in text.splitlines() if "instance='" in x)
    told = line.split("instance='")[1].rstrip("')")
    assert "mismatch" in failing("onnx/Relu-14", lambda x: -x, instance=told)
    assert check("onnx/Relu-14", relu, instance=told).verdicts == {"agree": 1}


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (lambda x: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda x: sys.exit(3), "SystemExit: 3"),
        (lambda x: relu(x)[..., None], "shape"),
        (lambda x: relu(x).astype(np.float64), "expected f32"),
        (lambda x: None, "missing"),
        (lambda x: (), "0 outputs, expected 1"),
        (lambda x: object(), "TypeError: the kernel returned object, expected an array"),
        (lambda: None, "TypeError: "),
    ],
)
def test_exceptions_and_wrong_forms_are_failures(kernel, words):
    assert words in failing("onnx/Relu-14", kernel, dtypes=("f32",), cases=5)


def test_kernel_gets_absent_operands_as_none_and_attributes_with_their_defaults():
    seen = []

    def clip(x, low, high):
        seen.append((low is None, high is None))
        raise NotImplementedError

    with pytest.raises(UsageError, match="no instance was judged"):
        check("onnx/Clip-13", clip, isolate=False)
    assert {(True, True), (False, False)} <= set(seen)
    given = []

    def gemm(a, b, c=0, **keywords):
        given.append(keywords)
        raise NotImplementedError

    with pytest.raises(UsageError, match="NotImplementedError"):
        check("onnx/Gemm-13", gemm, isolate=False)
    assert {tuple(sorted(k)) for k in given} == {("alpha", "beta", "transA", "transB")}
    assert any(k["alpha"] == 1.0 for k in given)


def dies(x):
    if x.ndim == 2:
        os.kill(os.getpid(), signal.SIGSEGV)
    return relu(x)


def hangs(x):
    if x.ndim == 2:
        time.sleep(600)
    return relu(x)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a fork is asked for with isolate=True")
def test_a_crash_is_a_failure_on_the_smallest_instance_and_the_check_goes_on():
    with pytest.raises(NonConformance) as e:
        check("onnx/Relu-14", dies, dtypes=("f32",), cases=30)
    verdicts = e.value.conformance.verdicts
    assert verdicts["crashed"] > 1
    assert verdicts["agree"] > 5
    assert "kernel dies: crashed" in str(e.value)
    assert "killed by SIGSEGV (in run)" in str(e.value)
    assert "# X: [" in str(e.value)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a fork is asked for with isolate=True")
def test_a_hang_is_a_failure_and_the_third_ends_the_check():
    start = time.monotonic()
    with pytest.raises(NonConformance) as e:
        check("onnx/Relu-14", hangs, dtypes=("f32",), cases=200, deadline=0.5)
    assert time.monotonic() - start < 60
    assert e.value.conformance.verdicts["timed_out"] == 3
    assert "no answer within 0.5 s in run" in str(e.value)
    assert "the rest was not asked after 3 hangs" in str(e.value)


def test_an_isolated_kernel_keeps_its_process_and_what_it_refers_to():
    pids = []

    def counting(x):
        pids.append(os.getpid())
        return relu(x) if len(set(pids)) == 1 and pids[0] != parent else None

    parent = os.getpid()
    check("onnx/Relu-14", counting, dtypes=("f32",), isolate=True)
    assert pids == []


def test_variadic_operand_is_a_list_and_a_type_attribute_a_numpy_dtype():
    check("onnx/Concat-13", lambda inputs, axis: np.concatenate(inputs, axis), dtypes=("f32", "bool"))
    seen = set()

    def cast(x, to, saturate):
        seen.add(to)
        raise NotImplementedError

    with pytest.raises(UsageError):
        check("onnx/Cast-19", cast, isolate=False)
    assert {np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)} <= seen


def test_several_outputs_and_surplus_ones():
    def top_k(x, k, axis, largest, sorted):
        order = np.argsort(x, axis=axis, kind="stable")
        if largest:
            order = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
            order = x.shape[axis] - 1 - order
        order = np.split(order, [int(k[0])], axis)[0]
        return np.take_along_axis(x, order, axis), order, "not asked for"

    check("onnx/TopK-11", top_k, dtypes=("i32",))


def test_a_kernel_that_writes_to_its_operand_is_judged_by_its_result():
    def in_place(x):
        x[x < 0] = 0
        return x

    check("onnx/Relu-14", in_place, dtypes=("f32",))


def test_accumulation_type_is_declared_and_the_bound_follows():
    def reduce_sum(x, axes, keepdims, noop_with_empty_axes):
        """Sums kept in the element type, one element after the other."""
        if axes is None or not axes.size:
            if noop_with_empty_axes:
                return x
            axes = np.arange(x.ndim)
        for axis in axes.tolist():
            shape = [1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)]
            running = np.add.accumulate(x, axis, dtype=x.dtype)
            x = running.take([-1], axis) if x.shape[axis] else np.zeros(shape, x.dtype)
        return x if keepdims else x.squeeze(tuple(axes.tolist()))

    asked = {"dtypes": ("f16",), "cases": 200}
    check("onnx/ReduceSum-13", reduce_sum, acc={"f16": "f16"}, **asked)
    assert "smallest passing tolerance" in failing("onnx/ReduceSum-13", reduce_sum, **asked)


def test_elements_that_the_specification_leaves_open_are_not_called_wrong():
    def reduce_max(x, axes, keepdims, noop_with_empty_axes):
        if axes is None or not axes.size:
            if noop_with_empty_axes:
                return x
            axes = np.arange(x.ndim)
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        return np.fmax.reduce(x, tuple(axes.tolist()), keepdims=bool(keepdims), initial=lowest)  # which ignores NaN

    assert check("onnx/ReduceMax-20", reduce_max, dtypes=("f32",), cases=100).verdicts["ambiguous"]


def test_invalid_instances_run_on_demand():
    text = failing("onnx/Softmax-13", lambda x, axis: x * 0 if axis >= x.ndim else softmax(x, axis), invalid=True)
    assert "wrongly accepted" in text
    assert "breaks the rule" in text


class Foreign:
    """An array that speaks DLPack and nothing else."""

    def __init__(self, a):
        self.a = a

    def __dlpack__(self, **keywords):
        return self.a.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


def test_results_and_operands_may_be_of_another_library():
    check("onnx/Relu-14", lambda x: Foreign(np.asarray(relu(x.a))), dtypes=("f32", "i32"), device=Foreign)


@pytest.mark.parametrize(
    ("op", "options", "words"),
    [
        ("Softmax-13", {}, "expected DIALECT/OP-VERSION"),
        ("onnx/Softmaxx-13", {}, "did you mean Softmax-13"),
        ("onnx/Relu-14", {"dtypes": ("float32",)}, "element type 'float32'"),
        ("onnx/Relu-14", {"dtypes": ("bool",)}, "drew no instance of bool; there are bf16"),
        ("onnx/Relu-14", {"device": "tensorflow"}, "expected a callable or LIBRARY"),
        ("onnx/Relu-14", {"opset": 3}, "expected an opset among 14"),
        ("onnx/If-13", {}, "an attribute is a graph"),
    ],
)
def test_a_request_that_makes_no_sense_is_one_line(op, options, words):
    with pytest.raises(UsageError, match=words.replace("(", r"\(")) as found:
        check(op, relu, cases=2, **options)
    assert "\n" not in str(found.value)


def test_an_instance_that_is_none_is_a_format_error():
    with pytest.raises(FormatError, match="not JSON"):
        check("onnx/Relu-14", relu, instance="{")


def test_the_newest_version_is_taken_where_none_is_named():
    assert check("onnx/Relu", relu, dtypes=("f32",), cases=2).op == "onnx/Relu/14"


TESTS = """
import numpy as np
from opconform import conforms

@conforms("onnx/Relu-14", dtypes=("f32", "i8"))
def test_right(x):
    return np.maximum(x, np.zeros((), x.dtype))

@conforms("onnx/Relu-14", seconds=1)
def test_wrong(x):
    return x
"""


def test_conforms_makes_a_test_for_each_element_type(tmp_path):
    (tmp_path / "test_mine.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "."]
    got = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    for line in ("test_right[f32] PASSED", "test_right[i8] PASSED", "test_wrong FAILED", "1 failed, 2 passed"):
        assert line in got, got
    assert "raise NonConformance" not in got, "the code of check is not shown"
    assert "onnx/Relu/14 at opset" in got


def test_conforms_refuses_a_string_of_types():
    with pytest.raises(UsageError, match="expected a tuple"):
        conforms("onnx/Relu-14", dtypes="f32")


@pytest.mark.parametrize("example", ["softmax_numpy.py", "layer_norm_torch.py"])
def test_example_passes(example):
    if "torch" in example and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / example)]
    got = subprocess.run(command, cwd=EXAMPLES.parents[1], capture_output=True, text=True)
    assert got.returncode == 0, got.stdout + got.stderr
    assert "3 passed" in got.stdout


def test_example_with_a_planted_defect_is_caught():
    command = [sys.executable, str(EXAMPLES / "wrong_pool.py")]
    got = subprocess.run(command, cwd=EXAMPLES.parents[1], capture_output=True, text=True)
    assert got.returncode == 1, got.stderr
    assert "expected nan" in got.stdout
    assert "[1,1," in got.stdout or "nan" in got.stdout.split("# X: ")[1]
