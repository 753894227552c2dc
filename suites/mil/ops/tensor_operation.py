"""Joining, splitting, filling, ordering, padding: the iOS 15 module of that name and its later versions."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, of
from harness.declare import (
    Build,
    Call,
    Checks,
    Context,
    Draw,
    Evaluation,
    Fn,
    Sampling,
    Slotted,
    Spelling,
    T,
    Tolerance,
    accepted,
    exact,
    other_shape,
)
from suites.mil import op
from suites.mil.codecs import FAR, heavy, ints, maybe, need, scalar, typed, vector
from suites.semantics import indexing, movement
from suites.semantics.indexing.order import any_of_equals, winners
from suites.semantics.suppression import draw_padded, padded_nms

# -- joining and splitting


def _concat(call: Call) -> Any:
    """Scalars count as vectors of one element, which type inference of the package makes [n] of; conversions of
    networks with dynamic shapes put them together so."""
    join = movement.concat_interleaved if call.attr("interleave") else movement.concat
    values = call.inputs["values"]
    if all(v.ndim == 0 for v in values):
        values = [v.reshape(1) for v in values]
    return join(values, axis=scalar(call, "axis"))


def _draw_concat(d: Draw) -> dict[str, Any]:
    if d.chance(8):
        out: dict[str, Any] = {"values": [T(()) for _ in range(d.int(1, 4))], "axis": d.pick((0, -1))}
        maybe(d, out, "interleave", d.chance(3), False)
        return out
    shape = d.shape(1)
    axis = d.axis(len(shape))
    a, interleave = axis % len(shape), d.chance(3)
    shapes = [shape]
    for _ in range(d.int(0, 3)):
        shapes.append(shape if interleave else (*shape[:a], d.dim(1), *shape[a + 1 :]))
    out = {"values": [T(s) for s in shapes], "axis": axis}
    maybe(d, out, "interleave", interleave, False)
    return out


def _break_extents(d: Draw) -> dict[str, Any]:
    shape = d.shape(2, lo=1)
    return {"values": [T(shape), T((*shape[:-1], shape[-1] + 1))], "axis": 0}


def _break_axis(slot: str, extra: int = 0) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        shape = d.shape(1, 3, lo=1)
        r = len(shape) + extra
        many = d.version.schema.input(slot).variadic
        return {slot: [T(shape), T(shape)] if many else T(shape), "axis": d.pick((r, -r - 1))}

    return draw


op(
    "concat",
    Evaluation(_concat, exact()),
    Sampling(_draw_concat),
    Checks(breaks={"same-other-extents": _break_extents, "axis-in-range": _break_axis("values")}),
)


def _draw_stack(d: Draw) -> dict[str, Any]:
    shape = d.shape(0, d.max_rank - 1)
    return {"values": [T(shape) for _ in range(d.int(1, 4))], "axis": d.axis(len(shape) + 1)}


op(
    "stack",
    movement.stack,
    Sampling(_draw_stack),
    Checks(breaks={"same-shape": _break_extents, "axis-in-range": _break_axis("values", 1)}),
    xs="values",
)


def _split(call: Call) -> list[Any]:
    x, axis = call.inputs["x"], scalar(call, "axis")
    sizes, count = ints(call, "split_sizes"), scalar(call, "num_splits")
    need(sizes is not None or count is not None, "sizes-or-count")
    parts = count if sizes is None else len(sizes)
    need(parts == call.n_outs, "result-of-each-part", f"{parts} parts, {call.n_outs} results")
    if sizes is None:
        return movement.split_even(x, axis=axis, count=count)
    need(count is None or count == len(sizes), "count-of-sizes", f"{count} for {sizes}")
    return movement.split(x, axis=axis, sizes=sizes)


def _draw_split(d: Draw) -> dict[str, Any]:
    even, n = d.bool(), d.pick((1, 2, 3, 4, 1, 2, 3, 4, 10))
    sizes = [d.dim(1, 5)] * n if even else [d.dim(1, 5) for _ in range(n)]
    if d.chance(12):
        even, sizes = False, [*sizes[1:], 0]
    shape = d.shape(1, lo=1)
    axis = d.axis(len(shape))
    a = axis % len(shape)
    out: dict[str, Any] = {"x": T((*shape[:a], sum(sizes), *shape[a + 1 :])), "axis": axis, "@outs": n}
    how = d.int(0, 2) if even else d.int(1, 2)
    if how != 1:
        out["num_splits"] = n
    if how != 0:
        out["split_sizes"] = sizes
    return out


def _break_split(d: Draw) -> dict[str, Any]:
    n = d.dim(1, 5)
    return {"x": T((2 * n + 1, 2)), "axis": 0, "split_sizes": [n, n], "@outs": 2}


def _break_even(d: Draw) -> dict[str, Any]:
    return {"x": T((2 * d.dim(1, 5) + 1, 2)), "axis": 0, "num_splits": 2, "@outs": 2}


op(
    "split",
    Evaluation(_split, exact()),
    Sampling(_draw_split),
    Checks(breaks={"sizes-sum": _break_split, "count-divides": _break_even}),
)
op(
    "tile",
    movement.tile,
    Sampling(ranks=(1, 5)),
    Checks(breaks={"repeats-nonnegative": lambda d: {"x": T((2, 3)), "reps": vector([1, d.pick((-1, -2))])}}),
    repeats="reps",
)


# -- filling


def _value(call: Call, name: str, letter: str, default: float) -> np.ndarray:
    """A typed scalar: its dtype is the drawn one, f32 when the parameter is left out."""
    v = call.get(name)
    if isinstance(v, np.ndarray):
        return v.reshape(())
    d = BY_NAME[call.attrs.get(f"@{letter}", "f32")] if v is not None else BY_NAME["f32"]
    return np.array(default if v is None else v, d.np)


def _draw_value(d: Draw, out: dict[str, Any], name: str, letter: str) -> None:
    if not d.chance(4):
        dt = typed(d, letter)
        out[name] = d.bool() if dt.kind == "b" else d.int(-8, 8) if dt.kind == "i" else d.int(-64, 64) / 8
        out[f"@{letter}"] = dt.name


def _fill(call: Call) -> Any:
    """ "shape[k] > 0", which the package itself does not keep in the programs that it makes of spectra of nothing."""
    shape = ints(call, "shape") or ()
    need(call.args is None or all(n > 0 for n in shape), "extents-positive", f"shape {list(shape)}")
    return movement.fill(_value(call, "value", "T", 0.0), shape=shape)


def _draw_fill(d: Draw) -> dict[str, Any]:
    """ "shape[k] > 0"."""
    if heavy(d, "T"):
        return {"shape": vector(d.pick(([FAR], [1, FAR], [FAR, 1]))), "value": True, "@T": d.types["T"].name}
    shape = d.shape(1, lo=1)
    out: dict[str, Any] = {"shape": vector(shape)}
    _draw_value(d, out, "value", "T")
    return out


def _break_negative(d: Draw) -> dict[str, Any]:
    return {"shape": vector([*d.shape(1, 3, lo=1), -2], const=True), "value": 1.0, "@T": "f32"}


op(
    "fill",
    Evaluation(_fill, exact()),
    Spelling(out_dtype=lambda c, i: BY_NAME[c.attrs.get("@T", "f32") if c.has("value") else "f32"]),
    Sampling(_draw_fill),
    Checks(breaks={"extents-positive": _break_negative}),
)


def _draw_fill_like(d: Draw) -> dict[str, Any]:
    out: dict[str, Any] = {"ref_tensor": T(d.shape())}
    _draw_value(d, out, "value", "U")
    return out


op(
    "fill_like",
    Evaluation(lambda c: movement.fill_like(c.inputs["ref_tensor"], _value(c, "value", "U", 0.0)), exact()),
    Spelling(out_dtype=lambda c, i: BY_NAME[c.attrs.get("@U", "f32") if c.has("value") else "f32"]),
    Sampling(_draw_fill_like),
)


def _one_hot(call: Call) -> Any:
    on, off = _value(call, "on_value", "T", 1), _value(call, "off_value", "T", 0)
    kind = on.dtype if call.has("on_value") else off.dtype if call.has("off_value") else np.dtype(np.int32)
    return indexing.one_hot(
        call.inputs["indices"],
        on.astype(kind),
        off.astype(kind),
        axis=scalar(call, "axis"),
        depth=scalar(call, "one_hot_vector_size"),
    )


def _draw_one_hot(d: Draw) -> dict[str, Any]:
    if heavy(d, "T"):
        size = {"one_hot_vector_size": T((), values=[FAR + 1])}
        return {"indices": T((1,), values=[FAR]), **size, "on_value": True, "off_value": False, "@T": d.types["T"].name}
    depth, shape = d.int(1, 9), d.shape(0, d.max_rank - 1, lo=1)
    out: dict[str, Any] = {"indices": T(shape, f"index:{depth}"), "one_hot_vector_size": T((), values=[depth])}
    maybe(d, out, "axis", d.int(-1, len(shape)), -1)
    dt = typed(d, "T")
    on, off = (True, False) if dt.kind == "b" else (d.int(-8, 8), d.int(-8, 8))
    out |= {"on_value": on, "off_value": off, "@T": dt.name}
    if d.chance(4):  # both left out: ones and zeros of int32
        for k in ("on_value", "off_value", "@T"):
            out.pop(k)
    elif dt.kind == "i" and d.bool():  # the other one's default is of that type
        out.pop(d.pick(("on_value", "off_value")))
    return out


op(
    "one_hot",
    Evaluation(_one_hot, exact()),
    Spelling(out_dtype=lambda c, i: BY_NAME[c.attrs.get("@T", "i32")]),
    Sampling(_draw_one_hot),
)


def _open_count(c: Call) -> str | None:
    """The page: a sequence as NumPy's.  numpy.arange's text has both the values of the half-open interval, of which
    start is one, and ceil((stop - start) / step) of them, which is none."""
    start, end, step = (float(c.inputs[k].ravel()[0]) for k in ("start", "end", "step"))
    if not np.isinf(step) or not np.isfinite([start, end]).all() or (end - start) * step <= 0:
        return movement.count_in_type(*c.version.decode(c))
    why = "an infinite step: start alone, or nothing"
    return other_shape(why, 0, np.array([start]))


_WHOLE_ENDS = (  # start, end, step of integers: few elements at the ends of the type
    (2**31 - 4, 2**31 - 1, 1),
    (-(2**31), -(2**31) + 5, 2),
    (-1, -(2**31), -(2**30)),
    (2, -(2**31), -(2**31)),
    (-(2**31), -1, 2**30),
    (0, 2**31 - 1, 2**31 - 1),
    (2**24 + 2, 2**24 + 9, 3),
    (0, 2**25, 2**24 + 2),
    (-1, -(2**31), -(2**31)),
    (-(2**31), -(2**31) + 1, 2**31 - 1),
    (-(2**31) + 3, -(2**31), -1),
    (-(2**31), 2**31 - 1, -1),
    (-(2**31), 2**31 - 1, -1),
)


def _draw_range(d: Draw) -> dict[str, Any]:
    """As the meaning draws; now and then at the ends of the type, or one number for two of the three."""
    v = movement.range_of.derive(d)
    out = {"start": v["start"], "end": v["limit"], "step": v["delta"]}
    dt = d.dtype("start")
    if d.chance(12):  # one number for two
        n = T((), values=[d.int(1, 3)], const=True)
        other = {
            "end": T((), values=[9], const=True),
            "start": T((), values=[0], const=True),
            "step": T((), values=[1], const=True),
        }
        a, b = d.pick((("start", "end"), ("start", "step"), ("end", "step")))
        return {**other, a: n, b: n, "@same": {b: a}}
    if not d.chance(5):
        return out
    if dt.kind == "f":
        top, tiny = (65504.0, 2.0**-24) if dt.name == "f16" else (3.4028234663852886e38, 2.0**-140)
        ends = [(0.0, top, top / 2), (top, 0.0, -top), (0.0, -top, -top / 2), (-top, 0.0, top), (0.0, 4 * tiny, tiny)]
        ends += [(-0.0, 2.0, 1.0), (-2.0, -0.0, 1.0), (0.0, 2.0, 0.5), (0.5, 2.5, 0.5), (0.0, top, top)]
        if dt.name == "f32":
            ends += [(2.0**24 + 2, 2.0**24 + 8, 2.0), (0.0, 2.0**26, 2.0**25)]
    else:
        ends = list(_WHOLE_ENDS)
    return {k: T((), values=[x]) for k, x in zip(out, d.pick(ends))}


op(
    "range_1d",
    movement.range_of,
    Sampling(_draw_range),
    Checks(
        ambiguous=_open_count,
        breaks={
            "step-nonzero": lambda d: {
                k: T((), values=[n], const=True) for k, n in (("start", 0), ("end", 3), ("step", 0))
            }
        },
    ),
    limit="end",
    delta="step",
)


# -- ordering


def _order(name: str = "ascending") -> Fn:
    def encode(value: bool, b: Build) -> None:
        b.attr(name, not value)

    return Fn(lambda c: not c.attr(name, False), encode)


op("argsort", indexing.argsort, Checks(error=accepted(any_of_equals)), descending=_order())


def _draw_topk(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, lo=1)
    axis = d.axis(len(shape))
    n = shape[axis]
    k = d.pick((1, n, d.int(1, n)))
    schema = d.version.schema
    out: dict[str, Any] = {"x": T(shape)}
    if "output_indices_dtype" in schema.attrs and k == n and d.bool():
        k = -1
    maybe(d, out, "k", k, 1)
    maybe(d, out, "axis", axis, -1)
    maybe(d, out, "ascending", d.bool(), False)
    out["@outs"] = 2
    if "sort" in schema.attrs:
        maybe(d, out, "sort", not d.chance(4), True)
        if d.chance(4):
            out["return_indices"] = d.bool()
        if out.get("return_indices") is False:
            out["@outs"] = 1
        elif "output_indices_dtype" in schema.attrs and d.bool():
            out["output_indices_dtype"] = BY_NAME[d.pick(("i32", "u16"))]
    return out


def _break_k(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, 3, lo=1)
    below = -2 if "output_indices_dtype" in d.version.schema.attrs else -1  # from iOS 17 on -1 takes all
    k = d.pick((below, below - 1, -(2**31))) if d.chance(3) else shape[-1] + d.int(1, 3)
    return {"x": T(shape), "k": k, "@outs": 2}


def _break_top_axis(d: Draw) -> dict[str, Any]:
    return {"x": T(d.shape(1, 3, lo=1)), "k": 1, "axis": d.pick((3, -4)), "@outs": 2}


def _k(call: Call) -> int:
    k, axis = scalar(call, "k", 1), scalar(call, "axis", -1)
    return call.inputs["x"].shape[axis] if k == -1 and "output_indices_dtype" in call.version.schema.attrs else k


def _index_type(call: Call, results: list[Any]) -> list[Any]:
    d = call.attr("output_indices_dtype")
    d = BY_NAME[d] if isinstance(d, str) else d
    alone = call.attr("return_indices", True) is False
    need(not (alone and "output_indices_dtype" in call.attrs), "type-of-what-is-returned", "there are no indices")
    return [results[0], results[1].astype(d.np if d is not None else np.int32)]


def _topk_types(call: Call, i: int) -> Any:
    """Values keep the type of x; indices have the chosen one."""
    if i == 0:
        return of(call.inputs["x"])
    d = call.attr("output_indices_dtype", "i32")
    return BY_NAME[d] if isinstance(d, str) else d


def _break_alone(d: Draw) -> dict[str, Any]:
    """ "It can only be set when return_indices is True"."""
    return {
        "x": T(d.shape(1, 3, lo=1)),
        "return_indices": False,
        "@outs": 1,
        "output_indices_dtype": BY_NAME[d.pick(("i32", "u16"))],
    }


_TOPK = (
    Spelling(
        k=Fn(_k), largest=_order(), sorted=Fn(lambda c: c.attr("sort", True)), out=_index_type, out_dtype=_topk_types
    ),
    Sampling(_draw_topk),
    Checks(error=(accepted(winners, "the k winners in order, any order with sort off"), accepted(any_of_equals))),
)
op(
    "topk",
    indexing.topk,
    *_TOPK,
    Checks(breaks={"k-in-range": _break_k, "axis-in-range": _break_top_axis}),
    until="ios16",
)
op(
    "topk",
    indexing.topk,
    *_TOPK,
    Checks(
        breaks={
            "k-in-range": _break_k,
            "axis-in-range": _break_top_axis,
            "type-of-what-is-returned": _break_alone,
        }
    ),
    since="ios17",
)


def _to_i32(call: Call, results: list[Any]) -> list[Any]:
    return [r.astype(np.int32) for r in results]


def _draw_non_zero(d: Draw) -> dict[str, Any]:
    return {"x": T(()) if d.chance(16) else indexing.nonzero_rows.derive(d)["x"]}


op("non_zero", indexing.nonzero_rows, Spelling(out=_to_i32), Sampling(_draw_non_zero))
op("shape", movement.shape_of, Spelling(out=_to_i32))
op("identity", movement.identity)
op("flatten2d", movement.flatten)
op("band_part", movement.band_part, Checks(breaks={"matrices": lambda d: {"x": T(d.shape(1, 1, lo=1))}}))


# -- padding: one pair for each of the last axes, (before, after) together


def _pad(call: Call) -> Any:
    x, amounts, mode = call.inputs["x"], ints(call, "pad") or (), call.attr("mode", "constant")
    n = len(amounts) // 2
    need(len(amounts) == 2 * n and n <= x.ndim, "pairs-within-rank", f"{amounts} for rank {x.ndim}")
    axes = range(x.ndim - n, x.ndim)
    for i, a in enumerate(axes):
        top = {"reflect": x.shape[a] - 1, "replicate": x.shape[a]}.get(mode)
        need(top is None or max(amounts[2 * i : 2 * i + 2]) <= top, f"{mode}-within-axis", f"{amounts} of {x.shape}")
    before = [0] * (x.ndim - n) + list(amounts[0::2])
    after = [0] * (x.ndim - n) + list(amounts[1::2])
    mode = {"replicate": "edge"}.get(mode, mode)
    return movement.pad_axes(x, before, after, mode, x.dtype.type(scalar(call, "constant_val", 0.0)))


def _draw_pad(d: Draw) -> dict[str, Any]:
    mode = d.pick(("constant", "constant", "reflect", "replicate"))
    shape = d.shape(1, lo=1)
    run_time = d.chance(4)
    n = len(shape) if run_time else d.int(1, len(shape))
    amounts: list[int] = []
    room = 4096 // max(1, int(np.prod(shape)))
    for m in shape[len(shape) - n :]:
        top = {"reflect": m - 1, "replicate": m, "constant": 4}[mode]
        b, a = d.int(0, min(top, 4)), d.int(0, min(top, 4))
        if (m + a + b) > m * room:
            a = b = 0
        room = max(1, room * m // (m + a + b))
        amounts += [b, a]
    out: dict[str, Any] = {"x": T(shape), "pad": vector(amounts, const=not run_time)}
    maybe(d, out, "mode", mode, "constant")
    if d.bool():
        out["constant_val"] = d.int(-32, 32) / 8
    return out


def _break_reflect(d: Draw) -> dict[str, Any]:
    n = d.dim(1, 6)
    return {"x": T((2, n)), "pad": vector([n, 0], const=True), "mode": "reflect"}


def _break_pairs(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, 3, lo=1)
    return {"x": T(shape), "pad": vector([1] * (2 * len(shape) + 2), const=True)}


op(
    "pad",
    Evaluation(_pad, exact()),
    Sampling(_draw_pad),
    Checks(breaks={"reflect-within-axis": _break_reflect, "pairs-within-rank": _break_pairs}),
)


# -- non-maximum suppression: iOS 17 has the boxes last, and neither a score threshold nor a count


def _unusual(d: Draw, b: int, n: int, k: int) -> dict[str, Any]:
    """Coordinates or scores that no image has, in one place or at either end."""
    top = {"f16": 65504.0, "f32": 3.4028234663852886e38}[d.dtype("boxes").name]
    name, last = d.pick((("boxes", 4), ("scores", k)))
    values = [float(i * 7 % 11) + i / 64 for i in range(b * n * last)]
    for at in d.pick(((0,), (-1,), (0, -1))):
        values[at] = d.pick((0.5, 1.5, top, -top, np.nan))
    if d.bool() and len(values) > 2 and np.isfinite(values[0]):
        values[1] = -values[0]
    return {name: T((b, n, last), values=values)}


def _nms_open(c: Call) -> str | None:
    """Where an area or an order is not a number, or overflows, the page says nothing; nor of equal scores."""
    boxes, scores = (c.inputs[n].astype(np.float64) for n in ("boxes", "scores"))
    axis = 1 if c.version.version == "ios17" else 2
    if not (np.abs(boxes) < (100 if c.inputs["boxes"].dtype == np.float16 else 1e15)).all():
        return "boxes without an area"
    best = scores.max(axis, initial=-np.inf)
    if np.isnan(scores).any() or any(len(set(row)) < len(row) for row in best.tolist()):
        return "scores without an order"
    return None


def _draw_nms(last: bool) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        v = draw_padded(d)
        if d.chance(5):
            v.update(_unusual(d, *v["scores"].shape))
        out: dict[str, Any] = {
            "iou_threshold": v["iou_threshold"],
            "max_boxes": v["max_boxes"],
            "@outs": 3 if last else 4,
        }
        maybe(d, out, "per_class_suppression", v["per_class"], False)
        if not last:
            out["score_threshold"] = v["score_threshold"]
        for name in ("boxes", "scores"):
            t = v[name]
            if last:
                flat = np.array(t.values).reshape(t.shape).transpose(0, 2, 1)
                t = T(flat.shape, values=flat.ravel().tolist())
            out[name] = t
        return out

    return draw


def _break_nms(last: bool) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        out = {
            "boxes": T((1, 4, 3) if last else (1, 3, 4)),
            "scores": T((1, 2, 5) if last else (1, 5, 2)),
            "iou_threshold": 0.5,
            "max_boxes": 2,
            "@outs": 3 if last else 4,
        }
        return out if last else {**out, "score_threshold": 0.0}

    return draw


def _nms_types(call: Call, i: int) -> Any:
    return of(call.inputs["boxes"]) if i < 2 else BY_NAME["i32"]


def _swap(x: Any) -> Any:
    return x.transpose(0, 2, 1)


def _survivors(last: bool, i: int) -> Tolerance:
    """A box that was removed is no padding, though an index of 0 may be: iOS 17 has no count, and more boxes than
    survive would go unseen."""

    def kept(ctx: Context, actual: np.ndarray) -> np.ndarray:
        index, actual = padded_nms(**ctx.inputs, **ctx.params)[2], np.asarray(actual)
        there = index >= 0
        if i < 2:
            there = there[:, None, :] if last else there[:, :, None]
            return (actual == ctx.wide) | ~there
        boxes = ctx.inputs["boxes"].shape[1]
        free = [(a <= 0) | (a >= boxes) | np.isin(a, k[k >= 0]) for a, k in zip(actual, index)]
        return (actual == ctx.wide) | (~there & np.reshape(free, index.shape))

    return accepted(kept, "the boxes that survive, by falling score; what the rest is padded with is not said")


_NMS = Spelling(per_class="per_class_suppression", out_dtype=_nms_types)
op(
    "non_maximum_suppression",
    padded_nms,
    _NMS,
    Sampling(_draw_nms(False)),
    Checks(
        error=(*(_survivors(False, i) for i in range(3)), exact()),
        ambiguous=_nms_open,
        breaks={"shapes-agree": _break_nms(False)},
    ),
    until="ios15",
)
op(
    "non_maximum_suppression",
    padded_nms,
    _NMS,
    Spelling(
        boxes=Slotted("boxes", _swap),
        scores=Slotted("scores", _swap),
        out=lambda c, r: [_swap(r[0]), _swap(r[1]), r[2]],
    ),
    Sampling(_draw_nms(True)),
    Checks(
        error=tuple(_survivors(True, i) for i in range(3)),
        ambiguous=_nms_open,
        breaks={"shapes-agree": _break_nms(True)},
    ),
    since="ios17",
)
