"""Compares two runs of one network layer by layer, and finds the first layer that leaves its bound.

``first_out_of_bounds(layers)`` takes the layers in the order of computation.  The error of a layer has two parts: the
roundings inside it, and the errors of its inputs.  To separate them, the expected layer runs once more on the inputs of
the tested run:

    expected(x)          the source's value of the layer, from the source's own inputs
    expected(x')         the same layer of the source on the tested run's inputs x'   -> ``Layer.fed``
    got                  the tested run's value
    carried = |expected(x') - expected(x)|        the part of earlier layers
    own     = |got - expected(x')| <= bound       the part of this layer

So a fault is attributed to the layer that has it.  Later layers are judged on the inputs that they got, so an error
that grows does not count against them.  ``harness.compare.error_propagation`` derives bounds for values of a graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.errors import UsageError


@dataclass(slots=True)
class Layer:
    """One layer of both runs.

    name: as the reader knows it.  expected: the wide result (any real type).  got: the tested run's.
    bound: how far the layer may be off by itself, absolute, a scalar or an array of the layer's shape.
    fed: the expected layer computed from the tested run's inputs; without it ``carried`` (same forms as ``bound``) says
    how far its inputs' errors may have moved the result.
    """

    name: str
    expected: Any
    got: Any
    bound: Any
    fed: Any = None
    carried: Any = 0.0


@dataclass(slots=True)
class LayerRow:
    """The figures of one layer.  Those of a single element are from where it misses its bound by most.

    beyond: number of elements out of bounds, of ``size``.
    share: the largest part of its bound that an element used; above 1 is out of bounds.
    index, want, got, own, bound: of that element.
    carried: the largest error that came in.
    total: the largest difference between the two runs.
    wrong: what is wrong before any bound is looked at (shape, NaN, infinity), or "".
    free: number of elements with an infinite bound; nothing was judged there.
    """

    name: str
    size: int = 0
    beyond: int = 0
    share: float = 0.0
    index: tuple[int, ...] = ()
    want: float = 0.0
    got: float = 0.0
    own: float = 0.0
    bound: float = 0.0
    carried: float = 0.0
    total: float = 0.0
    wrong: str = ""
    free: int = 0

    @property
    def out(self) -> bool:
        return self.beyond > 0 or bool(self.wrong)


@dataclass(slots=True)
class Report:
    """All layers judged, in order."""

    rows: list[LayerRow]

    @property
    def first(self) -> LayerRow | None:
        """The first layer that leaves its bound."""
        return next((r for r in self.rows if r.out), None)

    @property
    def share(self) -> float:
        """The largest part of a bound that was used: how sharp the bounds are."""
        return max((r.share for r in self.rows), default=0.0)

    @property
    def free(self) -> int:
        """Elements of which nothing was judged."""
        return sum(r.free for r in self.rows)

    def __bool__(self) -> bool:
        """Did every layer stay within its bound?"""
        return self.first is None

    def __str__(self) -> str:
        r = self.first
        if r is None:
            free = f"; {self.free} elements have none" if self.free else ""
            return f"{len(self.rows)} layers within their bounds, at most {self.share:.2g} of one used{free}"
        at = self.rows.index(r)
        before = self.rows[at - 1] if at else None
        lines = [f"layer {at + 1} of {len(self.rows)}, {r.name}, is the first that leaves its bound: {_what(r)}"]
        if before is not None:
            lines.append(f"the layer before, {before.name}, used {before.share:.2g} of its bound")
        later = sum(x.out for x in self.rows[at + 1 :])
        if later:
            lines.append(f"{later} of the {len(self.rows) - at - 1} layers behind leave theirs too")
        return "; ".join(lines)

    def table(self) -> str:
        """One line a layer, for a log."""
        width = max([5, *(len(r.name) for r in self.rows)])
        head = f"{'layer':{width}} {'size':>8} {'beyond':>8} {'share':>9} {'own':>9} {'bound':>9} {'carried':>9}"
        return "\n".join(
            [
                head,
                *(
                    f"{r.name:{width}} {r.size:8} {r.beyond:8} {r.share:9.2g} {r.own:9.2g} {r.bound:9.2g} "
                    f"{r.carried:9.2g}" + (f"  {r.wrong}" if r.wrong else "")
                    for r in self.rows
                ),
            ]
        )


def first_out_of_bounds(layers: Iterable[Layer]) -> Report:
    """Judge the layers in order.  Raises UsageError where there are none, or a bound is negative or NaN."""
    rows = [judge_layer(layer) for layer in layers]
    if not rows:
        raise UsageError("layer-by-layer comparison: no layers were given")
    return Report(rows)


def judge_layer(layer: Layer) -> LayerRow:
    """The figures of one layer."""
    got = np.asarray(layer.got)
    given = np.asarray(layer.expected)
    if got.shape != given.shape:
        return LayerRow(layer.name, wrong=f"shape {list(got.shape)}, expected {list(given.shape)}")
    g, source = got.astype(np.float64), given.astype(np.float64)
    want = source if layer.fed is None else np.asarray(layer.fed).astype(np.float64)
    if want.shape != g.shape:
        return LayerRow(
            layer.name, wrong=f"shape {list(g.shape)}, expected {list(want.shape)} from the inputs that it got"
        )
    own_bound = np.broadcast_to(np.asarray(layer.bound, np.float64), g.shape)
    extra = np.broadcast_to(np.asarray(layer.carried, np.float64), g.shape)
    if not (np.all(own_bound >= 0) and np.all(extra >= 0)):
        raise UsageError(f"layer-by-layer comparison: {layer.name}: a bound is negative or NaN")
    row = LayerRow(layer.name, size=g.size)
    if not g.size:
        return row
    for name, test in (("NaN", np.isnan), ("infinities", np.isinf)):
        a, b = test(g), test(want)
        if (a != b).any() or (name == "infinities" and (g[a] != want[b]).any()):
            row.wrong = f"{name} elsewhere: {int(a.sum())}, expected {int(b.sum())}"
            row.beyond = max(1, int(np.count_nonzero(a != b)))
            return row
    finite = np.isfinite(want)
    with np.errstate(invalid="ignore"):
        own = np.where(finite, np.abs(g - want), 0.0)
        total = np.where(finite & np.isfinite(source), np.abs(g - source), 0.0)
        came = np.where(finite & np.isfinite(source), np.abs(want - source), 0.0)
    allowed = own_bound + extra
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(own == 0, 0.0, own / allowed)
    worst = np.unravel_index(int(np.argmax(share)), g.shape)
    row.beyond = int(np.count_nonzero(own > allowed))
    row.free = int(np.count_nonzero(np.isinf(allowed)))
    row.share, row.index = float(share[worst]), tuple(int(i) for i in worst)
    row.want, row.got = float(want[worst]), float(g[worst])
    row.own, row.bound = float(own[worst]), float(allowed[worst])
    row.carried = float(came.max()) if layer.fed is not None else float(extra.max())
    row.total = float(total.max())
    return row


def _what(r: LayerRow) -> str:
    if r.wrong:
        return r.wrong
    return (
        f"{r.beyond} of {r.size} elements, the worst at {list(r.index)}: got {r.got:.9g}, expected {r.want:.9g}, off by"
        f" {r.own:.3g} where {r.bound:.3g} is allowed ({r.share:.3g} times), and up to {r.carried:.3g} came in"
    )
