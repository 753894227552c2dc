"""Ops over complex numbers, which a front end makes and the pass lower_complex_dialect_ops takes apart again."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, DType
from harness.declare import Call, Checks, Draw, Evaluation, Fn, Sampling, Spelling, T, exact
from suites.mil import op
from suites.mil.codecs import ints, maybe, scalar
from suites.semantics import fourier as s

DOMAIN = {"domain": "complex"}
C64, F32, I32 = BY_NAME["c64"], BY_NAME["f32"], BY_NAME["i32"]


def _is(d: DType) -> Spelling:
    return Spelling(out_dtype=lambda c, i: d)


op("complex", s.pair, _is(C64), **DOMAIN, re="real_data", im="imag_data")
op(
    "complex_real",
    Evaluation(lambda c: c.inputs["data"].real.copy(), exact()),
    _is(F32),
    Sampling(lambda d: {"data": T(d.shape())}),
    **DOMAIN,
)
op(
    "complex_imag",
    Evaluation(lambda c: c.inputs["data"].imag.copy(), exact()),
    _is(F32),
    Sampling(lambda d: {"data": T(d.shape())}),
    **DOMAIN,
)
op("complex_abs", s.magnitude, _is(F32), **DOMAIN)
op(
    "complex_shape",
    Evaluation(lambda c: np.array(c.inputs["x"].shape, np.int32), exact()),
    _is(I32),
    Sampling(lambda d: {"x": T(d.shape())}),
    **DOMAIN,
)


def _one(call: Call) -> Any:
    """n and dim of a one-dimensional transform as lists."""
    return [scalar(call, "dim", -1)]


def _length(call: Call) -> Any:
    n = scalar(call, "n")
    return None if n is None else [n]


def _of_nothing(d: Draw, shape: list[int], many: bool) -> dict[str, Any]:
    a, b = d.shuffle(range(len(shape)))[:2]
    shape[a] = 0
    return {"data": T(shape), **({"dims": [b]} if many else {"dim": b})}


def _draw(many: bool, one_sided: bool = False) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        shape = list(d.shape(1, 4, lo=1))
        if one_sided:
            shape = [max(2, n) for n in shape]
        if len(shape) > 1 and d.chance(12):  # nothing along an axis that is not transformed
            return _of_nothing(d, shape, many)
        out: dict[str, Any] = {"data": T(shape, recipe=d.pick(("unit", "unit", "ties", "small")))}
        if many:
            axes = d.subset(range(len(shape)), 1)
            if d.chance(24):
                axes = [axes[0]] * 2
            if d.bool() or len(axes) > len(shape):
                out["dims"] = [a - len(shape) if d.chance(3) else a for a in axes]
            if d.chance(3):  # without dims, of the last axes; -1 leaves an axis as it is
                out["shapes"] = [-1 if d.chance(8) and not one_sided else d.int(1, 9) for _ in axes]
        else:
            maybe(d, out, "dim", d.axis(len(shape)), -1)
            if d.bool():
                out["n"] = d.int(1, 9)
        maybe(d, out, "norm", d.pick(s.NORMS), "backward")
        return out

    return draw


def _break(many: bool) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        shape = d.shape(1, 3, lo=2)
        return {"data": T(shape), **({"dims": [len(shape)]} if many else {"dim": len(shape)})}

    return draw


for name, meaning, inverse, result in (
    ("fft", s.fft, False, C64),
    ("ifft", s.fft, True, C64),
    ("rfft", s.rfft, None, C64),
    ("irfft", s.irfft, None, F32),
):
    fixed = {} if inverse is None else {"inverse": inverse}
    sided = name == "irfft"
    op(
        f"complex_{name}",
        meaning,
        _is(result),
        Spelling(x="data", shapes=Fn(_length), dims=Fn(_one), fixed=fixed),
        Sampling(_draw(False, sided)),
        Checks(breaks={"axes-in-range": _break(False)}),
        **DOMAIN,
    )
    op(
        f"complex_{name}n",
        meaning,
        _is(result),
        Spelling(x="data", shapes=Fn(lambda c: ints(c, "shapes")), dims=Fn(lambda c: ints(c, "dims")), fixed=fixed),
        Sampling(_draw(True, sided)),
        Checks(breaks={"axes-in-range": _break(True)}),
        **DOMAIN,
    )


def _draw_stft(d: Draw) -> dict[str, Any]:
    n = d.pick((4, 6, 8, 5, 4, 6, 8, 5, 1))
    if d.chance(24):
        return {
            "input": T((260,), recipe="unit", dtype=F32),
            "n_fft": 256,
            "window": T((256,), recipe="positive", dtype=F32),
        }
    if d.chance(24):
        return {"input": T((2, 1), dtype=F32), "n_fft": 1, "hop_length": 1}
    shape = (n + d.int(0, 12),) if d.bool() else (d.int(1, 3), n + d.int(0, 12))
    out: dict[str, Any] = {"input": T(shape, recipe="unit", dtype=F32), "n_fft": n}
    if d.bool() or n < 4:
        out["hop_length"] = d.int(1, 4)
    if d.bool():  # a window shorter than the transform stands in its middle
        width = out["win_length"] = n if d.bool() else d.int(1, n)
        if d.int(0, 3):
            out["window"] = T((width,), recipe="positive", dtype=F32)
    maybe(d, out, "normalized", d.bool(), False)
    maybe(d, out, "onesided", d.bool(), True)
    if not out.get("onesided", True) and d.bool():  # half of the frequencies are for real signals alone
        out["input"] = T(shape, recipe="unit", dtype=C64, const=False)
    return out


_STFT_BREAKS = {
    "signal-or-batch": lambda d: {"input": T((2, 2, 8), dtype=F32), "n_fft": 4},
    "window-fits": lambda d: {"input": T((3,), dtype=F32), "n_fft": 4, "hop_length": 1},
}
op(
    "complex_stft",
    s.stft,
    _is(C64),
    Sampling(_draw_stft),
    Checks(breaks=_STFT_BREAKS),
    **DOMAIN,
    x="input",
    hop="hop_length",
    width="win_length",
)
