"""PyTorch against ``run_model``, layer by layer.

PyTorch runs twice in f64: once from its own inputs, and once with the result of every layer replaced by that of the
tested run.  So each layer is asked for its result on the inputs that the tested run gave it.

The tested run may be off by roundings of values and of weights, and by constants that the conversion merged.  What has
come together since the last layers that can be seen is propagated through the program
(``harness.compare.error_propagation``).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from harness.compare import Layer, Report, first_out_of_bounds
from harness.compare.error_propagation import propagate_error
from harness.core.dtypes import F16, F32, of
from harness.core.instance import Graph
from harness.declare.interpreter import run_graph
from harness.tolerance import ulp
from suites.mil import dialect
from suites.mil.running import State
from suites.mil_networks.convert import flat, placed
from suites.mil_networks.models import layers

MERGED = 8  # roundings in f32 of a constant that conversion computes: (b - mean) * gamma / sqrt(var + eps) + beta


@dataclass
class Run:
    """What the tested run gave: results in the program's order, every value of a node by name, states afterwards."""

    outputs: list[np.ndarray]
    values: dict[str, np.ndarray]
    states: dict[str, State] = field(default_factory=dict)


def run(model: Any, inputs: Sequence[np.ndarray], states: dict[str, State]) -> Run:
    """One call of ``run_model``; ``states`` go on to what the call made of them.

    model: what run_model takes, or a Graph read from it, whose weights a test may have changed."""
    values: dict[str, np.ndarray] = {}

    def watch(node: Any, outs: list[Any]) -> None:
        values.update((n, v) for n, v in zip(node.outputs, outs) if isinstance(v, np.ndarray))

    graph = model if isinstance(model, Graph) else dialect.parse(model)
    fed = {**states, **dict(zip([n for n, a in graph.inputs if a.kind != "state"], inputs))}
    if isinstance(model, Graph):
        outputs = run_graph(dialect, graph, fed, graph.meta["opset"], watch=watch)
    else:
        outputs = dialect.run_model(model, fed, watch)
    return Run(outputs, values, states)


def zero_states(graph: Graph) -> dict[str, State]:
    return {n: State(np.zeros(a.shape, a.dtype.np)) for n, a in graph.inputs if a.kind == "state"}


def of_constant(name: str, v: np.ndarray) -> np.ndarray:
    """How far a constant may be from what PyTorch's weights make of it."""
    top = float(np.abs(v).max(initial=0.0))
    return (ulp(v, of(v)) / 2 if of(v) is F16 else 0.0) + MERGED * 2.0**-24 * np.full(v.shape, top)


class Source:
    """A PyTorch module in f64, whose layers are watched.

    names: path of a layer -> names of its results in the program (see ``convert.placed``).
    states: name of a state in the program -> path of the buffer.
    """

    def __init__(self, m: nn.Module, names: dict[str, list[str | None]], states: dict[str, str]) -> None:
        self.module, self.names, self.states = copy.deepcopy(m).double(), names, states
        self.buffers = dict(self.module.named_buffers())

    def own(self, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """Every layer's results from the source's own values; the states stay as they are."""
        found: dict[str, np.ndarray] = {}

        def watch(path: str, i: int, out: np.ndarray) -> None:
            found[f"{path}.{i}"] = out

        self._call(inputs, watch)
        return found

    def layers(self, inputs: Sequence[np.ndarray], tested: Run, bounds: dict[str, np.ndarray]) -> list[Layer]:
        """The layers in the order in which PyTorch computes them, each from the tested run's values."""
        own, found = self.own(inputs), []

        def watch(path: str, i: int, out: np.ndarray) -> np.ndarray | None:
            name = self.names[path][i] if i < len(self.names[path]) else None
            if name is None:
                return None
            got = tested.values[name]
            label = path if i == 0 else f"{path}[{i}]"
            found.append(Layer(label, own[f"{path}.{i}"], got, bounds[name], fed=out))
            return got.astype(np.float64) if got.shape == out.shape else None

        self._call(inputs, watch)
        return found

    def go_on(self, states: dict[str, State]) -> None:
        """Take over the states that the tested run has made."""
        for name, path in self.states.items():
            self.buffers[path].copy_(torch.from_numpy(states[name].value.astype(np.float64)))

    def _call(self, inputs: Sequence[np.ndarray], watch: Callable[[str, int, np.ndarray], np.ndarray | None]) -> None:
        saved = {k: v.clone() for k, v in self.buffers.items()}

        def hook(path: str) -> Any:
            def seen(_module: Any, _inputs: Any, out: Any) -> Any:
                given = flat(out)
                new = [watch(path, i, t.numpy().copy()) for i, t in enumerate(given)]
                mine = iter([t if n is None else torch.from_numpy(n).to(t.dtype) for t, n in zip(given, new)])
                return _rebuilt(out, mine)

            return seen

        handles = [m.register_forward_hook(hook(path)) for path, m in layers(self.module).items()]
        try:
            with torch.no_grad():
                wide = [torch.from_numpy(x.astype(np.float64) if x.dtype.kind == "f" else x) for x in inputs]
                self.module(*wide)
        finally:
            for h in handles:
                h.remove()
            for k, v in saved.items():
                self.buffers[k].copy_(v)


def compare(
    source: Source,
    graph: Graph,
    inputs: Sequence[np.ndarray],
    states: dict[str, State],
    precision: str,
    model: Any = None,
) -> Report:
    """One call of the converted network (``model``, or the graph read from it) and of its source."""
    before = copy.deepcopy(states)
    tested = run(graph if model is None else model, inputs, states)
    visible = [n for names in source.names.values() for n in names if n is not None]
    allowed = bounds(graph, inputs, before, precision, {n: tested.values[n] for n in visible})
    report = first_out_of_bounds(source.layers(inputs, tested, allowed))
    source.go_on(states)
    return report


def bounds(
    graph: Graph,
    inputs: Sequence[np.ndarray],
    states: dict[str, State],
    precision: str,
    given: dict[str, np.ndarray] | None = None,
) -> dict[str, np.ndarray]:
    """How far every value may be from the source's, since the ``given`` ones; from the inputs where nothing is given.

    states: as they were before the call."""
    fed = {**copy.deepcopy(states), **dict(zip([n for n, a in graph.inputs if a.kind != "state"], inputs))}
    found = propagate_error(
        dialect,
        graph,
        fed,
        graph.meta["opset"],
        given=given,
        const=of_constant,
        attrs=F16 if precision == "FLOAT16" else F32,
    )
    return {name: v.bound for name, v in found.items()}


def weights(graph: Graph, visible: Collection[str]) -> dict[str, list[str]]:
    """Visible value -> the float constants that reach it through no other visible value."""
    makers = {n: node for node in graph.nodes for n in node.outputs}
    found: dict[str, list[str]] = {}
    for name in visible:
        waiting, seen = [makers[name]], set()
        found[name] = []
        while waiting:
            node = waiting.pop()
            for n in [n for v in node.inputs.values() for n in (v if isinstance(v, list) else [v])]:
                if n is None or n in visible or n in seen:
                    continue
                seen.add(n)
                if n in makers:
                    waiting.append(makers[n])
                elif n in graph.consts and graph.consts[n].dtype.kind == "f":
                    found[name].append(n)
    return found


def prepared(m: nn.Module, made: Any, model: Any) -> tuple[Source, Graph]:
    """The source with its layers placed in the program that ``model`` holds."""
    graph = dialect.parse(model)
    present = {n for node in graph.nodes for n in node.outputs}
    return Source(m, placed(made, m, present), made.states), graph


def _rebuilt(out: Any, flat: Any) -> Any:
    return next(flat) if isinstance(out, torch.Tensor) else tuple(_rebuilt(o, flat) for o in out)
