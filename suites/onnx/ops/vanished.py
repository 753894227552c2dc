"""Operators of the first list (2017-11-03) that no released schema has: they exist in ``native_ref`` alone.

No runtime takes a model with them (but for Scale, which ONNX Runtime kept), so that every backend except the
reference's own interpreter is unsupported; what they mean is checked against loops in ``test_vanished.py``.  Where the
documentation says nothing of a shape, type or default, what is drawn spells it out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BOOL, F32, I32, I64, DType, of
from harness.core.errors import RuleError
from harness.declare import Call, Checks, Context, Draw, Evaluation, Sampling, Spelling, T, bounded, exact, rounded
from harness.tolerance import gamma
from suites.onnx import op
from suites.onnx.codecs import ToType
from suites.semantics import conv, variants
from suites.semantics import norm as n
from suites.semantics.integers import whole

Array = np.ndarray
SOURCE = "ONNX operators of 2017-11-03"


def _draw_scale(d: Draw) -> dict[str, Any]:
    out: dict[str, Any] = {"input": T(d.shape(), "unit")}
    if d.bool():
        out["scale"] = d.pick((0.5, 1.0, -2.0, 0.1, 3.25))
    return out


op(
    "Scale",
    Evaluation(lambda c: c.inputs["input"].astype(np.float64) * c.attr("scale"), rounded(1), SOURCE),
    Sampling(_draw_scale),
)


def _no_direction(c: Call) -> str | None:
    return None if (c.inputs["input"] != 0).any(-1).all() else "a row of zeros has no direction"


op(
    "Normalize",
    n.lp_norm,
    Spelling(x="input", fixed={"axis": -1, "p": 2}),
    Sampling(ranks=(2, 2)),
    Checks(source=SOURCE, ambiguous=_no_direction, breaks={"order-known": None, "axis-in-range": None}),
)


def _draw_spatial_bn(d: Draw) -> dict[str, Any]:
    """is_test: 'If set to nonzero, run spatial batch normalization in test mode'; momentum is of running statistics."""
    v = variants.batch_norm.derive(d)
    out = {"X": v["x"], **{n: v[n] for n in ("scale", "bias", "mean", "var", "epsilon")}}
    if not v["training"] or d.bool():
        out["is_test"] = int(not v["training"])
    return out | ({"momentum": v["momentum"]} if d.bool() else {})


op(
    "SpatialBN",
    variants.batch_norm,
    Sampling(_draw_spatial_bn, outs=lambda d, v: 5 if not v.get("is_test") and "momentum" in v and d.bool() else 1),
    Checks(source=SOURCE, ambiguous=variants.saved_open),
    x="X",
    scale="scale",
    bias="bias",
    mean="mean",
    var="var",
    training=variants.NotFlag("is_test"),
)


# -- a filter that moves over its output


def _draw_transposed(d: Draw) -> dict[str, Any]:
    v = conv.conv_transpose.derive(d)
    w = v["w"].shape
    out: dict[str, Any] = {"X": v["x"], "filter": v["w"], "bias": T((w[1] * v["groups"],))}
    if v["groups"] > 1 or d.bool():
        out["group"] = v["groups"]
    if d.bool():
        out["kernel_shape"] = list(w[2:])
    return out | {k: list(v[k]) for k in ("strides", "dilations", "pads") if v[k] is not None}


op(
    "Caffe2ConvTranspose",
    conv.conv_transpose,
    Spelling(x="X", w="filter", b="bias", groups="group", fixed={"padding": "explicit", "odd": "upper_end"}),
    Sampling(_draw_transposed),
    Checks(agrees={"kernel_shape": lambda c: list(c.inputs["filter"].shape[2:])}, source=SOURCE),
)


# -- fully connected


def _matrix(a: Array, axis: int) -> Array:
    if not 0 <= axis <= a.ndim:
        raise RuleError("axis-in-range", f"axis {axis} of rank {a.ndim}")
    return a.reshape(*(int(np.prod(s, dtype=np.int64)) for s in (a.shape[:axis], a.shape[axis:])))


def _operands(c: Call) -> tuple[Array, Array, Array]:
    x = _matrix(c.inputs["X"].astype(np.float64), int(c.attr("axis")))
    w = _matrix(c.inputs["W"].astype(np.float64), int(c.attr("axis_w")))
    b = c.inputs["b"].astype(np.float64)
    if x.shape[1] != w.shape[1] or b.shape != w.shape[:1]:
        raise RuleError("dimensions-agree", f"{list(x.shape)}, {list(w.shape)} and {list(b.shape)}")
    return x, w, b


def _fc(c: Call) -> Array:
    x, w, b = _operands(c)
    return x @ w.T + b


def _fc_bound(ctx: Context) -> Array:
    x, w, b = (np.abs(v) for v in _operands(ctx.call))
    return gamma(x.shape[1] + 2, ctx.acc_u) * (x @ w.T + b) + ctx.ulp


def _split(d: Draw, size: int) -> tuple[int, ...]:
    """A factorisation of an extent into one or two axes."""
    f = d.pick([k for k in range(1, size + 1) if size % k == 0])
    return (size,) if d.bool() else (f, size // f)


def _draw_fc(d: Draw) -> dict[str, Any]:
    m, k, units = d.int(1, 4), d.pick((1, 4, 6, 8)), d.int(1, 5)
    if d.chance(12):
        units = d.pick((17, 130, 300))
    rows, out_rows = _split(d, m), _split(d, units)
    columns, out_columns = _split(d, k), _split(d, k)
    if d.empty:
        rows, out_rows = ((0, *x[1:]) if d.bool() else x for x in (rows, out_rows))
        if d.bool():
            columns, out_columns = d.pick((((0,), (0,)), ((2, 0), (0,)), ((0, 1), (2, 0))))
    elif d.chance(8):  # one row, of no axis or of one
        rows = ()
        columns, out_columns = ((), (1,)) if d.bool() else (columns, out_columns)
    elif d.chance(8):
        out_rows = ()
        columns, out_columns = ((1,), ()) if d.bool() else (columns, out_columns)
    if d.chance(8):  # more axes
        columns, out_columns = ((*x, *(1,) * d.int(0, 4)) for x in (columns, out_columns))
        rows = (*rows, *(1,) * d.int(0, 2))
    units = int(np.prod(out_rows, dtype=np.int64))
    out: dict[str, Any] = {
        "X": T((*rows, *columns), "unit"),
        "W": T((*out_rows, *out_columns), "unit"),
        "b": T((units,), "unit"),
    }
    for name, part in (("axis", rows), ("axis_w", out_rows)):
        if len(part) != 1 or d.bool():
            out[name] = len(part)
    return out


op(
    "FC",
    Evaluation(_fc, bounded(_fc_bound, "gamma(K + 2) (|x| |w| + |b|) + ulp"), SOURCE),
    Sampling(_draw_fc),
    Checks(stated={"b": "n"}),
)


# -- constants


def _extents(c: Call, given: Any) -> tuple[int, ...]:
    """The shape by attribute; or that of the input, or its values, with ``extra_shape`` behind."""
    if given is None:
        if c.attr("shape") is None or c.attr("extra_shape"):
            raise RuleError("shape-or-input", "without an input the attribute shape alone tells the shape")
        return tuple(c.attr("shape"))
    if c.attr("shape") is not None:
        raise RuleError("shape-or-input", "shape and an input at the same time")
    own = [int(v) for v in np.asarray(given).ravel()] if c.attr("input_as_shape") else list(given.shape)
    return (*own, *(c.attr("extra_shape") or ()))


def _filled(c: Call) -> Array:
    shape, dtype = _extents(c, c.inputs.get("input")), _fill_type(c)
    filled = np.full(shape, c.attr("value"), np.float64)
    return whole(filled, np.zeros(0, dtype.np)) if dtype.kind in "iu" else filled.astype(dtype.np)


def _fill_type(c: Call, i: int = 0) -> DType:
    return ToType("dtype").decode(c) or F32


def _draw_shape(d: Draw, slot: str, types: Any = None) -> tuple[dict[str, Any], tuple[int, ...]]:
    shape = tuple(d.int(0 if d.chance(8) else 1, 3) for _ in range(d.int(0, 3)))
    how = d.int(0, 2)
    if d.chance(12):  # nothing, or many
        shape = d.pick(((0, 2**31 - 1), (3, 700), (1, 1, 1, 0))) if how == 0 else d.pick(((0, 1, 1, 0), (3, 700)))
    if how == 0:
        return {"shape": list(shape)}, shape
    extra = [d.int(1, 3) for _ in range(d.int(0, 2))] if not d.chance(8) else d.pick(([0], [0, 2**31 - 1], [2, 0]))
    out: dict[str, Any] = {"extra_shape": extra} if extra or d.bool() else {}
    if how == 1:
        out[slot] = T(shape, "unit" if types is None else None)
        if d.chance(3):
            out["input_as_shape"] = 0
    else:
        out |= {slot: T((len(shape),), values=list(shape)), "input_as_shape": 1}
    return out, (*shape, *extra)


def _draw_fill(d: Draw) -> dict[str, Any]:
    out, _ = _draw_shape(d, "input", d.types)
    if out.get("input_as_shape") and d.types["T1"] is BOOL:
        d.types["T1"] = I64
    dtype = d.pick((F32, I32, I64, BOOL))
    out["value"] = float(d.int(0, 1) if dtype is BOOL else d.int(-9, 9))
    if dtype is not F32 or d.bool():
        out["dtype"] = dtype
    return out


op("ConstantFill", Evaluation(_filled, exact(), SOURCE), Spelling(out_dtype=_fill_type), Sampling(_draw_fill))


def _given(c: Call) -> Array:
    shape, values = _extents(c, c.inputs.get("shape_like")), c.attr("values")
    if len(values) != int(np.prod(shape, dtype=np.int64)):
        raise RuleError("count-agrees", f"{len(values)} values for {list(shape)}")
    return np.array(values, np.float64).reshape(shape)


def _draw_given(d: Draw) -> dict[str, Any]:
    out, shape = _draw_shape(d, "shape_like")
    return out | {"values": [d.int(-20, 20) / 8 for _ in range(int(np.prod(shape, dtype=np.int64)))]}


def _given_type(c: Call, i: int = 0) -> DType:
    x = c.inputs.get("shape_like")
    return F32 if x is None else of(x)


op(
    "GivenTensorFill",
    Evaluation(_given, exact(), SOURCE),
    Spelling(out_dtype=_given_type),
    Sampling(_draw_given, why="the input, which the documentation also calls shape, is shape_like here"),
)

# -- one step of a recurrence


def _unit(c: Call) -> Array:
    """The gates arrive added up: the second third updates, the last is the candidate; the first was used before."""
    h, g = c.inputs["hidden_prev"].astype(np.float64), c.inputs["gates"].astype(np.float64)
    lengths, t = c.inputs["seq_lengths"].ravel(), float(np.ravel(c.inputs["t"])[0])
    size = h.shape[-1]
    if g.shape[-1] != 3 * size or g.shape[:-1] != h.shape[:-1] or lengths.size != h.shape[-2]:
        raise RuleError("gates-agree", f"{list(h.shape)}, {list(g.shape)} and {lengths.size} lengths")
    with np.errstate(all="ignore"):
        u = 1.0 / (1.0 + np.exp(-g[..., size : 2 * size]))
    new = u * h + (1.0 - u) * np.tanh(g[..., 2 * size :])
    past = np.zeros_like(h) if c.attr("drop_states") else h
    return np.where((lengths > t)[:, None], new, past)


def _unit_bound(ctx: Context) -> Array:
    return 16 * ctx.acc_u * (np.abs(ctx.call.inputs["hidden_prev"].astype(np.float64)) + 1.0) + ctx.ulp


def _draw_unit(d: Draw) -> dict[str, Any]:
    batch, size = d.int(1, 3), d.int(1, 4)
    front = (1,) * d.int(0, 6) if d.chance(6) else (1,)
    if d.empty:
        at = d.int(0, 2)
        batch, size = (0 if k == at else v for k, v in enumerate((batch, size)))
        front = (0,) if at == 2 else front
    elif d.chance(24):
        batch = d.pick((17, 130, 600))
    out: dict[str, Any] = {
        "hidden_prev": T((*front, batch, size), "unit"),
        "gates": T((*front, batch, 3 * size), "unit" if d.chance(3) else "uniform:-4:4"),
        "seq_lengths": T((batch,), values=[d.int(0, 4) for _ in range(batch)]),
        "t": T((1,) * (d.int(0, 8) if d.chance(6) else 1), values=[d.int(0, 3)]),
    }
    if d.bool():
        out["drop_states"] = d.int(0, 1)
    return out


op(
    "GRUUnit",
    Evaluation(_unit, bounded(_unit_bound, "16 u (|h| + 1) + ulp"), SOURCE),
    Sampling(_draw_unit),
    Checks(stated={"hidden_prev": "*l n d", "gates": "*l n g", "seq_lengths": "n"}),
)
