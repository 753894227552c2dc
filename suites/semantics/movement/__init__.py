"""Data movement: the elements of the result are elements of the inputs (or of a pattern), never computed.

It works for every dtype, strings included; NumPy does the moving.  All dialects share it: layouts, spellings of masks
and orders of pads are the entries' codecs.

What is public in a module of this family is public here: a new meaning needs no line.
"""

from suites.semantics.movement.blocks import *
from suites.semantics.movement.join import *
from suites.semantics.movement.making import *
from suites.semantics.movement.order import *
from suites.semantics.movement.padding import *
from suites.semantics.movement.shape import *
from suites.semantics.movement.slicing import *
