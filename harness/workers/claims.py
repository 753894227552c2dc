"""What a backend claims to take, or what a user asks for: instances beyond it are neither drawn nor counted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, DType, of
from harness.core.errors import UsageError
from harness.core.form_check import Form, Wrong, expected, kind, listed, maybe, that
from harness.core.instance import Arg, Instance
from harness.tolerance.claimed import Accuracy

INT32 = -(1 << 31), (1 << 31) - 1
ALL_BUT_FIRST = "*"  # of ``constant``: every operand but the first


@dataclass(frozen=True)
class Claims:
    """The instances that a backend is asked.

    opsets: (oldest, newest), numbers or names such as ios15.  They say nothing of dialects with the other kind.
    dtypes: element types of operands and of types in attributes.  The type of an operand that can have only one needs
        no claim.
    unsupported_ops: patterns such as Conv, onnx/Conv, onnx/Conv/11.
    max_rank: of operands and results.  min_rank: of operands at run time.
    empty: are there axes of extent 0?
    static: are all extents known when the model is loaded?
    input: must at least one operand come at run time?  input_dtypes: element types of those that do.
    constant: operands that must be constant, as OP:SLOT with patterns; ``*`` for all but the first.
    int64_as_int32: does it take only those values of i64 and u64 that i32 can hold?
    validates: does it reject models that break a rule?
    finite: are NaN and infinities left out, given and expected?
    """

    opsets: tuple[Any, Any] | None = None
    dtypes: frozenset[str] | None = None
    unsupported_ops: tuple[str, ...] = ()
    max_rank: int | None = None
    min_rank: int = 0
    empty: bool = True
    static: bool = False
    input: bool = False
    input_dtypes: frozenset[str] | None = None
    constant: tuple[str, ...] = ()
    int64_as_int32: bool = False
    validates: bool = True
    finite: bool = False

    @cached_property
    def _limits(self) -> bool:
        return self != Claims()

    def __bool__(self) -> bool:
        """Is anything beyond it?  Found out once: every case asks."""
        return self._limits

    def to_json(self) -> dict[str, Any]:
        """The fields that say more than the default."""
        told = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return {
            k: sorted(v) if isinstance(v, frozenset) else list(v) if isinstance(v, tuple) else v
            for k, v in told.items()
        }

    def both(self, other: Claims) -> Claims:
        """What is within this and another one."""
        opsets = [o for o in (self.opsets, other.opsets) if o is not None]
        ranks = [r for r in (self.max_rank, other.max_rank) if r is not None]
        types = [t for t in (self.dtypes, other.dtypes) if t is not None]
        fed = [t for t in (self.input_dtypes, other.input_dtypes) if t is not None]
        return Claims(
            _span(opsets, max, min),
            reduce(frozenset.__and__, types) if types else None,
            tuple(dict.fromkeys((*self.unsupported_ops, *other.unsupported_ops))),
            min(ranks, default=None),
            max(self.min_rank, other.min_rank),
            self.empty and other.empty,
            self.static or other.static,
            self.input or other.input,
            reduce(frozenset.__and__, fed) if fed else None,
            tuple(dict.fromkeys((*self.constant, *other.constant))),
            self.int64_as_int32 or other.int64_as_int32,
            self.validates and other.validates,
            self.finite or other.finite,
        )

    # -- op versions

    def takes(self, key: str) -> bool:
        """Is an op version, ``dialect/op/version``, within it?"""
        dialect, op, _ = key.split("/")
        names = op, f"{dialect}/{op}", key
        return not any(fnmatchcase(n, p) for p in self.unsupported_ops for n in names)

    def opsets_of(self, opsets: Sequence[Any]) -> Sequence[Any]:
        """Those of some opsets that are within it; all, where only one side has numbers and the other names."""
        if self.opsets is None or not opsets or type(opsets[0]) is not type(self.opsets[0]):
            return opsets
        return [o for o in opsets if self.opsets[0] <= o <= self.opsets[1]]

    # -- instances

    def beyond(self, inst: Instance, schema: Any = None) -> str:
        """What puts an instance outside, in words; empty of one that is within.  schema: of its op version."""
        if not self.takes(inst.key):
            return f"{inst.op} is not claimed"
        if not self.opsets_of([inst.opset]):
            return f"opset {inst.opset} is not claimed"
        if inst.rule is not None and not self.validates:
            return "makes no claim about invalid models"
        for slot, a in tensors_of(inst):
            if self.dtypes is not None and a.dtype.name not in self.dtypes and not _only_type(schema, slot):
                return f"{slot}: element type {a.dtype.name} is not claimed"
            if self.input_dtypes is not None and not a.const and a.dtype.name not in self.input_dtypes:
                return f"{slot}: element type {a.dtype.name} at run time is not claimed"
            if len(a.shape) < self.min_rank and not a.const:
                return f"{slot}: rank {len(a.shape)} is below {self.min_rank}"
            if (why := self._of_shape(a.shape)) or (self.static and a.dynamic and (why := "symbolic extents")):
                return f"{slot}: {why}"
        if self.static and inst.reruns:
            return "another run at other extents"
        if self.input and all(a.const for _, a in tensors_of(inst)):
            return "no operand comes at run time"
        if self.dtypes is not None:
            for name, x in inst.attrs.items():
                d = of(x) if isinstance(x, np.ndarray) else x
                if isinstance(d, DType) and d.name not in self.dtypes:
                    return f"{name}: element type {d.name} is not claimed"
        return next((f"{s}: an operand at run time" for s in self.to_fix(inst)), "")

    def to_fix(self, inst: Instance) -> list[str]:
        """The slots whose operands must be constant, and are not."""
        if not self.constant:
            return []
        slots = [
            s for s, given in inst.args.items() for a in (given if isinstance(given, list) else [given]) if not a.const
        ]
        first = next(iter(inst.args), None)
        return [
            s
            for s in dict.fromkeys(slots)
            if any(
                s != first if p == ALL_BUT_FIRST else any(fnmatchcase(f"{o}:{s}", p) for o in _ops(inst))
                for p in self.constant
            )
        ]

    def beyond_values(self, given: Iterable[Any], results: Iterable[Any]) -> str:
        """The same of the data: arrays that are given, and those that the specification expects."""
        for a in _arrays(results):
            if why := self._of_shape(a.shape):
                return f"a result: {why}"
        for a in _arrays((given, results)) if self.int64_as_int32 else ():
            if a.dtype.kind in "iu" and a.dtype.itemsize == 8 and a.size and (a.min() < INT32[0] or a.max() > INT32[1]):
                return "a value that i32 cannot hold"
        for a in _arrays((given, results)) if self.finite else ():
            if a.dtype.kind in "fcV" and not _all_finite(a):
                return "a value that is not finite"
        return ""

    @property
    def of_values(self) -> bool:
        """Does it depend on data or results?"""
        return self.max_rank is not None or not self.empty or self.int64_as_int32 or self.finite

    def _of_shape(self, shape: tuple[int, ...]) -> str:
        if self.max_rank is not None and len(shape) > self.max_rank:
            return f"rank {len(shape)} is above {self.max_rank}"
        return "an axis of extent 0" if not self.empty and 0 in shape else ""


EVERYTHING = Claims()


def common(claims: Iterable[Claims]) -> Claims:
    """What is outside of all of some claims is outside of this."""
    out: Claims | None = None
    for c in claims:
        out = c if out is None else _either(out, c)
    return EVERYTHING if out is None else out


def _either(a: Claims, b: Claims) -> Claims:
    return Claims(
        _span([a.opsets, b.opsets], min, max) if a.opsets and b.opsets else None,
        None if a.dtypes is None or b.dtypes is None else a.dtypes | b.dtypes,
        tuple(p for p in a.unsupported_ops if p in b.unsupported_ops),
        None if a.max_rank is None or b.max_rank is None else max(a.max_rank, b.max_rank),
        min(a.min_rank, b.min_rank),
        a.empty or b.empty,
        a.static and b.static,
        a.input and b.input,
        None if a.input_dtypes is None or b.input_dtypes is None else a.input_dtypes | b.input_dtypes,
        tuple(p for p in a.constant if p in b.constant),
        a.int64_as_int32 and b.int64_as_int32,
        a.validates or b.validates,
        a.finite and b.finite,
    )


def _span(spans: Sequence[tuple[Any, Any]], first: Any, last: Any) -> tuple[Any, Any] | None:
    """One span of several; None of no span, and of spans of numbers beside spans of names."""
    if len({type(o) for span in spans for o in span}) != 1:
        return None
    return first(a for a, _ in spans), last(b for _, b in spans)


def _ops(inst: Instance) -> tuple[str, ...]:
    return inst.op, f"{inst.dialect}/{inst.op}", inst.key


def tensors_of(inst: Instance) -> Iterator[tuple[str, Arg]]:
    """Slot and argument of each tensor of all runs, those inside sequences and optionals too."""

    def inner(slot: str, a: Arg) -> Iterator[tuple[str, Arg]]:
        if a.items is None:
            yield slot, a
        for x in a.items or ():
            yield from inner(slot, x)

    for args in (inst.args, *inst.reruns):
        for slot, given in args.items():
            for a in given if isinstance(given, list) else [given]:
                yield from inner(slot, a)


def _only_type(schema: Any, slot: str) -> bool:
    """Can the operand have one element type alone, such as the shape of Reshape?"""
    found = next((s for s in schema.inputs if s.name == slot), None) if schema is not None else None
    return found is not None and len(schema.dtypes(found.element)) == 1


def _arrays(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        yield from _arrays(value.values())
    elif not isinstance(value, (str, bytes)) and isinstance(value, Iterable):
        for v in value:
            yield from _arrays(v)


def _all_finite(a: np.ndarray) -> bool:
    with np.errstate(invalid="ignore"):  # a NaN of a type that NumPy does not know
        return bool(np.isfinite(a.astype(np.complex128 if a.dtype.kind == "c" else float)).all())


# -- their form in a class, in what a runner declares, and in a file

_COUNT = that("a whole number, 0 or more", lambda v: type(v) is int and v >= 0)
_FLAG = kind("true or false", bool)
_OPERAND = that(
    "OP:SLOT, or * for all but the first", lambda v: isinstance(v, str) and (":" in v or v == ALL_BUT_FIRST)
)
_NUMBER = that("a number, 0 or more", lambda v: type(v) in (int, float) and 0 <= v < float("inf"))
LIMITS: dict[str, Form] = {
    "max_rank": _COUNT,
    "min_rank": _COUNT,
    "empty": _FLAG,
    "static": _FLAG,
    "input": _FLAG,
    "input_dtypes": listed(that(f"a name among {' '.join(BY_NAME)}", lambda v: v in BY_NAME)),
    "constant": listed(_OPERAND),
    "int64_as_int32": _FLAG,
    "finite": _FLAG,
}


def limits(value: Any) -> Wrong | None:
    """The form of ``limits``: an object of which each field is optional, and none has another name."""
    if not isinstance(value, dict):
        return expected(f"an object with fields among {' '.join(LIMITS)}", value)
    for name, v in value.items():
        if name not in LIMITS:
            return expected(f"fields among {' '.join(LIMITS)}", name)
        if wrong := maybe(LIMITS[name])(v):
            return wrong.inside(name)
    return None


def absolute(value: Any) -> Wrong | None:
    """The form of ``absolute``: {pattern of ops: absolute error, or the fields of an ``Accuracy``}."""
    if not isinstance(value, dict):
        return expected("{op: absolute error}", value)
    return next((w.inside(op) for op, v in value.items() if (w := _accuracy(v))), None)


def _accuracy(value: Any) -> Wrong | None:
    if not isinstance(value, dict):
        return _NUMBER(value)
    known = [f.name for f in fields(Accuracy)]
    if unknown := [k for k in value if k not in known]:
        return expected(f"fields among {' '.join(known)}", unknown[0])
    return next((w.inside(k) for k, v in value.items() if (w := _NUMBER(v))), None)


def claims_of(stated: dict[str, Any]) -> Claims:
    """The claims in the attributes of a backend, whose form was checked."""
    told = {k: v for k, v in (stated.get("limits") or {}).items() if v is not None}
    opsets, dtypes = stated.get("opsets"), stated.get("dtypes")
    return Claims(
        (opsets[0], opsets[1]) if opsets else None,
        None if dtypes is None else frozenset(dtypes),
        tuple(stated.get("unsupported_ops") or ()),
        told.get("max_rank"),
        told.get("min_rank", 0),
        told.get("empty", True),
        told.get("static", False),
        told.get("input", False),
        frozenset(told["input_dtypes"]) if "input_dtypes" in told else None,
        tuple(told.get("constant", ())),
        told.get("int64_as_int32", False),
        stated.get("validates", True),
        told.get("finite", False),
    )


FILE = ("opsets", "dtypes", "unsupported_ops", "limits", "validates", "acc", "flushes", "absolute")


def from_file(path: str) -> dict[str, Any]:
    """The attributes that a file of claims states, as ``opconform probe`` writes it.  Raises UsageError."""
    try:
        told = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as e:
        raise UsageError(f"--claims {path}: {e.strerror}") from None
    except ValueError as e:
        raise UsageError(f"--claims {path}: expected JSON: {e}") from None
    if not isinstance(told, dict) or (strange := sorted(set(told) - {*FILE, "measured"})):
        got = type(told).__name__ if not isinstance(told, dict) else strange[0]
        raise UsageError(f"--claims {path}: expected an object with fields among {' '.join(FILE)}, got {got}")
    return {k: v for k, v in told.items() if k in FILE}
