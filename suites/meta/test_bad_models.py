"""A model that is damaged, or run on what it does not take, is told in one line: nothing else ever comes out."""

from __future__ import annotations

import signal
from random import Random
from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case, draw_case
from harness.core.errors import OpconformError, UsageError
from harness.core.quiet import quiet
from harness.declare import registry

KEYS = {
    "onnx": ("onnx/Conv/11", "onnx/If/25", "onnx/Loop/25", "onnx/QuantizeLinear/25", "onnx/SequenceInsert/11"),
    "tflite": ("tflite/CONV_2D/3", "tflite/WHILE/1", "tflite/ADD/1q", "tflite/STRIDED_SLICE/2", "tflite/LSTM/2"),
    "nn": ("nn/convolution/1", "nn/loop/1", "nn/gru/1", "nn/batchnorm/1", "nn/sliceDynamic/1"),
    "mil": ("mil/conv/ios15", "mil/cond/ios15", "mil/lstm/ios17", "mil/list_write/ios15", "mil/cast/ios17"),
}
DAMAGES = 40  # of each model
SECONDS = 20


def model(key: str, seed: int = 3) -> tuple[bytes, dict[str, Any], dict[str, str]]:
    """One instance as a model, its inputs, and their names by slot."""
    d = registry.dialect(key.split("/")[0])
    v = d.versions[key]
    case: Case = draw_case(v, v.opsets[-1], seed, 0, invalid=False)
    m = d.build([case.inst], [case.draws[0]])
    arrays = case.draws[0]
    given = {n: arrays[slot] if i is None else arrays[slot][i] for group in m.inputs for n, slot, i in group}
    return m.data, given, {slot: n for group in m.inputs for n, slot, _ in group}


def damaged(data: bytes, r: Random) -> bytes:
    b, at = bytearray(data), r.randrange(len(data))
    how = r.randrange(4)
    if how == 0:
        return bytes(b[:at])
    if how == 1:
        b[at] ^= 1 << r.randrange(8)
    elif how == 2:
        del b[at : at + r.randrange(1, 16)]
    else:
        b[at] = r.choice((0, 1, 127, 128, 255))
    return bytes(b)


def late(*_: object) -> None:
    raise TimeoutError(f"still at it after {SECONDS} s")


@pytest.mark.parametrize("key", [key for keys in KEYS.values() for key in keys])
def test_a_damaged_model_runs_or_is_reported(key: str) -> None:
    data, given, _ = model(key)
    d, bad = registry.dialect(key.split("/")[0]), []
    before = signal.signal(signal.SIGALRM, late)
    for i in range(DAMAGES):
        signal.alarm(SECONDS)
        try:
            with quiet:
                d.run_model(damaged(data, Random(i)), given)
        except OpconformError as e:
            if "\n" in str(e) or len(str(e)) > 2000:
                bad.append(f"{i}: {len(str(e))} characters: {str(e)[:300]!r}")
        except Exception as e:
            bad.append(f"{i}: {type(e).__name__}: {str(e)[:200]}")
        finally:
            signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    assert not bad, "\n".join(bad)


INPUTS: dict[str, tuple[str, str, Any, str]] = {
    "of objects": ("tflite/CONV_2D/3", "input", np.array([object()]), "expected f32, got ndarray: an array of objects"),
    "of another type": ("onnx/Conv/11", "X", np.zeros(3, np.int8), ", got i8"),
    "of no type of ours": ("mil/cast/ios17", "x", np.zeros(3, "M8[s]"), "no dtype of ours for NumPy datetime64[s]"),
    "that is text": ("nn/batchnorm/1", "x", "y", "expected f32, got str: could not convert string to float: 'y'"),
    "that is none": ("mil/lstm/ios17", "x", None, ", got NoneType: no value"),
}


@pytest.mark.parametrize("what", INPUTS)
def test_an_input_that_is_not_of_the_model_is_reported(what: str) -> None:
    key, slot, x, told = INPUTS[what]
    data, given, names = next(m for m in (model(key, seed) for seed in range(99)) if slot in m[2])
    run, name = registry.dialect(key.split("/")[0]).run_model, names[slot]
    with pytest.raises(UsageError, match=f"^input {name}: expected ") as e:
        run(data, {**given, name: x})
    assert told in str(e.value)
    assert "\n" not in str(e.value)
    with pytest.raises(UsageError, match=r"^no graph input 'other', expected "):
        run(data, {**given, "other": np.zeros(1)})
    with pytest.raises(UsageError, match=f"^graph input '{name}' is missing"):
        run(data, {n: v for n, v in given.items() if n != name})
    with pytest.raises(UsageError, match=r"^graph takes "):
        run(data, [*given.values(), *[np.zeros(1)] * 9])
