"""What a planted fault acts on: the view of an instance, and the reference asked for other answers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from harness.cases.instance_view import InstanceView
from harness.core.dtypes import DType
from harness.core.limits import bounded
from harness.declare.codec import Call
from harness.declare.params import Param as Parameter

Outputs = list[Any]
ROOM = 1 << 28  # bytes that an answer may need


class FaultContext(InstanceView):
    """Below the codecs: tensors and parameters of the meaning, which a fault replaces one by one."""

    @cached_property
    def decoded(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Tensors and parameters; None for an op that evaluates itself (control flow)."""
        if self.case.version.meaning is None or self.case.version.entry.evaluation is not None:
            return None
        return self.case.version.decode(self.call)

    @property
    def params(self) -> dict[str, Parameter]:
        m = self.case.version.meaning
        return m.params if m is not None and self.decoded is not None else {}

    def reevaluate(self, tensors: dict[str, Any] | None = None, params: dict[str, Any] | None = None) -> Outputs | None:
        """The reference with other tensors or parameters; None where it refuses them."""
        if self.decoded is None:
            return None
        t, p = {**self.decoded[0], **(tensors or {})}, {**self.decoded[1], **(params or {})}
        clone = copy.copy(self.case.version)
        clone.decode = lambda call: (t, p)  # type: ignore[method-assign]
        return _values(lambda: clone.evaluate(self.call))

    def respelled(self, attrs: dict[str, Any]) -> Outputs | None:
        """The reference on the same arrays under other attributes."""
        c = self.call
        other = Call(c.version, attrs, c.inputs, c.opset, c.quant, c.outs, c.n_outs, c.run)
        return _values(lambda: c.version.evaluate(other))

    @cached_property
    def env(self) -> dict[str, Any]:
        """Dims bound by name."""
        m = self.case.version.meaning
        try:
            return m.bind(*self.decoded) if m is not None and self.decoded is not None else {}
        except Exception:
            return {}

    def map(self, fn: Callable[[np.ndarray, Any], np.ndarray | None], kinds: str = "fiubcs") -> Outputs | None:
        """Change every output array of some kinds; None when nothing changed.  Random outputs are left alone."""
        out: Outputs = []
        hit = False
        for e in self.expected:
            v = e.value
            fit = isinstance(v, np.ndarray) and v.size and e.dtype.kind in kinds and not e.error.random
            new = fn(v, e) if fit else None
            hit = hit or new is not None
            out.append(v if new is None else new)
        return out if hit else None


def _values(run: Callable[[], Sequence[Any]]) -> Outputs | None:
    try:
        with np.errstate(all="ignore"), bounded(ROOM):
            return [e.value for e in run()]
    except Exception:  # the other arguments are no valid ones, or ask for too much: a fault cannot show there
        return None


def differs(s: FaultContext, outputs: Outputs) -> bool:
    """Is it another answer at all?  Bit for bit, but NaN is NaN, and zeros are equal unless their sign is fixed.
    Random outputs always are another, so they do not count."""
    for e, a in zip(s.expected, outputs, strict=False):
        v = e.value
        if e.error.random:
            continue
        if not isinstance(v, np.ndarray) or not isinstance(a, np.ndarray):
            if isinstance(v, np.ndarray) != isinstance(a, np.ndarray):
                return True
            continue
        if a.shape != v.shape or a.dtype != v.dtype:
            return True
        d: DType = e.dtype
        if d.kind == "s" or not v.size:
            if d.kind == "s" and any(str(x) != str(y) for x, y in zip(v.ravel(), a.ravel(), strict=True)):
                return True
            continue
        if d.kind == "f":
            x, y = v.astype(np.float64), a.astype(np.float64)
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            if e.error.signed_zero:
                same &= (x != 0) | (np.signbit(x) == np.signbit(y))
            if not same.all():
                return True
        elif not np.array_equal(v, a, equal_nan=d.kind == "c"):
            return True
    return False
