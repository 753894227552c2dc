"""Parts joined and cut, repeated, reordered in blocks.  Source: NeuralNetwork.proto, message of each layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Evaluation, Fn, Sampling, Slotted, Spelling, T
from suites.nn import op
from suites.nn.spell import Or, ints, several
from suites.semantics import movement as s


def _two(draw: Any) -> Any:
    """A drawn list of parts, doubled where it is but one."""

    def fn(d: Draw) -> dict[str, Any]:
        out = draw(d)
        return {**out, "xs": out["xs"] if len(out["xs"]) > 1 else [*out["xs"], *out["xs"]]}

    return fn


def _one_part(d: Draw) -> dict[str, Any]:
    return {"xs": [T(d.shape(1, 4))], "axis": 0}


def _parts_apart(d: Draw) -> dict[str, Any]:
    return {"xs": [T((2, 3)), T((3, 2))], "axis": d.pick((0, 1, -1))}


def _no_axis(d: Draw) -> dict[str, Any]:
    return {"xs": [T((2, 3))] * 2, "axis": d.pick((3, 4, -4))}


def _ranks_apart(d: Draw) -> dict[str, Any]:
    return {"xs": [T((2, 3, 1, 1)), T((2, 3, 1))], "axis": 0}


_JOINED: dict[str, Any] = {"two-or-more": _one_part, "axis-in-range": _no_axis}
op(
    "concatND",
    s.concat,
    Sampling(_two(s.concat.derive)),
    Checks(breaks={**_JOINED, "same-other-extents": _parts_apart, "same-rank": _ranks_apart}),
    xs=several(),
)
op(
    "concatND.interleave",
    s.concat_interleaved,
    Sampling(_two(s.concat_interleaved.derive)),
    Checks(breaks={**_JOINED, "same-shape": _parts_apart}),
    xs=several(),
)
op(
    "stack",
    s.stack,
    Sampling(_two(s.stack.derive)),
    Checks(breaks={**_JOINED, "same-shape": _parts_apart}),
    xs=several(),
)


def _along(axis: int, least: int) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        shape = list(d.shape(least))
        parts = []
        for _ in range(d.int(2, 4)):
            shape[axis] = d.dim(1, 5)
            parts.append(T(shape))
        return {"xs": parts}

    return draw


def _draw_concat(d: Draw) -> dict[str, Any]:
    sequence = d.chance(3)
    out = _along(-5 if sequence else -3, 5 if sequence else 3)(d)
    return {**out, "sequenceConcat": True} if sequence else out


op(
    "concat",
    s.concat,
    Sampling(_draw_concat),
    Checks(
        breaks={
            "axis-in-range": lambda d: {"xs": [T(d.shape(1, 2))] * 2},
            "two-or-more": lambda d: {"xs": [T(d.shape(3))]},
            "same-other-extents": lambda d: {"xs": [T((2, 3, 4)), T((2, 3, 5))]},
            "same-rank": lambda d: {"xs": [T((2, 3, 1, 1)), T((2, 3, 1))]},
        }
    ),
    xs=several(),
    axis=Fn(lambda c: -5 if c.attr("sequenceConcat") else -3),
)


def _draw_split(d: Draw) -> dict[str, Any]:
    n = d.pick((2, 3, 4, 2, 3, 4, 9))
    shape = list(d.shape(3)) if n < 9 else [9, 1, 1]
    shape[-3] = n * d.dim(1, 4)
    return {"x": T(shape), "nOutputs": n, "@outs": n}


def _split_uneven(d: Draw) -> dict[str, Any]:
    shape = list(d.shape(3))
    shape[-3] = 2 * d.dim(1, 4) + 1
    return {"x": T(shape), "nOutputs": 2, "@outs": 2}


op(
    "split",
    s.split_even,
    Sampling(_draw_split),
    Checks(
        agrees={"nOutputs": lambda c: c.n_outs},
        breaks={
            "count-divides": _split_uneven,
            "axis-in-range": lambda d: {"x": T(d.shape(1, 2)), "nOutputs": 2, "@outs": 2},
            "nOutputs-agrees": None,  # a blob that nobody names may be made
        },
    ),
    axis=Fn(lambda c: -3),
    count="nOutputs",
)


def _sizes_nd(c: Call) -> tuple[int, ...]:
    """The sizes given; else parts as equal as can be, the first ones larger by one."""
    if c.attr("splitSizes"):
        return tuple(c.attr("splitSizes"))
    x, axis, n = c.inputs["x"], c.attr("axis"), c.attr("numSplits")
    if not -x.ndim <= axis < x.ndim:
        raise RuleError("axis-in-range", f"axis {axis} for rank {x.ndim}")
    if not 1 <= n <= x.shape[axis]:
        raise RuleError("parts-have-elements", f"{n} parts of extent {x.shape[axis]}")
    small, more = divmod(x.shape[axis], n)
    return (small + 1,) * more + (small,) * (n - more)


def _uneven(c: Call) -> str | None:
    """The text has a uniform split and one by given sizes: not which part is larger where the number does not divide
    the extent."""
    if c.attr("splitSizes") or c.attr("numSplits") < 1:
        return None
    return "uniform-split-that-does-not-divide" if c.inputs["x"].shape[c.attr("axis")] % c.attr("numSplits") else None


def _draw_split_nd(d: Draw) -> dict[str, Any]:
    shape = list(d.shape(1))
    axis, n = d.axis(len(shape)), d.pick((2, 3, 4, 2, 3, 4, 9))
    if d.bool():
        shape[axis] = n * d.dim(1, 4) + (d.int(1, n - 1) if d.chance(3) else 0)
        out: dict[str, Any] = {"x": T(shape), "axis": axis, "numSplits": n, "@outs": n}
        return {**out, "splitSizes": []} if d.chance(4) else out
    parts = [d.dim(1, 5) for _ in range(n)]
    if len(shape) > 1 and d.chance(8):  # parts that are longer than another axis is
        shape, axis, parts[0] = [1, *shape[1:]], len(shape) - 1, 12
    shape[axis] = sum(parts)
    out = {"x": T(shape), "axis": axis, "splitSizes": parts, "@outs": n}
    return {**out, "numSplits": d.pick((0, 1, n + 1, 2**31 - 1))} if d.chance(3) else out  # ignored beside the sizes


def _split_nd_short(d: Draw) -> dict[str, Any]:
    shape = (5, *d.part(0, 3))
    return {"x": T(shape), "axis": 0, "splitSizes": [2, 2], "@outs": 2}


def _split_nd_bare(d: Draw) -> dict[str, Any]:
    return {"x": T((2, *d.part(0, 3))), "axis": 0, "numSplits": 3, "@outs": 3}


op(
    "splitND",
    s.split,
    Sampling(_draw_split_nd),
    Checks(
        ambiguous=_uneven,
        breaks={
            "sizes-sum": _split_nd_short,
            "parts-have-elements": _split_nd_bare,
            "axis-in-range": lambda d: {"x": T((4, 4)), "axis": d.pick((2, -3)), "numSplits": 2, "@outs": 2},
        },
    ),
    sizes=Fn(_sizes_nd),
)


# -- repetition


def _reps(c: Call) -> tuple[int, ...]:
    reps = ints(c.inputs["reps_in"]) if "reps_in" in c.inputs else tuple(c.attr("reps"))
    if not reps:
        raise RuleError("reps-given", "at least one entry")
    return (1,) * (c.inputs["x"].ndim - len(reps)) + reps


def _draw_tile(d: Draw) -> dict[str, Any]:
    if d.chance(16):  # one blob repeated as often as it says
        x = T((1,), values=[float(d.int(1, 4))], const=False)
        return {"x": x, "reps_in": x, "@same": {"reps_in": "x"}}
    values = s.tile.derive(d)
    reps = list(values["repeats"])
    if d.bool():  # an entry for every axis: shorter ones are described for the parameter alone
        given = {"x": values["x"], "reps_in": T((len(reps),), values=[float(r) for r in reps])}
        return {**given, "reps": [2] * len(reps)} if d.chance(3) else given  # ignored beside the input
    while len(reps) > 1 and reps[0] == 1 and d.bool():
        reps = reps[1:]
    if d.chance(12):
        return {"x": T((1, *values["x"].shape[:2])), "reps": [20, *(1 for _ in values["x"].shape[:2])]}
    return {"x": values["x"], "reps": reps}


op(
    "tile",
    s.tile,
    Sampling(_draw_tile),
    Checks(
        breaks={
            "repeats-per-axis": lambda d: {"x": T(d.shape(1, 3)), "reps": [1, 2, 1, 2]},
            "reps-given": lambda d: {"x": T(d.shape(1))},
        }
    ),
    repeats=Fn(_reps),
)


def _draw_sequence(d: Draw) -> dict[str, Any]:
    return {"x": T(d.shape(5)), "nRepetitions": d.int(0, 4)}


op(
    "sequenceRepeat",
    s.repeat_axis,
    Spelling(axis=Fn(lambda c: -5), times=Or("nRepetitions", 1), fixed={"mode": "tile"}),
    Sampling(_draw_sequence),
    Checks(breaks={"axis-in-range": lambda d: {"x": T(d.shape(1, 4)), "nRepetitions": 2}}),
)


def _draw_reverse_seq(d: Draw) -> dict[str, Any]:
    shape = d.shape(2)
    batch = d.int(0, len(shape) - 2)
    seq = d.int(batch + 1, len(shape) - 1)
    if d.chance(12):
        shape = tuple(d.pick((16, 130, 257)) if i == batch else min(n, 2) for i, n in enumerate(shape))
    lengths = [float(d.int(0, shape[seq])) for _ in range(shape[batch])]
    lengths = [-0.0 if n == 0 and d.bool() else n for n in lengths]
    r = len(shape)
    return {
        "x": T(shape),
        "lengths": T((shape[batch],), values=lengths),
        "batchAxis": batch - r if d.bool() else batch,
        "sequenceAxis": seq - r if d.bool() else seq,
    }


def _sequence_axis(c: Call) -> int:
    batch, seq, rank = c.attr("batchAxis"), c.attr("sequenceAxis"), c.inputs["x"].ndim
    if not -rank <= batch < rank or not -rank <= seq < rank or batch % rank >= seq % rank:
        raise RuleError("batch-before-sequence", f"batchAxis {batch}, sequenceAxis {seq} of rank {rank}")
    return seq


def _sequence_first(d: Draw) -> dict[str, Any]:
    return {"x": T((3, 2)), "lengths": T((2,), values=[1.0, 2.0]), "batchAxis": 1, "sequenceAxis": 0}


def _too_long(d: Draw) -> dict[str, Any]:
    return {"x": T((2, 3)), "lengths": T((2,), values=[1.0, 4.0]), "batchAxis": 0, "sequenceAxis": 1}


op(
    "reverseSeq",
    s.reverse_sequence,
    Sampling(_draw_reverse_seq),
    Checks(
        breaks={
            "batch-before-sequence": _sequence_first,
            "lengths-in-range": _too_long,
            "lengths-per-batch": lambda d: {**_too_long(d), "lengths": T((3,), values=[1.0, 1.0, 1.0])},
        }
    ),
    lengths=Slotted("lengths", lambda x: x.astype(np.int64)),
    seq_axis=Fn(_sequence_axis),
    batch_axis="batchAxis",
)

op(
    "reorganizeData",
    Evaluation(lambda c: _reorganise(c), s.depth_to_space.error, s.depth_to_space.source),
    Sampling(lambda d: _draw_blocks(d)),
    Checks(
        breaks={
            "block-divides-space": lambda d: {"x": T((1, 3, 2)), "mode": "SPACE_TO_DEPTH", "blockSize": 2},
            "block-above-one": lambda d: {"x": T(d.shape(3)), "mode": "DEPTH_TO_SPACE", "blockSize": d.int(0, 1)},
            "block-divides-channels": lambda d: {"x": T((3, 1, 2)), "mode": "DEPTH_TO_SPACE", "blockSize": 2},
        }
    ),
)


def _reorganise(c: Call) -> np.ndarray:
    """On [..., C, H, W].  SPACE_TO_DEPTH and DEPTH_TO_SPACE order channels block first, PIXEL_SHUFFLE channel first."""
    x, block, mode = c.inputs["x"], c.attr("blockSize"), c.attr("mode")
    if x.ndim < 3:
        raise RuleError("rank-at-least-3", f"rank {x.ndim}")
    if block < 2:
        raise RuleError("block-above-one", f"blockSize {block}")
    flat = x.reshape((-1, *x.shape[-3:]))
    if mode == "SPACE_TO_DEPTH":
        y = s.space_to_depth(flat, block=block, mode="dcr")
    else:
        y = s.depth_to_space(flat, block=block, mode="crd" if mode == "PIXEL_SHUFFLE" else "dcr")
    return y.reshape(*x.shape[:-3], *y.shape[1:])


def _draw_blocks(d: Draw) -> dict[str, Any]:
    mode, k = d.pick(("SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "PIXEL_SHUFFLE")), d.pick((2, 2, 3))
    if d.chance(16):
        return (
            {"x": T((81, 1, 1)), "mode": mode, "blockSize": 9}
            if mode[0] != "S"
            else {"x": T((1, 9, 18)), "mode": mode, "blockSize": 9}
        )
    c, h, w = d.dim(1, 4), d.dim(1, 4), d.dim(1, 4)
    core = (c, h * k, w * k) if mode == "SPACE_TO_DEPTH" else (c * k * k, h, w)
    return {"x": T((*(d.dim(1, 3) for _ in range(d.int(0, 2))), *core)), "mode": mode, "blockSize": k}
