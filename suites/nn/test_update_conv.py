"""Training of convolutions: the reference against difference quotients of a loss that plain loops compute."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from harness.core.errors import RuleError, Unsupported
from suites.nn import dialect
from suites.nn.update import Training

# name -> what coremltools is told of a convolution of an input [1, 4, 5, 6]
CASES: dict[str, dict[str, Any]] = {
    "plain": {"k": (3, 2), "stride": (1, 1), "mode": "valid"},
    "strided": {"k": (3, 3), "stride": (2, 3), "mode": "same"},
    "same, odd at the top": {"k": (2, 4), "stride": (1, 2), "mode": "same", "asymmetry": "TOP_LEFT_HEAVY"},
    "padded": {"k": (3, 3), "stride": (2, 1), "mode": "valid", "pads": (1, 0, 2, 1)},
    "dilated": {"k": (2, 2), "stride": (1, 2), "mode": "valid", "dilation": (2, 3)},
    "in groups": {"k": (2, 3), "stride": (2, 1), "mode": "valid", "groups": 2},
    "transposed": {"k": (3, 2), "stride": (2, 3), "mode": "valid", "turned": True},
    "transposed, padded": {"k": (3, 3), "stride": (2, 1), "mode": "valid", "turned": True, "pads": (1, 0, 1, 1)},
    "transposed in groups": {"k": (2, 2), "stride": (1, 2), "mode": "valid", "turned": True, "groups": 2},
    "transposed, same": {"k": (3, 3), "stride": (2, 2), "mode": "same", "turned": True},
}
SHAPE, OUT = (1, 4, 5, 6), 2


def model(case: dict[str, Any], optimiser: str = "sgd") -> Any:
    """A convolution, tanh, and the squared error of what comes out, as coremltools writes them."""
    coremltools = pytest.importorskip("coremltools")
    from coremltools.models import datatypes
    from coremltools.models.neural_network import AdamParams, NeuralNetworkBuilder, SgdParams

    rng, (kh, kw), groups = np.random.default_rng(7), case["k"], case.get("groups", 1)
    turned = case.get("turned", False)
    w = rng.normal(size=(kh, kw, SHAPE[1], OUT // groups) if turned else (kh, kw, SHAPE[1] // groups, OUT))
    top, bottom, left, right = case.get("pads", (0, 0, 0, 0))
    b = NeuralNetworkBuilder(
        [("x", datatypes.Array(*SHAPE))], [("z", datatypes.Array(1))], disable_rank5_shape_mapping=True
    )
    b.add_convolution(
        "conv",
        SHAPE[1] if turned else SHAPE[1] // groups,
        OUT,
        kh,
        kw,
        *case["stride"],
        case["mode"],
        groups,
        w,
        rng.normal(size=OUT),
        True,
        is_deconv=turned,
        input_name="x",
        output_name="h",
        dilation_factors=list(case.get("dilation", (1, 1))),
        padding_top=top,
        padding_bottom=bottom,
        padding_left=left,
        padding_right=right,
        same_padding_asymmetry_mode=case.get("asymmetry", "BOTTOM_RIGHT_HEAVY"),
    )
    b.add_activation("act", "TANH", "h", "z")
    b.make_updatable(["conv"])
    b.set_mean_squared_error_loss("loss", ("z", datatypes.Array(1)))
    if optimiser == "sgd":
        b.set_sgd_optimizer(SgdParams(lr=0.125, batch=1, momentum=0.5))
    else:
        b.set_adam_optimizer(AdamParams(lr=0.125, batch=1, beta1=0.75, beta2=0.875, eps=1e-3))
    b.set_epochs(1)
    return coremltools.models.MLModel(b.spec, skip_model_load=True).get_spec()


def pads_of(case: dict[str, Any]) -> list[tuple[int, int]]:
    """(before, after) on each axis, from the text of SamePadding and ValidPadding."""
    if case["mode"] == "valid":
        top, bottom, left, right = case.get("pads", (0, 0, 0, 0))
        return [(top, bottom), (left, right)]
    out = []
    for n, k, t in zip(SHAPE[2:], case["k"], case["stride"]):
        if case.get("turned"):  # H_out = H_in * stride
            total = (n - 1) * t + k - n * t
        else:
            total = max(0, (-(-n // t) - 1) * t + k - n)
        heavy = case.get("asymmetry") == "TOP_LEFT_HEAVY"
        first = total - total // 2 if heavy else total // 2
        out.append((first, total - first))
    return out


def by_loops(case: dict[str, Any], x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The convolution from its description, element by element."""
    (kh, kw), (sh, sw), groups = case["k"], case["stride"], case.get("groups", 1)
    dh, dw = case.get("dilation", (1, 1))
    (top, bottom), (left, right) = pads_of(case)
    _, c, h, wide = x.shape
    if case.get("turned"):
        oh, ow = (h - 1) * sh + kh - top - bottom, (wide - 1) * sw + kw - left - right
    else:
        oh = (h + top + bottom - (kh - 1) * dh - 1) // sh + 1
        ow = (wide + left + right - (kw - 1) * dw - 1) // sw + 1
    y = np.zeros((1, OUT, oh, ow)) + b[:, None, None]
    for g, m, n in itertools.product(range(groups), range(OUT // groups), range(c // groups)):
        to, of = g * (OUT // groups) + m, g * (c // groups) + n
        for i, j, r, q in itertools.product(range(h), range(wide), range(kh), range(kw)):
            if case.get("turned"):
                row, column = i * sh - top + r, j * sw - left + q
                if 0 <= row < oh and 0 <= column < ow:
                    y[0, to, row, column] += w[of, m, r, q] * x[0, of, i, j]
            else:
                row, column = i + top - r * dh, j + left - q * dw
                if row % sh == 0 and column % sw == 0 and 0 <= row // sh < oh and 0 <= column // sw < ow:
                    y[0, to, row // sh, column // sw] += w[to, n, r, q] * x[0, of, i, j]
    return y


def loss(case: dict[str, Any], x: np.ndarray, target: np.ndarray, w: np.ndarray, b: np.ndarray) -> float:
    return float(np.mean((np.tanh(by_loops(case, x, w, b)) - target) ** 2))


def given(t: Training, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=SHAPE)
    y = t.layers[0].forward(x, {"weights": t.weights["conv", "weights"], "bias": t.weights["conv", "bias"]})
    return {"x": x, "z_true": rng.normal(size=y.shape)}


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_a_convolution_are_differences_of_the_loss_by_loops(name: str) -> None:
    case, t = CASES[name], Training(model(CASES[name]))
    assert set(t.trained) == {("conv", "weights"), ("conv", "bias")}
    example = given(t)
    w, b = t.weights["conv", "weights"], t.weights["conv", "bias"]
    assert t.loss([example]) == pytest.approx(loss(case, example["x"], example["z_true"], w, b), rel=1e-12)
    found, rng = t.gradients([example]), np.random.default_rng(1)
    for slot, array in (("weights", w), ("bias", b)):
        places = list(np.ndindex(array.shape))
        for at in [places[k] for k in rng.permutation(len(places))[:4]]:
            ends = []
            for step in (1e-6, -1e-6):
                moved = array.copy()
                moved[at] += step
                both = {"weights": w, "bias": b, slot: moved}
                ends.append(loss(case, example["x"], example["z_true"], both["weights"], both["bias"]))
            assert abs((ends[0] - ends[1]) / 2e-6 - found["conv", slot][at]) < 1e-8, (slot, at)


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_of_the_input_is_passed_on(name: str) -> None:
    """Of the layers before: against difference quotients of the layer's own output, weighted."""
    t = Training(model(CASES[name]))
    conv, x = t.layers[0], given(t, 3)["x"]
    held = {s: t.weights["conv", s] for s in ("weights", "bias")}
    y = conv.forward(x, held)
    g = np.random.default_rng(4).normal(size=y.shape)
    back, _ = conv.backward(x, y, g, held)
    assert back.shape == x.shape
    for at in [(0, 0, 0, 0), (0, 3, 4, 5), (0, 1, 2, 3), (0, 2, 4, 0)]:
        moved = x.copy()
        moved[at] += 1e-6
        assert abs(((conv.forward(moved, held) - y) * g).sum() / 1e-6 - back[at]) < 1e-6, at


@pytest.mark.parametrize("name", CASES)
def test_what_is_trained_is_what_is_run(name: str) -> None:
    """The layer forwards is the layer of the dialect, in f64."""
    spec = model(CASES[name])
    t = Training(spec)
    x = given(t, 5)["x"].astype(np.float32)
    (y,) = dialect.run_model(spec, {"x": x})
    held = {s: t.weights["conv", s] for s in ("weights", "bias")}
    np.testing.assert_allclose(np.tanh(t.layers[0].forward(x.astype(np.float64), held)), y, atol=1e-6)


def test_a_step_moves_filters_and_makes_the_loss_smaller() -> None:
    for optimiser in ("sgd", "adam"):
        t = Training(model(CASES["strided"], optimiser))
        example = given(t)
        before, start = t.loss([example]), t.weights["conv", "weights"].copy()
        after, state = t.step([example])
        assert state.steps == 1
        assert after["conv", "weights"].shape == start.shape
        if optimiser == "sgd":
            moved = start - 0.125 * t.gradients([example])["conv", "weights"]
            np.testing.assert_allclose(after["conv", "weights"], moved, rtol=1e-14)
        t.weights.update(after)
        assert t.loss([example]) < before


def test_a_folded_inner_product_behind_a_convolution_is_trained() -> None:
    """Ranks 4 and 5: "(x1, x2, x3, x4) ---> (x1, x2 * x3 * x4)"; the softmax is over the channels."""
    coremltools = pytest.importorskip("coremltools")
    from coremltools.models import datatypes
    from coremltools.models.neural_network import NeuralNetworkBuilder, SgdParams

    rng = np.random.default_rng(2)
    b = NeuralNetworkBuilder(
        [("x", datatypes.Array(1, 2, 4, 3))], [("p", datatypes.Array(1))], disable_rank5_shape_mapping=True
    )
    b.add_convolution(
        "conv",
        2,
        3,
        2,
        2,
        1,
        1,
        "valid",
        1,
        rng.normal(size=(2, 2, 2, 3)),
        None,
        False,
        input_name="x",
        output_name="h",
    )
    b.add_activation("act", "SIGMOID", "h", "a")
    b.add_inner_product("dense", rng.normal(size=(3, 18)), rng.normal(size=3), 18, 3, True, "a", "z")
    b.add_softmax("soft", "z", "p")
    b.make_updatable(["conv", "dense"])
    b.set_categorical_cross_entropy_loss("loss", "p")
    b.set_sgd_optimizer(SgdParams(lr=0.125, batch=1, momentum=0.0))
    b.set_epochs(1)
    t = Training(coremltools.models.MLModel(b.spec, skip_model_load=True).get_spec())
    assert set(t.trained) == {("conv", "weights"), ("dense", "weights"), ("dense", "bias")}
    examples = [{"x": rng.normal(size=(1, 2, 4, 3)), "p_true": k} for k in (0, 2)]
    found = t.gradients(examples)
    for key, at in (
        (("conv", "weights"), (1, 0, 1, 1)),
        (("conv", "weights"), (2, 1, 0, 1)),
        (("dense", "bias"), (1,)),
    ):
        w, ends = t.weights[key], []
        for step in (1e-6, -2e-6):
            w[at] += step
            ends.append(t.loss(examples))
        w[at] += 1e-6
        assert abs((ends[0] - ends[1]) / 2e-6 - found[key][at]) < 1e-8


def test_other_layers_and_targets_are_refused_by_name() -> None:
    spec = model(CASES["plain"])
    t = Training(spec)
    with pytest.raises(RuleError, match=r"target-fits: \[3\], expected 30 elements"):
        t.loss([{**given(t), "z_true": np.zeros(3)}])
    spec.neuralNetwork.layers[0].pooling.type = 0
    with pytest.raises(Unsupported, match="training through pooling"):
        Training(spec)
