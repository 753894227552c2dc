"""What somebody has edited is held against the schema before a backend is blamed for refusing it."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cases.case import Case, draw_case
from harness.core.errors import FormatError, RuleError, UsageError
from harness.core.instance import Instance
from harness.declare import registry
from harness.declare.invalid import draw_invalid, invalid_generators_of
from harness.declare.validation import validation_error
from harness.generate.draw_engines import Prng, case_seed
from harness.ledger.corpus import saved
from harness.ledger.loader import load_ledger
from harness.session.replay import find_case, replay, replay_neighbours, usable

DRAWN = 12
CLIP, CONCAT, CONV = "onnx/Clip/13", "onnx/Concat/13", "onnx/Conv/11"


@pytest.mark.parametrize("name", sorted(registry.names()))
def test_what_is_drawn_fits(name: str) -> None:
    bad = []
    for v in registry.dialect(name).versions.values():
        for i in range(DRAWN):
            case = draw_case(v, v.opsets[i % len(v.opsets)], 12, i, invalid=False, lazy=True)
            why = validation_error(v, case.inst)
            if why is not None:
                bad.append(f"{v.key} case {i}: {why}")
    assert not bad, "\n".join(bad[:20])


def test_what_is_saved_fits() -> None:
    found = saved(load_ledger())
    bad = [f"{i.key}: {why}" for i in found if (why := validation_error(registry.version_of(i), i)) is not None]
    for inst in found:
        case = Case(registry.version_of(inst), inst, 0)
        try:
            for arrays in case.draws if inst.rule is None else ():
                case.version.check(case.version.dialect.call_of(inst, arrays, case.version))
        except RuleError as e:
            bad.append(f"{inst.key}: {e}")
    assert len(found) > 500, bad
    assert not bad, bad


def instance(key: str) -> dict[str, Any]:
    v = registry.dialect(key.split("/")[0]).versions[key]
    seed = next(s for s in range(99) if len(draw_case(v, v.opsets[0], s, 0, invalid=False).inst.args) >= 1)
    return json.loads(draw_case(v, v.opsets[0], seed, 0, invalid=False).inst.dumps())


def edit(key: str, change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    form = copy.deepcopy(instance(key))
    change(form)
    return form


F32 = {"dtype": "f32", "shape": [2]}
EDITS: dict[str, tuple[str, Callable[[dict[str, Any]], object], str]] = {
    "an unknown operand": (
        CLIP,
        lambda o: o["args"].update(bogus=F32),
        "args: expected slots among input min max, got bogus",
    ),
    "an operand missing": (
        CLIP,
        lambda o: o["args"].pop("input"),
        "args: expected input, which is not optional, got none",
    ),
    "a list for one": (
        CLIP,
        lambda o: o["args"].update(min=[F32]),
        "args: min: expected one argument, got a list of arguments",
    ),
    "one for a list": (
        CONCAT,
        lambda o: o["args"].update(inputs=F32),
        "args: inputs: expected a list of arguments, got one argument",
    ),
    "a type that is not taken": (
        CONV,
        lambda o: o["args"]["X"].update(dtype="i32"),
        "args: X: expected f64 or f32 or f16, got i32",
    ),
    "two types where one is asked for": (
        CONV,
        lambda o: (o["args"]["X"].update(dtype="f32"), o["args"]["W"].update(dtype="f64")),
        "args: W: expected f32, which X has, got f64",
    ),
    "a negative extent": (
        CLIP,
        lambda o: o["args"]["input"].update(shape=[-1]),
        "args: input: expected extents from 0 on, got [-1]",
    ),
    "an unknown attribute": (
        CONV,
        lambda o: o["attrs"].update(bogus=1),
        "attrs: expected names among auto_pad dilations group kernel_shape pads strides, got bogus",
    ),
    "an attribute of another type": (
        CONV,
        lambda o: o["attrs"].update(group="2"),
        "attrs: group: expected int, got '2'",
    ),
    "a word that is not stated": (
        CONV,
        lambda o: o["attrs"].update(auto_pad="SAME"),
        "attrs: auto_pad: expected NOTSET or SAME_UPPER or SAME_LOWER or VALID, got SAME",
    ),
    "a list of another type": (
        CONV,
        lambda o: o["attrs"].update(strides=[1, 1.5]),
        "attrs: strides: expected ints, got [1, 1.5]",
    ),
    "one number for a list": (CONV, lambda o: o["attrs"].update(strides=1), "attrs: strides: expected ints, got 1"),
    "an attribute missing": (
        CONCAT,
        lambda o: o["attrs"].pop("axis"),
        "attrs: expected axis, which is required, got none",
    ),
    "too many outputs": (CLIP, lambda o: o.update(outs=2), "outs: expected a number up to 1, got 2"),
    "extents below zero": (
        CLIP,
        lambda o: o["args"]["input"].update(shape=[2, -1]),
        "args: input: expected extents from 0 on, got [2, -1]",
    ),
    "extents without a size": (
        CLIP,
        lambda o: o["args"]["input"].update(shape=[1 << 40, 1 << 40]),
        "args: input: expected a shape that has a size of 64 bits, got [1099511627776, 1099511627776]",
    ),
    "too many axes": (
        CLIP,
        lambda o: o["args"]["input"].update(shape=[1] * 17),
        "args: input: expected at most 16 axes, got 17",
    ),
    "a recipe that is none": (
        CLIP,
        lambda o: o["args"]["input"].update(recipe="uniform:x:y"),
        "args: input: recipe uniform:x:y: expected a number, got 'x'",
    ),
    "too few values": (
        CLIP,
        lambda o: o["args"]["input"].update(shape=[3], values=[1.0]),
        "args: input: values: expected 3 for shape [3], got 1",
    ),
    "values of another type": (
        CLIP,
        lambda o: o["args"]["input"].update(shape=[1], values=["x"]),
        "args: input: values: expected elements of f32, got 'x'",
    ),
    "values beyond the type": (
        "onnx/Cast/13",
        lambda o: o["args"]["input"].update(dtype="u8", shape=[1], values=[300]),
        "args: input: values: expected elements of u8, got 300",
    ),
    "another kind": (
        CLIP,
        lambda o: o["args"]["input"].update(kind="seq", items=[]),
        "args: input: expected a tensor, got a seq",
    ),
    "quantisation where there is none": (
        CLIP,
        lambda o: o["args"]["input"].update(quant={"scale": [1.0]}),
        "args: input: quant: expected none in onnx, got {'scale': [1.0]}",
    ),
    "a scale of zero": (
        "tflite/ABS/2q",
        lambda o: o["args"]["x"]["quant"].update(scale=[0.0]),
        "args: x: quant: scale: expected positive numbers, got [0.0]",
    ),
    "zero points beyond the type": (
        "tflite/ABS/2q",
        lambda o: o["args"]["x"]["quant"].update(zero_point=[999]),
        "args: x: quant: zero_point: expected values of i8, got [999]",
    ),
    "too few declared outputs": (
        "tflite/CAST/1",
        lambda o: o["attrs"].update({"@outputs": []}),
        "attrs: @outputs: expected 1, got 0",
    ),
    "declared outputs that are none": (
        "tflite/CAST/1",
        lambda o: o["attrs"].update({"@outputs": 7}),
        "attrs: @outputs: expected a list of types, got 7",
    ),
    "another run of another type": (
        CLIP,
        lambda o: o.update(format=2, reruns=[{"input": {**o["args"]["input"], "dtype": "i8"}}]),
        "reruns: input: expected f",
    ),
    "no list of arguments": (
        CONCAT,
        lambda o: o["args"].update(inputs=[]),
        "args: expected inputs, which is not optional, got none",
    ),
    "no operand of a block": (
        "onnx/If/25",
        lambda o: o["args"].pop("cond"),
        "args: expected cond, which is not optional, got none",
    ),
}


@pytest.mark.parametrize("what", EDITS)
def test_a_wrong_edit_is_reported_and_no_backend_runs(what: str, tmp_path: Path) -> None:
    key, change, told = EDITS[what]
    form = edit(key, change)
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(form))
    with pytest.raises(UsageError) as e:
        find_case(str(path))
    assert str(e.value).startswith(f"{key}: {told}")
    (tmp_path / "neighbours.json").write_text(json.dumps({"at": 0, "instances": [form, instance(key)]}))
    with pytest.raises(UsageError) as e:
        replay_neighbours(tmp_path / "neighbours.json", ["onnxruntime"])
    assert str(e.value).startswith(f"{key}: {told}")


SHAPES: dict[str, tuple[str, Callable[[dict[str, Any]], object], str]] = {
    "a bound that is no scalar": (
        CLIP,
        lambda o: o["args"].update(min={**o["args"]["input"], "shape": [2]}),
        "shapes-agree: lo: expected rank 0, got shape (2,)",
    ),
    "a bias of another length": ("onnx/Gemm/13", lambda o: o["args"]["C"].update(shape=[7, 7, 7]), "c-broadcasts"),
    "an axis beyond the rank": ("onnx/Softmax/13", lambda o: o["attrs"].update(axis=17), "axis-in-range"),
    "an output shape of another rank": (
        "onnx/ConvTranspose/11",
        lambda o: o["attrs"].update(output_shape=[3] * 7),
        "one-per-axis: output shape [3, 3, 3, 3, 3, 3, 3] for ",
    ),
    "what no meaning has a word for": (
        "onnx/Reshape/14",
        lambda o: o["attrs"].update(allowzero=7),
        "operands-fit: expected operands and attributes as stated (ONNX Reshape-5, ",
    ),
    "more than there is memory": (
        "onnx/Tile/13",
        lambda o: (o["args"]["input"].update(shape=[2]), o["args"]["repeats"].update(shape=[1], values=[1 << 44])),
        "fits-memory: expected what this machine can hold, got ",
    ),
    "a view of more than there is memory": (
        "onnx/Expand/13",
        lambda o: (o["args"]["input"].update(shape=[1]), o["args"]["shape"].update(shape=[2], values=[10**6, 10**6])),
        "fits-memory: expected what this machine can hold, got ",
    ),
    "a window that takes for ever": (
        "nn/pooling3d.AVERAGE/1",  # whose padding counts
        lambda o: o["attrs"].update(kernelHeight=1 << 40, paddingType="SAME", countExcludePadding=False),
        "expected a window of at most 268435456 elements, got ",
    ),
}


@pytest.mark.parametrize("what", SHAPES)
def test_shapes_that_no_generator_drew_are_reported_and_no_backend_runs(what: str) -> None:
    key, change, told = SHAPES[what]
    with pytest.raises(UsageError, match="^" + re.escape(f"{key}: ")) as e:
        replay(Instance.from_json(edit(key, change)), ["onnxruntime"])
    assert told in str(e.value)
    assert len(str(e.value)) < 800


def test_an_unread_field_is_reported() -> None:
    with pytest.raises(FormatError, match=r"instance: expected fields among args attrs .*, got extra"):
        Instance.from_json(edit(CLIP, lambda o: o.update(extra=1)))
    with pytest.raises(FormatError, match=r"instance: args: input: expected fields among const dtype .*, got shapes"):
        Instance.from_json(edit(CLIP, lambda o: o["args"]["input"].update(shapes=[2])))


def test_a_rule_that_the_instance_does_not_break_is_reported() -> None:
    with pytest.raises(UsageError, match=r"rule: expected one that the instance breaks, got 'no-such-rule'$"):
        replay(Instance.from_json(edit(CLIP, lambda o: o.update(rule="no-such-rule"))), ["onnxruntime"])
    for inst in saved(load_ledger()):
        if inst.rule is not None:
            assert usable(inst).inst is inst


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("dialect", 3, "dialect: expected a name, got 3"),
        ("version", [1], r"version: expected a number or a name, got \[1\]"),
        ("args", 7, "args: expected an object, got 7"),
        ("rule", 7, "rule: expected a name, got 7"),
        ("outs", "one", 'outs: expected a whole number, 1 or more, got "one"'),
        ("args", {"input": {**F32, "recipe": 7}}, "args: input: recipe: expected text, got 7"),
        ("args", {"input": {**F32, "kind": "box"}}, 'args: input: kind: expected one of tensor .*, got "box"'),
        ("args", {"input": {**F32, "const": "yes"}}, 'args: input: const: expected true or false, got "yes"'),
        ("args", {"input": {"shape": [2]}}, 'args: input: expected also dtype, got "shape"'),
        ("attrs", {"a": {"c": [1]}}, r"attrs: a: c: expected a real and an imaginary part, got \[1\]"),
        (
            "attrs",
            {"a": {"array": "f32", "shape": [2], "hex": "00"}},
            'attrs: a: hex: expected 8 bytes of data, got "00"',
        ),
        ("attrs", {"a": [{"b": 1}]}, r"attrs: a: 0: expected a value, or an object with one of the fields f .*"),
    ],
)
def test_a_field_of_another_form_is_reported(field: str, value: object, told: str) -> None:
    with pytest.raises(FormatError, match=f"^instance: {told}$"):
        Instance.from_json(edit(CLIP, lambda o: o.update({field: value})))


def test_validation_skips_instances_that_break_a_rule_on_purpose() -> None:
    v = registry.dialect("onnx").versions[CONV]
    for rule in invalid_generators_of(v):
        for i in range(8):
            inst = draw_invalid(v, rule, Prng(case_seed(1, v.key, i)))
            assert inst is None or validation_error(v, inst) is None
