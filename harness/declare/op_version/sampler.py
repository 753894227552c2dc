"""The draws of an op version: from random choices to an instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np

from harness.core.dtypes import DType
from harness.core.errors import UsageError
from harness.core.instance import SAME, Arg, Instance
from harness.declare.codec import Build, Slotted
from harness.declare.op_version.nearby import at_edges
from harness.declare.op_version.resolved import Resolved
from harness.generate.draw import Draw, DrawEngine, T

_SAME_EVERY = 16  # one instance in so many gives two inputs one tensor, where it can
BUDGET = 1024  # elements that a drawn tensor may have
FLOAT_REGIMES = ("small", "unit", "small", "wide", "special", "ties", "unit", "uniform:-4:4")
INT_REGIMES = ("small", "full", "small", "special")


class Sampler(Resolved):
    """What can be drawn of an op version."""

    def draw(self, engine: DrawEngine, opset: Any = None, edges: bool = True) -> Instance:
        """A valid instance.  opset: where the model is built; None draws one from the range, the ends favoured.  edges:
        may a place be moved to an edge (``harness.declare.op_version.nearby``), where the dialect does that?"""
        if opset is None:
            r = self.opsets
            opset = r[(0, -1, engine.int(0, len(r) - 1))[engine.int(0, 2)]] if len(r) > 1 else r[0]
        d = self.begin(engine, opset)
        e = self.entry
        if e.sampling.draw is not None:
            b = self.encode_raw(d, e.sampling.draw(d))
        else:
            assert self.meaning is not None
            b = self.encode(d, self.meaning.derive(d))
        inst = self.instance(d, b)
        return at_edges(self, d, inst) if edges and self.dialect.draws_edges else inst

    def begin(self, engine: DrawEngine, opset: Any) -> Draw:
        """The start of an instance: its element types are drawn, nothing else."""
        types = self._types(engine)
        lo, hi = self.ranks
        return Draw(engine, self, opset, self.entry.spelling.fixed, types, hi, self.dialect.allow_empty, BUDGET, lo)

    def _types(self, engine: DrawEngine) -> dict[str, DType]:
        """By name, each drawn on its own or as one of all combinations; half the time all are the same, where they may
        be."""
        if self.in_turn:
            return dict(self._combinations[engine.int(0, len(self._combinations) - 1)])
        types: dict[str, DType] = {}
        first: DType | None = None
        alike = self.may_agree and engine.int(0, 1) == 0
        for t, options in self.weighted.items():
            n = len(options)
            if n == 1:
                types[t] = options[0]
            elif n:
                types[t] = first if alike and first in options else options[engine.int(0, n - 1)]
            else:
                continue
            if first is None:
                first = types[t]
        return types

    @cached_property
    def in_turn(self) -> bool:
        """Do all combinations of element types come in turn?"""
        return self.entry.sampling.even and not self.may_agree

    @cached_property
    def _combinations(self) -> list[tuple[tuple[str, DType], ...]]:
        """Of element types by name."""
        return list(product(*([(t, x) for x in options] for t, options in self.weighted.items() if options)))

    def encode(self, d: Draw, values: dict[str, Any]) -> Build:
        """values: by semantic name, as the meaning derives them."""
        b = Build(self, d, values)
        for name, slot, as_const, encode in self._tensor_encoders:
            v = values.get(name)
            if slot is not None and type(v) is T:
                b.args[slot] = self.make_arg(d, slot, v, as_const)
            elif v is not None:
                encode(v, b)
        for name, encode in self._param_encoders:
            if name in values:
                encode(values[name], b)
        return b

    @cached_property
    def _tensor_encoders(self) -> list[tuple[str, str | None, bool | None, Callable[[Any, Build], None]]]:
        """Per semantic tensor the slot that one tensor is given to as it is, with its constness, and the encoder of
        whatever else."""
        plain = {
            n: c.slot
            for n, c in self.tensor_codecs.items()
            if type(c) is Slotted and c.to_theirs is None and c.slot not in self.variadic
        }
        return [(n, plain.get(n), getattr(c, "const", None), c.encode) for n, c in self.tensor_codecs.items()]

    @cached_property
    def _param_encoders(self) -> list[tuple[str, Callable[[Any, Build], None]]]:
        return [(n, c.encode) for n, c in self.param_codecs.items()]

    def encode_raw(self, d: Draw, values: dict[str, Any]) -> Build:
        """values: by slot or attribute, as an entry's own generator gives them."""
        b = Build(self, d, values)
        for name, v in values.items():
            if isinstance(v, T):
                b.tensor(name, v)
            elif isinstance(v, list) and v and isinstance(v[0], T):
                for t in v:
                    b.tensor(name, t)
            elif name.startswith("@") or name not in self.slots_of_schema:
                if v is not None:
                    b.attrs[name] = v
            else:
                b.value(name, v)
        return b

    def instance(self, d: Draw, b: Build) -> Instance:
        """The instance of what was encoded, after the dialect's last touch."""
        attrs = b.attrs
        n = self.entry.sampling.outs
        if n is None:
            n = self._required_outs
        elif callable(n):
            n = n(d, b.values)
            if n is None:
                n = self._required_outs
        if "@outs" in attrs:
            n = attrs.pop("@outs")
        dialect = self.dialect
        inst = dialect.finish(self, d, Instance(dialect.name, self.op, self.version, d.opset, attrs, b.args, n))
        if d.breaking or inst.evaluated is not None or inst.attrs.get(SAME):
            return inst  # what was evaluated already stays as it is
        if dialect.shares_tensors and self.alike and d.chance(_SAME_EVERY):
            self._share(d, inst)
        if dialect.shares_elements and self.variadic and d.chance(_SAME_EVERY):
            self._share_listed(d, inst)
        return inst

    def _share_listed(self, d: Draw, inst: Instance) -> None:
        """Give one tensor to two places of a variadic slot, where type and shape allow it."""
        kept = self.dialect.keeps(self)
        for slot in sorted(self.variadic):
            given = inst.args.get(slot)
            if isinstance(given, list) and f"same:{slot}" not in kept:
                may = [(j, k) for k in range(len(given)) for j in range(k) if _replaces(given[j], given[k])]
                if may:
                    j, k = d.pick(may)
                    given[k] = replace(given[j])
                    inst.attrs.setdefault(SAME, {})[f"{slot}#{k}"] = f"{slot}#{j}"

    def _share(self, d: Draw, inst: Instance) -> None:
        """Give one tensor to two slots, where type, shape and what may be in them allow it; half of the others that
        may have it get it too."""
        may = [(a, b) for a, b in self.alike if self._exchangeable(inst.args.get(a), inst.args.get(b), a, b)]
        if may:
            a, b = d.pick(may)
            others = [c for x, c in may if x == a and c != b]
            for slot in (b, *(c for c in others if d.bool())):
                inst.attrs.setdefault(SAME, {})[slot] = a
            slots = (a, *(s for s, of in inst.attrs[SAME].items() if of == a))
            given = replace(inst.tensor(a), const=inst.tensor(a).const or any(self._slots[s].const for s in slots))
            inst.args.update({s: replace(given) for s in slots})

    def _exchangeable(self, x: Any, y: Any, a: str, b: str) -> bool:
        if type(x) is not Arg or type(y) is not Arg or x.values != y.values:
            return False
        alike = x.dtype is y.dtype and x.shape == y.shape and x.kind == y.kind == "tensor" and x.quant == y.quant
        if not alike or x.recipe == y.recipe or x.values is not None:
            return alike
        return all(z.recipe in self._recipes_of(s, z.dtype) for z in (x, y) for s in (a, b))

    @cached_property
    def alike(self) -> list[tuple[str, str]]:
        """Pairs of inputs of one type; where one is a constant, what both are given is one."""
        plain = [s for s in self.schema.inputs if s.container is None and not s.variadic]
        states = self.schema.extra.get("states", ())  # which the op writes to
        plain = [s for s in plain if s.name not in states and not (s.const and self.dialect.packs_weights)]
        return [(a.name, b.name) for a, b in combinations(plain, 2) if a.type == b.type]

    @cached_property
    def _required_outs(self) -> int:
        return sum(1 for o in self.schema.outputs if not o.optional) or 1

    def make_arg(self, d: Draw, slot: str, t: T, as_const: bool | None = None) -> Arg:
        """The Arg of a drawn tensor: type from the slot, recipe from the regime, constness from slot and dialect."""
        s = self._slots.get(slot)
        if s is None:
            raise UsageError(f"{self.key}: no slot {slot}, expected one of {sorted(self.slots_of_schema)}")
        dt = t.dtype or d.types.get(s.element)
        if dt is None:
            raise UsageError(f"{self.key}: slot {slot} of type {s.type} has no drawable dtype")
        given = as_const if t.const is None else t.const
        if s.const:
            const = True
        elif given is None:
            const = self.dialect.draws_const(self, s, t, d)
            if not const and 0 in t.shape and self.dialect.const_chance and s.container is None:
                const = d.chance(3)
        else:
            const = bool(given)
        values = t.values
        if values is not None and not isinstance(values, list):
            values = list(np.asarray(values, object).ravel())
        items = None
        if t.items is not None:
            items = [self.make_arg(d, slot, x, False) for x in t.items]
        recipe = t.recipe
        if not recipe:
            options = self._recipes[slot].get(dt)
            if options is None:
                options = self._recipes[slot][dt] = self._recipes_of(slot, dt)
            recipe = d.pick(options) if len(options) > 1 else options[0]
        seed = 0 if values is not None else d.int(0, 0x7FFFFFFF)
        return Arg(dt, t.shape, const, recipe, seed, values, t.kind, items, t.quant)

    @cached_property
    def _recipes(self) -> dict[str, dict[DType, tuple[str, ...]]]:
        """By slot and element type, as they are first asked for."""
        return {name: {} for name in self._slots}

    def _recipes_of(self, slot: str, dt: DType) -> tuple[str, ...]:
        data = self.entry.sampling.data or (self.meaning.data if self.meaning is not None else None)
        if isinstance(data, Mapping):
            data = data.get(self._semantic_name(slot)) or data.get(slot)
        if isinstance(data, str):
            return (data,)
        if data:
            return tuple(data)
        if dt.kind in "fc":
            return FLOAT_REGIMES
        if dt.kind in "iu":
            return INT_REGIMES
        return ("bool",) if dt.kind == "b" else ("strings",)

    def _semantic_name(self, slot: str) -> str:
        for name, codec in self.tensor_codecs.items():
            if isinstance(codec, Slotted) and codec.slot == slot:
                return name
        return slot


def _replaces(a: Arg, b: Arg) -> bool:
    """May a tensor stand for another one?  Its type, shape and domain are the same."""
    plain = a.kind == b.kind == "tensor" and a.items is None is b.items and a.values is None is b.values
    return plain and a.dtype is b.dtype and a.shape == b.shape and a.recipe == b.recipe and a.quant == b.quant
