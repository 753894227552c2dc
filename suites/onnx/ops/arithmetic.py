"""Arithmetic, comparison and logic of two or more tensors.

Until version 6 the second operand is a contiguous part of the first's shape, placed by ``axis`` when ``broadcast`` is
set; from 7 on broadcasting is NumPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import int_range, of
from harness.core.errors import RuleError
from harness.declare import (
    Call,
    Checks,
    Draw,
    Evaluation,
    Fn,
    Sampling,
    Slotted,
    Spelling,
    T,
    exact,
    gathered,
    underspecified,
)
from suites.onnx import op
from suites.onnx.decode import unpack
from suites.onnx.proto import pack
from suites.onnx.schemas import first_slot
from suites.semantics import elementwise as s
from suites.semantics import variants
from suites.semantics.integers import whole


class OldOperand(Slotted):
    """The second operand of versions 1 to 6, reshaped so that NumPy's rule does what ``axis`` says.

    Raises RuleError "part-of-first": it is never the first that grows."""

    def __init__(self, slot: str, first: str) -> None:
        super().__init__(slot)
        self.first = first

    def decode(self, call: Call) -> Any:
        y, x = call.inputs[self.slot], call.inputs[self.first]
        axis = call.attr("axis")
        if call.attr("broadcast", 0) and y.size == 1 and y.ndim <= x.ndim and axis is None:
            return y.reshape(())
        at = x.ndim - y.ndim if axis is None else int(axis) % max(x.ndim, 1)
        there = x.shape[at : at + y.ndim] if at >= 0 else ()
        # "1-dim expansion doesn't work yet", says the text; the operator cases published with it do expand
        fits = len(there) == y.ndim and all(n in (1, m) for n, m in zip(y.shape, there))
        if not (fits if call.attr("broadcast", 0) else y.shape == x.shape):
            raise RuleError("part-of-first", f"{list(y.shape)} at axis {axis} of {list(x.shape)}")
        return y.reshape(y.shape + (1,) * (x.ndim - at - y.ndim))


def _old(first: str, second: str) -> Any:
    def draw(d: Draw) -> dict:
        shape = d.shape(0)
        how = d.int(0, 3)
        if how == 0:
            return {first: T(shape), second: T(shape), **({"broadcast": 0} if d.chance(3) else {})}
        start = d.int(0, len(shape))
        end = d.int(start, len(shape))
        out: dict[str, Any] = {first: T(shape), second: T(shape[start:end]), "broadcast": 1}
        if (end < len(shape) and start < end) or (start < end and d.bool()):
            out["axis"] = start
        elif start == end and d.bool():  # one element, of any rank up to the other's
            out[second] = T((1,) * d.int(0, len(shape)))
        return out

    return draw


def _whole(call: Call, results: list[Any]) -> list[Any]:
    """A real power of an integer base, in the base's type: cut toward zero (what does not fit is ambiguous)."""
    x, y = call.inputs[first_slot("Pow")], results[0]
    if of(x).kind in "iu" and of(y).kind == "f":
        y = whole(y, x)
    return [y]


def _power_fits(call: Call) -> str | None:
    x, e = call.inputs["X"], call.inputs["Y"]
    if of(x).kind in "iu" and of(e).kind == "f":
        y = np.asarray(s.pow.fn(x, e), np.float64)
        lo, hi = int_range(of(x))
        beyond = underspecified(
            "an integer base with a real exponent whose power the type does not hold", ~((y >= lo) & (y <= hi))
        )
        return gathered(beyond, s.pow.underspecified({"x": x, "y": e}, {}))
    return None


_BINARY = {
    "Add": (s.add, 6),
    "Sub": (s.sub, 6),
    "Mul": (s.mul, 6),
    "Div": (s.div, 6),
    "Pow": (s.pow, 1),
    "Equal": (s.equal, 1),
    "Greater": (s.greater, 1),
    "Less": (s.less, 1),
    "And": (s.logical_and, 1),
    "Or": (s.logical_or, 1),
    "Xor": (s.logical_xor, 1),
    "GreaterOrEqual": (s.greater_equal, 0),
    "LessOrEqual": (s.less_equal, 0),
    "BitwiseAnd": (s.bitwise_and, 0),
    "BitwiseOr": (s.bitwise_or, 0),
    "BitwiseXor": (s.bitwise_xor, 0),
    "BitShift": (s.bit_shift, 0),
    "Mod": (variants.mod, 0),
}
for _name, (_fn, _last) in _BINARY.items():
    _a, _b = first_slot(_name), first_slot(_name, 1)
    if _last:
        op(_name, _fn, Sampling(_old(_a, _b)), until=_last, x=_a, y=OldOperand(_b, _a))
    _more = (Spelling(out=_whole), Checks(ambiguous=_power_fits)) if _name == "Pow" else ()
    op(_name, _fn, *_more, since=_last + 1, until=11 if _name == "BitShift" else None, x=_a, y=_b)

# every count has a result
op(
    "BitShift",
    s.bit_shift,
    Sampling(data={"x": ("full", "special", "small"), "y": ("shift", "shift", "small", "full")}),
    Checks(ambiguous=lambda c: None),
    since=28,
    x="X",
    y="Y",
)


def _alike(d: Draw) -> dict:
    """Versions 1 and 6 want one shape."""
    shape = d.shape(0)
    return {first_slot(d.version.op): [T(shape) for _ in range(d.int(1, 4))]}


for _name, _fn in {"Sum": s.sum_n, "Max": s.max_n, "Min": s.min_n, "Mean": s.mean_n}.items():
    op(_name, _fn, Sampling(_alike), until=6, xs="data_0")
    op(_name, _fn, since=8, xs="data_0")

op("Where", s.where, c="condition", x="X", y="Y")
op("IsInf", s.is_inf, x="X")


def _bitcast(call: Call) -> np.ndarray:
    x, to = call.inputs["input"], call.attrs["to"]
    have = of(x)
    if have.bits != to.bits:
        raise RuleError("same-width", f"{have} of {have.bits} bits, {to} of {to.bits}")
    if have.bits >= 8:
        return np.ascontiguousarray(x).view(to.np).reshape(x.shape)
    small = unpack(pack(x, have.bits), have.bits, x.size, to.kind == "i")
    return (small.view(to.np) if to.kind == "f" else small.astype(to.np)).reshape(x.shape)


def _draw_bitcast(d: Draw) -> dict:
    have = d.types["T1"]
    alike = [t for t in d.version.schema.dtypes("T2") if t.bits == have.bits and (t.kind == "b") <= (have.kind == "b")]
    return {"input": T(d.shape(0)), "to": d.pick(alike)}


def _break_bitcast(d: Draw) -> dict:
    have = d.types["T1"]
    return {"input": T(d.shape(1, 3)), "to": d.pick([t for t in d.version.schema.dtypes("T2") if t.bits != have.bits])}


op(
    "BitCast",
    Evaluation(_bitcast, exact(), "ONNX BitCast-26"),
    Spelling(out_dtype=lambda c, i: c.attrs["to"]),
    Sampling(_draw_bitcast),
    Checks(breaks={"same-width": _break_bitcast}),
)

__all__ = ["Fn"]
