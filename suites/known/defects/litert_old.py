"""What comes where a difference is listed (``harness/ledger/defect_models.py``): older releases of LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.ledger.defect_models import Given, Near, Such
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
    value, q = g["value"], g.inst.args["value"].quant
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
