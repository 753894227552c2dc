"""Elementwise operations, all dialects: mathematics, activations, arithmetic, logic.

Float results are f64 and rounded once by the framework; integers and bools come in their own type.

What is public in a module of this family is public here: a new meaning needs no line.
"""

from suites.semantics.elementwise.activation import *
from suites.semantics.elementwise.arithmetic import *
from suites.semantics.elementwise.logic import *
from suites.semantics.elementwise.math import *
