"""Every attribute and every operand has an effect in the reference, or it is said here why it has none.

What changes nothing in any draw is either read wrongly (a mode that the reference ignores: a model that uses it is
evaluated wrongly in silence) or drawn so that it cannot matter (a threshold that nothing reaches: a backend that
ignores it passes in silence).  Each is changed in drawn instances until the results differ or the reference refuses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case
from harness.core.instance import Arg, Instance
from harness.core.quiet import quiet
from harness.declare import OpVersion, registry
from harness.declare.schema import Attr
from harness.generate.draw_engines import Prng, case_seed
from suites.programs import ProgramDialect

DRAWS = 60
PATIENCE = 6  # times as many draws for what shows no effect in so many
STILL = 8  # draws in which what is said to have no effect is looked at
# programs have no operands of their own
SYSTEMS = [n for n in registry.names() if not isinstance(registry.dialect(n), ProgramDialect)]

_ZERO = "a variable tensor begins at zero, whatever the instance says; further calls show what is left in it"
_TYPE = "its type and shape alone are read"
_HINT = "a hint to the implementation"
_HASH = "the hash is the implementation's: what must hold of it is judged"
_RIGHT = "asks for a check that a valid instance passes"

# dialect/op/version and name -> why changing it changes nothing
WITHOUT_EFFECT = {
    "mil/*gather*/* validate_indices": _RIGHT,
    "mil/*scatter*/* validate_indices": _RIGHT,
    "mil/make_list/* dynamic_length": "valid instances write within the length",
    "mil/make_list/* elem_shape": "an open shape of what is written later",
    "mil/topk/* return_indices": "the number of outputs says it already",
    "mil/topk/* sort": "without it any order is right",
    "mil/complex_shape/* x": _TYPE,
    "mil/shape/* x": _TYPE,
    "mil/fill_like/* ref_tensor": _TYPE,
    "mil/reshape_like/* ref_tensors": _TYPE,
    "mil/list_length/* ls": _TYPE,
    "mil/coreml_update_state/* state": "is overwritten",
    "nn/categoricalDistribution/* eps": "keeps a logarithm finite; the distribution is judged",
    "nn/convolution.isDeconvolution/* dilationFactor": "NeuralNetwork.proto: ignored for deconvolution",
    "nn/convolution/* outputShape": "of deconvolution alone",
    "nn/pooling.*/* avgPoolExcludePadding": "of average pooling alone",
    "nn/pooling3d.*/* countExcludePadding": "of average pooling alone",
    "nn/reduce.*/* epsilon": "of LOGSUM alone",
    "nn/unary.*/* alpha": "of POWER and THRESHOLD alone",
    "nn/unary.*/* epsilon": "of RSQRT, INVERSE and LOG alone",
    "nn/upsample.NN/* linearUpsampleMode": "of bilinear upsampling alone",
    "nn/*Like*/* x": _TYPE,
    "nn/*Like/* like": _TYPE,
    "nn/broadcastToLike/* like": _TYPE,
    "nn/crop/* like": _TYPE,
    "nn/fillLike/* x": _TYPE,
    "nn/getShape/* x": _TYPE,
    "onnx/*/* consumed_inputs": _HINT,
    "onnx/BatchNormalization/* momentum": "of training alone",
    "onnx/BatchNormalization/* spatial": "of training alone: one value a channel in these versions",
    "onnx/Dropout/* ratio": "of training alone",
    "onnx/Dropout/* seed": "what is dropped is judged by distribution",
    "onnx/*/* output_sequence": "the number of outputs says it already",
    "onnx/LinearAttention/* chunk_size": _HINT,
    "onnx/LinearClassifier/* multi_class": "both ways choose one label; what may differ of the scores is open",
    "onnx/TopK/* sorted": "without it any order is right",
    "onnx/TreeEnsemble*/* nodes_hitrates": _HINT,
    "onnx/CastLike/* target_type": _TYPE,
    "onnx/EyeLike/* input": _TYPE,
    "onnx/Random*Like/* input": _TYPE,
    "onnx/SequenceLength/* input_sequence": _TYPE,
    "onnx/OptionalHasElement/* input": _TYPE,
    "onnx/Shape/* data": _TYPE,
    "onnx/Size/* data": _TYPE,
    "tflite/*/* asymmetric_quantize_inputs": "how a hybrid kernel quantises; the bound reads it",
    "tflite/ADD/* pot_scale_int16": "how a kernel rescales",
    "tflite/SUB/* pot_scale_int16": "how a kernel rescales",
    "tflite/*LSTM/* kernel_type": "tells two operators apart",
    "tflite/BASIC_LSTM/* proj_clip": "of a projection, which the basic cell has not",
    "tflite/DEPTHWISE_CONV_2D/* depth_multiplier": "schema.fbs: redundant, ignored",
    "tflite/HASHTABLE/* table_id": "a name",
    "tflite/MaxUnpooling2D/* padding": "of the pooling before; the kernel computes extents and places without it",
    "tflite/SPARSE_TO_DENSE/* validate_indices": _RIGHT,
    "tflite/STABLEHLO_COMPOSITE/* composite_*": "what the composition is called; the decomposition is run",
    "tflite/STABLEHLO_COMPOSITE/* name": "what the composition is called; the decomposition is run",
    "tflite/STABLEHLO_COMPOSITE/* version": "what the composition is called; the decomposition is run",
    "tflite/STABLEHLO_GATHER/* indices_are_sorted": _HINT,
    "tflite/STABLEHLO_SCATTER/* *_indices": _HINT,
    "tflite/STABLEHLO_SCATTER/* indices_are_sorted": _HINT,
    "tflite/*LSTM/* *_state": _ZERO,
    "tflite/*RNN/* *hidden_state": _ZERO,
    "tflite/SVDF/* activation_state": _ZERO,
    "tflite/LSH_PROJECTION/* hash": _HASH,
    "tflite/LSH_PROJECTION/* input": _HASH,
    "tflite/LSH_PROJECTION/* weight": _HASH,
    "tflite/RANK/* input": _TYPE,
    "tflite/SHAPE/* input": _TYPE,
    "tflite/ZEROS_LIKE/* input": _TYPE,
}
FEW = 8  # changes below which nothing is said: what is drawn rarely or never has tests (test_drawn, test_*_reach)


def drawn(v: OpVersion, n: int) -> Iterator[Case]:
    for i in range(n):
        case = Case(v, v.draw(Prng(case_seed(9, v.key, i)), v.opsets[i % len(v.opsets)]), i)
        if case.expected is not None:
            yield case


def results(case: Case, **changed: Any) -> Any:
    """Types and bits of all results; None where the reference refuses."""
    other = Case(case.version, replace(case.inst, choices=None, **changed), case.index) if changed else case
    expected = other.expected
    return None if expected is None else [(e.dtype, plain(e.value)) for row in expected for e in row]


def plain(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.dtype, x.shape, x.tobytes() if x.dtype.kind not in "OSU" else repr(x.tolist())
    if isinstance(x, (list, tuple)):
        return [plain(y) for y in x]
    return {k: plain(y) for k, y in x.items()} if isinstance(x, dict) else repr(x)


def other_values(a: Attr, x: Any) -> list[Any]:
    """Other values of an attribute, of its type."""
    if a.type == "bool":
        return [not x]
    if a.type == "int" and type(x) is int:
        return [1 - x, x + 1] if x in (0, 1) else [x + 1]
    if a.type == "float" and isinstance(x, (int, float)):
        return [x + 0.5, -x - 1.0]
    if a.type in ("ints", "floats") and isinstance(x, list) and x:
        step = 1 if a.type == "ints" else 0.5
        flags = [[1 - y for y in x]] if set(x) <= {0, 1} else []
        return [*flags, [*x[:-1], x[-1] + step], [x[0] + step, *x[1:]]]
    if a.type == "str" and isinstance(x, str):
        return [w for w in a.enum if w != x] if a.enum else [x + "x"]
    return []


def other_data(a: Arg | list[Arg]) -> list[Any]:
    """The operand with other elements: all of them, and the last."""
    if isinstance(a, list):
        return [list(p) for p in zip(*(other_data(x) for x in a))] if a else []
    if a.items is not None:
        found = [other_data(x) for x in a.items]
        return [replace(a, items=list(p)) for p in zip(*found)] if found else []
    if a.values is None:
        return [replace(a, seed=(a.seed + 12345) % 0x7FFFFFFF)] * 2
    moved = [_moved(x, a) for x in a.values]
    return [replace(a, values=moved), replace(a, values=[*a.values[:-1], *moved[-1:]])] if moved else []


def _moved(x: Any, a: Arg) -> Any:
    if a.dtype.kind == "b":
        return not x
    if isinstance(x, str):
        return x + "x"
    return x + (1 if abs(x) < 64 else abs(x) // 2) if isinstance(x, (int, float)) and np.isfinite(x) else x


def dead(v: OpVersion, names: dict[str, str], n: int) -> dict[str, int]:
    """Names (of an attribute or an operand) whose changes changed nothing, and in how many draws they were changed."""
    left = dict.fromkeys(names, 0)
    for case in drawn(v, n):
        if not left:
            break
        case.inst.reruns = ()
        before = None
        for name in list(left):
            for changed in changes(v, case.inst, name, names[name]):
                before = results(case) if before is None else before
                left[name] += 1
                if results(case, **changed) != before:
                    del left[name]
                    break
    return left


def changes(v: OpVersion, inst: Instance, name: str, kind: str) -> Iterator[dict[str, Any]]:
    if kind == "operand":
        for other in other_data(inst.args[name]) if name in inst.args else ():
            yield {"args": {**inst.args, name: other}}
        return
    a = v.schema.attrs[name]
    given = inst.attrs.get(name, a.default)
    if given is not None:
        given = bool(given) if a.type == "bool" else list(given) if isinstance(given, tuple) else given
        for other in other_values(a, given):
            yield {"attrs": {**inst.attrs, name: other}}


def names_of(v: OpVersion) -> dict[str, str]:
    return {**dict.fromkeys(v.schema.attrs, "attribute"), **{s.name: "operand" for s in v.schema.inputs}}


def excused(v: OpVersion, name: str) -> list[str]:
    return [pattern for pattern in WITHOUT_EFFECT if fnmatchcase(f"{v.key} {name}", pattern)]


@pytest.mark.parametrize("system", SYSTEMS)
def test_everything_has_an_effect(system: str) -> None:
    bad = []
    with quiet:
        for v in registry.dialect(system).versions.values():
            names = {n: kind for n, kind in names_of(v).items() if not excused(v, n)}
            quiet_ones = [n for n, k in dead(v, names, DRAWS).items() if k >= FEW]
            if quiet_ones:  # of peepholes and the like only several steps tell: more draws before it is said
                again = dead(v, {n: names[n] for n in quiet_ones}, PATIENCE * DRAWS)
                bad += [f"{v.key} {n}: nothing in {k} changes" for n, k in again.items()]
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("system", SYSTEMS)
def test_parameters_listed_without_effect_have_none(system: str) -> None:
    """An excuse that holds for no op version any more is gone."""
    mine = {p for p in WITHOUT_EFFECT if p.startswith(f"{system}/")}
    needed: set[str] = set()
    with quiet:
        for v in registry.dialect(system).versions.values():
            names = {n: kind for n, kind in names_of(v).items() if excused(v, n)}
            for n, k in dead(v, names, STILL).items():
                needed.update(excused(v, n) if k else ())
    assert mine == needed, sorted(mine - needed)
