"""One line of a dialect: ``op(name, meaning, Spelling(...), Sampling(...), Checks(...), since=, until=, **names)``.

Most lines need a name, a meaning and some names.  Everything else belongs to one of three groups: how the dialect
writes the op (``Spelling``), what is drawn (``Sampling``), what the op set and the reference state (``Checks``).  An op
that is no function of tensors has an ``Evaluation`` in place of a meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

from harness.core.dtypes import DType
from harness.core.errors import UsageError
from harness.declare.codec import Call
from harness.declare.semantics import InvalidFn, Semantics
from harness.generate.draw import Draw


@dataclass(frozen=True)
class Evaluation:
    """What computes an op that is no function of tensors: control flow, states, sequences, blocks.

    fn: ``fn(call) -> results``.  error: the tolerance, or a tuple with one for each output.  source: the clause.
    """

    fn: Callable[[Call], Any]
    error: Any
    source: str = ""


@dataclass(frozen=True, init=False)
class Spelling:
    """How the dialect writes the op.

    names: semantic name -> dialect name or ``Codec``, given as keywords.
    fixed: semantic parameters that this spelling pins.
    out: ``fn(call, results) -> results`` lays out the results (order of axes, fused activation).  Its attribute
    ``linear``, if it has one, is the same without what clamps, for the error scale; its attribute ``function``, if it
    has one, ``fn(call) -> (function, name, ulps) | None`` of the first result: what is applied to it beyond a clamp.
    out_dtype: ``fn(call, i) -> DType`` where the schema's types do not tell the type of output i.
    """

    names: dict[str, Any]
    fixed: dict[str, Any]
    out: Callable[[Call, list[Any]], list[Any]] | None
    out_dtype: Callable[[Call, int], DType | None] | None

    def __init__(
        self,
        *,
        fixed: Mapping[str, Any] | None = None,
        out: Callable[[Call, list[Any]], list[Any]] | None = None,
        out_dtype: Callable[[Call, int], DType | None] | None = None,
        **names: Any,
    ) -> None:
        for name, value in (("names", names), ("fixed", dict(fixed or {})), ("out", out), ("out_dtype", out_dtype)):
            object.__setattr__(self, name, value)

    def with_out(self, out: Callable[[Call, list[Any]], list[Any]]) -> Spelling:
        """The same with another layout of the results."""
        return Spelling(fixed=self.fixed, out=out, out_dtype=self.out_dtype, **self.names)


@dataclass(frozen=True)
class Sampling:
    """What is drawn, where the meaning and the schema do not say it.

    draw: ``fn(d)`` at the dialect's level (slot -> ``T``, attribute -> value) in place of the derived generator.
    types: type name -> the element types of it that are drawn (a tuple, or words), with the reason in ``why``.
    ranks: lowest and highest rank of the tensors, where the op takes other ranks than the dialect.
    data: recipes of all inputs, or of each by name.
    outs: how many outputs are asked for: a number, or ``fn(d, values)``.
    alike: type names that may be the same type are so in half of the instances.  What mixes types is what most backends
    lack, and would be most of what is drawn.
    even: each element type is drawn as often as any other, so that rare ones meet too.  Without ``alike`` the cases of
    an op version go through all combinations in turn.
    tags: what a dialect's ``finish`` adds to the instances of this line ("fused", "bias"), or what a meaning's
    generator leaves out ("nonnegative").
    """

    draw: Callable[[Draw], dict[str, Any]] | None = None
    types: dict[str, Any] | None = None
    why: str = ""
    ranks: tuple[int, int] | None = None
    data: Any = None
    outs: Callable[[Draw, dict[str, Any]], int | None] | int | None = None
    alike: bool = True
    even: bool = False
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        types = {k: tuple(v.split()) if isinstance(v, str) else tuple(v) for k, v in (self.types or {}).items()}
        object.__setattr__(self, "types", types or None)
        object.__setattr__(self, "tags", tuple(self.tags))


@dataclass(frozen=True)
class Pattern:
    """A stated shape that depends on the call: ``fn(call)`` gives the pattern, ``ranks`` the lowest and highest rank
    that it can have."""

    fn: Callable[[Call], str]
    ranks: tuple[int, int]

    def __call__(self, call: Call) -> str:
        return self.fn(call)


@dataclass(frozen=True)
class Checks:
    """What the op set says of this line beyond its meaning, and what the reference computes of it.

    breaks: rule -> ``fn(d)``, a generator of instances that break it; None where this line cannot break the rule.
    unseen: rules whose breach the values do not show, since it lies in an element type.
    stated: slot -> the shape that the op states beyond what its meaning says, a pattern of ``dims``, or ``fn(call)`` or
    a ``Pattern`` that gives one; names are shared.  Another shape breaks the rule "shapes-stated".
    agrees: attribute that repeats what the operands show -> ``fn(call)``, what that is.  Another value is invalid.
    constant: slot -> ``fn(call)``, must that operand be known when the model is built?  A run-time input breaks a rule.
    only: attribute -> the value (or a tuple of values) that this line computes.  The reference declines others.
    ambiguous: ``fn(call)`` says what the text leaves open, in place of the meaning's predicate.
    settles: reasons of an ambiguity that this dialect's text settles.
    error: the tolerance in place of the meaning's, or a tuple with one for each output.
    source: the clause in place of the meaning's.
    """

    breaks: Mapping[str, InvalidFn | None] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()
    stated: Mapping[str, str | Callable[[Call], str]] = field(default_factory=dict)
    agrees: Mapping[str, Callable[[Call], Any]] = field(default_factory=dict)
    constant: Mapping[str, Callable[[Call], bool]] = field(default_factory=dict)
    only: Mapping[str, Any] = field(default_factory=dict)
    ambiguous: Callable[[Call], Any] | None = None
    settles: str = ""
    error: Any = None
    source: str = ""


Group = Spelling | Sampling | Checks
_G = TypeVar("_G", Spelling, Sampling, Checks)


@dataclass
class Entry:
    """One line of a dialect.  since, until: op versions (inclusive) that it serves; None is open.  meaning: None where
    ``evaluation`` computes the op.  family: the module that holds the line."""

    op: str
    meaning: Semantics | None
    evaluation: Evaluation | None
    since: Any = None
    until: Any = None
    domain: str = ""
    family: str = ""
    spelling: Spelling = field(default_factory=Spelling)
    sampling: Sampling = field(default_factory=Sampling)
    checks: Checks = field(default_factory=Checks)

    @property
    def error(self) -> Any:
        """The line's own tolerance; None where the meaning's holds."""
        return self.checks.error if self.evaluation is None else self.evaluation.error

    @property
    def source(self) -> str:
        """The line's own clause; "" where the meaning's holds."""
        return self.checks.source or (self.evaluation.source if self.evaluation is not None else "")

    def validate(self) -> None:
        """Raises UsageError for a name that the meaning does not have, or a keyword that belongs in a group."""
        m = self.meaning
        known = {*m.tensors, *m.params} if m is not None else set()
        for name in (*self.spelling.names, *self.spelling.fixed):
            if name in known:
                continue
            group = next(
                (k.__name__ for k in (Spelling, Sampling, Checks) if name in {f.name for f in fields(k)}), None
            )
            if group is not None:
                raise UsageError(f"op {self.op}: {name} belongs in {group}(...)")
            what = f"{m.name} takes {' '.join(sorted(known))}" if m is not None else "an Evaluation takes no names"
            raise UsageError(f"op {self.op}: unknown name {name}, {what}")


def joined(kind: type[_G], groups: Iterable[Group], op: str) -> _G:
    """The groups of one kind as one.  Raises UsageError for what two of them say."""
    given: dict[str, Any] = {}
    for group in groups:
        if not isinstance(group, kind):
            continue
        for name, value in _said(group).items():
            before = given.get(name)
            if not isinstance(value, dict) or before is None:
                twice = [name] if before is not None else []
            else:
                twice = [f"{name}[{k!r}]" for k in value if k in before]
                value = {**before, **value}
            if twice:
                raise UsageError(f"op {op}: {kind.__name__} gives {' and '.join(twice)} twice")
            given[name] = value
    return kind(**given.pop("names", {}), **given)


def _said(group: Group) -> dict[str, Any]:
    """The fields of a group that differ from their defaults."""
    out = {}
    for f in fields(group):
        value = getattr(group, f.name)
        default = f.default if f.default is not MISSING else None
        if value is not default and value != default and value != {}:
            out[f.name] = value
    return out


def agreement(attr: str) -> str:
    """The rule that an attribute of ``Checks.agrees`` may break."""
    return f"{attr}-agrees"


def constancy(slot: str) -> str:
    """The rule that an operand of ``Checks.constant`` may break."""
    return f"{slot}-constant"
