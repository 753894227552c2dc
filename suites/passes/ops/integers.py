"""add_int16_cast: integers that fit 16 bits, from iOS 17 on, where cast has those types."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import F32, I32
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program


def narrowed(d: Draw) -> dict[str, Any]:
    """Indices or data of a gather, of a squeeze, the indices that topk gives; constants and inputs."""
    p = Program(d, F32)
    kind = d.pick(("indices", "constant indices", "constant data", "data", "gather_nd", "along", "squeeze", "topk"))
    n = d.int(2, 5)
    x = p.input((3, n))
    if kind == "indices":
        y = p.op("gather", x=x, indices=p.input((2,), f"index:{n}", I32), axis=1)
    elif kind == "constant indices":
        y = p.op("gather", x=x, indices=p.const([0, n - 1, 1]), axis=1)
    elif kind in ("data", "constant data"):
        some = np.array([0, 65535, 7, 1]) if d.bool() else np.array([-32768, 32767, -1, 0])
        data = p.const(some) if kind == "constant data" else p.input((4,), "small", I32)
        y = p.op("gather", x=data, indices=p.input((2,), "index:4", I32), axis=0)
    elif kind == "gather_nd":
        y = p.op("gather_nd", x=x, indices=p.input((2, 1), "index:3", I32))
    elif kind == "along":
        y = p.op("gather_along_axis", x=x, indices=p.input((3, 2), f"index:{n}", I32), axis=1)
    elif kind == "squeeze":
        y = p.op("squeeze", x=p.input((3, 1, n), "small", I32), axes=[1])
    else:
        y = p.op("topk", outs=2, x=x, k=2, axis=1, ascending=d.bool())[1]
    fires = d.opset in ("ios17", "ios18")
    whole = kind in ("data", "constant data", "squeeze", "topk")
    return p.done(
        p.op("add", x=y, y=np.int32(1)) if whole else p.op("abs", x=y),
        fires=fires,
        pattern=f"match {kind}" if fires else "near miss op set",
    )


def _wide(d: Draw) -> dict[str, Any]:
    """Constants that do not fit, which the pass is to leave alone, and no integers at all."""
    p = Program(d, F32)
    kind = d.pick(("constant indices", "extent", "no integers"))
    n = 70000
    if kind == "constant indices":
        y = p.op("gather", x=p.op("abs", x=p.input((n,))), indices=p.const([n - 1, 0, 40000]), axis=0)
    elif kind == "extent":
        y = p.op("gather", x=p.input((n,)), indices=p.input((3,), f"index:{n}", I32), axis=0)
    else:
        y = p.op("relu", x=p.op("squeeze", x=p.input((2, 1, 3)), axes=[1]))
    return p.done(p.op("abs", x=y), fires=False, pattern=f"near miss {kind}")


def _wide_at_run_time(d: Draw) -> dict[str, Any]:
    """Inputs that hold more than 16 bits, which only a run shows: cast or not, they are to come out as they are."""
    p = Program(d, F32)
    kind, n = d.pick(("squeeze", "data", "gather_nd indices")), 70000
    if kind == "squeeze":
        y = p.op("squeeze", x=p.input((3, 1, 2), f"ints:0:{n}", I32), axes=[1])
    elif kind == "data":
        y = p.op("gather", x=p.input((3, 2), f"ints:0:{n}", I32), indices=p.const([1, 0]), axis=1)
    else:
        y = p.op("gather_nd", x=p.input((n,)), indices=p.input((3, 1), f"index:{n}", I32))
    fires = d.opset in ("ios17", "ios18")
    return p.done(p.op("abs", x=y), fires=fires, pattern=f"match wide {kind}" if fires else "near miss op set")


declare("add_int16_cast", narrowed, narrowed, _wide, _wide_at_run_time)
