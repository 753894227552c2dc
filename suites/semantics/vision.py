"""Images besides sampling: grids of affine maps, columns folded back, pooling undone."""

from __future__ import annotations

from typing import Any as Object

import numpy as np

from harness.core.dtypes import float_max, of
from harness.core.errors import RuleError
from harness.declare import Flag, Float, Int, Ints, Num, T, accumulates, composed, exact, semantics, underspecified
from harness.generate.draw import Draw
from suites.semantics.movement.common import prod
from suites.semantics.window import geometry

Array = np.ndarray


@semantics(
    error=composed(
        lambda c: (
            12
            * c.acc_u
            * np.broadcast_to(
                np.abs(np.asarray(c.inputs["theta"], np.float64)).sum(-1)[
                    (slice(None), *(None,) * (c.wide.ndim - 2), slice(None))
                ],
                c.wide.shape,
            )
            + c.ulp
        ),
        "12 u sum|theta| of the row",
    ),
    source="ONNX AffineGrid-20",
    data=("unit", "small"),
)
def affine_grid(theta: Float["n k m"], *, size: Ints, align: Flag = False):
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
    k, n = d.int(2, 3), d.int(1, 3)
    return {"theta": T((n, k, k + 1)), "size": (n, d.int(1, 3), *(d.int(2, 5) for _ in range(k))), "align": d.bool()}


def _summed(x: Array, image: Ints, block: Ints, strides: Ints, pads: Ints, dilations: Ints) -> Array:
    """What ``col2im`` says, of an array."""
    r = len(image)
    g = geometry(image, block, strides, dilations, pads, "explicit")
    st, di, p, counts = g.strides, g.dilations, g.pads, g.sizes
    cells = prod(block)
    if x.shape[1] % max(cells, 1) or x.shape[2] != prod(counts):
        raise RuleError("columns-fit", f"x {list(x.shape)} for block {list(block)}, windows {list(counts)}")
    c = x.shape[1] // cells
    whole = of(x).kind != "f"
    out = np.zeros((x.shape[0], c, *(image[i] + p[i] + p[r + i] for i in range(r))), x.dtype if whole else np.float64)
    cols = x.reshape(x.shape[0], c, *block, *counts)
    for t in np.ndindex(tuple(block)):
        at = tuple(slice(t[i] * di[i], t[i] * di[i] + st[i] * (counts[i] - 1) + 1, st[i]) for i in range(r))
        out[(slice(None), slice(None), *at)] += cols[(slice(None), slice(None), *t)].astype(out.dtype)
    return out[(slice(None), slice(None), *(slice(p[i], p[i] + image[i]) for i in range(r)))]


def _sum_overflows(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """A sum of absolute values beyond the type: a partial sum may be infinite."""
    x = inputs["x"]
    if of(x).kind != "f":
        return None
    sizes = np.where(np.isfinite(x), np.abs(x.astype(np.float64)), 0.0)
    total = _summed(sizes, *(params.get(n) for n in ("image", "block", "strides", "pads", "dilations")))
    return underspecified("a partial sum beyond the range of the type", total > float_max(of(x)))


@semantics(
    error=accumulates(lambda c: float(prod(c.params["block"]) + 1)), ambiguous=_sum_overflows, source="ONNX Col2Im-18"
)
def col2im(
    x: Num["n k l"], *, image: Ints, block: Ints, strides: Ints = None, pads: Ints = None, dilations: Ints = None
):
    """Columns [n, c * prod(block), windows] summed back into an image [n, c, *image].  Raises RuleError
    "columns-fit" and those of ``geometry``."""
    return _summed(x, image, block, strides, pads, dilations)


@col2im.draw
def _draw_col2im(d: Draw) -> dict:
    r = d.pick((2, 2, 2, 3))
    block = tuple(d.int(1, 3) for _ in range(r))
    di = tuple(d.int(1, 2) for _ in range(r))
    st = tuple(d.int(1, 2) for _ in range(r))
    p = tuple(d.int(0, 1) for _ in range(2 * r))
    image = tuple(di[i] * (block[i] - 1) + 1 + d.int(0, 3) for i in range(r))
    counts = [(image[i] + p[i] + p[r + i] - di[i] * (block[i] - 1) - 1) // st[i] + 1 for i in range(r)]
    return {
        "x": T((d.extent(1, 2), d.extent(1, 2) * prod(block), prod(counts))),
        "image": image,
        "block": block,
        "strides": st,
        "pads": p,
        "dilations": di,
    }


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


@semantics(error=exact(), source="ONNX MaxUnpool-9, -11, -22")
def max_unpool(
    x: Float["n c *s"],
    index: Int["n c *s"],
    *,
    kernel: Ints,
    strides: Ints = None,
    pads: Ints = None,
    shape: Ints = None,
):
    """Zeros with the elements of ``x`` at the linear indices of a tensor [n, c, *t], t = stride (s - 1) + kernel -
    pads; with ``shape`` given, that tensor lies at the beginning of one of this shape.

    Raises RuleError "one-per-axis", "strides-positive", "output-not-negative", "index-shape", "index-in-range",
    "shape-holds"."""
    r = x.ndim - 2
    st, p = strides or (1,) * r, pads or (0,) * (2 * r)
    if len(kernel) != r or len(st) != r or len(p) != 2 * r:
        raise RuleError("one-per-axis", f"kernel {list(kernel)}, strides {list(st)}, pads {list(p)} for {r} axes")
    if any(v < 1 for v in st):
        raise RuleError("strides-positive", f"{list(st)}")
    inner = [(x.shape[2 + i] - 1) * st[i] + kernel[i] - p[i] - p[r + i] for i in range(r)]
    full = [*x.shape[:2], *inner]
    if any(v < 0 for v in inner):
        raise RuleError("output-not-negative", f"extents {inner}")
    if index.shape != x.shape:
        raise RuleError("index-shape", f"indices {list(index.shape)} for x {list(x.shape)}")
    out = np.zeros(prod(full), x.dtype)
    if x.size and not (index.min() >= 0 and index.max() < out.size):
        raise RuleError("index-in-range", f"index {index.max()} of {out.size}")
    out[index.reshape(-1)] = x.reshape(-1)
    if shape is None:
        return out.reshape(full)
    if len(shape) != x.ndim or any(v < n for v, n in zip(shape, full)):
        raise RuleError("shape-holds", f"shape {list(shape)} for what is unpooled to {full}")
    whole = np.zeros([int(v) for v in shape], x.dtype)
    whole[tuple(slice(n) for n in full)] = out.reshape(full)
    return whole


@max_unpool.draw
def _draw_unpool(d: Draw) -> dict:
    n, c = d.int(1, 2), d.int(1, 2)
    s = tuple(d.int(1, 3) for _ in range(d.int(1, 2)))
    k = tuple(d.int(2, 3) for _ in s)
    st = tuple(d.int(1, 2) for _ in s)
    pads = tuple(d.int(0, 1) if d.bool() else 0 for _ in range(2 * len(s)))
    full = [(v - 1) * t + m for v, t, m in zip(s, st, k)]
    if any(n - a - e < v for n, a, e, v in zip(full, pads, pads[len(s) :], s)):  # no room for all of them
        pads = (0,) * len(pads)
    full = [n - a - e for n, a, e in zip(full, pads, pads[len(s) :])]
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
        "shape": None,
    }


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
