"""Resize and its forerunner Upsample."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import of
from harness.declare import Build, Call, Checks, Codec, Draw, Fn, Map, Sampling, Slotted, Spelling, T, underspecified
from harness.tolerance import unit
from harness.tolerance.underspecified import gathered
from suites.onnx import op
from suites.semantics import resize as s


class Given(Codec):
    """An input of which an empty tensor, too, means that it is absent; version 11 has no other way to leave it out."""

    def __init__(self, slot: str) -> None:
        self.slot = slot

    def decode(self, call: Call) -> Any:
        v = call.inputs.get(self.slot)
        if v is None or (v.size == 0 and call.version.version >= 11):  # before, an empty one is that of a scalar
            return None
        return tuple(v.tolist())

    def encode(self, value: Any, b: Build) -> None:
        if value is not None:
            b.value(self.slot, value)
        elif self.slot == "scales" and b.version.version == 11:
            b.tensor(self.slot, T((0,)))
        if self.slot == "scales" and b.version.version == 11 and "roi" not in b.args:
            b.tensor("roi", T((0,)))


class Roi(Slotted):
    """Starts then ends; an empty one is none."""

    def decode(self, call: Call) -> Any:
        v = call.inputs.get(self.slot)
        return None if v is None or v.size == 0 else v


_NAMES: dict[str, Any] = {
    "x": "X",
    "roi": Roi("roi"),
    "scales": Given("scales"),
    "sizes": Given("sizes"),
    "coordinates": "coordinate_transformation_mode",
    "nearest": "nearest_mode",
    "cubic_a": "cubic_coeff_a",
    "extrapolation": "extrapolation_value",
    "policy": "keep_aspect_ratio_policy",
}
# before 11 no coordinate rule is stated; the ops came from a framework whose rule is the asymmetric one
_OLD: dict[str, Any] = {"coordinates": "asymmetric", "nearest": "floor"}


_RULES = ("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel")  # those of Resize-11


def _unstated(call: Call) -> str | None:
    """A factor that is not whole: what coordinates that gives, nobody says before version 11."""
    scales = call.inputs.get("scales")
    if call.version.version == 1:
        factors = [call.attr("height_scale"), call.attr("width_scale")]
    else:
        factors = call.attr("scales") if scales is None else scales.tolist()
    tensors, params = call.version.decode(call)
    if not any(f != int(f) for f in factors or ()):
        return s.resize.underspecified(tensors, params)
    x, mode = tensors["x"], params["mode"]
    rules = [(c, n) for c in _RULES for n in (s.NEAREST if mode == "nearest" else ("floor",))]
    readings = [s.resize(**tensors, **{**params, "coordinates": c, "nearest": n}) for c, n in rules]
    whole = {**params, "scales": None, "sizes": readings[0].shape}  # the factor of the extents, rounded as they are
    readings += [s.resize(**tensors, **{**whole, "coordinates": c, "nearest": n}) for c, n in rules]
    if mode == "nearest":  # the first implementation: to the element before where it grows, after where it shrinks
        both = [tuple(f if (f >= 1) is grows else 1.0 for f in params["scales"]) for grows in (True, False)]
        grown = s.resize(x, **{**params, "scales": both[0], "coordinates": "asymmetric", "nearest": "floor"})
        then = {**params, "scales": both[1], "coordinates": "asymmetric", "nearest": "ceil"}
        readings.append(s.resize(np.asarray(grown).astype(x.dtype), **then))
    within = 0.0 if mode == "nearest" else 1.0 if x.dtype.kind in "iu" else _blur(x)
    why = "a broken factor: no rule for coordinates is stated before version 11"
    return gathered(s.resize.underspecified(tensors, params), underspecified(why, np.True_, *readings, within=within))


def _blur(x: np.ndarray) -> float:
    """How far apart two ways to interpolate elements of ``x`` may end."""
    wide = np.abs(x.astype(np.float64))
    finite = wide[np.isfinite(wide)]
    return 64 * unit(of(x)) * float(finite.max(initial=0.0))


op("Resize", s.resize, Spelling(x="X", scales=Given("scales"), fixed=_OLD), Checks(ambiguous=_unstated), until=10)
op("Resize", s.resize, since=11, **_NAMES)


def _draw_old(d: Draw) -> dict:
    kind = d.dtype("X").kind
    mode = "nearest" if kind != "f" else d.pick(("nearest", "bilinear"))
    factors = (1.0, 2.0, 3.0) if kind == "b" else (1.0, 2.0, 1.5, 3.0)
    return {
        "X": T((d.int(1, 2), d.int(1, 3), d.int(1, 5), d.int(1, 5))),
        "height_scale": d.pick(factors),
        "width_scale": d.pick((*factors, 1.0 if kind == "b" else 2.5)),
        **({"mode": mode} if mode != "nearest" or d.bool() else {}),
    }


op(
    "Upsample",
    s.resize,
    Spelling(
        x="X",
        scales=Fn(lambda c: (1.0, 1.0, c.attr("height_scale"), c.attr("width_scale"))),
        mode=Map("mode", {"nearest": "nearest", "linear": "bilinear"}),
        fixed=_OLD,
    ),
    Sampling(_draw_old),
    Checks(ambiguous=_unstated),
    until=1,
)
op(
    "Upsample",
    s.resize,
    Spelling(
        x="X",
        scales=Fn(lambda c: tuple(c.attr("scales")), lambda v, b: b.attr("scales", [float(x) for x in v])),
        fixed=_OLD,
    ),
    Checks(ambiguous=_unstated),
    since=7,
    until=7,
)
op(
    "Upsample",
    s.resize,
    Spelling(x="X", scales=Given("scales"), fixed=_OLD),
    Checks(ambiguous=_unstated),
    since=9,
    until=10,
)

__all__ = ["np"]
