"""Convolutions.  Padding comes as (before, after) pairs, axis by axis, and only counts with pad_type "custom"."""

from __future__ import annotations

from typing import Any

from harness.core.dtypes import of
from harness.core.errors import RuleError
from harness.declare import Build, Call, Checks, Codec, Draw, Fn, Map, Sampling, Slotted, Spelling, T
from suites.mil import op
from suites.mil.codecs import fill, ints, need
from suites.semantics import conv as s
from suites.semantics.window import STRIDE_ABOVE

MODE = {"explicit": "custom", "valid": "valid", "same_upper": "same", "same_lower": "same_lower"}


class Pairs(Codec):
    """Begins then ends <-> pairs per axis; written with custom padding only."""

    def decode(self, call: Call) -> Any:
        if call.attr("pad_type", "valid") != "custom":
            return None
        p = ints(call, "pad")
        return (0,) * (2 * (call.inputs["x"].ndim - 2)) if p is None else (*p[0::2], *p[1::2])

    def encode(self, value: Any, b: Build) -> None:
        if value is not None and b.values.get("padding") == "explicit":
            n = len(value) // 2
            b.attrs["pad"] = [value[i + n * j] for i in range(n) for j in (0, 1)]


class Mode(Map):
    """pad_type is always written: required in the documentation, optional in the registry."""

    def encode(self, value: Any, b: Build) -> None:
        b.attrs[self.name] = self.table[value]

    def decode(self, call: Call) -> Any:
        if call.opset == "ios15" and call.attr(self.name) == "same_lower":
            raise RuleError("padding-of-opset", "expected same_lower from ios16 on, as the package has it, got ios15")
        return super().decode(call)


def _dilated(call: Call) -> bool:
    return any(k != 1 for k in ints(call, "dilations") or ())


def _type_of_x(call: Call, i: int) -> Any:
    return of(call.inputs["x"])


class Weight(Slotted):
    """A dilated convolution takes constant weights only."""

    def encode(self, value: T, b: Build) -> None:
        if any(k != 1 for k in b.values.get("dilations") or ()):
            value.const = True
        super().encode(value, b)


_COMMON = (
    Spelling(
        w=Weight("weight"),
        b="bias",
        pads=Pairs(),
        strides=fill("strides", 1),
        dilations=fill("dilations", 1),
        out_dtype=_type_of_x,
    ),
    Sampling(ranks=(3, 5)),
)
# the package's aggregated_pad: max(0, ...), as of SamePadding; what the page prints is never negative either.  Of the
# weight: "When dilations is not all 1, weight has to be const at compile time"
op(
    "conv",
    s.conv,
    *_COMMON,
    Checks(settles=STRIDE_ABOVE, constant={"weight": _dilated}),
    padding=Mode("pad_type", MODE),
)


# -- transposed: a given output_shape says how far the last window position may reach


def _plain_extents(call: Call) -> list[int]:
    x, w = call.inputs["x"], call.inputs["weight"]
    n = x.ndim - 2
    st, di = ints(call, "strides", (1,) * n), ints(call, "dilations", (1,) * n)
    p = ints(call, "pad") if call.attr("pad_type", "valid") == "custom" else None
    p = p or (0,) * (2 * n)
    return [(x.shape[2 + i] - 1) * st[i] + (w.shape[2 + i] - 1) * di[i] + 1 - p[2 * i] - p[2 * i + 1] for i in range(n)]


def _output_padding(call: Call) -> tuple[int, ...] | None:
    shape = ints(call, "output_shape")
    if shape is None:
        return None
    n, channels = call.inputs["x"].shape[0], call.inputs["weight"].shape[1] * call.attr("groups", 1)
    need(shape[:2] == (n, channels), "output-shape-agrees", f"{list(shape)} begins with [{n}, {channels}]")
    need(len(shape) == call.inputs["x"].ndim, "output-shape-agrees", f"{list(shape)} has another rank than x")
    if call.attr("pad_type", "valid") == "same":
        extents = call.inputs["x"].shape[2:]
        for o, m, k in zip(shape[2:], extents, ints(call, "strides", (1,) * len(extents))):
            need(k < 1 or -(-o // k) == m, "output-shape-agrees", f"conv makes {m} of an extent that is not {o}")
        return None
    return tuple(o - f for o, f in zip(shape[2:], _plain_extents(call)))


def _same_shape(call: Call) -> tuple[int, ...] | None:
    """ "conv_out = ceil(conv_in / stride).  Hence we need output_shape": the padding of SAME follows from it."""
    shape = ints(call, "output_shape")
    return None if shape is None or call.attr("pad_type", "valid") != "same" else shape[2:]


def _draw_transposed(d: Draw) -> dict[str, Any]:
    v = s.conv_transpose.derive(d)
    n = len(v["x"].shape) - 2
    st, di = v["strides"] or (1,) * n, v["dilations"] or (1,) * n
    mode = MODE[v["padding"]]
    p = list(v["pads"]) if mode == "custom" and v["pads"] is not None else [0] * (2 * n)
    if d.chance(12):  # no channels of the result, or many
        wide = d.pick((0, 0, 130, 260))
        v["w"].shape = (v["w"].shape[0], wide, *v["w"].shape[2:])
        if v.get("b") is not None:
            v["b"].shape = (wide * v["groups"],)
    xs, ws = v["x"].shape, v["w"].shape
    full = [(xs[2 + i] - 1) * st[i] + (ws[2 + i] - 1) * di[i] + 1 for i in range(n)]
    for i, f in enumerate(full):  # what is cut away was drawn with an output padding, which there is none of here
        for j in (n + i, i):
            p[j] -= min(p[j], max(0, 1 - (f - p[i] - p[n + i])))
    out: dict[str, Any] = {"x": v["x"], "weight": v["w"], "pad_type": mode}
    if v.get("b") is not None:
        out["bias"] = v["b"]
    for name, value in (("strides", st), ("dilations", di)):
        if any(k != 1 for k in value) or d.bool():
            out[name] = list(value)
    if v["groups"] != 1 or d.bool():
        out["groups"] = v["groups"]
    if mode == "custom":
        out["pad"] = [p[i + n * j] for i in range(n) for j in (0, 1)]
    if mode == "same" and d.chance(3):
        extents = [n * k for n, k in zip(xs[2:], st)]
        out["output_shape"] = [
            xs[0],
            ws[1] * v["groups"],
            *(e - d.int(0, k - 1) if e else 0 for e, k in zip(extents, st)),
        ]
    if mode != "same" and d.chance(3):
        extents = [f - p[i] - p[n + i] for i, f in enumerate(full)]
        more = [d.int(0, max(st[i], di[i]) - 1) for i in range(n)]
        out["output_shape"] = [xs[0], ws[1] * v["groups"], *(e + m for e, m in zip(extents, more))]
    return out


def _break_channels(d: Draw) -> dict[str, Any]:
    return {"x": T((1, 3, 5, 5)), "weight": T((4, 2, 3, 3)), "pad_type": "valid"}


def _break_output(d: Draw) -> dict[str, Any]:
    n, c = d.pick(((2, 3), (1, 4), (1, 2)))
    return {"x": T((1, 2, 5, 5)), "weight": T((2, 3, 3, 3)), "output_shape": [n, c, 7, 7], "pad_type": "valid"}


def _break_bias(d: Draw) -> dict[str, Any]:
    return {"x": T((1, 2, 5, 5)), "weight": T((2, 3, 3, 3)), "bias": T((4,)), "pad_type": "valid"}


op(
    "conv_transpose",
    s.conv_transpose,
    *_COMMON,
    Sampling(_draw_transposed),
    Checks(
        breaks={"channels-agree": _break_channels, "bias-agrees": _break_bias, "output-shape-agrees": _break_output}
    ),
    padding=Mode("pad_type", {k: v for k, v in MODE.items() if k != "same_lower"}),
    output_padding=Fn(_output_padding),
    output_shape=Fn(_same_shape),
    odd=Fn(lambda c: "upper_end"),
)
