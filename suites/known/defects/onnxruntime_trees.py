"""What comes where a difference is listed (``harness/ledger/defect_models.py``): trees of ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from suites.known.defects.onnxruntime import ort_tree_two_classes, ort_tree_untransformed

_MARK = -1  # an id that says "no tree yet"


def ort_tree_each_node_a_root(g: Given) -> list[Any] | None:
    """Of a tree whose id is -1 each node begins a tree of its own, which is added to the others.
    What else is listed of a single target and of two classes holds too."""
    kind = "class" if g.inst.op == "TreeEnsembleClassifier" else "target"
    nodes = {n: list(g.attr(n)) for n in g.inst.attrs if n.startswith("nodes_")}
    votes = {n: list(g.attr(n)) for n in g.inst.attrs if n.startswith(f"{kind}_")}
    trees, ids, modes = nodes["nodes_treeids"], nodes["nodes_nodeids"], nodes["nodes_modes"]
    place = {n: i for i, (t, n) in enumerate(zip(trees, ids)) if t == _MARK}
    new_nodes: dict[str, list[Any]] = {n: [] for n in nodes}
    new_votes: dict[str, list[Any]] = {n: [] for n in votes}

    def copy(tree: int, rows: list[int]) -> None:
        for i in rows:
            for n, column in nodes.items():
                new_nodes[n].append(tree if n == "nodes_treeids" else column[i])
            for k, at in enumerate(zip(votes[f"{kind}_treeids"], votes[f"{kind}_nodeids"])):
                if at == (trees[i], ids[i]):
                    for n, column in votes.items():
                        new_votes[n].append(tree if n == f"{kind}_treeids" else column[k])

    def below(node: int) -> list[int]:
        i = place[node]
        if modes[i] == "LEAF":
            return [i]
        return [i, *below(nodes["nodes_truenodeids"][i]), *below(nodes["nodes_falsenodeids"][i])]

    for t in dict.fromkeys(trees):
        if t != _MARK:
            copy(t, [i for i, u in enumerate(trees) if u == t])
    for k, node in enumerate(place):
        copy(max(trees) + 1 + k, below(node))
    tracks = new_nodes.get("nodes_missing_value_tracks_true") or [0] * len(new_nodes["nodes_modes"])
    new_nodes["nodes_missing_value_tracks_true"] = [  # a NaN is unequal to everything
        1 if m == "BRANCH_NEQ" else t for m, t in zip(new_nodes["nodes_modes"], tracks)
    ]
    changed = {
        n: np.array(v, np.float64) if n.endswith("_as_tensor") else v for n, v in (new_nodes | new_votes).items()
    }
    other = g.changed(changed)
    if other is None:
        return None
    if kind == "target":
        return ort_tree_untransformed(other) if g.attr("n_targets", 1) == 1 else other.expected
    labels = g.attr("classlabels_strings") or g.attr("classlabels_int64s")
    return ort_tree_two_classes(other) if len(labels) == 2 else other.expected


def ort_tree_one_label(g: Given) -> list[Any] | None:
    """With a single integer label, 1 where its score is positive and 0 elsewhere."""
    scores = g.expected[1]
    return [np.where(scores.value[:, 0] > 0, 1, 0).astype(np.int64), scores]
