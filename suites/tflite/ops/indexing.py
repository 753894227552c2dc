"""Reading and writing by index, selection, sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.declare import Call, Checks, Draw, Fn, Pattern, Sampling, Spelling, T
from suites.semantics import indexing as s
from suites.semantics.indexing import tables
from suites.semantics.indexing.common import indices_of
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

# -- gather, scatter


def _draw_gather(d: Draw) -> dict[str, Any]:
    """batch_dims before version 5 does not exist."""
    v = s.gather.derive(d)
    out: dict[str, Any] = {"params": v["x"], "indices": v["indices"], "axis": v["axis"]}
    if "batch_dims" in v and not later(d, "batch_dims"):
        out["batch_dims"] = v["batch_dims"]
    elif "batch_dims" in v:
        n = v["x"].shape[v["axis"]]
        out["indices"] = indices_of(d, v["indices"].shape[v["batch_dims"] :], n, False)
    return out


def _draw_rows(d: Draw) -> dict[str, Any]:
    """Rows come out in the type that they are kept in."""
    v = tables.embedding_lookup.derive(d)
    return {"value": v["table"], "lookup": v["indices"], "@outputs": [{"dtype": d.types["T"].name}]}


both("GATHER", s.gather, Spelling(x="params", fixed={"signed": False}), Sampling(_draw_gather))
both("GATHER_ND", s.gather_nd, Spelling(x="params", fixed={"signed": False, "batch_dims": 0}))
op("SCATTER_ND", s.scatter_nd_new, Checks(ambiguous=overflowing), shape=shape_input("shape"))
op("EMBEDDING_LOOKUP", tables.embedding_lookup, Sampling(_draw_rows), table="value", indices="lookup")
both("DYNAMIC_UPDATE_SLICE", tables.dynamic_update_slice, x="operand", start=shape_input("start_indices"))

# -- selection


def _draw_one_hot(d: Draw) -> dict[str, Any]:
    v = s.one_hot.derive(d)
    return {"indices": v["indices"], "depth": v["depth"], "on_value": v["on"], "off_value": v["off"], "axis": v["axis"]}


op("ONE_HOT", s.one_hot, Spelling(on="on_value", off="off_value", fixed={"negative": "off"}), Sampling(_draw_one_hot))
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
    Sampling(_draw_unique),
    Checks(stated={"input": "_n"}),
)


def _index_type(b: Any) -> None:
    """The index output may be 16 bits from version 3 on, where k is."""
    declared(b, b.args["input"].dtype, None, 0)
    declared(b, b.draw.pick(b.version.schema.dtypes("O")), None, 1)


def _encode_k(value: int, b: Any) -> None:
    b.value("k", value)
    _index_type(b)


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
    Checks(breaks={"axis-in-range": None}),
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


def _draw_sparse(d: Draw) -> dict[str, Any]:
    """The indices rise and do not repeat, so that validating them changes nothing."""
    v = tables.sparse_to_dense.derive(d)
    return {
        "sparse_indices": v["indices"],
        "sparse_values": v["values"],
        "default_value": v["default"],
        "output_shape": list(v["shape"]),
        "validate_indices": d.bool(),
    }


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
    Sampling(_draw_sparse),
    # a scalar with an axis more is the value of the only row
    Checks(stated={"sparse_values": Pattern(_one_or_each, (0, 1))}, breaks={"shapes-stated": None}),
    indices="sparse_indices",
    values="sparse_values",
    default="default_value",
    shape=shape_input("output_shape"),
)
both("HASHTABLE_LOOKUP", tables.hashtable_lookup, table="value", keys="key", queries="lookup")

op(
    "EMBEDDING_LOOKUP_SPARSE",
    tables.embedding_lookup_sparse,
    Checks(ambiguous=readings.lookups),
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
