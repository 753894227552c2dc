"""Control flow.  Source: NeuralNetwork.proto, Branch, Loop, LoopBreak, LoopContinue.

The nested networks compute with small whole numbers, so that every result is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.instance import Graph, Node
from harness.declare import Call, Checks, Draw, Evaluation, Sampling, T, exact
from suites.nn import op
from suites.nn.control import evaluate

_SOURCE = "NeuralNetwork.proto, BranchLayerParams, LoopLayerParams, LoopBreakLayerParams, LoopContinueLayerParams"
MAX = 3.4028234663852886e38
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


# halves are added exactly, of the others nothing is compared
_UNUSUAL = (0.5, -1.5, -0.0, 2.0**-140, 2.0**24 + 2, MAX, -MAX, np.nan, np.inf, -np.inf)


def _captured(d: Draw, count: int) -> list[T]:
    shape = d.shape(1)
    if d.chance(12):
        shape = d.pick(((16,), (130, 2), (257, 9)))
    out = [T(shape, recipe="ints:-4:4") for _ in range(count)]
    if count > 1 and d.chance(8):
        out[1] = out[0] = T(shape, values=[float(i % 9 - 4) for i in range(int(np.prod(shape)))], const=False)
        return out
    if d.chance(8):
        n = int(np.prod(shape))
        values = [float(i % 7 - 3) for i in range(n)]
        for at in d.pick(((0,), (-1,), (0, -1))):
            values[at] = d.pick(_UNUSUAL)
        out[d.int(0, count - 1)] = T(shape, values=values)
    return out


def _not_exact(c: Call) -> str | None:
    """The layers inside add in f32 or wider, and their extremes choose among NaN and zeros: only small multiples of a
    half are compared.  Neither branch is told of NaN, which is not "greater than 1e-6" and not "less than 1e-6"."""
    condition = c.inputs.get("condition")
    if condition is not None and np.isnan(condition).any():
        return "neither-branch-of-nan"
    with np.errstate(all="ignore"):
        for x in c.inputs.get("captured", ()):
            if not (np.abs(x) < 1 << 16).all() or (x * 2 % 1 != 0).any() or np.signbit(x[x == 0]).any():
                return "sums-of-f32-inside"
    return None


def _with_one_twice(out: dict[str, Any]) -> dict[str, Any]:
    """Blobs that were drawn as one are given as one."""
    xs = out["captured"]
    return {**out, "@same": {"captured#1": "captured#0"}} if len(xs) > 1 and xs[0] is xs[1] else out


def _condition(d: Draw) -> T:
    """One number of any rank; the line is at 1e-6."""
    value = d.pick((0.0, 1.0, 0.0, 1.0, 2.0, -1.0, 1e-7, -1e-7, 1e-5) if d.int(0, 3) else _UNUSUAL)
    return T((1,) * d.pick((1, 1, 1, 2, 3, 4, 5)), values=[value])


def _draw_branch(d: Draw) -> dict[str, Any]:
    if d.chance(16):  # branches that read nothing
        sides = {side: Graph(nodes=[_held(d.int(-3, 3), "y0")]) for side in ("ifBranch", "elseBranch")}
        return {"condition": _condition(d), **sides, "@results": ["y0"]}
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
    given = {"condition": _condition(d), "captured": _captured(d, n)}
    return _with_one_twice({**given, **sides, "@results": results, "@outs": outs})


def _wide_condition(d: Draw) -> dict[str, Any]:
    return {**_draw_branch(d), "condition": T((2,), values=[1.0, 1.0])}


op(
    "branch",
    Evaluation(evaluate, exact(), _SOURCE),
    Sampling(_draw_branch),
    Checks(ambiguous=_not_exact, breaks={"condition-is-scalar": _wide_condition}),
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


def _count(d: Draw, times: int) -> T:
    """One number of any rank."""
    return T((1,) * d.pick((1, 1, 1, 2, 3, 4, 5)), values=[float(times) if times else d.pick((0.0, -0.0))])


def _draw_loop(d: Draw) -> dict[str, Any]:
    """Counted by the parameter or the input; by a condition; by either and a condition, whichever ends first."""
    if d.chance(12):  # a body that reads nothing
        times = d.int(1, 4)
        out: dict[str, Any] = {"bodyNetwork": Graph(nodes=[_held(d.int(-3, 3), "t"), _copy("t", "s0")])}
        count = {"count": _count(d, times)} if d.bool() else {"maxLoopIterations": times}
        return {**out, **count, "@results": ["s0"]}
    k, more = d.int(1, 2), d.int(0, 1)
    states = [f"s{i}" for i in range(k)]
    reads = [f"captured{k + i}" for i in range(more)]
    form = d.pick(("count", "input", "condition", "both", "input and condition"))
    body = _step(d, states, reads)
    out = {"captured": _captured(d, k + more), "@results": states, "@outs": k}
    times = d.int(0, 4)
    if "condition" in form or form == "both":
        counter, asked = f"s{k}", f"s{k + 1}"  # how often the body ran, and what the condition last saw of that
        more_states = [T((1,), values=[v]) for v in (0.0, -1.0)]
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
        if form == "both" and d.chance(4):
            out["maxLoopIterations"] = 2**31 - 1
    elif "input" in form:
        out["count"] = _count(d, times)
        out["maxLoopIterations"] = d.int(0, 9)
    return _with_one_twice({**out, "bodyNetwork": Graph(nodes=body)})


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
    Checks(ambiguous=_not_exact, breaks={"condition-named": _nameless_condition}),
)


def _inside_a_short_loop(d: Draw, layer: str, counted: bool) -> dict[str, Any]:
    """A loop whose body is cut short in its first turn: of one state, or of none."""
    if counted:
        body = [Node("add", {"xs": ["s0"]}, ["next"], {"alpha": 1.0}), _copy("next", "s0"), Node(layer, {}, [])]
        body += [_against("greaterThan", "s0", 0.0, "after"), _copy("after", "s0")]
    else:
        body = [_held(d.int(-3, 3), "t"), _copy("t", "s0"), Node(layer, {}, [])]
    out: dict[str, Any] = {"@results": ["s0"], "@maxLoopIterations": d.int(1, 5), "@bodyNetwork": Graph(nodes=body)}
    return {**out, "captured": _captured(d, 1)} if counted else out


def _draw_inside(layer: str) -> Any:
    """A counted loop whose body leaves early, or skips its second half, once a counter reaches a limit."""

    def draw(d: Draw) -> dict[str, Any]:
        if d.chance(8):
            return _inside_a_short_loop(d, layer, d.bool())
        states, reads = ["s0", "s1"], ["captured2"] if d.int(0, 3) else []
        at = float(d.int(1, 4))
        test = d.pick(("equal", "greaterEqual"))
        body = [
            Node("add", {"xs": ["s1"]}, ["next"], {"alpha": 1.0}),
            _copy("next", "s1"),
            *_step(d, ["s0"], reads, "x_"),
            _against(test, "s1", at, "stop"),
            Node("branch", {"condition": "stop"}, [], {"ifBranch": Graph(nodes=[Node(layer, {}, [])])}),
            *(_inner_loop(d, "s0", reads) if d.chance(4) else ()),
            *_step(d, ["s0"], reads, "z_"),
        ]
        first, other = _captured(d, 2)
        return {
            **({"@same": {"captured#2": "captured#0"}} if first is other and reads else {}),
            "captured": [first, T((1,), values=[0.0]), other][: 2 + len(reads)],
            "@results": states,
            "@outs": 2,
            "@maxLoopIterations": d.int(1, 5),
            "@bodyNetwork": Graph(nodes=body),
        }

    return draw


_OUTSIDE = {"inside-a-loop": lambda d: {"captured": _captured(d, 1), "@results": ["captured0"], "@outside": True}}
for _layer in ("loopBreak", "loopContinue"):
    op(
        _layer,
        Evaluation(evaluate, exact(), _SOURCE),
        Sampling(_draw_inside(_layer)),
        Checks(ambiguous=_not_exact, breaks=_OUTSIDE),
    )
