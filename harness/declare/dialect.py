"""A dialect: its schema, its entries, and the hooks that the harness calls.

``suites/<dialect>/__init__.py`` makes one object of a subclass, named ``dialect``; the harness finds it by entry point.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, DType
from harness.core.errors import UsageError
from harness.core.form_check import check_hooks
from harness.core.instance import Arg, Graph, Instance
from harness.core.outcome import Model
from harness.declare.codec import Call
from harness.declare.entry import Checks, Entry, Evaluation, Group, Sampling, Spelling, joined
from harness.declare.expected import Expected, Results
from harness.declare.interpreter import Unfolded, Watch, fed, run_graph
from harness.declare.op_version import OpVersion
from harness.declare.schema import OpSchema, Slot, load
from harness.declare.semantics import Semantics
from harness.generate.draw import Draw, T
from native_ref import convert


class Dialect:
    """An operator set: its schema, its entries, and the hooks that its suite overrides.

    Each hook is a field or a method of this class, with its default.  A subclass says in ``own`` which public members
    it adds.  Another member that is no hook, or a field of another type, is a TypeError when the dialect is made.
    """

    name: str = ""
    """As in test ids and on the command line."""
    title: str = ""
    """As in reports."""
    format: str = ""
    """Of its models: a backend declares which formats it loads."""
    extension: str = ".bin"
    """Of its model files."""
    opsets: tuple[Any, ...] = ()
    """In order, as the user writes them."""
    min_rank: int = 0
    """Lowest rank of its tensors."""
    max_rank: int = 6
    """Highest rank of its tensors; ``rank_limit`` may say another one of an op."""
    states_ranks: bool = False
    """Does the format state ``rank_limit``?"""
    limits_results: bool = False
    """Does ``rank_limit`` hold for results as well?"""
    allow_empty: bool = True
    """May its tensors have axes of extent 0?"""
    const_chance: int = 5
    """One input in so many is given as a constant (0: never); ``draws_const`` may say otherwise of an input."""
    rerun_every: int = 0
    """One instance in so many is run again at other extents (0: never); ``reruns`` may say otherwise of an instance."""
    package_size: int = 64
    """Instances that one model may hold side by side."""
    cases: int = 32
    """Instances of each op version in a run that asks for no other number."""
    declares_extents: bool = False
    """Must a model say which axes of its inputs may change?"""
    declares_results: bool = False
    """Does a model say type, rank or shape of its outputs?  Then ``build_declared`` is called in place of ``build``."""
    declares_outputs: bool = False
    """Does the format state the types of outputs ("@outputs") that no operand binds?"""
    packs_weights: bool = False
    """Do constant operands stand in the op itself, quantised ones in another type than that of their slot?"""
    quantised_domains: tuple[str, ...] = ()
    """Domains of the schema whose operands of the first type carry a scale and a zero point."""
    shares_tensors: bool = False
    """Does the builder give two inputs one tensor where the instance says so (``Instance.shared``)?"""
    shares_elements: bool = False
    """Does it do so for two tensors of a variadic input?"""
    draws_edges: bool = False
    """Has one instance in a few a place moved to an edge, or special values in one operand (``op_version.nearby``)?"""
    edge_extents: tuple[int, ...] = (0, 0, 1)
    """Extents to which an axis is moved there."""
    special_ends: bool = False
    """Do special values there also stand at the first and the last element of an operand, beside plain ones?"""
    tells_omitted: bool = True
    """Can a model tell an attribute that is left out from its default spelled out?"""
    has_booleans: bool = True
    """Has it boolean attributes, or integers for them?"""
    asks_paths: bool = False
    """Is each instance asked what computed it?"""
    own: frozenset[str] = frozenset()
    """Public members that a subclass adds, for its own suite."""

    def __init__(self, package: str) -> None:
        """package: import path of the suite; its sub-package ``ops`` holds the entries."""
        check_hooks(self, Dialect, self.own)
        self.package = package
        self.entries: list[Entry] = []
        self._loaded = False

    # -- declaring

    def op(
        self,
        name: str,
        meaning: Semantics | Evaluation,
        *groups: Group,
        since: Any = None,
        until: Any = None,
        domain: str = "",
        **names: Any,
    ) -> Entry:
        """Declare one line of the dialect.

        name: of the op in the schema.  meaning: what it computes.  groups: ``Spelling``, ``Sampling``, ``Checks`` in
        any order; several of one kind are joined.  since, until: the first and last op version that the line serves.
        names: semantic name -> the dialect's name or a codec, as those of ``Spelling``.  Raises UsageError for a name
        that the meaning does not have, or what two groups say."""
        own = meaning if isinstance(meaning, Evaluation) else None
        if names:
            groups = (*groups, Spelling(**names))
        e = Entry(
            name,
            None if isinstance(meaning, Evaluation) else meaning,
            own,
            since,
            until,
            domain,
            self._declaring(),
            joined(Spelling, groups, name),
            joined(Sampling, groups, name),
            joined(Checks, groups, name),
        )
        e.validate()
        self.declared(e)
        self.entries.append(e)
        return e

    def _declaring(self) -> str:
        """The module of ``<package>.ops`` that asks, though another one of them may just be importing it."""
        inside = f"{self.package}.ops."
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - CPython has no public name for it
        while frame is not None:
            module = frame.f_globals.get("__name__", "")
            if module.startswith(inside):
                return module[len(inside) :].partition(".")[0]
            frame = frame.f_back
        return ""

    def load(self) -> None:
        """Import every module of ``<package>.ops``; a module's name is the family of its entries."""
        if self._loaded:
            return
        self._loaded = True
        package = importlib.import_module(f"{self.package}.ops")
        for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda m: m.name):
            if info.name.startswith(("_", "test_")):
                continue
            importlib.import_module(f"{self.package}.ops.{info.name}")

    # -- what there is

    @cached_property
    def schemas(self) -> list[OpSchema]:
        module = importlib.import_module(self.package)
        assert module.__file__ is not None
        return load(Path(module.__file__).parent / "schema.json")

    @cached_property
    def versions(self) -> dict[str, OpVersion]:
        """``dialect/op/version`` -> OpVersion, for every schema version that an entry serves.  Raises UsageError for an
        entry that fits no schema, or two entries that serve the same version."""
        self.load()
        out: dict[str, OpVersion] = {}
        by_name: dict[tuple[str, str], list[OpSchema]] = {}
        for s in self.schemas:
            by_name.setdefault((s.domain, s.op), []).append(s)
        for e in self.entries:
            served = [s for s in by_name.get((e.domain, e.op), ()) if self.serves(e, s)]
            for s in served:
                v = OpVersion(self, e, s)
                if v.key in out:
                    raise UsageError(f"{v.key}: two entries serve this version")
                out[v.key] = v
            if not served:
                raise UsageError(f"{self.name}: entry {e.op} (since {e.since}, until {e.until}) matches no schema")
        return out

    def serves(self, e: Entry, s: OpSchema) -> bool:
        return (e.since is None or self.order(s.version) >= self.order(e.since)) and (
            e.until is None or self.order(s.version) <= self.order(e.until)
        )

    def between(self, first: Any, last: Any) -> tuple[Any, ...]:
        """The opsets from first to last."""
        i, j = self.opsets.index(first), self.opsets.index(last)
        return self.opsets[i : j + 1]

    def version_of(self, inst: Instance) -> OpVersion:
        """Raises UsageError if there is none."""
        try:
            return self.versions[inst.key]
        except KeyError:
            raise UsageError(f"no op version {inst.key}: see `opconform list ops --dialect {self.name}`") from None

    @cached_property
    def _effective(self) -> dict[tuple[str, str, Any], OpVersion]:
        return {(v.schema.domain, v.op, o): v for v in self.versions.values() for o in v.opsets}

    def effective(self, op: str, opset: Any, domain: str = "") -> OpVersion:
        """The version of ``op`` in force at ``opset``; raises UsageError."""
        try:
            return self._effective[domain, op, opset]
        except KeyError:
            raise UsageError(f"{self.name}: no {domain + '.' if domain else ''}{op} at opset {opset}") from None

    # -- hooks: declaring and drawing

    def declared(self, entry: Entry) -> None:
        """Last touch on an entry, which it may change: what all lines of the dialect say."""

    def order(self, version: Any) -> Any:
        """A sort key of op versions, for the ``since`` and ``until`` of entries."""
        return version

    def marker(self, opset: Any) -> str:
        """The pytest marker of the dialect at an opset, such as opset_onnx13; opset_tflite where there is one opset."""
        return f"opset_{self.name}" if len(self.opsets) == 1 else f"opset_{self.name}{opset}"

    def finish(self, version: OpVersion, d: Draw, inst: Instance) -> Instance:
        """Last touch on a drawn instance (quantisation, dynamic axes)."""
        return inst

    def own_goals(self, version: OpVersion) -> tuple[str, ...]:
        """Reach goals of the dialect's own."""
        return ()

    def labels(self, inst: Instance) -> tuple[str, ...]:
        """Of an instance, the goals among these that it meets; what computed it is counted for each."""
        return ()

    def reruns(self, inst: Instance, index: int) -> bool:
        """Is this instance, number ``index`` of its op version, to be run at other extents too?"""
        return self.rerun_every > 0 and index % self.rerun_every == self.rerun_every - 1

    def type_weight(self, name: str, dtype: DType) -> int | None:
        """How often a type is drawn for a type name of the schema, relative to 1; None: as in all dialects."""
        return None

    def rank_limit(self, version: OpVersion) -> int:
        """Highest rank that this op version takes."""
        return self.max_rank

    def counts_back(self, version: OpVersion) -> bool:
        """May an attribute name an axis by a negative number?"""
        return True

    def keeps(self, version: OpVersion) -> tuple[str, ...]:
        """What is not moved to an edge: the text states a domain that no annotation tells.  Attributes and operands,
        "shapes", "outputs", "operands" (none is left out), "data:" or "rank:" and an operand."""
        return ()

    def draws_const(self, version: OpVersion, slot: Slot, t: T, d: Draw) -> bool:
        """Is this input given as a constant?"""
        return self.const_chance > 0 and d.chance(self.const_chance)

    def rules_of(self, version: OpVersion) -> dict[str, Callable[[Draw], Instance | None]]:
        """Rules of the format itself that an instance of this version can break: rule -> generator of one that does."""
        return {}

    def unsayable_rules(self, version: OpVersion) -> tuple[str, ...]:
        """Prefixes of rules that no model of the format can break, or that no text states of this op version."""
        return ()

    def encodings(self, dtype: DType, opset: Any) -> tuple[str, ...]:
        """Further ways in which a model at ``opset`` can hold a constant of ``dtype``, besides the usual one."""
        return ()

    def misquantised(self, a: Arg) -> str | None:
        """What is wrong with the quantisation that an argument carries: what was expected and what came."""
        return f"expected none in {self.name}, got {a.quant!r}"

    # -- hooks: evaluating

    def round(self, x: np.ndarray, dtype: DType) -> np.ndarray:
        """The one rounding of a wide result, to nearest even."""
        return convert(x, dtype)

    def call_of(self, inst: Instance, arrays: dict[str, Any], version: OpVersion | None = None) -> Call:
        """The call that an instance with these arrays is."""
        quant = None
        for k, a in inst.args.items():
            if type(a) is Arg and a.quant:
                quant = quant or {}
                quant[k] = a.quant
        outs = inst.attrs.get("@outputs")
        if outs is not None:
            outs = [{**o, "dtype": BY_NAME[o["dtype"]] if isinstance(o["dtype"], str) else o["dtype"]} for o in outs]
        first = (x[0] if type(x) is list and x else x for x in inst.attrs.values())
        run = self.runner(inst.opset, arrays) if any(type(x) is Graph for x in first) else None
        version = version or self.version_of(inst)
        return Call(version, inst.attrs, arrays, inst.opset, quant, outs, inst.outs, run, inst.args)

    def runner(self, opset: Any, outer: dict[str, Any]) -> Callable[..., list[Any]]:
        """``run(graph, inputs)`` for blocks of control-flow ops; the block sees ``outer`` by name."""

        def run(graph: Graph, inputs: dict[str, Any] | Sequence[Any]) -> list[Any]:
            return run_graph(self, graph, inputs, opset, outer)

        return run

    def evaluate(self, inst: Instance, arrays: dict[str, Any]) -> list[Expected]:
        """The reference's outputs of a valid instance."""
        return self.version_of(inst).evaluate(self.call_of(inst, arrays))

    def unfold(self, inst: Instance, arrays: dict[str, Any]) -> Unfolded | None:
        """The nodes of an instance that is a program of another dialect's ops, where they may explain an answer."""
        return None

    # -- hooks: models.  A dialect has to give ``build`` and ``parse``.

    def build_declared(
        self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]], results: Sequence[Results]
    ) -> Model:
        """``build`` of a format with ``declares_results``.  results[i]: of instance i, none where it breaks a rule."""
        return self.build(instances, arrays)

    def build(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
        """One model holding the instances side by side, all at the opset of the first.  arrays[i]: slot -> array of
        instance i (constants are written into the model).  Raises Unsupported for what the format cannot say."""
        raise NotImplementedError

    def notation(self, inst: Instance) -> str:
        """The instance in the dialect's own text, a few lines."""
        return inst.dumps()

    def parse(self, data: Any) -> Graph:
        """A model's bytes or path -> Graph; raises FormatError."""
        raise NotImplementedError

    def run_model(self, model: Any, inputs: dict[str, Any] | Sequence[Any], watch: Watch | None = None) -> list[Any]:
        """Run a whole model with the reference; outputs in the model's order.  watch: see ``run_graph``."""
        g = self.parse(model)
        return run_graph(self, g, fed(g, inputs), g.meta.get("opset"), watch=watch)
