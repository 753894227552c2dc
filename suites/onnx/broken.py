"""Instances that break a rule which a docstring states: a drawn instance with one thing changed.

The entry of an op declares the rules that it breaks by a draw of its own; here are the others, by op and rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from harness.core.instance import Arg, Instance
from harness.declare import Draw, OpVersion

Break = Callable[[OpVersion, Draw, Instance], "Instance | None"]


def _with(inst: Instance, **attrs: Any) -> Instance:
    return replace(inst, attrs={**inst.attrs, **attrs})


def _of(inst: Instance, slot: str, **fields: Any) -> Instance | None:
    """Another shape or other elements of an operand; None where it is not given."""
    a = inst.args.get(slot)
    return replace(inst, args={**inst.args, slot: replace(a, **fields)}) if isinstance(a, Arg) else None


def _rank(inst: Instance, slot: str) -> int:
    return len(inst.tensors(slot)[0].shape)


def _axis(slot: str, *names: str) -> Break:
    """An axis that the operand does not have: one behind the last or, where the text counts from the back, before the
    first."""

    def fn(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
        rank, name = _rank(inst, slot), d.pick(names)
        back = v.dialect.counts_back(v) and d.bool()
        return _with(inst, **{name: -rank - d.int(1, 3) if back else rank + d.int(0, 2)})

    return fn


def _behind(slot: str) -> Break:
    """As ``_axis``, of an axis that may stand behind the last one too."""

    def fn(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
        rank = _rank(inst, slot)
        back = v.dialect.counts_back(v) and d.bool()
        return _with(inst, axis=-rank - d.int(2, 4) if back else rank + d.int(1, 3))

    return fn


def _element(slot: str, of: Callable[[Draw, list[Any]], Any]) -> Break:
    """Another element of an operand that holds its elements one by one."""

    def fn(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
        a = inst.args.get(slot)
        if not isinstance(a, Arg) or not a.values:
            return None
        k = d.int(0, len(a.values) - 1)
        return _of(inst, slot, values=[of(d, a.values) if i == k else x for i, x in enumerate(a.values)])

    return fn


def _deeper(slot: str) -> Break:
    """One axis more."""

    def fn(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
        return _of(inst, slot, shape=(1, *inst.tensors(slot)[0].shape), dynamic=())

    return fn


def _matrix(slot: str) -> Break:
    """Two axes where a scalar or a vector is asked for."""

    def fn(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
        given = inst.tensors(slot) if slot in inst.args else []
        return (
            _of(inst, slot, shape=(1, *given[0].shape, 1)[: max(2, len(given[0].shape) + 1)], dynamic=())
            if given
            else None
        )

    return fn


def _long_tuples(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """ "The last dimension of indices should be a value between 1 and the rank of data": tuples that are longer."""
    shape, rank = inst.tensors("indices")[0].shape, _rank(inst, "data")
    n = rank - inst.attrs.get("batch_dims", 0) + d.int(1, 3)
    return _of(inst, "indices", shape=(*shape[:-1], n), recipe="ints:0:0", values=None, dynamic=()) if shape else None


def _long_condition(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """ "Its length can be less than the input length along the axis": one that is longer."""
    shape, axis = inst.tensors("input")[0].shape, inst.attrs.get("axis")
    n = 1
    for k in shape if axis is None else (shape[axis],):
        n *= k
    return _of(inst, "condition", shape=(n + d.int(1, 3),), values=None, recipe="small", dynamic=())


def _other_batch(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """ "The first b dimensions of the shape of indices tensor and data tensor must be equal"."""
    b = inst.attrs.get("batch_dims", 0)
    shape = inst.tensors("indices")[0].shape
    if not b or 0 in shape:
        return None
    k = d.int(0, b - 1)
    wider = tuple(n + 1 if i == k else n for i, n in enumerate(shape))
    return _of(inst, "indices", shape=wider, recipe="ints:0:0", values=None, dynamic=())


def _same_axes(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """Time and batch on one axis."""
    k = d.int(0, 1)
    return _with(inst, time_axis=k, batch_axis=k)


def _one_length_more(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    n = inst.tensors("sequence_lens")[0].shape[0]
    return _of(inst, "sequence_lens", shape=(n + 1,), values=[0] * (n + 1), dynamic=())


def _long_sequence(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """A length beyond the axis of time."""
    n, shape = inst.tensors("sequence_lens")[0].shape[0], inst.tensors("input")[0].shape
    far = shape[inst.attrs.get("time_axis", 0)] + d.int(1, 3)
    return _of(inst, "sequence_lens", values=[far] * n, dynamic=()) if n else None


def _far_axis_of_pads(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """ "Accepted range is [-r, r-1]"."""
    rank = _rank(inst, "data")
    return _element("axes", lambda d, old: rank + d.int(0, 2) if d.bool() else -rank - d.int(1, 3))(v, d, inst)


def _beside_nothing(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """A border of an axis without elements, that repeats what is there: NumPy, to which the text points, refuses it."""
    name = "pads" if "pads" in v.schema.attrs or "pads" in v.slots_of_schema else "paddings"
    n = d.int(1, 3)
    pads, slot = [0] * (2 * n), d.int(0, n - 1)
    pads[slot] = d.int(1, 2)
    x = inst.tensors("data")[0]
    shape = tuple(0 if k == slot else d.int(1, 3) for k in range(n))
    args: dict[str, Any] = {"data": replace(x, shape=shape, values=None, dynamic=())}
    attrs: dict[str, Any] = {"mode": d.pick(("reflect", "edge"))}
    if name in inst.args:
        args[name] = replace(inst.tensors(name)[0], shape=(2 * n,), values=pads, dynamic=())
    else:
        attrs[name] = pads
    return replace(inst, args=args, attrs=attrs)


def _longer_boxes(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """A box more than there are scores."""
    a = inst.tensors("boxes")[0]
    return _of(inst, "boxes", shape=(a.shape[0], a.shape[1] + 1, 4), values=None, dynamic=())


def _longer_update(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """An axis of the update, but the one that is written along, is longer than that of the cache."""
    a = inst.tensors("update")[0]
    return _of(inst, "update", shape=(a.shape[0] + 1, *a.shape[1:]), values=None, dynamic=())


def _two_lists(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """Values of two kinds."""
    given = [n for n in inst.attrs if n.startswith("values_")]
    more = {"values_int64s": [1], "values_strings": ["a"]}
    return replace(inst, attrs={**inst.attrs, **{n: x for n, x in more.items() if n not in given}})


def _more(name: str) -> Break:
    """An element more in a list."""

    def fn(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
        old = inst.attrs.get(name)
        return _with(inst, **{name: [*old, *old, old[0]]}) if old else None

    return fn


def _negative_extent(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    old = inst.attrs["shape"]
    k = d.int(0, len(old) - 1)
    return _with(inst, shape=[-max(1, n) if i == k else n for i, n in enumerate(old)]) if old else None


def _steep(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """Bands beyond the spectrum."""
    rate = inst.tensors("sample_rate")[0].values
    return _of(inst, "upper_edge_hertz", values=[float(rate[0] * d.int(2, 4))]) if rate else None


def _outside(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """A position behind the last one."""
    n, shape = inst.tensors("X")[0].shape[-1], inst.tensors("Y")[0].shape
    if 0 in shape:
        return None
    size = 1
    for k in shape:
        size *= k
    return _of(inst, "Y", values=[n + d.int(0, 2)] * size, recipe="small")


def _scalar(slot: str) -> Break:
    return lambda v, d, inst: _of(inst, slot, shape=(), values=None, dynamic=())


def _two_pools(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    pools = {"pool_strings": ["a"], "pool_int64s": [1]}
    return replace(inst, attrs={**pools, **inst.attrs})


def _items(inst: Instance) -> list[Arg]:
    """Keys and values of a map."""
    return list(inst.tensors("X")[0].items or [])


def _key_at_the_end(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """A key that the output has no place for: it is as long as ``max_map``."""
    if inst.attrs.get("map_form") != "SPARSE":
        return None
    m, (keys, values) = inst.tensors("X")[0], _items(inst)
    new = replace(keys, values=[*(keys.values or ())[:-1], inst.attrs["max_map"] + d.int(0, 2)])
    return replace(inst, args={"X": replace(m, items=[new, values])})


def _two_vocabularies(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    return replace(inst, attrs={"string_vocabulary": ["a"], "int64_vocabulary": [1], **inst.attrs})


def _unknown_key(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """ "All keys in the input dictionary must be present in the index mapping vector"."""
    name = next(n for n in ("string_vocabulary", "int64_vocabulary") if n in inst.attrs)
    used = list(_items(inst)[0].values or [])
    if not used:
        return None
    return _with(inst, **{name: [k for k in inst.attrs[name] if k != used[-1]] or ["none" if name[0] == "s" else 77]})


def _cube(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """One of several operands has three axes."""
    xs = inst.tensors("X")
    shape = xs[0].shape
    return replace(inst, args={"X": [replace(xs[0], shape=(1,) * (3 - len(shape)) + shape, dynamic=()), *xs[1:]]})


def _negative_depth(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    signed = inst.tensors("depth")[0].dtype.kind in "if"
    return _element("depth", lambda d, old: -d.int(1, 3))(v, d, inst) if signed else None


def _many_values(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """More values than there are features."""
    name = next(n for n in ("imputed_value_floats", "imputed_value_int64s") if n in inst.attrs)
    n = max([1, *inst.tensors("X")[0].shape[-1:]]) + d.int(1, 3)
    return _with(inst, **{name: [*inst.attrs[name], 1][:1] * n})


_BREAKS: dict[str, dict[str, Break]] = {
    "Compress": {"axis-in-range": _axis("input", "axis"), "condition-within-extent": _long_condition},
    "GatherElements": {"axis-in-range": _axis("data", "axis"), "indices-within-data": _deeper("indices")},
    "Scatter": {"axis-in-range": _axis("data", "axis"), "indices-within-data": _deeper("indices")},
    "ScatterElements": {"axis-in-range": _axis("data", "axis"), "indices-within-data": _deeper("indices")},
    "GatherND": {"tuple-within-rank": _long_tuples, "batch-agrees": _other_batch},
    "ScatterND": {"tuple-within-rank": _long_tuples},
    "Softmax": {"axis-in-range": _behind("input")},
    "LogSoftmax": {"axis-in-range": _behind("input")},
    "Hardmax": {"axis-in-range": _behind("input")},
    "OneHot": {
        "axis-in-range": _behind("indices"),
        "depth-not-negative": _negative_depth,
    },
    "Pad": {"axes-in-range": _far_axis_of_pads, "border-has-data": _beside_nothing},
    "ReverseSequence": {
        "axes-distinct": _same_axes,
        "lengths-per-batch": _one_length_more,
        "lengths-in-range": _long_sequence,
    },
    "Slice": {"stride-nonzero": _element("steps", lambda d, old: 0)},
    "SplitToSequence": {"split-rank": _matrix("split")},
    "Tile": {"repeats-nonnegative": _element("repeats", lambda d, old: -d.int(1, 3))},
    "NonMaxSuppression": {
        "shapes-agree": _longer_boxes,
        "threshold-in-range": _element("iou_threshold", lambda d, old: d.pick((1.5, -0.25, 2.0))),
    },
    "TensorScatter": {
        "axis-in-range": _axis("past_cache", "axis"),
        "batch-axis": lambda v, d, inst: _with(inst, axis=d.pick((0, -_rank(inst, "past_cache")))),
        "update-shape": _longer_update,
    },
    "RandomUniform": {"extents-positive": _negative_extent},
    "RandomNormal": {"extents-positive": _negative_extent},
    "MelWeightMatrix": {"edges-in-spectrum": _steep},
    "ArrayFeatureExtractor": {"index-in-range": _outside, "rank-1-or-more": _scalar("X")},
    "TfIdfVectorizer": {"one-of-pools": _two_pools},
    "CastMap": {"key-below-max": _key_at_the_end},
    "DictVectorizer": {"one-of-vocabularies": _two_vocabularies, "key-known": _unknown_key},
    "FeatureVectorizer": {"rank-1-or-2": _cube},
    "Imputer": {"one-or-per-feature": _many_values},
    "LabelEncoder": {"one-of-values": _two_lists},
    "LinearRegressor": {
        "coefficients-per-target": _more("coefficients"),
        "intercept-per-target": _more("intercepts"),
    },
}


def _broken(v: OpVersion, make: Break, d: Draw) -> Instance | None:
    return make(v, d, v.draw(d.engine, d.opset, edges=False))


_SINCE = {("Tile", "repeats-nonnegative"): 6, ("Pad", "axes-in-range"): 18}  # when the operand came


def rules_of(v: OpVersion) -> dict[str, Callable[[Draw], Instance | None]]:
    """The rules of an op version that are broken here."""
    there = {r: make for r, make in _BREAKS.get(v.op, {}).items() if int(v.version) >= _SINCE.get((v.op, r), 1)}
    return {rule: partial(_broken, v, make) for rule, make in there.items()}
