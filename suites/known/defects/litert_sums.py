"""Models of the defects of LiteRT's multiplication by a ratio of scales in 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.dtypes import of
from harness.ledger.defect_models import Near
from suites.semantics.quantised import fixed, functions, linear
from suites.semantics.quantised.output import clamp_range
from suites.semantics.quantised.products import multiplied

Outputs = list[Any] | None


def _wrapped(n: int) -> int:
    """What 32 bits keep of an integer."""
    return (n + (1 << 31)) % (1 << 32) - (1 << 31)


def _converted(n: int) -> int:
    """What x86 makes of a real number of that size in 32 bits."""
    return n if abs(n) < 1 << 31 else -(1 << 31)


def _shifted_first(acc: int, by: float) -> int:
    """An accumulator of 32 bits times a multiplier above 1: it is shifted left first, which loses its upper bits."""
    m, shift = (int(v) for v in fixed.multiplier(by))
    high = _wrapped(acc << max(shift, 0)) * m + (1 << 30) >> 31
    return high + (1 << max(-shift, 0) >> 1) >> max(-shift, 0)


def sums_beyond_32_bits(g: Given) -> Outputs:
    """The sum of products, counted in output steps, is cut to 32 bits before it saturates, so that a large one ends
    anywhere; in FULLY_CONNECTED it is converted, and x86 makes the lowest integer of what 32 bits do not hold.  Sums of
    32 bits (a bias of i32, some kernels of FULLY_CONNECTED) are shifted left before they are multiplied, which loses
    their upper bits.  Beside where a cut wraps, by as much as the rounding of a multiplier to 15 bits decides, a sum
    may end anywhere."""
    tensors, given = g.case.version.decode(g.call)
    due, zero = g.expected[0].value, given["oq"]["zero_point"][0]
    acc, scale = linear.accumulated(g.inst.op, {**tensors, **given})
    low, high = clamp_range(given["oq"], of(due), given.get("activation", "NONE"))
    pairs = [(int(a), float(s)) for a, s in zip(acc.ravel(), np.broadcast_to(scale, acc.shape).ravel())]
    steps = [int(multiplied(np.array(a, object), s)) for a, s in pairs]

    def ends(kept: list[int]) -> Any:
        return np.clip(np.array(kept, object) + zero, low, high).astype(due.dtype).reshape(due.shape)

    converted = g.inst.op == "FULLY_CONNECTED"
    cut = ends([_converted(n) if converted else _wrapped(n) for n in steps])
    beside = np.reshape([(1 << 31) - abs(_wrapped(n)) <= 2 + (abs(n) >> 15) for n in steps], due.shape)
    narrow = converted or g.attr("quantized_bias_type") == "i32"
    other = ends([_wrapped(_shifted_first(a, s)) for a, s in pairs]) if narrow else None
    return [Near(cut, np.where(beside, np.inf, 1), other)]


def _beside_ties(due: Any, places: Any, tie: Any) -> list[Any]:
    """The lower and the higher integer where a real number is as near to a tie as that, elsewhere what is due."""
    kept = due.astype(np.int64)
    ends, floor = np.iinfo(due.dtype), np.floor(places)
    near = (
        (np.abs(places - floor - 0.5) <= tie) & (np.abs(kept - places) < 1) & (floor >= ends.min) & (floor < ends.max)
    )
    return [np.where(near, floor + n, kept).astype(due.dtype) for n in (0, 1)]


def sums_wrap_in_32_bits(g: Given) -> Outputs:
    """Sums of products of 8 bits and a bias wrap in 32 bits; a multiplier above 1 shifts them left first, which loses
    their upper bits, or they are multiplied as floats, of 4 bits sixteen times as large.  Right where neither
    happens."""
    plain = g.reevaluate(attrs={"fused_activation_function": "NONE"})
    activation = g.attr("fused_activation_function", "NONE")
    if plain is None:
        return None
    tensors, given = g.case.version.decode(g.call)
    due, zero = (plain[0] if activation in fixed.CURVES else g.expected[0]).value, given["oq"]["zero_point"][0]
    acc, scale = linear.accumulated(g.inst.op, {**tensors, **given})
    low, high = clamp_range(given["oq"], of(due), activation)
    pairs = [(int(a), float(s)) for a, s in zip(acc.ravel(), np.broadcast_to(scale, acc.shape).ravel())]
    shifts = [max(0, int(fixed.multiplier(s)[1])) for _, s in pairs]
    narrow = next((g.inst.tensor(s).dtype.bits < 8 for s in ("filter", "weights") if s in g.inst.args), False)
    more = 4 if narrow else 0  # 4 bits are the upper half of a byte
    lost = np.reshape([_wrapped(a << max(n, more)) != a << max(n, more) for (a, _), n in zip(pairs, shifts)], due.shape)
    tie = linear.freedom(scale, acc, g["input"]) if activation in fixed.CURVES else -1  # else it is judged as due
    places = np.asarray(acc * scale + zero, np.float64)
    beside = [x.reshape(due.shape) for x in _beside_ties(due.reshape(places.shape), places, tie)]

    def ends(kept: list[int], right: Any) -> Any:
        made = np.clip(np.array(kept, object) + zero, low, high).astype(due.dtype).reshape(due.shape)
        return np.where(lost, made, right)

    cut = ends([_wrapped(_shifted_first(_wrapped(a), s)) for a, s in pairs], beside[0])
    other = ends([round(_wrapped(a << more) * s / 2**more) for a, s in pairs], beside[1])
    return [Near(cut, np.where(lost, 1, 0), other)] if lost.any() else None


def sums_converted_to_32_bits(g: Given) -> Outputs:
    """FULLY_CONNECTED of 8 bits: a sum of products and a bias that wraps in 32 bits, times the ratio of the scales in
    f64, is converted to 32 bits, where x86 makes the lowest integer of what they do not hold; the zero point is added
    to that in 32 bits.  Right where none of this loses anything."""
    tensors, given = g.case.version.decode(g.call)
    due, zero = g.expected[0].value, given["oq"]["zero_point"][0]
    acc, scale = linear.accumulated(g.inst.op, {**tensors, **given})
    low, high = clamp_range(given["oq"], of(due), g.attr("fused_activation_function", "NONE"))
    pairs = [(int(a), float(s)) for a, s in zip(acc.ravel(), np.broadcast_to(scale, acc.shape).ravel())]
    kept = [_wrapped(_converted(int(fixed.away(np.array(_wrapped(a) * s)))) + zero) for a, s in pairs]
    made = np.clip(np.array(kept, object), low, high).astype(due.dtype).reshape(due.shape)
    lost = np.reshape([_wrapped(a) != a or abs(a * s) + abs(zero) >= (1 << 31) - 1 for a, s in pairs], due.shape)
    return [np.where(lost, made, due)] if lost.any() else None


def steps_shifted_out_of_32_bits(g: Given) -> Outputs:
    """QUANTIZE of stored integers: each less its zero point is shifted left in 32 bits, then multiplied.  Right where
    the shift loses no bit."""
    q, out, due = g.inst.tensor("input").quantised, g.attr("@outputs")[0]["quant"], g.expected[0].value
    by = q["scale"][0] / out["scale"][0]
    if len(q["scale"]) > 1 or by < 1:
        return None
    _, shift = (int(v) for v in fixed.multiplier(by))
    low, high = clamp_range(out, of(due), "NONE")
    stored = [int(n) for n in fixed.centred(g["input"], q).ravel()]
    lost = np.reshape([_wrapped(n << shift) != n << shift for n in stored], due.shape)
    steps = np.reshape(np.array([_wrapped(_shifted_first(n, by)) for n in stored], object), due.shape)
    kept = np.clip(steps + out["zero_point"][0], low, high).astype(due.dtype)
    return [np.where(lost, kept, due)] if lost.any() else None


def products_shifted_out_of_32_bits(g: Given) -> Outputs:
    """MUL of stored integers: the product of what each is above its zero point is shifted left in 32 bits, then
    multiplied.  Right where the shift loses no bit."""
    (x, q), (y, r) = ((fixed.centred(g[s], p), p) for s in ("lhs", "rhs") for p in [g.inst.tensor(s).quantised])
    out, due = g.attr("@outputs")[0]["quant"], g.expected[0].value
    by = q["scale"][0] * r["scale"][0] / out["scale"][0]
    if by < 1:
        return None
    _, shift = (int(v) for v in fixed.multiplier(by))
    low, high = clamp_range(out, of(due), g.attr("fused_activation_function", "NONE"))
    products = [int(n) for n in np.broadcast_to(x.astype(np.int64) * y.astype(np.int64), due.shape).ravel()]
    lost = np.reshape([_wrapped(n << shift) != n << shift for n in products], due.shape)
    steps = np.reshape(np.array([_wrapped(_shifted_first(n, by)) for n in products], object), due.shape)
    kept = np.clip(steps + out["zero_point"][0], low, high).astype(due.dtype)
    return [np.where(lost, kept, due)] if lost.any() else None


def shuffled_without_activation(g: Given) -> Outputs:
    """The result without the fused activation, its sums as ``sums_wrap_in_32_bits`` has them."""
    other = g.changed(attrs={"fused_activation_function": "NONE"})
    return None if other is None else sums_wrap_in_32_bits(other) or list(other.expected)


def slopes_wrap_in_16_bits(g: Given) -> Outputs:
    """A function of 16 bits from its table: the difference of two entries is cut to 16 bits, and so is the sum of an
    entry and a part of that.  Right where neither loses anything."""
    q, out, due = g.inst.tensor("x").quantised, g.attr("@outputs")[0]["quant"], g.expected[0].value
    entries, at = functions.table(g.inst.op.lower(), q, out), g["x"].astype(np.int64)
    base, slope = entries[256 + (at >> 7)], entries[257 + (at >> 7)] - entries[256 + (at >> 7)]
    cut = slope.astype(np.int16).astype(np.int64)
    made = base + (cut * (at & 127) + 64 >> 7)
    lost = (cut != slope) | (made != made.astype(np.int16))
    return [Near(np.where(lost, made.astype(np.int16), due), np.where(lost, 2, 0))] if lost.any() else None
