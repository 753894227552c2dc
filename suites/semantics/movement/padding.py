"""Borders: constant, reflect, symmetric, edge and wrap; a negative amount crops."""

from __future__ import annotations

import math

import numpy as np

from harness.core.dtypes import F8E8M0, of
from harness.core.errors import RuleError
from harness.declare import Any, Array, Choice, Ints, T, copied, semantics, underspecified
from harness.generate.draw import Draw
from suites.semantics.movement.common import INT32_MAX, fixed, norm_axes, options, prod, signed, tagged


def pad_axes(x: np.ndarray, before: list[int], after: list[int], mode: str, value: object) -> np.ndarray:
    """``x`` with before[i] / after[i] elements added on axis i, removed where that is negative: each axis is as much
    longer or shorter.  Raises RuleError "extent-nonnegative", "border-has-data"."""
    shape = [n + b + a for n, b, a in zip(x.shape, before, after, strict=True)]
    if min(shape, default=0) < 0:
        raise RuleError("extent-nonnegative", f"pads {before}, {after} on {list(x.shape)}")
    # of each axis what is left, which is nothing where one side removes more than there is
    kept = [(max(-b, 0), max(min(n, n + a), -b, 0)) for n, b, a in zip(x.shape, before, after, strict=True)]
    x = x[tuple(slice(lo, hi) for lo, hi in kept)]
    if mode == "constant":
        out = np.empty(shape, x.dtype)
        out.fill(value) if x.dtype.kind != "O" else out.__setitem__(Ellipsis, value)
        out[tuple(slice(lo + b, lo + b + n) for (lo, _), b, n in zip(kept, before, x.shape, strict=True))] = x
        return out
    widths = [(max(b, 0), max(a, 0)) for b, a in zip(before, after, strict=True)]
    for axis, (b, a) in enumerate(widths):
        if b or a:
            x = x.take(_source(x.shape[axis], b, a, mode), axis)
    return x


def _source(n: int, before: int, after: int, mode: str) -> np.ndarray:
    """Index into an axis of extent ``n`` for every position of the padded axis."""
    if n == 0:
        raise RuleError("border-has-data", f"mode {mode} on an axis of extent 0")
    at = np.arange(-before, n + after)
    if mode == "edge":
        return at.clip(0, n - 1)
    if mode == "wrap":
        return at % n
    return mirrored(at, n, twice=mode == "symmetric")


def mirrored(at: np.ndarray, n: int, twice: bool) -> np.ndarray:
    """Positions folded back into an axis of extent ``n`` > 0.  twice: the elements at its ends come twice."""
    if n == 1:
        return np.zeros_like(at)
    turn = 2 * n - (1 if twice else 2)  # the sum of a position and its image
    at = at % (2 * n if twice else turn)
    return np.where(at < n, at, turn - at)


def _no_zero(inputs: dict[str, np.ndarray], params: dict[str, object]) -> str | None:
    """ONNX Pad-24 takes float8e8m0, whose numbers are powers of two, and pads with 0 where no value is given."""
    x = inputs["x"]
    if of(x) is not F8E8M0 or params["mode"] != "constant" or inputs.get("value") is not None:
        return None
    border = pad(np.zeros(x.shape, bool), np.array(True), **params)
    return underspecified("float8e8m0 has no 0, which the border is to hold", border)


@semantics(
    error=copied(),
    ambiguous=_no_zero,
    source="ONNX Pad-1, -2, -11, -13, -18; MIL pad iOS15; TFLite PAD, PADV2, MIRROR_PAD; NN constantPad",
)
def pad(
    x: Any[Array, "*d"],
    value: Any[Array, ""] | None = None,
    *,
    pads: Ints,
    mode: Choice[str, "constant", "reflect", "symmetric", "edge", "wrap"],
    axes: Ints | None = None,
) -> Array:
    """A border on the named axes (None: all).

    pads: begins, then ends, in the order of ``axes``; negative ones crop, before anything is added.
    mode: "constant" (``value``, absent: zero, false or the empty string), "reflect" (mirror without the edge element),
        "symmetric" (with it), "edge", "wrap"; a border longer than the axis goes on with the same period.

    Raises RuleError "pads-per-axis", "axes-in-range", "axes-distinct", "extent-nonnegative", "border-has-data".
    """
    at = norm_axes(axes, x.ndim)
    if len(pads) != 2 * len(at):
        raise RuleError("pads-per-axis", f"{len(pads)} pads for {len(at)} axes")
    before, after = [0] * x.ndim, [0] * x.ndim
    for i, a in enumerate(at):
        before[a], after[a] = int(pads[i]), int(pads[len(at) + i])
    if value is None:
        fill = "" if x.dtype.kind == "O" else x.dtype.type(0)
    else:
        fill = value.reshape(-1)[0]
    return pad_axes(x, before, after, mode, fill)


def _reach(mode: str, n: int) -> int:
    """Longest border that every operator set agrees on."""
    return {"constant": 5, "reflect": n - 1, "symmetric": n, "edge": 5, "wrap": n}[mode]


@pad.draw
def _draw_pad(d: Draw) -> dict:
    mode = d.pick(options(d, "mode"))
    if mode == "constant" and tagged(d, "far", 32):  # a result as long as any, without elements
        before = d.pick((0, INT32_MAX, d.int(0, INT32_MAX)))
        pads = (before, 0, INT32_MAX - before, 0)
        return {"x": T((0, 0)), "pads": pads, "mode": mode, "axes": None, "value": None}
    # where the op set bounds no rank, or admits scalars
    scalar = ((d.empty and d.min_rank == 0 and d.max_rank > 5) or tagged(d, "scalars")) and d.chance(16)
    shape = () if scalar else d.shape(1, lo=0 if mode == "constant" else 1)
    axes = fixed(
        d,
        "axes",
        lambda: (
            (None if d.bool() else ())
            if scalar
            else None
            if d.bool()
            else signed(d, d.subset(range(len(shape)), 1), len(shape))
        ),
    )
    if "axes" not in d.fixed and "axes" not in d.version.param_codecs:
        axes = None
    at = range(len(shape)) if axes is None else [a % len(shape) for a in axes]
    crops = mode == "constant" and "nonnegative" not in d.version.entry.sampling.tags and d.chance(4)
    room = 4096 // max(1, prod(shape))
    begins, ends = [], []
    for a in at:
        n = shape[a]
        top = min(_reach(mode, n), 5)
        b, e = (d.int(0, max(0, top)) if d.bool() else 0 for _ in "be")
        if (n + b + e) > max(n, 1) * room:
            b = e = 0
        room = max(1, room * max(n, 1) // max(1, n + b + e))
        if crops and d.bool():
            least = 0 if d.allow_empty else 1
            b = -d.int(0, n - least)
            e = d.pick((e, -d.int(0, n + b - least)))
        begins.append(b)
        ends.append(e)
    value = None
    if "value" in d.version.slots_of and d.bool():  # parts of one, infinities, NaN; all of an integer's range
        of_kind = {"f": ("small", "unit", "special"), "i": ("small", "full"), "u": ("small", "full")}
        value = T((), recipe=d.pick(of_kind.get(d.dtype("x").kind, ("small",))))
        if d.dtype("x").name in ("f16", "bf16", "f32", "f64") and d.chance(5):
            value = T((), values=[d.pick((-1, 1)) * math.inf])
    return {"x": T(shape), "pads": (*begins, *ends), "mode": mode, "axes": axes, "value": value}


@pad.breaks("pads-per-axis")
def _pad_count(d: Draw) -> dict:
    shape = d.shape(1)
    return {
        "x": T(shape),
        "pads": (0,) * (2 * len(shape) + 2),
        "mode": fixed(d, "mode", lambda: options(d, "mode")[0]),
        "axes": None,
    }


@pad.breaks("extent-nonnegative")
def _pad_nothing_left(d: Draw) -> dict:
    shape = d.shape(1)
    r = len(shape)
    pads = tuple(-(shape[0] + 1) if i == 0 else 0 for i in range(2 * r))
    return {"x": T(shape), "pads": pads, "mode": options(d, "mode")[0], "axes": None}
