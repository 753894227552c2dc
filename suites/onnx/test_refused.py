"""Rules that the texts of newer operators state: an instance that breaks one is refused by the reference, by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harness.core.dtypes import I64
from harness.core.errors import FormatError, RuleError
from harness.core.instance import Arg, Instance
from harness.declare.invalid import draw_invalid
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.onnx import dialect

STATED = {
    "SwiGLU/28": ("same-shape",),
    "BitCast/26": ("same-width",),
    "CausalConvWithState/27": ("kernel-fits",),
    "RotaryEmbedding/23": ("heads-given", "table-fits"),
    "LinearAttention/27": ("decay-given", "beta-given", "heads-multiply"),
    "FlexAttention/1": ("heads-divide", "rank-4", "batch-agrees", "head-size-agrees", "keys-per-value"),
    "TfIdfVectorizer/9": (
        "weight-per-gram",
        "counts-ascend",
        "lengths-ordered",
        "skips-nonnegative",
        "indexes-nonnegative",
        "rank-1-or-2",
    ),
    "Attention/23": ("heads-given", "past-together", "heads-divide", "heads-agree"),
    "Attention/24": ("heads-given", "past-together", "heads-divide", "heads-agree"),
    "Attention/25": ("heads-given", "past-together", "heads-divide", "heads-agree"),
    "GroupNormalization/18": ("groups-divide",),
    "GroupNormalization/21": ("groups-divide",),
    "Scaler/1": ("offset-per-scale", "one-or-per-feature"),
    "Normalizer/1": ("rank-1-or-2",),
    "Imputer/1": ("one-of-imputed",),
    "FeatureVectorizer/1": ("rows-agree", "inputdimensions-agrees"),
    "LabelEncoder/2": ("value-per-key", "one-of-keys"),
    "LabelEncoder/4": ("value-per-key", "one-of-keys"),
    "CategoryMapper/1": ("cats-agree",),
    "OneHotEncoder/1": ("one-of-cats", "category-known"),
    "ZipMap/1": ("rank-1-or-2", "one-of-keys"),
    "LinearClassifier/1": ("one-of-labels",),
    "TreeEnsembleClassifier/5": ("nodes-alike", "class-alike", "target-in-range", "base-per-target", "rank-2"),
    "TreeEnsembleRegressor/5": ("nodes-alike", "target-alike", "target-in-range", "base-per-target", "rank-2"),
    "TreeEnsemble/5": ("nodes-alike", "leaf-alike", "target-in-range", "aggregate-known", "transform-known", "rank-2"),
    "Split/13": ("equal-parts",),
    "Split/18": ("num_outputs-agrees", "one-of-sizes"),
    "If/25": ("single-element", "body-outputs"),
    "Loop/25": ("body-inputs",),
    "Scan/8": ("body-inputs",),
    "Scan/25": ("body-inputs", "scan-lengths-agree", "axis-in-range", "one-per-scan"),
    "SplitToSequence/24": ("axis-in-range", "sizes-sum", "sizes-positive"),
    "ConcatFromSequence/11": ("axis-in-range", "shapes-agree"),
    "SequenceMap/17": ("samples-agree", "body-inputs"),
}


@pytest.mark.parametrize(("op", "rule"), [(op, rule) for op, rules in STATED.items() for rule in rules])
def test_a_stated_rule_is_broken_and_noticed(op: str, rule: str) -> None:
    v = dialect.versions[f"onnx/{op}"]
    broken = [draw_invalid(v, rule, Prng(case_seed(3, v.key, i))) for i in range(40)]
    instances = [x for x in broken if x is not None]
    assert instances
    for inst in instances:
        with pytest.raises(RuleError, match=f"^{rule}"):
            dialect.evaluate(inst, arrays_of(inst))


def _more(name: str) -> Callable[[Instance], None]:
    return lambda i: i.attrs.__setitem__(name, i.attrs[name][:1] * 7)


def _set(name: str, value: object) -> Callable[[Instance], None]:
    return lambda i: i.attrs.__setitem__(name, value)


def _first(name: str, value: object) -> Callable[[Instance], None]:
    return lambda i: i.attrs.__setitem__(name, [value, *i.attrs[name][1:]])


def _circle(attrs: dict[str, Any]) -> dict[str, Any]:
    """Every node is its own child."""
    n = len(attrs["nodes_trueleafs"])
    return {"nodes_trueleafs": [0] * n, "nodes_truenodeids": list(range(n))}


def _deeper(slot: str) -> Callable[[Instance], None]:
    def fn(i: Instance) -> None:
        i.tensor(slot).shape = (1, 1, *i.tensor(slot).shape)

    return fn


def _filled(slot: str, value: int) -> Callable[[Instance], None]:
    return lambda i: setattr(i.tensor(slot), "values", [value] * math.prod(i.tensor(slot).shape))


# rules that no draw breaks, since a runtime answers all the same: op version, rule, what breaks it
UNDRAWN = [
    ("SplitToSequence/24", "split-rank", _deeper("split")),
    ("Scan/25", "inputs-to-scan", _set("num_scan_inputs", 0)),
    ("Scan/8", "length-fits", _filled("sequence_lens", 99)),
    ("TreeEnsembleClassifier/5", "one-of-labels", _set("classlabels_int64s", [1, 2, 3])),
    ("TreeEnsembleClassifier/5", "feature-in-range", _first("nodes_featureids", 9)),
    ("TreeEnsembleClassifier/5", "child-in-tree", _first("nodes_truenodeids", 99)),
    ("TreeEnsembleClassifier/5", "one-root", _first("nodes_truenodeids", 0)),
    ("TreeEnsembleRegressor/5", "node-once", _first("nodes_nodeids", 1)),
    ("TreeEnsemble/5", "mode-known", lambda i: i.attrs.update(nodes_modes=i.attrs["nodes_modes"] + 7)),
    ("TreeEnsemble/5", "set-per-member", _set("membership_values", np.array([1, np.nan] * 9, np.float32))),
    ("TreeEnsemble/5", "feature-in-range", _first("nodes_featureids", 9)),
    ("TreeEnsemble/5", "node-in-range", _first("tree_roots", 99)),
    ("TreeEnsemble/5", "leaf-in-range", _first("nodes_truenodeids", 99)),
    ("TreeEnsemble/5", "trees-end", lambda i: i.attrs.update(_circle(i.attrs))),
    ("SVMClassifier/1", "vectors-per-class", lambda i: i.attrs["vectors_per_class"].append(1)),
    ("SVMClassifier/1", "sizes-fit", _more("support_vectors")),
    ("SVMClassifier/1", "sizes-fit", lambda i: i.attrs["coefficients"].extend([1.0] * 99)),
    ("SVMRegressor/1", "sizes-fit", _set("n_supports", 9)),
    ("Adam/1", "whole-groups", lambda i: i.args["inputs"].pop()),
    ("Adam/1", "companions-broadcast", lambda i: setattr(i.args["inputs"][-1], "shape", (7, 7, 7))),
    ("Adagrad/1", "one-number", lambda i: i.args.update(T=Arg(I64, (2,), values=[1, 1]))),
    ("ArrayFeatureExtractor/1", "rank-1-or-more", lambda i: setattr(i.args["X"], "shape", ())),
    ("TfIdfVectorizer/9", "one-of-pools", lambda i: i.attrs.update(pool_strings=["a"], pool_int64s=[1])),
    ("TfIdfVectorizer/9", "index-per-gram", _more("ngram_indexes")),
    ("TfIdfVectorizer/9", "whole-grams", _set("ngram_counts", [0, 0])),
    ("Imputer/1", "one-or-per-feature", _more("imputed_value_floats")),
    ("CastMap/1", "key-below-max", _set("max_map", 0)),
    ("DictVectorizer/1", "key-known", _set("string_vocabulary", ["other"])),
    ("DictVectorizer/1", "one-of-vocabularies", _set("int64_vocabulary", [1])),
    ("LinearRegressor/1", "coefficients-per-target", _set("targets", 4)),
    ("LinearRegressor/1", "intercept-per-target", _more("intercepts")),
]


@pytest.mark.parametrize(("op", "rule", "change"), UNDRAWN, ids=lambda x: x if isinstance(x, str) else "")
def test_a_stated_rule_is_noticed_that_no_draw_breaks(op: str, rule: str, change: Callable[[Instance], None]) -> None:
    """Of the instances that are drawn, those that the change applies to."""
    v = dialect.versions[f"onnx/{op}"]
    refused = []
    for i in range(60):
        inst = v.draw(Prng(case_seed(3, v.key, i)), v.opsets[-1])
        try:
            change(inst)
            arrays = arrays_of(inst)
        except (KeyError, FormatError):  # elements that are written out keep their shape
            continue
        try:
            dialect.evaluate(inst, arrays)
        except RuleError as e:
            refused.append(e.rule)
    assert rule in refused
