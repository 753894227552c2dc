"""Whole networks, converted and saved by coremltools, read and run by our interpreter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.compare import Layer, first_out_of_bounds
from harness.compare.error_propagation import propagate_error
from harness.core.dtypes import F16, F32
from harness.core.errors import RuleError, UsageError
from harness.core.instance import Graph
from harness.ledger.loader import load_ledger
from harness.tolerance import ulp
from suites.mil import dialect

ct = pytest.importorskip("coremltools", reason="networks are made with its builder")


def _weights(*shape: int, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 0.2).astype(np.float32)


def _convolutional(target: object) -> object:
    """Convolution, batch norm, a depthwise separable block with a shortcut, pooling, a classifier."""
    from coremltools.converters.mil import Builder as mb

    @mb.program(input_specs=[mb.TensorSpec((1, 3, 12, 12))], opset_version=target)
    def prog(image: Any) -> Any:
        x = mb.conv(x=image, weight=_weights(8, 3, 3, 3), pad_type="same", strides=[2, 2])
        x = mb.batch_norm(
            x=x,
            mean=_weights(8, seed=1),
            variance=np.abs(_weights(8, seed=2)) + 0.5,
            epsilon=1e-3,
            gamma=_weights(8, seed=8) + 1,
            beta=_weights(8, seed=9),
        )
        x = mb.relu6(x=x)
        y = mb.conv(x=x, weight=_weights(8, 1, 3, 3, seed=3), groups=8, pad_type="custom", pad=[1, 1, 1, 1])
        y = mb.conv(x=mb.silu(x=y), weight=_weights(8, 8, 1, 1, seed=4), bias=_weights(8, seed=5))
        x = mb.add(x=x, y=y)
        x = mb.max_pool(x=x, kernel_sizes=[2, 2], strides=[2, 2], pad_type="valid")
        x = mb.reduce_mean(x=x, axes=[2, 3])
        return mb.softmax(x=mb.linear(x=x, weight=_weights(5, 8, seed=6), bias=_weights(5, seed=7)), axis=-1)

    return prog


def _attention(target: object) -> object:
    """Layer norm, two heads of attention written out, a gated feed-forward layer."""
    from coremltools.converters.mil import Builder as mb

    @mb.program(input_specs=[mb.TensorSpec((1, 6, 8))], opset_version=target)
    def prog(x: Any) -> Any:
        n = mb.layer_norm(x=x, axes=[-1], gamma=_weights(8) + 1, beta=_weights(8, seed=1), epsilon=1e-5)

        def heads(seed: int) -> Any:
            y = mb.reshape(x=mb.linear(x=n, weight=_weights(8, 8, seed=seed)), shape=[1, 6, 2, 4])
            return mb.transpose(x=y, perm=[0, 2, 1, 3])

        scores = mb.mul(x=mb.matmul(x=heads(2), y=heads(3), transpose_y=True), y=np.float32(0.5))
        a = mb.matmul(x=mb.softmax(x=scores, axis=-1), y=heads(4))
        a = mb.reshape(x=mb.transpose(x=a, perm=[0, 2, 1, 3]), shape=[1, 6, 8])
        x = mb.add(x=x, y=mb.linear(x=a, weight=_weights(8, 8, seed=5)))
        f = mb.gelu(x=mb.linear(x=x, weight=_weights(16, 8, seed=6)), mode="EXACT")
        return mb.add(x=x, y=mb.linear(x=f, weight=_weights(8, 16, seed=7)))

    return prog


def _recurrent(target: object) -> object:
    """An embedding, an LSTM, the last state through a dense layer."""
    from coremltools.converters.mil import Builder as mb
    from coremltools.converters.mil.mil import types

    @mb.program(input_specs=[mb.TensorSpec((5, 1), dtype=types.int32)], opset_version=target)
    def prog(words: Any) -> Any:
        x = mb.gather(x=_weights(9, 4), indices=words, axis=0)
        zero = np.zeros((1, 3), np.float32)
        _, h, _ = mb.lstm(
            x=x,
            initial_h=zero,
            initial_c=zero,
            weight_ih=_weights(12, 4, seed=1),
            weight_hh=_weights(12, 3, seed=2),
            bias=_weights(12, seed=3),
        )
        return mb.tanh(x=mb.linear(x=h, weight=_weights(2, 3, seed=4)))

    return prog


NETWORKS = {"convolutional": _convolutional, "attention": _attention, "recurrent": _recurrent}
MERGED = 8  # roundings in f32 of a constant that conversion computes out of others


def _of_constant(name: str, v: np.ndarray) -> np.ndarray:
    """How far a constant may be from the program's own."""
    top = float(np.abs(v).max(initial=0.0))
    return (ulp(v, F16) / 2 if v.dtype == np.float16 else 0.0) + MERGED * 2.0**-24 * np.full(v.shape, top)


def _bounds(graph: Graph, inputs: dict[str, np.ndarray], **how: Any) -> list[np.ndarray]:
    """How far each result may be from the exact one."""
    found = propagate_error(dialect, graph, inputs, graph.meta["opset"], **how)
    return [found[n].bound for n in graph.outputs]


def _inputs(name: str, graph: Graph) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(11)
    ((key, arg),) = graph.inputs
    x = rng.integers(0, 9, arg.shape).astype(np.int32) if name == "recurrent" else rng.standard_normal(arg.shape)
    return {key: x if name == "recurrent" else x.astype(np.float32)}


@pytest.mark.parametrize("name", sorted(NETWORKS))
@pytest.mark.parametrize(("release", "precision"), [("iOS15", "FLOAT32"), ("iOS17", "FLOAT32"), ("iOS16", "FLOAT16")])
def test_a_converted_network_computes_what_its_program_does(
    name: str, release: str, precision: str, tmp_path: Path
) -> None:
    target = getattr(ct.target, release)
    prog = NETWORKS[name](target)
    before = dialect.parse(prog)
    inputs = _inputs(name, before)
    own = dialect.run_model(prog, inputs)
    saved = tmp_path / "network.mlpackage"
    ct.convert(
        prog, minimum_deployment_target=target, compute_precision=getattr(ct.precision, precision), skip_model_load=True
    ).save(str(saved))
    got = dialect.run_model(str(saved), list(inputs.values()))
    after = dialect.parse(saved)
    narrow = _bounds(
        after,
        dict(zip([n for n, _ in after.inputs], inputs.values())),
        const=_of_constant,
        attrs=F16 if precision == "FLOAT16" else F32,
    )
    bounds = [a + b for a, b in zip(_bounds(before, inputs), narrow, strict=True)]
    report = first_out_of_bounds(
        Layer(f"{name}[{i}]", w, g, b) for i, (w, g, b) in enumerate(zip(own, got, bounds, strict=True))
    )
    assert report, f"{report}"
    top = max(float(np.abs(w).max()) for w in own)
    assert max(float(b.max()) for b in bounds) < (0.2 if precision == "FLOAT16" else 2e-4) * top, (
        "a bound that says much"
    )


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_rounding_every_value_of_a_network_keeps_it_within_the_bound(name: str) -> None:
    """Each result pushed by half an ulp, up or down at random, a dozen times: the bound holds what may happen."""
    graph = dialect.parse(NETWORKS[name](ct.target.iOS15))
    inputs = _inputs(name, graph)
    bounds = propagate_error(dialect, graph, inputs, graph.meta["opset"])
    wide = {n: v.astype(np.float64) if v.dtype == np.float32 else v for n, v in {**graph.consts, **inputs}.items()}
    exact = propagate_error(dialect, replace(graph, consts=wide), wide, graph.meta["opset"])
    rng = np.random.default_rng(5)
    used = dict.fromkeys(exact, 0.0)
    for _ in range(12):
        pushed = dict(wide)
        for node in graph.nodes:
            made = propagate_error(
                dialect, replace(graph, inputs=[], nodes=[node], consts=pushed), {}, graph.meta["opset"]
            )
            for n, v in made.items():
                rounds = bool(v.bound.any())  # its inputs are exact here: what is left is its own rounding
                pushed[n] = v.wide + rounds * rng.choice([-0.5, 0.5], np.shape(v.wide)) * ulp(v.wide, F32)
        for n, v in exact.items():
            off = np.abs(pushed[n] - v.wide)
            assert np.all(off <= bounds[n].bound), n
            used[n] = max(used[n], float(np.max(off / np.maximum(bounds[n].bound, 1e-300))))
    assert min(used[n] for n in exact if exact[n].bound.any()) > 0.05, "a bound that is never nearly reached"


def test_the_accumulation_type_widens_the_bound() -> None:
    """A dot product summed in f32 may be off by more than its one rounding, in f16 by much more."""
    graph = dialect.parse(_attention(ct.target.iOS15))
    inputs = _inputs("attention", graph)
    how = [{}, {"acc": {"f32": "f32"}}, {"acc": {"f32": "f16"}}]
    once, wide, narrow = (_bounds(graph, inputs, **h)[0].max() for h in how)
    assert 0 < once < wide < narrow / 1000


def test_given_values_are_gone_on_with_and_begin_anew() -> None:
    graph = dialect.parse(_convolutional(ct.target.iOS15))
    inputs = _inputs("convolutional", graph)
    plain = propagate_error(dialect, graph, inputs, graph.meta["opset"])
    name = graph.nodes[3].outputs[0]
    moved = plain[name].value + 1
    found = propagate_error(dialect, graph, inputs, graph.meta["opset"], given={name: moved})
    after = graph.nodes[4].outputs[0]
    assert np.array_equal(found[name].value, plain[name].value)
    assert np.array_equal(found[name].bound, plain[name].bound)
    assert np.abs(found[after].value - plain[after].value).max() > 0.1
    assert found[after].bound.max() < plain[after].bound.max()


def test_an_input_that_is_missing_is_named() -> None:
    graph = dialect.parse(_attention(ct.target.iOS15))
    with pytest.raises(UsageError, match=r"inputs are missing: \['x'\]"):
        propagate_error(dialect, graph, {}, graph.meta["opset"])


def test_a_loop_has_no_bound() -> None:
    from coremltools.converters.mil import Builder as mb

    @mb.program(input_specs=[mb.TensorSpec((1,))], opset_version=ct.target.iOS15)
    def prog(x: Any) -> Any:
        return mb.while_loop(
            _cond=lambda a: mb.squeeze(x=mb.less(x=a, y=9.0)), _body=lambda a: mb.add(x=a, y=1.0), loop_vars=(x,)
        )

    graph = dialect.parse(prog)
    with pytest.raises(UsageError, match=r"node while_loop -> .* inside a block is not followed"):
        propagate_error(dialect, graph, {"x": np.zeros(1, np.float32)}, graph.meta["opset"])


def test_the_ledger_of_known_differences_can_be_read() -> None:
    assert any(e.id.startswith("ct-") for e in load_ledger().entries)


def test_a_list_of_fixed_length_does_not_grow() -> None:
    """make_list: "if dynamic_length is False, init_length is the fixed length of the list throughout runtime"."""
    import coremltools as ct
    from coremltools.converters.mil import Builder as mb
    from coremltools.converters.mil.mil import types

    def program(dynamic: bool) -> object:
        @mb.program(
            input_specs=[mb.TensorSpec((2,)), mb.TensorSpec((1,), dtype=types.int32)], opset_version=ct.target.iOS15
        )
        def prog(x: Any, at: Any) -> Any:
            ls = mb.make_list(init_length=2, dynamic_length=dynamic, elem_shape=(2,), dtype="fp32")
            return mb.list_length(ls=mb.list_write(ls=ls, index=mb.squeeze(x=at), value=x))

        return prog

    def feeds(at: int) -> list[np.ndarray]:
        return [np.ones(2, np.float32), np.array([at], np.int32)]

    assert dialect.run_model(program(True), feeds(4))[0] == 5
    assert dialect.run_model(program(False), feeds(1))[0] == 2
    with pytest.raises(RuleError, match=r"^node list_write -> \S+: index-in-list: 4 of 2$"):
        dialect.run_model(program(False), feeds(4))
