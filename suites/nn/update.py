"""One step of training a network on the device: losses, their gradients, and what an optimiser makes of the weights.

A layer and its weights are updated if both are marked so.  coremltools marks inner products and convolutions
(``backward.py``).  Categorical cross entropy is -log(input[target]), as printed.  All is computed in f64.

Not printed, and taken as usual (``readings.md``):

* the squared error is the mean over all elements, a loss is the mean over the examples of a batch
* SGD moves by velocity = momentum * velocity - rate * gradient
* Adam is algorithm 1 of Kingma and Ba, its eps beside the root

Source: NeuralNetwork.proto, NetworkUpdateParameters, LossLayer, Optimizer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.core.errors import FormatError, RuleError, Unsupported
from suites.nn import backward, parse
from suites.nn.wire import Message

Array = np.ndarray
Key = tuple[str, str]  # a layer's name and the slot of its weights
Examples = Sequence[Mapping[str, Any]]  # arrays by the name of an input or a target
_NETWORKS = ("neuralNetwork", "neuralNetworkClassifier", "neuralNetworkRegressor")


@dataclass
class State:
    """What an optimiser keeps from step to step.  first: velocities of SGD or first moments of Adam; second: second
    moments of Adam; steps: how many were taken."""

    first: dict[Key, Array] = field(default_factory=dict)
    second: dict[Key, Array] = field(default_factory=dict)
    steps: int = 0


class Training:
    """The update parameters of a model and the layers that they train.

    Raises FormatError for a model without update parameters, Unsupported, by name, for a layer, activation, loss or
    optimiser that is not computed here, RuleError "loss-of-softmax" for a cross entropy of anything but a softmax."""

    def __init__(self, model: Any) -> None:
        spec = parse.load(model)
        net = next((spec[n] for n in _NETWORKS if n in spec), None)
        if net is None or "updateParams" not in net:
            raise FormatError("nn model: no update parameters")
        self.layers = [backward.layer(m) for m in net.get("layers", ())]
        self.parameters: Message = net["updateParams"]
        self.weights: dict[Key, Array] = {(l.name, slot): w for l in self.layers for slot, w in l.weights.items()}
        self.trained = [(l.name, slot) for l in self.layers for slot in l.updatable]
        self.losses = [_loss(m, self.layers) for m in self.parameters.get("lossLayers", ())]

    def loss(self, examples: Examples) -> float:
        """The mean over the examples of the sum of all losses."""
        return float(np.mean([self._one(e)[0] for e in examples]))

    def gradients(self, examples: Examples) -> dict[Key, Array]:
        """Of ``loss``, for every array of weights that is trained."""
        each = [self._one(e)[1] for e in examples]
        return {k: np.mean([g[k] for g in each], 0) for k in self.trained}

    def step(self, examples: Examples, state: State | None = None) -> tuple[dict[Key, Array], State]:
        """The weights that are trained after a step on one batch, and the optimiser's state."""
        state = state or State()
        found = self.gradients(examples)
        optimiser: Message = self.parameters.get("optimizer", {})
        kind = next(iter(optimiser), "none")
        given = {k: v.get("defaultValue", 0.0) for k, v in optimiser.get(kind, {}).items()}
        new = State(steps=state.steps + 1)
        out = {}
        for k, g in found.items():
            if kind == "sgdOptimizer":
                move = given.get("momentum", 0.0) * state.first.get(k, 0.0) - given["learningRate"] * g
                new.first[k] = move
            elif kind == "adamOptimizer":
                move = _adam(given, g, k, state, new)
            else:
                raise Unsupported(f"optimizer {kind}")
            out[k] = self.weights[k] + move
        return out, new

    def _one(self, example: Mapping[str, Any]) -> tuple[float, dict[Key, Array]]:
        """Loss of one example, and its gradients."""
        blobs = {k: np.asarray(v, np.float64) for k, v in example.items()}
        for l in self.layers:
            blobs[l.output] = l.forward(blobs[l.input], self._of(l))
        total, back = 0.0, {k: np.zeros_like(v) for k, v in blobs.items()}
        for kind, body in self.losses:
            y, target = blobs[body["input"]], example[body["target"]]
            if kind == "meanSquaredErrorLossLayer":
                away = y - backward.like(target, y)
                total += float(np.mean(away * away))
                back[body["input"]] += 2.0 * away / away.size
            else:
                at = int(np.asarray(target).reshape(-1)[0])
                if not 0 <= at < y.size:
                    raise RuleError("target-in-range", f"{at}, expected 0 to {y.size - 1}")
                total -= float(np.log(y.reshape(-1)[at]))
                back[body["input"]].reshape(-1)[at] -= 1.0 / y.reshape(-1)[at]
        out: dict[Key, Array] = {}
        for l in reversed(self.layers):
            g, own = l.backward(blobs[l.input], blobs[l.output], back[l.output], self._of(l))
            out |= {(l.name, slot): own[slot] for slot in l.weights}
            back[l.input] = back[l.input] + g
        return total, out

    def _of(self, l: backward.Layer) -> dict[str, Array]:
        return {slot: self.weights[l.name, slot] for slot in l.weights}


def _loss(m: Message, layers: Sequence[backward.Layer]) -> tuple[str, Message]:
    kind = next((k for k in m if k.endswith("LossLayer")), "none")
    if kind == "none":
        raise Unsupported(f"loss {m.get('name', '')} of no known kind")
    made = {l.output: l.kind for l in layers}
    if kind.startswith("categorical") and made.get(m[kind].get("input", "")) != "softmax":
        raise RuleError("loss-of-softmax", f"{m[kind].get('input')}: it must be the output of a softmax")
    return kind, m[kind]


def _adam(given: Mapping[str, float], g: Array, k: Key, state: State, new: State) -> Array:
    b1, b2 = given["beta1"], given["beta2"]
    new.first[k] = b1 * state.first.get(k, 0.0) + (1.0 - b1) * g
    new.second[k] = b2 * state.second.get(k, 0.0) + (1.0 - b2) * g * g
    first, second = new.first[k] / (1.0 - b1**new.steps), new.second[k] / (1.0 - b2**new.steps)
    return -given["learningRate"] * first / (np.sqrt(second) + given["eps"])
