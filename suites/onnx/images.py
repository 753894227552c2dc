"""Pictures as ImageDecoder-20 names them: bytes -> pixels, and what its text leaves open about them.

Pillow decodes.  This file decides what the pixels mean, from the formats' own definitions: it looks up a palette,
scales one bit and 16 bits to eight, and sets alpha aside.  Open are: alpha that is not opaque, 16 bits that are no
multiple of 257, orientation, several pictures, the lossy forms of WebP and JPEG 2000.

How far two decoders of a JPEG may be apart:

* The inverse cosine transform: its arithmetic is stated nowhere (ITU-T T.81 leaves it to the tests of T.83).  We take
  the peak error of IEEE 1180-1990: a sample is at most 1 off the exact one.  So two decoders are at most 2 apart.  Ours
  is one of them; ``test_image.py`` holds it to that.
* The upsampling of chroma: the text states it.  It takes mixtures, which keep the distance.  Where it goes both ways,
  the text does not say whether to round once or twice.  That may be half one way and half the other: 3.
* The colours: with c for that distance, the equations of JFIF (ITU-T T.871) make it 2 + 1.402 c in red, 2 + 1.058 c in
  green and 2 + 1.772 c in blue.

T.83 lets a decoder be farther off.  One that is may be listed as an ambiguity.
"""

from __future__ import annotations

import io
import math
import struct
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from harness.core.errors import RuleError, UsageError

Array = np.ndarray
FORMATS = ("BMP", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
_ORIENTATION = 0x0112
_DEEP = ("I;16", "I;16L", "I;16B", "I;16N")


@dataclass(frozen=True, eq=False)
class Picture:
    """pixels: u8 [height, width, 1 or 3], red first, read-only.  silent: what the text does not decide, or None.
    steps: how far another decoder may be, one number a channel; zeros where nothing is lost."""

    pixels: Array
    underspecified: str | None
    steps: tuple[int, ...]


@lru_cache(maxsize=64)
def read(b: bytes) -> Picture | None:
    """What is in a stream, None where it cannot be decoded.  Raises RuleError where it is decoded and the samples have
    no meaning as grey or red, green and blue that anything states (CMYK, 32 bits)."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of what it then refuses
            im = Image.open(io.BytesIO(b), formats=FORMATS)
            underspecified = _scaled(im) or _open_questions(im, b)  # in this order: to look for EXIF may load a PNG
            if im.format == "JPEG2000" and b.rfind(b"\xff\xd9") < _codestream(b):
                return None  # no end of codestream (T.800, A.4.4): OpenJPEG may give what is missing as zeros
            im.load()
    except (OSError, SyntaxError, ValueError, IndexError, EOFError, struct.error):
        _whole()
        return None
    pixels, why = _pixels(im)
    pixels.flags.writeable = False
    return Picture(pixels, underspecified or why, _steps(im))


def _whole() -> None:
    """Raises UsageError where Pillow was built without a codec: a stream would seem undecodable that is not."""
    from PIL import features

    missing = [n for n in ("jpg", "jpg_2000", "libtiff", "webp", "zlib") if not features.check(n)]
    if missing:
        raise UsageError(f"ImageDecoder needs a Pillow that was built with {', '.join(missing)}")


def _scaled(im: Any) -> str | None:
    """Samples that are scaled to eight bits while they are read, and not evenly; to be asked before that."""
    for tile in im.tile:
        args = tile.args if isinstance(tile.args, tuple) else (tile.args,)
        top = args[-1] if tile.codec_name.startswith("ppm") and isinstance(args[-1], int) else 255
        if ";16" in str(args[0]) and im.mode not in _DEEP and im.mode != "I":
            return "colours of 16 bits as 8"
        if 255 % top and (top != 65535 or im.mode == "RGB"):
            return f"samples of up to {top} as 8 bits"
    return None


def _pixels(im: Any) -> tuple[Array, str | None]:
    """Samples of eight bits, and what is open about them."""
    if im.mode in _DEEP or (im.mode == "I" and im.format == "PPM"):
        x = np.asarray(im).astype(np.int64)
        return ((2 * x + 257) // 514).astype(np.uint8)[..., None], "16 bits as 8" if (x % 257).any() else None
    if im.mode not in ("1", "L", "LA", "P", "PA", "RGB", "RGBA"):
        raise RuleError("decodable", f"nothing states what samples of {im.mode} are in red, green and blue")
    grey = im.mode in ("1", "L", "LA")
    if "A" in im.mode or "transparency" in im.info:
        x = np.array(im.convert("LA" if im.mode == "LA" else "RGBA"))
        underspecified = "alpha" if (x[..., -1] != 255).any() else None
        return np.ascontiguousarray(x[..., : 1 if grey else 3]), underspecified
    x = np.array(im.convert("L" if grey else "RGB"))
    return x[..., None] if grey else x, None


def _open_questions(im: Any, b: bytes) -> str | None:
    if im.getexif().get(_ORIENTATION, 1) != 1:
        return "orientation: as stored, or turned"
    if getattr(im, "n_frames", 1) > 1:
        return "which of several pictures"
    if im.format == "WEBP" and b"VP8L" not in _chunks(b):
        return "lossy WebP: how chroma is upsampled"
    if im.format == "JPEG2000" and not _reversible(b):
        return "irreversible JPEG 2000: how the wavelet transform is rounded"
    if im.format == "TIFF" and "jpeg" in str(im.info.get("compression")):
        return "JPEG within TIFF: how it is rounded"
    if im.format == "JPEG":
        across, down = _ratios(im)
        if max(across, down) > 2:
            return "chroma upsampled by more than 2"
        if across == 2 and im.width <= 4:
            return "chroma of one or two columns: by the formula, or as libjpeg-turbo does it, repeated"
    return None


def _chunks(b: bytes) -> list[bytes]:
    """Names of the chunks of a RIFF file."""
    at, names = 12, []
    while at + 8 <= len(b):
        names.append(b[at : at + 4])
        at += 8 + (int.from_bytes(b[at + 4 : at + 8], "little") + 1) // 2 * 2
    return names


def _codestream(b: bytes) -> int:
    """Where a JPEG 2000 codestream begins, with or without boxes round it."""
    return b.find(b"\xff\x4f\xff\x51")


def _reversible(b: bytes) -> bool:
    """Does a JPEG 2000 stream use the 5-3 transform?  (ITU-T T.800, A.6.1: the last byte of COD's fixed part)"""
    at = b.find(b"\xff\x52", _codestream(b))
    return b[at + 13 : at + 14] == b"\1"


def _ratios(im: Any) -> tuple[int, int]:
    """By how much chroma is upsampled across and down."""
    factors = [(h, v) for _, h, v, _ in im.layer]
    return tuple(max(f[i] for f in factors) // min(f[i] for f in factors) for i in (0, 1))


def _steps(im: Any) -> tuple[int, ...]:
    if im.format != "JPEG":
        return (0,)
    if im.mode == "L":
        return (2,)
    c = 3 if min(_ratios(im)) > 1 else 2
    return tuple(math.ceil(2 + k * c) for k in (1.402, 0.344136 + 0.714136, 1.772))
