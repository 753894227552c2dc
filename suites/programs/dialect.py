"""The base of dialects whose instances are whole programs: MIL passes, ONNX rewrites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.core.dtypes import of
from harness.core.errors import Unsupported
from harness.core.instance import Graph, Instance
from harness.declare import Attr, Call, Dialect, Entry, Evaluation, OpSchema, OpVersion, Sampling, Slot, Tolerance
from suites.programs.language import Language
from suites.programs.program import Make, either
from suites.programs.respell import RESPELLINGS, Words, respelt
from suites.programs.unfold import Unfolded

MOST = 4  # outputs of a program


class ProgramDialect(Dialect):
    """An instance is a program: the attribute ``program`` is its graph, ``pattern`` says what it is to show, its inputs
    stand in the slot ``inputs``.  Whatever a runtime makes of it, it is judged by what its nodes mean one by one.

    language: how its programs run.  words: what respelling them needs; None: they are not.  asks_nodes: may an answer
    be explained by what the nodes give one by one?  Each has to be an instance of its op as it stands, on the same
    backends, and nothing is promised of a program beside its outputs.
    """

    own = frozenset({"alone", "asks_nodes", "declare", "language", "programs", "promised", "results", "words"})
    asks_paths = True
    asks_nodes = False
    allow_empty = False
    const_chance = 0  # the program says what is constant
    package_size = 1  # an optimiser looks at the whole model
    cases = 256  # an op version stands for all programs of a kind

    def __init__(self, package: str, language: Language, words: Words | None = None) -> None:
        super().__init__(package)
        self.language, self.words = language, words

    def programs(self, name: str, makes: Sequence[Make], error: tuple[Tolerance, ...], source: str) -> Entry:
        """An entry: programs of one kind, each of the generators as often as the others; some of them are respelt."""
        make, words = either(*makes), self.words
        draw = make if words is None else lambda d: respelt(d, make(d), self.language, words)
        return self.op(name, Evaluation(self.results, error, source), Sampling(draw))

    def own_goals(self, version: OpVersion) -> tuple[str, ...]:
        """Each respelling that the dialect has words for."""
        words = self.words
        return () if words is None else tuple(f"respelt:{r.name}" for r in RESPELLINGS if r.name not in words.absent)

    def labels(self, inst: Instance) -> tuple[str, ...]:
        """How the program is respelt."""
        program = inst.attrs.get("program")
        done = program.meta.get("respelt", ()) if isinstance(program, Graph) else ()
        return tuple(dict.fromkeys(f"respelt:{r['name']}" for r in done))

    def promised(self, program: Graph) -> list[np.ndarray]:
        """What is expected of the runtime beside the outputs; it stands before them."""
        return []

    def results(self, call: Call) -> list[Any]:
        """What is promised, then the outputs of the program, floats unrounded: they are judged by the bound."""
        program: Graph = call.attrs["program"]
        scope = self.language.run_call(call)
        results = [*self.promised(program), *(np.array(scope[n]) for n in program.outputs)]
        call.outs = [{"dtype": of(r)} for r in results]
        return [r.astype(np.float64) if r.dtype.kind == "f" else r for r in results]

    def alone(self, instances: Sequence[Instance]) -> Instance:
        """The one instance of a model.  Raises Unsupported for several."""
        if len(instances) != 1:
            raise Unsupported(f"{self.name}: a program has a model of its own, got {len(instances)}")
        return instances[0]

    def unfold(self, inst: Instance, arrays: dict[str, Any]) -> Unfolded | None:
        if not self.asks_nodes:
            return None
        return Unfolded(self.language, inst, arrays, lambda inst, scope: iter(()), sums_errors=True)

    def unsayable_rules(self, version: OpVersion) -> tuple[str, ...]:
        """A program is not a signature: what makes one invalid is the business of the ops in it."""
        return ("required-", "unknown-attribute", "enum:", "type:", "tied-type:")


def program_schema(
    name: str, first: Any, last: Any, types: Mapping[str, tuple[str, ...]], extra: Mapping[str, Any] | None = None
) -> OpSchema:
    """The schema of one kind of programs, for opsets first..last.  types: the element types "T" of inputs and outputs.

    Versions are 1 throughout: what is tested has no version of its own, the runtime's release has."""
    inputs, outputs = (Slot(n, "T", False, True) for n in ("inputs", "outputs"))
    attrs = {"program": Attr("program", "graph", True), "pattern": Attr("pattern", "str", True)}
    return OpSchema(name, 1, first, last, "", False, (inputs,), (outputs,), attrs, dict(types), dict(extra or {}))
