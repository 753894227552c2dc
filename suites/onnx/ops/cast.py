"""Conversion between element types."""

from __future__ import annotations

from typing import Any

from harness.core.dtypes import F8E8M0, DType, of
from harness.declare import Call, Draw, Fn, Sampling, Spelling, T
from suites.onnx import op
from suites.onnx.codecs import OLD_WORDS, ToType
from suites.semantics import cast as s

_NUMBERS = ("0", "1", "-1", "3.14", "1e-5", "1E8", "+INF", "inf", "-INF", "nan", "100", "0.5", "-0.0", "12345")


def _source(d: Draw, have: DType, to: DType, shape: tuple[int, ...]) -> T:
    """Mostly values whose result is defined; the rest is counted as ambiguous."""
    if have.kind == "s":
        n = 1
        for k in shape:
            n *= k
        words = (
            (*_NUMBERS, *[""] * 6)  # three words in ten are empty
            if to.kind == "s"
            else _NUMBERS
            if to.kind == "f"
            else ("0", "1", "7", "100")
            if to.kind == "u"
            else ("0", "1", "-7", "100", "-128")
        )
        return T(shape, values=[d.pick(words) for _ in range(n)])
    if have.kind == "f" and to.kind in "iu":
        hi = min(7, (1 << (to.bits - (to.kind == "i"))) - 1)
        return T(shape, f"uniform:{0 if to.kind == 'u' else -hi}:{hi}")
    if to is F8E8M0:
        return T(shape, "positive" if have.kind == "f" else None)
    return T(shape)


def _draw(d: Draw) -> dict:
    shape = d.shape(0)
    have = d.types["T1"]
    to = d.pick(d.version.schema.dtypes("T2"))
    out: dict[str, Any] = {"input": _source(d, have, to, shape)}
    out["to"] = OLD_WORDS[to.name] if d.version.version < 6 else to
    return _modes(d, out)


def _modes(d: Draw, out: dict[str, Any]) -> dict[str, Any]:
    if "saturate" in d.version.schema.attrs and d.bool():
        out["saturate"] = d.int(0, 1)
    if "round_mode" in d.version.schema.attrs and d.chance(3):
        out["round_mode"] = d.pick(("up", "down", "nearest"))
    return out


_TO = ToType("to")
op("Cast", s.cast, Spelling(x="input", to=_TO, out_dtype=lambda c, i: _TO.decode(c)), Sampling(_draw))


def _like(call: Call) -> DType:
    return of(call.inputs["target_type"])


def _draw_like(d: Draw) -> dict:
    shape = d.shape(0)
    return _modes(d, {"input": _source(d, d.types["T1"], d.types["T2"], shape), "target_type": T(d.shape(0))})


op(
    "CastLike",
    s.cast,
    Spelling(x="input", to=Fn(_like), out_dtype=lambda c, i: _like(c)),
    Sampling(_draw_like, alike=False, even=True),
)
