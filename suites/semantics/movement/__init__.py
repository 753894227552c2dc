"""Data movement: the elements of the result are elements of the inputs (or of a pattern), never computed.

Works for every dtype, strings included; NumPy does the moving.  Shared by all dialects: layouts, mask
spellings and pad
orders are the entries' codecs.
"""

from suites.semantics.movement.blocks import (
    batch_to_space,
    depth_to_space,
    sliding_windows,
    space_to_batch,
    space_to_depth,
)
from suites.semantics.movement.join import (
    broadcast_to,
    chunk_sizes,
    concat,
    concat_interleaved,
    expand,
    split,
    split_even,
    stack,
    tile,
    unstack,
)
from suites.semantics.movement.making import (
    band_part,
    crop_spatial,
    diag,
    eye_like,
    fill,
    fill_like,
    range_of,
    repeat_axis,
    set_diag,
    triangle,
    zeros_like,
)
from suites.semantics.movement.order import reverse, reverse_sequence, transpose
from suites.semantics.movement.padding import pad, pad_axes
from suites.semantics.movement.shape import (
    expand_dims,
    flatten,
    identity,
    rank_of,
    reshape,
    reshape_like,
    shape_of,
    size_of,
    squeeze,
)
from suites.semantics.movement.slicing import (
    slice_axes,
    slice_by_size,
    slice_update,
    strided_slice,
    strided_slice_bits,
)

__all__ = [
    "band_part",
    "batch_to_space",
    "broadcast_to",
    "chunk_sizes",
    "concat",
    "concat_interleaved",
    "crop_spatial",
    "depth_to_space",
    "diag",
    "expand",
    "expand_dims",
    "eye_like",
    "fill",
    "fill_like",
    "flatten",
    "identity",
    "pad",
    "pad_axes",
    "range_of",
    "rank_of",
    "repeat_axis",
    "reshape",
    "reshape_like",
    "reverse",
    "reverse_sequence",
    "set_diag",
    "shape_of",
    "size_of",
    "slice_axes",
    "slice_by_size",
    "slice_update",
    "sliding_windows",
    "space_to_batch",
    "space_to_depth",
    "split",
    "split_even",
    "squeeze",
    "stack",
    "strided_slice",
    "strided_slice_bits",
    "tile",
    "transpose",
    "triangle",
    "unstack",
    "zeros_like",
]
