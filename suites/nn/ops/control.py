"""Control flow.  Source: NeuralNetwork.proto, Branch, Loop, LoopBreak, LoopContinue.

The nested networks compute with small whole numbers, so that every result is exact.
"""

from __future__ import annotations

from typing import Any

from harness.core.instance import Graph, Node
from harness.declare import Checks, Draw, Evaluation, Sampling, T, exact
from suites.nn import op
from suites.nn.control import evaluate

_SOURCE = "NeuralNetwork.proto, BranchLayerParams, LoopLayerParams, LoopBreakLayerParams, LoopContinueLayerParams"
_BINARY = ("addBroadcastable", "subtractBroadcastable", "maxBroadcastable", "minBroadcastable")


def _copy(a: str, y: str) -> Node:
    return Node("copy", {"x": a}, [y])


def _pair(name: str, a: str, b: str, y: str) -> Node:
    return Node(name, {"a": a, "b": b}, [y])


def _against(name: str, a: str, alpha: float, y: str) -> Node:
    return Node(name, {"a": a}, [y], {"alpha": alpha})


def _chain(d: Draw, reads: list[str], result: str, prefix: str) -> list[Node]:
    """One to three layers on the blobs it may read, the last one copied to ``result``."""
    nodes: list[Node] = []
    known = list(reads)
    for i in range(d.int(1, 3)):
        y = f"{prefix}t{i}"
        if d.chance(3):
            nodes.append(_against("greaterThan", d.pick(known), float(d.int(-3, 3)), y))
        else:
            nodes.append(_pair(d.pick(_BINARY), d.pick(known), d.pick(known), y))
        known.append(y)
    return [*nodes, _copy(known[-1], result)]


def _captured(d: Draw, count: int) -> list[T]:
    shape = d.shape(1, 3)
    return [T(shape, recipe="ints:-4:4", const=False) for _ in range(count)]


def _draw_branch(d: Draw) -> dict[str, Any]:
    n, outs = d.int(1, 3), d.int(1, 2)
    reads = [f"captured{i}" for i in range(n)]
    results = [f"y{i}" for i in range(outs)]
    sides = {}
    for side in ("ifBranch", "elseBranch"):
        nodes = [x for r in results for x in _chain(d, reads, r, f"{side}_{r}_")]
        if d.chance(4):  # a branch inside the branch, on a condition of its own
            inner = Graph(nodes=[_copy(reads[0], results[0])])
            test = f"{side}_test"
            nodes += [
                Node("reduceMax", {"x": reads[0]}, [f"{side}_max"], {"reduceAll": True}),
                _against("greaterThan", f"{side}_max", 0.0, test),
                Node("branch", {"condition": test}, [], {"ifBranch": inner}),
            ]
        sides[side] = Graph(nodes=nodes)
    condition = T((1,), values=[d.pick((0.0, 1.0, 0.0, 1.0, 2.0, -1.0, 1e-7, -1e-7, 1e-5))])  # the line is at 1e-6
    return {"condition": condition, "captured": _captured(d, n), **sides, "@results": results, "@outs": outs}


def _wide_condition(d: Draw) -> dict[str, Any]:
    return {**_draw_branch(d), "condition": T((2,), values=[1.0, 1.0])}


op(
    "branch",
    Evaluation(evaluate, exact(), _SOURCE),
    Sampling(_draw_branch),
    Checks(breaks={"condition-is-scalar": _wide_condition}),
)


def _step(d: Draw, states: list[str], reads: list[str], prefix: str = "b_") -> list[Node]:
    """A loop's body: every state from the blobs, written back by copies."""
    nodes: list[Node] = []
    for s in states:
        nodes += _chain(d, [*states, *reads], s, f"{prefix}{s}_")
    return nodes


def _held(value: int, y: str) -> Node:
    return Node("fillStatic", {}, [y], {"value": float(value), "targetShape": [1]})


def _inner_loop(d: Draw, state: str, reads: list[str]) -> list[Node]:
    """A loop inside a loop, which begins anew whenever the one around it comes to it: so many turns, as many as a blob
    says, or while a condition holds.  Now and then it is left early, or a turn cut short: the loop around goes on."""
    form, early = d.pick(("count", "input", "condition")), d.pick(("", "loopBreak", "loopContinue"))
    turns, body = "i_turns", [Node("add", {"xs": ["i_turns"]}, ["i_next"], {"alpha": 1.0}), _copy("i_next", "i_turns")]
    body += _step(d, [state], reads, "i_")
    if early:
        body += [
            _against("greaterEqual", turns, float(d.int(1, 2)), "i_stop"),
            Node("branch", {"condition": "i_stop"}, [], {"ifBranch": Graph(nodes=[Node(early, {}, [])])}),
            *_step(d, [state], reads, "i_z_"),
        ]
    nodes = [_held(0, "i_zero"), _copy("i_zero", turns)]
    inputs: dict[str, str | list[str] | None] = {}
    attrs: dict[str, Any] = {"bodyNetwork": Graph(nodes=body)}
    if form == "count":
        attrs["maxLoopIterations"] = d.int(1, 3)
    elif form == "input":
        nodes.append(_held(d.int(0, 3), "i_count"))
        inputs["count"] = "i_count"
    else:
        attrs["conditionNetwork"] = Graph(nodes=[_against("lessThan", turns, float(d.int(1, 3)), "i_go")])
        attrs["conditionVar"] = "i_go"
    return [*nodes, Node("loop", inputs, [], attrs)]


def _draw_loop(d: Draw) -> dict[str, Any]:
    """Counted by the parameter or the input; by a condition; by either and a condition, whichever ends first."""
    k, more = d.int(1, 2), d.int(0, 1)
    states = [f"s{i}" for i in range(k)]
    reads = [f"captured{k + i}" for i in range(more)]
    form = d.pick(("count", "input", "condition", "both", "input and condition"))
    body = _step(d, states, reads)
    out: dict[str, Any] = {"captured": _captured(d, k + more), "@results": states, "@outs": k}
    times = d.int(0, 4)
    if "condition" in form or form == "both":
        counter, asked = f"s{k}", f"s{k + 1}"  # how often the body ran, and what the condition last saw of that
        more_states = [T((1,), values=[v], const=False) for v in (0.0, -1.0)]
        out["captured"] = [*out["captured"][:k], *more_states, *out["captured"][k:]]
        reads = [f"captured{k + 2 + i}" for i in range(more)]
        body = [
            *_step(d, states, reads),
            Node("add", {"xs": [counter]}, ["next"], {"alpha": 1.0}),
            _copy("next", counter),
        ]
        out["@results"], out["@outs"] = [*states, counter, asked], k + 2
        out["conditionVar"] = "go"
        test = _against("lessThan", counter, float(d.int(0, 4)), "go")
        out["conditionNetwork"] = Graph(nodes=[_copy(counter, asked), test])
    if d.chance(4):
        body += _inner_loop(d, states[0], [*states[1:], *reads])
    if form in ("count", "both"):
        out["maxLoopIterations"] = max(times, 1) if form == "both" else times
    elif "input" in form:
        out["count"] = T((1,), values=[float(times)])
        out["maxLoopIterations"] = d.int(0, 9)
    return {**out, "bodyNetwork": Graph(nodes=body)}


def _nameless_condition(d: Draw) -> dict[str, Any]:
    return {
        "captured": _captured(d, 1),
        "@results": ["s0"],
        "conditionVar": "go",
        "maxLoopIterations": 2,
        "bodyNetwork": Graph(nodes=[_copy("captured0", "s0")]),
    }


op(
    "loop",
    Evaluation(evaluate, exact(), _SOURCE),
    Sampling(_draw_loop),
    Checks(breaks={"condition-named": _nameless_condition}),
)


def _draw_inside(layer: str) -> Any:
    """A counted loop whose body leaves early, or skips its second half, once a counter reaches a limit."""

    def draw(d: Draw) -> dict[str, Any]:
        states = ["s0", "s1"]
        at = float(d.int(1, 4))
        test = d.pick(("equal", "greaterEqual"))
        body = [
            Node("add", {"xs": ["s1"]}, ["next"], {"alpha": 1.0}),
            _copy("next", "s1"),
            *_step(d, ["s0"], ["captured2"], "x_"),
            _against(test, "s1", at, "stop"),
            Node("branch", {"condition": "stop"}, [], {"ifBranch": Graph(nodes=[Node(layer, {}, [])])}),
            *(_inner_loop(d, "s0", ["captured2"]) if d.chance(4) else ()),
            *_step(d, ["s0"], ["captured2"], "z_"),
        ]
        first, other = _captured(d, 2)
        return {
            "captured": [first, T((1,), values=[0.0], const=False), other],
            "@results": states,
            "@outs": 2,
            "@maxLoopIterations": d.int(1, 5),
            "@bodyNetwork": Graph(nodes=body),
        }

    return draw


_OUTSIDE = {"inside-a-loop": lambda d: {"captured": _captured(d, 1), "@results": ["captured0"], "@outside": True}}
for _layer in ("loopBreak", "loopContinue"):
    op(_layer, Evaluation(evaluate, exact(), _SOURCE), Sampling(_draw_inside(_layer)), Checks(breaks=_OUTSIDE))
