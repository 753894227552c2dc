"""What comes where a difference is listed (``harness/ledger/defect_models.py``): the XNNPACK delegate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.instance import Graph, Node
from harness.ledger.defect_models import Near, Such, Turned
from harness.ledger.edits import Edited, edited
from suites.known.defects.litert_places import without_subnormals
from suites.semantics import perception
from suites.semantics.quantised import fixed
from suites.semantics.window import geometry

Outputs = list[Any] | None


def root_by_reciprocal(g: Given) -> Outputs:
    """A root is x times an iterated reciprocal root, 3 ulp off; beyond 2**126 it has not converged.  Roots of 0 and of
    subnormals are 0 or NaN, reciprocal roots of them NaN, and roots of infinity NaN."""
    x, due = g["x"], g.expected[0].value
    size = np.abs(x.astype(np.float64))
    ends = (size < 2.0**-126) | np.isinf(size)
    off = np.where(size > 2.0**126, 0.6 * np.abs(due), 3 * np.spacing(np.abs(due)).astype(np.float64))
    nothing = np.copysign(np.zeros_like(x), x) if g.inst.op == "SQRT" else due
    value = np.where(size < 2.0**-126, nothing, due)
    return [Near(value, np.where(ends, 0, off), np.where(ends, np.nan, due).astype(due.dtype))]


def sloped_by_the_sign_bit(g: Given) -> Outputs:
    """LEAKY_RELU and PRELU multiply where the sign bit of x is set, that of -0 too.  Numbers below the smallest normal
    one, x, the slope and the product, count as zero."""
    return _sloped(g, lambda x, a, b: np.where(np.signbit(x), a * b, a))


def sloped_where_below_zero(g: Given) -> Outputs:
    """LEAKY_RELU and PRELU, the same but for the comparison: x goes through as it is unless it is less than 0, and one
    below the smallest normal number is not."""
    return _sloped(g, lambda x, a, b: np.where(a < 0, a * b, x))


def _sloped(g: Given, kernel: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]) -> Outputs:
    """kernel: of x and of x and the slope without subnormals."""
    x, e = g["input"], g.expected[0]
    if x.dtype != np.float32:
        return None
    tiny = np.finfo(np.float32).tiny
    slope = np.asarray(g["alpha"] if "alpha" in g.arrays else g.attr("alpha", 0.0), np.float32)
    with np.errstate(all="ignore"):
        y = kernel(x, without_subnormals(x), without_subnormals(slope)).astype(np.float32)
    flushed = np.where(np.abs(y) < tiny, np.float32(0), y)
    small = (np.abs(e.value) <= tiny) | (np.abs(x) < tiny) | (np.abs(np.broadcast_to(slope, x.shape)) < tiny)
    within = e.error.bound(e.context())
    return [Near(np.where(small, flushed, e.value), np.where(small & np.isfinite(flushed), tiny, within), e.value)]


def argument_reduced_once(g: Given) -> Outputs:
    """The argument is reduced in single precision with one product: the error grows with it.  Beyond 1e4 the rational
    function meets what is left of the argument outside its range, where it grows in proportion; from 1e14 on its powers
    overflow, and anything comes of finite arguments."""
    x = np.abs(g["x"].astype(np.float64))
    # where it is small the polynomial and its scale are rounded apart: two ulp of 1 (measured: 3.83 * 2**-24 for cos of
    # arguments near 0, 3.21 * 2**-24 + |x| * 2**-24 between 0.5 and 1, six million arguments up to 4)
    off = np.where(x <= 1e4, 4 * 2.0**-24 + 2.0**-24 * x, np.where(x <= 1e14, 16 * 2.0**-24 * x, np.inf))
    return [Near(g.expected[0].value, np.where(np.isfinite(x), off, 0))]


def exponential_by_polynomial(g: Given) -> list[Near]:
    """The polynomial is off by 3 ulp and more, growing with the argument, and by powers of two with the number of times
    that ln 2 is taken away; NaN is clamped like a number, so that 0 comes."""
    x, due = g["x"].astype(np.float64), g.expected[0].value
    size = np.minimum(np.nan_to_num(np.abs(x)), 88)
    # measured of 1.5 million arguments: below 36 ulp up to 44 (64 ln 2), below 64 beyond, 55 of them at 44.4
    power = np.exp2(np.floor(np.log2(np.maximum(1, size / np.log(2)))))
    off = (4 + np.maximum(size, power)) * np.spacing(due).astype(np.float64)
    value = np.where(np.isnan(x), 0, due).astype(due.dtype)
    return [Near(value, np.where(np.isfinite(x) & np.isfinite(due), off, 0))]


def overflow_before_the_end(g: Given) -> Outputs:
    """And from 127.5 ln 2 on it is infinite."""
    (near,) = exponential_by_polynomial(g)
    early = (g["x"] > 88.37) & (g["x"] < 88.73)
    return [near._replace(other=np.where(early, np.inf, near.value).astype(near.value.dtype))]


def logarithm_by_polynomial(g: Given) -> list[Near]:
    """The polynomial has an absolute error.  Subnormals of both signs count as 0: -inf.  Infinity and NaN may be taken
    for numbers of the largest exponent, or of one half less: 127.5 ln 2 and the logarithm of a significand below 2,
    between 88 and 89.07."""
    x, due = g["x"].astype(np.float64), g.expected[0].value
    endless = np.isnan(x) | (x == np.inf)
    value = np.where(np.abs(x) < 2.0**-126, -np.inf, np.where(endless, 88.535, due)).astype(due.dtype)
    off = np.where(endless, 0.535, np.where(np.isfinite(value), 2.5e-7, 0))
    return [Near(value, off)]


def logarithm_of_the_largest(g: Given) -> Outputs:
    """And above 2**127.5 the exponent that is split off is beyond the type: infinity, or off by less than 1."""
    (near,) = logarithm_by_polynomial(g)
    large = g["x"] > 2.4e38
    other = np.where(large, np.inf, near.value).astype(near.value.dtype)
    return [Near(near.value, np.where(large, 0.5, near.within), other)]


def ratio_of_8_bits(g: Given) -> Outputs:
    """The ratio of the scales is rounded to 8 fraction bits."""
    (slot,) = g.inst.args
    size = np.abs(fixed.centred(g[slot], g.inst.tensor(slot).quantised))
    return [Near(g.expected[0].value, np.ceil(size / 512) + 1)]


def larger_number_without_subnormals(g: Given) -> Outputs:
    """Subnormals of both operands count as zero; beside NaN the number comes, that zero too."""
    x, y = (np.where(np.abs(g[s]) < 2.0**-126, 0 * g[s], g[s]) for s in ("lhs", "rhs"))
    number = np.fmin(x, y) if g.inst.op == "MINIMUM" else np.fmax(x, y)
    return [Near(number, 0, g.expected[0].value)]


def extents_of_nothing(g: Given) -> Outputs:
    """No elements, in other extents: of DEPTH_TO_SPACE and SPACE_TO_DEPTH the batch and the columns are 0, the rows and
    channels anything; of BATCH_MATMUL the rows and columns are right; of MAX_POOL_2D the batch and the channels."""
    due = g.expected[0].value
    shows = np.array(due.shape)
    if g.inst.op == "BATCH_MATMUL":
        shows[:-2], right = 1 - (shows[:-2] == 0), slice(-2, None)
    elif g.inst.op == "MAX_POOL_2D":
        shows[1:3], right = shows[1:3] + 1, slice(0, None, 3)
    else:
        shows, right = np.where(np.arange(due.ndim) % 2, due.shape, 0) + np.arange(due.ndim) % 2, slice(0, None, 2)
    kept = shows[right].tolist()

    def other(a: np.ndarray) -> bool:
        return a.ndim == due.ndim and a.size == 0 and a.shape != due.shape and list(a.shape[right]) == kept

    return [Such(other, np.zeros(shows, due.dtype))] if due.size == 0 else None


def index_of_bits(g: Given) -> list[Any]:
    """MaxPoolingWithArgmax2D: the cells of a window are counted column after column, those outside of the
    tensor as copies of its edge, subnormals as zero; the whole number stands in the output as the bits of a u32."""
    kernel = (g.attr("filter_height"), g.attr("filter_width"))
    strides = (g.attr("stride_h"), g.attr("stride_w"))
    x = g["input"]
    here = geometry(
        x.shape[1:3], kernel, strides, None, None, {"SAME": "same_upper", "VALID": "valid"}[g.attr("padding")]
    )
    ends = [
        max(0, (n - 1) * t + k - b - e) for n, t, k, b, e in zip(here.sizes, strides, kernel, here.pads, x.shape[1:3])
    ]
    edged = np.pad(x, [(0, 0), *zip(here.pads, ends), (0, 0)], "edge")
    cells, _ = perception.windows(edged, kernel, strides, "valid")
    order = np.arange(len(cells)).reshape(kernel).T.ravel()
    cells = np.where(np.abs(cells) < 2.0**-126, np.zeros_like(cells), cells)
    at = np.argmax(cells[order], 0).astype(np.uint32)
    return [g.expected[0], at.view(np.float32)]


def index_from_bits(g: Given) -> Outputs:
    """MaxUnpooling2D: the bits of an index are taken for a u32, which counts the cells of a window column after column;
    what names no cell is left out."""
    bits, (kh, kw) = g["indices"].view(np.uint32), (g.attr("filter_height"), g.attr("filter_width"))
    rows = np.where(bits < kh * kw, bits % kh * kw + bits // kh, 2**30).astype(np.float32)
    return g.reevaluate(inputs={"indices": rows})


def rank_of_the_other_operand(g: Given) -> Outputs:
    """The result has the extents of the operand that is no constant: those of 1 before them are missing."""
    found = g.reevaluate()
    due = found[0] if found else None
    shapes = {g[s].shape for s, o in (("lhs", "rhs"), ("rhs", "lhs")) if g.inst.tensor(o).const and g[o].size == 1}
    if due is None:
        return None

    def whole(a: np.ndarray) -> np.ndarray:
        if a.shape == due.value.shape or a.shape not in shapes:
            raise ValueError("of another shape")
        return a.reshape(due.value.shape)

    return [Turned(due, whole, due.value.reshape(min(shapes, key=len)))] if shapes else None


def small_terms_lost(g: Given) -> Outputs:
    """The exponential is 2**n + (2**n * t) * p.  Where 2**n * t is below the smallest normal number it counts as zero.
    p is at most 1.2 for t up to ln 2 / 2."""
    x, due = g["x"], g.expected[0].value
    return [Near(due, np.where((x < -70) & (x > -88), 1.2 * 2.0**-126, 0))]


def pool_of_one_never_written(g: Given) -> Outputs:
    """A pool of one element without an activation, behind another pool of one element, behind a node with one: what it
    gives was never written."""
    program = g.attr("program")
    made = {o: n for n in program.nodes for o in n.outputs}

    def pools_one(n: Any) -> bool:
        sizes = [n.attrs.get(a, 1) for a in ("filter_height", "filter_width", "stride_w", "stride_h")]
        return bool(n.op in ("AVERAGE_POOL_2D", "MAX_POOL_2D") and set(sizes) == {1})

    def unwritten(n: Any) -> bool:
        first = made.get(str(n.inputs.get("input"))) if pools_one(n) and not clamps(n) else None
        before = made.get(str(first.inputs.get("input"))) if first is not None and pools_one(first) else None
        return before is not None and clamps(before)

    def clamps(n: Any) -> bool:
        return bool(n.attrs.get("fused_activation_function", "NONE") != "NONE")

    lost = {o for n in program.nodes if unwritten(n) for o in n.outputs}
    if not lost.intersection(program.outputs):
        return None
    return [Near(e.value, np.inf) if o in lost else None for o, e in zip(program.outputs, g.expected)]


_LIMITS = {"RELU": (0.0, np.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}
_BOUNDED_THEMSELVES = (
    *("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED"),
    *("AVERAGE_POOL_2D", "MAX_POOL_2D"),
)
Limits = tuple[float, float]


def _limit(program: Graph, n: Node) -> Limits | None:
    """The least and the highest number that a node lets through which does nothing else."""
    if n.op not in ("MAXIMUM", "MINIMUM"):
        return _LIMITS.get(n.op)
    c = next((program.consts[v] for v in (n.value("rhs"), n.value("lhs")) if v in program.consts), None)
    if c is None or c.size != 1 or c.dtype != np.float32:
        return None
    return (float(c.item()), np.inf) if n.op == "MAXIMUM" else (-np.inf, float(c.item()))


def _fused(n: Node | None) -> Limits | None:
    return None if n is None else _LIMITS.get(n.attrs.get("fused_activation_function", "NONE"))


def _rows_of_limits(program: Graph) -> Iterator[tuple[Node | None, list[Node], list[Limits]]]:
    """Limits of which each bounds what the one before it leaves to it alone: the node before them, they, and their
    pairs of numbers, behind that of the node before them."""
    read = Counter([*program.outputs])
    read.update(v for n in program.nodes for v in n.inputs.values() if isinstance(v, str))
    made = {o: n for n in program.nodes for o in n.outputs if read[o] == 1}
    behind: dict[str, Node] = {}
    above: dict[str, Node] = {}
    for n in program.nodes:
        for v in n.inputs.values():
            if isinstance(v, str) and v in made:
                behind[v], above[n.outputs[0]] = n, made[v]
    for first in program.nodes:
        pair = _limit(program, first)
        before = above.get(first.outputs[0])
        if pair is None or (before is not None and _limit(program, before) is not None):
            continue
        start = _fused(before)
        if start is None and before is not None and before.op in _BOUNDED_THEMSELVES:
            start = -np.inf, np.inf
        row, pairs, n = [], [start] if start is not None else [], first
        while pair is not None:
            row.append(n)
            pairs.append(pair)
            n = behind.get(n.outputs[0], n)
            pair = _limit(program, n) if n is not row[-1] else None
        yield before, row, pairs


def _merged(pairs: list[Limits]) -> Limits:
    """The one pair that comes of several: beside NaN the later lower limit and the earlier upper one."""
    low, high = pairs[0]
    for least, most in pairs[1:]:
        low, high = low if least < low else least, most if most < high else high
    return low, high


def limits_lost_beside_nan(g: Given) -> Edited | None:
    """Limits that follow one another become one pair.  With NaN as the lower one nothing is bounded; with NaN as the
    upper one everything is the lower one."""
    program = deepcopy(g.attr("program"))
    found = False
    for before, row, pairs in list(_rows_of_limits(program)):
        low, high = _merged(pairs)
        if len(pairs) < 2 or not ((np.isnan(low) and np.isfinite(pairs).any()) or np.isnan(high)):
            continue
        found = True
        if before is not None and _fused(before) is not None:
            before.attrs = {**before.attrs, "fused_activation_function": "NONE"}
        for i, n in enumerate(row):
            bounded = next(v for v in n.inputs.values() if v not in program.consts)
            n.op, n.version = "MINIMUM" if i == 0 and not np.isnan(low) else "MAXIMUM", 4
            limit = f"limit of {n.outputs[0]}"
            n.inputs = {"lhs": bounded, "rhs": limit}
            program.consts[limit] = np.array(-np.inf if np.isnan(low) else low, np.float32)
    return edited(g, program) if found else None


def lower_limit_of_nan(g: Given) -> bool:
    """Limits behind a convolution, a product or a pool become its own, of which the lower one is NaN."""
    return any(
        before is not None and before.op in _BOUNDED_THEMSELVES and np.isnan(_merged(pairs)[0])
        for before, _, pairs in _rows_of_limits(g.attr("program"))
    )
