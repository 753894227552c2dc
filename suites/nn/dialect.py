"""The NeuralNetwork dialect: every layer of Core ML's NeuralNetwork specification.

Everything is float32 of rank 1 to 5 without empty axes.  Layers work on blobs; weights are part of the layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from harness.core.dtypes import F32, I8, U8
from harness.core.errors import FormatError, RuleError
from harness.core.instance import Arg, Graph, Instance
from harness.core.outcome import Model
from harness.declare import Call, Dialect, Draw, Entry, OpVersion, T
from harness.declare.interpreter import Watch, fed
from harness.declare.schema import OpSchema, Slot
from suites.nn import builder, control, edges, far, ignored, image, layers, notation, parse, schemas, spell, weights
from suites.nn.interpret import Run, map_input

# weights that have an output channel, the first stored axis or that of a deconvolution: one scale, or one a channel
_QUANTISED = {
    "convolution.weights",
    "convolution.isDeconvolution.weights",
    "convolution3d.weights",
    "convolution3d.isDeconvolution.weights",
    "innerProduct.weights",
    "embedding.weights",
    "embeddingND.weights",
    "batchedMatmul.weights",
}
# of recurrent layers the output vector, also of these
_PER_OUTPUT = ("WeightMatrix", "weightMatrix", "RecursionMatrix", "recursionMatrix")
# others, with one scale for all
_QUANTISED_WHOLE = {
    "scale.scale",
    "scale.bias",
    "bias.bias",
    "loadConstant.data",
    "loadConstantND.data",
}


class Nn(Dialect):
    name = "nn"
    title = "Core ML NeuralNetwork"
    format = "nn"
    extension = ".mlmodel"
    opsets = (1,)
    min_rank = 1
    max_rank = 5
    allow_empty = False
    const_chance = 6
    packs_weights = True
    draws_edges = True
    edge_extents = (1, 16, 128, 257, 2049)
    special_ends = True
    shares_tensors = True
    shares_elements = True
    tells_omitted = False  # Protocol Buffers 3, Default Values: a scalar that equals its default is not written
    _rank5_chance, _quantised_chance, _ignored_chance, _described_chance = 5, 3, 4, 8  # one instance in so many
    _dynamic_chance, _far_chance = 5, 16

    @cached_property
    def schemas(self) -> list[OpSchema]:
        return list(schemas.schemas())

    def declared(self, entry: Entry) -> None:
        """Results are blobs.  A layer's own predicate adds to what its meaning leaves open."""
        entry.spelling = entry.spelling.with_out(spell.finish(entry.spelling.out))
        own, meaning = entry.checks.ambiguous, entry.meaning
        if own is not None and meaning is not None and meaning.ambiguous is not None:
            entry.checks = replace(entry.checks, ambiguous=spell.with_meaning(own, meaning))

    # -- drawing and evaluating

    def rules_of(self, version: OpVersion) -> dict[str, Any]:
        """An input too many, where all inputs are counted; more tensors described than a layer has inputs; a list with
        an entry too many, where its length is stated; a weight with a number too few, where a size is stated: of a
        recurrent cell, one weight of each kind."""
        s = version.schema
        out: dict[str, Any] = {}
        if not any(x.variadic for x in s.inputs if not x.const) and version.op not in control.OPS:
            out["input-count"] = lambda d: _crowded(lambda: version.draw(d.engine), s)
        if version.op not in control.OPS:
            out["tensor-per-input"] = lambda d: _marked(version.draw(d.engine), "@tensors", "one more")
        for name, size in layers.lengths(s).items():
            more = [1] * (1 + (size == 4))  # borders come in pairs
            out[f"list-length:{name}"] = partial(_longer, version, s, name, more)
        parts: set[str] = set()
        for slot in s.inputs:
            part = weights.cell_part(slot.name)
            if slot.const and ((s.op, slot.name) in weights.SHAPES or (part and part not in parts)):
                name = slot.name
                parts.add(part or "")
                out[f"weight-count:{name}"] = partial(_short, version, s, name)
        if "int8DynamicQuantize" in s.attrs:
            out["int8-bias"] = lambda d: _dynamic_with_bias(lambda: version.draw(d.engine), d)
            out["int8-weights"] = lambda d: _dynamic_of_floats(lambda: version.draw(d.engine))
        return out

    def unsayable_rules(self, version: OpVersion) -> tuple[str, ...]:
        """Fields and types are what the format has; inputs have no names, so that one missing before an optional one is
        another call."""
        plain = [s for s in version.schema.inputs if not s.const and s.name != "captured"]
        shifted = [f"required-input:{s.name}" for s in plain] if any(s.optional for s in plain) else []
        return ("unknown-attribute", "enum:", "type:", "tied-type:", *shifted)

    def keeps(self, version: OpVersion) -> tuple[str, ...]:
        return edges.keeps(version.schema)

    def misquantised(self, a: Arg) -> str | None:
        return weights.misquantised(a.dtype, a.quant)

    def draws_const(self, version: OpVersion, slot: Slot, t: T, d: Draw) -> bool:
        """loadConstantND makes ranks 1 to 4, loadConstant [1, 1, C, H, W]."""
        return builder.can_load(t.shape) and super().draws_const(version, slot, t, d)

    def finish(self, version: OpVersion, d: Draw, inst: Instance) -> Instance:
        """Now and then what the layer ignores, the rank-5 input mapping, quantised weights, weights that say that they
        are updatable in a layer that is not, ranks and shapes of the inputs said along with them."""
        s = version.schema
        if not d.breaking and d.chance(self._far_chance):
            far.push(s, inst, d)
        if not d.breaking and d.chance(self._ignored_chance):
            ignored.add(s, inst, d)
        consts = {x.name for x in s.inputs if x.const}
        plain = [a for n, a in inst.args.items() if n not in consts for a in (a if isinstance(a, list) else [a])]
        ranks = {len(a.shape) for a in plain}
        vector = s.op == "innerProduct" or s.op.startswith(("activation.", "unary."))  # [C] becomes [1, 1, C, 1, 1]
        if (
            s.extra["min_spec"] < 4
            and not d.breaking  # a rank that a layer refuses may be one that it takes once it is mapped
            and ranks == ({1} if s.op == "innerProduct" else {1, 3} & ranks if vector else {3})
            and len(ranks) == 1
            and not any(a.const for a in plain)
            and d.chance(self._rank5_chance)
        ):
            inst.attrs["@mapping"] = "rank5"
        for n, a in inst.args.items():
            rows = f"{s.op}.{n}" in _QUANTISED or n.endswith(_PER_OUTPUT)
            if (
                (rows or f"{s.op}.{n}" in _QUANTISED_WHOLE)
                and isinstance(a, Arg)
                and a.values is None
                and a.quant is None
                and d.chance(self._quantised_chance)
            ):
                channels = inst.attrs["outputChannels"] if weights.groups_of(s.op, _attr_of(inst, s)) else a.shape[0]
                _quantise(a, d, channels if rows else 1)
        if "int8DynamicQuantize" in s.attrs and not d.breaking and d.chance(self._dynamic_chance):
            _dynamic(inst, d)
        if not d.breaking and version.op not in control.OPS:
            if plain and "@mapping" not in inst.attrs and d.chance(self._described_chance):
                inst.attrs["@tensors"] = d.pick(("ranks", "shapes", "unknown"))
            if any(n in consts for n in inst.args) and d.chance(self._described_chance):
                inst.attrs["@updatable"] = True
        return inst

    def call_of(self, inst: Instance, arrays: dict[str, Any], version: OpVersion | None = None) -> Call:
        s = schemas.named(inst.op)
        seen: dict[str, Any] = {}
        lift = inst.attrs.get("@mapping") == "rank5"
        layers.check_lists(s, inst.attrs)
        layers.check_unsigned(s, inst.attrs)
        check_mapping(s, inst)
        check_weights(s, inst)
        attr = _attr_of(inst, s)
        for n, v in arrays.items():
            slot, arg = s.input(n), inst.args.get(n)
            if slot is not None and slot.const and isinstance(arg, Arg):
                v = weights.fitted(v, s.op, n, attr)
                groups = weights.groups_of(s.op, attr)
                v = np.asarray(v, np.float32) if arg.quant is None else weights.dequantise(v, arg.quant, groups)
            elif lift:
                many = isinstance(v, list)
                v = [map_input(x, x.shape, "RANK5_ARRAY_MAPPING", n) for x in (v if many else [v])]
                v = v if many else v[0]
            if slot is not None and not slot.const:
                check_blobs(n, v)
            seen[n] = v
        check_inputs(s, seen)
        check_dynamic(inst)
        if inst.attrs.get("@extra_input"):
            raise RuleError("input-count", f"one more input than {s.op} takes")
        if inst.attrs.get("@tensors") == "one more":
            raise RuleError("tensor-per-input", f"one more inputTensor than {s.op} has inputs")
        if "@short_weight" in inst.attrs:
            raise RuleError(f"weight-count:{inst.attrs['@short_weight']}", s.op)
        call = super().call_of(inst, seen, version)
        call.attrs = {n: as_stored(v) for n, v in inst.attrs.items()}
        return call

    # -- models

    def build(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
        return builder.build(instances, arrays)

    def notation(self, inst: Instance) -> str:
        return notation.text(schemas.named(inst.op), inst)

    def parse(self, data: Any) -> Graph:
        return parse.parse(data)

    def run_model(self, model: Any, inputs: dict[str, Any] | Sequence[Any], watch: Watch | None = None) -> list[Any]:
        """Outputs of a whole model in its order.

        model: specification bytes, path to a .mlmodel, official message or MLModel.  inputs: by name or in order; an
        image is an array [C, H, W] in the order of its colour space.  watch: called after every layer.
        """
        g = model if isinstance(model, Graph) else self.parse(model)
        run = Run(self, g.consts, watch)
        given = fed(g, inputs, cast=True)
        for name, arg in g.inputs:
            if name in g.meta.get("images", {}):
                run.blobs[name] = image.blob(given[name], name, g.meta)
            else:
                x = map_input(given[name], arg.shape, g.meta["mapping"], name)
                run.blobs[name] = image.preprocess(x, name, g.meta)
        run.layers(g.nodes)
        return [image.output(run, name, g.meta) for name in g.outputs]


def as_stored(v: Any) -> Any:
    """A parameter as the format holds it: floats are float32."""
    if isinstance(v, float):
        return float(np.float32(v))
    return [as_stored(x) for x in v] if isinstance(v, (list, tuple)) else v


def _marked(inst: Instance, name: str, value: Any) -> Instance:
    inst.attrs[name] = value
    return inst


def _crowded(drawn: Callable[[], Instance], s: OpSchema) -> Instance | None:
    """An input too many; None where an optional one is left out, draw after draw, whose place it would take."""
    for _ in range(12):
        inst = drawn()
        if all(x.name in inst.args for x in s.inputs if not x.const):
            return _marked(inst, "@extra_input", True)
    return None


def _attr_of(inst: Instance, s: OpSchema) -> weights.Attrs:
    return lambda name: inst.attrs.get(name, s.attrs[name].default)


def _short(version: OpVersion, s: OpSchema, slot: str, d: Draw) -> Instance | None:
    """None where the weight is absent, ignored, quantised, or a single number (none at all may be a weight that is left
    out), draw after draw."""
    for _ in range(4):
        inst = version.draw(d.engine)
        a = inst.args.get(slot)
        if not isinstance(a, Arg) or a.quant or math.prod(a.shape) < 2 or slot in ignored.unused(s, inst):
            continue
        if weights.stored_shape(s.op, slot, _attr_of(inst, s)) is not None:
            return _marked(inst, "@short_weight", slot)
    return None


def _longer(version: OpVersion, s: OpSchema, name: str, more: list[int], d: Draw) -> Instance | None:
    """None where the list is left out or ignored, draw after draw."""
    for _ in range(8):
        inst = version.draw(d.engine)
        if inst.attrs.get(name) and name not in ignored.unused(s, inst) and layers.chosen(s, inst.attrs, name):
            return _marked(inst, name, [*inst.attrs[name], *more])
    return None


def check_blobs(name: str, v: Any) -> None:
    """Raises RuleError "rank-1-to-5", "extents-positive": a blob has axes, and elements."""
    for x in v if isinstance(v, list) else [v]:
        if not 1 <= x.ndim <= 5:
            raise RuleError("rank-1-to-5", f"{name} {list(x.shape)}")
        if x.size == 0:
            raise RuleError("extents-positive", f"{name} {list(x.shape)}")


def check_inputs(s: OpSchema, given: dict[str, Any]) -> None:
    """Raises RuleError "required-input:<slot>"; FormatError where an input is left out before one that is given: a
    layer lists its inputs by position."""
    for slot in s.inputs:
        if not slot.optional and slot.name not in given:
            raise RuleError(f"required-input:{slot.name}", s.op)
    there = [slot.name in given for slot in s.inputs if not slot.const and slot.name != "captured"]
    if there != sorted(there, reverse=True):
        raise FormatError(f"{s.op}: an input is left out before one that is given, got {', '.join(given)}")


def check_mapping(s: OpSchema, inst: Instance) -> None:
    """Raises FormatError for an input that the rank-5 mapping, whose shapes "must be either length 1 or length 3", does
    not take."""
    given = [a for n, a in inst.args.items() if (x := s.input(n)) is not None and not x.const]
    ranks = {len(x.shape) for a in given for x in (a if isinstance(a, list) else [a])}
    if inst.attrs.get("@mapping") == "rank5" and not ranks <= {1, 3}:
        raise FormatError(f"{s.op}: expected ranks 1 and 3 under the rank-5 mapping, got {sorted(ranks)}")


def check_weights(s: OpSchema, inst: Instance) -> None:
    """Raises RuleError "weight-count:<slot>" for a weight of a stated size that counts and is not there."""
    for slot in s.inputs:
        if not slot.const or slot.name in inst.args or (slot.name == "weights" and "weight" in inst.args):
            continue
        shape = weights.stored_shape(s.op, slot.name, _attr_of(inst, s))
        if shape is not None and 0 not in shape and slot.name not in ignored.unused(s, inst):
            raise RuleError(f"weight-count:{slot.name}", f"no numbers, {s.op} states {list(shape)}")


def check_dynamic(inst: Instance) -> None:
    """Raises RuleError "int8-weights": int8 numbers are those of a layer that quantises its input."""
    w = inst.args.get("weights")
    if isinstance(w, Arg) and (w.dtype is I8) != bool(inst.attrs.get("int8DynamicQuantize")):
        raise RuleError("int8-weights", f"weights of {w.dtype}, int8DynamicQuantize {w.dtype is not I8}")


def _dynamic(inst: Instance, d: Draw) -> bool:
    """Let the layer quantise its input: int8 weights with one scale, no bias.  False where it has no weights."""
    w = inst.args.get("weights")
    if not isinstance(w, Arg):
        return False
    w.dtype, w.recipe, w.values = I8, "ints:-128:127", None
    w.quant = {"bits": 8, "scale": [d.int(1, 16) / 1024]}
    inst.args.pop("bias", None)
    inst.attrs.pop("hasBias", None)
    inst.attrs["int8DynamicQuantize"] = True
    return True


def _dynamic_with_bias(drawn: Callable[[], Instance], d: Draw) -> Instance | None:
    for _ in range(8):
        inst = drawn()
        if _dynamic(inst, d):
            n = inst.tensor("weights").shape[0]
            inst.args["bias"] = Arg(F32, (n,), const=True)
            return _marked(inst, "hasBias", True)
    return None


def _dynamic_of_floats(drawn: Callable[[], Instance]) -> Instance | None:
    for _ in range(8):
        inst = drawn()
        w = inst.args.get("weights")
        if isinstance(w, Arg) and w.quant is None and not inst.attrs.get("hasBias"):
            return _marked(inst, "int8DynamicQuantize", True)
    return None


def _quantise(a: Arg, d: Draw, channels: int) -> None:
    """Turn a float weight into codes: linear (per tensor or per channel) or a lookup table."""
    bits = d.pick((8, 4, 2, 1, 6, 3, 5, 7))
    a.dtype, a.recipe = U8, f"ints:0:{2**bits - 1}"
    if d.chance(3):
        a.quant = {"bits": bits, "lut": [d.int(-64, 64) / 16 for _ in range(2**bits)]}
        return
    n = channels if channels > 1 and d.bool() else 1
    a.quant = {
        "bits": bits,
        "scale": [d.int(1, 16) / 64 for _ in range(n)],
        "bias": [d.int(-16, 16) / 8 for _ in range(n)],
    }
