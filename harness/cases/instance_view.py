"""An instance with the data of one run, and what the reference says of it: the one view that others read."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from harness.cases.case import Case
from harness.cases.reruns import at_run
from harness.core.instance import Instance
from harness.declare import Expected
from harness.declare.codec import Call


class InstanceView:
    """One run of a case, read-only.

    Conditions of known differences (``Facts``), defect models (``Given``) and planted faults (``FaultContext``) look at
    this.  ``view["X"]`` is the array in a slot, a list for a variadic one, None where nothing stands.
    """

    def __init__(self, case: Case, run: int = 0) -> None:
        self.case, self.run = case, run

    @cached_property
    def inst(self) -> Instance:
        """The instance of that run, with its extents."""
        inst = self.case.inst
        return at_run(inst, self.run) if self.run and inst.reruns else inst

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """{slot: array}; empty where the data could not be made."""
        draws = self.case.draws
        return draws[min(self.run, len(draws) - 1)] if draws else {}

    @cached_property
    def expected(self) -> list[Expected]:
        """What the reference expects; empty for an invalid instance, or where the reference failed."""
        rows = self.case.expected
        return rows[min(self.run, len(rows) - 1)] if rows else []

    @cached_property
    def call(self) -> Call:
        """The dialect's call of the reference."""
        return self.case.version.dialect.call_of(self.inst, self.arrays, self.case.version)

    def __getitem__(self, slot: str) -> Any:
        return self.arrays.get(slot)

    def attr(self, name: str, default: Any = None) -> Any:
        return self.inst.attrs.get(name, default)
