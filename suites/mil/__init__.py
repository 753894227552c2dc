"""Core ML's Model Intermediate Language, opsets iOS 15 to iOS 18."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, I32, int_range
from harness.core.errors import RuleError, UsageError, reading
from harness.core.instance import Arg, Graph, Instance
from harness.core.outcome import Model
from harness.declare import Dialect, Draw, Entry, OpVersion, Slot, T
from harness.declare.codec import Call
from harness.declare.interpreter import Watch, fed, run_graph
from harness.declare.op_version.nearby import takes
from harness.declare.schema import OpSchema
from suites.mil import builder, edges, far, notation, parse, running

OLDER = ("ios13", "ios14")
SINCE_IOS15 = ("affine", "resample")
# extents of a result that is never without elements: "shape[k] > 0 for k = 0,..., K-1"
_LENGTHS = dict.fromkeys(("random_uniform", "random_normal", "random_bernoulli"), ("shape",))
# parameters that count the results
_COUNTS = {"split": ("num_splits", "split_sizes")}


class Mil(Dialect):
    """Versions are the opset that (re)defines the class.  Scalar parameters that have a type letter of their own (iOS
    17's mixed precision) note the drawn type as a private attribute: ``"@U": "f16"``.
    """

    name = "mil"
    title = "Core ML MIL"
    format = "mil"
    opsets = ("ios15", "ios16", "ios17", "ios18")
    extension = ".milp"
    max_rank = 5  # Core ML's limit
    const_chance = 6
    package_size = 16
    draws_edges = True
    edge_extents = (0, 0, 0, 1, 16, 128, 257, 2049)
    special_ends = True
    limits_results = True
    shares_tensors = True
    shares_elements = True
    own = frozenset({"packed"})

    @cached_property
    def schemas(self) -> list[OpSchema]:
        found = super().schemas
        for s in found:
            s.extra["lengths"], s.extra["counts"] = _LENGTHS.get(s.op, ()), _COUNTS.get(s.op, ())
        return found

    def unsayable_rules(self, version: OpVersion) -> tuple[str, ...]:
        """Not stated: whether an axis may be named twice.  Loop variables are of any types."""
        return ("axes-distinct", "tied-type:") if version.op == "while_loop" else ("axes-distinct",)

    def declared(self, entry: Entry) -> None:
        """An entry that evaluates by itself is read from the op's own page, too."""
        own = entry.evaluation
        if own is not None and not own.source:
            entry.evaluation = replace(own, source=f"MIL {entry.op}: coremltools 9.0, published operator pages")

    def marker(self, opset: Any) -> str:
        return f"opset_{opset}"

    def order(self, version: Any) -> Any:
        return int(str(version)[3:])

    def effective(self, op: str, opset: Any, domain: str = "") -> OpVersion:
        """iOS 13, which a program has that names no opset, and iOS 14 are the opset of iOS 15 but for two of its ops:
        the pages "iOS 15" are those of the classes registered for iOS 13."""
        if str(opset) in OLDER:
            if op in SINCE_IOS15:
                raise UsageError(f"{self.name}: no {op} at opset {opset}")
            opset = self.opsets[0]
        return super().effective(op, opset, domain)

    def finish(self, version: OpVersion, d: Draw, inst: Instance) -> Instance:
        """Scalar parameters are rounded to the type that they have in the program; now and then counts and positions
        far beyond what is there (``far``)."""
        letters: dict[str, Any] = version.schema.extra.get("attr_types") or {}
        carried = {s.element for s in version.schema.inputs if inst.args.get(s.name)} if letters else ()
        free = []
        for name, value in inst.attrs.items() if letters else ():
            letter = letters.get(name)
            if letter not in version.schema.types:
                continue
            if letter not in d.types and f"@{letter}" not in inst.attrs:
                names = version.schema.types[letter]
                d.types[letter] = BY_NAME[names[d.int(0, len(names) - 1)]]
            if letter not in carried and f"@{letter}" not in inst.attrs:
                free.append(letter)
            dtype = d.types.get(letter) or BY_NAME[inst.attrs[f"@{letter}"]]
            if isinstance(value, (float, int)) and not isinstance(value, bool):
                if dtype.kind == "f":
                    inst.attrs[name] = float(np.array(value, dtype.np))
                elif isinstance(value, float) and dtype.kind in "iu":
                    inst.attrs[name] = float(int(value))
        for letter in dict.fromkeys(free):
            inst.attrs[f"@{letter}"] = d.types[letter].name
        if inst.opset == "ios15" and inst.attrs.get("pad_type") == "same_lower":
            inst.attrs["pad_type"] = "same"  # the package takes it from iOS 16 on
        inst.args.update(inst.attrs.pop("@captured", {}))
        _widen_all(version, inst)
        if "validate_indices" in version.schema.attrs and "validate_indices" not in inst.attrs and d.bool():
            inst.attrs["validate_indices"] = d.bool()
        return far.far_of(version, d, inst, _takes_widened)

    def draws_const(self, version: OpVersion, slot: Slot, t: T, d: Draw) -> bool:
        """Scalars are mostly constants: an ML program has no inputs of rank 0.  Complex constants do not exist."""
        drawn = d.types.get(slot.element)
        if drawn is not None and drawn.kind == "c":
            return False
        return d.int(0, 3) > 0 if not t.shape else super().draws_const(version, slot, t, d)

    def call_of(self, inst: Instance, arrays: dict[str, Any], version: OpVersion | None = None) -> Call:
        """ "If pad is not a constant, it must be a vector of length 2 * rank(x)" (pad): the arrays do not tell.  Nor do
        they tell that lists have a fixed length, as the builder makes them."""
        if inst.op == "pad":
            match inst.args.get("x"), inst.args.get("pad"):
                case Arg() as x, Arg(const=False) as pad if pad.shape != (2 * len(x.shape),):
                    why = f"pad of {list(pad.shape)} at run time, x of rank {len(x.shape)}"
                    raise RuleError("pairs-of-all-axes", why)
        lists = {n: _items(inst, arrays[n]) for n in arrays if _is_list(inst, n)}
        return super().call_of(inst, {**arrays, **lists} if lists else arrays, version)

    def keeps(self, version: OpVersion) -> tuple[str, ...]:
        return edges.keeps(version.schema)

    def build(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
        return builder.build(self, instances, arrays)

    def notation(self, inst: Instance) -> str:
        return notation.notation(inst)

    def parse(self, data: Any) -> Graph:
        with reading("MIL model"):
            g = parse.parse(data)
            return running.settle(self, g, g.meta.get("opset"))

    def packed(self, prog: Any, function: str | None = None) -> bytes:
        """coremltools' in-memory program as a plain one, for the backends that need coremltools' answer run."""
        from suites.mil import pymil

        return pymil.packed(prog, function)

    def run_model(self, model: Any, inputs: dict[str, Any] | Sequence[Any], watch: Watch | None = None) -> list[Any]:
        g = self.parse(model)
        return run_graph(self, g, running.feed(g, fed(g, inputs, cast=True)), g.meta["opset"], watch=watch)


def _is_list(inst: Instance, slot: str) -> bool:
    a = inst.args.get(slot)
    return isinstance(a, Arg) and a.kind == "list"


def _items(inst: Instance, tensors: list[Any]) -> running.Items:
    """A list of as many tensors, or of "@length", of which these stand at "@places"."""
    places = inst.attrs.get("@places") or range(len(tensors))
    return running.Items(dict(zip(places, tensors)), inst.attrs.get("@length") or len(tensors), fixed=True)


def _takes_widened(version: OpVersion, inst: Instance) -> bool:
    """Does the reference take an instance with integers that were put in last?  They are of i32."""
    carried = {s.element for s in version.schema.inputs if inst.args.get(s.name)}
    for name, letter in (version.schema.extra.get("attr_types") or {}).items():
        new = type(inst.attrs.get(name)) is int and letter in version.schema.types and letter not in carried
        if new and "i32" in version.schema.types[letter]:
            inst.attrs[f"@{letter}"] = I32.name
    _widen_all(version, inst)
    return takes(version, inst)


def _widen_all(version: OpVersion, inst: Instance) -> None:
    _widen(version, inst)
    for name, letter in (version.schema.extra.get("attr_types") or {}).items():
        _widen_stated(inst, name, letter)


def _widen_stated(inst: Instance, name: str, letter: str) -> None:
    """An integer that does not fit the type noted for it gets i32, which every type letter of integers has."""
    noted, value = inst.attrs.get(f"@{letter}"), inst.attrs.get(name)
    if noted is None or not isinstance(value, int) or BY_NAME[noted].kind not in "iu":
        return
    lo, hi = int_range(BY_NAME[noted])
    if not lo <= value <= hi:
        inst.attrs[f"@{letter}"] = I32.name


def _widen(version: OpVersion, inst: Instance) -> None:
    """Literal integers that do not fit their drawn type move, with all inputs of that type letter, to i32."""
    by_letter: dict[str, list[Arg]] = {}
    for s in version.schema.inputs:
        a = inst.args.get(s.name)
        for one in a if isinstance(a, list) else [a] if a is not None else ():
            by_letter.setdefault(s.element, []).append(one)
    for args in by_letter.values():
        for a in args:
            if a.dtype.kind == "u" and a.recipe.startswith("signed_index"):
                a.recipe = a.recipe.removeprefix("signed_")
            if a.values and a.dtype.kind in "iu" and a.dtype is not I32:
                lo, hi = int_range(a.dtype)
                if min(a.values) < lo or max(a.values) > hi:
                    for one in args:
                        one.dtype = I32
                    break


# Registered classes that have no entry, and why.
ABSENT = {
    "_const_symbolic": "internal: holds a Python symbol, never written into a program",
    "conv_quantized": "registered, not documented: nothing says what quantization_type and nbits mean",
    "torch_tensor_assign": "made and removed inside the PyTorch front end; slice_update is what it becomes",
    "torch_upsample_bilinear": "made and removed inside the PyTorch front end; upsample_bilinear is what it becomes",
    "torch_upsample_nearest_neighbor": "made and removed inside the PyTorch front end, for upsample_nearest_neighbor",
}

dialect = Mil("suites.mil")
op = dialect.op
