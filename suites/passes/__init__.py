"""MIL graph passes: a program before and after a pass means the same.

An instance is a whole program; ``pattern`` says whether it holds what the pass looks for ("match") or only nearly so.
The first output tells whether the pass does what it promises, the others are those of the program.  Of a program that
was respelt nothing is promised; whether the pass changed it is counted as the path that it took.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME
from harness.core.instance import Graph, Instance
from harness.core.outcome import Model
from harness.declare import exact
from harness.declare.interpreter import Watch
from suites.mil import dialect as mil
from suites.mil import notation, plain
from suites.passes.build import build
from suites.passes.program import HEADER, LANGUAGE
from suites.passes.words import WORDS
from suites.programs import MOST, Make, ProgramDialect


@dataclass(frozen=True)
class _Pass:
    """before: passes that run first.  watch: what the pass promises to change."""

    before: tuple[str, ...]
    watch: str


class Passes(ProgramDialect):
    """Versions are 1 throughout: a pass has no version of its own, the backend's release has."""

    name = "passes"
    title = "MIL graph passes"
    format = "mil-passes"
    opsets = ("ios13", "ios15", "ios16", "ios17", "ios18")  # iOS 13 is that of a program that names none
    extension = ".milp"
    max_rank = 5

    def __init__(self, package: str) -> None:
        super().__init__(package, LANGUAGE, WORDS)
        self._passes: dict[str, _Pass] = {}

    def marker(self, opset: Any) -> str:
        return "passes"

    def declare(
        self,
        name: str,
        *makes: Make,
        narrow: bool = False,
        merges: bool = False,
        before: tuple[str, ...] = (),
        watch: str = "ops",
    ) -> None:
        """An entry for a pass: its programs, drawn evenly.  narrow: it rounds every value to f16.  merges: it scales
        constants, which are rounded then.  before: passes that run first.  watch: what the pass promises to change, a
        key of ``WATCHED`` in ``harness/backends/coremltools_passes.py``."""
        self._passes[name] = _Pass(before, watch)
        error = (exact(), *(self.language.tolerance(k, narrow, merges) for k in range(MOST)))
        self.programs(name, makes, error, f"MIL graph pass {name}: coremltools 9.0, published pass pages")

    def promised(self, program: Graph) -> list[np.ndarray]:
        """Has the pass something to do?  False where nothing is promised, as of a program that was respelt."""
        return [np.array(bool(program.meta["fires"]))]

    def build(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
        inst = self.alone(instances)
        how = self._passes[inst.op]
        return build(inst, how.before, how.watch, self.version_of(inst).schema.extra["namespace"])

    def notation(self, inst: Instance) -> str:
        meta = inst.attrs["program"].meta
        told = "".join(f"# {k}: {meta[k]}\n" for k in (*HEADER, "symbols") if k in meta)
        return f"# {inst.op}\n{told}" + notation.program(inst.attrs["program"], inst.tensors("inputs"), inst.opset)

    def parse(self, data: Any) -> Graph:
        return mil.parse(data)

    def run_model(self, model: Any, inputs: dict[str, Any] | Sequence[Any], watch: Watch | None = None) -> list[Any]:
        """What the promise says about the pass, then the program's outputs, of the types that they were asked to be."""
        h = plain.loads(model)[0]
        outs = mil.run_model(model, inputs, watch)
        wanted = h.get("output_types") or [None] * len(outs)
        return [np.array(bool(h["fires"])), *(x.astype(BY_NAME[t].np) if t else x for x, t in zip(outs, wanted))]


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
