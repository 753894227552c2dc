"""What converters usually write: most instances say an operator in the form that nearly all models have.

The other forms stay a share of the draws.  A delegate takes the usual form, and leaves the others to the built-in
kernels.  Each function changes a drawn instance in place; what it changes was valid before and is after.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.core.instance import Arg, Instance
from harness.declare import Draw

OTHER_EVERY = 6  # one instance in so many keeps its drawn form


def _strides_within_the_window(inst: Instance) -> None:
    for axis, extent in (("h", "filter_height"), ("w", "filter_width")):
        stride, size = inst.attrs.get(f"stride_{axis}"), inst.attrs.get(extent)
        if isinstance(stride, int) and isinstance(size, int):
            inst.attrs[f"stride_{axis}"] = min(stride, max(1, size))


def _beta_of_one(inst: Instance) -> None:
    inst.attrs["beta"] = 1.0


def _extents_said(inst: Instance) -> None:
    """A size of -1, which reaches to the end, is written as the number of elements."""
    x, begin, size = (inst.args.get(k) for k in ("input", "begin", "size"))
    if not (isinstance(x, Arg) and isinstance(begin, Arg) and isinstance(size, Arg)):
        return
    if begin.values is not None and size.values is not None and len(size.values) == len(x.shape) and not x.dynamic:
        size.values = [n - b if s == -1 else s for n, b, s in zip(x.shape, begin.values, size.values, strict=True)]


def _plain_slice(inst: Instance) -> None:
    """Steps of 1, no ellipsis, no new axis and none that goes: a begin and an end of each axis, in its extents."""
    x, begin, end, strides = (inst.args.get(k) for k in ("input", "begin", "end", "strides"))
    operands = [a for a in (begin, end, strides) if isinstance(a, Arg)]
    if not isinstance(x, Arg) or len(operands) < 3 or any(a.values is None or a.dynamic for a in (*operands[:3],)):
        return
    first, last, steps = operands
    if x.dynamic or not x.shape or 0 in x.shape or inst.attrs.get("offset"):
        return
    for name in ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask"):
        inst.attrs.pop(name, None)
    n, given = len(x.shape), list(first.values or ())
    first.values = [b % x.shape[i] for i, b in enumerate((given + [0] * n)[:n])]
    last.values = [b + 1 + (x.shape[i] - b - 1) // 2 for i, b in enumerate(first.values)]
    steps.values = [1] * n
    for a in operands:
        a.shape = (n,)


USUAL: dict[str, Callable[[Instance], None]] = {
    "AVERAGE_POOL_2D": _strides_within_the_window,
    "MAX_POOL_2D": _strides_within_the_window,
    "L2_POOL_2D": _strides_within_the_window,
    "SLICE": _extents_said,
    "SOFTMAX": _beta_of_one,
    "STRIDED_SLICE": _plain_slice,
}


def say(d: Draw, inst: Instance) -> None:
    """Give most valid instances the usual form of their operator."""
    change = USUAL.get(inst.op)
    if change is not None and not d.breaking and not d.chance(OTHER_EVERY):
        change(inst)
