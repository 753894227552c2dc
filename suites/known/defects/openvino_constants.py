"""What comes where a difference is listed (``harness/ledger/defect_models.py``): OpenVINO, what it reads of
constants, and steps that are rounded to narrow types, which a constant may meet as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.instance import Arg
from harness.ledger.defect_models import Near, Turned
from suites.semantics.recurrent import DEFAULTS, functions

Outputs = list[Any] | None
# of rounding, of a value's magnitude; f64 is computed in f32
_UNIT = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-24}


def _reread(
    g: Given, which: Callable[[Arg], bool], how: Callable[[np.ndarray], np.ndarray], attrs: dict[str, Any] | None = None
) -> Outputs:
    """What is expected where the operands that ``which`` tells of are read otherwise."""

    def read(a: Any, v: Any) -> Any:
        if isinstance(a, list):
            return [read(x, y) for x, y in zip(a, v)]
        return how(v) if isinstance(a, Arg) and isinstance(v, np.ndarray) and which(a) else v

    found = {k: read(a, g[k]) for k, a in g.inst.args.items()}
    return g.reevaluate(attrs, {k: v for k, v in found.items() if isinstance(v, list) or v is not g[k]})


def _number_of_bits(x: np.ndarray) -> np.ndarray:
    return _to_narrow(x.view(np.uint16).astype(np.float32), x.dtype)


def _to_narrow(x: Any, kind: Any) -> np.ndarray:
    """To bf16 a number is rounded up from one half on where its last bit is 1, else it is cut off."""
    if kind.name != "bfloat16":
        return np.asarray(x).astype(kind)
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + ((bits & 0x10000) >> 1)) >> 16).astype(np.uint16).view(kind)


def _typed(dtype: str) -> Callable[[Arg], bool]:
    """Is it a constant of a type in its typed data field?"""
    return lambda a: a.const and str(a.dtype) == dtype and a.encoding.endswith("_data")


def _numbers(g: Given, slot: str) -> np.ndarray:
    """What is read of a slot where the bits of bf16 in int32_data are numbers."""
    return _number_of_bits(g[slot]) if _typed("bf16")(g.inst.tensor(slot)) else g[slot]


def bits_are_numbers(g: Given, **attrs: Any) -> Outputs:
    """The bits of bf16 in int32_data are numbers."""
    return _reread(g, _typed("bf16"), _number_of_bits, attrs)


def bits_are_numbers_roughly(g: Given) -> Outputs:
    """The same, and what comes of such large ones is off by the roundings of narrow steps."""
    told = bits_are_numbers(g)
    return told and [
        Near(v, 2.0**-6 * np.abs(v)) if e.dtype.name == "bf16" else e
        for e in told
        for v in [np.asarray(e.value).astype(np.float64)]
    ]


def bits_are_numbers_unsaturated(g: Given) -> Outputs:
    """The bits of bf16 in int32_data are numbers, and saturate is 0."""
    return bits_are_numbers(g, saturate=0)


def bits_are_numbers_saturated(g: Given) -> Outputs:
    """The bits of bf16 in int32_data are numbers, and saturate is 1."""
    return bits_are_numbers(g, saturate=1)


def _to_float8(g: Given, through: Any) -> Outputs:
    x, to = _numbers(g, "input"), g.expected[0].dtype.name
    with_bits = x.astype(np.float32)
    told = g.reevaluate({"saturate": 0}, {"input": with_bits.astype(through).astype(np.float32)})
    if not told:
        return None
    lost = np.isnan(with_bits) & (with_bits.view(np.uint32) & 0x600000 == 0) & (to == "f8e5m2")
    v = told[0].value
    return [np.where(lost, np.copysign(np.float32(np.inf), with_bits).astype(v.dtype), v)]


def float8_through_f16(g: Given) -> Outputs:
    """Cast and CastLike: to float8 through f16, and saturate is 0; a NaN is an infinity where the two bits of it that
    float8e5m2 has are 0; the bits of bf16 in int32_data are numbers."""
    return _to_float8(g, np.float16)


def float8_folded(g: Given) -> Outputs:
    """The same of constants, rounded once."""
    return _to_float8(g, np.float32) if g.inst.tensor("input").const else None


_CLAMPS = {"RELU": (0, np.inf), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}


def times_reciprocal(g: Given) -> Outputs:
    """Div and DIV: a product with the reciprocal, both in f32, that of a constant in its own type, and 0 below the
    normal numbers; subnormal constants are 0, and the bits of bf16 in int32_data are numbers.  A clamp may take NaN
    for its lower end."""
    kind, least = g.expected[0].value.dtype, np.float32(2.0**-126)
    if kind.kind in "iu":
        return None
    slots = [s for s in ("A", "B", "lhs", "rhs") if s in g.inst.args]
    a, b = (_numbers(g, s).astype(np.float32) for s in slots)
    a, b = (np.where(np.abs(v) < least, 0, v) if g.inst.tensor(s).const else v for s, v in zip(slots, (a, b)))
    if g.attr("broadcast", 0) and "axis" in g.inst.attrs:
        b = b.reshape(b.shape + (1,) * (a.ndim - g.attr("axis") % max(1, a.ndim) - b.ndim))
    over = np.float32(1) / b
    over = _to_narrow(over, kind).astype(np.float32) if g.inst.tensor(slots[1]).const else over
    v = a * np.where(np.abs(over) < least, np.copysign(np.float32(0), over), over)
    low, high = _CLAMPS.get(g.attr("fused_activation_function"), (-np.inf, np.inf))
    v = np.clip(v, low, high)
    return [
        Near(
            _to_narrow(v, kind).astype(np.float64),
            np.where(np.abs(v) < least, least, 0),
            np.where(np.isnan(v) & np.isfinite(low), low, v),
        )
    ]


def wrapped_before_activation(g: Given) -> Outputs:
    """ADD, SUB and MUL of 64-bit integers: wrapped at 32 bits, then clamped."""
    a, b = (g[s].astype(object) for s in ("lhs", "rhs"))
    v = a + b if g.inst.op == "ADD" else a - b if g.inst.op == "SUB" else a * b
    low, high = (np.clip(x, _LOWEST, _HIGHEST) for x in _CLAMPS[g.attr("fused_activation_function")])
    return [np.clip((np.asarray(v - _LOWEST) % 2**32 + _LOWEST).astype(np.int64), int(low), int(high))]


def every_other_is_0(g: Given) -> Outputs:
    """The 64 bits of each u32 in uint64_data are read as two."""
    return _reread(g, _typed("u32"), _halves)


def every_other_is_0_in_f32(g: Given) -> Outputs:
    """The same, and what comes of it is rounded to f32 beyond 2**24."""
    told = every_other_is_0(g)
    if not told or any(e.value.dtype.kind not in "iu" for e in told):
        return None
    return [
        Near(e.value, np.where(size > 2**24, size * 2.0**-22, 0))
        for e in told
        for size in [np.abs(e.value.astype(np.float64))]
    ]


def _halves(x: np.ndarray) -> np.ndarray:
    return np.stack([x, np.zeros_like(x)], -1).ravel()[: x.size].reshape(x.shape)


def subnormal_constants_are_0(g: Given) -> Outputs:
    """Constants that are subnormal are +0, and zeros beside them too."""
    least = 2.0**-126
    return _reread(
        g,
        lambda a: a.const and str(a.dtype) in ("f32", "bf16"),
        lambda x: np.where(np.abs(x) < least, 0, x).astype(x.dtype),
    )


def _through_f32(x: np.ndarray) -> np.ndarray:
    ends = np.iinfo(x.dtype)
    wide = x.astype(np.float32).astype(object)
    return np.array([min(max(int(v), ends.min), ends.max) for v in wide.ravel()], x.dtype).reshape(x.shape)


def integers_rounded_to_f32(g: Given) -> Outputs:
    """Integers are rounded to f32."""
    return _reread(g, lambda a: str(a.dtype) in ("i32", "i64", "u32", "u64"), _through_f32)


def fill_in_f32(g: Given) -> Outputs:
    """Pad: the fill of integers is rounded to f32."""
    return g.reevaluate(inputs={"constant_value": _through_f32(g["constant_value"])})


def _divided_in_f32(g: Given, x: np.ndarray) -> Outputs:
    return g.reevaluate(
        {"precision": None, "saturate": None}, {"x": x.astype(np.float32), "y_scale": g["y_scale"].astype(np.float32)}
    )


def divided_in_f32(g: Given) -> Outputs:
    """QuantizeLinear divides in f32, whatever the types of its operands and precision, and saturates."""
    return _divided_in_f32(g, g["x"])


def bits_divided_in_f32(g: Given) -> Outputs:
    """The same, and the bits of bf16 in int32_data are numbers."""
    return _divided_in_f32(g, _numbers(g, "x")) if _typed("bf16")(g.inst.tensor("x")) else None


def saturated_and_rounded_twice(g: Given) -> Outputs:
    """QuantizeLinear to float8 saturates, and is off by the steps of float8 that a second rounding may cost."""
    told = g.reevaluate({"saturate": None})
    return told and [
        Near(v, np.maximum(np.abs(v) * 2.0**-2, 2.0**-9)) for e in told for v in [e.value.astype(np.float64)]
    ]


_LOWEST, _HIGHEST = -(2**31), 2**31 - 1


def powers_of_two(g: Given) -> Outputs:
    """BitShift: X times, or over, 2**Y, which has an axis.  u8 saturates, and is rounded where extents are symbolic;
    u32 and u64 are i32, their quotients f32; a power beyond i32 is the lowest, of a constant the largest, integer."""
    x, y = (_halves(g[s]) if _typed("u32")(g.inst.tensor(s)) else g[s] for s in "XY")
    left, args = g.attr("direction") == "LEFT", [g.inst.tensor(s) for s in "XY"]
    big, power = x.astype(object).reshape(x.shape or 1), 2 ** np.minimum(y, 64).astype(object)
    if x.dtype == np.uint8 and not left and any(a.dynamic for a in args):
        v = np.rint((big / power).astype(np.float64))
    elif x.dtype.itemsize < 4:
        v = big * power if left else big // power
        v = np.minimum(v, 255) if x.dtype == np.uint8 else v % 2**16
    elif all(a.const for a in args):
        v = np.minimum(big * power % 2 ** (8 * x.dtype.itemsize), _HIGHEST) if left else big // power
    else:
        power = np.where(power > _HIGHEST, _HIGHEST if args[1].const else _LOWEST, power)
        if left:
            v = (big * power - _LOWEST) % 2**32 + _LOWEST
        else:
            v = np.trunc(big.astype(np.float32) / power.astype(np.float32)).astype(np.float64)
            v = np.where(v > _HIGHEST, _LOWEST, v)
    return [v.astype(np.int64).astype(x.dtype)]


def _near(told: Outputs, *within: Any) -> Outputs:
    """What is told, but for an error: of each output, or of all."""
    return told and [
        Near(v, within[min(i, len(within) - 1)])
        for i, e in enumerate(told)
        for v in [np.asarray(e.value).astype(np.float64)]
    ]


def _wide(g: Given, slot: str) -> np.ndarray:
    return _numbers(g, slot).astype(np.float64)


def _sums_grow(g: Given, slot: str, n: float) -> float:
    """How many roundings a sum of n meets that the plain ones do not: a constant's is folded in its own type."""
    return n / 2 if g.inst.tensor(slot).const else 0


class _Moments:
    """Mean and variance where mean, differences and squares are rounded to a type; off, spread: their largest errors;
    apart: that of what is over the root of variance and epsilon."""

    def __init__(self, g: Given, axes: tuple[int, ...], eps: float) -> None:
        x, unit = _wide(g, "X"), _UNIT[g["X"].dtype.name]
        grows = _sums_grow(g, "X", x.size / max(1, x.mean(axes).size))
        self.mean, self.var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
        self.off = unit * (np.abs(self.mean) + grows * np.abs(x).mean(axes, keepdims=True))
        self.spread = self.off**2 + (4 + grows) * unit * (self.var + self.off**2)
        root = np.sqrt(np.maximum(self.var - self.spread, 0) + eps)
        apart = np.abs(x - self.mean) + self.off
        self.apart = (self.off + apart * (6 * unit + self.spread / (self.var + eps))) / root


def statistics_rounded(g: Given) -> Outputs:
    """BatchNormalization: mean, differences, their squares, variance and what follows are rounded to the type of X, the
    running statistics to their own.  Of constants of bf16 in int32_data the bits are numbers."""
    told, rank = bits_are_numbers(g), g["X"].ndim
    scale, shift = (np.abs(_wide(g, s)).reshape([1, -1] + [1] * (rank - 2)) for s in ("scale", "B"))
    old_mean, old_var = (np.abs(_wide(g, s)) for s in ("input_mean", "input_var"))
    unit, keeps = _UNIT[g["X"].dtype.name], g.attr("momentum", 0.9)
    own = 8 * max(unit, _UNIT[g["input_mean"].dtype.name])
    m = _Moments(g, tuple(i for i in range(rank) if i != 1), g.attr("epsilon", 1e-5))
    return told and _near(
        told,
        scale * m.apart + 4 * unit * (shift + np.abs(told[0].value.astype(np.float64))),
        (1 - keeps) * m.off.ravel() + own * (old_mean + np.abs(m.mean).ravel()),
        (1 - keeps) * m.spread.ravel() + own * (old_var + m.var.ravel()),
    )


def moments_rounded(g: Given) -> Outputs:
    """MeanVarianceNormalization: the same of its mean, differences, squares and variance."""
    axes = tuple(a % g["X"].ndim for a in g.attr("axes") or (0, 2, 3))
    return _near(bits_are_numbers(g), _Moments(g, axes, 1e-18).apart)


def weighted_losses_rounded(g: Given) -> Outputs:
    """NegativeLogLikelihoodLoss: the weighted losses, and the sum of weights, are rounded to the type of input."""
    weight, x = (_numbers(g, s) for s in ("weight", "input"))
    sizes = g.reevaluate(inputs={"input": -np.abs(x), "weight": weight})
    told, unit = bits_are_numbers(g), _UNIT[x.dtype.name]
    if not told or not sizes or np.any(weight < 0):
        return None
    of = unit * (1 + _sums_grow(g, "input", x.size) + _sums_grow(g, "weight", x.size))
    return _near(told, of * (sizes[0].value.astype(np.float64) + 3 * np.abs(told[0].value.astype(np.float64))))


def exponents_rounded(g: Given) -> Outputs:
    """Softmax, LogSoftmax, SoftmaxCrossEntropyLoss: differences from the maximum, exponentials, their sum, its log
    and quotients are rounded to the type of the input."""
    slot, loss = ("scores", True) if g["input"] is None else ("input", False)
    x, unit = _wide(g, slot), _UNIT[g[slot].dtype.name]
    axes: tuple[int, ...] = (1 if loss else g.attr("axis", -1 if int(g.inst.version) > 12 else 1),)
    if not loss and int(g.inst.version) < 13:
        axes = tuple(range(axes[0] % (x.ndim + 1), x.ndim))
    below = x.max(axes, keepdims=True) - x
    total = np.exp(-below).sum(axes, keepdims=True)
    grows = _sums_grow(g, slot, x.size / max(1, total.size))
    logarithm = unit * (4 + grows + 2 * below + 2 * np.log(total))
    told = bits_are_numbers(g)
    if not loss:
        share = np.exp(-below) / total
        return _near(told, logarithm if g.inst.op == "LogSoftmax" else share * np.expm1(logarithm + 2 * unit))
    w = np.ones(x.shape[1]) if g["weights"] is None else _wide(g, "weights")
    read = w[[k for k in g["labels"].ravel() if 0 <= k < w.size]]  # the others are ignored
    times = {"none": 1, "sum": read.size, "mean": read.size / max(abs(read.sum()), 1e-9)}[g.attr("reduction", "mean")]
    return _near(told, 8 * np.abs(w).max() * times * logarithm.max(), logarithm)


def bias_added_to_rounded(g: Given) -> Outputs:
    """Conv and ConvTranspose: the sum of products is rounded to the type of X before the bias is added."""
    told, unit = bits_are_numbers(g), _UNIT[g["X"].dtype.name]
    bias = np.abs(_wide(g, "B")).reshape([1, -1] + [1] * (g["X"].ndim - 2))
    return told and _near(told, unit * (3 * np.abs(told[0].value.astype(np.float64)) + bias))


def gaps_multiplied(g: Given) -> Outputs:
    """ConvTranspose of bf16 where the processor multiplies tiles: the input is spread out with zeros between the
    strides and about it, so that a weight that is not finite gives NaN wherever one of its taps meets no input;
    subnormal factors are 0; the sum is rounded before the bias is added."""

    def normal(v: np.ndarray) -> np.ndarray:
        return np.where(np.abs(v.astype(np.float32)) < 2.0**-126, 0, v).astype(v.dtype)

    x, w, groups = normal(_numbers(g, "X")), normal(_numbers(g, "W")), g.attr("group", 1)
    told, unit = g.reevaluate(inputs={"X": x, "W": w, **({} if g["B"] is None else {"B": _numbers(g, "B")})}), 2.0**-8
    odd = (~np.isfinite(w.astype(np.float32))).astype(np.float32)
    met = g.reevaluate(inputs={"X": np.ones(x.shape, np.float32), "W": odd, "B": None})
    if not told or not met:
        return None
    ranks = (1,) * (x.ndim - 2)
    taps = odd.reshape(groups, -1, w.shape[1], *w.shape[2:]).sum((1, *range(3, w.ndim + 1))).reshape(1, -1, *ranks)
    v = told[0].value.astype(np.float64)
    bias = 0 if g["B"] is None else np.abs(_wide(g, "B")).reshape(1, -1, *ranks)
    return [Near(v, unit * (3 * np.abs(v) + bias), np.where(met[0].value < taps, np.nan, v))]


def largest_sample(g: Given) -> Outputs:
    """RoiAlign: the largest interpolated sample, and no less than 0, and sampling_ratio is 1 where it is absent: the
    means of bins of one sample each."""
    x, rois = _numbers(g, "X"), g["rois"]
    ratio, scale = g.attr("sampling_ratio", 1), g.attr("spatial_scale", 1.0)
    if g.attr("mode", "avg") == "avg":
        return g.reevaluate({"sampling_ratio": ratio}, {"X": x})
    halved = int(g.inst.version) > 10 and g.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    bins, rows = [g.attr("output_height", 1), g.attr("output_width", 1)], []
    for k, (x1, y1, x2, y2) in enumerate(rois.astype(np.float64) * scale):
        sides = [v if halved else max(v, 1.0) for v in (y2 - y1, x2 - x1)]
        n = [ratio or max(1, int(np.ceil(v / b))) for v, b in zip(sides, bins)]
        fine = {"output_height": bins[0] * n[0], "output_width": bins[1] * n[1]}
        told = g.reevaluate(
            {"mode": "avg", "sampling_ratio": 1, **fine},
            {"X": x, "rois": rois[k : k + 1], "batch_indices": g["batch_indices"][k : k + 1]},
        )
        if not told:
            return None
        rows.append(told[0].value.astype(np.float64).reshape(x.shape[1], bins[0], n[0], bins[1], n[1]).max((2, 4)))
    v, unit = np.maximum(np.stack(rows), 0), _UNIT[x.dtype.name]
    return [Near(v, 64 * 2.0**-24 * np.abs(x.astype(np.float64)).max() * max(x.shape) + 2 * unit * np.abs(v))]


def root_of_a_narrow_exponent(g: Given) -> Outputs:
    """LpPool and GlobalLpPool: the exponent 1 / p is rounded to the type of X, as are powers, sum and root."""
    p, unit = g.attr("p", 2), _UNIT[g["X"].dtype.name]
    exponent = float(_to_narrow(1 / p, g["X"].dtype))
    told = bits_are_numbers(g)
    return told and [Near(v, 16 * unit * v) for e in told for v in [e.value.astype(np.float64) ** (p * exponent)]]


# who takes one, in the order of activations
_ALPHA_BETA = {"activation_alpha": tuple(DEFAULTS), "activation_beta": ("affine", "scaled_tanh", "hard_sigmoid")}


def _as_read(g: Given, ways: int) -> dict[str, Any]:
    """Attributes of RNN, GRU and LSTM as they are read: each of so many directions has the activations of the first;
    no layout, no input_forget."""
    said = functions(g.inst.op.lower(), len(g["W"]), *(g.attr(s) for s in ("activations", *_ALPHA_BETA)))
    acts = said[: len(said) // len(g["W"])] * ways
    out: dict[str, Any] = {"layout": None, "input_forget": None, "activations": [name for name, *_ in acts]}
    for i, (s, takers) in enumerate(_ALPHA_BETA.items(), 1):
        out[s] = [v[i] for v in acts if v[0] in takers] or None
    return out


def unread_of_recurrent(g: Given) -> Outputs:
    """RNN, GRU and LSTM: layout, input_forget and peepholes are not read, both directions take the activations of the
    first, and the last state of an empty sequence is 0."""
    read = {s: None if s == "P" else _numbers(g, s) for s, a in g.inst.args.items() if isinstance(a, Arg)}
    told = g.reevaluate(_as_read(g, len(g["W"])), read)
    if not told or g["sequence_lens"] is None:
        return told
    some = g["sequence_lens"].reshape(-1, 1) > 0
    return [
        told[0],
        *(
            replace(e, value=np.where(some, e.value, 0).astype(e.value.dtype), wide=np.where(some, e.real, 0))
            for e in told[1:]
        ),
    ]


def state_rounded(g: Given) -> Outputs:
    """RNN, GRU and LSTM of bf16: the state is rounded between the steps, as the sums of each are; of constants in
    int32_data the bits are numbers; both directions take the activations of the first; LSTM reads neither input_forget
    nor peepholes, none reads layout, and the last state of an empty sequence is 0.  Done a step at a time."""
    lstm, kind = g.inst.op == "LSTM", g["X"].dtype
    slots = [s for s in ("X", "W", "R", "B", "initial_h", "initial_c") if g[s] is not None]
    arrays = {s: _numbers(g, s).astype(np.float32) for s in slots}
    x = arrays["X"]
    (steps, rows, _), (ways, _, size) = x.shape, arrays["R"].shape
    y, last, memory = np.zeros((steps, ways, rows, size)), np.zeros((ways, rows, size)), np.zeros((ways, rows, size))
    if any(arrays[s].shape != last.shape for s in ("initial_h", "initial_c") if s in arrays):
        return None
    as_read = {**_as_read(g, 1), "direction": "forward"}
    for d, row in np.ndindex(ways, rows):
        of = {s: arrays[s][d : d + 1] for s in ("W", "R", "B") if s in arrays} | {"sequence_lens": None}
        h, c = (
            arrays[s][d : d + 1, row : row + 1] if s in arrays else np.zeros((1, 1, size), np.float32)
            for s in ("initial_h", "initial_c")
        )
        turns = range(steps if g["sequence_lens"] is None else int(g["sequence_lens"][row]))
        for t in turns if d == 0 and g.attr("direction") != "reverse" else reversed(turns):
            given = {**of, "X": x[t : t + 1, row : row + 1], "initial_h": h}
            given |= {"initial_c": c, "P": None} if lstm else {}
            told = g.reevaluate(as_read, given, outs=3 if lstm else 2)
            if not told:
                return None
            h = _to_narrow(told[1].value, kind).astype(np.float32)
            c = told[2].value.astype(np.float32) if lstm else c
            y[t, d, row] = h[0, 0]
        if turns:
            last[d, row], memory[d, row] = h[0, 0], c[0, 0]
    within = 2 * (1 + steps) * _UNIT[kind.name]  # of both roundings of each step, carried to the end undamped
    return [Near(v, within * np.maximum(1, np.abs(v))) for v in (y, last, memory)[: g.inst.outs]]


def partial_sums_rounded(g: Given) -> Outputs:
    """Einsum: sums over an axis of one operand, and those over an axis of both, are rounded to the type one by one."""
    sizes = g.reevaluate(inputs={"Inputs": [np.abs(v) for v in g["Inputs"]]})
    told = bits_are_numbers(g)
    return told and sizes and _near(told, 4 * _UNIT[g["Inputs"][0].dtype.name] * sizes[0].value.astype(np.float64))


def dequantized_in_steps(g: Given) -> Outputs:
    """DequantizeLinear: x, its zero point, their difference and the product are rounded to the type of the scale or of
    the result, where f16 has none as large to its largest number."""
    names = (g["x_scale"].dtype.name, g.expected[0].value.dtype.name)
    units = [_UNIT.get(d, 0.0) for d in names]
    x = g["x"]
    if x.dtype.kind in "iu" and x.dtype.itemsize == 4 and "float16" in names:
        x = np.clip(x, -65504, 65504)
    apart, told = g.reevaluate(inputs={"x": x, "x_zero_point": None}), g.reevaluate(inputs={"x": x})
    if not apart or not told:
        return None
    size, v = (np.abs(t[0].value.astype(np.float64)) for t in (apart, told))
    return _near(told, max(units) * (2 * size + 4 * v))


def indices_turned(g: Given) -> Outputs:
    """MaxPool: the indices are those of storage_order 0, their spatial axes in reverse order."""
    told = bits_are_numbers(g, storage_order=0)
    return told and [told[0], *(Turned(e, lambda a: a.transpose(0, 1, *range(a.ndim - 1, 1, -1))) for e in told[1:])]
