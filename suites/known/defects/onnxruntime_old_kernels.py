"""What comes where a difference is listed (``harness/ledger/defect_models.py``): single kernels of ONNX Runtime
before 1.32."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.dtypes import int_range, of
from harness.ledger.defect_models import Near

Outputs = list[Any] | None


def _first(g: Given) -> np.ndarray:
    x = g[g.case.version.schema.inputs[0].name]
    assert isinstance(x, np.ndarray)
    return x


def ort_old_weights_by_place(g: Given) -> Outputs:
    """TfIdfVectorizer: the weight of what is counted at a place of the output is the one at that place."""
    places, weights = g.attr("ngram_indexes"), g.attr("weights")
    told = g.reevaluate({"weights": [weights[i] if i < len(weights) else 0.0 for i in places]})
    if told is None:
        return None
    beyond = np.arange(told[0].value.shape[-1]) >= len(weights)  # what lies behind the weights
    return [Near(told[0].value, np.broadcast_to(np.where(beyond, np.inf, 1e-6), told[0].value.shape))]


def ort_old_rows_unwritten(g: Given) -> Outputs:
    """ReverseSequence: what has the length 0 is left as it was allocated."""
    x, time = g["input"], g.attr("time_axis", 0)
    shape = [1] * x.ndim
    shape[1 - time] = x.shape[1 - time]
    none = (g["sequence_lens"] == 0).reshape(shape)
    return [Near(g.expected[0].value, np.broadcast_to(np.where(none, np.inf, 0), x.shape))]


def ort_old_prelu(g: Given) -> Outputs:
    """PRelu: both branches are computed and added: NaN of an infinite x, and of a slope that is infinite or NaN where x
    is not negative."""
    x, slope = np.broadcast_arrays(g["X"], g["slope"])
    return [np.where(np.isinf(x) | (~np.isfinite(slope) & (x >= 0)), np.nan, g.expected[0].value)]


def ort_old_affine_steps(g: Given) -> Outputs:
    """AffineGrid: coordinates that are multiplied with theta are those of f32."""
    e, theta = g.expected[0], np.abs(g["theta"]).sum(-1)
    return [Near(e.real, 2.0**-21 * theta.reshape(len(theta), *[1] * (e.value.ndim - 2), -1))]


def ort_old_sqrt(g: Given) -> Outputs:
    """Sqrt: an estimate times x: three ulp, 0 of a subnormal number, NaN of an infinite one; infinity of a negative
    subnormal."""
    e, x = g.expected[0], g["X"]
    if x.dtype == np.float64:
        return None
    tiny = np.float32(np.finfo(np.float32).tiny)
    small = np.abs(x.astype(np.float32)) < tiny
    value = np.where(small & (x >= 0), 0, np.where(x == np.inf, np.nan, e.value))
    ulp = np.spacing(np.abs(np.nan_to_num(e.value, posinf=0)).astype(x.dtype)).astype(np.float64)
    return [Near(value, 3 * ulp, np.where(x < 0, np.inf, value))]


def ort_old_exp(g: Given) -> Outputs:
    """Exp: nothing is less than what the exponential is at -709.78."""
    due, low = g.expected[0].value, g["input"] < -708
    return [Near(np.where(low, np.maximum(due, 5.55552948e-309), due), np.where(low, 1e-316, 0))]


def ort_old_log(g: Given) -> Outputs:
    """Log: a subnormal number counts as the smallest normal one."""
    x = g["input"]
    tiny = np.finfo(x.dtype).tiny
    return g.reevaluate(None, {"input": np.where((x > 0) & (x < tiny), tiny, x)})


def _quotients(g: Given) -> np.ndarray | None:
    """QuantizeLinear: x / y_scale; None where the result is not of integers."""
    x, axis, block = g["x"], g.attr("axis", 1), g.attr("block_size", 0)
    if of(g.expected[0].value).kind == "f":
        return None
    scale = _along(g["y_scale"], x, axis, block)
    return np.asarray(x.astype(np.float32) / scale)


def _along(v: np.ndarray, x: np.ndarray, axis: int, block: int) -> np.ndarray:
    """Scales or zero points in the shape of x, or one that broadcasts to it."""
    v = v.astype(np.float32)
    if v.size == 1:
        return v.reshape(())
    if block:
        return np.repeat(v, block, axis)[tuple(slice(0, n) for n in x.shape)]
    return v.reshape([-1 if a == axis % x.ndim else 1 for a in range(x.ndim)])


def ort_old_truncated_quotients(g: Given) -> Outputs:
    """QuantizeLinear: quotients of f16 are truncated; an infinite one becomes the lowest number."""
    quotients, due, zero = _quotients(g), g.expected[0].value, g["y_zero_point"]
    if quotients is None:
        return None
    low, high = int_range(of(due))
    steps = np.nan_to_num(np.trunc(quotients), nan=0, posinf=1e9, neginf=-1e9)
    zeros = 0 if zero is None else _along(zero, g["x"], g.attr("axis", 1), g.attr("block_size", 0))
    found = np.clip(steps + zeros, low, high)
    return [Near(found, 0, np.where(np.isinf(quotients), low, found).astype(due.dtype))]


def ort_old_quotients_beyond(g: Given) -> Outputs:
    """QuantizeLinear of blocks or to 4 bits: what no integer of 32 bits holds becomes the lowest number."""
    quotients, due = _quotients(g), g.expected[0].value
    if quotients is None:
        return None
    return [np.where(quotients >= 2.0**31, int_range(of(due))[0], due).astype(due.dtype)]


def ort_old_padded_once(g: Given) -> Outputs:
    """Pad: right as far as one reflection, or one turn, reaches; beyond it any number."""
    x, due = g["data"], g.expected[0].value
    pads = [int(p) for p in (g["pads"] if g["pads"] is not None else g.attr("pads") or g.attr("paddings"))]
    axes = range(x.ndim) if g["axes"] is None else [int(a) % x.ndim for a in g["axes"]]
    beyond = np.zeros(due.shape, bool)
    for k, a in enumerate(axes):
        begin, end = pads[k], pads[len(pads) // 2 + k]
        n = x.shape[a] + min(begin, 0) + min(end, 0)  # what is cropped is cropped first
        once = n - (g.attr("mode") == "reflect")
        at = np.arange(due.shape[a]) - max(begin, 0)
        far = (at < -once) | (at >= n + once)
        beyond |= far.reshape([-1 if b == a else 1 for b in range(x.ndim)])
    return [Near(due, np.where(beyond, np.inf, 0.0))] if beyond.any() else None


def ort_old_reduced_all_the_same(g: Given) -> Outputs:
    """Reduction of no element where none was asked for: everything is reduced."""
    told = g.reevaluate({"noop_with_empty_axes": None})
    return told and [Near(told[0].value, np.inf)]


def ort_old_divided_by_pads(g: Given) -> Outputs:
    """AveragePool: the end of axis i has the padding that stands at 2 i + 1 of ``pads``, when elements are counted."""
    x, kernel = g["X"], g.attr("kernel_shape")
    n = len(kernel)
    strides, dilations = (g.attr(k) or [1] * n for k in ("strides", "dilations"))
    pads = g.attr("pads") or [0] * 2 * n
    due = g.expected[0]
    times = np.ones(due.value.shape[2:])
    for a in range(n):
        starts = np.arange(due.value.shape[2 + a]) * strides[a] - pads[a]
        ends = starts + kernel[a] * dilations[a]
        right, wrong = (
            1 + (np.minimum(ends, x.shape[2 + a] + p) - starts - 1) // dilations[a]
            for p in (pads[n + a], pads[2 * a + 1])
        )
        times = times * (right / wrong).reshape([-1 if b == a else 1 for b in range(n)])
    value = due.wide * times
    return [Near(value, due.error.bound(due.context()) * np.maximum(times, 1) * 2)]


def ort_old_fmod(g: Given) -> Outputs:
    """Mod: fmod of integers in double; what comes of 2**63 and more is the lowest integer, or the highest of u64."""
    a, b = (v.astype(np.float64) for v in (g["A"], g["B"]))
    rest = np.trunc(np.fmod(a, b))
    low, high = int_range(of(g["A"]))
    over = float(low) if low < 0 else 0.0
    return [np.where(np.abs(rest) >= float(high), over, rest)]


def ort_old_signs_of_halves(g: Given) -> Outputs:
    """Sign: that of the lower 32 bits."""
    return [np.sign(g["input"].astype(np.int32)).astype(np.int64)]


def ort_old_halves(g: Given) -> Outputs:
    """Max, Min, Clip, reductions: of two numbers with equal upper halves the lower ones are compared as if they had a
    sign."""
    flip = np.int64(2**31)
    slots = [k for k in ("data_0", "data", "input", "min", "max") if g[k] is not None]
    flipped = {k: [x ^ flip for x in g[k]] if isinstance(g[k], list) else g[k] ^ flip for k in slots}
    told = g.reevaluate(None, flipped)
    return told and [told[0].value ^ flip]


def ort_old_gemm_of_nothing(g: Given) -> Outputs:
    """MatMul, Gemm over no element: C as it is, else what lay in memory."""
    due = g.expected[0].value
    c = g["C"] if g.inst.op == "Gemm" else None
    return [Near(due, np.inf) if c is None else np.broadcast_to(c, due.shape)]


def ort_old_negative_axes_left(g: Given) -> Outputs:
    """Reduction of a tensor without elements: an axis that is given from the end is left as it is."""
    if g.inst.op in ("ArgMax", "ArgMin"):
        return [np.zeros(g["data"].shape, np.int64)] if g.attr("axis", 0) < 0 else None
    axes = g["axes"] if g["axes"] is not None else g.attr("axes")
    kept = [int(a) for a in axes if a >= 0] if axes is not None else []
    if axes is None or len(kept) == len(axes):
        return None
    if not kept:
        return [_first(g)]
    held = g["axes"] is not None
    told = g.reevaluate(None, {"axes": np.array(kept, np.int64)}) if held else g.reevaluate({"axes": kept})
    undefined = g.inst.op == "ReduceMean" or (g.inst.op in ("ReduceMin", "ReduceMax") and int(g.inst.version) < 20)
    if told and undefined:  # of nothing, that is
        return [Near(told[0].value, np.inf)]
    return told


def _same_counted(g: Given, by_place: bool) -> Outputs:
    x, kernel, n = g["X"].astype(np.float64), g.attr("kernel_shape"), g["X"].ndim - 2
    strides, dilations = (g.attr(k) or [1] * n for k in ("strides", "dilations"))
    heads, tails = [], []
    for size, s, k in zip(x.shape[2:], strides, kernel):
        total = -(-size // s) * s - s + k - size
        heads.append(int((total + (g.attr("auto_pad") == "SAME_LOWER")) / 2))
        tails.append(total - heads[-1])
    lost = ~np.isfinite(x)
    y, counts = np.where(lost, 0, x), np.ones([1] * n)
    scale = np.abs(y)
    for a, (size, s, k, d) in enumerate(zip(x.shape[2:], strides, kernel, dilations)):
        reach = size + heads[a] + tails[a] - d * (k - 1) - 1
        extent = int((reach + (s - 1) * g.attr("ceil_mode", 0)) / s) + 1
        starts = np.arange(max(extent, 0)) * s - heads[a]
        places = starts[:, None] + d * np.arange(k)
        inside = ((places >= 0) & (places < size))[..., None] & (places[..., None] == np.arange(size))
        y, scale, lost = (np.moveaxis(np.tensordot(v, inside.sum(1), (2 + a, 1)), -1, 2 + a) for v in (y, scale, lost))
        end = (heads + tails)[2 * a + 1] if by_place else tails[a]
        count = 1 + (np.minimum(starts + k * d, size + end) - starts - 1) // d
        counts = counts * count.reshape([-1 if b == a else 1 for b in range(n)])
    eps = 2.0**-9 if g["X"].dtype == np.float16 else 2.0**-19
    return [Near(y / counts, np.where(lost, np.inf, eps * scale / np.maximum(np.abs(counts), 1)))]


def ort_old_same_counted(g: Given) -> Outputs:
    """AveragePool: of SAME padding, which forgets the dilation, what lies beyond its end is not counted."""
    return _same_counted(g, False)


def ort_old_same_counted_by_place(g: Given) -> Outputs:
    """The same where the end of axis i has the padding that stands at 2 i + 1 of all."""
    return _same_counted(g, True)


def batches_of_nothing_not_broadcast(g: Given) -> Outputs:
    """MatMul of matrices without a contracted extent has the batches of the first operand; its elements are what lay in
    memory."""
    a, b, due = g["A"], g["B"], g.expected[0].value
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1]:
        return None
    shape = (*a.shape[:-1], b.shape[-1])
    return None if shape == due.shape else [Near(np.zeros(shape, due.dtype), np.inf)]
