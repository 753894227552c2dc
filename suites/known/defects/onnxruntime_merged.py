"""What comes where a difference is listed (``harness/ledger/defect_models.py``): programs whose scales, biases and
shapes ONNX Runtime merges into the product beside them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.instance import Graph, Node
from harness.ledger.defect_models import NOTHING
from harness.ledger.edits import Edited, Near, each_or_right, edited, near

Outputs = list[Any] | Edited | None


def maker(program: Graph, name: str) -> Node | None:
    """The node that makes a value, behind those that hand it on unchanged."""
    made = next((n for n in program.nodes if name in n.outputs), None)
    while made is not None and made.op in ("Identity", "Cast"):
        name = made.value("input")
        made = next((n for n in program.nodes if name in n.outputs), None)
    return made


def _constant(program: Graph, name: Any) -> tuple[str, np.ndarray] | None:
    """A constant and its name, behind nodes that hand it on unchanged."""
    made = next((n for n in program.nodes if name in n.outputs), None)
    while made is not None and made.op in ("Identity", "Cast"):
        name = made.value("input")
        made = next((n for n in program.nodes if name in n.outputs), None)
    return (name, program.consts[name]) if name in program.consts else None


def _before(program: Graph, name: Any, ops: Sequence[str]) -> Any:
    """The value that nodes of these ops take, one after the other, to make a value."""
    made = next((n for n in program.nodes if name in n.outputs), None)
    while made is not None and made.op in ops:
        name = made.value("data")
        made = next((n for n in program.nodes if name in n.outputs), None)
    return name


def is_folded(program: Graph, name: Any) -> bool:
    """Is a value known before anything runs: a constant, or made of such by nodes?"""
    made = next((n for n in program.nodes if name in n.outputs), None)
    if made is None:
        return name in program.consts
    given = [x for v in made.inputs.values() for x in (v if isinstance(v, list) else [v]) if x]
    return all(is_folded(program, x) for x in given)


def _multiplied(program: Graph, node: Node, by: np.ndarray) -> None:
    """The result of a node times a constant."""
    out, k = node.outputs[0], program.nodes.index(node)
    before, name = f"{out}_before", f"{out}_by"
    node.outputs = [before, *node.outputs[1:]]
    program.consts[name] = by
    program.nodes.insert(k + 1, Node("Mul", {"A": before, "B": name}, [out], {}))


def scales_in_the_weights(g: Given) -> Outputs:
    """A factor behind a convolution multiplies its weights and its bias."""
    program, found = deepcopy(g.attr("program")), False
    for k, node in enumerate(list(program.nodes)):
        for x, other in (("A", "B"), ("B", "A")) if node.op == "Mul" else ():
            conv, scale = maker(program, node.value(x)), _constant(program, node.inputs[other])
            if conv is None or conv.op != "Conv" or scale is None:
                continue
            by, w = scale[1].reshape(-1), _constant(program, conv.inputs["W"])
            if w is None or by.size not in (1, w[1].shape[0]):
                continue
            for slot in ("W", "B"):
                held = _constant(program, conv.inputs.get(slot))
                if held is not None:
                    with np.errstate(all="ignore"):
                        value = held[1] * (by if by.size == 1 else by.reshape(-1, *[1] * (held[1].ndim - 1)))
                    conv.inputs[slot] = f"{conv.outputs[0]}_{slot}"
                    program.consts[str(conv.inputs[slot])] = value.astype(held[1].dtype).reshape(held[1].shape)
            program.nodes[k] = Node("Identity", {"input": node.value(x)}, node.outputs, {})
            found = True
            break
    return edited(g, program, each_or_right) if found else None


def scale_behind_the_product(g: Given) -> Outputs:
    """One number by which an operand of a MatMul is multiplied or divided multiplies the product; a Transpose may lie
    between the two."""
    program, found = deepcopy(g.attr("program")), False
    for product in [n for n in program.nodes if n.op == "MatMul"]:
        for slot in ("A", "B"):
            node = next((n for n in program.nodes if product.inputs[slot] in n.outputs), None)
            turned = None
            if node is not None and node.op == "Transpose":
                turned = node
                node = next((n for n in program.nodes if turned.inputs["data"] in n.outputs), None)
            scale = None if node is None else _scale_of(program, node)
            if scale is not None and turned is not None:
                again = f"{turned.outputs[0]}_plain"
                program.nodes.insert(
                    program.nodes.index(turned), Node("Transpose", {"data": scale[0]}, [again], turned.attrs)
                )
                scale = again, scale[1]
            if scale is not None:
                product.inputs[slot] = scale[0]
                _multiplied(program, product, np.asarray(scale[1]))
                found = True
    return edited(g, program, each_or_right) if found else None


def scales_in_one_number(g: Given) -> Outputs:
    """The numbers by which an operand of a MatMul and its product are multiplied or divided are multiplied first, and
    that may overflow."""
    program, found = deepcopy(g.attr("program")), False
    for product in [n for n in program.nodes if n.op == "MatMul"]:
        makers = {slot: next((n for n in program.nodes if product.inputs[slot] in n.outputs), None) for slot in "AB"}
        scales = {slot: scale for slot, n in makers.items() if n and (scale := _scale_of(program, n)) is not None}
        behind = [n for n in program.nodes if product.outputs[0] in n.inputs.values()]
        last = _scale_of(program, behind[0], product.outputs[0]) if len(behind) == 1 else None
        if last is None or not scales or product.outputs[0] in program.outputs:
            continue
        with np.errstate(all="ignore"):
            by = np.prod([number for _, number in scales.values()]) * last[1]
        product.inputs |= {slot: x for slot, (x, _) in scales.items()}
        name = f"{behind[0].outputs[0]}_by"
        program.consts[name] = np.asarray(by)
        behind[0].op, behind[0].inputs = "Mul", {"A": product.outputs[0], "B": name}
        found = True
    return edited(g, program, each_or_right) if found else None


def _scale_of(program: Graph, node: Node, of: str | None = None) -> tuple[str, Any] | None:
    """What a Mul or Div by one constant number scales (``of``, if that is given), and by what."""
    for x, other in (("A", "B"), ("B", "A"))[: 1 + (node.op == "Mul")] if node.op in ("Mul", "Div") else ():
        scale = _constant(program, _before(program, node.inputs[other], ("Reshape", "Squeeze", "Unsqueeze")))
        if scale is not None and scale[1].size == 1 and of in (None, node.inputs[x]):
            number = scale[1].ravel()[0]
            with np.errstate(all="ignore"):
                return node.value(x), number if node.op == "Mul" else scale[1].dtype.type(1) / number
    return None


def _integer_product(g: Given) -> tuple[str | None, tuple[int, ...]]:
    """The name of the first product of integers that a program reads and its shape; None where there is none."""
    program = g.attr("program")
    products = [n.outputs[0] for n in program.nodes if n.op == "MatMulInteger"]
    product = next((p for p in products if values_behind(program, p)), None)
    if product is None:
        return None, ()
    return product, g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)[product].shape


def values_behind(program: Graph, name: str) -> set[str]:
    """The values that follow from a value."""
    names = {name}
    for node in program.nodes:
        read = [x for v in node.inputs.values() for x in (v if isinstance(v, list) else [v])]
        if names.intersection(x for x in read if x):
            names.update(node.outputs)
    return names - {name}


def product_keeps_its_shape(g: Given) -> Outputs:
    """What scale and bias widen has the shape of the product of integers: of each widened axis the first."""
    return _first_of_the_widened(g, list(g.expected))


def scaled_bias_keeps_shape(g: Given) -> Outputs:
    """The same, and the scale multiplies the bias as well."""
    again = _bias_before_the_scale(g)
    return None if again is None else _first_of_the_widened(g, again.given.expected)


def _first_of_the_widened(g: Given, row: list[Any]) -> Outputs:
    """Of the results behind a product of integers as much as has its shape; None where that is all."""
    program = g.attr("program")
    product, shape = _integer_product(g)
    if product is None:
        return None
    out, found, behind = list[Any](), False, values_behind(program, product)
    for name, e in zip(program.outputs, row):
        value, within = e.value, np.broadcast_to(e.error.bound(e.context()), e.value.shape)
        if value.ndim < len(shape) or name not in behind:
            out.append(None)
            continue
        at: Any = (0,) * (value.ndim - len(shape))
        value, within = value[at], within[at]
        cut = tuple(slice(0, n) for n in shape)
        found |= value[cut].shape != e.value.shape
        out.append(Near(value[cut], within[cut]))
    return out if found else None


def product_cut_inside(g: Given) -> Outputs:
    """What a scale or a bias widens of a product of integers, by elements or by axes, keeps the shape of the product
    for the nodes behind it."""
    program = deepcopy(g.attr("program"))
    product, shape = _integer_product(g)
    if product is None:
        return None
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    behind = values_behind(program, product)
    made = ((n, scope[n.outputs[0]]) for n in program.nodes if n.outputs[0] in behind)
    wide = next((n for n, x in made if x.size > np.prod(shape) or x.ndim > len(shape)), None)
    if wide is None or wide.op not in ("Mul", "Add") or wide.outputs[0] in program.outputs:
        return None
    name, rank = wide.outputs[0], scope[wide.outputs[0]].ndim
    ends = (1,) * (rank - len(shape)) + shape
    told = {"starts": [0] * rank, "ends": list(ends), "shape": list(shape)}
    program.consts |= {f"{name}_{k}": np.array(v, np.int64) for k, v in told.items()}
    at, wide.outputs = program.nodes.index(wide), [f"{name}_wide"]
    cut: dict[str, Any] = {"data": f"{name}_wide", "starts": f"{name}_starts", "ends": f"{name}_ends"}
    program.nodes.insert(at + 1, Node("Slice", cut, [f"{name}_cut"], {}))
    program.nodes.insert(at + 2, Node("Reshape", {"data": f"{name}_cut", "shape": f"{name}_shape"}, [name], {}))
    return edited(g, program)


def product_is_widened(g: Given) -> bool:
    """Does a scale make more elements or axes of a product of integers, or leave none of it?"""
    product, shape = _integer_product(g)
    if product is None:
        return False
    program = g.attr("program")
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    behind = [scope[n] for n in values_behind(program, product)]
    return any(x.size > np.prod(shape) or x.ndim > len(shape) or x.size == 0 < np.prod(shape) for x in behind)


def first_elements_of_the_widened(g: Given) -> Outputs:
    """Of a result that is widened the first elements in memory, as many as the product of integers has."""
    program = g.attr("program")
    product, shape = _integer_product(g)
    if product is None:
        return None
    out, count, behind = list[Any](), int(np.prod(shape)), values_behind(program, product)
    for name, e in zip(program.outputs, g.expected):
        if name not in behind or e.value.size <= count:
            out.append(None)
            continue
        within = np.broadcast_to(e.error.bound(e.context()), e.value.shape)
        out.append(Near(*(x.ravel()[:count].reshape(shape) for x in (e.value, within))))
    return out


def _two_scales(first: np.ndarray, second: np.ndarray, columns: int) -> tuple[list[bool], bool]:
    """Of the scales of both factors, which are multiplied behind the bias, and whether they are exchanged first: the
    first has to be one number, the second too or one a column."""

    def one(x: np.ndarray) -> bool:
        return x.shape in ((), (1,))

    if one(first):
        exchanged = second.ndim > 1 and second.shape[-2] != 1
    else:
        exchanged = first.ndim == 1 or first.shape[-1] != 1
    a, b = (second, first) if exchanged else (first, second)
    return [not one(a), not (one(b) or b.shape in ((columns,), (1, columns)))], exchanged


def product_widened_in_place(g: Given) -> Outputs:
    """A product of integers of one column is multiplied by a scale of several in its own memory: each element is read
    after those before it have been written, and as many elements are there as the product has."""
    program, found = deepcopy(g.attr("program")), False
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    for k, mul in enumerate(list(program.nodes)):
        makers = [maker(program, mul.value(s)) for s in ("A", "B")] if mul.op == "Mul" else [None]
        i = next((i for i, n in enumerate(makers) if n is not None and n.op == "MatMulInteger"), None)
        if i is None:
            continue
        scales = makers[1 - i]
        if scales is None or scales.op != "Mul":
            continue
        product, given = scope[mul.value("AB"[i])], [scope[scales.value(s)] for s in ("A", "B")]
        row = max(given, key=lambda x: x.size).astype(np.float32).ravel()
        one, n = min(given, key=lambda x: x.size), row.size
        if product.shape[-1] != 1 or n == 1 or one.size != 1 or (given[0] * given[1]).shape[-1] != n:
            continue
        held = (product.astype(np.float32) * one.astype(np.float32).ravel()).ravel()
        for j in range(held.size):
            step = held[j] * row
            held[j * n : (j + 1) * n] = step[: max(0, held.size - j * n)]
        (out,) = mul.outputs
        program.consts[f"{out}_held"] = held.reshape(product.shape).astype(product.dtype)
        program.nodes[k], found = Node("Identity", {"input": f"{out}_held"}, [out], {}), True
    return edited(g, program, lambda row: farther(row, 1, 2.0**-20, 2.0**-20)) if found else None


def bias_before_the_scale(g: Given) -> Outputs:
    """A scale that is neither one number nor one a column multiplies the bias as well."""
    return _bias_before_the_scale(g)


def _bias_before_the_scale(g: Given) -> Edited | None:
    program, found = deepcopy(g.attr("program")), False
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    for add in [n for n in program.nodes if n.op == "Add"]:
        for x, bias in (("A", "B"), ("B", "A")):
            scaled = maker(program, add.value(x))
            sides = [] if scaled is None or scaled.op != "Mul" else [scaled.value("A"), scaled.value("B")]
            makers = [maker(program, s) for s in sides]
            product = next((i for i, n in enumerate(makers) if n is not None and n.op == "MatMulInteger"), None)
            scales = None if product is None else makers[1 - product]
            if product is None or scales is None or scales.op != "Mul":
                continue
            given = [scales.value("A"), scales.value("B")]
            late, exchanged = _two_scales(scope[given[0]], scope[given[1]], scope[sides[product]].shape[-1])
            if not any(late):
                continue
            k, (out,), value = program.nodes.index(add), add.outputs, sides[product]
            pairs = list(zip(given[::-1] if exchanged else given, late))
            steps = [(n, "Mul") for n, behind in pairs if not behind] + [(add.value(bias), "Add")]
            steps += [(n, "Mul") for n, behind in pairs if behind]
            nodes = list[Node]()
            for i, (n, op) in enumerate(steps):
                name = out if i == len(steps) - 1 else f"{out}_step_{i}"
                nodes.append(Node(op, {"A": value, "B": n}, [name], {}))
                value = name
            program.nodes[k : k + 1] = nodes
            found = True
            break
    return edited(g, program) if found else None


def _normalisation(
    node: Node, scope: dict[str, Any], w: np.ndarray, bias: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """What a BatchNormalization multiplies by, and what it adds then to a product with w that has lost this bias."""
    names = ("scale", "B", *(("mean", "var") if "mean" in node.inputs else ("input_mean", "input_var")))
    scale, shift, mean, var = (scope[node.value(s)] for s in names)
    with np.errstate(all="ignore"):
        by = scale / np.sqrt(var + w.dtype.type(node.attrs.get("epsilon", 1e-5)))
        return by, (-mean if bias is None else bias - mean) * by + shift


def _untransposedmaker(program: Graph, name: str) -> Node | None:
    """The node that makes a value, where Transposes between them undo each other."""
    perm, node = None, maker(program, name)
    while node is not None and node.op == "Transpose" and "perm" in node.attrs:
        of_this = np.asarray(node.attrs["perm"])
        perm = of_this if perm is None else of_this[perm]
        node = maker(program, node.value("data"))
    return node if perm is None or (perm == np.arange(len(perm))).all() else None


def batchnorm_in_the_weights(g: Given) -> Outputs:
    """A BatchNormalization behind a convolution is merged into its weights and its bias, which are rounded."""
    program, found = deepcopy(g.attr("program")), False
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    for k, node in enumerate(list(program.nodes)):
        conv = _untransposedmaker(program, node.value("X")) if node.op == "BatchNormalization" else None
        if conv is None or conv.op != "Conv" or scope[conv.value("W")].dtype == np.float64:
            continue
        w, bias = scope[conv.value("W")], conv.inputs.get("B")
        by, shift = _normalisation(node, scope, w, scope[str(bias)] if bias else None)
        with np.errstate(all="ignore"):
            merged = w * by.reshape(-1, *[1] * (w.ndim - 1))
        weights, added = f"{node.outputs[0]}_weights", f"{node.outputs[0]}_bias"
        program.consts |= {weights: merged, added: shift}
        inputs = {**conv.inputs, "W": weights, "B": added}
        program.nodes[k] = Node("Conv", inputs, node.outputs, dict(conv.attrs))
        found = True
    return edited(g, program, each_or_right) if found else None


def batchnorm_in_the_columns(g: Given) -> Outputs:
    """A BatchNormalization behind a product is merged into the columns of its second factor, which may overflow."""
    program, found = deepcopy(g.attr("program")), False
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    for k, node in enumerate(list(program.nodes)):
        if node.op != "BatchNormalization":
            continue
        product = maker(program, node.value("X"))
        while product is not None and product.op in ("Reshape", "Transpose"):
            product = maker(program, product.value("data"))
        w = None if product is None or product.op != "MatMul" else scope[product.value("B")]
        if product is None or w is None or w.shape[-1:] != scope[node.value("scale")].shape:
            continue
        by, added = _normalisation(node, scope, w, None)
        with np.errstate(all="ignore"):
            merged = w * by
            sums = np.abs(scope[product.value("A")]).astype(np.float64) @ np.abs(merged).astype(np.float64)
        if np.all(sums < np.finfo(w.dtype).max / 2):  # no step on the way overflows
            continue
        weights, bias = f"{node.outputs[0]}_weights", f"{node.outputs[0]}_bias"
        rank = scope[node.value("X")].ndim
        program.consts |= {weights: merged, bias: added.reshape(-1, *[1] * (rank - 2))}
        product.inputs = {**product.inputs, "B": weights}
        program.nodes[k] = Node("Add", {"A": node.value("X"), "B": bias}, node.outputs[:1], {})
        found = True
    return edited(g, program, each_or_right) if found else None


def bias_of_the_product_s_scale(g: Given) -> Outputs:
    """A quantised bias has the scale of the product, whatever its own is."""
    program, found = deepcopy(g.attr("program")), False
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)  # scales of run time among them
    for node in list(program.nodes):
        slots = {"Conv": ("X", "W", "B"), "Gemm": ("A", "B", "C")}.get(node.op)
        if slots is None or not node.inputs.get(slots[2]):
            continue
        x, w, bias = (maker(program, node.value(s)) for s in slots)
        scales = [
            scope[n.value("x_scale")] if n is not None and n.op == "DequantizeLinear" else None for n in (x, w, bias)
        ]
        if bias is None or any(s is None for s in scales):
            continue
        one, other, own = (s for s in scales if s is not None)
        both = (one * other).astype(np.float32)
        if both.size not in (1, own.size):
            continue
        name, scaled = f"{node.outputs[0]}_scale", f"{node.outputs[0]}_bias"
        program.consts[name] = np.broadcast_to(both.ravel(), own.shape or (1,)).reshape(own.shape)
        again = Node("DequantizeLinear", {**bias.inputs, "x_scale": name}, [scaled], dict(bias.attrs))
        program.nodes.insert(program.nodes.index(node), again)
        node.inputs[slots[2]] = scaled
        found = True
    return edited(g, program) if found else None


def ratio_beyond_the_type(g: Given) -> Outputs:
    """A scale so large that its ratio to that of the result overflows: the lowest integer, NaN made an integer."""
    program = g.attr("program")
    scales: dict[str, list[np.ndarray]] = {n.op: [] for n in program.nodes}
    for n in program.nodes:
        for slot in ("x_scale", "y_scale"):
            held = _constant(program, n.inputs.get(slot)) if n.inputs.get(slot) else None
            if held is not None:
                scales[n.op].append(held[1].astype(np.float32))
    with np.errstate(all="ignore"):
        far = any(
            not np.isfinite(x.max() / y.min() * np.float32(255))
            for x in scales.get("DequantizeLinear", ())
            for y in scales.get("QuantizeLinear", ())
        )
    if not far:
        return None
    out = list[Any]()
    for name, e in zip(program.outputs, g.expected):
        made = maker(program, name)
        last = made is not None and made.op == "QuantizeLinear"
        out.append(np.full(e.value.shape, np.iinfo(e.value.dtype).min, e.value.dtype) if last else None)
    return out


def quantised_through_int32(g: Given) -> Outputs:
    """What is to be quantised, counted in steps, is converted to int32 before it saturates: beyond it is the lowest."""
    program, found, out = g.attr("program"), False, list[Any]()
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    for name, e in zip(program.outputs, g.expected):
        made = maker(program, name)
        if made is None or made.op != "QuantizeLinear" or scope[made.value("y_scale")].size != 1:
            out.append(None)
            continue
        steps = scope[made.value("x")].astype(np.float64) / scope[made.value("y_scale")].astype(np.float64)
        beyond = np.abs(steps) >= 2.0**31
        found |= bool(beyond.any())
        out.append(Near(np.where(beyond, np.iinfo(e.value.dtype).min, e.value).astype(e.value.dtype), 0, e.value))
    return out if found else None


def limits_through_int32(g: Given) -> Outputs:
    """A Clip in front of a QuantizeLinear is left out where its limits are quantised to the ends of the type or beyond,
    by way of int32: a lower limit beyond int32 is the lowest."""
    program, found = deepcopy(g.attr("program")), False
    for node in program.nodes:
        clip = maker(program, node.value("x")) if node.op == "QuantizeLinear" else None
        low = _constant(program, clip.inputs["min"]) if clip and clip.op == "Clip" and clip.inputs.get("min") else None
        scale = _constant(program, node.inputs["y_scale"]) if low else None
        if clip is None or low is None or scale is None or low[1].size != 1 or scale[1].size != 1:
            continue
        with np.errstate(all="ignore"):
            beyond = low[1].astype(np.float64).item() / scale[1].astype(np.float64).item() >= 2.0**31
        if beyond:
            clip.op, clip.inputs, found = "Identity", {"input": clip.inputs["input"]}, True
    return edited(g, program) if found else None


def farther(row: Sequence[Any], times: float, relative: float, absolute: float) -> list[Any]:
    """Outputs that may be off further than their bounds: times that, and by a part of the value and a number more."""
    parts = [near(x) for x in row]
    return [
        x if n is None else Near(n.value, times * n.within + np.abs(n.value) * relative + absolute)
        for x, n in zip(row, parts)
    ]


PROPAGATES = ("MaxPool", "Reshape", "Squeeze", "Slice", "Transpose", "Unsqueeze")


def negatives_of_a_moved_pair_lost(g: Given) -> Outputs:
    """What moves signed integers that are dequantised without a zero point gives no negative number: it is quantised
    again, without a zero point and so to uint8.  The Reshape of a vector that is multiplied, then added to, does too.
    """
    program, signed = deepcopy(g.attr("program")), set[str]()
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    nodes, found = [], False
    vector = any(x.ndim == 1 for x in g["inputs"])
    added = {x for n in program.nodes if n.op == "Add" for x in n.inputs.values()}
    for node in program.nodes:
        nodes.append(node)
        if node.op == "DequantizeLinear" and not node.inputs.get("x_zero_point"):
            if str(scope[node.value("x")].dtype) in ("int8", "int16"):
                signed.add(node.outputs[0])
        elif node.op in PROPAGATES and signed.intersection(map(str, node.inputs.values())):
            name = node.outputs[0]
            signed.add(name)
            node.outputs = [f"{name}_signed", *node.outputs[1:]]
            nodes.append(Node("Relu", {"X": f"{name}_signed"}, [name], {}))
            found = True
        elif node.op == "MatMul" and node.inputs["A"] in signed and vector and node.outputs[0] in added:
            lost = f"{node.inputs['A']}_reshaped"  # a Gemm needs a matrix
            nodes.insert(-1, Node("Relu", {"X": node.inputs["A"]}, [lost], {}))
            node.inputs = {**node.inputs, "A": lost}
            found = True
    program.nodes = nodes
    return edited(g, program, each_or_right) if found else None


def relu_before_nan_dropped(g: Given) -> Outputs:
    """A Relu in front of a Clip whose lower limit is NaN is left out, and so is that limit."""
    program, found = deepcopy(g.attr("program")), False
    for node in program.nodes:
        if node.op != "Clip" or not node.inputs.get("min"):
            continue
        low, relu = _constant(program, node.inputs["min"]), maker(program, node.value("input"))
        if low is not None and np.isnan(low[1]).all() and relu is not None and relu.op == "Relu":
            node.inputs = {"input": relu.inputs["X"], **{k: v for k, v in node.inputs.items() if k == "max"}}
            found = True
    return edited(g, program) if found else None


def _scaled_apart(x: Any, mean: Any, var: Any, epsilon: float, scale: Any, bias: Any) -> np.ndarray:
    """x * by + (bias - mean * by) with by = scale / sqrt(var + epsilon), of the type of x, laid against x."""
    with np.errstate(all="ignore"):
        by = (x.dtype.type(1) / np.sqrt(var + epsilon)).astype(x.dtype) * scale
        return np.asarray(x * by + (bias - mean * by), x.dtype)


def ort_scale_over_the_deviation(g: Given) -> Outputs:
    """BatchNormalization multiplies by scale / sqrt(var + epsilon), which may overflow."""
    x, training = g["X"], bool(g.attr("training_mode", 0))
    if x.dtype not in (np.float32, np.float64):
        return None
    along = (1, -1, *[1] * (x.ndim - 2)) if x.ndim > 1 else (-1,)
    along = along if g["scale"].ndim == 1 else (1, *g["scale"].shape)
    scale, bias = (g[n].astype(x.dtype).reshape(along) for n in ("scale", "B"))
    if training:
        axes = tuple(k for k in range(x.ndim) if k != 1)
        with np.errstate(all="ignore"):
            mean, var = (f(x, axis=axes, keepdims=True) for f in (np.mean, np.var))
    else:
        names = ("input_mean", "input_var") if "input_mean" in g.arrays else ("mean", "var")
        mean, var = (g[n].astype(x.dtype).reshape(along) for n in names)
    y = _scaled_apart(x, mean, var, g.attr("epsilon", 1e-5), scale, bias)
    e = g.expected[0]
    if not training:
        y = np.where(np.isfinite(scale), y, e.value)  # the other scales are no case of this
    lost = ~np.isfinite(y) & (np.isfinite(e.value.astype(np.float64)) | np.isnan(y))
    if not lost.any():
        return None
    bound = np.where(lost | np.isnan(e.value), 0.0, e.error.bound(e.context()))  # a NaN stays one
    return [Near(np.where(lost, y, e.value), bound), *[None] * (len(g.expected) - 1)]


def ort_instance_scale_over_the_deviation(g: Given) -> Outputs:
    """InstanceNormalization is x * by + (B - mean * by) with by = scale / sqrt(variance + epsilon), which may be
    infinite or overflow where the formula's own steps do not."""
    x = g["input"]
    if x.dtype != np.float32:
        return None
    along, axes = (1, -1, *[1] * (x.ndim - 2)), tuple(range(2, x.ndim))
    scale, bias = (g[n].astype(np.float32).reshape(along) for n in ("scale", "B"))
    with np.errstate(all="ignore"):
        mean, var = (f(x.astype(np.float64), axis=axes, keepdims=True) for f in (np.mean, np.var))
    y = _scaled_apart(x, mean.astype(np.float32), var, g.attr("epsilon", 1e-5), scale, bias)
    e = g.expected[0]
    lost = ~np.isfinite(y) & (np.isfinite(e.value) | np.isnan(y))
    return [Near(np.where(lost, y, e.value), e.error.bound(e.context()), e.value)] if lost.any() else None


def dequantised_outputs_lost(g: Given) -> Outputs:
    """Outputs that a DequantizeLinear in front of a product gives, perhaps to a Transpose, have no value."""
    program = g.attr("program")
    lost = {n.outputs[0] for n in program.nodes if n.op == "DequantizeLinear"}
    read = {_before(program, x, ("Transpose",)) for n in program.nodes if n.op == "MatMul" for x in n.inputs.values()}
    return [NOTHING if o in lost & read else None for o in program.outputs]


def shape_of_a_cast_of_what_others_use(g: Given) -> bool:
    """Is the shape of a Cast asked for, whose operand a node makes that has another user?"""
    program = g.attr("program")
    makers = {o: n for n in program.nodes for o in n.outputs}
    read = [x for n in program.nodes for v in n.inputs.values() for x in (v if isinstance(v, list) else [v])]
    casts = [makers.get(n.value("data")) for n in program.nodes if n.op == "Shape"]
    return any(
        c is not None and c.op == "Cast" and c.value("input") in makers and read.count(c.value("input")) > 1
        for c in casts
    )


def reshape_behind_a_widened_product(g: Given) -> bool:
    """Does a Reshape take what a scale has widened of a product of integers?"""
    program = g.attr("program")
    product, shape = _integer_product(g)
    if product is None:
        return False
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    behind = values_behind(program, product)
    taken = [n.value("data") for n in program.nodes if n.op == "Reshape" and n.value("data") in behind]
    return any(scope[x].size > np.prod(shape) for x in taken)


def limits_of_a_negative_scale(g: Given) -> Outputs:
    """A Clip in front of a QuantizeLinear with a negative scale is left out where what the ends of the type stand for
    keeps to the limits, the lowest integer to the lower one, although they change places."""
    program, found = deepcopy(g.attr("program")), False
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    for node in program.nodes:
        clip = maker(program, node.value("x")) if node.op == "QuantizeLinear" else None
        scale = _constant(program, node.inputs["y_scale"]) if clip is not None and clip.op == "Clip" else None
        if clip is None or scale is None or scale[1].size != 1 or not scale[1].ravel()[0] < 0:
            continue
        info = np.iinfo(scope[node.outputs[0]].dtype)
        zero = scope[node.value("y_zero_point")].ravel()[0] if node.inputs.get("y_zero_point") else 0
        low, high = (float(scale[1].ravel()[0]) * (float(end) - float(zero)) for end in (info.min, info.max))
        limits = [scope[clip.value(s)].ravel()[0] if clip.inputs.get(s) else None for s in ("min", "max")]
        if (limits[0] is None or low >= limits[0]) and (limits[1] is None or high <= limits[1]):
            clip.op, clip.inputs, found = "Identity", {"input": clip.inputs["input"]}, True
    return edited(g, program) if found else None
