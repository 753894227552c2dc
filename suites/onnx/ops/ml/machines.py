"""Support vectors that give one number: regression, and what is unlike the training data."""

from __future__ import annotations

import numpy as np

from harness.declare import (
    Call,
    Checks,
    Context,
    Draw,
    Evaluation,
    Sampling,
    Spelling,
    bounded,
    gathered,
    underspecified,
)
from harness.tolerance import gamma
from suites.onnx import op
from suites.onnx.ops.ml.common import ML, Array, quarters, require, single
from suites.onnx.ops.ml.models import points, width
from suites.onnx.ops.ml.scores import (
    far,
    floats,
    kernel,
    kernel_error,
    kernel_size,
    leaves,
    linear_error,
    open_scores,
    posted,
    rows_of,
    sizes,
    transformed,
)
from suites.semantics import tabular as s


def _parts(c: Call) -> tuple[Array, Array, Array, float]:
    """Rows, support vectors, their weights, rho.  Raises RuleError "sizes-fit"."""
    x, n, given = rows_of(c), c.attr("n_supports"), c.attr("support_vectors") or ()
    w = floats(c, "coefficients")
    require(n * x.shape[-1] == len(given), "sizes-fit", f"{len(given)} numbers for {n} support vectors")
    require(len(w) == n or (not n and len(w) == x.shape[-1]), "sizes-fit", f"{len(w)} coefficients for {n} vectors")
    return x, np.array(given, np.float64).reshape(n, x.shape[-1]), w, (c.attr("rho") or [0.0])[0]


def _decisions(c: Call) -> list[Array]:
    """The decision function; without support vectors, beside it what else it may be, for the text has no linear
    machine: rho subtracted, or all that is left where no vector is summed."""
    x, vectors, w, rho = _parts(c)
    with np.errstate(all="ignore"):
        if len(vectors) == len(w):
            return [(kernel(c, x, vectors) @ w + rho).reshape(-1, 1)]
        y = (x @ w).reshape(-1, 1)
    return [y + rho, y - rho, np.full_like(y, rho)]


def _finished(c: Call, y: Array) -> Array:
    """Of a one-class machine the sign: +1 for what is like the training data, else -1.

    Source: SVMRegressor-1, "one-class SVM anomaly detection"; Schoelkopf et al., Estimating the support of a
    high-dimensional distribution, equation 3.10: f(x) = sgn(sum alpha_i k(x_i, x) - rho)."""
    return s.post(np.where(y > 0, 1.0, -1.0) if c.attr("one_class") else y, c.attr("post_transform"))


def _regress(c: Call) -> Array:
    return _finished(c, _decisions(c)[0])


def _size(c: Call) -> tuple[Array, Array]:
    """(what no partial result exceeds, whether a feature is beyond f32), [rows, 1]."""
    x, vectors, w, rho = _parts(c)
    with np.errstate(all="ignore"):
        if len(vectors) == len(w):
            size = kernel_size(c, x, vectors) @ np.maximum(np.abs(w), 1.0) + abs(rho)
        else:
            size = sizes(x) @ np.maximum(np.abs(w), 1.0) + abs(rho)
    return size.reshape(-1, 1), far(x)


def _error(c: Call, u: float) -> Array:
    """Of the decision function."""
    x, vectors, w, rho = _parts(c)
    with np.errstate(all="ignore"):
        if len(vectors) != len(w):
            return linear_error(x, w.reshape(1, -1), np.array([rho]), u)
        size, error = kernel_error(c, x, vectors, u)
        whole = error @ np.abs(w) + gamma(len(w) + 8, u) * (size @ np.abs(w) + abs(rho))
    return np.asarray(whole.reshape(-1, 1))


def _bound(ctx: Context) -> Array:
    c, u = ctx.call, ctx.acc_u
    error = 0.0 if c.attr("one_class") else posted(_decisions(c)[0], _error(c, u), c.attr("post_transform"), u)
    return error + 16 * u * np.abs(ctx.wide) + ctx.ulp


def _open(c: Call) -> str | None:
    """What the text leaves open.  Of a one-class machine on the border either sign; and the text says neither that the
    sign is what post_transform is applied to, nor that it is left as it is."""
    ys, how, error = _decisions(c), c.attr("post_transform"), _error(c, 2.0**-24)
    size, beyond = _size(c)
    free = leaves(size) | beyond
    linear = "SVMRegressor without support vectors: the text has no linear machine"
    parts: list[str | None] = []
    if not c.attr("one_class"):
        parts.append(open_scores(ys[0], free, how, 0))
        if len(ys) > 1:
            readings = [_finished(c, y) for y in ys[1:]]
            parts.append(underspecified(linear, np.ones(free.shape, bool), *readings, within=2 * error + 2.0**-20))
        return gathered(*parts)
    border = free | np.logical_or.reduce([(np.abs(y) <= error) | np.isnan(y) for y in ys])
    signs = [np.full(free.shape, v) for v in (1.0, -1.0, 0.0, np.nan)]  # sgn(0) is 0
    either = [*(s.post(v, how) for v in signs), *signs]
    raw = [np.where(y > 0, 1.0, -1.0) for y in ys]
    return gathered(
        underspecified("SVMRegressor: a one-class machine on its border", border, *either, within=2.0**-20),
        underspecified(
            "SVMRegressor: is the sign of a one-class machine transformed?",
            _finished(c, ys[0]) != raw[0],
            raw[0],
        ),
        underspecified(linear, np.ones(free.shape, bool), *map(s.post, raw, [how] * 3), *raw, within=2.0**-20)
        if len(ys) > 1
        else None,
    )


def _draw(d: Draw) -> dict:
    """Now and then without support vectors, of which no number says how many: "n_supports" is 0 then."""
    f, k = min(width(d), 17), 0 if d.chance(8) else d.int(1, 4)
    kind = d.pick(("LINEAR", "POLY", "RBF", "SIGMOID"))
    out = {
        "X": points(d, d.types["T"], f, -4, 4),
        "coefficients": quarters(d, k or d.pick((0, f))),
        "support_vectors": quarters(d, k * f, -4, 4),
        "n_supports": k,
        "rho": [d.int(-8, 8) / 8],
        **transformed(d),
    }
    if not k:
        said = ("n_supports", "support_vectors", "coefficients")
        out = {n: v for n, v in out.items() if n not in said or v or d.bool()}
    if d.bool():
        out["one_class"] = d.int(0, 1)
    if kind != "LINEAR" or d.bool():
        out["kernel_type"] = kind
    if kind != "LINEAR" or d.bool():
        out["kernel_params"] = [d.pick((0.25, 0.5)), d.pick((0.0, 1.0)), float(d.int(1, 3))]
    return out


op(
    "SVMRegressor",
    Evaluation(
        _regress,
        bounded(
            _bound,
            "64 F u, and gamma(supports + 8), of the magnitudes that add up in kernels and in their sum, + 16 u |y| "
            "+ ulp; of a one-class machine 16 u |y| + ulp",
        ),
        "ONNX ai.onnx.ml SVMRegressor-1",
    ),
    Spelling(out_dtype=single),
    Sampling(_draw),
    Checks(ambiguous=_open),
    domain=ML,
)
