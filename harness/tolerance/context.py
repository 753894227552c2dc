"""What a tolerance may look at: one evaluation of a meaning, seen from one output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from harness.core.dtypes import DType
from harness.tolerance.numeric import Array, absolute, default_acc, ulp, unit, widened

X = TypeVar("X")
Bound = Callable[["Context"], Any]


class Context:
    """What a bound may look at.  It is made when an instance is judged, and computes whatever is costly when first
    asked.

    inputs: semantic name -> f64 array, complex128 for complex numbers; a list for a variadic slot, None when absent.
    params: keyword parameters.
    wide: the result of this output, f64 or complex128; its shape is the bound's.
    out: the output's DType.
    dims: names bound by the signature -> int or tuple, for the expressions of ``accumulates``.
    rerun: inputs -> wide result of this output, by the same meaning.
    finish: the same, with what clamps the result in the end (a fused activation), which bounds leave out.
    acc: the accumulation type of the implementation that is judged.
    call: the dialect's call, for entries that evaluate by themselves.
    own: the inputs in their own types, if the dialect lays the result out as the meaning does.
    within: if the dialect lays it out in its own way, the context of the meaning's result, and how a bound on that
        becomes one on the output.
    before: the context of the result that a last function is applied to (``Through``).
    shared: what ``once`` keeps, one dict for the contexts of all outputs of an evaluation.
    """

    def __init__(
        self,
        inputs: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
        params: Mapping[str, Any],
        wide: Array,
        out: DType,
        *,
        dims: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
        rerun: Callable[[dict[str, Any]], Array] | None = None,
        count: Callable[[str], float] | None = None,
        acc: DType | None = None,
        within: tuple[Callable[[], Context], Callable[[Array], Array]] | None = None,
        shared: dict[Any, Any] | None = None,
    ) -> None:
        self._inputs, self.params, self.wide, self.out = inputs, params, wide, out
        self._dims, self._rerun, self._count = dims or {}, rerun, count
        self.acc = acc or default_acc(out)
        self.call: Any = None
        self.own: Mapping[str, Any] = {}
        self.within = within
        self.shared: dict[Any, Any] = {} if shared is None else shared
        self.finish: Callable[[dict[str, Any]], Array] | None = None
        self.before: Callable[[], Context] | None = None

    def once(self, key: Any, make: Callable[[], X]) -> X:
        """``make()``, once for all outputs: what their bounds have in common, for this accumulation type."""
        key = key, self.acc
        if key not in self.shared:
            self.shared[key] = make()
        return self.shared[key]

    @cached_property
    def inputs(self) -> Mapping[str, Any]:
        return self._inputs() if callable(self._inputs) else self._inputs

    @cached_property
    def dims(self) -> Mapping[str, Any]:
        return self._dims() if callable(self._dims) else self._dims

    @property
    def u(self) -> float:
        return unit(self.out)

    @property
    def acc_u(self) -> float:
        return unit(self.acc)

    @property
    def ulp(self) -> Array:
        """ulp of the wide result in the output type."""
        return ulp(self.wide, self.out)

    def reevaluate(self, **changed: Any) -> Array:
        """The semantics once more, wide, with some inputs replaced."""
        if self._rerun is None:
            raise TypeError("this error context cannot evaluate the semantics again")
        return widened(self._rerun({**self.inputs, **changed}))

    def finished(self, **changed: Any) -> Array:
        """As ``again``, and clamped as the output is."""
        if self.finish is None:
            return self.reevaluate(**changed)
        return widened(self.finish({**self.inputs, **changed}))

    @cached_property
    def _scale(self) -> Array:
        return np.abs(self.reevaluate(**{k: absolute(v) for k, v in self.inputs.items()}))

    def scale(self) -> Array:
        """S: the same semantics on |inputs|."""
        return self._scale

    def sensitivity(self, rel: float, draws: int = 4, only: Sequence[str] = ()) -> Array:
        """Largest change of the result when every float input moves by up to ``rel`` relatively: first-order
        propagation by evaluation, over ``draws`` random sign patterns (the same ones every time)."""
        rng = np.random.Generator(np.random.PCG64(20240601))
        worst = np.zeros_like(self.wide, np.float64)
        for _ in range(draws):
            moved = {k: _moved(v, rel, rng) for k, v in self.inputs.items() if not only or k in only}
            with np.errstate(all="ignore"):
                d = np.abs(self.reevaluate(**moved) - self.wide)
            worst = np.maximum(worst, np.where(np.isfinite(d), d, 0.0))
        return worst

    def count(self, expr: str | Bound | float) -> float:
        """Value of a count: a number, a function of this context, or an expression over dims and parameters."""
        if callable(expr):
            return expr(self)
        if isinstance(expr, (int, float)):
            return float(expr)
        if self._count is not None:
            return self._count(expr)
        names = {**self.dims, **self.params, "prod": _prod, "size": _prod, "max": max, "min": min, "len": len}
        return float(eval(expr, {"__builtins__": {}}, names))  # our own source text


def _prod(v: Any) -> int:
    return int(np.prod(v, dtype=np.int64)) if np.ndim(v) else int(v)


def _moved(v: Any, rel: float, rng: np.random.Generator) -> Any:
    if isinstance(v, (list, tuple)):
        return [_moved(x, rel, rng) for x in v]
    if not (isinstance(v, np.ndarray) and v.dtype.kind == "f"):
        return v
    return v * (1.0 + rel * rng.choice((-1.0, 1.0), size=v.shape))
