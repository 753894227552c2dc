"""Geometry of sliding windows, shared by convolution and pooling: padding modes, output extents, draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import native_ref as native
from harness.core.errors import RuleError
from harness.generate.draw import Draw
from suites.semantics.drawing import choose, param

LARGEST = 1 << 28  # elements of a pooling window, which is gone through one by one
FAR = 2**31 - 1  # the highest extent, padding or number of groups that 32 bits hold
MODES = ("explicit", "valid", "same_upper", "same_lower")


def resolve_pads(
    mode: str,
    s: Sequence[int],
    k: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Padding as begins then ends.

    explicit: ``pads`` (none: zero).  valid: zero.  same_*: as many cells as make the output ceil(s / stride), half on
    each side, the odd one at the end (upper) or the beginning (lower).  Source: ONNX Conv-11 auto_pad; MIL conv
    pad_type; TFLite Padding SAME.
    """
    n = len(s)
    if mode == "explicit":
        return tuple(pads) if pads is not None else (0,) * (2 * n)
    if mode == "valid":
        return (0,) * (2 * n)
    total = [max(0, (-(-s[i] // strides[i]) - 1) * strides[i] + dilations[i] * (k[i] - 1) + 1 - s[i]) for i in range(n)]
    first = [t // 2 if mode == "same_upper" else t - t // 2 for t in total]
    return (*first, *(t - f for t, f in zip(total, first)))


STRIDE_ABOVE = "SAME with a stride above the window: negative padding by the formula, none by its text"


def negative_same(s: Sequence[int], k: Sequence[int], strides: Any, dilations: Any) -> bool:
    """Whether the formula for SAME asks for less than no padding on some axis (the stride jumps over elements)."""
    st, di = strides or (1,) * len(s), dilations or (1,) * len(s)
    return any((-(-n // t) - 1) * t + d * (e - 1) + 1 < n for n, e, t, d in zip(s, k, st, di))


@dataclass(frozen=True)
class Geometry:
    """A resolved window: every list has one number per spatial axis, ``pads`` begins then ends."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    sizes: tuple[int, ...]


def geometry(
    s: Sequence[int], k: Sequence[int], strides: Any, dilations: Any, pads: Any, mode: str, ceil: bool = False
) -> Geometry:
    """Defaults filled in, padding resolved, output extents.  ceil rounds the extents up.  With SAME, of nothing comes
    nothing: ceil(0 / stride).

    Raises RuleError "one-per-axis", "kernel-positive", "strides-positive", "dilations-positive", "window-fits".
    """
    n = len(s)
    strides = tuple(strides) if strides is not None else (1,) * n
    dilations = tuple(dilations) if dilations is not None else (1,) * n
    if len(k) != n or len(strides) != n or len(dilations) != n or (pads is not None and len(pads) != 2 * n):
        raise RuleError(
            "one-per-axis", f"kernel {k}, strides {strides}, dilations {dilations}, pads {pads} for {n} axes"
        )
    for rule, values in (("kernel-positive", k), ("strides-positive", strides), ("dilations-positive", dilations)):
        if any(v < 1 for v in values):
            raise RuleError(rule, f"{list(values)}")
    p = resolve_pads(mode, s, k, strides, dilations, pads)
    room = [s[i] + p[i] + p[n + i] - dilations[i] * (k[i] - 1) - 1 for i in range(n)]
    if any(r < 0 and not (mode.startswith("same") and s[i] == 0) for i, r in enumerate(room)):
        raise RuleError("window-fits", f"kernel {list(k)} dilated {list(dilations)} over {list(s)} padded {list(p)}")
    sizes = tuple((-(-r // t) if ceil else r // t) + 1 for r, t in zip(room, strides))
    # a stride beyond the room for it counts as the first one that is, and costs less; so of the elements of one
    if not ceil:
        strides = tuple(min(t, r + 1) if r >= 0 else t for t, r in zip(strides, room))
    dilations = tuple(t if e > 1 else 1 for t, e in zip(dilations, k))
    return Geometry(strides, dilations, p, sizes)


def trimmed(s: Sequence[int], kernel: Sequence[int], g: Geometry) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Kernel and padding without the elements that lie in the padding for each window: what a pool that counts none of
    it needs not go through.  Of windows without dilation; others stay."""
    n, k, pads = len(s), list(kernel), list(g.pads)
    for i in range(n):
        last = (g.sizes[i] - 1) * g.strides[i]
        if g.dilations[i] != 1 or g.sizes[i] < 1:
            continue
        before = min(max(0, pads[i] - last), k[i] - 1)
        k[i], pads[i] = k[i] - before, pads[i] - before
        after = min(max(0, k[i] - pads[i] - s[i]), k[i] - 1)
        k[i], pads[n + i] = k[i] - after, pads[n + i] - after
    return tuple(k), tuple(pads)


_KERNELS = (1, 2, 3, 3, 1, 2, 4, 5)


@dataclass
class Drawn:
    """A drawn window; ``kernel`` and ``extents`` are shapes, the rest parameters by their usual names."""

    extents: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: Any
    dilations: Any
    pads: Any
    padding: str


_MANY = 24  # one window in so many is over more than three axes, where the op may have such ranks


def unbounded(d: Draw) -> bool:
    """Does the op version bound neither the number of axes nor extents?"""
    return d.empty and d.min_rank < 3 and d.max_rank > 5 and not d.breaking


def spatial_rank(d: Draw, top: int = 3) -> int:
    """How many spatial axes: the op's rank less batch and channels; two is favoured."""
    most = d.max_rank - 2
    if unbounded(d) and d.chance(_MANY):
        return d.int(top + 1, most)
    lo, hi = max(1, d.min_rank - 2), max(1, min(top, most))
    n = d.pick((2, 1, 2, 3, 2))
    return n if lo <= n <= hi else d.int(lo, hi)


def most_of(n: int, plane: int, solid: int, more: int) -> int:
    """What bounds an extent of a window: ``plane`` over up to two axes, ``solid`` over three, ``more`` over more."""
    return plane if n < 3 else solid if n == 3 else more


def draw_window(d: Draw, spatial: int | None = None, *, padded_below_kernel: bool = False) -> Drawn:
    """A window whose geometry differs per axis: stride above kernel, odd and one-sided padding, padding beyond the
    kernel, dilation with every mode.  At least one output position on every axis.

    padded_below_kernel: every window must meet the data (pooling's rule)."""
    n = spatial if spatial is not None else spatial_rank(d)
    k = tuple(min(d.pick(_KERNELS), most_of(n, 5, 3, 2)) for _ in range(n))
    strides = param(d, "strides", lambda: tuple(d.pick((1, 1, 2, 3, 1, 2, 4)) for _ in range(n)))
    dilations = param(d, "dilations", lambda: tuple(d.pick((1, 1, 2, 3)) if d.bool() else 1 for _ in range(n)))
    padding = choose(d, "padding")
    st, di = strides or (1,) * n, dilations or (1,) * n
    reach = [di[i] * (k[i] - 1) + 1 for i in range(n)]
    pads = None
    if padding == "explicit":
        pads = param(d, "pads", lambda: _pads(d, reach, k if padded_below_kernel else None))
    p = resolve_pads(padding if padding == "explicit" else "valid", (0,) * n, k, st, di, pads)
    s = []
    for i in range(n):
        least = max(0 if d.empty and p[i] + p[n + i] >= reach[i] else 1, reach[i] - p[i] - p[n + i])
        if padding.startswith("same"):
            least = 1
        s.append(least + d.int(0, most_of(n, 7, 3, 1)))
    return Drawn(tuple(s), k, strides, dilations, pads, padding)


def _pads(d: Draw, reach: list[int], kernel: tuple[int, ...] | None) -> tuple[int, ...]:
    n = len(reach)
    form = d.int(0, 4)
    if form == 0:
        return (0,) * (2 * n)
    tops = [min(r, 4) - 1 if kernel is None else max(0, kernel[i] - 1) for i, r in enumerate(reach)]
    begins, ends = [d.int(0, t) for t in tops], [d.int(0, t) for t in tops]
    if form == 1:
        begins = [0] * n
    elif form == 2:
        ends = list(begins)
    elif form == 3 and kernel is None and d.chance(3):
        ends[-1] = reach[-1] + 1  # a window that sees nothing but padding
    return (*begins, *ends)


def put(v: Sequence[int] | None, n: int, at: int, value: int, fill: int) -> tuple[int, ...]:
    """A list of ``n`` numbers, all ``fill`` where it is none, with ``value`` at one place."""
    out = list(v) if v is not None else [fill] * n
    out[at] = value
    return tuple(out)


def too_large(d: Draw, w: Drawn) -> Drawn:
    """The same window over an input that it does not fit into."""
    n = len(w.kernel)
    # so much that the extent comes out negative, not just 0, which formulas take for an empty result
    k = tuple(2 * s + 2 for s in (w.strides or (1,) * n))
    return Drawn(
        (1,) * n,
        k,
        w.strides,
        w.dilations,
        None if w.pads is None else (0,) * (2 * n),
        "valid" if w.padding != "explicit" else "explicit",
    )


window_sizes = native.window_sizes
