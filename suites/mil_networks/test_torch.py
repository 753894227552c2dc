"""Networks from PyTorch through coremltools and ``run_model``: every layer within its bound, faults on their layer."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXTRA = "networks are written in PyTorch: pip install 'opconform[networks]'"
torch = pytest.importorskip("torch", reason=EXTRA)
pytest.importorskip("coremltools", reason=EXTRA)

from harness.declare.interpreter import run_graph  # noqa: E402
from harness.ledger.loader import load_ledger  # noqa: E402
from suites.mil import dialect  # noqa: E402
from suites.mil_networks import compare, convert  # noqa: E402
from suites.mil_networks.models import NETWORKS, layers, module  # noqa: E402

CALLS = 3  # of a network with states
CASES = [
    pytest.param(name, target, frontend, precision, id=f"{name}-{target}-{frontend}-{precision}")
    for name, net in NETWORKS.items()
    for target in net.targets
    for frontend in net.frontends
    for precision in ("FLOAT32", "FLOAT16")
]


class Case:
    """One network, converted: its source, the graph of its package, example inputs of some calls."""

    def __init__(self, name: str, target: str, frontend: str, precision: str, folder: Path, **how: Any) -> None:
        self.net, self.precision = NETWORKS[name], precision
        self.module = module(name)
        self.made = convert.convert(self.module, self.net, target, precision, frontend, folder, **how)
        if self.net.bits:
            self.module = convert.restored(self.module, self.made.program)
        self.package = str(self.made.package)
        g = torch.Generator().manual_seed(5)
        self.calls = [[x.numpy() for x in self.net.inputs(g)] for _ in range(CALLS if self.net.states else 1)]

    def prepared(self, model: Any) -> tuple[compare.Source, Any]:
        return compare.prepared(self.module, self.made, model)


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Cases by their parameters, converted once."""
    made: dict[Any, Case] = {}

    def get(name: str, target: str, frontend: str, precision: str) -> Case:
        key = name, target, frontend, precision
        if key not in made:
            made[key] = Case(*key, tmp_path_factory.mktemp("network"))
        return made[key]

    return get


@pytest.mark.parametrize(("name", "target", "frontend", "precision"), CASES)
def test_every_layer_stays_within_its_bound(
    converted: Any, name: str, target: str, frontend: str, precision: str
) -> None:
    case = converted(name, target, frontend, precision)
    for model in (case.package, case.made.program):
        source, graph = case.prepared(model)
        unseen = {path for path, names in source.names.items() if not names or names[0] is None}
        assert unseen == set(case.net.folded), "layers that conversion has not merged into others must all be seen"
        states = compare.zero_states(graph)
        assert set(states) == set(source.states)
        assert len(states) == len(case.net.states)
        for inputs in case.calls:
            report = compare.compare(source, graph, inputs, states, precision, model=model)
            assert len(report.rows) >= len(source.names) - len(unseen)
            layer, known = case.net.departs.get(precision, ("", ""))
            if known:
                assert known in {e.id for e in load_ledger().entries}
                assert [r.name for r in report.rows if r.out] == [layer], f"{known} no longer shows: {report}"
            else:
                assert report, f"{report}\n{report.table()}"
            assert not report.free
            assert report.share > 0.1, "bounds that are hardly used would let a fault pass"


@pytest.mark.parametrize(("name", "target", "frontend", "precision"), CASES)
def test_what_comes_out_is_within_the_error_carried_through(
    converted: Any, name: str, target: str, frontend: str, precision: str
) -> None:
    """Without looking between: from the inputs to each layer, against PyTorch's own run."""
    case = converted(name, target, frontend, precision)
    if precision in case.net.departs:
        pytest.skip(f"departs by {case.net.departs[precision][1]}")
    source, graph = case.prepared(case.package)
    inputs, states = case.calls[0], compare.zero_states(graph)
    bounds = compare.bounds(graph, inputs, states, precision)
    own, tested = source.own(inputs), compare.run(case.package, inputs, states)
    for path, names in source.names.items():
        for i, n in enumerate(names):
            if n is not None:
                off = np.abs(tested.values[n].astype(np.float64) - own[f"{path}.{i}"])
                assert np.all(off <= bounds[n]), f"{path}: off by {off.max():.3g}, {bounds[n].max():.3g} may be carried"


@pytest.mark.parametrize("name", NETWORKS)
def test_a_changed_weight_is_blamed_on_its_layer(converted: Any, name: str) -> None:
    """In every constant of every layer one number is changed, such that the layer's result moves by twice its bound."""
    net = NETWORKS[name]
    case = converted(name, net.targets[-1], net.frontends[-1], "FLOAT16")
    source, graph = case.prepared(case.package)
    layer_of = {n: path for path, names in source.names.items() for n in names if n is not None}
    inputs = case.calls[0]
    sound = compare.run(graph, inputs, compare.zero_states(graph)).values
    bounds = compare.bounds(graph, inputs, compare.zero_states(graph), "FLOAT16", {n: sound[n] for n in layer_of})
    blamed = set()
    for value, constants in compare.weights(graph, set(layer_of)).items():
        for c in constants:
            for faulty in _faulty(graph, c):
                moved = compare.run(faulty, inputs, compare.zero_states(graph)).values[value]
                if np.any(np.abs(moved.astype(np.float64) - sound[value]) > 2 * bounds[value]):
                    break
            else:
                continue  # no number of it matters so much for these inputs
            source.go_on(compare.zero_states(graph))
            report = compare.compare(source, faulty, inputs, compare.zero_states(graph), "FLOAT16")
            assert report.first is not None, f"{c}: {report}"
            assert report.first.name.split("[")[0] == layer_of[value], f"{c}: {report}"
            blamed.add(layer_of[value])
    weighted = {path for path, m in layers(case.module).items() if list(m.parameters())} - set(net.folded)
    assert weighted <= blamed


def _faulty(graph: Any, constant: str) -> Any:
    """Copies of the graph with one of the largest numbers of a constant half as large again."""
    for i in np.argsort(-np.abs(graph.consts[constant]), axis=None)[:12]:
        changed = graph.consts[constant].copy()
        changed.flat[i] *= 1.5
        bad = copy.copy(graph)
        bad.consts = {**graph.consts, constant: changed}
        yield bad


def test_palettised_weights_are_the_nearest_entries_and_are_read_as_they_stand(tmp_path: Path) -> None:
    trained = dict(module("palettised").named_parameters())
    for target, frontend in (("iOS16", "trace"), ("iOS18", "export")):
        case = Case("palettised", target, frontend, "FLOAT32", tmp_path)
        graph = dialect.parse(case.package)
        seen: dict[str, np.ndarray] = {}
        run_graph(
            dialect,
            graph,
            dict(zip([n for n, _ in graph.inputs], case.calls[0])),
            graph.meta["opset"],
            watch=lambda node, outs, seen=seen: seen.update(zip(node.outputs, outs)),
        )
        stored = convert.decompressed(case.made.program)
        assert len(stored) == 4
        for name, w in stored.items():
            np.testing.assert_array_equal(seen[name], w)
            assert len(np.unique(w)) <= 2**case.net.bits
            path = next(p for p in trained if name.removeprefix("p_").startswith(p.replace(".", "_")))
            before = trained[path].detach().numpy()
            entries = np.unique(w)
            nearest = np.abs(before[..., None].astype(np.float64) - entries).min(-1)
            np.testing.assert_allclose(np.abs(before - w), nearest, rtol=0, atol=1e-7)


def test_without_the_faulty_pass_the_decoder_is_within_its_bounds(tmp_path: Path) -> None:
    """What departs is the pass that the known difference names, and nothing else."""
    case = Case("decoder", "iOS16", "export", "FLOAT32", tmp_path, without={"common::fuse_elementwise_to_batchnorm"})
    source, graph = case.prepared(case.package)
    report = compare.compare(source, graph, case.calls[0], {}, "FLOAT32", model=case.package)
    assert report, f"{report}\n{report.table()}"
