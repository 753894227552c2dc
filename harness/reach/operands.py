"""Kinds of goals about operands as a whole: types, which are given, as constants, twice, quantised; broken rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, permutations

from harness.core.dtypes import dtype, int_range
from harness.core.instance import SAME, SKIPPED
from harness.declare.invalid import invalid_generators_of
from harness.declare.schema import Slot
from harness.reach.facts import Facts, Filled

_ALL_SUBSETS = 6  # optional operands; above that each pair
_ALL_OUTPUTS = 4
_ALL_TYPES = 64  # combinations of element types; above that each pair
_FAR_SCALES = 100.0
_HANDLE = "resource"  # of a table or a variable, which another operator makes
_SINGLE = {"axis", "flag", "choice", "int", "real", "dtype"}  # parameters that are one value


def dtypes(f: Facts) -> list[str]:
    """Each element type of each type name, and each combination."""
    names = _type_names(f)
    out = [f"dtype:{t}={d}" for t, ds in names for d in ds]
    return out + [f"dtypes:{t}={d},{u}={e}" for (t, ds), (u, es) in combinations(names, 2) for d in ds for e in es]


def _type_names(f: Facts) -> list[tuple[str, tuple[str, ...]]]:
    out, known = [], {s.element for s in (*f.inputs, *f.schema.outputs)}
    for t in f.version.type_names:
        ds = f.schema.dtypes(t)
        if len(ds) > 1 and t in known:
            out.append((t, tuple(d.name for d in ds)))
    return out


def dtypes_met(f: Facts, x: Filled) -> Iterator[str]:
    found: dict[str, str] = {}
    for s in f.inputs:
        for a in x.args.get(s.name, ()):
            while a.items:
                a = a.items[0]
            found.setdefault(s.element, a.dtype.name)
            yield f"dtype:{s.element}={a.dtype.name}"
    names = [t for t in f.version.type_names if t in found]
    for t, u in combinations(names, 2):
        yield f"dtypes:{t}={found[t]},{u}={found[u]}"


def optionals(f: Facts) -> list[str]:
    """Every subset of the optional operands and outputs, pairs above six; how many tensors a variadic one takes.  An op
    of which nothing is asked shows nothing."""
    names = [s.name for s in f.inputs if s.optional]
    out = []
    if 0 < len(names) <= _ALL_SUBSETS:
        out += [f"optional:{_subset(c)}" for n in range(len(names) + 1) for c in combinations(names, n)]
    elif names:
        out += [f"optional:{a}{p},{b}{q}" for a, b in combinations(names, 2) for p in "+-" for q in "+-"]
    outs = [s.name for s in f.schema.outputs if s.optional]
    if 0 < len(outs) <= _ALL_OUTPUTS:
        least = int(len(outs) == len(f.schema.outputs))
        out += [f"outputs:{_subset(c)}" for n in range(least, len(outs) + 1) for c in combinations(outs, n)]
    out += [f"count:{s.name}={n}" for s in f.inputs if s.variadic for n in ("1", "2", "3 or more")]
    return out


def _subset(names: tuple[str, ...] | list[str]) -> str:
    return "{" + ",".join(names) + "}"


def optionals_met(f: Facts, x: Filled) -> Iterator[str]:
    names = [s.name for s in f.inputs if s.optional]
    if 0 < len(names) <= _ALL_SUBSETS:
        yield f"optional:{_subset([n for n in names if x.args.get(n)])}"
    elif names:
        for a, b in combinations(names, 2):
            yield f"optional:{a}{'+' if x.args.get(a) else '-'},{b}{'+' if x.args.get(b) else '-'}"
    inst = x.case.inst
    if any(s.optional for s in f.schema.outputs):
        skipped = inst.attrs.get(SKIPPED, ())
        asked = [s.name for i, s in enumerate(f.schema.outputs) if s.optional and i < inst.outs and i not in skipped]
        yield f"outputs:{_subset(asked)}"
    for s in f.inputs:
        if s.variadic:
            n = len(x.args.get(s.name, ()))
            yield f"count:{s.name}={n if n < 3 else '3 or more'}"


def givings(f: Facts) -> list[str]:
    """Each operand as run-time input, as constant beside one at run time, as constant without elements unless it holds
    one number or is no tensor; the same tensor given twice.  What an op keeps from call to call is none of these."""
    out = []
    single = {o.name for o in f.operands if not o.high} | {p.name for p in f.parameters if p.kind in _SINGLE}
    alone = sum(1 for s in f.inputs if s.container is None) == 1
    for s in f.inputs:
        if s.container is None and s.name not in f.states and s.element != _HANDLE:
            out += [] if s.const else [f"run-time:{s.name}"]
            out += [f"constant:{s.name}"] if not alone or s.variadic or s.const else []
            out += [] if s.name in single or _maps(f, s) else [f"constant-empty:{s.name}"]
    for a, b in combinations(f.operands, 2):
        alike = a.slot.type == b.slot.type and max(a.low, b.low) <= min(a.high, b.high)
        alike = alike and not f.of_other_ranks(a.name, b.name)
        if alike and not {a.name, b.name} & f.states and not a.slot.variadic and not b.slot.variadic:
            out.append(f"same-tensor:{a.name},{b.name}")
    return out + [f"same-tensor:{o.name},{o.name}" for o in f.operands if o.slot.variadic]


def _maps(f: Facts, s: Slot) -> bool:
    """Takes a slot nothing but maps, which no constant of a model holds?"""
    types = f.schema.types.get(s.element, ())
    return bool(types) and all(str(t).startswith("map(") for t in types)


def givings_met(f: Facts, x: Filled) -> Iterator[str]:
    running = any(not a.const for args in x.args.values() for a in args)
    for slot, args in x.args.items():
        for a in args:
            if not a.const:
                yield f"run-time:{slot}"
            else:
                if running or len(args) == 1:
                    yield f"constant:{slot}"
                if 0 in a.shape:
                    yield f"constant-empty:{slot}"
    same = x.case.inst.attrs.get(SAME)
    if same:
        alike: dict[str, list[str]] = {}
        for copy, first in same.items():
            alike.setdefault(first, [first.partition("#")[0]]).append(copy.partition("#")[0])
        for names in alike.values():
            for one, other in permutations(names, 2):
                yield f"same-tensor:{one},{other}"


def quantised(f: Facts) -> list[str]:
    """Zero points at the ends and at 0, scales per axis, equal and far apart, of each quantised operand."""
    names = [o.name for o in f.quantised]
    out = [f"zero-point:{n}={w}" for n in names for w in ("lowest", "0", "highest")]
    out += [f"scale:{n}=per axis" for n in names if "per_channel" not in f.later]
    out += [f"scales:{a},{b}={w}" for a, b in combinations(names, 2) for w in ("equal", "far apart")]
    if names and f.schema.outputs and f.schema.outputs[0].type == f.quantised[0].slot.type:
        out += [f"zero-point:output={w}" for w in ("lowest", "0", "highest")]
        out += [f"scales:{names[0]},output={w}" for w in ("equal", "far apart")]
    return out


def quantised_met(f: Facts, x: Filled) -> Iterator[str]:
    told = {}
    for o in f.quantised:
        for a in x.args.get(o.name, ()):
            if a.quant:
                told[o.name] = a.quant
                lo, hi = int_range(a.dtype)
                yield from _zero_points(o.name, a.quant, lo, hi)
                if len(a.quant["scale"]) > 1:
                    yield f"scale:{o.name}=per axis"
    outs = x.case.inst.attrs.get("@outputs")
    first = next(iter(outs or ()), None)
    if first and first.get("quant"):
        told["output"] = first["quant"]
        dt = first["dtype"]
        yield from _zero_points("output", first["quant"], *int_range(dtype(dt) if isinstance(dt, str) else dt))
    for m, n in combinations(told, 2):
        p, q = told[m]["scale"][0], told[n]["scale"][0]
        if p == q:
            yield f"scales:{m},{n}=equal"
        elif max(p, q) / min(p, q) >= _FAR_SCALES:
            yield f"scales:{m},{n}=far apart"


def _zero_points(name: str, quant: dict[str, list[int]], lo: int, hi: int) -> Iterator[str]:
    for z in quant["zero_point"]:
        if z in (lo, 0, hi):
            yield f"zero-point:{name}={'lowest' if z == lo else '0' if z == 0 else 'highest'}"
            if z == 0:  # the lowest of an unsigned type is 0
                yield f"zero-point:{name}=0"


_NAMED = re.compile(r'RuleErrors? ((?:"[\w:-]+"(?:,? (?:and |or )?)?)+)')


def rules(f: Facts) -> list[str]:
    """Each stated rule is broken: those of the schema, those that the meaning or the entry declares, and those that
    their docstrings name.  What breaks a rule by a parameter has that name behind the rule's."""
    v = f.version
    names = dict.fromkeys(invalid_generators_of(v))
    for fn in (v.meaning, v.entry.evaluation):
        text = " ".join((fn.fn.__doc__ or "").split()) if fn is not None else ""
        for found in _NAMED.findall(text):
            for name in re.findall(r'"([^"]+)"', found):
                if not any(n.startswith(f"{name}:") for n in names):
                    names[name] = None
    unsayable = v.dialect.unsayable_rules(v)  # which no model can break, or no text states
    never = {rule for rule, own in v.entry.checks.breaks.items() if own is None}
    return [f"rule:{name}" for name in names if not name.startswith(unsayable) and name not in never]


def labels(f: Facts) -> list[str]:
    """Goals of the dialect's own."""
    return list(f.version.dialect.own_goals(f.version))


def labels_met(f: Facts, x: Filled) -> tuple[str, ...]:
    return f.version.dialect.labels(x.case.inst)
