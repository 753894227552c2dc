"""Translates an instance of one dialect into another, where both mean the same.

Two op versions share a meaning if their entries name the same ``Semantics``.  The codecs of the first entry decode the
instance, the codecs of the other entry encode it, and the result is decoded again.  The translation counts only if this
gives the same tensors and parameters bit for bit, and the same output types.  Reference result and bound stay those of
the original instance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.cases.translated_tensors import (
    Arrays,
    Untranslatable,
    as_drawn,
    same,
    short,
    slot_arrays,
    spelled,
    taken,
    types_of,
)
from harness.core.dtypes import I32, I64, DType, of
from harness.core.errors import OpconformError
from harness.core.instance import Arg, Instance
from harness.declare.codec import Build, Call, Slotted
from harness.declare.dialect import Dialect
from harness.declare.expected import Expected
from harness.declare.op_version import OpVersion
from harness.declare.semantics import Semantics
from harness.generate.draw import Draw, T


class _Plainest:
    """The engine behind encoders: always the first choice, so that nothing is added and everything is written out."""

    def int(self, lo: int, hi: int) -> int:
        return lo


class _Build(Build):
    """Literal operands (axes, shapes) are constants."""

    def tensor(self, slot: str, t: T, as_const: bool | None = None) -> None:
        if t.dtype is None and t.values is not None:
            t.dtype = self._usual(slot, list(np.asarray(t.values, object).ravel()))
        super().tensor(slot, t, as_const)

    def value(self, slot: str, value: Any, dtype: DType | None = None) -> None:
        if value is not None:
            shape = np.shape(value)
            flat = list(np.asarray(value, object).ravel()) if shape else [value]
            self.tensor(slot, T(shape, values=flat, dtype=dtype, const=True))

    def _usual(self, slot: str, values: list[Any]) -> DType | None:
        """The type of a literal whose slot is bound by no tensor: the first that holds the values."""
        s = self.version.schema.input(slot)
        if s is None or s.element in self.draw.types:
            return None
        kinds = "b" if values and all(isinstance(x, bool) for x in values) else "iu"
        if any(isinstance(x, float) for x in values):
            kinds = "f"
        allowed = self.version.candidates.get(s.element) or self.version.schema.dtypes(s.element)
        fit = [d for d in allowed if d.kind in kinds]
        return next((d for d in fit if d in (I64, I32)), fit[0] if fit else None)


class Translation:
    """Instances of any dialect into ``target``.

    newest: the highest opset that models are built at, or None for the dialect's last one."""

    def __init__(self, target: Dialect, newest: Any = None) -> None:
        self.target = target
        self.newest = newest
        self._by_meaning: dict[int, list[OpVersion]] | None = None

    def twins(self, meaning: Semantics) -> list[OpVersion]:
        """Op versions of the target with this meaning, the newest first, those above ``newest`` left out."""
        if self._by_meaning is None:
            self._by_meaning = {}
            for v in self.target.versions.values():
                if v.meaning is not None and v.entry.evaluation is None and self._opset(v) is not None:
                    self._by_meaning.setdefault(id(v.meaning), []).append(v)
            for found in self._by_meaning.values():
                found.sort(key=lambda v: self.target.opsets.index(self._opset(v)), reverse=True)
        return self._by_meaning.get(id(meaning), [])

    def _opset(self, v: OpVersion) -> Any:
        """The last opset, up to the newest allowed, at which the version is in force."""
        order = self.target.opsets
        last = order.index(self.newest) if self.newest in order else len(order) - 1
        found = [o for o in v.opsets if order.index(o) <= last]
        return found[-1] if found else None

    def twins_of(self, v: OpVersion, inst: Instance) -> list[OpVersion]:
        """Versions that an instance of ``v`` may be said in, at least one.  Raises Untranslatable."""
        title = self.target.title
        if inst.rule is not None:
            raise Untranslatable("an instance that breaks a rule has no meaning to ask for elsewhere")
        if v.meaning is None or v.entry.evaluation is not None:
            raise Untranslatable(f"{v.op} has no meaning that {title} could share: it evaluates by itself")
        twins = self.twins(v.meaning)
        if not twins:
            raise Untranslatable(f"no operator of {title} means {v.meaning.name}")
        return twins

    def cross(
        self, v: OpVersion, inst: Instance, draws: Sequence[Arrays], expected: Sequence[Sequence[Expected]]
    ) -> tuple[OpVersion, Instance, list[Arrays]]:
        """The op version, instance and data that ask the same of the target.

        draws, expected: arrays of the slots and the reference's outputs, one of each per data draw.  Raises
        Untranslatable."""
        twins = self.twins_of(v, inst)
        read = [v.decode(v.dialect.call_of(inst, arrays, v)) for arrays in draws]
        why = ""
        for twin in twins:
            try:
                return self._into(twin, v, inst, read, expected)
            except Untranslatable as e:
                why = why or str(e)  # of the newest version, the one that counts
            except (OpconformError, ValueError, TypeError, KeyError, IndexError, AttributeError) as e:
                why = why or f"{twin.key} has no spelling for it: {type(e).__name__}: {e}"
        raise Untranslatable(why)

    def _into(
        self,
        twin: OpVersion,
        v: OpVersion,
        inst: Instance,
        read: Sequence[tuple[Arrays, Arrays]],
        expected: Sequence[Sequence[Expected]],
    ) -> tuple[OpVersion, Instance, list[Arrays]]:
        given = [taken(twin, tensors) for tensors, _ in read]
        (tensors, types), params = given[0], read[0][1]
        opset = self._opset(twin)
        d = Draw(_Plainest(), twin, opset, twin.entry.spelling.fixed, types)
        b = _Build(twin, d, {**{n: as_drawn(x) for n, x in tensors.items()}, **params})
        for name, codec in twin.tensor_codecs.items():
            x = tensors.get(name)
            if x is None:
                continue
            const = _is_const(v, inst, name)
            if isinstance(codec, Slotted):
                for one in x if isinstance(x, list) else (x,):
                    shape = np.shape(spelled(codec, one))
                    b.tensor(codec.slot, T(shape, "small", of(one), const), codec.const)
            else:
                codec.encode(T(x.shape, dtype=of(x), const=const, values=list(x.ravel())), b)
        for name, param in twin.param_codecs.items():
            param.encode(params[name], b)
        made = Instance(self.target.name, twin.op, twin.version, opset, b.attrs, b.args, inst.outs)
        made = self.target.finish(twin, d, made)
        _within_limits(self.target, twin, made)
        data = [slot_arrays(twin, made, one) for one, _ in given]
        for arrays, (put, _), (meant, wanted), results in zip(data, given, read, expected):
            call = self.target.call_of(made, arrays, twin)
            twin.hold_stated(call)
            got, got_params = twin.decode(call)
            for name, x in put.items():
                if not same(x, got.get(name)):
                    raise Untranslatable(f"{twin.key} cannot say {name} = {short(x)}")
            lost = [n for n, x in wanted.items() if not same(x, got_params.get(n))]
            plain = not lost and all(types_of(put[n]) == types_of(x) for n, x in meant.items())
            try:
                _check_outputs(v, twin, call, results, plain)
            except OpconformError:  # also where the reference refuses what is left
                if not lost:
                    raise
                raise Untranslatable(f"{twin.key} cannot say {lost[0]} = {short(wanted[lost[0]])}") from None
        if self.target.declares_outputs:
            made.attrs["@outputs"] = [{"dtype": e.dtype.name} for e in expected[0]]
        return twin, made, data


def _check_outputs(v: OpVersion, twin: OpVersion, call: Call, expected: Sequence[Expected], plain: bool) -> None:
    """Raise Untranslatable if the other op version has other outputs.

    plain: both ask the meaning for exactly the same.  Then only what the entries do to the result is compared.
        Otherwise the reference of the other op version has to give the same values.
    """
    slots = twin.schema.outputs
    if len(expected) > len(slots) and not (slots and slots[-1].variadic):
        raise Untranslatable(f"{twin.key} has {len(slots)} outputs, {v.key} {len(expected)}")
    if any(not isinstance(e.value, np.ndarray) for e in expected):
        raise Untranslatable("a result that is no tensor")
    for i, e in enumerate(expected):
        theirs = twin.out_dtype(call, i, e.dtype)
        if theirs is not e.dtype:
            raise Untranslatable(f"{twin.key} gives {theirs}, {v.key} {e.dtype}")
    if plain and not _adds(v) and not _adds(twin):
        return
    for e, other in zip(expected, twin.evaluate(call)):
        if e.dtype is not other.dtype or not same(e.value, other.value):
            raise Untranslatable(f"{twin.key} does something else to the result")


def _adds(v: OpVersion) -> bool:
    """Does the entry do something to the meaning's result: another layout, an activation, a rounding of its own?"""
    return v.entry.spelling.out is not None or type(v.dialect).round is not Dialect.round


def _within_limits(target: Dialect, twin: OpVersion, inst: Instance) -> None:
    """Raise Untranslatable where the instance lies outside what the target declares of its attributes and tensors."""
    for attr in twin.schema.attrs.values():
        if attr.required and attr.name not in inst.attrs:
            raise Untranslatable(f"{twin.key} needs {attr.name}, which the meaning does not know")
        if attr.enum and inst.attrs.get(attr.name, attr.enum[0]) not in attr.enum:
            raise Untranslatable(f"{twin.key} has no {attr.name} {inst.attrs[attr.name]!r}")
    lo, hi = twin.entry.sampling.ranks or (0, 99)
    lo, hi = max(lo, target.min_rank), min(hi, target.rank_limit(twin))
    for slot, a in inst.args.items():
        for one in a if isinstance(a, list) else (a,):
            if one.quant:
                raise Untranslatable(f"{twin.key} reads {slot} as quantised")
            if one.values is not None:
                continue
            if not lo <= len(one.shape) <= hi:
                raise Untranslatable(f"{twin.key} takes ranks {lo} to {hi}, {slot} has {len(one.shape)}")
            if 0 in one.shape and not target.allow_empty:
                raise Untranslatable(f"{target.title} has no empty tensors")


def _is_const(v: OpVersion, inst: Instance, name: str) -> bool:
    codec = v.tensor_codecs.get(name)
    a: Any = inst.args.get(codec.slot) if isinstance(codec, Slotted) else None
    return isinstance(a, Arg) and a.const
