"""Maps to tensors and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import F32, F64, I64, STR, DType
from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Evaluation, Sampling, Spelling, T, exact, underspecified
from suites.onnx import op
from suites.onnx.ops.ml.common import ML, WORDS, Array, arranged, one_of, quarters, require, single
from suites.onnx.ops.ml.labels import some


def _cast_map(c: Call) -> Array:
    """Raises RuleError "key-below-max"."""
    m, to = c.inputs["X"], {"TO_FLOAT": F32, "TO_INT64": I64, "TO_STRING": STR}[c.attr("cast_to")]
    read = {"TO_FLOAT": float, "TO_INT64": int, "TO_STRING": str}[c.attr("cast_to")]
    if c.attr("map_form") == "DENSE":
        return arranged([read(m[k]) for k in sorted(m)], (1, len(m)), to)
    n = c.attr("max_map")
    require(all(0 <= _plain(k) < n for k in m), "key-below-max", f"keys {sorted(m)}, max_map {n}")
    return arranged([read(m[k]) if k in m else read(0) if to is not STR else "" for k in range(n)], (1, n), to)


def _draw_cast_map(d: Draw) -> dict:
    n = d.int(1, 4)
    dense = d.bool()
    keys = d.shuffle((-7, -1, 0, 2, 10, 1 << 40) if dense and d.bool() else range(6))[:n]
    text = d.bool()
    out: dict[str, Any] = {
        "X": _map(I64, keys, STR if text else F32, [str(d.int(-9, 9)) if text else d.int(-9, 9) / 4 for _ in keys])
    }
    pool = ["TO_STRING"] if text and d.bool() else ["TO_FLOAT", "TO_INT64"]
    to = d.pick(pool)
    if to != "TO_FLOAT" or d.bool():
        out["cast_to"] = to
    if not dense:
        out |= {"map_form": "SPARSE", "max_map": d.int(6, 8)}
    return out


def _map(kt: DType, keys: list[Any], vt: DType, values: list[Any]) -> T:
    return T(
        (),
        kind="map",
        dtype=vt,
        items=[T((len(keys),), values=list(keys), dtype=kt), T((len(keys),), values=values, dtype=vt)],
    )


op(
    "CastMap",
    Evaluation(_cast_map, exact(), "ONNX ai.onnx.ml CastMap-1"),
    Spelling(out_dtype=lambda c, i: {"TO_FLOAT": F32, "TO_INT64": I64, "TO_STRING": STR}[c.attr("cast_to")]),
    Sampling(_draw_cast_map),
    domain=ML,
)


def _plain(v: Any) -> Any:
    """A value of a map as Python's own; a model's caller may give arrays of rank 0."""
    return v.item() if isinstance(v, (np.ndarray, np.generic)) else v


def _value_type(c: Call, i: int = 0) -> DType:
    """Of the values of the map, which its type tells where it has none."""
    if not c.inputs["X"]:
        said = (c.args or {}).get("X")
        return F32 if said is None else said.dtype
    v = next(iter(c.inputs["X"].values()))
    if isinstance(v, (np.ndarray, np.generic)) and v.dtype == np.float64:
        return F64
    return STR if isinstance(_plain(v), str) else I64 if isinstance(_plain(v), int) else F32


def _vectorize(c: Call) -> Array:
    """Raises RuleError "one-of-vocabularies", "key-known"."""
    m, dtype = c.inputs["X"], _value_type(c)
    keys = c.attr(one_of(c, "one-of-vocabularies", "string_vocabulary", "int64_vocabulary"))
    require({_plain(k) for k in m} <= set(keys), "key-known", f"keys {list(m)}, vocabulary {keys}")
    return arranged([_plain(m.get(k, _nothing(dtype))) for k in keys], (len(keys),), dtype)


def _nothing(dtype: DType) -> Any:
    return "" if dtype is STR else 0


def _twice(c: Call) -> str | None:
    """A key of the vocabulary that is there twice: its value stands at both places, or at one of them."""
    m, dtype = c.inputs["X"], _value_type(c)
    keys = c.attr(one_of(c, "one-of-vocabularies", "string_vocabulary", "int64_vocabulary"))
    more = np.array([keys.count(k) > 1 and k in {_plain(x) for x in m} for k in keys], bool)
    why = "DictVectorizer: a key that is in the vocabulary twice has two indices"
    return underspecified(why, more, arranged([_nothing(dtype)] * len(keys), (len(keys),), dtype))


def _draw_vectorize(d: Draw) -> dict:
    kt, vt = d.pick(((I64, F32), (STR, F32), (STR, I64), (I64, STR), (I64, F64), (STR, F64)))
    keys: list[Any] = d.shuffle(
        ("a", "b", "c", "z") if kt is STR else (1, 4, 9, -2) if d.bool() else (0, 2**31 - 1, -(2**31), 7)
    )
    keys = keys[: d.int(1, 4)] if d.chance(3) else keys
    used = keys[: d.int(1, len(keys))]
    if d.chance(16) and not d.breaking:  # one key over and over, or none
        keys, used = ([keys[0]] * d.int(2, 3), keys[:1]) if d.bool() else ([], [])
    elif d.chance(24):
        used = []
    values = some(d, vt, 5) if vt not in (F32, F64) else quarters(d, 5)
    return {
        "X": _map(kt, used, vt, values[: len(used)]),
        "string_vocabulary" if kt is STR else "int64_vocabulary": d.shuffle(keys),
    }


op(
    "DictVectorizer",
    Evaluation(_vectorize, exact(), "ONNX ai.onnx.ml DictVectorizer-1"),
    Spelling(out_dtype=_value_type),
    Sampling(_draw_vectorize),
    Checks(ambiguous=_twice),
    domain=ML,
)


def _zip_map(c: Call) -> list[Any]:
    """One map a row; a vector is one row.  Raises RuleError "one-of-keys", "rank-1-or-2", "column-per-key"."""
    x = c.inputs["X"]
    keys = c.attr(one_of(c, "one-of-keys", "classlabels_strings", "classlabels_int64s"))
    require(x.ndim in (1, 2), "rank-1-or-2", f"X has rank {x.ndim}")
    rows_ = x.reshape(1, -1) if x.ndim == 1 else x
    if rows_.shape[-1] != len(keys):
        raise RuleError("column-per-key", f"{rows_.shape[-1]} columns for {len(keys)} keys")
    return [[dict(zip(keys, row.tolist())) for row in rows_]]


def _draw_zip_map(d: Draw) -> dict[str, Any]:
    """Now and then no column and no key, or one key of columns that are alike."""
    n = 0 if d.chance(16) else d.int(1, 4)
    shape = (n,) if d.chance(4) else (d.int(0, 3), n)
    if n > 1 and d.chance(12):
        row = quarters(d, shape[0] if len(shape) > 1 else 1)
        return {"X": T(shape, values=[v for v in row for _ in range(n)]), "classlabels_int64s": [d.int(-3, 3)] * n}
    if d.bool():
        return {"X": T(shape), "classlabels_strings": d.shuffle(WORDS)[:n]}
    return {
        "X": T(shape),
        "classlabels_int64s": d.shuffle((-3, 0, 2, 7, 1 << 40) if d.bool() else (1, -(2**31), 2**31 - 1, 5))[:n],
    }


def _break_zip_map(d: Draw) -> dict[str, Any]:
    n = d.int(1, 3)
    return {"X": T((2, n + 1)), "classlabels_int64s": list(range(n))}


op(
    "ZipMap",
    Evaluation(_zip_map, exact(), "ONNX ai.onnx.ml ZipMap-1"),
    Spelling(out_dtype=single),
    Sampling(_draw_zip_map),
    Checks(
        breaks={
            "column-per-key": _break_zip_map,
            "rank-1-or-2": lambda d: {"X": T((2, d.int(1, 3), 2)), "classlabels_int64s": [0, 1]},
            "one-of-keys": lambda d: {"X": T((2, 1)), "classlabels_int64s": [0], "classlabels_strings": ["a"]},
        }
    ),
    domain=ML,
)
