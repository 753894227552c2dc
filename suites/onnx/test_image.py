"""ImageDecoder: pixels out of streams that are written here by hand, what Pillow wrote, and how near it reads JPEG."""

from __future__ import annotations

import math
import subprocess
import sys
import zlib

import numpy as np
import pytest

from harness.core.dtypes import U8
from harness.core.errors import RuleError
from harness.core.instance import Arg, Instance
from suites.onnx import dialect
from suites.onnx.images import read
from suites.onnx.ops.image import _FORMS, _OPEN, encoded
from suites.onnx.plain_jpeg import interpolated, pixels, repeated

RED, GREEN = (255, 0, 0), (0, 255, 1)


def given(data: bytes, **attrs: object) -> tuple[Instance, dict[str, np.ndarray]]:
    inst = Instance("onnx", "ImageDecoder", 20, 20, dict(attrs), {"encoded_stream": Arg(U8, (len(data),))})
    return inst, {"encoded_stream": np.frombuffer(data, np.uint8)}


def decoded(data: bytes, **attrs: object) -> np.ndarray:
    return dialect.evaluate(*given(data, **attrs))[0].value


def left_open(data: bytes) -> str | None:
    found = read(data)
    assert found is not None
    return found.underspecified


PPM = b"P6 2 1\n255\n" + bytes(RED + GREEN)
BMP = (
    b"BM"
    + (62).to_bytes(4, "little")
    + b"\0\0\0\0"
    + (54).to_bytes(4, "little")
    + (40).to_bytes(4, "little")
    + (2).to_bytes(4, "little")
    + (1).to_bytes(4, "little")
    + b"\1\0\x18\0"
    + b"\0" * 24
    + bytes(RED[::-1] + GREEN[::-1])
    + b"\0\0"
)


def png(lines: bytes, w: int, h: int, colour: int, depth: int = 8, **others: bytes) -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + name + body + zlib.crc32(name + body).to_bytes(4, "big")

    head = w.to_bytes(4, "big") + h.to_bytes(4, "big") + bytes([depth, colour, 0, 0, 0])
    between = b"".join(chunk(n.encode(), b) for n, b in others.items())
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + between
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )


def tiff(data: bytes, w: int, h: int, samples: int) -> bytes:
    """Little-endian, one strip, eight bits, 1 sample (black is 0) or 3."""
    tags = {256: w, 257: h, 258: 8, 259: 1, 262: 2 if samples == 3 else 1, 273: 8, 277: samples, 278: h, 279: len(data)}
    entries = [t.to_bytes(2, "little") + b"\4\0" + b"\1\0\0\0" + v.to_bytes(4, "little") for t, v in tags.items()]
    if samples == 3:  # three of BitsPerSample do not fit into its entry
        at = 8 + len(data) + 6 + 12 * len(tags)
        entries[2] = (258).to_bytes(2, "little") + b"\3\0" + b"\3\0\0\0" + at.to_bytes(4, "little")
    folder = len(tags).to_bytes(2, "little") + b"".join(entries) + b"\0\0\0\0"
    return b"II*\0" + (8 + len(data)).to_bytes(4, "little") + data + folder + b"\x08\0" * 3


PALETTE = png(b"\0\1\2", 2, 1, 3, PLTE=bytes((9, 9, 9, *RED, *GREEN)))


@pytest.mark.parametrize(
    "data",
    [
        PPM,
        BMP,
        png(b"\0" + bytes(RED + GREEN), 2, 1, 2),
        PALETTE,
        tiff(bytes(RED + GREEN), 2, 1, 3),
        b"P3 2 1 255 255 0 0 0 255 1",
    ],
    ids=["ppm", "bmp", "png", "palette", "tiff", "plain"],
)
def test_red_and_green(data: bytes) -> None:
    assert decoded(data).tolist() == [[list(RED), list(GREEN)]]
    assert decoded(data, pixel_format="BGR").tolist() == [[list(RED[::-1]), list(GREEN[::-1])]]
    # BT.601: 0.299 * 255, 0.587 * 255 + 0.114
    assert decoded(data, pixel_format="Grayscale").tolist() == [[[76], [150]]]
    assert left_open(data) is None


@pytest.mark.parametrize(
    ("data", "grey"),
    [
        (b"P5 2 1 255\n\x07\xf0", [7, 240]),
        (b"P2 2 1 15 1 15", [17, 255]),
        (b"P4 2 1\n\x40", [255, 0]),
        (b"P1 2 1 0 1", [255, 0]),
        (tiff(b"\7\xf0", 2, 1, 1), [7, 240]),
        (png(b"\0\x1b", 4, 1, 0, 2), [0, 85, 170, 255]),
        (png(b"\0\x40", 2, 1, 0, 1), [0, 255]),
        (png(b"\0\7\7\xff\xff", 2, 1, 0, 16), [7, 255]),
        (b"P5 2 1 65535\n\7\7\xff\xff", [7, 255]),
        (png(b"\0\7\xff\xf0\xff", 2, 1, 4), [7, 240]),
    ],
    ids=["pgm", "fifteen", "pbm", "bits", "tiff", "png-2", "png-1", "png-16", "pgm-16", "png-alpha"],
)
def test_grey(data: bytes, grey: list[int]) -> None:
    """One channel, or three equal ones."""
    assert decoded(data, pixel_format="Grayscale")[0].tolist() == [[v] for v in grey]
    assert decoded(data)[0].tolist() == [[v] * 3 for v in grey]
    assert left_open(data) is None


@pytest.mark.parametrize(
    ("kind", "second"), [(0, [7, 9, 4]), (1, [7, 2, 251]), (2, [2, 3, 252]), (3, [5, 3, 252]), (4, [2, 2, 251])]
)
def test_png_filters(kind: int, second: list[int]) -> None:
    """Rows 5 6 8 and 7 9 4, the second one filtered by hand."""
    got = decoded(png(bytes([0, 5, 6, 8, kind, *second]), 3, 2, 0), pixel_format="Grayscale")
    assert got[..., 0].tolist() == [[5, 6, 8], [7, 9, 4]]


def _mosaic(seed: int, h: int, w: int, tile: int = 1) -> np.ndarray:
    tiles = np.random.RandomState(seed).randint(0, 256, (-(-h // tile), -(-w // tile), 3))
    return np.kron(tiles, np.ones((tile, tile, 1), int))[:h, :w].astype(np.uint8)


FORMS = [(f, m, how) for f, modes, how in _FORMS for m in modes.split()]


@pytest.mark.parametrize(
    ("form", "mode", "how"), FORMS, ids=lambda v: "-".join(map(str, v)) if isinstance(v, dict) else v
)
def test_what_was_written_comes_back(form: str, mode: str, how: dict[str, object]) -> None:
    for seed, (h, w) in enumerate([(1, 1), (2, 5), (6, 3), (4, 9)]):
        if form == "JPEG":
            w += 4
        x = _mosaic(seed, h, w)
        data = encoded(form, mode, how, x)
        assert left_open(data) is None
        want = x if mode in ("RGB", "RGBA", "P") else np.repeat(x[:, :, :1], 3, 2)
        want = np.where(want > 127, np.uint8(255), np.uint8(0)) if mode == "1" else want
        got = decoded(data)
        if form == "JPEG":
            assert got.shape == want.shape
        else:
            assert np.array_equal(got, want)
        for n in range(0, len(data) // 2 if "compression" not in how else 0, 7):  # libtiff would talk to stderr
            assert read(data[:n]) is None


@pytest.mark.parametrize(
    ("form", "mode", "how"), [(f, m, how) for f, m, how in _OPEN], ids=[f"{f}-{m}" for f, m, _ in _OPEN]
)
def test_what_the_text_leaves_open(form: str, mode: str, how: dict[str, object]) -> None:
    assert left_open(encoded(form, mode, how, _mosaic(1, 8, 8)))


@pytest.mark.parametrize(
    "data", [png(b"\0\7\1", 1, 1, 0, 16), b"P5 1 1 100\n\x32", png(bytes(7), 1, 1, 2, 16), b"P6 1 1 65535\n" + bytes(6)]
)
def test_uneven_scales_are_open(data: bytes) -> None:
    assert left_open(data)


@pytest.mark.parametrize("quality", [100, 75, 30])
@pytest.mark.parametrize(("mode", "subsampling", "chroma"), [("L", 0, 0), ("RGB", 0, 1), ("RGB", 1, 1), ("RGB", 2, 2)])
def test_jpeg_is_read_as_near_as_we_take_it_to(mode: str, subsampling: int, chroma: int, quality: int) -> None:
    """One off in luma and chroma, two where chroma is rounded once or twice, through the equations of colour."""
    near, apart = (
        [s + k * c for k in (1.402, 1.058272, 1.772)[: 3 if chroma else 1]]
        for s, c in ((1, chroma), (2, chroma and chroma + 1))
    )
    for seed in range(6):
        h, w = np.random.RandomState(seed).randint(5, 34, 2)
        how = {"subsampling": subsampling, "quality": quality, "optimize": bool(seed % 2)}
        data = encoded("JPEG", mode, how, _mosaic(seed, h, w, 1 + seed))
        found, exact = read(data), pixels(data)
        assert found is not None
        assert found.underspecified is None
        assert (np.abs(found.pixels - exact) <= np.array(near) + 0.5).all()
        assert found.steps == tuple(map(math.ceil, apart))


def test_repeated_chroma_is_distinguished_from_interpolated() -> None:
    """Beyond what is allowed, and libjpeg-turbo itself repeats chroma that is narrow."""
    wide, narrow = (encoded("JPEG", "RGB", {"subsampling": 1, "quality": 100}, _mosaic(3, 9, w, 2)) for w in (17, 4))
    found = read(wide)
    assert found is not None
    assert (np.abs(found.pixels - pixels(wide, repeated)) > np.array(found.steps) + 1).any()
    assert "columns" in str(left_open(narrow))


def test_interpolation_of_chroma() -> None:
    """B0 = round_half_down(A / 4 + 3 B / 4), B1 = round_half_up(3 B / 4 + C / 4)."""
    assert interpolated(np.array([[1.0, 3, 4]])).tolist() == [[1, 2, 2, 3, 4, 4]]


@pytest.mark.parametrize("data", [b"", b"GIF89a", PPM[:-1], b"P6 x", b"\x89PNG\r\n\x1a\n\0\0\0\1IHDR", bytes(40)])
def test_what_cannot_be_decoded_is_empty(data: bytes) -> None:
    assert decoded(data).shape == (0, 0, 3)
    assert decoded(data, pixel_format="Grayscale").shape == (0, 0, 1)


def test_other_pixel_formats_break_a_rule() -> None:
    with pytest.raises(RuleError, match="pixel-format"):
        decoded(PPM, pixel_format="RGBA")


def test_neighbours_are_allowed_in_jpeg_alone() -> None:
    for data, most in ((encoded("JPEG", "RGB", {"subsampling": 0}, _mosaic(1, 8, 8)), (5, 5, 6)), (PPM, (0, 0, 0))):
        inst, args = given(data, pixel_format="BGR")
        (want,) = dialect.evaluate(inst, args)
        middle = np.clip(want.value.astype(int), 10, 240)  # room on either side
        ctx = want.context()
        ctx.wide = middle
        for channel, steps in enumerate(most[::-1]):
            for off in (steps, -steps, steps + 1, -steps - 1):
                moved = middle.copy()
                moved[..., channel] += off
                assert want.error.fn(ctx, moved.astype(np.uint8)).all() == (abs(off) <= steps)


def test_pillow_is_loaded_for_pictures_alone() -> None:
    code = "import sys, suites.onnx as s; s.dialect.entries; print('PIL' in sys.modules)"
    got = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert got.stdout.split() == ["False"]
