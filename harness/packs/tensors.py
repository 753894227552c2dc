"""Arrays as bytes: safetensors with the types that it lacks, digests, and what a results file holds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from harness.core.dtypes import of
from harness.core.errors import FormatError, UsageError
from harness.core.quiet import quiet

Array = np.ndarray
# safetensors' names of element types
_READ = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
    "U64": np.uint64,
    "U32": np.uint32,
    "U16": np.uint16,
    "U8": np.uint8,
    "BOOL": np.bool_,
    "C64": np.complex64,
}
STORED = frozenset(np.dtype(t) for t in _READ.values())


def package() -> ModuleType:
    """safetensors' functions for NumPy.  Raises UsageError where the package is not installed."""
    try:
        import safetensors.numpy
    except ImportError:
        raise UsageError("safetensors is not installed; pip install 'opconform[packs]' brings it") from None
    return safetensors.numpy


def write(tensors: Mapping[str, Array]) -> bytes:
    """A safetensors file.  An element type that it lacks is stored as U8, one row of bytes an element."""
    return bytes(package().save({k: storable(v) for k, v in sorted(tensors.items())}))


def storable(a: Array) -> Array:
    """The array itself, or its bytes with one more axis."""
    a = np.array(a, order="C")
    if a.dtype in STORED:
        return a
    return a.reshape(-1).view(np.uint8).reshape((*a.shape, a.dtype.itemsize))


def read(data: bytes, where: str) -> dict[str, Array]:
    """The tensors of a safetensors file.  Raises FormatError."""
    package()
    import safetensors

    try:
        found = safetensors.deserialize(data)
        return {name: np.frombuffer(bytes(t["data"]), _READ[t["dtype"]]).reshape(t["shape"]) for name, t in found}
    except KeyError as e:
        raise FormatError(f"{where}: element type {e} is not known") from None
    except Exception as e:
        raise FormatError(f"{where}: not a safetensors file: {' '.join(str(e).split())[:200]}") from None


def digest(value: Any) -> str:
    """Content hash of arrays, lists, maps, texts and None."""
    h = hashlib.sha256()
    _feed(h, value)
    return h.hexdigest()


def _feed(h: Any, v: Any) -> None:
    if isinstance(v, (list, tuple)):
        h.update(f"[{len(v)}".encode())
        for x in v:
            _feed(h, x)
    elif isinstance(v, dict):
        h.update(f"{{{len(v)}".encode())
        for k in sorted(v, key=str):
            h.update(f"{k}:".encode())
            _feed(h, v[k])
    elif isinstance(v, (np.ndarray, np.generic)):
        a = np.asarray(v)
        d = of(a)
        h.update(f"{d.name}{list(a.shape)}".encode())
        if d.kind == "s":
            for x in a.ravel().tolist():
                h.update(repr(x).encode())
            return
        h.update((_one_nan(a) if d.kind in "fc" else np.array(a, order="C")).tobytes())
    else:
        h.update(repr(v).encode())


def _one_nan(a: Array) -> Array:
    """The same with one NaN for all: which one comes out is the processor's choice."""
    if a.dtype.kind == "c":
        return np.array(a, order="C")
    with quiet:
        return np.where(np.isnan(a.astype(np.float64)), np.asarray(np.nan, a.dtype), a).astype(a.dtype)
