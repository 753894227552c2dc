"""Models of the defects that the files beside this one list (``harness/run/defects.py``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.run.defects import Given

# -- ONNX Runtime


def _half(n: int, of: int = 2) -> int:
    """The quotient, toward zero."""
    return int(n / of)


def ort_same(g: Given) -> list[Any] | None:
    """SAME pads (ceil(n / stride) - 1) * stride + kernel - n: the dilation is forgotten, ceil_mode is not, and what is
    negative is cut off both ends.  A dilated window sees what is cut off the end all the same, but in an average."""
    slot = "X" if "X" in g.arrays else "x"
    x, w, average = g[slot], g["W"] if "W" in g.arrays else g["w"], g.inst.op == "AveragePool"
    kernel = g.attr("kernel_shape") or w.shape[2:]
    strides, dilations = (g.attr(name) or [1] * len(kernel) for name in ("strides", "dilations"))
    begins, ends, cut, zeros, whole = [], [], [slice(None)] * 2, [(0, 0)] * 2, g.attr("ceil_mode", 0)
    for n, s, k, d in zip(x.shape[2:], strides, kernel, dilations):
        total = -(-n // s) * s - s + k - n
        head = _half(total + (g.attr("auto_pad") == "SAME_LOWER"))
        tail = end = total - head
        if tail < 0:
            end = _half(n + total - d * (k - 1) - 1 + (s - 1) * whole, s) * s + d * (k - 1) + 1 - n - head
            tail = tail if average else min(end, 0)
        begins.append(max(0, head))
        ends.append(max(0, end - min(tail, 0)))
        cut.append(slice(max(0, -head), n - max(0, -tail)))
        zeros.append((0, 0) if tail < 0 else (begins[-1], ends[-1]))
    inside = np.ascontiguousarray(x[tuple(cut)])
    attrs: dict[str, Any] = {"auto_pad": None, "pads": begins + ends}
    if average and g.attr("count_include_pad", 0) and inside.shape != x.shape:  # it counts no end that is cut
        inside = np.pad(inside, zeros)
        attrs |= {"pads": [0 if sum(z) else p for p, z in zip(begins + ends, 2 * zeros[2:])], "count_include_pad": 0}
    out: list[Any] | None = g.again(attrs, {slot: inside})
    if out and len(out) > 1 and inside.shape != x.shape:  # of a maximum, its place
        axes = (0, 1, *range(x.ndim - 1, 1, -1)) if g.attr("storage_order", 0) else tuple(range(x.ndim))
        places = np.arange(x.size, dtype=np.int64).reshape(x.transpose(axes).shape).transpose(axes)
        out[1] = places[tuple(cut)].transpose(axes).ravel()[out[1].value]
    return out
