"""Matrix products."""

from __future__ import annotations

from harness.spec import Draw, Slotted, T
from suites.onnx import op
from suites.semantics import linear as s

op("MatMul", s.matmul, x="A", y="B")


def _old_gemm(d: Draw) -> dict:
    """Versions 1 and 6: C has the shape of the product unless ``broadcast`` is set."""
    m, k, n = d.dim(), d.dim(), d.dim()
    ta, tb = d.bool(), d.bool()
    out = {"A": T((k, m) if ta else (m, k)), "B": T((n, k) if tb else (k, n)), "C": T((m, n))}
    if d.bool():
        out |= {"broadcast": 1, "C": T(d.pick(((m, n), (1, n), (n,), (1,), (m, 1))))}
    for name, v in (("transA", ta), ("transB", tb)):
        if v or d.bool():
            out[name] = int(v)
    whole = d.dtype("A").kind != "f"
    for name in ("alpha", "beta"):
        if d.bool():
            out[name] = float(d.int(0, 2)) if whole else d.int(-32, 32) / 8.0
    return out


_GEMM = {"a": "A", "b": "B", "c": "C", "trans_a": "transA", "trans_b": "transB"}
op("Gemm", s.gemm, until=6, draw=_old_gemm, **_GEMM)
op("Gemm", s.gemm, since=7, **_GEMM)
op("MatMulInteger", s.matmul_integer, x="A", y="B", x_zero="a_zero_point", y_zero="b_zero_point")
op("Einsum", s.einsum, xs="Inputs")

__all__ = ["Slotted"]
