"""Small MIL programs for graph passes: how they are written down, run, and how far a rewritten one may be off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from harness.core.dtypes import F16, F32, DType, float_max, of
from harness.core.instance import Graph, Node
from harness.spec import Call, Context, Draw, ErrorClass, T, composed, exact
from harness.spec.errors import ulp
from suites.mil import dialect as mil
from suites.mil.running import State, settle

Ref = str | tuple[str, ...]
# What a program's ``meta`` may say to the backend beside ``fires``; see ``harness/backends/coremltools_passes.py``.
HEADER = ("images", "names", "options", "output_types", "function")


class Program:
    """A program under construction: ``p.input``, ``p.op`` give names; what is not a name becomes a constant."""

    def __init__(self, d: Draw, dtype: DType | None = None) -> None:
        self.d, self.g = d, Graph()
        self.dtype = dtype or (F16 if d.chance(4) else F32)
        self.tensors: list[T] = []
        self.kind = ""  # what a helper has to say about the program, for its pattern

    def input(self, shape: Any, recipe: str | None = None, dtype: DType | None = None, state: bool = False,
              symbols: tuple[str, ...] = ()) -> str:  # fmt: skip
        """A run-time input; its data is moderate, so that nothing overflows on the way.  symbols: one for each axis,
        "" where the extent is known.
        """
        name = f"p{len(self.tensors)}"
        recipe = recipe or self.d.pick(("unit", "small", "uniform:-4:4"))
        kind = "state" if state else "tensor"
        self.tensors.append(T(tuple(shape), recipe, dtype or self.dtype, False, kind=kind))
        if symbols:
            self.g.meta.setdefault("symbols", {})[name] = list(symbols)
        return name

    def const(self, value: Any, dtype: DType | None = None, shared: bool = False, plain: bool = False) -> str:
        """A constant: an array or number, in the program's float type unless it says otherwise.  shared: one ``const``
        op for all that use it, where each would have its own.  plain: a Python number, as front ends write them, where
        it would be NumPy's, as a program read from a file has them.
        """
        a = np.asarray(value)
        if dtype is not None:
            a = a.astype(dtype.np)
        elif a.dtype.kind == "f":
            a = a.astype(self.dtype.np)
        elif a.dtype.kind == "i" and a.dtype.itemsize == 8:
            a = a.astype(np.int32)
        elif a.dtype.kind == "U":
            a = a.astype(object)
        name = f"c{len(self.g.consts)}"
        self.g.consts[name] = a
        for mark, yes in (("shared", shared), ("plain", plain)):
            if yes:
                self.g.meta.setdefault(mark, []).append(name)
        return name

    def weights(self, shape: Any, lo: int = -4, hi: int = 4, scale: float = 0.25) -> np.ndarray:
        """Values on a grid, from one draw."""
        n = int(np.prod(shape))
        start, step = self.d.int(0, 16), self.d.pick((1, 3, 5, 7))
        span = hi - lo + 1
        return (np.array([lo + (start + k * step) % span for k in range(n)]) * scale).reshape(shape)

    def op(self, op: str, outs: int = 1, **inputs: Any) -> Any:
        """A node; returns the name of its output, or a list of names."""
        slots: dict[str, Any] = {}
        attrs: dict[str, Any] = {}
        for slot, v in inputs.items():
            if isinstance(v, Graph):
                attrs[slot] = v
            elif isinstance(v, tuple) and v and all(isinstance(x, str) for x in v):
                slots[slot] = list(v)
            elif isinstance(v, str) and (v in self.g.consts or self._made(v)):
                slots[slot] = v
            else:
                slots[slot] = self.const(v)
        names = [f"{op}_{len(self.g.nodes)}" + (f"_{i}" if outs > 1 else "") for i in range(outs)]
        self.g.nodes.append(Node(op, slots, names, attrs))
        return names[0] if outs == 1 else names

    def _made(self, name: str) -> bool:
        return any(name in n.outputs for n in self.g.nodes) or name in {f"p{i}" for i in range(len(self.tensors))}

    def done(self, *outputs: str, fires: bool = True, pattern: str = "", **header: Any) -> dict[str, Any]:
        """What the generator of an entry returns.  fires: does the program hold the pass's pattern?  header: what else
        the backend is told (``HEADER``).
        """
        self.g.outputs = list(outputs)
        self.g.meta.update(header)
        self.g.meta["fires"] = bool(fires)
        self.g.meta["states"] = [f"p{i}" for i, t in enumerate(self.tensors) if t.kind == "state"]
        return {"inputs": self.tensors, "program": self.g, "pattern": pattern or ("match" if fires else "near miss"),
                "@outs": 1 + len(outputs)}  # fmt: skip


_SETTLED: dict[int, tuple[Graph, Any, Graph]] = {}


def settled(g: Graph, opset: Any) -> Graph:
    """The program as the interpreter takes it: constant parameters as attributes (a copy; the last few are kept)."""
    kept = _SETTLED.get(id(g))
    if kept is None or kept[0] is not g or kept[1] != opset:
        copy = deepcopy(g)
        kept = (g, opset, settle(mil, copy, opset))
        while len(_SETTLED) > 64:
            _SETTLED.pop(next(iter(_SETTLED)))
        _SETTLED[id(g)] = kept
    return kept[2]


def _feed(call: Call) -> dict[str, Any]:
    """Values by name; what is declared a state runs as one."""
    states = set(call.attrs["program"].meta.get("states", ()))
    values = {f"p{i}": x for i, x in enumerate(call.inputs["inputs"])}
    return {k: State(v) if k in states else v for k, v in values.items()}


def _node(node: Node, scope: dict[str, Any], opset: Any) -> list[Any]:
    inputs = {s: [scope[n] for n in v] if isinstance(v, list) else scope[v] for s, v in node.inputs.items() if v}
    v = mil.effective(node.op, opset, node.attrs.get("@domain", ""))
    return v.evaluate(Call(v, node.attrs, inputs, opset, n_outs=len(node.outputs), run=mil.runner(opset, scope)))


def run(call: Call) -> list[Any]:
    """Does the pass have something to do, and the outputs of the program before it."""
    program = call.attrs["program"]
    g = settled(program, call.opset)
    scope = {**g.consts, **_feed(call)}
    for node in g.nodes:
        scope.update(zip(node.outputs, [e.value for e in _node(node, scope, call.opset)]))
    results = [np.array(bool(program.meta["fires"])), *(np.array(scope[n]) for n in g.outputs)]
    call.outs = [{"dtype": of(r)} for r in results]
    return [r.astype(np.float64) if r.dtype.kind == "f" else r for r in results]  # wide: judged by the bound


def _moves_only(e: Any) -> bool:
    """A complex value made without a rounding."""
    return bool(e.dtype.kind == "c" and e.error.kind == "exact")


def _errors(node: Node, expected: list[Any], narrow: bool) -> list[Any]:
    """How far each float result of a node may be off on its own: by its op's bound, or by a rounding to f16."""
    out = []
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


def bounds(call: Call, narrow: bool) -> list[Any]:
    """First-order propagation by evaluation: every value of the program moved by its own error, one at a time and
    with several sign patterns, and the changes of the outputs added up.  Twice that, since both programs round, plus
    one ulp.
    """
    g = settled(call.attrs["program"], call.opset)
    base: dict[str, Any] = {**g.consts, **_feed(call)}
    stateful = bool(g.meta.get("states"))  # what is written has to be written anew: from the first op on
    own: list[tuple[int, str, Any]] = []
    if narrow:
        for name, x in _feed(call).items():
            if isinstance(x, np.ndarray) and of(x).kind == "f":
                own.append((-1, name, ulp(x.astype(np.float64), F16)))
    for i, node in enumerate(g.nodes):
        expected = _node(node, base, call.opset)
        own += [(i, n, b) for n, b in zip(node.outputs, _errors(node, expected, narrow)) if b is not None]
        base.update(zip(node.outputs, [e.value for e in expected]))
    rng = np.random.Generator(np.random.PCG64(7))
    total = [np.zeros(np.shape(base[n])) for n in g.outputs]
    for i, name, b in own:
        worst = [np.zeros_like(t) for t in total]
        for signs in _signs(np.shape(b), narrow, rng):
            scope = {**g.consts, **_feed(call)} if stateful else dict(base)
            moved = _moved(base[name], b * signs, rng)
            with np.errstate(all="ignore"):
                scope[name] = moved
                for node in g.nodes if stateful else g.nodes[i + 1 :]:
                    scope.update(zip(node.outputs, [e.value for e in _node(node, scope, call.opset)]))
                    if name in node.outputs:
                        scope[name] = moved
                for k, out in enumerate(g.outputs):
                    if of(np.asarray(base[out])).kind != "f":
                        continue
                    change = np.abs(scope[out].astype(np.float64) - base[out].astype(np.float64))
                    worst[k] = np.maximum(worst[k], np.where(np.isnan(change), np.inf, change))
        total = [t + w for t, w in zip(total, worst)]
    wide = [np.asarray(base[n]) for n in g.outputs]
    return [2 * t + ulp(v.astype(np.float64), of(v)) if of(v).kind == "f" else 0.0 for t, v in zip(total, wide)]


def error_classes(narrow: bool = False, outputs: int = 4) -> tuple[ErrorClass, ...]:
    """Exact for whether the pass acts; propagated roundings for every output."""

    def of_output(k: int) -> ErrorClass:
        def bound(ctx: Context) -> Any:
            return bounds(ctx.call, narrow)[k]

        what = "every value rounded to f16" if narrow else "every op's own error"
        return composed(bound, f"{what}, propagated through the program, twice, + ulp")

    return (exact(), *(of_output(k) for k in range(outputs)))


Make = Callable[[Draw], dict[str, Any]]


def either(*makes: Make) -> Make:
    """One of several generators."""
    return lambda d: d.pick(makes)(d)
