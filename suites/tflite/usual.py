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


USUAL: dict[str, Callable[[Instance], None]] = {
    "AVERAGE_POOL_2D": _strides_within_the_window,
    "MAX_POOL_2D": _strides_within_the_window,
    "L2_POOL_2D": _strides_within_the_window,
    "SLICE": _extents_said,
    "SOFTMAX": _beta_of_one,
}


def say(d: Draw, inst: Instance) -> None:
    """Give most valid instances the usual form of their operator."""
    change = USUAL.get(inst.op)
    if change is not None and not d.breaking and not d.chance(OTHER_EVERY):
        change(inst)
