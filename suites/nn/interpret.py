"""Run a parsed network: layers in order over one set of named blobs, nested networks included.

Unlike ONNX blocks, a nested network has no interface: it reads and writes the blobs of the network around it, and
``copy`` may overwrite one.  Source: NeuralNetwork.proto, BranchLayerParams, LoopLayerParams, CopyLayerParams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.errors import OpconformError, RuleError, Unsupported, UsageError
from harness.core.instance import Graph, Node
from harness.declare import Call, Dialect
from harness.declare.interpreter import Watch, blamed
from harness.declare.validation import evaluated
from suites.nn import layers

LIMIT = 100_000  # iterations after which a loop without a count is taken to be endless


class Break(Exception):
    """loopBreak: leave the innermost loop."""


class Continue(Exception):
    """loopContinue: next iteration of the innermost loop."""


class Run:
    """One execution.  blobs: name -> float32 array.  consts: weights by name."""

    def __init__(self, dialect: Dialect, consts: dict[str, np.ndarray], watch: Watch | None = None) -> None:
        self.dialect, self.consts, self.watch = dialect, consts, watch
        self.blobs: dict[str, np.ndarray] = {}
        self.depth = 0

    def layers(self, nodes: Sequence[Node]) -> None:
        """Run layers in order.  Raises RuleError for what a layer forbids, UsageError for a blob that is missing."""
        for node in nodes:
            if node.op == "branch":
                if node.attrs.get("ifBranch") is None:
                    raise RuleError("if-branch-given", "this must be present")
                taken = "ifBranch" if _true(self.blob(node.inputs["condition"])) else "elseBranch"
                inner = node.attrs.get(taken)
                if inner is not None:
                    self.layers(inner.nodes)
            elif node.op == "loop":
                self.loop(node)
            elif node.op in ("loopBreak", "loopContinue"):
                if not self.depth:
                    raise RuleError("inside-a-loop", node.op)
                raise Break if node.op == "loopBreak" else Continue
            elif node.op == "custom":
                name = node.attrs.get("className", "")
                raise Unsupported(f"custom layer of class {name!r}: its meaning is code that the application has")
            else:
                self.layer(node)

    def blob(self, name: Any) -> np.ndarray:
        try:
            return self.blobs[name] if name in self.blobs else self.consts[name]
        except KeyError:
            raise UsageError(f"nn: blob {name!r} is used before it is made") from None

    def layer(self, node: Node) -> None:
        """Evaluate one plain layer."""
        with blamed(node):
            version = self.dialect.effective(node.op, 1)
            inputs: dict[str, Any] = {}
            for slot, name in node.inputs.items():
                inputs[slot] = [self.blob(n) for n in name] if isinstance(name, list) else self.blob(name)
            layers.check_lists(version.schema, node.attrs)
            call = Call(version, node.attrs, inputs, 1, n_outs=max(1, len(node.outputs)))
            outs = [e.value for e in evaluated(call)]
        if node.op == "copy" and node.outputs == list(node.inputs.values()):
            raise RuleError("names-distinct", f"{node.outputs[0]} is copied to itself")
        for name, value in zip(node.outputs, outs):
            if name in self.blobs and node.op != "copy":
                self.rewritten(name)
            self.blobs[name] = value
        if self.watch is not None:
            self.watch(node, outs)

    def rewritten(self, name: str) -> None:
        """Only ``copy`` may make a blob again, except that a loop's body runs more than once."""
        if not self.depth:
            raise RuleError("blobs-made-once", f"blob {name!r} is made twice")

    def asked(self, network: Graph | None, variable: str) -> bool:
        """What a condition network says; without one there is nothing to stop for."""
        if network is None:
            return True
        self.layers(network.nodes)
        return _true(self.blob(variable))

    def loop(self, node: Node) -> None:
        """maxLoopIterations, or the input in its place; a condition network is asked before the first iteration and
        after every one, the last of the count too.

        With a condition, neither an input nor a maximum leaves the count open.
        """
        a = node.attrs
        name = node.inputs.get("count")
        count = int(self.blob(name).reshape(-1)[0]) if name is not None else int(a.get("maxLoopIterations", 0))
        asks, variable = a.get("conditionNetwork"), a.get("conditionVar", "")
        if asks is not None and not asks.nodes:  # writers touch the field without filling it
            asks = None
        if (asks is None) != (not variable):
            raise RuleError("condition-named", "conditionVar and conditionNetwork come together")
        endless = asks is not None and name is None and count == 0
        body: Graph | None = a.get("bodyNetwork")
        if body is None:
            raise RuleError("body-given", "this field must be present")
        self.depth += 1
        try:
            i = 0
            while self.asked(asks, variable) and (endless or i < count):
                if i >= LIMIT:
                    raise OpconformError(f"loop: still running after {LIMIT} iterations")
                try:
                    self.layers(body.nodes)
                except Continue:
                    pass
                except Break:
                    break
                i += 1
        finally:
            self.depth -= 1


def _true(x: np.ndarray) -> bool:
    """Above 1e-6 in absolute value, as of BranchLayerParams; LoopLayerParams says "close to 0.0f"."""
    if x.size != 1:
        raise RuleError("condition-is-scalar", f"shape {list(x.shape)}")
    return abs(float(x.reshape(-1)[0])) > 1e-6


def map_input(x: np.ndarray, declared: Sequence[int], mapping: str, name: str) -> np.ndarray:
    """The tensor that the layers see, as float32.

    RANK5_ARRAY_MAPPING: [C] is [1, 1, C, 1, 1], [C, H, W] is [1, 1, C, H, W]; sequence and batch may be given as well.
    Raises RuleError "rank-1-or-3".
    """
    x = np.asarray(x, np.float32)
    if mapping == "EXACT_ARRAY_MAPPING":
        return x.reshape(1) if x.ndim == 0 else x
    rank = len(declared) or x.ndim
    if rank not in (1, 3) and x.ndim != 5:
        raise RuleError("rank-1-or-3", f"input {name} of rank {rank} under the rank-5 mapping")
    if x.ndim == 5:
        return x
    if rank == 1:
        return x.reshape((1,) * (3 - x.ndim) + x.shape + (1, 1))
    return x.reshape((1,) * (5 - x.ndim) + x.shape)
