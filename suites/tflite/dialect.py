"""The TFLite dialect object: what the harness asks of it, delegated to builder, parser and notation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from harness.core import dims
from harness.core.dtypes import I32, I64, DType, f32
from harness.core.instance import Arg, Graph, Instance
from harness.core.outcome import Model
from harness.declare import Call, Dialect, Draw, Entry, OpSchema, OpVersion, Results, Slot, T
from harness.declare.interpreter import Watch, fed, run_graph
from suites.semantics.quantised.output import draw_activation
from suites.tflite import builder, edges, ends, notation, parse, quantisation, schemas, shapes, usual
from suites.tflite.resources import Store, using

# Slots that the converter nearly always writes as constants; delegates only take such nodes.
_WEIGHTS = {"filter", "weights", "bias", "feature_weights", "time_weights", "alpha", "input_gate_bias"}

# Highest rank of an operand: traits of tfl_ops.td.
_RANKS = {"SPACE_TO_BATCH_ND": 4, "BATCH_TO_SPACE_ND": 4, "PAD": 5, "PADV2": 5, "BATCH_MATMUL": 5}
# Highest rank of operands that broadcast (TFL_OperandsHaveSameShapesOrBroadcastableShape); those of one shape may have
# any.
_BROADCAST = {
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
    **dict.fromkeys(("MAXIMUM", "MINIMUM", "SELECT_V2", "ADD", "SUB", "MUL"), 5),
}


_OPERANDS = ("condition", "lhs", "rhs", "x", "y", "input", "alpha")


def _of_one_shape_beyond(rank: int, call: Call) -> str:
    """The shape that all operands have where one of them has more axes than those that broadcast may have."""
    shapes = [x.shape for x in call.inputs.values() if isinstance(x, np.ndarray)]
    most: tuple[int, ...] = max(shapes, key=len, default=())
    return " ".join(map(str, most)) if len(most) > rank else "*_d"


_LIMITS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6")  # activations that limit a result


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
    max_rank = 8
    states_ranks = True
    const_chance = 4
    declares_outputs = True
    shares_tensors = True
    shares_elements = True
    declares_results = True  # shapes: what a converter writes, and what delegates look at
    quantised_domains = ("quantised",)
    tells_omitted = False  # FlatBuffers, Schemas: a scalar that equals its default is not written
    rerun_every = 10
    limits_results = True
    draws_edges = True
    edge_extents = (0, 0, 1, 17, 129, 257)
    special_ends = True
    declares_extents = True
    package_size = 32  # beyond that the runtime's memory planner turns quadratic

    def declared(self, entry: Entry) -> None:
        """Of the fused activations, the quantised recurrent operators compute those alone that limit their result."""
        if edges.recurrent(entry.op) and entry.domain == "quantised":
            entry.checks = replace(entry.checks, only={"fused_activation_function": _LIMITS, **entry.checks.only})
        if entry.op in _BROADCAST:
            stated = dict.fromkeys(_OPERANDS, partial(_of_one_shape_beyond, _BROADCAST[entry.op]))
            breaks = {"shapes-stated": None, **entry.checks.breaks}  # an axis more may be one that broadcasts
            entry.checks = replace(entry.checks, stated={**stated, **entry.checks.stated}, breaks=breaks)

    def order(self, version: Any) -> Any:
        """Versions compare by number; the form is told by the domain."""
        return schemas.number_of(version)

    def unsayable_rules(self, version: OpVersion) -> tuple[str, ...]:
        """An option table has no place for an unknown option.  The dialect's element types are what a runtime must
        take; more is no fault.  Index operands of one operator need not share their type."""
        return ("unknown-attribute", "type:", "tied-type:I", "tied-type:W", "tied-type:B")

    @cached_property
    def schemas(self) -> list[OpSchema]:
        return list(schemas.schemas())

    def draws_const(self, version: OpVersion, slot: Slot, t: T, d: Draw) -> bool:
        """Weights and literal operands (axes, shapes) are mostly constants in real models; data hardly ever is."""
        if slot.name in _WEIGHTS or t.values is not None:
            return not d.chance(32)
        return d.chance(16)

    def reruns(self, inst: Instance, index: int) -> bool:
        """Inputs may be resized between two runs (the shape signature says which axes), but what the runtime keeps has
        the extents of the model: states, and what is assigned to a variable."""
        kept = inst.op == "ASSIGN_VARIABLE" or self.version_of(inst).schema.extra.get("states")
        return super().reruns(inst, index) and not kept

    def type_weight(self, name: str, dtype: DType) -> int | None:
        """Index operands are 32 bits wide in nearly all models; delegates take no others."""
        return {I32: 8, I64: 1}.get(dtype) if name == "I" else None

    def rank_limit(self, version: OpVersion) -> int:
        """What the tfl dialect's traits state per operator, and what the version has learned so far."""
        later = version.schema.extra["later"]
        if any(f.startswith("rank5") for f in later):
            return 4
        if version.op == "TRANSPOSE":
            return 7 if "rank7" not in later else 5 if "rank6" in later else 6
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
                inst.attrs[name] = f32(v)
        _mention(version, d, inst)
        if version.op in _BROADCAST and not d.breaking:
            _alike_beyond(_BROADCAST[version.op], inst)
        if "fused" in version.entry.sampling.tags and d.bool() and _real(inst):
            inst.attrs["fused_activation_function"] = draw_activation(d, _integers(inst))
        if "bias" in version.entry.sampling.tags and "bias" not in inst.args and not d.chance(16):
            inst.args["bias"] = version.make_arg(d, "bias", T((inst.tensor("filter").shape[0],)))
        if version.schema.domain == "quantised":
            quantisation.share(version, d, inst)
        if inst.op in _WINDOWS and not d.breaking and d.chance(16):
            _window_far(d, inst)
        if inst.op in _FILTERS and version.schema.domain == "" and not d.breaking and d.chance(48):
            _many_filters(d, inst)
        ends.give(d, inst)
        usual.say(d, inst)
        if d.chance(shapes.UNDECLARED_EVERY):
            inst.attrs[shapes.UNDECLARED] = True
        return inst

    def keeps(self, version: OpVersion) -> tuple[str, ...]:
        return edges.keeps(version)

    def misquantised(self, a: Arg) -> str | None:
        return quantisation.misquantised(a)

    def build(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
        return builder.build(self, instances, arrays)

    def build_declared(
        self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]], results: Sequence[Results]
    ) -> Model:
        return builder.build(self, instances, arrays, results)

    def notation(self, inst: Instance) -> str:
        return notation.notation(self, inst)

    def parse(self, data: Any) -> Graph:
        return parse.parse(data)

    def run_model(self, model: Any, inputs: dict[str, Any] | Sequence[Any], watch: Watch | None = None) -> list[Any]:
        """One invocation in a session of its own; outputs in the model's order."""
        return Session(self, model).invoke(inputs, watch)


class Session:
    """A model with what it keeps from one invocation to the next: variables, hash tables, initialisation done once.

    model: bytes or a path; raises FormatError.  ``invoke`` takes the inputs by name or in order.
    """

    def __init__(self, dialect: TfLite, model: Any) -> None:
        self.dialect = dialect
        self.graph = dialect.parse(model)
        self.store = Store()

    def invoke(self, inputs: dict[str, Any] | Sequence[Any], watch: Watch | None = None) -> list[Any]:
        """Outputs of the main subgraph in order.  watch: called after every node with its outputs."""
        with using(self.store):
            given = fed(self.graph, inputs)
            return run_graph(self.dialect, self.graph, given, self.graph.meta.get("opset"), watch=watch)


# Options that some forms of an operator do not look at: domains and value.
_UNREAD: dict[str, tuple[tuple[str, ...], Any]] = {
    "asymmetric_quantize_inputs": (("", "quantised"), True),
    "pot_scale_int16": (("", "quantised"), False),
    "quantized_bias_type": (("", "hybrid"), "i64"),
}


def _mention(version: OpVersion, d: Draw, inst: Instance) -> None:
    """One instance in eight says such an option all the same, from the version on that knows it; every second one where
    an operand is empty, which few are."""
    every = 2 if any(0 in a.shape for a in _tensors(inst)) else 8
    for name, (domains, value) in _UNREAD.items():
        known = name in version.schema.attrs and name not in version.schema.extra["later"] and name not in inst.attrs
        if known and version.schema.domain in domains and not d.breaking and d.chance(every):
            inst.attrs[name] = value


_WINDOWS = ("CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D", "CONV_3D")
_REACHES = {"h": "filter_height", "w": "filter_width"}  # of pools


def _window_far(d: Draw, inst: Instance) -> None:
    """One window of an axis stands at its beginning, and the next would be far beyond the end; the elements of a window
    of one are far apart; SAME windows stand on an axis without elements, or reach far beyond it."""
    solid = inst.op == "CONV_3D"
    a, axis = d.pick((("d", 1), ("h", 2), ("w", 3)) if solid else (("h", 1), ("w", 2)))
    stride, dilation, how = f"stride_{a}", f"dilation_{a}_factor", d.int(0, 3)
    if how == 0 and inst.attrs.get("padding", "SAME") == "SAME" and not inst.tensor("input").values:
        x = inst.tensor("input")
        if _REACHES.get(a) in inst.attrs and d.int(0, 2):
            inst.attrs[_REACHES[a]] = d.pick((17, 300, *(2**31 - 1,) * 4))
        else:
            x.shape = (*x.shape[:axis], 0, *x.shape[axis + 1 :])
    elif how == 1 and dilation in inst.attrs and inst.tensor("filter").shape[axis - solid] == 1:
        inst.attrs[dilation] = d.pick((17, 300, 2**15 - 1, *(2**31 - 1,) * 3))
    elif stride in inst.attrs:
        inst.attrs[stride] = d.pick((300, 2**15 - 1, 2**31 - 1))


_FILTERS = {"CONV_2D": 0, "CONV_3D": 4}  # axis of the filters


def _many_filters(d: Draw, inst: Instance) -> None:
    """More filters than a vector holds or 8 bits count; of a solid one also none."""
    w, b, axis = inst.tensor("filter"), inst.args.get("bias"), _FILTERS[inst.op]
    many = d.pick((17, 130, 260) if inst.op == "CONV_2D" else (17, 130, 0, 0)) * max(1, w.shape[axis])
    plain = w.values is None and (b is None or (isinstance(b, Arg) and b.values is None))
    if plain and 0 not in w.shape and many < 1024:
        w.shape = (*w.shape[:axis], many, *w.shape[axis + 1 :])
        if isinstance(b, Arg):
            b.shape = (many,)


def _alike_beyond(rank: int, inst: Instance) -> None:
    """Operands of more axes than those that broadcast may have get one shape."""
    given = [a for a in inst.args.values() if isinstance(a, Arg)]
    if max((len(a.shape) for a in given), default=0) > rank:
        shape = dims.broadcast(*(a.shape for a in given))
        for a in given:
            a.shape = shape


def _tensors(inst: Instance) -> list[Arg]:
    given = [a for v in inst.args.values() for a in (v if isinstance(v, list) else [v])]
    return [a for a in given if isinstance(a, Arg)]


def _integers(inst: Instance) -> bool:
    """Is there an operand, and is each one of integers?"""
    given = _tensors(inst)
    return bool(given) and all(a.dtype.kind in "iu" for a in given)


def _real(inst: Instance) -> bool:
    """Are there no complex numbers, booleans and strings among the operands?"""
    return all(a.dtype.kind in "fiu" for a in _tensors(inst))
