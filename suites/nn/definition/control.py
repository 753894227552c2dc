"""Walking layers, and the layers that decide which ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from suites.nn.definition.common import LAYERS, Array, Forbidden, check

KINDS = ("branch", "loop", "loopBreak", "loopContinue")


class _Leave(Forbidden):
    """A loopBreak; outside a loop the definition forbids it."""


class _Again(Forbidden):
    """A loopContinue; outside a loop the definition forbids it."""


def run(layers: Any, blobs: dict[str, Array]) -> None:
    """Run layers in order; nested networks use the same blobs."""
    for one in layers:
        kind = one.WhichOneof("layer")
        params = getattr(one, kind)
        check(all(n in blobs for n in one.input), f"{one.name}: an input that nothing has computed")
        ins = [blobs[n] for n in one.input]
        if kind == "branch":
            check(len(ins) == 1, f"branch: expected 1 input, got {len(ins)}")
            check(ins[0].size == 1, "condition of more than one element")
            net = params.ifBranch if abs(ins[0].item()) > 1e-6 else params.elseBranch
            run(net.layers, blobs)
        elif kind == "loop":
            check(len(ins) <= 1, f"loop: expected 0 or 1 inputs, got {len(ins)}")
            _loop(params, ins, blobs)
        elif kind == "loopBreak":
            raise _Leave("loopBreak outside a loop")
        elif kind == "loopContinue":
            raise _Again("loopContinue outside a loop")
        else:
            outs = LAYERS[kind](params, *[x.astype(np.float64) for x in ins])
            outs = outs if isinstance(outs, (list, tuple)) else [outs]
            for name, y in zip(one.output, outs):
                y = np.asarray(y, np.float32)
                blobs[name] = y.reshape(1) if y.ndim == 0 else y


def _go_on(p: Any, blobs: dict[str, Array], asks: bool) -> bool:
    if not asks:
        return True
    run(p.conditionNetwork.layers, blobs)
    return bool(abs(blobs[p.conditionVar].item()) > 1e-6)


def _loop(p: Any, ins: list[Array], blobs: dict[str, Array]) -> None:
    times = int(ins[0].item()) if ins else int(p.maxLoopIterations)
    asks = p.conditionVar != ""
    check(asks == (len(p.conditionNetwork.layers) > 0), "condition variable and network belong together")
    forever = asks and not ins and p.maxLoopIterations == 0
    done, go = 0, _go_on(p, blobs, asks)
    while go and (forever or done < times):
        try:
            run(p.bodyNetwork.layers, blobs)
        except _Again:
            pass
        except _Leave:
            return
        done += 1
        go = _go_on(p, blobs, asks)
        if done > 10_000:
            raise RuntimeError("the loop does not end")
