"""Data moved about: transposes pushed through what stands between them, shapes computed in the graph, slices of
slices.  Nothing rounds, so that every element has to be right.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BOOL
from harness.declare import Draw
from suites.rewrites import declare
from suites.rewrites.ops.conv import SOURCE
from suites.rewrites.program import Program, ints

Shape = tuple[int, ...]
Step = tuple[str, Shape]


def _transpose(p: Program, d: Draw, x: str, s: Shape) -> Step:
    perm = d.shuffle(range(len(s)))
    return p.op("Transpose", x, perm=perm), tuple(s[a] for a in perm)


def _unary(p: Program, d: Draw, x: str, s: Shape) -> Step:
    return p.op(d.pick(("Relu", "Neg", "Abs", "Identity")), x), s


def _binary(p: Program, d: Draw, x: str, s: Shape) -> Step:
    """With a constant or an input that broadcasts to the value, a value of the program or, once, a wider one."""
    other: Any = p.input(d.broadcast_from(s)) if d.bool() else p.weights(d.broadcast_from(s))
    return p.op(d.pick(("Max", "Min")), *((x, other) if d.bool() else (other, x))), s


def _squeeze(p: Program, d: Draw, x: str, s: Shape) -> Step:
    ones = [k for k, n in enumerate(s) if n == 1]
    axes = d.subset(ones, 1) if ones else []
    if not axes:
        return _unsqueeze(p, d, x, s)
    told = [a - len(s) if d.bool() else a for a in axes]
    return p.op("Squeeze", x, ints(*told)), tuple(n for k, n in enumerate(s) if k not in axes)


def _unsqueeze(p: Program, d: Draw, x: str, s: Shape) -> Step:
    if len(s) > 4:
        return _unary(p, d, x, s)
    a = d.int(0, len(s))
    return p.op("Unsqueeze", x, ints(a - len(s) - 1 if d.bool() else a)), (*s[:a], 1, *s[a:])


def _slice(p: Program, d: Draw, x: str, s: Shape) -> Step:
    a = d.int(0, len(s) - 1)
    lo = d.int(0, s[a] - 1)
    hi = d.int(lo + 1, s[a])
    out = (*s[:a], hi - lo, *s[a + 1 :])
    axis = a - len(s) if d.bool() else a
    if d.chance(4):  # backwards
        end = lo - 1 - s[a] if lo else -s[a] - 1
        return p.op("Slice", x, ints(hi - 1), ints(end), ints(axis), ints(-1)), out
    return p.op("Slice", x, ints(lo), ints(hi), ints(axis)), out


def _concat(p: Program, d: Draw, x: str, s: Shape) -> Step:
    a = d.int(0, len(s) - 1)
    kind = d.pick(("itself", "an input", "a constant"))
    n = s[a] if kind == "itself" else d.dim(1, 2)
    shape = (*s[:a], n, *s[a + 1 :])
    other: Any = x if kind == "itself" else p.input(shape) if kind == "an input" else p.weights(shape)
    pair = (x, other) if d.bool() else (other, x)
    return p.op("Concat", *pair, axis=a - len(s) if d.bool() else a), (*s[:a], s[a] + n, *s[a + 1 :])


def _split(p: Program, d: Draw, x: str, s: Shape) -> Step:
    a = d.int(0, len(s) - 1)
    if s[a] < 2:
        return _unary(p, d, x, s)
    k = d.int(1, s[a] - 1)
    one, two = p.op("Split", x, ints(k, s[a] - k), axis=a, outs=2)
    return (one, (*s[:a], k, *s[a + 1 :])) if d.bool() else (two, (*s[:a], s[a] - k, *s[a + 1 :]))


def _pad(p: Program, d: Draw, x: str, s: Shape) -> Step:
    before, after = ([d.pick((0, 0, 1)) for _ in s] for _ in range(2))
    y = p.op("Pad", x, ints(*before, *after), np.float32(d.pick((0.0, 1.5))))
    return y, tuple(n + i + j for n, i, j in zip(s, before, after))


def _reduce(p: Program, d: Draw, x: str, s: Shape) -> Step:
    axes = sorted(d.subset(range(len(s)), 1))
    if len(axes) == len(s):
        axes = axes[:-1] or axes
    keep = int(d.bool()) if len(axes) < len(s) else 1
    told = [a - len(s) if d.bool() else a for a in axes]
    y = p.op(d.pick(("ReduceMax", "ReduceMin")), x, axes=told, keepdims=keep)
    out = tuple(1 if k in axes else n for k, n in enumerate(s) if keep or k not in axes)
    return y, out


def _gather(p: Program, d: Draw, x: str, s: Shape) -> Step:
    a = d.int(0, len(s) - 1)
    at = [d.int(-s[a], s[a] - 1) for _ in range(d.int(1, 3))]
    return p.op("Gather", x, ints(*at), axis=a - len(s) if d.bool() else a), (*s[:a], len(at), *s[a + 1 :])


def _reshape(p: Program, d: Draw, x: str, s: Shape) -> Step:
    """Two neighbours merged, one split by a factor, one dimension told as -1 or 0."""
    if len(s) > 1 and d.bool():
        a = d.int(0, len(s) - 2)
        out = (*s[:a], s[a] * s[a + 1], *s[a + 2 :])
    else:
        a = d.int(0, len(s) - 1)
        f = next((f for f in (2, 3) if s[a] % f == 0), 1)
        out = (*s[:a], f, s[a] // f, *s[a + 1 :]) if len(s) < 5 else s
    told = list(out)
    if d.bool():
        told[d.int(0, len(told) - 1)] = -1
    elif told[0] == s[0] and d.bool():
        told[0] = 0
    return p.op("Reshape", x, ints(*told)), out


def _where(p: Program, d: Draw, x: str, s: Shape) -> Step:
    c = p.input(d.broadcast_from(s), "full", BOOL)
    other = p.weights(d.broadcast_from(s))
    return p.op("Where", c, *((x, other) if d.bool() else (other, x))), s


STEPS = (_unary, _binary, _squeeze, _unsqueeze, _slice, _concat, _split, _pad, _reduce, _gather, _reshape, _where)
OF_SCALARS = (_unary, _binary, _unsqueeze, _where)  # the others choose one of the axes


def _pushed(d: Draw) -> dict[str, Any]:
    """A transpose, two to four steps that it may be pushed through, and most often a transpose behind them."""
    p = Program(d)
    s: Shape = tuple(d.dim(1, 4) for _ in range(d.int(2, 4)))
    x = p.input(s)
    x, s = _transpose(p, d, x, s)
    told = []
    for _ in range(d.int(1, 4)):
        step = d.pick((*STEPS, _transpose) if s else OF_SCALARS)
        x, s = step(p, d, x, s)
        told.append(step.__name__[1:])
    if s and d.int(0, 3):
        x, s = _transpose(p, d, x, s)
    return p.done(x, pattern="match " + " ".join(sorted(set(told))))


def _argument(d: Draw) -> dict[str, Any]:
    """A transpose before what counts along an axis."""
    p = Program(d)
    s: Shape = tuple(d.dim(1, 4) for _ in range(d.int(2, 4)))
    x, s = _transpose(p, d, p.input(s), s)
    a = d.int(-len(s), len(s) - 1)
    op = d.pick(("ArgMax", "ArgMin", "Softmax", "CumSum"))
    if op == "CumSum":
        y = p.op(op, x, np.int64(a))
    elif op == "Softmax":
        y = p.op(op, x, axis=a)
    else:
        keep = int(d.bool())
        y = p.op(op, x, axis=a, keepdims=keep)
        s = tuple(1 if k == a % len(s) else n for k, n in enumerate(s) if keep or k != a % len(s))
    return p.done(_transpose(p, d, y, s)[0] if s else y, pattern=f"match {op}")


def _shaped(d: Draw) -> dict[str, Any]:
    """A reshape to extents that the graph reads from its input: Shape, Gather or Slice, Unsqueeze, Concat."""
    p = Program(d)
    s = tuple(d.dim(1, 4) for _ in range(3))
    x = p.input(s)
    parts: list[Any] = []
    source = x if d.int(0, 3) else p.op("Relu", x)
    for k in range(2):
        kind = d.pick(("gather", "slice", "constant"))
        if kind == "constant":
            parts.append(ints(s[k]))
        elif kind == "slice":
            parts.append(p.op("Slice", p.op("Shape", source), ints(k), ints(k + 1), ints(0)))
        else:
            one = p.op("Gather", p.op("Shape", source), np.int64(k - 3 if d.bool() else k), axis=0)
            parts.append(p.op("Unsqueeze", one, ints(0)))
    parts += [ints(-1)] if d.bool() else [ints(1), ints(s[2])]
    if d.chance(4):
        parts.reverse()
    return p.done(p.op("Reshape", x, p.op("Concat", *parts, axis=0)))


def _twice(d: Draw) -> dict[str, Any]:
    """The same step twice in a row: transposes, reshapes, slices, squeezes, unsqueezes, concatenations, paddings."""
    p = Program(d)
    s: Shape = tuple(d.pick((1, 1, 2, 3, 4)) for _ in range(d.int(2, 4)))
    x = p.input(s)
    step = d.pick((_transpose, _reshape, _slice, _squeeze, _unsqueeze, _concat, _pad, _gather))
    for _ in range(2):
        if s:
            x, s = step(p, d, x, s)
    return p.done(x, pattern=f"match {step.__name__[1:]}")


def _rejoined(d: Draw) -> dict[str, Any]:
    """Slices or gathered columns of one value, put together again, all or not all, in order or not."""
    p = Program(d)
    n = d.dim(2, 4)
    s = (d.dim(1, 3), n, d.dim(1, 3))
    x = p.input(s)
    kind = d.pick(("Slice", "Gather", "Split"))
    order = list(range(n)) if d.bool() else d.shuffle(range(n))
    order = order[: d.int(1, n)] if d.chance(3) else order
    if kind == "Split":
        parts = p.op("Split", x, ints(*[1] * n), axis=1, outs=n)
        parts = [parts[k] for k in order]
    elif kind == "Slice":
        parts = [p.op("Slice", x, ints(k), ints(k + 1), ints(1)) for k in order]
    else:
        parts = [p.op("Gather", x, np.int64(k) if d.bool() else ints(k), axis=1) for k in order]
        fresh = []
        for part in parts:
            node = next(m for m in p.g.nodes if part in m.outputs)
            flat = p.g.consts[str(node.inputs["indices"])].ndim == 0
            fresh.append(p.op("Unsqueeze", part, ints(1)) if flat else part)
        parts = fresh
    return p.done(p.op("Concat", *parts, axis=1), pattern=f"match {kind}")


def _unfolded(d: Draw) -> dict[str, Any]:
    """Space to depth written as reshape, transpose, reshape; or another permutation."""
    p = Program(d)
    n, c, h, w, b = d.dim(1, 2), d.dim(1, 3), d.dim(1, 2), d.dim(1, 2), 2
    x = p.input((n, c, h * b, w * b))
    x = p.op("Reshape", x, ints(n, c, h, b, w, b))
    perm = d.pick(([0, 3, 5, 1, 2, 4], [0, 1, 3, 5, 2, 4], [0, 5, 3, 1, 2, 4]))
    x = p.op("Transpose", x, perm=perm)
    return p.done(p.op("Reshape", x, ints(n, c * b * b, h, w)), pattern=f"match {perm}")


def _interleaved(d: Draw) -> dict[str, Any]:
    """Every second row and column, four slices side by side: space to depth; or other steps, starts and orders."""
    p = Program(d)
    n, c, h, w = d.dim(1, 2), d.dim(1, 3), 2 * d.dim(1, 3), 2 * d.dim(1, 3)
    x = p.input((n, c, h, w))
    kind = d.pick(("match", "match", "match two slices", "near miss step", "near miss start", "near miss axis"))
    order = [(i, j) for i in (0, 1) for j in (0, 1)]
    order = d.shuffle(order) if d.bool() else order
    if kind == "near miss start":
        order[-1] = order[0]
    steps = (1, 2) if kind == "near miss step" else (2, 2)
    parts = []
    for i, j in order:
        if kind == "match two slices":
            rows = p.op("Slice", x, ints(i), ints(2**31 - 1), ints(2), ints(2))
            parts.append(p.op("Slice", rows, ints(j), ints(2**63 - 1), ints(-1), ints(2)))
            continue
        ends = ints(h, w) if d.bool() else ints(2**63 - 1, 2**63 - 1)
        starts = ints(0 if steps[0] == 1 else i, j)
        parts.append(p.op("Slice", x, starts, ends, ints(2, 3) if d.bool() else ints(-2, -1), ints(*steps)))
    return p.done(p.op("Concat", *parts, axis=d.pick((2, 3, 0)) if kind == "near miss axis" else 1), pattern=kind)


TRANSPOSES = SOURCE.format("Transpose optimization")
declare("transpose_pushed", _pushed, source=TRANSPOSES)
declare("transpose_argument", _argument, source=TRANSPOSES)
declare("reshape_fusion", _shaped, source=SOURCE.format("Reshape fusion"))
declare("repeated", _twice, source=SOURCE.format("Redundant node eliminations"))
declare("parts_rejoined", _rejoined, source="onnxruntime/core/optimizer/gather_fusion.h, concat_slice_elimination.h")
declare("space_to_depth", _unfolded, source="onnxruntime/core/optimizer/graph_transformer_utils.cc: SpaceToDepth")
declare("slices_to_depth", _interleaved, source="onnxruntime/core/optimizer/slice_concat_to_space_to_depth_fusion.h")
