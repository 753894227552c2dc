"""Compressed constants: constexpr_* of iOS 16 (packed bytes) and iOS 18 (sub-byte types, blocks, vectors)."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, of
from harness.declare import Checks, Draw, Sampling, Spelling, T
from suites.mil import op
from suites.mil.codecs import vector
from suites.semantics import constexpr as s
from suites.semantics.movement.common import divisors, prod

_SCALE = "uniform:0.0625:2"


def _zero(d: Draw, slot: str, shape: tuple[int, ...]) -> T:
    return T(shape, recipe="small" if d.dtype(slot).kind in "iu" else "ints:-8:8")


# -- iOS 16: affine, packed palettes, packed masks


def _draw_affine(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, lo=1)
    axis = d.axis(len(shape))
    size = [() if d.bool() else (shape[axis],) for _ in range(2)]
    return {
        "quantized_data": T(shape, recipe="full"),
        "zero_point": _zero(d, "zero_point", size[0]),
        "scale": T(size[1], recipe=_SCALE),
        "axis": axis,
    }


def _break_affine(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, lo=2)
    return {
        "quantized_data": T(shape),
        "zero_point": _zero(d, "zero_point", ()),
        "scale": T((shape[0] + 1,), recipe=_SCALE),
        "axis": 0,
    }


op(
    "constexpr_affine_dequantize",
    s.affine_dequantize,
    Spelling(x="quantized_data", out_dtype=lambda c, i: of(c.inputs["scale"])),
    Sampling(_draw_affine, ranks=(1, 5)),
    Checks(breaks={"vector-fits-axis": _break_affine, "axis-in-range": lambda d: {**_break_affine(d), "axis": 7}}),
)


def _shape(d: Draw, low: int = 1) -> tuple[int, ...]:
    """A shape, now and then of nothing."""
    shape = d.shape(low, lo=1)
    at = d.int(0, max(0, len(shape) - 1))
    return (*shape[:at], 0, *shape[at + 1 :]) if shape and d.chance(12) else shape


def _draw_packed_lut(d: Draw) -> dict[str, Any]:
    shape, bits = _shape(d, 0), d.pick((1, 2, 4, 6, 8))
    return {"indices": T((-(-bits * prod(shape) // 8),), recipe="full"), "lut": T((1 << bits,)), "shape": list(shape)}


def _break_packed_lut(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, lo=1)
    return {"indices": T((-(-4 * prod(shape) // 8) + 1,)), "lut": T((16,)), "shape": list(shape)}


def _break_palette(d: Draw) -> dict[str, Any]:
    return {"indices": T((3,)), "lut": T((8,)), "shape": [8]}


op(
    "constexpr_lut_to_dense",
    s.lut_packed,
    Sampling(_draw_packed_lut),
    Checks(breaks={"packed-size": _break_packed_lut, "palette-size": _break_palette}),
    until="ios16",
)


def _draw_packed_sparse(d: Draw) -> dict[str, Any]:
    shape = _shape(d, 0)
    bits = [d.int(0, 1) for _ in range(prod(shape))]
    return {
        "nonzero_data": T((sum(bits),)),
        "mask": vector(np.packbits(np.array(bits, np.uint8), bitorder="little").tolist()),
        "shape": list(shape),
    }


def _break_packed_sparse(d: Draw) -> dict[str, Any]:
    return {"nonzero_data": T((d.int(4, 6),)), "mask": vector([7]), "shape": [5]}


op(
    "constexpr_sparse_to_dense",
    s.sparse_packed,
    Sampling(_draw_packed_sparse),
    Checks(
        breaks={
            "mask-counts-data": _break_packed_sparse,
            "packed-size": lambda d: {**_draw_packed_sparse(d), "shape": [200]},
        }
    ),
    until="ios16",
)
op(
    "constexpr_cast",
    s.widen,
    Spelling(x="source_val", out_dtype=lambda c, i: BY_NAME["f32"]),
    Sampling(lambda d: {"source_val": T(d.shape(0)), "output_dtype": BY_NAME["f32"]}),
)


# -- iOS 18: blocks, groups, vectors, masks of one bit


def _blocks(d: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(d.pick((1, n, d.pick(divisors(n)))) if n else 1 for n in shape)


def _offset(d: Draw, slot: str, shape: tuple[int, ...]) -> T | None:
    """An integer offset has the type of the data."""
    if d.bool():
        return None
    data, dt = d.dtype(slot), d.types["OffsetT"]
    if dt.kind in "iu" and dt is not data:
        dt = data if data.kind in "iu" else BY_NAME["f32"]
    return T(shape, recipe="small" if dt.kind in "iu" else "ints:-8:8", dtype=dt)


def _with_offset(out: dict[str, Any], offset: T | None) -> dict[str, Any]:
    return out if offset is None else {**out, "offset": offset}


def _data(d: Draw, slot: str, shape: tuple[int, ...]) -> T:
    return T(shape, recipe="full" if d.dtype(slot).kind in "iu" else "small")


def _draw_blockwise(d: Draw) -> dict[str, Any]:
    shape = _shape(d)
    blocks = _blocks(d, shape)
    out = {"data": _data(d, "data", shape), "scale": T(blocks, recipe=_SCALE)}
    return _with_offset(out, _offset(d, "data", blocks))


def _break_blocks(d: Draw) -> dict[str, Any]:
    n = d.dim(1, 6)
    return {"data": T((2 * n + 1, 2)), "scale": T((2, 1), recipe=_SCALE)}


def _break_offset(d: Draw) -> dict[str, Any]:
    """ "If provided, must have the same shape as the scale"."""
    return {
        "data": T((4, 2), recipe="small"),
        "scale": T((2, 1), recipe=_SCALE),
        "offset": T((1, 1), recipe="ints:-8:8", dtype=BY_NAME["f32"]),
    }


def _break_offset_type(d: Draw) -> dict[str, Any]:
    """ "If dtype is not fp16 or fp32, it must be the same as SrcT"."""
    one, other = d.pick((("i8", "u8"), ("u8", "i8"), ("i4", "i8"), ("i8", "i4")))
    return {
        "data": T((4, 2), recipe="small", dtype=BY_NAME[one]),
        "scale": T((2, 1), recipe=_SCALE),
        "offset": T((2, 1), recipe="small", dtype=BY_NAME[other]),
    }


op(
    "constexpr_blockwise_shift_scale",
    s.blockwise_shift_scale,
    Spelling(x="data", out_dtype=lambda c, i: of(c.inputs["scale"])),
    Sampling(_draw_blockwise, ranks=(1, 5)),
    Checks(
        breaks={"blocks-divide": _break_blocks, "offset-like-scale": _break_offset, "offset-type": _break_offset_type}
    ),
)


def _palette(d: Draw, slot: str, shape: tuple[int, ...]) -> tuple[T, dict[str, Any]]:
    bits = d.dtype(slot).bits
    size = d.pick((1, 1, 2, 3))
    groups = _blocks(d, shape) if bits < 6 else (1,) * len(shape)
    extra: dict[str, Any] = {}
    if size > 1 or d.bool():
        extra["vector_axis"] = d.axis(len(shape))
    return T((*groups, 1 << bits, size)), extra


def _draw_lut(d: Draw) -> dict[str, Any]:
    shape = _shape(d)
    lut, extra = _palette(d, "indices", shape)
    return {"indices": T(shape, recipe=f"index:{1 << d.dtype('indices').bits}"), "lut": lut, **extra}


def _break_palette18(d: Draw) -> dict[str, Any]:
    return {"indices": T((4,), recipe="index:2"), "lut": T((1, 2 << d.dtype("indices").bits, 1))}


def _with_lut(d: Draw, groups: tuple[int, ...]) -> dict[str, Any]:
    """Four indices and a table of so many groups."""
    return {"indices": T((4,), recipe="index:2"), "lut": T((*groups, 1 << d.dtype("indices").bits, 1))}


def _break_vector(d: Draw) -> dict[str, Any]:
    return {"indices": T((4,), recipe="index:2"), "lut": T((1, 1 << d.dtype("indices").bits, 2))}


op(
    "constexpr_lut_to_dense",
    s.lut_to_dense,
    Sampling(_draw_lut),
    Checks(
        breaks={
            "palette-size": _break_palette18,
            "vector-needs-axis": _break_vector,
            "palette-rank": lambda d: _with_lut(d, ()),
            "blocks-divide": lambda d: _with_lut(d, (3,)),
            "axis-in-range": lambda d: {**_break_vector(d), "vector_axis": d.pick((1, -2))},
        },
        unseen=("palette-size",),
    ),
    since="ios18",
)


def _mask(d: Draw, shape: tuple[int, ...]) -> tuple[T, int]:
    bits = [d.int(0, 1) for _ in range(prod(shape))]
    return T(shape, values=bits), sum(bits)


def _draw_sparse(d: Draw) -> dict[str, Any]:
    mask, n = _mask(d, _shape(d))
    return {"nonzero_data": T((n,)), "mask": mask}


def _break_sparse(d: Draw) -> dict[str, Any]:
    return {"nonzero_data": T((d.int(4, 6),)), "mask": T((5,), values=[1, 0, 1, 1, 0])}


op(
    "constexpr_sparse_to_dense",
    s.sparse_to_dense,
    Sampling(_draw_sparse),
    Checks(breaks={"mask-counts-data": _break_sparse}),
    since="ios18",
)


def _draw_lut_sparse(d: Draw) -> dict[str, Any]:
    shape = _shape(d)
    mask, n = _mask(d, shape)
    lut, extra = _palette(d, "indices_nonzero_data", shape)
    bits = d.dtype("indices_nonzero_data").bits
    return {"indices_mask": mask, "indices_nonzero_data": T((n,), recipe=f"index:{1 << bits}"), "lut": lut, **extra}


def _break_count(d: Draw) -> dict[str, Any]:
    """A value more than the mask has ones."""
    bits = d.dtype("indices_nonzero_data").bits
    return {
        "indices_mask": T((5,), values=[1, 0, 1, 1, 0]),
        "indices_nonzero_data": T((4,), recipe="index:2"),
        "lut": T((1, 1 << bits, 1)),
    }


def _break_sparse_palette(d: Draw) -> dict[str, Any]:
    bits = d.dtype("indices_nonzero_data").bits
    return {
        "indices_mask": T((5,), values=[1, 0, 1, 1, 0]),
        "indices_nonzero_data": T((3,), recipe="index:2"),
        "lut": T((1, 1 << bits, 2)),
    }


op(
    "constexpr_lut_to_sparse",
    s.lut_to_sparse,
    Spelling(
        mask="indices_mask",
        indices="indices_nonzero_data",
        out_dtype=lambda c, i: BY_NAME["u1"] if i == 0 else of(c.inputs["lut"]),
    ),
    Sampling(_draw_lut_sparse),
    Checks(breaks={"mask-counts-data": _break_count, "vector-needs-axis": _break_sparse_palette}),
)


def _draw_sparse_blockwise(d: Draw) -> dict[str, Any]:
    shape = _shape(d)
    mask, n = _mask(d, shape)
    blocks = _blocks(d, shape)
    out = {"data_mask": mask, "nonzero_data": _data(d, "nonzero_data", (n,)), "scale": T(blocks, recipe=_SCALE)}
    return _with_offset(out, _offset(d, "nonzero_data", blocks))


def _break_sparse_blocks(d: Draw) -> dict[str, Any]:
    return {
        "data_mask": T((5,), values=[1, 0, 1, 1, 0]),
        "nonzero_data": T((3,), recipe="small"),
        "scale": T((2,), recipe=_SCALE),
    }


def _break_sparse_count(d: Draw) -> dict[str, Any]:
    return {
        "data_mask": T((5,), values=[1, 0, 1, 1, 0]),
        "nonzero_data": T((4,), recipe="small"),
        "scale": T((1,), recipe=_SCALE),
    }


op(
    "constexpr_sparse_blockwise_shift_scale",
    s.sparse_blockwise,
    Spelling(
        mask="data_mask", x="nonzero_data", out_dtype=lambda c, i: BY_NAME["u1"] if i == 0 else of(c.inputs["scale"])
    ),
    Sampling(_draw_sparse_blockwise),
    Checks(breaks={"blocks-divide": _break_sparse_blocks, "mask-counts-data": _break_sparse_count}),
)
