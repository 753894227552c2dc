"""Programs of the complex dialect, between real inputs and real outputs."""

from __future__ import annotations

from typing import Any

from harness.core.dtypes import F32
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program


def _parts(p: Program, d: Draw, z: str) -> list[str]:
    """A complex value leaves as its parts, its magnitude, or its shape."""
    kind = d.pick(("parts", "real", "magnitude"))
    if kind == "magnitude":
        return [p.op("complex_abs", x=z)]
    outs = [p.op("relu", x=p.op("complex_real", data=z))]
    return outs if kind == "real" else [*outs, p.op("abs", x=p.op("complex_imag", data=z))]


def _chain(d: Draw) -> dict[str, Any]:
    """One or two transforms in a row, from a real or a complex start."""
    p = Program(d, F32)
    shape = (d.dim(1, 3), d.int(2, 6))
    norm = d.pick(("forward", "backward", "ortho"))
    start = d.pick(("complex", "rfft", "fft", "fftn", "rfftn"))
    x = p.input(shape, "unit")
    if start == "complex":
        z = p.op("complex", real_data=x, imag_data=p.input(shape, "unit"))
    else:
        z = p.op(f"complex_{start}", data=x, norm=norm)
    then = d.pick(("none", "fft", "ifft", "irfft", "ifftn"))
    if then != "none":
        z = p.op(f"complex_{then}", data=z, norm=norm, **({"n": shape[1]} if then == "irfft" else {}))
    outs = [p.op("relu", x=z)] if then == "irfft" else _parts(p, d, z)
    return p.done(*outs, pattern=f"match {start} {then}")


def _short_time(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    n = d.pick((4, 5, 6))
    z = p.op(
        "complex_stft",
        input=p.input((d.dim(1, 2), n + d.int(0, 8)), "unit"),
        n_fft=n,
        hop_length=d.int(1, 3),
        onesided=d.bool(),
    )
    return p.done(*_parts(p, d, z), pattern="match stft")


def _real(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    return p.done(p.op("square", x=p.op("relu", x=p.input(d.shape(1, 3, lo=1)))), fires=False)


declare("lower_complex_dialect_ops", _chain, _chain, _short_time, _real)
