"""How TFLite spells what the shared meanings take: layouts, axis tensors, pads, padding schemes, activations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, I32, I64, DType, of
from harness.core.errors import RuleError
from harness.declare import (
    Build,
    Call,
    Checks,
    Codec,
    Draw,
    Evaluation,
    Fn,
    Group,
    Semantics,
    Slotted,
    T,
    gathered,
    underspecified,
)
from suites.semantics.quantised.fixed import CURVES
from suites.semantics.window import STRIDE_ABOVE
from suites.tflite import op, schemas

__all__ = [
    "AxesInput",
    "both",
    "declared",
    "later",
    "nhwc",
    "ohwi",
    "out_type",
    "pairs",
    "shape_input",
]


def mostly(d: Draw) -> bool | None:
    """Are weights a constant, as a converter writes them?  None, one time in four: the dialect draws whether, and then
    they seldom are an input of the run."""
    return None if d.chance(4) else True


def later(d: Draw, feature: str) -> bool:
    """Is the feature one that only a later version of this operator has?"""
    return feature in d.version.schema.extra["later"]


def both(name: str, meaning: Semantics | Evaluation, *groups: Group, **kw: Any) -> None:
    """An entry for the plain form and, where the schema has one, the same for the quantised form.

    The quantised one moves elements: all operands of the main type and the outputs share one scale and zero point
    (``SameOperandsAndResultsScale`` of the tfl dialect), which the dialect's ``finish`` attaches.
    """
    domains = {s.domain for s in schemas.rows(name)}
    for domain in ("", "quantised"):
        if domain in domains:
            op(name, meaning, *groups, domain=domain, **kw)


def nhwc(slot: str, const: bool | None = None) -> Slotted:
    """Ours [n, c, *space], theirs [n, *space, c], any number of space axes."""
    return Slotted(slot, lambda x: np.moveaxis(x, -1, 1), lambda s: (s[0], *s[2:], s[1]), const)


def nhwc_out(call: Call, results: list[Any]) -> list[Any]:
    """First output back to channels last."""
    return [np.moveaxis(results[0], 1, -1), *results[1:]]


def ohwi(slot: str) -> Slotted:
    """Filters: ours [m, c, *k], theirs [m, *k, c]."""
    return Slotted(slot, lambda x: np.moveaxis(x, -1, 1), lambda s: (s[0], *s[2:], s[1]))


class AxesInput(Codec):
    """Axes as a vector operand; None (all axes) is written out.  rank_of: the semantic tensor they belong to.  none: a
    vector without elements is drawn too."""

    def __init__(self, slot: str, rank_of: str = "x", none: bool = True) -> None:
        self.slot, self.rank_of, self.none = slot, rank_of, none

    def decode(self, call: Call) -> Any:
        v = call.inputs.get(self.slot)
        return None if v is None else tuple(int(a) for a in np.asarray(v).ravel())

    def encode(self, value: Any, b: Build) -> None:
        if value is None:
            value = () if self.none and b.draw.chance(3) else range(len(b.values[self.rank_of].shape))
        b.value(self.slot, np.asarray(value, np.int64).reshape(-1))


def axes_breaks(slot: str) -> Checks:
    """What reductions refuse: TF ReductionHelper: "Invalid reduction arguments: Axes contains duplicate dimension",
    "Invalid reduction dimension"."""

    def given(options: Sequence[list[int]]) -> Callable[[Draw], dict[str, Any]]:
        return lambda d: {"input": T((2, 3)), slot: d.pick(options), "keep_dims": d.bool()}

    return Checks(breaks={"axes-distinct": given(([0, 0], [1, -1])), "axes-in-range": given(([2], [-3], [0, 7]))})


def pairs(slot: str) -> Fn:
    """Pads: ours begins then ends, theirs [[begin, end], ...], how many values are added: raises RuleError
    "pads-nonnegative"."""

    def decode(call: Call) -> Any:
        p = np.asarray(call.inputs[slot]).reshape(-1, 2)
        if p.size and p.min() < 0:
            raise RuleError("pads-nonnegative", f"{p.tolist()}")
        return (*p[:, 0].tolist(), *p[:, 1].tolist())

    def encode(value: Any, b: Build) -> None:
        n = len(value) // 2
        b.value(slot, np.array([value[:n], value[n:]], np.int64).reshape(2, n).T)

    return Fn(decode, encode)


def interleaved(slot: str) -> Fn:
    """(before, after) of each axis in turn, theirs the same as a [k, 2] operand."""
    return Fn(
        lambda call: tuple(int(p) for p in np.asarray(call.inputs[slot]).ravel()),
        lambda v, b: b.value(slot, np.array(v, np.int64).reshape(-1, 2)),
    )


def shape_input(slot: str) -> Fn:
    """A shape (or any vector of integers) as an operand."""
    return Fn(
        lambda call: tuple(int(n) for n in np.asarray(call.inputs[slot]).ravel()),
        lambda v, b: b.value(slot, np.asarray(v, np.int64).reshape(-1)),
    )


def declared(b: Build, dtype: DType, quant: Any = None, i: int = 0) -> None:
    """State the type (and quantisation) of output ``i``, which the file must declare."""
    outs = b.attrs.setdefault("@outputs", [])
    while len(outs) <= i:
        outs.append(None)
    outs[i] = {"dtype": dtype.name, **({"quant": quant} if quant else {})}


class OutType(Codec):
    """An integer result whose width an option and the output tensor declare; decode gives the DType."""

    def __init__(self, attr: str | None, options: tuple[DType, ...] = (I32, I64), output: int = 0) -> None:
        self.attr, self.options, self.output = attr, options, output

    def decode(self, call: Call) -> Any:
        if call.outs is not None and call.outs[self.output]:
            return call.outs[self.output]["dtype"]
        v = call.attr(self.attr) if self.attr else None
        return BY_NAME[v] if isinstance(v, str) else v or self.options[0]

    def encode(self, value: Any, b: Build) -> None:
        declared(b, value, None, self.output)
        if self.attr:
            b.attrs[self.attr] = value.name


def cast_to_declared(call: Call, results: list[Any]) -> list[Any]:
    """Integer results in the declared width (exact: extents and indices are small)."""
    out = []
    for i, r in enumerate(results):
        o = call.declared(i) if call.outs is not None and i < len(call.outs) else None
        out.append(r.astype(o["dtype"].np) if o and o["dtype"].kind in "iu" and r.dtype.kind in "iu" else r)
    return out


def literal(values: Any, dtype: DType | None = None, const: bool | None = None) -> T:
    """A small operand with these elements."""
    a = np.asarray(values)
    return T(a.shape, values=a.ravel().tolist(), dtype=dtype, const=const)


# -- quantisation parameters


def out_type(call: Call, i: int) -> DType:
    """Declared type of output ``i``."""
    return call.declared(i)["dtype"]


class Q(Codec):
    """Quantisation parameters of an operand, a parameter of the meaning."""

    def __init__(self, slot: str) -> None:
        self.slot = slot

    def decode(self, call: Call) -> Any:
        q = call.quant.get(self.slot)
        return q[0] if isinstance(q, list) else q

    def encode(self, value: Any, b: Build) -> None:
        a = b.args.get(self.slot)
        for one in a if isinstance(a, list) else [a]:
            if one is not None:
                one.quant = value


class OutQ(Codec):
    """Quantisation parameters of an output; like: the slot whose type the output has."""

    def __init__(self, like: str, i: int = 0) -> None:
        self.like, self.i = like, i

    def decode(self, call: Call) -> Any:
        return call.outs[self.i]["quant"] if call.outs is not None else None

    def encode(self, value: Any, b: Build) -> None:
        if value is not None:  # else it shares that of the operands
            declared(b, b.args[self.like].dtype, value, self.i)


# -- fused activations

_LIMITS = {"NONE": (-np.inf, np.inf), "RELU": (0, np.inf), "RELU_N1_TO_1": (-1, 1), "RELU6": (0, 6)}
_TANH_ULPS = 5.0  # OpenCL C: tanh is within 5 ulp


def activate(call: Call, results: list[Any]) -> list[Any]:
    """The first output after ``fused_activation_function``; NaN stays.

    Source: schema, ActivationFunctionType; tfl tanh takes floats and what is quantised, no integers.  SIGN_BIT is 1
    where the sign is set, else 0, as it is of recurrent operators."""
    name = call.attr("fused_activation_function", "NONE")
    if name == "NONE":
        return results
    y = results[0]
    if of(y).kind not in "fiu":
        raise RuleError("activation-of-reals", f"{name} of {of(y)}, expected real numbers")
    if name == "TANH" and y.dtype.kind in "iu":
        raise RuleError("activation-of-reals", "TANH of integers, expected floats")
    if name in CURVES:
        return [np.where(y != y, y, CURVES[name](y.astype(np.float64))).astype(y.dtype), *results[1:]]
    lo, hi = _LIMITS[name]
    if y.dtype.kind in "iu":
        info = np.iinfo(y.dtype)
        y = np.clip(y, max(lo, info.min), int(min(hi, info.max)))
    else:
        y = np.where(y != y, y, np.clip(y, lo, hi))
    return [y, *results[1:]]


def fused(layout: Any = None) -> Callable[[Call, list[Any]], list[Any]]:
    """Output codec: the activation, then the change of layout; its ``linear`` twin leaves the activation out.
    ``function`` tells of an activation that is no clamp."""

    def out(call: Call, results: list[Any]) -> list[Any]:
        results = activate(call, results)
        return layout(call, results) if layout else results

    def function(call: Call) -> tuple[Any, str, float] | None:
        name = call.attr("fused_activation_function", "NONE")
        return (CURVES[name], name, _TANH_ULPS if name == "TANH" else 0.0) if name in CURVES else None

    out.linear = layout or (lambda call, results: results)  # type: ignore[attr-defined]
    out.function = function  # type: ignore[attr-defined]
    return out


def _floats(call: Call) -> list[Any]:
    """Float operands as f64."""
    out = []
    for x in call.inputs.values():
        for one in x if isinstance(x, list) else [x]:
            if one is not None and one.dtype.kind == "f" and one.size:
                out.append(one.astype(np.float64))
    return out


OVERFLOWING = "an infinity beside finite numbers whose sum may overflow on its way"


def nan_activation(meaning: Semantics) -> Callable[[Call], str | None]:
    """max(0, NaN): no document says which operand a clamp returns.  An infinity beside finite numbers whose sum may
    overflow: the order of the sum decides between infinity and NaN.  Otherwise what the meaning itself leaves open."""

    def reason(call: Call) -> str | None:
        values = _floats(call)
        tensors, params = call.version.decode(call)
        own: str | None = None
        if any(not np.isfinite(x).all() for x in values):
            top = [np.abs(x[np.isfinite(x)]).max(initial=0.0) for x in values]
            if call.attr("fused_activation_function", "NONE") != "NONE":
                own = _not_finite("a fused activation after NaN or infinity", meaning.fn(**tensors, **params))
            elif meaning.error_of(0).sums and max(top) > 1e30:
                own = _not_finite(OVERFLOWING, meaning.fn(**tensors, **params))
        why = gathered(own, None if meaning.ambiguous is None else meaning.ambiguous(tensors, params))
        # here the padding is clear: total = max(0, ...), half of it before (schema: Padding; kernels/padding.h)
        return None if why is None else why.without(STRIDE_ABOVE)

    return reason


def overflowing(call: Call) -> str | None:
    """Sums of duplicates: an infinity beside finite numbers that may overflow on the way."""
    values, meaning = _floats(call), call.version.meaning
    if (
        any(not np.isfinite(x).all() for x in values)
        and max(np.abs(x[np.isfinite(x)]).max(initial=0.0) for x in values) > 1e30
        and meaning is not None
    ):
        tensors, params = call.version.decode(call)
        return _not_finite(OVERFLOWING, meaning.fn(**tensors, **params))
    return None


def _not_finite(why: str, result: Any) -> str | None:
    """Open is what is infinite or NaN in exact arithmetic: there an infinity or NaN took part."""
    return underspecified(why, ~np.isfinite(np.asarray(result[0] if isinstance(result, tuple) else result, np.float64)))


def nan_extreme(call: Call) -> str | None:
    """Of a meaning that gives NaN for the extreme of numbers and NaN: no document says whether NaN is one of them."""
    if all(x == x for v in _floats(call) for x in (v.min(), v.max())):
        return None
    m = call.version.meaning
    assert m is not None
    tensors, params = call.version.decode(call)
    result = np.asarray(m.fn(**tensors, **params))
    why = "the extreme of numbers and NaN: NaN, or that of the numbers"
    return underspecified(why, np.isnan(result)) if result.dtype.kind == "f" else None


class Each(Codec):
    """One option per space axis: ``Each("stride_{}", ("h", "w"))``.  words: other names of the axes in the option."""

    def __init__(self, pattern: str, axes: tuple[str, ...], words: tuple[str, ...] | None = None) -> None:
        self.names = [pattern.format(a) for a in (words or axes)]

    def decode(self, call: Call) -> Any:
        return tuple(call.attr(n) for n in self.names)

    def encode(self, value: Any, b: Build) -> None:
        for n, v in zip(self.names, value if value is not None else [1] * len(self.names)):
            b.attr(n, v)
