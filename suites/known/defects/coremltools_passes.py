"""What comes where a difference is listed (``harness/ledger/defect_models.py``): programs that a graph pass has
changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.instance import Graph, Node
from harness.ledger.edits import edited
from suites.passes.edits import Edit, Outputs, after, saying


def _changed(g: Given, edit: Callable[[Graph], Any], fires: bool | None = None) -> Outputs:
    """The results of the program after an edit (False: it does not apply), and whether the pass is said to have done
    something."""
    program = deepcopy(g.attr("program"))
    if edit(program) is False:
        return None
    return edited(g, program, lambda row: row if fires is None else saying(program, fires, row))


def _maker(p: Graph, name: str) -> Node | None:
    return next((n for n in p.nodes if name in n.outputs), None)


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


_NEARLY = {"float16": 6e-8, "float32": 1e-12}


def duplicates_removed(g: Given) -> Outputs:
    """A constant is the first one of its type and shape that is nearly the same; other ops that hold weights have the
    operands of the first of their kind."""

    def edit(p: Graph) -> Any:
        makers = [n for n in p.nodes if n.op.startswith("constexpr")]
        if makers:
            for n in makers[1:]:
                if n.op == makers[0].op:
                    n.inputs = dict(makers[0].inputs)
            return None
        met: dict[str, np.ndarray] = {}
        for node in p.nodes:
            for slot, name in list(node.inputs.items()):
                c = p.consts.get(name) if isinstance(name, str) else None
                within = _NEARLY.get(str(c.dtype)) if c is not None else None
                if c is None or within is None:
                    continue
                same = (k for k, v in met.items() if v.dtype == c.dtype and v.shape == c.shape)
                first = next((k for k in same if np.allclose(met[k], c, rtol=0.0, atol=within)), None)
                if first is None:
                    met[str(name)] = c
                else:
                    node.inputs[slot] = first
        return None

    return _changed(g, edit, True)


_Narrow = type[np.int16] | type[np.uint16]
_OF_16_BITS = ("gather", "gather_along_axis", "gather_nd", "squeeze", "topk")
_LOOKED_AT = ("x", "indices", "axis", "axes", "k")  # the operands of these ops, in the order of their declarations


def _narrowed(p: Graph, scope: dict[str, Any]) -> dict[tuple[int, str], _Narrow]:
    """The operands, by node and slot, that only a run brings, and the type of 16 bits that each is cast to: that of the
    operand looked at before, unless a cast tells."""
    out = dict[tuple[int, str], _Narrow]()
    to: _Narrow = np.int16
    for k, node in enumerate(p.nodes):
        for slot in _LOOKED_AT if node.op in _OF_16_BITS else ():
            name = node.inputs.get(slot)
            value = scope.get(name) if isinstance(name, str) else None
            if not isinstance(value, np.ndarray) or value.dtype != np.int32:
                continue
            if name in p.consts:
                if value.size and value.min() >= 0 and value.max() <= 65535:
                    to = np.uint16
                elif value.size and value.min() >= -32768 and value.max() <= 32767:
                    to = np.int16
                continue
            made = _maker(p, str(name))
            if made is not None and made.op == "cast":
                to = np.uint16 if scope[made.value("x")].dtype == np.uint16 else np.int16
            out[k, slot] = to
    return out


def wrapped_to_16_bits(g: Given) -> Outputs:
    """Integers that an op with operands of 16 bits gets from a run are cast to such a type and back."""
    language, opset = g.case.version.dialect.language, g.inst.opset
    p = language.settled(g.attr("program"), opset)
    narrowed = _narrowed(g.attr("program"), language.run(p, g["inputs"], opset))
    scope = {**p.consts, **language.feed(p, g["inputs"])}
    for k, node in enumerate(p.nodes):
        own = dict(scope)
        for slot, name in node.inputs.items():
            if (k, slot) in narrowed:
                own[name] = scope[name].astype(narrowed[k, slot]).astype(np.int32)
        scope.update(zip(node.outputs, [e.value for e in language.node(p, node, own, opset)]))
    first = len(g.expected) - len(p.outputs)
    return [*[None] * first, *(scope[o] for o in p.outputs)] if narrowed else None


def scale_behind(g: Given) -> Outputs:
    """The scale of a table of weights multiplies what each product gives: in the shape [1, C, 1, 1] for a convolution;
    of matmul with all of its axes reversed where the flag that transposes is Python's True, else as it is."""

    def edit(e: Edit) -> Iterator[Any]:
        p = e.p
        moved = next(n for n in p.nodes if n.op == "constexpr_blockwise_shift_scale")
        for product in e.users(moved.outputs[0]):
            scale = p.consts[moved.value("scale")]
            slot = next(k for k, v in product.inputs.items() if v == moved.outputs[0])
            if product.op == "conv":
                scale = scale.reshape(1, -1, 1, 1)
            elif product.op == "linear":
                scale = scale.reshape(1, -1)
            else:
                flag = product.inputs.get(f"transpose_{slot}")
                if isinstance(flag, str) and bool(p.consts[flag]) and flag in p.meta.get("plain", ()):
                    scale = scale.T
            product.inputs[slot] = moved.inputs["data"]
            bias = e.const(product, "bias")
            if bias is not None:
                product.inputs["bias"] = e.put((bias / np.squeeze(scale)).astype(bias.dtype))
            out, product.outputs = product.outputs[0], [f"{product.outputs[0]} unscaled"]
            scaled = Node("mul", {"x": product.outputs[0], "y": e.put(scale)}, [out], {})
            p.nodes.insert(p.nodes.index(product) + 1, scaled)
            yield

    return after(g, edit)


def root_and_square_dropped(g: Given) -> Outputs:
    """sqrt and pow by 2, in either order, give their operand where nothing else uses what lies between them."""

    known = Edit(g).p.consts

    def squares(node: Node) -> bool:
        two = known.get(node.value("y")) if node.op == "pow" else None
        return two is not None and bool(np.all(two == 2))

    def edit(e: Edit) -> Iterator[Any]:
        for node in list(e.p.nodes):
            if node not in e.p.nodes or not (node.op == "sqrt" or squares(node)):
                continue
            other = e.follower(node, "pow" if node.op == "sqrt" else "sqrt")
            if other is not None and (other.op == "sqrt" or squares(other)):
                e.become(other, "identity", {"x": node.value("x")})
                e.p.nodes.remove(node)
                yield True

    return after(g, edit, folds=False)


def floored_quotient_dropped(g: Given) -> Outputs:
    """floor_div by 1 gives its operand as it is, where it does not broadcast."""

    def edit(e: Edit) -> Iterator[Any]:
        for node in e.p.nodes:
            one = e.const(node, "y")
            same = e.shape(node.value("x")) == e.shape(node.outputs[0]) if node.op == "floor_div" else False
            if same and one is not None and np.all(one == 1):
                e.become(node, "identity", {"x": node.value("x")})
                yield True

    return after(g, edit)


def splits_what_nothing_uses(g: Given) -> bool:
    """Has a split a result that no node uses?"""
    e = Edit(g, folds=False)
    return any(n.op == "split" and not all(e.users(o) for o in n.outputs) for n in e.p.nodes)


def holds_no_integers(g: Given) -> bool:
    """Is there a constant of integers without elements?"""
    return any(c.dtype.kind in "iu" and not c.size for c in Edit(g).p.consts.values())


def reshape_says_zero(g: Given) -> bool:
    """Does the shape of a reshape hold a 0, which stands for the extent of its operand?"""
    e = Edit(g)
    told = [e.const(n, "shape") for n in e.p.nodes if n.op == "reshape"]
    return any(shape is not None and 0 in shape for shape in told)


def constants_of_f16_are_not_0(g: Given) -> Outputs:
    """A constant of fewer than 400 elements keeps its sign in f16: what would become 0 is the smallest number."""

    def edit(e: Edit) -> Iterator[Any]:
        for name, v in list(e.p.consts.items()):
            if v.dtype != np.float32 or v.size >= 400:
                continue
            lost = (np.abs(v.astype(np.float16)) <= 2.0**-24) & (np.abs(v) > 2.0**-149)
            kept = np.where(lost, np.copysign(2.0**-24, v), v).astype(np.float32)
            if (kept.astype(np.float16) != v.astype(np.float16)).any():
                e.p.consts[name] = kept
                yield name

    return after(g, edit)
