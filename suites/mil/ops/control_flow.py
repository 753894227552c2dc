"""Blocks, lists, states and the classifier head: ops that do not stand alone.

A list is a Python list of arrays; an instance that makes or changes one reads it out again ("@read": "list" for the
stacked items, "length" for their number).  A state is an object with a ``value``; an instance that writes one reads it
again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from harness.core.dtypes import BOOL, BY_NAME, F16, F32, I32, DType, of
from harness.core.instance import Arg, Graph, Node
from harness.declare import Call, Checks, Draw, Evaluation, Sampling, Spelling, T, bounded, exact
from harness.generate import ends
from suites.mil import op
from suites.mil.codecs import FAR, heavy, maybe, need, scalar, vector
from suites.mil.running import Items, State
from suites.semantics import elementwise

# -- cond and while_loop: the blocks are small programs of their own


def _cond(call: Call) -> list[Any]:
    taken = bool(np.asarray(call.inputs["pred"]).ravel()[0])
    return call.run(call.attrs["_true_fn" if taken else "_false_fn"], [])


_BRANCH = ("relu", "abs", "square", "identity")
_SUM = ("add", "sub", "maximum", "minimum")


def _last(g: Graph, op_name: str, out: str, **inputs: Any) -> str:
    """One more node; what is no name of a value is an attribute."""
    attrs: dict[str, Any] = {k: inputs.pop(k) for k in ("dtype", "keep_dims", "_true_fn", "_false_fn") if k in inputs}
    g.nodes.append(Node(op_name, inputs, [out], attrs))
    return out


def _const_of(d: Draw, g: Graph, name: str, dtype: DType, lo: int = -3) -> str:
    g.consts[name] = np.array(d.int(lo, 3), dtype.np)
    return name


def _floats(d: Draw, g: Graph, k: str, x: str, times: int) -> str:
    """A few steps from ``x``, which is f32."""
    for step in range(times):
        x = _last(g, d.pick(_BRANCH), f"t{k}_{step}", x=x)
        if d.bool():
            x = _last(g, "mul", f"m{k}_{step}", x=x, y=_const_of(d, g, f"c{k}_{step}", F32, 1))
    return x


def _inner(d: Draw, k: str, times: int) -> Graph:
    g = Graph()
    g.outputs.append(_floats(d, g, k, "x", times))
    return g


def _result(d: Draw, g: Graph, k: int, dtype: DType, nests: bool) -> str:
    """A result of this type from the captured tensors x (f32), n (i32) and b (bool)."""
    if dtype is I32:
        return _last(g, d.pick(_SUM), f"t{k}", x="n", y=_const_of(d, g, f"c{k}", I32))
    if dtype is BOOL:
        how = d.int(0, 2)
        if how == 0:
            return _last(g, "logical_not", f"t{k}", x="b")
        if how == 1:
            return _last(g, "logical_and", f"t{k}", x="b", y=_last(g, "logical_not", f"l{k}", x="b"))
        return _last(g, "identity", f"t{k}", x="b")
    if not nests:
        return _floats(d, g, f"{k}", "x", 4 if d.chance(4) else 1)  # one side may cost more
    top = _last(g, "reduce_max", f"r{k}", x="x", keep_dims=False)
    test = _last(g, "greater", f"g{k}", x=top, y=_const_of(d, g, f"z{k}", F32))
    sides = {"_true_fn": _inner(d, f"{k}a", 1), "_false_fn": _inner(d, f"{k}b", d.int(1, 2))}
    return _last(g, "cond", f"t{k}", pred=test, **sides)


def _branch(d: Draw, dtypes: list[DType]) -> Graph:
    """A block over the captured tensors."""
    g = Graph()
    for k, dtype in enumerate(dtypes):
        g.outputs.append(_result(d, g, k, dtype, nests=d.chance(6)))
    return g


def _seen(d: Draw, dtype: DType, shape: tuple[int, ...]) -> Arg:
    """A tensor that blocks see and that their op does not take."""
    recipe = "bool" if dtype is BOOL else d.pick(("small", "unit")) if dtype.kind == "f" else "small"
    return Arg(dtype, shape, False, recipe, d.int(0, 0x7FFFFFFF))


def _draw_cond(d: Draw) -> dict[str, Any]:
    kinds = (F32,) if d.bool() else (F32, I32, BOOL)  # mixtures are what a network of floats lacks
    dtypes = [d.pick(kinds) for _ in range(d.int(1, 3))]
    seen = {n: _seen(d, t, d.shape(1, lo=1)) for n, t in (("x", F32), ("n", I32), ("b", BOOL)) if t in dtypes}
    return {
        "pred": T((), recipe="bool"),
        "_true_fn": _branch(d, dtypes),
        "_false_fn": _branch(d, dtypes),
        "@outs": len(dtypes),
        "@captured": seen,
    }


# a pred of one element is refused, and not drawn: every form of the package takes it
op(
    "cond",
    Evaluation(_cond, bounded(lambda ctx: 4 * ctx.ulp, "two roundings in a branch")),
    Sampling(_draw_cond),
    Checks(stated={"pred": ""}, breaks={"shapes-stated": None}),
)


def _type(v: Any) -> Any:
    return (v.dtype, v.shape) if isinstance(v, np.ndarray) else type(v)


def _while(call: Call) -> list[Any]:
    values = list(call.inputs["loop_vars"])
    for _ in range(10_000):
        if not bool(np.asarray(call.run(call.attrs["_cond"], values)[0]).ravel()[0]):
            return values
        before, values = values, list(call.run(call.attrs["_body"], values))
        need([_type(v) for v in values] == [_type(v) for v in before], "body-returns-loop-vars")
    raise RuntimeError("while_loop: 10,000 iterations, the condition stays true")


def _variable(d: Draw, a: Arg) -> T:
    """The first value of a loop variable; of a special recipe NaN, infinities and the ends of the type are among it."""
    const = d.chance(8)
    if a.recipe == "special" and 0 < math.prod(a.shape) <= ends.MOST and d.bool():
        return T(a.shape, dtype=a.dtype, const=const, values=ends.elements(d, a))
    return T(a.shape, recipe=a.recipe, dtype=a.dtype, const=const)


def _draw_while(d: Draw) -> dict[str, Any]:
    """A counter, and values of several types and shapes: some take a step, some are handed on, or to another."""
    limit, kinds, shape = d.int(0, 4), (F32,) if d.bool() else (F32, F16, I32), d.shape(0)
    data = [("acc", Arg(d.pick(kinds), shape))]
    for name in ("old", "own")[: d.int(0, 2)]:
        like = d.bool()
        data.append((name, Arg(data[0][1].dtype, shape) if like else Arg(d.pick(kinds), d.shape(0))))
    if d.chance(8):
        data = []  # a counter alone
    flag = [("flag", Arg(BOOL, shape))] if d.chance(3) else []
    count = () if d.chance(4) else (1,)
    inputs = [("i", Arg(I32, count)), *data, *flag]
    flat = [Node("squeeze", {"x": "i"}, ["s"])] if count else []
    less = Node("less", {"x": "s" if count else "i", "y": "limit"}, ["go"])
    test = Graph(inputs, [*flat, less], ["go"], {"limit": np.array(limit, np.int32)})
    body = Graph(inputs, [Node("add", {"x": "i", "y": "one"}, ["i1"])], ["i1"], {"one": np.array(1, np.int32)})
    seen: dict[str, Arg] = {}
    for k, (name, a) in enumerate(data):
        a.recipe = "special" if a.dtype.kind == "f" and d.chance(4) else "small"
        how = d.int(0, 3) if k else 3
        before = data[k - 1]
        if how == 0:
            body.outputs.append(name)  # as it was
        elif how == 1 and (before[1].dtype, before[1].shape) == (a.dtype, a.shape):
            body.outputs.append(before[0])  # what another was
        else:
            other = _const_of(d, body, f"c{k}", a.dtype)
            if d.chance(4):  # of the program around
                other = f"far{k}"
                del body.consts[f"c{k}"]
                seen[other] = Arg(a.dtype, a.shape, False, "small", d.int(0, 0x7FFFFFFF))
            how_summed = d.pick(_SUM[: 3 if a.recipe == "small" else 2])
            body.outputs.append(_last(body, how_summed, f"a{k}", x=name, y=other))
    if flag:
        body.outputs.append(_last(body, "logical_not", "f1", x="flag"))
    values = [
        T(count, values=[d.int(0, 2)], dtype=I32, const=d.chance(6)),
        *(_variable(d, a) for _, a in (*data, *flag)),
    ]
    return {"loop_vars": values, "_cond": test, "_body": body, "@outs": len(values), "@captured": seen}


op(
    "while_loop",
    Evaluation(_while, exact()),
    Spelling(out_dtype=lambda c, i: of(c.inputs["loop_vars"][i])),
    Sampling(_draw_while),
)


# -- select


def _draw_select(d: Draw) -> dict[str, Any]:
    full = d.shape(0)
    return {
        "cond": T(d.broadcast_from(full), recipe="bool"),
        "a": T(d.broadcast_from(full)),
        "b": T(d.broadcast_from(full)),
    }


def _break_select(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, 4, lo=2)
    return {"cond": T(shape, recipe="bool"), "a": T(shape), "b": T((*shape[:-1], shape[-1] + 1))}


op(
    "select",
    elementwise.where,
    Sampling(_draw_select),
    Checks(breaks={"broadcast": _break_select}),
    c="cond",
    x="a",
    y="b",
)


# -- lists


def _read_out(call: Call, ls: Items, *places: int) -> list[Any]:
    """The one output: what the instance looks at; inside a program the list itself goes on.  places: those that were
    written to, which "places" reads again: one of them, or a tensor of all."""
    how = call.attrs.get("@read")
    if how == "places":
        return [ls[places[0]] if "index" in call.inputs else np.stack([ls[i] for i in places])]
    return [np.stack(ls) if how == "list" else np.array(len(ls), np.int32) if how == "length" else ls]


def _list(d: Draw, least: int = 1) -> tuple[T, tuple[int, ...], int]:
    shape, n = d.shape(0, d.max_rank - 1), d.int(least, 4)
    return T(shape, kind="list", items=[T(shape) for _ in range(n)]), shape, n


def _far_list(d: Draw, letter: str) -> tuple[dict[str, Any], tuple[int, ...]] | None:
    """Now and then a list with two tensors, one of them at a place that f32 does not count."""
    if not heavy(d, letter):
        return None
    shape, places = d.pick(((), (1,))), d.shuffle((FAR, d.int(0, 3)))
    ls = T(shape, kind="list", items=[T(shape) for _ in places])
    return {"ls": ls, "@places": places, "@length": FAR + d.int(1, 3)}, shape


def _make_list(call: Call) -> Any:
    shape = tuple(int(n) for n in call.get("elem_shape"))
    d = call.attr("dtype", F32)
    d = BY_NAME[d] if isinstance(d, str) else d
    n = scalar(call, "init_length", 1)
    need(n >= 0 and all(k >= 0 for k in shape), "extents-nonnegative", f"{n} of {list(shape)}")
    return _read_out(call, Items({}, n, not call.attr("dynamic_length", True), np.zeros(shape, d.np)))


def _draw_make_list(d: Draw) -> dict[str, Any]:
    shape = [*d.shape(0, 2), 0, d.pick((2**31 - 1, 3))] if d.chance(8) else d.shape(0, 3)
    out: dict[str, Any] = {"elem_shape": d.shuffle(shape), "@read": "length"}
    far = 0 in shape and d.chance(4)
    maybe(d, out, "init_length", d.pick((2**31 - 1, FAR)) if far else d.int(1, 5), 1)
    if "init_length" in out:
        out["init_length"] = T((), values=[out["init_length"]], const=d.int(0, 3) > 0)
    maybe(d, out, "dynamic_length", d.bool(), True)
    if d.bool():
        out["dtype"] = BY_NAME[d.pick(("f16", "f32", "i32", "bool"))]
    return out


op("make_list", Evaluation(_make_list, exact()), Spelling(out_dtype=lambda c, i: I32), Sampling(_draw_make_list))
op(
    "list_length",
    Evaluation(lambda c: np.array(len(c.inputs["ls"]), np.int32), exact()),
    Spelling(out_dtype=lambda c, i: I32),
    Sampling(lambda d: {"ls": _list(d)[0]}),
)


def _at(ls: list[Any], i: int) -> int:
    need(0 <= i < len(ls), "index-in-list", f"{i} of {len(ls)}")
    return i


def _draw_read(d: Draw) -> dict[str, Any]:
    if far := _far_list(d, "E"):
        return {**far[0], "index": T((), values=[FAR])}
    ls, _, n = _list(d)
    return {"ls": ls, "index": T((), values=[d.int(0, n - 1)])}


def _elem(call: Call, i: int) -> Any:
    one = call.inputs["ls"].one
    return F32 if one is None else of(np.asarray(one))


op(
    "list_read",
    Evaluation(lambda c: c.inputs["ls"][_at(c.inputs["ls"], scalar(c, "index"))], exact()),
    Spelling(out_dtype=_elem),
    Sampling(_draw_read),
)


def _list_gather(call: Call) -> np.ndarray:
    ls = call.inputs["ls"]
    found = [ls[_at(ls, int(i))] for i in call.inputs["indices"]]
    return np.stack(found) if found else np.zeros((0, *ls.one.shape), ls.one.dtype)


def _draw_gather(d: Draw) -> dict[str, Any]:
    if far := _far_list(d, "E"):
        return {**far[0], "indices": vector(d.pick(([FAR], far[0]["@places"])))}
    ls, _, n = _list(d)
    return {"ls": ls, "indices": vector([d.int(0, n - 1) for _ in range(d.int(0, 4))])}


op(
    "list_gather",
    Evaluation(_list_gather, exact()),
    Spelling(out_dtype=_elem),
    Sampling(_draw_gather),
)


def _write(call: Call) -> Any:
    ls, i, value = call.inputs["ls"], scalar(call, "index"), call.inputs["value"]
    need(i >= 0 and (i < len(ls) or not ls.fixed), "index-in-list", f"{i} of {len(ls)}")
    need(ls.one is None or ls.one.shape == value.shape, "value-like-elements", f"{list(value.shape)}")
    return _read_out(call, ls.with_items({i: value}), i)


def _draw_write(d: Draw) -> dict[str, Any]:
    if far := _far_list(d, "T"):
        return {**far[0], "index": T((), values=[FAR]), "value": T(far[1]), "@read": "places"}
    ls, shape, n = _list(d)
    return {"ls": ls, "index": T((), values=[d.int(0, n - 1)]), "value": T(shape), "@read": "list"}


def _break_write(d: Draw) -> dict[str, Any]:
    ls, shape, _ = _list(d)
    return {"ls": ls, "index": T((), values=[0]), "value": T((*shape, 2)), "@read": "list"}


op(
    "list_write",
    Evaluation(_write, exact()),
    Spelling(out_dtype=lambda c, i: of(c.inputs["value"])),
    Sampling(_draw_write),
    Checks(breaks={"value-like-elements": _break_write}),
)


def _scatter(call: Call) -> Any:
    ls, indices, value = call.inputs["ls"], [int(i) for i in call.inputs["indices"]], call.inputs["value"]
    need(len(value) == len(indices), "value-per-index")
    need(ls.one is None or ls.one.shape == value.shape[1:], "value-like-elements", f"{list(value.shape)}")
    return _read_out(call, ls.with_items({_at(ls, i): v for i, v in zip(indices, value)}), *indices)


def _draw_scatter(d: Draw) -> dict[str, Any]:
    if far := _far_list(d, "T"):
        places = d.pick(([FAR], [1, FAR], [FAR, FAR]))
        value = T((len(places), *far[1]))
        return {**far[0], "indices": vector(places), "value": value, "@read": "places"}
    ls, shape, n = _list(d)
    at = d.shuffle(range(n))[: d.int(0, n)]
    return {"ls": ls, "indices": vector(at), "value": T((len(at), *shape)), "@read": "list"}


def _break_scatter(d: Draw) -> dict[str, Any]:
    ls, shape, _ = _list(d, 2)
    return {"ls": ls, "indices": vector([0, 1], const=True), "value": T((3, *shape)), "@read": "list"}


op(
    "list_scatter",
    Evaluation(_scatter, exact()),
    Spelling(out_dtype=lambda c, i: of(c.inputs["value"])),
    Sampling(_draw_scatter),
    Checks(breaks={"value-per-index": _break_scatter}),
)


# -- states


def _value_of(state: Any) -> np.ndarray:
    return state.value if isinstance(state, State) else state


def _state(d: Draw, shape: tuple[int, ...], dtype: Any = None) -> T:
    return T(shape, dtype=dtype, kind="state", const=False)


op(
    "read_state",
    Evaluation(lambda c: np.array(_value_of(c.inputs["input"])), exact()),
    Spelling(out_dtype=lambda c, i: of(_value_of(c.inputs["input"]))),
    Sampling(lambda d: {"input": _state(d, d.shape(1, lo=1))}),
)


def _update(call: Call) -> list[Any]:
    state, value = call.inputs["state"], call.inputs["value"]
    old = _value_of(state)
    need(old.shape == value.shape, "value-like-state", f"{value.shape} into {old.shape}")
    if isinstance(state, State):
        state.value = np.array(value)
    return [value, value] if call.attrs.get("@read") == "state" else [value]


def _draw_update(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    return {"state": _state(d, shape), "value": T(shape), "@read": "state", "@outs": 2}


def _break_update(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, lo=1)
    return {"state": _state(d, shape), "value": T((*shape, 2)), "@read": "state", "@outs": 2}


op(
    "coreml_update_state",
    Evaluation(_update, exact()),
    Spelling(out_dtype=lambda c, i: of(c.inputs["value"])),
    Sampling(_draw_update),
    Checks(breaks={"value-like-state": _break_update}),
    domain="coreml",
)


# -- classifier head, constants


def _classify(call: Call) -> list[Any]:
    p, classes = call.inputs["probabilities"].ravel(), call.attrs["classes"]
    need(len(classes) == p.size, "class-per-probability", f"{len(classes)} for {p.size}")
    label = np.empty((), object)
    label[()] = classes[int(np.argmax(p))]
    return [label, dict(zip(classes, p.tolist()))]


def _draw_classify(d: Draw) -> dict[str, Any]:
    n = d.pick((16, 130, 260, 2050)) if d.chance(8) else d.int(2, 6)
    least = -3 if d.chance(8) else 1  # of what is no distribution the highest is the label, too
    values = [(k + least) / 4096 if n > 6 else (k * 5 % 11 + least) / 16 for k in d.shuffle(range(n))]
    shape = (*(1,) * (d.int(1, 4) if d.chance(4) else 0), n)
    return {
        "probabilities": T(shape, values=values, const=False),
        "classes": [f"class {k}" for k in range(n)],
        "@outs": 2,
    }


op("classify", Evaluation(_classify, exact()), Sampling(_draw_classify))


def _const(call: Call) -> np.ndarray:
    return np.asarray(call.attrs["val"])


def _draw_const(d: Draw) -> dict[str, Any]:
    shape = d.shape(0, lo=1)
    n = int(np.prod(shape))
    dt = d.pick((F32, F16, I32, BOOL))
    values = [d.int(0, 1) if dt is BOOL else d.int(-9, 9) for _ in range(min(n, 64))]
    return {"val": np.resize(np.array(values), shape).astype(dt.np)}


op(
    "const",
    Evaluation(_const, exact()),
    Spelling(out_dtype=lambda c, i: of(np.asarray(c.attrs["val"]))),
    Sampling(_draw_const),
)
