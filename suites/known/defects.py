"""What backends with a known difference give: models of their defects, named by ``gives`` in the files beside this one.

Each takes a ``harness.run.defects.Given`` and says, output by output, what comes instead of what the specification
expects; its docstring tells the cause.  A wrong answer that is not what the model says is told.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from harness.core.dtypes import of
from harness.core.instance import Arg
from harness.run.defects import Given, Near, Turned
from harness.spec import Expected
from suites.onnx.builder import TYPED, form_of
from suites.semantics.quantised import fixed
from suites.semantics.recurrent import FUNCTIONS
from suites.semantics.sampling import along, box_edges, grid
from suites.semantics.tabular import post

Outputs = list[Any] | None

# -- ONNX Runtime


def _half(n: int, of: int = 2) -> int:
    """The quotient, toward zero."""
    return int(n / of)


def ort_same(g: Given) -> list[Any] | None:
    """SAME pads (ceil(n / stride) - 1) * stride + kernel - n: the dilation is forgotten, ceil_mode is not, and what is
    negative is cut off both ends.  A dilated window sees what is cut off the end all the same, but in an average."""
    slot = "X" if "X" in g.arrays else "x"
    x, w, average = g[slot], g["W"] if "W" in g.arrays else g["w"], g.inst.op == "AveragePool"
    kernel = g.attr("kernel_shape") or w.shape[2:]
    strides, dilations = (g.attr(name) or [1] * len(kernel) for name in ("strides", "dilations"))
    begins, ends, cut, zeros, whole = [], [], [slice(None)] * 2, [(0, 0)] * 2, g.attr("ceil_mode", 0)
    extents = []
    for n, s, k, d in zip(x.shape[2:], strides, kernel, dilations):
        total = -(-n // s) * s - s + k - n
        extents.append(_half(n + total - d * (k - 1) - 1 + (s - 1) * whole, s) + 1)
        head = _half(total + (g.attr("auto_pad") == "SAME_LOWER"))
        tail = end = total - head
        if tail < 0:
            end = _half(n + total - d * (k - 1) - 1 + (s - 1) * whole, s) * s + d * (k - 1) + 1 - n - head
            tail = tail if average else min(end, 0)
        begins.append(max(0, head))
        ends.append(max(0, end - min(tail, 0)))
        cut.append(slice(max(0, -head), n - max(0, -tail)))
        zeros.append((0, 0) if tail < 0 else (begins[-1], ends[-1]))
    if 0 in extents:  # a dilated window that the padding leaves no place for
        return [np.zeros((*e.value.shape[:2], *extents), e.value.dtype) for e in g.expected]
    inside = np.ascontiguousarray(x[tuple(cut)])
    attrs: dict[str, Any] = {"auto_pad": None, "pads": begins + ends}
    if average and g.attr("count_include_pad", 0) and inside.shape != x.shape:  # it counts no end that is cut
        inside = np.pad(inside, zeros)
        attrs |= {"pads": [0 if sum(z) else p for p, z in zip(begins + ends, 2 * zeros[2:])], "count_include_pad": 0}
    out: list[Any] | None = g.again(attrs, {slot: inside})
    if out and len(out) > 1 and inside.shape != x.shape:  # of a maximum, its place
        axes = (0, 1, *range(x.ndim - 1, 1, -1)) if g.attr("storage_order", 0) else tuple(range(x.ndim))
        places = np.arange(x.size, dtype=np.int64).reshape(x.transpose(axes).shape).transpose(axes)
        seen = g.again(attrs, {slot: np.isnan(inside.astype(np.float32)).astype(np.float32)})
        open_ = seen is not None and np.where(seen[0].value > 0, np.inf, 0)  # where a NaN is, it may win or lose
        out[1] = Near(places[tuple(cut)].transpose(axes).ravel()[out[1].value], open_)
    return out


def ort_counts_beyond(g: Given) -> list[Any] | None:
    """Cells beyond the padding are counted as those of the padding are."""
    x, kernel = g["X"], g.attr("kernel_shape")
    strides, dilations = (g.attr(name) or [1] * len(kernel) for name in ("strides", "dilations"))
    begins = (g.attr("pads") or [0] * 2 * len(kernel))[: len(kernel)]
    extents = zip(g.expected[0].value.shape[2:], strides, kernel, dilations, x.shape[2:], begins)
    ends = [max(0, (out - 1) * s + d * (k - 1) + 1 - n - b) for out, s, k, d, n, b in extents]
    return g.again({"auto_pad": None, "pads": [*begins, *ends], "ceil_mode": 0})


_PARTS = {"LSTM": (4, "Sigmoid Tanh Tanh"), "GRU": (3, "Sigmoid Tanh"), "RNN": (1, "Tanh")}  # gates, activations
_PARAMETERS = {"leaky_relu": (0.01, 0.0), "hard_sigmoid": (0.2, 0.5), "elu": (1.0, 0.0)}  # no others have defaults
_PLAIN = {name.replace("_", ""): name for name in FUNCTIONS}
_TAKES = {"affine": 2, "scaled_tanh": 2, "hard_sigmoid": 2, "leaky_relu": 1, "elu": 1, "thresholded_relu": 1}
_STEPWISE = {"sigmoid", "tanh", "scaled_tanh", "elu", "softplus"}  # computed with an absolute error, in f32


def _activations(g: Given) -> list[tuple[str, float, float]]:
    """Those of all directions."""
    op, count = g.inst.op, g["W"].shape[0]
    names = (g.attr("activations") or _PARTS[op][1].split() * count)[: len(_PARTS[op][1].split()) * count]
    alphas, betas = (list(g.attr("activation_" + k) or ()) for k in ("alpha", "beta"))
    out = []
    for raw in names:
        name = _PLAIN[raw.lower().replace("_", "")]
        a, b = _PARAMETERS.get(name, (0.0, 0.0))
        a = alphas.pop(0) if _TAKES.get(name, 0) > 0 and alphas else a
        b = betas.pop(0) if _TAKES.get(name, 0) > 1 and betas else b
        out.append((name, a, b))
    return out


def _recurrent(g: Given, acts: list[tuple[str, float, float]], off: np.random.Generator | None) -> list[np.ndarray]:
    """Y and the last states, in f64, each activation with an error of 4e-7 of a random sign where ``off`` is given; the
    last state of no step is 0."""
    op, clip = g.inst.op, g.attr("clip") or np.inf
    gates, per = _PARTS[op][0], len(_PARTS[op][1].split())
    x, w, r = (np.asarray(g[k], np.float64) for k in "XWR")
    t, batch, n = *x.shape[:2], r.shape[-1]
    lengths = np.full(batch, t) if g["sequence_lens"] is None else g["sequence_lens"]
    ys, ends = np.zeros((t, len(w), batch, n)), np.zeros((2, len(w), batch, n))

    def act(k: int, v: np.ndarray, limit: float = np.inf) -> np.ndarray:
        name, a, b = acts[k]
        v = np.clip(v, -limit, limit)
        error = 4e-7 * off.choice((-1, 1), v.shape) if off is not None and name in _STEPWISE else 0.0
        if name == "softplus":
            return np.log(np.exp(v.astype(np.float32)) + np.float32(1)).astype(np.float64) + error
        return FUNCTIONS[name](v, a, b) + error

    for d, one in np.ndindex(len(w), batch):
        b = np.zeros(2 * gates * n) if g["B"] is None else np.asarray(g["B"][d], np.float64)
        bw, br = b.reshape(2, gates, n)
        h, c = (np.zeros(n) if g[k] is None else g[k][d, one].astype(np.float64) for k in ("initial_h", "initial_c"))
        p = np.zeros((3, n)) if g["P"] is None else np.asarray(g["P"][d], np.float64).reshape(3, n)
        steps = range(lengths[one])
        for s in reversed(steps) if g.attr("direction") == "reverse" or d else steps:
            u, v, k = (w[d] @ x[s, one]).reshape(gates, n) + bw, (r[d] @ h).reshape(gates, n) + br, d * per
            if op == "RNN":
                h = act(k, u[0] + v[0], clip)
            elif op == "GRU":
                z, q = act(k, u[0] + v[0], clip), act(k, u[1] + v[1], clip)
                last = q * v[2] if g.attr("linear_before_reset", 0) else r[d][2 * n :] @ (q * h) + br[2]
                h = (1 - z) * act(k + 1, u[2] + last, clip) + z * h
            else:
                i = act(k, u[0] + v[0] + p[0] * c, clip)
                f = 1 - i if g.attr("input_forget", 0) else act(k, u[2] + v[2] + p[2] * c, clip)
                c = f * c + i * act(k + 1, u[3] + v[3], clip)
                h = act(k, u[1] + v[1] + p[1] * c, clip) * act(k + 2, c)
            ys[s, d, one] = h
        ends[:, d, one] = (h, c) if len(steps) else 0.0
    return [ys, *ends]


def _with(g: Given, acts: list[tuple[str, float, float]]) -> list[Any] | None:
    """What is expected with the parameters of these activations."""
    taken = [a for a in acts if a[0] in _TAKES]
    alphas, betas = [a for _, a, _ in taken], [b for name, _, b in taken if _TAKES[name] > 1]
    return g.again({"activation_alpha": alphas or None, "activation_beta": betas or None})


def affine_of_0(g: Given) -> list[Any] | None:
    """Affine and ScaledTanh have the defaults 0."""
    return _with(g, _activations(g))


def forward_activations(g: Given) -> list[Any] | None:
    """Both directions take the activations of the first."""
    acts = _activations(g)
    both = acts[: len(acts) // 2] * 2
    names = [g.attr("activations")[i % (len(acts) // 2)] for i in range(len(acts))]
    return g.again({"activations": names, "activation_alpha": [a for name, a, _ in both if name in _TAKES] or None,
                    "activation_beta": [b for name, _, b in both if _TAKES.get(name, 0) > 1] or None})  # fmt: skip


def no_step_ends_in_0(g: Given) -> list[Any] | None:
    """Last states of a sequence of no steps are 0."""
    some = g["sequence_lens"].reshape((-1, 1, 1) if g.attr("layout", 0) else (-1, 1)) > 0
    return [g.expected[0], *(replace(e, value=np.where(some, e.value, 0).astype(e.value.dtype),
                                     wide=np.where(some, e.wide, 0.0)) for e in g.expected[1:])]  # fmt: skip


def ort_recurrent(g: Given) -> list[Any] | None:
    """Activations have an absolute error of 4e-7, log(exp(x) + 1) is infinite above 88 and 0 below -17; Affine and
    ScaledTanh have the defaults 0; a sequence of no steps ends in 0."""
    return _approximately(g, _activations(g))


def ort_old_rnn(g: Given) -> list[Any] | None:
    """As ort_recurrent, but all functions have the defaults 0, and a direction has the parameters of its place."""
    a, b = (list(g.attr("activation_" + k) or [0.0] * 2) + [np.nan] * 2 for k in ("alpha", "beta"))  # beyond: anything
    return _approximately(g, [(name, a[i], b[i]) for i, (name, _, _) in enumerate(_activations(g))])


def _approximately(g: Given, acts: list[tuple[str, float, float]]) -> list[Any] | None:
    """A recurrent layer with these activations, none of them accurate."""
    again = _with(g, acts)
    if again is None or g.attr("layout", 0):  # it refuses the other layout
        return None
    here, *moved = (_recurrent(g, acts, off) for off in (None, *map(np.random.default_rng, range(6))))
    out = []
    for e, y, *others in zip(again, here, *moved):
        within = e.error.bound(e.context()) + 2 * np.max([np.abs(o - y) for o in others], 0)
        out.append(Near(y, np.where(np.isfinite(y), np.nan_to_num(within, nan=np.inf), np.inf)))
    return out


def _resized(g: Given, attrs: dict[str, Any], **inputs: Any) -> list[Any] | None:
    """Of a Resize whose axes of an extent that stays the same have a scale of 1 and the whole as their region."""
    x, shape = g["X"], g.expected[0].value.shape
    axes = [a % x.ndim for a in g.attr("axes") or range(x.ndim)]
    same = np.array([shape[a] == x.shape[a] for a in axes])
    if g["scales"] is not None and g["scales"].size:
        inputs["scales"] = np.where(same, 1, g["scales"]).astype(g["scales"].dtype)
    if g["roi"] is not None and g["roi"].size:
        inputs["roi"] = np.where(np.tile(same, 2), np.repeat([0, 1], len(axes)), g["roi"]).astype(g["roi"].dtype)
    return g.again(attrs, inputs)


def ort_resize_same(g: Given) -> list[Any] | None:
    """An axis whose extent stays the same is copied: its scale counts as 1, its region as the whole, half pixels as
    none."""
    x, shape = g["X"], g.expected[0].value.shape
    if g.attr("coordinate_transformation_mode") != "tf_half_pixel_for_nn":
        return _resized(g, {})
    where = []
    for a, n in enumerate(x.shape):  # the element that is taken along each axis
        along = np.arange(n, dtype=np.float32).reshape([n if b == a else 1 for b in range(x.ndim)])
        taken = g.again(None, {"X": np.broadcast_to(along, x.shape).copy()})
        if taken is None:
            return None
        where.append(np.indices(shape)[a] if shape[a] == n else taken[0].value.astype(int))
    return [x[tuple(where)]]


def ort_resize_channels_last(g: Given) -> list[Any] | None:
    """The elements beyond the region are interpolated, then written where they would be if the channels came first."""
    told = _resized(g, {})
    marks = _resized(g, {"extrapolation_value": 1.0}, X=np.zeros(g["X"].shape, np.float32))
    if told is None or marks is None:
        return None
    beyond = marks[0].value == 1
    moved = np.moveaxis(beyond, 3, 1).reshape(beyond.shape)
    within = told[0].error.bound(told[0].context())
    return [Near(np.where(moved, g.attr("extrapolation_value", 0.0), told[0].wide),
                 np.where(moved, 1e-3, np.where(beyond, np.inf, within)))]  # fmt: skip


def ort_tree(g: Given, **attrs: Any) -> list[Any] | None:
    """A NaN is unequal to everything, whatever is said of missing values; a set with a negative member is asked for the
    feature without its fraction."""
    modes = [str(m) for m in g.attr("nodes_modes")]
    tracks = list(g.attr("nodes_missing_value_tracks_true") or [0] * len(modes))
    attrs["nodes_missing_value_tracks_true"] = [1 if m in ("BRANCH_NEQ", "5") else t for m, t in zip(modes, tracks)]
    members = g.attr("membership_values")
    if members is not None:
        sets = [s[~np.isnan(s)] for s in np.split(members, np.flatnonzero(np.isnan(members)) + 1)[:-1]]
        x, end = np.unique(g["X"]).astype(members.dtype), members.dtype.type(np.nan)
        cut = [np.union1d(s, x[np.isin(np.trunc(x), s)]) if (s < 0).any() else s for s in sets]
        attrs["membership_values"] = np.concatenate([np.append(s, end) for s in cut])
    return g.again(attrs)


def ort_tree_untransformed(g: Given) -> list[Any] | None:
    """Nothing is done to the scores."""
    return ort_tree(g, post_transform=None)


def ort_tree_transforms(g: Given) -> list[Any] | None:
    """SOFTMAX and LOGISTIC are exchanged, of a single target neither is done; in single precision."""
    told = ort_tree(g, post_transform=0 if g.attr("n_targets", 1) == 1 else 3 - g.attr("post_transform", 0))
    return told and [Near(e.wide, e.error.bound(e.context()) + 1e-6 * (np.abs(e.wide) + 1)) for e in told]


def ort_tree_two_classes(g: Given) -> list[Any] | None:
    """Of two classes the second has the first score plus the second base value, the first its negative; without base
    values the scores are right.  The label is the second, as an integer 1, where the second score is positive, else the
    first, as an integer 0."""
    told = ort_tree(g, base_values=None, base_values_as_tensor=None, post_transform=None)
    if told is None:
        return None
    scores, how = told[1].wide, g.attr("post_transform", "NONE")
    base = g.attr("base_values", g.attr("base_values_as_tensor"))
    if base is not None and len(base):
        second = scores[:, 0] + base[1]
        scores = np.stack([-second, second], 1)
    words = g.attr("classlabels_strings")
    label = (scores[:, 1] > 0).astype(np.int64)
    due = post(scores, how)
    return [np.array(words, object)[label] if words else label, Near(due, 1e-6 * (1 + np.abs(due)))]


def ort_folds_in_f64(g: Given) -> list[Any]:
    """Sums and products of integers are computed in f64, which is then brought into the type; NaN is the lowest."""
    axes = g["axes"] if g["axes"] is not None else g.attr("axes")
    x, given = g["data"].astype(np.float64), axes is not None and len(axes) > 0
    over = tuple(int(a) for a in axes) if given else () if g.attr("noop_with_empty_axes", 0) else tuple(range(x.ndim))
    x = {"ReduceL1": np.abs, "ReduceSumSquare": np.square}.get(g.inst.op, np.positive)(x)
    fold = np.prod if g.inst.op == "ReduceProd" else np.sum
    total, size = (fold(v, over, keepdims=bool(g.attr("keepdims", 1))) for v in (x, np.abs(x)))
    ends = np.iinfo(g["data"].dtype)
    brought = np.where(np.isnan(total), ends.min, np.clip(total, ends.min, ends.max))
    return [Near(brought, np.where(size > 2.0**53, (x.size + 1) * 2.0**-53 * np.minimum(size, 2.0**63), 0))]


def bits_not_zero(g: Given) -> list[Any]:
    """Whether any bit is set."""
    return [g["input"].view(np.uint8) != 0]


def ort_f8_beyond(g: Given) -> list[Any]:
    """What rounds to the number after the largest has its bits: in float8e4m3fn 448, from 480 to 496, in float8e5m2
    NaN, from 61440 to 65536."""
    e, x = g.expected[0], np.abs(g["input"].astype(np.float32))
    low, high, becomes = (480, 496, 448) if e.dtype.name == "f8e4m3fn" else (61440, 65536, np.nan)
    due = e.value.astype(np.float64)
    return [np.where((x >= low) & (x < high), np.copysign(becomes, g["input"].astype(np.float32)), due)]


def halves_away(g: Given) -> list[Any]:
    """Halves are rounded away from zero."""
    x = g["input"].astype(np.float64)
    return [np.copysign(np.floor(np.abs(x) + 0.5), x)]


def ort_shrink(g: Given) -> list[Any]:
    """Everything is computed in f32; what an integer type does not hold of it is anything."""
    x, bias, limit = (np.float32(v) for v in (g["input"], g.attr("bias", 0.0), g.attr("lambd", 0.5)))
    y = np.where(x < -limit, x + bias, np.where(x > limit, x - bias, np.float32(0))).astype(np.float64)
    kind = g["input"].dtype
    if kind.kind == "f":
        return [y]
    ends = np.iinfo(kind)
    return [Near(np.trunc(y), np.where((y < ends.min) | (y >= float(ends.max) + 1), np.inf, 0))]


def _pow(g: Given, clipped: bool) -> list[Any]:
    ends, due = np.iinfo(g["X"].dtype), np.power(g["X"].astype(np.float64), g["Y"].astype(np.float64))
    held, end = np.abs(due) < -float(ends.min), np.where(clipped & (due > 0), float(ends.max), ends.min)
    return [Near(np.where(held, np.trunc(due), end), np.where(held, 2 * np.spacing(np.abs(due)), 0))]


def ort_pow(g: Given) -> list[Any]:
    """Powers of integers are computed in double; what the type does not hold of that is the lowest integer."""
    return _pow(g, False)


def ort_pow_clipped(g: Given) -> list[Any]:
    """The same on processors whose conversions saturate."""
    return _pow(g, True)


def ort_bf16_steps(g: Given) -> list[Any]:
    """Every label that is summed and every product is rounded to bf16."""
    e = g.expected[0]
    steps = len(set(g.attr("equation", "")) - set(" ,.->")) + len(g["Inputs"])
    return [Near(e.wide, 2.0**-8 * steps * e.context().scale())]


def ort_einsum_in_f64(g: Given) -> list[Any]:
    """Sums of products of integers are computed in f64."""
    e = g.expected[0]
    return [Near(e.value, 2.0**-49 * e.context().scale())]


def ort_slice_ends(g: Given) -> list[Any] | None:
    """Going backward, an end of INT_MAX or INT64_MAX is the beginning."""
    ends, steps = g["ends"], g["steps"]
    if steps is None:
        return None
    first = (steps < 0) & np.isin(ends, (2**31 - 1, 2**63 - 1))
    return g.again(None, {"ends": np.where(first, np.iinfo(ends.dtype).min, ends).astype(ends.dtype)})


def ort_loop_asks(g: Given) -> list[Any] | None:
    """Without a condition the one that the body gives ends the loop all the same."""
    return g.again(None, {"cond": np.array(True)})


def ort_labels(g: Given) -> list[Any] | None:
    """A NaN is never found (in version 2), and of equal keys the first counts."""
    names = [k for k in g.inst.attrs if k.startswith(("keys_", "values_"))]
    keys = g.attr(next(k for k in names if k.startswith("keys_")))
    kept = [i for i, k in enumerate(keys) if not any(k == o or (k != k and o != o) for o in keys[:i])]
    edit = {n: v[kept] if isinstance(v, np.ndarray) else [v[i] for i in kept] for n in names for v in [g.attr(n)]}
    if "keys_floats" in edit and g.case.version.version == 2:
        edit["keys_floats"] = [3e38 if np.isnan(k) else k for k in edit["keys_floats"]]
    return g.again(edit)


def ort_col2im(g: Given) -> list[Any]:
    """Of other than two axes the blocks are taken to be as large as their dilated extents, dilated once more."""
    x, image, n = g["input"].astype(np.float64), g["image_shape"], len(g["image_shape"])
    dilations, strides = (np.array(g.attr(k) or [1] * n) for k in ("dilations", "strides"))
    pads = np.array(g.attr("pads") or [0] * 2 * n).reshape(2, n)
    reach = dilations * (g["block_shape"] - 1) + 1
    at = np.indices((image + pads.sum(0) - reach) // strides + 1).reshape(n, -1).T
    due = g.expected[0].value
    y, size = np.zeros((2, *due.shape))
    for c in range(x.shape[1]):
        channel, inside = divmod(c, int(np.prod(reach)))
        to = at * strides - pads[0] + np.array(np.unravel_index(inside, reach)) * dilations
        ok = ((to >= 0) & (to < image)).all(-1)
        place = (slice(None), channel, *to[ok].T)
        np.add.at(y, place, x[:, c, ok])
        np.add.at(size, place, np.abs(x[:, c, ok]))
    return [Near(y.astype(due.dtype), 2.0 ** -(10 if due.dtype == np.float16 else 20) * size)]


def ort_old_col2im(g: Given) -> list[Any]:
    """As ort_col2im, and the blocks lie at every position of the image, whatever strides and pads say; what is read
    beyond the input is anything."""
    x, image, n = g["input"].astype(np.float64), g["image_shape"], len(g["image_shape"])
    dilations, strides = (np.array(g.attr(k) or [1] * n) for k in ("dilations", "strides"))
    reach = dilations * (g["block_shape"] - 1) + 1
    at = np.indices(np.maximum(image - reach + 1, 0)).reshape(n, -1).T
    due = g.expected[0].value
    y, size = np.zeros((2, *due.shape))
    for b, c in np.ndindex(x.shape[:2]):
        channel, inside = divmod(c, int(np.prod(reach)))
        to = at * strides - (g.attr("pads") or [0] * n)[:n] + np.array(np.unravel_index(inside, reach)) * dilations
        ok = ((to >= 0) & (to < image)).all(-1) & (channel < due.shape[1])
        where = b * x[0].size + c * len(at) + np.flatnonzero(ok)
        read = np.where(where < x.size, x.ravel()[np.minimum(where, x.size - 1)], np.inf)
        place = (b, np.minimum(channel, due.shape[1] - 1), *to[ok].T)
        np.add.at(y, place, read)
        np.add.at(size, place, np.abs(read))
    return [Near(y.astype(due.dtype), 2.0 ** -(10 if due.dtype == np.float16 else 20) * size)]


def ort_half_spectrum(g: Given) -> list[Any]:
    """Of half a spectrum that is transformed back, all elements after the first (of an even length but the last) are
    mirrored, in place of those that are there, and round and round; in single precision."""
    axis = int(g["axis"]) if g["axis"] is not None else g.attr("axis", 1 if g.case.version.version < 20 else -2)
    x, due = g["input"].astype(np.float64), g.expected[0].value
    x = np.moveaxis(x[..., 0] + 1j * x[..., 1], axis if axis >= 0 else axis + 1, -1)
    n = due.shape[axis]
    even, m = n % 2 == 0, x.shape[-1] if n & (n - 1) == 0 else min(n, x.shape[-1])
    full = np.zeros((*x.shape[:-1], n), complex)
    full[..., : min(m, n)] = x[..., :n]
    for k in range(1, m - even):
        full[..., (n - k) % n] = np.conj(x[..., k])
    y = np.moveaxis(np.fft.ifft(full).real, -1, axis if axis >= 0 else axis + 1)[..., None]
    narrow = 2.0**-11 if due.dtype == np.float16 else 0.0
    return [Near(y, narrow * np.abs(y) + 2e-6 * np.abs(full).sum())]


def steps_in_the_type(g: Given) -> list[Near]:
    """Every step of the function body is rounded to the type of the operands: 16 steps of arithmetic in it."""
    out = []
    for e in g.expected:
        ctx = e.context()
        ctx.acc = e.dtype
        out.append(Near(e.wide, 16 * (e.error.bound(ctx) + np.abs(e.wide) * ctx.u)))
    return out


# -- OpenVINO


def _reread(g: Given, which: Callable[[Arg], bool], how: Callable[[np.ndarray], np.ndarray],
            attrs: dict[str, Any] | None = None) -> Outputs:  # fmt: skip
    """What is expected where the operands that ``which`` tells of are read otherwise."""

    def read(a: Any, v: Any) -> Any:
        if isinstance(a, list):
            return [read(x, y) for x, y in zip(a, v)]
        return how(v) if isinstance(a, Arg) and isinstance(v, np.ndarray) and which(a) else v

    found = {k: read(a, g[k]) for k, a in g.inst.args.items()}
    return g.again(attrs, {k: v for k, v in found.items() if isinstance(v, list) or v is not g[k]})


def _number_of_bits(x: np.ndarray) -> np.ndarray:
    """To bf16 a number is rounded up from one half on where its last bit is 1, else it is cut off."""
    bits = x.view(np.uint16).astype(np.float32).view(np.uint32)
    return ((bits + ((bits & 0x10000) >> 1)) >> 16).astype(np.uint16).view(x.dtype)


def _typed(dtype: str) -> Callable[[Arg], bool]:
    """Is it a constant of a type in its typed data field?"""
    return lambda a: a.const and str(a.dtype) == dtype and form_of(a) == TYPED


def bits_are_numbers(g: Given, **attrs: Any) -> Outputs:
    """The bits of bf16 in int32_data are numbers."""
    return _reread(g, _typed("bf16"), _number_of_bits, attrs)


def bits_are_numbers_roughly(g: Given) -> Outputs:
    """The same, and what comes of such large ones is off by the roundings of narrow steps."""
    told = bits_are_numbers(g)
    return told and [Near(v, 2.0**-6 * np.abs(v)) if e.dtype.name == "bf16" else e
                     for e in told for v in [np.asarray(e.value).astype(np.float64)]]  # fmt: skip


def bits_are_numbers_unsaturated(g: Given) -> Outputs:
    """The bits of bf16 in int32_data are numbers, and saturate is 0."""
    return bits_are_numbers(g, saturate=0)


def gates_apart_roughly(g: Given) -> Outputs:
    """LSTM: neither input_forget nor peepholes are read, and the state is rounded to bf16 between the steps."""
    told = g.again({"input_forget": None}, {"P": None})
    return told and [Near(np.asarray(e.value).astype(np.float64), 0.1) for e in told]


def divided_by_the_largest_magnitude(g: Given) -> Outputs:
    """Normalizer, in f32: MAX divides by the largest magnitude."""
    x = g["X"].astype(np.float64)
    y = x / np.abs(x).max(-1, keepdims=True)
    return [Near(y, 1e-6 * np.abs(y))]


def every_other_is_0(g: Given) -> Outputs:
    """The 64 bits of each u32 in uint64_data are read as two."""
    return _reread(g, _typed("u32"),
                   lambda x: np.stack([x, np.zeros_like(x)], -1).ravel()[: x.size].reshape(x.shape))  # fmt: skip


def subnormal_constants_are_0(g: Given) -> Outputs:
    """Constants that are subnormal are +0, and zeros beside them too."""
    return _reread(g, lambda a: a.const and str(a.dtype) in ("f32", "bf16"),
                   lambda x: np.where(np.abs(x) < _finfo(x).smallest_normal, 0, x).astype(x.dtype))  # fmt: skip


def _through_f32(x: np.ndarray) -> np.ndarray:
    ends = np.iinfo(x.dtype)
    wide = x.astype(np.float32).astype(object)
    return np.array([min(max(int(v), ends.min), ends.max) for v in wide.ravel()], x.dtype).reshape(x.shape)


def integers_rounded_to_f32(g: Given) -> Outputs:
    """Integers are rounded to f32."""
    return _reread(g, lambda a: str(a.dtype) in ("i32", "i64", "u32", "u64"), _through_f32)


def overlap_may_equal(g: Given) -> Outputs:
    """NonMaxSuppression: a box is removed where its overlap equals the threshold."""
    return g.again(inputs={"iou_threshold": np.nextafter(g["iou_threshold"], np.float32(-1))})


def _divided_in_f32(g: Given, x: np.ndarray) -> Outputs:
    return g.again({"precision": None}, {"x": x.astype(np.float32), "y_scale": g["y_scale"].astype(np.float32)})


def divided_in_f32(g: Given) -> Outputs:
    """QuantizeLinear divides in f32, whatever the types of its operands and precision."""
    return _divided_in_f32(g, g["x"])


def bits_divided_in_f32(g: Given) -> Outputs:
    """The same, and the bits of bf16 in int32_data are numbers."""
    return _divided_in_f32(g, _number_of_bits(g["x"])) if _typed("bf16")(g.inst.args["x"]) else None


def transformed_along_axis_1(g: Given) -> Outputs:
    """DFT-20: along axis 1, whatever the input axis says."""
    return g.again(inputs={"axis": np.array(1)})


# -- the ONNX reference evaluator


def truncated(g: Given) -> Outputs:
    """Fractions are cut off."""
    return [np.trunc(g["input"].astype(np.float64))]


def first_activation_only(g: Given) -> list[Any] | None:
    """RNN: both directions have the activation of the first; clip and sequence_lens are not read; the last state of an
    affine one is f32."""
    first = {k: [v[0]] * len(v) for k in ("activations", "activation_alpha", "activation_beta") if (v := g.attr(k))}
    found: list[Any] | None = g.again({**first, "clip": None}, {"sequence_lens": None})
    if found and len(found) > 1 and g["X"].dtype.itemsize == 2 and "Affine" in first.get("activations", [])[:1]:
        found[1] = Turned(found[1], lambda y: y.astype(g["X"].dtype) if y.dtype == np.float32 else y)
    return found


def scanned_along_axis_0(g: Given) -> list[Any] | None:
    """Scan: axes are read for nothing but the number of steps; slices are of axis 0, results are stacked on axis 0."""
    args, count = g["initial_state_and_scan_inputs"], g.attr("num_scan_inputs")
    states, scanned = args[:-count], args[-count:]
    steps = scanned[0].shape[(g.attr("scan_input_axes") or [0])[0]]
    return g.again({"scan_input_axes": None, "scan_output_axes": None},
                   {"initial_state_and_scan_inputs": [*states, *(x[:steps] for x in scanned)]})  # fmt: skip


def version_8_as_9(g: Given) -> list[Any] | None:
    """Scan-8: sequence_lens is the first state, the first state the second and so on; of bodies that add nothing."""
    body, args = g.attr("body"), [g["sequence_lens"], *g["initial_state_and_scan_inputs"]]
    count = len(args) - g.attr("num_scan_inputs")
    if any(n.op not in ("Identity", "Not") for n in body.nodes):
        return None
    states, scanned = args[:count], args[count:]
    stacked: list[list[Any]] = [[] for _ in body.outputs[count:]]
    for step in range(len(scanned[0])):
        env = dict(zip([n for n, _ in body.inputs], [*states, *(x[step] for x in scanned)], strict=False))
        for n in body.nodes:
            (x,) = (env[i] for i in n.inputs.values())
            env[n.outputs[0]] = np.logical_not(x) if n.op == "Not" else x
        states = [env[o] for o in body.outputs[:count]]
        for o, name in zip(stacked, body.outputs[count:], strict=True):
            o.append(env[name])
    return [*states, *map(np.stack, stacked)]


def axes_one_after_another(g: Given) -> list[Any] | None:
    """Unsqueeze, Squeeze before 13: an axis counts in what those before it have left; Squeeze begins at the last."""
    x, axes = g["data"], g.attr("axes")
    try:
        for a in axes if g.inst.op == "Unsqueeze" else reversed(axes):
            x = np.expand_dims(x, a) if g.inst.op == "Unsqueeze" else np.squeeze(x, a)
    except ValueError:  # refused
        return None
    return [x]


def broadcast_from_the_right(g: Given) -> list[Expected] | None:
    """Both operands are broadcast as NumPy does, whatever broadcast and axis say."""
    (first, a), (second, b) = ((slot, g[slot]) for slot in g.inst.args)
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:  # refused
        return None
    return g.again({"axis": None, "broadcast": None},
                   {first: np.broadcast_to(a, shape), second: np.broadcast_to(b, shape)})  # fmt: skip


def along_the_axis_alone(g: Given, default: int = -1) -> list[Any] | None:
    """Softmax, Hardmax before 13: over the one axis, not over all from there on; the default is -1."""
    axis, x = g.attr("axis", default), g["input"]
    found = g.again({"axis": -1 if g.inst.version >= 11 else x.ndim - 1}, {"input": np.moveaxis(x, axis, -1)})
    return found and [Turned(found[0], lambda y: np.moveaxis(y, axis, -1))]


def along_axis_1_alone(g: Given) -> list[Any] | None:
    """The same, and the default is 1."""
    return along_the_axis_alone(g, 1)


def _log_of_softmax(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """The logarithm of a softmax that is rounded, or underflows, in the type of x; how far it may be off."""
    info, d = _finfo(x), x.astype(np.float64) - x.astype(np.float64).max(axis, keepdims=True)
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
    at, eps = np.where(keep, target, 0)[:, None], _finfo(x).eps
    w = np.where(keep, 1.0 if weight is None else weight.astype(np.float64)[at[:, 0]], 0)
    loss = np.where(keep, -np.take_along_axis(z, at, 1)[:, 0], 0) * w
    err = np.where(w > 0, np.take_along_axis(off, at, 1)[:, 0], 0) * w + np.abs(loss) * 4 * eps
    err = np.where(np.isfinite(loss), err, 0)
    how = g.attr("reduction", "mean")
    if how != "none":
        under = 1 if how == "sum" else w.size if nll and weight is None and ignore == -1 else w.sum()
        err = (err.sum() + np.abs(loss).sum() * eps * (4 + w.size)) / under
        loss = loss.sum() / under
    err = np.where(np.isnan(err), 0, err)
    return [Near(loss, err), Near(z, off)][: len(g.expected)]


def sums_with_their_sign(g: Given) -> list[Near]:
    """LpNormalization, p = 1: divided by the sum of the elements, not of their magnitudes, 0 where that is 0; in the
    type of the input, and with NumPy's order of the sum: where it cancels the last digits decide."""
    x, axis = g["input"], g.attr("axis", -1)
    total = np.expand_dims(np.sum(x, axis), axis)
    y = np.where(total == 0, 0, x / total).astype(x.dtype)
    return [Near(y, np.abs(y.astype(np.float64)) * 8 * _finfo(x).eps)]  # a power of 1 is not exact


def maximum_over_two_axes(g: Given) -> list[Any]:
    """GlobalMaxPool: over axes r - 2 and r - 1 of r, then as many ones as there are spatial axes."""
    y = g["X"].max((g["X"].ndim - 2, g["X"].ndim - 1))
    return [y.reshape(*y.shape, *[1] * (g["X"].ndim - 2))]


def squares_of_few_channels(g: Given) -> list[Near]:
    """LRN: no sums for the channels beyond the extent of the batch; alpha / size in f32."""
    x, eps = g["X"].astype(np.float64), _finfo(g["X"]).eps
    size, beta = g.attr("size"), g.attr("beta", 0.75)
    factor = float(np.float32(g.attr("alpha", 0.0001)) / np.float32(size))
    sums = np.zeros_like(x)
    for c in range(min(x.shape[0], x.shape[1])):
        sums[:, c] = (x[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1] ** 2).sum(1)
    y = x / (g.attr("bias", 1.0) + factor * sums) ** beta
    return [Near(y, np.abs(y) * eps * (4 + beta * (4 + size)))]


def products_in_double(g: Given) -> list[Near]:
    """Gemm of integers: the product wraps around, is multiplied by alpha in f64, and so is C by beta; what that makes
    too large for the type is undefined."""
    a, b = (g[s].T if g.attr(t, 0) else g[s] for s, t in (("A", "transA"), ("B", "transB")))
    y = np.dot(a, b) * np.float64(g.attr("alpha", 1.0))
    if g["C"] is not None:
        y = y + g["C"] * np.float64(g.attr("beta", 1.0))
    info = np.iinfo(a.dtype)
    fits = (y > float(info.min) - 1) & (y < float(info.max) + 1)
    return [Near(np.where(fits, y, 0).astype(a.dtype), np.where(fits, 0, np.inf))]


def on_times_difference(g: Given) -> list[Any] | None:
    """OneHot: one times the difference of on and off, plus off."""
    off, on = g["values"]
    found = g.again(inputs={"values": np.array([0, 1], np.uint8)})
    return found and [found[0].value.astype(g["values"].dtype) * (on - off) + off]


def truth_of_the_text(g: Given) -> list[Any]:
    """Cast: strings are true unless they are empty; truth values are written as Python's."""
    x = g["input"]
    return [x.astype(str) if x.dtype == bool else np.array([bool(t) for t in x.ravel()]).reshape(x.shape)]


def padded_with_the_text_0(g: Given) -> list[Any] | None:
    """Pad, CenterCropPad of strings: the text "0" is put where nothing is given."""
    slot = "data" if g.inst.op == "Pad" else "input_data"
    found = g.again(inputs={slot: np.full(g[slot].shape, "x", object)})
    return found and [np.where(found[0].value == "", "0", g.expected[0].value)]


def _outer(op: np.ufunc, parts: list[np.ndarray]) -> np.ndarray:
    """[*out, window] of an array [out, kernel] of each axis."""
    r, found = len(parts), parts[0]
    for x in parts[1:]:
        found = op.outer(found, x)
    found = found.transpose(*range(0, 2 * r, 2), *range(1, 2 * r, 2))
    return found.reshape(*found.shape[:r], math.prod(found.shape[r:]))


def _windows(x: np.ndarray, taps: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Elements [n, c, *out, window] at positions [out, kernel] of each axis, in f64, NaN outside; what is inside."""
    r = len(taps)
    inside = _outer(np.logical_and, [(t >= 0) & (t < n) for t, n in zip(taps, x.shape[2:], strict=True)])
    for i, t in enumerate(taps):
        x = np.take(x, t.clip(0, x.shape[2 + 2 * i] - 1), 2 + 2 * i)
    x = x.transpose(0, 1, *range(2, 2 + 2 * r, 2), *range(3, 2 + 2 * r, 2))
    return np.where(inside, x.reshape(*x.shape[:2], *inside.shape).astype(np.float64), np.nan), inside


def _pooled_axes(g: Given) -> list[tuple[int, ...]]:
    """Of each spatial axis extent, kernel, stride, dilation and pads."""
    kernel, r = g.attr("kernel_shape"), len(g.attr("kernel_shape"))
    strides, dilations = (g.attr(name) or [1] * r for name in ("strides", "dilations"))
    pads = g.attr("pads") or [0] * 2 * r
    return list(zip(g["X"].shape[2:], kernel, strides, dilations, pads[:r], pads[r:], strict=True))


def windows_of_the_padded(g: Given) -> list[Near]:
    """AveragePool, LpPool: automatic pads and extents forget the dilation, what is not reached is 0; what ceil_mode
    adds is put on both ends, and elements count up to the end that was asked for.  Pads count in version 1 and in
    LpPool, NaN never does, but with count_include_pad.  LpPool is the root of kernel size times average."""
    x, lp, whole = g["X"], g.inst.op == "LpPool", g.attr("ceil_mode", 0)
    auto, include = g.attr("auto_pad", "NOTSET"), g.attr("count_include_pad", None if lp or g.inst.version == 1 else 0)
    taps, here, reached = [], [], []
    for n, k, s, d, begin, end in _pooled_axes(g):
        span = (k - 1) * d + 1
        if auto == "NOTSET":
            limit, room = n + begin + end, n + begin + end - span
            out = (-(-room // s) if whole else room // s) + 1
            out -= bool(whole and (out - 1) * s >= n + begin)
            more = max(0, (out - 1) * s - room)
            begin, end = begin + more // 2, end + more - more // 2
        else:
            out = (n - k) // s + 1 if auto == "VALID" else (n - 1) // s + 1
            total = 0 if auto == "VALID" else (out - 1) * s + k - n
            begin = total - total // 2 if auto == "SAME_LOWER" else total // 2
            end, limit = total - begin, n + total
        at = np.arange(out)[:, None] * s + np.arange(k) * d
        taps.append(at - begin)
        here.append((at < limit) & ((at >= begin) & (at < begin + n) if include == 0 else True))
        reached.append(np.arange(out)[:, None] * s + span <= n + begin + end)
    p = g.attr("p", 2) if lp else 1
    p = np.float32(p) if g.inst.version == 1 and "p" in g.inst.attrs else p
    v, inside = _windows(np.power(np.abs(x), p) if lp else x, taps)
    v = np.where(inside, v, 0)
    keep = _outer(np.logical_and, here) & (True if include == 1 else ~np.isnan(v))
    total, size, count = np.where(keep, v, 0).sum(-1), np.where(keep, np.abs(v), 0).sum(-1), keep.sum(-1)
    info, most = _finfo(x), float(_finfo(x if x.dtype == np.float64 else np.float32(0)).max)
    y = np.where(np.abs(total) > most, np.copysign(np.inf, total), total) / count
    off = size / count * info.eps * (4 + v.shape[-1]) + info.smallest_subnormal
    off = np.where(np.isinf(size) & (np.where(keep & np.isfinite(v), np.abs(v), 0).sum(-1) > most), np.inf, off)
    if lp:
        low, y, high = ((np.maximum(z, 0) * v.shape[-1]) ** (1 / p) for z in (y - off, y, y + off))
        off, y = np.maximum(high - y, y - low) + y * 2 * info.eps, y.astype(x.dtype).astype(np.float64)
        off = np.where(y + off > info.max, np.inf, off)
    done = _outer(np.logical_and, reached)[..., 0]
    return [Near(np.where(done, y, 0), np.where(done & (np.isfinite(y) | np.isinf(off)), off, 0))]


def strided_maximum(g: Given) -> list[Any] | None:
    """MaxPool with strides or dilations: SAME_LOWER cuts the extent short and pads as SAME_UPPER, VALID rounds it up as
    ever; a NaN counts where it is the first of its window."""
    axes, auto, whole, taps = _pooled_axes(g), g.attr("auto_pad", "NOTSET"), g.attr("ceil_mode", 0), []
    if all(s == d == 1 for _, _, s, d, _, _ in axes):
        return None
    for n, k, s, d, begin, end in axes:
        room = n + begin + end - (k - 1) * d - 1
        out = (-(-room // s) if whole else room // s) + 1
        out -= bool(whole and (out - 1) * s >= n + begin)
        if auto == "VALID":
            out = -(-(n - (k - 1) * d) // s)
        elif auto != "NOTSET":
            out = -(-n // s) if auto == "SAME_UPPER" else n // s
            begin = ((out - 1) * s + (k - 1) * d + 1 - n) // 2
        taps.append(np.arange(out)[:, None] * s + np.arange(k) * d - begin)
    v, inside = _windows(g["X"], taps)
    some, first = inside.any(-1), np.take_along_axis(v, inside.argmax(-1)[(None, None, ..., None)], -1)[..., 0]
    y = np.where(np.isnan(first) & some, np.nan, np.fmax.reduce(v, -1))
    at = np.where(np.isnan(y), inside.argmax(-1), (v == y[..., None]).argmax(-1))[..., None]
    rows = np.cumprod([1, *g["X"].shape[:1:-1]])[-2::-1]
    steps = np.cumprod([1, *g["X"].shape[2:]])[:-1] if g.attr("storage_order", 0) else rows
    flat = _outer(np.add, [t * step for t, step in zip(taps, steps, strict=True)])
    where = np.take_along_axis(np.broadcast_to(flat, v.shape), at, -1)[..., 0]
    before = np.arange(v.shape[0] * v.shape[1]) * math.prod(g["X"].shape[2:])
    where = where + before.reshape(*v.shape[:2], *[1] * len(axes))
    empty = 0 if len(axes) == 2 else np.nan
    return [np.where(some, y, empty), Near(np.where(some, where, -1), np.where(some, 0, np.inf))][: len(g.expected)]


def plain_maximum(g: Given) -> list[Any] | None:
    """MaxPool without strides and dilations: 2-D pads are read as those of the one axis, then those of the other, and
    enter the extent twice with ceil_mode; else they are not put, but with ceil_mode those before lengthen the result.
    NaN never counts; indices are those of each channel alone, in a window taken to be as large as the result."""
    axes, auto, whole, pads = _pooled_axes(g), g.attr("auto_pad", "NOTSET"), g.attr("ceil_mode", 0), g.attr("pads")
    two, taps, outs = len(axes) == 2, [], []
    if any(s != 1 or d != 1 for _, _, s, d, _, _ in axes):
        return None
    for i, (n, k, _, _, begin, end) in enumerate(axes):
        out, more = n - k + 1, begin if whole else 0
        if auto[:4] == "SAME":
            out, begin, more = n, (k - (auto == "SAME_UPPER")) // 2, 0
        elif two and pads:
            begin, end = pads[2 * i : 2 * i + 2]
            out, more = out + begin + end, begin + end if whole else 0
        if not two:
            out, begin, more = out + more, 0, 0
        outs.append(out + more)
        taps.append(np.arange(out)[:, None] + np.arange(k) - begin)
    v, inside = _windows(g["X"], taps)
    if two and g["X"].dtype.kind in "iu":  # NaN of a pad is 0 there
        v = np.where(inside, v, 0)
    y, least = np.fmax.reduce(v, -1), np.fmin.reduce(v, -1)
    there = np.broadcast_to(inside | two, v.shape)  # what is padded stands in the window
    filled = np.where(np.isnan(v), least[..., None], v)
    if g["X"].dtype.kind == "f":  # infinities are replaced too
        filled = filled.clip(-_finfo(g["X"]).max, _finfo(g["X"]).max)
    high = there & (filled == filled.max(-1, keepdims=True, where=there, initial=-np.inf))
    if g["X"].dtype == ml_dtypes.bfloat16:  # whose NaN is not replaced, and found first
        high = np.where((there & np.isnan(v)).any(-1, keepdims=True), there & np.isnan(v), high)
    pick = high.argmax(-1)[..., None]
    rest, where, step = np.take_along_axis(there.cumsum(-1) - 1, pick, -1)[..., 0], 0, 1
    for i, (n, _, _, _, begin, _) in reversed(list(enumerate(axes))):
        at = rest % outs[i] if i else rest
        rest = rest // outs[i]
        o = np.arange(len(taps[i])).reshape(-1, *[1] * (len(axes) - 1 - i))
        where, step = where + (at + o - begin) * step, step * n
    room = [(0, 0), (0, 0), *((0, o - len(t)) for o, t in zip(outs, taps, strict=True))]
    return [np.pad(y, room), np.pad(where, room, constant_values=-1)][: len(g.expected)]


def first_biases_for_all_groups(g: Given) -> list[Expected] | None:
    """ConvTranspose: each group has the biases of the first one; an output_shape cuts at the end alone."""
    b, group, shape = g["B"], g.attr("group", 1), g.attr("output_shape")
    inputs = {} if b is None else {"B": np.tile(b[: len(b) // group], group)}
    if shape is None or g.attr("auto_pad", "NOTSET")[:4] == "SAME":
        return g.again(inputs=inputs)
    n, kernel, r = g["X"].shape[2:], g["W"].shape[2:], len(shape)
    strides, dilations = (g.attr(name) or [1] * r for name in ("strides", "dilations"))
    pads = g.attr("pads") or [0] * 2 * r
    more = [shape[i] + pads[i] + pads[r + i] - strides[i] * (n[i] - 1) - (kernel[i] - 1) * dilations[i] - 1
            for i in range(r)]  # fmt: skip
    return g.again({"output_shape": None, "output_padding": more, "pads": pads, "auto_pad": None}, inputs)


def root_of_the_scale_in_f32(g: Given) -> list[Expected] | None:
    """Attention, FlexAttention: scale is the square of its root in f32, in FlexAttention also one that is not given;
    with a softcap mode 0 gives the scores that it was put on; a short mask of unsigned integers is filled up with what
    NumPy makes of -inf there."""
    flex, mode, mask = g.inst.op == "FlexAttention", g.attr("qk_matmul_output_mode", 0), g["attn_mask"]
    scale = g.attr("scale", 1 / np.sqrt(g["Q"].shape[-1]) if flex else None)
    attrs = {} if scale is None or g["Q"].dtype != np.float64 else {"scale": float(np.sqrt(np.float32(scale))) ** 2}
    if not flex and not mode and g.attr("softcap", 0) > 0:
        attrs["qk_matmul_output_mode"] = 1
    if mask is None or mask.dtype.kind != "u":
        return g.again(attrs)
    room = g["K"].shape[-2] + (0 if g["past_key"] is None else g["past_key"].shape[-2]) - mask.shape[-1]
    filled = np.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, room)],
                    constant_values=np.array(-np.inf).astype(mask.dtype))  # fmt: skip
    return g.again(attrs, {"attn_mask": filled})


def positions_of_a_narrow_grid(g: Given) -> list[Expected] | None:
    """GridSample: places are computed step by step in the type of the grid, then rounded to f32."""
    n, corners = g["grid"], g.attr("align_corners", 0)
    size = np.array(g["X"].shape[:1:-1], n.dtype)
    one, half = np.array(1, n.dtype), n.dtype.type if n.dtype != ml_dtypes.bfloat16 else np.float32  # of a quotient
    if corners:
        at = (n + one).astype(half) / half(2) * (size - one).astype(half)
    else:
        at = ((n + one) * size - one).astype(half) / half(2)
    at, size = at.astype(np.float32).astype(np.float64), size.astype(np.float64)
    back = at / np.maximum(size - 1, 1) * 2 - 1 if corners else (2 * at + 1) / size - 1
    return g.again(inputs={"grid": back})


def places_in_f32(g: Given) -> list[Near] | None:
    """DeformConv: the sum of the place in the kernel and the offset is rounded to f32, and so are the weights of its
    neighbours."""
    kernel, (images, _, *out) = g["W"].shape[2:], g["offset"].shape
    strides, dilations, pads = g.attr("strides") or [1, 1], g.attr("dilations") or [1, 1], g.attr("pads") or [0] * 4
    moved = g["offset"].reshape(images, -1, *kernel, 2, *out).copy()
    for a in range(2):
        base = np.add.outer(np.arange(kernel[a]) * dilations[a], np.arange(out[a]) * strides[a] - pads[a])
        base = base[:, None, :, None] if a == 0 else base[None, :, None, :]
        moved[:, :, :, :, a] = (moved[:, :, :, :, a] + base).astype(np.float32) - base.astype(np.float64)
    found, most = g.again(inputs={"offset": moved.reshape(g["offset"].shape)}), 1 if g["mask"] is None else g["mask"]
    off = np.abs(g["W"]).sum((1, 2, 3)) * np.abs(g["X"]).max() * np.abs(most).max() * 4 * np.finfo(np.float32).eps
    return found and [Near(found[0].value, off[:, None, None])]


def normalised_by_other_statistics(g: Given) -> list[Near]:
    """BatchNormalization: the deviation is computed in the type of the variance, at least f32; version 9 normalises by
    what running statistics would be after the batch."""
    x, scale, bias, mean, var = (g[slot.name] for slot in g.case.version.schema.inputs)
    if g.inst.version == 9:
        axes, m = tuple(a for a in range(x.ndim) if a != 1), np.float32(g.attr("momentum", 0.9))
        mean, var = mean * m + x.mean(axes) * (1 - m), var * m + x.var(axes) * (1 - m)
    rows = [v.astype(np.float64).reshape(-1, *[1] * (x.ndim - 2))
            for v in (scale, bias, mean, np.sqrt(var + np.float32(g.attr("epsilon", 1e-5))))]  # fmt: skip
    scale, bias, mean, deviation = rows
    size = np.abs(scale) * (np.abs(x.astype(np.float64)) + np.abs(mean)) / deviation + np.abs(bias)
    return [Near(scale * (x.astype(np.float64) - mean) / deviation + bias, size * 16 * _finfo(x).eps)]


def rounded_sigmoid(g: Given) -> list[Near]:
    """Swish: the sigmoid, whose exponential overflows, is rounded to the type of X before it is multiplied."""
    x, info = g["X"].astype(np.float64), _finfo(g["X"])
    s = 1 / (1 + np.exp(-g.attr("alpha", 1.0) * x))
    least = info.smallest_subnormal + 1 / float(_finfo(g["X"] if g["X"].dtype == np.float64 else np.float32(0)).max)
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
    return g.again({"alpha": 1.6732631921768188, "gamma": 1.0507010221481323, **g.inst.attrs})


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


def sliced_as_numpy(g: Given) -> list[Any]:
    """Slice backwards: a start before the first element leaves nothing."""
    x, cut = g["data"], [slice(None)] * g["data"].ndim
    axes = range(len(g["starts"])) if g["axes"] is None else g["axes"]
    for a, begin, end, step in zip(axes, g["starts"], g["ends"], g["steps"], strict=True):
        cut[a] = slice(int(begin), int(end), int(step))
    return [x[tuple(cut)]]


def sliced_extents(g: Given) -> list[Any]:
    """Shape: a bound below -rank counts from the end once more, as NumPy's do."""
    dims, begin, end = g["data"].shape, g.attr("start", 0), g.attr("end")
    end = len(dims) if end is None else end + len(dims) if end < 0 else end
    return [np.array(dims[begin:end], np.int64)]


def inserted_modulo_the_length(g: Given) -> list[Expected] | None:
    """SequenceInsert: a position at the end is that at the beginning."""
    n = len(g["input_sequence"])
    return g.again(inputs={"position": (g["position"] + n) % n}) if n else None


def scans_end_to_end(g: Given) -> list[Any] | None:
    """Loop: scanned outputs are put end to end, not stacked; one without a condition does not run."""
    found: list[Any] | None = g.again(inputs={"cond": np.array(False)}) if g["cond"] is None else list(g.expected)
    states = len(g["v_initial"] or [])
    return found and [e if i < states else _stacked(e) for i, e in enumerate(found)]


def _stacked(e: Expected) -> Turned:
    """What should have been stacked."""
    shape = e.value.shape
    came = (shape[0] * shape[1], *shape[2:]) if len(shape) > 2 else (*shape, 1)[:2]
    return Turned(e, lambda y: y.reshape(shape) if y.shape == came else y)


def taken_along_axis_0(g: Given) -> list[Any] | None:
    """Unique, not sorted: values are taken by their numbers along axis 0, as the axes may be."""
    numbers = g.expected[1].value
    if numbers.size and numbers.max() >= len(g["X"]):  # refused
        return None
    return [np.take(g["X"], numbers, 0), *[None] * (len(g.expected) - 1)]


def half_a_pixel_off(g: Given) -> list[Expected] | None:
    """RoiAlign-10: as version 16 does with half_pixel."""
    return g.again({"coordinate_transformation_mode": "half_pixel"}, version=16)


def nan_is_no_key(g: Given) -> list[Expected] | None:
    """LabelEncoder: NaN is not found among the keys."""
    keys = {float(k) for name in ("keys_floats", "keys_tensor") for k in np.ravel(g.attr(name, []))}
    other = next(k for k in range(len(keys) + 1) if k not in keys)
    return g.again(inputs={"X": np.where(np.isnan(g["X"]), other, g["X"]).astype(g["X"].dtype)})


def weights_of_the_places(g: Given) -> list[Any] | None:
    """TfIdfVectorizer: a weight is that of the place in the output, not of the n-gram."""
    found, weights = g.again({"mode": "TF"}), g.attr("weights")
    if not found or not weights:
        return None
    count = found[0].value
    w = np.array(weights[: count.shape[-1]], np.float32)
    return [w * (count > 0 if g.attr("mode") == "IDF" else count)] if len(w) == count.shape[-1] else None


def nothing_counts_as_one(g: Given) -> list[Any]:
    """StringSplit by a delimiter: an empty string has one part."""
    x, (parts, counts) = g["X"], (e.value for e in g.expected)
    counts = np.where((x == "") & bool(g.attr("delimiter")), 1, counts)
    return [parts if parts.shape[-1] or not counts.any() else np.full((*x.shape, 1), "", object), counts]


def divided_as_numpy(g: Given) -> list[Expected] | None:
    """QuantizeLinear without precision: divided in the type that NumPy gives to the two."""
    x, scale = g["x"], g["y_scale"]
    wide = {x.dtype, scale.dtype} != {np.dtype(np.float16)} and x.dtype != np.int32
    return g.again({"precision": of(np.zeros((), np.float32 if wide else np.float64))})


def product_of_integers(g: Given) -> list[Any] | None:
    """QLinearMatMul: operands and zero points of float8 lose their fractions, those of rows are laid along columns, and
    the factor of the three scales is computed in their type."""
    a, b, zero = g["a"].astype(np.int32), g["b"].astype(np.int32), g["y_zero_point"]
    if zero.dtype.kind not in "iu":
        return None
    try:
        a, b = a - g["a_zero_point"].astype(np.int32), b - g["b_zero_point"].astype(np.int32)
        y = np.matmul(a, b) * (g["a_scale"] * g["b_scale"] / g["y_scale"]) + zero
    except ValueError:  # refused
        return None
    info = np.iinfo(zero.dtype)
    return [np.clip(np.rint(y), info.min, info.max).astype(zero.dtype)]


def tree_as_it_is_built(g: Given) -> list[Expected] | None:
    """TreeEnsemble: scores are not transformed, NaN is unequal to every split, a member that is 0 ends its set."""
    modes, missing = np.array(g.attr("nodes_modes")), g.attr("nodes_missing_value_tracks_true")
    tracks = np.where(modes == 5, 1, np.zeros_like(modes) if missing is None else missing)
    attrs: dict[str, Any] = {"post_transform": 0, "nodes_missing_value_tracks_true": [int(t) for t in tracks]}
    members = g.attr("membership_values")
    if members is not None:
        ends = np.where(members == 0, np.nan, members).astype(members.dtype)
        attrs["membership_values"] = ends[: np.flatnonzero(np.isnan(ends))[(modes == 6).sum() - 1] + 1]
    return g.again(attrs)


def zero_points_of_the_second_axis(g: Given) -> list[Any] | None:
    """ConvInteger: those of the filters are broadcast from the right as [m, 1, 1, 1], whatever the rank."""
    w, z = g["w"], g["w_zero_point"]
    plain = g.again(inputs={"w_zero_point": None})
    try:
        lost = g.again(inputs={"w_zero_point": None, "w": np.broadcast_to(z.reshape(-1, 1, 1, 1), w.shape).copy()})
    except ValueError:  # refused
        return None
    return plain and lost and [plain[0].value - lost[0].value]


def scales_of_the_second_axis(g: Given) -> list[Any] | None:
    """QLinearConv: those of the filters are broadcast from the right as [1, m, 1, 1], whatever the rank."""
    scales = g["w_scale"]
    each = [g.again(inputs={"w_scale": s.reshape(())}) for s in scales]
    if any(e is None for e in each):
        return None
    all_ = np.stack([e[0].value for e in each if e])
    try:
        shape = np.broadcast_shapes(all_.shape[1:], (1, len(scales), 1, 1))
    except ValueError:  # refused
        return None
    at = np.indices(shape)
    rest = (a * (n > 1) for a, n in zip(at[1 - all_.ndim :], all_.shape[1:], strict=True))
    return [Near(all_[(at[-3], *rest)], 1)]


def length_unrounded(g: Given) -> list[Expected] | None:
    """Resize, tf_crop_and_resize by factors: the length of the result enters as extent times factor."""
    roi, most = g["roi"].astype(np.float64), len(g["roi"]) // 2
    due = [g.expected[0].value.shape[a] for a in g.attr("axes") or range(g["X"].ndim)]
    for i, (n, f) in enumerate(zip(_extents_resized(g), g["scales"], strict=True)):
        length, begin, end = float(f) * n, g["roi"][i], g["roi"][most + i]
        roi[i] = float(begin * (n - 1)) / max(n - 1, 1)  # in the type of roi
        if length != 1:
            roi[most + i] = roi[i] + float(end - begin) * (due[i] - 1) / (length - 1)
    none = None if g.inst.version > 11 else np.zeros(0, np.float32)
    return g.again(inputs={"roi": roi, "scales": none, "sizes": np.array(due, np.int64)})


def half_pixel_of_one(g: Given) -> list[Any] | None:
    """Resize, pytorch_half_pixel: an axis that a factor leaves one element is as others are, unless the product is 1;
    integers of 64 bits go through double."""
    factors = [] if g["scales"] is None else list(zip(g["scales"], _extents_resized(g), strict=True))
    if not factors or any(float(f) * n == 1 != f for f, n in factors):
        return None
    found = g.again({"coordinate_transformation_mode": "half_pixel"})
    whole = g["X"].dtype.kind in "iu" and g["X"].dtype.itemsize == 8
    return [_through_double(found[0].value)] if found and whole else found


def just_above_an_element(g: Given) -> list[Near]:
    """Resize, half_pixel_symmetric by factors: a place just above an element by rounding alone has the weights of that
    and the neighbours of the one before: anything may come there, the others are right."""
    y = g.expected[0].value
    free = np.zeros(y.shape, bool)
    for a, n, f in zip(g.attr("axes") or range(y.ndim), _extents_resized(g), g["scales"], strict=True):
        at = np.arange(y.shape[a])
        x = n / 2 * (1 - y.shape[a] / (float(f) * n)) + (at + 0.5) / float(f) - 0.5
        above = (x != np.floor(x)) & (x - np.floor(x) < 1e-9)
        free |= above.reshape([-1 if k == a % y.ndim else 1 for k in range(y.ndim)])
    return [Near(y, np.where(free, np.inf, 0))]


def copied(g: Given) -> list[Any]:
    """Resize by factors of 1: the elements as they are."""
    return [_through_double(g["X"])]


def _through_double(x: np.ndarray) -> Any:
    """An array whose integers of 64 bits went through double, which may have made them too large."""
    if x.dtype.kind not in "iu" or x.dtype.itemsize < 8:
        return x
    return Near(x, np.where(np.abs(x.astype(np.float64)) > 2.0**62, np.inf, 2.0**11))



def _extents_resized(g: Given) -> list[int]:
    return [g["X"].shape[a] for a in g.attr("axes") or range(g["X"].ndim)]


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
    """Pow of integers: in the type that NumPy gives to base and exponent, which may be double."""
    return [np.power(g["X"], g["Y"]).astype(g["X"].dtype)]


def cast_through_f32(g: Given) -> list[Expected] | None:
    """Cast to a type that NumPy lacks: rounded to f32 before."""
    return g.again(inputs={"input": g["input"].astype(np.float32)})


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
    found = g.again({"beta": None})
    return found and [Turned(e, partial(_converted, e=e)) for e in found]


def _converted(y: np.ndarray, e: Expected) -> np.ndarray:
    """An array in the type of another, which it is where it is right as far as its own type allows."""
    d = e.value.dtype
    if e.dtype.kind != "f":
        return y.astype(d)
    size = np.abs(e.value.astype(np.float64))
    if of(y).kind == "f" and _finfo(y).eps > _finfo(e.value).eps:
        within = 64 * _finfo(y).eps * size.max(initial=0, where=np.isfinite(size))
        wide, due = y.astype(np.float64), e.value.astype(np.float64)
        return np.where(np.abs(wide - due) <= within, due, wide).astype(d)
    if of(y).kind == "i":  # cut to integers
        return np.where(np.abs(y - e.value.astype(np.float64)) < 1 + 1e-5 * size, e.value, y).astype(d)
    return y.astype(d)


def edges_in_f16(g: Given) -> list[Any] | None:
    """MelWeightMatrix: bins between edges of f16 are computed step by step in that type."""
    low, high, length = g["lower_edge_hertz"], g["upper_edge_hertz"], int(g["dft_length"])
    low, high = (2595 * np.log1p(v / 700) / np.log(10) for v in (low, high))
    steps = np.arange(int(g["num_mel_bins"]) + 2)
    mels = steps * ((high - low) / len(steps)) + low
    bins = (((length + 1) * (700 * np.expm1(mels / 2595 * np.log(10)))) // g["sample_rate"]).astype(int)
    at, out = np.arange(length // 2 + 1)[:, None], g.expected[0].value
    left, mid, right = bins[:-2], bins[1:-1], bins[2:]
    if bins.max(initial=0) >= len(at):  # refused
        return None
    with np.errstate(all="ignore"):
        rise = np.where((at >= left) & (at <= mid), (at - left) / (mid - left), 0)
        rise = np.where(mid == left, at == mid, rise)
        y = np.where((at >= mid) & (at < right), (right - at) / (right - mid), rise)
    return [y.astype(out.dtype)]



def _finfo(x: np.ndarray) -> Any:
    return ml_dtypes.finfo(x.dtype)


# -- other readings of the MIL pages


def mil_printed_padding(g: Given) -> Outputs:
    """The amounts that conv's page prints: a dilated kernel less one in all, whatever the stride, the larger half in
    front."""
    kernel = g["weight"].shape[2:]
    whole = [d * (k - 1) for k, d in zip(kernel, g.attr("dilations") or [1] * len(kernel))]
    return g.again({"pad_type": "custom", "pad": [n for t in whole for n in (t - t // 2, t // 2)]})


def mil_in_order_of_steps(g: Given) -> Outputs:
    """A reversed sequence comes out as it was computed: the last element of the input first."""
    return [Turned(g.expected[0], lambda a: a[::-1]), *[None] * (len(g.expected) - 1)]


def mil_longer_before(g: Given) -> Outputs:
    """An even neighbourhood of channels reaches one further before than after."""
    again = g.again(inputs={"x": np.ascontiguousarray(g["x"][:, ::-1])})
    return again and [Turned(again[0], lambda a: np.ascontiguousarray(a[:, ::-1]))]


def mil_no_box_below_the_threshold(g: Given) -> Outputs:
    """An image of which no box reaches the threshold has none, not its best one; what is padded is not judged."""
    none = g["scores"].astype(np.float64).max((-1, -2)) < g.attr("score_threshold")
    free = [np.where(none.reshape(-1, *(1,) * (e.value.ndim - 1)), np.inf, 0.0) for e in g.expected[:3]]
    return [*(Near(e.value, f) for e, f in zip(g.expected, free)), np.where(none, 0, g.expected[3].value)]


def mil_clamped_to_the_box(g: Given) -> Outputs:
    """crop_resize: grid points beyond the box are brought onto its edge, as resize_bilinear's are onto the image's."""
    x, mode = g["x"].astype(np.float64), g.attr("sampling_mode", "DEFAULT").lower()
    count, form = len(x), g.attr("box_coordinate_mode", "CORNERS_HEIGHT_FIRST")
    given = (g.attr("normalized_coordinates", False), g.attr("spatial_scale", 1.0))
    if g["roi"] is None:
        which = g["box_indices"]
        jobs = [(box, j if which is None else int(which[j])) for j, box in enumerate(g["boxes"])]
    else:
        rows = g["roi"].reshape(len(g["roi"]), -1)
        jobs = [(r[-4:], int(r[0]) if len(r) == 5 else j) for r in rows for j in range(1 if len(r) == 5 else count)]
    crops = []
    for box, j in jobs:
        edges = box_edges(box, form, *x.shape[2:], *given)
        crop, inside = x[j], np.ones((1, 1), bool)
        for k, name in enumerate(("target_height", "target_width")):
            at = np.clip(grid(edges[k], edges[k + 2], g.attr(name, 1), mode), edges[k], edges[k + 2])
            crop = along(crop, at, k + 1)
            inside = inside & ((at >= 0) & (at < x.shape[k + 2] - 1 + 1e-6)).reshape((-1, 1) if k == 0 else (1, -1))
        crops.append(np.where(inside, crop, g.attr("pad_value", 0.0)))
    (e,) = g.expected
    return [Near(np.stack(crops).reshape(e.value.shape), 2 * e.error.bound(e.context()))]


def _mil_gru(gate: str, steps: bool) -> Any:
    """gate: what the reset gate acts on, the "state" before the recurrent product, that "product", or the product
    with its "bias" (reset_after alone).  steps: whether a reversed sequence comes out as it was computed."""

    def told(g: Given) -> Outputs:
        if gate == "bias" and not g.attr("reset_after", False):
            return None
        acts = [FUNCTIONS[{"linear": "affine"}.get(a, a)] for a in (g.attr("recurrent_activation", "sigmoid"),
                                                                    g.attr("activation", "tanh"))]  # fmt: skip
        x, h, w, u = (np.asarray(g[k], np.float64) for k in ("x", "initial_h", "weight_ih", "weight_hh"))
        n = h.shape[1]
        given, own = (np.zeros(3 * n) if g[k] is None else np.asarray(g[k], np.float64) for k in ("input_bias", "bias"))
        r, o, z = (slice(k * n, (k + 1) * n) for k in range(3))
        ys = []
        for v in (x[::-1] if g.attr("direction") == "reverse" else x) @ w.T + given:
            both = v + h @ u.T + own
            reset, update = acts[0](both[:, r], 1.0, 0.0), acts[0](both[:, z], 1.0, 0.0)
            inner = {"state": (reset * h) @ u[o].T + own[o], "product": reset * (h @ u[o].T) + own[o],
                     "bias": reset * (h @ u[o].T + own[o])}[gate]  # fmt: skip
            h = (1 - update) * acts[1](v[:, o] + inner, 1.0, 0.0) + update * h
            ys.append(h)
        turned = g.attr("direction") == "reverse" and not steps
        y = np.stack(ys[::-1] if turned else ys) if g.attr("output_sequence") else h[None]
        # roundings as of the reading that is expected, whose equations are as many
        within = [4 * np.max(e.error.bound(e.context()), initial=0.0) for e in g.expected]
        return [Near(v, b) for v, b in zip((y, h), within)]

    return told


mil_gate_on_state, mil_gate_on_state_in_steps = (_mil_gru("state", s) for s in (False, True))
mil_gate_on_product, mil_gate_on_product_in_steps = (_mil_gru("product", s) for s in (False, True))
mil_gate_on_bias, mil_gate_on_bias_in_steps = (_mil_gru("bias", s) for s in (False, True))


# -- LiteRT


def _scaled(x: np.ndarray, by: float) -> np.ndarray:
    """Integers times a real of at most 1 in the kernels' fixed point: the product with a 31-bit multiplier is rounded,
    then shifted and rounded again, halves away from zero."""
    m, e = map(int, fixed.multiplier(by))
    high = np.abs(x).astype(object) * m + (1 << 30) >> 31
    return np.asarray(np.sign(x) * (high + (1 << -e >> 1) >> -e), np.int64)


def compared_in_256ths(g: Given) -> Outputs:
    """Quantised operands are brought to multiples of 1/256 before they are compared."""
    args = {s: a.quant for s, a in g.inst.args.items()}
    x, y = (_scaled(fixed.centred(g[s], q) * 256, q["scale"][0]) for s, q in args.items())
    op = {"EQUAL": np.equal, "NOT_EQUAL": np.not_equal, "LESS": np.less, "LESS_EQUAL": np.less_equal,
          "GREATER": np.greater, "GREATER_EQUAL": np.greater_equal}[g.inst.op]  # fmt: skip
    return [op(x, y)]


def products_beyond_16_bits(g: Given) -> Outputs:
    """Products of 8-bit operands, and what they are in output steps, are kept in 16 bits: those beyond end anywhere."""
    q, r = (g.inst.args[s].quant for s in ("lhs", "rhs"))
    out = g.attr("@outputs")[0]["quant"]
    product = fixed.centred(g["lhs"], q) * fixed.centred(g["rhs"], r)
    result = product * (q["scale"][0] * r["scale"][0] / out["scale"][0]) + out["zero_point"][0]
    return [Near(g.expected[0].value, np.where(np.maximum(np.abs(product), np.abs(result)) > 32767, np.inf, 0))]


def sum_of_unsigned_bytes(g: Given) -> Outputs:
    """Whatever the quantised type, as many bytes as there are elements are read as uint8, and so is the result written,
    in f32 arithmetic: 16-bit results are pairs of bytes, the second half of them nobody's."""
    x, q, out = g["input"], g.inst.args["input"].quant, g.attr("@outputs")[0]["quant"]
    axes = tuple({int(a) % max(1, x.ndim) for a in np.ravel(g["axes"])}) if x.ndim else ()
    bytes_ = np.frombuffer(np.ascontiguousarray(x).tobytes(), np.uint8)[: x.size].reshape(x.shape).astype(np.int64)
    total = (bytes_ - q["zero_point"][0]).sum(axes, keepdims=bool(g.attr("keep_dims", False)))
    real = total * q["scale"][0] / out["scale"][0] + out["zero_point"][0]
    due, given = g.expected[0].value, np.clip(fixed.away(real), 0, 255).astype(np.uint8)
    if due.dtype.itemsize == 1:
        return [Near(given.view(due.dtype).reshape(due.shape), np.where((given > 0) & (given < 255), 1, 0))]
    known = given.size // 2
    pairs = np.zeros(due.size, due.dtype)
    pairs[:known] = given.ravel()[: 2 * known].view(due.dtype)
    return [Near(pairs.reshape(due.shape), np.where(np.arange(due.size) < known, 257, np.inf).reshape(due.shape))]


def lrn_of_half_open_windows(g: Given) -> Outputs:
    """The window of a channel ends before the last one: [c - radius, c + radius)."""
    x, radius = g["input"].astype(np.float64), g.attr("radius", 0)
    squares = np.stack([(x[..., max(0, c - radius) : c + radius] ** 2).sum(-1) for c in range(x.shape[-1])], -1)
    out = x * (g.attr("bias", 0.0) + g.attr("alpha", 0.0) * squares) ** -float(g.attr("beta", 0.0))
    return [Near(out, 1e-5 * np.abs(out) + 1e-37)]


def no_grams_of_short_sentences(g: Given) -> Outputs:
    """A sentence of fewer words than the longest gram gives none."""
    short = len(str(g["input"].ravel()[0]).split()) < g.attr("ngram_size", 0)
    return [g.expected[0].value[:0]] if short else None


def rows_of_signed_bytes(g: Given) -> Outputs:
    """Rows of uint8 are read as int8: what is above 127 counts as 256 less."""
    value, q = g["value"], g.inst.args["value"].quant
    less = (256 * fixed.spread(q["scale"], q, value.ndim) * (value > 127))[g["lookup"]]
    due = g.expected[0].value.astype(np.float64)
    return [Near(due - less, 1e-6 * (np.abs(due) + less))]


def backward_over_the_input(g: Given) -> Outputs:
    """Parallel linking: the backward cell runs over the input, too."""
    return g.again(inputs={"aux_input": g["input"]}) if g["input"].shape == g["aux_input"].shape else None


def backward_anything_of_another_extent(g: Given) -> Outputs:
    """The same where the auxiliary input is of another extent: what is read of the input is not known."""
    if g["input"].shape[-1] == g["aux_input"].shape[-1]:
        return None
    first, *rest = (e.value for e in g.expected)
    if rest:
        return [None, *(Near(r, np.inf) for r in rest)]
    forward = len(g["fw_recurrent_weights"])
    return [Near(first, np.where(np.arange(first.shape[-1]) < forward, 1e-5, np.inf) + np.zeros(first.shape))]


def auxiliary_steps_of_the_input(g: Given) -> Outputs:
    """Steps through the auxiliary input are as long as those through the input; beyond its end anything is read."""
    x, aux = g["input"], g["aux_input"]
    rows = 1 if not g.attr("time_major", False) else x.shape[1]
    starts = np.arange(x.shape[0] * x.shape[1] // max(1, rows)) * rows * x.shape[2]
    at = starts[:, None] + np.arange(rows * aux.shape[2])
    if at.size and at.max() >= aux.size:
        return [Near(e.value, np.inf) for e in g.expected]
    return g.again(inputs={"aux_input": aux.ravel()[at].reshape(aux.shape)})


# -- the XNNPACK delegate


def root_by_reciprocal(g: Given) -> Outputs:
    """A root is x times an iterated reciprocal root, 3 ulp off; of 0, subnormals, infinity and beyond 2**126 it has not
    converged, or is NaN."""
    x, due = np.abs(g["x"].astype(np.float64)), g.expected[0].value
    ends = (x < 2.0**-126) | (x > 2.0**126)
    return [Near(due, np.where(ends, np.inf, 3 * np.spacing(np.abs(due)).astype(np.float64)))]


def argument_reduced_once(g: Given) -> Outputs:
    """The argument is reduced in single precision with one product: the error grows with it; beyond some thousand, and
    of infinities, anything comes."""
    x = np.abs(g["x"].astype(np.float64))
    return [Near(g.expected[0].value, np.where(x <= 1e4, 1.2e-7 + 2.0**-24 * x, np.inf))]


def exponential_by_polynomial(g: Given) -> Outputs:
    """The polynomial is off by 3 ulp and more, growing with the argument; NaN is clamped like a number."""
    x, due = g["x"].astype(np.float64), g.expected[0].value
    off = (4 + np.minimum(np.abs(x), 88)) * np.spacing(due).astype(np.float64)
    return [Near(due, np.where(np.isfinite(x) & np.isfinite(due), off, np.inf))]


def logarithm_by_polynomial(g: Given) -> list[Near]:
    """The polynomial has an absolute error; of subnormals, zero, infinity and NaN anything comes."""
    x = g["x"].astype(np.float64)
    return [Near(g.expected[0].value, np.where((np.abs(x) >= 2.0**-126) & np.isfinite(x), 2.5e-7, np.inf))]


def logarithm_of_the_largest(g: Given) -> Outputs:
    """And above 2**127.5 the exponent that is split off is beyond the type."""
    ((value, within),) = logarithm_by_polynomial(g)
    return [Near(value, np.where(g["x"] > 2.4e38, np.inf, within))]


def ratio_of_8_bits(g: Given) -> Outputs:
    """The ratio of the scales is rounded to 8 fraction bits."""
    (slot,) = g.inst.args
    size = np.abs(fixed.centred(g[slot], g.inst.args[slot].quant))
    return [Near(g.expected[0].value, np.ceil(size / 512) + 1)]


# -- coremltools


def put_along_axis(g: Given) -> Outputs:
    """Updates replace whatever the mode, the last of several; an index that the text does not check is not known."""
    out, axis = np.array(g["data"]), g.attr("axis", 0)
    indices = g["indices"].astype(np.int64)
    if indices.size and not (-out.shape[axis] <= indices.min() and indices.max() < out.shape[axis]):
        return None
    np.put_along_axis(out, indices, g["updates"], axis)
    return [out]
