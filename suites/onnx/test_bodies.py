"""The function-body law: an op that the format defines by a graph of others means what that graph means.

The body is put in the node's place by ``onnx.inliner`` and run through our interpreter.  A body computes in its own
types and steps, so that floats may differ by some of our bounds; where a body says something else than the text, it is
listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import inliner

from harness.core.errors import OpconformError, RuleError
from harness.core.instance import Arg, Instance
from harness.declare import Expected, OpVersion
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.onnx import builder, dialect, notation
from suites.onnx.test_schema import tomllib

_FILE: dict[str, Any] = tomllib.loads((Path(__file__).parent / "bodies.toml").read_text())
ON_BACKENDS: dict[str, dict[str, dict[str, str | dict[str, str]]]] = _FILE.pop("backends", {})
LISTED: dict[str, dict[str, str]] = _FILE
# Rules of a node in a body, by op version, that some instances of the op break: for those the body says nothing.
BROKEN: dict[str, str] = {
    # the body reshapes to [0, 0, -1], and of a batch or a class of no element no extent can be inferred
    "onnx/SoftmaxCrossEntropyLoss/12": "zero-against-inferred",
    "onnx/SoftmaxCrossEntropyLoss/13": "zero-against-inferred",
    # the distance of the ends leaves int64, and wraps to another sign: steps without end
    "onnx/Range/27": "loop-ends",
    # groups of no channel: the body reshapes to [0, num_groups, -1], where 0 takes the batch over
    "onnx/GroupNormalization/21": "count-kept",
}
SLACK = 8  # how many of our bounds the body may be off: it rounds after every step


def defined_by_a_body() -> Iterator[OpVersion]:
    have = {
        (s.domain, s.name, s.since_version)
        for s in onnx.defs.get_all_schemas_with_history()
        if s.has_function or s.has_context_dependent_function
    }
    for v in dialect.versions.values():
        if (v.schema.domain or "", v.op, int(v.version)) in have:
            yield v


def plain(inst: Instance, v: OpVersion) -> bool:
    """Make the instance one that bodies can take: every default written out, no constants, finite numbers.

    False where it has narrow floats, in which every step of a body rounds."""
    for name, a in v.schema.attrs.items():
        if name not in inst.attrs and a.default is not None:
            inst.attrs[name] = a.default
    args: list[Arg] = [x for a in inst.args.values() for x in (a if isinstance(a, list) else [a])]
    for x in args:
        x.const = False
        if x.values is None and x.recipe in ("special", "wide", "ties", "full"):
            x.recipe = "unit"
    return not any(x.dtype.kind == "f" and x.dtype.bits < 32 for x in args)


def expanded(model: bytes, v: OpVersion) -> bytes | None:
    """The model with the body in place, or None where the inliner cannot."""
    try:
        m = inliner.inline_selected_functions(
            onnx.load_from_string(model), [(v.schema.domain or "", v.op)], inline_schema_functions=True
        )
    except Exception:  # it asserts on optional inputs left out
        return None
    return None if any(n.op_type == v.op for n in m.graph.node) else m.SerializeToString()


def close(got: Any, e: Expected) -> bool:
    if isinstance(got, list) or got is None:
        return True
    if got.shape != e.value.shape or got.dtype != e.value.dtype:
        return False
    if e.dtype.kind != "f":
        return bool((got == e.value).all())
    a, b = got.astype(np.float64), e.value.astype(np.float64)
    with np.errstate(all="ignore"):
        bound = np.asarray(e.error.bound(e.context()), np.float64)
        return bool(np.all((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= SLACK * bound)))


def expanded_cases(v: OpVersion, n: int) -> Iterator[tuple[str, bytes, list[Expected], dict[str, Any], list[str]]]:
    """Of n drawn instances those whose body can be put in place: text, model, what the op means, inputs, outputs."""
    for i in range(n):
        inst = v.draw(Prng(case_seed(20, v.key, i)), v.opsets[-1])
        if not plain(inst, v):
            continue
        arrays = arrays_of(inst)
        try:
            expected = dialect.evaluate(inst, arrays)
        except OpconformError:  # other numbers, other rules
            continue
        types = [builder.type_of(e.value, e.dtype) for e in expected]
        if None in types:
            continue
        model = builder.build([inst], [arrays], [types])
        body = expanded(model.data, v)
        if body is None:
            continue
        fed = {n: arrays[s] if k is None else arrays[s][k] for n, s, k in model.inputs[0]}
        if not says_nothing(v, body, fed):
            yield notation.text(inst), body, expected, fed, model.outputs[0]


def says_nothing(v: OpVersion, body: bytes, fed: dict[str, Any]) -> bool:
    """Does a node of the body break the rule that ``BROKEN`` names for the op version?"""
    if v.key not in BROKEN:
        return False
    try:
        dialect.run_model(body, fed)
    except RuleError as e:
        return e.rule == BROKEN[v.key]
    return False


def differences(v: OpVersion, n: int) -> tuple[int, list[str]]:
    """How many instances were compared, and those that differ."""
    seen, bad = 0, []
    for text, body, expected, fed, _ in expanded_cases(v, n):
        seen += 1
        try:
            fine = all(close(g, e) for g, e in zip(dialect.run_model(body, fed), expected))
        except (OpconformError, KeyError) as e:
            bad.append(f"{e}\n{text}")
            continue
        if not fine:
            bad.append(text)
    return seen, bad


BODIES = sorted(defined_by_a_body(), key=lambda v: v.key)


@pytest.mark.parametrize("v", BODIES, ids=lambda v: f"{v.op}-{v.version}")
def test_an_op_means_what_its_body_means(v: OpVersion) -> None:
    listed = str(v.version) in LISTED.get(v.op, {})
    for n in (240, 1200) if listed else (16,):  # few instances of some op have a body that can be compared
        _, bad = differences(v, n)
        if bad:
            break
    if listed:
        assert bad, "listed in bodies.toml, but the body agrees"
    else:
        assert not bad, bad[0]


def test_most_bodies_are_compared() -> None:
    assert len(BODIES) >= 70
    assert sum(differences(v, 8)[0] > 0 for v in BODIES) >= 65
