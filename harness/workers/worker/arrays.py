"""Element types by their names, those included that NumPy lacks."""

# Runs under any Python from 3.8 on, with NumPy 1 or 2.

from __future__ import annotations

from typing import Any

import numpy as np

_NATIVE = {
    "f64": "f8",
    "f32": "f4",
    "f16": "f2",
    "i64": "i8",
    "i32": "i4",
    "i16": "i2",
    "i8": "i1",
    "u64": "u8",
    "u32": "u4",
    "u16": "u2",
    "u8": "u1",
    "bool": "?",
    "c64": "c8",
    "c128": "c16",
}
EXTRA = {
    "bf16": ("bfloat16", "u2"),
    "f8e4m3fn": ("float8_e4m3fn", "u1"),
    "f8e4m3fnuz": ("float8_e4m3fnuz", "u1"),
    "f8e5m2": ("float8_e5m2", "u1"),
    "f8e5m2fnuz": ("float8_e5m2fnuz", "u1"),
    "f8e8m0": ("float8_e8m0fnu", "u1"),
    "f4e2m1": ("float4_e2m1fn", "u1"),
    "f6e2m3": ("float6_e2m3fn", "u1"),
    "f6e3m2": ("float6_e3m2fn", "u1"),
    "i4": ("int4", "i1"),
    "u4": ("uint4", "u1"),
    "i2": ("int2", "i1"),
    "u2": ("uint2", "u1"),
}
BY_NAME = {k: np.dtype(v) for k, v in _NATIVE.items()}
TAGGED = {}
try:
    import ml_dtypes as _ml
except ImportError:
    _ml = None  # type: ignore[assignment]
for _n, (_m, _raw) in EXTRA.items():
    if hasattr(_ml, _m):
        BY_NAME[_n] = np.dtype(getattr(_ml, _m))
    else:
        BY_NAME[_n], TAGGED[_n] = np.dtype(_raw), True
_NAME_OF = {d: n for n, d in BY_NAME.items() if n not in TAGGED}


class Tagged(np.ndarray):
    """Raw integer view of elements that this environment has no NumPy dtype for; ``tag`` is our name."""

    tag = ""

    def __array_finalize__(self, obj: Any) -> None:
        self.tag = getattr(obj, "tag", "")


class TypeOnly:
    """Only the type of an output: dtype name (or None) and shape, whose dims may be None or names."""

    def __init__(self, dtype: str | None, shape: Any) -> None:
        self.dtype, self.shape = dtype, None if shape is None else tuple(shape)


def dtype_name(a: np.ndarray) -> Any:
    """Our name of an array's element type."""
    tag = getattr(a, "tag", "")
    if tag:
        return tag
    d = a.dtype
    try:
        return _NAME_OF[d]
    except KeyError:
        if d.kind in "OSU":
            return "str"
        if d.newbyteorder("=") in _NAME_OF:
            return _NAME_OF[d.newbyteorder("=")]
        raise TypeError(f"no dtype of ours for NumPy {d}") from None


def storage(name: str) -> np.dtype[Any]:
    """The NumPy type in which elements of type ``name`` lie in memory.  KeyError for an unknown name."""
    return np.dtype(EXTRA[name][1] if name in EXTRA else _NATIVE[name])


def from_raw(a: np.ndarray, name: str) -> Any:
    """Give raw integers their type ``name``: an ml_dtypes array, ``Tagged`` without that package."""
    a = np.asarray(a)  # arithmetic on an array of rank 0 gives a scalar, which cannot be tagged
    if name in TAGGED:
        out = a.view(BY_NAME[name]).view(Tagged)
        out.tag = name
        return out
    return a.view(BY_NAME[name])


def raw(a: np.ndarray) -> Any:
    """Integer view of elements whose type NumPy itself does not know; others unchanged."""
    name = dtype_name(a)
    return np.asarray(a).view(np.dtype(EXTRA[name][1])) if name in EXTRA else np.asarray(a)


def as_text(x: Any) -> Any:
    """Strings travel as text; bytes that are no UTF-8 survive as surrogates."""
    return x.decode("utf-8", "surrogateescape") if isinstance(x, bytes) else str(x)


def sized(v: Any) -> Any:
    """The bytes of an array, whatever its class says; 0 of anything else."""
    return np.ndarray.nbytes.__get__(v) if isinstance(v, np.ndarray) else 0


def pack(values: np.ndarray, bits: int) -> np.ndarray:
    """Small integers, one a byte -> several a byte, the first in the low bits."""
    per = 8 // bits
    padded = np.zeros(-(-values.size // per) * per, np.uint8)
    padded[: values.size] = values & ((1 << bits) - 1)
    parts = (padded[i::per] << (bits * i) for i in range(per))
    return np.asarray(sum(parts, np.zeros(padded.size // per, np.uint8)))


def unpack(data: np.ndarray, bits: int, count: int) -> np.ndarray:
    """Inverse of ``pack``."""
    per = 8 // bits
    out = np.empty(data.size * per, np.uint8)
    for i in range(per):
        out[i::per] = (data >> (bits * i)) & ((1 << bits) - 1)
    return out[:count]
