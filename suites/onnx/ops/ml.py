"""ai.onnx.ml: encoders, scalers, linear models and support vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, F32, I64, STR, DType, of
from harness.core.errors import RuleError
from harness.spec import Call, Context, Draw, T, bounded, exact
from harness.spec.errors import gamma
from suites.onnx import op
from suites.onnx.ops.text import words
from suites.semantics import indexing
from suites.semantics import tabular as s

ML = "ai.onnx.ml"
Array = np.ndarray
WORDS = ("a", "bb", "Z", "", "é")


def _objects(values: list[Any], shape: tuple[int, ...]) -> Array:
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(shape)


def _as(values: list[Any], shape: tuple[int, ...], dtype: DType) -> Array:
    return _objects(values, shape) if dtype.kind == "s" else np.array(values, dtype.np).reshape(shape)


def require(ok: Any, rule: str, detail: str) -> None:
    """Raises RuleError where a stated rule does not hold."""
    if not ok:
        raise RuleError(rule, detail)


def one_of(c: Call, rule: str, *names: str) -> str:
    """The only one of some attributes that is given; an empty list is none."""
    given = [n for n in names if n in c.attrs and (not isinstance(c.attrs[n], (list, tuple)) or c.attrs[n])]
    require(len(given) == 1, rule, f"{', '.join(given) or 'none'} given of {', '.join(names)}")
    return given[0]


def single(c: Call, i: int) -> DType:
    """f32, whatever goes in."""
    return F32


def quarters(d: Draw, n: int, lo: int = -12, hi: int = 12) -> list[float]:
    """Multiples of 1/4, whose products and sums are exact."""
    return [d.int(lo, hi) / 4 for _ in range(n)]


def rows(d: Draw, dtype: DType, n: int, f: int, lo: int = -12, hi: int = 12) -> T:
    """N rows of F features on the grid of quarters, or whole."""
    return T(
        (n, f),
        values=quarters(d, n * f, lo, hi) if dtype.kind == "f" else [d.int(lo // 2, hi // 2) for _ in range(n * f)],
    )


op("ArrayFeatureExtractor", indexing.array_feature, x="X", indices="Y", domain=ML)

# -- element by element

op(
    "Binarizer",
    evaluate=lambda c: (c.inputs["X"] > c.attr("threshold")).astype(c.inputs["X"].dtype),
    error=exact(),
    domain=ML,
    draw=lambda d: {
        "X": rows(d, d.types["T"], d.int(1, 4), d.int(1, 5)),
        **({"threshold": d.int(-4, 4) / 4} if d.bool() else {}),
    },
    source="ONNX ai.onnx.ml Binarizer-1",
)


MANY = 7  # more than a drawn X has features


def changed(draw: Callable[[Draw], dict[str, Any]], how: Callable[[Any], Any], *names: str) -> Any:
    """A draw of which those of ``names`` that are there go through ``how``."""

    def fn(d: Draw) -> dict[str, Any]:
        out = draw(d)
        return {**out, **{n: how(out[n]) for n in names if n in out}}

    return fn


def _longer(values: list[Any]) -> list[Any]:
    return [*values, values[-1]]


def _many(values: list[Any]) -> list[Any]:
    return [values[0]] * MANY


def _scale(c: Call) -> Array:
    """Raises RuleError "offset-per-scale", "one-or-per-feature"."""
    x, offset, scale = c.inputs["X"], c.attr("offset") or (), c.attr("scale") or ()
    require(len(offset) == len(scale), "offset-per-scale", f"{len(offset)} offsets, {len(scale)} scales")
    _per_feature(x, len(scale))
    return (c.inputs["X"].astype(np.float64) - np.array(c.attr("offset"))) * np.array(c.attr("scale"))


def _per_feature(x: Array, n: int) -> None:
    """One number for all features, or one for each."""
    features = x.shape[-1] if x.ndim else 1
    require(n in (1, features), "one-or-per-feature", f"{n} values for {features} features")


def _scale_bound(ctx: Context) -> Array:
    c = ctx.call
    x, off = np.abs(c.inputs["X"].astype(np.float64)), np.abs(c.attr("offset"))
    return 3 * ctx.acc_u * (x + off) * np.abs(c.attr("scale")) + ctx.ulp


def _draw_scale(d: Draw) -> dict:
    n, f = d.int(1, 4), d.int(1, 5)
    k = d.pick((1, f))
    return {
        "X": rows(d, d.types["T"], n, f),
        "offset": [d.int(-9, 9) / 3 for _ in range(k)],
        "scale": [d.int(-9, 9) / 5 for _ in range(k)],
    }


op(
    "Scaler",
    evaluate=_scale,
    draw=_draw_scale,
    error=bounded(_scale_bound, "3 u (|x| + |offset|) |scale| + ulp"),
    domain=ML,
    out_dtype=single,
    breaks={
        "offset-per-scale": changed(_draw_scale, _longer, "offset"),
        "one-or-per-feature": changed(_draw_scale, _many, "offset", "scale"),
    },
    source="ONNX ai.onnx.ml Scaler-1",
)


def _normalize(c: Call) -> Array:
    """Raises RuleError "rank-1-or-2"."""
    x = c.inputs["X"].astype(np.float64)
    require(x.ndim in (1, 2), "rank-1-or-2", f"X has rank {x.ndim}")
    how = c.attr("norm")
    top = x.max(-1, keepdims=True) if how == "MAX" else (x if how == "L1" else x * x).sum(-1, keepdims=True)
    with np.errstate(all="ignore"):
        y = x / top if how != "L2" else np.sqrt(x * x / top)
    return np.where(top == 0, x, y)


def _normal_bound(ctx: Context) -> Array:
    """16 u |y|, for L1 as often as the elements of a row together are larger than their sum, + ulp"""
    x = np.abs(np.asarray(ctx.call.inputs["X"], np.float64))
    with np.errstate(all="ignore"):
        loss = x.sum(-1, keepdims=True) / np.abs(np.asarray(ctx.call.inputs["X"], np.float64).sum(-1, keepdims=True))
    grown = np.where(np.isfinite(loss), loss, 1.0) if ctx.call.attr("norm") == "L1" else 1.0
    return 16 * ctx.acc_u * np.abs(ctx.wide) * grown + ctx.ulp


def _draw_normalize(d: Draw) -> dict:
    """Rows of either sign, also for L1 and L2, whose formulas are printed without magnitudes and signs; rows of nothing
    but zeros, and of L1 some that add up to 0: "if the divisor is zero, Y == X"."""
    f, how = d.int(1, 6), d.pick(("MAX", "L1", "L2"))
    t = rows(d, d.types["T"], d.int(1, 4), f, 0 if d.chance(4) else -12)
    if d.chance(4):
        t.values[:f] = [0] * f
    elif f > 1 and d.chance(4):
        t.values[:f] = [t.values[0], -t.values[0], *[0] * (f - 2)]
    if d.chance(3):
        t = T((f,), values=t.values[:f])
    return {"X": t, **({"norm": how} if how != "MAX" or d.int(0, 3) else {})}


op(
    "Normalizer",
    evaluate=_normalize,
    draw=_draw_normalize,
    error=bounded(_normal_bound, "16 u |y|, more where the terms of a sum cancel, + ulp"),
    out_dtype=single,
    domain=ML,
    breaks={"rank-1-or-2": lambda d: {"X": T((2, 1, 2), values=[1, 2, 3, 4])}},
    source="ONNX ai.onnx.ml Normalizer-1",
)


def _impute(c: Call) -> Array:
    """Raises RuleError "one-of-imputed", "one-or-per-feature"."""
    x = c.inputs["X"]
    one_of(c, "one-of-imputed", "imputed_value_floats", "imputed_value_int64s")
    if of(x).kind == "f":
        old, new = c.attr("replaced_value_float"), c.attr("imputed_value_floats")
    else:
        old, new = c.attr("replaced_value_int64"), c.attr("imputed_value_int64s")
    require(new, "one-of-imputed", f"the values are not of the type of X, {of(x)}")
    _per_feature(x, len(new))
    hit = np.isnan(x) if old != old else x == old
    return np.where(hit, np.array(new, x.dtype), x)


def _draw_impute(d: Draw) -> dict:
    n, f, dtype = d.int(1, 4), d.int(1, 4), d.types["T"]
    k = d.pick((1, f))
    if dtype.kind != "f":
        pool = [-1, 0, 3, 7]
        return {"X": T((n, f), values=[d.pick(pool) for _ in range(n * f)]), "replaced_value_int64": d.pick(pool),
                "imputed_value_int64s": [d.int(-5, 5) for _ in range(k)]}  # fmt: skip
    reals = [-1.0, 0.0, 2.5, float("nan")]
    return {"X": T((n, f), values=[d.pick(reals) for _ in range(n * f)]), "replaced_value_float": d.pick(reals),
            "imputed_value_floats": quarters(d, k)}  # fmt: skip


op(
    "Imputer",
    evaluate=_impute,
    error=exact(),
    draw=_draw_impute,
    domain=ML,
    breaks={
        "one-of-imputed": lambda d: {"imputed_value_floats": [1.0], "imputed_value_int64s": [1], **_draw_impute(d)}
    },
    source="ONNX ai.onnx.ml Imputer-1",
)


def _join(c: Call) -> Array:
    """Raises RuleError "rank-1-or-2", "rows-agree", "inputdimensions-agrees"."""
    xs = c.inputs["X"]
    require({x.ndim for x in xs} <= {1, 2}, "rank-1-or-2", f"ranks {[x.ndim for x in xs]}")
    xs = [x.reshape(1, -1) if x.ndim == 1 else x for x in xs]
    require(len({len(x) for x in xs}) == 1, "rows-agree", f"{[len(x) for x in xs]} rows")
    said, shown = c.attr("inputdimensions"), [x.shape[1] for x in xs]
    require(said is None or list(said) == shown, "inputdimensions-agrees", f"{said}, but the operands show {shown}")
    return np.concatenate(xs, 1).astype(np.float64)


def _draw_join(d: Draw) -> dict:
    n = d.pick((1, 1, 2, 3))
    widths = [d.int(1, 4) for _ in range(d.int(1, 4))]
    return {"X": [T((w,) if n == 1 and d.bool() else (n, w)) for w in widths], "inputdimensions": widths}


def _uneven(d: Draw) -> dict:
    n, widths = d.int(1, 3), [d.int(1, 4), d.int(1, 4)]
    return {"X": [T((n, widths[0])), T((n + 1, widths[1]))], "inputdimensions": widths}


op("FeatureVectorizer", evaluate=_join, error=exact(), draw=_draw_join, out_dtype=single, domain=ML,
   breaks={"rows-agree": _uneven, "inputdimensions-agrees": changed(_draw_join, _longer, "inputdimensions")},
   source="ONNX ai.onnx.ml FeatureVectorizer-1")  # fmt: skip

# -- categories and labels


def lookup(x: Array, keys: list[Any], values: list[Any], default: Any, dtype: DType) -> Array:
    """Each element through a table; one NaN is as good as another; of equal keys the last counts."""
    table = {_key(k): v for k, v in zip(keys, values)}
    return _as([table.get(_key(v), default) for v in x.ravel().tolist()], x.shape, dtype)


def _key(v: Any) -> Any:
    return "\0nan" if isinstance(v, float) and v != v else v


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
            return lookup(x, _list(keys), _list(values), a(f"default_{name}"), kind)
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


def _some(d: Draw, dtype: DType, n: int) -> list[Any]:
    """Distinct keys, or any values."""
    pool: list[Any] = (
        list(WORDS)
        if dtype.kind == "s"
        else [1, 2, 5, -3, 40]
        if dtype.kind in "iu"
        else [0.5, 1.25, -2.0, float("nan"), 3.0]
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


_SUFFIX = {"i64": "int64s", "str": "strings", "f32": "floats"}


def _draw_label(d: Draw) -> dict:
    dtype, v = d.types["T1"], d.version.version
    shape = d.shape(0, 3)
    if v == 1:
        n = d.int(1, 4)
        out: dict[str, Any] = {"classes_strings": d.shuffle(WORDS)[:n]}
        out["X"] = (
            words(d, shape, WORDS)
            if dtype.kind == "s"
            else T(shape, values=[d.int(0, n) for _ in range(int(np.prod(shape)))])
        )
        if d.bool():
            out |= {"default_int64": 7} if dtype.kind == "s" else {"default_string": "none"}
        return out
    n = d.int(1, 5)
    keys = _some(d, dtype, n)
    pool = keys + _some(d, dtype, 5)
    out = {"X": T(shape, values=[d.pick(pool) for _ in range(int(np.prod(shape)))])}
    to = d.pick([BY_NAME[t] for t in d.version.schema.types["T2"]])
    values = [d.pick(_some(d, to, 5)) for _ in keys]
    if v >= 4 and d.chance(3):
        keys, values = [*keys, keys[0]], [*values, _some(d, to, 5)[0]]
    tensors = dtype.name not in _SUFFIX or to.name not in _SUFFIX or (v >= 4 and d.bool())
    if tensors:
        out |= {"keys_tensor": _as(keys, (len(keys),), dtype), "values_tensor": _as(values, (len(values),), to)}
        if d.bool():
            out["default_tensor"] = _as(_some(d, to, 1), (1,), to)
        return out
    out |= {f"keys_{_SUFFIX[dtype.name]}": keys, f"values_{_SUFFIX[to.name]}": values}
    if d.bool():
        out[f"default_{_SUFFIX[to.name][:-1]}"] = _some(d, to, 1)[0]
    return out


op("LabelEncoder", evaluate=_label, error=exact(), draw=_draw_label, out_dtype=label_type, domain=ML, until=1,
   source="ONNX ai.onnx.ml LabelEncoder-1")
op("LabelEncoder", evaluate=_label, error=exact(), draw=_draw_label, out_dtype=label_type, domain=ML, since=2,
   breaks={"value-per-key": _more_values, "one-of-keys": _more_keys},
   source="ONNX ai.onnx.ml LabelEncoder-2, -4")  # fmt: skip


def _map_category(c: Call) -> Array:
    """Raises RuleError "cats-agree"."""
    numbers, names = c.attr("cats_int64s") or [], c.attr("cats_strings") or []
    require(len(numbers) == len(names), "cats-agree", f"{len(numbers)} integers, {len(names)} strings")
    if of(c.inputs["X"]).kind == "s":
        return lookup(c.inputs["X"], names, numbers, c.attr("default_int64"), I64)
    return lookup(c.inputs["X"], numbers, names, c.attr("default_string"), STR)


def _draw_category(d: Draw) -> dict:
    n, shape, text = d.int(1, 4), d.shape(0, 3), d.types["T1"].kind == "s"
    out: dict[str, Any] = {"cats_strings": d.shuffle(WORDS)[:n], "cats_int64s": d.shuffle((3, -1, 0, 12))[:n]}
    out["X"] = (
        words(d, shape, WORDS)
        if text
        else T(shape, values=[d.pick((3, -1, 0, 12, 5)) for _ in range(int(np.prod(shape)))])
    )
    return {**out, **({"default_int64": d.int(-1, 9)} if text else {"default_string": "none"})}


op(
    "CategoryMapper",
    evaluate=_map_category,
    error=exact(),
    draw=_draw_category,
    domain=ML,
    out_dtype=lambda c, i: I64 if of(c.inputs["X"]).kind == "s" else STR,
    breaks={"cats-agree": changed(_draw_category, lambda values: [*values, 99], "cats_int64s")},
    source="ONNX ai.onnx.ml CategoryMapper-1",
)


def _one_hot(c: Call) -> Array:
    """Raises RuleError "one-of-cats", and "category-known" where an unknown category is not allowed."""
    x = c.inputs["X"]
    one_of(c, "one-of-cats", "cats_int64s", "cats_strings")
    cats = c.attr("cats_strings") if of(x).kind == "s" else c.attr("cats_int64s")
    require(cats, "one-of-cats", f"the categories are not of the type of X, {of(x)}")
    flat = [v if isinstance(v, str) else int(v) for v in x.ravel().tolist()]
    if not c.attr("zeros") and any(v not in cats for v in flat):
        raise RuleError("category-known", "an element is in no category")
    return np.array([[v == k for k in cats] for v in flat], np.float32).reshape(*x.shape, len(cats))


def _draw_hot(d: Draw) -> dict:
    shape, dtype, all_known = d.shape(0, 3), d.types["T"], d.bool()
    n = int(np.prod(shape))
    cats: list[Any] = d.shuffle(WORDS if dtype.kind == "s" else (3, -1, 0, 12))[: d.int(1, 4)]
    pool = cats if all_known else [*cats, "other" if dtype.kind == "s" else 5]
    values = [d.pick(pool) for _ in range(n)]
    out = {"X": T(shape, values=[float(v) for v in values] if dtype.kind == "f" else values),
           "cats_strings" if dtype.kind == "s" else "cats_int64s": cats}  # fmt: skip
    return {**out, **({"zeros": d.int(0, 1)} if all_known else {})}


def _unknown(d: Draw) -> dict:
    text = d.types["T"].kind == "s"
    x = words(d, (3,), ("other",)) if text else T((3,), values=[5, 5, 5])
    return {"X": x, "zeros": 0, **({"cats_strings": ["a", "bb"]} if text else {"cats_int64s": [3, -1]})}


op(
    "OneHotEncoder",
    evaluate=_one_hot,
    error=exact(),
    draw=_draw_hot,
    out_dtype=single,
    domain=ML,
    breaks={
        "one-of-cats": lambda d: {"cats_strings": ["a"], "cats_int64s": [1], **_draw_hot(d)},
        "category-known": _unknown,
    },
    source="ONNX ai.onnx.ml OneHotEncoder-1",
)

# -- maps


def _cast_map(c: Call) -> Array:
    """Raises RuleError "key-below-max"."""
    m, to = c.inputs["X"], {"TO_FLOAT": F32, "TO_INT64": I64, "TO_STRING": STR}[c.attr("cast_to")]
    read = {"TO_FLOAT": float, "TO_INT64": int, "TO_STRING": str}[c.attr("cast_to")]
    if c.attr("map_form") == "DENSE":
        return _as([read(m[k]) for k in sorted(m)], (1, len(m)), to)
    n = c.attr("max_map")
    require(all(0 <= _plain(k) < n for k in m), "key-below-max", f"keys {sorted(m)}, max_map {n}")
    return _as([read(m[k]) if k in m else read(0) if to is not STR else "" for k in range(n)], (1, n), to)


def _draw_cast_map(d: Draw) -> dict:
    n = d.int(1, 4)
    keys = d.shuffle(range(6))[:n]
    text = d.bool()
    out: dict[str, Any] = {
        "X": _map(I64, keys, STR if text else F32, [str(d.int(-9, 9)) if text else d.int(-9, 9) / 4 for _ in keys])
    }
    pool = ["TO_STRING"] if text and d.bool() else ["TO_FLOAT", "TO_INT64"]
    to = d.pick(pool)
    if to != "TO_FLOAT" or d.bool():
        out["cast_to"] = to
    if d.bool():
        out |= {"map_form": "SPARSE", "max_map": d.int(6, 8)}
    return out


def _map(kt: DType, keys: list[Any], vt: DType, values: list[Any]) -> T:
    return T(
        (),
        kind="map",
        dtype=vt,
        items=[T((len(keys),), values=list(keys), dtype=kt), T((len(keys),), values=values, dtype=vt)],
    )


op("CastMap", evaluate=_cast_map, error=exact(), draw=_draw_cast_map, domain=ML, source="ONNX ai.onnx.ml CastMap-1",
   out_dtype=lambda c, i: {"TO_FLOAT": F32, "TO_INT64": I64, "TO_STRING": STR}[c.attr("cast_to")])  # fmt: skip


def _plain(v: Any) -> Any:
    """A value of a map as Python's own; a model's caller may give arrays of rank 0."""
    return v.item() if isinstance(v, (np.ndarray, np.generic)) else v


def _value_type(c: Call, i: int = 0) -> DType:
    v = _plain(next(iter(c.inputs["X"].values())))
    return STR if isinstance(v, str) else I64 if isinstance(v, int) else F32


def _vectorize(c: Call) -> Array:
    """Raises RuleError "one-of-vocabularies", "key-known"."""
    m, dtype = c.inputs["X"], _value_type(c)
    keys = c.attr(one_of(c, "one-of-vocabularies", "string_vocabulary", "int64_vocabulary"))
    require({_plain(k) for k in m} <= set(keys), "key-known", f"keys {list(m)}, vocabulary {keys}")
    return _as([_plain(m.get(k, "" if dtype is STR else 0)) for k in keys], (len(keys),), dtype)


def _draw_vectorize(d: Draw) -> dict:
    kt, vt = d.pick(((I64, F32), (STR, F32), (STR, I64), (I64, STR)))
    keys: list[Any] = d.shuffle(("a", "b", "c", "z") if kt is STR else (1, 4, 9, -2))
    used = keys[: d.int(1, 4)]
    values = _some(d, vt, 5) if vt is not F32 else quarters(d, 5)
    return {
        "X": _map(kt, used, vt, values[: len(used)]),
        "string_vocabulary" if kt is STR else "int64_vocabulary": d.shuffle(keys),
    }


op("DictVectorizer", evaluate=_vectorize, error=exact(), draw=_draw_vectorize, domain=ML, out_dtype=_value_type,
   source="ONNX ai.onnx.ml DictVectorizer-1")  # fmt: skip


def _zip_map(c: Call) -> list[Any]:
    """One map a row; a vector is one row.  Raises RuleError "one-of-keys", "rank-1-or-2", "column-per-key"."""
    x = c.inputs["X"]
    keys = c.attr("classlabels_strings") or c.attr("classlabels_int64s") or []
    if bool(c.attr("classlabels_strings")) == bool(c.attr("classlabels_int64s")):
        raise RuleError("one-of-keys", "one of the classlabels attributes gives the keys")
    require(x.ndim in (1, 2), "rank-1-or-2", f"X has rank {x.ndim}")
    rows_ = x.reshape(1, -1) if x.ndim == 1 else x
    if rows_.shape[-1] != len(keys):
        raise RuleError("column-per-key", f"{rows_.shape[-1]} columns for {len(keys)} keys")
    return [[dict(zip(keys, row.tolist())) for row in rows_]]


def _draw_zip_map(d: Draw) -> dict[str, Any]:
    n = d.int(1, 4)
    shape = (n,) if d.chance(4) else (d.int(0, 3), n)
    if d.bool():
        return {"X": T(shape), "classlabels_strings": d.shuffle(WORDS)[:n]}
    return {"X": T(shape), "classlabels_int64s": d.shuffle((-3, 0, 2, 7, 1 << 40))[:n]}


def _break_zip_map(d: Draw) -> dict[str, Any]:
    n = d.int(1, 3)
    return {"X": T((2, n + 1)), "classlabels_int64s": list(range(n))}


op("ZipMap", evaluate=_zip_map, error=exact(), draw=_draw_zip_map, domain=ML, out_dtype=single,
   breaks={
       "column-per-key": _break_zip_map,
       "rank-1-or-2": lambda d: {"X": T((2, d.int(1, 3), 2)), "classlabels_int64s": [0, 1]},
       "one-of-keys": lambda d: {"X": T((2, 1)), "classlabels_int64s": [0], "classlabels_strings": ["a"]},
   },
   source="ONNX ai.onnx.ml ZipMap-1")  # fmt: skip

# -- linear models and support vectors

POSTS = ("NONE", "SOFTMAX", "LOGISTIC")


def transformed(d: Draw) -> dict:
    """What becomes of the scores; half of those that stay as they are do not say so."""
    how = d.pick(POSTS)
    return {} if how == "NONE" and d.bool() else {"post_transform": how}


def _weights(c: Call) -> tuple[Array, Array, Array]:
    x = c.inputs["X"].astype(np.float64)
    x = x.reshape(1, -1) if x.ndim == 1 else x
    w = np.array(c.attr("coefficients")).reshape(-1, x.shape[-1])
    return x, w, np.array(c.attr("intercepts") or [0.0])


def _linear_bound(ctx: Context) -> Array:
    """A dot product, and a transform whose slope is at most 1 in each score."""
    x, w, b = _weights(ctx.call)
    scale = np.abs(x) @ np.abs(w).T + np.abs(b)
    return (
        2 * gamma(x.shape[1] + 8, ctx.acc_u) * scale.max(-1, initial=0.0, keepdims=True)
        + 16 * ctx.acc_u * np.abs(ctx.wide)
        + ctx.ulp
    )


def _regress(c: Call) -> Array:
    """Raises RuleError "coefficients-per-target", "intercept-per-target"."""
    n, features, count = c.attr("targets"), c.inputs["X"].shape[-1], len(c.attr("coefficients") or ())
    require(count == n * features, "coefficients-per-target", f"{count} for {n} targets, {features} features")
    free = c.attr("intercepts")
    require(not free or len(free) == n, "intercept-per-target", f"{len(free or ())} for {n} targets")
    x, w, b = _weights(c)
    return s.post(x @ w.T + b, c.attr("post_transform"))


def _draw_linear(d: Draw) -> dict:
    n, f, k = d.int(1, 4), d.int(1, 5), d.int(1, 3)
    out: dict[str, Any] = {
        "X": rows(d, d.dtype("X"), n, f),
        "coefficients": quarters(d, k * f),
        **transformed(d),
    }
    if k > 1 or d.bool():
        out["targets"] = k
    if d.bool():
        out["intercepts"] = quarters(d, k)
    return out


op(
    "LinearRegressor",
    evaluate=_regress,
    draw=_draw_linear,
    out_dtype=single,
    domain=ML,
    error=bounded(_linear_bound, "2 gamma(F + 8) max(|x| |w| + |b|) + 16 u |y| + ulp"),
    source="ONNX ai.onnx.ml LinearRegressor-1",
)


def classes(d: Draw, k: int, ints: str) -> dict:
    """The labels of k classes, under the attribute names of this op."""
    if d.bool():
        return {"classlabels_strings": ["cat", "dog", "", "é"][:k]}
    return {ints: d.shuffle((4, -1, 0, 10))[:k]}


def pick_labels(c: Call, z: Array, ints: str) -> Array:
    """The label of the greatest score of each row."""
    names = c.attr("classlabels_strings")
    best = z.argmax(-1).tolist()
    return (
        _objects([names[i] for i in best], (len(best),))
        if names
        else np.array([c.attr(ints)[i] for i in best], np.int64)
    )


def classified(ints: str) -> Any:
    """Types of the two outputs of a classifier."""
    return lambda c, i: F32 if i else STR if c.attr("classlabels_strings") else I64


def _classify(c: Call) -> tuple[Array, Array]:
    """Raises RuleError "one-of-labels"."""
    one_of(c, "one-of-labels", "classlabels_ints", "classlabels_strings")
    x, w, b = _weights(c)
    z = x @ w.T + b
    return pick_labels(c, z, "classlabels_ints"), s.post(z, c.attr("post_transform"))


def _draw_classify(d: Draw) -> dict:
    """The intercepts keep the scores of a row apart: no ties."""
    n, f, k = d.int(1, 4), d.int(1, 5), d.int(2, 4)
    return {
        "X": rows(d, d.types["T1"], n, f),
        "coefficients": quarters(d, k * f),
        **transformed(d),
        "intercepts": [v + i / 128 for i, v in enumerate(quarters(d, k))],
        **classes(d, k, "classlabels_ints"),
    }


def _both_labels(d: Draw) -> dict:
    return {"classlabels_strings": ["cat", "dog", "", "é"], "classlabels_ints": [0, 1, 2, 3], **_draw_classify(d)}


op(
    "LinearClassifier",
    evaluate=_classify,
    draw=_draw_classify,
    outs=2,
    out_dtype=classified("classlabels_ints"),
    domain=ML,
    error=(exact(), bounded(_linear_bound, "2 gamma(F + 8) max(|x| |w| + |b|) + 16 u |y| + ulp")),
    breaks={"one-of-labels": _both_labels},
    source="ONNX ai.onnx.ml LinearClassifier-1",
)


def _svm_parts(c: Call) -> tuple[Array, Array, Array, float]:
    """Raises RuleError "sizes-fit"."""
    x = c.inputs["X"].astype(np.float64)
    n, given = c.attr("n_supports"), c.attr("support_vectors") or ()
    w = np.array(c.attr("coefficients") or ())
    require(n * x.shape[-1] == len(given) > 0, "sizes-fit", f"{len(given)} numbers for {n} support vectors")
    require(len(w) == n, "sizes-fit", f"{len(w)} coefficients for {n} support vectors")
    sv = np.array(c.attr("support_vectors")).reshape(n, -1)
    g, c0, deg = c.attr("kernel_params") or (0.0, 0.0, 0.0)
    return s.kernel(x, sv, c.attr("kernel_type"), g, c0, deg), w, x, (c.attr("rho") or [0.0])[0]


def _svm(c: Call) -> Array:
    k, w, _, rho = _svm_parts(c)
    y = (k @ w + rho).reshape(-1, 1)
    if c.attr("one_class"):
        y = np.where(y > 0, 1.0, -1.0)
    return s.post(y, c.attr("post_transform"))


def _svm_bound(ctx: Context) -> Array:
    k, w, x, rho = _svm_parts(ctx.call)
    scale = (np.abs(k) + 1) @ np.abs(w) + abs(rho)
    return 64 * (x.shape[1] + len(w)) * ctx.acc_u * scale.reshape(-1, 1) + ctx.ulp


def _draw_svm(d: Draw) -> dict:
    n, f, k = d.int(1, 4), d.int(1, 4), d.int(1, 4)
    kind = d.pick(("LINEAR", "POLY", "RBF", "SIGMOID"))
    out = {
        "X": rows(d, d.types["T"], n, f, -4, 4),
        "coefficients": quarters(d, k),
        "support_vectors": quarters(d, k * f, -4, 4),
        "n_supports": k,
        "rho": [d.int(-8, 8) / 8],
        **transformed(d),
    }
    if kind != "LINEAR" or d.bool():
        out["kernel_type"] = kind
    if kind != "LINEAR" or d.bool():
        out["kernel_params"] = [d.pick((0.25, 0.5)), d.pick((0.0, 1.0)), float(d.int(1, 3))]
    return out


op(
    "SVMRegressor",
    evaluate=_svm,
    draw=_draw_svm,
    out_dtype=single,
    domain=ML,
    error=bounded(_svm_bound, "64 (F + supports) u sum (|K| + 1) |w| + ulp"),
    source="ONNX ai.onnx.ml SVMRegressor-1",
)
