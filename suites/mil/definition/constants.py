"""Compressed constants and quantisation."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from suites.mil.definition.reading import Arrays, Attrs, Read, reader, wide

READ: dict[str, Read] = {}
reads = reader(READ)


def _bits(packed: np.ndarray) -> list[int]:
    """ "Starting with the least significant bit and moving upward"."""
    return [(int(byte) >> k) & 1 for byte in packed for k in range(8)]


def _along(v: Any, rank: int, axis: int) -> Any:
    return wide(v) if v.ndim == 0 else wide(v).reshape([-1 if k == axis % rank else 1 for k in range(rank)])


@reads("constexpr_affine_dequantize", "dequantize")
def _affine(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x = a["quantized_data"] if "quantized_data" in a else a["input"]
    axis, zero = at.get("axis", 0), a.get("zero_point")
    shifted = x.astype(np.float64) - (0.0 if zero is None else _along(zero, x.ndim, axis))
    return [_along(a["scale"], x.ndim, axis) * shifted]


@reads("quantize")
def _quantize(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, axis, zero = wide(a["input"]), at.get("axis", 0), a.get("zero_point")
    q = np.rint(x / _along(a["scale"], x.ndim, axis)) + (0 if zero is None else _along(zero, x.ndim, axis))
    return [np.clip(q, *((0, 255) if at["output_dtype"].name == "u8" else (-128, 127)))]


@reads("constexpr_blockwise_shift_scale")
def _blocks(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, scale, offset = a["data"], a["scale"], a.get("offset")
    y = np.empty(x.shape)
    for i in np.ndindex(x.shape):
        b = tuple(k // (n // m) for k, n, m in zip(i, x.shape, scale.shape))
        y[i] = float(scale[b]) * (float(x[i]) - (0.0 if offset is None else float(offset[b])))
    return [y]


def _palette(indices: np.ndarray, lut: np.ndarray, axis: int) -> np.ndarray:
    size, shape = lut.shape[-1], list(indices.shape)
    shape[axis] *= size
    y = np.empty(shape, lut.dtype)
    for i in np.ndindex(*shape):
        at = list(i)
        at[axis], part = divmod(at[axis], size)
        group = tuple(k // (n // m) for k, n, m in zip(at, indices.shape, lut.shape))
        of_lut: tuple[Any, ...] = (*group, int(indices[tuple(at)]), part)
        y[i] = lut[of_lut]
    return y


@reads("constexpr_lut_to_dense")
def _lut(at: Attrs, a: Arrays, version: str) -> list[Any]:
    indices, lut = a["indices"], a["lut"]
    if version == "ios18":
        return [_palette(indices, lut, at.get("vector_axis", 0) % indices.ndim)]
    width, lit = len(lut).bit_length() - 1, _bits(indices)
    fields = [lit[k * width : (k + 1) * width] for k in range(prod(at["shape"]))]
    return [lut[[sum(bit << k for k, bit in enumerate(f)) for f in fields]].reshape(at["shape"])]


def _spread(data: np.ndarray, mask: list[int], shape: Any) -> np.ndarray:
    left = iter(data)
    return np.array([next(left) if bit else 0 for bit in mask], data.dtype).reshape(shape)


@reads("constexpr_sparse_to_dense")
def _sparse(at: Attrs, a: Arrays, version: str) -> list[Any]:
    mask = a["mask"]
    if version == "ios18":
        return [_spread(a["nonzero_data"], mask.ravel().tolist(), mask.shape)]
    return [_spread(a["nonzero_data"], _bits(mask)[: prod(at["shape"])], at["shape"])]


@reads("constexpr_lut_to_sparse")
def _lut_sparse(at: Attrs, a: Arrays, version: str) -> list[Any]:
    mask, lut = a["indices_mask"], a["lut"]
    axis = at.get("vector_axis", 0) % mask.ndim
    dense = _palette(_spread(a["indices_nonzero_data"], mask.ravel().tolist(), mask.shape), lut, axis)
    grown = np.repeat(mask, lut.shape[-1], axis)
    return [grown, dense[grown != 0]]


@reads("constexpr_sparse_blockwise_shift_scale")
def _sparse_blocks(at: Attrs, a: Arrays, version: str) -> list[Any]:
    mask = a["data_mask"]
    data = _spread(a["nonzero_data"], mask.ravel().tolist(), mask.shape)
    (dense,) = _blocks(at, {"data": data, "scale": a["scale"], "offset": a.get("offset")}, version)
    return [mask, dense[mask != 0]]
