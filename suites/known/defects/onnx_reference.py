"""What comes where a difference is listed (``harness/ledger/defect_models.py``): onnx.reference, places and reading."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.dtypes import float_max, of
from harness.core.errors import OpconformError
from harness.declare import Expected
from harness.ledger.defect_models import Such, Turned
from suites.semantics.attention import allowed

Outputs = list[Any] | None


def first_activation_only(g: Given, outs: int | None = None) -> list[Any] | None:
    """RNN: both directions have the activation of the first; clip and sequence_lens are not read; the last state of an
    affine one is f32."""
    first = {k: [v[0]] * len(v) for k in ("activations", "activation_alpha", "activation_beta") if (v := g.attr(k))}
    found: list[Any] | None = g.reevaluate({**first, "clip": None}, {"sequence_lens": None}, outs=outs)
    if found and len(found) > 1 and g["X"].dtype.itemsize == 2 and "Affine" in first.get("activations", [])[:1]:
        found[1] = Turned(found[1], lambda y: y.astype(g["X"].dtype) if y.dtype == np.float32 else y)
    return found


def layer_of_the_defaults(g: Given, outs: int | None = None, weights: dict[str, Any] | None = None) -> Outputs:
    """LSTM, GRU: activations, clip, input_forget and sequence_lens are not read; a P that is left out is 0.
    weights: in place of those given."""
    unread = ("activations", "activation_alpha", "activation_beta", "clip", "input_forget")
    inputs: dict[str, Any] = {"sequence_lens": None, **(weights or {})}
    if g.inst.op == "LSTM" and g["P"] is None:
        dirs, rows, _ = g["W"].shape
        inputs |= {"P": np.zeros((dirs, rows // 4 * 3), g["W"].dtype)}
    return g.reevaluate(dict.fromkeys(unread), inputs, outs=outs)


def zero_times_an_infinite_weight(g: Given) -> Outputs:
    """LSTM: the same, but a row of one weight, times a batch of one, is 0 where the factor is 0, though the weight
    is infinite.  Another factor times the highest number takes an activation to the same limit."""
    highest = float_max(of(g["X"]))
    weights = {n: np.clip(g[n], -highest, highest) for n in "WR" if g[n].shape[-1] == 1}
    return layer_of_the_defaults(g, weights=weights)


def layer_that_overflows(g: Given) -> Outputs:
    """LSTM, GRU, RNN: the same; anything from the step on whose sums the type may not hold on their way."""
    model = first_activation_only if g.inst.op == "RNN" else layer_of_the_defaults
    return _free_beyond(g, model(g), model(g, outs=1))


def recurrent_sums_overflow(g: Given) -> Outputs:
    """LSTM, GRU, RNN: right, but anything from the step on whose sums the type may not hold on their way, and where a
    state is not finite."""
    told = _free_beyond(g, list(g.expected), g.reevaluate(outs=1))
    return told and [_but_at(t, ~np.isfinite(t.expected.value.astype(np.float64))) for t in told]


def _free_beyond(g: Given, told: Outputs, states: Outputs) -> Outputs:
    if told is None or states is None:
        return None
    over = _beyond(g, np.asarray(states[0].value, np.float64))
    last = np.asarray(over.any(axis=0))  # [direction, batch]
    masks = [over, last, last] if g.attr("layout", 0) == 0 else [np.moveaxis(over, 2, 0), last.T, last.T]
    return [_but_at(e, m[..., None]) for e, m in zip(told, masks, strict=False)]


def _beyond(g: Given, y: np.ndarray) -> np.ndarray:
    """[step, direction, batch]: have the finite terms of a sum been larger together than the type holds, in this step
    or in one before?  y: the states of all steps."""
    steps = _magnitudes(g["X"])
    if g.attr("layout", 0) == 1:
        steps, y = np.moveaxis(steps, 0, 1), np.moveaxis(y, 0, 2)
    w, r = (_magnitudes(g[n]) for n in "WR")
    dirs, rows, size = r.shape
    begin = np.zeros((dirs, steps.shape[1], size)) if g["initial_h"] is None else _magnitudes(g["initial_h"])
    if begin.shape[0] != dirs or begin.shape[1] != steps.shape[1]:
        begin = np.swapaxes(begin, 0, 1)
    bias = np.zeros((dirs, 2 * rows)) if g["B"] is None else _magnitudes(g["B"])
    fixed = bias[:, :rows] + bias[:, rows:]
    if g["P"] is not None:
        peep = _magnitudes(g["P"]).max(-1, initial=0) * (_magnitudes(g["initial_c"]).max(initial=0) + len(steps))
        fixed = fixed + peep[:, None]
    out = np.zeros((len(steps), dirs, steps.shape[1]), bool)
    for d in range(dirs):
        h, order = begin[d], range(len(steps))
        for t in reversed(order) if d == 1 or g.attr("direction") == "reverse" else order:
            total = steps[t] @ w[d].T + h @ r[d].T + fixed[d]
            out[t, d] = (total >= float_max(of(g["X"]))).any(-1)
            h = _magnitudes(y[t, d])
        turned = out[::-1, d] if d == 1 or g.attr("direction") == "reverse" else out[:, d]
        np.logical_or.accumulate(turned, 0, out=turned)
    return out


def _magnitudes(x: np.ndarray | None) -> np.ndarray:
    wide = np.abs(np.asarray(0.0 if x is None else x, np.float64))
    return np.where(np.isfinite(wide), wide, 0)


def _but_at(told: Any, free: np.ndarray) -> Turned:
    """What a model tells of, but for the elements that are free."""
    e, how = (told.expected, told.how) if isinstance(told, Turned) else (told, lambda a: a)

    def kept(a: Any) -> Any:
        a = how(a)
        if np.shape(a) != e.value.shape:
            raise ValueError("another shape")
        return np.where(free, e.value, a).astype(a.dtype)

    return Turned(e, kept)


def scanned_along_axis_0(g: Given) -> list[Any] | None:
    """Scan: axes are read for nothing but the number of steps; slices are of axis 0, results are stacked on axis 0.
    The body may read the sequences by their names, whole."""
    slot = "initial_state_and_scan_inputs"
    args, count, body = g[slot], g.attr("num_scan_inputs"), g.attr("body")
    states, scanned = args[:-count], args[-count:]
    steps = scanned[0].shape[(g.attr("scan_input_axes") or [0])[0]]
    whole = {f"{slot}{k}": x for k, x in enumerate(args)}
    return g.reevaluate(
        {
            "body": replace(body, consts={**whole, **body.consts}),
            "scan_input_axes": None,
            "scan_output_axes": None,
        },
        {slot: [*states, *(x[:steps] for x in scanned)]},
    )


def version_8_as_9(g: Given) -> list[Any] | None:
    """Scan-8: sequence_lens is the first state, the first state the second and so on, the batch is scanned."""
    body, args = g.attr("body"), [g["sequence_lens"], *g["initial_state_and_scan_inputs"]]
    count = len(args) - g.attr("num_scan_inputs")
    run = g.case.version.dialect.runner(g.inst.opset, g.arrays)
    states, scanned = args[:count], args[count:]
    names = [n for n, _ in body.inputs]
    given: dict[str, Any] = {}
    stacked: list[list[Any]] = [[] for _ in body.outputs[count:]]
    try:
        for step in range(len(scanned[0])):
            given.update(zip(names[:count], states, strict=False))  # the body has fewer states: it reads no others
            given.update(zip(names[count:], (x[step, ...] for x in scanned), strict=False))
            out = run(body, given)
            states = out[:count]
            for rows, x in zip(stacked, out[count:], strict=True):
                rows.append(x)
    except OpconformError:  # types that the reference does not mix
        return None
    outputs = [*states, *map(np.stack, stacked)]
    return [_of_another_type(x, e) for x, e in zip(outputs, g.expected, strict=False)]  # of which some may be left out


def _of_another_type(x: np.ndarray, due: Expected) -> Any:
    """An output that is this array, whose type is not the one that is expected."""
    if x.dtype == due.value.dtype:
        return x
    return Such(lambda a: a.dtype == x.dtype and np.array_equal(a, x, equal_nan=x.dtype.kind == "f"), x)


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
    return g.reevaluate(
        {"axis": None, "broadcast": None}, {first: np.broadcast_to(a, shape), second: np.broadcast_to(b, shape)}
    )


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
    return g.reevaluate(inputs={"position": (g["position"] + n) % n}) if n else None


def scans_end_to_end(g: Given) -> list[Any] | None:
    """Loop: scanned outputs are put end to end, not stacked; one without a condition does not run."""
    found: list[Any] | None = g.reevaluate(inputs={"cond": np.array(False)}) if g["cond"] is None else list(g.expected)
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


def nan_is_no_key(g: Given) -> list[Expected] | None:
    """LabelEncoder: NaN is not found among the keys; a zero is found by one of either sign."""
    keys = [float(k) for name in ("keys_floats", "keys_tensor") for k in np.ravel(g.attr(name, []))]
    other = next(k for k in range(1, len(keys) + 2) if k not in keys)
    x = np.where(np.isnan(g["X"]), other, g["X"])
    zeros = [k for k in keys if k == 0]
    return g.reevaluate(inputs={"X": (np.where(x == 0, zeros[0], x) if zeros else x).astype(g["X"].dtype)})


def tree_as_it_is_built(g: Given) -> list[Expected] | None:
    """TreeEnsemble: scores are not transformed, NaN is unequal to every split, a member that is 0 ends its set, and the
    sets are dealt out from root to root, the true branch of a node before the false one."""
    modes, missing = np.array(g.attr("nodes_modes")), g.attr("nodes_missing_value_tracks_true")
    tracks = np.where(modes == 5, 1, np.zeros_like(modes) if missing is None else missing)
    attrs: dict[str, Any] = {"post_transform": 0, "nodes_missing_value_tracks_true": [int(t) for t in tracks]}
    members = g.attr("membership_values")
    if members is not None:
        ends = np.where(members == 0, np.nan, members).astype(members.dtype)
        sets = np.split(ends, np.flatnonzero(np.isnan(ends)) + 1)
        asked = _sets_asked(g, modes)
        if len(set(asked)) < len(asked):  # a node of two trees has two sets
            return None
        dealt = [sets[asked.index(k)] if k in asked else sets[-1][:0] for k in np.flatnonzero(modes == 6).tolist()]
        attrs["membership_values"] = np.concatenate([x if x.size else ends[-1:] for x in dealt] or [ends[:0]])
    return g.reevaluate(attrs)


def _sets_asked(g: Given, modes: np.ndarray) -> list[int]:
    """The nodes with a set of members, as they are met while the trees are built."""
    found: list[int] = []
    branches = [(g.attr(f"nodes_{b}nodeids"), g.attr(f"nodes_{b}leafs")) for b in ("false", "true")]
    for root in g.attr("tree_roots"):
        left = [] if all(leaf[root] for _, leaf in branches) and len({to[root] for to, _ in branches}) == 1 else [root]
        while left:
            k = left.pop()
            found += [k] if modes[k] == 6 else []
            left += [to[k] for to, leaf in branches if not leaf[k]]
    return found


def matched_as_python(g: Given) -> list[Any] | None:
    """RegexFullMatch: the pattern is one of Python's re."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of [[:alpha:]], which may be a nested set one day
        try:
            regex = re.compile(g.attr("pattern"))
        except re.error:  # refused
            return None
    return [np.vectorize(lambda s: regex.fullmatch(s) is not None, otypes=[np.bool_])(g["X"])]


def frontier_of_the_first_query(g: Given) -> Outputs:
    """Attention: all queries see the keys that the first may see, where the mask has one row for all."""
    mask, keys = g["attn_mask"], g["attn_mask"].shape[-1]
    offset: Any = g["past_key"].shape[2] if "past_key" in g.arrays else 0
    if "nonpad_kv_seqlen" in g.arrays and "past_key" not in g.arrays:
        q = g["Q"]
        offset = g["nonpad_kv_seqlen"].astype(np.int64) - q.shape[2 if q.ndim == 4 else 1]
    sides = ("left_window_size", "right_window_size")
    ok = allowed(1, keys, offset, bool(g.attr("is_causal", 0)), *(int(g.attr(s, -1)) for s in sides))
    if ok is None or mask.dtype.kind in "iu":
        return None
    row = mask & ok if mask.dtype.kind == "b" else (mask + np.where(ok, 0.0, -np.inf)).astype(mask.dtype)
    return g.reevaluate(dict.fromkeys(("is_causal", *sides)), {"attn_mask": row})


def onnx_reference_tree_one_voted_class(g: Given) -> list[Any] | None:
    """With votes for one class alone, and no transform: the second column is the first one, which is 1 less that.  So
    it is where there is one label, too."""
    labels, z = g.expected[0].value, np.array(g.expected[1].value, np.float64)
    z = np.repeat(z, 2, 1) if z.shape[1] == 1 else z
    z[:, 1] = z[:, 0]
    z[:, 0] = 1 - z[:, 1]
    names = g.attr("classlabels_strings") or g.attr("classlabels_int64s")
    out = np.empty(len(z), labels.dtype)
    out[:] = [names[min(i, len(names) - 1)] for i in z.argmax(1)]
    return [out, z.astype(np.float32)]
