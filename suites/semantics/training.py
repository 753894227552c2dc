"""One step of an optimiser over several tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as Object

import numpy as np

from harness.core import dims
from harness.core.dtypes import float_max, of
from harness.core.errors import RuleError
from harness.declare import Choice, Context, Float, Int, Real, T, Variadic, composed, semantics
from harness.generate.draw import Draw
from harness.tolerance.underspecified import underspecified

Array = np.ndarray


def _bound(parts: int) -> Object:
    """128 roundings of the result and of what it was made from, element by element"""

    def bound(ctx: Context) -> Array:
        xs = [np.abs(np.asarray(x, np.float64)) for x in ctx.inputs["xs"]]
        r = abs(float(np.asarray(ctx.inputs["rate"]).reshape(-1)[0]))
        n = len(xs) // parts
        alike = [np.asarray(sum(xs[k] for k in range(j, len(xs), n))) for j in range(n)]
        fit = [s for s in alike if s.shape == ctx.wide.shape]
        top = np.maximum.reduce(fit) if fit else np.zeros(ctx.wide.shape)
        return 128 * max(ctx.acc_u, 2.0**-24) * (np.abs(ctx.wide) + (1 + r) * (top + top * top)) + ctx.ulp

    return composed(bound, "128 u of the result and of the tensors it was made from")


def _groups(xs: list[Array], parts: int) -> list[tuple[Array, ...]]:
    """Each tensor with its companions.  Raises RuleError "whole-groups", "companions-broadcast"."""
    if len(xs) % parts:
        raise RuleError("whole-groups", f"{len(xs)} tensors in groups of {parts}")
    n = len(xs) // parts
    groups = [tuple(xs[k * n + j].astype(np.float64) for k in range(parts)) for j in range(n)]
    for g in groups:
        try:
            dims.broadcast(*(x.shape for x in g))
        except dims.ShapeMismatch as e:
            raise RuleError("companions-broadcast", str(e)) from None
    return groups


def _flat(rows: Sequence[tuple[Array, ...]]) -> list[Array]:
    return [r[k] for k in range(len(rows[0])) for r in rows]


def _number(v: Array) -> float:
    """Raises RuleError "one-number"."""
    if v.size != 1:
        raise RuleError("one-number", f"shape {v.shape}")
    return float(v.reshape(-1)[0])


_BEYOND = "a product or sum beyond the type on the way: infinite, or held in a wider one"


def _over(like: Array, *steps: Array) -> Array:
    """Where a step leaves the type of a tensor, though it is made of numbers."""
    top = float_max(of(like))
    with np.errstate(invalid="ignore"):
        return np.asarray(
            np.logical_or.reduce(np.broadcast_arrays(*(np.isfinite(s) & (np.abs(s) > top) for s in steps)))
        )


def _momentum_open(tensors: dict[str, Object], params: dict[str, Object]) -> Object:
    """Elements for which a step of the formula overflows: 0 or an infinity beside it makes them NaN."""
    r, t = _number(tensors["rate"]), _number(tensors["count"])
    rows = []
    for x, g, v in _groups(tensors["xs"], 3):
        like = tensors["xs"][0]
        with np.errstate(all="ignore"):
            grown, kept = params["norm"] * x + g, params["alpha"] * v
            part = (params["beta"] if t > 0 else 1.0) * grown
            early = _over(like, params["norm"] * x, grown, kept, part)
            new = kept + part
            ahead = new if params["mode"] == "standard" else grown + params["alpha"] * new
            rows.append((early | _over(like, new, ahead, params["alpha"] * new, r * ahead), early))
    return underspecified(_BEYOND, tuple(_flat(rows)))


@semantics(error=_bound(3), source="ONNX ai.onnx.preview.training Momentum-1", ambiguous=_momentum_open)
def momentum(
    rate: Float[Array, "*r"],
    count: Int[Array, "*t"],
    xs: Variadic[Float[Array, "*_d"]],
    *,
    alpha: Real,
    beta: Real,
    norm: Real,
    mode: Choice[str, "standard", "nesterov"] = "standard",
) -> list[Array]:
    """xs: values, gradients, momenta; results: new values, new momenta."""
    r, t = _number(rate), _number(count)
    rows = []
    for x, g, v in _groups(xs, 3):
        g = norm * x + g
        v = alpha * v + (beta if t > 0 else 1.0) * g
        rows.append((x - r * (v if mode == "standard" else g + alpha * v), v))
    return _flat(rows)


def _squares(tensors: dict[str, Object], params: dict[str, Object]) -> str | None:
    """A square that leaves the type beside an accumulated one that is not finite: NaN, or that."""
    rows = []
    for x, g, h in _groups(tensors["xs"], 3):
        with np.errstate(all="ignore"):
            g = np.abs(params["norm"] * x.astype(np.float64) + g)
            lost = (g > 1e19) & ~np.isfinite(h + 0 * g)
        rows.append((lost, lost))
    return underspecified("a square that overflows, beside an accumulated infinity", tuple(_flat(rows)))


@semantics(
    error=_bound(3),
    source="ONNX ai.onnx.preview.training Adagrad-1",
    data={"xs": ("positive", "prob")},
    ambiguous=_squares,
)
def adagrad(
    rate: Float[Array, "*r"],
    count: Int[Array, "*t"],
    xs: Variadic[Float[Array, "*_d"]],
    *,
    decay: Real = 0.0,
    epsilon: Real = 1e-6,
    norm: Real = 0.0,
) -> list[Array]:
    """xs: values, gradients, accumulated squares; results: new values, new accumulated squares."""
    r = _number(rate) / (1 + _number(count) * decay)
    rows = []
    for x, g, h in _groups(xs, 3):
        g = norm * x + g
        h = h + g * g
        rows.append((x - r * g / (np.sqrt(h) + epsilon), h))
    return _flat(rows)


def _adam_open(tensors: dict[str, Object], params: dict[str, Object]) -> Object:
    """Elements for which a step of the formula overflows."""
    r, t = _number(tensors["rate"]), _number(tensors["count"])
    alpha, beta, epsilon, norm = (params[n] for n in ("alpha", "beta", "epsilon", "norm"))
    with np.errstate(all="ignore"):
        step = r * np.sqrt(1 - beta**t) / (1 - alpha**t) if t > 0 else r
    rows = []
    for x, g, v, h in _groups(tensors["xs"], 4):
        like = tensors["xs"][0]
        with np.errstate(all="ignore"):
            grown = norm * x + g
            early = _over(like, grown, alpha * v, (1 - alpha) * grown)
            new = alpha * v + (1 - alpha) * grown
            squares = _over(like, grown, grown * grown, beta * h)
            mean = beta * h + (1 - beta) * grown * grown
            moved = step * new / (np.sqrt(mean) + epsilon)
            rows.append((early | squares | _over(like, new, mean, step * new, moved, x - moved), early, squares))
    return underspecified(_BEYOND, tuple(_flat(rows)))


@semantics(
    error=_bound(4),
    source="ONNX ai.onnx.preview.training Adam-1",
    data={"xs": ("positive", "prob")},
    ambiguous=_adam_open,
)
def adam(
    rate: Float[Array, "*r"],
    count: Int[Array, "*t"],
    xs: Variadic[Float[Array, "*_d"]],
    *,
    alpha: Real = 0.9,
    beta: Real = 0.999,
    epsilon: Real = 1e-6,
    norm: Real = 0.0,
    norm_post: Real = 0.0,
) -> list[Array]:
    """xs: values, gradients, their running means, running means of squares; results: all but the gradients, new."""
    r, t = _number(rate), _number(count)
    step = r * np.sqrt(1 - beta**t) / (1 - alpha**t) if t > 0 else r
    rows = []
    for x, g, v, h in _groups(xs, 4):
        g = norm * x + g
        v = alpha * v + (1 - alpha) * g
        h = beta * h + (1 - beta) * g * g
        rows.append(((1 - norm_post) * (x - step * v / (np.sqrt(h) + epsilon)), v, h))
    return _flat(rows)


def drawer(parts: int, extra: Callable[[Draw], dict], squares: bool = True) -> Callable[[Draw], dict]:
    """A draw for one or two tensors with their companions, of either sign but for the running squares, which come
    last and stay away from 0, where a step has no bound."""

    def draw(d: Draw) -> dict:
        shapes = [d.shape(0, 8 if d.chance(8) else 3) for _ in range(d.int(1, 2))]
        kinds = [d.pick(("positive", "prob", "unit") if parts == 3 else ("prob", "unit"))] * parts
        if kinds[0] == "unit":
            kinds[-1] = "uniform:0.0625:1" if squares else "unit"
        return {
            "rate": T((), values=[d.pick((0.5, 0.125, 0.1))]),
            "count": T((), values=[2**63 - 1 if d.chance(12) else d.int(0, 3)]),
            "xs": [T(s, kind) for kind in kinds for s in shapes],
            **extra(d),
        }

    return draw


momentum.draw(
    drawer(
        3,
        lambda d: {
            "alpha": d.pick((0.5, 0.95)),
            "beta": d.pick((0.5, 1.0)),
            "norm": d.pick((0.0, 0.25)),
            "mode": d.pick(("standard", "nesterov")),
        },
        squares=False,
    )
)
adagrad.draw(
    drawer(3, lambda d: {"decay": d.pick((0.0, 0.5)), "epsilon": d.pick((1e-6, 0.01)), "norm": d.pick((0.0, 0.25))})
)
adam.draw(
    drawer(
        4,
        lambda d: {
            "alpha": d.pick((0.5, 0.9)),
            "beta": d.pick((0.5, 0.999)),
            "epsilon": d.pick((1e-6, 0.01)),
            "norm": d.pick((0.0, 0.25)),
            "norm_post": d.pick((0.0, 0.25)),
        },
    )
)
