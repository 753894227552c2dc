"""How far the values of a program may be off: what each node may be off on its own, propagated to first order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from harness.core.dtypes import F16, float_max, int_range, of
from harness.core.errors import OpconformError
from harness.core.instance import Graph, Node
from harness.declare import Call, Expected
from harness.tolerance import ulp
from harness.tolerance.freedom import free_of


class Nodes(Protocol):
    """How the nodes of a program run: what ``Language`` offers."""

    def settled(self, g: Graph, opset: Any) -> Graph: ...

    def feed(self, g: Graph, inputs: Sequence[Any]) -> dict[str, Any]: ...

    def node(self, g: Graph, node: Node, scope: dict[str, Any], opset: Any) -> list[Expected]: ...

    def open(
        self, g: Graph, node: Node, scope: dict[str, Any], opset: Any, shapes: Sequence[Any]
    ) -> list[Any] | None: ...

    def between(self, node: Node, e: Expected, scope: dict[str, Any]) -> Any: ...


def bounds(
    language: Nodes, call: Call, narrow: bool = False, names: Sequence[str] = (), merges: bool = False
) -> list[Any]:
    """How far values of the program of a call may be off: an array of each, 0.0 where it is exact.

    Every value is moved by its own error, one at a time and with several sign patterns, and the changes of each value
    behind it are added up.  Twice that, since both programs round, plus one ulp.  names: of the values, the outputs by
    default.  narrow: every value is rounded to f16.  merges: constants are merged, and rounded where they are."""
    g = language.settled(call.attrs["program"], call.opset)
    p = _Propagation(language, g, call.inputs["inputs"], call.opset, narrow)
    p.run(merges)
    out: list[Any] = []
    for name in names or g.outputs:
        value = np.asarray(p.base[name])
        off = p.off.get(name, np.zeros(value.shape))
        if of(value).kind == "f":  # what is not finite is met, or without limit
            wide = value.astype(np.float64)
            unknown = np.isinf(off) if narrow else p.unknown.get(name, False)
            out.append(np.where(np.isfinite(wide), 2 * off + ulp(wide, of(value)), np.where(unknown, np.inf, 0.0)))
        else:
            out.append(off if of(value).kind in "iub" else 0.0)
    return out


class _Propagation:
    """base: the values of the program as the reference computes them.  off: how far each may be off.  unknown: masks of
    what follows from floats that may be off without limit.

    A node with integer results is a step: it hands on no small change, but may jump.  Its results are compared with
    those on operands that are off as far as they may be, and each jump is an error of its own."""

    def __init__(self, language: Nodes, g: Graph, inputs: Sequence[Any], opset: Any, narrow: bool) -> None:
        self.language, self.g, self.inputs, self.opset, self.narrow = language, g, inputs, opset, narrow
        self.stateful = bool(g.meta.get("states"))  # what is written has to be written anew: from the first op on
        self.rng = np.random.Generator(np.random.PCG64(7))
        self.base: dict[str, Any] = self._start()
        self.off: dict[str, np.ndarray] = {}
        self.unknown: dict[str, np.ndarray] = {}
        self.needs = [_needs(n) for n in g.nodes]

    def _start(self) -> dict[str, Any]:
        return {**self.g.consts, **self.language.feed(self.g, self.inputs)}

    def run(self, merges: bool = False) -> None:
        own: list[list[tuple[str, np.ndarray | None]]] = []
        for node in self.g.nodes:
            expected = self.language.node(self.g, node, self.base, self.opset)
            own.append(list(zip(node.outputs, self._errors(node, expected))))
            self.base.update(zip(node.outputs, [e.value for e in expected]))
        if self.narrow:
            for name, x in self._start().items():
                if isinstance(x, np.ndarray) and of(x).kind == "f":
                    lost = _narrowing(x.astype(np.float64))
                    if name in self.g.consts:  # whose rounding is in what uses them, but for what f16 does not hold
                        lost = np.where(np.isinf(lost), lost, 0.0)
                    if np.any(lost):
                        self._push(-1, name, lost)
        for name, x in self.g.consts.items() if merges else ():
            if isinstance(x, np.ndarray) and of(x).kind == "f":
                self._push(-1, name, np.asarray(ulp(x.astype(np.float64), of(x)) / 2))
        for i, node in enumerate(self.g.nodes):
            jumps = self._jumps(node, self.needs[i]) if self._step(node) and not self.stateful else {}
            for name, b in own[i]:
                if name in jumps:
                    b = jumps[name] if b is None else np.maximum(b, jumps[name])
                if b is not None and np.any(b):
                    self._push(i, name, b)

    def _errors(self, node: Node, expected: list[Any]) -> list[np.ndarray | None]:
        """How far each result of a node may be off on its own: by its op's bound, or by a rounding to f16; without
        limit where the specification leaves it open."""
        out: list[np.ndarray | None] = []
        shapes = [np.shape(e.value) for e in expected]
        masks = self.language.open(self.g, node, self.base, self.opset, shapes)
        for i, e in enumerate(expected):
            if not isinstance(e.value, np.ndarray) or e.dtype.kind not in "fciu" or _moves_only(e):
                out.append(None)
                continue
            if e.dtype.kind in "iu":
                b = np.asarray(e.error.bound(e.context()) if e.error.moves_integers else 0.0, np.float64)
            elif self.narrow:
                b = _narrowing(e.value.astype(np.float64))
            else:
                b = np.asarray(e.error.bound(e.context()), np.float64)
            b = np.where(np.isnan(b), np.inf, b)
            if e.dtype.kind == "f" and not self.narrow:
                b = _of_infinities(e, b)
            b = b + self.language.between(node, e, self.base)
            if masks is not None:
                b = np.where(masks[i], np.inf, b)
            out.append(np.broadcast_to(b, e.value.shape))
        return out

    def _step(self, node: Node) -> bool:
        return all(isinstance(self.base.get(n), np.ndarray) and of(self.base[n]).kind in "iub" for n in node.outputs)

    def _jumps(self, node: Node, needs: set[str]) -> dict[str, np.ndarray]:
        """How far the integer results of a node move where its operands are off as far as they may be."""
        moving = [n for n in needs if n in self.off]
        free = {n: b for n in moving for b, any_ in _parts(self.base[n], self.off[n]) if any_}
        out = self._moves(node, {n: self.off[n] for n in moving})
        for n, w in self._moves(node, free).items():
            out[n] = np.maximum(out[n], _unlimited(w))
        return out

    def _moves(self, node: Node, off: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """How far the results of a node move at most where its operands are off by so much."""
        out: dict[str, np.ndarray] = {}
        for k in range(4) if off else ():
            scope = dict(self.base)
            for n, b in off.items():
                signs: Any = np.full(b.shape, (1.0, -1.0)[k]) if k < 2 else self.rng.choice((-1.0, 1.0), size=b.shape)
                if self.base[n].dtype.kind == "c":
                    signs = signs * (1, 1, 1 + 1j, 1 - 1j)[k]
                scope[n] = _moved(self.base[n], 2 * b * signs)
            results = self._try(node, scope)
            for j, n in enumerate(node.outputs):
                new = np.full(np.shape(self.base[n]), np.inf) if results is None else _change(results[j], self.base[n])
                out[n] = np.maximum(out.get(n, 0.0), new)
        return out

    def _try(self, node: Node, scope: dict[str, Any]) -> list[Any] | None:
        """The results of a node; None where its operands are off so far that it has none."""
        try:
            with np.errstate(all="ignore"):
                return [e.value for e in self.language.node(self.g, node, scope, self.opset)]
        except (OpconformError, ValueError, IndexError, OverflowError, MemoryError):
            return None

    def _push(self, i: int, name: str, b: np.ndarray) -> None:
        """Add what a value, made by node i, moves when it is off by b."""
        for part, free in _parts(self.base[name], b):
            for n, w in self._worst(i, name, part).items():
                self.off[n] = self.off.get(n, 0.0) + (_unlimited(w) if free else w)
        if of(self.base[name]).kind == "f" and np.isinf(b).any():
            for n, w in self._worst(i, name, np.where(np.isinf(b), b, 0.0)).items():
                self.unknown[n] = self.unknown.get(n, False) | (w > 0)

    def _worst(self, i: int, name: str, b: np.ndarray) -> dict[str, np.ndarray]:
        """How far each value moves at most when one, made by node i, is off by b."""
        worst: dict[str, np.ndarray] = {}
        for signs in _signs(self.base[name], self.narrow, self.rng):
            scope = self._start() if self.stateful else dict(self.base)
            moved = scope[name] = _moved(self.base[name], b * signs)
            changed = {name}
            for k, node in enumerate(self.g.nodes):
                if not self.stateful and (k <= i or changed.isdisjoint(self.needs[k]) or self._step(node)):
                    continue
                results = self._try(node, scope)
                for j, n in enumerate(node.outputs):
                    if n == name:
                        scope[n] = moved
                        continue
                    if results is None:
                        worst[n] = np.full(np.shape(self.base[n]), np.inf)
                        scope[n] = self.base[n]
                    else:
                        scope[n] = results[j]
                    changed.add(n)
            for n in changed:
                if isinstance(self.base[n], np.ndarray) and of(self.base[n]).kind in "fiub":
                    worst[n] = np.maximum(worst.get(n, 0.0), _change(scope[n], self.base[n]))
        return worst


def _may_be_any(x: np.ndarray, off: np.ndarray) -> bool:
    """Whether elements of x are integers without limit.

    They may be any of their type, and the ends of the type tell little of the rest (a Cast to fewer bits makes 0 of
    one of them): what changes with such an element is without limit too."""
    return of(x).kind in "iu" and bool(np.isinf(off).any())


def _parts(x: np.ndarray, off: np.ndarray) -> Iterator[tuple[np.ndarray, bool]]:
    """How far x is off, the elements that may be any integer apart from the rest, and whether it is those."""
    free = np.isinf(off) if _may_be_any(x, off) else np.zeros(off.shape, bool)
    for part, which in ((np.where(free, 0.0, off), False), (np.where(free, off, 0.0), True)):
        if np.any(part):
            yield part, which


def _unlimited(moves: np.ndarray) -> np.ndarray:
    return np.where(moves > 0, np.inf, 0.0)


def _of_infinities(e: Expected, b: np.ndarray) -> np.ndarray:
    """The bound b of a node's result, at its infinities: none where sums in another order, or a value within the bound,
    may be finite, else 0."""
    value = e.value.astype(np.float64)
    infinite = np.isinf(value)
    if not infinite.any():
        return b
    if e.wide is None:
        return np.where(infinite, 0.0, b)
    ctx, wide = e.context(), np.asarray(e.wide, np.float64)
    unknown = free_of(e.error, ctx, wide, np.broadcast_to(b, value.shape))
    with np.errstate(invalid="ignore"):
        unknown = unknown | (np.isfinite(wide) & (np.abs(wide) - b <= float_max(e.dtype)))
    return np.where(infinite, np.where(unknown, np.inf, 0.0), b)


def _narrowing(v: np.ndarray) -> np.ndarray:
    """How far values are off where they are rounded to f16: without limit beyond that type."""
    return np.asarray(np.where(np.abs(v) > float_max(F16), np.inf, ulp(v, F16)))


def _needs(node: Node) -> set[str]:
    """Names of the values that a node uses, those that its blocks use among them."""
    found = Graph(nodes=[Node(node.op, node.inputs, [], node.attrs)]).outer
    return {n for n in found if n}


def _moves_only(e: Any) -> bool:
    """A complex value made without a rounding."""
    return bool(e.dtype.kind == "c" and e.error.exact)


def _change(now: Any, was: Any) -> np.ndarray:
    """How far a value moved; without limit where it became NaN or infinite."""
    a, b = np.asarray(now).astype(np.float64), np.asarray(was).astype(np.float64)
    if a.shape != b.shape:
        return np.full(b.shape, np.inf)
    with np.errstate(all="ignore"):
        change = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isnan(change), np.inf, change))


def _signs(x: Any, pairs: bool, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Sign patterns for x: a few at random, each with its opposite, since a value on a bend (a relu's 0) shows its
    error on one side alone; with pairs also some in which any two elements once agree and once differ, so that errors
    of two elements that could cancel are seen to add up.  A complex element moves to each of the four corners.
    """
    shape, signs, plane = np.shape(x), np.ones(np.shape(x)), np.asarray(x).dtype.kind == "c"
    for k in range(2):
        if not plane:
            signs = rng.choice((-1.0, 1.0), size=shape)
        elif k:
            signs = np.conj(signs)
        else:
            signs = rng.choice((1 + 1j, 1 - 1j), size=shape)
        yield signs
        yield -signs
    if pairs:
        index = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)
        corner = 1 + 1j if plane else 1.0
        yield np.full(shape, corner)
        yield np.full(shape, -corner)
        for bit in range(max(0, index.size - 1).bit_length()):
            yield corner * (1 - 2 * ((index >> bit) & 1))


def _moved(x: np.ndarray, off: np.ndarray) -> np.ndarray:
    """x off by so much; an integer within its type.

    A float moves to its neighbour at least where it is off by half a step: half of all would come back otherwise, since
    ties are rounded to even."""
    with np.errstate(all="ignore"):
        if x.dtype.kind == "c":
            return np.asarray((x.astype(np.complex128) + off).astype(x.dtype))
        if of(x).kind == "b":
            return np.where(np.abs(off) >= 0.5, off > 0, x)
        if of(x).kind in "iu":
            low, high = int_range(of(x))
            wide = np.clip(x.astype(np.float64) + np.where(np.isnan(off), 0.0, np.rint(off)), low, high)
            near = np.where(off == 0, x, np.clip(wide, low, high - (high > 2**53) * 1024).astype(x.dtype))
            return np.asarray(near, x.dtype)
        wide, step = x.astype(np.float64), ulp(x.astype(np.float64), of(x))
        moved = (wide + off).astype(x.dtype)
        back = (moved == x) & (np.abs(off) >= step / 2)
        return np.asarray(np.where(back, (wide + np.copysign(step, off)).astype(x.dtype), moved))
