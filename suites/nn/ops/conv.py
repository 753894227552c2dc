"""Convolutions.  Source: NeuralNetwork.proto, ConvolutionLayerParams, Convolution3DLayerParams, ValidPadding,
SamePadding."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Build, Call, Checks, Codec, Fn, Sampling, Spelling, T
from suites.nn import op
from suites.nn.spell import ListOr, Or, Weight
from suites.semantics import conv as s
from suites.semantics.window import STRIDE_ABOVE


class Image(Codec):
    """Input [..., C, H, W]: the axes before the last three are one batch axis.  Drawn with one more, or with none that
    the rank-5 mapping of older specifications puts there."""

    def decode(self, call: Call) -> Any:
        x = call.inputs["x"]
        if x.ndim < 4:
            raise RuleError("rank-at-least-4", f"rank {x.ndim}")
        return x.reshape(-1, *x.shape[-3:])

    def encode(self, value: T, b: Build) -> None:
        n, *rest = value.shape
        if n == 1 and b.draw.chance(3) and "weight" not in b.args:
            b.attrs["@mapping"] = "rank5"
            value = T(rest, value.recipe, const=False)
        elif b.draw.chance(4):
            f = b.draw.pick([k for k in range(1, n + 1) if n % k == 0])
            value = T((f, n // f, *rest), value.recipe)
        b.tensor("x", value)


def unfold(call: Call, results: list[Any]) -> list[Any]:
    """The batch axes again."""
    lead = call.inputs["x"].shape[:-3]
    return [r.reshape(*lead, *r.shape[-3:]) for r in results]


class Padding(Codec):
    """The oneof of a padding type with the paddings in it, read as the mode.

    ours: "explicit" is ``valid`` with amounts, which may be none.  choice: name of the oneof."""

    def __init__(self, choice: str) -> None:
        self.choice = choice

    def decode(self, call: Call) -> Any:
        kind = call.attr(self.choice)
        if kind is None:
            raise RuleError("padding-type-given", self.choice)
        if kind == "same":
            return {"BOTTOM_RIGHT_HEAVY": "same_upper", "TOP_LEFT_HEAVY": "same_lower"}[call.attr("same.asymmetryMode")]
        return "explicit"

    def encode(self, value: str, b: Build) -> None:
        b.attrs[self.choice] = "same" if value.startswith("same") else "valid"
        if value == "same_lower" or (not value.startswith("same") and b.draw.chance(8)):  # then no model has it
            b.attrs["same.asymmetryMode"] = "TOP_LEFT_HEAVY"


def _read_pads(c: Call) -> tuple[int, ...]:
    """(top, left, bottom, right) of borders stored (top, bottom, left, right)."""
    pads = tuple(c.attr("valid.paddingAmounts") or (0, 0, 0, 0))
    if len(pads) != 4:
        raise RuleError("two-borders", f"{list(pads)}")
    t, b, l, r = pads
    return t, l, b, r


def _write_pads(v: Any, b: Build) -> None:
    if v is not None and (any(v) or b.draw.bool()):
        t, l, m, r = v
        b.attrs["valid.paddingAmounts"] = [t, m, l, r]


PADS = Fn(_read_pads, _write_pads, ("valid.paddingAmounts",))


class Filters(Weight):
    """Convolution weights; the layer repeats their extents.  Deconvolution stores [in, out / groups, kH, kW]."""

    def __init__(self, transposed: bool) -> None:
        super().__init__("weights")
        self.transposed = transposed

    def decode(self, call: Call) -> Any:
        if "weight" not in call.inputs:
            return call.inputs["weights"]
        w = call.inputs["weight"]
        stated = (call.attr("outputChannels"), call.attr("kernelChannels"), *(call.attr("kernelSize") or (3, 3)))
        if w.shape != stated:
            raise RuleError("weight-as-stated", f"weight of {list(w.shape)}, expected {list(stated)}")
        return w

    def encode(self, value: T, b: Build) -> None:
        m, k, *kernel = value.shape
        groups = b.values.get("groups") or 1
        b.attrs["outputChannels"] = k * groups if self.transposed else m
        b.attrs["kernelChannels"] = m if self.transposed else k
        if kernel != [3, 3] or b.draw.bool():
            b.attrs["kernelSize"] = kernel
        elif b.draw.bool():
            b.attrs["kernelSize"] = []  # as if not set
        if self.transposed and b.draw.chance(4):
            b.attrs["dilationFactor"] = [b.draw.int(1, 3), b.draw.int(1, 3)]  # ignored
        if not self.transposed and b.draw.chance(4):
            b.attrs["outputShape"] = [b.draw.int(1, 9), b.draw.int(1, 9)]  # "used only for deconvolution"
        if not self.transposed and b.draw.chance(4) and "@mapping" not in b.attrs:
            b.tensor("weight", value)
        else:
            super().encode(value, b)


_SHARED = (
    Spelling(
        x=Image(),
        b=Weight("bias", flag="hasBias"),
        groups=Or("nGroups", 1),
        strides=ListOr("stride", (1, 1)),
        padding=Padding("ConvolutionPaddingType"),
        pads=PADS,
        out=unfold,
    ),
    Sampling(ranks=(4, 4)),
)
op(  # SamePadding: the total padding is max(0, ...)
    "convolution",
    s.conv,
    *_SHARED,
    Checks(settles=STRIDE_ABOVE),
    w=Filters(False),
    dilations=ListOr("dilationFactor", (1, 1)),
)


def _sizes(c: Call) -> Any:
    return tuple(c.attr("outputShape")) or None


def _odd_cell(c: Call) -> str | None:
    """The text gives an output shape, in whose presence the padding type is ignored, and not how the padding that
    follows from it is divided: where its odd cell goes, nor where the rows are that no kernel reaches.  Of SAME
    padding, H_in * stride, the odd cell has its side."""
    kernel, stride = tuple(c.attr("kernelSize") or (3, 3)), tuple(c.attr("stride") or (1, 1))
    space, given = c.inputs["x"].shape[-2:], tuple(c.attr("outputShape") or ())
    wanted = given or [n * t for n, t in zip(space, stride) if c.attr("ConvolutionPaddingType") == "same"]
    rest = [(n - 1) * t + k - o for n, t, k, o in zip(space, stride, kernel, wanted)]
    if any(r < 0 for r in rest):
        return "output-shape-beyond-the-kernels"
    return "output-shape-with-odd-padding" if given and any(r % 2 for r in rest) else None


op(
    "convolution.isDeconvolution",
    s.conv_transpose,
    *_SHARED,
    Spelling(
        w=Filters(True),
        output_shape=Fn(_sizes, lambda v, b: b.attr("outputShape", v)),
        odd=Fn(lambda c: "upper_end"),
        fixed={"output_padding": None, "dilations": (1, 1)},
    ),
    Checks(ambiguous=_odd_cell),
)


# -- three spatial axes

_AXES = ("Depth", "Height", "Width")
_CUSTOM = tuple(f"customPadding{n}" for n in ("Front", "Top", "Left", "Back", "Bottom", "Right"))


def triple(prefix: str) -> Fn:
    """Three parameters as one list."""
    return Fn(
        lambda c: tuple(c.attr(f"{prefix}{a}") for a in _AXES),
        lambda v, b: b.attrs.update({f"{prefix}{a}": n for a, n in zip(_AXES, v)}) if v is not None else None,
        tuple(f"{prefix}{a}" for a in _AXES),
    )


def read_mode(c: Call) -> str:
    """CUSTOM, VALID, SAME, of which SAME puts the odd cell at the back, bottom and right."""
    return {"CUSTOM": "explicit", "VALID": "valid", "SAME": "same_upper"}[c.attr("paddingType")]


def write_mode(v: str, b: Build) -> None:
    b.attrs["paddingType"] = {"explicit": "CUSTOM", "valid": "VALID"}.get(v, "SAME")


MODE3 = Fn(read_mode, write_mode)
PADS3 = Fn(
    lambda c: tuple(c.attr(n) for n in _CUSTOM),
    lambda v, b: b.attrs.update(dict(zip(_CUSTOM, v))) if v is not None else None,
    _CUSTOM,
)


class Filters3(Weight):
    """[out, in / groups, depth, height, width]; of a deconvolution [in, out / groups, depth, height, width]."""

    def __init__(self, transposed: bool) -> None:
        super().__init__("weights")
        self.transposed = transposed

    def encode(self, value: T, b: Build) -> None:
        m, k, *kernel = value.shape
        k *= b.values.get("groups") or 1
        b.attrs.update(outputChannels=k if self.transposed else m, inputChannels=m if self.transposed else k)
        b.attrs.update({f"kernel{a}": n for a, n in zip(_AXES, kernel)})
        super().encode(value, b)


def _channels3(c: Call) -> np.ndarray:
    x = c.inputs["x"]
    if x.ndim != 5:
        raise RuleError("rank-5", f"rank {x.ndim}")
    if x.shape[1] != c.attr("inputChannels"):
        raise RuleError("channels-agree", f"{x.shape[1]} channels, inputChannels {c.attr('inputChannels')}")
    return x


class Volume(Codec):
    """Input [N, C, D, H, W]."""

    def decode(self, call: Call) -> Any:
        return _channels3(call)

    def encode(self, value: T, b: Build) -> None:
        b.tensor("x", value)


_SHARED3 = (
    Spelling(
        x=Volume(),
        b=Weight("bias", flag="hasBias"),
        groups=Or("nGroups", 1),
        strides=triple("stride"),
        padding=MODE3,
        pads=PADS3,
    ),
    Sampling(ranks=(5, 5)),
)
op("convolution3d", s.conv, *_SHARED3, w=Filters3(False), dilations=triple("dilation"))


def _rest3(c: Call) -> list[int]:
    """Of every axis, what the kernels reach beyond outputShape."""
    kernel, stride = (tuple(c.attr(f"{p}{a}") for a in _AXES) for p in ("kernel", "stride"))
    reach = [(k - 1) * c.attr(f"dilation{a}") + 1 for k, a in zip(kernel, _AXES)]
    wanted = c.attr("outputShape") or ()
    return [(n - 1) * t + r - o for n, t, r, o in zip(c.inputs["x"].shape[2:], stride, reach, wanted)]


def _stated3(c: Call) -> bool:
    """Whether the padding leaves just outputShape: nothing says that it is ignored then, as in two dimensions."""
    pads = PADS3.decode(c) if c.attr("paddingType") == "CUSTOM" else (0,) * 6
    return c.attr("paddingType") != "SAME" and _rest3(c) == [b + e for b, e in zip(pads[:3], pads[3:])]


def _open3(c: Call) -> str | None:
    """Dilation is said to be ignored in two dimensions, here nothing is; where the rows of an output shape lie that the
    padding does not give is not said."""
    if any(c.attr(f"dilation{a}") > 1 for a in _AXES):
        return "dilation-of-a-deconvolution"
    kernel, stride = (tuple(c.attr(f"{p}{a}") for a in _AXES) for p in ("kernel", "stride"))
    space, same = c.inputs["x"].shape[2:], c.attr("paddingType") == "SAME"
    given = tuple(c.attr("outputShape") or ())
    if given and not (given == tuple(n * t for n, t in zip(space, stride)) if same else _stated3(c)):
        return "output-shape-beside-another-padding"
    beyond = same and any(k < t for k, t in zip(kernel, stride))
    return "output-shape-beyond-the-kernels" if beyond else None


def _write_sizes3(v: Any, b: Build) -> None:
    """outputShape and the custom padding that leaves it."""
    if v is None:
        return
    b.attrs["outputShape"] = list(v)
    strides, dilations = (b.values.get(n) or (1, 1, 1) for n in ("strides", "dilations"))
    x, w = b.values["x"].shape, b.values["w"].shape
    full = [(n - 1) * t + (k - 1) * d + 1 for n, t, k, d in zip(x[2:], strides, w[2:], dilations)]
    rest = [f - o for f, o in zip(full, v)]
    begins = [b.draw.int(0, r) for r in rest]
    b.attrs.update(dict(zip(_CUSTOM, (*begins, *(r - f for r, f in zip(rest, begins))))))


op(
    "convolution3d.isDeconvolution",
    s.conv_transpose,
    *_SHARED3,
    Spelling(
        w=Filters3(True),
        dilations=triple("dilation"),
        output_shape=Fn(lambda c: None if _stated3(c) else _sizes(c), _write_sizes3),
        odd=Fn(lambda c: "upper_end"),
        fixed={"output_padding": None},
    ),
    Checks(ambiguous=_open3),
)
