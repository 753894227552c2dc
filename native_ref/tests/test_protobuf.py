"""The writer of protobuf messages against the wire format's definition, byte for byte."""

from __future__ import annotations

import struct
from typing import Any

import pytest

import native_ref as native


def varint(n: int) -> bytes:
    n %= 1 << 64
    out = []
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def field(number: int, v: Any) -> bytes:
    if v is None:
        return b""
    if isinstance(v, list):
        return b"".join([field(number, x) for x in v])
    if isinstance(v, int):
        return varint(number << 3) + varint(v)
    if isinstance(v, float):
        return varint(number << 3 | 5) + struct.pack("<f", v)
    if isinstance(v, str):
        v = v.encode("utf-8", "surrogateescape")
    body = plain(v) if isinstance(v, tuple) else v
    return varint(number << 3 | 2) + varint(len(body)) + body


def plain(form: tuple[Any, ...]) -> bytes:
    return b"".join([field(form[i], form[i + 1]) for i in range(0, len(form), 2)])


NUMBERS = [0, 1, 127, 128, 1 << 32, (1 << 63) - 1, (1 << 64) - 1, -1, -(1 << 63), True]


@pytest.mark.parametrize(
    "value",
    [
        *NUMBERS,
        0.0,
        -0.0,
        1.5,
        1e-45,
        0.1,
        float("inf"),
        float("nan"),
        "",
        "a",
        "é\n",
        "\udcff",
        b"",
        b"\x00\xff",
        (),
        None,
        (1, ()),
        (1, None),
        [],
        [1, -1],
        ["a", ""],
        [(), (3, 2.5)],
        (2, ["x" * 100] * 3),
    ],
)
def test_every_form(value: Any) -> None:
    for number in (1, 15, 16, 20, 1 << 28):
        assert native.protobuf((number, value, 1, 2)) == plain((number, value, 1, 2))


@pytest.mark.parametrize("n", [120, 123, 124, 125, 126, 127, 128, 16380, 16381, 16382, 16383, 16384, 3 << 20])
def test_lengths_that_take_more_bytes(n: int) -> None:
    form = (1, (2, (3, b"x" * n, 4, 5), 6, "after"), 7, "end")
    assert native.protobuf(form) == plain(form)


def test_packed_integers() -> None:
    assert native.varints(NUMBERS) == b"".join([varint(n) for n in NUMBERS])
    assert native.varints([]) == b""


def test_what_is_no_message() -> None:
    for form in ((1,), (1, object()), (1, [[1]]), (1, {}), ("a", 1), (1, (2,))):
        with pytest.raises((TypeError, ValueError)):
            native.protobuf(form)
    for form in ((1, 1 << 64), (1, -(1 << 63) - 1), (1, 1e300)):
        with pytest.raises(OverflowError):
            native.protobuf(form)
    with pytest.raises(OverflowError):
        native.varints([1 << 64])
