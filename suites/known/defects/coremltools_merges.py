"""What comes where a graph pass puts one op in place of several that do not mean the same."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.instance import Node
from suites.passes.edits import Edit, Outputs, after

CONVOLUTIONS = ("conv", "conv_transpose")


def _by_channel(e: Edit, conv: Node, scale: np.ndarray) -> np.ndarray:
    """The weight of a convolution with a factor for each channel.  That of a transposed one is refolded as if it had no
    groups."""
    w = e.p.consts[conv.value("weight")]
    each = scale.reshape(-1, *[1] * (w.ndim - 1))
    if conv.op == "conv":
        return (w * each).astype(w.dtype)
    turned = w.swapaxes(0, 1)
    folded = turned.reshape(scale.size, -1, *w.shape[2:]) * each
    return folded.reshape(turned.shape).swapaxes(0, 1).astype(w.dtype)


def _channels(e: Edit, conv: Node) -> int:
    w, groups = e.p.consts[conv.value("weight")], e.const(conv, "groups")
    count = 1 if groups is None else int(groups)
    return w.shape[0] if conv.op == "conv" else w.shape[1] * count


def _bias(e: Edit, conv: Node, count: int) -> np.ndarray | None:
    """The bias of a convolution or product; None of one that is no constant."""
    if "bias" not in conv.inputs:
        return np.zeros(count, e.p.consts[conv.value("weight")].dtype)
    return e.const(conv, "bias")


def _scale_of(node: Node, c: np.ndarray, count: int, rank: int) -> np.ndarray | None:
    """The factor that a product or quotient applies to the channels of a convolution, as the pass understands it."""
    if c.shape in ((), (1,)):
        out = np.full(count, c.reshape(()))
    elif c.size == count and c.ndim in (rank, rank - 1) and c.shape[c.ndim - rank + 1] == count:
        out = c.reshape(count)
    else:
        return None
    return np.asarray(1 / out if node.op == "real_div" else out)


def _scale(e: Edit, divisors: bool = False) -> Iterator[Any]:
    """divisors: only of convolutions that a constant is divided by, which the pass divides by the constant."""
    for conv in [n for n in e.p.nodes if n.op in CONVOLUTIONS]:
        made = _scaled(e, conv, divisors)
        while made is not None:  # the pass comes again, and finds the next factor
            yield made
            made = _scaled(e, made, divisors)


def _scaled(e: Edit, conv: Node, divisors: bool) -> Node | None:
    """The convolution with the factor of the node that follows it, in that node's place; None where none follows."""
    node = e.follower(conv, "mul", "real_div")
    found = e.side(node) if node is not None else None
    if node is None or found is None or e.const(conv, "weight") is None:
        return None
    if divisors and not (node.op == "real_div" and node.inputs["y"] == conv.outputs[0]):
        return None
    count = _channels(e, conv)
    scale, bias = _scale_of(node, found[0], count, len(e.shape(conv.outputs[0]))), _bias(e, conv, count)
    if scale is None or bias is None:
        return None
    weight = _by_channel(e, conv, scale)
    inputs = {**conv.inputs, "weight": weight, "bias": (bias * scale).astype(weight.dtype)}
    e.p.nodes.remove(conv)
    return e.become(node, conv.op, inputs)


def _normalisation(e: Edit) -> Iterator[Any]:
    for conv in [n for n in e.p.nodes if n.op in CONVOLUTIONS]:
        node = e.follower(conv, "batch_norm")
        if node is None or e.const(conv, "weight") is None:
            continue
        count = _channels(e, conv)
        given = {k: e.const(node, k) for k in ("mean", "variance", "gamma", "beta")}
        mean, variance, bias = given["mean"], given["variance"], _bias(e, conv, count)
        if mean is None or variance is None or bias is None:
            continue
        gamma = given["gamma"] if given["gamma"] is not None else np.ones(count, mean.dtype)
        beta = given["beta"] if given["beta"] is not None else np.zeros(count, mean.dtype)
        epsilon = e.const(node, "epsilon")
        scale = gamma / np.sqrt(variance + np.asarray(1e-5 if epsilon is None else epsilon, mean.dtype))
        weight = _by_channel(e, conv, scale)
        inputs = {**conv.inputs, "weight": weight, "bias": (scale * (bias - mean) + beta).astype(weight.dtype)}
        e.p.nodes.remove(conv)
        yield e.become(node, conv.op, inputs)


def _sum(e: Edit) -> Iterator[Any]:
    """A sum or difference in the bias of a convolution or of linear."""
    for conv in [n for n in e.p.nodes if n.op in (*CONVOLUTIONS, "linear")]:
        node = e.follower(conv, "add", "sub")
        found = e.side(node) if node is not None else None
        weight = e.const(conv, "weight")
        if node is None or found is None or weight is None:
            continue
        count = weight.shape[0] if conv.op == "linear" else _channels(e, conv)
        c, bias = found[0], _bias(e, conv, count)
        if bias is None or c.size not in (1, count):
            continue
        c = np.broadcast_to(c.reshape(-1), (count,))
        if node.op == "sub" and node.inputs["x"] == conv.outputs[0]:
            c = -c
        elif node.op == "sub":
            weight, bias = -weight, -bias
        e.p.nodes.remove(conv)
        yield e.become(node, conv.op, {**conv.inputs, "weight": weight, "bias": (bias + c).astype(weight.dtype)})


def _product(e: Edit) -> Iterator[Any]:
    """A product with a constant on its right and a sum or difference as linear; c - x y is taken for x y - c."""
    for node in [n for n in e.p.nodes if n.op == "matmul"]:
        behind, weight = e.follower(node, "add", "sub"), e.const(node, "y")
        found = e.side(behind) if behind is not None else None
        if behind is None or found is None or weight is None or weight.ndim != 2:
            continue
        turned, bias = e.const(node, "transpose_y"), found[0]
        bias = np.squeeze(bias) if bias.ndim > 1 else bias
        x_turned = e.const(node, "transpose_x")
        weight = weight if turned is not None and turned else weight.T
        if bias.shape != (weight.shape[0],):
            continue
        if x_turned is not None and x_turned:
            if behind.op == "sub" and found[1] == behind.inputs["y"]:
                behind.inputs = {**behind.inputs, "x": behind.inputs["y"], "y": behind.inputs["x"]}
                yield behind
            continue
        e.p.nodes.remove(node)
        bias = -bias if behind.op == "sub" else bias
        yield e.become(behind, "linear", {"x": node.inputs["x"], "weight": weight.copy(), "bias": bias})


def _product_from_the_left(e: Edit) -> Iterator[Any]:
    """A product with a constant on its left and a sum or difference: what stands beside it is added to the rows, and
    taken from them in a difference of either order."""
    for node in [n for n in e.p.nodes if n.op == "matmul"]:
        behind, weight = e.follower(node, "add", "sub"), e.const(node, "x")
        found = e.side(behind) if behind is not None else None
        if behind is None or found is None or weight is None or weight.ndim != 2:
            continue
        bias = np.squeeze(found[0]) if found[0].ndim > 1 else found[0]
        turned = e.const(node, "transpose_x")
        if bias.shape != (weight.shape[0 if turned is not None and turned else 1],):
            continue
        yield e.become(behind, "add", {"x": node.outputs[0], "y": (-bias if behind.op == "sub" else bias)[:, None]})


def _batch_norm(e: Edit) -> Iterator[Any]:
    """x * scale + offset as batch_norm of variance 1 and the default epsilon."""
    for node in [n for n in e.p.nodes if n.op == "mul"]:
        behind = e.follower(node, "add")
        scale, offset = e.side(node), e.side(behind) if behind is not None else None
        if behind is None or scale is None or offset is None or len(e.shape(scale[1])) != 4:
            continue
        count = e.shape(scale[1])[1]
        if any(c.shape not in ((count, 1, 1), (1, count, 1, 1)) for c in (scale[0], offset[0])):
            continue
        gamma, beta = (c.reshape(count) for c in (scale[0], offset[0]))
        e.p.nodes.remove(node)
        mean = np.zeros(count, gamma.dtype)
        inputs = {"x": scale[1], "mean": mean, "variance": mean + 1, "gamma": gamma, "beta": beta}
        yield e.become(behind, "batch_norm", inputs)


def _gather(e: Edit, last: bool = True) -> Iterator[Any]:
    """Rows of a table.  last: the one stands in the last axis, where the pattern has it, and not in the one before,
    which the pass takes for the last since it counts the axes of the indices."""
    for node in [n for n in e.p.nodes if n.op == "one_hot"]:
        behind = e.follower(node, "matmul")
        table = e.const(behind, "y") if behind is not None else None
        axis = e.const(node, "axis")
        at = node.inputs.get("indices")
        if behind is None or table is None or axis is None or not isinstance(at, str):
            continue
        if int(axis) == (-1 if last else len(e.shape(at)) - 1):
            e.p.nodes.remove(node)
            yield e.become(behind, "gather", {"x": behind.inputs["y"], "indices": at, "axis": np.int32(0)})


def _dilation(e: Edit) -> Iterator[Any]:
    """A convolution of batches with its stride, dilated: the stride is now over the whole."""
    for node in [n for n in e.p.nodes if n.op == "space_to_batch"]:
        conv = e.follower(node, "conv")
        behind = e.follower(conv, "batch_to_space")
        if conv is not None and behind is not None:
            inputs = {**conv.inputs, "x": node.inputs["x"], "dilations": node.inputs["block_shape"]}
            e.p.nodes.remove(node)
            e.p.nodes.remove(conv)
            yield e.become(behind, "conv", inputs)


def _relu_below_zero(e: Edit) -> Iterator[Any]:
    """Dividing by a scale below 0 turns the sign of what relu sees: relu(s z) / s is -relu(-z)."""
    for node in [n for n in e.p.nodes if n.op in ("add", "sub")]:
        relu = e.follower(node, "relu")
        behind = e.follower(relu, "quantize")
        if relu is None or behind is None:
            continue
        for slot in ("y", "x"):  # the scale of x is divided by where that of y cannot be
            made = e.maker(node.inputs[slot], "dequantize")
            scale = e.const(made, "scale") if made is not None else None
            if scale is not None and np.ndim(scale) == 0:
                if scale < 0:
                    relu.op = "minimum"
                    relu.inputs = {"x": relu.inputs["x"], "y": e.put(np.zeros((), scale.dtype))}
                    yield
                break


def _turned(e: Edit) -> Iterator[Any]:
    """A transpose between two reshapes, by the places of its axes as they are written: those below 0 stand first."""
    for node in [n for n in e.p.nodes if n.op == "reshape"]:
        turn = e.follower(node, "transpose")
        behind, perm = e.follower(turn, "reshape"), e.const(turn, "perm") if turn is not None else None
        if turn is None or behind is None or perm is None or (perm >= 0).all():
            continue
        shape = e.shape(node.outputs[0])
        groups: list[list[int]] = []
        for a in perm.tolist():
            if groups and a == groups[-1][-1] + 1:
                groups[-1].append(a)
            else:
                groups.append([a])
        starts = [g[0] for g in groups]
        order = sorted(starts)
        extents = [int(np.prod([shape[a] for a in g])) for g in groups]
        sizes = [extents[starts.index(a)] for a in order]
        places = np.array([order.index(a) for a in starts], np.int32)
        if int(np.prod(sizes)) != int(np.prod(shape)):
            continue
        node.inputs["shape"] = e.put(np.array(sizes, np.int32))
        turn.inputs["perm"] = e.put(places)
        yield


_VIEWS = ("identity", "transpose", "reshape", "squeeze", "expand_dims")  # of a constant: the same memory


def _of_one_memory(e: Edit, name: str) -> frozenset[str]:
    """The constants that share the memory of one of them."""
    found, size = {name}, 0
    while size < len(found):
        size = len(found)
        for node in e.g.attr("program").nodes:
            same = {node.value("x"), *node.outputs} if node.op in _VIEWS else set()
            if found & same and same <= e.p.consts.keys():
                found |= same
    return frozenset(found)


def _along_channels(conv: Node, e: Edit, c: np.ndarray) -> bool:
    """Has a constant elements of channels alone, or one element that is no scalar?"""
    rank = len(e.shape(conv.value("x")))
    batch = c.ndim == rank and c.shape[0] != 1
    return bool(c.ndim and np.squeeze(c).ndim < 2 and not batch and np.prod(c.shape[-(rank - 2) :]) == 1)


def _negation(e: Edit) -> Iterator[Any]:
    """A constant that is taken from a convolution has its sign changed in place, each time; the fusion may be given up
    then, and others may use the constant."""
    signs = dict[frozenset[str], int]()
    for conv in [n for n in e.p.nodes if n.op in CONVOLUTIONS]:
        node = e.follower(conv, "sub")
        c = e.const(node, "y") if node is not None else None
        if node is None or c is None or not _along_channels(conv, e, c):
            continue
        memory = _of_one_memory(e, node.value("y"))
        sign = signs.get(memory, 1)
        signs[memory] = -sign
        bias, places = e.const(conv, "bias"), np.squeeze(c)
        if "bias" in conv.inputs:
            given_up = bias is None or (places.ndim == 1 and places.size not in (1, bias.size))
        else:
            given_up = c.size == 1 and e.const(conv, "weight") is None
        if not given_up:
            node.inputs["y"] = e.put(sign * c)
    for memory in (m for m, sign in signs.items() if sign < 0):
        for name in memory:
            e.p.consts[name] = -e.p.consts[name]
        if any(e.users(n) or n in e.p.outputs for n in memory):
            yield


def _counting(e: Edit) -> Iterator[Any]:
    """A negative bound of a slice is counted from the front in the constant itself, unless the extent is clear before:
    of the whole axis, of an axis of one element."""
    for node in e.g.attr("program").nodes:
        if node.op != "slice_by_index":
            continue
        extents = np.array(e.shape(node.value("x")))
        masks = [e.const(node, m) for m in ("begin_mask", "end_mask", "squeeze_mask")]
        begins, ends, squeezed = (np.zeros(extents.size, bool) if m is None else m for m in masks)
        counted = (extents != 1) & ~squeezed & ~(begins & ends)
        for slot in ("begin", "end"):
            bound = e.const(node, slot)
            if bound is None or not (counted & (bound < 0)).any():
                continue
            new = np.where(counted & (bound < 0), np.maximum(0, bound + extents), bound).astype(bound.dtype)
            memory = _of_one_memory(e, node.value(slot))
            e.p.consts |= dict.fromkeys(memory, new)
            if memory.intersection(e.p.outputs):
                yield


def _choice(e: Edit) -> Iterator[Any]:
    """One operand of a select, as it is, where all of the condition is the same."""
    for node in [n for n in e.p.nodes if n.op == "select"]:
        cond = e.const(node, "cond")
        if cond is not None and (cond.all() or not cond.any()):
            yield e.become(node, "identity", {"x": node.inputs["a" if cond.all() else "b"]})


def _addition(e: Edit) -> Iterator[Any]:
    """A choice between data and an infinity as a sum with that infinity and 0."""
    for node in [n for n in e.p.nodes if n.op == "select"]:
        cond, a, b = (e.const(node, k) for k in ("cond", "a", "b"))
        if cond is not None and a is not None and b is None and np.isinf(a).all():
            yield e.become(node, "add", {"x": node.inputs["b"], "y": np.where(cond, a, 0).astype(a.dtype)})


def _kept_axes(e: Edit) -> Iterator[Any]:
    """Means keep their axes."""
    for node in [n for n in e.p.nodes if n.op == "reduce_mean"]:
        kept = e.const(node, "keep_dims")
        if kept is None or not kept:
            node.inputs["keep_dims"] = e.put(np.array(True))
            yield


def negated_in_place(g: Given) -> Outputs:
    """A constant of the other sign: taken from a convolution whose bias comes at run time, or used elsewhere too."""
    return after(g, _negation)


def bounds_counted_in_place(g: Given) -> Outputs:
    """A constant with the bounds of a slice counted from the front, where it is read elsewhere too."""
    return after(g, _counting)


def chosen_as_it_is(g: Given) -> Outputs:
    """The operand that a condition chooses, not broadcast with the condition and the other one."""
    return after(g, _choice)


def chosen_by_adding(g: Given) -> Outputs:
    """The sum of data and an infinity, where the infinity is chosen."""
    return after(g, _addition)


def axes_taken_for_kept(g: Given) -> Outputs:
    """A normalisation whose means have kept their axes."""
    return after(g, _kept_axes)


def scaled_as_if_not_grouped(g: Given) -> Outputs:
    """conv_transpose [C_in, C_out / groups, ...]: channel i scales the i-th of C_out slices of the weights, after their
    first two axes are exchanged and refolded."""
    return after(g, lambda e: chain(_scale(e), _normalisation(e)))


def divided_the_other_way(g: Given) -> Outputs:
    """A constant that is divided by a convolution: the convolution is divided by the constant."""
    return after(g, lambda e: _scale(e, True))


def merged_as_linear(g: Given) -> Outputs:
    """A product less a constant, where the constant less the product is asked for."""
    return after(g, _product)


def rows_for_columns(g: Given) -> Outputs:
    """A sum beside a product with a constant on its left, along the rows."""
    return after(g, _product_from_the_left)


def merged_as_batch_norm(g: Given) -> Outputs:
    """A factor and an offset as batch_norm of the default epsilon."""
    return after(g, _batch_norm)


def rows_by_another_axis(g: Given) -> Outputs:
    """Rows of a table, where the one stands in the last axis but one."""
    return after(g, lambda e: _gather(e, False))


def turned_as_written(g: Given) -> Outputs:
    """A transpose of more than five axes by what perm says, unsigned."""
    return after(g, _turned)


def dilated_with_its_stride(g: Given) -> Outputs:
    """A dilated convolution with the stride that its batches had."""
    return after(g, _dilation)


def relu_of_the_other_sign(g: Given) -> Outputs:
    """A relu that lets through what is below 0."""
    return after(g, _relu_below_zero)


def _special(e: Edit) -> bool:
    """Is a value of the program infinite, NaN, subnormal or nearly the largest?  Merging constants changes nothing
    else."""

    def at_an_end(a: np.ndarray) -> bool:
        size, about = np.abs(a), np.finfo(a.dtype)
        return bool((~np.isfinite(a) | ((a != 0) & (size < about.tiny)) | (size > about.max / 1024)).any())

    return any(at_an_end(a) for a in map(np.asarray, (*e.p.consts.values(), *e.values.values())) if a.dtype.kind == "f")


_MERGES = {
    "fuse_conv_batchnorm": _normalisation,
    "fuse_conv_bias": _sum,
    "fuse_conv_scale": _scale,
    "fuse_linear_bias": _sum,
    "fuse_matmul_weight_bias": _product,
    "fuse_onehot_matmul_to_gather": _gather,
}


def merged(g: Given) -> Outputs:
    """Constants that are merged into an op meet it as they are: none between overflows, and one that is infinite or NaN
    meets every product."""
    edit = _MERGES.get(g.inst.op)
    return None if edit is None else after(g, lambda e: edit(e) if _special(e) else iter(()))


def select_wider_than_its_operands(g: Given) -> bool:
    """Is the result of a select wider than its operands a and b are together?"""
    e = Edit(g)
    both = [(n, [e.shape(n.value(k)) for k in ("a", "b")]) for n in e.p.nodes if n.op == "select"]
    return any(e.shape(n.outputs[0]) != np.broadcast_shapes(*shapes) for n, shapes in both)


def matmul_of_a_vector(g: Given) -> bool:
    """Has a matmul an operand of rank 1?"""
    e = Edit(g)
    return any(len(e.shape(n.value(k))) == 1 for n in e.p.nodes if n.op == "matmul" for k in ("x", "y"))


def matmul_transposes_a_vector(g: Given) -> bool:
    """Is a matmul told to transpose an operand of rank 1?"""
    e = Edit(g)
    told = [(n, k) for n in e.p.nodes if n.op == "matmul" for k in ("x", "y") if e.const(n, f"transpose_{k}")]
    return any(len(e.shape(n.value(k))) == 1 for n, k in told)


def scales_no_channel(g: Given) -> bool:
    """Does a factor or a normalisation follow a convolution without channels?"""
    e = Edit(g)
    convolutions = [n for n in e.p.nodes if n.op in CONVOLUTIONS and e.const(n, "weight") is not None]
    return any(_channels(e, n) == 0 and e.follower(n, "mul", "real_div", "batch_norm") for n in convolutions)
