"""What comes where a difference is listed (``harness/ledger/defect_models.py``): other readings of the MIL pages."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.ledger.defect_models import Near, Turned
from suites.mil.definition.layers import lstm
from suites.semantics.recurrent import FUNCTIONS, functions
from suites.semantics.sampling import along, box_edges, grid

Outputs = list[Any] | None


def mil_printed_padding(g: Given) -> Outputs:
    """The amounts that conv's page prints: a dilated kernel less one in all, whatever the stride, the larger half in
    front."""
    kernel = g["weight"].shape[2:]
    whole = [d * (k - 1) for k, d in zip(kernel, g.attr("dilations") or [1] * len(kernel))]
    return g.reevaluate({"pad_type": "custom", "pad": [n for t in whole for n in (t - t // 2, t // 2)]})


def mil_printed_pool_padding(g: Given) -> Outputs:
    """The amounts that the pages of pools print: the kernel's size in all, the larger half behind, or (same_lower) in
    front."""
    halves = [(k // 2, k - k // 2) for k in g.attr("kernel_sizes")]
    front = -1 if g.attr("pad_type") == "same_lower" else 1
    return g.reevaluate({"pad_type": "custom", "pad": [n for pair in halves for n in pair[::front]]})


def mil_in_order_of_the_input(g: Given) -> Outputs:
    """A reversed sequence comes out as it went in: the result of the last step first."""
    return [Turned(g.expected[0], lambda a: a[::-1]), *[None] * (len(g.expected) - 1)]


def mil_longer_before(g: Given) -> Outputs:
    """An even neighbourhood of channels reaches one further before than after."""
    again = g.reevaluate(inputs={"x": np.ascontiguousarray(g["x"][:, ::-1])})
    return again and [Turned(again[0], lambda a: np.ascontiguousarray(a[:, ::-1]))]


def mil_no_box_below_the_threshold(g: Given) -> Outputs:
    """An image of which no box reaches the threshold has none, not its best one; what is padded is not judged."""
    none = g["scores"].astype(np.float64).max((-1, -2)) < g.attr("score_threshold")
    free = [np.where(none.reshape(-1, *(1,) * (e.value.ndim - 1)), np.inf, 0.0) for e in g.expected[:3]]
    return [*(Near(e.value, f) for e, f in zip(g.expected, free)), np.where(none, 0, g.expected[3].value)]


def mil_clamped_to_the_box(g: Given) -> Outputs:
    """crop_resize: grid points beyond the box are brought onto its edge, as resize_bilinear's are onto the image's."""
    x, mode = g["x"].astype(np.float64), g.attr("sampling_mode", "DEFAULT").lower()
    count, form = len(x), g.attr("box_coordinate_mode", "CORNERS_HEIGHT_FIRST")
    given = (g.attr("normalized_coordinates", False), g.attr("spatial_scale", 1.0))
    if g["roi"] is None:
        which = g["box_indices"]
        jobs = [(box, j if which is None else int(which[j])) for j, box in enumerate(g["boxes"])]
    else:
        rows = g["roi"].reshape(len(g["roi"]), -1)
        jobs = [(r[-4:], int(r[0]) if len(r) == 5 else j) for r in rows for j in range(1 if len(r) == 5 else count)]
    crops = []
    for box, j in jobs:
        edges = box_edges(box, form, x.shape[2], x.shape[3], *given)
        crop, inside = x[j], np.ones((1, 1), bool)
        for k, name in enumerate(("target_height", "target_width")):
            at = np.clip(grid(edges[k], edges[k + 2], g.attr(name, 1), mode), edges[k], edges[k + 2])
            crop = along(crop, at, k + 1)
            inside = inside & ((at >= 0) & (at < x.shape[k + 2] - 1 + 1e-6)).reshape((-1, 1) if k == 0 else (1, -1))
        crops.append(np.where(inside, crop, g.attr("pad_value", 0.0)))
    (e,) = g.expected
    return [Near(np.stack(crops).reshape(e.value.shape), 2 * e.error.bound(e.context()))]


def _mil_gru(gate: str, steps: bool) -> Any:
    """gate: what the reset gate acts on, the "state" before the recurrent product, that "product", or the product
    with its "bias" (reset_after alone).  steps: whether a reversed sequence comes out as it was computed."""

    def told(g: Given) -> Outputs:
        if gate == "bias" and not g.attr("reset_after", False):
            return None
        named = (g.attr("recurrent_activation", "sigmoid"), g.attr("activation", "tanh"))
        spelled = [{"linear": "affine", "sigmoid_hard": "hard_sigmoid"}.get(n, n) for n in named]
        acts = [(FUNCTIONS[n], a, b) for n, a, b in functions("gru", 1, spelled, None, None)]
        x, h, w, u = (np.asarray(g[k], np.float64) for k in ("x", "initial_h", "weight_ih", "weight_hh"))
        n = h.shape[1]
        given, own = (np.zeros(3 * n) if g[k] is None else np.asarray(g[k], np.float64) for k in ("input_bias", "bias"))
        r, o, z = (slice(k * n, (k + 1) * n) for k in range(3))
        ys = []
        for v in (x[::-1] if g.attr("direction") == "reverse" else x) @ w.T + given:
            both = v + h @ u.T + own
            reset, update = (acts[0][0](both[:, k], *acts[0][1:]) for k in (r, z))
            inner = {
                "state": (reset * h) @ u[o].T + own[o],
                "product": reset * (h @ u[o].T) + own[o],
                "bias": reset * (h @ u[o].T + own[o]),
            }[gate]
            h = (1 - update) * acts[1][0](v[:, o] + inner, *acts[1][1:]) + update * h
            ys.append(h)
        turned = g.attr("direction") == "reverse" and not steps
        y = np.stack(ys[::-1] if turned else ys) if g.attr("output_sequence") else h[None]
        # roundings as of the reading that is expected, whose equations are as many
        within = [4 * np.max(e.error.bound(e.context()), initial=0.0) for e in g.expected]
        return [Near(v, b) for v, b in zip((y, h), within)]

    return told


mil_gate_on_state, mil_gate_on_state_in_steps = (_mil_gru("state", s) for s in (False, True))
mil_gate_on_product, mil_gate_on_product_in_steps = (_mil_gru("product", s) for s in (False, True))
mil_gate_on_bias, mil_gate_on_bias_in_steps = (_mil_gru("bias", s) for s in (False, True))


def _mil_lstm(steps: bool) -> Any:
    def told(g: Given) -> Outputs:
        y = lstm(dict(g.inst.attrs), g.arrays, str(g.inst.version), "gate", steps)
        # roundings as of the reading that is expected, whose equations are as many
        within = [4 * np.max(e.error.bound(e.context()), initial=0.0) for e in g.expected]
        return [Near(v, b) for v, b in zip(y, within)]

    return told


mil_clip_of_the_cell_gate, mil_clip_of_the_cell_gate_in_steps = (_mil_lstm(s) for s in (False, True))


def mil_log_without_epsilon(g: Given) -> Outputs:
    return g.reevaluate({"epsilon": 0.0})
