"""What comes where a difference is listed (``harness/ledger/defect_models.py``): OpenVINO, elements that are others."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.ledger.defect_models import NOTHING, Near, Such, Turned
from suites.known.defects.openvino_constants import _numbers, bits_are_numbers

Outputs = list[Any] | None
_I32 = np.iinfo(np.int32)


def quotient_rounded(g: Given) -> Outputs:
    """Div of 8-bit integers: the quotient is rounded to the nearest, halves up."""
    a, b = (g[s].astype(np.float64) for s in "AB")
    return [np.floor(a / b + 0.5).astype(np.int64).astype(g.expected[0].value.dtype)]


def bytes_transposed(g: Given) -> Outputs:
    """Transpose of 4-bit numbers: as many bytes are moved as there are numbers, of two numbers each; those behind the
    tensor hold anything."""
    x, e = g["data"], g.expected[0].value
    order = np.arange(x.size).reshape(x.shape).transpose(g.attr("perm")).ravel()
    flat, values, known = x.ravel(), np.zeros(x.size, x.dtype), np.zeros(x.size, bool)
    for at in range(x.size):
        source = 2 * order[at // 2] + at % 2
        if source < x.size:
            values[at], known[at] = flat[source], True
    return [Near(values.reshape(e.shape), np.where(known, 0, np.inf).reshape(e.shape))]


def bias_of_the_first_run(g: Given) -> Outputs:
    """Conv, CONV_2D and DEPTHWISE_CONV_2D of constants: the bias is that of the first run."""
    slot = "B" if g["bias"] is None else "bias"
    return g.reevaluate(inputs={slot: g.case.draws[0][slot]})


def zero_point_of_the_first_run(g: Given) -> Outputs:
    """QLinearMatMul: the zero point of a constant is that of the first run."""
    slots = [f"{s}_zero_point" for s in "ab" if g.inst.tensor(s).const]
    return g.reevaluate(inputs={s: g.case.draws[0][s] for s in slots})


def any_zero_point_of_a_constant(g: Given) -> Outputs:
    """QLinearMatMul of several runs: the answer is that of one other zero point of a constant, the same for all
    elements."""
    a, b = (g[s].astype(np.float64) for s in "ab")
    one = {s: float(g[s].ravel()[0]) for s in g.arrays if "_" in s and g[s].size == 1}
    if len(one) < 6:
        return None
    a, b = a - one["a_zero_point"], b - one["b_zero_point"]
    step, due = one["a_scale"] * one["b_scale"] / one["y_scale"], g.expected[0].value
    ends = np.iinfo(due.dtype)
    sums, moved = np.matmul(a, b), []
    if g.inst.tensor("a").const:
        moved.append(b.sum(-2, keepdims=True))
    if g.inst.tensor("b").const:
        moved.append(a.sum(-1, keepdims=True))

    def held(v: np.ndarray) -> bool:
        if v.shape != due.shape:
            return False
        every = ((sums - z * m) * step + one["y_zero_point"] for m in moved for z in range(-255, 256))
        return any(np.all(np.abs(np.clip(np.rint(y), ends.min, ends.max) - v) <= 1) for y in every)

    return [Such(held, due)]


def index_of_the_lowest(g: Given) -> Outputs:
    """MaxPool of 8-bit integers: where the maximum is the lowest number, its index is any; storage_order is not read,
    and the spatial axes of indices are in reverse order then."""
    told, turned = g.reevaluate({"storage_order": 0}), g.attr("storage_order", 0) == 1
    if not told or len(told) < 2:
        return None
    values, indices = told[0].value, told[1].value
    lowest = values == np.iinfo(values.dtype).min

    def how(a: np.ndarray) -> np.ndarray:
        a = a.transpose(0, 1, *range(a.ndim - 1, 1, -1)) if turned else a
        return np.where(lowest, indices, a)

    shows = np.where(lowest, 0, indices)
    return [told[0], Turned(told[1], how, shows.transpose(0, 1, *range(shows.ndim - 1, 1, -1)) if turned else shows)]


def x_not_transposed(g: Given) -> Outputs:
    """BATCH_MATMUL: what x holds is taken for the transpose already."""
    x = g["x"]
    return g.reevaluate({"adj_x": False}, {"x": x.reshape(*x.shape[:-2], x.shape[-1], x.shape[-2])})


def slopes_along_the_second_axis(g: Given) -> Outputs:
    """PRelu and PRELU: slopes of one axis go along the second axis.  Integers are computed in f32, and clamped."""
    x, slope = ("X", "slope") if g["input"] is None else ("input", "alpha")
    ranks = (-1,) + (1,) * (g[x].ndim - 2)
    turned = g[slope].reshape(ranks)
    if g.inst.dialect == "tflite" or g[x].dtype.kind not in "iu":
        return g.reevaluate(inputs={slope: turned})
    v = g[x].astype(np.float32)
    v = np.where(v < 0, v * turned.astype(np.float32), v).astype(np.float64)
    ends = np.iinfo(g[x].dtype)
    return [Near(np.clip(v, max(ends.min, _I32.min), ends.max), 2.0**-22 * np.abs(v), np.full(v.shape, ends.min))]


def equal_parts(g: Given) -> Outputs:
    """Split-1: the lengths are those of the attribute, else equal but for the last; those of the input are not read."""
    x, axis, n = g["input"], g.attr("axis", 0), len(g.expected)
    whole = x.shape[axis]
    ends = np.cumsum(g.attr("split") or [-(-whole // n)] * n)[:-1]
    return np.split(x, np.minimum(ends, whole), axis)


def parts_of_strings_from_the_start(g: Given) -> Outputs:
    """Split of strings: each part is what the tensor begins with."""
    x = g["input"].ravel()
    return [x[: e.value.size].reshape(e.value.shape) for e in g.expected] if g.inst.op == "Split" else None


def positions_unknown(g: Given) -> Outputs:
    """Unique: the positions of the first occurrences are others."""
    n = g["X"].shape[g.attr("axis")]

    def held(a: np.ndarray) -> Any:
        return a.shape == g.expected[1].value.shape and a.dtype == np.int64 and np.all((a >= 0) & (a < n))

    return [None, Such(held, np.zeros_like(g.expected[1].value)), *[None] * (len(g.expected) - 2)]


def states_without_scanned(g: Given) -> Outputs:
    """Loop: as many outputs as are scanned are missing at the start, and stand in the place of what is scanned."""
    first = list(g["v_initial"] or ())
    lost = len(g.expected) - len(first)
    if lost > len(first):
        return None
    stand_in = [Such(partial(np.array_equal, v), v) for v in first[:lost]]
    return [*[NOTHING] * lost, *[None] * (len(first) - lost), *stand_in]


def value_of_the_other(g: Given) -> Outputs:
    """WHILE: where the body hands a value on as another one, that other one comes."""
    body = g.attr("body_subgraph_index")
    given = {n: i for i, (n, _) in enumerate(body.inputs)}
    handed = [given.get(o, i) for i, o in enumerate(body.outputs)]
    return [None if p == i else g.expected[p].value for i, p in enumerate(handed)]


def product_rounded(g: Given) -> Outputs:
    """Gemm: the product is rounded to the type of its factors before it is scaled and C is added."""
    product = g.reevaluate({"alpha": None}, {s: _numbers(g, s) if s != "C" else None for s in ("A", "B", "C")})
    told = bits_are_numbers(g)
    if not product or not told:
        return None
    unit = 2.0**-8 if g["A"].dtype.name == "bfloat16" else 2.0**-11
    size = np.abs(product[0].value.astype(np.float64)) * abs(g.attr("alpha", 1.0))
    v = told[0].value.astype(np.float64)
    added = abs(g.attr("beta", 1.0)) * np.abs(_numbers(g, "C").astype(np.float64))
    return [Near(v, unit * (3 * size + 2 * added + 2 * np.abs(v)))]


def one_axis_normalised(g: Given) -> Outputs:
    """Softmax and LogSoftmax of versions that take all axes from one on together: that one alone is normalised, and a
    row of it with NaN or an infinity holds anything."""
    x, axis = g["input"].astype(np.float64), g.attr("axis", 1)
    told = g.reevaluate({"axis": axis}, version=13)
    if not told:
        return None
    odd = np.broadcast_to(np.any(~np.isfinite(x), axis, keepdims=True), x.shape)
    return [Turned(told[0], lambda a: np.where(odd, told[0].value, a) if a.shape == odd.shape else a)]


def subset_of_the_values(g: Given) -> Outputs:
    """Unique, unsorted: of the values some come twice or as 0 and others not at all; positions and counts are any."""
    x, whole = g["X"], g.expected[0].value
    shape = whole.shape
    held = {*x.ravel().tolist(), 0}

    def values(a: np.ndarray) -> Any:
        moved = a.shape == shape and np.array_equal(np.sort(a, None), np.sort(whole, None))  # that is another defect
        return np.array_equal(a, whole) if moved else a.shape == shape and set(a.ravel().tolist()) <= held

    def numbers(i: int) -> Such:
        due = g.expected[i].value
        return Such(lambda a: a.shape == due.shape and a.dtype == due.dtype, due)

    return [Such(values, np.zeros(shape, x.dtype)), *map(numbers, range(1, len(g.expected)))]


def mask_from_the_last_key(g: Given) -> Outputs:
    """Attention: the causal mask lets query i attend the keys up to i plus their number less that of the queries, and
    windows are not read.  Of constants of bf16 in int32_data the bits are numbers; with bf16 each step is rounded."""
    slots = [s for s in ("Q", "K", "V", "attn_mask", "past_key", "past_value") if g[s] is not None]
    read = {s: _numbers(g, s) for s in slots}
    queries, fresh = (read[s].shape[-2] for s in "QK")
    keys = fresh + (0 if g["past_key"] is None else read["past_key"].shape[-2])
    allowed = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
    mask = read.get("attn_mask")
    if mask is not None and mask.shape[-1] < keys:  # a shorter mask forbids the rest
        rest = np.full((*mask.shape[:-1], keys - mask.shape[-1]), False if mask.dtype == bool else -np.inf)
        mask = np.concatenate([mask, rest.astype(mask.dtype)], -1)
    if mask is None:
        mask = allowed
    elif mask.dtype == bool:
        mask = mask & allowed
    else:
        mask = np.where(allowed, mask.astype(np.float32), -np.inf).astype(mask.dtype)
    unread = {"left_window_size": None, "right_window_size": None} if int(g.inst.version) > 24 else {}
    told = g.reevaluate({"is_causal": 0, **unread}, {**read, "attn_mask": mask})
    return (
        told
        if not told or g["Q"].dtype.name != "bfloat16"
        else [
            Near(
                v, 2.0**-4 * np.maximum(np.abs(v), np.abs(read["V"].astype(np.float64)).max(initial=0) if not i else 0)
            )
            for i, e in enumerate(told)
            for v in [e.value.astype(np.float64)]
        ]
    )


def either_of_nan_and_subnormals(g: Given) -> Outputs:
    """Of comparisons: where an operand is NaN or subnormal, either."""
    e, odd = g.expected[0].value, np.zeros((), bool)
    for v in g.arrays.values():
        w = np.abs(v.astype(np.float64))
        odd = odd | np.isnan(w) | ((w > 0) & (w < 2.0**-126))
    return None if odd.shape != e.shape else [Near(e, np.where(odd, np.inf, 0))]


def unchanged_axes_skipped(g: Given) -> Outputs:
    """Resize to the nearest with tf_half_pixel_for_nn: an axis that keeps its extent is left as it is, not moved by
    half an element."""
    x, e = g["X"], g.expected[0].value
    if g.attr("mode", "nearest") != "nearest" or max(x.shape) > 100:
        return None
    index = []
    for axis, (n, m) in enumerate(zip(x.shape, e.shape)):
        if n == m:
            index.append(np.arange(n))
            continue
        along = np.arange(n).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
        told = g.reevaluate(inputs={"X": np.broadcast_to(along, x.shape).astype(x.dtype)})
        if not told:
            return None
        index.append(np.moveaxis(told[0].value, axis, 0).reshape(m, -1)[:, 0].astype(np.int64))
    return [x[np.ix_(*index)]]


def one_number_for_both(g: Given) -> Outputs:
    """RandomNormal and RandomNormalLike: the normal numbers are made of one uniform number each, not of two:
    sqrt(-2 ln u) cos(2 pi u).  Told by the largest distance of the distribution functions, after Kolmogorov."""
    if g.inst.op == "Bernoulli":
        return None
    e = g.expected[0].value
    u = (np.arange(100_000) + 0.5) / 100_000
    law = np.sort(np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * u))
    mean, scale = g.attr("mean", 0.0), g.attr("scale", 1.0)

    def fits(a: np.ndarray) -> Any:
        if a.shape != e.shape or a.dtype != e.dtype:
            return False
        z = np.sort((a.astype(np.float64).ravel() - mean) / scale)
        apart = np.abs(np.searchsorted(law, z) / law.size - (np.arange(z.size) + 0.5) / z.size)
        return np.all(apart < 2.5 / np.sqrt(z.size) + 0.01)

    shows = law[(np.arange(e.size) * 61_803 % law.size)]
    return [Such(fits, (mean + scale * shows).reshape(e.shape).astype(e.dtype))]


def the_other_outcome(g: Given) -> Outputs:
    """Bernoulli: 1 comes with the probability of 0."""
    if g.inst.op != "Bernoulli":
        return None
    p, e = _numbers(g, "input").astype(np.float64), g.expected[0].value
    most = 6 * np.sqrt((p * (1 - p)).sum()) + 1

    def fits(a: np.ndarray) -> Any:
        if a.shape != e.shape or a.dtype != e.dtype or not np.isin(v := a.astype(np.float64), (0, 1)).all():
            return False
        likely = p > 0.5
        return all(abs((v - (1 - p))[at].sum()) <= most for at in (likely, ~likely)) and np.all(
            ((p > 0) | (v == 1)) & ((p < 1) | (v == 0))
        )

    spread = np.arange(p.size).reshape(p.shape) * 0.618034 % 1
    return [Such(fits, (spread < 1 - p).astype(e.dtype))]
