"""What comes where a difference is listed (``harness/ledger/defect_models.py``): older releases of LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.ledger.defect_models import Near, Such
from suites.semantics.quantised import fixed

Outputs = list[Any] | None


def sign_of_nan(g: Given) -> Outputs:
    """The sign of NaN is 0."""
    x, due = g["x"], g.expected[0].value
    return [np.where(x != x, np.zeros_like(due), due)]


def tanh_of_nan(g: Given) -> Outputs:
    """The hyperbolic tangent of NaN is 1."""
    due = g.expected[0].value
    return [np.where(due != due, np.ones_like(due), due)]


def one_element_somewhere(g: Given) -> Outputs:
    """At most one element is not the default."""
    due, rest = g.expected[0].value, g["default_value"].ravel()[0]
    return [Such(lambda a: a.shape == due.shape and int((a != rest).sum()) <= 1, due)]


def slices_from_outside(g: Given) -> Outputs:
    """Slices that begin outside of the operand are anything, the others right."""
    due, x = g.expected[0].value, g["operand"]
    at, mapped, sizes = g.attr("index_vector_dim", 0), g.attr("start_index_map", []), g.attr("slice_sizes", [])
    index = g["start_indices"]
    tuples = np.moveaxis(index[..., None] if at == index.ndim else index, at, -1)
    most = np.array([x.shape[a] - sizes[a] for a in mapped])
    outside = ((tuples < 0) | (tuples > most)).any(-1)
    mask = np.expand_dims(outside, tuple(g.attr("offset_dims", ())))
    return [Near(due, np.where(np.broadcast_to(mask, due.shape), np.inf, 0.0))]


def rows_without_zero_points(g: Given) -> Outputs:
    """The rows' zero point is left out, and uint8 is read as int8."""
    (e,) = g.expected
    value, q = g["value"], g.inst.tensor("value").quantised
    left = fixed.spread(np.multiply(q["scale"], q["zero_point"]), q, value.ndim) * np.ones(value.shape)
    if value.dtype == np.uint8:
        left = left - 256 * fixed.spread(q["scale"], q, value.ndim) * (value > 127)
    due = e.value.astype(np.float64) + left[g["lookup"]]
    return [Near(due.astype(e.value.dtype), 1e-6 * (np.abs(due) + np.abs(left).max(initial=0.0)))]


def lowest_for_the_largest(g: Given) -> Outputs:
    """A result beyond 32 bits is the lowest number."""
    due = g.expected[0].value
    return [Near(due, 1, np.full_like(due, np.iinfo(due.dtype).min))]


def slope_of_the_first_channel(g: Given) -> Outputs:
    """Only the first channel meets the slope."""
    due = g.expected[0].value
    return [Near(due, np.where(np.arange(due.shape[-1]) > 0, np.inf, 0.0) + np.zeros(due.shape))]


def nan_is_anything(g: Given) -> Outputs:
    """What is NaN is clamped like a number; the rest is right."""
    due = g.expected[0].value
    return [Near(due, np.where(np.isnan(due.astype(np.float64)), np.inf, 0.0))]


def first_image_of_padding(g: Given) -> Outputs:
    """Of padding around nothing the first of the batch is written, the others are what lay in memory."""
    due = g.expected[0].value
    later = np.arange(len(due)).reshape(-1, *(1,) * (due.ndim - 1)) > 0 if due.ndim else False
    return [Near(due, np.where(np.broadcast_to(later, due.shape), np.inf, 0.0))]


def first_element_of_a_slice(g: Given) -> Outputs:
    """The index overflows behind the first element that is taken."""
    due = g.expected[0].value
    return [Near(due, np.where(np.arange(due.size).reshape(due.shape) > 0, np.inf, 0.0))]


def last_planes_left_out(g: Given) -> Outputs:
    """Of the planes of the input those count that would be there without padding behind the last one."""
    x, planes, due = g["input"], g["filter"].shape[0], g.expected[0].value
    step, n = g.attr("stride_d", 1), due.shape[1]
    before = max(0, (x.shape[1] - 1) * step + planes - n) // 2
    count = int((n + before - planes) / step) + 1  # the quotient is rounded toward zero
    return g.reevaluate(inputs={"input": np.where(np.arange(x.shape[1]).reshape(1, -1, 1, 1, 1) < count, x, 0)})


def scattered_without_bounds(g: Given) -> Outputs:
    """Every element of a window that is not all inside may be written somewhere."""
    x, idx, updates, at = g["input"], g["scatter_indices"], g["updates"], g.attr("index_vector_dim", 0)
    idx = np.moveaxis(idx[..., None] if at == idx.ndim else idx, at, -1)
    windows, due = [updates.shape[w] for w in g.attr("update_window_dims", [])], g.expected[0].value
    extents = dict.fromkeys(g.attr("inserted_window_dims", []), 1)
    extents |= dict(zip((a for a in range(x.ndim) if a not in extents), windows))
    mapped = g.attr("scatter_dims_to_operand_dims", [])
    most = np.array([x.shape[a] - extents[a] for a in mapped])
    outside = int(((idx < 0) | (idx > most)).any(-1).sum()) * int(np.prod(windows, dtype=int))

    def few(a: np.ndarray) -> bool:
        return a.shape == due.shape and a.dtype == due.dtype and 0 < int((a != due).sum()) <= outside

    return [Such(few, due)]


def packed_bytes_as_floats(g: Given) -> Outputs:
    """The bytes of a packed 4-bit filter are read as floats: filters of which all bytes are there are known."""
    w, x, due = g["filter"], g["input"], g.expected[0].value
    nibbles = np.append(w.astype(np.int8).ravel(), np.zeros(w.size % 2, np.int8)).view(np.uint8) & 15
    packed = (nibbles[0::2] | nibbles[1::2] << 4).tobytes()
    stored = np.frombuffer(packed[: len(packed) // 4 * 4], np.float32)
    per = w[0].size
    known = np.arange(1, len(w) + 1) * per <= stored.size
    made = np.zeros(w.shape, np.float32)
    made.ravel()[: stored.size] = stored[: w.size]
    other = g.reevaluate(inputs={"input": x, "filter": made}, version=1)
    if other is None:
        return None
    value = other[0].value
    bound = np.broadcast_to(np.asarray(other[0].error.bound(other[0].context()), np.float64), value.shape)
    return [Near(np.where(known, value, due), np.where(known, bound, np.inf))]


def activations_off_by_256_steps(g: Given) -> Outputs:
    """Weights with a scale per block: any activation of a row may count as one that is 256 steps away."""
    w, x, q, due = g["filter"], g["input"], g.inst.tensor("filter").quantised, g.expected[0].value
    size = np.abs(w.astype(np.float64)).reshape(-1, q["block"]).sum(-1) * np.asarray(q["scale"])
    rows = x.astype(np.float64).reshape(-1, w.shape[1])
    span = np.maximum(rows, 0).max(-1) - np.minimum(rows, 0).min(-1)  # 255 steps
    off = 256.5 / 255 * np.outer(span, size.reshape(len(w), -1).sum(-1))
    return [Near(due, off.reshape(due.shape) + 1e-5)]
