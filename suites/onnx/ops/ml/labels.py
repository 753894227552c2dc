"""Categories and labels through tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, F32, I64, STR, DType, int_range, of
from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Evaluation, Sampling, Spelling, T, exact, underspecified
from suites.onnx import op
from suites.onnx.ops.ml.common import ML, WORDS, Array, arranged, changed, one_of, require, single
from suites.onnx.ops.text import words


def lookup(x: Array, keys: list[Any], values: list[Any], default: Any, dtype: DType, bitwise: bool = False) -> Array:
    """Each element through a table; one NaN is as good as another; of equal keys the last counts.  bitwise: are the
    two zeros two keys?"""
    table = {_key(k, bitwise): v for k, v in zip(keys, values)}
    return arranged([table.get(_key(v, bitwise), default) for v in x.ravel().tolist()], x.shape, dtype)


def _key(v: Any, bitwise: bool) -> Any:
    if isinstance(v, float) and v != v:
        return "\0nan"
    return "\0-0" if bitwise and v == 0 and str(v)[0] == "-" else v


_KEYS = ("keys_int64s", "keys_strings", "keys_floats", "keys_tensor")
_VALUES = ("values_int64s", "values_strings", "values_floats", "values_tensor")


def _label(c: Call) -> Array:
    """Raises RuleError "one-of-keys", "one-of-values", "value-per-key"."""
    x, a = c.inputs["X"], c.attr
    if c.version.version == 1:
        names = a("classes_strings")
        if of(x).kind == "s":
            return lookup(x, names[::-1], list(range(len(names)))[::-1], a("default_int64"), I64)
        return lookup(x, list(range(len(names))), names, a("default_string"), STR)
    keys = a(one_of(c, "one-of-keys", *_KEYS))
    n, count = len(keys), len(a(one_of(c, "one-of-values", *_VALUES)))
    require(n == count, "value-per-key", f"{n} keys, {count} values")
    for name, kind in (("int64", I64), ("string", STR), ("float", F32)):
        values = a(f"values_{name}s")
        if values is not None:
            bitwise = c.version.version == 2  # "For key look-up, bit-wise comparison is used"
            return lookup(x, _list(keys), _list(values), a(f"default_{name}"), kind, bitwise)
    values, default = a("values_tensor"), a("default_tensor")
    dtype = of(values)
    first = (
        default.reshape(-1)[0]
        if default is not None
        else "_Unused"
        if dtype.kind == "s"
        else -0.0
        if dtype.kind == "f"
        else -1
    )
    return lookup(x, _list(keys), _list(values), first, dtype)


def _list(v: Any) -> list[Any]:
    return v.tolist() if isinstance(v, np.ndarray) else list(v)


def label_type(c: Call, i: int) -> DType:
    """What the table maps to."""
    a = c.attr
    if c.version.version == 1:
        return I64 if of(c.inputs["X"]).kind == "s" else STR
    found = [t for n, t in (("int64", I64), ("string", STR), ("float", F32)) if a(f"values_{n}s") is not None]
    return found[0] if found else of(a("values_tensor"))


def _integers(d: Draw, dtype: DType) -> list[Any]:
    """Distinct integers; now and then the ends of the type and of an i32."""
    if not d.chance(4):
        return [1, 2, 5, -1, -3, 40]
    lo, hi = int_range(dtype)
    return list(dict.fromkeys((0, hi, lo, min(hi, 2**31 - 1), max(lo, -(2**31)), 1)))


def some(d: Draw, dtype: DType, n: int) -> list[Any]:
    """Distinct keys, or any values."""
    pool: list[Any] = (
        list(WORDS)
        if dtype.kind == "s"
        else _integers(d, dtype)
        if dtype.kind in "iu"
        else [0.5, 1.25, -2.0, float("nan"), 3.0, -0.5]
    )
    return d.shuffle(pool)[:n]


def _more_values(d: Draw) -> dict:
    """Twice as many values as keys."""
    out = _draw_label(d)
    name = next(n for n in _VALUES if n in out)
    v = out[name]
    return {**out, name: np.concatenate([v, v]) if isinstance(v, np.ndarray) else v * 2}


def _more_keys(d: Draw) -> dict:
    out = _draw_label(d)
    return {"keys_int64s": [1], "keys_strings": ["a"], **out}


_ENDS = (0, 1, -1, 100, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
_SUFFIX = {"i64": "int64s", "str": "strings", "f32": "floats"}


def _draw_label(d: Draw) -> dict:
    dtype, v = d.types["T1"], d.version.version
    shape = d.shape(0, 4)
    if v == 1:
        n = d.int(1, 4)
        out: dict[str, Any] = {"classes_strings": d.shuffle(WORDS)[:n]}
        out["X"] = (
            words(d, shape, WORDS)
            if dtype.kind == "s"
            else T(shape, values=[d.int(-1, n) if d.int(0, 7) else d.pick(_ENDS) for _ in range(int(np.prod(shape)))])
        )
        if d.bool():
            out |= {"default_int64": d.pick((7, *_ENDS))} if dtype.kind == "s" else {"default_string": "none"}
        return out
    n = 0 if v == 2 and d.chance(24) and not d.breaking else d.int(1, 5)  # later ones say that a list is there
    keys = some(d, dtype, n)
    pool = keys + some(d, dtype, 5)
    if (
        v == 2 and dtype.kind == "f" and keys and d.chance(4)
    ):  # version 4 names no bits, and zeros of either sign are equal
        keys[0] = d.pick((0.0, -0.0))
        pool = [*keys, 0.0, -0.0]
    out = {"X": T(shape, values=[d.pick(pool) for _ in range(int(np.prod(shape)))])}
    to = d.pick([BY_NAME[t] for t in d.version.schema.types["T2"]])
    values = [d.pick(some(d, to, 5)) for _ in keys]
    if keys and d.chance(16):  # one key and its value over and over, in version 2 too
        n = d.int(2, 3)
        keys, values = keys[:1] * n, values[:1] * n
    if v >= 4 and keys and d.chance(3):
        keys, values = [*keys, keys[0]], [*values, some(d, to, 5)[0]]
    tensors = dtype.name not in _SUFFIX or to.name not in _SUFFIX or (v >= 4 and d.bool())
    if tensors:
        out["keys_tensor"] = arranged(keys, (len(keys),), dtype)
        out["values_tensor"] = arranged(values, (len(values),), to)
        if d.bool():
            out["default_tensor"] = arranged(some(d, to, 1), (1,), to)
        return out
    out |= {f"keys_{_SUFFIX[dtype.name]}": keys, f"values_{_SUFFIX[to.name]}": values}
    if d.bool():
        out[f"default_{_SUFFIX[to.name][:-1]}"] = some(d, to, 1)[0]
    return out


op(
    "LabelEncoder",
    Evaluation(_label, exact(), "ONNX ai.onnx.ml LabelEncoder-1"),
    Spelling(out_dtype=label_type),
    Sampling(_draw_label),
    Checks(breaks=dict.fromkeys(("one-of-keys", "one-of-values", "value-per-key"))),  # version 1 has one list
    domain=ML,
    until=1,
)
op(
    "LabelEncoder",
    Evaluation(_label, exact(), "ONNX ai.onnx.ml LabelEncoder-2, -4"),
    Spelling(out_dtype=label_type),
    Sampling(_draw_label),
    Checks(breaks={"value-per-key": _more_values, "one-of-keys": _more_keys}),
    domain=ML,
    since=2,
)


def _map_category(c: Call) -> Array:
    """Raises RuleError "cats-agree"."""
    numbers, names = c.attr("cats_int64s") or [], c.attr("cats_strings") or []
    require(len(numbers) == len(names), "cats-agree", f"{len(numbers)} integers, {len(names)} strings")
    if of(c.inputs["X"]).kind == "s":
        return lookup(c.inputs["X"], names, numbers, c.attr("default_int64"), I64)
    return lookup(c.inputs["X"], numbers, names, c.attr("default_string"), STR)


def _draw_category(d: Draw) -> dict:
    """Now and then a map of nothing, or one in which all keys have the same value."""
    n, shape, text = d.int(1, 4), d.shape(0, 4), d.types["T1"].kind == "s"
    some_ = (3, -1, 0, 12) if d.int(0, 3) else (1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
    out: dict[str, Any] = {"cats_strings": d.shuffle(WORDS)[:n], "cats_int64s": d.shuffle(some_)[:n]}
    if d.chance(16) and not d.breaking:
        out = {"cats_strings": [], "cats_int64s": []}
    elif d.chance(16):
        to = "cats_int64s" if text else "cats_strings"
        out[to] = out[to][:1] * len(out[to])
    out["X"] = (
        words(d, shape, WORDS) if text else T(shape, values=[d.pick((*some_, 5)) for _ in range(int(np.prod(shape)))])
    )
    return {
        **out,
        **({"default_int64": d.int(-1, 9) if d.int(0, 3) else d.pick(_ENDS)} if text else {"default_string": "none"}),
    }


op(
    "CategoryMapper",
    Evaluation(_map_category, exact(), "ONNX ai.onnx.ml CategoryMapper-1"),
    Spelling(out_dtype=lambda c, i: I64 if of(c.inputs["X"]).kind == "s" else STR),
    Sampling(_draw_category),
    Checks(breaks={"cats-agree": changed(_draw_category, lambda values: [*values, 99], "cats_int64s")}),
    domain=ML,
)


def _one_hot(c: Call) -> Array:
    """ "a single one is placed at the index of the category": the first of that name.

    Raises RuleError "one-of-cats", and "category-known" where an unknown category is not allowed."""
    flat, cats = _flat(c)
    if not c.attr("zeros") and any(v not in cats for v in flat):
        raise RuleError("category-known", "an element is in no category")
    return _ones(c, flat, [cats.index(k) for k in cats])


def _flat(c: Call) -> tuple[list[Any], list[Any]]:
    """Elements and categories."""
    x = c.inputs["X"]
    one_of(c, "one-of-cats", "cats_int64s", "cats_strings")
    cats = c.attr("cats_strings") if of(x).kind == "s" else c.attr("cats_int64s")
    require(cats is not None, "one-of-cats", f"the categories are not of the type of X, {of(x)}")
    return [v if isinstance(v, str) else int(v) for v in x.ravel().tolist()], list(cats)


def _ones(c: Call, flat: list[Any], at: list[int]) -> Array:
    """at: where the one of each category goes."""
    _, cats = _flat(c)
    where, shape = dict(zip(cats, at)), (*c.inputs["X"].shape, len(cats))
    return np.array([[where.get(v) == k for k in range(len(cats))] for v in flat], np.float32).reshape(shape)


def _twice(c: Call) -> str | None:
    """The index of a category that is listed twice."""
    flat, cats = _flat(c)
    first, last = ([f(k) for k in cats] for f in (cats.index, lambda k: len(cats) - 1 - cats[::-1].index(k)))
    if first == last:
        return None
    ours, other = _ones(c, flat, first), _ones(c, flat, last)
    return underspecified("OneHotEncoder: a category that is listed twice has two indices", ours != other, other)


def _draw_hot(d: Draw) -> dict:
    shape, dtype, all_known = d.shape(0, 4), d.types["T"], d.bool()
    n = int(np.prod(shape))
    far = (1, -(2**31), *((2**31 - 1,) if dtype.bits == 64 or dtype.kind != "f" else (1 << 30,)))
    some_ = (3, -1, 0, 12) if d.int(0, 3) else far
    cats: list[Any] = d.shuffle(WORDS if dtype.kind == "s" else some_)[: d.int(1, 4)]
    if d.chance(16) and not d.breaking:  # none, or one over and over
        cats, all_known = ([], False) if d.bool() else (cats[:1] * d.int(2, 3), all_known)
    pool = cats if all_known else [*cats, "other" if dtype.kind == "s" else 5]
    values = [d.pick(pool) for _ in range(n)]
    part = 0.25 * d.int(0, 3) if d.bool() else 0.0  # "the data will be cast to integers": toward zero
    out = {
        "X": T(shape, values=[v + (part if v > 0 else -part) for v in values] if dtype.kind == "f" else values),
        "cats_strings" if dtype.kind == "s" else "cats_int64s": cats,
    }
    return {**out, **({"zeros": d.int(0, 1)} if all_known else {})}


def _unknown(d: Draw) -> dict:
    text = d.types["T"].kind == "s"
    x = words(d, (3,), ("other",)) if text else T((3,), values=[5, 5, 5])
    return {"X": x, "zeros": 0, **({"cats_strings": ["a", "bb"]} if text else {"cats_int64s": [3, -1]})}


op(
    "OneHotEncoder",
    Evaluation(_one_hot, exact(), "ONNX ai.onnx.ml OneHotEncoder-1"),
    Spelling(out_dtype=single),
    Sampling(_draw_hot),
    Checks(
        ambiguous=_twice,
        breaks={
            "one-of-cats": lambda d: {"cats_strings": ["a"], "cats_int64s": [1], **_draw_hot(d)},
            "category-known": _unknown,
        },
    ),
    domain=ML,
)
