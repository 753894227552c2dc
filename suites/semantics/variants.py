"""Meanings whose attribute chooses between two of the plain ones."""

from __future__ import annotations

import numpy as np

from harness.core.dtypes import of
from harness.spec import Choice, Context, Flag, Float, Num, T, bounded, semantics
from harness.spec.draw import Draw
from suites.semantics import elementwise as e


def _mod_bound(ctx: Context) -> object:
    """truncated remainder: exact; floored remainder: its own bound"""
    return 0.0 if ctx.params["fmod"] else e.floor_mod.error_of(0).bound(ctx)


def _mod_open(inputs: dict, params: dict) -> str | None:
    which = e.fmod if params["fmod"] else e.floor_mod
    return which.ambiguous(inputs, params) if which.ambiguous else None


@semantics(error=bounded(_mod_bound), source="ONNX Mod-10, -13, -28", ambiguous=_mod_open)
def mod(x: Num["*#d"], y: Num["*#d"], *, fmod: Flag = False) -> Num["*#d"]:
    """Remainder with the sign of the dividend (fmod) or of the divisor.  Until version 13 floats take fmod only."""
    return (e.fmod if fmod else e.floor_mod).fn(x, y)


@mod.draw
def _draw_mod(d: Draw) -> dict:
    v = (e.fmod).derive(d)
    floating = d.dtype("x").kind == "f"
    v["fmod"] = True if floating and d.version.version < 28 else d.bool()
    if not floating:  # a divisor of zero has no meaning in integers
        v["y"] = T(v["y"].shape, "ints:1:9" if d.dtype("y").kind == "u" or d.bool() else "ints:-9:-1")
    return v


def _gelu_bound(ctx: Context) -> object:
    """that of the chosen form"""
    return (e.gelu_tanh if ctx.params["approximate"] == "tanh" else e.gelu_exact).error_of(0).bound(ctx)


@semantics(error=bounded(_gelu_bound), source="ONNX Gelu-20")
def gelu(x: Float["*d"], *, approximate: Choice("none", "tanh") = "none") -> Float["*d"]:
    """x * Phi(x), or its tanh approximation."""
    return (e.gelu_tanh if approximate == "tanh" else e.gelu_exact).fn(x)


__all__ = ["gelu", "mod", "np", "of"]
