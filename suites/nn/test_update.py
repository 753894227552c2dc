"""Training on the device: the reference against differences of the loss and against optimisers written out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.core.errors import FormatError, RuleError, Unsupported
from suites.nn.update import State, Training

RATE, MOMENTUM, BETA1, BETA2, EPS = 0.125, 0.5, 0.75, 0.875, 1e-3


def model(loss: str = "cross entropy", optimiser: str = "sgd", hidden: str = "TANH") -> Any:
    """Two inner products, the second with a softmax or none behind it, as coremltools writes them."""
    coremltools = pytest.importorskip("coremltools")
    from coremltools.models import datatypes
    from coremltools.models.neural_network import AdamParams, NeuralNetworkBuilder, SgdParams

    rng = np.random.default_rng(3)
    end = "p" if loss == "cross entropy" else "z"
    b = NeuralNetworkBuilder([("x", datatypes.Array(3))], [(end, datatypes.Array(2))], disable_rank5_shape_mapping=True)
    b.add_inner_product("one", rng.normal(size=(4, 3)), rng.normal(size=4), 3, 4, True, "x", "h")
    b.add_activation("act", hidden, "h", "a")
    b.add_inner_product("two", rng.normal(size=(2, 4)), rng.normal(size=2), 4, 2, True, "a", "z")
    if loss == "cross entropy":
        b.add_softmax("soft", "z", "p")
    b.make_updatable(["one", "two"])
    if loss == "cross entropy":
        b.set_categorical_cross_entropy_loss("loss", "p")
    else:
        b.set_mean_squared_error_loss("loss", ("z", datatypes.Array(2)))
    if optimiser == "sgd":
        b.set_sgd_optimizer(SgdParams(lr=RATE, batch=2, momentum=MOMENTUM))
    else:
        b.set_adam_optimizer(AdamParams(lr=RATE, batch=2, beta1=BETA1, beta2=BETA2, eps=EPS))
    b.set_epochs(1)
    return coremltools.models.MLModel(b.spec, skip_model_load=True).get_spec()


def examples(loss: str) -> list[dict[str, Any]]:
    xs = (np.array([0.5, -1.0, 2.0]), np.array([-0.25, 0.75, 1.0]))
    target = {"p_true": 1} if loss == "cross entropy" else {"z_true": np.array([0.5, -0.5])}
    return [{"x": x, **target} for x in xs]


@pytest.mark.parametrize("hidden", ["TANH", "SIGMOID", "RELU"])
@pytest.mark.parametrize("loss", ["cross entropy", "squared error"])
def test_gradients_are_differences_of_the_loss(loss: str, hidden: str) -> None:
    t, given = Training(model(loss, hidden=hidden)), examples(loss)
    found = t.gradients(given)
    assert set(found) == {(layer, slot) for layer in ("one", "two") for slot in ("weights", "bias")}
    for key, g in found.items():
        w = t.weights[key]
        for at in np.ndindex(w.shape):
            kept, ends = w[at], []
            for step in (1e-6, -1e-6):
                w[at] = kept + step
                ends.append(t.loss(given))
            w[at] = kept
            assert abs((ends[0] - ends[1]) / 2e-6 - g[at]) < 1e-7, (key, at)


def test_the_losses_are_what_the_formulas_say() -> None:
    """-log(input[target]), and the mean over the elements of the squared difference."""
    t = Training(model())
    (w1, b1), (w2, b2) = ([t.weights[k, s] for s in ("weights", "bias")] for k in ("one", "two"))
    each, squared = [], []
    for e in examples("cross entropy"):
        z = [
            sum(w2[i, j] * np.tanh(sum(w1[j, k] * e["x"][k] for k in range(3)) + b1[j]) for j in range(4)) + b2[i]
            for i in range(2)
        ]
        each.append(np.log(sum(np.exp(v) for v in z)) - z[1])
        squared.append(((z[0] - 0.5) ** 2 + (z[1] + 0.5) ** 2) / 2)
    assert t.loss(examples("cross entropy")) == pytest.approx(np.mean(each), rel=1e-12)
    other = Training(model("squared error")).loss(examples("squared error"))
    assert other == pytest.approx(np.mean(squared), rel=1e-12)


def test_sgd_moves_by_its_velocity() -> None:
    t, given = Training(model()), examples("cross entropy")
    key = ("two", "weights")
    start, first = t.weights[key].copy(), t.gradients(given)[key]
    after, state = t.step(given)
    assert np.allclose(after[key], start - RATE * first, rtol=1e-15)
    t.weights.update(after)
    second = t.gradients(given)[key]
    last, _ = t.step(given, state)
    assert np.allclose(last[key] - after[key], -RATE * (second + MOMENTUM * first), rtol=1e-12)


def test_adam_is_the_algorithm_of_its_paper() -> None:
    t, given, state = Training(model("squared error", "adam")), examples("squared error"), State()
    key = ("one", "bias")
    m: np.ndarray = np.zeros(())
    v: np.ndarray = np.zeros(())
    for n in (1, 2, 3):
        g, before = t.gradients(given)[key], t.weights[key].copy()
        after, state = t.step(given, state)
        m, v = m + (g - m) * (1 - BETA1), v + (g**2 - v) * (1 - BETA2)
        rate = RATE * np.sqrt(1 - BETA2**n) / (1 - BETA1**n)
        by_hand = before - rate * m / (np.sqrt(v) + EPS * np.sqrt(1 - BETA2**n))
        assert np.allclose(after[key], by_hand, rtol=1e-12)
        t.weights.update(after)


def test_a_step_makes_the_loss_smaller() -> None:
    for optimiser in ("sgd", "adam"):
        t, given = Training(model(optimiser=optimiser)), examples("cross entropy")
        before = t.loss(given)
        t.weights.update(t.step(given)[0])
        assert t.loss(given) < before


def test_what_is_not_marked_stays_as_it_is() -> None:
    spec = model()
    net = spec.neuralNetwork
    next(m for m in net.layers if m.name == "one").isUpdatable = False
    assert {layer for layer, _ in Training(spec).step(examples("cross entropy"))[0]} == {"two"}


def test_what_is_not_computed_is_refused_by_name() -> None:
    spec = model()
    layer = next(m for m in spec.neuralNetwork.layers if m.name == "act")
    layer.activation.softplus.MergeFromString(b"")
    with pytest.raises(Unsupported, match="activation softplus"):
        Training(spec)
    layer.unary.type = 0
    with pytest.raises(Unsupported, match="training through unary"):
        Training(spec)
    plain = model()
    plain.neuralNetwork.ClearField("updateParams")
    with pytest.raises(FormatError, match="no update parameters"):
        Training(plain)


def test_a_cross_entropy_is_that_of_a_softmax() -> None:
    """ "It must be the output of a softmax"; coremltools refuses it, too."""
    spec = model()
    spec.neuralNetwork.updateParams.lossLayers[0].categoricalCrossEntropyLossLayer.input = "z"
    with pytest.raises(RuleError, match="softmax"):
        Training(spec)
