"""Programs changed as a graph pass changes them: what models of the defects of passes share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.instance import Graph, Node
from harness.ledger.edits import Edited, edited
from suites.passes.program import LANGUAGE
from suites.programs.values import operands

Outputs = list[Any] | Edited | None
_WITHOUT_VALUES = (  # coremltools 9.0 states no value_inference for them, or folds them not only as a value
    "affine avg_pool batch_norm batch_to_space conv conv_transpose coreml_update_state crop crop_resize depth_to_space"
    " dequantize gather_nd gru instance_norm l2_pool local_response_norm lstm max_pool non_maximum_suppression one_hot"
    " pixel_shuffle pixel_unshuffle quantize read_state resample reshape_like resize resize_bilinear"
    " resize_nearest_neighbor rnn scatter scatter_nd silu sliding_windows space_to_batch space_to_depth"
    " upsample_bilinear upsample_nearest_neighbor"
)
_NEVER_FOLDED = frozenset(_WITHOUT_VALUES.split())


class Edit:
    """A copy of an instance's program, to be changed.  Nodes whose operands are all constants are constants in it, as
    coremltools knows their values too; with ``folds=False`` they stay nodes, as for a pass that asks for no value.

    p: the program.  values: of all its values on the data of the instance, for their shapes.
    """

    def __init__(self, g: Given, folds: bool = True) -> None:
        self.g = g
        self.p: Graph = deepcopy(g.attr("program"))
        self.values = LANGUAGE.run(g.attr("program"), g["inputs"], g.inst.opset)
        for node in list(self.p.nodes) if folds else ():
            names = [n for _, _, n in operands(node)]
            plain = node.op not in _NEVER_FOLDED and not node.op.startswith(("constexpr", "random"))
            plain = plain and not any(isinstance(a, Graph) for a in node.attrs.values())
            if plain and names and all(n in self.p.consts for n in names):
                self.p.consts |= {o: np.asarray(self.values[o]) for o in node.outputs}
                self.p.nodes.remove(node)
        if g.inst.op == "default_pipeline":
            self._without_identities()

    def _without_identities(self) -> None:
        """The pipeline removes nodes that change nothing before it looks for patterns."""
        for node in [n for n in self.p.nodes if n.op == "identity" and n.outputs[0] not in self.p.outputs]:
            x, made = node.value("x"), node.outputs[0]
            for user in self.users(made):
                for slot, v in user.inputs.items():
                    one = x if v == made else v
                    user.inputs[slot] = [x if i == made else i for i in v] if isinstance(v, list) else one
            if not self.users(made):  # a block may still read it
                self.p.nodes.remove(node)

    def maker(self, name: Any, *ops: str) -> Node | None:
        """The node that makes a value, if it is one of these ops."""
        return next((n for n in self.p.nodes if name in n.outputs and (not ops or n.op in ops)), None)

    def users(self, name: str) -> list[Node]:
        return [n for n in self.p.nodes if any(x == name for _, _, x in operands(n))]

    def follower(self, node: Node | None, *ops: str) -> Node | None:
        """The only user of a node's result, if it is one of these ops and the result is no output."""
        if node is None or node.outputs[0] in self.p.outputs:
            return None
        users = self.users(node.outputs[0])
        return users[0] if len(users) == 1 and users[0].op in ops else None

    def const(self, node: Node, slot: str) -> np.ndarray | None:
        """The constant in a slot of a node."""
        name = node.inputs.get(slot)
        return self.p.consts.get(name) if isinstance(name, str) else None

    def side(self, node: Node) -> tuple[np.ndarray, str] | None:
        """The constant of a node of two operands, and the other operand."""
        for slot, other in (("x", "y"), ("y", "x")):
            c, name = self.const(node, slot), node.inputs.get(other)
            if c is not None and isinstance(name, str) and name not in self.p.consts:
                return c, name
        return None

    def put(self, value: Any) -> str:
        """A new constant."""
        name = f"new{len(self.p.consts)}"
        self.p.consts[name] = np.asarray(value)
        return name

    def become(self, node: Node, op: str, inputs: dict[str, Any]) -> Node:
        """The node, which is another one now, of the same results."""
        node.op, node.attrs = op, {}
        node.inputs = {k: v if isinstance(v, str) else self.put(v) for k, v in inputs.items()}
        return node

    def shape(self, name: str) -> tuple[int, ...]:
        return np.shape(self.values[name])


def after(g: Given, edit: Callable[[Edit], Iterator[Any]], folds: bool = True) -> Outputs:
    """What a defect model returns: the program is right after an edit, which yields once for each change that it makes;
    None where it makes none.  The pass is then said to have done something."""
    e = Edit(g, folds)
    if not list(edit(e)):
        return None
    return edited(g, e.p, lambda row: saying(e.p, True, row))


def saying(program: Graph, fires: bool, row: Sequence[Any]) -> Sequence[Any]:
    """Outputs of which the first says whether the pass has done something; of a program that was respelt nothing is
    promised."""
    return row if program.meta["fires"] is None else [np.array(fires), *row[1:]]
