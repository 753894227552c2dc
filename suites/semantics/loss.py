"""Losses over class scores."""

from __future__ import annotations

from typing import Any as Object

import numpy as np

from harness.core.dtypes import float_max, of, smallest_normal
from harness.core.errors import RuleError
from harness.declare import Choice, Context, Float, Int, Integer, T, accumulates, composed, semantics, underspecified
from harness.generate.draw import Draw
from harness.tolerance import gamma
from harness.tolerance.underspecified import of_result

Array = np.ndarray
MODES = ("mean", "sum", "none")


def _chosen(logp: Array, target: Array, weight: Object, ignore: Object) -> tuple[Array, Array]:
    """Losses and weights per sample, both 0 where ignored.  Raises RuleError "class-in-range"."""
    c = logp.shape[1]
    skip = target == ignore if ignore is not None else np.zeros(target.shape, bool)
    t = np.where(skip, 0, target).astype(np.int64)
    if ((t < 0) | (t >= c)).any():
        raise RuleError("class-in-range", f"a class outside 0..{c - 1}")
    w = np.ones(c) if weight is None else np.asarray(weight, np.float64)
    per = np.where(skip, 0.0, w[t])
    picked = np.take_along_axis(logp, t[:, None], 1)[:, 0]
    return np.where(skip, 0.0, -picked * per), per


def reduced(loss: Array, per: Array, mode: str) -> Array:
    """The losses, their sum, or their sum over the sum of weights."""
    if mode == "none":
        return loss
    with np.errstate(all="ignore"):
        return np.asarray(loss.sum() if mode == "sum" else loss.sum() / per.sum())


_BEYOND = "weighted losses, or weights, that leave the type on the way to their sum"
_MIXED = "weighted losses beyond the type, or a quotient of weights that cancel or vanish"


def _sums_mixed(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """Weighted losses that overflow on the way to their sum, or whose weights lose digits to underflow or to each
    other before they divide it."""
    if params["reduction"] == "none":
        return None
    x = inputs["x"].astype(np.float64)
    fine = bool(np.isfinite(x).all()) and _in_range(x, inputs)
    w = np.ones(1) if inputs["weight"] is None else np.abs(inputs["weight"].astype(np.float64))
    least = float(w[w > 0].min(initial=1.0))
    signs = inputs["weight"] is not None and bool((inputs["weight"].astype(np.float64) < 0).any())
    if fine and least * 2.0**-24 > smallest_normal(of(inputs["x"])) and not (signs and params["reduction"] == "mean"):
        return None
    return underspecified(_MIXED, np.True_)


def _in_range(x: Array, inputs: dict[str, Object]) -> bool:
    """Do sums of the finite among the losses x, and of their weights, stay within the type?"""
    w = np.ones(1) if inputs["weight"] is None else np.abs(inputs["weight"].astype(np.float64))
    n = max(1, inputs["target"].size)
    with np.errstate(all="ignore"):
        size = float(np.abs(np.where(np.isfinite(x), x, 0.0)).max(initial=0.0))
        return max(size, 1.0) * float(w.max(initial=0.0)) * n < float_max(of(inputs["x"]))


@semantics(
    error=accumulates(lambda ctx: np.size(ctx.inputs["target"]) + 2.0),
    source="ONNX NegativeLogLikelihoodLoss-12..22",
    data={"x": ("unit", "small", "uniform:-4:4", "uniform:-1000:1000")},
    ambiguous=lambda i, p: _sums_mixed(i, p),
)
def nll_loss(
    x: Float[Array, "n c *s"],
    target: Int[Array, "n *s"],
    weight: Float[Array, "c"] | None = None,
    *,
    reduction: Choice[str, MODES] = "mean",
    ignore_index: Integer | None = None,
) -> Array:
    """-weight[t] * x[n, t, ...], reduced; ``ignore_index`` counts neither in the sum nor in the mean.

    Raises RuleError "class-in-range".
    """
    return reduced(*_chosen(x.astype(np.float64), target, weight, ignore_index), reduction)


def _draw(d: Draw, scores: str, target: str, weight: str) -> dict:
    n, c = d.extent(1, 4), d.extent(1, 6)
    if d.chance(24) and not d.breaking:
        c = d.pick((17, 130, 300))
    elif d.empty and d.bool():
        n = c = 0
    s = d.shape(0, max(0, min(d.max_rank - 2, 6)), lo=1)
    if d.max_rank > 5 and d.chance(64):  # labels of eight axes
        s = tuple(d.int(1, 2) for _ in range(7))
    out: dict[str, Object] = {scores: T((n, c, *s)), "reduction": d.pick(MODES)}
    kind = d.dtype(target)
    ignored = d.chance(3)
    if ignored:
        out["ignore_index"] = d.pick((-1, 0, c - 1, 255, 2**24 + 2, -(2**31), 2**31 - 1))
    count = n * int(np.prod(s))
    values = [d.int(0, max(c, 1) - 1) for _ in range(count)]
    if not count and d.bool():
        out["reduction"] = "sum"
    if ignored and count > 1:
        values[d.int(1, count - 1)] = out["ignore_index"]
        values[0] = next((k for k in range(c) if k != out["ignore_index"]), values[0])
        if values[0] == out["ignore_index"]:
            out["reduction"] = "sum"  # nothing is left to average
    out[target] = T((n, *s), values=values, dtype=kind)
    if d.bool():
        out[weight] = T((c,), "uniform:0.25:2")
    return out


@nll_loss.breaks("class-in-range")
def _no_class(d: Draw) -> dict:
    """A class that there is not, which is not the ignored one."""
    c = d.int(1, 3)
    out: dict[str, Object] = {"reduction": d.pick(MODES)}
    if d.bool():
        out["ignore_index"] = -100
    return {**out, "x": T((2, c)), "target": T((2,), values=[0, d.pick((c, c + 1, -1))], dtype=d.dtype("target"))}


@nll_loss.draw
def _draw_nll(d: Draw) -> dict:
    return _draw(d, "x", "target", "weight")


def _log_softmax(x: Array) -> Array:
    v = x.astype(np.float64)
    if not v.size:
        return v
    with np.errstate(all="ignore"):
        z = v - v.max(axis=1, keepdims=True)
        return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def _cross_bound(ctx: Context) -> Array:
    """(4 max|x - m| + C + 16 + 2|l|) u per sample, summed with the weights, plus the rounding of the sum"""
    i, p = ctx.inputs, ctx.params
    x = np.asarray(i["x"], np.float64)
    if not x.size:
        return np.zeros(np.shape(ctx.wide))
    loss, per = _chosen(_log_softmax(x), np.asarray(i["target"]), i.get("weight"), p["ignore_index"])
    far = np.abs(x - x.max(axis=1, keepdims=True)).max(axis=1) + np.abs(x).max(axis=1)
    each = ctx.acc_u * (4 * far + x.shape[1] + 16) * np.abs(per) + 2 * ctx.acc_u * np.abs(loss)
    if p["reduction"] == "none":
        return each + ctx.ulp
    total = each.sum() + gamma(loss.size + 2, ctx.acc_u) * np.abs(loss).sum()
    if p["reduction"] == "mean":
        with np.errstate(all="ignore"):
            total = total / abs(per.sum()) + gamma(loss.size + 2, ctx.acc_u) * np.abs(ctx.wide)
    return np.asarray(total) + ctx.ulp


def _logp_bound(ctx: Context) -> Array:
    """(4 max|x - m| + C + 16) u"""
    x = np.asarray(ctx.inputs["x"], np.float64)
    if not x.size:
        return np.zeros(x.shape)
    far = np.abs(x - x.max(axis=1, keepdims=True)).max(axis=1, keepdims=True) + np.abs(x).max(axis=1, keepdims=True)
    return np.broadcast_to(ctx.acc_u * (4 * far + x.shape[1] + 16), x.shape) + 2 * ctx.ulp


@semantics(
    error=(composed(_cross_bound), composed(_logp_bound)),
    source="ONNX SoftmaxCrossEntropyLoss-12, -13",
    data={"x": ("unit", "small", "uniform:-4:4", "uniform:-1000:1000")},
    ambiguous=lambda i, p: _cross_mixed(i, p),
)
def softmax_cross_entropy(
    x: Float[Array, "n c *s"],
    target: Int[Array, "n *s"],
    weight: Float[Array, "c"] | None = None,
    *,
    reduction: Choice[str, MODES] = "mean",
    ignore_index: Integer | None = None,
) -> tuple[Array, Array]:
    """The negative log likelihood loss of log_softmax(x) over classes, and that log_softmax."""
    logp = _log_softmax(x)
    return reduced(*_chosen(logp, target, weight, ignore_index), reduction), logp


def _cross_mixed(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """A logarithm beyond the type, of which a weight makes a loss within it; sums that leave the type on their way."""
    logp = _log_softmax(inputs["x"])
    if params["reduction"] != "none":
        return None if _in_range(logp, inputs) else underspecified(_BEYOND, of_result(0, np.True_))
    top = float_max(of(inputs["x"]))
    loss, per = _chosen(logp, inputs["target"], inputs["weight"], params["ignore_index"])
    with np.errstate(all="ignore"):
        beyond = (np.abs(loss / per) > top) & (np.abs(loss) <= top)
    return underspecified("a logarithm beyond the type", of_result(0, beyond)) if beyond.any() else None


@softmax_cross_entropy.draw
def _draw_cross(d: Draw) -> dict:
    return _draw(d, "x", "target", "weight")
