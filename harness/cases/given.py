"""An instance as the model of a defect looks at it: one that may ask the reference for others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from harness.cases.case import Case
from harness.cases.instance_view import InstanceView
from harness.core.dtypes import of
from harness.core.instance import SKIPPED, Arg
from harness.declare import Expected, registry


class Given(InstanceView):
    """What a defect model looks at.  It may ask the reference for other instances, in the words of the dialect."""

    def __init__(self, case: Case, run: int) -> None:
        super().__init__(case, run)
        self._others: list[Given] = []

    @cached_property
    def expected(self) -> list[Expected]:
        """What the reference expects, of those outputs too that are skipped."""
        row = super().expected
        return (self.reevaluate() or row) if SKIPPED in self.inst.attrs else row

    def reevaluate(
        self,
        attrs: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
        version: Any = None,
        outs: int | None = None,
    ) -> list[Expected] | None:
        """What the specification expects of the same instance with some things changed; None where that breaks a rule.

        The changes: other attributes (None: absent), other inputs (None: absent; an array: of its own type and shape),
        another version of the op, or more outputs.
        """
        other = self.changed(attrs, inputs, version, outs)
        return None if other is None else other.expected

    def changed(
        self,
        attrs: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
        version: Any = None,
        outs: int | None = None,
    ) -> Given | None:
        """The instance with the changes of ``reevaluate``, for what else a model asks of it; None where that breaks a
        rule."""
        attrs, inputs = attrs or {}, inputs or {}
        args: dict[str, Any] = {k: a for k, a in self.inst.args.items() if inputs.get(k, a) is not None}
        for k, v in inputs.items():
            if isinstance(v, np.ndarray):
                args[k] = _shaped(args.get(k), v)
            elif isinstance(v, list):
                args[k] = [_shaped(a, x) for a, x in zip(args[k], v)]
        kept = {k: v for k, v in {**self.inst.attrs, **attrs}.items() if v is not None and k != SKIPPED}
        v = self.case.version if version is None else registry.version_of(replace(self.inst, version=version))
        inst = replace(
            self.inst, version=v.version, attrs=kept, args=args, outs=outs or self.inst.outs, reruns=(), choices=None
        )
        other = Case(v, inst, self.case.index)
        other.set_data([{k: inputs.get(k, self.arrays.get(k)) for k in args}])
        if not other.expected:
            return None
        given = Given(other, 0)
        given._others = self._others
        self._others.append(given)
        return given

    def origin(self, e: Expected) -> tuple[Case, int] | None:
        """The changed instance that an expected output belongs to, and its number there."""
        return next(((g.case, i) for g in self._others for i, x in enumerate(g.expected) if x is e), None)


def _shaped(base: Any, v: Any) -> Any:
    """An operand of the type and shape of an array."""
    if not isinstance(v, np.ndarray):
        return base
    base = base if isinstance(base, Arg) else Arg(of(v), v.shape)
    return replace(base, dtype=of(v), shape=v.shape, values=None, dynamic=())
