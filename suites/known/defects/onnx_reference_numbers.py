"""What comes where a difference is listed (``harness/ledger/defect_models.py``): onnx.reference, arithmetic."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from harness.cases.given import Given
from harness.core.dtypes import int_range, of
from harness.declare import Expected
from harness.ledger.defect_models import Near, Turned
from harness.ledger.edits import edited
from suites.semantics.attention import additive
from suites.semantics.qdq import spread

Outputs = list[Any] | None


def truncated(g: Given) -> Outputs:
    """Fractions are cut off."""
    return [np.trunc(g["input"].astype(np.float64))]


def along_the_axis_alone(g: Given, default: int = -1) -> list[Any] | None:
    """Softmax, Hardmax before 13: over the one axis, not over all from there on; the default is -1."""
    axis, x = g.attr("axis", default), g["input"]
    found = g.reevaluate({"axis": -1 if int(g.inst.version) >= 11 else x.ndim - 1}, {"input": np.moveaxis(x, axis, -1)})
    return found and [Turned(found[0], lambda y: np.moveaxis(y, axis, -1))]


def along_axis_1_alone(g: Given) -> list[Any] | None:
    """The same, and the default is 1."""
    return along_the_axis_alone(g, 1)


def _log_of_softmax(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """The logarithm of a softmax that is rounded, or underflows, in the type of x; how far it may be off."""
    info, d = ml_dtypes.finfo(x.dtype), x.astype(np.float64) - x.astype(np.float64).max(axis, keepdims=True)
    y = np.exp(d) / np.exp(d).sum(axis, keepdims=True)
    off = y * info.eps * (4 + x.shape[axis] + np.abs(d)) + info.smallest_subnormal
    low, z, high = (np.log(np.maximum(v, 0)) for v in (y - off, y, y + off))
    gone = y < info.smallest_subnormal / 4
    return np.where(gone, -np.inf, z), np.where(gone, 0, np.maximum(high - z, z - low))


def log_of_the_softmax(g: Given) -> list[Near]:
    """LogSoftmax: the logarithm of a softmax that is rounded, or underflows, in the type of X; along the one axis."""
    return [Near(*_log_of_softmax(g["input"], g.attr("axis", -1)))]


def loss_of_rounded_logarithms(g: Given) -> list[Near]:
    """SoftmaxCrossEntropyLoss: of a rounded softmax, whose logarithm it is.  NegativeLogLikelihoodLoss: an ignore_index
    of -1 leaves the ignored elements in the mean.  Sums are rounded step by step."""
    nll, ignore = g.inst.op == "NegativeLogLikelihoodLoss", g.attr("ignore_index")
    x, target, weight = (g[s] for s in (("input", "target", "weight") if nll else ("scores", "labels", "weights")))
    z, off = (x.astype(np.float64), np.zeros(x.shape)) if nll else _log_of_softmax(x, 1)
    keep = np.ones(target.shape, bool) if ignore is None else target != ignore
    at, eps = np.where(keep, target, 0)[:, None], ml_dtypes.finfo(x.dtype).eps
    w = np.where(keep, 1.0 if weight is None else weight.astype(np.float64)[at[:, 0]], 0)
    loss = np.where(keep, -np.take_along_axis(z, at, 1)[:, 0], 0) * w
    err = np.where(w != 0, np.take_along_axis(off, at, 1)[:, 0], 0) * np.abs(w) + np.abs(loss) * 4 * eps
    err = np.where(np.isfinite(loss), err, 0)
    how = g.attr("reduction", "mean")
    if how != "none":
        under = 1 if how == "sum" else w.size if nll and weight is None and ignore == -1 else w.sum()
        err = (err.sum() + np.abs(loss).sum() * eps * (4 + w.size)) / np.abs(under)
        loss = loss.sum() / under
    err = np.where(np.isnan(err), 0, err)
    return [Near(loss, err), Near(z, off)][: len(g.expected)]


def sums_with_their_sign(g: Given) -> list[Near]:
    """LpNormalization, p = 1: divided by the sum of the elements, not of their magnitudes, 0 where that is 0; in the
    type of the input, and with NumPy's order of the sum: where it cancels the last digits decide."""
    x, axis = g["input"], g.attr("axis", -1)
    total = np.expand_dims(np.sum(x, axis), axis)
    y = np.where(total == 0, 0, x / total).astype(x.dtype)
    return [Near(y, np.abs(y.astype(np.float64)) * 8 * ml_dtypes.finfo(x.dtype).eps)]  # a power of 1 is not exact


def products_in_double(g: Given) -> list[Near]:
    """Gemm of integers: the product wraps around, is multiplied by alpha in f64, and so is C by beta; what that makes
    too large for the type is undefined."""
    a, b = (g[s].T if g.attr(t, 0) else g[s] for s, t in (("A", "transA"), ("B", "transB")))
    y = np.dot(a, b) * np.float64(g.attr("alpha", 1.0))
    if g["C"] is not None:
        y = y + g["C"] * np.float64(g.attr("beta", 1.0))
    return [_cut(y, a.dtype)]


def _cut(y: np.ndarray, d: Any) -> Near:
    """Doubles that become integers; of what the type does not hold and of NaN anything may come, by the processor."""
    info = np.iinfo(d)
    fits = (y > float(info.min) - 1) & (y < float(info.max) + 1)
    return Near(np.where(fits, y, 0).astype(d), np.where(fits, 0, np.inf))


def on_times_difference(g: Given) -> list[Any] | None:
    """OneHot: one times the difference of on and off, plus off."""
    off, on = g["values"]
    found = g.reevaluate(inputs={"values": np.array([0, 1], np.uint8)})
    return found and [found[0].value.astype(g["values"].dtype) * (on - off) + off]


def indices_as_they_are(g: Given) -> list[Any] | None:
    """OneHot: a fraction is held against the classes without a cast, and equals none."""
    off, on = g["values"]
    x = g["indices"].astype(np.float64)
    with np.errstate(all="ignore"):
        whole = np.where((x == np.trunc(x)) & (np.abs(x) < 2.0**24), x, 2.0**24)  # no class
    found = g.reevaluate(inputs={"values": np.array([0, 1], np.uint8), "indices": whole})
    return found and [found[0].value.astype(g["values"].dtype) * (on - off) + off]


def places_that_wrap(g: Given) -> list[Any]:
    """TensorScatter: the place of an element is added up in int64, which wraps around, before the modulo."""
    out, update, first = g["past_cache"].copy(), g["update"], g["write_indices"]
    axis = int(g.attr("axis", -2)) % out.ndim
    with np.errstate(over="ignore"):
        at = (first[:, None] + np.arange(update.shape[axis], dtype=np.int64)) % out.shape[axis]
    for row, new, places in zip(out, update, at, strict=True):
        np.moveaxis(row, axis - 1, 0)[places] = np.moveaxis(new, axis - 1, 0)
    return [out]


def truth_of_the_text(g: Given) -> list[Any]:
    """Cast: strings are true unless they are empty; truth values are written as Python's."""
    x = g["input"]
    return [x.astype(str) if x.dtype == bool else np.array([bool(t) for t in x.ravel()]).reshape(x.shape)]


def root_of_the_scale_in_f32(g: Given, fill: int = 0) -> list[Expected] | None:
    """Attention, FlexAttention: scale is the square of its root in f32, in FlexAttention also one that is not given;
    with a softcap mode 0 gives the scores that it was put on; a short mask of unsigned integers is filled up with what
    NumPy makes of -inf there, which is 0."""
    flex, mode, mask = g.inst.op == "FlexAttention", g.attr("qk_matmul_output_mode", 0), g["attn_mask"]
    scale = g.attr("scale", 1 / np.sqrt(g["Q"].shape[-1]) if flex else None)
    attrs = {} if scale is None or g["Q"].dtype != np.float64 else {"scale": float(np.sqrt(np.float32(scale))) ** 2}
    if not flex and not mode and g.attr("softcap", 0) > 0:
        attrs["qk_matmul_output_mode"] = 1
    if mask is None or mask.dtype.kind != "u":
        return g.reevaluate(attrs)
    room = g["K"].shape[-2] + (0 if g["past_key"] is None else g["past_key"].shape[-2]) - mask.shape[-1]
    filled = np.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, room)], constant_values=mask.dtype.type(fill))
    return g.reevaluate(attrs, {"attn_mask": filled})


def mask_filled_with_the_highest_bit(g: Given) -> list[Expected] | None:
    """The same where -inf, whose conversion is undefined, becomes 2^63: of 64 bits on x86-64."""
    mask = g["attn_mask"]
    return root_of_the_scale_in_f32(g, 1 << 63) if mask is not None and mask.dtype == np.uint64 else None


def mask_filled_up(g: Given) -> list[Expected] | None:
    """Attention: a mask of fewer columns than keys is filled up with -inf, one of a single column too."""
    mask, past = g["attn_mask"], g["past_key"]
    keys = g["K"].shape[-2] + (0 if past is None else past.shape[-2])
    return None if mask is None else g.reevaluate(inputs={"attn_mask": additive(mask, keys)})


def _batch_rows(g: Given) -> tuple[Any, ...]:
    """X; scale, B, mean and variance along its channels, of version 9 what running statistics would be after the batch;
    epsilon."""
    x, scale, bias, mean, var = (g[slot.name] for slot in g.case.version.schema.inputs)
    if g.inst.version == 9:
        axes, m = tuple(a for a in range(x.ndim) if a != 1), np.float32(g.attr("momentum", 0.9))
        mean, var = mean * m + x.mean(axes) * (1 - m), var * m + x.var(axes) * (1 - m)
    rows = (v.reshape(-1, *[1] * (x.ndim - 2)) for v in (scale, bias, mean, var))
    return (x, *rows, np.float32(g.attr("epsilon", 1e-5)))


def normalised_by_other_statistics(g: Given) -> list[Near]:
    """BatchNormalization: the deviation is computed in the type of the variance, at least f32; the product with the
    scale, in the type of X, may overflow before it is divided; version 9 normalises by what running statistics would be
    after the batch, where a sum beyond the type may be infinite or NaN: its order is that of the memory."""
    x, scale, bias, mean, var, epsilon = _batch_rows(g)
    first = scale * (x - mean)
    wide, scale, bias, mean, deviation = (v.astype(np.float64) for v in (x, scale, bias, mean, np.sqrt(var + epsilon)))
    size = np.abs(scale) * (np.abs(wide) + np.abs(mean)) / deviation + np.abs(bias)
    y = np.where(np.isfinite(first), scale * (wide - mean), first) / deviation + bias
    sums = np.abs(wide).sum(tuple(a for a in range(x.ndim) if a != 1), keepdims=True)
    beyond = (g.inst.version == 9) & np.isfinite(sums) & (sums >= float(ml_dtypes.finfo(x.dtype).max) / 2)
    y = y.astype(x.dtype).astype(np.float64)  # the quotient may overflow, too
    return [Near(y, np.where(beyond, np.inf, size * 16 * ml_dtypes.finfo(x.dtype).eps))]


def trained_in_the_type(g: Given) -> list[Any]:
    """BatchNormalization in training: mean and variance are rounded to the type of X, where the variance may overflow,
    and so are the running ones; sums of bf16 are rounded at each step, which many terms do not survive."""
    x, scale, bias, mean, var, epsilon = _batch_rows(g)
    axes = tuple(a for a in range(x.ndim) if a != 1)
    m, now = np.float32(g.attr("momentum", 0.9)), [f(x, axes, keepdims=True)[0] for f in (np.mean, np.var)]
    y = scale * (x - now[0]) / np.sqrt(now[1] + epsilon) + bias
    told = [y, *((old * m + new * (1 - m)).ravel() for old, new in zip((mean, var), now, strict=True))]
    whole = of(x).name == "bf16"
    return [_of_the_type(e, v.astype(x.dtype), whole) for e, v in zip(g.expected, told, strict=False)]


def _of_the_type(e: Expected, y: np.ndarray, whole: bool = False) -> Turned:
    """Where y is infinite or NaN that comes, in whatever type; else what is right as far as the type of y allows.
    whole: y comes everywhere."""
    odd = ~np.isfinite(y.astype(np.float64)) | whole
    due = np.where(odd, y.astype(np.float64), e.value.astype(np.float64)).astype(e.value.dtype)
    there = replace(e, value=due, wide=np.where(odd, y.astype(np.float64), e.real))
    return Turned(there, partial(_converted, e=there))


def rounded_sigmoid(g: Given) -> list[Near]:
    """Swish: the sigmoid, whose exponential overflows, is rounded to the type of X before it is multiplied."""
    x, info = g["X"].astype(np.float64), ml_dtypes.finfo(g["X"].dtype)
    s = 1 / (1 + np.exp(-g.attr("alpha", 1.0) * x))
    least = info.smallest_subnormal + 1 / float(np.finfo("f8" if g["X"].dtype == np.float64 else "f4").max)
    return [Near(np.where(s < least / 4, 0, x * s), np.abs(x) * (s * 4 * info.eps + least))]


def error_function_in_f32(g: Given) -> list[Any]:
    """Erf, and Gelu that is made of it, in f64: the error function is rounded to f32, and so are Gelu's constants."""
    if g.inst.op == "Erf":
        return [g.expected[0].value.astype(np.float32).astype(np.float64)]
    return [Near(g.expected[0].value, np.abs(g["X"]) * np.finfo(np.float32).eps)]


def sixth_in_f32(g: Given) -> list[Near]:
    """HardSwish in f64: 1/6 is rounded to f32."""
    y = g["X"] * np.clip(g["X"] * float(np.float32(1 / 6)) + 0.5, 0, 1)
    return [Near(y, np.abs(g["X"]) * 2 * np.finfo(np.float64).eps)]


def defaults_of_selu_6(g: Given) -> list[Expected] | None:
    """Selu-1: what is left out has the default of version 6."""
    return g.reevaluate({"alpha": 1.6732631921768188, "gamma": 1.0507010221481323, **g.inst.attrs})


def slope_times_everything(g: Given) -> list[Any] | None:
    """PRelu: the slope multiplies all but what is above 0, zeros too; one slope a channel is broadcast from the right
    where that can be done, else along the one axis of its extent."""
    x, slope = g["X"], g["slope"]
    try:
        np.broadcast_shapes(x.shape, slope.shape)
    except ValueError:
        if slope.ndim != 1 or x.shape.count(slope.size) != 1:  # refused
            return None
        slope = slope.reshape([n if n == slope.size else 1 for n in x.shape])
    return [np.where(x > 0, x, x * slope).astype(x.dtype)]


def infinities_unclipped(g: Given) -> list[Any]:
    """Clip: a bound that is left out is no bound for infinities."""
    x, y = g["input"], g.expected[0].value
    bounds = [g[s] is None and s not in g.inst.attrs for s in ("min", "max")]
    high = np.isinf(x) & np.where(x > 0, bounds[1], bounds[0])
    return [np.where(high, x, y)]


def times_one(g: Given) -> list[Any]:
    """Expand: elements are multiplied by one, which makes NaN of a complex number with an infinite part."""
    y = g.expected[0].value
    return [y * np.ones(y.shape, y.dtype)]


def divided_as_numpy(g: Given) -> list[Any] | None:
    """QuantizeLinear without precision: divided in the type that NumPy gives to the two, and made an i32."""
    x, scale = g["x"], g["y_scale"]
    wide = {x.dtype, scale.dtype} != {np.dtype(np.float16)} and x.dtype != np.int32
    again = g.reevaluate({"precision": of(np.zeros((), np.float32 if wide else np.float64))})
    if again is None or again[0].value.dtype.kind not in "iu":
        return again
    y, (low, high) = again[0].value, int_range(again[0].dtype)
    axis, block = g.attr("axis", 1), g.attr("block_size", 0)
    zero = spread(g["y_zero_point"], x, axis, block) if "y_zero_point" in g.arrays else np.zeros(())
    with np.errstate(all="ignore"):
        steps = np.abs(x.astype(np.float64) / spread(scale, x, axis, block).astype(np.float64))
    wrapped = np.where(zero.astype(np.int64) < 0, high, low)  # the lowest i32 and the zero point
    return [Near(y, 0, np.where(steps < 2.0**31, y, wrapped).astype(y.dtype))]


def product_of_integers(g: Given) -> list[Any] | None:
    """QLinearMatMul: operands and zero points of float8 lose their fractions, those of rows are laid along columns, and
    the factor of the three scales is computed in their type.  Anything comes of a NaN or an infinity."""
    zero = g["y_zero_point"]
    if zero.dtype.kind not in "iu":
        return None
    try:
        (a, odd), (b, odd_b) = (_centred(g[s], g[s + "_zero_point"]) for s in "ab")
        y = np.matmul(a, b) * (g["a_scale"] * g["b_scale"] / g["y_scale"]) + zero
        free = np.matmul(odd, np.ones(b.shape)) + np.matmul(np.ones(a.shape), odd_b) > 0
    except ValueError:  # refused
        return None
    info, free = np.iinfo(zero.dtype), free | (y != y)
    y = np.clip(np.rint(np.where(free, 0, y)), info.min, info.max)
    return [Near(y.astype(zero.dtype), np.where(free, np.inf, 0))]


def _centred(x: np.ndarray, zero: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """i32 less its zero point, and where either was no number."""
    finite = [np.isfinite(v.astype(np.float64)) for v in (x, zero)]
    a, z = (np.where(f, v, v.dtype.type(0)).astype(np.int32) for f, v in zip(finite, (x, zero), strict=True))
    return a - z, np.where(finite[0] & finite[1], 0.0, 1.0)


def over_the_largest_magnitude(g: Given) -> list[Any]:
    """Rows over their largest magnitude."""
    x = g["X"]
    return [x / np.maximum(np.abs(x).max(axis=1, keepdims=True), np.float32(1e-30))]


def deviation_in_f16(g: Given) -> list[Any]:
    """InstanceNormalization: mean and variance are rounded to f16, where the variance may overflow."""
    x, scale, bias = (g[s] for s in ("input", "scale", "B"))
    axes, rows = tuple(range(2, x.ndim)), (-1, *[1] * (x.ndim - 2))
    far = scale.reshape(rows) * (x - x.mean(axes, keepdims=True))
    y = far / np.sqrt(x.var(axes, keepdims=True) + np.float32(g.attr("epsilon", 1e-5))) + bias.reshape(rows)
    return [y.astype(x.dtype)]


def squares_in_f16(g: Given) -> list[Any]:
    """GroupNormalization-18 by its function body: the variance of f16 is that of the squares, less that of the mean."""
    rows = g["X"].reshape(g["X"].shape[0], g.attr("num_groups"), -1)
    mean, square = (np.mean(v, 2, keepdims=True, dtype=v.dtype) for v in (rows, rows * rows))
    y = (rows - mean) / np.sqrt(square - mean * mean + rows.dtype.type(g.attr("epsilon", 1e-5)))
    return [(g["scale"].reshape(1, -1, 1) * y + g["bias"].reshape(1, -1, 1)).reshape(g["X"].shape)]


def power_as_numpy(g: Given) -> list[Any]:
    """Pow of integers: in the type that NumPy gives to base and exponent, which may be double; its last digit is the
    library's."""
    y, d = np.power(g["X"], g["Y"]), g["X"].dtype
    if y.dtype.kind != "f":
        return [y.astype(d)]
    near = _cut(y, d)
    last = (near.within == 0) & (np.abs(y) > 2.0**53)
    return [near._replace(within=np.where(last, 4 * np.spacing(np.abs(y)), near.within))]


def cast_through_f32(g: Given) -> list[Expected] | None:
    """Cast to a type that NumPy lacks: rounded to f32 before."""
    return g.reevaluate(inputs={"input": g["input"].astype(np.float32)})


def text_0_for_nothing(g: Given) -> list[Any]:
    """DictVectorizer: what the dictionary lacks is the text "0"."""
    y = g.expected[0].value
    return [np.where(y == "", "0", y)]


def zero_points_along_columns(g: Given) -> list[Any] | None:
    """MatMulInteger: the zero points of the rows of A are subtracted along its columns."""
    try:
        a = g["A"].astype(np.int32) - g["a_zero_point"].astype(np.int32)
    except ValueError:  # refused
        return None
    zero = g["b_zero_point"]
    return [np.matmul(a, g["B"].astype(np.int32) - (0 if zero is None else zero.astype(np.int32)))]


def right_but_for_the_type(g: Given) -> list[Turned]:
    """Results of another type than the stated one: right when they are converted to that, or as far as a narrower one
    allows."""
    return [Turned(e, partial(_converted, e=e)) for e in g.expected]


def beta_unread_and_wide(g: Given) -> list[Turned] | None:
    """Gemm before 7: C is added as it is, in a wider type."""
    found = g.reevaluate({"beta": None})
    return None if found is None else [Turned(e, partial(_converted, e=e)) for e in found]


def _converted(y: np.ndarray, e: Expected) -> np.ndarray:
    """An array in the type of another, which it is where it is right as far as its own type allows."""
    d = e.value.dtype
    if e.dtype.kind != "f":
        return y.astype(d)
    size = np.abs(e.value.astype(np.float64))
    if of(y).kind == "f" and ml_dtypes.finfo(y.dtype).eps > ml_dtypes.finfo(e.value.dtype).eps:
        within = 64 * ml_dtypes.finfo(y.dtype).eps * size.max(initial=0, where=np.isfinite(size))
        wide, due = y.astype(np.float64), e.value.astype(np.float64)
        return np.where(np.abs(wide - due) <= within, due, wide).astype(d)
    if of(y).kind == "i":  # cut to integers
        return np.where(np.abs(y - e.value.astype(np.float64)) < 1 + 1e-5 * size, e.value, y).astype(d)
    return y.astype(d)


def edges_in_f16(g: Given) -> list[Any] | None:
    """MelWeightMatrix: bins between edges of f16 are computed step by step in that type; where it overflows, anything
    comes of the conversion to an integer."""
    low, high, length = g["lower_edge_hertz"], g["upper_edge_hertz"], int(g["dft_length"])
    low, high = (2595 * np.log1p(v / 700) / np.log(10) for v in (low, high))
    steps = np.arange(int(g["num_mel_bins"]) + 2)
    mels = steps * ((high - low) / len(steps)) + low
    bins = ((length + 1) * (700 * np.expm1(mels / 2595 * np.log(10)))) // g["sample_rate"]
    odd = ~np.isfinite(bins)
    bins = np.where(odd, 0, bins).astype(int)
    at, out = np.arange(length // 2 + 1)[:, None], g.expected[0].value
    left, mid, right = bins[:-2], bins[1:-1], bins[2:]
    if bins.max(initial=0) >= len(at):  # refused
        return None
    with np.errstate(all="ignore"):
        rise = np.where((at >= left) & (at <= mid), (at - left) / (mid - left), 0)
        rise = np.where(mid == left, at == mid, rise)
        y = np.where((at >= mid) & (at < right), (right - at) / (right - mid), rise)
    return [Near(y.astype(out.dtype), np.where(odd[:-2] | odd[1:-1] | odd[2:], np.inf, 0))]


def zero_of_one_element(g: Given) -> Any:
    """MatMul, Gemm: the product with a matrix of one element, 0, is 0, whatever is not finite in the other one."""
    if g.attr("program") is None:
        pairs = _beside_zero({s: g[s] for s in "AB"})
        return g.reevaluate(inputs=pairs) if pairs else None
    program, found = deepcopy(g.attr("program")), False
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    for node in program.nodes:
        if node.op in ("Gemm", "MatMul"):
            for slot, finite in _beside_zero({s: scope[node.value(s)] for s in "AB"}).items():
                node.inputs[slot], found = f"{node.outputs[0]}_{slot}", True
                program.consts[f"{node.outputs[0]}_{slot}"] = finite
    return edited(g, program) if found else None


def _beside_zero(pair: dict[str, Any]) -> dict[str, Any]:
    """The factor beside a 0 of one element, with 0 for what is not finite."""
    for zero, other in (("A", "B"), ("B", "A")):
        x, y = pair[zero], pair[other]
        alone = x.size == 1 and y.size > 1 and x.ravel()[0] == 0 and max(x.ndim, y.ndim) <= 2
        if alone and y.dtype in (np.float32, np.float64) and not np.isfinite(y).all():
            return {other: np.where(np.isfinite(y), y, 0).astype(y.dtype)}
    return {}
