"""Reading and writing by index; order.  Indices are blobs of floats.

Source: NeuralNetwork.proto, Gather*, Scatter*, TopK, ArgSort, WhereNonZero, OneHot.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError, Unsupported
from harness.spec import Call, Draw, Fn, Map, Slotted, T
from suites.nn import op
from suites.nn.spell import tensor
from suites.semantics import coreml
from suites.semantics import indexing as s


def whole(slot: str) -> Slotted:
    """An index input."""
    return Slotted(slot, lambda x: x.astype(np.int64))


op("gather", s.gather, x="data", indices=whole("indices"), ranks=(1, 3))
op("gatherND", s.gather_nd, x="data", indices=whole("indices"), ranks=(1, 4))


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
    x="data",
    indices=tensor(_like_data),
    draw=_draw_along,
    breaks={"indices-like-data": _unlike("data", _draw_along)},
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


def _draw_scatter(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    axis, mode = d.axis(len(shape)), d.pick(tuple(_MODES.values()))
    n = shape[axis]
    once = mode == "SCATTER_UPDATE" and d.bool()
    at = _places(d, n, d.int(1, n) if once else d.dim(1, 6), once)
    slices = list(shape)
    slices[axis] = len(at)
    return {
        "container": T(shape),
        "indices": T((len(at),), values=at),
        "axis": axis,
        "mode": mode,
        "updates": T(slices, recipe="positive" if mode == "SCATTER_DIV" else None),
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


op(
    "scatter",
    s.scatter,
    x="container",
    indices=tensor(lambda c: _written(c)[0]),
    updates=tensor(lambda c: _written(c)[1]),
    mode=_TABLE,
    draw=_draw_scatter,
    breaks={"index-in-range": _outside(_draw_scatter, lambda o: o["container"].shape[o["axis"]])},
)


def _draw_scatter_along(d: Draw) -> dict[str, Any]:
    shape = [min(n, 5) for n in d.shape(1)]
    axis, mode = d.axis(len(shape)), d.pick(tuple(_MODES.values()))
    n = shape[axis]
    once = mode == "SCATTER_UPDATE" and d.bool()
    count = d.int(1, n) if once else d.dim(1, 6)
    like = list(shape)
    like[axis] = count
    row = np.array(_places(d, n, count, once))
    grid = row.reshape([-1 if k == axis % len(shape) else 1 for k in range(len(shape))])
    values = np.broadcast_to(grid, like).ravel().tolist()
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
    x="container",
    indices=tensor(_like_data),
    reduction=_TABLE,
    draw=_draw_scatter_along,
    breaks={
        "index-in-range": _outside(_draw_scatter_along, lambda o: o["container"].shape[o["axis"]]),
        "indices-like-data": _unlike("container", _draw_scatter_along),
    },
)


def _draw_scatter_nd(d: Draw) -> dict[str, Any]:
    """indices [N, L]; none is negative, since the text reads a negative one as "the whole slice"."""
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
    return {
        "container": T(shape),
        "indices": T((len(spots), depth), values=values),
        "mode": mode,
        "updates": T((len(spots), *shape[depth:]), recipe="positive" if mode == "SCATTER_DIV" else None),
    }


def _written_nd(c: Call) -> tuple[np.ndarray, np.ndarray]:
    """Indices [n, depth] and updates [n, ...]; the later of two updates of one place stays.

    The text reads a negative index as the whole slice, without saying what shape the updates have then.
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
    x="container",
    indices=tensor(lambda c: _written_nd(c)[0]),
    updates=tensor(lambda c: _written_nd(c)[1]),
    reduction=_TABLE,
    draw=_draw_scatter_nd,
    fixed={"signed": False},
    breaks={"index-in-range": _outside(_draw_scatter_nd, lambda o: max(o["container"].shape))},
)


# -- order


def _k(c: Call) -> int:
    return int(c.inputs["k"].reshape(-1)[0]) if "k" in c.inputs else c.attr("K")


def _write_k(v: int, b: Any) -> None:
    if b.draw.bool():
        b.attrs["K"] = v
    else:
        b.tensor("k", T((1,), values=[float(v)]))


op(
    "topK",
    s.topk,
    k=Fn(_k, _write_k),
    largest=Fn(lambda c: not c.attr("useBottomK"), lambda v, b: b.attr("useBottomK", not v)),
    fixed={"sorted": True},
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
    axis=Fn(_plain_axis),
    draw=_draw_sorted,
    breaks={"axis-not-negative": lambda d: {"x": T(d.shape(1)), "axis": -1}},
)


def _draw_nonzero(d: Draw) -> dict[str, Any]:
    shape = tuple(min(n, 4) for n in d.shape(1))
    n = int(np.prod(shape))
    values = [float(d.pick((0, 1, -2, 0.5, 0))) for _ in range(n)]
    values[d.int(0, n - 1)] = 3.0
    return {"x": T(shape, values=values)}


op("whereNonZero", s.nonzero_rows, draw=_draw_nonzero)


def _hot(c: Call, slot: str, name: str) -> Any:
    return c.inputs[slot].reshape(-1)[0] if slot in c.inputs else c.attr(name)


def _hot_value(slot: str, name: str) -> Fn:
    return tensor(lambda c: np.asarray(_hot(c, slot, name), np.float32))


def _draw_hot(d: Draw) -> dict[str, Any]:
    """The first extra inputs override, the rest are parameters."""
    shape, n = d.shape(1, 4), d.int(1, 7)
    values = (
        ("size_in", "oneHotVectorSize", n),
        ("axis_in", "axis", d.axis(len(shape) + 1)),
        ("on_in", "onValue", d.int(1, 16) / 4),
        ("off_in", "offValue", d.int(-8, 0) / 4),
    )
    given = d.int(0, 4)
    out: dict[str, Any] = {"x": T(shape, recipe=f"index:{n}")}
    for i, (slot, name, v) in enumerate(values):
        out.update({slot: T((1,), values=[float(v)])} if i < given else {name: v})
    return out


op(
    "oneHot",
    s.one_hot,
    indices="x",
    depth=Fn(lambda c: int(_hot(c, "size_in", "oneHotVectorSize"))),
    axis=Fn(lambda c: int(_hot(c, "axis_in", "axis"))),
    on=_hot_value("on_in", "onValue"),
    off=_hot_value("off_in", "offValue"),
    fixed={"negative": "off"},
    draw=_draw_hot,
    breaks={
        "axis-in-range": lambda d: {
            "x": T((3,), values=[0.0, 1.0, 0.0]),
            "oneHotVectorSize": 2,
            "axis": d.pick((2, -3)),
        }
    },
)
