"""What comes where a difference is listed (``harness/ledger/defect_models.py``): OpenVINO, results of another shape,
and what is never written."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.dtypes import of, smallest_normal
from harness.declare import Expected
from harness.ledger.defect_models import Near, Such, Turned
from suites.known.defects.openvino_constants import _numbers, bits_are_numbers

Outputs = list[Any] | None


def _zeroed(a: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Has it a shape but for extents that are 0?"""
    return a.ndim == len(shape) and 0 in a.shape and all(n in (0, m) for n, m in zip(a.shape, shape))


def _without_ones(shape: tuple[int, ...]) -> list[int]:
    return [n for n in shape if n != 1]


def right_but_for_axes_of_1(g: Given) -> Outputs:
    """The right elements; axes of extent 1 are missing, or there are more."""

    def turned(e: Expected) -> Turned:
        def how(a: np.ndarray) -> np.ndarray:
            if _without_ones(a.shape) != _without_ones(e.value.shape):
                raise ValueError("another shape")
            return a.reshape(e.value.shape)

        return Turned(e, how, e.value[None])

    return [turned(e) for e in g.expected]


def axis_1_transformed(g: Given) -> Outputs:
    """DFT: version 20 transforms axis 1, and version 17 counts a negative axis without the last one, which is that of
    the parts; the axis of the parts is left out of a onesided inverse, whose elements are others where the length is
    given, and stands beside that of a onesided result of real numbers, whose elements may be those that the memory
    held; symbolic extents are 0.  Of constants of bf16 in int32_data the bits are numbers."""
    x, axis = _numbers(g, "input"), g.attr("axis", 1)
    half, inverse = g.attr("onesided", 0) == 1, g.attr("inverse", 0) == 1
    beside = half and not inverse and x.shape[-1] == 1
    if g.inst.version == 17:
        told = g.reevaluate({"axis": axis + x.ndim - 1 if axis < 0 and not beside else axis}, {"input": x})
    else:
        told = g.reevaluate(inputs={"axis": np.array(1), "input": x})
    if not told:
        return None
    e = told[0]
    shape = e.value.shape
    if half:
        shape = shape[:-1] if inverse else (*shape[:-1], 1, 2) if beside else shape

    def how(a: np.ndarray) -> np.ndarray:
        any_ = a.shape == shape and (beside or (half and inverse and g["dft_length"] is not None))
        if not any_ and not _zeroed(a, shape) and a.shape != shape:
            raise ValueError("another shape")
        return e.value if any_ or _zeroed(a, shape) else a.reshape(e.value.shape)

    shows = np.resize(e.value, shape) if e.value.size else np.zeros(shape, e.value.dtype)
    return [Turned(e, how, shows)]


def windows_behind_the_data(g: Given) -> Outputs:
    """MaxPool: with ceil_mode windows that start in the padding at the end are kept: their maximum is one number, the
    lowest of the type, and their indices are any; storage_order is not read, and the spatial axes of indices are in
    reverse order then.  Of constants of bf16 in int32_data the bits are numbers."""
    turned = g.attr("storage_order", 0) == 1
    told = bits_are_numbers(g, storage_order=0)

    def kept(e: Expected, i: int) -> Turned:
        def how(a: np.ndarray) -> np.ndarray:
            if i and turned:
                a = a.transpose(0, 1, *range(a.ndim - 1, 1, -1))
            if a.ndim != e.value.ndim or any(n not in (m, m + 1) for n, m in zip(a.shape, e.value.shape)):
                raise ValueError("another shape")
            inside = tuple(map(slice, e.value.shape))
            behind = np.ones(a.shape, bool)
            behind[inside] = False
            if not i and len(set(a[behind].tolist())) > 1:
                raise ValueError("more than one number in windows without an element")
            return a[inside]

        shows = np.pad(e.value, [(0, 0)] * (e.value.ndim - 1) + [(0, 1)])
        return Turned(e, how, shows.transpose(0, 1, *range(shows.ndim - 1, 1, -1)) if i and turned else shows)

    return told and [kept(e, i) for i, e in enumerate(told)]


def broadcast_of_open_extents(g: Given) -> Outputs:
    """Broadcasting of version 1, read as that of version 7.  Where the extents do not fit then, an axis has that of one
    operand, of symbolic ones any, and the elements are those that the memory held; where they fit, comparisons with
    NaN are either."""
    slots = ("X", "Y") if g.inst.op == "Pow" else ("A", "B")
    args = [g.inst.tensor(s) for s in slots]
    n = max(len(a.shape) for a in args)
    rows = [(1,) * (n - len(a.shape)) + tuple(-1 if i in a.dynamic else m for i, m in enumerate(a.shape)) for a in args]
    true = [(1,) * (n - len(a.shape)) + tuple(a.shape) for a in args]
    if any(x != y and 1 not in (x, y) for x, y in zip(*true)):
        shows = np.zeros([max(ms) if -1 not in ms else 0 for ms in zip(*rows)], g.expected[0].value.dtype)
        return [Such(lambda v: v.ndim == n and all(-1 in ms or k in ms for k, *ms in zip(v.shape, *rows)), shows)]
    told = g.reevaluate({"broadcast": None, "axis": None}, version=7)
    if not told or g.inst.op == "Pow":
        return told
    e, (a, b) = told[0], (g[s] for s in slots)
    odd = np.isnan(a.astype(np.float64)) | np.isnan(b.astype(np.float64))
    if odd.shape != e.value.shape:
        return None
    return [Turned(e, lambda v: np.where(odd, e.value, v) if v.shape == odd.shape else v)]


def stretched_to_sizes(g: Given) -> Outputs:
    """Resize: keep_aspect_ratio_policy is not read, the extents are the sizes, of symbolic ones 0; the elements are no
    larger than a cubic of those of X, where no extent is symbolic."""
    told = g.reevaluate({"keep_aspect_ratio_policy": None})
    if not told:
        return None
    shape, most = told[0].value.shape, 2 * float(np.abs(g["X"].astype(np.float64)).max(initial=0))
    loose = bool(g.inst.tensor("X").dynamic)
    return [
        Such(
            lambda a: not a.size or (a.shape == shape and (loose or np.abs(a.astype(np.float64)).max() <= most)),
            told[0].value,
        )
    ]


def some_subnormals_are_0(g: Given) -> Outputs:
    """Right, but for subnormal elements that are 0."""

    def turned(e: Expected) -> Turned | None:
        if not isinstance(e.value, np.ndarray) or of(e.value).kind != "f":
            return None
        size = np.abs(e.value.astype(np.float64))
        tiny = (size > 0) & (size < smallest_normal(of(e.value)))
        shows = e.value.copy()
        shows[np.unravel_index(np.argmax(tiny), tiny.shape)] = 0
        return Turned(e, lambda a: np.where(tiny & (a == 0), e.value, a) if a.shape == tiny.shape else a, shows)

    return [turned(e) for e in g.expected]


def subnormals_may_be_0(g: Given) -> Outputs:
    """The same, where the judgement finds nothing else wrong."""

    def told(v: Any) -> Near | None:
        if not isinstance(v, np.ndarray) or of(v).kind != "f":
            return None
        w = v.astype(np.float64)
        return Near(w, 0, np.where(np.abs(w) < smallest_normal(of(v)), 0, w))

    return [told(e.value) for e in g.expected]


def extents_are_0(g: Given) -> Outputs:
    """Right, but for outputs whose extents, or some of them, are 0."""

    def turned(e: Expected) -> Turned:
        return Turned(
            e, lambda a: e.value if _zeroed(a, e.value.shape) else a, np.zeros((0,) * e.value.ndim, e.value.dtype)
        )

    return [turned(e) for e in g.expected]


def strings_of_the_memory(g: Given) -> Outputs:
    """Strings that are no longer there: of each that was moved one byte comes, or nothing."""

    def told(e: Expected) -> Such | None:
        def moved(a: np.ndarray) -> bool:
            return a.shape == e.value.shape and all(isinstance(s, str) and len(s) < 2 for s in a.ravel().tolist())

        return Such(moved, np.full(e.value.shape, "_", object)) if e.value.dtype.kind == "O" else None

    return [told(e) for e in g.expected]


def extents_of_the_data(g: Given) -> Outputs:
    """GatherElements: another shape, each extent that of indices, or of data, or 0; the elements are those that the
    memory held."""
    due = g.expected[0].value
    either = list(zip(due.shape, g["data"].shape))

    def other(a: np.ndarray) -> bool:
        return a.shape != due.shape and a.ndim == due.ndim and all(n in (0, *ms) for n, ms in zip(a.shape, either))

    return [Such(other, np.zeros((0,) * due.ndim, due.dtype))]


def memory_beside_the_tensor(g: Given) -> Outputs:
    """What is only moved: among the wrong elements is one that the tensor does not hold, or a 0.  Of bytes, of a
    sequence of bools and of one element nothing can be told."""
    x = next(g[s] for s in ("input", "params", "data") if g[s] is not None)
    due = g.expected[0].value

    def beside(a: np.ndarray) -> Any:
        if a.shape != due.shape or a.dtype != due.dtype:
            return False
        wrong = np.atleast_1d(a)[np.atleast_1d(a != due)]
        return due.size < 3 or due.dtype.itemsize == 1 or np.any((wrong == 0) | ~np.isin(wrong, x))

    return [Such(beside, np.full_like(due, 96))]


def other_elements(g: Given) -> Outputs:
    """STRIDED_SLICE with an ellipsis that stands for no axis: the masks behind it are those of other axes."""
    if g.attr("ellipsis_mask", 0) == 0 or g["begin"].size <= g["input"].ndim:
        return None
    due = g.expected[0].value
    return [Such(lambda a: a.shape == due.shape and np.isin(a, g["input"]).all(), np.flip(due))]


def quantised_but_for_axes_of_1(g: Given) -> Outputs:
    """ADD and SUB: the right numbers, or their neighbours, without an axis of extent 1."""
    due = g.expected[0].value

    def near(a: np.ndarray) -> Any:
        return _without_ones(a.shape) == _without_ones(due.shape) and np.all(
            np.abs(a.reshape(due.shape).astype(np.int64) - due) <= 1
        )

    return [Such(near, due[None])]


def every_other_element_is_0(g: Given) -> Outputs:
    """ConstantOfShape of 4-bit numbers: each is written as a byte, so that every other one is 0."""
    v = g.expected[0].value.copy()
    v.reshape(-1)[1::2] = 0
    return [v]


def one_string(g: Given) -> Outputs:
    """OneHot of strings: the same text everywhere, or what is no longer there."""
    due = g.expected[0].value

    def same(a: np.ndarray) -> bool:
        return a.shape == due.shape and len(set(a.ravel().tolist())) == 1

    return [Such(same, np.full(due.shape, "_", object))]
