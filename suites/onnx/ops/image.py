"""ImageDecoder: what pixel_format makes of a picture (``suites.onnx.images`` reads it), and streams to decode.

The text's words: the result is (Height, Width, Channels), the pixel format RGB, BGR or Grayscale, so there are three
channels or one whatever the file holds.  What cannot be decoded gives an empty matrix; the shape inference of the op
says that a result has three axes, and the channels stay those of the format.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Evaluation, Sampling, T, accepted
from suites.onnx import op
from suites.onnx.images import Picture, read

Array = np.ndarray
_LUMA = (299, 587, 114)  # thousandths of red, green and blue: ITU-R BT.601, 2.5.1


def _read(c: Call) -> tuple[Picture | None, str]:
    how = c.attr("pixel_format")
    if how not in ("RGB", "BGR", "Grayscale"):
        raise RuleError("pixel-format", repr(how))
    return read(c.inputs["encoded_stream"].tobytes()), how


def _image(c: Call) -> Array:
    found, how = _read(c)
    if found is None:
        return np.zeros((0, 0, 1 if how == "Grayscale" else 3), np.uint8)
    x = found.pixels
    if how == "Grayscale":
        return x if x.shape[2] == 1 else ((x @ np.array(_LUMA) + 500) // 1000).astype(np.uint8)[..., None]
    x = np.repeat(x, 3, 2) if x.shape[2] == 1 else x
    return np.ascontiguousarray(x[:, :, ::-1] if how == "BGR" else x)


def _silent(c: Call) -> str | None:
    found, how = _read(c)
    if found is None or found.underspecified:
        return None if found is None else found.underspecified
    x = found.pixels
    if how == "Grayscale" and x.shape[2] == 3 and (x != x[:, :, :1]).any():
        return "colours into grey: the weights are not stated"
    return None


def _near(ctx: Any, actual: Array) -> Array:
    """the pixels; of JPEG within what two decoders may be apart (suites/onnx/images.py)"""
    found, how = _read(ctx.call)
    steps = np.array(found.steps if found else (0,))
    steps = steps[::-1] if how == "BGR" else steps.max() if how == "Grayscale" else steps
    return np.abs(actual.astype(np.int64) - np.asarray(ctx.wide, np.int64)) <= steps


# -- drawing: Pillow's encoders, given what the text decides but for one in a while

# format, what it is given: colours, grey, bits, a palette, opaque alpha, 16 bits; how it is written
_FORMS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("PPM", "RGB L 1 I;16", {}),
    ("BMP", "RGB L 1 P RGBA", {}),
    ("PNG", "RGB L 1 P RGBA LA I;16", {}),
    ("TIFF", "RGB L 1 RGBA LA I;16", {}),
    ("TIFF", "RGB L I;16", {"compression": "tiff_lzw"}),
    ("TIFF", "RGB L", {"compression": "packbits"}),
    ("TIFF", "RGB L RGBA", {"compression": "tiff_adobe_deflate"}),
    ("TIFF", "1", {"compression": "group4"}),
    ("WEBP", "RGB RGBA", {"lossless": True, "exact": True}),
    ("JPEG2000", "RGB L RGBA", {}),
    ("JPEG2000", "RGB L", {"no_jp2": True}),
    ("JPEG", "RGB L", {"subsampling": 0}),
    ("JPEG", "RGB", {"subsampling": 1}),
    ("JPEG", "RGB", {"subsampling": 2}),
    ("JPEG", "RGB L", {"subsampling": 2, "progressive": True}),
)
# what the text leaves open is written too, to see that a decoder lives through it
_OPEN: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("WEBP", "RGB", {}),
    ("JPEG2000", "RGB", {"irreversible": True}),
    ("PNG", "clear", {}),
    ("JPEG", "turned", {"subsampling": 0}),
)


def encoded(form: str, mode: str, how: dict[str, Any], x: Array) -> bytes:
    """A stream with the colours of ``x``, u8 [height, width, 3]; grey modes take the red channel alone."""
    from PIL import Image

    if mode in ("RGB", "turned"):
        im = Image.fromarray(x)
    elif mode == "1":
        im = Image.fromarray(x[:, :, 0] > 127)
    elif mode == "I;16":
        im = Image.fromarray(x[:, :, 0].astype(np.uint16) * 257)
    elif mode == "P":
        colours, at = np.unique(x.reshape(-1, 3), axis=0, return_inverse=True)
        im = Image.fromarray(at.reshape(x.shape[:2]).astype(np.uint8))
        im.putpalette(colours.tobytes())
    else:
        im = Image.fromarray(x[:, :, 0] if mode in ("L", "LA") else x)
        im.putalpha(Image.fromarray(x[:, :, 1])) if mode == "clear" else im.putalpha(255) if "A" in mode else None
    if mode == "turned":
        exif = Image.Exif()
        exif[0x0112] = 6
        how = {**how, "exif": exif}
    out = io.BytesIO()
    im.save(out, form, **how)
    return out.getvalue()


def _mosaic(d: Draw, least: int, most: int) -> Array:
    """Tiles of one colour each: contrasts that a picture of noise would lose in the halved chroma."""
    h, w = d.extent(least, most), d.extent(least, most)
    tile = d.int(1, 4)
    # the stream of RandomState is frozen: the same picture with every release of NumPy
    tiles = np.random.RandomState(d.int(0, 2**16 - 1)).randint(0, 256, (-(-h // tile), -(-w // tile), 3))
    return np.kron(tiles, np.ones((tile, tile, 1), int))[:h, :w].astype(np.uint8)


def _draw_image(d: Draw) -> dict[str, Any]:
    pixel_format = d.pick((None, "RGB", "BGR", "Grayscale"))
    form, modes, how = d.pick(_OPEN if d.chance(12) else _FORMS)
    mode = d.pick(modes.split()) if d.bool() else modes.split()[0]
    # enough columns that chroma is interpolated
    x = _mosaic(d, 5, 19) if form == "JPEG" else _mosaic(d, 1, 6)
    if d.chance(64):  # more bytes
        x = _mosaic(d, 40, 48)
    if form == "JPEG":
        how = {**how, "quality": d.pick((100, 95, 75, 30)), "optimize": True}
    if pixel_format == "Grayscale" and not d.chance(4):
        x = np.repeat(x[:, :, :1], 3, 2)  # any weights that sum to one give the same
    data = encoded(form, mode, how, x)
    if d.chance(10):
        data = _spoilt(d, data, form == "TIFF" and bool(how))
    out: dict[str, Any] = {"encoded_stream": T((len(data),), values=list(data))}
    return out if pixel_format is None else out | {"pixel_format": pixel_format}


def _spoilt(d: Draw, data: bytes, loud: bool) -> bytes:
    """A stream without its second half at least, or one of no format.  loud: half of it has libtiff write to stderr."""
    if d.bool() and not loud:
        return data[: d.int(0, 32) * len(data) // 64]
    return bytes(d.int(1, 31) for _ in range(d.int(1, 40)))


def _other_format(d: Draw) -> dict[str, Any]:
    return _draw_image(d) | {"pixel_format": d.pick(("CMYK", "rgb", "RGBA", "YCbCr", ""))}


op(
    "ImageDecoder",
    Evaluation(_image, accepted(_near), "ONNX ImageDecoder-20"),
    Sampling(_draw_image),
    Checks(ambiguous=_silent, breaks={"pixel-format": _other_format}),
)
