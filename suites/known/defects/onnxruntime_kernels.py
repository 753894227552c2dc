"""What comes where a difference is listed (``harness/ledger/defect_models.py``): single kernels of ONNX Runtime."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.ledger.defect_models import Near, Turned

Outputs = list[Any] | None

_sliding: Any = np.lib.stride_tricks.sliding_window_view  # whose stub takes one axis alone


def ort_first_string_of_a_slice(g: Given) -> Outputs:
    """Gather: of each slice of strings that an index takes, the first string is copied, the others stay empty."""
    x, due = g["data"], g.expected[0].value
    block = prod(x.shape[g.attr("axis", 0) % x.ndim + 1 :])
    kept = due.reshape(-1, block).copy() if due.size else due
    if due.size:
        kept[:, 1:] = ""
    return [kept.reshape(due.shape)]


def ort_strings_moved_out(g: Given) -> Outputs:
    """Loop: the strings of a scanned value are moved out of it.  Where the body gives that tensor again, in a later row
    or in another output, the row is of empty strings.  Without a condition the body's ends the loop all the same."""
    states = len(g["v_initial"] or ())
    found = g.expected if g["cond"] is not None else g.reevaluate(None, {"cond": np.array(True)})
    if found is None:
        return None
    seen: list[np.ndarray] = []
    out: list[Any] = [None if e is g.expected[i] else e for i, e in enumerate(found[:states])]
    for e in found[states:]:
        rows = e.value.copy()
        for r in range(len(rows)):
            row = np.asarray(e.value[r], e.value.dtype)
            if row.dtype == object and any(n.shape == row.shape and (n == row).all() for n in seen):
                rows[r] = ""
            seen.append(row)
        out.append(rows if rows.dtype == object else None if g["cond"] is not None else e)
    return out


def ort_pieces_without_axis(g: Given) -> Outputs:
    """SplitToSequence: every piece lacks the axis that it was split along.  Without an element the reshape takes any
    extent of that axis."""
    axis = g.attr("axis", 0)

    def whole(p: np.ndarray, due: np.ndarray) -> np.ndarray:
        if p.size or p.shape != tuple(np.delete(due.shape, axis)):
            return np.expand_dims(p, axis)
        return p.reshape(due.shape)

    due = g.expected[0].value
    return [Turned(g.expected[0], lambda pieces: [whole(p, d) for p, d in zip(pieces, due, strict=True)])]


def ort_above_the_threshold(g: Given) -> Outputs:
    """NonMaxSuppression: a score that is the threshold removes its box."""
    limit = g["score_threshold"]
    return g.reevaluate(inputs={"score_threshold": np.nextafter(limit, np.float32(np.inf), dtype=limit.dtype)})


def ort_nonzero_of_a_scalar(g: Given) -> Outputs:
    """NonZero: the index 0 of a scalar that is not zero, in a row; none of one that is."""
    return [np.zeros((1, int(g["X"].astype(bool))), np.int64)]


def ort_ones_and_zeros_exchanged(g: Given) -> Outputs:
    """Bernoulli: a one comes where a zero is due, with its probability."""
    return [Turned(g.expected[0], lambda a: (1 - a.astype(np.float64)).astype(a.dtype))]


def ort_dictionary_in_a_row(g: Given) -> Outputs:
    """DictVectorizer: the vector has an axis of 1 before it."""
    return [g.expected[0].value[None]]


def ort_policy_without_negative_axes(g: Given) -> Outputs:
    """Resize: with a policy that keeps the aspect ratio an axis that is given from the end counts as not given; one
    whose extent then stays the same is copied, and one that is not given makes NaN beside what is not finite."""
    axes, x = g.attr("axes"), g["X"]
    kept = [i for i, a in enumerate(axes) if a >= 0]
    if not kept:
        return [x]
    attrs, cut = {"axes": [axes[i] for i in kept]}, {"sizes": g["sizes"][kept]}
    roi = g["roi"] is not None and g["roi"].size > 0
    if roi:
        cut["roi"] = g["roi"][[*kept, *(len(axes) + i for i in kept)]]
    told = g.reevaluate(attrs, cut)
    if told is not None and roi:
        same = np.tile([told[0].value.shape[axes[i]] == x.shape[axes[i]] for i in kept], 2)
        cut["roi"] = np.where(same, np.repeat([0, 1], len(kept)), cut["roi"]).astype(cut["roi"].dtype)
        told = g.reevaluate(attrs, cut)
    if told is None or x.dtype.kind not in "f" or g.attr("mode", "nearest") == "nearest" or np.isfinite(x).all():
        return told
    (e,) = told
    return [Near(e.value, e.error.bound(e.context()), np.full(e.value.shape, np.nan, e.value.dtype))]


def ort_softplus_f16(g: Given) -> Outputs:
    """log(exp(x) + 1) in f32, whose exponential overflows above 88.72."""
    return [np.where(g["X"].astype(np.float32) > 88.72, np.inf, g.expected[0].value)]


def ort_copied(g: Given) -> Outputs:
    """The first operand as it is."""
    return [g[g.case.version.schema.inputs[0].name]]


def _sums_of_16_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of [..., rows, k] and [..., k, columns]: sums over pairs of products that saturate at 16 bits."""
    a, b = a.astype(np.int64), b.astype(np.int64)
    odd = [(0, 0)] * (a.ndim - 1) + [(0, a.shape[-1] % 2)]
    a = np.pad(a, odd)
    b = np.pad(b, [*[(0, 0)] * (b.ndim - 2), (0, b.shape[-2] % 2), (0, 0)])
    pairs = a[..., 0::2, None] * b[..., None, 0::2, :] + a[..., 1::2, None] * b[..., None, 1::2, :]
    return np.asarray(np.clip(pairs, -(2**15), 2**15 - 1).sum(-2) - pairs.sum(-2))


def ort_pairs_of_products(g: Given) -> Outputs:
    """MatMulInteger, QLinearMatMul: sums of two neighbouring products saturate at 16 bits."""
    quantised = g.inst.op == "QLinearMatMul"
    a, b = (g["a"], g["b"]) if quantised else (g["A"], g["B"])
    short = _sums_of_16_bits(np.atleast_2d(a), b[:, None] if b.ndim == 1 else b)
    e = g.expected[0]
    short = short.reshape(e.value.shape)
    if not quantised:
        return [e.value + short]
    step = np.asarray(g["a_scale"], np.float64) * g["b_scale"] / g["y_scale"]
    total = (a.astype(np.float64) - g["a_zero_point"]) @ (b.astype(np.float64) - g["b_zero_point"])
    return [_requantised(g, (total + short) * step)]


def _requantised(g: Given, real: np.ndarray) -> Near:
    """In steps of the result, with its zero point; a tie may go either way."""
    ends, zero = np.iinfo(g.expected[0].value.dtype), g["y_zero_point"]
    moved = np.rint(real) + (0 if zero is None else float(zero))
    tie = np.abs(np.abs(real - np.trunc(real)) - 0.5) < 1e-4
    return Near(np.clip(moved, ends.min, ends.max), np.where(tie, 1, 0))


def _windows(g: Given, x: np.ndarray, w: np.ndarray, filler: Any) -> np.ndarray:
    """Of a convolution: [batch, group, channel in it, position in the window, position of the window]."""
    n, spatial = x.ndim - 2, w.shape[2:]
    strides, dilations = (g.attr(k) or [1] * n for k in ("strides", "dilations"))
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, spatial)]
    if (g.attr("auto_pad") or "NOTSET")[:4] == "SAME":
        total = [max(0, (-(-i // s) - 1) * s + r - i) for i, s, r in zip(x.shape[2:], strides, reach)]
        begins = [(t + (g.attr("auto_pad") == "SAME_LOWER")) // 2 for t in total]
        pads = begins + [t - b for t, b in zip(total, begins)]
    else:
        pads = g.attr("pads") or [0] * 2 * n
    x = np.pad(x.astype(np.int64), [(0, 0), (0, 0), *zip(pads[:n], pads[n:])], constant_values=int(filler))
    seen: np.ndarray = _sliding(x, tuple(reach), axis=tuple(range(2, 2 + n)))
    steps = [slice(None, None, s) for s in (1, 1, *strides, *dilations)]
    seen = seen[tuple(steps)]
    group = g.attr("group", 1)
    seen = seen.reshape(x.shape[0], group, x.shape[1] // group, prod(seen.shape[2 : 2 + n]), prod(spatial))
    return np.asarray(seen.swapaxes(3, 4))


def _convolved(g: Given, channels_last: bool) -> Outputs:
    quantised = g.inst.op == "QLinearConv"
    x, w = g["x"], g["w"]
    zero = g["x_zero_point"]
    seen = _windows(g, x, w, 0 if zero is None else zero.reshape(-1)[0])
    group = g.attr("group", 1)
    weights = w.astype(np.int64).reshape(group, w.shape[0] // group, w.shape[1], -1)
    if channels_last:
        seen, weights = seen.swapaxes(2, 3), weights.swapaxes(2, 3)
    b = seen.reshape(*seen.shape[:2], -1, seen.shape[-1])
    a = weights.reshape(*weights.shape[:2], -1)
    a = np.broadcast_to(a, (b.shape[0], *a.shape))
    due, short = g.expected[0].value, _sums_of_16_bits(a, b)
    if not quantised:
        return [due + short.reshape(due.shape)]
    per = (-1, *[1] * (x.ndim - 2))
    kept: np.ndarray = np.asarray(g["w_zero_point"], np.float64).reshape(-1)
    kept = np.broadcast_to(kept, (w.shape[0],)).reshape(group, -1, 1)
    total = (a.astype(np.float64) - kept) @ (b.astype(np.float64) - float(zero.reshape(-1)[0])) + short
    total = total.reshape(due.shape) + (0 if g["B"] is None else g["B"].reshape(per))
    return [_requantised(g, total * np.asarray(g["x_scale"], np.float64) * g["w_scale"].reshape(per) / g["y_scale"])]


def ort_pairs_in_a_window(g: Given) -> Outputs:
    """ConvInteger, QLinearConv: sums of two products that are neighbours in a window, channel after channel, saturate
    at 16 bits."""
    return _convolved(g, False)


def ort_pairs_of_channels(g: Given) -> Outputs:
    """The same with the channels last: neighbours are two channels at one place."""
    return _convolved(g, True)


def ort_cast_through_f32(g: Given) -> Outputs:
    """What becomes of the numbers after they have been rounded to f32."""
    return g.reevaluate({}, {"input": g["input"].astype(np.float32)})


def ort_far_windows(g: Given) -> Outputs:
    """DeformConv: the place of a tap, less the padding, and that of its window are rounded to f32 one by one."""
    kernel, (images, _, *out) = g["W"].shape[2:], g["offset"].shape
    strides, dilations, pads = g.attr("strides") or [1, 1], g.attr("dilations") or [1, 1], g.attr("pads") or [0] * 4
    moved = g["offset"].astype(np.float64).reshape(images, -1, *kernel, 2, *out)
    for a in range(2):
        tap = np.arange(kernel[a]) * dilations[a] - pads[a]
        window = np.arange(out[a]) * strides[a]
        place = np.add.outer(tap.astype(np.float32), window.astype(np.float32)) - np.add.outer(tap, window)
        moved[:, :, :, :, a] += place[:, None, :, None] if a == 0 else place[None, :, None, :]
    return g.reevaluate(inputs={"offset": moved.reshape(g["offset"].shape)})


def ort_f32_twiddles(g: Given) -> Outputs:
    """DFT and STFT of f64: the twiddle factors are f32 numbers, an error of 1e-6 of the sizes that are added up."""
    due, x = g.expected[0].value, g["signal"]
    if x is not None:
        w = g["window"]
        size = np.abs(x).sum(-1) * (1.0 if w is None else np.abs(w).max(initial=0.0))
        total = size.sum(1)[:, None, None, None]
    else:
        x, last = g["input"], g["axis"]
        given = g.attr("axis", 1) if int(g.case.version.version) < 20 else -2 if last is None else last.ravel()[0]
        axis = int(given) % x.ndim
        total = np.abs(x).sum((axis, -1), keepdims=True) / (due.shape[axis] if g.attr("inverse", 0) else 1)
    return [Near(due, 1e-6 * np.where(np.isfinite(total), total, 0.0))]
