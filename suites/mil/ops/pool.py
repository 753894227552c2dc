"""Pooling windows.

* ``ceil_mode`` needs symmetric padding, valid or custom, and at most two spatial axes.  A last window that would start
  behind the data is dropped only where there is padding on that axis.
* ``same``: the extents are those that the package infers, ceil(d_in / stride), as of conv.  The page prints kernel_size
  cells of padding.  By one of its formulas for the extents they make one element more, by the other one less; neither
  keeps them.  The ledger has that reading.
"""

from __future__ import annotations

from typing import Any

from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T
from suites.mil import op
from suites.mil.codecs import fill, ints, need
from suites.mil.ops.conv import MODE, Mode, Pairs
from suites.semantics import pool as s
from suites.semantics.window import STRIDE_ABOVE


def _ceil(call: Call) -> bool:
    ceil = bool(call.attr("ceil_mode", False))
    p = (call.attr("pad_type") == "custom" and ints(call, "pad")) or ()
    need(not ceil or p[0::2] == p[1::2], "ceil-needs-symmetric-pads", f"{p}")
    return ceil


_NAMES: dict[str, Any] = {
    "kernel": Fn(lambda c: ints(c, "kernel_sizes")),
    "strides": fill("strides", 1),
    "dilations": Fn(lambda c: None),
    "pads": Pairs(),
    "padding": Mode("pad_type", MODE),
    "ceil": Fn(_ceil),
    "last": Fn(lambda c: "drop_if_padded"),
}


def _draw(meaning: Any) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        d.fixed.update(dilations=None, last="drop_if_padded")
        v = meaning.derive(d)
        n = len(v["kernel"])
        ceil = bool(v["ceil"]) and n <= 2 and not v["padding"].startswith("same")
        x, pads = v["x"], v["pads"]
        if pads is not None and ceil:
            pads = tuple(max(pads[i], pads[i + n]) for i in range(n)) * 2
        out: dict[str, Any] = {"x": x, "kernel_sizes": list(v["kernel"]), "pad_type": MODE[v["padding"]]}
        if v["padding"] == "explicit":
            p = pads or (0,) * (2 * n)
            out["pad"] = [p[i + n * j] for i in range(n) for j in (0, 1)]
        if v["strides"] is not None and (any(k != 1 for k in v["strides"]) or d.bool()):
            out["strides"] = list(v["strides"])
        if ceil or d.chance(3):
            out["ceil_mode"] = ceil
        if d.version.op == "avg_pool" and d.bool():
            out["exclude_padding_from_average"] = d.bool()
        return out

    return draw


def _break_window(d: Draw) -> dict[str, Any]:
    return {"x": T((1, 2, 2, 2)), "kernel_sizes": [3, 3], "pad_type": "valid"}


def _break_kernel(d: Draw) -> dict[str, Any]:
    return {"x": T((1, 2, 5, 5)), "kernel_sizes": [2, 2, 2], "pad_type": "valid"}


def _break_pads(d: Draw) -> dict[str, Any]:
    pad = d.pick(([1, 0, 1, 1], [0, 1, 0, 0], [1, 1, 0, 1]))
    return {"x": T((1, 2, 5, 5)), "kernel_sizes": [3, 3], "pad_type": "custom", "pad": pad, "ceil_mode": True}


_BREAKS = {"window-fits": _break_window, "one-per-axis": _break_kernel, "ceil-needs-symmetric-pads": _break_pads}
op(
    "avg_pool",
    s.avg_pool,
    Sampling(_draw(s.avg_pool), ranks=(3, 5)),
    Checks(breaks=_BREAKS, settles=STRIDE_ABOVE),
    count_include_pad=Fn(lambda c: not c.attr("exclude_padding_from_average", False)),
    **_NAMES,
)
op(
    "max_pool",
    s.max_pool,
    Spelling(column_major=Fn(lambda c: False), out=lambda c, r: r[:1], **_NAMES),
    Sampling(_draw(s.max_pool), ranks=(3, 5)),
    Checks(breaks=_BREAKS, settles=STRIDE_ABOVE),
)
op(
    "l2_pool",
    s.lp_pool,
    Sampling(_draw(s.lp_pool), ranks=(3, 4)),
    Checks(breaks=_BREAKS, settles=STRIDE_ABOVE),
    p=Fn(lambda c: 2.0),
    **_NAMES,
)
