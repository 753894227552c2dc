"""The same elements in another order: axes permuted, reversed, rotated."""

from __future__ import annotations

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Any, Array, Axes, Axis, Int, Ints, T, copied, semantics
from harness.generate.draw import Draw
from suites.semantics.movement.common import INT32_MAX, norm_axes, tagged


@semantics(error=copied(), source="ONNX Transpose-1; MIL transpose iOS15; TFLite TRANSPOSE; NN transpose, permute")
def transpose(x: Any[Array, "*d"], *, perm: Ints | None = None) -> Array:
    """Axis i of the result is axis perm[i] of ``x``; None reverses the axes.  Negative entries count from
    the end.

    Raises RuleError "perm-is-permutation".
    """
    p = list(range(x.ndim))[::-1] if perm is None else [int(a) + x.ndim if a < 0 else int(a) for a in perm]
    if sorted(p) != list(range(x.ndim)):
        raise RuleError("perm-is-permutation", f"perm {perm} for rank {x.ndim}")
    return x.transpose(p)


@transpose.draw
def _draw_transpose(d: Draw) -> dict:
    shape = d.shape(0)
    return {"x": T(shape), "perm": None if d.chance(5) else tuple(d.shuffle(range(len(shape))))}


@transpose.breaks("perm-is-permutation")
def _transpose_twice(d: Draw) -> dict:
    shape = d.shape(2)
    perm = d.shuffle(range(len(shape)))
    perm[d.int(0, len(perm) - 1)] = d.pick((len(shape), perm[0] if perm[0] != perm[-1] else 0))
    if sorted(perm) == list(range(len(shape))):
        perm[0] = perm[1]
    return {"x": T(shape), "perm": tuple(perm)}


@semantics(error=copied(), source="MIL reverse iOS15; TFLite REVERSE_V2; NN reverse")
def reverse(x: Any[Array, "*d"], *, axes: Axes[Ints, "d"] | None = None) -> Any[Array, "*d"]:
    """``x`` backwards along ``axes`` (None: all); no axes leave it unchanged.  Raises RuleError
    "axes-distinct"."""
    at = tuple(norm_axes(axes, x.ndim))
    return np.flip(x, at) if at else x


@semantics(
    error=copied(),
    source="ONNX ReverseSequence-10; MIL reverse_sequence iOS15; TFLite REVERSE_SEQUENCE; NN reverseSeq",
)
def reverse_sequence(
    x: Any[Array, "*d"], lengths: Int[Array, "b"], *, seq_axis: Axis[int, "d"], batch_axis: Axis[int, "d"]
) -> Any[Array, "*d"]:
    """Per batch entry b, the first lengths[b] elements along ``seq_axis`` reversed, the rest kept.

    Raises RuleError "axes-in-range", "axes-distinct", "lengths-per-batch", "lengths-in-range" (0..extent).
    """
    s, b = norm_axes([seq_axis, batch_axis], x.ndim)
    if lengths.shape != (x.shape[b],):
        raise RuleError("lengths-per-batch", f"{list(lengths.shape)} lengths for batch {x.shape[b]}")
    if np.any((lengths < 0) | (lengths > x.shape[s])):
        raise RuleError("lengths-in-range", f"lengths {lengths.tolist()} for extent {x.shape[s]}")
    out = x.copy()
    target, source = np.moveaxis(out, (b, s), (0, 1)), np.moveaxis(x, (b, s), (0, 1))
    for i, n in enumerate(lengths.tolist()):
        target[i, :n] = source[i, :n][::-1]
    return out


def _sequence(d: Draw) -> tuple[tuple[int, ...], int, int]:
    shape = d.shape(2)
    if "batch_axis" in d.fixed or "seq_axis" in d.fixed:
        return shape, d.fixed.get("seq_axis", 0), d.fixed.get("batch_axis", 0)
    seq, batch = d.shuffle(range(len(shape)))[:2]
    return shape, seq, batch


@reverse_sequence.draw
def _draw_reverse_sequence(d: Draw) -> dict:
    if tagged(d, "far", 96):  # as long as any, without elements; LiteRT walks all of it
        lengths = T((2,), values=[d.pick((INT32_MAX, 2**25, 0)) for _ in range(2)])
        return {"x": T((2, INT32_MAX, 0)), "lengths": lengths, "seq_axis": 1, "batch_axis": 0}
    shape, seq, batch = _sequence(d)
    lengths = T((shape[batch],), recipe=f"ints:0:{shape[seq]}")
    return {"x": T(shape), "lengths": lengths, "seq_axis": seq, "batch_axis": batch}


@reverse_sequence.breaks("lengths-in-range")
def _reverse_too_far(d: Draw) -> dict:
    shape, seq, batch = _sequence(d)
    shape = tuple(max(1, n) for n in shape)
    n = shape[seq] + d.int(1, 3)
    return {
        "x": T(shape),
        "lengths": T((shape[batch],), values=[n] * shape[batch]),
        "seq_axis": seq,
        "batch_axis": batch,
    }
