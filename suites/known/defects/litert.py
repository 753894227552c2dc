"""What comes where a difference is listed (``harness/ledger/defect_models.py``): LiteRT's reference and optimised
kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.dtypes import of
from harness.ledger.defect_models import Near, Such
from suites.semantics.quantised import fixed
from suites.semantics.quantised.output import clamp_range, finish

Outputs = list[Any] | None


def _scaled(x: np.ndarray, by: float) -> np.ndarray:
    """Integers times a real of at most 1 in the kernels' fixed point: the product with a 31-bit multiplier is rounded,
    then shifted and rounded again, halves away from zero."""
    m, e = map(int, fixed.multiplier(by))
    high = np.abs(x).astype(object) * m + (1 << 30) >> 31
    return np.asarray(np.sign(x) * (high + (1 << -e >> 1) >> -e), np.int64)


def compared_in_256ths(g: Given) -> Outputs:
    """Quantised operands are brought to multiples of 1/256 before they are compared."""
    args = {s: g.inst.tensor(s).quantised for s in g.inst.args}
    x, y = (_scaled(fixed.centred(g[s], q) * 256, q["scale"][0]) for s, q in args.items())
    op = {
        "EQUAL": np.equal,
        "NOT_EQUAL": np.not_equal,
        "LESS": np.less,
        "LESS_EQUAL": np.less_equal,
        "GREATER": np.greater,
        "GREATER_EQUAL": np.greater_equal,
    }[g.inst.op]
    return [op(x, y)]


def compared_with_a_multiplier_above_1(g: Given) -> Outputs:
    """The same, but an operand of a step of 1 and more is shifted by a negative number, which leaves -1, 0 or 1."""

    def ends(slot: str) -> tuple[np.ndarray, np.ndarray]:
        q = g.inst.tensor(slot).quantised
        x = fixed.centred(g[slot], q)
        if q["scale"][0] >= 1:
            return np.full_like(x, -1), np.ones_like(x)
        return (_scaled(x * 256, q["scale"][0]),) * 2

    (x0, x1), (y0, y1) = (ends(s) for s in g.inst.args)
    same = (x0 <= y1) & (y0 <= x1)  # may they be equal, and need they be?
    sure = (x0 == x1) & (y0 == y1) & same
    may, must = {
        "EQUAL": (same, sure),
        "NOT_EQUAL": (~sure, ~same),
        "LESS": (x0 < y1, x1 < y0),
        "LESS_EQUAL": (x0 <= y1, x1 <= y0),
        "GREATER": (x1 > y0, x0 > y1),
        "GREATER_EQUAL": (x1 >= y0, x0 >= y1),
    }[g.inst.op]
    return [Near(must, 0, may)]


def limited_alone(g: Given) -> Any:
    """What is due of an activation that LiteRT knows: one that is no limit is left out."""
    name = "fused_activation_function"
    found = g.reevaluate(attrs={name: "NONE"}) if g.attr(name, "NONE") in fixed.CURVES else None
    return (found or g.expected)[0].value


def quotients_shifted_by_more_than_31(g: Given) -> Outputs:
    """Where the quotient in fixed point is to be shifted right by more than 31, anything within the activation's range
    comes."""
    (x, q), (y, r) = (
        (fixed.centred(g[s], g.inst.tensor(s).quantised), g.inst.tensor(s).quantised) for s in ("lhs", "rhs")
    )
    out, due = g.attr("@outputs")[0]["quant"], limited_alone(g)
    _, shift = fixed.multiplier(q["scale"][0] / (r["scale"][0] * out["scale"][0]))
    _, above = np.frexp(np.abs(y).astype(np.float64))  # the reciprocal is shifted by one bit less than y has
    x = np.where(y < 0, -x, x)  # the divisor is made positive first
    _, bits = np.frexp(np.where(x < 0, -x - 1, x).astype(np.float64))  # but those that repeat the sign
    far = shift - (above - 1) - (31 - bits) < -31
    low, high, free = fixed.clamped({"oq": out, "activation": g.attr("fused_activation_function", "NONE")})
    low, high = (
        float(v) for v in fixed.saturate(np.array([np.ceil(low - free - 0.5), np.floor(high + free + 0.5)]), of(due))
    )
    middle = np.where(far, (low + high) / 2, due)
    return [Near(middle, np.where(far, (high - low) / 2, 0))]


def products_beyond_16_bits(g: Given) -> Outputs:
    """Where the scales' product is not below the output's, products of 8-bit operands, and what they are in output
    steps, are kept in 16 bits: those beyond end anywhere.  Otherwise the steps saturate at 16 bits, and the zero point
    added to them carries them to the other end; the last elements that fill no vector are right."""
    q, r = (g.inst.tensor(s).quantised for s in ("lhs", "rhs"))
    out, due = g.attr("@outputs")[0]["quant"], limited_alone(g)
    product = fixed.centred(g["lhs"], q) * fixed.centred(g["rhs"], r)
    ratio, zero = q["scale"][0] * r["scale"][0] / out["scale"][0], out["zero_point"][0]
    result = product * ratio + zero
    if ratio >= 1:
        return [Near(due, np.where(np.maximum(np.abs(product), np.abs(result)) > 32767, np.inf, 0))]
    low, high = clamp_range(out, of(due), g.attr("fused_activation_function", "NONE"))
    ends = np.where(result > 32767, low, np.where(result < -32768, high, due))
    return [Near(ends.astype(due.dtype), 0, due)]


def sums_beyond_16_bits(g: Given) -> Outputs:
    """The sum, counted in output steps, is cut to 16 bits, and once more when the zero point is added; then the result
    saturates.  Within two steps of where a cut wraps it may end anywhere.  The last few elements, which fill no vector,
    are right but for an activation that is left out."""
    q, r = (g.inst.tensor(s).quantised for s in ("lhs", "rhs"))
    out, due = g.attr("@outputs")[0]["quant"], limited_alone(g)
    real = fixed.centred(g["lhs"], q) * q["scale"][0] + fixed.centred(g["rhs"], r) * r["scale"][0]
    steps = fixed.away(real / out["scale"][0])
    cut = (steps + 32768) % 65536 - 32768
    total = (cut + out["zero_point"][0] + 32768) % 65536 - 32768
    beyond = np.maximum(np.abs(steps), np.abs(steps + out["zero_point"][0])) > 32767
    edge = np.maximum(np.abs(cut + 0.5), np.abs(total + 0.5)) > 32765
    low, high = clamp_range(out, of(due), g.attr("fused_activation_function", "NONE"))
    tolerance = np.where(edge, np.inf, 1)
    return [Near(np.where(beyond, np.clip(total, low, high), due), np.where(beyond, tolerance, 0), due)]


def sums_shifted_the_wrong_way(g: Given) -> Outputs:
    """A right shift by a negative number, which the processor takes modulo 32, leaves almost nothing of the sum."""
    out, due = g.attr("@outputs")[0]["quant"], limited_alone(g)
    larger = max(g.inst.tensor(s).quantised["scale"][0] for s in ("lhs", "rhs"))
    _, left = np.frexp(2 * larger / (2**15 * out["scale"][0]))
    none = np.clip(out["zero_point"][0], *clamp_range(out, of(due), g.attr("fused_activation_function", "NONE")))
    return [Near(np.full_like(due, none), 2.0**left)]


def differences_of_6_bits(g: Given) -> Outputs:
    """Both operands are rounded to 64ths of the larger step before they are subtracted and squared: times the
    significand of the ratio of the steps, and once more, by its power of two."""
    q, r = (g.inst.tensor(s).quantised for s in ("lhs", "rhs"))
    out, due = g.attr("@outputs")[0]["quant"], limited_alone(g)
    unit = max(q["scale"][0], r["scale"][0]) / 64

    def in_units(slot: str, p: dict[str, Any]) -> np.ndarray:
        significand, power = np.frexp(p["scale"][0] / (128 * unit))
        return np.asarray(fixed.away(fixed.away(fixed.centred(g[slot], p) * 128 * significand) * 2.0**power))

    x, y = in_units("lhs", q), in_units("rhs", r)
    steps = (x - y) ** 2 * (unit * unit / out["scale"][0])
    return [Near(finish(steps + out["zero_point"][0], out, of(due)), np.where(steps < 2.0**20, 1, 0))]


def sum_of_unsigned_bytes(g: Given) -> Outputs:
    """Whatever the quantised type, as many bytes as there are elements are read as uint8, and so is the result written,
    in f32 arithmetic: 16-bit results are pairs of bytes, the second half of them nobody's."""
    x, q, out = g["input"], g.inst.tensor("input").quantised, g.attr("@outputs")[0]["quant"]
    axes = tuple({int(a) % max(1, x.ndim) for a in np.ravel(g["axes"])}) if x.ndim else ()
    bytes_ = np.frombuffer(np.ascontiguousarray(x).tobytes(), np.uint8)[: x.size].reshape(x.shape).astype(np.int64)
    total = (bytes_ - q["zero_point"][0]).sum(axes, keepdims=bool(g.attr("keep_dims", False)))
    real = total * q["scale"][0] / out["scale"][0] + out["zero_point"][0]
    due, given = g.expected[0].value, np.clip(fixed.away(real), 0, 255).astype(np.uint8)
    if due.dtype.itemsize == 1:  # or the next one, which of 127 and 128 is no neighbour as a signed byte
        after = np.where(real > given, given.astype(int) + 1, given.astype(int) - 1).clip(0, 255)
        after = np.where((real > 0) & (real < 255), after, given)
        return [Near(*(a.astype(np.uint8).view(due.dtype).reshape(due.shape) for a in (given, 0 * given, after)))]

    def of_bytes(a: np.ndarray) -> bool:
        if a.shape != due.shape or a.dtype != due.dtype:
            return False
        came = np.frombuffer(np.ascontiguousarray(a).tobytes(), np.uint8)[: given.size].astype(np.int64)
        return bool((np.abs(came - given.ravel()) <= 1).all())

    shows = np.zeros(due.size, due.dtype)
    shows[: given.size // 2] = given.ravel()[: given.size // 2 * 2].view(due.dtype)
    return [Such(of_bytes, shows.reshape(due.shape))]


def _lrn_within(g: Given, ends: Callable[[int, int], int]) -> Outputs:
    """Local response normalisation where the window of a channel is [channel - radius, end).  A sum that overflows is
    infinite.  ends: from a channel and the radius."""
    x, radius = g["input"].astype(np.float64), g.attr("radius", 0)
    windows = [slice(max(0, c - radius), max(0, ends(c, radius))) for c in range(x.shape[-1])]
    squares = np.stack([(x[..., w] ** 2).sum(-1) for w in windows], -1)
    top = float(np.finfo(np.float32).max)
    squares = np.where(squares > top, np.inf, squares)
    out = x * (g.attr("bias", 0.0) + g.attr("alpha", 0.0) * squares) ** -float(g.attr("beta", 0.0))
    out = np.where(np.abs(out) > top, np.copysign(np.inf, out), out)
    return [Near(out, 1e-5 * np.abs(out) + 1e-37)]


def lrn_of_half_open_windows(g: Given) -> Outputs:
    """The window of a channel ends before the last one: [c - radius, c + radius)."""
    return _lrn_within(g, lambda c, radius: c + radius)


def lrn_of_wrapped_windows(g: Given) -> Outputs:
    """The end of the window, c + radius, wraps in 32 bits: it is negative, and the window has no channel."""
    return _lrn_within(g, lambda c, radius: (c + radius + 2**31) % 2**32 - 2**31)


def lrn_of_running_sum(g: Given) -> Outputs:
    """The sum of a window is that of the channel before, plus the square that enters, less the one that leaves, each
    rounded to single precision; the power is off by 4 ulp at most."""
    x, one = g["input"], np.float32
    radius = min(g.attr("radius", 0), x.shape[-1])  # beyond the channels there is nothing
    squares = np.pad(x * x * one(g.attr("alpha", 0.0)), [(0, 0)] * (x.ndim - 1) + [(radius, radius)])
    total, base = np.zeros(x.shape[:-1], one), np.zeros_like(x)
    for c in range(2 * radius):
        total = total + squares[..., c]
    for c in range(x.shape[-1]):
        total = total + squares[..., c + 2 * radius]
        base[..., c] = one(g.attr("bias", 0.0)) + total
        total = total - squares[..., c]
    power = (base.astype(np.float64) ** -float(one(g.attr("beta", 0.0)))).astype(one)
    out = x * power
    return [Near(out, 4 * np.spacing(np.abs(out)).astype(np.float64) + np.abs(x) * 2.0**-149)]


def no_grams_of_short_sentences(g: Given) -> Outputs:
    """A sentence of fewer words than the longest gram gives none."""
    short = len(str(g["input"].ravel()[0]).split()) < g.attr("ngram_size", 0)
    return [g.expected[0].value[:0]] if short else None


def rows_of_signed_bytes(g: Given) -> Outputs:
    """Rows of uint8 are read as int8: what is above 127 counts as 256 less."""
    value, q = g["value"], g.inst.tensor("value").quantised
    less = (256 * fixed.spread(q["scale"], q, value.ndim) * (value > 127))[g["lookup"]]
    due = g.expected[0].value.astype(np.float64)
    return [Near(due - less, 1e-6 * (np.abs(due) + less))]


def backward_over_the_input(g: Given) -> Outputs:
    """Parallel linking: the backward cell runs over the input, too."""
    return g.reevaluate(inputs={"aux_input": g["input"]}) if g["input"].shape == g["aux_input"].shape else None


def backward_anything_of_another_extent(g: Given) -> Outputs:
    """The same where the auxiliary input is of another extent: what is read of the input is not known."""
    if g["input"].shape[-1] == g["aux_input"].shape[-1]:
        return None
    first, *rest = (e.value for e in g.expected)
    if rest:
        return [None, *(Near(r, np.inf) for r in rest)]
    forward = len(g["fw_recurrent_weights"])
    return [Near(first, np.where(np.arange(first.shape[-1]) < forward, 1e-5, np.inf) + np.zeros(first.shape))]


def multiplied_without_subnormals(g: Given) -> Outputs:
    """Subnormal operands, partial and whole results count as zero: off by as much as these can make."""
    tiny, slots = 2.0**-126, [s for s in ("input", "filter", "weights", "x", "y") if g[s] is not None]
    if any(g[s].dtype != np.float32 for s in slots):
        return None

    def total(*parts: Any) -> Any:
        bias = {} if g["bias"] is None else {"bias": np.zeros_like(g["bias"])}
        made = {s: np.float32(p(np.abs(g[s]))) for s, p in zip(slots, parts)}
        other = g.reevaluate({"fused_activation_function": None}, {**made, **bias})
        return 0 if other is None else np.asarray(other[0].wide, np.float64)

    def ones(x: np.ndarray) -> np.ndarray:
        return np.ones_like(x)

    def gone(x: np.ndarray) -> np.ndarray:
        return (x < tiny) & (x > 0)

    terms = total(ones, ones) + 2
    lost = total(gone, np.abs) + total(np.abs, gone) + terms
    return [Near(g.expected[0].value, tiny * lost + 2.0**-23 * terms * total(np.abs, np.abs))]


def handed_on_anew(g: Given) -> list[Any] | None:
    """WHILE: what the body hands on as another value is what that has become: what a node has made of it, or what was
    copied into it before.  Values are copied in their order."""
    cond, body = g.attr("cond_subgraph_index"), g.attr("body_subgraph_index")
    run = g.case.version.dialect.runner(g.inst.opset, g.arrays)
    names, values = [n for n, _ in body.inputs], list(g["input"])
    while bool(np.ravel(run(cond, values)[0])[0]):
        made = run(body, values)
        held = [old if o in names else x for o, old, x in zip(body.outputs, values, made, strict=True)]
        for k, o in enumerate(body.outputs):
            held[k] = held[names.index(o)] if o in names else made[k]
        values = held
    return values


def shares_of_terms_from_a_table(g: Given) -> Outputs:
    """A share p of N terms, each of which may be 2 steps of 2**-15 off, however small it is: p * (8 + 2 N) + 2."""
    due = g.expected[0].value
    share = np.asarray(due, np.float64) * g.attr("@outputs")[0]["quant"]["scale"][0]
    return [Near(due, 2.5 + np.abs(share) * (8 + 2 * g["input"].shape[-1]))]


def labels_beyond_the_classes(g: Given) -> Outputs:
    """MULTINOMIAL: a class whose logit is not finite is never drawn; of a row with no other class the label is the
    number of classes."""
    finite = np.isfinite(g["logits"])
    rows, classes = finite.shape
    shows = np.where(finite.any(-1), finite.argmax(-1), classes)[:, None] + np.zeros_like(g.expected[0].value)

    def told(a: np.ndarray) -> bool:
        if a.shape != shows.shape or a.dtype != shows.dtype or np.any((a < 0) | (a > classes)):
            return False
        drawn = np.column_stack([finite, ~finite.any(-1)])[np.arange(rows)[:, None], a]
        return bool(drawn.all())

    return [Such(told, shows)]


def unique_by_an_order(g: Given) -> Outputs:
    """Elements are found in an ordered map, in which NaN is like everything: a first NaN stands for all that follow,
    and a later one for the least element so far."""
    found: list[Any] = []
    places = []
    for v in g["input"].ravel():
        if found and (np.isnan(found[0]) or np.isnan(v)):
            places.append(int(np.argmin(found)) if np.isnan(v) and not np.isnan(found[0]) else 0)
            continue
        same = [k for k, x in enumerate(found) if x == v]
        found += [] if same else [v]
        places.append(same[0] if same else len(found) - 1)
    return [np.array(found, g["input"].dtype), np.array(places, g.expected[1].value.dtype)]
