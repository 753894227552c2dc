"""What comes where a difference is listed (``harness/ledger/defect_models.py``): ONNX Runtime, random graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.declare import Expected
from harness.ledger.defect_models import Near, NodeAnswer, PerNode
from harness.tolerance import ulp

Outputs = list[Any] | None


def _normalised(g: Given, kept: tuple[bool, bool]) -> list[Expected]:
    """BatchNormalization in training: each running statistic is written over the tensor of the old one before scale,
    bias and the second statistic are read, which may be the same tensor.  kept: mean and variance that are not."""
    shared, full = g.inst.shared(), g.reevaluate(outs=3)
    assert full is not None
    m, v = (slot.name for slot in g.case.version.schema.inputs[3:])
    at = {s: shared.get(s, s) for s in ("scale", "B", m, v)}
    held: dict[str, Any] = {} if kept[0] else {at[m]: full[1].value}
    changed: dict[str, Any] = {}
    row = full
    if at[v] in held:  # the mean stands in it when the variance is read
        changed[v] = held[at[v]].astype(full[2].value.dtype)
        row = g.reevaluate(inputs=changed, outs=3) or full
    if not kept[1]:
        held[at[v]] = row[2].value
    mean = row[1] if kept[0] or at[m] != at[v] or kept[1] else row[2]
    variance = row[2]
    changed |= {s: held[at[s]].astype(g[s].dtype) for s in ("scale", "B") if at[s] in held}
    row = g.reevaluate(inputs=changed, outs=3) or full
    return [row[0], mean, variance]


def _room(e: Expected) -> np.ndarray:
    """How far a result may be off whose scale and bias are results themselves."""
    bound = np.asarray(e.error.bound(e.context()), np.float64)
    return np.broadcast_to(8 * (bound + ulp(e.value.astype(np.float64), e.dtype)), e.value.shape)


def _overwritten(g: Given, late: bool) -> PerNode:
    """late: do the other nodes read such a tensor after it was overwritten?"""
    graph = g.inst.attrs["program"]

    def node(k: int, one: Given) -> NodeAnswer | None:
        if one.inst.op != "BatchNormalization" or not one.inst.attrs.get("training_mode") or one.inst.outs != 3:
            return None
        made, over = graph.nodes[k], dict[str, np.ndarray]()
        kept = (made.outputs[1] in graph.outputs, made.outputs[2] in graph.outputs)
        kept = (False, False) if one["X"].dtype == np.float16 else kept  # computed in f32: no output is the result
        row = _normalised(one, kept)
        for slot, e, shown in zip(("input_mean", "input_var"), row[1:], kept):
            if late and not shown:
                over[made.inputs[slot]] = e.value.astype(one[slot].dtype)
        return NodeAnswer([(e.value, _room(e)) for e in row], over)

    return PerNode(node)


def ort_f16_statistics_over_operands(g: Given) -> Outputs:
    """The same of a node of f16: it computes in f32, and its statistics are written over operands cast to f32.  What is
    saved for a gradient is open."""
    if g.inst.outs not in (3, 5):
        return None
    told = [Near(e.value, _room(e)) for e in _normalised(g, (False, False))]
    return [*told, *(Near(e.value, np.full(e.value.shape, np.inf)) for e in g.expected[3:])]


def ort_statistics_over_operands(g: Given) -> PerNode:
    """BatchNormalization in training, its statistics no outputs of the model: they are written over its operands."""
    return _overwritten(g, False)


def ort_statistics_over_values(g: Given) -> PerNode:
    """The same, and other nodes that have one of these operands read it afterwards."""
    return _overwritten(g, True)


def state_of_unknown_extents(g: Given) -> bool:
    """Is the state of a LinearAttention a result of another node, or an input with an extent that is left open?"""
    graph = g.inst.attrs["program"]
    left_open = {name for name, axes in graph.meta.get("open", {}).items() if axes}
    made = {o for n in graph.nodes for o in n.outputs}
    states = [n.inputs.get("past_state") for n in graph.nodes if n.op == "LinearAttention"]
    return any(s in made or s in left_open for s in states if s)


def _unsorted(node: Any) -> bool:
    axes = list(node.attrs.get("axes") or ())
    return node.op == "Squeeze" and axes != sorted(axes)


def _seen_by_inference(shape: Any, axes: Any) -> list[int]:
    """The shape that inference gives the result of a Squeeze: it looks for the axes one after the other."""
    out, k = list[int](), 0
    for i, n in enumerate(shape):
        if k < len(axes) and axes[k] == i:
            k += 1
        else:
            out.append(n)
    return out


def pool_of_other_extents(g: Given) -> bool:
    """Has a pool SAME padding with a dilation or ceil_mode, for which larger extents are inferred?"""
    pools = [n.attrs for n in g.inst.attrs["program"].nodes if n.op in ("AveragePool", "LpPool", "MaxPool")]
    return any(
        str(a.get("auto_pad", ""))[:4] == "SAME" and (max(a.get("dilations") or [1]) > 1 or a.get("ceil_mode", 0))
        for a in pools
    )


def squeeze_of_unsorted_axes(g: Given) -> bool:
    """Does a Squeeze name its axes in another order than the ascending one?"""
    return any(map(_unsorted, g.inst.attrs["program"].nodes))


def shape_of_an_unsorted_squeeze(g: Given) -> Outputs:
    """A Shape of what a Squeeze with unsorted axes gives, folded, is the one that shape inference makes of it.  So is
    the shape of what the Squeeze gives, if it is fused with a node before it that only changes the shape."""
    dialect, graph = g.case.version.dialect, g.inst.attrs["program"]
    scope = dialect.language.run(graph, g.arrays["inputs"], g.inst.opset)
    inferred, given = dict[str, list[int]](), dict[str, Any]()
    reshaped = {o for n in graph.nodes if n.op in ("Reshape", "Squeeze", "Unsqueeze") for o in n.outputs}
    for node in graph.nodes:
        if _unsorted(node):
            (out,) = node.outputs
            inferred[out] = _seen_by_inference(np.shape(scope[node.inputs["data"]]), node.attrs["axes"])
            if node.inputs["data"] in reshaped:
                given[out] = np.asarray(scope[out]).reshape(inferred[out])
        elif node.op == "Shape" and node.inputs["data"] in inferred:
            given[node.outputs[0]] = np.array(inferred[node.inputs["data"]], np.int64)
        else:  # what keeps the shape of its operand keeps the inferred one
            wrong = [x for x in node.inputs.values() if isinstance(x, str) and x in inferred]
            for o in node.outputs:
                if len(wrong) == 1 and np.shape(scope[wrong[0]]) == np.shape(scope[o]):
                    inferred[o] = inferred[wrong[0]]
    if not given:
        return None
    told: list[Any] = dialect.unfold(g.inst, g.arrays).expected(given)
    return told


def shape_of_an_attention_of_unknown_width(g: Given) -> Outputs:
    """A Shape of what Attention gives, folded, has 0 for the last extent where that of V is known when the model runs
    alone."""
    dialect, graph = g.case.version.dialect, g.inst.attrs["program"]
    scope = dialect.language.run(graph, g.arrays["inputs"], g.inst.opset)
    made = {n.outputs[0]: n for n in graph.nodes if n.op == "Attention"}
    given = dict[str, Any]()
    for node in graph.nodes:
        attention = made.get(node.value("data")) if node.op == "Shape" else None
        v = None if attention is None else attention.value("V")
        if v is not None and scope[v].ndim - 1 in graph.meta.get("open", {}).get(v, ()):
            extents = [*np.shape(scope[node.value("data")])[:-1], 0]
            given[node.outputs[0]] = np.array(extents[node.attrs.get("start", 0) : node.attrs.get("end")], np.int64)
    told: Outputs = dialect.unfold(g.inst, g.arrays).expected(given) if given else None
    return told
