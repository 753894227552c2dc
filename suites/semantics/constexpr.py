"""Compressed constants: affine, palettised and sparse weights as MIL stores them.

Everything is known when the model is built; the result is what a runtime decompresses it to.  Bit fields of iOS 16
are packed least significant bit first and may straddle bytes; iOS 18 has sub-byte element types instead (one array
element each here).
"""

from __future__ import annotations

import numpy as np

from harness.core.dtypes import of
from harness.core.errors import RuleError
from harness.core.quiet import quiet
from harness.declare import (
    Any,
    Array,
    Axis,
    Context,
    Int,
    Integer,
    Ints,
    Num,
    composed,
    exact,
    of_result,
    semantics,
    underspecified,
)


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


def _product(ctx: Context) -> np.ndarray:
    """scale * (data - offset): the difference and the product each rounded once"""
    scale = np.abs(ctx.wide)
    return 4.0 * ctx.u * scale + ctx.ulp


def per_axis(v: np.ndarray, rank: int, axis: int) -> np.ndarray:
    """A scalar, or a vector laid along ``axis`` with extent 1 elsewhere."""
    if v.ndim == 0:
        return v
    return v.reshape([-1 if i == axis % rank else 1 for i in range(rank)])


@semantics(error=composed(_product), source="MIL constexpr_affine_dequantize iOS16, dequantize iOS17")
def affine_dequantize(
    x: Num[Array, "*d"], zero_point: Num[Array, "*z"] | None, scale: Num[Array, "*s"], *, axis: Axis[int, "d"] = 0
) -> Num[Array, "*d"]:
    """scale * (x - zero_point); both are scalars or vectors along ``axis``, a missing zero point is 0.

    Raises RuleError "vector-fits-axis", "axis-in-range" (where there is a vector)."""
    vectors = [v for v in (zero_point, scale) if v is not None and v.ndim]
    if vectors and not -x.ndim <= axis < x.ndim:
        raise RuleError("axis-in-range", f"{axis} for rank {x.ndim}")
    for v in vectors:
        if v.shape != (x.shape[axis],):
            raise RuleError("vector-fits-axis", f"{list(v.shape)} entries for extent {x.shape[axis]}")
    wide = _wide(x)
    if zero_point is not None:
        wide = wide - per_axis(_wide(zero_point), x.ndim, axis)
    return per_axis(_wide(scale), x.ndim, axis) * wide


def unpack_bits(packed: np.ndarray, bits: int, count: int) -> np.ndarray:
    """``count`` unsigned fields of ``bits`` bits, least significant first, from bytes: uint8 [count]."""
    need = -(-bits * count // 8)
    if packed.size != need:
        raise RuleError("packed-size", f"{packed.size} bytes for {count} fields of {bits} bits, expected {need}")
    lit = np.unpackbits(packed.view(np.uint8), bitorder="little")[: bits * count].reshape(count, bits)
    return (lit << np.arange(bits, dtype=np.uint8)).sum(1).astype(np.uint8)


def packed_count(shape: Ints) -> int:
    """How many elements a stated shape has.  Raises RuleError "packed-size"."""
    if any(n < 0 for n in shape):
        raise RuleError("packed-size", f"a shape of {list(shape)}")
    return int(np.prod(shape, dtype=np.int64))


@semantics(error=exact(), source="MIL constexpr_lut_to_dense iOS16")
def lut_packed(indices: Int[Array, "m"], lut: Any[Array, "p"], *, shape: Ints) -> Array:
    """lut[i] for every packed index, under ``shape``; an index has log2(len(lut)) bits.

    Raises RuleError "palette-size", "packed-size"."""
    if lut.size not in (2, 4, 16, 64, 256):
        raise RuleError("palette-size", f"{lut.size} entries")
    count = packed_count(shape)
    return lut[unpack_bits(indices, lut.size.bit_length() - 1, count)].reshape(shape)


@semantics(error=exact(), source="MIL constexpr_sparse_to_dense iOS16")
def sparse_packed(nonzero_data: Any[Array, "n"], mask: Int[Array, "m"], *, shape: Ints) -> Array:
    """The data at the set bits of a packed mask in row-major order, zero elsewhere.

    Raises RuleError "packed-size", "mask-counts-data"."""
    count = packed_count(shape)
    return sparse_to_dense(nonzero_data, unpack_bits(mask, 1, count).reshape(shape))


@semantics(error=exact(), source="MIL constexpr_sparse_to_dense iOS18")
def sparse_to_dense(nonzero_data: Any[Array, "n"], mask: Int[Array, "*d"]) -> Any[Array, "*d"]:
    """The data at the ones of ``mask`` in row-major order, zero elsewhere.  Raises RuleError "mask-counts-data"."""
    hit = mask.astype(np.bool_)
    if nonzero_data.size != int(hit.sum()):
        raise RuleError("mask-counts-data", f"{nonzero_data.size} values for {int(hit.sum())} set bits")
    out = np.zeros(mask.shape, nonzero_data.dtype)
    out[hit] = nonzero_data
    return out


def spread(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """``x`` repeated blockwise to ``shape``.  Raises RuleError "blocks-divide"."""
    if x.ndim != len(shape) or any(m == 0 or n % m for n, m in zip(shape, x.shape)):
        raise RuleError("blocks-divide", f"{list(x.shape)} blocks of {list(shape)}")
    for axis, n in enumerate(shape):
        x = np.repeat(x, n // x.shape[axis], axis)
    return x


def _check_offset(x: np.ndarray, scale: np.ndarray, offset: np.ndarray | None) -> None:
    if offset is not None and offset.shape != scale.shape:
        raise RuleError("offset-like-scale", f"{list(offset.shape)} against {list(scale.shape)}")
    if offset is not None and of(offset).kind != "f" and of(offset) is not of(x):
        raise RuleError("offset-type", f"{of(offset)} for data of {of(x)}")


def _blocks_product(ctx: Context) -> np.ndarray:
    """scale * (data - offset): data and offset, the difference and the product each rounded once"""
    with quiet:
        lost = {n: np.abs(v - v.astype(ctx.out.np)) for n in ("x", "offset") if (v := ctx.inputs.get(n)) is not None}
    lost = {n: np.where(np.isfinite(v), v, 0.0) for n, v in lost.items()}
    bound = np.asarray(_product(ctx))
    if not any(v.any() for v in lost.values()):
        return bound
    if "offset" in lost:
        lost["offset"] = -lost["offset"]
    return np.asarray(bound + 2.0 * ctx.reevaluate(scale=np.abs(ctx.inputs["scale"]), **lost))


def _beyond(inputs: dict[str, np.ndarray], params: dict[str, object]) -> str | None:
    """Data, an offset or their difference beyond the type of the result, the only one that the text names."""
    x, scale, offset = inputs["x"], inputs["scale"], inputs.get("offset")
    if of(x).kind != "f" and (offset is None or of(offset).kind != "f"):
        return None
    dense, mask = x, inputs.get("mask")
    if mask is not None:
        dense = np.zeros(mask.shape, x.dtype)
        dense[mask.astype(np.bool_)] = x
    with quiet:
        by = spread(scale, dense.shape)
        less = np.zeros_like(by) if offset is None else spread(offset, dense.shape)
        wide = _wide(dense) - _wide(less)
        narrow = dense.astype(by.dtype) - less.astype(by.dtype)
        kept = wide.astype(by.dtype)
        hit = np.isfinite(wide) & np.isfinite(by) & (np.isinf(kept) | ~np.isfinite(narrow))
        readings = [_wide(by * v) for v in (narrow, kept)]
    where = (hit, *readings) if mask is None else tuple(v[mask.astype(np.bool_)] for v in (hit, *readings))
    at = where[0] if mask is None else of_result(1, where[0])
    return underspecified("data, an offset or their difference beyond the type of the result", at, *where[1:])


@semantics(error=composed(_blocks_product), ambiguous=_beyond, source="MIL constexpr_blockwise_shift_scale iOS18")
def blockwise_shift_scale(
    x: Num[Array, "*d"], scale: Num[Array, "*s"], offset: Num[Array, "*s"] | None = None
) -> Num[Array, "*d"]:
    """scale * (x - offset), scale and offset repeated over blocks of x.shape / scale.shape.

    Raises RuleError "blocks-divide", "offset-like-scale", "offset-type" (a float, or that of x)."""
    _check_offset(x, scale, offset)
    wide = _wide(x)
    if offset is not None:
        wide = wide - spread(_wide(offset), x.shape)
    return spread(_wide(scale), x.shape) * wide


@semantics(error=exact(), source="MIL constexpr_lut_to_dense iOS18")
def lut_to_dense(indices: Int[Array, "*d"], lut: Any[Array, "*e"], *, vector_axis: Integer | None = None) -> Array:
    """Palette entries for indices.  lut: [*groups, palettes, vector]; groups divide the extents of ``indices``; a
    vector fills consecutive places along ``vector_axis``.

    Raises RuleError "palette-rank", "palette-size", "blocks-divide", "vector-needs-axis", "axis-in-range"."""
    r = indices.ndim
    if lut.ndim != r + 2:
        raise RuleError("palette-rank", f"lut of rank {lut.ndim} for indices of rank {r}")
    size = lut.shape[-1]
    if size > 1 and vector_axis is None:
        raise RuleError("vector-needs-axis", f"vectors of {size}")
    if vector_axis is not None and not -r <= vector_axis < r:
        raise RuleError("axis-in-range", f"{vector_axis} for rank {r}")
    if indices.size and indices.max() >= lut.shape[-2]:
        raise RuleError("palette-size", f"{lut.shape[-2]} entries, an index of {indices.max()}")
    groups = np.arange(int(np.prod(lut.shape[:r], dtype=np.int64))).reshape(lut.shape[:r])
    which = spread(groups, indices.shape)
    out = lut.reshape(-1, *lut.shape[-2:])[which, indices.astype(np.int64)]
    if vector_axis is None or size == 1:
        return out[..., 0]
    a = vector_axis % r
    shape = list(indices.shape)
    shape[a] *= size
    return np.moveaxis(out, -1, a + 1).reshape(shape)


@semantics(error=exact(), source="MIL constexpr_lut_to_sparse iOS18")
def lut_to_sparse(
    mask: Int[Array, "*d"], indices: Int[Array, "n"], lut: Any[Array, "*e"], *, vector_axis: Integer | None = None
) -> tuple[Array, Array]:
    """(mask, data): sparse indices looked up where they stand in the dense layout; vectors expand both.

    Raises RuleError "mask-counts-data" and those of ``lut_to_dense``."""
    dense = lut_to_dense(sparse_to_dense(indices, mask), lut, vector_axis=vector_axis)
    grown = mask if vector_axis is None or lut.shape[-1] == 1 else np.repeat(mask, lut.shape[-1], vector_axis)
    return grown, dense[grown.astype(np.bool_)]


@semantics(
    error=(exact(), composed(_blocks_product)),
    ambiguous=_beyond,
    source="MIL constexpr_sparse_blockwise_shift_scale iOS18",
)
def sparse_blockwise(
    mask: Int[Array, "*d"], x: Num[Array, "n"], scale: Num[Array, "*s"], offset: Num[Array, "*s"] | None = None
) -> tuple[Array, Array]:
    """(mask, scale * (x - offset)): each value takes the block that it stands in in the dense layout.

    Raises RuleError "mask-counts-data" and those of ``blockwise_shift_scale``."""
    hit = mask.astype(np.bool_)
    if x.size != int(hit.sum()):
        raise RuleError("mask-counts-data", f"{x.size} values for {int(hit.sum())} set bits")
    _check_offset(x, scale, offset)
    dense = np.zeros(mask.shape)
    dense[hit] = _wide(x)
    return mask, blockwise_shift_scale(dense, scale, None if offset is None else _wide(offset))[hit]


@semantics(error=exact(), source="MIL constexpr_cast iOS16")
def widen(x: Num[Array, "*d"]) -> Num[Array, "*d"]:
    """The same values as f32: every f16 is one."""
    return x.astype(np.float32)
