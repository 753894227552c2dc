"""Images besides sampling: grids of affine maps, columns folded back, pooling undone."""

from __future__ import annotations

from typing import Any as Object

import numpy as np

from harness.core.dtypes import DType, float_max, of
from harness.core.errors import RuleError
from harness.declare import Flag, Float, Int, Ints, Numeric, T, accumulates, composed, exact, semantics, underspecified
from harness.generate.draw import Draw
from suites.semantics.bounds import unordered
from suites.semantics.movement.common import prod
from suites.semantics.window import geometry

Array = np.ndarray


@semantics(
    error=composed(
        lambda c: (
            12
            * c.acc_u
            * np.broadcast_to(
                np.expand_dims(
                    np.abs(np.asarray(c.inputs["theta"], np.float64)).sum(-1), tuple(range(1, c.wide.ndim - 1))
                ),
                c.wide.shape,
            )
            + c.ulp
        ),
        "12 u sum|theta| of the row",
    ),
    source="ONNX AffineGrid-20",
    data=("unit", "small"),
    ambiguous=lambda i, p: _maps_mixed(i["theta"]),
)
def affine_grid(theta: Float[Array, "n k m"], *, size: Ints, align: Flag = False) -> Array:
    """theta applied to evenly spaced positions in [-1, 1]: [n, *size[2:], k].

    theta: [n, k, k + 1] for a size of (n, c) and k extents.  Raises RuleError "size-fits"."""
    s = [int(v) for v in size[2:]]
    k = len(s)
    if k < 1 or theta.shape != (int(size[0]), k, k + 1):
        raise RuleError("size-fits", f"theta {list(theta.shape)} for size {list(size)}")
    with np.errstate(all="ignore"):
        lines = [np.linspace(-1, 1, n) if align else (2 * np.arange(n) + 1) / n - 1 for n in s]
    if align:
        lines = [np.array([-1.0]) if n == 1 else v for n, v in zip(s, lines)]
    mesh = np.meshgrid(*lines, indexing="ij")[::-1]
    ones = np.stack([*mesh, np.ones(s)], -1)
    return np.einsum("...j,nij->n...i", ones, theta.astype(np.float64))


@affine_grid.draw
def _draw_affine(d: Draw) -> dict:
    k, n, c = d.int(2, 3), d.int(1, 3), d.int(1, 3)
    if d.empty:
        n = 0
    elif d.chance(12):
        n, c = d.pick((17, 130, 400)), d.pick((1, 2**31 - 1))
    return {"theta": T((n, k, k + 1)), "size": (n, c, *(d.int(2, 5) for _ in range(k))), "align": d.bool()}


@affine_grid.breaks("size-fits")
def _other_size(d: Draw) -> dict:
    """A size of another batch, or of another number of axes."""
    size = d.pick(((2, 1, 2, 2), (1, 1, 2, 2, 2), (1, 1, 2)))
    return {"theta": T((1, 2, 3)), "size": size, "align": d.bool()}


def _summed(
    x: Array, image: Ints, block: Ints, strides: Ints | None, pads: Ints | None, dilations: Ints | None
) -> Array:
    """What ``col2im`` says, of an array."""
    r = len(image)
    g = geometry(image, block, strides, dilations, pads, "explicit")
    st, di, p, counts = g.strides, g.dilations, g.pads, g.sizes
    cells = prod(block)
    if x.shape[1] % max(cells, 1) or x.shape[2] != prod(counts):
        raise RuleError("columns-fit", f"x {list(x.shape)} for block {list(block)}, windows {list(counts)}")
    c = x.shape[1] // cells
    held = {"f": np.float64, "c": np.complex128}.get(of(x).kind, x.dtype)
    out = np.zeros((x.shape[0], c, *image), held)
    if not out.size:
        return out
    cols = x.reshape(x.shape[0], c, *block, *counts)
    for t in np.ndindex(tuple(block)):
        from_: tuple[Object, ...] = (slice(None), slice(None), *t)
        to: tuple[Object, ...] = (slice(None), slice(None))
        for i in range(r):  # the windows whose element falls into the image
            start = t[i] * di[i] - p[i]
            first, last = max(0, -(start // st[i])), min(counts[i] - 1, (image[i] - 1 - start) // st[i])
            from_ = (*from_, slice(first, max(first, last + 1)))
            at = start + first * st[i]
            to = (*to, slice(at, at + max(0, last - first) * st[i] + 1 if last >= first else at, st[i]))
        out[to] += cols[from_].astype(out.dtype)
    return out


def _sum_overflows(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """A sum of absolute values beyond the type: a partial sum may be infinite."""
    x = inputs["x"]
    if of(x).kind not in "fc":
        return None
    if of(x).kind == "c":
        sizes = np.where(np.isfinite(x), np.abs(x.real.astype(np.float64)) + np.abs(x.imag.astype(np.float64)), 0.0)
    else:
        sizes = np.where(np.isfinite(x), np.abs(x.astype(np.float64)), 0.0)
    total = _summed(
        sizes, *(params[n] for n in ("image", "block")), *(params.get(n) for n in ("strides", "pads", "dilations"))
    )
    return underspecified("a partial sum beyond the range of the type", total > _top(of(x)))


def _top(d: DType) -> float:
    return float(np.finfo(d.np).max) if d.kind == "c" else float_max(d)


@semantics(
    error=accumulates(lambda c: float(prod(c.params["block"]) + 1)), ambiguous=_sum_overflows, source="ONNX Col2Im-18"
)
def col2im(
    x: Numeric[Array, "n k l"],
    *,
    image: Ints,
    block: Ints,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
) -> Array:
    """Columns [n, c * prod(block), windows] summed back into an image [n, c, *image].  Raises RuleError
    "columns-fit", "pads-nonnegative" and those of ``geometry``."""
    if pads is not None and min(pads, default=0) < 0:  # "it can take any value greater than or equal to 0"
        raise RuleError("pads-nonnegative", f"pads {list(pads)}")
    return _summed(x, image, block, strides, pads, dilations)


def _far_image(d: Draw, r: int, image: bool) -> dict:
    """An image of no batch, or blocks of no channel, as large as 32 bits count."""
    ones, at = (1,) * r, d.int(0, r - 1)
    far = tuple(2**31 - 1 if k == at else 1 for k in range(r))
    n, c = (0, d.int(0, 2)) if image else (d.int(0, 2), 0)
    image_shape = far if image else tuple(v + d.int(0, 1) for v in far)
    strides = tuple(2**31 - 1 if k == at else 2 for k in range(r))
    return {
        "x": T((n, c, 1)),
        "image": image_shape,
        "block": ones if image else far,
        "strides": strides,
        "pads": (0,) * (2 * r),
        "dilations": ones,
    }


@col2im.draw
def _draw_col2im(d: Draw) -> dict:
    r = d.pick((2, 2, 2, 3))
    block = tuple(d.int(1, 3) for _ in range(r))
    di = tuple(d.int(1, 2) for _ in range(r))
    st = tuple(d.int(1, 2) for _ in range(r))
    p = tuple(d.int(0, 1) for _ in range(2 * r))
    if d.chance(8) and not d.breaking:  # far ones
        how = d.int(0, 4)
        if how == 4 and d.bool():
            return _far_image(d, r, not d.chance(6))
        if how == 0:  # padding beyond block and image
            p = tuple(d.pick((3, 4)) for _ in p)
        elif how == 1:
            block, di = (1, *block[1:]), (d.pick((2**31 - 1, 17)), *di[1:])
        elif how == 2:
            block, di = (12, *(1 for _ in block[1:])), (1,) * r
        else:  # padding without end, of which the stride leaves one window
            p, st = (2**31 - 1, *p[1:]), (2**31 - 1, *st[1:])
    image = tuple(max(0, di[i] * (block[i] - 1) + 1 - p[i] - p[r + i]) + d.int(0, 3) for i in range(r))
    counts = [(image[i] + p[i] + p[r + i] - di[i] * (block[i] - 1) - 1) // st[i] + 1 for i in range(r)]
    return {
        "x": T((d.extent(1, 2), d.extent(1, 2) * prod(block), prod(counts))),
        "image": image,
        "block": block,
        "strides": st,
        "pads": p,
        "dilations": di,
    }


@col2im.breaks("pads-nonnegative")
def _cut_image(d: Draw) -> dict:
    """An image of three columns, the first of which no window sees."""
    pads = d.pick(((0, -1, 0, 0), (0, 0, 0, -1)))
    ones = (1, 1)
    return {"x": T((1, 1, 4)), "image": (2, 3), "block": ones, "pads": pads, "strides": ones, "dilations": ones}


@col2im.breaks("columns-fit")
def _other_columns(d: Draw) -> dict:
    """A window more than the image has, or columns that are no whole blocks."""
    out = _draw_col2im(d)
    n, k, windows = out["x"].shape
    odd = prod(out["block"]) > 1 and d.bool()
    return {**out, "x": T((n, k + 1, windows) if odd else (n, k, windows + 1))}


@col2im.breaks("one-per-axis")
def _col2im_lists(d: Draw) -> dict:
    """One list has a number more than there are axes."""
    out = _draw_col2im(d)
    name = d.pick(("strides", "pads", "dilations"))
    return {**out, name: (*out[name], 1 if name == "pads" else 2)}  # nothing that could be left out as the default


def _unpooled(x: Array, kernel: Ints, strides: Ints | None, pads: Ints | None, shape: Ints | None) -> list[int]:
    """The shape in which the indices of MaxUnpool count.  A given shape of the output replaces the pads: what it cuts
    off is padding, and beyond what the windows cover it adds nothing that an index counts.

    Raises RuleError "one-per-axis", "strides-positive", "output-not-negative", "shape-holds"."""
    r = x.ndim - 2
    st, p = strides or (1,) * r, pads or (0,) * (2 * r)
    if len(kernel) != r or len(st) != r or len(p) != 2 * r:
        raise RuleError("one-per-axis", f"kernel {list(kernel)}, strides {list(st)}, pads {list(p)} for {r} axes")
    if any(v < 1 for v in st):
        raise RuleError("strides-positive", f"{list(st)}")
    covered = [(n - 1) * t + k for n, t, k in zip(x.shape[2:], st, kernel)]
    if shape is not None:
        if len(shape) != x.ndim or tuple(shape[:2]) != x.shape[:2] or any(v < 0 for v in shape):
            raise RuleError("shape-holds", f"output_shape {list(shape)} for x {list(x.shape)}")
        return [*x.shape[:2], *(min(v, int(n)) for v, n in zip(covered, shape[2:]))]
    inner = [v - a - e for v, a, e in zip(covered, p, p[r:])]
    if any(v < 0 for v in inner):
        raise RuleError("output-not-negative", f"extents {inner}")
    return [*x.shape[:2], *inner]


def _placed(x: Array, index: Array, counted: list[int], shape: Ints | None) -> Array:
    """Zeros of ``shape`` (``counted``, where it is None) with ``x`` at the indices of its first [*counted] elements."""
    out = np.zeros(prod(counted), x.dtype)
    out[index.reshape(-1)] = x.reshape(-1)
    if shape is None:
        return out.reshape(counted)
    whole = np.zeros([int(v) for v in shape], x.dtype)
    whole[tuple(slice(n) for n in counted)] = out.reshape(counted)
    return whole


def _unpool_into_more(inputs: dict, params: dict) -> str | None:
    """MaxPool's Indices count in the tensor that was pooled, which a given shape is said to restore.  The node test
    maxunpool_export_with_output_shape of the onnx package counts them in what the windows cover.  (onnx issue 2398)"""
    x, index, shape = inputs["x"], inputs["index"], params["shape"]
    if shape is None:
        return None
    covered, whole = _unpooled(x, **{n: params[n] for n in ("kernel", "strides", "pads", "shape")}), [*map(int, shape)]
    if covered == whole:
        return None
    ours, other = _placed(x, index, covered, shape), _placed(x, index, whole, shape)
    from_ = np.arange(1, x.size + 1)  # which element of x stands where
    at = _placed(from_, index, covered, shape) != _placed(from_, index, whole, shape)
    why = "MaxUnpool: in an output_shape beyond what the windows cover, do the indices count in it or in the latter?"
    return underspecified(why, at, ours, other)


@semantics(error=exact(), source="ONNX MaxUnpool-9, -11, -22", ambiguous=_unpool_into_more)
def max_unpool(
    x: Float[Array, "n c *s"],
    index: Int[Array, "n c *s"],
    *,
    kernel: Ints,
    strides: Ints | None = None,
    pads: Ints | None = None,
    shape: Ints | None = None,
) -> Array:
    """Zeros with the elements of ``x`` at the linear indices of a tensor [n, c, *t].

    t = stride (s - 1) + kernel - pads.  With ``shape`` given ``pads`` are ignored and t is at most ``shape``; a larger
    ``shape`` has that tensor at its beginning.

    Raises RuleError "one-per-axis", "strides-positive", "output-not-negative", "index-shape", "index-in-range",
    "shape-holds".  Source: ONNX MaxUnpool-9: "If 'output_shape' is specified, 'pads' values are ignored"."""
    full = _unpooled(x, kernel, strides, pads, shape)
    if index.shape != x.shape:
        raise RuleError("index-shape", f"indices {list(index.shape)} for x {list(x.shape)}")
    if x.size and not (index.min() >= 0 and index.max() < prod(full)):
        raise RuleError("index-in-range", f"index {index.max()} of {prod(full)}")
    return _placed(x, index, full, shape)


@max_unpool.draw
def _draw_unpool(d: Draw) -> dict:
    """A third with the shape of the output: what the windows cover, or up to 1 less or 2 more along each axis."""
    if d.chance(8) and not d.breaking:
        return _draw_far_unpool(d)
    n, c = d.int(1, 2), d.int(1, 2)
    s = tuple(d.int(1, 3) for _ in range(d.int(3, 6) if d.chance(8) else d.int(1, 2)))
    if d.chance(16):
        n, c, s = 1, 1, (d.pick((17, 129, 300, 2049)),)
    elif d.empty:
        n, c = (0 if d.bool() else v for v in (n, c))
    k = tuple(d.int(1, 3) if d.chance(4) else d.int(2, 3) for _ in s)
    st = tuple(min(d.int(1, 2), m) for m in k)
    pads = tuple(min(d.int(0, 1) if d.bool() else 0, m - 1) for m in (*k, *k))
    covered = [(v - 1) * t + m for v, t, m in zip(s, st, k)]
    full = [n - a - e for n, a, e in zip(covered, pads, pads[len(s) :])]
    if any(n < v for n, v in zip(full, s)):  # no room for all of them
        pads, full = (0,) * len(pads), covered
    shape = None
    if d.int(0, 2) == 0:
        shape = (n, c, *(d.int(max(v - 1, e), v + 2) if d.bool() else v for v, e in zip(covered, s)))
        full = [min(v, e) for v, e in zip(covered, shape[2:])]
    image = prod(full)
    count = prod(s)
    values = []
    for b in range(n * c):
        step = d.int(1, max(1, image // max(count, 1)))
        values += [b * image + j * step for j in range(count)]
    return {
        "x": T((n, c, *s)),
        "index": T((n, c, *s), values=values),
        "kernel": k,
        "strides": st,
        "pads": pads,
        "shape": shape,
    }


_END = 2**31 - 1


def _draw_far_unpool(d: Draw) -> dict:
    """Strides beyond the kernel, pads beyond both, either at the end of i32, no element along an axis."""
    r = d.int(1, 2)
    n, c, shape = 1, d.int(1, 2), None
    s = tuple(d.int(1, 3) for _ in range(r))
    st, k = tuple(d.pick((1, 2, 5, 12)) for _ in s), tuple(d.pick((1, 2, 4, 12)) for _ in s)
    how = d.int(0, 4)
    if how == 0:  # no element: what there would be counts for nothing
        at = d.int(0, r + 1)
        n, c, *rest = (0 if i == at else v for i, v in enumerate((n, c, *s)))
        s = tuple(rest)
        if at < 2 and d.bool():
            k = (_END, *k[1:])
        elif at < 2:
            shape = (n, c, _END, *s[1:])
    elif how == 1:
        s, st = (1, *s[1:]), (_END, *st[1:])
    elif how == 2:
        k = (_END, *k[1:])
    covered = [max(0, (v - 1) * t + m) for v, t, m in zip(s, st, k)]
    k = tuple(max(m, 1 - (v - 1) * t) for v, t, m in zip(s, st, k))
    pads = [0] * (2 * r)
    for i, v in enumerate(covered):
        room = v - s[i] - (d.int(0, 2) if v < _END else 0)
        if room > 0 and (v >= _END - 1 or d.int(0, 3)) and (n and c):
            pads[i + r * d.int(0, 1)] = _END if v - s[i] >= _END and d.bool() else room
    full = [v - a - e for v, a, e in zip(covered, pads, pads[r:])]
    if shape is None and how == 3 and r == 2 and s[0] > 1:  # one row less than there are of x, and more columns
        shape, pads = (n, c, s[0] - 1, s[0] * s[1] + 1), [0] * 4
        full = [min(a, e) for a, e in zip(covered, shape[2:])]
        if prod(full) < prod(s):
            shape, full = None, covered
    values = [b * prod(full) + j for b in range(n * c) for j in range(prod(s))]
    x = (n, c, *s)
    index = T(x, values=values)
    return {"x": T(x), "index": index, "kernel": k, "strides": st, "pads": tuple(pads), "shape": shape}


@max_unpool.breaks("index-in-range")
def _unpool_beyond(d: Draw) -> dict:
    """An index behind the last element."""
    n = d.int(1, 3)
    values = [*range(n - 1), 2 * n + d.int(0, 1)]
    return {"x": T((1, 1, n)), "index": T((1, 1, n), values=values), "kernel": (2,), "strides": (2,)}


@max_unpool.breaks("output-not-negative")
def _unpool_negative(d: Draw) -> dict:
    """More padding than the windows cover; no element, so that no index is out of range."""
    return {"x": T((1, 0, 1)), "index": T((1, 0, 1)), "kernel": (2,), "strides": (2,), "pads": (d.int(3, 5), 0)}


@max_unpool.breaks("strides-positive")
def _unpool_strides(d: Draw) -> dict:
    return {**_one_place(d), "strides": (d.pick((0, -1)),)}


@max_unpool.breaks("shape-holds")
def _unpool_other_shape(d: Draw) -> dict:
    """Another batch, or an axis more, than x has."""
    return {**_one_place(d), "shape": d.pick(((2, 1, 2), (1, 1, 2, 1), (1, 2, 2)))}


def _one_place(d: Draw) -> dict:
    return {"x": T((1, 1, 1)), "index": T((1, 1, 1), values=[0]), "kernel": (2,), "strides": (2,), "pads": None}


@max_unpool.breaks("one-per-axis")
def _unpool_lists(d: Draw) -> dict:
    """One list has a number more than there are axes."""
    out = _draw_unpool(d)
    name = d.pick(("kernel", "strides", "pads"))
    return {**out, name: (*out[name], 1 if name == "pads" else 2)}  # nothing that could be left out as the default


@max_unpool.breaks("index-shape")
def _unpool_indices(d: Draw) -> dict:
    """An index more along the last axis than there are elements."""
    out = _draw_unpool(d)
    shape = out["x"].shape
    return {**out, "index": T((*shape[:-1], shape[-1] + 1), "ints:0:1")}


def _maps_mixed(theta: Array) -> str | None:
    """Of a map with an infinity or a NaN: the coordinates that it is multiplied with may be 0, or next to it."""
    at = unordered("inf, NaN or a sum beyond the type in an affine map", theta, (1, 2), keepdims=False)
    return None if at is None else underspecified(at.parts[0].why, at.parts[0].at.reshape(-1, *(1,) * theta.shape[2]))
