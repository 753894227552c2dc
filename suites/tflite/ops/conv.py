"""Convolutions of plain tensors: channels last, filters OHWI (depthwise 1HWM, three axes DHWIO), SAME or VALID."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Fn, Map, Sampling, Slotted, Spelling, T
from suites.semantics import conv as s
from suites.semantics.window import FAR, draw_window
from suites.tflite import op
from suites.tflite.codecs import Each, fused, later, nan_activation, nhwc, nhwc_out

PADDING = Map("padding", {"same_upper": "SAME", "valid": "VALID"})
HW, DHW = ("h", "w"), ("d", "h", "w")


def _not_empty(w: Any) -> Any:
    """Channels second.  Raises RuleError "filter-not-empty" (TensorFlow Conv2D: no dimension of the filter is 0)."""
    if w.size == 0:
        raise RuleError("filter-not-empty", f"a filter of shape {list(w.shape)}")
    return np.moveaxis(w, -1, 1)


FILTER = Slotted("filter", _not_empty, lambda s: (s[0], *s[2:], s[1]))


def _empty_filter(d: Draw) -> dict[str, Any]:
    shape = [d.int(1, 3), 2, 2, 2]
    shape[d.int(0, 3)] = 0
    return {"input": T((1, 3, 3, shape[3])), "filter": T(tuple(shape)), "stride_h": 1, "stride_w": 1}


def _groups() -> Fn:
    """Grouped convolution has no option: the filter's depth tells."""
    return Fn(lambda call: call.inputs["input"].shape[-1] // max(1, call.inputs["filter"].shape[-1]))


_CONV2D = (
    Spelling(
        x=nhwc("input"),
        w=FILTER,
        b="bias",
        strides=Each("stride_{}", HW),
        dilations=Each("dilation_{}_factor", HW),
        padding=PADDING,
        out=fused(nhwc_out),
    ),
    Sampling(ranks=(4, 4), tags=("fused", "bias")),
    Checks(ambiguous=nan_activation(s.conv)),
)
_NO_FILTER = Checks(breaks={"filter-not-empty": _empty_filter})
op("CONV_2D", s.conv, *_CONV2D, Spelling(fixed={"pads": None, "groups": 1}), _NO_FILTER, until=5)


def _uneven_channels(d: Draw) -> dict[str, Any]:
    """Where the filter's depth tells the groups, only a depth that does not divide the channels breaks the rule."""
    g = d.int(2, 5)
    c = g * d.int(0, 2) + d.int(1, g - 1)
    return {"input": T((1, 3, 3, c)), "filter": T((d.int(1, 4), 2, 2, g)), "stride_h": 1, "stride_w": 1}


op(
    "CONV_2D",
    s.conv,
    *_CONV2D,
    Spelling(groups=_groups(), fixed={"pads": None}),
    Checks(breaks={"channels-agree": _uneven_channels, "filter-not-empty": _empty_filter}),
    since=6,
)


def _dhwio(slot: str) -> Slotted:
    """Filters of three space axes: ours [m, c, d, h, w], theirs [d, h, w, c, m]."""
    return Slotted(slot, lambda w: w.transpose(4, 3, 0, 1, 2), lambda v: (*v[2:], v[1], v[0]))


op(
    "CONV_3D",
    s.conv,
    Spelling(
        x=nhwc("input"),
        w=_dhwio("filter"),
        b="bias",
        strides=Each("stride_{}", DHW),
        dilations=Each("dilation_{}_factor", DHW),
        padding=PADDING,
        fixed={"pads": None, "groups": 1},
        out=fused(nhwc_out),
    ),
    Sampling(ranks=(5, 5), tags=("fused",)),
    Checks(ambiguous=nan_activation(s.conv)),
)


def filters(d: Draw) -> int:
    """How many filters; one in 32 times beyond what a vector, or 7 or 8 bits count."""
    return d.pick((17, 130, 260)) if d.chance(32) else d.pick((1, 2, 3, 4, 8))


# -- depthwise


def _by_channel(w: Any) -> Any:
    """[1, h, w, channels] as [channels, 1, h, w].  Raises RuleError "filter-of-one" where the first extent is not 1
    (depthwise_conv.cc, Prepare: SizeOfDimension(filter, 0) == 1)."""
    if w.ndim != 4 or w.shape[0] != 1:
        raise RuleError("filter-of-one", f"a filter of shape {list(w.shape)}")
    return w[0].transpose(2, 0, 1)[:, None]


class _Depthwise(Slotted):
    """Theirs [1, h, w, c * multiplier], ours [c * multiplier, 1, h, w]."""

    def __init__(self) -> None:
        super().__init__("filter", _by_channel, lambda v: (1, *v[2:], v[0]))


def said_multiplier(d: Draw, multiplier: int) -> int:
    """``depth_multiplier``, now and then another number than the filter shows.

    Source: schema, DepthwiseConv2DOptions: it is redundant, and ignored in versions above TensorFlow 2.0."""
    return d.pick((0, -1, 2**31 - 1, -(2**31), multiplier + 9)) if d.chance(32) else multiplier


def channels(d: Draw) -> tuple[int, int]:
    """Channels and filters of each: now and then none of these, or more channels than 8 bits count."""
    c, multiplier = d.pick((1, 2, 3, 5, 8)), d.pick((1, 1, 2, 3))
    if d.empty:
        return c, 0
    return (d.pick((130, 260)), 1) if d.chance(48) else (c, multiplier)


def draw_depthwise(d: Draw) -> dict[str, Any]:
    """Geometry as for the other convolutions; dilation only where the version has it."""
    w = draw_window(d, 2)
    c, multiplier = channels(d)
    out: dict[str, Any] = {
        "input": T((d.dim(hi=3), *w.extents, c)),
        "filter": T((1, *w.kernel, c * multiplier)),
        "stride_h": w.strides[0],
        "stride_w": w.strides[1],
        "padding": PADDING.table[w.padding],
        "depth_multiplier": said_multiplier(d, multiplier),
    }
    if not later(d, "dilation"):
        out["dilation_h_factor"], out["dilation_w_factor"] = w.dilations
    if not d.chance(16):
        out["bias"] = T((c * multiplier,))
    return out


def _window_beyond(d: Draw) -> dict[str, Any]:
    """A window by an element longer than the input, or by more, without padding."""
    v = draw_depthwise(d)
    k = list(v["input"].shape[1:3])
    k[d.int(0, 1)] += d.pick((1, 2, 9))
    return v | {"filter": T((1, *k, v["filter"].shape[3])), "padding": "VALID"}


op(
    "DEPTHWISE_CONV_2D",
    s.conv,
    Spelling(
        x=nhwc("input"),
        w=_Depthwise(),
        b="bias",
        strides=Each("stride_{}", HW),
        dilations=Each("dilation_{}_factor", HW),
        padding=PADDING,
        groups=Fn(lambda call: call.inputs["input"].shape[-1]),
        fixed={"pads": None},
        out=fused(nhwc_out),
    ),
    Sampling(draw_depthwise, ranks=(4, 4), tags=("fused",)),
    Checks(ambiguous=nan_activation(s.conv), breaks={"window-fits": _window_beyond}),
)


# -- transposed


def transposed_pads(call: Call) -> tuple[int, ...]:
    """What the forward convolution of the output would be padded with: half of it before, never less than nothing; the
    end takes what is left between the full extent and the asked one.  Raises RuleError "output-shape-fits" where that
    convolution gives another shape than the input's, or which does not have the channels of the filters."""
    shape = [int(n) for n in call.inputs["output_shape"]]
    x = call.inputs["input"]
    n = x.ndim - 2
    if len(shape) != x.ndim:
        raise RuleError("output-shape-fits", f"{len(shape)} extents for rank {x.ndim}")
    names = HW if n == 2 else DHW
    filters = call.inputs["weights" if n == 2 else "filter"]
    k = filters.shape[1:-1] if n == 2 else filters.shape[:3]
    strides = [call.attr(f"stride_{a}") for a in names]
    dilations = [call.attr(f"dilation_{a}_factor", 1) for a in names] if n == 3 else [1] * n
    begins, ends = [], []
    channels = filters.shape[0 if n == 2 else 3]
    if (shape[0], shape[-1]) != (x.shape[0], channels):
        raise RuleError("output-shape-fits", f"output {shape} of input {list(x.shape)}, {channels} filters")
    same = call.attr("padding", "SAME") == "SAME"
    for i in range(n):
        reach = dilations[i] * (k[i] - 1) + 1
        if x.shape[1 + i] != -(-(shape[1 + i] - (0 if same else reach - 1)) // strides[i]):
            raise RuleError("output-shape-fits", f"output {shape} of input {list(x.shape)}, strides {strides}")
        full = strides[i] * (x.shape[1 + i] - 1) + reach
        total = max(0, (x.shape[1 + i] - 1) * strides[i] + reach - shape[1 + i])
        begins.append(total // 2 if same else 0)
        ends.append(full - begins[i] - shape[1 + i])
    return (*begins, *ends)


def draw_transposed(names: tuple[str, ...]) -> Any:
    """An output shape whose forward convolution gives the input's shape: every such extent, not only the usual one."""
    n = len(names)

    def draw(d: Draw) -> dict[str, Any]:
        padding = d.pick(("SAME", "VALID"))
        k = [d.pick((1, 2, 3, 3, 4)) if n == 2 else d.pick((1, 2, 3)) for _ in names]
        strides = [d.pick((1, 2, 2, 3)) for _ in names]
        dilations = [d.pick((1, 1, 2)) if n == 3 else 1 for _ in names]
        s_in, s_out = [], []
        long = d.int(0, n - 1) if d.chance(48) else None
        wide = d.int(0, n - 1) if long is None and d.chance(16) else None
        none = d.int(0, n - 1) if d.empty and d.bool() else None
        for i in range(n):
            size = d.int(1, 5 if n == 2 else 3)
            size = d.pick((17, 129, 257)) if i == long else size
            more = strides[i] - 1
            if i == wide:  # the stride is about the extent, or beyond all that is
                if size > 1:
                    strides[i] = more = d.pick((max(1, size - 1), size, size + 1, 4, 5, 6))
                else:
                    strides[i], more = d.pick((1, 2, 9, 300, FAR)), 3
                more = min(more, strides[i] - 1)
            if n == 3 and i == wide and d.bool():
                dilations[i] = d.pick((max(1, size - 1), size, 4, 5, 6)) if k[i] > 1 else d.pick((1, 9, FAR))
            reach = dilations[i] * (k[i] - 1) + 1
            least = (size - 1) * strides[i] + (1 if padding == "SAME" else reach)
            if i == none:  # the windows of no element
                size, least, more = 0, 0 if padding == "SAME" else reach - 1, 0
            s_in.append(size)
            s_out.append(least + d.int(0, more))
        batch, c, m = d.dim(hi=3), d.pick((1, 2, 3, 5)), d.pick((1, 2, 3, 4))
        if d.chance(48):
            c, m = d.pick(((17, m), (129, m), (257, m), (c, 17), (c, 129), (c, 257)))
        if d.empty and none is None:
            c, m = d.pick(((c, 0), (0, m)))
        if d.chance(96):  # as long as any result is, and without elements
            batch, strides[0], s_in[0], s_out[0] = 0, FAR, 1, FAR
        out: dict[str, Any] = {
            "output_shape": [batch, *s_out, m],
            "input": T((batch, *s_in, c)),
            "padding": padding,
            ("weights" if n == 2 else "filter"): T((m, *k, c) if n == 2 else (*k, m, c)),
            **{f"stride_{a}": v for a, v in zip(names, strides)},
        }
        if n == 3:
            out |= {f"dilation_{a}_factor": v for a, v in zip(names, dilations)}
        if not later(d, "bias") and d.bool():
            out["bias"] = T((m,))
        return out

    return draw


class _Turned(Slotted):
    """Filters of a transposed convolution: ours [c, m, *k]; theirs [m, h, w, c] or [d, h, w, m, c]."""

    def __init__(self, slot: str) -> None:
        super().__init__(slot, self.turn)

    @staticmethod
    def turn(w: Any) -> Any:
        return w.transpose(3, 0, 1, 2) if w.ndim == 4 else w.transpose(4, 3, 0, 1, 2)


_TRANSPOSED = Spelling(
    x=nhwc("input"),
    b="bias",
    pads=Fn(transposed_pads),
    fixed={"groups": 1, "output_padding": None, "output_shape": None, "padding": "explicit", "odd": "upper_end"},
)
op(
    "TRANSPOSE_CONV",
    s.conv_transpose,
    _TRANSPOSED,
    Spelling(w=_Turned("weights"), strides=Each("stride_{}", HW), dilations=Fn(lambda call: (1, 1)), out=nhwc_out),
    Sampling(draw_transposed(HW)),
    Checks(only={"fused_activation_function": "NONE"}),
    until=3,
)
op(
    "TRANSPOSE_CONV",
    s.conv_transpose,
    _TRANSPOSED,
    Spelling(
        w=_Turned("weights"), strides=Each("stride_{}", HW), dilations=Fn(lambda call: (1, 1)), out=fused(nhwc_out)
    ),
    Sampling(draw_transposed(HW), tags=("fused",)),
    Checks(ambiguous=nan_activation(s.conv_transpose)),
    since=4,
)
op(
    "CONV_3D_TRANSPOSE",
    s.conv_transpose,
    _TRANSPOSED,
    Spelling(
        w=_Turned("filter"),
        strides=Each("stride_{}", DHW),
        dilations=Each("dilation_{}_factor", DHW),
        out=fused(nhwc_out),
    ),
    Sampling(draw_transposed(DHW), tags=("fused",)),
    Checks(ambiguous=nan_activation(s.conv_transpose)),
)
