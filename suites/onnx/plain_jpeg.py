"""A baseline JPEG decoder out of the definitions, in double precision, to measure the one that the reference uses.

ITU-T T.81: markers (B), Huffman decoding (F.2), inverse DCT (A.3.3).  Chroma is upsampled as ONNX ImageDecoder-20 says,
colours are those of JFIF (ITU-T T.871).  Samples are rounded after the transform; upsampling rounds once a direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Array = np.ndarray
_K = np.arange(8)
# _BASIS[x, u] = C(u) / 2 cos((2x + 1) u pi / 16)
_BASIS = np.where(_K == 0, math.sqrt(0.5), 1.0) / 2 * np.cos((2 * _K[:, None] + 1) * _K * math.pi / 16)
# the order of coefficients: diagonals, turn by turn upwards and downwards
_ZIGZAG = sorted(((y, x) for y in range(8) for x in range(8)), key=lambda p: (sum(p), p[0] if sum(p) % 2 else p[1]))


class _Bits:
    """The entropy-coded bits of a scan, stuffed zeros left out."""

    def __init__(self, b: bytes) -> None:
        self.bits = np.unpackbits(np.frombuffer(b.replace(b"\xff\0", b"\xff"), np.uint8)).tolist()
        self.at = 0

    def take(self, n: int) -> int:
        v = 0
        for bit in self.bits[self.at : self.at + n]:
            v = 2 * v + bit
        self.at += n
        return v

    def signed(self, n: int) -> int:
        v = self.take(n)
        return v if n == 0 or v >> (n - 1) else v - (1 << n) + 1

    def symbol(self, table: dict[tuple[int, int], int]) -> int:
        code = 0
        for n in range(1, 17):
            code = 2 * code + self.take(1)
            if (n, code) in table:
                return table[n, code]
        raise ValueError("no such code")


def _tables(body: bytes, out: dict[int, dict[tuple[int, int], int]]) -> None:
    while body:
        counts, values, code = body[1:17], body[17:], 0
        table: dict[tuple[int, int], int] = {}
        for n, count in enumerate(counts, 1):
            for _ in range(count):
                table[n, code] = values[len(table)]
                code += 1
            code *= 2
        out[body[0]] = table
        body = values[len(table) :]


def planes(b: bytes) -> tuple[list[Array], list[tuple[int, int]], int, int]:
    """Samples of each component, as far as its blocks go, rounded to 0..255; factors (down, across); height and width.

    One scan, no restart markers; ValueError for what is not baseline."""
    at = 2
    quant: dict[int, list[int]] = {}
    huffman: dict[int, dict[tuple[int, int], int]] = {}
    while True:
        kind, n = b[at + 1], int.from_bytes(b[at + 2 : at + 4], "big")
        body = b[at + 4 : at + 2 + n]
        at += 2 + n
        if kind == 0xDB:
            for i in range(0, len(body), 65):
                quant[body[i]] = list(body[i + 1 : i + 65])
        elif kind == 0xC4:
            _tables(body, huffman)
        elif kind == 0xC0:
            h, w = int.from_bytes(body[1:3], "big"), int.from_bytes(body[3:5], "big")
            parts = [(body[i], (body[i + 1] & 15, body[i + 1] >> 4), body[i + 2]) for i in range(6, len(body), 3)]
        elif kind == 0xDA:
            chosen = {body[i]: body[i + 1] for i in range(1, 1 + 2 * body[0], 2)}
            break
        elif kind & 0xF0 == 0xC0:
            raise ValueError("not baseline")
    bits = _Bits(b[at : b.rindex(b"\xff\xd9")])
    factors = [f for _, f, _ in parts] if len(parts) > 1 else [(1, 1)]
    most = max(f[0] for f in factors), max(f[1] for f in factors)
    rows, columns = -(-h // (8 * most[0])), -(-w // (8 * most[1]))
    out = [np.zeros((8 * rows * f[0], 8 * columns * f[1])) for f in factors]
    last = [0] * len(parts)
    for my in range(rows):
        for mx in range(columns):
            for c, (name, _, q) in enumerate(parts):
                dc, ac = huffman[chosen[name] >> 4], huffman[16 + (chosen[name] & 15)]
                for k in range(factors[c][0] * factors[c][1]):
                    y, x = my * factors[c][0] + k // factors[c][1], mx * factors[c][1] + k % factors[c][1]
                    last[c], block = _block(bits, dc, ac, quant[q], last[c])
                    out[c][8 * y : 8 * y + 8, 8 * x : 8 * x + 8] = _BASIS @ block @ _BASIS.T + 128
    return [np.clip(np.floor(p + 0.5), 0, 255) for p in out], factors, h, w


def _block(
    bits: _Bits, dc: dict[tuple[int, int], int], ac: dict[tuple[int, int], int], q: list[int], last: int
) -> tuple[int, Array]:
    block = np.zeros((8, 8))
    last += bits.signed(bits.symbol(dc))
    block[0, 0] = last * q[0]
    k = 1
    while k < 64:
        run, size = divmod(bits.symbol(ac), 16)
        if size == 0 and run < 15:
            break
        k += run
        if size:
            block[_ZIGZAG[k]] = bits.signed(size) * q[k]
        k += 1
    return last, block


def interpolated(x: Array) -> Array:
    """Twice the columns, by the text's formula: a half is rounded down in the left one, up in the right one."""
    before, after = np.hstack([x[:, :1], x[:, :-1]]), np.hstack([x[:, 1:], x[:, -1:]])
    left, right = np.ceil((before + 3 * x) / 4 - 0.5), np.floor((3 * x + after) / 4 + 0.5)
    return np.stack([left, right], 2).reshape(len(x), -1)


def repeated(x: Array) -> Array:
    """Twice the columns, each twice: what the text does not say."""
    return np.repeat(x, 2, 1)


def pixels(b: bytes, double: Callable[[Array], Array] = interpolated) -> Array:
    """f64 [height, width, 1 or 3], red first, not rounded after the equations of colour.  double: how chroma's columns,
    and its rows turned, are doubled."""
    found, factors, h, w = planes(b)
    most = max(f[0] for f in factors), max(f[1] for f in factors)
    full = []
    for p, f in zip(found, factors, strict=True):
        p = p[: -(-h * f[0] // most[0]), : -(-w * f[1] // most[1])]
        p = double(p.T).T if f[0] < most[0] else p
        full.append((double(p) if f[1] < most[1] else p)[:h, :w])
    if len(full) == 1:
        return full[0][..., None]
    y, cb, cr = full[0], full[1] - 128, full[2] - 128
    return np.stack([y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb], 2).clip(0, 255)
