"""What comes where a difference is listed (``harness/ledger/defect_models.py``): OpenVINO, convolutions and pools
whose windows, scales or biases are others."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.ledger.defect_models import Near, Such, Turned
from suites.semantics.conv import conv

Outputs = list[Any] | None
_PADDING = {"NOTSET": "explicit", "VALID": "valid", "SAME_UPPER": "same_upper", "SAME_LOWER": "same_lower"}


def padded_behind_open_axes(g: Given) -> Outputs:
    """MaxPool with auto_pad SAME: an axis of symbolic extent is padded at its end alone; storage_order is not read, and
    the spatial axes of indices are in reverse order then."""
    x, kernel = g["X"], g.attr("kernel_shape")
    rank, turned = len(kernel), g.attr("storage_order", 0) == 1
    strides, dilations = (g.attr(s) or [1] * rank for s in ("strides", "dilations"))
    over = [
        max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        for n, s, k, d in zip(x.shape[2:], strides, kernel, dilations)
    ]
    lower, dynamic = g.attr("auto_pad") == "SAME_LOWER", g.inst.tensor("X").dynamic
    begin = [0 if i + 2 in dynamic else (p + lower) // 2 for i, p in enumerate(over)]
    edit: dict[str, Any] = {"auto_pad": None, "pads": [*begin, *(p - b for p, b in zip(over, begin))]}
    if "storage_order" in g.inst.attrs:
        edit["storage_order"] = 0
    if "ceil_mode" in g.inst.attrs:
        edit["ceil_mode"] = 0
    told = g.reevaluate(edit)
    if not told or not turned or len(told) < 2:
        return told

    def back(a: np.ndarray) -> np.ndarray:
        return a.transpose(0, 1, *range(a.ndim - 1, 1, -1))

    return [told[0], Turned(told[1], back, back(told[1].value))]


def weights_along_the_input_channels(g: Given) -> Outputs:
    """QLinearConv: scales and zero points of the weights go along the input channels."""
    x = g["x"].astype(np.float64) - float(g["x_zero_point"].ravel()[0])
    w, rank = g["w"].astype(np.float64), g["w"].ndim

    def along(slot: str, axis: int) -> np.ndarray:
        v = np.zeros(1) if g[slot] is None else g[slot].astype(np.float64).ravel()
        return v.reshape([-1 if k == axis and v.size > 1 else 1 for k in range(rank)])

    w = (w - along("w_zero_point", 1)) * along("w_scale", 1)
    strides, dilations, pads = (g.attr(s) and tuple(g.attr(s)) for s in ("strides", "dilations", "pads"))
    y = conv(
        x,
        w,
        None,
        strides=strides,
        dilations=dilations,
        pads=pads,
        groups=g.attr("group", 1),
        padding=_PADDING[g.attr("auto_pad", "NOTSET")],
    )
    step = float(g["x_scale"].ravel()[0])
    y = np.asarray(y) * step
    if g["B"] is not None:
        y = y + (g["B"] * step * g["w_scale"].astype(np.float64).ravel()).reshape([1, -1] + [1] * (rank - 2))
    ends = np.iinfo(g.expected[0].value.dtype)
    y = y / float(g["y_scale"].ravel()[0]) + float(g["y_zero_point"].ravel()[0])
    return [Near(np.clip(np.rint(y), ends.min, ends.max).astype(np.int64), 1)]


def _transposed(g: Given) -> np.ndarray:
    """The sums of TRANSPOSE_CONV, without bias, in steps of both scales."""
    x, w = (g[s].astype(np.float64) - g.inst.tensor(s).quantised["zero_point"][0] for s in ("input", "weights"))
    out = g["output_shape"].tolist()
    y, steps = np.zeros(out), (g.attr("stride_h", 1), g.attr("stride_w", 1))
    begin = [
        max((n - 1) * s + k - m, 0) // 2 if g.attr("padding", "SAME") == "SAME" else 0
        for n, s, k, m in zip(x.shape[1:3], steps, w.shape[1:3], out[1:3])
    ]
    for i, j, a, b in np.ndindex(*x.shape[1:3], *w.shape[1:3]):
        row, column = (p * s + t - q for p, s, t, q in zip((i, j), steps, (a, b), begin))
        if 0 <= row < out[1] and 0 <= column < out[2]:
            y[:, row, column] += x[:, i, j] @ w[:, a, b].T
    return y


def bias_of_another_channel(g: Given) -> Outputs:
    """TRANSPOSE_CONV of unsigned bytes: an element has the bias of any channel, or none; a fused activation may be left
    out."""
    to = g.attr("@outputs")[0]["quant"]
    step = [g.inst.tensor(s).quantised["scale"][0] for s in ("input", "weights")]
    sums, due = _transposed(g), g.expected[0].value
    ends = np.iinfo(due.dtype)
    among = [
        np.clip(np.rint((sums + b) * step[0] * step[1] / to["scale"][0] + to["zero_point"][0]), ends.min, ends.max)
        for b in (0, *g["bias"].tolist())
    ]

    def held(a: np.ndarray) -> Any:
        return a.shape == due.shape and np.all(
            np.any([np.abs(a.astype(np.int64) - v) <= 1 for v in among], 0) | (np.abs(a.astype(np.int64) - due) <= 1)
        )

    return [Such(held, np.where(among[0] == due, among[-1], among[0]).astype(due.dtype))]
