"""Element types of all operator sets, under one short name each.

A tensor is a NumPy array everywhere.  Types NumPy lacks are the ``ml_dtypes`` ones, so the array itself knows its type;
sub-byte integers and floats take one byte an element in memory (packing is the builders' business).
``code`` is the number the native runtime knows the type by.
"""

from __future__ import annotations

from ctypes import c_float
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True, slots=True, eq=False)  # one object a type: compared and hashed by identity, in C
class DType:
    """name: our spelling.  code: native number.  np: NumPy dtype.  kind: f float, i signed, u unsigned, b bool,
    c complex, s string.  bits: width as specified, not as stored.  frac: explicit fraction bits (floats)."""

    name: str
    code: int
    np: np.dtype
    kind: str
    bits: int
    frac: int = 0

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return dtype, (self.name,)  # copies and pickles stay the one object


def _d(name: str, code: int, np_type: Any, kind: str, bits: int, frac: int = 0) -> DType:
    return DType(name, code, np.dtype(np_type), kind, bits, frac)


F64 = _d("f64", 0, np.float64, "f", 64, 52)
F32 = _d("f32", 1, np.float32, "f", 32, 23)
F16 = _d("f16", 2, np.float16, "f", 16, 10)
BF16 = _d("bf16", 3, ml_dtypes.bfloat16, "f", 16, 7)
I64 = _d("i64", 4, np.int64, "i", 64)
I32 = _d("i32", 5, np.int32, "i", 32)
I16 = _d("i16", 6, np.int16, "i", 16)
I8 = _d("i8", 7, np.int8, "i", 8)
U64 = _d("u64", 8, np.uint64, "u", 64)
U32 = _d("u32", 9, np.uint32, "u", 32)
U16 = _d("u16", 10, np.uint16, "u", 16)
U8 = _d("u8", 11, np.uint8, "u", 8)
BOOL = _d("bool", 12, np.bool_, "b", 8)
F8E4M3FN = _d("f8e4m3fn", 13, ml_dtypes.float8_e4m3fn, "f", 8, 3)
F8E4M3FNUZ = _d("f8e4m3fnuz", 14, ml_dtypes.float8_e4m3fnuz, "f", 8, 3)
F8E5M2 = _d("f8e5m2", 15, ml_dtypes.float8_e5m2, "f", 8, 2)
F8E5M2FNUZ = _d("f8e5m2fnuz", 16, ml_dtypes.float8_e5m2fnuz, "f", 8, 2)
F8E8M0 = _d("f8e8m0", 17, ml_dtypes.float8_e8m0fnu, "f", 8, 0)
F4E2M1 = _d("f4e2m1", 18, ml_dtypes.float4_e2m1fn, "f", 4, 1)
I4 = _d("i4", 19, ml_dtypes.int4, "i", 4)
U4 = _d("u4", 20, ml_dtypes.uint4, "u", 4)
I2 = _d("i2", 21, ml_dtypes.int2, "i", 2)
U2 = _d("u2", 22, ml_dtypes.uint2, "u", 2)
C64 = _d("c64", 23, np.complex64, "c", 64, 23)
C128 = _d("c128", 24, np.complex128, "c", 128, 52)
STR = _d("str", 25, np.object_, "s", 0)
# MIL palettes index with 1, 3 and 6 bits; values live in uint8 arrays that are told apart by the slot, not the array.
U1 = _d("u1", 26, np.uint8, "u", 1)
U3 = _d("u3", 27, np.uint8, "u", 3)
U6 = _d("u6", 28, np.uint8, "u", 6)
F6E2M3 = _d("f6e2m3", 29, ml_dtypes.float6_e2m3fn, "f", 6, 3)
F6E3M2 = _d("f6e3m2", 30, ml_dtypes.float6_e3m2fn, "f", 6, 2)

ALL = (
    F64,
    F32,
    F16,
    BF16,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    BOOL,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0,
    F4E2M1,
    I4,
    U4,
    I2,
    U2,
    C64,
    C128,
    STR,
    U1,
    U3,
    U6,
    F6E2M3,
    F6E3M2,
)
BY_NAME: dict[str, DType] = {d.name: d for d in ALL}
_BY_NP: dict[np.dtype, DType] = {}
for _x in (*ALL[:26], F6E2M3, F6E3M2):
    _BY_NP[_x.np] = _x

FLOATS = tuple(d for d in ALL if d.kind == "f")
INTS = tuple(d for d in ALL if d.kind in "iu")


def dtype(name: str) -> DType:
    """The type called ``name``; raises ValueError naming the known ones."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise ValueError(f"unknown dtype {name!r}, expected one of {' '.join(BY_NAME)}") from None


def of(array: np.ndarray) -> DType:
    """The type of an array's elements."""
    try:
        return _BY_NP[array.dtype]
    except KeyError:
        if array.dtype.kind in "OSU":
            return STR
        raise ValueError(f"no dtype of ours for NumPy {array.dtype}") from None


def f32(x: float) -> float:
    """The f32 number nearest to ``x``, as a file stores it; infinite beyond the range."""
    return c_float(x).value


def int_range(d: DType) -> tuple[int, int]:
    """Lowest and highest value of an integer or bool type."""
    if d.kind == "b":
        return 0, 1
    if d.kind == "u":
        return 0, (1 << d.bits) - 1
    if d.kind == "i":
        return -(1 << (d.bits - 1)), (1 << (d.bits - 1)) - 1
    raise ValueError(f"{d} is not an integer type")


@cache
def float_max(d: DType) -> float:
    """Largest finite value of a float type."""
    return float(_finfo(d).max)


@cache
def smallest_subnormal(d: DType) -> float:
    """Smallest positive value of a float type."""
    return float(_finfo(d).smallest_subnormal)


@cache
def smallest_normal(d: DType) -> float:
    """Smallest positive normal value of a float type."""
    return float(_finfo(d).smallest_normal)


def _finfo(d: DType) -> Any:
    """``np.finfo`` knows the built-in types only (ml_dtypes' float8_e5m2 says kind "f" as well)."""
    return np.finfo(d.np) if d.np.isbuiltin == 1 else ml_dtypes.finfo(d.np)
