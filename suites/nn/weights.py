"""Layer parameters that hold numbers: the shapes they are stored in, and their float, half and quantised forms.

A quantised weight is an ``Arg`` of type u8 whose ``quant`` is one of

* {"bits": n, "scale": [...], "bias": [...]}: linear, with one value, or one for each output channel.  That is the first
  stored axis; of a deconvolution it is the second, together with its group
* {"bits": n, "lut": [...]}: a table of 2**n floats

One of type i8 with {"bits": 8, "scale": [s]} is of a layer that quantises its input dynamically.

Source: messages WeightParams, QuantizationParams, LinearQuantizationParams, LookUpTableQuantizationParams.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.core.dtypes import I8, U8, DType
from harness.core.errors import FormatError, RuleError
from suites.nn.wire import Message

Attrs = Callable[[str], Any]  # attribute by name, defaults filled in


def _conv(a: Attrs) -> tuple[int, ...]:
    kernel = tuple(a("kernelSize") or (3, 3))
    return (a("outputChannels"), a("kernelChannels"), *kernel)


def _deconv(a: Attrs) -> tuple[int, ...]:
    return (a("kernelChannels"), a("outputChannels") // (a("nGroups") or 1), *(a("kernelSize") or (3, 3)))


def _conv3d(a: Attrs) -> tuple[int, ...]:
    kernel = tuple(a(f"kernel{k}") for k in ("Depth", "Height", "Width"))
    return (a("outputChannels"), a("inputChannels") // (a("nGroups") or 1), *kernel)


def _deconv3d(a: Attrs) -> tuple[int, ...]:
    kernel = tuple(a(f"kernel{k}") for k in ("Depth", "Height", "Width"))
    return (a("inputChannels"), a("outputChannels") // (a("nGroups") or 1), *kernel)


def _matrix(rows: str, columns: str) -> Callable[[Attrs], tuple[int, ...]]:
    return lambda a: (a(rows), a(columns))


def _vector(name: str) -> Callable[[Attrs], tuple[int, ...]]:
    return lambda a: (a(name),)


def _shape(name: str) -> Callable[[Attrs], tuple[int, ...]]:
    return lambda a: tuple(a(name))


def _given_statistic(a: Attrs) -> tuple[int, ...] | None:
    return None if a("computeMeanVar") else (a("channels"),)  # beside computed ones they are ignored


SHAPES: dict[tuple[str, str], Callable[[Attrs], tuple[int, ...] | None]] = {
    ("convolution", "weights"): _conv,
    ("convolution.isDeconvolution", "weights"): _deconv,
    ("convolution3d.isDeconvolution", "weights"): _deconv3d,
    ("convolution3d", "weights"): _conv3d,
    ("innerProduct", "weights"): _matrix("outputChannels", "inputChannels"),
    ("embedding", "weights"): _matrix("outputChannels", "inputDim"),
    ("embeddingND", "weights"): _matrix("embeddingSize", "vocabSize"),
    ("batchedMatmul", "weights"): _matrix("weightMatrixSecondDimension", "weightMatrixFirstDimension"),
    ("scale", "scale"): _shape("shapeScale"),
    ("scale", "bias"): _shape("shapeBias"),
    ("bias", "bias"): _shape("shape"),
    ("loadConstant", "data"): _shape("shape"),
    ("loadConstantND", "data"): _shape("shape"),
    ("layerNormalization", "gamma"): _shape("normalizedShape"),
    ("layerNormalization", "beta"): _shape("normalizedShape"),
    ("embeddingND", "bias"): _vector("embeddingSize"),
    ("batchedMatmul", "bias"): _vector("weightMatrixSecondDimension"),
    **{(f"convolution{k}", "bias"): _vector("outputChannels") for k in ("", "3d")},
    **{(f"convolution{k}.isDeconvolution", "bias"): _vector("outputChannels") for k in ("", "3d")},
    **{(op, "bias"): _vector("outputChannels") for op in ("innerProduct", "embedding")},
    **{("batchnorm", slot): _vector("channels") for slot in ("gamma", "beta")},
    **{("batchnorm", slot): _given_statistic for slot in ("mean", "variance")},
}
# of the recurrent layers, by how their names end
_OF_A_CELL = {
    "WeightMatrix": _matrix("outputVectorSize", "inputVectorSize"),
    "RecursionMatrix": _matrix("outputVectorSize", "outputVectorSize"),
    "BiasVector": _vector("outputVectorSize"),
    "PeepholeVector": _vector("outputVectorSize"),
}


def cell_part(slot: str) -> str | None:
    """Which part of a recurrent cell a slot holds: what its name ends with."""
    return next((end for end in _OF_A_CELL if slot.lower().endswith(end.lower())), None)


def stored_shape(op: str, slot: str, attr: Attrs) -> tuple[int, ...] | None:
    """Shape of a weight by the layer's other parameters; None where it is a vector of any length."""
    fn = SHAPES.get((op, slot))
    if fn is None and (part := cell_part(slot)) is not None:
        fn = _OF_A_CELL[part]
    return None if fn is None else fn(attr)


def fitted(v: np.ndarray, op: str, slot: str, attr: Attrs) -> np.ndarray:
    """The numbers of a weight in the shape that the layer's other parameters state.

    Raises RuleError "weight-count:<slot>" where there are more or fewer.
    """
    shape = stored_shape(op, slot, attr)
    if shape is None or v.shape == shape:
        return v
    if v.size != math.prod(shape):
        raise RuleError(f"weight-count:{slot}", f"{v.size} numbers, {op} states {list(shape)}")
    return v.reshape(shape)


def misquantised(dtype: DType, quant: Any) -> str | None:
    """What is wrong with the quantisation of a weight: what was expected and what came."""
    if dtype is I8:
        scale = quant.get("scale") if isinstance(quant, dict) and quant.keys() == {"bits", "scale"} else None
        if scale is None or quant["bits"] != 8 or len(scale) != 1 or type(scale[0]) not in (float, int):
            return f"expected 8 bits and one scale of a weight of i8, got {quant!r}"
        return None
    if dtype is not U8:
        return f"expected a weight of u8 or i8, got {dtype}"
    forms = ({"bits", "scale", "bias"}, {"bits", "lut"})
    if not isinstance(quant, dict) or set(quant) not in forms:
        return f"expected bits with scale and bias, or with lut, got {quant!r}"
    bits = quant["bits"]
    if type(bits) is not int or not 1 <= bits <= 8:
        return f"bits: expected 1 to 8, got {bits!r}"
    for name in ("scale", "bias", "lut"):
        numbers = quant.get(name, [0.0])
        if not isinstance(numbers, list) or not all(type(x) in (float, int) for x in numbers):
            return f"{name}: expected numbers, got {numbers!r}"
    if "lut" in quant and len(quant["lut"]) != 1 << bits:
        return f"lut: expected {1 << bits} numbers, got {len(quant['lut'])}"
    return None


def message(array: np.ndarray, quant: dict[str, Any] | None) -> Message:
    """WeightParams of an array: f32, f16, or u8 or i8 with ``quant``."""
    if array.dtype == np.int8 and quant is not None:
        scale = {"scale": np.asarray(quant["scale"], np.float32)}
        return {"int8RawValue": array.tobytes(), "quantization": {"numberOfBits": 8, "linearQuantization": scale}}
    if quant is not None:
        bits = quant["bits"]
        body: Message = {"numberOfBits": bits}
        if "lut" in quant:
            body["lookupTableQuantization"] = {"floatValue": np.asarray(quant["lut"], np.float32)}
        else:
            body["linearQuantization"] = {
                "scale": np.asarray(quant["scale"], np.float32),
                "bias": np.asarray(quant["bias"], np.float32),
            }
        return {"rawValue": pack_bits(array, bits), "quantization": body}
    if array.dtype == np.float16:
        return {"float16Value": array.tobytes()}
    return {"floatValue": np.asarray(array, np.float32).ravel()}


def pack_bits(values: np.ndarray, bits: int) -> bytes:
    """``bits`` of every element, most significant bit first, no gaps, the last byte filled with zeros."""
    shifts = np.arange(bits - 1, -1, -1, dtype=np.uint8)
    return np.packbits((values.ravel()[:, None].astype(np.uint8) >> shifts) & 1).tobytes()


def unpack_bits(raw: bytes, bits: int, count: int) -> np.ndarray:
    """Inverse of ``pack_bits``.  Raises FormatError when there are too few bytes."""
    flat = np.unpackbits(np.frombuffer(raw, np.uint8))
    if flat.size < count * bits:
        raise FormatError(f"weights: {len(raw)} bytes hold fewer than {count} elements of {bits} bits")
    weights = 1 << np.arange(bits - 1, -1, -1)
    return (flat[: count * bits].reshape(count, bits) @ weights).astype(np.uint8)


def groups_of(op: str, attr: Attrs) -> int:
    """Of a deconvolution, whose weights [in, out / groups, ...] have the output channel second: its groups; else 0."""
    return (attr("nGroups") or 1) if op.endswith(".isDeconvolution") else 0


def dequantise(codes: np.ndarray, quant: dict[str, Any], groups: int = 0) -> np.ndarray:
    """Float32 values of a quantised weight: table[q], or scale * q + bias of the output channel, rounded once.

    The channel is the first axis, or (groups) that of a deconvolution.  Raises RuleError "scale-per-channel", and
    "codes-in-range" where ``quant`` says how many bits they have and one has more.
    """
    if codes.dtype == np.int8:
        return (codes * float(np.float32(quant["scale"][0]))).astype(np.float32)
    if codes.size and int(codes.max()) >> quant.get("bits", 8):
        raise RuleError("codes-in-range", f"expected codes of {quant['bits']} bits, got {int(codes.max())}")
    if "lut" in quant:
        return np.asarray(quant["lut"], np.float32)[codes]
    n, m = (*codes.shape, 1, 1)[:2]
    if groups and n % groups == 0:
        channel = (np.arange(n) // (n // groups) * m)[:, None] + np.arange(m)
        channel = channel.reshape(n, m, *(1,) * (codes.ndim - 2))
    else:
        channel = np.arange(n).reshape(n, *(1,) * (codes.ndim - 1))
    scale, bias = (np.asarray(np.float32(quant[k]), np.float64).reshape(-1) for k in ("scale", "bias"))
    for v in (scale, bias):
        if v.size not in (1, channel.max() + 1):
            raise RuleError("scale-per-channel", f"{v.size} numbers, expected 1 or {channel.max() + 1}")
    scale, bias = (v if v.size == 1 else v[channel] for v in (scale, bias))
    return (codes.astype(np.float64) * scale + bias).astype(np.float32)


def _signed(w: Message, shape: tuple[int, ...] | None, where: str) -> np.ndarray:
    """Weights of a layer that quantises its input dynamically: int8 numbers times one scale, without a bias.

    Raises RuleError "int8-weights" for another number of bits or scales, or a bias, FormatError as ``array`` does."""
    q = w["quantization"]
    linear = q.get("linearQuantization", {})
    scale = np.asarray(linear.get("scale", ()), np.float64).reshape(-1)
    if q.get("numberOfBits") != 8 or scale.size != 1 or len(linear.get("bias", ())):
        raise RuleError("int8-weights", f"{where}: expected 8 bits, one scale and no bias, got {q}")
    codes = np.frombuffer(w["int8RawValue"], np.int8)
    if shape is not None and codes.size != int(np.prod(shape, dtype=np.int64)):
        raise FormatError(f"{where}: {codes.size} values for shape {list(shape)}")
    return (codes * scale[0]).astype(np.float32).reshape(codes.shape if shape is None else shape)


def array(w: Message, shape: tuple[int, ...] | None, where: str, groups: int = 0) -> np.ndarray:
    """Float32 array of a WeightParams message.  shape: None is a vector of as many values as there are.  groups: as
    ``groups_of`` says.

    Raises FormatError when the number of values does not fit the shape.
    """
    count = None if shape is None else int(np.prod(shape, dtype=np.int64))
    if "quantization" in w:
        q = w["quantization"]
        if "int8RawValue" in w:
            return _signed(w, shape, where)
        bits = q["numberOfBits"]
        n = len(w["rawValue"]) * 8 // bits if count is None else count
        codes = unpack_bits(w["rawValue"], bits, n).reshape(n if shape is None else shape)
        linear = q.get("linearQuantization")
        if linear is None:
            return dequantise(codes, {"lut": q["lookupTableQuantization"]["floatValue"]})
        return dequantise(codes, {"scale": linear["scale"], "bias": linear.get("bias", [0.0])}, groups)
    if "float16Value" in w:
        flat = np.frombuffer(w["float16Value"], "<f2").astype(np.float32)
    else:
        flat = np.asarray(w.get("floatValue", ()), np.float32)
    if count is not None and flat.size != count:
        raise FormatError(f"{where}: {flat.size} values for shape {list(shape or ())}")
    return flat if shape is None else flat.reshape(shape)
