"""The reference runtime: every op family as a kernel that computes wide and rounds once.

Arrays are NumPy arrays of any type ``harness.core.dtypes`` lists.  The compiled half is ``_opconform_native``.
"""

import _opconform_native as _native

from native_ref._basic import (
    BINARY,
    DULL,
    MOST,
    ROUNDINGS,
    SMALL,
    UNARY,
    Comparison,
    binary,
    brief,
    compare,
    convert,
    fill,
    ulp_diff,
    unary,
    where,
)
from native_ref._index import (
    COMBINE,
    gather,
    gather_elements,
    gather_nd,
    rank,
    scatter,
    scatter_elements,
    scatter_nd,
    unique,
)
from native_ref._linear import conv, conv_transpose, matmul, window_sizes
from native_ref._quantise import centre, requantise
from native_ref._reduction import REDUCTIONS, arg_reduce, cumulative, moments, reduce
from native_ref._window import ACTIVATIONS, interpolate, pool, recurrent, softmax

isa: str = _native.isa
FlatBuffers = _native.FlatBuffers  # writes nested dicts after a description of the tables
Draw = _native.Draw  # what generators draw from; documented in harness.generate.draw
protobuf = _native.protobuf  # a message from nested tuples; bind/protobuf.cc tells their forms
varints = _native.varints  # a packed field of integers
Prng = _native.Prng  # the draw engine; its definition is harness.generate.draw_engines.PlainPrng
Replay = _native.Replay  # plays choices back
Vary = _native.Vary  # the same, with other extents
