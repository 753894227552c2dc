"""The comparison rules once more, element by element in plain Python: the oracle of the native kernel."""

import math

import numpy as np

from harness.core.dtypes import float_max, of, smallest_normal
from harness.tolerance import ulp


def passes(a, w, t, d, signed_zero=False, flush=False):
    """Does one float pass?  a: of type d, w: f64, t: absolute tolerance."""
    a, w = float(a), float(w)
    has_inf = bool(np.isinf(np.array(np.inf).astype(d.np).astype(np.float64)))
    edge = float_max(d) + float(ulp(float_max(d), d)) / 2  # from here on values round to infinity
    if math.isnan(w):
        return math.isnan(a)
    if math.isnan(a):
        return not has_inf and not math.isinf(w) and abs(w) + t >= edge
    if t == math.inf:
        return True
    if math.isinf(w):
        return a == w
    if math.isinf(a):
        return math.copysign(1, a) == math.copysign(1, w) and abs(w) + t >= edge
    if a == 0 and w == 0:
        return not signed_zero or math.copysign(1, a) == math.copysign(1, w)
    if abs(a - w) <= t:
        return True
    return flush and a == 0 and abs(w) < smallest_normal(d)


def bad(actual, reference, bound=0.0, ulps=0.0, **kw):
    """Flat indices of the elements that do not pass."""
    d = of(actual)
    w = np.asarray(reference, np.float64)
    t = np.broadcast_to(np.asarray(bound, np.float64), w.shape) + ulps * ulp(w, d)
    rows = zip(actual.ravel().astype(np.float64), w.ravel(), t.ravel(), strict=True)
    return [i for i, (x, y, z) in enumerate(rows) if not passes(x, y, z, d, **kw)]
