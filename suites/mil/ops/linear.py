"""Matrix products.  From iOS 17 on the constant operand may have another type; the result has that of the other one."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import DType, int_range, of
from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T, gathered
from suites.mil import op
from suites.mil.codecs import need
from suites.semantics import linear as s

_FRACTION = "fractions times integers: neither a conversion of the constant nor a rounding of the result is stated"
_ROUNDED = "a constant that the type of the other operand does not hold: whether it is converted first is not stated"


def _cast(constant: np.ndarray, to: DType) -> np.ndarray:
    """The constant in the type of the operand that gives the result its type, where one of them is an integer."""
    d = of(constant)
    if d.kind == to.kind:
        return constant
    with np.errstate(all="ignore"):
        if to.kind == "f":
            return constant.astype(to.np)
        lo, hi = int_range(to)
        return np.clip(np.nan_to_num(np.trunc(constant.astype(np.float64))), lo, hi).astype(to.np)


def _held(constant: np.ndarray, to: DType) -> str | None:
    """Integers with floats: what is open where the types do not hold the same numbers."""
    if of(constant).kind == to.kind:
        return None
    same = np.array_equal(_cast(constant, to).astype(np.float64), constant.astype(np.float64))
    return None if same else _ROUNDED if to.kind == "f" else _FRACTION


def _whole(d: Draw, v: T) -> T:
    """A constant beside integers: whole numbers, which every reading treats alike, in three of four."""
    t, u = d.types["T"], d.types.get("U", d.types["T"])
    if t.kind != u.kind and not d.chance(4):
        v.recipe = "ints:-9:9"
    return v


def _draw_linear(d: Draw) -> dict[str, Any]:
    n, m = d.dim(1), d.dim(1)
    out = {"x": T((*d.part(0, 2, lo=1), n)), "weight": _whole(d, T((m, n)))}
    if d.bool():
        out["bias"] = _whole(d, T((m,)))
    return out


def _break_linear(d: Draw) -> dict[str, Any]:
    n = d.dim(1)
    return {"x": T((2, n)), "weight": T((3, n + 1))}


def _constant(slot: str, beside: str = "x") -> Fn:
    """A constant operand in the type of the other one."""

    def decode(call: Call) -> Any:
        v = call.inputs.get(slot)
        return v if v is None else _cast(v, of(call.inputs[beside]))

    return Fn(decode)


def _open_linear(call: Call) -> str | None:
    x = of(call.inputs["x"])
    own = (_held(call.inputs[k], x) for k in ("weight", "bias") if call.inputs.get(k) is not None)
    return gathered(*own, s.linear.underspecified(*call.version.decode(call)))


op(
    "linear",
    s.linear,
    Spelling(w=_constant("weight"), b=_constant("bias"), out_dtype=lambda c, i: of(c.inputs["x"])),
    Sampling(_draw_linear),
    Checks(breaks={"contracted-agrees": _break_linear}, ambiguous=_open_linear),
)


def _draw_matmul(d: Draw) -> dict[str, Any]:
    out = s.matmul.derive(d)
    x, y = out["x"], out["y"]
    if d.version.version == "ios17" and d.types["T"] is not d.types["U"]:
        const = d.int(0, 1)  # mixed types need exactly one constant
        x.const, y.const = const == 0, const == 1
        out["@const"] = "x" if const == 0 else "y"
        _whole(d, x if const == 0 else y)
    return {k: v for k, v in out.items() if v is not False or d.bool()}


def _leading(call: Call) -> str:
    """The operand whose type the result has: the one that is not the constant."""
    return "y" if call.attrs.get("@const") == "x" else "x"


def _operand(slot: str) -> Fn:
    return Fn(lambda c: c.inputs[slot] if slot == _leading(c) else _cast(c.inputs[slot], of(c.inputs[_leading(c)])))


def _open_matmul(call: Call) -> str | None:
    lead = _leading(call)
    own = _held(call.inputs["x" if lead == "y" else "y"], of(call.inputs[lead]))
    return gathered(own, s.matmul.underspecified(*call.version.decode(call)))


op(
    "matmul",
    s.matmul,
    Spelling(x=_operand("x"), y=_operand("y"), out_dtype=lambda c, i: of(c.inputs[_leading(c)])),
    Sampling(_draw_matmul, ranks=(1, 5)),
    Checks(
        ambiguous=_open_matmul,
        breaks={
            "contracted-agrees": lambda d: {"x": T((2, 3)), "y": T((4, 2))},
            "rank-at-least-1": lambda d: d.pick(({"x": T(()), "y": T((2,))}, {"x": T((2, 2)), "y": T(())})),
        },
    ),
)


def _draw_einsum(d: Draw) -> dict[str, Any]:
    """The batch axes of one operand may be 1 and are then broadcast."""
    c, h, w1, w2 = (d.dim(1, 6) for _ in range(4))
    (h1, h2), (b1, b2) = (d.pick(((n, n), (n, n), (1, n), (n, 1))) for n in (h, d.dim(1, 4)))
    if d.bool():
        equation = d.pick(("chw,whr->chr", "abc,cbd->abd", "zyx,xyk->zyk"))
        shapes: list[tuple[int, ...]] = [(c, h1, w1), (w1, h2, w2)]
    else:
        equation = d.pick(("nchw,nwhu->nchu", "abcd,adce->abce"))
        shapes = [(b1, c, h1, w1), (b2, w1, h2, w2)]
    return {"values": [T(x) for x in shapes], "equation": equation}


def _break_einsum(d: Draw) -> dict[str, Any]:
    c, h, w = d.dim(2, 6), d.dim(2, 6), d.dim(2, 6)
    one, other = d.pick(((w, w + 1), (1, w), (w, 1)))
    return {"values": [T((c, h, one)), T((other, h, 2))], "equation": "chw,whr->chr"}


def _break_batch(d: Draw) -> dict[str, Any]:
    return {"values": [T((2, 3, 4)), T((4, 5, 2))], "equation": "chw,whr->chr"}


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


op(
    "einsum",
    s.einsum,
    Sampling(_draw_einsum),
    Checks(breaks={"summed-extents-agree": _break_einsum, "extents-agree": _break_batch}),
    xs="values",
    equation=Fn(_equation),
)
