"""OptimizedRNN of the first list, which left it on 2017-11-03: stacked layers with all parameters in one tensor.

The documentation calls that tensor's layout cuDNN's, and cuDNN hands its parts out by function only.  Where all
parameters are equal no layout matters; for others a layout is fixed here (``stacked.unpacked``: all matrices, then all
biases, gates in the documented order) and the instance counts as ambiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Call, Checks, Context, Draw, Evaluation, Sampling, T, bounded, underspecified
from suites.onnx import op
from suites.onnx.ops.vanished import SOURCE
from suites.semantics import stacked
from suites.semantics.bounds import quiet, tiny

Array = np.ndarray


def _wide(v: Any) -> Any:
    return None if v is None else v.astype(np.float64)


def _parts(c: Call) -> tuple[Array, list[list[stacked.Part]], str, Any, Any]:
    cell, x = c.attr("cell_type"), c.inputs["input"].astype(np.float64)
    layers, ways = int(c.attr("num_layers")), int(c.attr("directions"))
    if ways not in (1, 2) or layers < 1:
        raise RuleError("directions-known", f"{layers} layers in {ways} directions, expected 1 or 2 of these")
    size, skips = int(c.attr("hidden_size")), bool(c.attr("skip_input_transform"))
    parts = stacked.unpacked(_wide(c.inputs["weights"]), cell, x.shape[2], size, layers, ways, skips)
    return x, parts, cell, _wide(c.inputs.get("initial_h")), _wide(c.inputs.get("initial_c"))


def _run(c: Call) -> list[Array]:
    return stacked.run(*_parts(c))[: c.n_outs]


def _bound(output: int) -> Any:
    @quiet
    def bound(ctx: Context) -> Array:
        """running error analysis of the equations through all steps and layers"""
        return stacked.bounds(*_parts(ctx.call), ctx.acc_u, tiny(ctx))[output] + ctx.ulp

    return bounded(bound, "running error analysis through all steps and layers")


def _layout(c: Call) -> str | None:
    v = c.inputs["weights"]
    same = v.size and (v == v[0]).all()
    return None if same else underspecified("OptimizedRNN: parameters that differ lie in cuDNN's order", np.True_)


def _draw(d: Draw) -> dict[str, Any]:
    cell = d.pick((*stacked.CELLS, "lstm"))
    t, b, size, hidden, layers, ways = (d.int(1, n) for n in (4, 3, 4, 4, 3, 2))
    skips = d.chance(4) and not d.breaking
    if d.empty:
        at = d.int(0, 3)
        t, b, size, hidden = (0 if k == at else v for k, v in enumerate((t, b, size, hidden)))
    elif d.chance(12) and not d.breaking:  # long ones
        layers, ways = 1, d.int(1, 2)
        which = d.int(0, 3)
        if which == 0:
            t, b, hidden = 1, d.pick((17, 130, 300, 600)), 4
        elif which == 1:
            t, b, size, hidden = 1, 1, 1, d.pick((17, 33))
        elif which == 2:
            t, b, size, hidden = d.pick((17, 130, 300)), 1, 1, 1
        else:
            t, b, size, hidden = 1, 1, d.pick((17, 130, 300, 600)), 1
    if skips:
        size = hidden
    n = stacked.count(cell, size, hidden, layers, ways, skips)
    value = d.pick((0.5, -0.25, 0.125, -0.0625))
    out: dict[str, Any] = {
        "weights": T((n,), values=[value] * n) if d.bool() else T((n,), "uniform:-1:1"),
        "input": T((t, b, size), "unit"),
        "cell_type": cell,
        "hidden_size": hidden,
        "@outs": d.int(1, 3 if cell == "lstm" else 2),
    }
    for name in ("initial_h", "initial_c") if cell == "lstm" else ("initial_h",):
        if d.int(0, 2):
            out[name] = T((layers * ways, b, hidden), "unit")
    for name, v in (("num_layers", layers), ("directions", ways)):
        if v != 1 or d.bool():
            out[name] = v
    if skips or d.chance(6):
        out["skip_input_transform"] = int(skips)
    return out


def _short(d: Draw) -> dict[str, Any]:
    out = _draw(d)
    n = out["weights"].shape[0] + 1
    return out | {"weights": T((n,), "unit")}


op(
    "OptimizedRNN",
    Evaluation(_run, tuple(_bound(k) for k in range(3)), SOURCE),
    Sampling(_draw),
    Checks(
        ambiguous=_layout,
        breaks={"weights-size": _short},
        stated={"weights": "n", "input": "t b i", "initial_h": "l b h", "initial_c": "l b h"},
    ),
)
