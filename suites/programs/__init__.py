"""Programs of several ops, for any dialect: written down, run node by node, judged by propagated error.

A dialect of programs is a ``ProgramDialect`` with a ``Language`` (how its nodes run) and a ``Program`` (how its
generators write one down).  ``values`` tells type, shape, producer and users of every value, for what
changes a program.
"""

from suites.programs.dialect import MOST, ProgramDialect, program_schema
from suites.programs.language import Language
from suites.programs.program import Make, Program, either
from suites.programs.unfold import Unfolded, literal
from suites.programs.values import Use, Value, operands, values

__all__ = [
    "MOST",
    "Language",
    "Make",
    "Program",
    "ProgramDialect",
    "Unfolded",
    "Use",
    "Value",
    "either",
    "literal",
    "operands",
    "program_schema",
    "values",
]
