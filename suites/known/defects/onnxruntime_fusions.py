"""What comes where a difference is listed (``harness/ledger/defect_models.py``): programs that ONNX Runtime fuses
although they are not what the fusion takes them for."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.dtypes import F16, F32, F64, DType, of
from harness.core.instance import Graph, Node
from harness.declare import Expected
from harness.ledger.defect_models import NOTHING
from harness.ledger.edits import Edited, Near, each_or_right, edited, near
from harness.tolerance import ulp

Outputs = list[Any] | Edited | None


def powers_for_squares(g: Given) -> Outputs:
    """A Pow is the square of its base, whatever the exponent and its axes; of the exponent if the base is constant."""
    program, found = deepcopy(g.attr("program")), False
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    folded = _folded(g, program)
    for node in program.nodes:
        base, exponent = folded.get(str(node.inputs.get("X"))), folded.get(str(node.inputs.get("Y")))
        if node.op != "Pow" or (exponent is not None and (exponent == 2).all()):
            continue
        held = base if exponent is None and base is not None else scope[node.value("Y")]
        if exponent is None and base is not None:
            node.inputs["X"] = node.inputs["Y"]
        node.inputs["Y"], found = f"{node.outputs[0]}_two", True
        program.consts[str(node.inputs["Y"])] = np.full((), 2, held.dtype)  # nor does its shape count
    return edited(g, program) if found else None


def means_kept(g: Given) -> Outputs:
    """A mean whose axis goes keeps it: another vector is subtracted where the extents happen to fit."""
    program, found = deepcopy(g.attr("program")), False
    for node in program.nodes:
        if node.op == "ReduceMean" and node.attrs.get("keepdims", 1) == 0:
            node.attrs["keepdims"], found = 1, True
    return edited(g, program) if found else None


def constants_without_axes(g: Given) -> Outputs:
    """Beside a mean whose axis goes, a constant of one element is a scalar, which widens nothing."""
    program = deepcopy(g.attr("program"))
    if all(n.op != "ReduceMean" or n.attrs.get("keepdims", 1) for n in program.nodes):
        return None
    wide = {n: x for n, x in program.consts.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.ndim}
    wide = {n: x for n, x in wide.items() if x.size == 1}
    program.consts |= {n: x.reshape(()) for n, x in wide.items()}
    return edited(g, program) if wide else None


def axes_in_front_lost(g: Given) -> Outputs:
    """Outputs have not more axes than the first input: of those in front the first index alone is there."""
    rank, out, found = g["inputs"][0].ndim, list[Any](), False
    program = g.attr("program")
    folded = _folded(g, program)
    for name, e in zip(program.outputs, g.expected):
        value = e.value
        if name in folded:
            out.append(None)
            continue
        within = np.broadcast_to(e.error.bound(e.context()), value.shape)
        while value.ndim > rank:
            value, within, found = value[0], within[0], True
        out.append(None if value is e.value else Near(value, within))
    return out if found else None


def equal_constants_are_one(g: Given) -> Outputs:
    """A constant exponent of equal elements is a scalar."""
    program, found = deepcopy(g.attr("program")), False
    for node in program.nodes:
        value = program.consts.get(str(node.inputs.get("Y"))) if node.op == "Pow" else None
        if value is not None and value.ndim and value.size and (value == value.flat[0]).all():
            node.inputs["Y"] = f"{node.outputs[0]}_exponent"
            program.consts[str(node.inputs["Y"])] = value.reshape(-1)[0].reshape(())
            found = True
    return edited(g, program) if found else None


def axes_of_a_numerator_lost(g: Given) -> Outputs:
    """A constant numerator of one element is a scalar."""
    program, found = deepcopy(g.attr("program")), False
    folded = _folded(g, program)
    for node in program.nodes:
        value = folded.get(str(node.inputs["A"])) if node.op == "Div" else None
        if value is not None and value.ndim and value.size == 1:
            node.inputs["A"] = f"{node.outputs[0]}_numerator"
            program.consts[str(node.inputs["A"])] = value.reshape(())
            found = True
    return edited(g, program) if found else None


def numerator_has_axes(g: Given) -> bool:
    """Is a constant of one element, but not a scalar, divided by something?"""
    program = g.attr("program")
    folded = _folded(g, program)
    given = [folded.get(str(n.inputs["A"])) for n in program.nodes if n.op == "Div"]
    return any(v is not None and v.ndim > 0 and v.size == 1 for v in given)


def _source(program: Graph, name: str) -> str:
    """The value that nodes which change nothing hand on under another name."""
    made = next((n for n in program.nodes if name in n.outputs), None)
    while made is not None and made.op in ("Identity", "Cast"):
        name = made.value("input")
        made = next((n for n in program.nodes if name in n.outputs), None)
    return name


def _folded(g: Given, program: Graph) -> dict[str, np.ndarray]:
    """The values of a program that follow from its constants alone."""
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    names = set(program.consts)
    for node in program.nodes:
        read = [x for v in node.inputs.values() for x in (v if isinstance(v, list) else [v]) if x]
        if names.issuperset(read):
            names.update(node.outputs)
    return {n: scope[n] for n in names if isinstance(scope.get(n), np.ndarray)}


def _after(program: Graph, name: str) -> list[Node]:
    return [n for n in program.nodes if name in n.inputs.values()]


_MOVERS = ("Reshape", "Transpose", "Identity")


def _moved_to(program: Graph, name: str) -> str:
    """The result of the op that a value reaches through nodes that move it; of the last of them if there is none."""
    last = name
    for user in _after(program, name):
        if user.op not in _MOVERS:
            return user.outputs[0]
        last = _moved_to(program, user.outputs[0])
        maker = next(n for n in program.nodes if last in n.outputs)
        if maker.op not in _MOVERS:
            return last
    return last


def _products(program: Graph) -> dict[str, str]:
    """Outputs that a product, or what moves it, gives on the way to a BatchNormalization or Transpose: its result."""
    out: dict[str, str] = {}
    for name in program.outputs:
        made = next((n for n in program.nodes if name in n.outputs), None)
        while made is not None and made.op in _MOVERS:
            made = next(
                (n for n in program.nodes if made.inputs.get("data", made.inputs.get("input")) in n.outputs), None
            )
        if made is None or made.op not in ("MatMul", "Gemm"):
            continue
        last = _moved_to(program, name)
        if last != name:
            out[name] = last
    return out


def products_lost(g: Given) -> Outputs:
    """Outputs that a product gives on the way to what it is merged with have no value."""
    program = g.attr("program")
    lost = _products(program)
    return [NOTHING if o in lost else None for o in program.outputs] if lost else None


def convolutions_lost(g: Given) -> Outputs:
    """Outputs that a Conv gives, and an Add takes, have no value; what the Add gives is there."""
    program = g.attr("program")
    made = {n.outputs[0] for n in program.nodes if n.op == "Conv"}
    lost = {_source(program, x) for n in program.nodes if n.op == "Add" for x in n.inputs.values()} & made
    lost &= set(program.outputs)
    return [NOTHING if o in lost else None for o in program.outputs] if lost else None


def transposed_products_lost(g: Given) -> Outputs:
    """Outputs that a product gives, and a Transpose takes, have no value; what the Transpose gives is there."""
    program = g.attr("program")
    products = {n.outputs[0] for n in program.nodes if n.op in ("MatMul", "Gemm")}
    lost = {x for n in program.nodes if n.op == "Transpose" for x in [_source(program, n.value("data"))]} & products
    lost &= set(program.outputs)
    return [NOTHING if o in lost else None for o in program.outputs] if lost else None


def products_merged(g: Given) -> Outputs:
    """Outputs that a product gives on the way to a BatchNormalization are normalised already."""
    program = g.attr("program")
    lost = _products(program)
    changed = deepcopy(program)
    changed.outputs = [lost.get(o, o) for o in program.outputs]
    again = g.reevaluate({"program": changed}) if lost else None
    if again is None:
        return None
    out = list[Any]()
    for o, due, e in zip(program.outputs, g.expected, again):
        within = e.error.bound(e.context())
        out.append(Near(e.value.reshape(due.value.shape), np.reshape(within, due.value.shape)) if o in lost else None)
    return out


def integers_compared(g: Given) -> Outputs:
    """ArgMax and ArgMin look at the quantised integers, as if every scale were positive and finite."""
    program = deepcopy(g.attr("program"))
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    for node in program.nodes:
        if node.op == "DequantizeLinear":
            scale = scope[node.value("x_scale")]
            node.inputs["x_scale"] = f"{node.outputs[0]}_one"
            program.consts[str(node.inputs["x_scale"])] = np.ones_like(scale)
    return edited(g, program, lambda row: [x if x.value.dtype == np.int64 else None for x in row])


def reciprocal_of_the_scale_floored(g: Given) -> Outputs:
    """A Softmax is multiplied by the whole number below the reciprocal of the scale that it is quantised by."""
    program, found = deepcopy(g.attr("program")), False
    scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
    for node in program.nodes:
        scale = scope[node.value("y_scale")] if node.op == "QuantizeLinear" else None
        makers = {o: n.op for n in program.nodes for o in n.outputs}
        if scale is None or makers.get(_source(program, node.value("x"))) != "Softmax":
            continue
        with np.errstate(all="ignore"):
            by = np.float32(1) / scale.astype(np.float32)
            whole = (np.float32(1) / np.floor(by)).astype(scale.dtype)
        if (np.floor(by) != by).all():
            node.inputs["y_scale"], found = f"{node.outputs[0]}_scale", True
            program.consts[str(node.inputs["y_scale"])] = whole
    return edited(g, program) if found else None


_MOVING = ("MaxPool", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice")


def pair_of_an_infinite_scale(g: Given) -> Outputs:
    """What is quantised by an infinite scale behind a node that moves elements is the lowest integer: the elements are
    quantised and dequantised in front of that node too, and 0 times infinity is NaN."""
    program, found = deepcopy(g.attr("program")), False
    folded = _folded(g, program)
    for k, node in enumerate(list(program.nodes)):
        scale = folded.get(node.value("y_scale")) if node.op == "QuantizeLinear" else None
        if scale is None or scale.size != 1 or not np.isinf(scale).all():
            continue
        x = _source(program, node.value("x"))
        if not any(x in n.outputs and n.op in _MOVING for n in program.nodes):
            continue
        scope = g.case.version.dialect.language.run(program, g["inputs"], g.inst.opset)
        (out,) = node.outputs
        program.consts[f"{out}_lowest"] = np.full_like(scope[out], np.iinfo(scope[out].dtype).min)
        program.nodes[k] = Node("Identity", {"input": f"{out}_lowest"}, [out], {})
        found = True
    return edited(g, program) if found else None


def padding_meets_no_weight(g: Given) -> Outputs:
    """A weight that is NaN or infinite plays no part where it stands over the padding of a convolution."""
    program, found = deepcopy(g.attr("program")), False
    folded = _folded(g, program)
    for node in program.nodes:
        w = folded.get(node.value("W")) if node.op == "Conv" else None
        if w is not None and not np.isfinite(w).all():
            node.inputs["W"] = f"{node.outputs[0]}_weights"
            program.consts[str(node.inputs["W"])] = np.where(np.isfinite(w), w, 0).astype(w.dtype)
            found = True
    return edited(g, program, each_or_right) if found else None


def _wider(g: Given, narrow: Any, to: DType, room: float) -> Edited | None:
    """The program with values of these types in a wider one, whose results alone are rounded; None where it has none.

    room: by which the bounds are multiplied."""
    scope = g.case.version.dialect.language.run(g.attr("program"), g["inputs"], g.inst.opset)
    if not any(isinstance(x, np.ndarray) and of(x) in narrow for x in scope.values()):
        return None
    program = deepcopy(g.attr("program"))
    for name, value in program.consts.items():
        program.consts[name] = value.astype(to.np) if of(value) in narrow else value
    for node in program.nodes:
        node.attrs = {k: to if v in narrow else v for k, v in node.attrs.items()}
    wide = [x.astype(to.np) if of(x) in narrow else x for x in g["inputs"]]
    return edited(g, program, lambda row: _rounded_once(g, row, room), {"inputs": wide})


def _rounded_once(g: Given, row: Sequence[Any], room: float) -> list[Any]:
    out = list[Any]()
    for due, item in zip(g.expected, row):
        e = near(item)
        if e is None or due.value.dtype.kind != "f":
            whole = isinstance(item, Expected) and due.value.dtype.kind in "iub"
            # one user may read the rounded value, another the one that is not
            out.append(Near(item.value, 0.0, due.value) if whole else None if isinstance(item, Expected) else item)
            continue
        value = e.value.astype(np.float64)
        off = np.broadcast_to(np.asarray(e.within, np.float64), value.shape) * room
        with np.errstate(all="ignore"):
            step = np.where(np.isfinite(value), ulp(value, due.dtype), 0.0)
            within = np.where(np.isnan(off) | ~np.isfinite(value), 0.0, off) + step
            out.append(Near(value.astype(due.value.dtype), within))
    return out


def unrounded_between(g: Given) -> Outputs:
    """What overflows on the way does not: values on the way are those of f64, as exact as f32 can have them."""
    wide = _wider(g, (F16, F32), F64, 2.0**29)
    return None if wide is None else list(wide.outputs())  # no other model speaks of it: its room is for these bounds


def unrounded_between_f16(g: Given) -> Outputs:
    """In a program with values of f16 those on the way are of f32, and the results alone are rounded to f16."""
    return _wider(g, (F16,), F32, 1.0)


def scales_behind_sums(g: Given) -> Outputs:
    """Scales of DequantizeLinear that are NaN or infinite multiply the sum of products, not the factors: those of
    columns each its own column."""
    program, by = deepcopy(g.attr("program")), np.ones((), np.float32)
    folded = _folded(g, program)
    for node in program.nodes:
        if node.op == "DequantizeLinear":
            scale = folded.get(node.value("x_scale"))
            if scale is not None and scale.ndim < 2 and not np.isfinite(scale).all():
                one = scale.ravel()[0] if scale.size == 1 else np.where(np.isfinite(scale), 1, scale)
                node.inputs["x_scale"] = f"{node.outputs[0]}_finite"
                program.consts[str(node.inputs["x_scale"])] = np.where(np.isfinite(scale), scale, 1).astype(scale.dtype)
                by = by * one
    products = [n for n in program.nodes if n.op == "MatMul"]
    if np.isfinite(by).all() or len(products) != 1:
        return None
    last = products[0]
    k, (out,) = program.nodes.index(last), last.outputs
    last.outputs, program.consts["by"] = ["sums"], np.asarray(by, np.float32)
    program.nodes.insert(k + 1, Node("Mul", {"A": "sums", "B": "by"}, [out], {}))
    return edited(g, program, each_or_right)


def scales_multiplied_first(g: Given) -> Outputs:
    """The scales of both factors of a product, those of columns each for its own, are multiplied first, and lose digits
    where that is subnormal."""
    program = deepcopy(g.attr("program"))
    by: np.ndarray = np.ones((), np.float32)
    folded = _folded(g, program)
    products = [n for n in program.nodes if n.op == "MatMul"]
    read = {str(x) for n in products for x in n.inputs.values()}  # a copy that no product reads multiplies nothing
    for node in [n for n in program.nodes if n.op == "DequantizeLinear" and n.outputs[0] in read]:
        scale = folded.get(node.value("x_scale"))
        columns = len(products) == 1 and node.outputs[0] == products[0].inputs["B"]
        columns = columns and scale is not None and scale.ndim == 1 and node.attrs.get("axis", 1) == 1
        if scale is None or (scale.size != 1 and not columns):
            return None
        node.inputs["x_scale"], by = f"{node.outputs[0]}_one", by * (scale if scale.size > 1 else scale.reshape(()))
        program.consts[str(node.inputs["x_scale"])] = np.ones_like(scale)
    if len(products) != 1 or not np.any((by != 0) & (np.abs(by) < np.finfo(np.float32).tiny)):
        return None
    (out,) = products[0].outputs
    products[0].outputs, program.consts["by"] = ["sums"], np.asarray(by, np.float32)
    program.nodes.insert(program.nodes.index(products[0]) + 1, Node("Mul", {"A": "sums", "B": "by"}, [out], {}))
    return edited(g, program, each_or_right)


def clips_to_the_largest(g: Given) -> Outputs:
    """A Clip without a limit has the largest or the lowest finite number for it."""
    program, found = deepcopy(g.attr("program")), False
    dtype = g["inputs"][0].dtype
    for node in program.nodes:
        for slot, value in (("min", -1), ("max", 1)) if node.op == "Clip" else ():
            if not node.inputs.get(slot):
                node.inputs[slot] = f"limit_{slot}_{node.outputs[0]}"
                program.consts[str(node.inputs[slot])] = np.array(value * np.finfo(dtype).max, dtype)
                found = True
    return edited(g, program) if found else None
