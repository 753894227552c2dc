"""MIL graph passes: a program before and after a pass means the same.

An instance is a whole program; ``pattern`` says whether it holds what the pass looks for ("match") or only nearly so.
The first output tells whether the pass is to change anything, the others are those of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME
from harness.core.errors import Unsupported
from harness.core.instance import Graph, Instance
from harness.core.outcome import Model
from harness.spec import Dialect


class Passes(Dialect):
    """Versions are 1 throughout: a pass has no version of its own, the backend's release has."""

    name = "passes"
    title = "MIL graph passes"
    format = "mil-passes"
    opsets = ("ios15", "ios16", "ios17", "ios18")
    extension = ".milp"
    max_rank = 5
    allow_empty = False
    const_chance = 0
    package_size = 1  # passes look at the whole program
    # A program is not a signature: what makes one invalid is the business of the ops in it.
    unsayable_rules = ("required-", "unknown-attribute", "enum:", "type:", "tied-type:")

    def build(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
        from suites.passes.build import build

        if len(instances) != 1:
            raise Unsupported("a pass sees a program of its own")
        return build(instances[0], self.version_of(instances[0]).entry.tags)

    def notation(self, inst: Instance) -> str:
        from suites.mil.notation import program
        from suites.passes.program import HEADER

        meta = inst.attrs["program"].meta
        told = "".join(f"# {k}: {meta[k]}\n" for k in (*HEADER, "symbols") if k in meta)
        return f"# {inst.op}\n{told}" + program(inst.attrs["program"], inst.args.get("inputs", []), inst.opset)

    def parse(self, data: Any) -> Graph:
        from suites.mil import dialect as mil

        return mil.parse(data)

    def run_model(self, model: Any, inputs: dict[str, Any] | Sequence[Any]) -> list[Any]:
        """What the promise says about the pass, then the program's outputs, of the types that they were asked to be."""
        from suites.mil import dialect as mil
        from suites.mil import plain

        h = plain.loads(model)[0]
        outs = mil.run_model(model, inputs)
        wanted = h.get("output_types") or [None] * len(outs)
        return [np.array(h["fires"]), *(x.astype(BY_NAME[t].np) if t else x for x, t in zip(outs, wanted))]


# Passes without programs of their own yet, and why.
ABSENT: dict[str, str] = {}

dialect = Passes("suites.passes")
op = dialect.op
__all__ = ["ABSENT", "dialect", "op"]
