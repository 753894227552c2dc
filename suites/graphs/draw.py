"""Random graphs, drawn forward: each node is an instance of a declared op on values that are there, or on fresh ones.

The generators are those of single ops.  They are asked for an operand of the type and shape of a value of the graph
(``Steered``).  Every operand of the drawn instance that has type and shape of a value may become that value.  The
reference evaluates each node at once.  A node that breaks a rule, leaves something open or says little is drawn again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, DType, of
from harness.core.errors import OpconformError
from harness.core.instance import SAME, SKIPPED, Arg, Graph, Instance, Node
from harness.core.limits import bounded
from harness.core.quiet import quiet
from harness.declare import Dialect, Draw, OpVersion, T
from harness.declare.codec import Slotted
from harness.declare.interpreter import call_of_node
from harness.generate import ends
from harness.generate.draw_engines import Prng
from harness.generate.recipes import materialize
from suites.graphs.pool import PLAIN, Pool
from suites.graphs.steered import MAX_RANK, draw_on

EXTENTS = (1, 2, 3, 4, 5, 7, 8)
LARGEST = 1024  # elements of a value
ROOM = 1 << 26  # bytes that the reference may need for a node
TRIES = 40  # draws of one node
FLOATS = ("small", "unit", "uniform:-4:4")  # of a fresh operand, most often
ANYTHING = ("small", "unit", "wide", "special", "ties", "full")  # recipes of operands that may hold any value
BOUNDED = ("uniform", "positive", "prob", "nonzero", "iota", "branch")  # of floats that are only asked for as usual
DROPPED = (SAME, "@undeclared_shapes")  # attributes of an instance that its node has not
DECLINED = {"@sparsity", "@calls", "@program", "@intermediates", "@read", "@captured"}  # of instances that are no node
SELDOM = 8  # what says little, or is not finite, stays once in so many times
LONGEST = 1 << 12  # extent of a value that another node may take
MOST_RANK = 4  # of a fresh operand, in most graphs
ODD = 12  # one graph in so many has empty values, one high ranks, one an element type that few ops take, one NaN


@dataclass(frozen=True)
class Kind:
    """What graphs of one kind are drawn with.

    nodes: fewest and most.
    types: element types of the graphs, each as often as it stands there.
    shapes_by_data: ops whose results have another shape for other data; their operands are constants.
    scalar_inputs: may an input have rank 0?
    further: element types of which a graph may be, one in ``ODD``.
    """

    nodes: tuple[int, int]
    types: Sequence[DType]
    shapes_by_data: frozenset[str] = frozenset()
    scalar_inputs: bool = True
    further: Sequence[DType] = ()


@dataclass(frozen=True)
class Value:
    """A value of the graph."""

    name: str
    dtype: DType
    shape: tuple[int, ...]


More = Callable[[OpVersion, Instance], dict[str, Any]]


class Discarded(Exception):
    """The drawn node is no use here."""


def no_more(version: OpVersion, inst: Instance) -> dict[str, Any]:
    """A node has the attributes of its instance alone."""
    return {}


class Drawing:
    """A graph under construction.

    g: the graph; its inputs are called p0, p1, ...  ``inputs`` holds their data.
    more: further attributes of the node that an instance becomes.
    scope: all values by name.
    """

    def __init__(self, dialect: Dialect, pool: Pool, kind: Kind, opset: Any, d: Draw, more: More = no_more) -> None:
        self.dialect, self.pool, self.kind, self.opset, self.d, self.more = dialect, pool, kind, opset, d, more
        self.main: DType = d.pick(kind.types)
        self.palette = sorted({d.pick(EXTENTS) for _ in range(3)})
        self.ranks, self.empty, self.at_ends = MOST_RANK, False, False
        self._odd(d.int(0, ODD - 1))
        self.g, self.inputs = Graph(), list[Arg]()
        self.scope: dict[str, Any] = {}
        self.values: list[Value] = []  # at run time: inputs and results
        self.used: set[str] = set()

    def _odd(self, how: int) -> None:
        """Makes the graph one of empty values, high ranks, a type that few ops take, or NaN and infinities."""
        if how == 0 and self.dialect.allow_empty:
            self.palette, self.empty = [0, *self.palette], True
        elif how == 1:
            self.palette, self.ranks = [1, 2, self.d.pick((1, 2, 3))], self.dialect.max_rank
        elif how == 2 and self.kind.further:
            self.main = self.d.pick(self.kind.further)
        self.at_ends = how == 3

    def grow(self) -> None:
        """Draw all nodes.  Raises Discarded where no node could be drawn."""
        for _ in range(self.d.int(*self.kind.nodes)):
            if not any(self._try() for _ in range(TRIES)) and not self.g.nodes:
                raise Discarded("no first node")

    # -- one node

    def _try(self) -> bool:
        """Add a node, or leave the graph as it is."""
        held = len(self.inputs), len(self.g.consts), set(self.used)
        values = list(self.values)
        try:
            self._add()
        except (Discarded, OpconformError, ValueError, TypeError, LookupError, ArithmeticError, MemoryError):
            for name in [f"p{k}" for k in range(held[0], len(self.inputs))] + list(self.g.consts)[held[1] :]:
                self.scope.pop(name, None)
                self.g.consts.pop(name, None)
            del self.inputs[held[0] :]
            self.values, self.used = values, held[2]
            return False
        return True

    def _add(self) -> None:
        d = self.d
        target = self._target()
        dtype = self.main if target is None else target.dtype
        versions = d.pick(self.pool.taking(dtype) or self._no_op(dtype))
        v, slots = versions[0] if d.int(0, 3) else d.pick(versions)
        slot = d.pick(slots)
        shape = target.shape if target is not None else tuple(d.pick(self.palette) for _ in range(self._rank(v)))
        types = self._types(v, slot, dtype)
        inst = draw_on(v, d.engine, self.opset, types, slot, shape, self.palette, max(MAX_RANK, self.ranks))
        fixed = v.op in self.kind.shapes_by_data
        always = constants_of(v) | {inst.attrs.get("@const")}  # the one of two that must be, of mixed types
        slotted = {s: self._operand(inst, s, a, target, fixed or s in always) for s, a in inst.args.items()}
        mine = [n for given in slotted.values() for n in (given if isinstance(given, list) else [given])]
        if self.g.nodes and not fixed and not self.produced.intersection(mine):
            raise Discarded("stands alone")
        self._place(v, inst, slotted)

    def _rank(self, v: OpVersion) -> int:
        """Of a fresh operand; high ones half the time, where the graph has some and the op takes them."""
        most = min(self.ranks, v.ranks[1])
        return self.d.int(MOST_RANK + 1, most) if most > MOST_RANK and self.d.bool() else self.d.int(1, MOST_RANK)

    @property
    def produced(self) -> set[str]:
        """Names of the results of all nodes."""
        return {n for node in self.g.nodes for n in node.outputs if n}

    def _no_op(self, dtype: DType) -> Any:
        raise Discarded(f"no op takes {dtype}")

    def _target(self) -> Value | None:
        """The value that the next node is to take; those of the graph's type and unused ones more often."""
        if not self.values:
            return None
        some = [x for x in self.values if x.dtype is self.main] if self.d.int(0, 3) else self.values
        idle = [x for x in some if x.name not in self.used]
        return self.d.pick(idle) if idle and self.d.int(0, 3) else self.d.pick(some or self.values)

    def _types(self, v: OpVersion, slot: str, dtype: DType) -> dict[str, DType]:
        """The element types of the op's type names: the target's, else that of the graph, else any."""
        out: dict[str, DType] = {}
        mine = next(s.element for s in v.schema.inputs if s.name == slot)
        for t, options in v.weighted.items():
            if t == mine:
                out[t] = dtype
            elif self.main in options and self.d.int(0, 7):
                out[t] = self.main
            elif options:
                out[t] = self.d.pick(options)
        return out

    def _operand(self, inst: Instance, slot: str, a: Arg | list[Arg], target: Value | None, fixed: bool) -> Any:
        """The names of the values that a slot is given."""
        if isinstance(a, list):
            return [self._one(inst, slot, x, target, fixed) for x in a]
        return self._one(inst, slot, a, target, fixed)

    def _one(self, inst: Instance, slot: str, a: Arg, target: Value | None, fixed: bool) -> str:
        if a.kind != "tensor" or a.items is not None or a.quant or a.dtype.kind not in PLAIN:
            raise Discarded("no plain tensor")
        if not fixed and self._free(inst, slot, a):
            fit = [x for x in self.values if (x.dtype, x.shape) == (a.dtype, a.shape)]
            if target in fit and target is not None and target.name not in self.used:
                return self._use(target.name)
            if fit and self.d.int(0, 3):
                return self._use((target if target in fit and self.d.bool() else self.d.pick(fit)).name)
        return self._fresh(a, fixed)

    def _offer(self, x: Value) -> None:
        """Let later nodes take a value, but for one with a far extent: beside it, lists as long would be drawn."""
        if max(x.shape, default=0) <= LONGEST:
            self.values.append(x)

    def _use(self, name: str) -> str:
        self.used.add(name)
        return name

    @staticmethod
    def _free(inst: Instance, slot: str, a: Arg) -> bool:
        """May the operand be any value of its type and shape?"""
        if a.values is not None or a.encoding:
            return False
        recipe = a.recipe.partition(":")[0]
        if a.dtype.kind == "b":
            return True
        return recipe in ANYTHING or (a.dtype.kind == "f" and recipe in BOUNDED)

    def _fresh(self, a: Arg, fixed: bool) -> str:
        """A new constant or input."""
        if prod(a.shape) > 4 * LARGEST:
            raise Discarded("too large")
        recipe = a.recipe
        anything = a.values is None and recipe in ANYTHING
        if anything and self.d.int(0, SELDOM - 1):
            recipe = self.d.pick(FLOATS) if a.dtype.kind == "f" else "small"
        arg = replace(a, recipe=recipe, dynamic=(), encoding="", const=False)
        special = anything and self.at_ends and a.dtype.kind == "f"
        if a.values is None and (special or recipe == "special") and 0 < prod(a.shape) <= ends.MOST and self.d.bool():
            arg = replace(arg, values=ends.elements(self.d, arg))
        data = materialize(arg)
        literal = a.values is not None or a.dtype.kind != "f"  # which a second draw of data must not change
        scalar = not a.shape and not self.kind.scalar_inputs
        if a.const or fixed or scalar or a.values is not None or self.d.chance(3):
            name = f"c{len(self.g.consts)}"
            self.g.consts[name] = data
        else:
            if literal:
                arg = replace(arg, values=data.ravel().tolist())
            name = f"p{len(self.inputs)}"
            self.inputs.append(arg)
            self._offer(Value(name, arg.dtype, arg.shape))
            self.used.add(name)
        self.scope[name] = data
        return name

    def _place(self, v: OpVersion, inst: Instance, slots: dict[str, Any]) -> None:
        """Evaluate the node, and keep it if its results say something."""
        i = len(self.g.nodes)
        skipped = inst.attrs.get(SKIPPED, ())
        if DECLINED.intersection(inst.attrs):
            raise Discarded("more than a node")
        outs = ["" if k in skipped else f"{v.op.lower()}_{i}" + (f"_{k}" if k else "") for k in range(inst.outs)]
        attrs = {k: x for k, x in inst.attrs.items() if k not in DROPPED} | self.more(v, inst)
        old = self.dialect.effective(v.op, self.opset) is not v
        node = Node(v.op, slots, outs, attrs, v.version if old else None)
        tensors = self._declared(inst, outs)
        with quiet, bounded(ROOM):
            call = call_of_node(self.dialect, node, self.scope, self.opset, self.g.meta)
            if v.underspecified(call) is not None:
                raise Discarded("leaves something open")
            v.check(call)
            results = [e.value for e in v.evaluate(call)]
        if len(results) != len(outs):
            raise Discarded("other outputs")
        made = []
        for name, x in zip(outs, results):
            if name:
                made.append(self._told(name, x))
                self.scope[name] = x
        if self.dialect.declares_outputs:
            for x in made:
                tensors[x.name] = {"dtype": x.dtype, "shape": list(x.shape)}
        self.g.nodes.append(node)
        for x in made:
            self._offer(x)

    def _declared(self, inst: Instance, outs: list[str]) -> dict[str, Any]:
        """The declared tensors of the graph, with what the instance declares of its results."""
        tensors: dict[str, Any] = self.g.meta.setdefault("tensors", {}) if self.dialect.declares_outputs else {}
        for name in outs:
            tensors.pop(name, None)  # of a node that was drawn before in this place
        for name, told in zip(outs, inst.attrs.get("@outputs") or ()):
            if told is not None:
                if told.get("quant"):
                    raise Discarded("quantised")
                d = told["dtype"]
                tensors[name] = {"dtype": BY_NAME[d] if isinstance(d, str) else d}
        return tensors

    def _told(self, name: str, x: Any) -> Value:
        if not isinstance(x, np.ndarray) or of(x).kind not in PLAIN or x.size > LARGEST or x.ndim > max(6, self.ranks):
            raise Discarded("no value of a graph")
        meant = not x.size if self.empty else self.at_ends and of(x).kind == "f" and not np.isfinite(x).all()
        if says_little(x) and not meant and not self.d.chance(SELDOM):
            raise Discarded("says little")
        return Value(name, of(x), x.shape)

    # -- the end

    def finish(self) -> dict[str, Any]:
        """What the generator of an entry returns.  Each result that no node uses is an output, others now and then."""
        d, outs = self.d, []
        for name in (n for node in self.g.nodes for n in node.outputs if n):
            if name not in self.used or d.chance(6):
                outs.append(name)
        self.g.outputs = outs
        if self.dialect.declares_extents and not self.g.meta.get("tensors") and d.chance(4):
            free = {f"p{i}": [k for k in range(len(a.shape)) if d.bool()] for i, a in enumerate(self.inputs)}
            self.g.meta["open"] = {k: v for k, v in free.items() if v}
        return {
            "inputs": [T(a.shape, a.recipe, a.dtype, False) for a in self.inputs],
            "program": self.g,
            "pattern": " ".join(n.op for n in self.g.nodes),
            "@outs": len(outs),
        }


@cache
def constants_of(v: OpVersion) -> frozenset[str]:
    """Slots that take a constant alone."""
    told = {s.name for s in v.schema.inputs if s.const}
    return frozenset(told | {c.slot for c in v.tensor_codecs.values() if isinstance(c, Slotted) and c.const})


def says_little(x: np.ndarray) -> bool:
    """Has it NaN, infinities or large numbers, or is it empty or all one value?"""
    if not x.size:
        return True
    with np.errstate(all="ignore"):
        if of(x).kind == "f":
            wide = x.astype(np.float64)
            if not np.isfinite(wide).all() or np.abs(wide).max() > 1e4:
                return True
        return bool(x.size > 3 and (x == x.ravel()[0]).all())


def drawn(dialect: Dialect, pool: Pool, kind: Kind, d: Draw, more: More = no_more) -> tuple[dict[str, Any], list[Arg]]:
    """A random graph, as the generator of an entry returns it, and the arguments of its inputs.  One number is drawn
    from ``d``, the seed of all the rest: a smaller graph comes from the graph, not from smaller choices."""
    seed = d.int(0, 0x7FFFFFFF)
    for k in range(TRIES):
        inner = Draw(Prng(seed + k), d.version, d.opset, {}, {}, 4, False, LARGEST, 0)
        made = Drawing(dialect, pool, kind, d.opset, inner, more)
        try:
            made.grow()
        except Discarded:
            continue
        if made.inputs and len(made.g.nodes) >= kind.nodes[0]:
            return made.finish(), made.inputs
    raise ValueError(f"no graph of seed {seed}")
