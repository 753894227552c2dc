"""Sparse constants: a dense array <-> the values and index tables that the file holds.

The n dimensions of a tensor may be cut into blocks, which adds k dimensions inside them.  Dimension n + i has the size
of a block along dimension ``block_map[i]``; the size of that dimension becomes the number of blocks.  All n + k
dimensions are walked in ``traversal_order``.  Each is dense (every index is there) or compressed (segments and indices
tell which children each position has).  The values are those of the positions that are left, in that order.

A layout is plain data:

    {"order": [...], "block_map": [...], "block": [sizes], "csr": [is it compressed?, in traversal order],
     "width": 8, 16 or 32 bits of segments and indices}

Source: schema, SparsityParameters, DimensionMetadata.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import FormatError, Unsupported

_VECTORS: dict[int, tuple[str, Any]] = {
    8: ("Uint8Vector", np.uint8),
    16: ("Uint16Vector", np.uint16),
    32: ("Int32Vector", np.int32),
}
_KINDS = {"Int32Vector": 1, "Uint16Vector": 2, "Uint8Vector": 3}


def expanded(shape: tuple[int, ...], layout: dict[str, Any]) -> tuple[list[int], list[list[int]]]:
    """Extents of the n + k dimensions, and per dimension of the tensor the block dimensions inside it."""
    extents, inside = list(shape), [[] for _ in shape]  # type: tuple[list[int], list[list[int]]]
    for i, (of, size) in enumerate(zip(layout["block_map"], layout["block"])):
        if size < 1 or extents[of] % size:
            raise Unsupported(f"blocks of {size} do not cut dimension {of} of {list(shape)}")
        extents[of] //= size
        extents.append(size)
        inside[of].append(len(shape) + i)
    return extents, inside


def encode(x: np.ndarray, layout: dict[str, Any]) -> tuple[dict[str, Any], np.ndarray]:
    """(SparsityParameters table, the stored values).  Raises Unsupported for blocks that do not fit."""
    extents, inside = expanded(x.shape, layout)
    cut = [a for dim in range(x.ndim) for a in (dim, *inside[dim])]  # the axes as the reshaped array has them
    y = x.reshape([extents[a] for a in cut]).transpose([cut.index(a) for a in layout["order"]])
    name, kind = _VECTORS[layout["width"]]
    meta: list[dict[str, Any]] = []
    parts = [y]
    for size, compressed in zip(y.shape, layout["csr"]):
        if not compressed:
            meta.append({"format": 0, "dense_size": size})
            parts = [p[i] for p in parts for i in range(size)]
            continue
        segments, indices, kept = [0], [], []
        for p in parts:
            there = [i for i in range(size) if np.any(p[i]) or np.any(np.signbit(p[i]))]  # -0 is no zero that may go
            indices += there
            kept += [p[i] for i in there]
            segments.append(len(indices))
        if max(segments) > np.iinfo(kind).max:
            raise Unsupported(f"{layout['width']} bits do not hold {max(segments)}")
        meta.append(
            {
                "format": 1,
                "array_segments_type": _KINDS[name],
                "array_segments": {"values": np.array(segments, kind)},
                "array_indices_type": _KINDS[name],
                "array_indices": {"values": np.array(indices, kind)},
            }
        )
        parts = kept
    table = {"traversal_order": layout["order"], "block_map": layout["block_map"], "dim_metadata": meta}
    return table, np.array([p[()] for p in parts], x.dtype)


def decode(table: dict[str, Any], values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The dense array of stored values; what is not stored is zero.  Raises FormatError."""
    order = [int(a) for a in table.get("traversal_order", ())]
    block_map = [int(a) for a in table.get("block_map", ())]
    meta = table.get("dim_metadata", [])
    n = len(shape)
    if sorted(order) != list(range(n + len(block_map))) or len(meta) != len(order):
        raise FormatError(f"sparsity: expected {n} + {len(block_map)} dimensions walked, each once, got {order}")
    if any(not 0 <= a < n for a in block_map):
        raise FormatError(f"sparsity: expected blocks of dimensions in [0, {n}), got {block_map}")
    size = {a: int(m.get("dense_size", 0)) for a, m in zip(order, meta) if not m.get("format", 0)}
    block = [size.get(n + i, 0) for i in range(len(block_map))]
    if any(b < 1 for b in block):
        raise FormatError("sparsity: a block dimension that is not dense has no known size")
    layout = {"block_map": block_map, "block": block}
    extents, inside = expanded(shape, layout)
    for a, m in zip(order, meta):
        if not m.get("format", 0) and int(m.get("dense_size", 0)) != extents[a]:
            raise FormatError(f"sparsity: dimension {a}: expected {extents[a]} positions, got {m.get('dense_size', 0)}")
    places: list[tuple[int, ...]] = [()]
    for m in meta:
        if not m.get("format", 0):
            places = [(*p, i) for p in places for i in range(int(m["dense_size"]))]
            continue
        segments, indices = (m.get(k, {}).get("values", ()) for k in ("array_segments", "array_indices"))
        ends = [int(e) for e in segments]
        if len(ends) != len(places) + 1 or ends[0] or ends != sorted(ends) or ends[-1] != len(indices):
            raise FormatError(
                f"sparsity: expected {len(places) + 1} growing segments of {len(indices)} indices, got {ends}"
            )
        places = [(*p, int(indices[i])) for k, p in enumerate(places) for i in range(segments[k], segments[k + 1])]
    if len(places) > values.size:
        raise FormatError(f"sparsity: {len(places)} values needed, {values.size} there")
    y = np.zeros([extents[a] for a in order], values.dtype)
    if any(not 0 <= i < k for p in places for i, k in zip(p, y.shape)):
        raise FormatError(f"sparsity: expected indices within {list(y.shape)}, got others")
    for p, v in zip(places, values.ravel()):
        y[p] = v
    cut = [a for dim in range(n) for a in (dim, *inside[dim])]
    return y.transpose([order.index(a) for a in cut]).reshape(shape)
