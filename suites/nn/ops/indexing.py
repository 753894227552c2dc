"""Reading and writing by index; order.  Indices are blobs of floats.

Source: NeuralNetwork.proto, Gather*, Scatter*, TopK, ArgSort, WhereNonZero, OneHot.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Fn, Map, Sampling, Slotted, Spelling, T, accepted, underspecified
from suites.nn import op
from suites.nn.spell import Const, ints
from suites.semantics import coreml
from suites.semantics import indexing as s
from suites.semantics.indexing.order import any_of_equals, winners


def whole(slot: str) -> Slotted:
    """An index input."""
    return Slotted(slot, lambda x: x.astype(np.int64))


def _zeros_of_either_sign(d: Draw, values: list[float]) -> list[float]:
    """Positions, of which 0 may be -0."""
    return [-0.0 if v == 0 and d.bool() else v for v in values]


def _among_itself(d: Draw, *names: str) -> dict[str, Any]:
    """One blob that is read, or written, at the positions that it holds itself; the last names are given it too."""
    n = d.int(1, 5)
    x = T((n,), values=[float(d.int(0, n - 1)) for _ in range(n)], const=False)
    return {**dict.fromkeys(names, x), "@same": dict.fromkeys(names[1:], names[0])}


def _draw_gather(d: Draw) -> dict[str, Any]:
    """The ranks of data and indices make a result of rank 5 at most."""
    if d.chance(16):
        return {**_among_itself(d, "data", "indices"), "axis": 0}
    shape = d.shape(1)
    if d.chance(16):
        return {
            "data": T(shape),
            "indices": T((2,), values=_zeros_of_either_sign(d, [0.0, 0.0])),
            "axis": d.axis(len(shape)),
        }
    axis = d.axis(len(shape))
    like = d.part(1, 6 - len(shape))
    return {"data": T(shape), "indices": T(like, recipe=f"signed_index:{shape[axis]}"), "axis": axis}


def _no_such_axis(d: Draw) -> dict[str, Any]:
    return {"data": T((2, 3)), "indices": T((2,), values=[0.0, 1.0]), "axis": d.pick((2, -3))}


def _no_such_place(draw: Any, extent: Any) -> Any:
    def fn(d: Draw) -> dict[str, Any]:
        out = draw(d)
        shape = out["indices"].shape
        return {**out, "indices": T(shape, values=[float(extent(out))] * int(np.prod(shape)))}

    return fn


op(
    "gather",
    s.gather,
    Sampling(_draw_gather),
    Checks(
        breaks={
            "axis-in-range": _no_such_axis,
            "index-in-range": _no_such_place(_draw_gather, lambda o: o["data"].shape[o["axis"]]),
        }
    ),
    x="data",
    indices=whole("indices"),
)


def _draw_gather_nd(d: Draw) -> dict[str, Any]:
    """Index tuples [..., depth], now and then negative ones: the text says of other layers only that such ones
    count."""
    if d.chance(16):
        data = T((1,), values=[0.0], const=False)
        return {"data": data, "indices": data, "@same": {"indices": "data"}}
    shape = d.shape(1)
    depth = d.int(1, len(shape))
    lead = tuple(d.int(1, 4) for _ in range(d.int(0, min(4, 5 - len(shape[depth:])))))
    least = d.chance(12)
    values = [float(d.int(-n if least else 0, n - 1)) for _ in range(int(np.prod(lead))) for n in shape[:depth]]
    return {"data": T(shape), "indices": T((*lead, depth), values=_zeros_of_either_sign(d, values))}


def _below_zero(c: Call) -> str | None:
    return "a-negative-entry-of-a-tuple" if (c.inputs["indices"] < 0).any() else None


_TUPLE_TOO_LONG = {"indices": T((1, 2), values=[0.0, 0.0])}


op(
    "gatherND",
    s.gather_nd,
    Sampling(_draw_gather_nd),
    Checks(
        ambiguous=_below_zero,
        breaks={
            "index-in-range": _no_such_place(_draw_gather_nd, lambda o: max(o["data"].shape)),
            "tuple-within-rank": lambda d: {"data": T((3,)), **_TUPLE_TOO_LONG},
        },
    ),
    x="data",
    indices=whole("indices"),
)


def _like_data(c: Call) -> np.ndarray:
    """Extents agree with the data except along the axis."""
    x, i, axis = c.inputs[next(n for n in ("data", "container") if n in c.inputs)], c.inputs["indices"], c.attr("axis")
    if not -x.ndim <= axis < x.ndim:
        raise RuleError("axis-in-range", f"axis {axis} for rank {x.ndim}")
    if i.ndim != x.ndim or any(n != m for k, (n, m) in enumerate(zip(i.shape, x.shape)) if k != axis % x.ndim):
        raise RuleError("indices-like-data", f"indices {list(i.shape)} for {list(x.shape)} along {axis}")
    return i.astype(np.int64)


def _draw_along(d: Draw) -> dict[str, Any]:
    if d.chance(16):
        return {**_among_itself(d, "data", "indices"), "axis": d.pick((0, -1))}
    shape = list(d.shape(1))
    axis = d.axis(len(shape))
    n = shape[axis]
    like = [*shape]
    like[axis] = d.dim(1)
    if d.chance(16):
        zeros = _zeros_of_either_sign(d, [0.0] * int(np.prod(like)))
        return {"data": T(shape), "indices": T(like, values=zeros), "axis": axis}
    return {"data": T(shape), "indices": T(like, recipe=f"signed_index:{n}"), "axis": axis}


def _unlike(name: str, draw: Any) -> Any:
    def fn(d: Draw) -> dict[str, Any]:
        out = draw(d)
        out[name] = T((2, 3))
        out.update(indices=T((1, 2), values=[0.0, 0.0]), axis=0)
        if "updates" in out:
            out["updates"] = T((1, 2))
        return out

    return fn


op(
    "gatherAlongAxis",
    s.gather_elements,
    Sampling(_draw_along),
    Checks(
        breaks={
            "indices-like-data": _unlike("data", _draw_along),
            "axis-in-range": lambda d: {
                "data": T((2, 3)),
                "indices": T((2, 3), values=[0.0] * 6),
                "axis": d.pick((2, -3)),
            },
            "index-in-range": _no_such_place(_draw_along, lambda o: o["data"].shape[o["axis"]]),
        }
    ),
    x="data",
    indices=Fn(_like_data),
)

_MODES = {
    "none": "SCATTER_UPDATE",
    "add": "SCATTER_ADD",
    "sub": "SCATTER_SUB",
    "mul": "SCATTER_MUL",
    "div": "SCATTER_DIV",
    "max": "SCATTER_MAX",
    "min": "SCATTER_MIN",
}
_TABLE = Map("mode", _MODES)


def _places(d: Draw, n: int, count: int, once: bool) -> list[float]:
    """Indices into ``n`` elements, of either sign; ``once``: no two the same."""
    at = d.shuffle(range(n))[:count] if once else [d.int(0, n - 1) for _ in range(count)]
    return _zeros_of_either_sign(d, [float(i - n if d.chance(3) else i) for i in at])


def _folded(d: Draw, count: int, most: int) -> tuple[int, ...]:
    """``count`` as a shape of 1 to ``most`` axes."""
    shape = [count]
    for _ in range(d.int(0, most - 1) if d.bool() else 0):
        first = d.pick([k for k in range(1, shape[0] + 1) if shape[0] % k == 0])
        shape = [first, shape[0] // first, *shape[1:]]
    return tuple(shape)


def _written_with_itself(d: Draw) -> dict[str, Any]:
    """One blob in two of three places, or in all."""
    out = _among_itself(d, *d.pick(_SHARING))
    (n,) = next(v.shape for v in out.values() if isinstance(v, T))
    out.setdefault("container", T((n,)))
    out.setdefault("indices", T((n,), values=[float(i) for i in range(n)]))
    out.setdefault("updates", T((n,)))
    return {**out, "axis": 0, "mode": d.pick(("SCATTER_UPDATE", "SCATTER_ADD", "SCATTER_SUB"))}


_SHARING = (
    ("container", "indices"),
    ("container", "updates"),
    ("indices", "updates"),
    ("container", "indices", "updates"),
)


def _draw_scatter(d: Draw) -> dict[str, Any]:
    """Indices of rank 1 and above: their axes take the place of ``axis`` in the updates."""
    if d.chance(16):
        return _written_with_itself(d)
    shape = d.shape(1)
    axis, mode = d.axis(len(shape)), d.pick(tuple(_MODES.values()))
    n = shape[axis]
    once = mode == "SCATTER_UPDATE" and d.bool()
    at = _places(d, n, d.int(1, n) if once else d.dim(1, 6), once)
    like, a = _folded(d, len(at), 6 - len(shape)), axis % len(shape)
    return {
        "container": T(shape),
        "indices": T(like, values=at),
        "axis": axis,
        "mode": mode,
        "updates": T((*shape[:a], *like, *shape[a + 1 :]), recipe="positive" if mode == "SCATTER_DIV" else None),
    }


def _last(keys: np.ndarray) -> np.ndarray:
    """Positions of the rows of ``keys`` that no later row repeats, in order."""
    seen = {tuple(k): i for i, k in enumerate(keys.tolist())}
    return np.array(sorted(seen.values()), np.int64)


def _few_updates(n: int) -> dict[str, Any]:
    return {"container": T((3,)), "indices": T((2,), values=[0.0, 1.0]), "updates": T((n,))}


def _written(c: Call) -> tuple[np.ndarray, np.ndarray]:
    """Indices [n] and updates [..., n, ...].

    The text is a loop over the indices: of two updates of one place the later one stays.
    """
    x, axis = c.inputs["container"], c.attr("axis")
    i, u = c.inputs["indices"].astype(np.int64), c.inputs["updates"]
    if not -x.ndim <= axis < x.ndim:
        raise RuleError("axis-in-range", f"axis {axis} for rank {x.ndim}")
    a = axis % x.ndim
    if u.shape != (*x.shape[:a], *i.shape, *x.shape[a + 1 :]):
        raise RuleError("updates-fit", f"updates {list(u.shape)} for indices {list(i.shape)} into {list(x.shape)}")
    flat, u = i.reshape(-1), u.reshape(*x.shape[:a], -1, *x.shape[a + 1 :])
    if c.attr("mode") != "SCATTER_UPDATE":
        return flat, u
    keep = _last(np.where(flat < 0, flat + x.shape[a], flat)[:, None])
    return flat[keep], np.take(u, keep, axis=a)


def _outside(draw: Any, extent: Any) -> Any:
    def fn(d: Draw) -> dict[str, Any]:
        out = draw(d)
        shape = out["indices"].shape
        return {**out, "indices": T(shape, values=[float(extent(out))] * int(np.prod(shape))), "mode": "SCATTER_ADD"}

    return fn


def _not_a_number(c: Call) -> str | None:
    """As of MaxBroadcastable: whether NaN wins is not said."""
    if c.attr("mode") not in ("SCATTER_MAX", "SCATTER_MIN"):
        return None
    return "nan-in-an-extreme" if any(np.isnan(c.inputs[n]).any() for n in ("container", "updates")) else None


op(
    "scatter",
    s.scatter,
    Sampling(_draw_scatter),
    Checks(
        ambiguous=_not_a_number,
        breaks={
            "index-in-range": _outside(_draw_scatter, lambda o: o["container"].shape[o["axis"]]),
            "axis-in-range": lambda d: {**_few_updates(2), "axis": d.pick((1, -2))},
            "updates-fit": lambda d: {**_few_updates(3), "axis": 0},
        },
    ),
    x="container",
    indices=Fn(lambda c: _written(c)[0]),
    updates=Fn(lambda c: _written(c)[1]),
    mode=_TABLE,
)


def _draw_scatter_along(d: Draw) -> dict[str, Any]:
    if d.chance(16):
        return _written_with_itself(d)
    shape = [min(n, 5) for n in d.shape(1)]
    axis, mode = d.axis(len(shape)), d.pick(tuple(_MODES.values()))
    n = shape[axis]
    once = mode == "SCATTER_UPDATE" and d.bool()
    count = d.int(1, n) if once else d.dim(1, 6)
    like = list(shape)
    like[axis] = count
    rows = [_places(d, n, count, once) for _ in range(d.int(1, 4))]
    lanes = np.array([rows[k % len(rows)] for k in range(int(np.prod(like)) // count)])  # not the same everywhere
    values = np.moveaxis(lanes.reshape([*np.delete(like, axis), count]), -1, axis).ravel().tolist()
    return {
        "container": T(shape),
        "indices": T(like, values=values),
        "axis": axis,
        "mode": mode,
        "updates": T(like, recipe="positive" if mode == "SCATTER_DIV" else None),
    }


op(
    "scatterAlongAxis",
    coreml.scatter_along_axis,
    Sampling(_draw_scatter_along),
    Checks(
        ambiguous=_not_a_number,
        breaks={
            "index-in-range": _outside(_draw_scatter_along, lambda o: o["container"].shape[o["axis"]]),
            "axis-in-range": lambda d: {**_few_updates(2), "axis": d.pick((1, -2))},
            "indices-like-data": _unlike("container", _draw_scatter_along),
        },
    ),
    x="container",
    indices=Fn(_like_data),
    reduction=_TABLE,
)


def _tuples_of_itself(d: Draw) -> dict[str, Any]:
    """One blob in two places: a tuple of one entry, or tuples of one entry as the updates of rows of one element."""
    x = T((1,), values=[0.0], const=False)
    if d.bool():
        out: dict[str, Any] = {"container": x, "indices": x, "updates": T(()), "@same": {"indices": "container"}}
        out["updates"] = T((1, 1), values=[0.0])
        return {**out, "container": (y := T((1, 1), values=[0.0], const=False)), "indices": y}
    rows = T((2, 1), values=[float(d.int(0, 1)) for _ in "ab"], const=False)
    names = d.pick((("container", "updates"), ("indices", "updates")))
    out = {"container": T((2, 1)), "indices": T((2, 1), values=[1.0, 0.0]), "updates": T((2, 1))}
    return {**out, **dict.fromkeys(names, rows), "@same": {names[1]: names[0]}}


def _draw_scatter_nd(d: Draw) -> dict[str, Any]:
    """indices [..., L], now and then negative ones: the text says of other layers only that such ones count."""
    if d.chance(16):
        return _tuples_of_itself(d)
    shape = [min(n, 5) for n in d.shape(1)]
    depth, mode = d.int(1, len(shape)), d.pick(tuple(_MODES.values()))
    total = int(np.prod(shape[:depth]))
    once = mode == "SCATTER_UPDATE" and d.bool()
    spots = (
        d.shuffle(range(total))[: d.int(1, min(total, 6))]
        if once
        else [d.int(0, total - 1) for _ in range(d.int(1, 6))]
    )
    values = [float(i) for k in spots for i in np.unravel_index(k, shape[:depth])]
    if d.chance(12):
        values = [v - n if d.bool() else v for v, n in zip(values, shape[:depth] * len(spots))]
    values = _zeros_of_either_sign(d, values)
    lead = _folded(d, len(spots), min(4, 5 - len(shape[depth:])))
    return {
        "container": T(shape),
        "indices": T((*lead, depth), values=values),
        "mode": mode,
        "updates": T((*lead, *shape[depth:]), recipe="positive" if mode == "SCATTER_DIV" else None),
    }


def _written_nd(c: Call) -> tuple[np.ndarray, np.ndarray]:
    """Indices [n, depth] and updates [n, ...]; the later of two updates of one place stays.

    A negative index has two readings: from the end, as the text of other layers says, or the whole slice, as an earlier
    text of this one did.  Here it is from the end, and nothing is compared.
    """
    x, i, u = c.inputs["container"], c.inputs["indices"].astype(np.int64), c.inputs["updates"]
    depth = i.shape[-1]
    if depth > x.ndim:
        raise RuleError("tuple-within-rank", f"tuples of {depth} for rank {x.ndim}")
    i = np.where(i < 0, i + np.array(x.shape[:depth], np.int64), i)
    if u.shape != (*i.shape[:-1], *x.shape[depth:]):
        raise RuleError("updates-fit", f"updates {list(u.shape)} for indices {list(i.shape)} into {list(x.shape)}")
    rows, u = i.reshape(-1, depth), u.reshape(-1, *x.shape[depth:])
    if c.attr("mode") != "SCATTER_UPDATE":
        return rows, u
    keep = _last(rows)
    return rows[keep], u[keep]


op(
    "scatterND",
    s.scatter_nd,
    Spelling(
        x="container",
        indices=Fn(lambda c: _written_nd(c)[0]),
        updates=Fn(lambda c: _written_nd(c)[1]),
        reduction=_TABLE,
        fixed={"signed": False},
    ),
    Sampling(_draw_scatter_nd),
    Checks(
        ambiguous=lambda c: _below_zero(c) or _not_a_number(c),
        breaks={
            "index-in-range": _outside(_draw_scatter_nd, lambda o: max(o["container"].shape)),
            "tuple-within-rank": lambda d: {"container": T((3,)), **_TUPLE_TOO_LONG, "updates": T((1,))},
            "updates-fit": lambda d: {
                "container": T((3,)),
                "indices": T((2, 1), values=[0.0, 1.0]),
                "updates": T((3,)),
            },
        },
    ),
)


# -- order


def _k(c: Call) -> int:
    return int(c.inputs["k"].reshape(-1)[0]) if "k" in c.inputs else c.attr("K")


def _write_k(v: int, b: Any) -> None:
    if b.draw.bool():
        b.attrs["K"] = v
    else:
        b.tensor("k", T((1,), values=[float(v)]))
        if b.draw.bool():
            b.attrs["K"] = v + 1  # ignored beside the input


op(  # the text does not say which of two equal elements comes first
    "topK",
    s.topk,
    Spelling(
        k=Fn(_k, _write_k),
        largest=Fn(lambda c: not c.attr("useBottomK"), lambda v, b: b.attr("useBottomK", not v)),
        fixed={"sorted": True},
    ),
    Checks(error=(accepted(winners, "the k winners in order"), accepted(any_of_equals))),
)


def _plain_axis(c: Call) -> int:
    axis = c.attr("axis")
    if not 0 <= axis < c.inputs["x"].ndim:
        raise RuleError("axis-not-negative", f"axis {axis} for rank {c.inputs['x'].ndim}")
    return axis


def _draw_sorted(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    return {"x": T(shape), "axis": d.int(0, len(shape) - 1), "descending": d.bool()}


op(
    "argSort",
    s.argsort,
    Sampling(_draw_sorted),
    Checks(breaks={"axis-not-negative": lambda d: {"x": T(d.shape(1)), "axis": -1}}),
    axis=Fn(_plain_axis),
)


def _draw_nonzero(d: Draw) -> dict[str, Any]:
    shape = tuple(min(n, 4) for n in d.shape(1))
    n = int(np.prod(shape))
    some = (0, 1, -2, 0.5, 0) if d.int(0, 7) else (0, 3.4028234663852886e38, -3.4028234663852886e38)
    values = [float(d.pick(some)) for _ in range(n)]
    values[d.int(0, n - 1)] = 3.0
    return {"x": T(shape, values=values)}


op("whereNonZero", s.nonzero_rows, Sampling(_draw_nonzero))


def _hot_places(d: Draw, shape: tuple[int, ...], n: int) -> T:
    """Places in a vector of ``n`` and beside it; now and then far outside, or none that has a position."""
    if d.int(0, 3):
        return T(shape, recipe=d.pick((f"index:{n}", f"ints:{-n - 1}:{n + 1}")))
    far = (np.inf, -np.inf, 3.4028234663852886e38, -3.4028234663852886e38, 2.0**24 + 2, -0.0, -0.0, 1.0, -1.0)
    count = int(np.prod(shape))
    values = [float(d.pick(far)) for _ in range(count)]
    if d.bool():
        values[d.pick((0, count - 1))] = d.pick((np.nan, np.nan, 0.5, 1e-40))
    return T(shape, values=values)


def _no_place(c: Call) -> Any:
    """Of a number between two positions, and of NaN, the text does not say whether it is outside of the range."""
    x = c.inputs["x"]
    axis = c.attr("axis") % (x.ndim + 1)
    with np.errstate(all="ignore"):
        odd = np.isnan(x) | (np.isfinite(x) & (x != np.floor(x)))
    depth = ints(c.inputs["size_in"])[0] if "size_in" in c.inputs else c.attr("oneHotVectorSize")
    at = np.repeat(np.expand_dims(odd, axis), depth, axis)
    return underspecified("one-hot-of-no-position", at) if odd.any() else None


def _positions(c: Call) -> np.ndarray:
    """What is far outside as a position that is outside, too."""
    return np.nan_to_num(np.clip(c.inputs["x"], -(2.0**30), 2.0**30), nan=-(2.0**30)).astype(np.int64)


def _draw_hot(d: Draw) -> dict[str, Any]:
    """One or two inputs, the second the size; indices outside of the vector on either side give no hot element."""
    shape, n = d.shape(1, 4), d.int(1, 7)
    out: dict[str, Any] = {
        "x": _hot_places(d, shape, n),
        "axis": d.axis(len(shape) + 1),
        "onValue": d.int(1, 16) / 4,
        "offValue": d.int(-8, 0) / 4,
    }
    if d.chance(16):  # one blob says where and how many
        x = T((1,), values=[float(n)], const=False)
        return {**out, "x": x, "size_in": x, "axis": d.axis(2), "@same": {"size_in": "x"}}
    if d.bool():
        return {**out, "oneHotVectorSize": d.pick((n, n, n, 20))}
    out["size_in"] = T((1,) * d.pick((1, 1, 1, 2, 3, 4, 5)), values=[float(n)])
    return {**out, "oneHotVectorSize": n + 1} if d.bool() else out  # ignored beside the input


op(
    "oneHot",
    s.one_hot,
    Spelling(
        indices=Fn(_positions),
        depth=Fn(lambda c: ints(c.inputs["size_in"])[0] if "size_in" in c.inputs else c.attr("oneHotVectorSize")),
        on=Const("onValue"),
        off=Const("offValue"),
        fixed={"negative": "off"},
    ),
    Sampling(_draw_hot),
    Checks(
        ambiguous=_no_place,
        breaks={
            "depth-not-negative": lambda d: {
                "x": T((2,), values=[0.0, 1.0]),
                "size_in": T((1,), values=[-1.0]),
                "axis": 0,
            },
            "axis-in-range": lambda d: {
                "x": T((3,), values=[0.0, 1.0, 0.0]),
                "oneHotVectorSize": 2,
                "axis": d.pick((2, -3)),
            },
        },
    ),
)
