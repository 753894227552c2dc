"""Custom operators that the tfl dialect names (``suites/tflite/custom.py`` says how a file holds them).

NumericVerify is registered in LiteRT's own resolvers.  No wheel registers the other three.  The XNNPACK delegate
computes them, and ``test_custom.py`` compares their meanings with loops written from the kernels of MediaPipe.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import F32
from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T
from suites.semantics import conv
from suites.semantics import perception as s
from suites.tflite import custom, op
from suites.tflite.codecs import Each, Q, fused, nan_activation, nhwc, nhwc_out
from suites.tflite.ops.conv import HW, PADDING, _Turned
from suites.tflite.quantisation import draw_quant

_WINDOW = Spelling(
    x="input",
    kernel=Each("filter_{}", HW, words=("height", "width")),
    strides=Each("stride_{}", HW),
    padding=PADDING,
)
op(
    "MaxPoolingWithArgmax2D",
    s.max_pool_argmax,
    _WINDOW.with_out(fused()),
    Sampling(outs=2, tags=("fused",), ranks=(4, 4)),
    Checks(ambiguous=nan_activation(s.max_pool_argmax)),
)


def _unpooling(d: Draw, *names: str) -> dict[str, Any]:
    """Breaks a rule by one of these options, which is below 1."""
    values: dict[str, Any] = {"filter_height": 2, "filter_width": 2, "stride_h": 2, "stride_w": 2, "padding": "VALID"}
    values[d.pick(names)] = d.pick((0, -1, -(2**31)))
    return {"input": T((1, 2, 2, 1)), "indices": T((1, 2, 2, 1), values=[0.0, 1.0, 2.0, 3.0]), **values}


op(
    "MaxUnpooling2D",
    s.max_unpool,
    _WINDOW,
    Sampling(ranks=(4, 4)),
    Checks(
        only={"fused_activation_function": "NONE"},  # the kernel reads it and does nothing with it
        breaks={
            "kernel-positive": lambda d: _unpooling(d, "filter_height", "filter_width"),
            "strides-positive": lambda d: _unpooling(d, "stride_h", "stride_w"),
        },
    ),
)


# -- transposed convolution with a bias


def _pads(call: Call) -> tuple[int, ...]:
    total = custom.transposed_pads(
        {k: call.attr(k) for k in ("padding", "stride_h", "stride_w")},
        call.inputs["input"].shape[1:3],
        call.inputs["weights"].shape[1:3],
    )
    begins = [t // 2 for t in total]
    return (*begins, *(t - b for t, b in zip(total, begins)))


def _draw_transposed(d: Draw) -> dict[str, Any]:
    kernel, strides = ([d.pick(pool) for _ in range(2)] for pool in ((1, 2, 3, 3, 4), (1, 2, 2, 3)))
    batch, c, m = d.dim(0, 3), d.pick((1, 2, 3, 5)), d.pick((1, 2, 3, 4))
    extents = [d.dim(1, 5), d.dim(1, 5)]
    if d.chance(24):  # one window stands at the beginning, whatever the step to the next one
        at = d.int(0, 1)
        extents[at], strides[at] = 1, 2**31 - 1
    return {
        "input": T((batch, *extents, c)),
        "weights": T((m, *kernel, c)),
        "bias": T((m,)),
        "padding": d.pick(("SAME", "VALID")),
        "stride_h": strides[0],
        "stride_w": strides[1],
    }


op(
    "Convolution2DTransposeBias",
    conv.conv_transpose,
    Spelling(
        x=nhwc("input"),
        w=_Turned("weights"),
        b="bias",
        strides=Each("stride_{}", HW),
        dilations=Fn(lambda call: (1, 1)),
        pads=Fn(_pads),
        fixed={"groups": 1, "output_padding": None, "output_shape": None, "padding": "explicit", "odd": "upper_end"},
        out=nhwc_out,
    ),
    Sampling(_draw_transposed, ranks=(4, 4)),
    Checks(
        ambiguous=nan_activation(conv.conv_transpose),
        source="MediaPipe Convolution2DTransposeBias (transpose_conv_bias.cc)",
    ),
)


# -- quantised values against floats


def _draw_verify(d: Draw, off: bool = False) -> dict[str, Any]:
    """Floats near what the steps stand for.  off: one of them is a hundred tolerances away."""
    t, shape = d.types["T"], d.shape(0, 4)
    n = int(np.prod(shape))
    out: dict[str, Any] = {"tolerance": d.pick((0.05, 0.5, 1.0, 5.0)), "log_if_failed": d.bool()}
    q = draw_quant(d, t) if t.kind in "iu" else None
    step = q["scale"][0] if q else 0.0
    steps: list[float]
    if q:
        steps = [d.int(*((0, 255) if t.kind == "u" else (-128, 127))) for _ in range(n)]
        real = [step * (x - q["zero_point"][0]) for x in steps]
    else:
        steps = [d.int(-64, 64) / 8 for _ in range(n)]
        real = list(steps)
    if off:
        out |= {"tolerance": d.pick((0.5, 1.0, 5.0)), "log_if_failed": True}
        shape, n = (shape, n) if n else ((1,), 1)
        steps, real = (steps, real) if real else ([0.0], [-step * q["zero_point"][0] if q else 0.0])
        real[d.int(0, n - 1)] += 100 * out["tolerance"] * step + 1
    elif out["log_if_failed"] and out["tolerance"] >= 0.1:  # less than the tolerance by more than any rounding
        real = [r + out["tolerance"] * step * d.int(-7, 7) / 8 for r in real]
    else:
        real = [r + d.int(-9, 9) / 4 for r in real]
    return {"input": T(shape, values=steps, quant=q), "ref": T(shape, values=real), **out}


_VERIFY = (
    Spelling(x="input", tolerance="tolerance", log="log_if_failed", out_dtype=lambda call, i: F32),
    Sampling(_draw_verify),
    Checks(breaks={"within-tolerance": lambda d: _draw_verify(d, off=True)}),
)
op("NumericVerify", s.verify_half, *_VERIFY)
op("NumericVerify", s.verify_quantised, *_VERIFY, domain="quantised", xq=Q("input"))
