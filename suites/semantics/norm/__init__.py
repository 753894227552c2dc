"""Normalisation: softmax and its kin, by mean and variance, by a norm, across channels.

What is public in a module of this family is public here: a new meaning needs no line.
"""

from suites.semantics.norm.batch import *
from suites.semantics.norm.moments import *
from suites.semantics.norm.powers import *
from suites.semantics.norm.softmax import *
