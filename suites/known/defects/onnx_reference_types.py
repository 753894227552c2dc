"""What comes where a difference is listed (``harness/ledger/defect_models.py``): types and forms of onnx.reference."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.dtypes import of, smallest_normal
from harness.ledger.defect_models import Near, Such, Turned

Outputs = list[Any] | None


def _as(e: Any, value: np.ndarray, kinds: tuple[Any, ...], within: Any) -> Turned:
    """An output that comes in one of these types, with this value but for an absolute error."""

    def due(a: Any) -> Any:
        if getattr(a, "shape", None) != value.shape or a.dtype not in kinds:
            raise ValueError("another type or shape")
        x, y = a.astype(np.float64), value.astype(np.float64)
        if not np.all((x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= within)):
            raise ValueError("another value")
        return e.value

    return Turned(e, due)


def statistics_in_the_type(g: Given) -> Outputs:
    """LayerNormalization, RMSNormalization: an output that is due in the stash type, or in the type of the scale, comes
    in the type of X and is computed in it.  Where that type overflows on the way, the result of the overflow comes.
    Sums of bf16 are rounded at each step, which many terms do not survive."""
    x, scale = g["X"], g["scale" if g.inst.op == "RMSNormalization" else "Scale"].astype(np.float64)
    eps, top = 2.0 ** -(of(x).frac or 0), float(np.nanmax(np.abs(np.where(np.isfinite(x), x, 0)), initial=0.0))
    out: list[Any] = []
    with np.errstate(all="ignore"):
        narrow, over = _normalised_in_the_type(g)
    for i, (e, y) in enumerate(zip(g.expected, narrow, strict=False)):
        value = np.where(over[i] | ~np.isfinite(y) | (of(x).name == "bf16"), y, e.real)
        if e.value.dtype == x.dtype:
            out.append(Near(value, 64 * eps * (np.abs(e.real) + 1)) if i == 0 else None)
        else:  # a mean cancels, the inverse of a deviation is off by as much as the variance
            least = 1e-6 if x.dtype == np.float16 else 2.0**-148  # a subnormal of f32, which the scale multiplies
            least *= np.abs(scale).max(initial=1, where=np.isfinite(scale) & (i == 0))
            out.append(_as(e, value, (x.dtype,), 64 * eps * (np.abs(e.real) + (top if i == 1 else 0)) + least))
    return out


def _normalised_in_the_type(g: Given) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Result, mean and inverse of the deviation as NumPy computes them in the type of X, widened to f64, and of each
    the elements behind a variance that is no finite number."""
    x = g["X"]
    axes = tuple(range(g.attr("axis", -1) % max(1, x.ndim), x.ndim))
    scale, bias = (g["scale"], None) if g.inst.op == "RMSNormalization" else (g["Scale"], g["B"])
    n = int(np.prod([x.shape[a] for a in axes], dtype=int))
    if g.inst.op == "RMSNormalization":
        mean, variance = np.zeros_like(x[:1]), np.mean(np.power(x, 2), axis=axes, keepdims=True)
        centred = x
    else:
        mean = np.sum(x, axis=axes, keepdims=True) / n
        centred = x - mean
        variance = np.sum(centred * centred, axis=axes, keepdims=True) / n
    inverse = np.reciprocal(np.sqrt(variance + g.attr("epsilon", 1e-5)))
    y = centred * inverse * scale
    told = [(y if bias is None else y + bias), mean, inverse]
    over = ~np.isfinite(variance.astype(np.float64))
    return [t.astype(x.dtype).astype(np.float64) for t in told], [np.broadcast_to(over, x.shape), over, over]


def scores_in_the_type(g: Given) -> Outputs:
    """The result has the type of the input, or f64.  The coefficients of a linear model are brought into it too; of a
    vector its result is one."""
    e, kinds = g.expected[0], (g["X"].dtype, np.dtype(np.float64))
    shape = e.value.shape[1:] if g["X"].ndim == 1 else e.value.shape
    if g.inst.op == "LinearRegressor" and g.attr("intercepts") is None and g["X"].dtype.kind == "f":
        return [_as(e, np.full(shape, np.nan), kinds, 0)]  # absent ones are no numbers
    if g.inst.op == "LinearRegressor" and g["X"].dtype.kind == "i":
        whole = {k: np.trunc(g.attr(k)).tolist() for k in ("coefficients", "intercepts") if g.attr(k) is not None}
        told = g.reevaluate(whole)
        if told is None:
            return None
        return [_as(e, told[0].real.reshape(shape), kinds, 0)]
    if g["X"].dtype.kind == "i" and g.inst.op != "Normalizer":  # every addition of a leaf is cut to an integer
        return [_as(e, e.real, kinds, 1e-6 * np.abs(e.real) + len(set(g.attr("nodes_treeids"))) + 1)]
    y = e.real.reshape(shape)
    return [_as(e, y, kinds, 1e-6 * (1 + np.abs(y)))]


def norms_in_the_type(g: Given) -> Outputs:
    """Normalizer: the same, over the sum of the magnitudes, or the largest of them, or 1e-30.  The lowest integer has
    itself for its magnitude."""
    x = g["X"].astype(np.float64)
    size = np.abs(g["X"]).astype(np.float64)
    how = g.attr("norm", "MAX")
    whole = {"L1": size.sum(-1, keepdims=True), "L2": np.sqrt((x * x).sum(-1, keepdims=True))}.get(how)
    whole = size.max(-1, keepdims=True) if whole is None else whole
    with np.errstate(all="ignore"):
        y = x / np.maximum(whole, 1e-30)
    return [_as(g.expected[0], y, (g["X"].dtype, np.dtype(np.float64)), 1e-6 * np.abs(y))]


def features_in_the_type(g: Given) -> Outputs:
    """FeatureVectorizer: the result has the type of the operands."""
    e = g.expected[0]
    size = np.abs(e.value.astype(np.float64))
    return [_as(e, e.value, (np.result_type(*g["X"]),), np.where(np.isinf(size), np.inf, 2.0**-23 * size + 1e-44))]


def vectors_as_columns(g: Given) -> Outputs:
    """FeatureVectorizer: a vector is a column, cut or filled up to its columns."""
    parts = []
    for x, n in zip(g["X"], g.attr("inputdimensions")):
        x = x.reshape(-1, 1) if x.ndim == 1 else x
        parts.append(np.pad(x[:, :n], [(0, 0), (0, max(0, n - x.shape[1]))]))
    y = np.concatenate(parts, 1)
    return [_as(g.expected[0], y, (y.dtype,), 0)]


def dropped_in_another_type(g: Given) -> Outputs:
    """Dropout: in training the result is computed, and given, in the type that NumPy computes with the ratio in."""
    x, ratio = g["data"], g["ratio"]
    factor = 1.0 / (1.0 - float(ratio))
    narrow = min(of(x).frac or 0, of(ratio).frac or 0)
    least = smallest_normal(of(x)) * 2.0 ** -(of(x).frac or 0)  # a subnormal number is rounded to a multiple of it

    def due(a: Any) -> Any:
        wide = a.astype(np.float64)
        full = x.astype(np.float64) * factor
        if a.shape != x.shape or (a.dtype == x.dtype and narrow == of(x).frac):
            raise ValueError("the type that is due")
        near = np.abs(wide - full) <= 2.0 ** (2 - narrow) * np.abs(full) + least
        lost = np.isinf(full) & np.isnan(wide)  # 0 * inf, where it is dropped
        if not np.all((wide == 0) | near | np.isnan(full) | np.isinf(wide) | lost):
            raise ValueError("another value")
        return np.where(lost, np.nan, np.where((wide == 0) & (full != 0), 0, full)).astype(x.dtype)

    return [Turned(g.expected[0], due), *[None] * (len(g.expected) - 1)]


def fractions_in_no_category(g: Given) -> Outputs:
    """OneHotEncoder: a number with a fraction is in no category."""
    x = g["X"]
    return [np.where((x != np.trunc(x))[..., None], 0, g.expected[0].value)]


def _unwrapped(e: Any, asked: bool) -> Turned:
    """asked: whether an element is there is asked, to which an empty optional, a list of None, says yes."""

    def due(a: Any) -> Any:
        if asked and (a is None or (isinstance(a, list) and len(a) == 1 and a[0] is None)):
            return e.value
        if isinstance(a, list) and len(a) == 1 and (not isinstance(e.value, list) or isinstance(a[0], list)):
            return a[0]
        truths = getattr(e.value, "dtype", None) == np.bool_ and getattr(a, "dtype", None) == np.bool_
        if asked and truths and a.size == e.value.size and np.all(a.reshape(e.value.shape) | ~e.value):
            return e.value
        if getattr(a, "size", -1) == getattr(e.value, "size", -2):  # rows of one number have an axis more
            return a.reshape(e.value.shape)
        return a

    return Turned(e, due)


def optional_in_a_list(g: Given) -> Outputs:
    """An optional is a list of one element, an empty one a list of None."""
    graphs = [b for b in map(g.attr, ("body", "then_branch", "else_branch")) if b is not None]
    asked = any(n.op == "OptionalHasElement" for b in graphs for n in b.nodes)
    return [_unwrapped(e, asked) for e in g.expected]


def image_as_the_file_has_it(g: Given) -> Outputs:
    """ImageDecoder: the samples of the file, whatever they mean."""
    from PIL import Image

    samples = np.array(Image.open(BytesIO(g["encoded_stream"].tobytes())))
    if g.attr("pixel_format", "RGB") == "BGR" and samples.ndim == 3:
        samples = samples[:, :, ::-1]
    return [_as(g.expected[0], samples, (samples.dtype,), 2)]


def grey_cut_off(g: Given) -> Outputs:
    """ImageDecoder: grey of 16 bits is cut off at 255."""
    return [np.full(g.expected[0].value.shape, 255, np.uint8)]


def zeros_copied_from_the_groups(g: Given) -> Outputs:
    """GroupNormalization of no element: the body reshapes the groups to the shape of X, and an extent of 0 there is
    copied from the axis of the groups at the same place."""
    x = g["X"]
    groups = (x.shape[0], g.attr("num_groups"), 0)
    shape = [n or (groups[k] if k < 3 else 0) for k, n in enumerate(x.shape)]
    if x.size or 0 not in shape or tuple(shape) == x.shape:
        return None
    shows = np.zeros(shape, x.dtype)
    return [Such(lambda a: a.shape == shows.shape and a.dtype == x.dtype, shows)]


def imaginary_part_left_out(g: Given) -> Outputs:
    """Resize of complex numbers: elements are written into an array of real ones, after weights of 0 and 1."""
    y = g.expected[0].value
    mixed = not np.isfinite(g["X"]).all()  # 0 * inf
    return [Near(y.real.astype(y.dtype), np.full(y.shape, np.inf if mixed else 0.0))]
