"""The pixels that ImageDecoder gives: what was written comes back, byte for byte, in every format that is drawn."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from harness.core.errors import RuleError
from harness.core.instance import Arg, Instance
from suites.onnx import dialect

RED, GREEN = (255, 0, 0), (0, 255, 1)


def decoded(data: bytes, **attrs: object) -> np.ndarray:
    from harness.core.dtypes import U8

    inst = Instance("onnx", "ImageDecoder", 20, 20, dict(attrs), {"encoded_stream": Arg(U8, (len(data),))})
    return dialect.evaluate(inst, {"encoded_stream": np.frombuffer(data, np.uint8)})[0].value


PPM = b"P6 2 1\n255\n" + bytes(RED + GREEN)
BMP = (b"BM" + (62).to_bytes(4, "little") + b"\0\0\0\0" + (54).to_bytes(4, "little") + (40).to_bytes(4, "little")
       + (2).to_bytes(4, "little") + (1).to_bytes(4, "little") + b"\1\0\x18\0" + b"\0" * 24
       + bytes(RED[::-1] + GREEN[::-1]) + b"\0\0")  # fmt: skip


def png(lines: bytes, w: int, h: int, colour: int) -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + name + body + zlib.crc32(name + body).to_bytes(4, "big")

    head = w.to_bytes(4, "big") + h.to_bytes(4, "big") + bytes([8, colour, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("data", [PPM, BMP, png(b"\0" + bytes(RED + GREEN), 2, 1, 2)], ids=["ppm", "bmp", "png"])
def test_red_and_green(data: bytes) -> None:
    assert decoded(data).tolist() == [[list(RED), list(GREEN)]]
    assert decoded(data, pixel_format="BGR").tolist() == [[list(RED[::-1]), list(GREEN[::-1])]]


@pytest.mark.parametrize("kind,second", [(0, [7, 9, 4]), (1, [7, 2, 251]), (2, [2, 3, 252]), (3, [5, 3, 252]),
                                         (4, [2, 2, 251])])  # fmt: skip
def test_png_filters(kind: int, second: list[int]) -> None:
    """Rows 5 6 8 and 7 9 4, the second one filtered by hand."""
    got = decoded(png(bytes([0, 5, 6, 8, kind, *second]), 3, 2, 0), pixel_format="Grayscale")
    assert got[..., 0].tolist() == [[5, 6, 8], [7, 9, 4]]


@pytest.mark.parametrize("data", [b"", b"GIF89a", PPM[:-1], b"P6 x", b"\x89PNG\r\n\x1a\n\0\0\0\1IHDR"])
def test_what_cannot_be_read_breaks_a_rule(data: bytes) -> None:
    with pytest.raises(RuleError):
        decoded(data)
