"""How an op is declared: annotations, parameters, rules, error classes; entry x schema -> OpVersion."""

from harness.spec.codec import Build, Call, Codec, Fn, Map, Named, Slotted, permuted
from harness.spec.dialect import Dialect
from harness.spec.dims import ShapeMismatch, shape_function
from harness.spec.draw import Draw, T
from harness.spec.entry import Entry
from harness.spec.errors import (
    Context,
    ErrorClass,
    accepted,
    accumulates,
    any_order,
    bounded,
    composed,
    copied,
    exact,
    quantised,
    rounded,
    statistical,
)  # fmt: skip
from harness.spec.expected import Expected, open_at
from harness.spec.opversion import OpVersion
from harness.spec.params import (
    Axes,
    Axis,
    Choice,
    Divisor,
    Each,
    ElementType,
    Flag,
    Integer,
    Ints,
    Opaque,
    Pads,
    Param,
    Real,
    Reals,
    Strings,
)  # fmt: skip
from harness.spec.schema import Attr, OpSchema, Slot
from harness.spec.semantics import Any_ as Any
from harness.spec.semantics import (
    Bool,
    Complex,
    Float,
    Int,
    Num,
    Numeric,
    Real_,
    Semantics,
    Str,
    Tensor,
    Variadic,
    semantics,
)  # fmt: skip
from harness.spec.silent import Part, Silent, beside, first_of, gathered, silent

__all__ = [
    "Any", "Attr", "Axes", "Axis", "Bool", "Build", "Call", "Choice", "Codec", "Complex", "Context", "Dialect",
    "Divisor", "Draw", "Each", "ElementType", "Entry", "ErrorClass", "Expected", "Flag", "Float", "Fn", "Int",
    "Integer", "Ints", "Map", "Named", "Num", "Numeric", "OpSchema", "OpVersion", "Opaque", "Pads", "Param", "Part",
    "Real", "Real_", "Reals", "Semantics", "ShapeMismatch", "Silent", "Slot", "Slotted", "Str", "Strings", "T",
    "Tensor", "Variadic", "accepted", "accumulates", "any_order", "beside", "bounded", "composed", "copied", "exact",
    "first_of", "gathered", "open_at", "permuted", "quantised", "rounded", "semantics", "shape_function", "silent",
    "statistical",
]  # fmt: skip
