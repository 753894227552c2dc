"""Reading and writing by index.

Up to iOS 16 a negative index counts from the end; from iOS 17 on it is out of bounds.  Out of bounds is an error only
with ``validate_indices`` (iOS 17); without it the result is undefined and no instance is drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import I32, int_range
from harness.declare import Call, Checks, Draw, Map, Sampling, Spelling, T
from suites.mil import op
from suites.mil.codecs import heavy, maybe
from suites.semantics import indexing as s
from suites.semantics.indexing.common import distinct, index_recipe, prod

_MODES = {"none": "update", "add": "add", "sub": "sub", "mul": "mul", "div": "div", "max": "max", "min": "min"}
MODE = Map("mode", _MODES)
OLD, NEW = {"signed": True}, {"signed": False}
SPANS = (({"until": "ios16"}, OLD), ({"since": "ios17"}, NEW))


def _beyond(d: Draw, n: int) -> int:
    """From iOS 17 on "negative values are considered out-of-bound"."""
    return d.pick((n, n + 3, -n - 1, -1) if "validate_indices" in d.version.schema.attrs else (n, n + 3, -n - 1))


def _checked(d: Draw, out: dict[str, Any]) -> dict[str, Any]:
    """An out-of-range index is forbidden from iOS 17 on only when asked to be checked."""
    if "validate_indices" in d.version.schema.attrs:
        out["validate_indices"] = True
    return out


# -- gather


def _break_gather(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, 4, lo=1)
    axis = d.axis(len(shape))
    at = T((2,), values=[_beyond(d, shape[axis])] * 2, const=True)
    return _checked(d, {"x": T(shape), "indices": at, "axis": axis})


def _break_axis(slot: str) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        shape = d.shape(1, 4, lo=1)
        at = T(shape, index_recipe(1, False))
        out = {slot: T(shape), "indices": at, "axis": d.pick((len(shape), -len(shape) - 1))}
        if slot == "data":
            out["updates"] = T(shape)
        return out

    return draw


def _far(d: Draw, rank: int) -> tuple[tuple[int, ...], T]:
    """The shape of what has no element, and a place far behind in it: the last that the type of the indices counts, or
    one beyond what f32 does."""
    dt = d.dtype("indices")
    top = int_range(dt)[1] if dt.bits < 32 else 2**24 + 2
    place = -top - 1 if d.fixed["signed"] and dt.kind == "i" and d.bool() else top
    return (top + 1, 0), T((1,) * rank, values=[place])


def _heavy(d: Draw) -> bool:
    """As ``heavy``, with indices that count so far: the other axes are those of the indices, which hold an element."""
    if not heavy(d, "T"):
        return False
    d.types.update({"I": I32} if "I" in d.types else {})
    return True


def _or_far(meaning: Any) -> Any:
    """What the meaning draws, or a place far behind."""

    def draw(d: Draw) -> dict[str, Any]:
        if meaning is s.gather_nd and d.chance(12):  # more axes in front than there are mostly
            k = d.int(1, 2)
            lead = d.pick(((1, 2, 1), (2, 1, 1, 2), (1, 0, 1), (1, 1, 0, 1)))
            n = d.dim(1, 4)
            return {"x": T((n,) * k), "indices": T((*lead, k), index_recipe(n, False))}
        if d.chance(16):
            shape, at = _far(d, 1 if meaning is s.gather else 2)
            return {"x": T(shape), "indices": at, **({"axis": 0} if meaning is s.gather else {})}
        v = meaning.derive(d)
        out = {"x": v["x"], "indices": v["indices"]}
        for name, default in (("axis", 0), ("batch_dims", 0)):
            if name in d.version.schema.attrs:
                maybe(d, out, name, v.get(name) or 0, default)
        return out

    return draw


def _draw_along(d: Draw) -> dict[str, Any]:
    if _heavy(d) or (d.dtype("indices").bits <= 16 and d.chance(16)):
        far, at = _far(d, 1)
        return {"x": T(far[:1]), "indices": at, "axis": 0}
    shape = d.shape(1, lo=1)
    axis = d.axis(len(shape))
    a = axis % len(shape)
    e = [d.dim(1) if k == a else n for k, n in enumerate(shape)]
    out: dict[str, Any] = {"x": T(shape), "indices": T(e, index_recipe(shape[a], d.fixed["signed"]))}
    maybe(d, out, "axis", axis, 0)
    return out


def _break_along(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, 4, lo=1)
    at = T(shape, values=[_beyond(d, shape[0])] * prod(shape), const=True)
    return _checked(d, {"x": T(shape), "indices": at, "axis": 0})


def _break_wide(slot: str) -> Any:
    """More places along another axis than there are rows."""

    def draw(d: Draw) -> dict[str, Any]:
        out = {slot: T((2, 2)), "indices": T((1, 3), values=[0] * 3, const=True), "axis": 0}
        return out if slot == "x" else {**out, "updates": T((1, 3)), "mode": "add"}

    return draw


def _batches(nd: bool) -> dict[str, Any]:
    """Rules of the batch axes, which iOS 16 adds: their extents agree, and they come before the axis."""
    at = {} if nd else {"axis": 1}
    apart = {"x": T((2, 3)), "indices": T((3, 1), values=[0] * 3, const=True), "batch_dims": 1, **at}
    far = {"x": T((2, 3)), "indices": T((2, 1), values=[0] * 2, const=True), "batch_dims": 2, "axis": 1}
    return {"batch-agrees": lambda d: apart, **({} if nd else {"batch-in-range": lambda d: far})}


def _break_tuple(slot: str) -> Any:
    """ "indices.shape[-1] <= data.rank"."""

    def draw(d: Draw) -> dict[str, Any]:
        out = {slot: T((2,)), "indices": T((1, 2), values=[0, 0], const=True)}
        return out if slot == "x" else {**out, "updates": T((1,)), "mode": "add"}

    return draw


def _break_nd(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, 4, lo=1)
    return _checked(d, {"x": T(shape), "indices": T((1, 1), values=[_beyond(d, shape[0])], const=True)})


for span, sign, batches in (
    ({"until": "ios15"}, OLD, False),
    ({"since": "ios16", "until": "ios16"}, OLD, True),
    ({"since": "ios17"}, NEW, True),
):
    for name, meaning, breaks in (
        ("gather", s.gather, {"index-in-range": _break_gather, "axis-in-range": _break_axis("x")}),
        ("gather_nd", s.gather_nd, {"index-in-range": _break_nd, "tuple-within-rank": _break_tuple("x")}),
    ):
        op(
            name,
            meaning,
            Spelling(fixed=sign),
            Sampling(_or_far(meaning)),
            Checks(breaks={**breaks, **(_batches(name == "gather_nd") if batches else {})}),
            **span,
        )
for span, sign in SPANS:
    op(
        "gather_along_axis",
        s.gather_elements,
        Spelling(fixed=sign),
        Sampling(_draw_along),
        Checks(
            breaks={
                "index-in-range": _break_along,
                "axis-in-range": _break_axis("x"),
                "indices-within-data": _break_wide("x"),
            }
        ),
        **span,
    )


# -- scatter: what an update is combined with, in any order


def _mode(d: Draw) -> str:
    return d.pick([m for m in _MODES if m != "div" or d.dtype("x").kind == "f"])


def _updates(d: Draw, shape: tuple[int, ...], mode: str) -> T:
    """Integers stay small: what happens on overflow is not stated."""
    if d.dtype("x").kind in "iu":
        return T(shape, recipe="ints:-3:3" if mode == "mul" else "small")
    return T(shape, recipe="positive" if mode == "div" else None)


def _data(d: Draw, shape: tuple[int, ...]) -> T:
    return T(shape, recipe="small" if d.dtype("x").kind in "iu" else None)


def _write_mode(d: Draw, out: dict[str, Any], mode: str, omit: bool = True) -> dict[str, Any]:
    """The documented default of ``scatter`` is update, the package's is add: there the mode is always written."""
    if mode != "add" or not omit or d.bool():
        out["mode"] = _MODES[mode]
    return out


def _draw_scatter(d: Draw) -> dict[str, Any]:
    if d.chance(24):
        shape, at = _far(d, 1)
        return _write_mode(
            d, {"data": _data(d, shape), "indices": at, "updates": T((1, 0)), "axis": 0}, "add", omit=False
        )
    shape = d.shape(1, lo=1)
    axis = d.axis(len(shape))
    a, mode, signed = axis % len(shape), _mode(d), d.fixed["signed"]
    if mode == "none" and d.bool():
        at = T((n := d.int(1, shape[a]),), values=distinct(d, shape[a], n, signed))
    else:
        at = T((d.dim(1),), index_recipe(shape[a], signed))
    updates = _updates(d, (*shape[:a], *at.shape, *shape[a + 1 :]), mode)
    out: dict[str, Any] = {"data": _data(d, shape), "indices": at, "updates": updates}
    maybe(d, out, "axis", axis, 0)
    return _write_mode(d, out, mode, omit=False)


def _draw_scatter_along(d: Draw) -> dict[str, Any]:
    if _heavy(d):
        far, at = _far(d, 1)
        return _write_mode(d, {"data": _data(d, far[:1]), "indices": at, "updates": T((1,)), "axis": 0}, "none")
    shape = d.shape(1, lo=1)
    axis = d.axis(len(shape))
    a, mode, signed = axis % len(shape), _mode(d), d.fixed["signed"]
    if mode == "none" and d.bool():
        n = d.int(1, shape[a])
        line = distinct(d, shape[a], n, signed)
        e = [n if k == a else m for k, m in enumerate(shape)]
        inner, m = prod(e[a + 1 :]), shape[a]
        values = []
        for i in range(prod(e)):  # every lane has the places moved on by one
            k, lane = line[i // inner % n], i // (inner * n) + i % inner
            values.append((k + lane) % m - (m if k < 0 else 0))
        at = T(e, values=values)
    else:
        e = [d.dim(1) if k == a else m for k, m in enumerate(shape)]
        at = T(e, index_recipe(shape[a], signed))
    out: dict[str, Any] = {"data": _data(d, shape), "indices": at, "updates": _updates(d, tuple(e), mode)}
    maybe(d, out, "axis", axis, 0)
    return _write_mode(d, out, mode)


def _draw_scatter_nd(d: Draw) -> dict[str, Any]:
    if d.chance(24):
        shape, at = _far(d, 2)
        return _write_mode(d, {"data": _data(d, shape), "indices": at, "updates": T((1, 0))}, "add")
    shape = d.shape(1, lo=1)
    k, mode, signed = d.int(1, len(shape)), _mode(d), d.fixed["signed"]
    places = prod(shape[:k])
    once = mode == "none" and d.bool()
    rows = d.int(1, min(places, 9)) if once else d.dim(1)
    spots = distinct(d, places, rows, False) if once else [d.int(0, places - 1) for _ in range(rows)]
    values: list[int] = []
    for spot in spots:
        one: list[int] = []
        for n in reversed(shape[:k]):
            one.append(spot % n - (n if signed and d.chance(4) else 0))
            spot //= n
        values += reversed(one)
    leads = [(rows,), (rows,), (1, rows), (1, rows, 1), (1, 1, rows, 1), *([()] if rows == 1 else [])]
    lead = d.pick([x for x in leads if len(x) + max(1, len(shape) - k) <= 5])
    out: dict[str, Any] = {
        "data": _data(d, shape),
        "indices": T((*lead, k), values=values),
        "updates": _updates(d, (*lead, *shape[k:]), mode),
    }
    return _write_mode(d, out, mode)


def _break_scatter(kind: str) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        shape = d.shape(1, 3, lo=1)
        bad = _beyond(d, shape[0])
        rest = shape[1:]
        at = {"slice": (1,), "along": (1, *rest), "nd": (1, 1)}[kind]
        out = {
            "data": T(shape),
            "indices": T(at, values=[bad] * prod(at), const=True),
            "updates": T((1, *rest)),
            "mode": "add",
        }
        return _checked(d, out if kind == "nd" else {**out, "axis": 0})

    return draw


def _break_fit(kind: str) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        shape = d.shape(1, 3, lo=1)
        rest = shape[1:]
        at = {"slice": (1,), "along": (1, *rest), "nd": (1, 1)}[kind]
        return {"data": T(shape), "indices": T(at, values=[0] * prod(at)), "updates": T((3, *rest)), "mode": "add"}

    return draw


def _open(meaning: Any, usual: str) -> Any:
    """As of ``maximum``: the pages do not say whether NaN wins; then what the meaning leaves open."""

    def why(call: Call) -> str | None:
        if call.attr("mode", usual) in ("max", "min"):
            for name in ("data", "updates"):
                x = call.inputs[name]
                if x.dtype.kind == "f" and np.isnan(x).any():
                    return f"NaN in {name}: the op set does not say whether it wins or loses"
        tensors, params = call.version.decode(call)
        return meaning.ambiguous(tensors, params)

    return why


# Two updates of one place: the text is a loop over the updates, so that the later one stays, as of the NeuralNetwork
# layers, of NumPy's put_along_axis in the package's own value inference, and in its layer tests
for span, sign in SPANS:
    fixed = {**sign, "later": True}
    op(
        "scatter",
        s.scatter,
        Spelling(x="data", mode=MODE, fixed=fixed),
        Sampling(_draw_scatter),
        Checks(
            ambiguous=_open(s.scatter, "update"),
            breaks={
                "index-in-range": _break_scatter("slice"),
                "updates-fit": _break_fit("slice"),
                "axis-in-range": _break_axis("data"),
            },
        ),
        **span,
    )
    op(
        "scatter_along_axis",
        s.scatter_elements,
        Spelling(x="data", reduction=MODE, fixed=fixed),
        Sampling(_draw_scatter_along),
        Checks(
            ambiguous=_open(s.scatter_elements, "add"),
            breaks={
                "index-in-range": _break_scatter("along"),
                "indices-within-data": _break_wide("data"),
                "updates-fit": _break_fit("along"),
                "axis-in-range": _break_axis("data"),
            },
        ),
        **span,
    )
    op(
        "scatter_nd",
        s.scatter_nd,
        Spelling(x="data", reduction=MODE, fixed=fixed),
        Sampling(_draw_scatter_nd),
        Checks(
            stated={"data": "_n *_d"},  # "the index is stored in the last dim of indices", an index of an axis
            ambiguous=_open(s.scatter_nd, "add"),
            breaks={
                "index-in-range": _break_scatter("nd"),
                "updates-fit": _break_fit("nd"),
                "tuple-within-rank": _break_tuple("data"),
            },
        ),
        **span,
    )
