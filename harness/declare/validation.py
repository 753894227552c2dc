"""Checks an instance that no generator drew against the facts of its op version.

A drawn instance is valid by construction.  An instance that somebody has written or edited may be invalid, and then a
backend that rejects it is right.  Instances that break a rule on purpose are not checked.  What only the reference can
decide (shapes, values) is not checked here, since the reference rejects such an instance itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

import native_ref
from harness.core.dtypes import BY_NAME, DType, int_range, of
from harness.core.errors import OpconformError, RuleError
from harness.core.forms import KINDS
from harness.core.instance import SKIPPED, Arg, Graph, Instance
from harness.core.limits import available, bounded, timed
from harness.core.quiet import quiet
from harness.declare.codec import Call
from harness.declare.expected import Expected
from harness.declare.op_version import OpVersion
from harness.declare.schema import Slot

_TOO_LARGE = re.compile("array is too big|Maximum allowed|too large to convert to C")  # in NumPy's words
_OWN = re.compile(r"[a-z_]+: (?!Input operand)\S.*$")  # what a kernel of native_ref says of its operands
MAX_RANK = 16  # of native_ref; no dialect has more than 8


def validation_error(version: OpVersion, inst: Instance) -> str | None:
    """The first thing in which an instance is none of its op version: what was expected and what came."""
    return None if inst.rule is not None else next(_misfits(version, inst), None)


def evaluated(call: Call, strict: bool = True) -> list[Expected]:
    """The reference's outputs of a call that no generator drew.

    strict: shapes must be as stated, whatever the reference makes of them.

    Raises RuleError where they are not, or a rule does not hold, and OpconformError where the reference fails.  The
    message says what came, beside the reference's own words.
    """
    try:
        with quiet, bounded(), timed:
            if strict:
                call.version.check(call)
            out = call.version.evaluate(call)
            # a view, such as Expand's, takes no memory until somebody writes it down
            needed, held = sum(getattr(e.value, "nbytes", 0) for e in out), available()
            if needed > held:
                raise MemoryError(f"{needed} bytes")
            return out
    except OpconformError:
        raise
    except Exception as e:
        if isinstance(e, MemoryError) or _TOO_LARGE.search(str(e)):
            raise RuleError("fits-memory", f"expected what this machine can hold, got {_told(call)}") from None
        entry = call.version.entry
        source = entry.source or (entry.meaning.source if entry.meaning is not None else "") or call.version.key
        why = misfit_of_call(call) or (_short(str(e)) if type(e) is ValueError and _OWN.match(str(e)) else None)
        what = f"{why}; of" if why else f"expected operands and attributes as stated ({_short(source)}), got"
        raise RuleError("operands-fit", f"{what} {_told(call)}") from e


def misfit_of_call(call: Call) -> str | None:
    """The first thing in which a call is none of its op version, by the schema and the stated shapes: what was expected
    and what came.  None where those do not tell."""
    schema, own = call.version.schema, call.version.entry.evaluation is not None
    first: dict[str, tuple[str, DType]] = {}
    for s in schema.inputs:
        given = call.inputs.get(s.name)
        if given is None or (isinstance(given, list) and not given):
            if not s.optional and not (own and s.variadic):
                return f"expected {s.name}, which is not optional, got none"
            continue
        for x in given if isinstance(given, list) else [given]:
            if not isinstance(x, np.ndarray) or (call.quant.get(s.name) and call.version.dialect.packs_weights):
                continue
            allowed, have = schema.dtypes(s.element), of(x)
            if allowed and have not in allowed:
                return f"{s.name}: expected {' or '.join(map(str, allowed))}, got {have}"
            owner, other = first.setdefault(s.element, (s.name, have))
            if have is not other and not own:
                return f"{s.name}: expected {other}, which {owner} has, got {have}"
    for i, o in enumerate(call.outs or ()):
        slot = schema.outputs[min(i, len(schema.outputs) - 1)] if schema.outputs else None
        allowed = schema.dtypes(slot.element) if slot is not None and not own else ()
        if o and allowed and o["dtype"] not in allowed:
            return f"output {i}: expected {' or '.join(map(str, allowed))}, got {o['dtype']}"
    for name, value in call.attrs.items():
        a = schema.attrs.get(name)
        if a is not None and value is not None and not _is(a.type, value):
            return f"{name}: expected {a.type}, got {_brief(value)}"
    for name, a in schema.attrs.items():
        if a.required and call.attrs.get(name) is None:
            return f"expected {name}, which is required, got none"
    try:
        call.version.hold_stated(call)
        call.version.check(call)
    except OpconformError as e:
        return str(e)
    except Exception:  # what states the shapes takes the operands for sound
        return None
    return None


def _told(call: Call) -> str:
    """Operands and attributes of a call in a few words."""
    given = [f"{k} {_brief(v)}" for k, v in call.inputs.items()]
    return _short(", ".join([*given, *(f"{k}={_brief(v)}" for k, v in call.attrs.items())]) or "none", 300)


def _brief(v: Any) -> str:
    if isinstance(v, np.ndarray):
        shape = f"{of(v)} {list(v.shape)}"
        return f"{shape} {_short(str(v.tolist()), 40)}" if v.size < 8 and v.dtype.kind in "iu" else shape
    if isinstance(v, list) and any(isinstance(x, (np.ndarray, list)) for x in v):
        return f"({', '.join(map(_brief, v))})"
    return "a graph" if isinstance(v, Graph) else _short(repr(v), 60)


def _short(text: str, most: int = 120) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _misfits(v: OpVersion, inst: Instance) -> Iterator[str]:
    own = v.entry.evaluation is not None  # blocks and states have operands and results that the schema does not name
    yield from _misfits_of_operands(v, inst, own)
    yield from _misfits_of_values(v, inst)
    yield from _misfits_of_attrs(v, inst)
    yield from _misdeclared(v, inst)
    yield from _misfits_of_outs(v, inst, own)


def _misfits_of_operands(v: OpVersion, inst: Instance, own: bool) -> Iterator[str]:
    """Which slots are given, as one argument or several, and of which types."""
    schema = v.schema
    for name in inst.args if not own else ():
        if schema.input(name) is None:
            yield f"args: expected slots among {_listed(schema.inputs)}, got {name}"
    bound: dict[str, tuple[str, Arg]] = {}
    around = any(k.startswith("@") and isinstance(x, Graph) for k, x in inst.attrs.items())  # it gives operands itself
    for s in schema.inputs:
        given = inst.args.get(s.name)
        if given is None or (given == [] and not own):
            if not s.optional and not (around or (own and s.variadic)):
                yield f"args: expected {s.name}, which is not optional, got none"
        elif isinstance(given, list) != s.variadic:
            one, many = "one argument", "a list of arguments"
            yield f"args: {s.name}: expected {many if s.variadic else one}, got {one if s.variadic else many}"
        else:
            for a in given if isinstance(given, list) else [given]:
                yield from _misfits_of(v, s, a, bound)


def _misfits_of_values(v: OpVersion, inst: Instance) -> Iterator[str]:
    """Arguments of all runs by themselves: sizes, values, how a constant is written."""
    for r in inst.reruns:
        for slot, again in r.items():
            first = inst.args.get(slot)
            if _types(again) != _types(first):
                yield f"reruns: {slot}: expected {_types(first)}, which the first run has, got {_types(again)}"
    for slot, given in (x for r in (inst.args, *inst.reruns) for x in r.items()):
        for a in given if isinstance(given, list) else [given]:
            yield from (f"args: {slot}: {why}" for why in _unsound(v, a))
            if a.encoding:
                may = v.dialect.encodings(a.dtype, inst.opset) if a.const is True and a.dtype is not None else ()
                if a.encoding not in may:
                    said = " or ".join(map(repr, may)) or f"none of a{' constant' if a.const else 'n input'}"
                    yield f"args: {slot}: encoding: expected {said}, got {a.encoding!r}"


def _misfits_of_attrs(v: OpVersion, inst: Instance) -> Iterator[str]:
    schema = v.schema
    for name, value in inst.attrs.items():
        known = schema.attrs.get(name)
        if known is None and not name.startswith("@"):
            yield f"attrs: expected names among {' '.join(schema.attrs) or 'none'}, got {name}"
        elif known is not None and not _is(known.type, value):
            yield f"attrs: {name}: expected {known.type}, got {value!r}"
        elif known is not None and known.type == "str" and value not in _words(known.enum, value):
            yield f"attrs: {name}: expected {' or '.join(known.enum or ())}, got {value}"
    for name, attr in schema.attrs.items():
        if attr.required and name not in inst.attrs:
            yield f"attrs: expected {name}, which is required, got none"


def _misfits_of_outs(v: OpVersion, inst: Instance, own: bool) -> Iterator[str]:
    """How many outputs are asked for, and which of them are skipped."""
    schema = v.schema
    most = None if own or any(s.variadic for s in schema.outputs) else len(schema.outputs)
    if type(inst.outs) is not int or inst.outs < 0 or (most is not None and inst.outs > most):
        yield f"outs: expected a number{'' if most is None else f' up to {most}'}, got {inst.outs!r}"
    elif SKIPPED in inst.attrs:
        may = [i for i, s in enumerate(schema.outputs[: inst.outs - 1]) if s.optional and not s.variadic]
        skipped = inst.attrs[SKIPPED]
        if not isinstance(skipped, list) or any(type(i) is not int or i not in may for i in skipped):
            yield f"attrs: {SKIPPED}: expected numbers of outputs among {may}, got {skipped!r}"


def _misfits_of(v: OpVersion, s: Slot, a: Arg, bound: dict[str, tuple[str, Arg]]) -> Iterator[str]:
    """bound: the first argument of each type name so far, which those after it agree with."""
    heads = {n.split("(")[0] for n in v.schema.types.get(s.element, ()) if "(" in n}
    blocks = s.variadic and v.entry.evaluation is not None  # take what they hand on
    if a.kind not in (s.container or "tensor", *heads) and not blocks:
        yield f"args: {s.name}: expected a {s.container or 'tensor'}, got a {a.kind}"
    allowed = v.schema.dtypes(s.element)
    if a.items is not None or (a.quant is not None and v.dialect.packs_weights) or not allowed:
        return
    if a.dtype not in allowed:
        yield f"args: {s.name}: expected {' or '.join(map(str, allowed))}, got {a.dtype}"
    first, other = bound.setdefault(s.element, (s.name, a))
    if not s.variadic and a.dtype is not other.dtype:
        yield f"args: {s.name}: expected {other.dtype}, which {first} has, got {a.dtype}"


def _types(given: Arg | list[Arg] | None) -> str:
    """The types of what a slot is given."""
    if isinstance(given, list):
        return f"[{', '.join(map(_types, given))}]"
    return "nothing" if given is None else f"{given.dtype}{'' if given.kind == 'tensor' else ' ' + str(given.kind)}"


def _unsound(v: OpVersion, a: Arg) -> Iterator[str]:
    """What is wrong with an argument, whatever its slot."""
    if any(type(n) is not int or n < 0 for n in a.shape):
        yield f"expected extents from 0 on, got {list(a.shape)}"
    elif len(a.shape) > MAX_RANK:
        yield f"expected at most {MAX_RANK} axes, got {len(a.shape)}"
    elif math.prod(n or 1 for n in a.shape) * a.dtype.np.itemsize >= 1 << 63:
        yield f"expected a shape that has a size of 64 bits, got {list(a.shape)}"
    if type(a.const) is not bool:
        yield f"const: expected true or false, got {a.const!r}"
    if a.kind not in KINDS:
        yield f"kind: expected {' or '.join(KINDS)}, got {a.kind!r}"
    elif (a.items is None) != (a.kind in ("tensor", "state")):
        yield f"a {a.kind} with{'out' if a.items is None else ''} items"
    elif a.items is not None and len(a.items) not in {"map": (2,), "optional": (0, 1)}.get(a.kind, (len(a.items),)):
        yield f"items: expected those of a {a.kind}, got {len(a.items)}"
    for item in a.items or ():
        yield from (f"items: {why}" for why in _unsound(v, item))
    if any(type(i) is not int or i < 0 for i in a.dynamic):  # beyond the rank: left over from a larger instance
        yield f"dynamic: expected axes from 0 on, got {list(a.dynamic)}"
    if a.quant is not None:
        why = v.dialect.misquantised(a)
        if why is not None:
            yield f"quant: {why}"
    if a.items is not None:
        return
    if a.values is not None:
        yield from _misvalued(a)
    elif type(a.recipe) is not str or type(a.seed) is not int:
        yield f"expected the name of a recipe and a seed, got {a.recipe!r} and {a.seed!r}"
    else:
        try:
            native_ref.fill(a.recipe, 0, (0,), a.dtype)
        except ValueError as e:
            yield str(e).removeprefix("fill: ")


def _misvalued(a: Arg) -> Iterator[str]:
    assert a.values is not None
    if len(a.values) != math.prod(a.shape):
        yield f"values: expected {math.prod(a.shape)} for shape {list(a.shape)}, got {len(a.values)}"
    odd = next((x for x in a.values if not _holds(a.dtype, x)), _NONE)
    if odd is not _NONE:
        yield f"values: expected elements of {a.dtype}, got {odd!r}"


_NONE = object()


def _holds(d: DType, x: Any) -> bool:
    """Can a literal be an element of that type?  Floats are rounded, and no other is."""
    if d.kind == "s":
        return isinstance(x, (str, bytes))
    if d.kind == "c":
        return isinstance(x, (complex, float, int))
    if d.kind == "f":
        return isinstance(x, float) or (isinstance(x, int) and abs(x) < 1 << 1023)
    low, high = int_range(d)
    return isinstance(x, (int, float)) and math.isfinite(x) and x == int(x) and low <= x <= high


def _misdeclared(v: OpVersion, inst: Instance) -> Iterator[str]:
    """What is wrong with the outputs that an instance declares."""
    outs = inst.attrs.get("@outputs")
    if outs is None:
        return
    if not isinstance(outs, list) or any(
        o is not None and not (isinstance(o, dict) and _is_dtype(o.get("dtype"))) for o in outs
    ):
        yield f"attrs: @outputs: expected a list of types, got {outs!r}"
    elif type(inst.outs) is int and len(outs) < inst.outs:
        yield f"attrs: @outputs: expected {inst.outs}, got {len(outs)}"
    else:
        for o in filter(None, outs):
            d, quant = o["dtype"], o.get("quant")
            a = Arg(BY_NAME[d] if isinstance(d, str) else d, (), quant=quant)
            why = v.dialect.misquantised(a) if quant is not None else None
            if why is not None:
                yield f"attrs: @outputs: quant: {why}"


def _is_dtype(x: Any) -> bool:
    return isinstance(x, DType) or (isinstance(x, str) and x in BY_NAME)


_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "dtype": (DType, str),
    "graph": (Graph,),
    "tensor": (np.ndarray,),
    "sparse_tensor": (np.ndarray,),
    "type_proto": (str,),
}


def _is(kind: str, value: Any) -> bool:
    """Is it a value of an attribute of that type?  Types that are not known here are not judged."""
    if kind == "int" and isinstance(value, bool):
        return False
    if kind in _TYPES:
        return isinstance(value, _TYPES[kind])
    one = kind.removesuffix("s")
    return one not in _TYPES or (isinstance(value, (list, tuple)) and all(_is(one, x) for x in value))


def _words(enum: tuple[str, ...] | None, value: str) -> tuple[str, ...]:
    """The values that are stated; examples of a notation (an equation of einsum) state none."""
    return enum if enum and all(x.isidentifier() for x in enum) else (value,)


def _listed(slots: tuple[Slot, ...]) -> str:
    return " ".join(s.name for s in slots) or "none"
