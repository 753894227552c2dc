"""Entry x schema: the names of an op version resolved once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from harness.core.dtypes import BF16, BOOL, F16, F32, F64, I32, I64, DType
from harness.core.errors import UsageError
from harness.core.instance import Instance
from harness.declare.codec import Codec, Named, Slotted
from harness.declare.entry import Entry
from harness.declare.schema import OpSchema, Slot
from harness.declare.semantics import Semantics
from harness.generate.draw import Draw, T

# how often a type is drawn, relative to 1 for the ones not listed
_WEIGHT = {F32: 6, F16: 3, BF16: 2, F64: 2, I32: 3, I64: 3, BOOL: 2}


class Owner(Protocol):
    """What an op version asks of its dialect; ``harness.declare.dialect`` says what each of them is."""

    name: str
    min_rank: int
    shares_tensors: bool
    draws_edges: bool
    edge_extents: tuple[int, ...]
    special_ends: bool
    allow_empty: bool

    def between(self, first: Any, last: Any) -> tuple[Any, ...]: ...

    def rank_limit(self, version: Any) -> int: ...

    def counts_back(self, version: Any) -> bool: ...

    def keeps(self, version: Any) -> tuple[str, ...]: ...

    def draws_const(self, version: Any, slot: Slot, t: T, d: Draw) -> bool: ...

    def finish(self, version: Any, d: Draw, inst: Instance) -> Instance: ...

    def round(self, x: np.ndarray, dtype: DType) -> np.ndarray: ...


class Resolved:
    """One op at one version of one dialect: its names, codecs and types.

    key: dialect/op/version.
    tensor_codecs, param_codecs: by semantic name.
    slots_of: semantic tensors that this version has a slot for.
    candidates: type name -> the element types that are drawn.
    weighted: the same, each type as often as it is to be drawn.
    """

    def __init__(self, dialect: Owner, entry: Entry, schema: OpSchema) -> None:
        self.dialect: Any = dialect  # a Dialect, which knows op versions
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
        self.tensor_codecs: dict[str, Codec] = {}
        self.param_codecs: dict[str, Codec] = {}
        self.slots_of: set[str] = set()
        if self.meaning is not None:
            self._resolve_tensors(self.meaning)
            self._resolve_params(self.meaning)
        self._resolve_types()

    def _resolve_tensors(self, m: Semantics) -> None:
        """The codec of each tensor that this version has a slot for."""
        for name, tensor in m.tensors.items():
            how = self.entry.spelling.names.get(name, name)
            codec = Slotted(how) if isinstance(how, str) else how
            if isinstance(codec, Slotted) and codec.slot not in self.slots_of_schema:
                if not tensor.optional:
                    raise UsageError(f"{self.key}: {m.name} needs tensor {name}, but there is no slot {codec.slot}")
                continue
            self.slots_of.add(name)
            self.tensor_codecs[name] = codec

    def _resolve_params(self, m: Semantics) -> None:
        """The codec of each parameter that this version can say; the meaning's own default holds for others."""
        for name, param in m.params.items():
            if name in self.entry.spelling.fixed:
                continue
            how = self.entry.spelling.names.get(name, name)
            if isinstance(how, Codec):
                self.param_codecs[name] = how.bind(self, param)
            elif how in self.schema.attrs or how in self.slots_of_schema:
                self.param_codecs[name] = Named(how).bind(self, param)
            elif name not in m.defaults:
                raise UsageError(f"{self.key}: {m.name} needs parameter {name}, but there is no {how}")

    def _resolve_types(self) -> None:
        """The candidates of every type name."""
        self.candidates: dict[str, tuple[DType, ...]] = {}
        self.weighted: dict[str, tuple[DType, ...]] = {}
        for t in self.type_names:
            allowed = self.schema.dtypes(t)
            if self.entry.sampling.types and t in self.entry.sampling.types:
                allowed = tuple(d for d in allowed if d.name in self.entry.sampling.types[t])
            kinds = self._kinds(t)
            if kinds:
                allowed = tuple(d for d in allowed if d.kind in kinds) or allowed
            self.candidates[t] = allowed
            self.weighted[t] = tuple(d for d in allowed for _ in range(self._weight(t, d)))
        sets = [set(allowed) for allowed in self.candidates.values() if len(allowed) > 1]
        self.may_agree = self.entry.sampling.alike and any(a & b for i, a in enumerate(sets) for b in sets[:i])

    def _weight(self, t: str, d: DType) -> int:
        if self.entry.sampling.even:
            return 1
        own = self.dialect.type_weight(t, d)
        return _WEIGHT.get(d, 1) if own is None else int(own)

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

    @cached_property
    def ranks(self) -> tuple[int, int]:
        """Lowest and highest rank that entry and dialect leave."""
        lo, hi = self.entry.sampling.ranks or (0, 99)
        return max(lo, self.dialect.min_rank), min(hi, self.dialect.rank_limit(self))
