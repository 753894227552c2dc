"""What comes where a difference is listed (``harness/ledger/defect_models.py``): ONNX Runtime's MatMulNBits with an
accuracy level of 4, which quantises the floats to 8 bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from itertools import product
from math import prod
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.instance import Graph, Node
from harness.ledger.defect_models import Such
from harness.ledger.edits import Edited, Near, edited, near
from suites.known.defects.onnxruntime_merged import farther, is_folded, maker, values_behind

Outputs = list[Any] | Edited | None
_HUGE = 1e36
_BLOCK = 32  # session.qdq_matmulnbits_block_size, by default
_MOST = 4096  # combinations of scales that are tried


# how many steps an element is, of the largest magnitude: the reciprocal of a step is rounded twice or once
_STEPS: tuple[Callable[[Any], Any], ...] = (
    lambda most: np.float32(1) / (most / np.float32(127)) if np.ndim(most) or most > 0 else np.float32(0),
    lambda most: np.float32(127) / most if np.ndim(most) or most > 0 else np.float32(0),
)


def activations_in_8_bits(g: Given) -> Outputs:
    """A float multiplied by weights of 8 bits or less is quantised first, with the largest magnitude at 127: of each
    part of a row, as long as the blocks of the weights, or 32 elements."""
    return _in_8_bits(g, _STEPS[0])


def activations_in_127ths(g: Given) -> Outputs:
    """The same, but for how the reciprocal of a step is rounded."""
    return _in_8_bits(g, _STEPS[1])


def _in_8_bits(g: Given, steps: Callable[[np.ndarray], np.ndarray]) -> Outputs:
    """steps: of the largest magnitude, how many an element is."""
    program, lost, tiny = deepcopy(g.attr("program")), 0.0, 0.0
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    for node in program.nodes:
        weights = _dequantised(program, node.inputs.get("B")) if node.op in ("MatMul", "Gemm") else None
        if weights is None or not is_folded(program, weights.inputs["x"]):
            continue
        x = scope[node.value("A")].astype(np.float64)
        along = 0 if node.attrs.get("transA") else x.ndim - 1
        size = int(weights.attrs.get("block_size", 0)) or _BLOCK
        parts = []
        for start in range(0, x.shape[along], size):
            part = x.take(range(start, min(start + size, x.shape[along])), along)
            with np.errstate(all="ignore"):  # in f32, which decides what is halfway
                most = np.abs(part.astype(np.float32)).max(along, keepdims=True)
                step = most / np.float32(127)
                whole = np.rint(part.astype(np.float32) * steps(most))
                parts.append(np.where(step == 0, 0.0, whole.astype(np.float64) * step))
        node.inputs["A"] = f"{node.outputs[0]}_whole"
        program.consts[str(node.inputs["A"])] = np.concatenate(parts, along).astype(np.float32) if parts else x
        # the product of two scales is rounded, in the subnormal range by half of the smallest number
        tiny += x.shape[along] * 127 * 255 * 2.0**-150
        # sums of integers and of zero points, scaled apart, that cancel; signed integers are stored above a middle
        stored = scope[weights.value("x")]
        if weights.inputs.get("x_zero_point") or stored.dtype == np.int8:
            given = [scope[weights.value("x_zero_point")]] if weights.inputs.get("x_zero_point") else []
            both = sum(np.abs(v.astype(np.float64)).max(initial=0) for v in (stored, *given))
            both += 128 if stored.dtype == np.int8 else 0
            scale, most = (np.abs(v[np.isfinite(v)]).max(initial=0) for v in (scope[weights.value("x_scale")], x))
            lost += x.shape[along] * 2.0**-22 * both * scale * most

    def further(row: Sequence[Any]) -> list[Any]:
        out = list[Any]()
        for x, wider, e in zip(row, farther(row, 4, 2.0**-18, 0), g.expected):
            n, w = near(x), near(wider)
            if n is None or w is None:
                out.append(x)
                continue
            # what 8 bits hold is as near as ever
            moved = ~(np.abs(n.value.astype(np.float64) - e.value.astype(np.float64)) <= n.within)
            out.append(Near(n.value, np.where(moved, w.within, n.within) + lost + tiny))
        return out

    return edited(g, program, further) if tiny else None


def rows_beyond_8_bits(g: Given) -> Outputs:
    """A row of the first factor is scaled by its largest magnitude: anything comes of a row with numbers that are
    infinite, NaN, or huge, if the result or the right one is not finite.  Of a product that is a result itself
    ``products_of_blocks_beyond_8_bits`` says more."""
    found = _product(g)
    if found is None or _alone(g, found[0]):
        return None
    with np.errstate(all="ignore"):
        rows = ~(np.abs(found[1].astype(np.float64)).max(-1, keepdims=True, initial=0) < _HUGE)
    shapes = [e.value.shape for e in g.expected]  # a sum may have axes in front
    if not rows.any() or any(len(s) < rows.ndim or not _over(rows.shape, s) for s in shapes):
        return None
    return [Near(e.value, np.where(rows, np.inf, e.error.bound(e.context()))) for e in g.expected]


def _over(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Is each axis of the one an axis of the other, or of one element?"""
    return all(n in (1, m) for n, m in zip(shape[::-1], whole[::-1]))


def products_of_blocks_beyond_8_bits(g: Given) -> Outputs:
    """Each block of a row is scaled by its largest magnitude, in steps of one 127th of it.  Of a block that holds a NaN
    the maximum may forget what came before it.  What is not finite or does not fit becomes the lowest int32, of which 8
    bits are kept, with AVX2 by saturation, with AVX-512 the lowest ones.  A scale that is not finite leaves no finite
    number in the row."""
    found = _product(g)
    if found is None or not _alone(g, found[0]):
        return None
    node, x, w, size = found
    terms = np.abs(w) + _raw(g, node)
    out = g.attr("program").outputs.index(node.outputs[0])
    e = g.expected[out]
    within = np.broadcast_to(e.error.bound(e.context()), e.value.shape)
    with np.errstate(all="ignore"):
        if np.all(np.abs(x) < _HUGE):
            return None

    def told(a: np.ndarray) -> bool:
        if a.shape != e.value.shape or a.dtype != e.value.dtype:
            return False
        given = x.reshape(-1, x.shape[-1]), *(y.reshape(-1, w.shape[-1]) for y in (a, e.value, within))
        with np.errstate(all="ignore"):
            return all(_near(b, c, d) or _explained(row, w, terms, size, b) for row, b, c, d in zip(*given))

    row: list[Any] = [None] * len(g.expected)
    row[out] = Such(told, e.value)
    return row


_STAND_INS = (np.nan, 0.0, 1.0, -1.0, 1e6, -1e6)


def what_follows_from_rows_beyond_8_bits(g: Given) -> Outputs:
    """Anything comes of a row of the first factor with numbers that are infinite, NaN or huge, where the right result
    is not finite and changes with the row; the rest is right."""
    found = _product(g)
    if found is None:
        return None
    node, x, *_ = found
    with np.errstate(all="ignore"):
        rows = ~(np.abs(x.astype(np.float64)).max(-1, keepdims=True, initial=0) < _HUGE)
    program, language = g.attr("program"), g.case.version.dialect.language
    made = language.run(program, g["inputs"], g.inst.opset)[node.outputs[0]]
    if made.ndim != rows.ndim or not rows.any():
        return None
    moved = [np.zeros(e.value.shape, bool) for e in g.expected]
    for stand_in in _STAND_INS:
        given = {node.outputs[0]: np.where(rows, made.dtype.type(stand_in), made)}
        scope = language.values_given(program, g["inputs"], g.inst.opset, given)
        for mask, name, e in zip(moved, program.outputs, g.expected):
            y, due = (v.astype(np.float64) for v in (scope[name], e.value))
            if y.shape != due.shape:
                return None
            mask |= ~((y == due) | (np.isnan(y) & np.isnan(due)))
    return [
        Near(e.value, np.where(mask & ~np.isfinite(e.value.astype(np.float64)), np.inf, e.error.bound(e.context())))
        for mask, e in zip(moved, g.expected)
    ]


def _dequantised(program: Graph, name: Any) -> Node | None:
    """The DequantizeLinear that makes a value, behind nodes that only move it."""
    made = maker(program, name)
    while made is not None and made.op in ("Transpose", "Reshape"):
        made = maker(program, made.value("data"))
    return made if made is not None and made.op == "DequantizeLinear" else None


def _product(g: Given) -> tuple[Node, np.ndarray, np.ndarray, int] | None:
    """The one product, its factors, and how many elements of a row have a scale of their own."""
    program = g.attr("program")
    nodes = [n for n in program.nodes if n.op in ("Gemm", "MatMul")]
    if len(nodes) != 1:
        return None
    weights = _dequantised(program, nodes[0].inputs.get("B"))
    if weights is None or not is_folded(program, weights.inputs["x"]):
        return None
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    x, w = scope[nodes[0].value("A")], scope[nodes[0].value("B")].astype(np.float64)
    if x.ndim < 2:
        return None
    return nodes[0], x, w, int(weights.attrs.get("block_size", 0)) or _BLOCK


def _alone(g: Given, node: Node) -> bool:
    """Is the product a result of the program, and no other result made of it?"""
    program, name = g.attr("program"), node.outputs[0]
    alone = not values_behind(program, name).intersection(program.outputs)
    return node.op == "MatMul" and name in program.outputs and alone


def _near(a: np.ndarray, value: np.ndarray, within: Any) -> bool:
    x, y = a.astype(np.float64), value.astype(np.float64)
    return bool(np.all((x == y) | ((x != x) & (y != y)) | (np.abs(x - y) <= within)))


def _raw(g: Given, node: Node) -> np.ndarray:
    """What the second factor is made of: the magnitudes of its integers and of its zero points, scaled apart."""
    program, language = g.attr("program"), g.case.version.dialect.language
    made = _dequantised(program, node.value("B"))
    assert made is not None
    scope = language.run(program, g["inputs"], g.inst.opset)
    slots = [s for s in ("x", "x_zero_point") if made.inputs.get(s)]
    total: Any = 0
    for slot in slots:  # without the other one, which may be the same tensor
        other = {s: scope[made.value(s)] * (s == slot) for s in slots}
        alone = Node(made.op, {**made.inputs, **{s: f"{s} alone" for s in slots}}, made.outputs, made.attrs)
        held = {**scope, **{f"{s} alone": v.astype(scope[made.value(s)].dtype) for s, v in other.items()}}
        total = total + np.abs(language.node(program, alone, held, g.inst.opset)[0].value.astype(np.float64))
    shape = scope[node.value("B")].shape
    turned = total.shape != shape or any(n.op == "Transpose" for n in program.nodes)
    return np.asarray(total.T if turned and total.T.shape == shape else total.reshape(shape), np.float64)


def _explained(row: np.ndarray, w: np.ndarray, terms: np.ndarray, size: int, a: np.ndarray) -> bool:
    """Is there a scale for each block of the row with which the products are these?  terms: magnitudes of what the
    factor w is made of."""
    blocks = [slice(k, k + size) for k in range(0, len(row), size)]
    choices = [list(_sums(row[b].astype(np.float32), w[b], terms[b])) for b in blocks]
    if prod(map(len, choices)) > _MOST:
        return True
    kind = np.finfo(a.dtype)
    for chosen in product(*choices):
        if any(c is None for c in chosen):
            if not np.isfinite(a.astype(np.float64)).any():
                return True
            continue
        sums, sizes = (sum(c[i] for c in chosen if c is not None) for i in (0, 1))
        within = np.where(sizes < np.finfo(np.float32).max, sizes * 2.0**-18 + kind.tiny, np.inf)
        if _near(a, np.asarray(sums, a.dtype), within + np.abs(sums) * kind.eps):
            return True
    return False


def _sums(part: np.ndarray, w: np.ndarray, terms: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray] | None]:
    """What a block adds to a row of the result, and the sum of the magnitudes, for each scale that it may have; None
    for a scale that is not finite."""
    finite = np.abs(part[~np.isnan(part)])
    maxima = [finite.max(initial=0)] if finite.size == part.size else [*np.unique(finite), np.float32(np.inf)]
    for most in maxima:
        if not np.isfinite(most):
            yield None
            continue
        step = most / np.float32(127)
        wholes = {w.tobytes(): w for by in _STEPS for w in _narrowed(np.rint(part * by(most)))}
        for whole in wholes.values():
            sizes = np.abs(whole) @ terms * float(step)
            beyond = np.abs(whole).sum() * float(step) > 0.999 * np.finfo(np.float32).max  # what zero points multiply
            yield whole @ w * float(step), np.full_like(sizes, np.inf) if beyond else sizes


def _narrowed(steps: np.ndarray) -> list[np.ndarray]:
    """Steps in 8 bits, by way of int32."""
    whole = np.where(np.abs(steps) < 2.0**31, steps, -(2.0**31))
    return [np.clip(whole, -128, 127), (whole + 128) % 256 - 128]
