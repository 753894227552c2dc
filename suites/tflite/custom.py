"""Custom operators that the tfl dialect names: how a file says them.

The operator code is CUSTOM with a name, and the options are bytes of the operator's own making:

    MaxPoolingWithArgmax2D, MaxUnpooling2D   C struct TfLitePoolParams: six i32, then padding that the kernel computes
    Convolution2DTransposeBias               C struct TfLiteTransposeConvParams: three i32 that are read
    NumericVerify                            a FlexBuffer map

Source: google-ai-edge/mediapipe, mediapipe/util/tflite/operations; tensorflow/lite/core/c/builtin_op_data.h;
tensorflow/lite/kernels/numeric_verify.cc; custom_options of tensorflow/compiler/mlir/lite/tests/ops.mlir.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flatbuffers import flexbuffers

from harness.core.errors import FormatError, Unsupported

_PADDING = {"SAME": 1, "VALID": 2}  # TfLitePadding
_ACTIVATION = {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3, "TANH": 4, "SIGN_BIT": 5}  # TfLiteFusedActivation
_ENUMS = {"padding": _PADDING, "fused_activation_function": _ACTIVATION}

Attrs = dict[str, Any]


@dataclass(frozen=True)
class Struct:
    """Options that are a C struct: i32 fields in order.  size: bytes that are written, zeros at the end."""

    name: str
    fields: tuple[str, ...]
    size: int

    def pack(self, attrs: Attrs) -> bytes:
        numbers = [self._number(f, attrs.get(f)) for f in self.fields]
        return struct.pack(f"<{len(numbers)}i", *numbers).ljust(self.size, b"\0")

    def _number(self, field: str, value: Any) -> int:
        members = _ENUMS.get(field)
        if members is None or value is None:
            return int(value or 0)
        return members.get(value, max(members.values()) + 1)  # past the end: a member that does not exist

    def unpack(self, data: bytes) -> Attrs:
        """Raises FormatError for too few bytes and for members that do not exist."""
        n = len(self.fields)
        if len(data) < 4 * n:
            raise FormatError(f"custom_options: expected at least {4 * n} bytes of {self.name}, got {len(data)}")
        out: Attrs = dict(zip(self.fields, struct.unpack_from(f"<{n}i", data)))
        for field, members in _ENUMS.items():
            if field in out:
                known = {v: k for k, v in members.items()}
                if out[field] not in known:
                    raise FormatError(
                        f"custom_options.{field}: expected {' or '.join(members)}, got number {out[field]}"
                    )
                out[field] = known[out[field]]
        return out


@dataclass(frozen=True)
class Flex:
    """Options that are a FlexBuffer map of these names and types."""

    fields: dict[str, type]
    defaults: Attrs

    def pack(self, attrs: Attrs) -> bytes:
        return bytes(flexbuffers.Dumps({k: t(attrs.get(k, self.defaults[k])) for k, t in self.fields.items()}))

    def unpack(self, data: bytes) -> Attrs:
        """Raises FormatError for what is no such map."""
        try:
            found = flexbuffers.Loads(data)
        except Exception as e:  # the reader has no errors of its own: IndexError, ValueError, struct.error, ...
            raise FormatError(f"custom_options: expected a FlexBuffer map, got {len(data)} bytes that are none") from e
        if not isinstance(found, dict):
            raise FormatError(f"custom_options: expected a FlexBuffer map, got {found!r:.40}")
        out = {}
        for k, t in self.fields.items():
            if k in found:
                if not isinstance(found[k], (bool, int, float)):
                    raise FormatError(f"custom_options.{k}: expected a number or a truth value, got {found[k]!r:.40}")
                out[k] = t(found[k])
        return out


@dataclass(frozen=True)
class Custom:
    """A custom operator.  attributes: rows of the schema."""

    options: Struct | Flex
    attributes: tuple[dict[str, Any], ...]


def _attribute(name: str, kind: str, default: Any = None, enum: dict[str, int] | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "required": default is None,
        "default": default,
        "enum": [*enum] if enum else None,
    }


def transposed_pads(attrs: Attrs, space: Sequence[int], kernel: Sequence[int]) -> list[int]:
    """How many cells of the full result go, on each axis: half of them, rounded down, before the first."""
    if attrs["padding"] == "VALID":
        return [0] * len(space)
    strides = (attrs["stride_h"], attrs["stride_w"])
    return [max(0, k - (s - 1) % t - 1) for s, k, t in zip(space, kernel, strides)]


_PADDING_ROW = _attribute("padding", "str", enum=_PADDING)
_STRIDES = (_attribute("stride_w", "int"), _attribute("stride_h", "int"))
_POOL = Struct(
    "TfLitePoolParams",
    ("padding", "stride_w", "stride_h", "filter_width", "filter_height", "fused_activation_function"),
    40,
)
_POOL_ROWS = (
    _PADDING_ROW,
    *_STRIDES,
    _attribute("filter_width", "int"),
    _attribute("filter_height", "int"),
    _attribute("fused_activation_function", "str", "NONE", _ACTIVATION),
)
_VERIFY: dict[str, type] = {"tolerance": float, "log_if_failed": bool}
OPS: dict[str, Custom] = {
    "MaxPoolingWithArgmax2D": Custom(_POOL, _POOL_ROWS),
    "MaxUnpooling2D": Custom(_POOL, _POOL_ROWS),
    "Convolution2DTransposeBias": Custom(
        Struct("TfLiteTransposeConvParams", ("padding", "stride_w", "stride_h"), 12),
        (_PADDING_ROW, *_STRIDES),
    ),
    "NumericVerify": Custom(
        Flex(_VERIFY, {"tolerance": 0.1, "log_if_failed": False}),
        (_attribute("tolerance", "float", 0.1), _attribute("log_if_failed", "bool", False)),
    ),
}


def pack(op: str, attrs: Attrs) -> bytes:
    """The bytes of an operator's options; private attributes (``@...``) left out.

    Raises Unsupported for an option that the operator has not."""
    named = {k: v for k, v in attrs.items() if k[0] != "@"}
    known = {a["name"] for a in OPS[op].attributes}
    if named.keys() - known:
        raise Unsupported(f"{op} has no option {sorted(named.keys() - known)[0]}")
    return OPS[op].options.pack(named)


def unpack(op: str, data: bytes) -> Attrs:
    """Inverse of ``pack``; raises FormatError."""
    return OPS[op].options.unpack(data)
