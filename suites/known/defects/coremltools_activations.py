"""What comes where a graph pass puts one function in place of the ops that spell it out: no infinity or NaN arises
between them, and a constant of nearly the value is taken for it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.instance import Node
from harness.core.quiet import quiet
from suites.passes.edits import Edit, Outputs, after


def _last(e: Edit, node: Node | None, x: Any) -> Node | None:
    """The last of the products with x, a multiple of x or a constant behind a node."""

    def one_of_it(further: Node, slot: str) -> bool:
        made = e.maker(further.inputs[slot], "mul")
        multiple = e.side(made) if made is not None else None
        return further.inputs[slot] == x or e.const(further, slot) is not None or bool(multiple and multiple[1] == x)

    while (further := e.follower(node, "mul")) is not None and any(one_of_it(further, k) for k in ("x", "y")):
        node = further
    return node


def _gelu(e: Edit, inner: Node, x: Any, mode: str) -> Iterator[Any]:
    """inner: erf or tanh.  x: what the function is of."""
    out = _last(e, e.follower(inner, "add"), x)
    if out is not None and out.op == "mul" and isinstance(x, str):
        yield e.become(out, "gelu", {"x": x, "mode": np.array(mode, object)})


def _gelu_exact(e: Edit) -> Iterator[Any]:
    for node in [n for n in e.p.nodes if n.op == "erf"]:
        scaled = e.maker(node.inputs["x"], "real_div", "mul")
        found = e.side(scaled) if scaled is not None else None
        if found is not None:
            yield from _gelu(e, node, found[1], "EXACT")


def _gelu_tanh(e: Edit) -> Iterator[Any]:
    for node in [n for n in e.p.nodes if n.op == "tanh"]:
        scaled = e.maker(node.inputs["x"], "mul")
        found = e.side(scaled) if scaled is not None else None
        both = e.maker(found[1], "add") if found is not None else None
        if both is not None:
            x, y = both.value("x"), both.value("y")
            yield from _gelu(e, node, y if e.maker(x, "mul") is not None else x, "TANH_APPROXIMATION")


def _silu(e: Edit) -> Iterator[Any]:
    for node in [n for n in e.p.nodes if n.op == "sigmoid"]:
        out = e.follower(node, "mul")
        if out is not None and node.value("x") in out.inputs.values():
            yield e.become(out, "silu", {"x": node.value("x")})


def _leaky_relu(e: Edit) -> Iterator[Any]:
    for node in [n for n in e.p.nodes if n.op == "mul"]:
        out, found = e.follower(node, "maximum"), e.side(node)
        if out is not None and found is not None and found[0].size == 1 and found[1] in out.inputs.values():
            yield e.become(out, "leaky_relu", {"x": found[1], "alpha": found[0].reshape(())})


def _prelu(e: Edit) -> Iterator[Any]:
    for node in [n for n in e.p.nodes if n.op == "mul"]:
        found = e.side(node)
        turned = e.follower(e.follower(node, "relu"), "mul")
        alpha, out = e.side(turned) if turned is not None else None, e.follower(turned, "add")
        if found is not None and found[0].size == 1 and alpha is not None and out is not None:
            yield e.become(out, "prelu", {"x": found[1], "alpha": -alpha[0].reshape(-1)})


def _mean(e: Edit) -> Iterator[Any]:
    for node in [n for n in e.p.nodes if n.op == "reduce_sum"]:
        out = e.follower(node, "mul", "real_div")
        if out is not None:
            yield e.become(out, "reduce_mean", dict(node.inputs))


def _centred(e: Edit, root: Node) -> tuple[str, Any, np.ndarray] | None:
    """The operand, the axes and the epsilon of a normalisation, by the root of its variance."""
    plus = e.maker(root.value("x"), "add")
    found = e.side(plus) if plus is not None else None
    spread = e.maker(found[1], "reduce_mean") if found is not None else None
    squares = e.maker(spread.value("x"), "square", "mul", "pow") if spread is not None else None
    centred = e.maker(squares.value("x"), "sub") if squares is not None else None
    if found is None or spread is None or centred is None or e.maker(centred.value("y"), "reduce_mean") is None:
        return None
    return centred.value("x"), spread.inputs["axes"], found[0]


def _normalisation(e: Edit) -> Iterator[Any]:
    for root in [n for n in e.p.nodes if n.op in ("rsqrt", "sqrt")]:
        found, behind, last = _centred(e, root), {root.outputs[0]}, None
        factor: np.ndarray | None = None
        offset: np.ndarray | None = None
        for node in e.p.nodes[e.p.nodes.index(root) + 1 :]:
            used = {x for x in node.inputs.values() if isinstance(x, str)}
            if node.op not in ("mul", "real_div", "add", "sub") or not behind & used:
                continue
            c = next((v for v in (e.const(node, k) for k in ("x", "y")) if v is not None), None)
            if c is not None and node.op == "mul":
                factor = c
            elif c is not None:
                offset = -c if node.op == "sub" and e.const(node, "y") is not None else c
            behind.update(node.outputs)
            last = node
        if found is None or last is None:
            continue
        x, axes, epsilon = found
        shape = e.shape(x)
        extents = [shape[a] for a in np.ravel(e.p.consts[axes])]
        op, kept = ("layer_norm", {"axes": axes}) if factor is None or factor.size == np.prod(extents) else ("", {})
        if not op and factor is not None and factor.size == shape[1] and len(extents) == len(shape) - 2:
            op, extents = "instance_norm", [shape[1]]
        if op and all(v is None or v.size == np.prod(extents) for v in (factor, offset)):
            parts = {k: v.reshape(extents) for k, v in (("gamma", factor), ("beta", offset)) if v is not None}
            yield e.become(last, op, {"x": x, **kept, **parts, "epsilon": epsilon.reshape(())})


_FUNCTIONS = {
    "fuse_activation_silu": _silu,
    "fuse_gelu_exact": _gelu_exact,
    "fuse_gelu_tanh_approximation": _gelu_tanh,
    "fuse_layernorm_or_instancenorm": _normalisation,
    "fuse_leaky_relu": _leaky_relu,
    "fuse_prelu": _prelu,
    "fuse_reduce_mean": _mean,
}


def _any(e: Edit) -> Iterator[Any]:
    """What the passes of the default pipeline put in, one after the other."""
    return chain.from_iterable(edit(e) for edit in list(_FUNCTIONS.values()))


def as_one_function(g: Given) -> Outputs:
    """The function that the ops spell out, as one op."""
    edit = _any if g.inst.op == "default_pipeline" else _FUNCTIONS.get(g.inst.op)
    return None if edit is None else after(g, edit)


_REMOVED = ("identity", "cast", "transpose", "reshape", "squeeze", "expand_dims")  # alone, or in pairs that cancel


def gelu_of_an_input(g: Given) -> bool:
    """Is what erf and add give multiplied by an input of the program?"""
    program, behind = g.attr("program"), set[str]()
    makers = {o: n for n in program.nodes for o in n.outputs}

    def given(name: Any) -> bool:
        while name in makers and makers[name].op in _REMOVED:
            name = makers[name].inputs.get("x")
        return isinstance(name, str) and name not in makers and name not in program.consts

    for node in program.nodes:
        used = [x for x in node.inputs.values() if isinstance(x, str)]
        if node.op == "erf" or (node.op in ("add", *_REMOVED) and behind.intersection(used)):
            behind.update(node.outputs)
        elif node.op == "mul" and behind.intersection(used) and any(given(x) for x in used):
            return True
    return False


def softplus_of_an_infinite_exponential(g: Given) -> Outputs:
    """alpha * log(1 + exp(beta * x)) in the type of x, where the exponential overflows, or is lost beside 1: the
    logarithm is 0 then, also times an infinite alpha."""
    x, due = g["x"], g.expected[0].value
    alpha, beta = (g[n].reshape(1, -1, *(1,) * (x.ndim - 2)) for n in ("alpha", "beta"))
    with quiet:
        power = np.exp(x * beta)
        given = alpha * np.log(1 + power)
        over = np.isinf(power) | (1 + power == 1)
    return [np.where(over, given, due).astype(due.dtype)]
