"""Reading and writing by index, and the ops whose answer is an index: gather, scatter, one-hot, top-k, sort, unique,
non-zero, compress, non-maximum suppression.

What is public in a module of this family is public here: a new meaning needs no line.
"""

from suites.semantics.indexing.boxes import *
from suites.semantics.indexing.gather import *
from suites.semantics.indexing.order import *
from suites.semantics.indexing.scatter import *
from suites.semantics.indexing.select import *
