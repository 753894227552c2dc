"""Constants that the file holds sparse: an instance has the dense values and, in ``@sparsity``, how they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import DType
from harness.declare import Draw, Evaluation, Sampling, T, copied
from suites.tflite import op

_FEW = 96  # elements at most, since an instance holds them all


def draw_sparse(
    d: Draw,
    dt: DType,
    shape: tuple[int, ...],
    block: dict[int, int],
    order: list[int],
    csr: list[bool],
    quant: Any = None,
) -> tuple[T, dict[str, Any]]:
    """A constant of ``shape`` whose blocks are mostly zero, and its layout.

    block: dimension -> extent of a block along it, which divides the dimension.  csr: per walked dimension.
    """
    cells = [n // block.get(i, 1) for i, n in enumerate(shape)]
    there = np.array([d.chance(3) for _ in range(int(np.prod(cells)))], bool)
    there[d.int(0, there.size - 1)] = True  # a constant without values could not be told from an unwritten tensor
    mask = there.reshape(cells)
    for i, n in block.items():
        mask = mask.repeat(n, i)
    low = -9 if dt.kind != "u" else 1
    values = np.array([d.int(low, 9) or 3 for _ in range(mask.size)], np.int64).reshape(shape) * mask
    layout = {
        "order": order,
        "block_map": list(block),
        "block": list(block.values()),
        "csr": csr,
        "width": d.pick((8, 16, 32)),
    }
    flat = [float(v) / 4 if dt.kind == "f" else int(v) for v in values.ravel()]
    return T(shape, values=flat, dtype=dt, const=True, quant=quant), layout


def draw_layout(d: Draw) -> tuple[tuple[int, ...], dict[int, int], list[int], list[bool]]:
    """Shape, blocks, traversal order and formats: any dimensions compressed, blocks (dense) walked last."""
    rank = d.int(1, 4)
    cells = [d.int(1, 4) for _ in range(rank)]
    while np.prod(cells) > _FEW // 4:
        cells[cells.index(max(cells))] -= 1
    block = {i: d.pick((1, 2, 4)) for i in range(rank) if d.chance(3)}
    while np.prod(cells) * np.prod(list(block.values())) > _FEW:
        block.popitem()
    order = d.shuffle(range(rank)) if rank > 1 and d.bool() else list(range(rank))
    blocks = list(range(rank, rank + len(block)))
    if len(blocks) > 1 and d.bool():
        blocks.reverse()
    csr = [d.bool() for _ in range(rank)] + [False] * len(block)
    if not any(csr):
        csr[rank - 1] = True
    return tuple(n * block.get(i, 1) for i, n in enumerate(cells)), block, [*order, *blocks], csr


def _draw_densify(d: Draw) -> dict[str, Any]:
    drawn = draw_layout(d)
    if d.chance(12):
        rank = d.int(1, 8)
        shape = [1] * rank if d.chance(3) else [d.int(1, 2) for _ in range(rank)]
        if d.chance(4):
            shape[d.int(0, rank - 1)] = d.pick((17, 130, 260)) if rank < 4 else 3
        if d.chance(8):
            shape = [35, 60]
        drawn = tuple(shape), {}, list(range(len(shape))), [d.bool() for _ in shape[1:]] + [True]
    t, layout = draw_sparse(d, d.types["T"], *drawn)
    return {"input": t, "@sparsity": {"input": layout}}


op(
    "DENSIFY",
    Evaluation(
        lambda call: [call.inputs["input"]],
        copied(),
        "tfl densify; schema, SparsityParameters: the dense tensor that a sparse one stands for",
    ),
    Sampling(_draw_densify),
)
