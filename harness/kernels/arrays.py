"""Arrays of other libraries: operands for a kernel, and its results as NumPy arrays.

``LIBRARIES`` holds two functions for each library: one makes its arrays, the other reads them.  Any other array that
supports DLPack, or has a CPU copy that does, is read through NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from harness.core.dtypes import of
from harness.core.errors import Unsupported, UsageError

Array = np.ndarray
Device = "str | Callable[[np.ndarray], Any] | None"


class Library(NamedTuple):
    """give(array, device): an array of the library on the device.  take(value): a NumPy array with the same elements.
    modules: top-level modules in which the classes of its arrays live."""

    give: Callable[[Array, str], Any]
    take: Callable[[Any], Any]
    modules: tuple[str, ...]


# torch's name of an element type that NumPy knows through ml_dtypes alone
_TORCH = {
    "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz",
}


def _give_torch(a: Array, device: str) -> Any:
    import torch

    name = of(a).name
    if a.dtype.isbuiltin == 1 and a.dtype.kind in "biufc":
        t = torch.from_numpy(np.array(a, order="C"))
    elif name in _TORCH and hasattr(torch, _TORCH[name]):
        bits = torch.from_numpy(np.array(a, order="C").view(f"i{a.dtype.itemsize}"))
        t = bits.view(getattr(torch, _TORCH[name]))
    else:
        raise Unsupported(f"torch has no tensors of {name}")
    return t.to(device) if device else t


def _take_torch(t: Any) -> Any:
    import torch

    t = t.detach().cpu().resolve_conj().resolve_neg().contiguous()
    name = next((n for n, theirs in _TORCH.items() if t.dtype == getattr(torch, theirs, None)), None)
    if name is None:
        return t.numpy()
    from harness.core.dtypes import BY_NAME

    bits = t.view(torch.int16 if t.element_size() == 2 else torch.int8).numpy()
    return bits.view(BY_NAME[name].np)


def _give_jax(a: Array, device: str) -> Any:
    import jax

    kind, _, number = device.partition(":")
    where = jax.devices(kind or None)[int(number or 0)]
    if a.dtype.itemsize == 8 and a.dtype.kind in "iuf" and not jax.config.jax_enable_x64:
        raise Unsupported(f"JAX has no {of(a)} unless jax_enable_x64 is set")
    return jax.device_put(np.array(a, order="C"), where)


def _give_cupy(a: Array, device: str) -> Any:
    import cupy

    with cupy.cuda.Device(int(device or 0)):
        return cupy.asarray(a)


LIBRARIES = {
    "torch": Library(_give_torch, _take_torch, ("torch",)),
    "jax": Library(_give_jax, np.asarray, ("jax", "jaxlib")),
    "cupy": Library(_give_cupy, lambda x: x.get(), ("cupy",)),
}


def giver(device: Any) -> Callable[[Array], Any]:
    """What makes an operand of a NumPy array.  device: see ``opconform.check``.  Raises UsageError."""
    if device is None:
        return lambda a: a
    if callable(device):
        return device
    name, _, where = str(device).partition(":")
    if name not in LIBRARIES:
        raise UsageError(
            f"device {device!r}: expected a callable or LIBRARY[:DEVICE] with a library among {' '.join(LIBRARIES)}"
        )
    try:
        __import__(name)
    except ImportError as e:
        raise UsageError(f"device {device!r}: {e}") from None
    return lambda a: LIBRARIES[name].give(a, where)


def taken(value: Any) -> Any:
    """A result as NumPy array; lists, tuples, maps and None keep their form.  Raises TypeError."""
    if value is None or isinstance(value, (str, bytes)):
        return value
    if isinstance(value, (list, tuple)):
        return [taken(x) for x in value]
    if isinstance(value, dict):
        return {k: taken(v) for k, v in value.items()}
    return np.array(_array(value), order="C")  # a copy, which nobody changes later


def _array(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic, bool, int, float, complex)):
        return np.asarray(value)
    module = type(value).__module__.split(".")[0]
    for library in LIBRARIES.values():
        if module in library.modules:
            return library.take(value)
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError):  # it lives elsewhere: a copy on the CPU
            return np.from_dlpack(value, device="cpu", copy=True)
    if hasattr(value, "__array__"):
        return np.asarray(value)
    raise TypeError(f"the kernel returned {type(value).__name__}, expected an array")
