"""How far the outputs of a random graph may be off: all errors of its nodes at once, carried to the outputs."""

from __future__ import annotations

from typing import Any

from harness.declare import Context
from harness.tolerance import Propagated, propagated
from suites.programs import Language


class GraphLanguage(Language):
    """How random graphs run.  Their inputs are called p0, p1, ..."""

    def propagated(self, k: int) -> Propagated:
        """The tolerance of output ``k``."""

        def bound(ctx: Context) -> Any:
            call = ctx.call
            find = lambda: self.carried(call.attrs["program"], call.inputs["inputs"], call.opset)  # noqa: E731
            return ctx.once("carried", find)[k]

        return propagated(bound, "the errors of all nodes at once, carried to the outputs")
