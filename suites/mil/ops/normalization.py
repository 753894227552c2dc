"""Normalisations.  From iOS 17 on the parameter tensors may have another float type than x."""

from __future__ import annotations

from typing import Any

from harness.core.dtypes import of
from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T, gathered
from suites.mil import op
from suites.mil.codecs import Held
from suites.semantics import norm as s


def _type_of_x(call: Call, i: int) -> Any:
    return of(call.inputs["x"])


def _misfit(slot: str, **more: Any) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        c = d.dim(2, 6)
        return {"x": T((2, c, 3)), slot: T((c + 1,)), **{k: T((c,), recipe="positive") for k in more}}

    return draw


_KEYS = Spelling(scale="gamma", bias="beta", epsilon=Held("epsilon"), out_dtype=_type_of_x)
op(
    "batch_norm",
    s.batch_norm,
    _KEYS,
    Sampling(ranks=(3, 5)),
    Checks(breaks={"channels-agree": _misfit("mean", variance=1)}),
    var="variance",
    spatial=Fn(lambda c: True),
)
op("instance_norm", s.instance_norm, _KEYS, Sampling(ranks=(3, 4)))


def _break_gamma(d: Draw) -> dict[str, Any]:
    *lead, n = d.part(1, 3, lo=2)
    wrong = d.pick(((n + 1,), (1, n), (*lead, n, 2)))
    return {"x": T((*lead, n)), "axes": [-1], "gamma": T(wrong)}


def _layer_open(call: Call) -> str | None:
    tensors, params = call.version.decode(call)
    return gathered(_order_open(call), s.layer_norm.underspecified(tensors, params))


def _axes(call: Call) -> tuple[int, ...] | None:
    """ "Dimensions to perform layer normalization": one that is named twice is one of them, where neither gamma nor
    beta has its extents."""
    axes, rank = call.attr("axes"), call.inputs["x"].ndim
    if axes is None or call.has("gamma") or call.has("beta"):
        return axes if axes is None else tuple(axes)
    return tuple({a % rank if -rank <= a < rank else a: a for a in axes}.values())


def _order_open(call: Call) -> str | None:
    axes, rank = call.attr("axes"), call.inputs["x"].ndim
    if axes is None:
        return None
    if len({a % rank for a in axes}) < len(axes):
        return "an axis that is named twice: a dimension once, or no list of dimensions"
    if not (call.has("gamma") or call.has("beta")):
        return None
    if [a % rank for a in axes] != sorted(a % rank for a in axes):
        return "gamma for axes that do not rise: x.shape[axes] by the page, in the order of x by the package"
    return None


op(
    "layer_norm",
    s.layer_norm,
    _KEYS,
    Spelling(axes=Fn(_axes, lambda v, b: b.attr("axes", v), ("axes",)), out=lambda c, r: r[:1]),
    Sampling(ranks=(1, 5)),
    Checks(
        breaks={
            "scale-fits-axes": _break_gamma,
            "scale-broadcasts": None,  # gamma of the shape of the axes does
            "axes-in-range": lambda d: {"x": T((2, 3)), "axes": [d.pick((2, -3))]},
        },
        ambiguous=_layer_open,
    ),
)


def _draw_l2(d: Draw) -> dict[str, Any]:
    out: dict[str, Any] = {"x": T(d.shape(3, lo=1))}
    if d.bool():
        out["epsilon"] = d.pick((1e-6, 1e-3, 1.0))
    return out


op(
    "l2_norm",
    s.l2_normalization,
    Spelling(epsilon=Held("epsilon"), fixed={"axes": (-3, -2, -1), "under": "sum"}),
    Sampling(_draw_l2),
    Checks(breaks={"rank-at-least-3": lambda d: {"x": T(d.part(1, 2, lo=1))}}),
)


op(
    "local_response_norm",
    s.lrn,
    Spelling(
        bias=Held("k"),
        alpha=Held("alpha"),
        beta=Held("beta"),
        axis=Fn(lambda c: 1),
        scaled=Fn(lambda c: True),
        out_dtype=_type_of_x,
    ),
    Sampling(ranks=(3, 4)),
)
op(
    "softmax",
    s.softmax,
    Checks(breaks={"axis-in-range": lambda d: {"x": T(d.shape(1, 3, lo=1)), "axis": d.pick((3, -4))}}),
    beta=Fn(lambda c: 1.0),
)
