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
        if s.op == "FULLY_CONNECTED" and s.domain == "quantised" and "shuffled" not in s.extra["later"]:
            s.extra["results"] = ("i16",)  # of shuffled uint8 weights; tfl fully_connected: QI16 among its outputs
    return found


@cache
def _by_op() -> dict[str, list[OpSchema]]:
    out: dict[str, list[OpSchema]] = {}
    for s in schemas():
        out.setdefault(s.op, []).append(s)
    return out


def rows(op: str) -> list[OpSchema]:
    """All of one operator, oldest first."""
    return _by_op().get(op, [])


def newest(op: str, domain: str) -> OpSchema:
    """The newest row of an operator in one form; raises UsageError."""
    found = [s for s in rows(op) if s.domain == domain]
    if not found:
        raise UsageError(f"tflite: no {domain} {op}".replace("  ", " "))
    return found[-1]


def number_of(version: Any) -> int:
    """The operator version as the file says it: 2 of "2q"."""
    return version if isinstance(version, int) else int(version.rstrip("qh"))
