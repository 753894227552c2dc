"""Reading and writing by index; order.  Indices are blobs of floats.

Source: NeuralNetwork.proto, Gather*, Scatter*, TopK, ArgSort, WhereNonZero, OneHot.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError, Unsupported
from harness.declare import Call, Checks, Draw, Fn, Map, Sampling, Slotted, Spelling, T, accepted
from suites.nn import op
from suites.nn.spell import Const, ints
from suites.semantics import coreml
from suites.semantics import indexing as s
from suites.semantics.indexing.order import any_of_equals, winners


def whole(slot: str) -> Slotted:
    """An index input."""
    return Slotted(slot, lambda x: x.astype(np.int64))


def _draw_gather(d: Draw) -> dict[str, Any]:
    """The ranks of data and indices make a result of rank 5 at most."""
    shape = d.shape(1)
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
    """Index tuples [..., depth]; none is negative, since the text says of other layers only that such ones count."""
    shape = d.shape(1)
    depth = d.int(1, len(shape))
    lead = tuple(d.int(1, 4) for _ in range(d.int(0, min(4, 5 - len(shape[depth:])))))
    values = [float(d.int(0, n - 1)) for _ in range(int(np.prod(lead))) for n in shape[:depth]]
    return {"data": T(shape), "indices": T((*lead, depth), values=values)}


op(
    "gatherND",
    s.gather_nd,
    Sampling(_draw_gather_nd),
    Checks(breaks={"index-in-range": _no_such_place(_draw_gather_nd, lambda o: max(o["data"].shape))}),
    x="data",
    indices=whole("indices"),
)


def _like_data(c: Call) -> np.ndarray:
    """Extents agree with the data except along the axis."""
    x, i, axis = c.inputs[next(n for n in ("data", "container") if n in c.inputs)], c.inputs["indices"], c.attr("axis")
    if i.ndim != x.ndim or any(n != m for k, (n, m) in enumerate(zip(i.shape, x.shape)) if k != axis % x.ndim):
        raise RuleError("indices-like-data", f"indices {list(i.shape)} for {list(x.shape)} along {axis}")
    return i.astype(np.int64)


def _draw_along(d: Draw) -> dict[str, Any]:
    shape = list(d.shape(1))
    axis = d.axis(len(shape))
    n = shape[axis]
    like = [*shape]
    like[axis] = d.dim(1)
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
    Checks(breaks={"indices-like-data": _unlike("data", _draw_along)}),
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
    return [float(i - n if d.chance(3) else i) for i in at]


def _folded(d: Draw, count: int, most: int) -> tuple[int, ...]:
    """``count`` as a shape of 1 to ``most`` axes."""
    shape = [count]
    for _ in range(d.int(0, most - 1) if d.bool() else 0):
        first = d.pick([k for k in range(1, shape[0] + 1) if shape[0] % k == 0])
        shape = [first, shape[0] // first, *shape[1:]]
    return tuple(shape)


def _draw_scatter(d: Draw) -> dict[str, Any]:
    """Indices of rank 1 and above: their axes take the place of ``axis`` in the updates."""
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
        breaks={"index-in-range": _outside(_draw_scatter, lambda o: o["container"].shape[o["axis"]])},
    ),
    x="container",
    indices=Fn(lambda c: _written(c)[0]),
    updates=Fn(lambda c: _written(c)[1]),
    mode=_TABLE,
)


def _draw_scatter_along(d: Draw) -> dict[str, Any]:
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
            "indices-like-data": _unlike("container", _draw_scatter_along),
        },
    ),
    x="container",
    indices=Fn(_like_data),
    reduction=_TABLE,
)


def _draw_scatter_nd(d: Draw) -> dict[str, Any]:
    """indices [..., L]; none is negative, since the text says of other layers only that such ones count."""
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
    text of this one did.
    """
    x, i, u = c.inputs["container"], c.inputs["indices"].astype(np.int64), c.inputs["updates"]
    if np.any(i < 0):
        raise Unsupported("negative indices of scatterND")
    depth = i.shape[-1]
    if depth > x.ndim or u.shape != (*i.shape[:-1], *x.shape[depth:]):
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
        ambiguous=_not_a_number,
        breaks={"index-in-range": _outside(_draw_scatter_nd, lambda o: max(o["container"].shape))},
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
    values = [float(d.pick((0, 1, -2, 0.5, 0))) for _ in range(n)]
    values[d.int(0, n - 1)] = 3.0
    return {"x": T(shape, values=values)}


op("whereNonZero", s.nonzero_rows, Sampling(_draw_nonzero))


def _draw_hot(d: Draw) -> dict[str, Any]:
    """One or two inputs, the second the size; indices outside of the vector on either side give no hot element."""
    shape, n = d.shape(1, 4), d.int(1, 7)
    out: dict[str, Any] = {
        "x": T(shape, recipe=d.pick((f"index:{n}", f"ints:{-n - 1}:{n + 1}"))),
        "axis": d.axis(len(shape) + 1),
        "onValue": d.int(1, 16) / 4,
        "offValue": d.int(-8, 0) / 4,
    }
    if d.bool():
        return {**out, "oneHotVectorSize": n}
    out["size_in"] = T((1,), values=[float(n)])
    return {**out, "oneHotVectorSize": n + 1} if d.bool() else out  # ignored beside the input


op(
    "oneHot",
    s.one_hot,
    Spelling(
        indices="x",
        depth=Fn(lambda c: ints(c.inputs["size_in"])[0] if "size_in" in c.inputs else c.attr("oneHotVectorSize")),
        on=Const("onValue"),
        off=Const("offValue"),
        fixed={"negative": "off"},
    ),
    Sampling(_draw_hot),
    Checks(
        breaks={
            "axis-in-range": lambda d: {
                "x": T((3,), values=[0.0, 1.0, 0.0]),
                "oneHotVectorSize": 2,
                "axis": d.pick((2, -3)),
            }
        }
    ),
)
