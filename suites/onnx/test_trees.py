"""Ensembles of trees against a walk through the attributes, row by row, as the operators' documentation tells it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from harness.declare import Call
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.onnx import dialect

TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "LEQ": operator.le,
    "LT": operator.lt,
    "GTE": operator.ge,
    "GT": operator.gt,
    "EQ": operator.eq,
    "NEQ": operator.ne,
}
OLD = [f"onnx/TreeEnsemble{k}/{v}" for k in ("Classifier", "Regressor") for v in (1, 3, 5)]
NEW = "onnx/TreeEnsemble/5"


def drawn(key: str, n: int) -> Iterator[tuple[Call, Any]]:
    version = dialect.versions[key]
    for i in range(n):
        inst = version.draw(Prng(case_seed(31, key, i)))
        call = dialect.call_of(inst, arrays_of(inst))
        if (call.attr("post_transform") or "NONE") == "NONE":  # 0 is NONE
            yield call, version.evaluate(call)


def values(c: Call, name: str) -> list[float]:
    v = c.attr(name)
    if v is None and f"{name}_as_tensor" in c.version.schema.attrs:
        v = c.attr(f"{name}_as_tensor")
    return [] if v is None else [float(x) for x in np.asarray(v, np.float64).ravel()]


def goes_true(mode: str, x: float, value: Any, missing: int) -> bool:
    if math.isnan(x):
        return missing == 1
    return x in value if mode == "MEMBER" else TESTS[mode](x, value)


def votes_old(c: Call, kind: str, row: list[float]) -> list[tuple[int, float]]:
    """(target, weight) of the leaves that a row reaches."""
    trees, ids, modes = (c.attr(f"nodes_{n}") or [] for n in ("treeids", "nodeids", "modes"))
    thresholds, missing = values(c, "nodes_values"), c.attr("nodes_missing_value_tracks_true") or [0] * len(modes)
    at = {(t, n): i for i, (t, n) in enumerate(zip(trees, ids))}
    out = []
    for tree in sorted(set(trees)):
        i = list(trees).index(tree)  # what is drawn begins with the root
        while modes[i] != "LEAF":
            x = row[c.attr("nodes_featureids")[i]]
            yes = goes_true(modes[i].removeprefix("BRANCH_"), x, thresholds[i], missing[i])
            i = at[tree, c.attr("nodes_truenodeids" if yes else "nodes_falsenodeids")[i]]
        ballots = zip(
            *(c.attr(f"{kind}_{n}") or [] for n in ("treeids", "nodeids", "ids")), values(c, f"{kind}_weights")
        )
        out += [(target, w) for t, n, target, w in ballots if (t, n) == (tree, ids[i])]
    return out


def votes_new(c: Call, row: list[float]) -> list[tuple[int, float]]:
    modes = [(*TESTS, "MEMBER")[m] for m in c.attr("nodes_modes").tolist()]
    missing = c.attr("nodes_missing_value_tracks_true") or [0] * len(modes)
    members, sets = values(c, "membership_values"), {}
    for i in (i for i, m in enumerate(modes) if m == "MEMBER"):
        end = next(k for k, v in enumerate(members) if math.isnan(v))
        sets[i], members = members[:end], members[end + 1 :]
    out = []
    for i in c.attr("tree_roots"):
        leaf = 0
        while not leaf:
            yes = goes_true(
                modes[i], row[c.attr("nodes_featureids")[i]], sets.get(i, values(c, "nodes_splits")[i]), missing[i]
            )
            leaf = c.attr("nodes_trueleafs" if yes else "nodes_falseleafs")[i]
            i = c.attr("nodes_truenodeids" if yes else "nodes_falsenodeids")[i]
        out.append((c.attr("leaf_targetids")[i], values(c, "leaf_weights")[i]))
    return out


def folded(votes: list[tuple[int, float]], targets: int, how: str, trees: int) -> list[float]:
    out = []
    for t in range(targets):
        mine = [w for target, w in votes if target == t]
        total = {"MIN": min, "MAX": max}[how](mine, default=0.0) if how in ("MIN", "MAX") else math.fsum(mine)
        out.append(total / trees if how == "AVERAGE" else total)
    return out


@pytest.mark.parametrize("key", OLD)
def test_flat_trees(key: str) -> None:
    kind = "class" if "Classifier" in key else "target"
    seen = nans = bare = 0
    for c, got in drawn(key, 200):
        if not len(c.inputs["X"]):
            continue  # as many targets as may be
        labels = (c.attr("classlabels_strings") or c.attr("classlabels_int64s")) if kind == "class" else []
        targets = len(labels) or c.attr("n_targets")
        how, trees = "SUM" if labels else c.attr("aggregate_function"), len(set(c.attr("nodes_treeids") or []))
        base = values(c, "base_values") or [0.0] * targets
        for r, row in enumerate(c.inputs["X"].astype(np.float64).tolist()):
            votes = votes_old(c, kind, row)
            want = [a + b for a, b in zip(folded(votes, targets, how, trees), base)]
            bare += {t for t, _ in votes} < {t for t in range(targets) if base[t]}
            np.testing.assert_allclose(got[-1].value[r].astype(np.float64), want, rtol=1e-6, atol=1e-6)
            if labels:
                assert got[0].value[r] == labels[int(np.argmax(want))]
            nans += any(map(math.isnan, row))
            seen += 1
    assert seen > 100
    assert nans > 5
    assert bare > 5


def test_split_trees() -> None:
    seen = nans = 0
    for c, got in drawn(NEW, 400):
        how = ("AVERAGE", "SUM", "MIN", "MAX")[c.attr("aggregate_function")]
        for r, row in enumerate(c.inputs["X"].astype(np.float64).tolist()):
            want = folded(votes_new(c, row), c.attr("n_targets"), how, len(c.attr("tree_roots")))
            np.testing.assert_allclose(got[0].value[r].astype(np.float64), want, rtol=1e-2, atol=1e-2)
            nans += any(map(math.isnan, row))
            seen += 1
    assert seen > 100
    assert nans > 5


@pytest.mark.parametrize(("missing", "leaf"), [([0, 0, 0], 2.0), ([1, 0, 0], 1.0), (None, 2.0)])
@pytest.mark.parametrize("mode", list(TESTS))
def test_nan_follows_the_attribute(mode: str, missing: Any, leaf: Any) -> None:
    """A NaN is unequal to everything, and yet goes to the false branch where the attribute says or means 0."""
    version = dialect.versions["onnx/TreeEnsembleRegressor/3"]
    attrs = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_modes": [f"BRANCH_{mode}", "LEAF", "LEAF"],
        "nodes_featureids": [0, 0, 0],
        "nodes_values": [0.0, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
        "n_targets": 1,
    }
    if missing is not None:
        attrs["nodes_missing_value_tracks_true"] = missing
    call = Call(version, attrs, {"X": np.array([[np.nan]], np.float32)}, version.opsets[0])
    assert version.evaluate(call)[0].value.tolist() == [[leaf]]
