"""Reading and writing by index, selection, sorting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from harness.core.dtypes import int_range
from harness.declare import Call, Checks, Draw, Fn, Pattern, Sampling, Spelling, T
from harness.declare.semantics import InvalidFn
from suites.semantics import indexing as s
from suites.semantics.indexing import tables
from suites.semantics.indexing.common import indices_of
from suites.semantics.movement.common import INT32_MAX
from suites.tflite import op, readings
from suites.tflite.codecs import (
    both,
    cast_to_declared,
    declared,
    later,
    nan_extreme,
    overflowing,
    shape_input,
)
from suites.tflite.quantisation import OWN

# -- gather, scatter


def _far_indices(d: Draw, slot: str, shape: tuple[int, ...]) -> T:
    """Indices into ``INT32_MAX`` rows without elements, as far as their type reaches."""
    high = min(int_range(d.dtype(slot))[1], INT32_MAX - 1)
    return T(shape, values=[d.pick((high, d.int(0, high), high - 1)) for _ in range(math.prod(shape))])


def _gather_far(d: Draw) -> dict[str, Any]:
    """Rows as many as any, or indices of many axes."""
    if d.bool():
        axis, shape = d.pick(((0, (INT32_MAX, 0)), (1, (0, INT32_MAX)), (-1, (0, INT32_MAX)), (-2, (INT32_MAX, 0))))
        return {"params": T(shape), "indices": _far_indices(d, "indices", d.part(0, 2, 1)), "axis": axis}
    n = d.int(1, 5)
    return {"params": T((n,)), "indices": indices_of(d, d.part(7, 8, 1), n, False), "axis": d.pick((0, -1))}


def _batched(shape: tuple[int, ...], indices: T, axis: int, batch: int) -> InvalidFn:
    attrs = {"axis": axis, "batch_dims": batch}
    return lambda d: {"params": T(shape), "indices": indices, **attrs}


def _gather_outside(d: Draw) -> dict[str, Any]:
    return {"params": T((3, 2)), "indices": T((2,), values=[0, d.pick((3, 5, -1))]), "axis": 0}


def _gather_axis(d: Draw) -> dict[str, Any]:
    return {"params": T((3, 2)), "indices": T((2,), values=[0, 1]), "axis": d.pick((2, -3, 9))}


_ZEROS = T((2, 2), values=[0, 0, 0, 0])
_GATHER = {
    "index-in-range": _gather_outside,
    "axis-in-range": _gather_axis,
    "batch-in-range": _batched((2, 2, 3), _ZEROS, 1, 2),
    "batch-agrees": _batched((3, 2, 3), _ZEROS, 1, 1),
}


def _draw_gather_nd(d: Draw) -> dict[str, Any]:
    """Now and then tuples of no index, each of which names all of the tensor, or indices of many axes."""
    if d.chance(24):
        n = d.int(1, 4)
        return {"params": T((INT32_MAX, 0)), "indices": _far_indices(d, "indices", (n, 1))}
    if d.chance(16):
        return {"params": T(d.part(1, 4)), "indices": T((*d.part(0, 3), 0), values=[])}
    v = s.gather_nd.derive(d)
    if d.chance(12):
        shape, k = v["x"].shape, v["indices"].shape[-1]
        rows = d.part(3, min(7, 8 - len(shape) + k), 1 if d.bool() else 0)
        flat = [d.int(0, n - 1) for _ in range(math.prod(rows)) for n in shape[:k]]
        return {"params": v["x"], "indices": T((*rows, k), values=flat)}
    return {"params": v["x"], "indices": v["indices"]}


def _nd(indices: Any) -> InvalidFn:
    x = np.asarray(indices)
    return lambda d: {"params": T((3, 2)), "indices": T(x.shape, values=x.ravel().tolist())}


_GATHER_ND = {
    "index-in-range": lambda d: _nd(d.pick(([[3, 0]], [[0, 2]], [[-1, 0]], [[1], [4]])))(d),
    "tuple-within-rank": _nd([[0, 0, 0]]),
    "batch-agrees": _nd(0),  # a scalar has no last axis
}


def _rows_outside(d: Draw) -> dict[str, Any]:
    rows = T((2,), values=[0, d.pick((3, 7, -1))])
    return {"value": T((3, 2)), "lookup": rows, "@outputs": [{"dtype": d.types["T"].name}]}


def _draw_gather(d: Draw) -> dict[str, Any]:
    """batch_dims before version 5 does not exist."""
    if d.chance(24):
        return _gather_far(d)
    v = s.gather.derive(d)
    out: dict[str, Any] = {"params": v["x"], "indices": v["indices"], "axis": v["axis"]}
    if "batch_dims" in v and not later(d, "batch_dims"):
        below = len(v["indices"].shape) - v["batch_dims"]
        out["batch_dims"] = -below if below and d.chance(4) else v["batch_dims"]  # counted from the last of indices
    elif "batch_dims" in v:
        n = v["x"].shape[v["axis"]]
        out["indices"] = indices_of(d, v["indices"].shape[v["batch_dims"] :], n, False)
    return out


def _draw_rows(d: Draw) -> dict[str, Any]:
    """Rows come out in the type that they are kept in."""
    v = tables.embedding_lookup.derive(d)
    return {"value": v["table"], "lookup": v["indices"], "@outputs": [{"dtype": d.types["T"].name}]}


_NO_BATCH = {"batch-in-range": None, "batch-agrees": None}  # 0 is in any range and agrees
for _until, _since, _less in ((4, None, _NO_BATCH), (None, 5, {})):
    both(
        "GATHER",
        s.gather,
        Spelling(x="params", fixed={"signed": False}),
        Sampling(_draw_gather),
        Checks(breaks={**_GATHER, **_less}),
        until=_until,
        since=_since,
    )
both(
    "GATHER_ND",
    s.gather_nd,
    # tf.gather_nd: the last dimension of indices "can be at most the rank of params"
    Spelling(x="params", fixed={"signed": False, "batch_dims": 0, "least": 0}),
    Sampling(_draw_gather_nd),
    Checks(breaks=_GATHER_ND),
)
op(
    "SCATTER_ND",
    s.scatter_nd_new,
    # TF ScatterNd: "Updates shape must have rank at least one"
    Checks(ambiguous=overflowing, stated={"updates": "_n *_u"}),
    shape=shape_input("shape"),
)
op(
    "EMBEDDING_LOOKUP",
    tables.embedding_lookup,
    Sampling(_draw_rows),
    # tfl embedding_lookup: TFL_OperandHasRankAtLeast<1, 2>
    Checks(stated={"value": "_r _c *_d"}, breaks={"index-in-range": _rows_outside}),
    table="value",
    indices="lookup",
)
both(
    "DYNAMIC_UPDATE_SLICE",
    tables.dynamic_update_slice,
    Sampling(tags=(OWN,)),
    Checks(ambiguous=readings.rescaled(x="operand", update="update")),
    x="operand",
    start=shape_input("start_indices"),
)

# -- selection


def _draw_one_hot(d: Draw) -> dict[str, Any]:
    v = s.one_hot.derive(d)
    if d.chance(24):  # as deep as any, of no index
        v |= {"indices": T((0,), "small"), "depth": INT32_MAX, "axis": d.int(-1, 1)}
    elif d.chance(8):
        v["indices"] = T(v["indices"].shape, "full")
    return {"indices": v["indices"], "depth": v["depth"], "on_value": v["on"], "off_value": v["off"], "axis": v["axis"]}


def _one_hot_of(**other: Any) -> InvalidFn:
    return lambda d: {
        "indices": T((2,), values=[0, 1]),
        "depth": 3,
        "on_value": T(()),
        "off_value": T(()),
        "axis": -1,
        **other,
    }


op(
    "ONE_HOT",
    s.one_hot,
    Spelling(on="on_value", off="off_value", fixed={"negative": "off"}),
    Sampling(_draw_one_hot),
    # TF OneHot: "Expected axis to be -1 or between [0, ...)", "depth must be non-negative"
    Checks(breaks={"axis-in-range": _one_hot_of(axis=3), "depth-not-negative": _one_hot_of(depth=-1)}),
)
op("WHERE", s.nonzero_rows, x="condition")


def _draw_unique(d: Draw) -> dict[str, Any]:
    name = d.pick(("i32", "i64"))
    x = T(d.shape(1, 1), d.pick(("ties", "small", "ints:0:3")) if d.types["T"].kind in "fiu" else None)
    return {"input": x, "idx_out_type": name, "@outputs": [{"dtype": d.types["T"].name}, {"dtype": name}]}


def _values_and_index(call: Call, results: list[Any]) -> list[Any]:
    return cast_to_declared(call, [results[0], results[2]])


both(
    "UNIQUE",
    s.unique,
    Spelling(x="input", fixed={"axis": None, "sorted": False}, out=_values_and_index),
    Sampling(_draw_unique, tags=(OWN,)),
    Checks(
        ambiguous=readings.rescaled(x="input"), stated={"input": "_n"}, breaks={"axis-in-range": None}
    ),  # no operand names an axis
)


def _index_type(b: Any) -> None:
    """The index output may be 16 bits from version 3 on, where k is."""
    declared(b, b.args["input"].dtype, None, 0)
    declared(b, b.draw.pick(b.version.schema.dtypes("O")), None, 1)


def _encode_k(value: int, b: Any) -> None:
    b.value("k", value)
    _index_type(b)


def _no_axis(d: Draw) -> dict[str, Any]:
    """tfl topk_v2: TFL_OperandHasRankAtLeast<0, 1>."""
    return {"input": T(()), "k": d.int(0, 1), "@outputs": [{"dtype": d.types["T"].name}, {"dtype": "i32"}]}


both(
    "TOPK_V2",
    s.topk,
    Spelling(
        x="input",
        k=Fn(lambda call: int(np.asarray(call.inputs["k"]).ravel()[0]), _encode_k),
        fixed={"axis": -1, "largest": True, "sorted": True},
        out=cast_to_declared,
    ),
    Sampling(tags=("zero-k",)),  # TF TopKV2, shape function: "Need k >= 0"
    Checks(breaks={"axis-in-range": _no_axis}),
)

# -- segments

for _name, _mode in (("SUM", "sum"), ("PROD", "prod"), ("MAX", "max"), ("MIN", "min")):
    op(
        f"UNSORTED_SEGMENT_{_name}",
        tables.unsorted_segment,
        Spelling(x="input", ids="segment_ids", count="num_segments", fixed={"mode": _mode}),
        Checks(ambiguous={"max": nan_extreme, "min": nan_extreme, "prod": readings.products}.get(_mode)),
    )
op("SEGMENT_SUM", tables.segment_sum, x="input", ids="segment_ids")

# -- lookup


op("BUCKETIZE", tables.bucketize, x="input")
op("BROADCAST_ARGS", tables.broadcast_args, x="s0", y="s1")


_FAR = 2**24 + 1  # an index that f32 does not hold


def _far_sparse(d: Draw) -> dict[str, Any]:
    """Elements at the end of a result of so many as the index counts."""
    at = d.pick(((), (1,), (1, 1), (2, 1)))
    n = at[0] if at else 1
    return {
        "indices": T(at, values=[_FAR - n + 1 + k for k in range(n)]),
        "values": T(() if not at or d.bool() else (n,)),
        "default": T(()),
        "shape": (_FAR + d.int(1, 9),),
    }


def _draw_sparse(d: Draw) -> dict[str, Any]:
    """The indices rise and do not repeat, so that validating them changes nothing."""
    bits = sorted({t.bits for t in d.version.schema.dtypes("T")})
    # the result is large, so of the narrowest type; beside several others that is seldom drawn
    far = d.types["T"].bits == bits[0] and d.chance(64 if len(bits) > 2 else 640)
    v = _far_sparse(d) if far else tables.sparse_to_dense.derive(d)
    return {
        "sparse_indices": v["indices"],
        "sparse_values": v["values"],
        "default_value": v["default"],
        "output_shape": list(v["shape"]),
        "validate_indices": d.bool(),
    }


def _tuples(call: Call) -> str:
    """TF SparseToDense: "0-D, 1-D, or 2-D"."""
    return ("", "_n", "_n _k")[min(2, call.inputs["sparse_indices"].ndim)]


def _one_or_each(call: Call) -> str:
    """TF SparseToDense: "1-D. Values corresponding to each row of sparse_indices, or a scalar value to be used for all
    sparse indices"."""
    if call.inputs["sparse_values"].ndim == 0:
        return ""
    indices = call.inputs["sparse_indices"]
    return str(len(indices) if indices.ndim else 1)


both(
    "SPARSE_TO_DENSE",
    tables.sparse_to_dense,
    Sampling(_draw_sparse, tags=(OWN,)),
    # a scalar with an axis more is the value of the only row
    Checks(
        ambiguous=readings.rescaled(values="sparse_values", default="default_value"),
        stated={"sparse_indices": Pattern(_tuples, (0, 2)), "sparse_values": Pattern(_one_or_each, (0, 1))},
        breaks={"shapes-stated": None},
    ),
    indices="sparse_indices",
    values="sparse_values",
    default="default_value",
    shape=shape_input("output_shape"),
)
both("HASHTABLE_LOOKUP", tables.hashtable_lookup, table="value", keys="key", queries="lookup")


def _draw_combined(d: Draw) -> dict[str, Any]:
    """Now and then one tensor says the rows and the dense shape."""
    v = tables.embedding_lookup_sparse.derive(d)
    out = {"value": v["table"], "ids": v["ids"], "indices": v["at"], "dense_shape": v["shape"], "weights": v["weights"]}
    if d.chance(24):
        lead = d.int(1, 3)
        one = T((2,), values=[lead, 2], const=d.bool())
        out |= {
            "value": T((5, *d.part(1, 2, 1)), "small"),
            "ids": one,
            "dense_shape": one,
            "@same": {"dense_shape": "ids"},
        }
        out |= {"indices": T((2, 2), values=[0, 0, lead - 1, 1]), "weights": T((2,), "ints:1:4")}
    return {**out, "combiner": v["combiner"]}


op(
    "EMBEDDING_LOOKUP_SPARSE",
    tables.embedding_lookup_sparse,
    Sampling(_draw_combined),
    # embedding_lookup_sparse.cc, Prepare: the rank of value is at least 2
    Checks(ambiguous=readings.lookups, stated={"value": "_r _c *_d"}),
    table="value",
    at="indices",
    shape="dense_shape",
)

# -- suppression


def _scalar(slot: str) -> Fn:
    return Fn(lambda call: float(np.asarray(call.inputs[slot]).ravel()[0]), lambda v, b: b.value(slot, v))


_NMS: dict[str, Any] = {
    "limit": Fn(
        lambda call: int(np.asarray(call.inputs["max_output_size"]).ravel()[0]),
        lambda v, b: b.value("max_output_size", v),
    ),
    "iou_threshold": _scalar("iou_threshold"),
    "score_threshold": _scalar("score_threshold"),
}
# TF NonMaxSuppressionV5: "A scalar integer tensor", "A 0-D float tensor"
_SCALARS = dict.fromkeys(("max_output_size", "iou_threshold", "score_threshold"), "")
op(
    "NON_MAX_SUPPRESSION_V4",
    tables.soft_nms,
    Spelling(fixed={"sigma": 0.0}, out=lambda call, r: [r[0], r[2]], **_NMS),
    Checks(stated=_SCALARS, error=(tables.soft_nms.error_of(0), tables.soft_nms.error_of(2))),
)
op(
    "NON_MAX_SUPPRESSION_V5",
    tables.soft_nms,
    Checks(stated={**_SCALARS, "soft_nms_sigma": ""}),
    sigma=_scalar("soft_nms_sigma"),
    **_NMS,
)
