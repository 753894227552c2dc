"""The TFLite dialect object: what the harness asks of it, delegated to builder, parser and notation."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from harness.core.dtypes import DType, int_range
from harness.core.errors import UsageError
from harness.core.instance import Arg, Graph, Instance
from harness.core.outcome import Model
from harness.spec import Dialect, Draw, OpSchema, OpVersion, Slot, T
from harness.spec.interpret import Watch, fed, run_graph

# Slots that the converter nearly always writes as constants; delegates only take such nodes.
_WEIGHTS = {"filter", "weights", "bias", "feature_weights", "time_weights", "alpha", "input_gate_bias"}

# Highest rank of an operand that broadcasts, or at all: traits of tfl_ops.td.
_RANKS = {
    **dict.fromkeys(
        (
            "EQUAL",
            "NOT_EQUAL",
            "LESS",
            "LESS_EQUAL",
            "GREATER",
            "GREATER_EQUAL",
            "FLOOR_DIV",
            "FLOOR_MOD",
            "POW",
            "PRELU",
            "SQUARED_DIFFERENCE",
        ),
        4,
    ),
    **dict.fromkeys(
        ("MAXIMUM", "MINIMUM", "SELECT_V2", "SELECT", "PAD", "PADV2", "BATCH_MATMUL", "ADD", "SUB", "MUL"), 5
    ),
}


def _f32(v: float) -> float:
    return struct.unpack("<f", struct.pack("<f", v))[0]


class TfLite(Dialect):
    """One opset (the format is not versioned beyond op versions).

    A version has up to three forms, each an op version of its own: ``2`` plain, ``2q`` quantised, ``2h`` hybrid; the
    domain of its entries is "", "quantised" or "hybrid".
    """

    name = "tflite"
    title = "TFLite builtin operators"
    format = "tflite"
    opsets = (1,)
    extension = ".tflite"
    max_rank = 6
    const_chance = 4
    declares_outputs = True
    rerun_every = 10
    declares_extents = True
    package_size = 32  # beyond that the runtime's memory planner turns quadratic
    _rows: dict[str, list[OpSchema]] | None = None
    # An option table has no place for an unknown option.  The dialect's element types are what a runtime must take;
    # more is no fault.  Index operands of one operator need not share their type.
    unsayable_rules = ("unknown-attribute", "type:", "tied-type:I", "tied-type:W", "tied-type:B")

    def order(self, version: Any) -> Any:
        """Versions compare by number; the form is told by the domain."""
        return version if isinstance(version, int) else int(version.rstrip("qh"))

    def schemas_of(self, op: str) -> list[OpSchema]:
        """All rows of one operator, oldest first."""
        if self._rows is None:
            self._rows = {}
            for s in self.schemas:
                self._rows.setdefault(s.op, []).append(s)
        return self._rows.get(op, [])

    def row(self, op: str, domain: str) -> OpSchema:
        """The newest row of an operator in one form; raises UsageError."""
        found = [s for s in self.schemas_of(op) if s.domain == domain]
        if not found:
            raise UsageError(f"tflite: no {domain} {op}".replace("  ", " "))
        return found[-1]

    def draws_const(self, version: OpVersion, slot: Slot, t: T, d: Draw) -> bool:
        """Weights and literal operands (axes, shapes) are mostly constants in real models; data hardly ever is."""
        if slot.name in _WEIGHTS or t.values is not None:
            return d.int(0, 3) > 0
        return d.chance(6)

    def reruns(self, inst: Instance, index: int) -> bool:
        """Inputs may be resized between two runs (the shape signature says which axes), but what the runtime keeps has
        the extents of the model."""
        return super().reruns(inst, index) and not self.version_of(inst).schema.extra.get("states")

    def rank_limit(self, version: OpVersion) -> int:
        """What the tfl dialect's traits state per operator, and what the version has learned so far."""
        later = version.schema.extra["later"]
        if any(f.startswith("rank5") for f in later):
            return 4
        if version.op == "TRANSPOSE" and "rank7" not in later:
            return 7
        return min(5 if "rank6" in later else self.max_rank, _RANKS.get(version.op, self.max_rank))

    def finish(self, version: OpVersion, d: Draw, inst: Instance) -> Instance:
        """Entries tagged "fused": an activation in half of the instances; "bias": most of them have one, since the
        runtime refuses to do without.  Quantised forms: operands and outputs of the main type that carry no parameters
        yet share one set.

        An operand with its own meaning of the parameters (arithmetic) has got them from its codec before.
        """
        for given in inst.args.values():  # Python's interface cannot feed a string of rank 0: it stands in the model
            for a in given if isinstance(given, list) else (given,):
                if a.dtype.kind == "s" and not a.shape:
                    a.const = True
        for name, v in inst.attrs.items():  # options are f32 in the file, so they are here
            if isinstance(v, float):
                inst.attrs[name] = _f32(v)
        if "fused" in version.entry.tags and d.bool() and not _complex(inst):
            inst.attrs["fused_activation_function"] = d.pick(("RELU", "RELU6", "RELU_N1_TO_1", "NONE"))
        if "bias" in version.entry.tags and "bias" not in inst.args and d.int(0, 4) > 0:
            inst.args["bias"] = version.make_arg(d, "bias", T((inst.args["filter"].shape[0],)))  # type: ignore[union-attr]
        if version.schema.domain == "quantised":
            share(version, d, inst)
        return inst

    def misquantised(self, a: Arg) -> str | None:
        """Source: schema.fbs, QuantizationParameters and BlockwiseQuantization."""
        q = a.quant
        needs = {"scale", "zero_point"}
        if not isinstance(q, dict) or not needs <= q.keys() <= {*needs, "axis", "block"}:
            return f"expected scale, zero_point and perhaps axis or block, got {q!r}"
        scale, zero, axis, block = q["scale"], q["zero_point"], q.get("axis", 0), q.get("block")
        if not isinstance(scale, list) or not scale or not all(_is(x, float, int) and 0 < x < 1e39 for x in scale):
            return f"scale: expected positive numbers, got {scale!r}"
        if a.dtype.kind not in "iu":
            return f"expected integers, got {a.dtype}"
        low, high = int_range(a.dtype)
        if not isinstance(zero, list) or not all(_is(x, int) and low <= x <= high for x in zero):
            return f"zero_point: expected values of {a.dtype}, got {zero!r}"
        if len(zero) != len(scale) and block is None:
            return f"expected a zero point for each of {len(scale)} scales, got {len(zero)}"
        if not _is(axis, int) or (block is not None and not (_is(block, int) and block > 0)):
            return f"expected numbers of an axis and of elements in a block, got {axis!r} and {block!r}"
        if len(scale) > 1 and block is None and a.shape and dict(enumerate(a.shape)).get(axis) != len(scale):
            return f"expected a scale for each position of axis {axis} of {list(a.shape)}, got {len(scale)}"
        return None

    def build(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
        from suites.tflite.builder import build

        return build(self, instances, arrays)

    def notation(self, inst: Instance) -> str:
        from suites.tflite.notation import notation

        return notation(self, inst)

    def parse(self, data: Any) -> Graph:
        from suites.tflite.parse import parse

        return parse(self, data)

    def run_model(self, model: Any, inputs: dict[str, Any] | Sequence[Any], watch: Watch | None = None) -> list[Any]:
        """One invocation in a session of its own; outputs in the model's order."""
        return Session(self, model).invoke(inputs, watch)


class Session:
    """A model with what it keeps from one invocation to the next: variables, hash tables, initialisation done once.

    model: bytes or a path; raises FormatError.  ``invoke`` takes the inputs by name or in order.
    """

    def __init__(self, dialect: TfLite, model: Any) -> None:
        from suites.tflite.resources import Store

        self.dialect = dialect
        self.graph = dialect.parse(model)
        self.store = Store()

    def invoke(self, inputs: dict[str, Any] | Sequence[Any], watch: Watch | None = None) -> list[Any]:
        """Outputs of the main subgraph in order.  watch: called after every node with its outputs."""
        from suites.tflite.resources import using

        with using(self.store):
            given = fed(self.graph, inputs)
            return run_graph(self.dialect, self.graph, given, self.graph.meta.get("opset"), watch=watch)


def _complex(inst: Instance) -> bool:
    return any(isinstance(a, Arg) and a.dtype.kind == "c" for a in inst.args.values())


def share(version: OpVersion, d: Draw, inst: Instance) -> None:
    """Give every operand of the main type without parameters, and the outputs of that type, one common set."""
    from suites.tflite.codecs import draw_quant

    schema = version.schema
    main = next(iter(schema.types))
    quant: dict[str, Any] | None = None
    for slot in schema.inputs:
        if slot.type != main:
            continue
        a = inst.args.get(slot.name)
        for one in a if isinstance(a, list) else [a]:
            if one is not None and one.quant is None and one.dtype.kind in "iu":
                if quant is None:
                    quant = draw_quant(d, one.dtype)
                one.quant = quant
    if quant is None:
        return
    outs = inst.attrs.setdefault("@outputs", [])
    outs.extend([None] * (inst.outs - len(outs)))
    for i in range(inst.outs):
        slot = schema.outputs[min(i, len(schema.outputs) - 1)]
        if outs[i] is None:
            t = _bound(version, slot, inst)
            outs[i] = {"dtype": t.name, "quant": quant} if slot.type == main else {"dtype": t.name}


def _is(x: Any, *types: type) -> bool:
    return type(x) in types


def number_of(version: Any) -> int:
    """The operator version as the file says it: 2 of "2q"."""
    return version if isinstance(version, int) else int(version.rstrip("qh"))


def output_types(version: OpVersion, inst: Instance) -> list[tuple[DType, Any]]:
    """(dtype, quantisation or None) of every output that the instance asks for.

    From ``@outputs`` where the draw fixed them, else from the input whose type name the output shares.
    """
    declared = inst.attrs.get("@outputs")
    outs: list[tuple[DType, Any]] = []
    slots = version.schema.outputs
    for i in range(inst.outs):
        if declared is not None and i < len(declared) and declared[i] is not None:
            o = declared[i]
            from harness.core.dtypes import dtype

            outs.append((dtype(o["dtype"]) if isinstance(o["dtype"], str) else o["dtype"], o.get("quant")))
            continue
        slot = slots[min(i, len(slots) - 1)]
        outs.append((_bound(version, slot, inst), None))
    return outs


def _bound(version: OpVersion, slot: Slot, inst: Instance) -> DType:
    for s in version.schema.inputs:
        if s.type == slot.type:
            a = inst.args.get(s.name)
            a = a[0] if isinstance(a, list) and a else a
            if a is not None and not isinstance(a, list):
                return a.dtype
    return version.schema.dtypes(slot.type)[0]
