"""What a function is called by and what goes in and out of it: names, images, types."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import F16, F32, I32
from harness.core.instance import Graph, Node
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program

# -- dedup_op_and_var_names: ops and values of one name; those of inputs and outputs stay


def _chain(d: Draw, p: Program) -> tuple[list[str], dict[str, str]]:
    """A few ops in a row: their results and a name of its own for each."""
    y = p.input(d.shape(1, 2, lo=1))
    made = []
    for _ in range(d.int(2, 4)):
        kind = d.pick(("relu", "abs", "square", "add"))
        y = p.op(kind, x=y, **({"y": 0.5} if kind == "add" else {}))
        made.append(y)
    return made, {n: f"op_{k}" for k, n in enumerate(made)}


def _same_names(d: Draw) -> dict[str, Any]:
    """Two ops share a name, or the name that the second would get is taken, or it is that of an input or output."""
    p = Program(d)
    made, names = _chain(d, p)
    kind = d.pick(("twice", "successor taken", "input", "output", "all"))
    if kind == "twice":
        names[made[0]] = names[made[1]] = "same"
    elif kind == "successor taken":
        made.append(p.op("abs", x=made[-1]))
        names.update(dict(zip(made, ("same", "same_1", "same"))))
    elif kind == "input":
        names[made[0]] = "p0"
    elif kind == "output":
        names[made[0]] = names[made[-1]] = "y"
    else:
        names = dict.fromkeys(made, "same")
    outs = [made[-1]] if kind in ("input", "output", "all") or d.bool() else [made[-1], made[-2]]
    if len({names.get(o, o) for o in outs}) < len(outs):
        outs = outs[:1]
    return p.done(*outs, names=names, pattern=f"match {kind}")


def _branches(d: Draw, same: bool) -> dict[str, Any]:
    """Ops in the branches of a cond count with those around it."""
    p = Program(d, F32)
    x, go = p.input((2, 3)), p.input((1,), "ints:0:1", I32)
    y = p.op("relu", x=x)
    test = p.op("squeeze", x=p.op("greater", x=go, y=np.array([0], np.int32)))
    inside = [Graph([], [Node(op, {"x": y}, [f"in_{op}"])], [f"in_{op}"]) for op in ("abs", "square")]
    z = p.op("cond", pred=test, _true_fn=inside[0], _false_fn=inside[1])
    names = {y: "same", "in_abs": "same", "in_square": "same"} if same else {y: "a", "in_abs": "b", "in_square": "c"}
    out = p.op("tanh", x=z)
    return p.done(
        out, names={**names, out: "y"}, fires=same, pattern="match branches" if same else "near miss branches"
    )


def _own_names(d: Draw) -> dict[str, Any]:
    p = Program(d)
    made, names = _chain(d, p)
    return p.done(made[-1], names=names, fires=False)


declare(
    "dedup_op_and_var_names",
    _same_names,
    _same_names,
    _own_names,
    lambda d: _branches(d, d.bool()),
    watch="unique names",
)


# -- sanitize_input_output_names: [a-zA-Z_][a-zA-Z0-9_]*, and no name twice

_ODD = ("x.1", "1x", "in/put:0", "a-b", "é", "x y", "0")


def _odd_names(d: Draw) -> dict[str, Any]:
    """Names of inputs, outputs or both that are no identifiers; some become the name that another has already."""
    p = Program(d)
    shape = d.shape(1, 2, lo=1)
    x, y = p.input(shape), p.input(shape)
    a, b = p.op("sub", x=x, y=y), p.op("add", x=p.op("square", x=x), y=y)
    kind = d.pick(("inputs", "outputs", "both", "taken before", "taken after", "outputs taken"))
    names = {a: "diff", b: "total", x: "left", y: "right"}
    odd = d.shuffle(_ODD)
    if kind in ("inputs", "both"):
        names.update({x: odd[0], y: odd[1]} if d.bool() else {y: odd[0]})
    if kind in ("outputs", "both"):
        names.update({a: odd[2], b: odd[3]} if d.bool() else {a: odd[2]})
    if kind == "taken before":
        names.update({x: "x_1", y: "x.1"})
    if kind == "taken after":
        names.update({x: "x.1", y: "x_1"})
    if kind == "outputs taken":
        names.update(dict(zip(d.shuffle((a, b)), ("y.1", "y_1"))))
    return p.done(a, b, names=names, pattern=f"match {kind}")


def _fine_names(d: Draw) -> dict[str, Any]:
    """Identifiers already; one that is none stands inside only."""
    p = Program(d)
    x = p.input(d.shape(1, 2, lo=1))
    y = p.op("square", x=x)
    a = p.op("abs", x=y)
    return p.done(a, names={x: d.pick(("x", "_x1", "X_2")), y: d.pick(("inner", "1/inner")), a: "y"}, fires=False)


declare("sanitize_input_output_names", _odd_names, _odd_names, _fine_names, watch="valid names")


# -- image_input_preprocess: an image given as height, width, channels becomes channels, height, width


def _image(d: Draw, last: bool = True) -> dict[str, Any]:
    """The other inputs, and images that have their channels in front already, stay as they are."""
    p = Program(d, F32)
    c, h, w = d.pick((1, 3)), d.dim(1, 5), d.dim(1, 4)
    shape = (1, h, w, c) if last else (1, c, h, w)
    images = {}
    x = p.input(shape, "uniform:0:255")
    images[x] = "last" if last else "first"
    y = p.op("mul", x=x, y=0.125)
    if d.bool():
        other = p.input(shape, "uniform:0:255")
        if last and d.bool():
            images[other] = "last"
        y = p.op("sub", x=y, y=other)
    y = p.op("reduce_sum", x=y, axes=[d.int(1, 3)], keep_dims=d.bool())
    outs = [y, p.op("relu", x=x)] if d.bool() else [y]
    return p.done(*outs, images=images, fires=last)


declare("image_input_preprocess", _image, _image, lambda d: _image(d, False))


# -- update_output_dtypes: every output gets the type that the caller asked for

_CAST = {"f16": "fp16", "f32": "fp32", "i32": "int32"}


def _asked(d: Draw, change: bool = True) -> dict[str, Any]:
    """Casts at the end say here what the pass is to add; an output that nothing is asked of stays as it is."""
    p = Program(d, d.pick((F16, F32)))
    x = p.input(d.shape(1, 2, lo=1))
    made = [p.op("add", x=x, y=0.5), p.op("floor", x=x)][: d.int(1, 2)]
    own = p.dtype.name
    other = "f32" if own == "f16" else "f16"
    # rounding is known before and after to either float; to an integer only where the value is whole
    asked = [d.pick((other, "i32") if k else (other,)) if change else d.pick((None, own)) for k in range(len(made))]
    if change and len(made) > 1 and d.bool():
        asked[d.int(0, 1)] = None
    casts, outs = [], []
    for y, t in zip(made, asked):
        outs.append(p.op("cast", x=y, dtype=_CAST[t]) if t else y)
        casts += outs[-1:] if t else []
    pattern = "match" if change else "near miss no other type"
    return p.done(*outs, output_types=asked, casts=casts, fires=change, pattern=pattern)


declare("update_output_dtypes", _asked, _asked, lambda d: _asked(d, False))
