"""How far a correct implementation may be from the exact result: one tolerance for each output of a meaning.

A tolerance states the rule; the numbers come from the instance when it is judged.

    u        unit roundoff of the output type: 2**-(frac+1), half an ulp, relative
    acc_u    unit roundoff of the type in which the implementation accumulates: f32 for f16, bf16 and f8 outputs, unless
             the backend declares another
    S        the same meaning, run on absolute inputs
    a, h     actual result, expected result

    exact() copied()             comparison, integer arithmetic, min / max; data movement, where zeros keep their sign
    rounded(k)                   |a - h| <= k * ulp(h)
    accumulates("c*prod(k)")     |a - h| <= gamma(K, acc_u) * S + ulp(h): sums and dot products in any order
    bounded(fn) / composed(fn)   |a - h| <= fn(ctx): one function of the inputs / a chain of roundings
    quantised(steps, real=fn)    the integers to which the real result, moved by its freedom, is rounded
    any_order(axis)              slices along an axis in any order, the same order for all outputs
    accepted(fn)                 fn(ctx, actual) -> per-element yes: under-specified choices such as ties of an arg
    statistical(dist, ...)       random ops: distribution tests, alone and pooled over a run

Source of the rules: TOSA numeric accuracy (dot product rule), Higham "Accuracy and Stability" ch. 3 (gamma), and the
peers' tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from harness.tolerance.context import Context
from harness.tolerance.numeric import Array

# what a first look takes for the reference: the rounded result; the wide one, within ulps; the same, if it is not dull
VALUE, WITHIN, VARIED = 1, 2, 3


@dataclass(frozen=True, eq=False)
class Tolerance:
    """The rule of one output.  A subclass for each rule; the judge knows none of them by name.

    rule: as text, without the name.
    signed_zero: the operator's definition fixes the sign of a zero result, so -0 and +0 differ.

    A subclass states:

    name: what reports and listings call the rule.
    exact: the answer is compared with the rounded result, not with the wide one.
    sums: a sum in any order.  Its partial sums may overflow in one order and not in another.
    moves_integers: integers may differ, too.
    binds_infinities: an infinite value has to come whatever its bound.
    pointwise: each element has an expected value.
    random: no element has.
    """

    rule: str
    signed_zero: bool = False

    name: ClassVar[str]
    exact: ClassVar[bool] = False
    sums: ClassVar[bool] = False
    moves_integers: ClassVar[bool] = False
    binds_infinities: ClassVar[bool] = True
    pointwise: ClassVar[bool] = True
    random: ClassVar[bool] = False
    first_ulps: ClassVar[float] = 0.5  # what every bound of the class allows, for a first comparison

    @property
    def label(self) -> str:
        """The name, with its number where the class has one."""
        return self.name

    @property
    def formula(self) -> str:
        """Name and rule, as reports and listings print them."""
        return f"{self.label}: {self.rule}"

    @property
    def fixed_ulps(self) -> float | None:
        """The bound in ulps where it is the same for every instance; None where it depends on the instance."""
        return None

    @property
    def fixed_steps(self) -> float:
        """The integer steps that are allowed whatever the instance."""
        return 0.0

    @cached_property
    def brief(self) -> tuple[int, float, bool] | None:
        """What a first look at a real output compares it with (``native_ref.brief``): which tensor, ulps, zero signs;
        None where a single look cannot settle it."""
        return VARIED, self.first_ulps, self.signed_zero

    def signed(self) -> Tolerance:
        """The same class for an op that fixes the sign of zero."""
        return replace(self, signed_zero=True)

    def bound(self, ctx: Context) -> Any:
        """Absolute bound, scalar or array of the wide result's shape; 0 for types that are judged exactly."""
        return self._bound(ctx) if ctx.out.kind in "fc" else 0.0

    def _bound(self, ctx: Context) -> Any:
        return 0.0

    def screen(self, ctx: Context) -> Any:
        """A bound that is never above ``bound`` and needs no second evaluation; elements within it pass at once."""
        return self.bound(ctx)

    def toward(self, ctx: Context, actual: Array) -> Any:
        """``bound`` on the side of the reference where ``actual`` lies."""
        return self.bound(ctx)

    def spans(self, ctx: Context) -> Sequence[tuple[Array, Array]]:
        """Lowest and highest integers that pass, for each reading; empty where no integer but the expected one does."""
        return ()

    def roundings(self, ctx: Context) -> float:
        """How many partial results a backend that flushes subnormals may lose."""
        return 4.0

    def numbers(self, ctx: Context) -> str:
        """The formula with the instance's numbers, for the report."""
        return self.formula
