"""Reading and writing by index, and the ops whose answer is an index: gather, scatter, one-hot, top-k, sort, unique,
non-zero, compress, non-maximum suppression."""

from suites.semantics.indexing.boxes import non_max_suppression
from suites.semantics.indexing.gather import gather, gather_elements, gather_nd
from suites.semantics.indexing.order import argsort, topk, unique
from suites.semantics.indexing.scatter import cache_write, scatter, scatter_elements, scatter_nd, scatter_nd_new
from suites.semantics.indexing.select import array_feature, compress, nonzero, nonzero_rows, one_hot

__all__ = [
    "argsort",
    "array_feature",
    "cache_write",
    "compress",
    "gather",
    "gather_elements",
    "gather_nd",
    "non_max_suppression",
    "nonzero",
    "nonzero_rows",
    "one_hot",
    "scatter",
    "scatter_elements",
    "scatter_nd",
    "scatter_nd_new",
    "topk",
    "unique",
]
