"""What comes where a difference is listed (``harness/ledger/defect_models.py``): OpenVINO, states of Scan and Loop
that share their memory with other values."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.instance import Graph
from harness.ledger.defect_models import Such

Outputs = list[Any] | None
_SLOT = "initial_state_and_scan_inputs"


def _shared(body: Graph, states: int) -> list[int | None]:
    """Of each state the number of the input of the body in whose memory it is computed, None for its own: that of the
    first operand of the node that makes it, but of a state that is itself elsewhere, or of the state that it is handed
    on from."""
    given = {name: i for i, (name, _) in enumerate(body.inputs)}
    makers = {o: node for node in body.nodes for o in node.outputs}
    found: list[int | None] = []
    for k, o in enumerate(body.outputs[:states]):
        operands = makers[o].inputs.values() if o in makers else ()
        read = [x for v in operands for x in (v if isinstance(v, list) else [v])]
        first = given.get(read[0]) if len(read) > 1 and read[0] is not None else None
        found.append(None if first == k else first)
    handed = [given.get(o) for o in body.outputs[:states]]
    found = [found[p] if p is not None and p < states and p != k else found[k] for k, p in enumerate(handed)]
    return [None if m is not None and m < states and found[m] is not None else m for m in found]


def states_in_shared_memory(g: Given) -> Outputs:
    """Scan: a state that is computed in the memory of another input of the body is what stands there in the next turn;
    one that is handed on from another state is copied after that one was replaced in its own memory, in the order of
    the outputs.  Version 8 is read as 9 along axis 1, the batch an axis of the elements.  Done a turn at a time."""
    n, body, old = g.attr("num_scan_inputs"), g.attr("body"), g.inst.version == 8
    states, scanned = list(g[_SLOT][:-n]), g[_SLOT][-n:]
    count = len(states)
    made = len(body.outputs) - count
    shared = _shared(body, count)
    axes = [1] * n if old else g.attr("scan_input_axes") or [0] * n
    ways = g.attr("directions" if old else "scan_input_directions") or [0] * n
    edit: dict[str, Any] = {"scan_input_directions": None, "scan_output_directions": None}
    if old:
        edit |= {"directions": None, "scan_input_axes": axes, "scan_output_axes": [1] * made}
    given = {name: i for i, (name, _) in enumerate(body.inputs)}
    rows = []
    for t in range(scanned[0].shape[axes[0]]):
        slices = [np.take(v, [v.shape[a] - 1 - t if way else t], a) for v, way, a in zip(scanned, ways, axes)]
        if t:
            there = [*states, *(np.squeeze(v, a) for v, a in zip(slices, axes))]
            held = [there[k if m is None else m] for k, m in enumerate(shared)]
            states = [v if v.shape == s.shape else s for v, s in zip(held, states)]
        try:
            told = g.reevaluate(edit, {_SLOT: [*states, *slices], "sequence_lens": None}, version=9 if old else None)
        except ValueError:  # elements that do not go together
            return None
        if not told:
            return None
        before = list(states)
        for k, o in enumerate(body.outputs[:count]):
            p = given.get(o)
            if p is not None and p < count:
                states[k] = (states if shared[p] is None else before)[p]
            else:
                states[k] = told[k].value
        rows.append([e.value for e in told[count:]])
    along = [1] * made if old else g.attr("scan_output_axes") or [0] * made
    turned = (not old and g.attr("scan_output_directions")) or [0] * made
    if not rows:
        return None
    try:
        return [
            *states,
            *(
                np.concatenate([row[j] for row in (reversed(rows) if turned[j] else rows)], along[j])
                for j in range(made)
            ),
        ]
    except ValueError:
        return None


def grown_states_unwritten(g: Given) -> Outputs:
    """Loop of no turn: a state that would grow has the shape after one turn, and what the memory held."""
    body = g.attr("body")
    grown = {o for node in body.nodes if node.op == "Concat" for o in node.outputs}

    def told(v: np.ndarray) -> Such:
        return Such(lambda a: a.ndim == v.ndim and a.size > v.size, np.resize(v, np.add(v.shape, 1)))

    return [told(e.value) if o in grown else None for e, o in zip(g.expected, body.outputs[1:])]
