"""What comes where a difference is listed (``harness/ledger/defect_models.py``): LiteRT's kernels that read or write
the wrong place, give another shape, or leave special values out."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.instance import Arg
from harness.ledger.defect_models import Near, Such
from suites.semantics.quantised.fixed import LIMITS
from suites.semantics.stablehlo import windows
from suites.tflite import sparsity

Outputs = list[Any] | None


def _free(g: Given, *masks: Any) -> list[Near]:
    """Right, but where the mask of an output says that anything may stand."""
    return [Near(e.value, np.where(m, np.inf, 0.0)) for e, m in zip(g.expected, masks)]


def _bound(e: Any) -> np.ndarray:
    return np.broadcast_to(np.asarray(e.error.bound(e.context()), np.float64), e.value.shape)


def stored_integers_copied(g: Given) -> Outputs:
    """The integers of the operand, whatever the scale of the result."""
    return [g["input"].reshape(g.expected[0].value.shape)]


def result_of_rank_0(g: Given) -> Outputs:
    """One element without any axis."""
    due = g.expected[0].value
    return [due.reshape(())] if due.size == 1 else None


def ellipsis_takes_an_axis(g: Given) -> Outputs:
    """The ellipsis stands for one axis at least; entries that are left without an axis count for nothing."""
    mask = g.attr("ellipsis_mask", 0)
    at = next(i for i in range(len(g["begin"])) if mask >> i & 1)
    new = g.attr("new_axis_mask", 0)
    added = [i for i in range(len(g["begin"])) if i != at and new >> i & 1]
    left = list(range(len(g["begin"])))[: g["input"].ndim + len(added)]
    if left[-1] < max([at, *added]):
        return None
    shrink, whole = g.attr("shrink_axis_mask", 0), 1 << left.index(at)
    begins, ends = g.attr("begin_mask", 0), g.attr("end_mask", 0)

    def kept(bits: int) -> int:
        return sum((bits >> i & 1) << k for k, i in enumerate(left))

    def entries(slot: str) -> np.ndarray:
        out = g[slot][left].copy()
        out[left.index(at)] = {"begin": 0, "end": 0, "strides": 1}[slot]
        return out

    attrs = {
        "ellipsis_mask": None,
        "begin_mask": kept(begins) | whole,
        "end_mask": kept(ends) | whole,
        "shrink_axis_mask": kept(shrink) & ~whole,
        "new_axis_mask": sum(1 << i for i in added),
    }
    return g.reevaluate(attrs, {s: entries(s) for s in ("begin", "end", "strides")})


def rows_of_whole_bytes(g: Given) -> Outputs:
    """Only the first row of packed elements begins where it is looked for."""
    due = g.expected[0].value
    later = (g["lookup"] != 0).reshape(-1, *(1,) * (due.ndim - 1))
    return _free(g, np.broadcast_to(later, due.shape))


def steps_through_int32(g: Given) -> Outputs:
    """A quotient that int32 does not hold becomes anything."""
    q = g.attr("@outputs")[0]["quant"]
    x = g["input"].astype(np.float64)
    scale = np.asarray(q["scale"])
    if scale.size > 1:
        scale = scale.reshape([-1 if a == q.get("axis", 0) else 1 for a in range(x.ndim)])
    with np.errstate(all="ignore"):
        return _free(g, ~(np.abs(x / scale) < 2147483000))


def flat_box_to_the_end(g: Given) -> Outputs:
    """A selected box without area goes on being selected until the output is full."""
    boxes, row = g["boxes"], [e.value for e in g.expected]
    indices, count = row[0], int(row[-1].ravel()[0])
    flat = [k for k in range(count) if _flat(boxes[int(indices[k])])]
    if not flat:
        return None
    first = flat[0]
    out = []
    for e in row[:-1]:
        a = np.array(e)
        a[first:] = a[first]
        out.append(a)
    full = np.array(row[-1])
    full[...] = len(indices)
    return [*out, full]


def flat_box_again(g: Given) -> Outputs:
    """The same among boxes of equal scores, whose order may be another: a box without area is there more than once."""
    boxes, row = g["boxes"], [e.value for e in g.expected]
    flat = [k for k in range(len(boxes)) if _flat(boxes[k])]

    def again(a: np.ndarray) -> bool:
        return a.shape == row[0].shape and any(int((a == k).sum()) > 1 for k in flat)

    full = np.full_like(row[-1], len(row[0]))
    counted = Such(lambda a: a.shape == full.shape and bool((row[-1] < a).all() and (a <= full).all()), full)
    return [Such(again, row[0]), *(Near(x, np.inf) for x in row[1:-1]), counted]


def _flat(box: Any) -> bool:
    return bool(box[0] == box[2] or box[1] == box[3])


def lower_limit_wraps(g: Given) -> Outputs:
    """-1 becomes the largest uint32: the limits are the wrong way round, and one of them comes."""
    due = g.expected[0].value
    return [Near(np.ones_like(due), 0, np.full_like(due, 2**32 - 1))]


def end_0_for_the_extent(g: Given) -> Outputs:
    """An end of 0 counts as none: the axis comes from its begin on."""
    due, x = g.expected[0].value, g["input"]
    if due.ndim != x.ndim:
        return None
    ends, strides = g["end"].tolist(), g["strides"].tolist()
    if any(s < 1 for s in strides):
        return None

    def part(k: int, begin: int, end: int) -> slice:
        def masked(name: str) -> bool:
            return bool(g.attr(name, 0) >> k & 1)

        return slice(
            None if masked("begin_mask") else begin, None if end == 0 or masked("end_mask") else end, strides[k]
        )

    return [x[tuple(part(k, b, e) for k, (b, e) in enumerate(zip(g["begin"].tolist(), ends)))]]


def nan_of_large_operands(g: Given) -> Outputs:
    """NaN, where the operand is beyond 1e20."""
    (slot,) = g.inst.args
    x, due = g[slot].astype(np.float64), g.expected[0].value
    return [Near(due, _bound(g.expected[0]), np.where(np.abs(x) > 1e20, np.nan, due).astype(due.dtype))]


def nan_to_the_lower_limit(g: Given) -> Outputs:
    """What is NaN becomes the lower limit of the activation."""
    due = g.expected[0].value
    low, _ = LIMITS.get(g.attr("fused_activation_function", "NONE"), (-np.inf, np.inf))
    nan = np.isnan(due.astype(np.float64))
    return [Near(np.where(nan, low, due).astype(due.dtype), np.where(nan, 0, np.nan_to_num(_bound(g.expected[0]))))]


def largest_for_infinity(g: Given) -> Outputs:
    """What is infinite is the largest finite number of its sign; what is NaN may be, too.  ADD_N goes on with that: of
    an infinity and the lowest number it makes 0, of two infinities 0 or the lowest number.  Subnormals may count as
    0."""
    due = g.expected[0].value
    if due.dtype.kind != "f":
        return None
    top = np.finfo(due.dtype).max
    value = np.where(np.isinf(due), np.copysign(top, due), due)
    other = np.where(np.isnan(due), top, value)
    if g.inst.op == "ADD_N":
        total = np.zeros_like(due)
        for x in g["inputs"]:
            total = np.clip(total + x, -top, top)
        other = np.where(np.isfinite(due), value, total)
    return [Near(value, np.where(np.isfinite(due), 2.0**-125, 0), other)]


def activation_left_out(g: Given) -> Outputs:
    """The result without its fused activation.  Of what is not finite before it nothing is known, and subnormals may
    count as 0."""
    found = g.reevaluate(attrs={"fused_activation_function": "NONE"})
    if found is None or found[0].value.dtype.kind != "f":
        return None
    due = found[0].value
    lost = ~np.isfinite(due)
    near = np.where(lost, np.inf, np.nan_to_num(_bound(found[0])) + 2.0**-125)
    return [Near(np.where(lost, 0, due).astype(due.dtype), near)]


def nan_to_the_lowest(g: Given) -> Outputs:
    """What is NaN becomes the lowest number."""
    due = g.expected[0].value
    nan = np.isnan(due)
    return [Near(np.where(nan, np.finfo(due.dtype).min, due), np.where(nan, 0, np.nan_to_num(_bound(g.expected[0]))))]


def one_scale_for_the_first_channel(g: Given) -> Outputs:
    """Only the first channel has its scale.  There, too, NaN and infinities are ends of the type or of the activation,
    which is all that a range beyond the type gives."""
    (e,) = g.expected
    due, top, x = e.value, float(np.finfo(np.float32).max), g["input"].astype(np.float64)
    bound, first = _bound(e), np.zeros(due.shape, bool)
    first[..., :1] = True
    ranged = x.max(initial=0.0) - x.min(initial=0.0) > top
    low, high = LIMITS.get(g.attr("fused_activation_function", "NONE"), (-np.inf, np.inf))

    def ok(a: np.ndarray) -> bool:
        if a.shape != due.shape or a.dtype != due.dtype:
            return False
        with np.errstate(all="ignore"):
            close = (np.abs(a - due) <= bound) | (a == due) | (np.isnan(a) & np.isnan(due))
            ends = (np.abs(a) >= top) | (a == low) | (a == high)
            end = ends & (ranged | ~np.isfinite(due)) | np.isnan(a) & ranged
        return bool((close | end | ~first).all())

    return [Such(ok, np.where(first, due, due + 1).astype(due.dtype))]


def dynamic_range_overflows(g: Given) -> Outputs:
    """Sums of steps times the step of the activations, before the scale of the weights: what is beyond the highest
    number there is infinite, or an end of the type or of the activation.  Where their range is beyond it, no result is
    a number.  What is NaN may be minus infinity."""
    (e,) = g.expected
    x, w = (next(n for n in names if n in g.inst.args) for names in (("input", "x"), ("filter", "weights", "y")))
    due, top = np.asarray(e.wide, np.float64), float(np.finfo(np.float32).max)
    bound = np.nan_to_num(_bound(e), posinf=np.inf) + 2.0**-125  # subnormals may count as 0
    low, high = LIMITS.get(g.attr("fused_activation_function", "NONE"), (-np.inf, np.inf))
    scale = min(1.0, *g.inst.tensor(w).quantised["scale"])
    ranged = g[x].max(initial=0.0).astype(np.float64) - g[x].min(initial=0.0) > top
    over = ranged | (np.abs(due) + bound > top * scale)

    def ok(a: np.ndarray) -> bool:
        if a.shape != due.shape or a.dtype != e.value.dtype:
            return False
        with np.errstate(all="ignore"):
            close = (np.abs(a - due) <= bound) | (a == e.value) | (np.isnan(due) & (np.isnan(a) | (a == -np.inf)))
        ends = (np.abs(a) >= top) | (a == low) | (a == high)
        same = (np.abs(due) <= bound) | (np.signbit(a) == np.signbit(due))
        lost = ends | np.isnan(a) if ranged else (ends & same) | (np.isnan(a) & ~np.isfinite(due))
        return bool((close | (over & lost)).all())

    return [Such(ok, np.where(over, -np.inf, e.value).astype(e.value.dtype))]


def powers_of_finite_numbers(g: Given) -> Outputs:
    """What is infinite is the largest finite number, or a power of that on the way."""
    due = g.expected[0].value
    top = np.finfo(due.dtype).max
    return [Near(due, _bound(g.expected[0]), np.where(np.isinf(due), np.copysign(top, due), due).astype(due.dtype))]


_MANY = 64


def scale_of_another_row(g: Given) -> Outputs:
    """A row with the scale and zero point of another row, or of what lies behind them: a multiple of the right row and
    multiples of the sums of the columns of matrices of y, whatever the factors.  The scale of a huge row may carry
    another row beyond the highest number: then nothing is known of that row."""
    (e,) = g.expected
    due = np.asarray(e.wide, np.float64)
    y = np.swapaxes(g["y"], -1, -2) if g.attr("adj_y", False) else g["y"]
    sums = y.astype(np.float64).sum(-2).reshape(-1, due.shape[-1])
    bound = _bound(e)
    huge = np.abs(g["x"]).max(initial=0.0) > 1e30

    def fitted(a: np.ndarray) -> bool:
        if a.shape != due.shape or a.dtype != e.value.dtype or not (huge or np.isfinite(a).all()):
            return False
        if len(sums) > max(_MANY, due.shape[-1]):  # more sums than a row has elements: any row is made of them
            return True
        for at in np.ndindex(*due.shape[:-1]):
            basis, row = np.stack([due[at], *sums], 1), a[at].astype(np.float64)
            if not np.isfinite(row).all():
                continue
            fit = 1e-12 * np.abs(row).max(initial=0.0)  # the error of the fit itself, also where 0 is due
            room = 4 * bound[at] + 1e-6 * np.abs(row) + fit
            weight = 1 / np.where((room > 0) & np.isfinite(room), room, 1.0)  # the error of one element moves no other
            by, *_ = np.linalg.lstsq(basis * weight[:, None], row * weight, rcond=None)
            left = np.abs(row - basis @ by)
            if (left > 4 * bound[at] * max(1.0, abs(by[0])) + 1e-6 * np.abs(row) + fit).any():
                return False
        return True

    return [Such(fitted, e.value)]


def dense_prefix_of_sparse(g: Given) -> Outputs:
    """The stored values are the first elements of a dense filter; what lies behind them is anything.  Subnormal
    operands and results may count as zero."""
    _, stored = sparsity.encode(g["filter"], g.attr("@sparsity")["filter"])
    flat = np.zeros(g["filter"].size, g["filter"].dtype)
    flat[: stored.size] = stored[: flat.size]
    dense = flat.reshape(g["filter"].shape)
    made = g.reevaluate({"@sparsity": None}, {"filter": dense})
    normal = g.reevaluate(
        {"@sparsity": None}, {"filter": without_subnormals(dense), "input": without_subnormals(g["input"])}
    )
    if made is None or normal is None:
        return None
    (e,), (other,) = made, normal
    moved = np.nan_to_num(np.abs(e.value.astype(np.float64) - other.value), posinf=0.0)
    known = (np.arange(g["filter"].shape[0]) + 1) * g["filter"].shape[1] <= stored.size
    return [Near(e.value, np.where(known, _bound(e) + moved, np.inf), without_subnormals(other.value))]


def without_subnormals(x: np.ndarray) -> np.ndarray:
    """Subnormal numbers as zeros of their sign."""
    if x.dtype.kind != "f":
        return x
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(np.zeros_like(x), x), x)


def only_the_bias(g: Given) -> Outputs:
    """The weights count for nothing."""
    return g.reevaluate(inputs={"filter": np.zeros_like(g["filter"])})


def _of_its_shape(due: np.ndarray) -> Such:
    return Such(lambda a: a.shape == due.shape and a.dtype == due.dtype, due)


def other_sequences_anywhere(g: Given) -> Outputs:
    """All rows but those of the first sequence are anything, and may have been written over them, or over the states
    behind the output.  An output of which all is finite when it is right is finite when it is wrong, if the activation
    is bounded and no operand is huge: a cell with RELU may run away from a state that is none, and an infinite weight
    makes NaN of one."""
    operands = [x for x in g.arrays.values() if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
    bounded_cell = g.attr("fused_activation_function", "NONE") not in ("NONE", "RELU")
    bounded_cell = bounded_cell and all(bool((np.abs(x) < 1e15).all()) for x in operands)

    def bounded(due: np.ndarray) -> Such:
        return Such(lambda a: a.shape == due.shape and a.dtype == due.dtype and bool(np.isfinite(a).all()), due)

    dues = [e.value for e in g.expected]
    return [bounded(due) if bounded_cell and np.isfinite(due).all() else _of_its_shape(due) for due in dues]


def empty_weights_taken_for_absent(g: Given) -> Outputs:
    """A cell whose input_to_input_weights have no element and come at run time is one without an input gate."""
    slots = (
        "input_to_input_weights",
        "recurrent_to_input_weights",
        "cell_to_input_weights",
        "input_gate_bias",
        "input_layer_norm_coefficients",
        "aux_input_to_input_weights",
    )
    given = {p: g.inst.args.get(p + slots[0]) for p in ("", "fw_", "bw_")}
    empty = [p for p, a in given.items() if isinstance(a, Arg) and not a.const and g[p + slots[0]].size == 0]
    return g.reevaluate(inputs={p + s: None for p in empty for s in slots if p + s in g.inst.args})


def rows_without_stored_weights(g: Given) -> Outputs:
    """Only a row of the filter that stores nothing is right."""
    stored = (g["filter"] != 0).any(-1)
    return _free(g, np.broadcast_to(stored, g.expected[0].value.shape))


def another_shape(g: Given) -> Outputs:
    """The extents are others."""
    due = g.expected[0].value
    shows = np.zeros((*due.shape, 1), due.dtype)
    return [Such(lambda a: a.shape != due.shape, shows, type_alone=True)]


def unwritten(g: Given) -> Outputs:
    """The results have their shapes; nobody wrote their elements."""
    return _free(g, *(np.ones(e.value.shape, bool) for e in g.expected))


def zeros_of_nothing(g: Given) -> Outputs:
    """Where nothing is summed, the result is 0 throughout, as stored."""
    return [np.zeros_like(e.value) for e in g.expected]


def transform_of_one_column(g: Given) -> Outputs:
    """Sums of a row are taken for two coefficients: each part of a result is off by no more than the sizes of the
    elements add up to."""
    (e,) = g.expected
    rows, columns = (int(n) for n in g["fft_length"])
    total = np.abs(g["input"][..., :rows, :columns].astype(np.float64)).sum((-2, -1))
    return [Near(e.value, 4 * np.broadcast_to(total[..., None, None], e.value.shape))]


def within_the_sizes(g: Given) -> Outputs:
    """A sum whose terms are off by no more than they are large."""
    (e,) = g.expected
    q = g.inst.tensor("filter").quant
    assert q is not None
    w = np.abs(g["filter"].astype(np.float64)) * q["scale"][0]
    x = np.abs(g["input"].astype(np.float64)).reshape(-1, w.shape[1])
    return [Near(e.value, (x @ w.T).reshape(e.value.shape))]


def extents_of_no_elements(g: Given) -> Outputs:
    """Results without elements have any extents; the others are right."""
    return [
        Near(e.value, _bound(e))
        if e.value.size
        else Such(lambda a: True, np.zeros((*e.value.shape, 1), e.value.dtype), type_alone=True)
        for e in g.expected
    ]


def any_scalar(g: Given) -> Outputs:
    """One element that nobody wrote."""
    due = g.expected[0].value
    return [Such(lambda a: a.shape == () and a.dtype == due.dtype, due)]


def negative_from_zero(g: Given) -> Outputs:
    """0 - x: of 0 that is +0."""
    (slot,) = g.inst.args
    return [np.zeros_like(g[slot]) - g[slot]]


def silent_zeros(g: Given) -> Outputs:
    """What was written over is 0, or right."""
    return [Near(e.value, _bound(e), np.zeros_like(e.value)) for e in g.expected]


def biases_of_the_other_direction(g: Given) -> Outputs:
    """BIDIRECTIONAL_SEQUENCE_LSTM: what was written over is the bias of the other direction's projection, 0 where that
    has none, or right."""
    halves = []
    for own, other in (("fw", "bw"), ("bw", "fw")):
        weights, bias = g[f"{own}_projection_weights"], g[f"{other}_projection_bias"]
        outputs = len(g[f"{own}_input_to_output_weights"] if weights is None else weights)
        halves.append(np.zeros(outputs, np.float32) if bias is None or len(bias) != outputs else bias)
    rows = [np.concatenate(halves)] if len(g.expected) == 1 else halves
    return [Near(e.value, _bound(e), np.broadcast_to(r, e.value.shape)) for e, r in zip(g.expected, rows, strict=True)]


def rest_of_the_other_bias(g: Given) -> Outputs:
    """BIDIRECTIONAL_SEQUENCE_LSTM: the bias of the other direction's projection, once for each row, reaches beyond room
    for as many values as units.  What is left of it begins the output; all else is right."""
    batch = g["input"].shape[1 if g.attr("time_major", False) else 0]
    out = []
    for e, other in zip(g.expected, ("bw", "fw")):
        weights, bias = g[f"{other}_projection_weights"], g[f"{other}_projection_bias"]
        if weights is None or bias is None:
            return None
        rest = np.tile(bias, batch)[batch * weights.shape[1] :][: e.value.size]
        value = e.value.copy()
        value.reshape(-1)[: rest.size] = rest
        out.append(Near(e.value, _bound(e), value))
    return out


def slices_of_whole_bytes(g: Given) -> Outputs:
    """Of a slice of N packed 4-bit elements, N // 2 bytes are copied, one slice behind the other, from where the slices
    would begin if all were of so many bytes; what lies behind the last byte written is anything."""
    x, index, due = g["params"], g["indices"], g.expected[0].value
    axis, batch = g.attr("axis", 0) % x.ndim, g.attr("batch_dims", 0)
    batch += index.ndim if batch < 0 else 0
    inner = int(np.prod(x.shape[axis + 1 :], dtype=int)) // 2
    packed = np.append(x.astype(np.int8).ravel(), np.int8(0))[: x.size + x.size % 2].reshape(-1, 2)
    size = [int(np.prod(n, dtype=int)) for n in (x.shape[:batch], x.shape[batch:axis], index.shape[batch:])]
    coords = index.reshape(size[0], 1, size[2])
    rows = np.arange(size[0] * size[1]).reshape(*size[:2], 1)
    starts = (rows * x.shape[axis] + coords).ravel() * inner
    written = packed[starts[:, None] + np.arange(inner)].ravel()[: due.size]
    flat = np.zeros(due.size, np.int8)
    flat[: written.size] = written
    free = np.where(np.arange(due.size) < written.size, 0.0, np.inf)
    return [Near(flat.reshape(due.shape).astype(due.dtype), free.reshape(due.shape))]


def range_of_the_wrapped_distance(g: Given) -> Outputs:
    """RANGE of integers: the distance of start and limit wraps in their type; as many elements as follow from that."""
    start, limit, delta = (int(g[n].ravel()[0]) for n in ("start", "limit", "delta"))
    dt = g["start"].dtype
    bits = 8 * dt.itemsize
    distance = (limit - start + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    count = (abs(distance) + abs(delta) - 1) // abs(delta)
    return [np.array([start + k * delta for k in range(count)], dt)] if count <= len(g.expected[0].value) else None


def fold_passes_nan_by(g: Given) -> Outputs:
    """Windows folded by ``a >= b ? a : b``, and ``a <= b`` for the lowest: NaN takes the place of what was folded so
    far, and the element behind it takes the place of NaN."""
    x, start = g["input"], g["init_value"]
    if x.dtype.kind != "f":
        return None
    kinds: dict[str, Any] = {"STABLEHLO_MINIMUM": np.less_equal, "STABLEHLO_MAXIMUM": np.greater_equal}
    stays = kinds.get(g.attr("body_subgraph_index").nodes[0].op)
    if stays is None:
        return None
    size, strides = g.attr("window_dimensions"), g.attr("window_strides")
    base, dilations = g.attr("base_dilations"), g.attr("window_dilations")
    pads = list(zip(g.attr("padding")[::2], g.attr("padding")[1::2]))
    found = windows(x, start, lambda a, b: np.where(stays(a, b), a, b), size, strides, base, dilations, pads)
    return [found.astype(x.dtype)]
