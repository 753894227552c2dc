"""Quantised products along axes, and the low-rank filters of SVDF with their 16-bit memory."""

from __future__ import annotations

from typing import Annotated
from typing import Any as Object

import numpy as np

from harness.core.dtypes import I16, int_range, of
from harness.declare import Axes, Draw, Flag, Int, Ints, Opaque, T, semantics
from suites.semantics.movement.common import norm_axes
from suites.semantics.quantised.elementwise import Activation, finish
from suites.semantics.quantised.fixed import (
    Array,
    Parameters,
    Quant,
    centred,
    draw_parameters,
    multiplier,
    real,
    steps,
    window,
    within,
    within_one_of,
)
from suites.semantics.tensorflow_recurrent import newest

_MOST = 6  # factors of one product: beyond, the roundings on the way say more than the data


def _reduced(x: Array, axes: tuple[int, ...] | None) -> list[int]:
    """The axes in their order.  Raises RuleError as ``norm_axes`` does."""
    return sorted(norm_axes(axes, x.ndim))


def _rows(x: Array, axes: tuple[int, ...] | None) -> Array:
    """[kept axes, reduced elements in the order of memory]."""
    at = _reduced(x, axes)
    kept = [a for a in range(x.ndim) if a not in at]
    n = int(np.prod([x.shape[a] for a in at], dtype=np.int64))
    return x.transpose(*kept, *at).reshape(*(x.shape[a] for a in kept), n)


def _laid(y: Array, x: Array, axes: tuple[int, ...] | None, keepdims: bool) -> Array:
    at = _reduced(x, axes)
    return y.reshape([1 if i in at else n for i, n in enumerate(x.shape)]) if keepdims else y


def _prod(x: Array, *, axes: Object, keepdims: bool, xq: Quant, oq: Quant) -> Array:
    return _laid(steps(_rows(real(x, xq), axes).prod(-1), oq), x, axes, keepdims)


def _half_step(x: Array, **kw: Object) -> float:
    return 2.0**-10


def multiplied(x: Array, by: float) -> Array:
    """Integers times a real, rounded, halves up, whose multiplier has 15 bits: as LiteRT multiplies integers of 64
    bits (kernels/internal/common.h, MultiplyByQuantizedMultiplier)."""
    m, shift = (int(v) for v in multiplier(by))
    reduced, total = (m + (1 << 15) >> 16 if m < 0x7FFF0000 else 0x7FFF), 15 - shift
    if total <= 0:
        return x * reduced << -total
    return x * reduced + (1 << total - 1) >> total


def _stepwise(x: Array, *, axes: Object, keepdims: bool, xq: Quant, oq: Quant) -> Array:
    """Every partial product is an integer, scaled by x_scale / n-th root of o_scale."""
    rows = _rows(centred(np.asarray(x), xq), axes).astype(object)
    n = rows.shape[-1]
    if n == 0:
        return _prod(x, axes=axes, keepdims=keepdims, xq=xq, oq=oq)
    by = xq["scale"][0] / oq["scale"][0] ** (1 / n)
    product = rows[..., 0]
    for k in range(1, n):
        product = multiplied(product * rows[..., k], by)
    total = multiplied(product, by) + int(oq["zero_point"][0])
    held = np.asarray(np.clip(total, -(1 << 62), 1 << 62), np.float64)  # far beyond any type
    return _laid(held, x, axes, keepdims)


def _draw_prod(d: Draw) -> dict[str, Object]:
    shape = [] if d.chance(48) else list(d.shape(1, lo=1))
    rank = len(shape)
    axes = sorted(d.subset(range(rank), min(1, rank)))
    if d.empty and rank:
        shape[d.int(0, rank - 1)] = 0
    room = _MOST
    for a in axes:
        shape[a] = min(shape[a], d.int(1, room))
        room //= max(1, shape[a])
    n = int(np.prod([shape[a] for a in axes]))
    dt = d.dtype("x")
    xq = draw_parameters(d, dt)
    lo, hi = int_range(dt)
    z = xq["zero_point"][0]
    typical = 0.5 * max(hi - z, z - lo) * xq["scale"][0]
    oq = draw_parameters(d, dt, scale=typical**n / (hi - lo) * d.pick((1, 2, 4, 8)))
    return {
        "x": T(shape, "full"),
        "axes": tuple(a - rank if d.bool() else a for a in axes),
        "keepdims": d.bool(),
        "xq": xq,
        "oq": oq,
    }


@semantics(
    draw=_draw_prod,
    error=within_one_of(
        (_prod, _half_step),
        (_stepwise, _half_step),
        what="the real product in steps, or the one whose partial products are integers",
    ),
    source="TFLite REDUCE_PROD; its kernel: each multiplication is scaled by input_scale / nth_root(output_scale)",
    data=("full",),
)
def reduce_prod(x: Int[Array, "*d"], *, axes: Axes[Ints, "d"], keepdims: Flag, xq: Opaque, oq: Opaque) -> Array:
    """Product of the real values along ``axes`` (None: all), requantised.  n factors are n scaled multiplications of
    integers, in the order of memory.  Raises RuleError "axes-in-range", "axes-distinct"."""
    return finish(_prod(x, axes=axes, keepdims=keepdims, xq=xq, oq=oq), oq, of(x))


def _memory(x: Array, features: Array, xq: Quant, fq: Quant, sq: Quant) -> Array:
    """What the newest place of the memory holds, in its steps, not rounded but clamped to 16 bits."""
    acc = centred(x, xq) @ centred(features, fq).T
    return np.clip(acc * (xq["scale"][0] * fq["scale"][0] / sq["scale"][0]), *int_range(I16))


def _svdf(
    x: Array,
    features: Array,
    times: Array,
    b: Array | None = None,
    *,
    rank: int,
    xq: Quant,
    fq: Quant,
    tq: Quant,
    sq: Quant,
    oq: Quant,
    calls: int = 1,
    **_: Object,
) -> Array:
    seen = _memory(x, features, xq, fq, sq) * newest(centred(times, tq), calls).sum(-1)
    acc = seen.reshape(len(x), len(features) // rank, rank).sum(-1) + (0 if b is None else b)
    return acc * (sq["scale"][0] * tq["scale"][0] / oq["scale"][0]) + oq["zero_point"][0]


def _svdf_freedom(
    *, times: Array, rank: int, xq: Quant, fq: Quant, tq: Quant, sq: Quant, oq: Quant, calls: int = 1, **rest: Object
) -> Array:
    """Half a step of the memory for every filter and call, as its newest time weights carry it on."""
    ratio = sq["scale"][0] * tq["scale"][0] / oq["scale"][0]
    stored = 0.5 + float(window(xq["scale"][0] * fq["scale"][0] / sq["scale"][0]))
    met = np.abs(newest(centred(times, tq), calls)).sum(-1)
    carried = met.reshape(-1, rank).sum(-1) * stored * ratio
    r = _svdf(times=times, rank=rank, xq=xq, fq=fq, tq=tq, sq=sq, oq=oq, calls=calls, **rest)
    return carried + window(ratio) + np.abs(r) * 2.0**-22


@semantics(
    error=within(_svdf, _svdf_freedom, "half a step of the 16-bit memory per filter, carried on, and half a step"),
    source="TFLite SVDF: the memory is a 16-bit operand with a scale of its own; 8-bit quantization specification: "
    "a bias has the scale of what it is added to",
)
def svdf_step(
    x: Int[Array, "n i"],
    features: Int[Array, "f i"],
    times: Int[Array, "f m"],
    b: Int[Array, "u"] | None = None,
    *,
    rank: Opaque,
    xq: Annotated[Quant, Parameters("x")],
    fq: Opaque,
    tq: Opaque,
    sq: Opaque,
    oq: Opaque,
    activation: Activation,
    calls: Opaque = 1,
) -> Array:
    """The last of some calls of rank-decomposed filters with the same x, before whose first the memory holds zeros:
    features seen go into the memory as 16-bit steps, their sums with the newest time weights and the bias into the
    output."""
    r = _svdf(x, features, times, b, rank=rank, xq=xq, fq=fq, tq=tq, sq=sq, oq=oq, calls=calls)
    return finish(r, oq, of(x), activation)
