"""Pooling.  Source: NeuralNetwork.proto, PoolingLayerParams, ValidCompletePadding, Pooling3D, GlobalPooling3D."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T, underspecified
from harness.tolerance.underspecified import gathered
from suites.nn import op
from suites.nn.ops.conv import MODE3, PADS3, Image, Padding, triple, unfold
from suites.semantics import pool as s
from suites.semantics.window import STRIDE_ABOVE

_CHOICE = "PoolingPaddingType"


def _whole(c: Call) -> bool:
    return bool(c.attr("globalPooling"))


def _complete(c: Call) -> bool:
    return c.attr(_CHOICE) == "includeLastPixel" and not _whole(c)


def _amounts(c: Call) -> tuple[int, ...]:
    return tuple(c.attr("includeLastPixel.paddingAmounts") or (0, 0))


def _kernel(c: Call) -> tuple[int, ...]:
    """By the formula of includeLastPixel one window is left of a kernel that exceeds the padded image by less than a
    stride: it sees all of it."""
    space = c.inputs["x"].shape[-2:]
    if _whole(c):
        return space
    kernel = tuple(c.attr("kernelSize") or (3, 3))
    if not _complete(c):
        return kernel
    room = [n + 2 * p for n, p in zip(space, _amounts(c))]
    return tuple(r if 0 < k - r < t else k for k, r, t in zip(kernel, room, _strides(c)))


def _strides(c: Call) -> tuple[int, ...]:
    return (1, 1) if _whole(c) else tuple(c.attr("stride") or (1, 1))


def _mode(c: Call) -> str:
    return "valid" if _whole(c) else "explicit" if _complete(c) else Padding(_CHOICE).decode(c)


def _pads(c: Call) -> tuple[int, ...]:
    if _whole(c):
        return (0, 0, 0, 0)
    if _complete(c):
        return _amounts(c) * 2
    t, b, l, r = tuple(c.attr("valid.paddingAmounts") or (0, 0, 0, 0))
    return t, l, b, r


def _last(c: Call) -> str:
    """A window that would start behind the data goes, if there is padding on either axis."""
    return "drop" if _complete(c) and any(_amounts(c)) else "keep"


def _zeros(c: Call) -> str | None:
    """ "Padding options are similar to ConvolutionLayerParams", whose padded values are zeros, and Pooling3D pads with
    zeros; whether one of them is the largest element of a window is not said."""
    try:
        tensors, params = c.version.decode(c)
        y = s.max_pool.fn(**tensors, **params)[0]
    except RuleError:
        return None
    among = s.maxima_among_zeros(tensors["x"], **params)
    at = np.logical_or.reduce([(y != z) & ~(np.isnan(y) & np.isnan(z)) for z in among])
    return underspecified("zeros-in-a-maximum", at, np.asarray(y), *among)


def _cells(c: Call) -> str | None:
    """Whether the cells of the last window of includeLastPixel that lie behind the padding count as padded values."""
    if not _complete(c) or c.attr("avgPoolExcludePadding"):
        return None
    try:
        tensors, params = c.version.decode(c)
        sizes = s.avg_pool.fn(**tensors, **params).shape[-2:]
    except RuleError:
        return None
    over = []
    for n, k, t, p, z in zip(tensors["x"].shape[-2:], c.attr("kernelSize") or (3, 3), _strides(c), _amounts(c), sizes):
        over.append(np.arange(z) * t - p + k > n + p)
    return underspecified("cells-behind-the-padding", over[0][:, None] | over[1])


_FAR = (9, 20, 2**31 - 1)


def _far(d: Draw, kind: str, kernel: list[int]) -> dict[str, Any]:
    """A padding far beyond the kernel, or as long, and a stride that leaves few windows of it."""
    pads = [d.pick((*_FAR, k)) for k in kernel]
    out: dict[str, Any] = {_CHOICE: kind, "kernelSize": kernel, "stride": [max(p, 2) for p in pads]}
    if kind == "includeLastPixel":
        return {**out, "includeLastPixel.paddingAmounts": pads}
    ends = [d.pick(((p, 0), (0, p), (p, p))) for p in pads]
    return {**out, "valid.paddingAmounts": [n for pair in ends for n in pair]}


def _draw(average: bool) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        lead = (*(d.dim(1, 3) for _ in range(d.int(1, 2))), d.dim(1, 4))
        kernel = [d.pick((1, 2, 3, 3, 4)) for _ in range(2)]
        out: dict[str, Any] = {"avgPoolExcludePadding": True} if average and d.bool() else {}
        if d.chance(5):  # what the rank-5 mapping of older specifications makes a batch of one
            lead, out["@mapping"] = lead[-1:], "rank5"
        const = False if "@mapping" in out else None
        if d.chance(6):
            x = T((*lead, d.dim(1, 6), d.dim(1, 6)), const=const)
            mode: dict[str, Any] = {"same.asymmetryMode": "TOP_LEFT_HEAVY"} if d.chance(4) else {}
            if d.chance(8):  # the window is the image, whatever is said
                mode["kernelSize"] = [0, d.int(0, 3)]
            return {
                **out,
                **mode,
                "x": x,
                "globalPooling": True,
                _CHOICE: d.pick(("valid", "valid", "includeLastPixel", "same")),
            }
        if kernel != [3, 3] or d.bool():
            out["kernelSize"] = kernel
        if d.int(0, 3):
            out["stride"] = [d.int(1, 3), d.int(1, 3)]
        kind = d.pick(("valid", "same", "includeLastPixel"))
        if kind != "same" and d.chance(8):
            return {**out, **_far(d, kind, kernel), "x": T((*lead, d.dim(1, 6), d.dim(1, 6)), const=const)}
        pads = [0, 0, 0, 0]
        if kind != "same" and d.bool():
            pads = [d.int(0, k - 1) for k in kernel for _ in "be"]
        if kind == "includeLastPixel":
            pads = [p for p in pads[::2] for _ in "be"]
            out["includeLastPixel.paddingAmounts"] = pads[::2]
        elif kind == "valid" and (any(pads) or d.bool()):
            out["valid.paddingAmounts"] = pads
        if d.bool() if kind == "same" else d.chance(8):  # beside another type no model has it
            out["same.asymmetryMode"] = "TOP_LEFT_HEAVY"
        least = [1 if kind == "same" else max(1, k - b - e) for k, b, e in zip(kernel, pads[::2], pads[1::2])]
        if kind == "includeLastPixel" and d.chance(4):  # a kernel above the image, by less than a stride
            stride = out.get("stride", [1, 1])
            space = [max(1, n - d.int(0, t - 1)) for n, t in zip(least, stride)]
        else:
            space = [n + d.int(0, 6) for n in least]
        return {**out, "x": T((*lead, *space), const=const), _CHOICE: kind}

    return draw


def _too_wide(d: Draw) -> dict[str, Any]:
    return {"x": T((d.dim(1, 3), d.dim(1, 3), 2, 5)), "kernelSize": [3, 2], _CHOICE: "valid"}


def _no_type(d: Draw) -> dict[str, Any]:
    return {"x": T((d.dim(1, 3), d.dim(1, 3), 5, 5))}


_POOL = (
    Spelling(
        x=Image(),
        kernel=Fn(_kernel, names=("kernelSize",)),
        strides=Fn(_strides, names=("stride",)),
        pads=Fn(_pads, names=("valid.paddingAmounts", "includeLastPixel.paddingAmounts")),
        padding=Fn(_mode),
        ceil=Fn(_complete),
        last=Fn(_last),
        fixed={"dilations": None},
        out=unfold,
    ),
    Checks(
        settles=STRIDE_ABOVE,  # SamePadding: the total padding is max(0, ...)
        breaks={"window-fits": _too_wide, "padding-type-given": _no_type},
    ),
)
op(
    "pooling.MAX",
    s.max_pool,
    *_POOL,
    Spelling(fixed={"column_major": False}),
    Sampling(_draw(False)),
    Checks(ambiguous=_zeros),
)
op(
    "pooling.AVERAGE",
    s.avg_pool,
    *_POOL,
    Sampling(_draw(True)),
    Checks(ambiguous=_cells),
    count_include_pad=Fn(lambda c: not c.attr("avgPoolExcludePadding")),
)
op("pooling.L2", s.lp_pool, *_POOL, Spelling(fixed={"p": 2.0}), Sampling(_draw(False)))


# -- three spatial axes


def _rank5(c: Call) -> Any:
    if c.inputs["x"].ndim != 5:
        raise RuleError("rank-5", f"rank {c.inputs['x'].ndim}")
    return c.inputs["x"]


_X = Fn(_rank5)
_NAMES = ("Depth", "Height", "Width")
_BORDERS = (("Front", "Back"), ("Top", "Bottom"), ("Left", "Right"))


def _as_far(d: Draw, out: dict[str, Any], average: bool) -> None:
    """A window as long as 32 bits hold, along an axis that is padded as far; an average counts what is of the image."""
    axis, far = d.int(0, 2), _FAR[-1]
    out[f"kernel{_NAMES[axis]}"] = far
    if out["paddingType"] == "CUSTOM":
        pads = d.shuffle((far - 1, 0))
        out.update({f"customPadding{name}": n for name, n in zip(_BORDERS[axis], pads)})
    if average:
        out["countExcludePadding"] = True


def _draw3(average: bool) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        kernel = [d.int(1, 3) for _ in range(3)]
        mode = d.pick(("CUSTOM", "VALID", "SAME"))
        out: dict[str, Any] = {
            "paddingType": mode,
            **{f"kernel{n}": k for n, k in zip(_NAMES, kernel)},
            **{f"stride{n}": 1 if mode == "SAME" and d.int(0, 3) else d.int(1, 3) for n in _NAMES},
        }
        space = []
        for n, k, pair in zip(_NAMES, kernel, _BORDERS):
            b, e = (d.int(0, k - 1), d.int(0, k - 1)) if mode == "CUSTOM" else (0, 0)
            if mode == "CUSTOM" and d.chance(8):
                far = d.pick((*_FAR, k))
                b, e = d.pick(((far, e), (b, far), (far, far)))
                out[f"stride{n}"] = max(far, 2)
            out.update({f"customPadding{pair[0]}": b, f"customPadding{pair[1]}": e})
            space.append(max(1, k - b - e) + d.int(0, 3))
        if d.bool() if average else d.chance(6):  # "Meaningless in Max Pooling"
            out["countExcludePadding"] = True
        if mode != "VALID" and d.chance(24):
            _as_far(d, out, average)
        return {**out, "x": T((d.dim(1, 3), d.dim(1, 3), *space))}

    return draw


def _flat(d: Draw) -> dict[str, Any]:
    return {
        "x": T(d.shape(4, 4)),
        **{f"{w}{n}": 1 for w in ("kernel", "stride") for n in _NAMES},
        "paddingType": "VALID",
    }


def _spread(c: Call) -> str | None:
    """The text pads until the result has the extents of the input, which names no geometry for a stride above 1:
    Convolution3D, which pads alike, has ceil(extent / stride)."""
    same = c.attr("paddingType") == "SAME"
    return "same-padding-with-a-stride" if same and any(c.attr(f"stride{n}") > 1 for n in _NAMES) else None


_POOL3 = (
    Spelling(x=_X, kernel=triple("kernel"), strides=triple("stride"), padding=MODE3, pads=PADS3),
    Checks(breaks={"rank-5": _flat}),
)
_FIXED = {"dilations": None, "ceil": False, "last": "keep"}
op(
    "pooling3d.MAX",
    s.max_pool,
    *_POOL3,
    Spelling(fixed={**_FIXED, "column_major": False}),
    Sampling(_draw3(False)),
    Checks(ambiguous=lambda c: gathered(_spread(c), _zeros(c))),
)
op(
    "pooling3d.AVERAGE",
    s.avg_pool,
    *_POOL3,
    Spelling(count_include_pad=Fn(lambda c: not c.attr("countExcludePadding")), fixed=_FIXED),
    Sampling(_draw3(True)),
    Checks(ambiguous=_spread),
)

_GLOBAL = (
    Spelling(x=_X),
    Sampling(lambda d: {"x": T(d.shape(5))}),
    Checks(breaks={"rank-5": lambda d: {"x": T(d.shape(1, 4))}}),
)
op("globalPooling3d.MAX", s.global_max_pool, *_GLOBAL)
op("globalPooling3d.AVERAGE", s.global_avg_pool, *_GLOBAL)
