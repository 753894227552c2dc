"""The rows of the schema, by operator: one for each version and form."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from harness.core.errors import UsageError
from harness.declare.schema import OpSchema, load

# features of later versions that are options of another name
_OPTIONS = {
    "fused_activation": ("fused_activation_function",),
    "dilation": ("dilation_h_factor", "dilation_w_factor"),
    "shuffled": ("weights_format",),
}
# parameters that are the only extent of a result: TF NonMaxSuppressionV5, max_output_size
_LENGTHS = dict.fromkeys(("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5"), ("max_output_size",))
# operands whose results have an axis more; TF MatrixSetDiag: "Rank k+1, where k >= 1" beside a diagonal of rank k
_ADDS = {"PACK": ("values",), "EXPAND_DIMS": ("input",), "ONE_HOT": ("indices",), "MATRIX_SET_DIAG": ("diagonal",)}
# parameters that count the results, which an operator of which something is asked has
_COUNTS = {"UNPACK": ("num",)}
# operands that hold a shape beside others, so that their extent is a rank
_RANKS = {"EMBEDDING_LOOKUP_SPARSE": ("dense_shape",)}


@cache
def schemas() -> tuple[OpSchema, ...]:
    found = tuple(load(Path(__file__).with_name("schema.json")))
    for s in found:
        s.extra["later"] = [n for f in s.extra["later"] for n in (f, *_OPTIONS.get(f, ()))]
        for name, by_op in (("lengths", _LENGTHS), ("adds", _ADDS), ("counts", _COUNTS), ("ranks", _RANKS)):
            s.extra[name] = by_op.get(s.op, ())
