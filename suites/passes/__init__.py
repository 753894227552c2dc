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
from harness.declare import Dialect, Evaluation, OpVersion, Sampling
from suites.mil import dialect as mil
from suites.mil import notation, plain
from suites.passes.build import build
from suites.passes.program import HEADER, Make, either, error_classes, run


class Passes(Dialect):
    """Versions are 1 throughout: a pass has no version of its own, the backend's release has."""

    name = "passes"
    title = "MIL graph passes"
    format = "mil-passes"
    opsets = ("ios13", "ios15", "ios16", "ios17", "ios18")  # iOS 13 is that of a program that names none
    extension = ".milp"
    max_rank = 5
    allow_empty = False
    const_chance = 0
    package_size = 1  # passes look at the whole program
    own = frozenset({"declare"})

    def unsayable_rules(self, version: OpVersion) -> tuple[str, ...]:
        """A program is not a signature: what makes one invalid is the business of the ops in it."""
        return ("required-", "unknown-attribute", "enum:", "type:", "tied-type:")

    def __init__(self, package: str) -> None:
        super().__init__(package)
        self.watched: dict[str, str] = {}  # what each pass promises to change

    def marker(self, opset: Any) -> str:
        return "passes"

    def declare(
        self, name: str, *makes: Make, narrow: bool = False, before: tuple[str, ...] = (), watch: str = "ops"
    ) -> None:
        """An entry for a pass: its programs, drawn evenly.  before: passes that run first.  watch: what the pass
        promises to change, a key of ``WATCHED`` in ``harness/backends/coremltools_passes.py``."""
        self.watched[name] = watch
        self.op(
            name,
            Evaluation(run, error_classes(narrow), f"MIL graph pass {name}: coremltools 9.0, published pass pages"),
            Sampling(either(*makes), tags=before),
        )

    def build(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
        if len(instances) != 1:
            raise Unsupported("a pass sees a program of its own")
        inst = instances[0]
        v = self.version_of(inst)
        return build(inst, v.entry.sampling.tags, self.watched[inst.op], v.schema.extra["namespace"])

    def notation(self, inst: Instance) -> str:
        meta = inst.attrs["program"].meta
        told = "".join(f"# {k}: {meta[k]}\n" for k in (*HEADER, "symbols") if k in meta)
        return f"# {inst.op}\n{told}" + notation.program(inst.attrs["program"], inst.args.get("inputs", []), inst.opset)

    def parse(self, data: Any) -> Graph:
        return mil.parse(data)

    def run_model(self, model: Any, inputs: dict[str, Any] | Sequence[Any]) -> list[Any]:
        """What the promise says about the pass, then the program's outputs, of the types that they were asked to be."""
        h = plain.loads(model)[0]
        outs = mil.run_model(model, inputs)
        wanted = h.get("output_types") or [None] * len(outs)
        return [np.array(h["fires"]), *(x.astype(BY_NAME[t].np) if t else x for x, t in zip(outs, wanted))]


# Passes without programs of their own yet, and why.
ABSENT: dict[str, str] = {
    "adjust_io_to_supported_types": "changes the types of a function's inputs and outputs, by which the answer is read",
    "alert_return_type_cast": "changes nothing: it writes a warning",
    "commingle_loop_vars": "it hands loop variables on under two names, which only the NeuralNetwork lowering reads",
    "handle_return_inputs_as_outputs": "our builder puts an identity between an input and an output, as it would",
    "handle_return_unused_inputs": "our builder puts an identity between an input and an output, as it would",
    "insert_image_preprocessing_ops": "asks for scales and biases of images, which a program does not hold",
}

dialect = Passes("suites.passes")
declare = dialect.declare
__all__ = ["ABSENT", "declare", "dialect"]
