"""Matrix products, embeddings, dot products, convolutions, pooling."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from suites.nn.definition.common import Array, Unsupported, check, layer, weights


def _eight_bits(p: Any, x: Array) -> Array:
    """The input as int8, where the layer asks for that: whole steps of max|x| / 127, from -127 to 127."""
    check(p.int8DynamicQuantize == bool(p.weights.int8RawValue), "int8RawValue")
    if not p.int8DynamicQuantize:
        return x
    check(not p.hasBias, "int8DynamicQuantize with a bias")
    step = np.abs(x).max() / 127
    return np.clip(np.rint(x / step), -127, 127) * step if 0 < step < np.inf else x


@layer("innerProduct")
def inner_product(p: Any, x: Array) -> Array:
    """Ranks 4 and 5 fold their last three axes into the channel."""
    w = weights(p.weights, p.outputChannels, p.inputChannels)
    keep = x.shape[:-3] if x.ndim > 3 else x.shape[:-1]
    flat = x.reshape(*keep, -1)
    check(flat.shape[-1] == p.inputChannels, "inputChannels")
    y = np.einsum("...i,oi->...o", _eight_bits(p, flat), w)
    if p.hasBias:
        y = y + weights(p.bias, p.outputChannels)
    return y[..., None, None] if x.ndim > 3 else y


def _lookup(p: Any, index: Array, size: int, out: int) -> Array:
    w = weights(p.weights, out, size)
    check(bool(np.all((index >= 0) & (index < size))), "index out of range")
    y = np.array([w[:, int(i)] for i in index.ravel()]).reshape(*index.shape, out)
    return y + weights(p.bias, out) if p.hasBias else y


@layer("embedding")
def embedding(p: Any, x: Array) -> Array:
    """[..., 1, 1, 1] of indices to [..., C, 1, 1]."""
    check(x.ndim in (4, 5) and x.shape[-3:] == (1, 1, 1), "shape")
    return _lookup(p, x[..., 0, 0, 0], p.inputDim, p.outputChannels)[..., None, None]


@layer("embeddingND")
def embedding_nd(p: Any, x: Array) -> Array:
    """[..., 1] of indices to [..., C]."""
    check(x.ndim >= 2 and x.shape[-1] == 1, "shape")
    return _lookup(p, x[..., 0], p.vocabSize, p.embeddingSize)


@layer("batchedMatmul")
def batched_matmul(p: Any, a: Array, b: Array | None = None) -> Array:
    """Two inputs, or one and a matrix stored by columns."""
    if b is None:
        rows, columns = p.weightMatrixFirstDimension, p.weightMatrixSecondDimension
        w = weights(p.weights, columns, rows).T
        y = np.tensordot(_eight_bits(p, a), w, 1)
        return y + weights(p.bias, columns) if p.hasBias else y
    if a.ndim == 1:
        a = a[None]
    elif p.transposeA:
        a = np.swapaxes(a, -1, -2)
    if b.ndim == 1:
        b = b[:, None]
    elif p.transposeB:
        b = np.swapaxes(b, -1, -2)
    check(a.shape[-1] == b.shape[-2], "inner extents")
    return (a[..., :, :, None] * b[..., None, :, :]).sum(-2)


@layer("dot")
def dot(p: Any, a: Array, b: Array) -> Array:
    """Sum of products over the channels, of unit vectors for the cosine."""
    check(a.ndim >= 3 and a.shape[-2:] == b.shape[-2:] == (1, 1) and a.shape[-3] == b.shape[-3], "shape")
    if p.cosineSimilarity:
        a = a / np.sqrt((a * a).sum(-3, keepdims=True))
        b = b / np.sqrt((b * b).sum(-3, keepdims=True))
    return (a * b).sum(-3, keepdims=True)


def _pair(values: Any, default: tuple[int, ...]) -> tuple[int, ...]:
    given = tuple(int(v) for v in values) or default
    check(len(given) == 2, f"two values: {given}")
    return given


def _edges(p: Any) -> list[tuple[int, int]]:
    e = [(int(b.startEdgeSize), int(b.endEdgeSize)) for b in p.valid.paddingAmounts.borderAmounts] or [(0, 0), (0, 0)]
    check(len(e) == 2, "borders of two axes")
    return e


def _same(n: int, k: int, s: int, top_left: bool) -> tuple[int, int]:
    total = max(0, (-(-n // s) - 1) * s + k - n)
    small = total // 2
    return (total - small, small) if top_left else (small, total - small)


def _borders(
    p: Any, choice: str, shape: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...]
) -> list[tuple[int, int]]:
    kind = p.WhichOneof(choice)
    check(kind is not None, "padding type is missing")
    if kind == "same":
        return [_same(n, k, s, p.same.asymmetryMode == 1) for n, k, s in zip(shape, kernel, stride)]
    return _edges(p)


def _correlate(x: Array, w: Array, stride: Any, dilation: Any, pads: Any, groups: int) -> Array:
    """x [n, c, *s], w [m, c/groups, *k]: sum over channel and tap, any number of spatial axes.  Every place of the
    padding is one zero behind the axis."""
    n, c = x.shape[:2]
    m, per = w.shape[:2]
    check(c == per * groups and m % groups == 0, "channels")
    space = x.shape[2:]
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation)]
    size = _sizes(space, reach, stride, pads)
    x = np.pad(x, [(0, 0), (0, 0), *[(0, 1)] * len(space)])
    y = np.zeros((n, m, *size))
    for o in range(m):
        first = o // (m // groups) * per
        for q, tap in itertools.product(range(per), itertools.product(*map(range, w.shape[2:]))):
            at = [i * d - b + t * np.arange(z) for i, d, z, t, (b, _) in zip(tap, dilation, size, stride, pads)]
            at = [np.where((a >= 0) & (a < s), a, s) for a, s in zip(at, space)]
            of_w: tuple[Any, ...] = (o, q, *tap)
            of_x: tuple[Any, ...] = (slice(None), *np.ix_(*at))
            y[:, o] += x[:, first + q][of_x] * w[of_w]
    return y


def _scatter(x: Array, w: Array, stride: Any, pads: Any, size: Any, groups: int) -> Array:
    """x [n, c, h, w], w [c, m/groups, kh, kw]: every input cell adds its kernel to the output."""
    n, c, h, v = x.shape
    per = w.shape[1]
    check(c == w.shape[0] and c % groups == 0, "channels")
    kh, kw = w.shape[2:]
    full = np.zeros(
        (
            n,
            per * groups,
            max((h - 1) * stride[0] + kh, size[0] + pads[0]),
            max((v - 1) * stride[1] + kw, size[1] + pads[1]),
        )
    )
    for i, o, a, b in itertools.product(range(c), range(per), range(kh), range(kw)):
        to = i // (c // groups) * per + o
        full[:, to, a : a + (h - 1) * stride[0] + 1 : stride[0], b : b + (v - 1) * stride[1] + 1 : stride[1]] += (
            x[:, i] * w[i, o, a, b]
        )
    return full[:, :, pads[0] : pads[0] + size[0], pads[1] : pads[1] + size[1]]


@layer("convolution")
def convolution(p: Any, x: Array, given: Array | None = None) -> Array:
    """Convolution or deconvolution of the last two axes."""
    check(x.ndim >= 4, "rank below 4")
    lead, x = x.shape[:-3], x.reshape(-1, *x.shape[-3:])
    kernel, stride = _pair(p.kernelSize, (3, 3)), _pair(p.stride, (1, 1))
    groups = int(p.nGroups) or 1
    if p.isDeconvolution:
        check(given is None, "weights as an input of a deconvolution")
        w = weights(p.weights, p.kernelChannels, p.outputChannels // groups, *kernel, second=groups)
        y = _transposed(p, x, w, kernel, stride, groups)
    else:
        w = weights(p.weights, p.outputChannels, p.kernelChannels, *kernel) if given is None else given
        dilation = _pair(p.dilationFactor, (1, 1))
        reach = tuple((k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation))
        pads = _borders(p, "ConvolutionPaddingType", x.shape[2:], reach, stride)
        y = _correlate(x, w, stride, dilation, pads, groups)
    if p.hasBias:
        y = y + weights(p.bias, p.outputChannels)[:, None, None]
    return y.reshape(*lead, *y.shape[1:])


def _transposed(p: Any, x: Array, w: Array, kernel: Any, stride: Any, groups: int) -> Array:
    full = [(n - 1) * s + k for n, s, k in zip(x.shape[2:], stride, kernel)]
    same = p.WhichOneof("ConvolutionPaddingType") == "same"
    by_stride = tuple(n * s for n, s in zip(x.shape[2:], stride))
    size = _pair(p.outputShape, by_stride) if p.outputShape or same else None
    if size is None:
        pads = _edges(p)
        return _scatter(x, w, stride, [b for b, _ in pads], [f - b - e for f, (b, e) in zip(full, pads)], groups)
    top_left = not same or p.same.asymmetryMode == 1
    cut = [max(0, f - n) for f, n in zip(full, size)]
    begins = [t - t // 2 if top_left else t // 2 for t in cut]
    return _scatter(x, w, stride, begins, [int(n) for n in size], groups)


@layer("convolution3d")
def convolution3d(p: Any, x: Array) -> Array:
    """Three spatial axes."""
    check(x.ndim == 5 and x.shape[1] == p.inputChannels, "shape")
    kernel = (p.kernelDepth, p.kernelHeight, p.kernelWidth)
    stride = (p.strideDepth, p.strideHeight, p.strideWidth)
    dilation = (p.dilationDepth, p.dilationHeight, p.dilationWidth)
    groups = p.nGroups or 1
    if p.isDeconvolution:
        y = _spread3(
            p,
            x,
            weights(p.weights, p.inputChannels, p.outputChannels // groups, *kernel, second=groups),
            stride,
            dilation,
            groups,
        )
        return y + weights(p.bias, p.outputChannels)[:, None, None, None] if p.hasBias else y
    w = weights(p.weights, p.outputChannels, p.inputChannels // groups, *kernel)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    y = _correlate(x, w, stride, dilation, _borders3(p, x.shape[2:], reach, stride), groups)
    return y + weights(p.bias, p.outputChannels)[:, None, None, None] if p.hasBias else y


def _spread3(p: Any, x: Array, w: Array, stride: Any, dilation: Any, groups: int) -> Array:
    """Deconvolution: every cell adds its kernel to the output, which is then cut."""
    n, c = x.shape[:2]
    per, kernel = w.shape[1], w.shape[2:]
    check(c % groups == 0, "groups")
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    if any(r > 1 << 20 for r in reach):
        raise Unsupported("a kernel spread beyond what is held")
    full = np.zeros((n, groups * per, *((s - 1) * t + r for s, t, r in zip(x.shape[2:], stride, reach))))
    for i, o, tap in itertools.product(range(c), range(per), itertools.product(*map(range, kernel))):
        at = tuple(slice(v * d, v * d + (s - 1) * t + 1, t) for v, d, s, t in zip(tap, dilation, x.shape[2:], stride))
        of_w: tuple[Any, ...] = (i, o, *tap)
        of_full: tuple[Any, ...] = (slice(None), i // (c // groups) * per + o, *at)
        full[of_full] += x[:, i] * w[of_w]
    if p.paddingType == 2:
        size = [int(v) for v in p.outputShape] or [s * t for s, t in zip(x.shape[2:], stride)]
        begins = [(f - v) // 2 for f, v in zip(full.shape[2:], size)]
    else:
        pads = _borders3(p, full.shape[2:], kernel, (1, 1, 1))
        begins = [b for b, _ in pads]
        size = [f - b - e for f, (b, e) in zip(full.shape[2:], pads)]
        check(not p.outputShape or size == list(p.outputShape), "another shape than the padding leaves")
    check(min(size) >= 0 and min(begins) >= 0, "less than nothing left, or more than what the kernel reaches")
    of_full = (slice(None), slice(None), *(slice(b, b + v) for b, v in zip(begins, size)))
    return full[of_full]


def _borders3(p: Any, shape: Any, kernel: Any, stride: Any) -> list[tuple[int, int]]:
    if p.paddingType == 0:
        return [
            (p.customPaddingFront, p.customPaddingBack),
            (p.customPaddingTop, p.customPaddingBottom),
            (p.customPaddingLeft, p.customPaddingRight),
        ]
    if p.paddingType == 1:
        return [(0, 0)] * 3
    return [_same(n, k, s, False) for n, k, s in zip(shape, kernel, stride)]


def _windows(x: Array, kernel: Any, stride: Any, pads: Any, size: Any, fn: Any) -> Array:
    """fn(cells inside the data [n, c, count], cells of the padded image) of every window of x [n, c, *s]."""
    s = x.shape[2:]
    y = np.zeros((*x.shape[:2], *size))
    for at in itertools.product(*map(range, size)):
        cut, padded = [], 1
        for i, k, t, (b, e), n in zip(at, kernel, stride, pads, s):
            lo, hi = i * t - b, i * t - b + k
            cut.append(slice(max(lo, 0), min(hi, n)))
            padded *= min(hi, n + e) - max(lo, -b)
        of_x: tuple[Any, ...] = (slice(None), slice(None), *cut)
        of_y: tuple[Any, ...] = (slice(None), slice(None), *at)
        y[of_y] = fn(x[of_x].reshape(*x.shape[:2], -1), padded)
    return y


def _sizes(s: Any, kernel: Any, stride: Any, pads: Any) -> list[int]:
    check(all(n + b + e >= k for n, k, (b, e) in zip(s, kernel, pads)), "kernel larger than the padded input")
    return [(n + b + e - k) // t + 1 for n, k, t, (b, e) in zip(s, kernel, stride, pads)]


def _average(exclude: bool) -> Any:
    return lambda v, padded: v.sum(-1) / (v.shape[-1] if exclude else padded)


def _highest(v: Array, n: int) -> Array:
    if not v.shape[-1]:
        raise Unsupported("the maximum of a window that lies in the padding is not described")
    return np.asarray(v.max(-1))


@layer("pooling")
def pooling(p: Any, x: Array) -> Array:
    """Maximum, average or root of the sum of squares over windows of the last two axes."""
    check(x.ndim >= 4, "rank below 4")
    lead, x = x.shape[:-3], x.reshape(-1, *x.shape[-3:])
    s = x.shape[2:]
    kernel, stride = _pair(p.kernelSize, (3, 3)), _pair(p.stride, (1, 1))
    fn = (_highest, _average(p.avgPoolExcludePadding), lambda v, n: np.sqrt((v * v).sum(-1)))[p.type]
    last = p.WhichOneof("PoolingPaddingType") == "includeLastPixel"
    a = _pair(p.includeLastPixel.paddingAmounts, (0, 0)) if last else (0, 0)  # two numbers, also where none is used
    if p.globalPooling:
        y = _windows(x, s, (1, 1), [(0, 0)] * 2, (1, 1), fn)
    elif last:
        size = [-(-(n + 2 * q - k) // t) + 1 for n, q, k, t in zip(s, a, kernel, stride)]
        if any(a):
            size = [z - 1 if (z - 1) * t >= n + q else z for z, t, n, q in zip(size, stride, s, a)]
        y = _windows(x, kernel, stride, [(q, q) for q in a], size, fn)
    else:
        pads = _borders(p, "PoolingPaddingType", s, kernel, stride)
        y = _windows(x, kernel, stride, pads, _sizes(s, kernel, stride, pads), fn)
    return y.reshape(*lead, *y.shape[1:])


@layer("pooling3d")
def pooling3d(p: Any, x: Array) -> Array:
    """Maximum or average over windows of the last three axes."""
    check(x.ndim == 5, "rank")
    kernel = (p.kernelDepth, p.kernelHeight, p.kernelWidth)
    stride = (p.strideDepth, p.strideHeight, p.strideWidth)
    pads = _borders3(p, x.shape[2:], kernel, stride)
    fn = (_highest, _average(p.countExcludePadding))[p.type]
    return _windows(x, kernel, stride, pads, _sizes(x.shape[2:], kernel, stride, pads), fn)


@layer("globalPooling3d")
def global_pooling3d(p: Any, x: Array) -> Array:
    """Over all of the last three axes."""
    check(x.ndim == 5, "rank")
    return (x.max if p.type == 0 else x.mean)((2, 3, 4), keepdims=True)
