"""Constants that are there twice, and constants that become random."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import F16, F32, I8, U8
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program

# -- const_deduplication: of the same type and value, of at least so many elements


def _twice(d: Draw) -> dict[str, Any]:
    """Two or three ops with the same weight; the threshold is the default or an option."""
    p = Program(d)
    m, n = d.pick(((10, 10), (4, 25), (3, 40), (3, 5)))
    w = p.weights((m, n), -40, 40)
    outs = [p.op(d.pick(("mul", "add", "sub")), x=p.input((m, n)), y=w.copy()) for _ in range(d.int(2, 3))]
    least = 100 if m * n >= 100 else 15
    return p.done(*outs, options={"const_deduplication": {"const_threshold": least}})


def _dequantised(p: Program, data: np.ndarray, scale: Any, dt: Any = I8) -> str:
    return p.op(
        "constexpr_affine_dequantize",
        quantized_data=p.const(data, dt),
        zero_point=p.const(0, dt),
        scale=np.asarray(scale),
        axis=1,
    )


def draw_compressed(d: Draw) -> dict[str, Any]:
    """Weights held compressed, with one scale or one for each channel."""
    p = Program(d, F32)
    if d.opset in ("ios13", "ios15"):
        return _twice(d)
    data = np.arange(120).reshape(12, 10) * d.pick((3, 7)) % 100
    scale = np.array([0.5**k for k in range(10)]) if d.bool() else np.array(0.25)
    if d.opset == "ios18" and d.bool():  # no offset is given
        ws = [
            p.op("constexpr_blockwise_shift_scale", data=p.const(data, I8), scale=scale.reshape(1, -1))
            for _ in range(2)
        ]
    else:
        ws = [_dequantised(p, data, scale) for _ in range(2)]
    outs = [p.op("add", x=p.input((12, 10)), y=w) for w in ws]
    return p.done(
        *outs,
        pattern="match compressed",
        watch="compressed constants",
        options={"const_deduplication": {"const_threshold": 100}},
    )


def _different(d: Draw) -> dict[str, Any]:
    """Fewer elements than the threshold; one element, the shape, the type or a scale is another."""
    p = Program(d, F32)
    compressed = ("type", "scale", "scales") if d.opset not in ("ios13", "ios15") else ()
    kinds = ("few", "element", "last element", "shape", "below", *compressed)
    kind = d.pick(kinds)
    shapes: list[tuple[int, ...]] = [(10, 11), (10, 11)]
    w = p.weights((10, 11), -40, 40)
    v = w.copy()
    if kind in ("type", "scale", "scales"):
        data = np.arange(110).reshape(11, 10) % 100
        one = np.array([0.001 * (k + 1) for k in range(10)], np.float32)
        other = one + np.float32(3e-9) if kind == "scales" else one * 2
        first = _dequantised(p, data, one)
        second = _dequantised(p, data, one if kind == "type" else other, U8 if kind == "type" else I8)
        outs = [p.op("mul", x=p.input((11, 10)), y=y) for y in (first, second)]
    else:
        if kind == "few":
            w, v, shapes = w[:9], v[:9], [(9, 11), (9, 11)]
        elif kind == "element":
            v[0, 0] += 0.25
        elif kind == "last element":
            v[-1, -1] += 0.25
        elif kind == "shape":
            v, shapes = v.reshape(11, 10), [(10, 11), (11, 10)]
        else:  # far below 1, but not the same
            w[-1, -1], v[-1, -1] = 1e-13, 4e-13
        outs = [p.op("mul", x=p.input(s, "uniform:1:2"), y=c) for s, c in zip(shapes, (w, v))]
    if kind in ("type", "scale", "scales"):  # the data may become one constant, the weights not
        p.g.meta["watch"] = "compressed constants"
    return p.done(
        *outs, fires=False, pattern=f"near miss {kind}", options={"const_deduplication": {"const_threshold": 100}}
    )


declare("const_deduplication", _twice, draw_compressed, _different, watch="constants")


# -- WeightRandomizer: other weights in the same program.  What is judged hangs on no weight's value: each meets a zero.


def _randomised(d: Draw) -> dict[str, Any]:
    p = Program(d, d.pick((F16, F32)))
    n, m = d.int(4, 6), d.int(3, 5)
    x = p.input((2, n), "uniform:1:2")
    none = p.op("mul", x=p.op("sub", x=x, y=x), y=1.0)
    kind = d.pick(("linear", "matmul", "mul"))
    if kind == "linear":
        y = p.op("linear", x=none, weight=p.weights((m, n), 2, 9))
    elif kind == "matmul":
        y = p.op("matmul", x=none, y=p.weights((n, m), 2, 9), transpose_x=False, transpose_y=False)
    else:
        y, m = p.op("mul", x=p.op("concat", values=(none, none, none), axis=0), y=p.weights((6, n), 2, 9)), n
    rows = 6 if kind == "mul" else 2
    p.g.meta["any_weights"] = True
    return p.done(p.op("add", x=y, y=p.input((rows, m), "uniform:1:2")), p.op("square", x=x), pattern=f"match {kind}")


def _no_weights(d: Draw) -> dict[str, Any]:
    """The only constants are parameters of ops."""
    p = Program(d)
    p.g.meta["any_weights"] = True
    y = p.op("transpose", x=p.input((2, 3, 4)), perm=d.shuffle(range(3)))
    return p.done(p.op("reduce_sum", x=y, axes=[1], keep_dims=True), fires=False)


declare("WeightRandomizer", _randomised, _randomised, _no_weights, watch="values")
