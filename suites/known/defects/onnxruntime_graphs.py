"""What comes where a difference is listed (``harness/ledger/defect_models.py``): ONNX Runtime, random graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.case import Case
from harness.declare import Expected, registry
from harness.ledger.defect_models import Given
from harness.tolerance import ulp

Outputs = list[Any] | None


def _normalised(g: Given, kept: tuple[bool, bool]) -> list[Expected]:
    """BatchNormalization in training: each running statistic is written over the tensor of the old one before scale,
    bias and the second statistic are read, which may be the same tensor.  kept: mean and variance that are not."""
    shared, full = g.inst.shared(), g.reevaluate(outs=3)
    assert full is not None
    at = {s: shared.get(s, s) for s in ("scale", "B", "input_mean", "input_var")}
    held: dict[str, Any] = {} if kept[0] else {at["input_mean"]: full[1].value}
    changed: dict[str, Any] = {}
    row = full
    if at["input_var"] in held:  # the mean stands in it when the variance is read
        changed["input_var"] = held[at["input_var"]].astype(full[2].value.dtype)
        row = g.reevaluate(inputs=changed, outs=3) or full
    if not kept[1]:
        held[at["input_var"]] = row[2].value
    mean = row[1] if kept[0] or at["input_mean"] != at["input_var"] or kept[1] else row[2]
    variance = row[2]
    changed |= {s: held[at[s]].astype(g[s].dtype) for s in ("scale", "B") if at[s] in held}
    row = g.reevaluate(inputs=changed, outs=3) or full
    return [row[0], mean, variance]


def _room(e: Expected) -> np.ndarray:
    """How far a result may be off whose scale and bias are results themselves."""
    bound = np.asarray(e.error.bound(e.context()), np.float64)
    return np.broadcast_to(8 * (bound + ulp(e.value.astype(np.float64), e.dtype)), e.value.shape)


def _overwritten(g: Given, late: bool) -> Outputs:
    """late: do the other nodes read such a tensor after it was overwritten?"""
    dialect, graph, inputs = g.case.version.dialect, g.inst.attrs["program"], list(g.arrays["inputs"])
    program = dialect.unfold(g.inst, g.arrays)
    scope, given, off = dict(program.values), dict[str, Any](), dict[str, Any]()
    for k, names in enumerate(program.names):
        inst = program.node(k, scope)
        case = Case(registry.version_of(inst), inst, 0)
        if not case.expected:
            return None
        row = case.expected[0]
        if inst.op == "BatchNormalization" and inst.attrs.get("training_mode") and inst.outs == 3:
            row = _normalised(Given(case, 0), (names[1] in program.outputs, names[2] in program.outputs))
            for n, e in zip(names, row):
                given[n], off[n] = e.value, _room(e)
            for slot, i in (("input_mean", 1), ("input_var", 2)):
                name = graph.nodes[k].inputs[slot]
                if not late or names[i] in program.outputs:
                    continue
                if name[0] == "p" and name[1:].isdigit():
                    inputs[int(name[1:])] = row[i].value.astype(inputs[int(name[1:])].dtype)
                else:
                    given[name] = row[i].value.astype(scope[name].dtype)
        scope.update(zip(names, [e.value for e in row]))
    if not given:
        return None
    expected: list[Any] = dialect.unfold(g.inst, {"inputs": inputs}).expected(given, off)
    return expected


def ort_statistics_over_operands(g: Given) -> Outputs:
    """BatchNormalization in training, its statistics no outputs of the model: they are written over its operands."""
    return _overwritten(g, False)


def ort_statistics_over_values(g: Given) -> Outputs:
    """The same, and other nodes that have one of these operands read it afterwards."""
    return _overwritten(g, True)
