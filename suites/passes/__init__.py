"""MIL graph passes: a program before and after a pass means the same.

An instance is a whole program; ``pattern`` says whether it holds what the pass looks for ("match") or only nearly so.  The
first output tells whether the pass is to change anything, the others are those of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

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
        from suites.mil import dialect as mil
        from suites.mil.builder import Writer

        if len(instances) != 1:
            raise Unsupported("a pass sees a program of its own")
        inst = instances[0]
        w = Writer(lambda op, at: mil.effective(op, at, "coreml" if op.startswith("coreml") else "").schema, str(inst.opset))
        ins = []
        for i, a in enumerate(inst.args.get("inputs", [])):
            kind = "state" if a.kind == "state" else "tensor"
            w.prog.inputs.append([f"p{i}", a.dtype.name, list(a.shape), kind])
            ins.append((f"p{i}", "inputs", i))
        block = w.block(inst.attrs["program"], {})
        w.prog.ops = block["ops"]
        w.prog.outputs = [r["v"] for r in block["outputs"]]
        entry = self.version_of(inst).entry
        pipeline = inst.op.removesuffix("_pipeline")
        w.prog.extra = {
            "passes": pipeline if pipeline != inst.op else [f"common::{t}" for t in (*entry.tags, inst.op)],
            "fires": bool(inst.attrs["program"].meta["fires"]),
        }
        return Model(self.format, w.prog.dumps(), [ins], [["fired", *w.prog.outputs]])

    def notation(self, inst: Instance) -> str:
        from suites.mil.notation import program

        return f"# {inst.op}\n" + program(inst.attrs["program"], inst.args.get("inputs", []), inst.opset)

    def parse(self, data: Any) -> Graph:
        from suites.mil import dialect as mil

        return mil.parse(data)

    def run_model(self, model: Any, inputs: dict[str, Any] | Sequence[Any]) -> list[Any]:
        """What the promise says about the pass, then the program's outputs."""
        from suites.mil import dialect as mil
        from suites.mil import plain

        return [np.array(plain.loads(model)[0]["fires"]), *mil.run_model(model, inputs)]

    def backends(self) -> Iterable[str]:
        return ("coremltools-passes",)


dialect = Passes("suites.passes")
op = dialect.op
__all__ = ["dialect", "op"]
