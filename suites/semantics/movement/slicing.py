"""Rectangular windows into a tensor: one strided meaning (`strided_slice`) under its several spellings.

On one axis of extent n, with step s: a negative begin or end has n added once; then both are clamped, to
[0, n] for s > 0
and to [-1, n - 1] for s < 0; the elements are begin, begin + s, ... before end.  That is Python's
``slice.indices``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as Anything

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Any, Array, Flag, Integer, Ints, T, copied, semantics
from harness.generate.draw import Draw
from suites.semantics.movement.common import INT32_MAX, INT32_MIN, beyond, fixed, norm_axes, signed, tagged


def _flag(mask: Sequence[int], i: int) -> bool:
    return bool(mask[i]) if i < len(mask) else False


def window(
    shape: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
    stride: Sequence[int],
    begin_mask: Sequence[int] = (),
    end_mask: Sequence[int] = (),
    squeeze_mask: Sequence[int] = (),
) -> tuple[slice | int, ...]:
    """The NumPy index of a strided slice, one entry per axis given.

    Raises RuleError "stride-nonzero"; "index-in-range" and "squeeze-forward" for an axis taken at one index.
    """
    out: list[slice | int] = []
    for i, (n, s) in enumerate(zip(shape, stride, strict=False)):
        b, e, s = int(begin[i]), int(end[i]), int(s)
        if s == 0:
            raise RuleError("stride-nonzero", f"stride {list(stride)}")
        if _flag(squeeze_mask, i):
            if s < 0:
                raise RuleError("squeeze-forward", f"axis {i} is squeezed with stride {s}")
            if not -n <= b < n:
                raise RuleError("index-in-range", f"index {b} on axis {i} of extent {n}")
            out.append(b)
            continue
        lo, hi, _ = slice(None if _flag(begin_mask, i) else b, None if _flag(end_mask, i) else e, s).indices(n)
        out.append(slice(lo, hi if hi >= 0 else None, s) if (hi - lo) * s > 0 else slice(0, 0))
    return tuple(out)


@semantics(
    error=copied(),
    source="MIL slice_by_index iOS15; NN sliceStatic, sliceDynamic; the core of TFLite STRIDED_SLICE",
)
def strided_slice(
    x: Any[Array, "*d"],
    *,
    begin: Ints,
    end: Ints,
    stride: Ints | None = None,
    begin_mask: Ints = (),
    end_mask: Ints = (),
    squeeze_mask: Ints = (),
) -> Array:
    """One entry per axis of ``x``, of masks as well or none.  A true mask entry ignores begin / end; a true squeeze
    entry takes the element at begin and drops the axis (end, masks and stride do not matter there).  stride: None is 1
    everywhere.

    Raises RuleError "entry-per-axis", "stride-nonzero", "index-in-range", "squeeze-forward".
    """
    stride = (1,) * x.ndim if stride is None else stride
    if not len(begin) == len(end) == len(stride) == x.ndim:
        raise RuleError("entry-per-axis", f"{len(begin)}, {len(end)}, {len(stride)} entries for rank {x.ndim}")
    for mask in (begin_mask, end_mask, squeeze_mask):
        if len(mask) not in (0, x.ndim):
            raise RuleError("entry-per-axis", f"a mask of {len(mask)} entries for rank {x.ndim}")
    index: tuple[Anything, ...] = (*window(x.shape, begin, end, stride, begin_mask, end_mask, squeeze_mask), ...)
    return x[index]  # the ellipsis keeps rank 0 an array


def _bounds(d: Draw, n: int, step: int, empty: bool = True) -> tuple[int, int]:
    """begin and end on an axis of extent ``n``; unless ``empty``, and the dialect has empty tensors, they keep an
    element."""
    b, e = _any_bounds(d, n, step)
    if not (empty and d.allow_empty) and len(range(*slice(b, e, step).indices(n))) == 0:
        return (0, n) if step > 0 else (n - 1, -n - 1)
    return b, e


def _any_bounds(d: Draw, n: int, step: int) -> tuple[int, int]:
    """begin and end: ordinary, negative, out of range either way, or extreme."""
    if d.chance(3):
        corners = (0, n, -n, -1, n - 1, n + 3, -n - 3, INT32_MAX, INT32_MIN, 1)
        return d.pick(corners), d.pick(corners)
    lo, hi = sorted((d.int(0, max(n, 1)), d.int(0, max(n, 1))))
    b, e = (lo, hi) if step > 0 else (min(hi, n - 1), lo - 1)
    if d.bool() and b >= 0:
        b -= n
    if step < 0 and e == -1:
        e = INT32_MIN if d.bool() else -n - 1
    elif d.bool() and e < n and e >= 0:
        e -= n
    return b, e


def _step(d: Draw, negative: bool) -> int:
    return d.pick((1, 1, 2, 3, -1, -2, -3, INT32_MAX, -INT32_MAX) if negative else (1, 1, 2, 3, INT32_MAX))


@strided_slice.draw
def _draw_strided(d: Draw) -> dict:
    """Three in four without what no text settles: empty slices, masks where the stride is negative."""
    shape, open_too = d.shape(1), d.chance(4)
    out: dict = {k: [] for k in ("begin", "end", "stride", "begin_mask", "end_mask", "squeeze_mask")}
    for n in shape:
        s = _step(d, True)
        b, e = _bounds(d, n, s, open_too)
        squeeze = n > 0 and d.chance(6)
        if squeeze:
            s, b = 1, d.int(-n, n - 1)
            e = d.int(-n, n) if d.chance(3) and "squeeze_mask" not in d.fixed else n if b == -1 else b + 1
        masked = not squeeze and (s > 0 or open_too)
        row = (b, e, s, masked and d.chance(5), masked and d.chance(5), squeeze)
        taken = slice(None if row[3] else b, None if row[4] else e, s)
        if not d.allow_empty and not squeeze and len(range(*taken.indices(n))) == 0:
            row = (b, e, s, True, True, False)
        for column, v in zip(out.values(), row, strict=True):
            column.append(v)
    if "squeeze_mask" in d.fixed or not d.chance(3) or all(out["squeeze_mask"]):
        out["squeeze_mask"] = [False] * len(shape)
    return {"x": T(shape), **{k: tuple(v) for k, v in out.items()}}


@strided_slice.breaks("stride-nonzero")
def _strided_zero(d: Draw) -> dict:
    shape = d.shape(1, lo=1)
    r = len(shape)
    at = d.int(0, r - 1)
    stride = tuple(0 if i == at else 1 for i in range(r))
    return {
        "x": T(shape),
        "begin": (0,) * r,
        "end": shape,
        "stride": stride,
        "begin_mask": (False,) * r,
        "end_mask": (False,) * r,
        "squeeze_mask": (False,) * r,
    }


@semantics(error=copied(), source="ONNX Slice-1, -10, -11, -13")
def slice_axes(
    x: Any[Array, "*d"],
    *,
    starts: Ints,
    ends: Ints,
    axes: Ints | None = None,
    steps: Ints | None = None,
    from_first: Flag = False,
) -> Array:
    """The strided slice on the named axes only; axes: None is the first len(starts) of them; steps: None is
    1; from_first: going backward, a start before the first element means the first one (else nothing is taken).

    Raises RuleError "same-length", "axes-in-range", "axes-distinct", "stride-nonzero".
    """
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise RuleError("same-length", f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes, {len(steps)} steps")
    at = norm_axes(axes, x.ndim)
    index: list = [slice(None)] * x.ndim
    if from_first:
        starts = tuple(
            -x.shape[a] if s < 0 and b < -x.shape[a] else b for a, b, s in zip(at, starts, steps, strict=True)
        )
    for a, w in zip(at, window([x.shape[a] for a in at], starts, ends, steps), strict=True):
        index[a] = w
    return x[tuple(index)]


@slice_axes.draw
def _draw_slice_axes(d: Draw) -> dict:
    shape = d.shape(1)
    some = d.subset(range(len(shape)), 1)
    if d.chance(24) and not d.breaking:  # no axis: of a scalar there is none
        shape, some = () if d.bool() else shape, []
    axes = fixed(d, "axes", lambda: None if d.chance(4) else signed(d, some, len(shape)))
    at = range(len(some)) if axes is None else [a % len(shape) for a in axes]
    stepped = axes is not None and "steps" in d.version.param_codecs
    each = tuple(_step(d, True) if stepped else 1 for _ in at)
    steps: tuple[int, ...] | None = each
    pairs = [_bounds(d, shape[a], s) for a, s in zip(at, each, strict=True)]
    starts, ends = (tuple(p[i] for p in pairs) for i in (0, 1))
    if axes is None or (all(s == 1 for s in each) and d.bool()):
        steps = None
    return {"x": T(shape), "starts": starts, "ends": ends, "axes": axes, "steps": steps}


@slice_axes.breaks("axes-in-range")
def _slice_axes_range(d: Draw) -> dict:
    shape = d.shape(1)
    return {"x": T(shape), "starts": (0,), "ends": (1,), "axes": (beyond(d, len(shape)),)}


@slice_axes.breaks("same-length")
def _slice_axes_length(d: Draw) -> dict:
    return {"x": T(d.shape(2)), "starts": (0, 0), "ends": (1,), "axes": (0, 1)}


def _bit(mask: int, i: int) -> bool:
    return bool(mask >> i & 1)


@semantics(error=copied(), source="TFLite STRIDED_SLICE; tf.strided_slice")
def strided_slice_bits(
    x: Any[Array, "*d"],
    *,
    begin: Ints,
    end: Ints,
    strides: Ints,
    begin_mask: Integer = 0,
    end_mask: Integer = 0,
    ellipsis_mask: Integer = 0,
    new_axis_mask: Integer = 0,
    shrink_axis_mask: Integer = 0,
    offset: Flag = False,
) -> Array:
    """The strided slice with masks as bit sets over the *entries* (TensorFlow); bits beyond them say nothing.

    An ellipsis entry stands for as many whole axes as are missing; a new-axis entry inserts an extent of 1; a shrink
    entry takes one index.  Axes beyond the entries are whole.  offset: end counts from begin.  Raises RuleError
    "one-ellipsis", "entries-fit", and those of ``strided_slice``.
    """
    k = len(begin)
    dots = [i for i in range(k) if _bit(ellipsis_mask, i)]
    if ellipsis_mask & (ellipsis_mask - 1):  # "must be a power of two (only one ellipsis)", bits without an entry too
        raise RuleError("one-ellipsis", f"ellipsis_mask {ellipsis_mask:b}")
    if 0 in strides:
        raise RuleError("stride-nonzero", f"strides {list(strides)}")
    real = [i for i in range(k) if i not in dots and not _bit(new_axis_mask, i)]
    if len(real) > x.ndim:
        raise RuleError("entries-fit", f"{len(real)} entries for rank {x.ndim}")
    index: list = []
    axis = 0
    for i in range(k):
        if i in dots:
            whole = x.ndim - len(real)
            index += [slice(None)] * whole
            axis += whole
        elif _bit(new_axis_mask, i):
            index.append(None)
        else:
            e = int(end[i]) + (int(begin[i]) if offset else 0)
            index += window(
                x.shape[axis : axis + 1],
                [begin[i]],
                [e],
                [strides[i]],
                [_bit(begin_mask, i)],
                [_bit(end_mask, i)],
                [_bit(shrink_axis_mask, i)],
            )
            axis += 1
    of_x: tuple[Anything, ...] = (*index, ...)
    return x[of_x]


@strided_slice_bits.draw
def _draw_bits(d: Draw) -> dict:
    shape = d.shape(0, min(5, d.max_rank))
    given = d.int(min(1, len(shape)), len(shape))
    dots = d.int(0, given) if "ellipsis_mask" not in d.fixed and d.chance(3) else None
    rows: list[tuple[int, int, int]] = []
    masks, axis = dict.fromkeys(("begin", "end", "ellipsis", "new_axis", "shrink_axis"), 0), 0
    for i in range(given):
        k = len(rows)
        if dots == i:
            masks["ellipsis"] |= 1 << k
            rows.append((0, 0, 1))
            axis += len(shape) - given
            k += 1
        if "new_axis_mask" not in d.fixed and d.chance(8) and len(shape) < 4 and masks["new_axis"] == 0:
            masks["new_axis"] |= 1 << k
            rows.append((0, 1, 1))
            k += 1
        n, s = shape[axis], _step(d, True)
        s = INT32_MIN if s == -INT32_MAX and d.bool() else s
        if n > 0 and d.chance(6):
            masks["shrink_axis"] |= 1 << k
            b = d.int(-n, n - 1)
            rows.append((b, b + 1, 1))
        else:
            rows.append((*_bounds(d, n, s), s))
            masks["begin"] |= int(d.chance(5)) << k
            masks["end"] |= int(d.chance(5)) << k
        axis += 1
    begin, end, strides = (tuple(r[i] for r in rows) for i in range(3))
    for m in ("begin", "end", "new_axis", "shrink_axis"):  # "ellipsis_mask must be a power of two"
        if f"{m}_mask" not in d.fixed and d.chance(24):
            masks[m] |= d.pick((-1 << len(rows), INT32_MIN, INT32_MAX >> len(rows) << len(rows)))
    return {
        "x": T(shape),
        "begin": begin,
        "end": end,
        "strides": strides,
        "offset": False,
        **{f"{m}_mask": v for m, v in masks.items()},
    }


@strided_slice_bits.breaks("one-ellipsis")
def _bits_two_ellipses(d: Draw) -> dict | None:
    if "ellipsis_mask" in d.fixed:
        return None
    at = {"begin": (0, 0), "end": (1, 1), "strides": (1, 1)}
    return {"x": T(d.shape(2, min(5, d.max_rank), lo=1)), **at, "ellipsis_mask": 3}


@strided_slice_bits.breaks("entries-fit")
def _bits_too_many(d: Draw) -> dict:
    shape = d.shape(1, min(4, d.max_rank), lo=1)
    n = len(shape) + 1
    return {"x": T(shape), "begin": (0,) * n, "end": (1,) * n, "strides": (1,) * n}


@strided_slice_bits.breaks("stride-nonzero")
def _bits_zero(d: Draw) -> dict:
    return {"x": T(d.shape(1, min(5, d.max_rank), lo=1)), "begin": (0,), "end": (1,), "strides": (0,)}


@semantics(error=copied(), source="MIL slice_by_size iOS15; TFLite SLICE; NN sliceBySize")
def slice_by_size(x: Any[Array, "*d"], *, begin: Ints, size: Ints) -> Array:
    """size[i] elements from begin[i] on along axis i; a size of -1 takes all that remain; a negative begin
    counts from the end.

    Raises RuleError "entry-per-axis", "slice-inside".
    """
    if not len(begin) == len(size) == x.ndim:
        raise RuleError("entry-per-axis", f"{len(begin)} begins, {len(size)} sizes for rank {x.ndim}")
    index = []
    for n, b, s in zip(x.shape, begin, size, strict=True):
        b = int(b) + n if b < 0 else int(b)
        s = n - b if s == -1 else int(s)
        if b < 0 or s < 0 or b + s > n:
            raise RuleError("slice-inside", f"begin {list(begin)}, size {list(size)} of {list(x.shape)}")
        index.append(slice(b, b + s))
    return x[tuple(index)]


@slice_by_size.draw
def _draw_by_size(d: Draw) -> dict:
    if tagged(d, "far", 32):  # an axis as long as any, without elements
        first = d.pick((0, INT32_MAX, d.int(0, INT32_MAX)))
        return {"x": T((INT32_MAX, 0)), "begin": (first, 0), "size": (INT32_MAX - first, d.pick((0, -1)))}
    shape = d.shape(0 if tagged(d, "scalars") else 1)
    least = 0 if d.empty else 1
    begin = tuple(d.int(0, max(0, n - least)) for n in shape)
    size = tuple(-1 if d.chance(4) else d.int(min(least, n - b), n - b) for n, b in zip(shape, begin, strict=True))
    return {"x": T(shape), "begin": begin, "size": size}


@slice_by_size.breaks("entry-per-axis")
def _by_size_count(d: Draw) -> dict:
    shape = d.shape(1, max(1, d.max_rank - 1), lo=1)
    n = len(shape) + d.pick((-1, 1))
    return {"x": T(shape), "begin": (0,) * n, "size": (1,) * n}


@slice_by_size.breaks("slice-inside")
def _by_size_outside(d: Draw) -> dict:
    shape = d.shape(1, lo=1)
    at = d.int(0, len(shape) - 1)
    size = tuple(n + 1 if i == at else n for i, n in enumerate(shape))
    return {"x": T(shape), "begin": (0,) * len(shape), "size": size}


@semantics(error=copied(), source="MIL slice_update iOS18")
def slice_update(
    x: Any[Array, "*d"],
    update: Any[Array, "*e"],
    *,
    begin: Ints,
    end: Ints,
    stride: Ints | None = None,
    begin_mask: Ints = (),
    end_mask: Ints = (),
    squeeze_mask: Ints = (),
) -> Any[Array, "*d"]:
    """``x`` with the elements that ``strided_slice`` would take replaced by ``update``, which has the shape
    of that slice.

    Raises RuleError "update-fits" and those of ``strided_slice``.
    """
    stride = (1,) * x.ndim if stride is None else stride
    index = window(x.shape, begin, end, stride, begin_mask, end_mask, squeeze_mask)
    out = np.array(x)
    if out[index].shape != update.shape:
        raise RuleError("update-fits", f"update {list(update.shape)} for a slice of {list(out[index].shape)}")
    out[index] = update
    return out


@slice_update.draw
def _draw_update(d: Draw) -> dict:
    values = _draw_strided(d)
    keys = ("begin", "end", "stride", "begin_mask", "end_mask", "squeeze_mask")
    shape = np.empty(values["x"].shape, np.bool_)[window(values["x"].shape, *(values[k] for k in keys))].shape
    return {**values, "update": T(shape)}


@slice_update.breaks("update-fits")
def _update_misfit(d: Draw) -> dict:
    values = _draw_update(d)
    shape = values["update"].shape
    return {**values, "update": T((shape[0] + 1, *shape[1:]) if shape else (2,))}
