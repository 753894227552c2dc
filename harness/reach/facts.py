"""What a kind of goal may read: the schema, the shapes and the stated rules of an op version; and a filled instance.

Nothing here calls a generator, or reads ``Draw`` functions, recipes and the limits of drawing.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from harness.cases.case import Case
from harness.core import dims
from harness.core.dtypes import DType
from harness.core.instance import Arg, Graph
from harness.declare import OpVersion
from harness.declare.annotations import Tensor
from harness.declare.codec import Map, Slotted
from harness.declare.entry import Pattern
from harness.declare.params import Axes, Axis, Choice, Divisor, Each, ElementType, Flag, Ints, Pads
from harness.declare.schema import Attr, OpSchema, Slot

MOST_RANK = 8  # where nothing states a limit
_AXIS_NAMES = {"axis", "dim", "batch_axis", "seq_dim", "batch_dim", "time_axis"}
_AXES_NAMES = {"axes", "perm", "axis_list", "reduction_axes"}
# "legacy optimization attribute"; a list of FullyConnectedOptions of which no text says what it holds
_IDLE = {"consumed_inputs", "quant_spec"}
_BITS = {f"{name}_mask" for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
_NO_EXTENTS = {"seed", "seed2", "version", "stash_type", "dtype", *_BITS}  # integers that count no positions


class Operand(NamedTuple):
    """A formal input that takes tensors.  low, high: ranks that its shape annotation admits.  broadcasts: the name of
    the axes that it shares with others by broadcasting.  fixed: ranks are the same for all instances."""

    name: str
    slot: Slot
    low: int
    high: int
    broadcasts: str | None
    dtypes: tuple[DType, ...]

    @property
    def kinds(self) -> str:
        return "".join({d.kind for d in self.dtypes})


class Parameter(NamedTuple):
    """An attribute, or an input that holds a parameter.  kind: axis, axes, flag, choice, int, ints, real or dtype.
    of: the operand whose axes it speaks of.  options: the values that are stated.  left_out: may a model leave it
    out?"""

    name: str
    kind: str
    attr: Attr | None
    of: str | None = None
    options: tuple[Any, ...] = ()
    left_out: bool = False

    @property
    def values(self) -> tuple[str, ...]:
        """The values by which pairs are formed, an attribute that is left out among them; none of an open domain."""
        if not self.options:
            return ()
        left_out = self.left_out
        return (*map(worded, self.options), *(("omitted",) if left_out else ()))


def worded(value: Any) -> str:
    """A value of an attribute as goals name it."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


class Facts:
    """What the declaration of an op version states: operands, parameters, outputs."""

    def __init__(self, version: OpVersion) -> None:
        self.version = version
        self.schema = version.schema

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Attributes in the order of the schema, then the inputs that hold a parameter."""
        told = self._told
        booleans = self.version.dialect.has_booleans
        out = []
        for a in self.schema.attrs.values():
            if a.name in _IDLE or a.name in self.later:
                continue
            p = told.get(a.name) or _of_type(a, self.schema, booleans)
            if p is not None:
                out.append(p._replace(attr=a, left_out=not a.required and self.version.dialect.tells_omitted))
        out += [p for name, p in told.items() if name not in self.schema.attrs]
        return tuple(out)

    @cached_property
    def _annotated(self) -> dict[str, Tensor]:
        """Slot -> the annotation of the tensor that is read from it."""
        out: dict[str, Tensor] = {}
        m = self.version.meaning
        if m is None:
            return out
        for name, codec in self.version.tensor_codecs.items():
            slot = getattr(codec, "slot", None)
            if slot is not None and (isinstance(codec, Slotted) or not hasattr(codec, "name")):
                out.setdefault(slot, m.tensors[name])
        return out

    @cached_property
    def _told(self) -> dict[str, Parameter]:
        """Parameters whose kind the signature of the meaning tells, by the dialect's name."""
        m = self.version.meaning
        if m is None:
            return {}
        slot_of_dim: dict[str, str] = {}
        for slot, ann in self._annotated.items():
            for t in ann.tokens:
                if t.name is not None and t.many:
                    slot_of_dim.setdefault(t.name, slot)
        tensors = self._annotated.keys()
        known = {*self.schema.attrs, *(s.name for s in self.inputs)} - tensors - self.states
        out: dict[str, Parameter] = {}
        for param, codec in self.version.param_codecs.items():
            p = m.params[param]
            name = next(
                (n for n in (getattr(codec, "name", None), getattr(codec, "slot", None), param) if n in known), None
            )
            if name is None:
                continue
            of = slot_of_dim.get(getattr(p, "dim", ""))
            if isinstance(codec, Map):
                out[name] = Parameter(name, "choice", None, None, tuple(codec.table.values()))
                continue
            a = self.schema.attrs.get(name)
            kind = _kind(p, name)
            if kind is None and (a is None or a.type in ("int", "ints")):
                kind = _kind_of_name(name, a is not None and a.type == "int")
            if kind is not None:
                options: tuple[Any, ...] = (0, 1) if kind == "flag" else a.enum if a is not None and a.enum else ()
                if not options and isinstance(p, (Choice, ElementType)):
                    options = p.options
                out[name] = Parameter(name, kind, None, of, options)
        if self.version.meaning is not None:  # inputs that no tensor of the meaning is read from
            for s in self.inputs:
                taken = s.name in tensors or s.name in out or s.container is not None or s.variadic
                taken = taken or s.name in self.states
                if not taken and all(d.kind in "iu" for d in self.schema.dtypes(s.element)):
                    single = self.version.entry.checks.stated.get(s.name) == ""
                    out[s.name] = Parameter(s.name, _kind_of_name(s.name, single), None)
        return out

    @cached_property
    def operands(self) -> tuple[Operand, ...]:
        """Inputs that take plain tensors and hold no parameter."""
        annotated = self._annotated if self.version.meaning is not None else {}
        params = {p.name for p in self.parameters}
        most = MOST_RANK
        if self.version.dialect.states_ranks:
            most = min(most, self.version.dialect.rank_limit(self.version))
        out = []
        for s in self.inputs:
            dtypes = self.schema.dtypes(s.element)
            if s.container is not None or s.name in params or not dtypes:
                continue
            low, high, shared = 0, MOST_RANK, None
            ann, tokens = annotated.get(s.name), None
            if ann is not None:
                tokens = ann.tokens
            stated = self.version.entry.checks.stated.get(s.name)
            if isinstance(stated, str):
                tokens = dims.parse(stated)
            elif isinstance(stated, Pattern):
                (low, high), tokens = stated.ranks, None
            if tokens is not None:
                low = sum(not t.many for t in tokens)
                high = MOST_RANK if any(t.many for t in tokens) else low
                shared = next((t.name for t in tokens if t.many and t.broadcast), None)
            most_here = most - (s.name in self.schema.extra.get("adds", ()))  # a result has an axis more
            out.append(Operand(s.name, s, low, max(low, min(high, most_here)), shared, dtypes))
        return tuple(out)

    def of_other_ranks(self, a: str, b: str) -> bool:
        """Have two operands never the same rank?  So it is where they share their axes of any number, and one of them
        has more beside these."""
        annotated = self._annotated.keys() - self.version.entry.checks.stated.keys()
        found = [self._annotated[n].tokens for n in (a, b) if n in annotated]
        found = [() if any(t.broadcast for t in tokens) else tokens for tokens in found]
        shared = [sorted(t.name or "" for t in tokens if t.many) for tokens in found]
        single = {sum(not t.many for t in tokens) for tokens in found}
        return len(single) == 2 and shared[0] == shared[1] and all(shared[0])

    @cached_property
    def later(self) -> frozenset[str]:
        """Attributes and inputs of the operator that only later versions know."""
        return frozenset(self.schema.extra.get("later", ()))

    @cached_property
    def inputs(self) -> tuple[Slot, ...]:
        """The inputs that the op version knows."""
        return tuple(s for s in self.schema.inputs if s.name not in self.later)

    @cached_property
    def states(self) -> frozenset[str]:
        """Operands that the op keeps from one call to the next: no model gives them elements."""
        return frozenset(self.schema.extra.get("states", ()))

    @cached_property
    def sizes(self) -> frozenset[str]:
        """Parameters that are the extent of a tensor, which is never without elements: one of 2^31 - 1 would have as
        many, and no instance holds them.  So are the only extents of a tensor (``lengths``)."""
        sizes = () if self.version.dialect.allow_empty else self.schema.extra.get("sizes", ())
        return frozenset((*sizes, *self.schema.extra.get("lengths", ())))

    @cached_property
    def counts(self) -> frozenset[str]:
        """Parameters that count the results: an op of which nothing is asked shows nothing."""
        return frozenset(self.schema.extra.get("counts", ()))

    @cached_property
    def quantised(self) -> tuple[Operand, ...]:
        """Operands that carry a scale and a zero point."""
        if self.schema.domain not in self.version.dialect.quantised_domains:
            return ()
        main = next(iter(self.schema.types), None)
        return tuple(o for o in self.operands if o.slot.type == main)


def _kind_of_name(name: str, single: bool) -> str:
    low = name.lower()
    return "axes" if low in _AXES_NAMES else "axis" if low in _AXIS_NAMES else "int" if single else "ints"


def _kind(p: Any, name: str) -> str | None:
    if isinstance(p, Axis):
        return "axis"
    if isinstance(p, Axes):
        return "axes"
    if isinstance(p, Flag):
        return "flag"
    if isinstance(p, Choice):
        return "choice"
    if isinstance(p, ElementType):
        return "dtype"
    if isinstance(p, (Each, Pads)):
        return "ints"
    if isinstance(p, Ints):
        return "axes" if name in _AXES_NAMES else "ints"
    if isinstance(p, Divisor) or type(p).__name__ == "Integer":
        return "axis" if name in _AXIS_NAMES else None if name in _NO_EXTENTS else "int"
    return "real" if type(p).__name__ == "Real" else None


def _of_type(a: Attr, schema: OpSchema, booleans: bool) -> Parameter | None:
    """What the schema alone tells of an attribute."""
    first = next((s.name for s in schema.inputs if s.container is None), None)
    if a.enum and all(str(x).replace("_", "a").isalnum() for x in a.enum):  # examples of a notation state no value
        return Parameter(a.name, "dtype" if a.type == "dtype" else "choice", a, None, a.enum)
    if a.type == "bool" or (a.type == "int" and not booleans and a.default in (0, 1) and a.name not in _AXIS_NAMES):
        return Parameter(a.name, "flag", a, None, (0, 1))
    if a.type == "int" and a.name not in _NO_EXTENTS:
        return Parameter(a.name, "axis" if a.name in _AXIS_NAMES else "int", a, first)
    if a.type == "ints":
        return Parameter(a.name, "axes" if a.name in _AXES_NAMES else "ints", a, first)
    if a.type == "float":
        return Parameter(a.name, "real", a)
    if a.type == "dtype":
        bound = {s.element for s in schema.inputs}
        own = [o.element for o in schema.outputs if o.element not in bound and len(schema.dtypes(o.element)) > 1]
        return Parameter(a.name, "dtype", a, None, schema.dtypes(own[0]) if own else ())
    return None


@dataclass(slots=True)
class Filled:
    """A drawn instance as kinds see it.  args: slot -> its tensors.  before: goals that need not be found again."""

    case: Case
    args: dict[str, tuple[Arg, ...]]
    before: Set[str]

    @staticmethod
    def of(case: Case, before: Set[str]) -> Filled:
        """The view of a case."""
        args = {k: tuple(a) if isinstance(a, list) else (a,) for k, a in case.inst.args.items()}
        return Filled(case, args, before)

    def arrays(self, slot: str) -> list[np.ndarray]:
        """Arrays of a slot in the first data draw; none where the data could not be made."""
        draws = self.case.draws
        x = draws[0].get(slot) if draws else None
        return [] if x is None else x if isinstance(x, list) else [x]

    def value(self, p: Parameter) -> Any:
        """What a parameter is given: an integer, a list, a word; None where it is left out."""
        given = self.case.inst.attrs.get(p.name)
        if given is not None:
            return None if isinstance(given, Graph) else given
        args = self.args.get(p.name)
        if not args or args[0].items is not None:
            return None
        arrays = self.arrays(p.name)
        if not arrays or not isinstance(arrays[0], np.ndarray):
            return None
        flat = arrays[0].ravel().tolist()
        return flat if p.kind in ("axes", "ints") else flat[0] if flat else None
