"""How programs run: node by node, with the reference of the dialect's declared ops, and how far an output may be off.

The expected value of a program follows from its nodes, whatever steps a runtime makes of it.  Its tolerance is the
first-order propagation of what each node may be off on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from harness.core.dtypes import F16, float_max, of
from harness.core.instance import Graph, Node
from harness.declare import Call, Context, Dialect, Expected, Tolerance, composed
from harness.declare.interpreter import call_of_node
from harness.tolerance import ulp


def _moves_only(e: Any) -> bool:
    """A complex value made without a rounding."""
    return bool(e.dtype.kind == "c" and e.error.exact)


def _errors(node: Node, expected: list[Any], narrow: bool) -> list[Any]:
    """How far each float result of a node may be off on its own: by its op's bound, or by a rounding to f16."""
    out: list[Any] = []
    for e in expected:
        if not isinstance(e.value, np.ndarray) or e.dtype.kind not in "fc" or _moves_only(e):
            out.append(None)
        elif narrow:
            v = e.value.astype(np.float64)
            out.append(np.where(np.abs(v) > float_max(F16), np.inf, ulp(v, F16)))
        else:
            b = np.asarray(e.error.bound(e.context()), np.float64)
            out.append(np.broadcast_to(np.where(np.isnan(b), np.inf, b), e.value.shape))
    return out


def _signs(shape: Any, pairs: bool, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Sign patterns: a few at random, each with its opposite, since a value on a bend (a relu's 0) shows its error on
    one side alone; with pairs also some in which any two elements once agree and once differ, so that errors of two
    elements that could cancel are seen to add up.
    """
    for _ in range(2):
        signs = rng.choice((-1.0, 1.0), size=shape)
        yield signs
        yield -signs
    if pairs:
        index = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)
        yield np.ones(shape)
        yield -np.ones(shape)
        for bit in range(max(0, index.size - 1).bit_length()):
            yield 1.0 - 2.0 * ((index >> bit) & 1)


def _moved(x: np.ndarray, off: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """x off by so much; the imaginary part of a complex one this way or that."""
    move: Any = off
    if x.dtype.kind == "c":
        move = off + 1j * (off * rng.choice((-1.0, 1.0), size=np.shape(off)))
    with np.errstate(all="ignore"):
        return (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) + move).astype(x.dtype)


class Language:
    """How programs of one dialect run.  Their inputs are called p0, p1, ... in the order in which they are given.

    dialect: whose declared ops the nodes are.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def settled(self, g: Graph, opset: Any) -> Graph:
        """The program as ``node`` takes it, where the dialect holds it in another form."""
        return g

    def feed(self, g: Graph, inputs: Sequence[Any]) -> dict[str, Any]:
        """The program's inputs by name."""
        return {f"p{i}": x for i, x in enumerate(inputs)}

    def node(self, g: Graph, node: Node, scope: dict[str, Any], opset: Any) -> list[Expected]:
        """What the reference expects of one node on the values of ``scope``."""
        call = call_of_node(self.dialect, node, scope, opset, g.meta)
        return call.version.evaluate(call)

    def run(self, program: Graph, inputs: Sequence[Any], opset: Any) -> dict[str, Any]:
        """All values of a program by name."""
        g = self.settled(program, opset)
        scope = {**g.consts, **self.feed(g, inputs)}
        for node in g.nodes:
            scope.update(zip(node.outputs, [e.value for e in self.node(g, node, scope, opset)]))
        return scope

    def run_call(self, call: Call) -> dict[str, Any]:
        """All values of the program of a call by name."""
        return self.run(call.attrs["program"], call.inputs["inputs"], call.opset)

    def tolerance(self, k: int, narrow: bool = False) -> Tolerance:
        """Of output ``k``: the errors of all nodes, propagated.  narrow: every value is rounded to f16."""

        def bound(ctx: Context) -> Any:
            return self.bounds(ctx.call, narrow)[k]

        what = "every value rounded to f16" if narrow else "every op's own error"
        return composed(bound, f"{what}, propagated through the program, twice, + ulp")

    def bounds(self, call: Call, narrow: bool = False, names: Sequence[str] = ()) -> list[Any]:
        """First-order propagation by evaluation: every value of the program moved by its own error, one at a time and
        with several sign patterns, and the changes of the outputs added up.  Twice that, since both programs round,
        plus one ulp.  names: of the values asked for, the outputs by default.  narrow: every value is rounded to f16.
        """
        opset, inputs = call.opset, call.inputs["inputs"]
        g = self.settled(call.attrs["program"], opset)
        names = names or g.outputs
        base: dict[str, Any] = {**g.consts, **self.feed(g, inputs)}
        stateful = bool(g.meta.get("states"))  # what is written has to be written anew: from the first op on
        own: list[tuple[int, str, Any]] = []
        if narrow:
            for name, x in self.feed(g, inputs).items():
                if isinstance(x, np.ndarray) and of(x).kind == "f":
                    own.append((-1, name, ulp(x.astype(np.float64), F16)))
        for i, node in enumerate(g.nodes):
            expected = self.node(g, node, base, opset)
            own += [(i, n, b) for n, b in zip(node.outputs, _errors(node, expected, narrow)) if b is not None]
            base.update(zip(node.outputs, [e.value for e in expected]))
        rng = np.random.Generator(np.random.PCG64(7))
        total = [np.zeros(np.shape(base[n])) for n in names]
        for i, name, b in own:
            worst = [np.zeros_like(t) for t in total]
            for signs in _signs(np.shape(b), narrow, rng):
                scope = {**g.consts, **self.feed(g, inputs)} if stateful else dict(base)
                moved = _moved(base[name], b * signs, rng)
                with np.errstate(all="ignore"):
                    scope[name] = moved
                    for node in g.nodes if stateful else g.nodes[i + 1 :]:
                        scope.update(zip(node.outputs, [e.value for e in self.node(g, node, scope, opset)]))
                        if name in node.outputs:
                            scope[name] = moved
                    for k, out in enumerate(names):
                        if of(np.asarray(base[out])).kind != "f":
                            continue
                        change = np.abs(scope[out].astype(np.float64) - base[out].astype(np.float64))
                        worst[k] = np.maximum(worst[k], np.where(np.isnan(change), np.inf, change))
            total = [t + w for t, w in zip(total, worst)]
        wide = [np.asarray(base[n]) for n in names]
        return [2 * t + ulp(v.astype(np.float64), of(v)) if of(v).kind == "f" else 0.0 for t, v in zip(total, wide)]
