"""How an op is declared: annotations, parameters, rules, error classes; entry x schema -> OpVersion."""

from harness.core.dims import ShapeMismatch, shape_function
from harness.declare.codec import Build, Call, Codec, Fn, Map, Named, Slotted, permuted
from harness.declare.dialect import Dialect
from harness.declare.entry import Entry
from harness.declare.expected import Expected, open_at
from harness.declare.op_version import OpVersion
from harness.declare.params import (
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
from harness.declare.schema import Attr, OpSchema, Slot
from harness.declare.semantics import Any_ as Any
from harness.declare.semantics import (
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
from harness.generate.draw import Draw, T
from harness.tolerance.classes import (
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
from harness.tolerance.underspecified import Part, Silent, beside, first_of, gathered, silent

__all__ = [
    "Any", "Attr", "Axes", "Axis", "Bool", "Build", "Call", "Choice", "Codec", "Complex", "Context", "Dialect",
    "Divisor", "Draw", "Each", "ElementType", "Entry", "ErrorClass", "Expected", "Flag", "Float", "Fn", "Int",
    "Integer", "Ints", "Map", "Named", "Num", "Numeric", "OpSchema", "OpVersion", "Opaque", "Pads", "Param", "Part",
    "Real", "Real_", "Reals", "Semantics", "ShapeMismatch", "Silent", "Slot", "Slotted", "Str", "Strings", "T",
    "Tensor", "Variadic", "accepted", "accumulates", "any_order", "beside", "bounded", "composed", "copied", "exact",
    "first_of", "gathered", "open_at", "permuted", "quantised", "rounded", "semantics", "shape_function", "silent",
    "statistical",
]  # fmt: skip
