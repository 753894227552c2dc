"""Deliberately invalid instances: each breaks exactly one stated rule and remember which."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.core import dims
from harness.core.dtypes import ALL, BY_NAME, int_range
from harness.core.instance import Arg, Instance
from harness.declare.codec import Call
from harness.declare.entry import agreement, constancy
from harness.declare.op_version import OpVersion
from harness.declare.op_version.nearby import takes
from harness.declare.semantics import Semantics
from harness.generate.draw import Draw, DrawEngine, T
from harness.generate.recipes import arrays_of

InvalidGenerator = Callable[[Draw], "Instance | None"]
OF_SCHEMA = ("required-", "enum:", "unknown-attribute", "type:", "tied-type:")  # names and types, no matter of meaning
_PLAIN = ("f32", "i32", "i64", "bool", "f16", "u8")


def invalid_generators(v: OpVersion) -> dict[str, InvalidGenerator]:
    """Rule name -> generator of an instance that breaks it; the generator may return None where this draw cannot."""
    out: dict[str, InvalidGenerator] = {}
    for rule, fn in _schema_rules(v):
        out[rule] = fn
    for name in v.entry.checks.agrees:
        if name in v.schema.attrs:
            out[agreement(name)] = lambda d, name=name: _contradicted(_valid(v, d), name)
    for slot, needed in v.entry.checks.constant.items():
        out[constancy(slot)] = lambda d, slot=slot, needed=needed: _at_run_time(v, _valid(v, d), slot, needed)
    if any(slot in v.slots_of_schema for slot in v.entry.checks.stated):
        out["shapes-stated"] = lambda d: _of_another_rank(_valid(v, d), d, v.entry.checks.stated)
    m = v.meaning
    if m is not None and v.entry.sampling.draw is None:
        for name in v.param_codecs:
            if m.drawer is None:
                out.update(_param_rules(v, name))
        if m.drawer is None:
            out.update(_dim_rules(v))
        for rule, make in m.invalid_generators.items():
            out[rule] = lambda d, make=make: _made(v, d, make(d))
    for rule, own in v.entry.checks.breaks.items():
        if own is not None:
            out[rule] = lambda d, own=own: v.instance(d, v.encode_raw(d, own(d)))
    out.update(v.dialect.rules_of(v))
    for rule, none in v.entry.checks.breaks.items():
        if none is None:  # the entry says that this rule cannot be broken here
            out.pop(rule, None)
    unsayable = v.dialect.unsayable_rules(v)
    return {r: f for r, f in out.items() if not r.startswith(unsayable)}


def _made(v: OpVersion, d: Draw, values: dict[str, Any] | None) -> Instance | None:
    """None where the generator cannot break its rule in this version."""
    return None if values is None else v.instance(d, v.encode(d, values))


def draw_invalid(v: OpVersion, rule: str, engine: DrawEngine, opset: Any = None) -> Instance | None:
    """An instance that breaks ``rule``, or None if this draw could not break it: the reference takes it."""
    if opset is None:
        opset = v.opsets[-1]
    d = v.begin(engine, opset)
    d.breaking = True
    inst = invalid_generators_of(v)[rule](d)
    if inst is None:
        return None
    if not rule.startswith(OF_SCHEMA) and rule not in v.entry.checks.unseen and takes(v, inst):
        return None
    inst.rule, inst.evaluated = rule, None
    return inst


def invalid_generators_of(v: OpVersion) -> dict[str, InvalidGenerator]:
    cached = v.__dict__.get("_invalid_generators")
    if cached is None:
        cached = v.__dict__["_invalid_generators"] = invalid_generators(v)
    return cached


def _valid(v: OpVersion, d: Draw) -> Instance:
    return v.draw(d.engine, d.opset, edges=False)


def _schema_rules(v: OpVersion) -> Iterator[tuple[str, InvalidGenerator]]:
    s = v.schema
    for slot in s.inputs:
        if not slot.optional and not slot.variadic:
            yield f"required-input:{slot.name}", lambda d, n=slot.name: _without_arg(_valid(v, d), n)
    for a in s.attrs.values():
        if a.required:
            yield f"required-attribute:{a.name}", lambda d, n=a.name: _without_attr(_valid(v, d), n)
        if a.enum:
            yield f"enum:{a.name}", lambda d, n=a.name: _with_attr(_valid(v, d), n, "no_such_mode")
    yield "unknown-attribute", lambda d: _with_attr(_valid(v, d), "no_such_attribute", 1)
    for t, names in s.types.items():
        if v.entry.sampling.types and t in v.entry.sampling.types:
            continue  # the entry admits only part of the domain, the rest is not ours to judge
        outside = [n for n in _PLAIN if n not in names]
        slots = [x.name for x in s.inputs if x.element == t and x.container is None]
        if outside and slots and any(n in BY_NAME for n in names):
            yield f"type:{t}", lambda d, o=outside, ss=slots: _retype(_valid(v, d), ss, d.pick(o))
        always = sum(2 if x.variadic else not x.optional for x in s.inputs if x.name in slots)
        if always > 1 and len(v.candidates.get(t, ())) > 1:
            yield f"tied-type:{t}", lambda d, t=t, ss=slots: _untie(v, d, t, ss)


def _without_arg(i: Instance, name: str) -> Instance | None:
    return i if i.args.pop(name, None) is not None else None


def _without_attr(i: Instance, name: str) -> Instance | None:
    return i if i.attrs.pop(name, None) is not None else None


def _with_attr(i: Instance, name: str, value: Any) -> Instance:
    i.attrs[name] = value
    return i


def _contradicted(i: Instance, name: str) -> Instance | None:
    """The attribute says another number than the operands show, if it is given."""
    said = i.attrs.get(name)
    if said is None:
        return None
    return _with_attr(i, name, [*said[:-1], said[-1] + 1] if isinstance(said, list) else said + 1)


def _at_run_time(v: OpVersion, i: Instance, slot: str, needed: Callable[[Call], bool]) -> Instance | None:
    """An operand that must be a constant here is an input of the run."""
    arg = i.args.get(slot)
    if not isinstance(arg, Arg) or not needed(v.dialect.call_of(i, arrays_of(i), v)):
        return None
    arg.const, arg.encoding = False, ""
    return i


def _of_another_rank(i: Instance, d: Draw, shapes: Mapping[str, Any]) -> Instance | None:
    """One of the tensors whose shape is stated has an axis more, or one less than it needs, if it may have more."""
    given = [(a, pattern) for s, pattern in shapes.items() if isinstance(a := i.args.get(s), Arg)]
    if not given:
        return None
    a, pattern = d.pick(given)
    tokens = dims.parse(pattern) if isinstance(pattern, str) else ()
    if any(t.many for t in tokens):
        a.shape = a.shape[len(a.shape) - len(tokens) + 2 :]
        a.values = None if a.values is None else a.values[: math.prod(a.shape)]
    else:
        a.shape = (1, *a.shape)
    return i


def _retype(i: Instance, slots: list[str], name: str) -> Instance | None:
    hit = False
    for s in slots:
        a = i.args.get(s)
        for one in a if isinstance(a, list) else [a]:
            if isinstance(one, Arg):
                if one.dtype.kind == "s":
                    one.values = None  # words are no numbers
                one.dtype, hit = BY_NAME[name], True
                if one.values is None:
                    one.recipe = "bool" if name == "bool" else "small"
    return i if hit else None


def _untie(v: OpVersion, d: Draw, t: str, slots: list[str]) -> Instance | None:
    i = _valid(v, d)
    args = [a for s in slots for a in (lambda x: x if isinstance(x, list) else [x])(i.args.get(s)) if a is not None]
    last = next((a for a in reversed(args) if a.items is None), None)  # a container's type is that of its items
    if len(args) < 2 or last is None:
        return None
    others = [x for x in v.candidates[t] if x not in (args[0].dtype, last.dtype) and x in ALL]
    if not others:
        return None
    last.dtype = d.pick(others)
    if last.values is not None and last.dtype.kind in "iu":
        low, high = int_range(last.dtype)
        if not all(isinstance(x, int) and low <= x <= high for x in last.values):
            last.values = None
    if last.values is None:
        last.recipe = "bool" if last.dtype.kind == "b" else "small"
    return i


def _param_rules(v: OpVersion, name: str) -> dict[str, InvalidGenerator]:
    m = v.meaning
    assert m is not None
    p = m.params[name]

    class _Probe:
        """Enough of a Draw and of dims to ask which rules exist."""

        def int(self, lo: int, hi: int) -> int:
            return lo

        def pick(self, xs: Any) -> Any:
            return xs[0]

    class _Dims(dict):
        def __missing__(self, k: str) -> Any:
            return (2, 3)

    rules = [r for r, _ in p.invalid(_Probe(), _Dims())]  # type: ignore[arg-type]

    def make(rule: str) -> InvalidGenerator:
        def fn(d: Draw) -> Instance | None:
            values = m.derive(d)
            tensors = {n: _Shape(x.shape) for n, x in values.items() if isinstance(x, T)}
            env = m.bind(tensors, {})
            bad = dict(p.invalid(d, env)).get(rule)
            if bad is None:
                return None
            values[name] = bad
            return v.instance(d, v.encode(d, values))

        return fn

    return {f"{r}:{name}": make(r) for r in rules}


class _Shape:
    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


def _dim_rules(v: OpVersion) -> dict[str, InvalidGenerator]:
    """A plain dim tied between two tensors, or a broadcast, is broken by changing one extent."""
    m = v.meaning
    assert m is not None
    seen: dict[str, list[tuple[str, int]]] = {}
    shared: dict[str, list[str]] = {}
    for name, ann in m.tensors.items():
        for i, t in enumerate(ann.tokens):
            if t.name is not None and not t.many:
                seen.setdefault(t.name, []).append((name, i))
            if t.many and t.broadcast and t.name and len(ann.tokens) == 1:
                shared.setdefault(t.name, []).append(name)
    out: dict[str, InvalidGenerator] = {}
    for dim, places in seen.items():
        if len(places) > 1 and not any(t.many for n, _ in places for t in m.tensors[n].tokens[: places[0][1]]):
            out[f"tied-dim:{dim}"] = _invalid_dim(v, m, places)
    for dim, names in shared.items():
        if len(names) > 1:
            out[f"broadcast:{dim}"] = _invalid_broadcast(v, m, names)
    return out


def _invalid_dim(v: OpVersion, m: Semantics, places: list[tuple[str, int]]) -> InvalidGenerator:
    def fn(d: Draw) -> Instance | None:
        values = m.derive(d)
        given = [(n, i) for n, i in places if isinstance(values.get(n), T)]
        if len(given) < 2:
            return None
        name, i = given[-1]
        t = values[name]
        values[name] = T((*t.shape[:i], t.shape[i] + d.int(1, 2), *t.shape[i + 1 :]), t.recipe, t.dtype, t.const)
        return v.instance(d, v.encode(d, values))

    return fn


def _invalid_broadcast(v: OpVersion, m: Semantics, names: list[str]) -> InvalidGenerator:
    def fn(d: Draw) -> Instance | None:
        values = m.derive(d)
        full = max((values[n].shape for n in names if isinstance(values.get(n), T)), key=len, default=())
        axes = [i for i, n in enumerate(full) if n > 1]
        if not axes:
            return None
        at = d.pick(axes)
        last = [n for n in names if isinstance(values.get(n), T)][-1]
        first = next(n for n in names if n != last)
        values[first] = T(full, values[first].recipe)
        values[last] = T((*full[:at], full[at] + 1, *full[at + 1 :]), values[last].recipe)
        return v.instance(d, v.encode(d, values))

    return fn
