"""Convolution and transposed convolution."""

from __future__ import annotations

from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import I32, float_max, of, smallest_subnormal
from harness.core.errors import RuleError
from harness.declare import (
    Choice,
    Divisor,
    Each,
    Float,
    Int,
    Ints,
    Pads,
    Semantics,
    T,
    accumulates,
    exact,
    first_of,
    gathered,
    other_shape,
    semantics,
    underspecified,
)
from harness.generate.draw import Draw
from harness.tolerance import Context, unit
from suites.semantics.bounds import overflows, tamed
from suites.semantics.drawing import choose, given, param, product, spells
from suites.semantics.linear import centred, largest
from suites.semantics.window import (
    FAR,
    MODES,
    STRIDE_ABOVE,
    Drawn,
    draw_window,
    geometry,
    most_of,
    negative_same,
    put,
    resolve_pads,
    spatial_rank,
    too_large,
    unbounded,
)

Array = np.ndarray


def _terms(ctx: Context) -> float:
    """Elements of one filter, and the bias."""
    w = ctx.inputs["w"]
    return float(product(w.shape[1:]) + 1)


def _terms_transposed(ctx: Context) -> float:
    """Input channels of a group times the kernel's extents, and the bias."""
    w, groups = ctx.inputs["w"], ctx.params["groups"]
    return float(w.shape[0] // max(1, groups) * product(w.shape[2:]) + 1)


def _rounded(y: Array, like: Array) -> Array:
    """A wide result as the type of ``like`` holds it: what overflows there is infinite."""
    return np.asarray(native.convert(np.asarray(y, np.float64), like.dtype), np.float64)


def _padding_times_infinity(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """0 * inf: whether padding takes part in the products.  Open are elements where that shows, to either reading."""
    x, w = inputs["x"], inputs["w"]
    if of(w).kind != "f" or not x.shape[0] or np.isfinite(w.astype(np.float64)).all():
        return None
    g = geometry(x.shape[2:], w.shape[2:], params["strides"], params["dilations"], params["pads"], params["padding"])
    if min(g.pads, default=0) < 0:
        return None
    multiplied, skipped = _taps(x, w, inputs.get("b"), g, int(params["groups"]))
    why = "inf or NaN in the filter: the op set does not say whether padding zeros are multiplied"
    terms = product(w.shape[1:]) + 3
    calm = np.abs(tamed(x)), np.abs(tamed(w)), None if inputs.get("b") is None else np.abs(tamed(inputs["b"]))
    _, size = _taps(*calm, g, int(params["groups"]))
    within = terms * (unit(of(x)) * size + smallest_subnormal(of(x)))
    return underspecified(why, np.isnan(multiplied) & ~np.isnan(skipped), multiplied, skipped, within=within)


def _taps(x: Array, w: Array, b: Array | None, g: Object, groups: int) -> tuple[Array, Array]:
    """A convolution tap by tap: with zeros of the padding multiplied, and with those products left out."""
    n, m = x.ndim - 2, w.shape[0]
    margin = [(0, 0), (0, 0), *zip(g.pads[:n], g.pads[n:])]
    wide, real = np.pad(x.astype(np.float64), margin), np.pad(np.ones(x.shape[2:], bool), margin[2:])
    sizes = [(d - (k - 1) * e - 1) // s + 1 for d, k, e, s in zip(real.shape, w.shape[2:], g.dilations, g.strides)]
    filters = w.astype(np.float64).reshape(groups, m // groups, w.shape[1], *w.shape[2:])
    out = np.zeros((2, x.shape[0], m, *sizes))
    if b is not None:
        out += b.astype(np.float64).reshape(-1, *[1] * n)
    for tap in np.ndindex(*w.shape[2:]):
        at = tuple(slice(t * e, t * e + (o - 1) * s + 1, s) for t, e, o, s in zip(tap, g.dilations, sizes, g.strides))
        everywhere: Object = (slice(None), slice(None), *at)
        one: Object = (slice(None), slice(None), slice(None), *tap)
        cells = wide[everywhere].reshape(x.shape[0], groups, w.shape[1], *sizes)
        part = np.einsum("ngc...,gmc->ngm...", cells, np.asarray(filters[one])).reshape(out.shape[1:])
        out[0] += part
        out[1] += np.where(real[at], part, 0.0)
    return _rounded(out[0], x), _rounded(out[1], x)


def _negative_padding(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """Last among the reasons, since a dialect may know the answer to this one."""
    w, x = inputs["w"], inputs["x"]
    if params.get("padding", "").startswith("same") and negative_same(
        x.shape[2:], w.shape[2:], params["strides"], params["dilations"]
    ):
        return underspecified(STRIDE_ABOVE, np.True_)
    return None


def check_channels(c: int, m: int, in_w: int, groups: int, b: Array | None) -> None:
    """Raises RuleError "groups-positive", "groups-divide-in", "groups-divide-out", "channels-agree", "bias-agrees"."""
    if groups < 1:
        raise RuleError("groups-positive", f"groups {groups}")
    if c % groups:
        raise RuleError("groups-divide-in", f"{c} channels in {groups} groups")
    if m % groups:
        raise RuleError("groups-divide-out", f"{m} filters in {groups} groups")
    if in_w != c // groups:
        raise RuleError("channels-agree", f"w has {in_w} input channels, expected {c // groups}")
    if b is not None and b.shape != (m,):
        raise RuleError("bias-agrees", f"b {list(b.shape)}, expected [{m}]")


def _the_conv() -> Semantics:
    return conv


@semantics(
    error=accumulates(_terms),
    source="ONNX Conv-1, -11, -22; MIL conv iOS15; TFLite CONV_2D, DEPTHWISE_CONV_2D, "
    "CONV_3D; NN ConvolutionLayerParams",
    ambiguous=first_of(_padding_times_infinity, overflows(largest(_the_conv)), _negative_padding),
)
def conv(
    x: Float[Array, "n c *s"],
    w: Float[Array, "m g *k"],
    b: Float[Array, "m"] | None = None,
    *,
    strides: Each[Ints, "s", 1, 3] | None = None,
    dilations: Each[Ints, "s", 1, 2] | None = None,
    pads: Pads[Ints, "s", "k"] | None = None,
    groups: Divisor[int, "c"] = 1,
    padding: Choice[str, MODES] = "explicit",
) -> Array:
    """Cross-correlation of x with the filters w [m, c // groups, *k], plus b.

    y[o] sums x[o * stride - begin + t * dilation] w[t]; ``pads`` (begins then ends, zeros) count when ``padding`` is
    explicit.  Filter block j of ``groups`` sees channel block j.
    Raises RuleError "window-fits" and those of ``check_channels`` and ``geometry``.
    """
    check_channels(x.shape[1], w.shape[0], w.shape[1], groups, b)
    g = geometry(x.shape[2:], w.shape[2:], strides, dilations, pads, padding)
    return native.conv(x, w, b, g.strides, g.dilations, g.pads, groups)


def draw_channels(d: Draw) -> tuple[int, int, int]:
    """Channels in, filters and groups; groups of several channels, depthwise with a multiplier, none at all."""
    groups = param(d, "groups", lambda: d.pick((1, 1, 2, 3, 4))) or 1
    if groups > 1 and d.chance(3):
        return groups, groups * d.pick((1, 1, 2)), groups
    return groups * d.pick((1, 2, 3, 5)), groups * d.pick((1, 2, 3, 4)), groups


def draw_conv(d: Draw) -> dict[str, Object]:
    """x [n, c, *s], w [m, c / groups, *k], sometimes b [m], and a window over one to three axes."""
    w = draw_window(d)
    c, m, groups = draw_channels(d)
    out = _window_args(w) | {
        "x": T((d.dim(hi=3), c, *w.extents)),
        "w": T((m, c // groups, *w.kernel)),
        "groups": groups,
    }
    if given(d, "b"):
        out["b"] = T((m,))
    return _far(d, out, len(w.kernel)) if unbounded(d) and d.chance(12) else out


def _far(d: Draw, v: dict[str, Object], n: int) -> dict[str, Object]:
    """Numbers as high as 32 bits hold, where there is no element to count: a padding of no image, groups of no
    channel, a window of no filter.  Or no filter, or many."""
    batch, c, *s = v["x"].shape
    _, g, *k = v["w"].shape
    at, grouped = d.int(0, n - 1), spells(d, "groups") and "groups" not in d.fixed
    how = d.pick(("groups", "far", "none", "many"))
    if how == "groups" and grouped:
        v |= {"x": T((batch, 0, *s)), "w": T((0, 0, *k)), "groups": FAR}
    elif how == "far" and v["padding"].startswith("same"):
        v |= {"w": T((0, g, *put(k, n, at, FAR, 1))), "dilations": None}
    elif how == "far" and v["padding"] == "explicit" and spells(d, "pads"):
        v |= {"x": T((0, c, *s)), "pads": put(v["pads"], 2 * n, at, FAR, 0)}
    elif how == "none":
        v |= {"w": T((0, g, *k))}
    elif how == "many":
        reach = [(e - 1) * t + 1 for e, t in zip(k, v["dilations"] or (1,) * n)]
        m = d.pick((128, 257, 2049)) if grouped or v["groups"] == 1 else v["groups"]
        v |= {"x": T((1, 1, *(reach if v["padding"] == "valid" else s))), "w": T((m, 1, *k)), "groups": 1}
        if m * product(k) > _MANY:
            v["w"] = T((m, 1, *(1 for _ in k)))
    if "b" in v:
        v["b"] = T((v["w"].shape[0],))
    return v


_MANY = 1 << 13  # elements of many filters


def _window_args(w: Drawn) -> dict[str, Object]:
    return {"strides": w.strides, "dilations": w.dilations, "pads": w.pads, "padding": w.padding}


conv.draw(draw_conv)


@conv.breaks("channels-agree")
def _conv_channels(d: Draw) -> dict[str, Object]:
    v = draw_conv(d)
    m, g, *k = v["w"].shape
    v["w"] = T((m, g + 1, *k))
    return v


@conv.breaks("bias-agrees")
def _conv_bias(d: Draw) -> dict[str, Object]:
    v = draw_conv(d)
    v["b"] = T((v["w"].shape[0] + 1,))
    return v


@conv.breaks("window-fits")
def _conv_window(d: Draw) -> dict[str, Object]:
    v = draw_conv(d)
    w = too_large(d, Drawn((), v["w"].shape[2:], v["strides"], v["dilations"], v["pads"], v["padding"]))
    v |= _window_args(w) | {"x": T((*v["x"].shape[:2], *w.extents)), "w": T((*v["w"].shape[:2], *w.kernel))}
    return v


@semantics(error=exact(), source="ONNX ConvInteger-10", data=("full", "small", "full"))
def conv_integer(
    x: Int[Array, "n c *s"],
    w: Int[Array, "m g *k"],
    x_zero: Int[Array, "*e"] | None = None,
    w_zero: Int[Array, "*f"] | None = None,
    *,
    strides: Each[Ints, "s", 1, 3] | None = None,
    dilations: Each[Ints, "s", 1, 2] | None = None,
    pads: Pads[Ints, "s", "k"] | None = None,
    groups: Divisor[int, "c"] = 1,
    padding: Choice[str, MODES] = "explicit",
) -> Array:
    """``conv`` of x - x_zero with w - w_zero as i32; padding stands for x_zero; w_zero for all or per filter.

    Raises RuleError "zero-points-agree", and as ``conv`` does.
    """
    check_channels(x.shape[1], w.shape[0], w.shape[1], groups, None)
    check_grain("x_zero", x_zero, 1)
    check_grain("w_zero", w_zero, w.shape[0])
    g = geometry(x.shape[2:], w.shape[2:], strides, dilations, pads, padding)
    if w_zero is not None and w_zero.ndim == 1 and w_zero.size == w.shape[0]:
        w_zero = w_zero.reshape(-1, *(1,) * (w.ndim - 1))
    return native.conv(centred(x, x_zero), centred(w, w_zero), None, g.strides, g.dilations, g.pads, groups, out=I32)


def check_grain(name: str, v: Array | None, filters: int) -> None:
    """A scalar, or a vector of one element or of one a filter.  Raises RuleError "zero-points-agree"."""
    if v is not None and (v.ndim > 1 or v.size not in (1, filters)):
        raise RuleError("zero-points-agree", f"{name} {list(v.shape)} for {filters} filters")


@conv_integer.breaks("zero-points-agree")
def _integer_zeros(d: Draw) -> dict[str, Object]:
    """Two zero points of x, or a zero point more than there are filters."""
    out = _draw_integer(d)
    n = out["w"].shape[0]
    of_x = {"x_zero": T((2,), "full")}
    return {**out, **(of_x if d.bool() else {"w_zero": T((n + 1,), "full")})}


@conv_integer.draw
def _draw_integer(d: Draw) -> dict[str, Object]:
    out = draw_conv(d)
    out.pop("b", None)
    if given(d, "x_zero"):
        out["x_zero"] = T((), "full")
    if given(d, "w_zero"):
        out["w_zero"] = T((out["w"].shape[0],) if d.chance(3) else (), "full")
    return out


def split_total(total: int, mode: str, upper_end: bool) -> tuple[int, int]:
    """Padding before and after; the odd cell comes last for same_upper when ``upper_end``, for all others otherwise."""
    small = total // 2
    last = (mode == "same_upper") == upper_end
    return (small, total - small) if last else (total - small, small)


def transposed_geometry(
    s: tuple[int, ...],
    k: tuple[int, ...],
    strides: Object,
    dilations: Object,
    pads: Object,
    mode: str,
    output_padding: Object,
    output_shape: Object,
    upper_end: bool,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Strides, dilations, pads (begins then ends) and extents of a transposed convolution.

    Extent = stride * (s - 1) + output_padding + dilation * (k - 1) + 1 - pads.  output_shape, or s * stride in the same
    modes, gives the extent instead and the padding follows from it.
    Raises RuleError "one-per-axis", "kernel-positive", "strides-positive", "dilations-positive", "output-not-negative",
    "output-padding-small".
    """
    n = len(s)
    strides, dilations = (tuple(v) if v is not None else (1,) * n for v in (strides, dilations))
    more = tuple(output_padding) if output_padding is not None else (0,) * n
    if any(len(v) != n for v in (k, strides, dilations, more)) or (pads is not None and len(pads) != 2 * n):
        raise RuleError("one-per-axis", f"strides {strides}, dilations {dilations}, output padding {more} for {n} axes")
    if output_shape is not None and len(output_shape) != n:
        raise RuleError("one-per-axis", f"output shape {list(output_shape)} for {n} axes")
    for rule, values in (("kernel-positive", k), ("strides-positive", strides), ("dilations-positive", dilations)):
        if any(v < 1 for v in values):
            raise RuleError(rule, f"{list(values)}")
    if any(m < 0 or m >= max(a, b) for m, a, b in zip(more, strides, dilations)) and any(more):
        raise RuleError(
            "output-padding-small", f"{list(more)} for strides {list(strides)}, dilations {list(dilations)}"
        )
    full = [strides[i] * (s[i] - 1) + more[i] + dilations[i] * (k[i] - 1) + 1 for i in range(n)]
    if output_shape is None and mode.startswith("same"):
        output_shape = [a * b for a, b in zip(s, strides)]
    if output_shape is not None:
        if any(v < 0 for v in output_shape):
            raise RuleError("output-not-negative", f"extents {list(output_shape)}")
        halves = [split_total(f - o, mode, upper_end) for f, o in zip(full, output_shape)]
        if mode == "valid":
            halves = [(0, f - o) for f, o in zip(full, output_shape)]
        return strides, dilations, (*(a for a, _ in halves), *(b for _, b in halves)), tuple(output_shape)
    p = resolve_pads(mode, s, k, strides, dilations, pads)
    sizes = tuple(full[i] - p[i] - p[n + i] for i in range(n))
    if any(v < 0 for v in sizes):
        raise RuleError("output-not-negative", f"extents {list(sizes)}")
    return strides, dilations, p, sizes


Geometry = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _geometry_of(inputs: dict[str, Object], p: dict[str, Object], upper_end: bool) -> Geometry:
    return transposed_geometry(
        inputs["x"].shape[2:],
        inputs["w"].shape[2:],
        p["strides"],
        p["dilations"],
        p["pads"],
        p["padding"],
        p["output_padding"],
        p["output_shape"],
        upper_end,
    )


def _computes_padding(params: dict[str, Object]) -> bool:
    return params["padding"].startswith("same") or bool(params.get("output_shape"))


def _odd_halves(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """ConvTranspose-1 contradicts itself: the equations put the odd cell elsewhere than the attribute's text."""
    if params.get("odd") != "upper_begin" or not _computes_padding(params):
        return None
    begin, end = (_geometry_of(inputs, params, at_end) for at_end in (False, True))
    if _halves(begin) == _halves(end):
        return None
    why = "an odd total padding: equations and attribute text of ConvTranspose-1 disagree"
    return _one_of(why, inputs, params, [begin, end])


def negative_total(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """A computed padding below 0, for dialects whose text speaks of cells that are added: it crops the other way by the
    formula, whose quotient is rounded down or towards 0, or is none."""
    if not _computes_padding(params):
        return None
    found: dict[Geometry, None] = {}
    for end in (False, True) if params["odd"] == "upper_begin" else (True,):
        st, di, _, sizes = g = _geometry_of(inputs, params, end)
        totals = [a + b for a, b in _halves(g)]
        if min(totals, default=0) >= 0:
            return None
        extents = sizes if params.get("output_shape") else tuple(o + min(t, 0) for o, t in zip(sizes, totals))
        for to_end in (None, False, True):
            halves = [
                (a, b) if t >= 0 else (0, 0) if to_end is None else split_total(t, "same_upper", to_end)
                for t, (a, b) in zip(totals, _halves(g))
            ]
            laid = (*(a for a, _ in halves), *(b for _, b in halves))
            found[st, di, laid, extents if to_end is None else sizes] = None
        found[g] = None
    why = "a stride above the window: negative padding by the formula, none by its text"
    return _one_of(why, inputs, params, list(found))


def _halves(g: Geometry) -> list[tuple[int, int]]:
    """Padding before and after, of each axis."""
    n = len(g[3])
    return list(zip(g[2][:n], g[2][n:]))


def _one_of(why: str, inputs: dict[str, Object], params: dict[str, Object], geometries: list[Geometry]) -> str | None:
    """The transposed convolution of one geometry, for all elements alike or not.

    Partial sums of any reading may leave the type in some order.  Such elements may be anything, as in ``Dot``."""
    x, w, b = inputs["x"], inputs["w"], inputs.get("b")
    due = _geometry_of(inputs, params, params["odd"] == "upper_end")[3]

    def result(g: Geometry, a: Array, f: Array, c: Array | None) -> Array:
        y = native.conv_transpose(a, f, c, g[0], g[1], g[2], params["groups"], sizes=g[3])
        return np.asarray(y, np.float64)

    terms = w.shape[0] // max(1, params["groups"]) * product(w.shape[2:]) + 8
    slack = terms * unit(of(x))
    calm = np.abs(tamed(x)), np.abs(tamed(w)), None if b is None else np.abs(tamed(b))
    found: list[str | None] = []
    for shape in dict.fromkeys(g[3] for g in geometries):
        of_shape = [g for g in geometries if g[3] == shape]
        with np.errstate(all="ignore"):
            size = np.max([result(g, *calm) for g in of_shape], axis=0)
            over = ~(size * (1 + slack) < float_max(of(x)))
            within = np.where(over, 0.0, slack * size) + terms * smallest_subnormal(of(x))
        readings = [_rounded(result(g, x, w, b), x) for g in of_shape]
        if shape == due:
            found += [underspecified(why, np.True_, *readings, within=within), underspecified(why, over)]
        elif over.any():
            found.append(other_shape(why, 0, shapes=((*x.shape[:1], readings[0].shape[1], *shape),)))
        else:
            found.append(other_shape(why, 0, *readings, within=within))
    return gathered(*found)


def _the_conv_transpose() -> Semantics:
    return conv_transpose


@semantics(
    error=accumulates(_terms_transposed),
    source="ONNX ConvTranspose-1, -11, -22; MIL conv_transpose iOS15; TFLite "
    "TRANSPOSE_CONV, CONV_3D_TRANSPOSE; NN ConvolutionLayerParams.isDeconvolution",
    ambiguous=first_of(_odd_halves, overflows(largest(_the_conv_transpose))),
)
def conv_transpose(
    x: Float[Array, "n c *s"],
    w: Float[Array, "c g *k"],
    b: Float[Array, "m"] | None = None,
    *,
    strides: Each[Ints, "s", 1, 3] | None = None,
    dilations: Each[Ints, "s", 1, 2] | None = None,
    pads: Pads[Ints, "s", "k"] | None = None,
    groups: Divisor[int, "c"] = 1,
    output_padding: Ints | None = None,
    output_shape: Ints | None = None,
    padding: Choice[str, MODES] = "explicit",
    odd: Choice[str, "upper_end", "upper_begin"] = "upper_end",
) -> Array:
    """Transposed convolution with w [c, m // groups, *k], plus b: y[i * stride - begin + t * dilation] += x[i] w[t].

    output_shape: the spatial extents, padding follows from it.  odd: where the odd cell of a computed padding goes for
    same_upper (the end since ConvTranspose-11, the beginning in -1); elsewhere the other side.
    Raises RuleError as ``check_channels`` and ``transposed_geometry`` do.
    """
    check_channels(x.shape[1], w.shape[1] * groups, w.shape[0] // max(1, groups), groups, b)
    st, di, p, sizes = transposed_geometry(
        x.shape[2:], w.shape[2:], strides, dilations, pads, padding, output_padding, output_shape, odd == "upper_end"
    )
    return native.conv_transpose(x, w, b, st, di, p, groups, sizes=sizes)


def _draw_transposed(d: Draw) -> dict[str, Object]:
    n = spatial_rank(d)
    k = tuple(min(d.pick((1, 2, 3, 3, 4, 5)), most_of(n, 5, 3, 2)) for _ in range(n))
    strides = param(d, "strides", lambda: tuple(d.pick((1, 2, 2, 3)) for _ in range(n)))
    dilations = param(d, "dilations", lambda: tuple(d.pick((1, 1, 2, 3)) if d.bool() else 1 for _ in range(n)))
    st, di = strides or (1,) * n, dilations or (1,) * n
    s = tuple(d.dim(1, most_of(n, 6, 4, 2)) for _ in range(n))
    padding = choose(d, "padding")
    if padding.startswith("same"):  # a kernel below the stride would need negative padding, which has no agreed halves
        k = tuple(max(a, b) for a, b in zip(k, st))
    c, m, groups = draw_channels(d)
    out = {
        "x": T((d.dim(hi=3), c, *s)),
        "w": T((c, m // groups, *k)),
        "groups": groups,
        "strides": strides,
        "dilations": dilations,
        "padding": padding,
        "pads": None,
        "output_padding": None,
        "output_shape": None,
        "odd": param(d, "odd", lambda: "upper_end"),
    }
    if given(d, "b"):
        out["b"] = T((m,))
    more = (0,) * n
    if padding == "explicit" and d.bool():
        # "less than the corresponding stride/dilation": than either of them, where the op set says so
        below = [max(a, b) for a, b in zip(st, di, strict=True)] if "output_padding" in d.version.schema.attrs else st
        more = tuple(d.int(0, a - 1) for a in below)
        out["output_padding"] = param(d, "output_padding", lambda: more)
        more = tuple(out["output_padding"] or (0,) * n)
    full = [st[i] * (s[i] - 1) + more[i] + di[i] * (k[i] - 1) + 1 for i in range(n)]
    if padding == "explicit":
        if d.chance(4):
            wish = tuple(max(1, f - d.int(0, 3)) for f in full)
            out["output_shape"] = param(d, "output_shape", lambda: wish)
        if out["output_shape"] is None:
            out["pads"] = param(d, "pads", lambda: _crops(d, full, k))
        if unbounded(d) and d.chance(8):
            return _far_transposed(d, out, n)
    return out


def _far_transposed(d: Draw, v: dict[str, Object], n: int) -> dict[str, Object]:
    """As ``_far``: also a window and as much padding, an extent and a padding of the result of no image."""
    batch, c, *s = v["x"].shape
    k = v["w"].shape[2:]
    at, how = d.int(0, n - 1), d.pick(("groups", "far", "far", "none", "many"))
    if how == "groups":
        v |= {"x": T((batch, 0, *s)), "w": T((0, 0, *k)), "groups": FAR}
    elif how == "none":
        v |= {"w": T((c, 0, *k))}
    elif how == "many" and v["groups"] == 1:
        v |= {"x": T((1, 1, *s)), "w": T((1, d.pick((128, 257)), *k))}
    elif how == "far" and v["output_shape"] is not None:
        v |= {"x": T((0, c, *s)), "output_shape": put(v["output_shape"], n, at, d.pick((FAR, 0)), 1)}
    elif how == "far" and v["output_padding"] is not None:
        more = d.pick((FAR, 16))
        v |= {"x": T((0, c, *s)), "output_padding": put(v["output_padding"], n, at, more, 0)}
        v["strides"] = put(v["strides"], n, at, more + 1, 1)
    elif how == "far":
        v |= {"w": T((c, 0, *put(k, n, at, FAR, 1))), "pads": put(None, 2 * n, at, FAR, 0)}
    if "b" in v:
        v["b"] = T((v["w"].shape[1] * v["groups"],))
    return v


def _crops(d: Draw, full: list[int], k: tuple[int, ...]) -> tuple[int, ...]:
    begins, ends = [], []
    beyond = unbounded(d) and d.chance(8)  # a crop as long as the window or longer
    for f, e in zip(full, full if beyond else k):
        b = d.int(0, min(e - 1, f - 1))
        begins.append(b)
        ends.append(d.int(0, min(e - 1, f - 1 - b)))
    return (*begins, *ends)


conv_transpose.draw(_draw_transposed)


@conv_transpose.breaks("channels-agree")
def _transposed_channels(d: Draw) -> dict[str, Object]:
    v = _draw_transposed(d)
    c, g, *k = v["w"].shape
    v["w"] = T((c + v["groups"], g, *k))
    return v


@conv_transpose.breaks("bias-agrees")
def _transposed_bias(d: Draw) -> dict[str, Object]:
    v = _draw_transposed(d)
    v["b"] = T((v["w"].shape[1] * v["groups"] + 1,))
    return v
