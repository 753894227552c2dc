"""What comes where a difference is listed (``harness/ledger/defect_models.py``): programs that ONNX Runtime has
rewritten."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.ledger.defect_models import NOTHING
from harness.ledger.edits import Edited, Near, edited

Outputs = list[Any] | Edited | None

_sliding: Any = np.lib.stride_tricks.sliding_window_view  # whose stub takes one axis alone


def epsilon_of_its_own(g: Given) -> Outputs:
    """1e-5 in place of an epsilon that stands first in its sum; of several the first."""
    program = deepcopy(g.attr("program"))
    roots = [m.inputs["X"] for m in program.nodes if m.op == "Sqrt"]
    found = False
    for node in program.nodes:
        if node.op == "Add" and node.outputs[0] in roots:
            for slot in ("A", "B"):
                value = program.consts.get(node.inputs[slot])
                if value is not None and (slot == "A" or value.size > 1):
                    one = 1e-5 if slot == "A" else value.flat[0]
                    program.consts[node.inputs[slot]] = np.full(value.shape, one, np.float32)
                    found = True
    return edited(g, program) if found else None


def bias_times_alpha(g: Given) -> Outputs:
    """What is added to a product is multiplied by alpha as well."""
    program = deepcopy(g.attr("program"))
    for node in program.nodes:
        if node.op == "Gemm":
            node.attrs["beta"] = node.attrs.get("alpha", 1.0)
    return edited(g, program)


def _with_epsilon(g: Given, default: bool, off: float = 0.0) -> Edited | None:
    """1e-5 in place of an epsilon that stands first in its sum, or of several, where ``default``; the variance beside
    it is off by that many times 2**-23 of the mean of the squares."""
    program, x = deepcopy(g.attr("program")), g["inputs"][0].astype(np.float64)
    roots = [m.inputs["X"] for m in program.nodes if m.op == "Sqrt"]
    moved = off * 2.0**-23 * (x * x).mean(-1, keepdims=True)
    for node in program.nodes:
        if node.op == "Add" and node.outputs[0] in roots:
            for slot in ("A", "B"):
                value = program.consts.get(node.inputs[slot])
                if value is not None:
                    own = not default or (slot == "B" and value.size == 1)
                    program.consts[node.inputs[slot]] = ((value if own else 1e-5) + moved).astype(np.float32)
    return edited(g, program)


def epsilon_of_the_default(g: Given) -> Outputs:
    """1e-5 in place of an epsilon that stands first in its sum, and of several."""
    return _with_epsilon(g, True)


def _cancelled(g: Given, default: bool) -> Outputs:
    ways = [_with_epsilon(g, default, off) for off in (0.0, 32.0, -32.0)]
    if any(w is None for w in ways):
        return None
    out = []
    for due, *others in zip(*(w.given.expected for w in ways if w is not None)):
        apart = [np.abs(o.value.astype(np.float64) - due.value) for o in others]
        out.append(
            Near(due.value, np.nan_to_num(np.max(apart, 0), nan=np.inf, posinf=np.inf) + due.error.bound(due.context()))
        )
    return out


def variance_of_squares(g: Given) -> Outputs:
    """The variance is the mean of the squares less the square of the mean, in f32."""
    return _cancelled(g, False)


def variance_of_squares_epsilon_of_the_default(g: Given) -> Outputs:
    """The same, with 1e-5 for an epsilon that stands first in its sum, and for several."""
    return _cancelled(g, True)


def padding_is_the_lowest(g: Given) -> Outputs:
    """What a Pad adds before a MaxPool counts as no element, in place of the constant."""
    program = deepcopy(g.attr("program"))
    for node in program.nodes:
        if node.op == "Pad":
            node.inputs["constant_value"] = "lowest"
            program.consts["lowest"] = np.array(np.finfo(np.float32).min, np.float32)
    return edited(g, program)


def quantised_average_divided_by_pads(g: Given) -> Outputs:
    """DequantizeLinear, AveragePool, QuantizeLinear: the end of axis i has the padding that stands at 2 i + 1 of
    ``pads``, when elements are counted (ort-old-averagepool-end)."""
    program = g.attr("program")
    if [n.op for n in program.nodes] != ["DequantizeLinear", "AveragePool", "QuantizeLinear"]:
        return None
    first, pool, last = program.nodes
    step, zero, to, end = (
        program.consts[n.inputs[k]]
        for n, k in ((first, "x_scale"), (first, "x_zero_point"), (last, "y_scale"), (last, "y_zero_point"))
    )
    x = (g["inputs"][0].astype(np.float64) - zero) * step
    kernel, pads, n = pool.attrs["kernel_shape"], pool.attrs["pads"], x.ndim - 2
    strides = pool.attrs.get("strides", [1] * n)
    sums = np.pad(x, [(0, 0), (0, 0), *zip(pads[:n], pads[n:])])
    sums = _sliding(sums, tuple(kernel), axis=tuple(range(2, 2 + n))).sum(tuple(range(-n, 0)))
    of_sums: tuple[Any, ...] = (slice(None), slice(None), *(slice(None, None, s) for s in strides))
    sums = sums[of_sums]
    for a in range(n):
        starts = np.arange(sums.shape[2 + a]) * strides[a] - pads[a]
        counts = np.minimum(starts + kernel[a], x.shape[2 + a] + pads[2 * a + 1]) - starts
        sums = sums / counts.reshape([-1 if b == a else 1 for b in range(n)])
    due, ends = g.expected[0].value, np.iinfo(g.expected[0].value.dtype)
    real = sums / to
    tie = np.abs(np.abs(real - np.trunc(real)) - 0.5) < 1e-3
    if sums.shape != due.shape:
        return None
    value = np.clip(np.rint(real) + float(end), ends.min, ends.max)
    return [Near(value, np.where(tie, 1, 0)), *[None] * (len(g.expected) - 1)]


def later_outputs_lost(g: Given) -> Outputs:
    """The first output is right, those after it have no value."""
    return [None] + [NOTHING] * (len(g.expected) - 1)
