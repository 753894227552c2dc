"""Entry x schema -> OpVersion: what can be drawn, evaluated and broken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np

from harness.core import dims
from harness.core.dtypes import BF16, BOOL, C128, F16, F32, F64, I32, I64, DType, of
from harness.core.errors import RuleError, Unsupported, UsageError
from harness.core.instance import SKIPPED, Arg, Instance
from harness.declare.codec import Build, Call, Codec, Named, Slotted
from harness.declare.entry import Entry, agreement
from harness.declare.expected import Expected, context_of
from harness.declare.schema import OpSchema
from harness.generate.draw import Draw, DrawEngine, T
from harness.tolerance import Context, Tolerance
from harness.tolerance.underspecified import Underspecified

# how often a type is drawn, relative to 1 for the ones not listed
_WEIGHT = {F32: 6, F16: 3, BF16: 2, F64: 2, I32: 3, I64: 3, BOOL: 2}
BUDGET = 1024  # elements that a drawn tensor may have
FLOAT_REGIMES = ("small", "unit", "small", "wide", "special", "ties", "unit", "uniform:-4:4")
INT_REGIMES = ("small", "full", "small", "special")


class OpVersion:
    """One op at one version of one dialect."""

    def __init__(self, dialect: Any, entry: Entry, schema: OpSchema) -> None:
        self.dialect = dialect
        self.entry = entry
        self.schema = schema
        self.op = schema.op
        self.version = schema.version
        self.meaning = entry.meaning
        self.key = f"{dialect.name}/{self.op}/{self.version}"
        self._slots = {s.name: s for s in schema.inputs}
        self.slots_of_schema = set(self._slots)
        self.variadic = {s.name for s in schema.inputs if s.variadic}
        self.family = entry.family
        self._plan()

    # -- what the schema and the entry say together

    def _plan(self) -> None:
        """Resolve names once: decoders, encoders, the candidate types of every type name."""
        self.tensor_codecs: dict[str, Codec] = {}
        self._recipes: dict[str, dict[DType, tuple[str, ...]]] = {name: {} for name in self._slots}
        self.param_codecs: dict[str, Codec] = {}
        self.slots_of: set[str] = set()  # semantic tensors that this version has a slot for
        m = self.meaning
        if m is not None:
            for name in m.tensors:
                how = self.entry.spelling.names.get(name, name)
                codec = Slotted(how) if isinstance(how, str) else how
                if isinstance(codec, Slotted) and codec.slot not in self.slots_of_schema:
                    if not m.tensors[name].optional and self.entry.evaluation is None:
                        raise UsageError(f"{self.key}: {m.name} needs tensor {name}, but there is no slot {codec.slot}")
                    continue
                self.slots_of.add(name)
                self.tensor_codecs[name] = codec
            for name, param in m.params.items():
                if name in self.entry.spelling.fixed:
                    continue
                how = self.entry.spelling.names.get(name, name)
                if isinstance(how, Codec):
                    self.param_codecs[name] = how.bind(self, param)
                elif how in self.schema.attrs or how in self.slots_of_schema:
                    self.param_codecs[name] = Named(how).bind(self, param)
                elif name in m.defaults:
                    continue  # this version cannot say it: the meaning's own default holds
                elif self.entry.evaluation is None:
                    raise UsageError(f"{self.key}: {m.name} needs parameter {name}, but there is no {how}")
        self.candidates: dict[str, tuple[DType, ...]] = {}
        self._weighted: dict[str, tuple[DType, ...]] = {}
        for t in self.type_names:
            allowed = self.schema.dtypes(t)
            if self.entry.sampling.types and t in self.entry.sampling.types:
                allowed = tuple(d for d in allowed if d.name in self.entry.sampling.types[t])
            kinds = self._kinds(t)
            if kinds:
                allowed = tuple(d for d in allowed if d.kind in kinds) or allowed
            self.candidates[t] = allowed
            self._weighted[t] = tuple(d for d in allowed for _ in range(_WEIGHT.get(d, 1)))
        sets = [set(allowed) for allowed in self.candidates.values() if len(allowed) > 1]
        self._may_agree = self.entry.sampling.alike and any(a & b for i, a in enumerate(sets) for b in sets[:i])

    @cached_property
    def type_names(self) -> tuple[str, ...]:
        """Type names of the inputs, in order of appearance."""
        return tuple(dict.fromkeys(s.element for s in self.schema.inputs))

    def _kinds(self, t: str) -> str | None:
        if self.meaning is None:
            return None
        out: set[str] | None = None
        for name, codec in self.tensor_codecs.items():
            if isinstance(codec, Slotted):
                slot = self.schema.input(codec.slot)
                if slot is not None and slot.element == t:
                    k = set(self.meaning.tensors[name].kinds)
                    out = k if out is None else out & k
        return "".join(out) if out else None

    @cached_property
    def opsets(self) -> tuple[Any, ...]:
        """Opsets of the dialect at which this version is the one in force."""
        return self.dialect.between(self.schema.first_opset, self.schema.last_opset)

    def slot_dtype(self, name: str, types: Mapping[str, DType]) -> DType:
        """The drawn type of a semantic tensor or a slot."""
        codec = self.tensor_codecs.get(name)
        slot = self.schema.input(codec.slot if isinstance(codec, Slotted) else name)
        if slot is None:
            raise KeyError(f"{self.key}: no slot for {name}")
        return types[slot.element]

    # -- drawing

    def draw(self, engine: DrawEngine, opset: Any = None) -> Instance:
        """A valid instance.  opset: where the model is built; None draws one from the range, the ends favoured."""
        if opset is None:
            r = self.opsets
            opset = r[(0, -1, engine.int(0, len(r) - 1))[engine.int(0, 2)]] if len(r) > 1 else r[0]
        d = self._draw(engine, opset)
        e = self.entry
        if e.sampling.draw is not None:
            b = self._encode_raw(d, e.sampling.draw(d))
        else:
            assert self.meaning is not None
            b = self._encode(d, self.meaning.derive(d))
        return self._instance(d, b)

    def _draw(self, engine: DrawEngine, opset: Any) -> Draw:
        types: dict[str, DType] = {}
        first: DType | None = None
        alike = self._may_agree and engine.int(0, 1) == 0
        for t, options in self._weighted.items():
            n = len(options)
            if n == 1:
                types[t] = options[0]
            elif n:
                types[t] = first if alike and first in options else options[engine.int(0, n - 1)]
            else:
                continue
            if first is None:
                first = types[t]
        lo, hi = self._ranks
        return Draw(engine, self, opset, self.entry.spelling.fixed, types, hi, self.dialect.allow_empty, BUDGET, lo)

    @cached_property
    def _ranks(self) -> tuple[int, int]:
        """Lowest and highest rank that entry and dialect leave."""
        lo, hi = self.entry.sampling.ranks or (0, 99)
        return max(lo, self.dialect.min_rank), min(hi, self.dialect.rank_limit(self))

    def _encode(self, d: Draw, values: dict[str, Any]) -> Build:
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

    def _encode_raw(self, d: Draw, values: dict[str, Any]) -> Build:
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

    def _instance(self, d: Draw, b: Build) -> Instance:
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
        return dialect.finish(self, d, Instance(dialect.name, self.op, self.version, d.opset, attrs, b.args, n))

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

    # -- evaluating

    def call(self, attrs: dict[str, Any], inputs: dict[str, Any], opset: Any, **kw: Any) -> Call:
        return Call(self, attrs, inputs, opset, **kw)

    @cached_property
    def _tensor_plan(self) -> list[tuple[str, str | None, Codec]]:
        """Tensors that are taken as they come, with their slot, and those that their codec has to read."""
        return [
            (n, c.slot if type(c) is Slotted and c.to_ours is None else None, c) for n, c in self.tensor_codecs.items()
        ]

    def decode(self, call: Call) -> tuple[dict[str, Any], dict[str, Any]]:
        """Semantic tensors and parameters of a call."""
        get = call.inputs.get
        tensors = {n: get(slot) if slot is not None else c.decode(call) for n, slot, c in self._tensor_plan}
        m = self.meaning
        if not self.param_codecs and not self._pinned:
            return tensors, {}
        params = dict(self._pinned)
        for n, c in self.param_codecs.items():
            v = c.decode(call)
            if v is None and m is not None and n in m.defaults:
                v = m.defaults[n]
            params[n] = v
        return tensors, params

    @cached_property
    def _pinned(self) -> dict[str, Any]:
        """Parameters that no codec reads: the meaning's defaults under what the entry fixes."""
        return {**(self.meaning.defaults if self.meaning is not None else {}), **self.entry.spelling.fixed}

    def check(self, call: Call) -> None:
        """Raises RuleError where the shapes of a call are not as the meaning is annotated, or one of its rules does not
        hold: for what no generator drew, since evaluating finds only some of that out."""
        m = self.meaning
        if m is None or self.entry.evaluation is not None:
            return
        m.hold(*self.decode(call))

    def hold_stated(self, call: Call) -> None:
        """Raises RuleError "shapes-stated"."""
        env: dict[str, Any] = {}
        for slot, pattern in self.entry.checks.stated.items():
            given = call.inputs.get(slot)
            if given is None:
                continue
            try:
                dims.bind(dims.parse(pattern if isinstance(pattern, str) else pattern(call)), given.shape, env, slot)
            except dims.ShapeMismatch as e:
                raise RuleError("shapes-stated", str(e)) from e

    def evaluate(self, call: Call) -> list[Expected]:
        """The reference's outputs, each rounded once.  Raises RuleError where the op set forbids the inputs."""
        e = self.entry
        tensors: dict[str, Any] = {}
        params: dict[str, Any] = {}
        for name, shown in e.checks.agrees.items():
            said = call.attrs.get(name)
            if said is not None and said != shown(call):
                raise RuleError(agreement(name), f"{said}, but the operands show {shown(call)}")
        for name, value in e.checks.only.items():
            known = value if isinstance(value, tuple) else (value,)
            if call.attr(name, known[0]) not in known:
                words = " ".join(map(repr, known))
                raise Unsupported(f"{self.key}: {name} = {call.attr(name)!r}, the reference knows {words} alone")
        if e.checks.stated:
            self.hold_stated(call)
        if e.evaluation is not None:
            raw = e.evaluation.fn(call)
        else:
            m = self.meaning
            assert m is not None
            tensors, params = self.decode(call)
            try:
                raw = m.fn(**tensors, **params)
            except (ValueError, TypeError, LookupError, ArithmeticError):
                m.hold(tensors, params)  # what the body stumbled over has a name, if it is stated
                raise
        if type(raw) is np.ndarray and e.spelling.out is None and call.n_outs == 1:  # as most are
            return [self._expect(call, 0, raw, tensors, params)]
        results = list(raw) if isinstance(raw, (tuple, list)) else [raw]
        if e.spelling.out is not None:
            results = e.spelling.out(call, results)
        for i in call.attrs.get(SKIPPED, ()):
            results[i] = None
        if len(results) == 1 == call.n_outs:
            return [self._expect(call, 0, results[0], tensors, params)]
        shared: dict[Any, Any] = {}
        return [self._expect(call, i, r, tensors, params, shared) for i, r in enumerate(results[: call.n_outs])]

    def underspecified(self, call: Call) -> str | None:
        """What the spec leaves open about a call, or None; a plain string leaves all open."""
        own, m = self.entry.checks.ambiguous, self.meaning
        why = None
        if own is not None:
            why = own(call)
        elif m is not None and m.ambiguous is not None:
            why = m.ambiguous(*self.decode(call))
        settled = self.entry.checks.settles
        if not settled or why is None:
            return why
        return why.without(settled) if isinstance(why, Underspecified) else None if why == settled else why

    def _expect(
        self,
        call: Call,
        i: int,
        r: Any,
        tensors: dict[str, Any],
        params: dict[str, Any],
        shared: dict[Any, Any] | None = None,
    ) -> Expected:
        error = self._only_error or self._error(i)
        if not isinstance(r, np.ndarray):
            if isinstance(r, (str, bytes)):  # NumPy hands out the element of an object array where no axis is left
                one = np.empty((), object)
                one[()] = r
                return self._expect(call, i, one, tensors, params, shared)
            if not isinstance(r, np.generic):  # containers: lists of arrays, None
                return Expected(r, None, _container_dtype(r), error, lambda: _no_context(self.key))
            r = np.asarray(r)
        have = of(r)
        want = self.out_dtype(call, i, have)
        wide = None
        value = r
        if want is not have:
            if have is F64 and want.kind == "f":
                wide, value = r, self.dialect.round(r, want)
            elif have.np == np.complex128 and want.kind == "c":
                wide, value = r, r.astype(want.np)
            elif want.np != have.np:
                raise RuleError("reference-dtype", f"{self.key}: output {i} is {have}, the op set says {want}")
        elif have is F64 or have is C128:
            wide = r

        context = partial(context_of, call, i, want, value, wide, tensors, params, shared)
        return Expected(value, wide, want, error, context)

    @cached_property
    def _only_error(self) -> Tolerance | None:
        """The class of all outputs, where there is one."""
        e = self.entry.error
        if e is None and self.meaning is not None:
            e = self.meaning.error
        return e if isinstance(e, Tolerance) else None

    def _error(self, i: int) -> Tolerance:
        e = self.entry.error
        if e is not None:
            return e[min(i, len(e) - 1)] if isinstance(e, tuple) else e
        assert self.meaning is not None, f"{self.key}: an entry without meaning states its tolerance"
        return self.meaning.error_of(i)

    def out_dtype(self, call: Call, i: int, have: DType) -> DType:
        """The type that output ``i`` is declared with: entry, model declaration, bound type name, or what came."""
        if self.entry.spelling.out_dtype is not None:
            return self.entry.spelling.out_dtype(call, i)
        if call.outs is not None and i < len(call.outs):
            return call.outs[i]["dtype"]
        plan = self._out_types
        slots, only = plan[i] if i < len(plan) else plan[-1]
        for name in slots:
            v = call.inputs.get(name)
            while isinstance(v, (list, tuple)):
                v = v[0] if v else None
            if v is not None:
                return of(v)
        return only or have

    @cached_property
    def _out_types(self) -> list[tuple[tuple[str, ...], DType | None]]:
        """Per output: the inputs that bind its type name, else the only type that it can have."""
        out: list[tuple[tuple[str, ...], DType | None]] = []
        for slot in self.schema.outputs:
            if slot.variadic and self.entry.evaluation is not None:
                out.append(((), None))  # outputs of blocks: each has a type of its own
                continue
            allowed = self.schema.dtypes(slot.element)
            binds = tuple(s.name for s in self.schema.inputs if s.element == slot.element)
            out.append((binds, allowed[0] if len(allowed) == 1 else None))
        return out or [((), None)]


def _container_dtype(r: Any) -> DType:
    while isinstance(r, (list, tuple)) and r:
        r = r[0]
    return of(r) if isinstance(r, np.ndarray) else F32


def _no_context(key: str) -> Context:
    raise TypeError(f"{key}: a container has no error context")
