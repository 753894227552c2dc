"""ai.onnx.ml: ensembles of decision trees, in the flat spelling of the old ops and in that of TreeEnsemble."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.dtypes import F32, F64, U8, DType, of
from harness.core.errors import RuleError
from harness.declare import Call, Checks, Context, Draw, Evaluation, Sampling, Spelling, T, bounded, exact
from suites.onnx import op
from suites.onnx.ops.ml.common import ML, one_of, quarters, require, rows
from suites.onnx.ops.ml.models import classes
from suites.onnx.ops.ml.scores import POSTS, classified, pick_labels
from suites.semantics import tabular as s
from suites.semantics.tabular import Branch, Leaf

Array = np.ndarray
Tree = Branch | Leaf

# -- reading


def _either(c: Call, name: str) -> Any:
    """An attribute in floats, or its twin in a tensor."""
    v = c.attr(name)
    if v is None and f"{name}_as_tensor" in c.version.schema.attrs:
        v = c.attr(f"{name}_as_tensor")
    return [] if v is None else np.asarray(v, np.float64).ravel().tolist()


def _alike(c: Call, prefix: str) -> None:
    """Raises RuleError "nodes-alike" and so on: the given attributes of one prefix are fields of the same tuples."""
    sizes = {n: np.size(v) for n, v in c.attrs.items() if n.startswith(f"{prefix}_")}
    require(len(set(sizes.values())) <= 1, f"{prefix}-alike", f"lengths {sizes}")


def _within(ids: Sequence[int], n: int, rule: str) -> None:
    outside = [i for i in ids if not 0 <= i < n]
    require(not outside, rule, f"{outside[:3]} of {n}")


def _based(c: Call, targets: int) -> list[float]:
    """Base values.  Raises RuleError "base-per-target"."""
    base = _either(c, "base_values")
    require(len(base) in (0, targets), "base-per-target", f"{len(base)} base values for {targets} targets")
    return base


def _old(c: Call, kind: str, targets: int) -> list[Tree]:
    """Trees of TreeEnsembleClassifier ("class") and -Regressor ("target").

    Raises RuleError "nodes-alike", "class-alike", "target-alike", "target-in-range", "node-once", "child-in-tree",
    "one-root", "trees-end", "feature-in-range", "vote-at-leaf"."""
    a = c.attr
    _alike(c, "nodes")
    _alike(c, kind)
    _within(a(f"{kind}_ids") or [], targets, "target-in-range")
    votes: dict[tuple[int, int], list[tuple[int, float]]] = {}
    ids = a(f"{kind}_ids") or []
    for tree, node, target, w in zip(
        a(f"{kind}_treeids") or [], a(f"{kind}_nodeids") or [], ids, _either(c, f"{kind}_weights")
    ):
        votes.setdefault((tree, node), []).append((target, w))
    modes, values = a("nodes_modes") or [], _either(c, "nodes_values")
    names = list(zip(a("nodes_treeids") or [], a("nodes_nodeids") or []))
    leaves = {key for key, mode in zip(names, modes) if mode == "LEAF"}
    require(votes.keys() <= leaves, "vote-at-leaf", "a vote is at no leaf")
    missing = a("nodes_missing_value_tracks_true") or [0] * len(modes)
    table = {key: i for i, key in enumerate(names)}
    require(len(table) == len(modes), "node-once", "a node id appears twice in a tree")
    yes, no, features = (a(f"nodes_{n}") or [] for n in ("truenodeids", "falsenodeids", "featureids"))
    _within([f for f, mode in zip(features, modes) if mode != "LEAF"], c.inputs["X"].shape[-1], "feature-in-range")

    reached: set[int] = set()

    def build(tree: int, node: int, above: int = 0) -> Tree:
        require(above < len(table), "trees-end", "a node is below itself")
        i = table[tree, node]
        reached.add(i)
        if modes[i] == "LEAF":
            return Leaf(votes.get((tree, node), []))
        then, other = (build(tree, ids[i], above + 1) for ids in (yes, no))
        return Branch(modes[i][7:], features[i], values[i], bool(missing[i]), then, other)

    children = {(t, n) for (t, _), i in table.items() if modes[i] != "LEAF" for n in (yes[i], no[i])}
    require(children <= set(table), "child-in-tree", "a child is no node of its tree")
    roots = [key for key in table if key not in children]
    require(len(roots) == len({t for t, _ in table}), "one-root", f"roots {roots}")
    trees = [build(*key) for key in roots]
    require(len(reached) == len(table), "one-root", f"{len(table) - len(reached)} nodes are below no root")
    return trees


_MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")


def _new(c: Call) -> list[Tree]:
    """Trees of TreeEnsemble.

    Raises RuleError "nodes-alike", "leaf-alike", "target-in-range", "feature-in-range", "node-in-range",
    "leaf-in-range", "mode-known", "set-per-member", "trees-end"."""
    a = c.attr
    _alike(c, "nodes")
    _alike(c, "leaf")
    count, leaves = len(a("nodes_featureids")), len(a("leaf_targetids"))
    _within(a("leaf_targetids"), c.attr("n_targets"), "target-in-range")
    _within(a("nodes_featureids"), c.inputs["X"].shape[-1], "feature-in-range")
    _within(a("tree_roots"), count, "node-in-range")
    _within(a("nodes_modes").ravel().tolist(), len(_MODES), "mode-known")
    for side in ("true", "false"):
        ends = list(zip(a(f"nodes_{side}leafs"), a(f"nodes_{side}nodeids")))
        _within([i for leaf, i in ends if not leaf], count, "node-in-range")
        _within([i for leaf, i in ends if leaf], leaves, "leaf-in-range")
    modes = [_MODES[m] for m in a("nodes_modes").ravel().tolist()]
    splits = a("nodes_splits").astype(np.float64).ravel().tolist()
    members = a("membership_values")
    if members is not None:
        groups: list[list[float]] = [[]]
        for v in members.astype(np.float64).ravel().tolist():
            if v != v:
                groups.append([])
            else:
                groups[-1].append(v)
        if not groups[-1]:
            groups.pop()  # nothing follows the last delimiter
        require(len(groups) == modes.count("MEMBER"), "set-per-member", f"{len(groups)} sets of members")
        sets = iter(groups)
        splits = [next(sets) if m == "MEMBER" else v for m, v in zip(modes, splits)]
    weights, targets = a("leaf_weights").astype(np.float64).ravel().tolist(), a("leaf_targetids")
    missing = a("nodes_missing_value_tracks_true") or [0] * len(modes)

    def child(is_leaf: int, i: int, above: int) -> Tree:
        return Leaf([(targets[i], weights[i])]) if is_leaf else build(i, above + 1)

    def build(i: int, above: int = 0) -> Tree:
        require(above < count, "trees-end", "a node is among its own children")
        yes = child(a("nodes_trueleafs")[i], a("nodes_truenodeids")[i], above)
        no = child(a("nodes_falseleafs")[i], a("nodes_falsenodeids")[i], above)
        return Branch(modes[i], a("nodes_featureids")[i], splits[i], bool(missing[i]), yes, no)

    return [build(i) for i in a("tree_roots")]


# -- drawing


def _draw_tree(d: Draw, features: int, depth: int, modes: tuple[str, ...], targets: int, votes: str) -> Tree:
    """votes: "one" a leaf, "some", or of "all" targets."""
    if depth == 0 or d.chance(4):
        some = [d.int(0, targets - 1)] if votes == "one" else list(range(targets))
        if votes == "some":
            some = [t for t in some if d.bool()] or [d.int(0, targets - 1)]
        return Leaf([(t, d.int(-16, 16) / 4) for t in some])
    mode = d.pick(modes)
    value: Any = sorted({d.int(-6, 6) / 2 for _ in range(d.int(1, 4))}) if mode == "MEMBER" else d.int(-6, 6) / 2
    yes, no = (_draw_tree(d, features, depth - 1, modes, targets, votes) for _ in range(2))
    return Branch(mode, d.int(0, features - 1), value, d.bool(), yes, no)


def _flat(trees: list[Tree]) -> tuple[list[list[Any]], list[list[Any]]]:
    """(tree, id, mode, feature, value, missing, yes, no) of every node; (tree, node, target, weight) of every vote."""
    nodes: list[list[Any]] = []
    votes: list[list[Any]] = []
    for t, tree in enumerate(trees):
        count = 0

        def add(node: Tree, t: int = t) -> int:
            nonlocal count
            me, count = count, count + 1
            if isinstance(node, Leaf):
                nodes.append([t, me, "LEAF", 0, 0.0, 0, 0, 0])
                votes.extend([t, me, target, w] for target, w in node.votes)
                return me
            row = [t, me, f"BRANCH_{node.mode}", node.feature, node.value, int(node.missing), 0, 0]
            nodes.append(row)
            row[6], row[7] = add(node.yes), add(node.no)
            return me

        add(tree)
    return nodes, votes


def _run_on(nodes: list[list[Any]], votes: list[list[Any]]) -> None:
    """Node ids that go on from tree to tree."""
    first = {row[0]: i for i, row in reversed(list(enumerate(nodes)))}
    for row in nodes:
        row[1] += first[row[0]]
        if row[2] != "LEAF":
            row[6], row[7] = row[6] + first[row[0]], row[7] + first[row[0]]
    for vote in votes:
        vote[1] += first[vote[0]]


_FAR_IDS = (1, 300, 2**31 - 1, -1, -(2**31))


def _renamed(d: Draw, nodes: list[list[Any]], votes: list[list[Any]]) -> None:
    """Ids of trees and of nodes that begin at another number than 0, or go down."""
    tree, node, step = d.pick((0, 0, *_FAR_IDS)), d.pick((0, *_FAR_IDS)), d.pick((1, -1))
    ids = [i for row in nodes for i in (row[1], row[6], row[7])]
    if node == 2**31 - 1 or (step < 0 and node >= 0):
        node -= step * max(ids) if step > 0 else -max(ids)
    for row in nodes:
        row[0] += tree
        row[1] = node + step * row[1]
        if row[2] != "LEAF":
            row[6], row[7] = node + step * row[6], node + step * row[7]
    for vote in votes:
        vote[0], vote[1] = vote[0] + tree, node + step * vote[1]


def _features(d: Draw) -> int:
    return int(d.pick((9, 17, 129, 257))) if d.chance(16) else d.int(1, 4)


_FAR = 1 << 31  # features or targets, of no row


def _draw_x(d: Draw, dtype: DType, features: int, none: bool = False) -> T:
    count = 0 if none or d.empty else d.pick((17, 129, 257)) if d.chance(32) else d.int(1, 5)
    t = rows(d, dtype, count, features, -12, 12)
    if dtype.kind == "f" and t.values and d.chance(4):
        t.values[d.int(0, len(t.values) - 1)] = float("nan")
    return t


def _draw_old(kind: str, odd: bool = True) -> Any:
    def draw(d: Draw) -> dict:
        if odd and d.chance(16):
            return _draw_odd(kind, d)
        features = _features(d)
        targets = d.int(10, 12) if d.chance(32) else d.int(2 if kind == "class" else 1, 3)
        dtype = d.dtype("X")
        fold = d.pick(("SUM", "AVERAGE", "MIN", "MAX")) if kind == "target" and d.bool() else None
        # the least and the largest of no votes are not told
        which = "all" if fold in ("MIN", "MAX") else d.pick(("all", "some"))
        trees = [_draw_tree(d, features, d.int(0, 3), _MODES[:6], targets, which) for _ in range(d.int(1, 3))]
        nodes, votes = _flat(trees)
        if kind == "class" and len({target for _, _, target, _ in votes}) == 1:  # runtimes have a binary form for that
            tree, node, target, w = votes[-1]
            votes.append([tree, node, (target + 1) % targets, w + 0.5])
        if d.chance(3):  # tuples, known by their ids
            votes = d.shuffle(votes)
        if kind == "class" and d.chance(4):  # "Ids may restart at zero for each tree, but it not required to"
            _run_on(nodes, votes)
        if d.chance(8):  # a leaf asks for no feature: other libraries write -2 there
            for row in nodes:
                row[3] = d.pick((0, -1, -2, features + 9, 2**31 - 1, -(2**31))) if row[2] == "LEAF" else row[3]
        if d.chance(8):  # an id is any number
            _renamed(d, nodes, votes)
        out: dict[str, Any] = {"X": _draw_x(d, dtype, features)}
        names = (
            "treeids",
            "nodeids",
            "modes",
            "featureids",
            "values",
            "missing_value_tracks_true",
            "truenodeids",
            "falsenodeids",
        )
        for name, column in zip(names, zip(*nodes)):
            out[f"nodes_{name}"] = list(column)
        if d.chance(3):
            del out["nodes_missing_value_tracks_true"]
        if d.chance(4):  # "used for performance"
            out["nodes_hitrates"] = [1.0] * len(nodes)
        for name, column in zip(("treeids", "nodeids", "ids", "weights"), zip(*votes)):
            out[f"{kind}_{name}"] = list(column)
        if kind == "class" or d.bool():  # those of classes keep the scores of a row apart
            out["base_values"] = [v + i / 128 for i, v in enumerate(quarters(d, targets))]
        if kind == "class":
            out |= classes(d, targets, "classlabels_int64s")
        else:
            out["n_targets"] = targets
            if fold is not None:
                out["aggregate_function"] = fold
        if d.bool():
            out["post_transform"] = d.pick(POSTS)
        if dtype.name == "f64" and "nodes_values_as_tensor" in d.version.schema.attrs:
            for name in ("nodes_values", "nodes_hitrates", f"{kind}_weights", "base_values"):
                if name in out:
                    out[f"{name}_as_tensor"] = np.array(out.pop(name), np.float64)
        return out

    return draw


def _draw_odd(kind: str, d: Draw) -> dict:
    """An ensemble of no tree, whose fields are empty or left out; a tree of one leaf that asks for no feature, over
    rows that have none; votes for one class alone; labels that are one or alike; any number of targets of no row."""
    what = d.pick(("none", "none", "leaf", "alone", "far") if kind == "class" else ("none", "none", "leaf", "far", "0"))
    targets = 0 if what == "0" else d.int(1, 3)
    if what == "far" and kind != "class":
        targets = _FAR + d.int(0, 2)
    dtype = d.dtype("X")
    features = d.int(0, 2) if what in ("none", "leaf", "0") else _FAR if what == "far" and d.bool() else d.int(1, 3)
    label = targets - 1
    votes = [] if what in ("none", "0") else [(label, d.int(-16, 16) / 4)]
    other: list[tuple[int, float]] = [(label, d.int(-16, 16) / 4)] if what == "alone" and d.bool() else []
    trees: list[Tree] = [] if what == "none" else [Leaf(votes)]
    if (what == "far" and features) or what == "alone":
        trees = [Branch(d.pick(_MODES[:6]), features - 1, 0.5, d.bool(), Leaf(votes), Leaf(other))]
    nodes, given = _flat(trees)
    fields = ("treeids", "nodeids", "modes", "featureids", "values", "missing_value_tracks_true")
    out: dict[str, Any] = {"X": _draw_x(d, dtype, features, what == "far")}
    for prefix, names, rows_ in (
        ("nodes", (*fields, "truenodeids", "falsenodeids"), nodes),
        (kind, ("treeids", "nodeids", "ids", "weights"), given),
    ):
        for k, name in enumerate(names):
            if rows_ or d.bool():
                out[f"{prefix}_{name}"] = [row[k] for row in rows_]
    if kind == "class":
        out["base_values"] = [v + i / 128 for i, v in enumerate(quarters(d, targets))]
        some = [d.pick((4, -1, 2**31 - 1))] * targets if d.bool() else [7, -2, 10][:targets]
        out |= {"classlabels_int64s": some} if d.bool() else classes(d, targets, "classlabels_int64s")
    else:
        out["n_targets"] = targets
    if dtype.name == "f64" and "nodes_values_as_tensor" in d.version.schema.attrs:
        for name in ("nodes_values", f"{kind}_weights", "base_values"):
            if name in out:
                out[f"{name}_as_tensor"] = np.array(out.pop(name), np.float64)
    return out


def _draw_new(d: Draw) -> dict:
    return _draw_odd_new(d) if d.chance(16) else _draw_usual_new(d)


def _draw_odd_new(d: Draw) -> dict:
    """Trees that are a leaf, as the text spells it; a root that two trees share, roots and leaves in any
    order; features and targets of no row."""
    dtype, how = d.types["T"], d.pick(("leaf", "order", "order", "far"))
    if how == "order":
        return _reordered(d, _draw_usual_new(d))
    features, targets = (_FAR + 1, _FAR + 1) if how == "far" else (d.int(1, 3), d.int(1, 3))
    n = d.pick((1, 1, 2, 24))  # nodes, all of which have the same leaf
    return {
        "X": _draw_x(d, dtype, features, how == "far"),
        "tree_roots": [d.pick((0, n - 1)) for _ in range(d.int(1, 3))],
        "nodes_modes": np.zeros(n, U8.np),
        "nodes_featureids": [features - 1] * n,
        "nodes_splits": np.full(n, 0.5, dtype.np),
        "nodes_missing_value_tracks_true": [0] * n,
        **{f"nodes_{name}leafs": [1] * n for name in ("true", "false")},
        **{f"nodes_{name}nodeids": [0] * n for name in ("true", "false")},
        "leaf_targetids": [targets - 1],
        "leaf_weights": np.full(1, d.int(-16, 16) / 4, dtype.np),
        "n_targets": targets,
    }


def _reordered(d: Draw, out: dict) -> dict:
    """Leaves in another order, some of which no node has, before those that are; roots the other way round, one of them
    twice where it may be."""
    n, more = len(out["leaf_targetids"]), d.pick((0, 9, 20))
    at = d.shuffle(range(n + more))
    weights = np.zeros(n + more, out["leaf_weights"].dtype)
    targets = [0] * (n + more)
    for k in range(n):
        weights[at[k]], targets[at[k]] = out["leaf_weights"][k], out["leaf_targetids"][k]
    ids = {
        f"nodes_{side}nodeids": [
            at[i] if leaf else i for leaf, i in zip(out[f"nodes_{side}leafs"], out[f"nodes_{side}nodeids"])
        ]
        for side in ("true", "false")
    }
    roots = out["tree_roots"][::-1]
    return {**out, **ids, "leaf_weights": weights, "leaf_targetids": targets, "tree_roots": roots * d.int(1, 2)}


def _draw_usual_new(d: Draw) -> dict:
    dtype = d.types["T"]
    features, targets = _features(d), d.int(1, 3)
    fold = d.int(0, 3) if targets == 1 else 1
    trees: list[Tree] = []
    for _ in range(d.int(1, 3)):
        t = _draw_tree(d, features, d.int(1, 3), _MODES, targets, "one")
        if isinstance(t, Leaf):
            t = Branch("LEQ", 0, 0.0, False, t, t)
        trees.append(t)
    nodes: list[list[Any]] = []
    leaves: list[tuple[int, float]] = []
    members: list[float] = []

    def add(node: Branch) -> int:
        row: list[Any] = [_MODES.index(node.mode), node.feature, 0.0, int(node.missing)] + [0] * 4
        me = len(nodes)
        nodes.append(row)
        if node.mode == "MEMBER":
            members.extend([*node.value, float("nan")])  # type: ignore[misc]
        else:
            row[2] = node.value
        for k, child in enumerate((node.yes, node.no)):
            if isinstance(child, Leaf):
                row[4 + k], row[6 + k] = 1, len(leaves)
                leaves.extend(child.votes)
            else:
                row[6 + k] = add(child)
        return me

    roots = [add(t) for t in trees]  # type: ignore[arg-type]
    columns = [list(x) for x in zip(*nodes)]
    out: dict[str, Any] = {
        "X": _draw_x(d, dtype, features),
        "tree_roots": roots,
        "nodes_modes": np.array(columns[0], U8.np),
        "nodes_featureids": columns[1],
        "nodes_splits": np.array(columns[2]).astype(dtype.np),
        "nodes_trueleafs": columns[4],
        "nodes_falseleafs": columns[5],
        "nodes_truenodeids": columns[6],
        "nodes_falsenodeids": columns[7],
        "leaf_targetids": [t for t, _ in leaves],
        "leaf_weights": np.array([w for _, w in leaves]).astype(dtype.np),
        "n_targets": targets,
    }
    if any(columns[3]) or d.bool():
        out["nodes_missing_value_tracks_true"] = columns[3]
    if dtype is not F64 and d.chance(4):  # "used for performance"; of which type, the text does not say
        out["nodes_hitrates"] = np.ones(len(nodes), np.float32)
    if members:
        out["membership_values"] = np.array(members).astype(dtype.np)
    if fold != 1 or d.bool():
        out["aggregate_function"] = fold
    if d.bool():
        out["post_transform"] = d.int(0, 2)
    return out


# -- the ops


def _shorter(draw: Any, name: str) -> Any:
    """One element less of a field."""

    def fn(d: Draw) -> dict:
        out = draw(d)
        return {**out, name: out[name][:-1]}

    return fn


def _first(draw: Any, name: str, value: Any) -> Any:
    """Another first element of a field."""

    def fn(d: Draw) -> dict:
        out = draw(d)
        return {**out, name: [value, *out[name][1:]]}

    return fn


def _more_base(draw: Any) -> Any:
    """More base values than there are ever targets."""

    def fn(d: Draw) -> dict:
        out = draw(d)
        if "nodes_values_as_tensor" in out:
            return {**out, "base_values_as_tensor": np.full(5, 0.5)}
        return {**out, "base_values": [0.5] * 5}

    return fn


def _cube(draw: Any) -> Any:
    """X with an axis too many."""

    def fn(d: Draw) -> dict:
        out = draw(d)
        x = out["X"]
        return {**out, "X": T((1, *x.shape), values=x.values, dtype=x.dtype)}

    return fn


def _bound(ctx: Context) -> Array:
    """The sums of the drawn quarters are exact; left are a mean and a transform, whose slope is at most 1."""
    u = max(ctx.acc_u, ctx.u)
    return 64 * u * (1 + np.abs(ctx.wide)) + ctx.ulp


_BOUND = bounded(_bound, "64 u (1 + |y|) + ulp")


def _rows(c: Call) -> Array:
    x = c.inputs["X"].astype(np.float64)
    if x.ndim != 2:
        raise RuleError("rank-2", f"X has rank {x.ndim}")
    return x


def _classify(c: Call) -> tuple[Array, Array]:
    ints = "classlabels_int64s"
    require(c.attr(one_of(c, "one-of-labels", "classlabels_strings", ints)), "one-of-labels", "no label")
    count = len(c.attr("classlabels_strings") or c.attr(ints))
    z = s.forest(_old(c, "class", count), _rows(c), count, "SUM", _based(c, count))
    return pick_labels(c, z, ints), s.post(z, c.attr("post_transform"))


def _regress(c: Call) -> Array:
    n = c.attr("n_targets")
    z = s.forest(_old(c, "target", n), _rows(c), n, c.attr("aggregate_function"), _based(c, n))
    return s.post(z, c.attr("post_transform"))


_FOLDS = ("AVERAGE", "SUM", "MIN", "MAX")
_POSTS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def _ensemble(c: Call) -> Array:
    """Raises RuleError "aggregate-known", "transform-known", and what the trees raise."""
    fold, how = c.attr("aggregate_function"), c.attr("post_transform")
    _within([fold], len(_FOLDS), "aggregate-known")
    _within([how], len(_POSTS), "transform-known")
    x = _rows(c)
    return s.post(s.forest(_new(c), x, c.attr("n_targets"), _FOLDS[fold]), _POSTS[how])


def _old_breaks(kind: str) -> dict[str, Any]:
    draw = _draw_old(kind, odd=False)
    return {
        "nodes-alike": _shorter(draw, "nodes_falsenodeids"),
        f"{kind}-alike": _shorter(draw, f"{kind}_nodeids"),
        "target-in-range": _first(draw, f"{kind}_ids", 12),
        "base-per-target": _more_base(draw),
        "rank-2": _cube(draw),
    }


op(
    "TreeEnsembleClassifier",
    Evaluation(_classify, (exact(), _BOUND), "ONNX ai.onnx.ml TreeEnsembleClassifier-1, -3, -5"),
    Spelling(out_dtype=classified("classlabels_int64s")),
    Sampling(_draw_old("class"), outs=2),
    Checks(breaks=_old_breaks("class")),
    domain=ML,
)
op(
    "TreeEnsembleRegressor",
    Evaluation(_regress, _BOUND, "ONNX ai.onnx.ml TreeEnsembleRegressor-1, -3, -5"),
    Spelling(out_dtype=lambda c, i: F32),
    Sampling(_draw_old("target")),
    Checks(breaks=_old_breaks("target")),
    domain=ML,
)
op(
    "TreeEnsemble",
    Evaluation(_ensemble, _BOUND, "ONNX ai.onnx.ml TreeEnsemble-5"),
    Spelling(out_dtype=lambda c, i: of(c.inputs["X"])),
    Sampling(_draw_new),
    Checks(
        breaks={
            "nodes-alike": _shorter(_draw_usual_new, "nodes_featureids"),
            "leaf-alike": _shorter(_draw_usual_new, "leaf_targetids"),
            "target-in-range": _first(_draw_usual_new, "leaf_targetids", 3),
            "aggregate-known": lambda d: {**_draw_new(d), "aggregate_function": 4},
            "transform-known": lambda d: {**_draw_new(d), "post_transform": 5},
            "rank-2": _cube(_draw_usual_new),
        }
    ),
    domain=ML,
)
