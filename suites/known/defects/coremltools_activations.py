"""What comes where a graph pass puts one function in place of the ops that spell it out: no infinity or NaN arises
between them, and a constant of nearly the value is taken for it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from harness.core.instance import Node
from harness.ledger.defect_models import Given
from suites.passes.edits import Edit, Outputs, after


def _last(e: Edit, node: Node | None) -> Node | None:
    """The last of the products behind a node."""
    while (further := e.follower(node, "mul")) is not None:
        node = further
    return node


def _gelu(e: Edit, inner: Node, x: Any, mode: str) -> Iterator[Any]:
    """inner: erf or tanh.  x: what the function is of."""
    out = _last(e, e.follower(inner, "add"))
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


_FUNCTIONS = {
    "fuse_activation_silu": _silu,
    "fuse_gelu_exact": _gelu_exact,
    "fuse_gelu_tanh_approximation": _gelu_tanh,
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
