"""Shapes: reshape, squeeze, flatten, axes in another order, broadcast.

Source: NeuralNetwork.proto, message of each layer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Evaluation, Fn, Sampling, Spelling, T
from suites.nn import op
from suites.nn.spell import sizes
from suites.semantics import movement as s

op("copy", s.identity)
op(
    "transpose",
    s.transpose,
    perm=Fn(lambda c: tuple(c.attr("axes")), lambda v, b: b.attrs.update(axes=list(_perm(v, b)))),
)
op("expandDims", s.expand_dims)
op("flattenTo2D", s.flatten)
op("reshapeStatic", s.reshape, Spelling(shape="targetShape", fixed={"zero": "literal"}))
op("reshapeLike", s.reshape_like)
op("getShape", s.shape_of)
op("slidingWindows", s.sliding_windows, size="windowSize", stride="step")
op(
    "broadcastToStatic",
    s.broadcast_to,
    Sampling(lambda d: _draw_broadcast(d, False)),
    Checks(breaks={"shapes-broadcast": lambda d: {"x": T((2, 3)), "targetShape": [2, 4]}}),
    shape="targetShape",
)


def _perm(v: Any, b: Any) -> Any:
    return range(len(b.values["x"].shape))[::-1] if v is None else v


def _reversed(c: Call) -> tuple[int, ...]:
    on = c.attr("reverseDim")
    if len(on) != c.inputs["x"].ndim:
        raise RuleError("entry-per-axis", f"{len(on)} entries for rank {c.inputs['x'].ndim}")
    return tuple(int(a) for a in np.flatnonzero(on))


def _draw_reverse(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    return {"x": T(shape), "reverseDim": [d.bool() for _ in shape]}


op(
    "reverse",
    s.reverse,
    Sampling(_draw_reverse),
    Checks(breaks={"entry-per-axis": lambda d: {"x": T(d.shape(2)), "reverseDim": [True]}}),
    axes=Fn(_reversed),
)


op("reshapeDynamic", s.reshape, Spelling(shape=sizes("shape"), fixed={"zero": "literal"}))
op(
    "broadcastToDynamic",
    s.broadcast_to,
    Sampling(lambda d: _draw_broadcast(d, True)),
    Checks(breaks={"shapes-broadcast": lambda d: {"x": T((2, 3)), "shape": T((2,), values=[2.0, 4.0])}}),
    shape=sizes("shape"),
)


def _draw_broadcast(d: Draw, dynamic: bool) -> dict[str, Any]:
    """A shape, now and then beyond a vector, and a blob that broadcasts to it."""
    full = d.pick(((16,), (130, 2), (9, 257))) if d.chance(12) else d.shape(1)
    x = T(full if len(full) < 3 and d.bool() else d.broadcast_from(full))
    if dynamic:
        return {"x": x, "shape": T((len(full),), values=[float(n) for n in full])}
    return {"x": x, "targetShape": list(full)}


def _like(d: Draw) -> dict[str, Any]:
    full = d.shape(1)
    return {"x": T(d.broadcast_from(full)), "like": T(full)}


def _unlike(d: Draw) -> dict[str, Any]:
    full = d.shape(1)
    return {"x": T((*full[:-1], full[-1] + 1)), "like": T((*full[:-1], full[-1] + 2))}


op(
    "broadcastToLike",
    s.broadcast_to,
    Sampling(_like),
    Checks(breaks={"shapes-broadcast": _unlike}),
    shape=Fn(lambda c: c.inputs["like"].shape),
)


# -- reshape and squeeze with rules of their own


def _rank_kept(c: Call) -> tuple[int, ...]:
    shape = tuple(c.attr("targetShape"))
    if len(shape) != c.inputs["x"].ndim:
        raise RuleError("rank-kept", f"targetShape {list(shape)} for rank {c.inputs['x'].ndim}")
    return shape


def _draw_rank_kept(d: Draw) -> dict[str, Any]:
    shape = list(d.shape(1))
    a, b = d.int(0, len(shape) - 1), d.int(0, len(shape) - 1)
    target = list(shape)
    if a != b:
        f = d.pick([k for k in range(1, shape[a] + 1) if shape[a] % k == 0])
        target[a], target[b] = shape[a] // f, shape[b] * f
    for i, n in enumerate(shape):
        if target[i] == n and d.chance(3):
            target[i] = 0
    if d.bool():
        target[d.int(0, len(target) - 1)] = -1
    return {"x": T(shape), "targetShape": target}


def _rank_changed(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, 4)
    return {"x": T(shape), "targetShape": [*shape, 1]}


op(
    "rankPreservingReshape",
    s.reshape,
    Spelling(shape=Fn(_rank_kept), fixed={"zero": "copy"}),
    Sampling(_draw_rank_kept),
    Checks(breaks={"rank-kept": _rank_changed, "one-inferred": lambda d: {"x": T((2, 3)), "targetShape": [-1, -1]}}),
)


def _draw_squeeze(d: Draw) -> dict[str, Any]:
    """ "If input rank is 1, output rank is also 1": an example of the text, and the generic draw has an axis more."""
    v: dict[str, Any] = {"x": T((1,)), "axes": d.pick(([0], [-1], None))} if d.chance(8) else s.squeeze.derive(d)
    return {"x": v["x"], **({"squeezeAll": True} if v["axes"] is None else {"axes": list(v["axes"])})}


op(
    "squeeze",
    s.squeeze,
    Sampling(_draw_squeeze),
    Checks(
        breaks={
            "axes-in-range": lambda d: {"x": T((1, 2)), "axes": [d.pick((2, -3))]},
            "squeezed-is-one": lambda d: {"x": T((1, 2)), "axes": [1]},
            "axes-distinct": lambda d: {"x": T((1, 1)), "axes": d.pick(([0, 0], [0, -2]))},
        }
    ),
    axes=Fn(lambda c: None if c.attr("squeezeAll") else tuple(c.attr("axes"))),
)


# -- the two layers that know an image order of their own


def _last(x: np.ndarray) -> np.ndarray:
    """[..., C, H, W] with channels last."""
    return np.moveaxis(x, -3, -1)


def _flatten(c: Call) -> np.ndarray:
    x = c.inputs["x"]
    if x.ndim < 3:
        raise RuleError("rank-at-least-3", f"rank {x.ndim}")
    y = _last(x) if c.attr("mode") == "CHANNEL_LAST" else x
    return y.reshape(*x.shape[:-3], -1, 1, 1)


op(
    "flatten",
    Evaluation(_flatten, s.identity.error, "NeuralNetwork.proto, FlattenLayerParams"),
    Sampling(lambda d: {"x": T(d.shape(3)), "mode": d.pick(("CHANNEL_FIRST", "CHANNEL_LAST"))}),
    Checks(breaks={"rank-at-least-3": lambda d: {"x": T(d.shape(1, 2))}}),
)


def _reshape(c: Call) -> np.ndarray:
    """[S, B, C, H, W] to [S', B, C', H', W']; CHANNEL_LAST reads and writes the elements in H, W, C order."""
    x, target = c.inputs["x"], [int(v) for v in c.attr("targetShape")]
    if x.ndim != 5:
        raise RuleError("rank-5", f"rank {x.ndim}")
    if len(target) not in (3, 4):
        raise RuleError("three-or-four-extents", f"targetShape {target}")
    if len(target) == 3:
        target = [x.shape[0], *target]
    out = [target[0], x.shape[1], *target[1:]]
    if np.prod(out) != x.size:
        raise RuleError("count-kept", f"{x.size} elements into {out}")
    if c.attr("mode") == "CHANNEL_FIRST":
        return x.reshape(out)
    y = _last(x).reshape(out[0], out[1], out[3], out[4], out[2])
    return np.moveaxis(y, -1, -3)


def _draw_reshape(d: Draw) -> dict[str, Any]:
    c, h, w = d.dim(1, 6), d.dim(1, 6), d.dim(1, 6)
    seq = d.dim(1, 4)
    target = d.shuffle((c, h, w))
    if d.bool():
        target = [target[0] * target[1], 1, target[2]]
    x = T((seq, 1, c, h, w))
    out = {"x": x, "mode": d.pick(("CHANNEL_FIRST", "CHANNEL_LAST"))}
    if d.bool():
        return {**out, "targetShape": target}
    return {**out, "targetShape": d.pick(([seq, *target], [1, target[0] * seq, *target[1:]]))}


op(
    "reshape",
    Evaluation(_reshape, s.identity.error, "NeuralNetwork.proto, ReshapeLayerParams"),
    Sampling(_draw_reshape),
    Checks(
        breaks={
            "count-kept": lambda d: {"x": T((1, 1, 2, 3, 4)), "targetShape": [5, 5, 1]},
            "three-or-four-extents": lambda d: {"x": T((1, 1, 2, 3, 4)), "targetShape": [24]},
        }
    ),
)


def _permute(c: Call) -> tuple[int, ...]:
    """Four entries over [Seq, C, H, W]; the batch axis stays where it is."""
    x, axis = c.inputs["x"], tuple(c.attr("axis") or (0, 1, 2, 3))
    if x.ndim != 5:
        raise RuleError("rank-5", f"rank {x.ndim}")
    if sorted(axis) != [0, 1, 2, 3]:
        raise RuleError("perm-is-permutation", f"axis {list(axis)}")
    real = (0, 2, 3, 4)
    p = [real[a] for a in axis]
    return (p[0], 1, *p[1:])


op(
    "permute",
    s.transpose,
    Sampling(lambda d: {"x": T(d.shape(5)), "axis": d.shuffle(range(4)) if d.int(0, 4) else None}),
    Checks(breaks={"perm-is-permutation": lambda d: {"x": T(d.shape(5)), "axis": [0, 1, 1, 3]}}),
    perm=Fn(_permute),
)
