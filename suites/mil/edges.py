"""What is not moved to an edge (``harness.declare.op_version.nearby``): operands and attributes with a domain of which
no annotation tells; "shapes", "outputs"; "data:NAME" for the elements alone of an operand.

Each line has the sentence of coremltools 9.0 that states the domain.  Elements stand here too where the text gives no
value for what is not finite; the ledger of reach goals counts those as open.
"""

from __future__ import annotations

from harness.declare.schema import OpSchema

KEEPS: dict[str, tuple[str, ...]] = {
    # "the second last dim indicate number of palettes (2**nbits)", where indices are of type uint{nbits}
    "constexpr_lut_to_dense": ("indices", "lut"),
    "constexpr_lut_to_sparse": ("indices_nonzero_data", "lut"),
    # "ceil_mode must be False when pad_type==same"
    **dict.fromkeys(("avg_pool", "max_pool", "l2_pool"), ("ceil_mode", "pad_type")),
    # "a tensor of the probabilities", which nothing can be drawn from where there are none; mode: "logits", "probs"
    "random_categorical": ("shapes", "mode", "data:x"),
    # "1 <= rank <= 3"
    "linear": ("rank:x",),
    # "axis should be in the range [-1, rank - 1]" (type inference of cumsum)
    "cumsum": ("axis",),
    # "the bounding box coordinates must be in the interval [0, H_in - 1] ... and [0, W_in - 1]"
    "crop_resize": ("data:roi", "data:boxes"),
    # the indices are "only returned when return_indices = True"
    "topk": ("return_indices",),
}


def keeps(schema: OpSchema) -> tuple[str, ...]:
    """Of an op version.  An attribute that has a type letter of its own, or names a type, is drawn with that type."""
    letters = schema.extra.get("attr_types") or {}
    typed = [n for n, a in schema.attrs.items() if letters.get(n) in schema.types or a.type == "dtype"]
    return (*typed, *KEEPS.get(schema.op, ()))
