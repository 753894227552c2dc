"""MIL graph passes: a program before and after a pass means the same.

An instance is a whole program; ``pattern`` says whether it holds what the pass looks for ("match") or only nearly so.
The first output tells whether the pass is to change anything, the others are those of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
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
        w = Writer(
            lambda op, at: mil.effective(op, at, "coreml" if op.startswith("coreml") else "").schema, str(inst.opset)
        )
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


# Passes without programs of their own yet, and why.
_OPTIONS = "does nothing before it is given options, which a program here cannot carry"
_QUANTISED = "its patterns are made of quantised constants, whose rounding a propagated bound does not cover"
ABSENT = {
    "WeightRandomizer": "replaces weights by random ones: the program after it means something else on purpose",
    "add_int16_cast": "narrows integers where their range is known, around gathers only: see the round trip of gather",
    "canonicalize_inplace_pattern": "rearranges torch's slice updates of states; an evaluation has no order to lose",
    "canonicalize_quantized_lut_pattern": _QUANTISED,
    "const_deduplication": "changes which constants are shared, which neither values nor the ops show",
    "dedup_op_and_var_names": "changes names only, which neither values nor ops show",
    "distributive_quantized_binary_op_scale_normalization": _QUANTISED,
    "expand_dynamic_linear": "takes linear with weights computed at run time, which no valid program has",
    "image_input_preprocess": "takes image inputs, which plain programs do not have",
    "lower_complex_dialect_ops": "the round trip of every op of the complex dialect goes through it",
    "materialize_symbolic_shape_program": _OPTIONS,
    "merge_affine_dequantize_with_consecutive_ops": _QUANTISED,
    "prefer_state_in_downstream": "chooses between a state and the value just written to it, which are the same",
    "remove_symbolic_reshape": "takes programs with symbolic extents, which plain programs do not have",
    "reorder_lut_per_channel_scale": _QUANTISED,
    "sanitize_input_output_names": "changes names only, which neither values nor ops show",
    "scaled_dot_product_attention_sliced_q": _OPTIONS,
    "update_output_dtypes": "takes what the caller asked for as output types, which plain programs do not say",
}

dialect = Passes("suites.passes")
op = dialect.op
__all__ = ["ABSENT", "dialect", "op"]
