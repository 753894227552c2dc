"""Matrix products.  From iOS 17 on the constant operand may have another type; the result has that of the other one."""

from __future__ import annotations

from typing import Any

from harness.core.dtypes import of
from harness.spec import Call, Draw, Fn, T
from suites.mil import op
from suites.mil.codecs import need
from suites.semantics import linear as s


def _one_kind(d: Draw) -> None:
    """Mixed types mix widths, not integers with floats: no meaning is stated for that."""
    if "U" in d.types and d.types["U"].kind != d.types["T"].kind:
        d.types["U"] = d.types["T"]


def _draw_linear(d: Draw) -> dict[str, Any]:
    n, m = d.dim(1), d.dim(1)
    _one_kind(d)
    out = {"x": T((*d.part(0, 2, lo=1), n)), "weight": T((m, n))}
    if d.bool():
        out["bias"] = T((m,))
    return out


def _break_linear(d: Draw) -> dict[str, Any]:
    n = d.dim(1)
    return {"x": T((2, n)), "weight": T((3, n + 1))}


op("linear", s.linear, w="weight", b="bias", draw=_draw_linear, breaks={"contracted-agrees": _break_linear},
   out_dtype=lambda c, i: of(c.inputs["x"]))  # fmt: skip


def _draw_matmul(d: Draw) -> dict[str, Any]:
    _one_kind(d)
    out = s.matmul.drawer(d)
    x, y = out["x"], out["y"]
    if d.version.version == "ios17" and d.types["T"] is not d.types["U"]:
        const = d.int(0, 1)  # mixed types need exactly one constant
        x.const, y.const = const == 0, const == 1
        out["@const"] = "x" if const == 0 else "y"
    return {k: v for k, v in out.items() if v is not False or d.bool()}


def _result(call: Call, i: int) -> Any:
    """The type of the operand that is not the constant one."""
    return of(call.inputs["y" if call.attrs.get("@const") == "x" else "x"])


op("matmul", s.matmul, draw=_draw_matmul, out_dtype=_result, ranks=(1, 5),
   breaks={"contracted-agrees": lambda d: {"x": T((2, 3)), "y": T((4, 2))}})  # fmt: skip


def _draw_einsum(d: Draw) -> dict[str, Any]:
    """The batch axes of one operand may be 1 and are then broadcast."""
    c, h, w1, w2 = (d.dim(1, 6) for _ in range(4))
    (h1, h2), (b1, b2) = (d.pick(((n, n), (n, n), (1, n), (n, 1))) for n in (h, d.dim(1, 4)))
    if d.bool():
        equation = d.pick(("chw,whr->chr", "abc,cbd->abd", "zyx,xyk->zyk"))
        shapes = [(c, h1, w1), (w1, h2, w2)]
    else:
        equation = d.pick(("nchw,nwhu->nchu", "abcd,adce->abce"))
        shapes = [(b1, c, h1, w1), (b2, w1, h2, w2)]
    return {"values": [T(x) for x in shapes], "equation": equation}


def _break_einsum(d: Draw) -> dict[str, Any]:
    c, h, w = d.dim(2, 6), d.dim(2, 6), d.dim(2, 6)
    one, other = d.pick(((w, w + 1), (1, w), (w, 1)))
    return {"values": [T((c, h, one)), T((other, h, 2))], "equation": "chw,whr->chr"}


def _equation(call: Call) -> str:
    """Only batch axes broadcast: of the one that is summed, both have the same extent (the page's W1)."""
    equation, values = call.attr("equation"), call.inputs["values"]
    left, _, result = equation.replace(" ", "").partition("->")
    summed, terms = set(left) - set(f"{result},"), left.split(",")
    if [len(t) for t in terms] != [x.ndim for x in values]:
        return equation  # which the meaning refuses
    for label in sorted(summed):
        extents = {x.shape[t.index(label)] for x, t in zip(values, terms) if label in t}
        need(len(extents) == 1, "summed-extents-agree", f"{label} is {sorted(extents)}")
    return equation


op("einsum", s.einsum, xs="values", equation=Fn(_equation), draw=_draw_einsum,
   breaks={"summed-extents-agree": _break_einsum})  # fmt: skip
