"""Matrix products: matmul, gemm, fully connected layers, integer products with zero points, einsum."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import I32, float_max, of
from harness.core.errors import RuleError
from harness.declare import (
    Flag,
    Int,
    Num,
    Opaque,
    Real,
    Semantics,
    T,
    Variadic,
    accumulates,
    exact,
    first_of,
    semantics,
    summed,
    underspecified,
)
from harness.generate.draw import Draw
from harness.tolerance import Context
from suites.semantics.bounds import overflows, quiet, slope, tamed, tiny
from suites.semantics.drawing import given, param, product

Array = np.ndarray


def product_of(a: Array, b: Array) -> Array:
    """Matrix product: floats f64, integers exact in the type of ``a`` with its wrap-around."""
    try:
        return native.matmul(a, b) if of(a).kind == "f" else native.matmul(a, b, out=a.dtype)
    except ValueError as e:
        raise RuleError("contracted-agrees", str(e)) from None


def _turn(a: Array, flag: bool) -> Array:
    return np.swapaxes(a, -1, -2) if flag and a.ndim > 1 else a


def _depth(ctx: Context) -> float:
    """Extent of the contracted axis."""
    x = ctx.inputs["x"]
    return float(x.shape[-2 if ctx.params.get("transpose_x") and x.ndim > 1 else -1])


def largest(meaning: Callable[[], Semantics], *names: str) -> Object:
    """An ``overflows`` size: the meaning itself of absolute values, which no partial sum exceeds.

    names: parameters that are factors: a sum may overflow before one that is below 1 has its turn."""

    def size(inputs: dict[str, Object], params: dict[str, Object]) -> Array:
        given = {
            n: None if v is None else [_size(x) for x in v] if isinstance(v, list) else _size(v)
            for n, v in inputs.items()
        }
        grown = {k: max(1.0, abs(v)) if k in names else v for k, v in params.items()}
        return np.asarray(meaning().fn(**given, **grown))

    return size


def _size(x: Array) -> Array:
    return np.abs(np.asarray(x, np.float64))


def _the_matmul() -> Semantics:
    return matmul


@semantics(
    error=accumulates(_depth),
    source="ONNX MatMul-1..13 (numpy.matmul); MIL matmul iOS15; TFLite BATCH_MATMUL",
    ambiguous=overflows(largest(_the_matmul)),
)
def matmul(x: Num[Array, "*d"], y: Num[Array, "*e"], *, transpose_x: Flag = False, transpose_y: Flag = False) -> Array:
    """Product over the last axis of ``x`` and the last but one of ``y``; the axes before broadcast; vectors as in
    NumPy.

    transpose_x, transpose_y: exchange the last two axes first (no effect on a vector).
    Raises RuleError "rank-at-least-1", "contracted-agrees".
    """
    if x.ndim == 0 or y.ndim == 0:
        raise RuleError("rank-at-least-1", f"x {list(x.shape)}, y {list(y.shape)}")
    return product_of(_turn(x, transpose_x), _turn(y, transpose_y))


@matmul.draw
def draw_matmul(d: Draw) -> dict[str, Object]:
    """x [*a, m, k] and y [*b, k, n], either transposed or a vector, whose leading axes broadcast."""
    tx, ty = param(d, "transpose_x", d.bool), param(d, "transpose_y", d.bool)
    vectors = d.min_rank <= 1
    m, k, n = d.dim(), d.dim(), d.dim()
    if d.chance(12):  # a depth beyond one block, and sizes beyond one tile
        m, k, n = d.int(1, 40), d.pick((255, 257, 300)), d.int(1, 40)
    lead = d.part(max(0, d.min_rank - 2), max(0, min(d.max_rank, 5) - 2))
    if d.max_rank > 5 and d.chance(12):
        m, k, n = (min(v, 4) for v in (m, k, n))
        lead = tuple(d.int(1, 2) if i < 3 else 1 for i in range(d.int(4, d.max_rank - 2)))
    lead = lead if product(lead) * max(m * k, k * n, m * n) <= 6000 else lead[:0]
    lead = (1,) * (max(0, d.min_rank - 2) - len(lead)) + tuple(lead)
    keep = d.min_rank > 2
    a, b = (lead, lead) if keep and not d.bool() else (lead, _some(d, lead))
    if d.bool():
        a, b = b, a
    xs, ys = (*a, k, m) if tx else (*a, m, k), (*b, n, k) if ty else (*b, k, n)
    if vectors and not tx and d.chance(8):
        xs = (k,)
    if vectors and not ty and d.chance(8):
        ys = (k,)
    return {"x": T(xs), "y": T(ys), "transpose_x": tx, "transpose_y": ty}


def _some(d: Draw, lead: tuple[int, ...]) -> tuple[int, ...]:
    """Leading axes that broadcast to ``lead``, within the least rank."""
    out = tuple(1 if d.chance(3) else n for n in lead)
    return out[d.int(0, len(out)) :] if d.min_rank <= 2 else out


@matmul.breaks("contracted-agrees")
def _matmul_apart(d: Draw) -> dict[str, Object]:
    k = d.int(2, 5)
    tx, ty = param(d, "transpose_x", lambda: False), param(d, "transpose_y", lambda: False)
    one = (1,) * max(0, d.min_rank - 2)
    return {
        "x": T((*one, k, 3) if tx else (*one, 3, k)),
        "y": T((*one, 2, k + 1) if ty else (*one, k + 1, 2)),
        "transpose_x": tx,
        "transpose_y": ty,
    }


@quiet
def gemm_bound(ctx: Context) -> Array:
    """gamma(K+4) * (|alpha| |A||B| + |beta| |C|) + ulp"""
    alpha, k = abs(ctx.params["alpha"]), _gemm_depth(ctx)
    s = _gemm_size(ctx, alpha)
    return np.asarray(slope(k + 4, ctx) * s + ctx.ulp + (k + 2) * tiny(ctx) * max(1, alpha))


def _gemm_size(ctx: Context, alpha: float) -> Array:
    """alpha |A||B| + |beta| |C|"""
    i, p = ctx.inputs, ctx.params
    a, b = np.abs(_turn(i["a"], p["trans_a"])), np.abs(_turn(i["b"], p["trans_b"]))
    s = alpha * native.matmul(a, b)
    return np.asarray(s if i.get("c") is None else s + abs(p["beta"]) * np.abs(i["c"]))


def _gemm_depth(ctx: Context) -> int:
    return int(ctx.inputs["a"].shape[0 if ctx.params["trans_a"] else 1])


def _gemm_most(ctx: Context) -> Array:
    return _gemm_size(ctx, max(1.0, abs(ctx.params["alpha"]))) * (1 + _gemm_depth(ctx) * ctx.acc_u)


def _scaled_away(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """0 * inf: whether a factor of zero skips its operand."""
    pairs = (("alpha", ("a", "b")), ("beta", ("c",)))
    for factor, names in pairs:
        if params[factor] == 0:
            for n in names:
                v = inputs.get(n)
                if v is not None and of(v).kind == "f" and not np.isfinite(v.astype(np.float64)).all():
                    return f"{factor} = 0 on inf or NaN: the op set does not say whether the term is skipped"
    return None


def _whole_factor(d: Draw, name: str) -> float:
    kinds = d.types.values()
    if any(t.kind in "iu" for t in kinds):
        return float(d.pick((1, 1, 2, 0) if any(t.kind == "u" for t in kinds) else (1, 1, 2, -1, 0)))
    return d.pick((1.0, 1.0, 0.0, -1.0, 0.5, 2.0, d.int(-32, 32) / 8.0))


def _the_gemm() -> Semantics:
    return gemm


@semantics(
    error=summed(gemm_bound, _gemm_most),
    source="ONNX Gemm-1, -6, -7, -9, -11, -13",
    ambiguous=first_of(_scaled_away, overflows(largest(_the_gemm, "alpha", "beta"))),
)
def gemm(
    a: Num[Array, "i j"],
    b: Num[Array, "k l"],
    c: Num[Array, "*e"] | None = None,
    *,
    alpha: Real = 1.0,
    beta: Real = 1.0,
    trans_a: Flag = False,
    trans_b: Flag = False,
) -> Array:
    """alpha * A' B' + beta * C, matrices transposed on demand; ``c`` broadcasts to the product.

    Integers: alpha and beta count with their whole part.  Raises RuleError "contracted-agrees", "c-broadcasts".
    """
    x, y = _turn(a, trans_a), _turn(b, trans_b)
    p = product_of(x, y)
    if c is not None:
        try:
            if np.broadcast_shapes(c.shape, p.shape) != p.shape:
                raise ValueError
        except ValueError:
            raise RuleError("c-broadcasts", f"c {list(c.shape)} to {list(p.shape)}") from None
    with np.errstate(all="ignore"):
        if of(a).kind != "f":
            y = p.astype(np.int64) * int(alpha)
            return (y + int(beta) * c.astype(np.int64) if c is not None else y).astype(a.dtype)
        y = p * alpha if alpha != 1 else p
        return y if c is None else y + beta * c.astype(np.float64)


@gemm.draw
def _draw_gemm(d: Draw) -> dict[str, Object]:
    ta, tb = param(d, "trans_a", d.bool), param(d, "trans_b", d.bool)
    m, k, n = d.dim(), d.dim(), d.dim()
    out = {
        "a": T((k, m) if ta else (m, k)),
        "b": T((n, k) if tb else (k, n)),
        "trans_a": ta,
        "trans_b": tb,
        "alpha": param(d, "alpha", lambda: _whole_factor(d, "alpha")),
        "beta": param(d, "beta", lambda: _whole_factor(d, "beta")),
    }
    optional = d.version.meaning is None or not _needs(d, "c")
    if not optional or given(d, "c", 3):
        out["c"] = T(d.pick(((m, n), (1, n), (m, 1), (n,), (1,), (), (1, 1))))
    return out


def _needs(d: Draw, tensor: str) -> bool:
    slot = d.version.schema.input(getattr(d.version.tensor_codecs.get(tensor), "slot", ""))
    return slot is not None and not slot.optional


@gemm.breaks("contracted-agrees")
def _gemm_apart(d: Draw) -> dict[str, Object]:
    v = _draw_gemm(d)
    v["a"], v["b"] = T((4, 4)), T((5, 5))
    if "c" in v:
        v["c"] = T((4, 5))
    return v


@gemm.breaks("c-broadcasts")
def _gemm_c(d: Draw) -> dict[str, Object]:
    v = _draw_gemm(d)
    v["a"], v["b"], v["c"] = T((3, 3)), T((3, 3)), T(d.pick(((2, 3), (3, 2), (4,), (2, 3, 3))))
    return v


def _fan_in(ctx: Context) -> float:
    """Extent of the last axis of x."""
    return float(ctx.inputs["x"].shape[-1])


def _the_linear() -> Semantics:
    return linear


@semantics(
    error=accumulates(_fan_in),
    source="MIL linear iOS15; NN InnerProductLayerParams; TFLite FULLY_CONNECTED",
    ambiguous=overflows(largest(_the_linear)),
)
def linear(x: Num[Array, "*d i"], w: Num[Array, "o i"], b: Num[Array, "o"] | None = None) -> Num[Array, "*d o"]:
    """x w' + b along the last axis."""
    y = product_of(x, w.T)
    if b is None:
        return y
    return y + b.astype(np.float64) if of(x).kind == "f" else (y + b).astype(y.dtype)


def centred(x: Array, zero: Array | None) -> Array:
    """Integers minus their zero point, in a type that holds the difference."""
    if zero is None:
        return x
    wide = np.int16 if of(x).bits <= 8 else np.int64
    return x.astype(wide) - zero.astype(wide)


@semantics(error=exact(), source="ONNX MatMulInteger-10", data=("full", "small", "full"))
def matmul_integer(
    x: Int[Array, "*d"],
    y: Int[Array, "*e"],
    x_zero: Int[Array, "*f"] | None = None,
    y_zero: Int[Array, "*g"] | None = None,
) -> Array:
    """(x - x_zero)(y - y_zero) as i32 with wrap-around; zero points for all, per row of x, or per column of y.

    Raises RuleError "contracted-agrees", and "zero-points-agree" for a vector that has not one element a row of a
    matrix x, a column of a matrix y, or a tensor whose extents are not 1 or those of x, y, 1 along what is contracted.
    """
    for zero, m, extent, k in ((x_zero, x, x.shape[-2:-1], -1), (y_zero, y, y.shape[-1:], -2)):
        if zero is None or zero.shape in ((), (1,)):
            continue
        each = list(m.shape)
        each[k:] = [1, *each[k:][1:]]
        fits = len(each) == zero.ndim > 1 and all(n in (1, e) for n, e in zip(zero.shape, each))
        if not (zero.shape == extent if zero.ndim == 1 and m.ndim == 2 else fits):
            raise RuleError("zero-points-agree", f"{list(zero.shape)} zero points for {list(m.shape)}")
    if x_zero is not None and x_zero.ndim == 1 and x_zero.size != 1:
        x_zero = x_zero[:, None]
    try:
        return native.matmul(centred(x, x_zero), centred(y, y_zero), out=I32)
    except ValueError as e:
        raise RuleError("contracted-agrees", str(e)) from None


@matmul_integer.draw
def _draw_integer(d: Draw) -> dict[str, Object]:
    v = draw_matmul(d)
    out = {"x": v["x"], "y": v["y"]}
    xs, ys = v["x"].shape, v["y"].shape
    if d.max_rank > 5 and d.chance(16) and not d.breaking:
        many = d.pick((130, 300, 2100))
        xs, ys = ((many, 1), (1, 1)) if d.bool() else ((1, 1), (1, many))
        out = {"x": T(xs), "y": T(ys)}
    if given(d, "x_zero"):
        per_row = (xs[-2],) if len(xs) == 2 else (*xs[:-1], 1) if len(xs) > 2 else ()
        out["x_zero"] = T(per_row if d.chance(3) else (), "full")
    if given(d, "y_zero"):
        per_column = ys[-1:] if len(ys) == 2 else (*ys[:-2], 1, ys[-1]) if len(ys) > 2 else ()
        out["y_zero"] = T(per_column if d.chance(3) else (), "full")
    return out


@matmul_integer.breaks("contracted-agrees")
def _integer_apart(d: Draw) -> dict[str, Object]:
    return {"x": T((4, 4)), "y": T((5, 5))}


@matmul_integer.breaks("zero-points-agree")
def _integer_zeros(d: Draw) -> dict[str, Object]:
    """Vectors that have neither one element nor one a row of x, a column of y."""
    v: dict[str, Object] = {"x": T((3, 4)), "y": T((4, 5))}
    name = d.pick(("x_zero", "y_zero"))
    v[name] = T((d.pick((2, 4, 7)),), "full")
    return v


# -- einsum


def parse_equation(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """Labels of every operand and of the result; an ellipsis becomes labels "0", "1", ...

    Raises RuleError "equation-well-formed", "equation-matches-ranks", "ellipsis-agrees", "result-labels-known".
    """
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise RuleError("equation-matches-ranks", f"{len(terms)} terms for {len(ranks)} operands")
    widest: int | None = None  # axes that every ellipsis stands for
    for term, rank in zip(terms, ranks):
        letters = term.replace("...", "", 1)
        if not (letters.isalpha() or letters == "") or not letters.isascii():
            raise RuleError("equation-well-formed", equation)
        spare = rank - len(letters)
        if spare < 0 or (spare > 0 and "..." not in term):
            raise RuleError("equation-matches-ranks", f"{term!r} for rank {rank}")
        if "..." in term:
            if widest not in (None, spare):
                raise RuleError("ellipsis-agrees", f"{widest} and {spare} axes in {equation!r}")
            widest = spare
    widest = widest or 0
    ins = []
    for term, rank in zip(terms, ranks):
        spare = rank - len(term.replace("...", "", 1))
        before, _, after = term.partition("...")
        ins.append([*before, *(str(i) for i in range(widest - spare, widest)), *after])
    flat = [c for t in terms for c in t.replace("...", "", 1)]
    if arrow:
        before, dots, after = right.partition("...")
        out = [*before, *(str(i) for i in range(widest)), *after] if dots else [*right]
    else:
        out = [*(str(i) for i in range(widest)), *sorted(c for c in set(flat) if flat.count(c) == 1)]
    known = {c for labels in ins for c in labels}
    if len(set(out)) != len(out) or not set(out) <= known:
        raise RuleError("result-labels-known", equation)
    return ins, out


def _aligned(x: Array, labels: list[str], order: list[str]) -> Array:
    """``x`` with one axis per label of ``order`` (extent 1 where absent); repeated labels become their diagonal."""
    while len(set(labels)) != len(labels):
        c = next(c for c in labels if labels.count(c) > 1)
        i, j = [k for k, v in enumerate(labels) if v == c][:2]
        if x.shape[i] != x.shape[j]:
            raise RuleError("extents-agree", f"label {c}: {x.shape[i]} and {x.shape[j]}")
        x = np.diagonal(x, axis1=i, axis2=j)
        labels = [v for k, v in enumerate(labels) if k not in (i, j)] + [c]
    at = sorted(range(len(labels)), key=lambda k: order.index(labels[k]))
    have = [labels[k] for k in at]
    x = x.transpose(at)
    return x.reshape([x.shape[have.index(c)] if c in have else 1 for c in order])


def _einsum_terms(ctx: Context) -> float:
    """Product of the extents that are summed over, and the number of operands."""
    xs = ctx.inputs["xs"]
    ins, out = parse_equation(ctx.params["equation"], [x.ndim for x in xs])
    extent: dict[str, int] = {}
    for x, labels in zip(xs, ins):
        for c, n in zip(labels, x.shape):
            extent[c] = max(n, extent.get(c, 1))
    return float(product([n for c, n in extent.items() if c not in out]) + len(xs))


def _einsum_after(ctx: Context) -> float:
    """A product of two operands may underflow before the others, in any order, multiply it."""
    wide = [np.abs(np.asarray(x, np.float64)) for x in ctx.inputs["xs"]]
    largest = sorted(float(np.where(np.isfinite(w), w, 1.0).max(initial=1.0)) for w in wide)
    return float(np.prod(largest[2:]))


def _partial_contractions(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """Which operands are multiplied first, which labels are summed before the others come in, and in what precision
    that is kept, is not said: where such a step leaves the type, infinities and what comes of them may stand."""
    xs = inputs["xs"]
    if of(xs[0]).kind != "f":
        return None
    ins, out = parse_equation(params["equation"], [x.ndim for x in xs])
    wide, top = [_size(tamed(x)) for x in xs], float_max(of(xs[0]))
    for some in (s for n in range(1, len(xs)) for s in combinations(range(len(xs)), n)):
        later = {c for i, labels in enumerate(ins) if i not in some for c in labels} | set(out)
        order = sorted({c for i in some for c in ins[i]}, key=lambda c: c not in later)
        part: Object = 1.0
        for i in some:
            part = part * _aligned(wide[i], ins[i], order)
        if part.sum(tuple(k for k, c in enumerate(order) if c not in later)).max(initial=0.0) > top:
            return underspecified(
                "a product of some of the operands leaves the type, that of all may not",
                np.True_,
                *(np.array(v) for v in (np.inf, -np.inf, np.nan)),
            )
    return None


def _the_einsum() -> Semantics:
    return einsum


@semantics(
    error=accumulates(_einsum_terms, after=_einsum_after),
    source="ONNX Einsum-12; MIL einsum iOS15",
    ambiguous=first_of(overflows(largest(_the_einsum)), _partial_contractions),
)
def einsum(xs: Variadic[Num[Array, "*_d"]], *, equation: Opaque) -> Array:
    """Sum of products of the operands over all labels that the result does not name.

    A repeated label inside a term takes the diagonal, an ellipsis broadcasts; without "->" the result has the labels
    that occur once, capitals first.  Raises RuleError "extents-agree" and those of ``parse_equation``.
    """
    ins, out = parse_equation(equation, [x.ndim for x in xs])
    inner = sorted({c for labels in ins for c in labels} - set(out))
    order = [*out, *inner]
    floating = of(xs[0]).kind == "f"
    total: Object = None
    for x, labels in zip(xs, ins):
        a = _aligned(x.astype(np.float64) if floating else x.astype(np.int64), labels, order)
        try:
            with np.errstate(all="ignore"):
                total = a if total is None else total * a
        except ValueError:
            raise RuleError("extents-agree", equation) from None
    axes = tuple(range(len(out), len(order)))
    y = native.reduce("sum", total, axes, False)
    return y if floating else y.astype(xs[0].dtype)


@einsum.draw
def _draw_einsum(d: Draw) -> dict[str, Object]:
    letters = d.pick(("ijklm", "abcde", "bhwcd", "ZyXwv"))
    extent = {c: d.dim(hi=5) for c in letters}
    dots = d.part(1, 2) if d.chance(3) else ()
    terms, xs = [], []
    for _ in range(d.pick((1, 2, 2, 2, 3))):
        mine = d.subset(letters, 1)[:3]
        if d.max_rank >= 8 and d.chance(24):  # a scalar
            mine = []
        if mine and d.chance(6):
            mine.append(d.pick(mine))  # a diagonal
        at = d.int(0, len(mine)) if dots and d.int(0, 3) else None
        shape = [extent[c] for c in mine]
        if at is not None:
            some = tuple(1 if d.chance(4) else n for n in dots)
            shape[at:at] = some
            mine.insert(at, "...")
        terms.append("".join(mine))
        xs.append(T(shape))
    left = ",".join(terms)
    used = list(dict.fromkeys(c for t in terms for c in t.replace("...", "")))
    wide = any("..." in t for t in terms)
    if d.chance(4):
        return {"xs": xs, "equation": left}
    right = d.subset(used)
    if wide:
        right.insert(d.int(0, len(right)), "...")
    blank = " " if d.chance(6) else ""
    return {"xs": xs, "equation": f"{left}{blank}->{blank}{''.join(right)}"}


@einsum.breaks("extents-agree")
def _einsum_apart(d: Draw) -> dict[str, Object]:
    n = d.int(2, 4)
    return {"xs": [T((3, n)), T((n + 1, 2))], "equation": "ij,jk->ik"}


@einsum.breaks("ellipsis-agrees")
def _einsum_ellipses(d: Draw) -> dict[str, Object]:
    n = d.int(1, 4)
    return {"xs": [T((3, n)), T((2, n, 4))], "equation": "i...,...k->i...k"}


@einsum.breaks("result-labels-known")
def _einsum_unknown(d: Draw) -> dict[str, Object]:
    return {"xs": [T((3, 2)), T((2, 4))], "equation": "ij,jk->iz"}
