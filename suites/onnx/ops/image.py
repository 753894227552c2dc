"""ImageDecoder, on the formats that lose nothing: portable maps, BMP and PNG.

The pixels follow from the formats' own definitions (Netpbm's pgm and ppm, BMP with a BITMAPINFOHEADER, PNG of W3C REC
2003).  JPEG, JPEG 2000 and WebP depend on how a codec rounds, which the operator says in part for JPEG alone; they are
not drawn, nor is TIFF.  A stream that cannot be decoded gives "an empty matrix", of which rank is not said: not drawn.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.spec import Call, Draw, T, exact
from suites.onnx import op

Array = np.ndarray
_PNG = b"\x89PNG\r\n\x1a\n"


def _bad(why: str) -> RuleError:
    return RuleError("decodable", why)


# -- reading: [height, width, 1 or 3], red first


def _netpbm(b: bytes) -> Array:
    fields: list[int] = []
    at = 2
    while len(fields) < 3:
        token = b[at:].split(None, 1)[0]
        at = b.index(token, at) + len(token)
        fields.append(int(token))
    w, h, top = fields
    channels = 3 if b[:2] == b"P6" else 1
    data = b[at + 1 :]
    if top != 255 or len(data) != w * h * channels:
        raise _bad(f"{len(data)} samples of up to {top} for {w} x {h} x {channels}")
    return np.frombuffer(data, np.uint8).reshape(h, w, channels)


def _bmp(b: bytes) -> Array:
    start, size, w, h, _, bits, packed = struct.unpack("<10xIIiiHHI", b[:34])
    if size != 40 or bits != 24 or packed:
        raise _bad(f"BMP with {bits} bits, compression {packed}")
    row = (3 * w + 3) // 4 * 4
    pixels = np.frombuffer(b[start : start + row * abs(h)], np.uint8).reshape(abs(h), row)[:, : 3 * w]
    return pixels.reshape(abs(h), w, 3)[:: 1 if h < 0 else -1, :, ::-1]


def _png(b: bytes) -> Array:
    at, data = 8, b""
    w = h = kind = 0
    while at < len(b):
        (n,), name = struct.unpack(">I", b[at : at + 4]), b[at + 4 : at + 8]
        body = b[at + 8 : at + 8 + n]
        if zlib.crc32(name + body) != struct.unpack(">I", b[at + 8 + n : at + 12 + n])[0]:
            raise _bad(f"checksum of {name!r}")
        if name == b"IHDR":
            w, h, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            if depth != 8 or kind not in (0, 2) or interlaced:
                raise _bad(f"PNG of depth {depth}, colour type {kind}")
        elif name == b"IDAT":
            data += body
        at += 12 + n
    channels = 3 if kind == 2 else 1
    lines = np.frombuffer(zlib.decompress(data), np.uint8).reshape(h, 1 + w * channels)
    out = np.zeros((h, w * channels), np.uint8)
    for y, line in enumerate(lines):
        out[y] = _unfiltered(int(line[0]), line[1:], out[y - 1] if y else np.zeros_like(out[0]), channels)
    return out.reshape(h, w, channels)


def _unfiltered(kind: int, line: Array, above: Array, step: int) -> list[int]:
    row: list[int] = []
    for i, v in enumerate(line.tolist()):
        a, b, c = (row[i - step], int(above[i]), int(above[i - step])) if i >= step else (0, int(above[i]), 0)
        row.append((v + _predicted(kind, a, b, c)) & 255)
    return row


def _predicted(kind: int, a: int, b: int, c: int) -> int:
    """The five filters of PNG: none, left, above, their mean, Paeth's choice."""
    if kind < 4:
        return (0, a, b, (a + b) // 2)[kind]
    p = a + b - c
    return min((a, b, c), key=lambda v: abs(p - v))  # the first of equals, in this order


def _decode(b: bytes) -> Array:
    try:
        if b[:2] in (b"P5", b"P6"):
            return _netpbm(b)
        if b[:2] == b"BM":
            return _bmp(b)
        if b[:8] == _PNG:
            return _png(b)
    except (ValueError, IndexError, struct.error, zlib.error) as e:
        raise _bad(str(e)) from None
    raise _bad("no format that is read here")


def _image(c: Call) -> Array:
    x = _decode(c.inputs["encoded_stream"].tobytes())
    how = c.attr("pixel_format")
    if how == "Grayscale":
        return np.ascontiguousarray(x[:, :, :1])
    x = np.repeat(x, 3, 2) if x.shape[2] == 1 else x
    return np.ascontiguousarray(x[:, :, ::-1] if how == "BGR" else x)


def _weights(c: Call) -> str | None:
    x = _decode(c.inputs["encoded_stream"].tobytes())
    if c.attr("pixel_format") == "Grayscale" and x.shape[2] == 3 and (x != x[:, :, :1]).any():
        return "colours into grey: the weights are not stated"
    return None


# -- writing


def _write(d: Draw, x: Array) -> bytes:
    h, w, channels = x.shape
    form = d.int(0, 2)
    if form == 0:
        head = b"P6" if channels == 3 else b"P5"
        return head + f"\n{w} {h}\n255\n".encode() + x.tobytes()
    if form == 1:
        x = np.repeat(x, 3, 2) if channels == 1 else x
        upward = d.bool()
        rows = [r[:, ::-1].tobytes().ljust((3 * w + 3) // 4 * 4, b"\0") for r in (x[::-1] if upward else x)]
        body = b"".join(rows)
        return (b"BM" + struct.pack("<IHHI", 54 + len(body), 0, 0, 54)
                + struct.pack("<IiiHHIIiiII", 40, w, h if upward else -h, 1, 24, 0, len(body), 0, 0, 0, 0)
                + body)  # fmt: skip
    flat = x.reshape(h, w * channels).astype(int)
    lines = b""
    for y in range(h):
        kind = d.int(0, 4)
        above = flat[y - 1] if y else np.zeros_like(flat[0])
        lines += bytes([kind])
        for i, v in enumerate(flat[y]):
            a, c = (int(flat[y, i - channels]), int(above[i - channels])) if i >= channels else (0, 0)
            lines += bytes([(int(v) - _predicted(kind, a, int(above[i]), c)) & 255])
    head = struct.pack(">IIBBBBB", w, h, 8, 2 if channels == 3 else 0, 0, 0, 0)
    return _PNG + b"".join(_chunk(n, b) for n, b in ((b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")))


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _draw_image(d: Draw) -> dict[str, Any]:
    how = d.pick((None, "RGB", "BGR", "Grayscale"))
    grey = how == "Grayscale" or d.chance(4)
    h, w = d.int(1, 5), d.int(1, 5)
    x = np.array([d.int(0, 255) for _ in range(h * w * (1 if grey else 3))], np.uint8).reshape(h, w, -1)
    data = _write(d, x)
    out: dict[str, Any] = {"encoded_stream": T((len(data),), values=list(data))}
    return out if how is None else out | {"pixel_format": how}


op("ImageDecoder", evaluate=_image, error=exact(), draw=_draw_image, ambiguous=_weights, source="ONNX ImageDecoder-20")
