"""Same elements in the same order under another shape, and questions about the shape itself."""

from __future__ import annotations

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Any, Array, Choice, Integer, Ints, T, copied, semantics
from harness.generate.draw import Draw
from suites.semantics.movement.common import beyond, divisors, fixed, norm_axes, options, prod, signed, tagged


@semantics(error=copied(), source="ONNX Identity-1; MIL identity iOS15; NN copy")
def identity(x: Any[Array, "*d"]) -> Any[Array, "*d"]:
    """``x`` itself."""
    return x


@semantics(error=copied(), source="ONNX Reshape-5, -14; MIL reshape iOS15; TFLite RESHAPE; NN reshapeStatic")
def reshape(x: Any[Array, "*d"], *, shape: Ints, zero: Choice[str, "copy", "literal"]) -> Array:
    """The elements of ``x`` in row-major order under ``shape``.

    One entry may be -1 (inferred).  zero: a 0 takes the extent of the same axis of ``x`` ("copy") or means 0
    ("literal").  Raises RuleError "one-inferred" (second -1, or an entry below -1), "count-kept",
    "zero-copies-an-axis", "zero-against-inferred" (the inferred extent beside a literal 0 is open; ONNX Reshape-14,
    allowzero).
    """
    out = [int(s) for s in shape]
    if zero == "copy":
        for i, s in enumerate(out):
            if s == 0:
                if i >= x.ndim:
                    raise RuleError("zero-copies-an-axis", f"shape[{i}] is 0 but x has rank {x.ndim}")
                out[i] = x.shape[i]
    if out.count(-1) > 1 or any(s < -1 for s in out):
        raise RuleError("one-inferred", f"shape {list(shape)}")
    if -1 in out:
        known = prod([s for s in out if s != -1])
        if known == 0:
            raise RuleError("zero-against-inferred", f"shape {list(shape)} for x {list(x.shape)}")
        if x.size % known:
            raise RuleError("count-kept", f"{x.size} elements into {list(shape)}")
        out[out.index(-1)] = x.size // known
    if prod(out) != x.size:
        raise RuleError("count-kept", f"{x.size} elements into {list(shape)}")
    return x.reshape(out)


def _factors(d: Draw, n: int, rank: int) -> list[int]:
    """``rank`` >= 1 extents whose product is ``n``."""
    out: list[int] = []
    for _ in range(rank - 1):
        out.append(d.pick(divisors(n)) if n else d.dim(1, 5))
        n = n // out[-1] if n else 0
    out.insert(d.int(0, len(out)), n)
    return out


@reshape.draw
def _draw_reshape(d: Draw) -> dict:
    shape = d.shape(0)
    n = prod(shape)
    rank = d.rank(max(d.min_rank, 0 if n == 1 else 1))
    target = _factors(d, n, rank) if rank else []
    zero = d.pick(options(d, "zero"))
    fits = [i for i, t in enumerate(target) if i < len(shape) and t == shape[i]]
    if zero == "copy":
        if any(t == 0 and i not in fits for i, t in enumerate(target)):
            target = list(shape)  # a 0 that is no copy cannot be spelled
            fits = list(range(len(shape)))
        for i in fits:
            target[i] = 0 if target[i] == 0 or d.chance(3) else target[i]
    known = prod([shape[i] if t == 0 and i in fits else t for i, t in enumerate(target)])
    positive = [i for i, t in enumerate(target) if t > 0]
    if positive and known and d.bool():
        target[d.pick(positive)] = -1
    return {"x": T(shape), "shape": tuple(target), "zero": zero}


@reshape.breaks("count-kept")
def _reshape_count(d: Draw) -> dict:
    zero = d.pick(options(d, "zero"))
    shape = d.shape(1, 4, lo=1)
    return {"x": T(shape), "shape": (prod(shape) + 1,), "zero": zero}


@reshape.breaks("one-inferred")
def _reshape_two(d: Draw) -> dict:
    zero = d.pick(options(d, "zero"))
    shape = d.shape(1, 4, lo=1)
    return {"x": T(shape), "shape": d.pick(((-1, -1), (-1, 1, -1), (-2, 1))), "zero": zero}


@semantics(error=copied(), source="MIL reshape_like iOS16; NN reshapeLike")
def reshape_like(x: Any[Array, "*d"], like: Any[Array, "*e"]) -> Any[Array, "*e"]:
    """``x`` under the shape of ``like``.  Raises RuleError "count-kept"."""
    if x.size != like.size:
        raise RuleError("count-kept", f"{x.size} elements into {list(like.shape)}")
    return x.reshape(like.shape)


@reshape_like.draw
def _draw_reshape_like(d: Draw) -> dict:
    shape = d.shape(1)
    return {"x": T(shape), "like": T(_factors(d, prod(shape), d.rank(1)) if d.bool() else d.shuffle(shape))}


@reshape_like.breaks("count-kept")
def _reshape_like_count(d: Draw) -> dict:
    shape = d.shape(1, 4, lo=1)
    return {"x": T(shape), "like": T((prod(shape) + 1,))}


@semantics(error=copied(), source="ONNX Flatten-1, -9, -11, -13; MIL flatten2d iOS15; NN flattenTo2D")
def flatten(x: Any[Array, "*d"], *, axis: Integer) -> Any[Array, "a b"]:
    """[prod(shape[:axis]), prod(shape[axis:])]; axis in [-rank, rank], a negative one counts from the end."""
    if not -x.ndim <= axis <= x.ndim:
        raise RuleError("axis-in-range", f"axis {axis} for rank {x.ndim}")
    a = axis + x.ndim if axis < 0 else axis
    return x.reshape(prod(x.shape[:a]), prod(x.shape[a:]))


@flatten.draw
def _draw_flatten(d: Draw) -> dict:
    shape = d.shape(0)
    return {"x": T(shape), "axis": d.int(-len(shape), len(shape))}


@flatten.breaks("axis-in-range")
def _flatten_axis(d: Draw) -> dict:
    shape = d.shape(0)
    return {"x": T(shape), "axis": len(shape) + 1 if d.bool() else -len(shape) - 1}


@semantics(error=copied(), source="ONNX Squeeze-1, -11, -13; MIL squeeze iOS15; TFLite SQUEEZE; NN squeeze")
def squeeze(x: Any[Array, "*d"], *, axes: Ints | None = None) -> Array:
    """``x`` without the named axes of extent 1 (None: all of them).

    Raises RuleError "squeezed-is-one", "axes-in-range", "axes-distinct".
    """
    drop = [i for i, s in enumerate(x.shape) if s == 1] if axes is None else norm_axes(axes, x.ndim)
    for a in drop:
        if x.shape[a] != 1:
            raise RuleError("squeezed-is-one", f"axis {a} of {list(x.shape)}")
    return x.reshape([s for i, s in enumerate(x.shape) if i not in drop])


@squeeze.draw
def _draw_squeeze(d: Draw) -> dict:
    if tagged(d, "scalar", 64):
        return {"x": T(()), "axes": None}
    shape = list(d.shape(0, max(d.max_rank - 2, 0)))
    for _ in range(d.int(1, 2)):
        shape.insert(d.int(0, len(shape)), 1)
    ones = d.subset([i for i, s in enumerate(shape) if s == 1], 1)
    return {"x": T(shape), "axes": None if d.chance(4) else signed(d, ones, len(shape))}


@squeeze.breaks("squeezed-is-one")
def _squeeze_wide(d: Draw) -> dict:
    shape = list(d.shape(1, max(d.max_rank - 1, 1)))
    at = d.int(0, len(shape))
    shape.insert(at, d.int(2, 5))
    return {"x": T(shape), "axes": (at,)}


@squeeze.breaks("axes-in-range")
def _squeeze_axis(d: Draw) -> dict:
    shape = (1, *d.shape(0, d.max_rank - 1))
    return {"x": T(shape), "axes": (beyond(d, len(shape)),)}


@semantics(
    error=copied(),
    source="ONNX Unsqueeze-1, -11, -13; MIL expand_dims iOS15; TFLite EXPAND_DIMS; NN expandDims",
)
def expand_dims(x: Any[Array, "*d"], *, axes: Ints) -> Array:
    """``x`` with extents of 1 such that they stand at ``axes`` of the *result*; any order and sign.

    Raises RuleError "axes-in-range", "axes-distinct".
    """
    at = norm_axes(axes, x.ndim + len(axes))
    rest = iter(x.shape)
    return x.reshape([1 if i in at else next(rest) for i in range(x.ndim + len(at))])


@expand_dims.draw
def _draw_expand_dims(d: Draw) -> dict:
    shape = d.shape(0, max(d.max_rank - 1, 0))
    rank = len(shape) + d.int(1, max(1, min(3, d.max_rank - len(shape))))
    return {"x": T(shape), "axes": signed(d, d.shuffle(range(rank))[: rank - len(shape)], rank)}


@expand_dims.breaks("axes-in-range")
def _expand_dims_axis(d: Draw) -> dict:
    shape = d.shape(0, max(d.max_rank - 2, 0))
    return {"x": T(shape), "axes": (beyond(d, len(shape) + 1),)}


@expand_dims.breaks("axes-distinct")
def _expand_dims_twice(d: Draw) -> dict:
    shape = d.shape(0, max(d.max_rank - 2, 0))
    a = d.int(0, len(shape) + 1)
    return {"x": T(shape), "axes": (a, a)}


@semantics(error=copied(), source="ONNX Shape-1, -13, -15, -19; MIL shape iOS15; TFLite SHAPE; NN getShape")
def shape_of(x: Any[Array, "*d"], *, start: Integer = 0, end: Integer | None = None) -> Array:
    """Extents of ``x`` from axis start to end (both wrap once, then clamp to the rank), as int64 of rank
    1."""
    lo, hi, _ = slice(start, end).indices(x.ndim)
    return np.array(x.shape[lo:hi] if hi > lo else (), np.int64)


@shape_of.draw
def _draw_shape_of(d: Draw) -> dict:
    return {
        "x": T(d.shape(0)),
        "start": fixed(d, "start", lambda: d.pick((0, 0, d.int(-7, 7)))),
        "end": fixed(d, "end", lambda: d.pick((None, None, d.int(-7, 7)))),
    }


@semantics(error=copied(), source="ONNX Size-1, -13")
def size_of(x: Any[Array, "*d"]) -> Any[Array, ""]:
    """Element count as a scalar int64."""
    return np.array(x.size, np.int64)


@semantics(error=copied(), source="TFLite RANK")
def rank_of(x: Any[Array, "*d"]) -> Any[Array, ""]:
    """Number of axes as a scalar int32."""
    return np.array(x.ndim, np.int32)
