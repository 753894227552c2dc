"""How far the outputs of a program may be off: all errors of its nodes at once, carried to the outputs.

The program runs again with every result moved by a multiple of what its node may be off, in several patterns of signs:
all one way, one sign a tensor, one sign an element.  The largest change of an output is its bound.  A comparison, a
rounding or a choice that turns over in one of these runs leaves its element open, integers and booleans too.  The
patterns do not cover the worst case.  The multiple leaves room for that, and an answer outside of the bound is compared
node by node before it counts (``harness.evidence.attribution``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from harness.core.dtypes import int_range, of
from harness.core.instance import Graph
from harness.core.quiet import quiet
from harness.declare import Context, Expected
from harness.tolerance import Propagated, ulp, widened
from suites.programs.bounds import Nodes

ROOM = 4.0  # times its own error that each result is moved
PATTERNS = 4  # of random signs, each with its opposite, besides those with one sign throughout


def values_given(nodes: Nodes, g: Graph, inputs: Any, opset: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """All values by name; ``given`` stands in place of what the reference computes."""
    g = nodes.settled(g, opset)
    scope = {**g.consts, **nodes.feed(g, inputs)}
    for node in g.nodes:
        for n, e in zip(node.outputs, nodes.node(g, node, scope, opset)):
            scope[n] = given.get(n, e.value)
    return scope


def carried(
    nodes: Nodes,
    g: Graph,
    inputs: Any,
    opset: Any,
    given: Mapping[str, Any] | None = None,
    off: Mapping[str, Any] | None = None,
) -> list[Any]:
    """The bound of each output.  given: values that stand in place of what the reference computes.  off: how far
    these may be off, by name; not at all by default."""
    g, given = nodes.settled(g, opset), given or {}
    own: dict[str, Any] = dict(off or {})
    plain: dict[str, Any] = {}  # what the reference has where another value is given
    base = {**g.consts, **nodes.feed(g, inputs)}
    for node in g.nodes:
        for n, e in zip(node.outputs, nodes.node(g, node, base, opset)):
            plain[n], base[n] = e.value, given.get(n, e.value)
            error = None if n in given or not n else e.off()
            if error is not None:
                own[n] = error
    worst = [np.zeros(np.shape(base[o])) for o in g.outputs]
    rng = np.random.Generator(np.random.PCG64(7))
    pairs = {n: (plain[n], x) for n, x in given.items() if n in plain}
    for signs in _patterns(own, base, rng) if own else ():
        scope = _moved(nodes, g, inputs, opset, pairs, own, signs)
        for k, o in enumerate(g.outputs):
            x = None if scope is None else scope.get(o)
            worst[k] = np.maximum(worst[k], _change(base[o], x))
    return [w + _own(own.get(o), base[o]) + _step(base[o]) for w, o in zip(worst, g.outputs)]


def _moved(
    nodes: Nodes, g: Graph, inputs: Any, opset: Any, given: Mapping[str, Any], own: Any, signs: Any
) -> dict[str, Any] | None:
    """All values where each result is off; None where the program cannot run so.  Outputs are as what is before them
    makes them: what they are off by themselves, which could make up for that, comes on top (``_own``)."""
    scope = {**g.consts, **nodes.feed(g, inputs)}
    made: dict[str, Any] = {}
    with quiet:
        for node in g.nodes:
            try:
                results = nodes.node(g, node, scope, opset)
            except Exception:  # a value that has become an index or an extent out of range
                return None
            for n, e in zip(node.outputs, results):
                value = _shifted(e.value, *given.get(n, (None, None)))
                scope[n] = _off(value, own.get(n), signs.get(n))
                made[n] = value if _is_float(value) else scope[n]
    return {**scope, **made}


def _is_float(x: Any) -> bool:
    return isinstance(x, np.ndarray) and of(x).kind == "f"


def _own(error: Any, value: Any) -> Any:
    """How far an output of floats is off by itself; of others that is in what the moved programs show."""
    if error is None or not _is_float(value) or np.shape(error) != value.shape:
        return 0.0
    return ROOM * np.asarray(error)


def expected_at(value: Any, bound: Any) -> Expected:
    """What is expected of an output: ``value``, within ``bound``; where that is infinite, anything."""
    b = np.broadcast_to(np.asarray(bound, np.float64), value.shape)
    wide = widened(value)
    tolerance = Propagated("the errors of all nodes at once, carried to the outputs", fn=lambda ctx: b)
    made = Context({}, {}, wide, of(value))
    real = wide if of(value).kind == "f" else None
    return Expected(value, real, of(value), tolerance, lambda: made, np.isinf(b) if np.isinf(b).any() else None)


def _patterns(own: Mapping[str, Any], base: Any, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Signs by name."""
    for sign in (1.0, -1.0):
        yield dict.fromkeys(own, sign)
    for k in range(PATTERNS):
        signs = {n: rng.choice((-1.0, 1.0), size=np.shape(base[n]) if k % 2 else ()) for n in own}
        yield signs
        yield {n: -s for n, s in signs.items()}


def _shifted(x: Any, plain: Any, given: Any) -> Any:
    """A value as far from the reference's as the given one is."""
    if given is None or not isinstance(x, np.ndarray) or np.shape(given) != x.shape or np.shape(plain) != x.shape:
        return x if given is None else given
    with np.errstate(all="ignore"):
        apart = given.astype(np.float64) - plain.astype(np.float64)
        same = (given == plain) | ~np.isfinite(apart)
        moved = np.where(same, x, x.astype(np.float64) + np.where(same, 0.0, apart))
    known = np.isfinite(apart) | (x.astype(np.float64) == plain.astype(np.float64))
    return np.where(known, moved, given).astype(x.dtype)


def _off(x: Any, error: Any, sign: Any) -> Any:
    if error is None or not isinstance(x, np.ndarray) or np.shape(error) != x.shape:
        return x
    if of(x).kind == "f":
        moved = x.astype(np.float64) + ROOM * error * sign
        return np.where(np.isinf(error), error * sign, moved).astype(x.dtype)  # NaN, too, may be anything then
    low, high = int_range(of(x))
    return np.clip(x.astype(np.float64) + np.ceil(error) * sign, low, high).astype(x.dtype)


def _change(before: np.ndarray, after: Any) -> Any:
    """How far an output moved: infinitely where it is no number any more, or another shape."""
    if after is None or np.shape(after) != before.shape:
        return np.inf
    a, b = (np.asarray(x).astype(np.float64) for x in (after, before))
    with np.errstate(all="ignore"):
        d = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isnan(d), np.inf, d))


def _step(x: np.ndarray) -> Any:
    return ulp(x.astype(np.float64), of(x)) if of(x).kind == "f" else 0.0
