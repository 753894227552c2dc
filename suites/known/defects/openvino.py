"""What comes where a difference is listed (``harness/ledger/defect_models.py``): OpenVINO, what its operators do
otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.ledger.defect_models import Near, Turned

Outputs = list[Any] | None


def divided_by_the_largest_magnitude(g: Given) -> Outputs:
    """Normalizer, in f32: MAX divides by the largest magnitude."""
    x = g["X"].astype(np.float64)
    y = x / np.abs(x).max(-1, keepdims=True)
    return [Near(y, 1e-6 * np.abs(y))]


def overlap_may_equal(g: Given) -> Outputs:
    """NonMaxSuppression: a box is removed where its overlap equals the threshold; of two without an area it is NaN."""
    boxes = g["boxes"].astype(np.float32)
    if g.attr("center_point_box", 0):
        half = boxes[..., 2:] / 2
        corners = np.stack([boxes[..., :2] - half, boxes[..., :2] + half])
    else:
        corners = np.sort(np.stack([boxes[..., :2], boxes[..., 2:]]), 0)
    most, least, shared = (
        None if v is None else v.ravel()[0]
        for v in (g["max_output_boxes_per_class"], g["score_threshold"], g["iou_threshold"])
    )
    found = []
    for b, c in np.ndindex(*g["scores"].shape[:2]):
        scores, kept = g["scores"][b, c], list[int]()
        low, high = corners[:, b]
        area = np.prod(high - low, -1)
        for k in np.argsort(-scores, kind="stable"):
            if len(kept) == (most or 0) or not (least is None or scores[k] > least):
                break
            both = np.prod(np.maximum(np.minimum(high[kept], high[k]) - np.maximum(low[kept], low[k]), 0), -1)
            if not np.any(both / (area[kept] + area[k] - both) >= (shared or 0)):
                kept.append(int(k))
        found += [(b, c, k) for k in kept]
    return [np.array(found, np.int64).reshape(-1, 3)]


def transformed_along_axis_1(g: Given) -> Outputs:
    """DFT-20: along axis 1, whatever the input axis says."""
    return g.reevaluate(inputs={"axis": np.array(1)})


def bytes_saturate(g: Given) -> Outputs:
    """Add, Sub, Mul and Neg of 8 bits saturate; in place of a difference the negative may be added, which saturates
    too, of a constant always."""
    ends = np.iinfo(g.expected[0].value.dtype)
    a = (g["X"] if g["A"] is None else g["A"]).astype(np.int64)
    b = None if g["B"] is None else g["B"].astype(np.int64)
    if b is None:
        return [np.clip(-a, ends.min, ends.max)]
    if g.inst.op != "Sub":
        return [np.clip(a + b if g.inst.op == "Add" else a * b, ends.min, ends.max)]
    added = np.clip(a + (np.minimum(-b, ends.max) if ends.min else -b), ends.min, ends.max)
    return [added if g.inst.tensor("B").const else Near(np.clip(a - b, ends.min, ends.max), 0, added)]


def alpha_times_b(g: Given) -> Outputs:
    """Gemm: alpha is multiplied with B before it meets A, and may overflow there."""
    return g.reevaluate({"alpha": None}, {"B": (g["B"] * np.float32(g.attr("alpha", 1.0))).astype(g["B"].dtype)})


def one_turn(g: Given) -> Outputs:
    """Scan: one turn, over the first slices, of what is scanned from the end the last."""
    version8, n = g.inst.version == 8, g.attr("num_scan_inputs")
    slot = "initial_state_and_scan_inputs"
    ways = g.attr("directions" if version8 else "scan_input_directions") or [0] * n
    axes = [1] * n if version8 else g.attr("scan_input_axes") or [0] * n
    scanned = [
        np.take(v, [-1 if way else 0], axis) if v.shape[axis] else np.zeros_like(np.insert(v, 0, 0, axis))
        for v, way, axis in zip(g[slot][-n:], ways, axes)
    ]
    return g.reevaluate(inputs={slot: [*g[slot][:-n], *scanned]})


def rows_of_no_turn(g: Given) -> Outputs:
    """Loop: the states are right, of what is scanned there are as many rows as turns were allowed, of any value."""
    states, turns = len(g["v_initial"] or ()), int(g["M"])
    return [
        None if i < states else Near(np.zeros((turns, *e.value.shape[1:]), e.value.dtype), np.inf)
        for i, e in enumerate(g.expected)
    ]


def whole_batch_scanned(g: Given) -> Outputs:
    """Scan-8: as version 9 along axis 1, the batch an axis of the elements."""
    n = g.attr("num_scan_inputs")
    made = len(g.attr("body").outputs) - len(g["initial_state_and_scan_inputs"]) + n
    edit = {
        "directions": None,
        "scan_input_directions": g.attr("directions"),
        "scan_input_axes": [1] * n,
        "scan_output_axes": [1] * made,
    }
    try:
        return g.reevaluate(edit, {"sequence_lens": None}, version=9)
    except ValueError:  # elements that do not go together
        return None


def last_of_an_odd_row(g: Given) -> Outputs:
    """FULLY_CONNECTED: of an odd number of 4-bit weights a row the last, at n, is that at n % 16."""
    w = g["filter"].copy()
    w[:, -1] = w[:, (w.shape[1] - 1) % 16]
    return g.reevaluate(inputs={"filter": w})


def strides_left_out(g: Given) -> Outputs:
    """CONV_2D: the result of strides of 1, or what of it fits into the memory of the right one."""
    told = g.reevaluate({"stride_h": 1, "stride_w": 1})
    if not told:
        return None
    v, due = told[0].value, g.expected[0].value.shape
    return [Turned(told[0], lambda a: a if a.shape != due else np.append(a, v.ravel()[a.size :]).reshape(v.shape))]


def remainder_in_f32(g: Given) -> Outputs:
    """Mod and FLOOR_MOD: a - b * floor(a / b), of fmod cut off, each step in f32, and the result in the type of a."""
    a, b = (v.astype(np.float32) for v in ((g["lhs"], g["rhs"]) if g["A"] is None else (g["A"], g["B"])))
    v = a - b * (np.trunc if g.attr("fmod", 0) else np.floor)(a / b)
    kind = g.expected[0].value.dtype
    return [v.astype(kind) if kind.kind not in "iu" else np.where(np.isfinite(v), v, 0).astype(np.int64).astype(kind)]


def padded_at_the_end(g: Given) -> Outputs:
    """ConvTranspose: the padding that output_shape implies, all of it at the end."""
    x, w = (g[s].shape[2:] for s in "XW")
    strides, dilations, more = (
        g.attr(s) or [n] * len(x) for s, n in (("strides", 1), ("dilations", 1), ("output_padding", 0))
    )
    over = [
        s * (n - 1) + m + (k - 1) * d + 1 - due
        for s, n, m, k, d, due in zip(strides, x, more, w, dilations, g.attr("output_shape")[-len(x) :])
    ]
    return g.reevaluate(
        {
            "output_shape": None,
            "auto_pad": "NOTSET",
            "pads": [0] * len(x) + [max(0, v) for v in over],
            "output_padding": [m + max(0, -v) for m, v in zip(more, over)],
        }
    )


def traversal_order_unread(g: Given) -> Outputs:
    """DENSIFY and FULLY_CONNECTED: a square sparse constant that is stored by columns is read by rows."""
    (slot, how), *more = g.attr("@sparsity").items()
    v = g[slot]
    if more or v.ndim != 2 or v.shape[0] != v.shape[1] or list(how["order"]) != [1, 0] or how["block"]:
        return None
    return g.reevaluate(inputs={slot: v.T.copy()})


def relu_of_infinity(g: Given) -> Outputs:
    """LeakyRelu with alpha 0: minus infinity gives 0."""
    x, v = g["X"], g.expected[0].value
    return [np.where(np.isinf(x) & (x < 0), 0, v).astype(v.dtype)]


def any_of_nan(g: Given) -> Outputs:
    """Of comparisons: where an operand is NaN, either."""
    told, odd = g.expected[0].value, np.zeros((), bool)
    for v in g.arrays.values():
        odd = odd | np.isnan(v.astype(np.float64))
    return None if odd.shape != told.shape else [Near(told, np.where(odd, np.inf, 0))]


def infinity_gives_nan(g: Given) -> Outputs:
    """Shrink and ThresholdedRelu: an infinity may give NaN."""
    x, v = g["X"] if g["input"] is None else g["input"], g.expected[0].value
    return [Near(v, 0, np.where(np.isinf(x.astype(np.float64)), np.nan, v))]


def nan_is_false(g: Given) -> Outputs:
    """Cast and CastLike to bool: NaN is False."""
    v = g.expected[0].value
    return [v & ~np.isnan(g["input"].astype(np.float64))] if v.dtype == bool else None


def exponent_in_the_type_of_the_base(g: Given) -> Outputs:
    """Pow: the exponent is rounded to the type of the base."""
    return g.reevaluate(inputs={"Y": g["Y"].astype(g["X"].dtype)})
