"""What comes where a difference is listed (``harness/ledger/defect_models.py``): programs that a graph pass has
changed."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from harness.core.instance import Graph, Node
from harness.ledger.defect_models import Given, Near

Outputs = list[Any] | None


def _changed(g: Given, edit: Callable[[Graph], Any], fires: bool | None = None) -> Outputs:
    """The results of the program after an edit (False: it does not apply), and whether the pass is said to have done
    something."""
    program = deepcopy(g.attr("program"))
    if edit(program) is False:
        return None
    again = g.reevaluate({"program": program})
    fires = fires if program.meta["fires"] is not None else None  # of a program that was respelt nothing is promised
    return again if again is None or fires is None else [np.array(fires), *again[1:]]


def _maker(p: Graph, name: str) -> Node | None:
    return next((n for n in p.nodes if name in n.outputs), None)


def _scale(p: Graph, node: Node, count: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Factor and offset of every channel that a node after a convolution applies."""
    c = {
        k: p.consts[v].astype(np.float64)
        for k, v in node.inputs.items()
        if isinstance(v, str) and v in p.consts and p.consts[v].dtype.kind == "f"
    }
    if node.op == "batch_norm":
        one, none = np.ones(count), np.zeros(count)
        s = c.get("gamma", one) / np.sqrt(c["variance"] + c.get("epsilon", 1e-5))
        return s, c.get("beta", none) - s * c["mean"]
    if node.op in ("mul", "real_div") and len({"x", "y"} & set(c)) == 1:
        v = c.get("y", c.get("x"))
        assert v is not None
        v = np.broadcast_to(v.reshape(-1), (count,))
        return (1 / v if node.op == "real_div" else v), np.zeros(count)
    return None


def scaled_as_if_not_grouped(g: Given) -> Outputs:
    """conv_transpose [C_in, C_out / groups, ...]: channel i scales the i-th of C_out slices of the weights, after their
    first two axes are exchanged and refolded."""

    def edit(p: Graph) -> Any:
        done = False
        for node in p.nodes:
            conv = next(
                (
                    m
                    for v in node.inputs.values()
                    if isinstance(v, str) and (m := _maker(p, v)) is not None and m.op == "conv_transpose"
                ),
                None,
            )
            if conv is None or "groups" not in conv.inputs:
                continue
            groups, w = int(p.consts[conv.value("groups")]), p.consts[conv.value("weight")]
            count = w.shape[1] * groups
            found = _scale(p, node, count) if groups > 1 else None
            if found is None:
                continue
            factor, offset = found
            slices = w.swapaxes(0, 1).reshape(count, -1) * factor[:, None]
            wrong = slices.reshape(w.shape[1], w.shape[0], *w.shape[2:]).swapaxes(0, 1)
            bias = p.consts[conv.value("bias")].astype(np.float64) if "bias" in conv.inputs else np.zeros(count)
            p.consts |= {"w'": wrong.astype(w.dtype), "b'": (bias * factor + offset).astype(w.dtype)}
            conv.inputs |= {"weight": "w'", "bias": "b'"}
            node.op, node.inputs, node.attrs = "identity", {"x": conv.outputs[0]}, {}
            done = True
        return done

    return _changed(g, edit)


def default_epsilon(g: Given) -> Outputs:
    """x * scale + offset as batch_norm of variance 1 and the default epsilon of 1e-5."""
    p: Graph = g.attr("program")
    by = {n.op: next((p.consts[v] for v in n.inputs.values() if v in p.consts), None) for n in p.nodes}
    factor, shift = by.get("mul"), by.get("add")
    if factor is None or shift is None:
        return None
    scale, offset = factor.astype(np.float64), shift.astype(np.float64)
    again = _changed(
        g,
        lambda q: q.consts.update(
            {
                v: (scale / np.sqrt(1 + 1e-5)).astype(q.consts[v].dtype)
                for n in q.nodes
                if n.op == "mul"
                for v in n.inputs.values()
                if v in q.consts
            }
        ),
    )
    if again is None:
        return None
    size = np.abs(g["inputs"][0].astype(np.float64) * scale) + np.abs(offset)
    # the scale is rounded in the model and in batch_norm, and so are the product and the sum
    return [again[0], *(Near(e.value, 4 * float(np.finfo(e.value.dtype).eps) * size) for e in again[1:])]


def names_left(g: Given) -> Outputs:
    """No name is changed, and the program is right."""
    return [np.array(False), *[None] * (len(g.expected) - 1)]


def updates_moved_up(g: Given) -> Outputs:
    """An update of a state stands right behind what makes its value."""

    def edit(p: Graph) -> Any:
        for node in [n for n in p.nodes if n.op == "coreml_update_state"]:
            p.nodes.remove(node)
            made = _maker(p, node.value("value"))
            p.nodes.insert(p.nodes.index(made) + 1 if made is not None else 0, node)

    return _changed(g, edit, True)


def duplicates_removed(g: Given) -> Outputs:
    """The constants of the second op, or the op that holds them, are those of the first."""

    def edit(p: Graph) -> Any:
        makers = [n for n in p.nodes if n.op.startswith("constexpr")]
        if makers:
            makers[1].inputs = dict(makers[0].inputs)
            return
        first, second = (next(k for k, v in n.inputs.items() if v in p.consts) for n in p.nodes[:2])
        p.nodes[1].inputs[second] = p.nodes[0].inputs[first]

    return _changed(g, edit, True)


def cut_to_16_bits(g: Given) -> Outputs:
    """Integers that a run brings keep their lower 16 bits."""
    return g.reevaluate(
        inputs={"inputs": [v.astype(np.int16).astype(v.dtype) if v.dtype == np.int32 else v for v in g["inputs"]]}
    )


def scale_behind(g: Given) -> Outputs:
    """The scale of a table of weights multiplies what the product gives: in the shape [1, C, 1, 1] for a convolution;
    of matmul with all of its axes reversed where the flag that transposes is Python's True, else as it is."""

    def edit(p: Graph) -> Any:
        moved = next(n for n in p.nodes if n.op == "constexpr_blockwise_shift_scale")
        product = next(n for n in p.nodes if moved.outputs[0] in n.inputs.values())
        scale = p.consts[moved.value("scale")]
        slot = next(k for k, v in product.inputs.items() if v == moved.outputs[0])
        if product.op == "conv":
            scale = scale.reshape(1, -1, 1, 1)
        else:
            flag = product.inputs.get(f"transpose_{slot}")
            if isinstance(flag, str) and bool(p.consts[flag]) and flag in p.meta.get("plain", ()):
                scale = scale.T
        product.inputs[slot] = moved.inputs["data"]
        if "bias" in product.inputs:
            bias = p.consts[product.value("bias")]
            p.consts["b'"] = (bias / np.squeeze(scale)).astype(bias.dtype)
            product.inputs["bias"] = "b'"
        out = product.outputs[0]
        product.outputs = ["unscaled'"]
        p.consts["scale'"] = scale
        p.nodes[p.nodes.index(product) + 1 : p.nodes.index(product) + 1] = [
            Node("mul", {"x": "unscaled'", "y": "scale'"}, [out], {})
        ]
        p.nodes.remove(moved)

    return _changed(g, edit)


def root_and_square_dropped(g: Given) -> Outputs:
    """sqrt and pow by 2, in either order, give their operand."""

    def edit(p: Graph) -> Any:
        for node in p.nodes:
            if node.op in ("sqrt", "pow"):
                node.op, node.inputs = "identity", {"x": node.inputs["x"]}

    return _changed(g, edit)
