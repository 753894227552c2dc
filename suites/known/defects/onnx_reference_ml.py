"""What comes where a difference is listed (``harness/ledger/defect_models.py``): ai.onnx.ml and strings in
onnx.reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.ledger.defect_models import Near, Such

Outputs = list[Any] | None
_LEAST = np.float32(1e-30)


def norms_no_less_than_1e_30(g: Given) -> Outputs:
    """Normalizer: over the largest magnitude, the sum of them or the root of the squares, which are at least 1e-30."""
    x, how = g["X"], g.attr("norm", "MAX")
    with np.errstate(all="ignore"):
        size = {"L1": np.abs(x).sum(-1, keepdims=True), "L2": np.sqrt(np.square(x).sum(-1, keepdims=True))}.get(how)
        size = np.abs(x).max(-1, keepdims=True) if size is None else size
        y = x / np.maximum(size, _LEAST)
    return [Near(y, 1e-6 * np.abs(y) + 2.0**-149)]


def one_label_or_nothing(g: Given) -> Outputs:
    """LinearClassifier: a single label where its score is not below 0, or 1/2 once it is transformed; 0 elsewhere."""
    least = 0.0 if g.attr("post_transform", "NONE") == "NONE" else 0.5
    scores = g.expected[1].value
    return [np.where(scores[:, 0] >= least, g.attr("classlabels_ints")[0], 0).astype(np.int64), None]


def one_column_a_category(g: Given) -> Outputs:
    """OneHotEncoder: a category that is listed twice has one column, whose number is its last place among all."""
    cats = g.attr("cats_strings") or g.attr("cats_int64s")
    where = {k: i for i, k in enumerate(cats)}
    y = np.zeros((*g["X"].shape, len(where)), np.float32)
    for at, v in np.ndenumerate(g["X"]):
        k = where.get(v, -1)
        if k >= len(where):
            return None
        if k >= 0:
            place = (*at, k)
            y[place] = 1
    return [Such(lambda a: a.shape == y.shape and np.array_equal(a, y), y)]


def zeros_of_no_map(g: Given) -> Outputs:
    """DictVectorizer: of a map without elements integers; of no key f64, NumPy's type of an empty list."""
    shape = g.expected[0].value.shape
    y = np.zeros(shape, np.int64 if shape[0] else np.float64)
    return [Such(lambda a: a.dtype == y.dtype and a.shape == y.shape and not a.any(), y)]


def strings_without_empty_ones(g: Given) -> Outputs:
    """StringNormalizer: stop words are compared as they are after the change of case, unless is_case_sensitive; and
    strings that are empty are dropped."""
    x, stop, how = g["X"], set(g.attr("stopwords") or ()), g.attr("case_change_action", "NONE")
    change = {"LOWER": str.lower, "UPPER": str.upper}.get(how, str)
    if g.attr("is_case_sensitive", 0):
        kept = [change(s) for s in x.ravel() if s not in stop]
    else:
        stops = {change(w) for w in stop}
        kept = [s for s in map(change, x.ravel()) if s not in stops]
    y = np.array([s for s in kept if s] or [""], object)
    y = y.reshape(1, -1) if x.ndim == 2 else y
    return [Such(lambda a: a.shape == y.shape and a.tolist() == y.tolist(), y)]


def no_numbers_of_a_vector(g: Given) -> Outputs:
    """LinearRegressor: of a vector the result is one; absent intercepts are no numbers."""
    y = np.full(g.expected[0].value.shape[1:], np.nan, np.float32)
    return [Such(lambda a: a.dtype == y.dtype and a.shape == y.shape and bool(np.isnan(a).all()), y)]
