"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import of
from harness.core.errors import RuleError
from harness.declare import Call, Checks, Context, Draw, Evaluation, Sampling, Spelling, T, bounded
from suites.onnx import op
from suites.semantics import linear as s
from suites.semantics.bounds import unordered


def _scalar(d: Draw) -> dict[str, Any]:
    """A scalar in place of a matrix."""
    return {"A": T((2, 3)), "B": T((3, 2)), d.pick(("A", "B")): T(())}


op("MatMul", s.matmul, Checks(breaks={"rank-at-least-1": _scalar}), x="A", y="B")


def _old_gemm(d: Draw) -> dict[str, Any]:
    """Versions 1 and 6: C has the shape of the product unless ``broadcast`` is set."""
    m, k, n = d.dim(), d.dim(), d.dim()
    ta, tb = d.bool(), d.bool()
    out: dict[str, Any] = {"A": T((k, m) if ta else (m, k)), "B": T((n, k) if tb else (k, n)), "C": T((m, n))}
    if d.bool():
        out |= {"broadcast": 1, "C": T(d.pick(((m, n), (1, n), (n,), (1,), (m, 1), ())))}
    elif d.chance(3):
        out["broadcast"] = 0
    for name, v in (("transA", ta), ("transB", tb)):
        if v or d.bool():
            out[name] = int(v)
    whole = d.dtype("A").kind != "f"
    for name in ("alpha", "beta"):
        if d.bool():
            out[name] = float(d.int(0, 2)) if whole else d.int(-32, 32) / 8.0
    return out


def _wrong_gemm(d: Draw, a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...]) -> dict[str, Any]:
    return {"A": T(a), "B": T(b), "C": T(c), "broadcast": 1}


_GEMM = {"a": "A", "b": "B", "c": "C", "trans_a": "transA", "trans_b": "transB"}


def _shape_of_c(call: Call) -> str:
    """That of the product, unless ``broadcast`` asks for more (ONNX Gemm-1, broadcast)."""
    a, b = (call.inputs[n].shape[:: -1 if call.attr(t, 0) else 1] for n, t in (("A", "transA"), ("B", "transB")))
    return "*c" if call.attr("broadcast", 0) else f"{a[0]} {b[1]}"


op(
    "Gemm",
    s.gemm,
    Sampling(_old_gemm),
    Checks(
        stated={"C": _shape_of_c},
        breaks={
            "shapes-stated": None,  # may broadcast
            "contracted-agrees": lambda d: _wrong_gemm(d, (2, 3), (4, 2), (2, 2)),
            "c-broadcasts": lambda d: _wrong_gemm(d, (2, 3), (3, 2), d.pick(((3,), (3, 2)))),
        },
    ),
    until=6,
    **_GEMM,
)
op("Gemm", s.gemm, since=7, **_GEMM)
op("MatMulInteger", s.matmul_integer, x="A", y="B", x_zero="a_zero_point", y_zero="b_zero_point")
op("Einsum", s.einsum, xs="Inputs")


def _det_bound(ctx: Context) -> np.ndarray:
    """Elimination with pivoting: growth 2^(n-1), and the product of the row norms bounds every cofactor expansion."""
    x = np.abs(ctx.call.inputs["X"].astype(np.float64))
    n = x.shape[-1]
    return 4 * n * n * 2.0**n * ctx.acc_u * x.sum(-1).prod(-1) + ctx.ulp


def _det(c: Call) -> np.ndarray:
    x = c.inputs["X"].astype(np.float64)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise RuleError("square", f"shape {list(x.shape)}")
    with np.errstate(all="ignore"):
        return np.asarray(np.linalg.det(x))


def _det_open(c: Call) -> str | None:
    why = "inf, NaN or a product beyond the type: the text states no way to the determinant"
    x = c.inputs["X"]
    return unordered(why, x, (x.ndim - 2, x.ndim - 1), power=x.shape[-1], keepdims=False)


def _draw_det(d: Draw) -> dict:
    n = d.int(1, 5)
    return {"X": T((*d.shape(0, 2), n, n), "unit")}


op(
    "Det",
    Evaluation(_det, bounded(_det_bound, "4 n^2 2^n u prod of row norms + ulp"), "ONNX Det-11, -22"),
    Spelling(out_dtype=lambda c, i: of(c.inputs["X"])),
    Sampling(_draw_det),
    Checks(ambiguous=_det_open),
)
