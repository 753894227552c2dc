"""What a schema leaves open is drawn both ways: attributes given and left out, every mode, optional inputs, types."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase

import numpy as np
import pytest

from harness.core.instance import SKIPPED, Arg, Instance
from harness.declare import OpVersion
from harness.declare.validation import validation_error
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.onnx import dialect

VERSIONS = sorted(dialect.versions.values(), key=lambda v: (v.op, int(v.version)))
OPS = sorted({v.op for v in VERSIONS})
GROUPS = [OPS[i : i + 12] for i in range(0, len(OPS), 12)]
ENOUGH = 800  # draws, most op versions need a few dozen
RARE = 2 * ENOUGH  # until what a schema leaves open is met both ways: an edge alone leaves out some attributes


def _leaves(a: object) -> Iterator[Arg]:
    for x in a if isinstance(a, list) else [a]:
        if isinstance(x, Arg):
            yield from _leaves(x.items) if x.items else (x,)


def wanted(v: OpVersion) -> set[str]:
    """What is to be seen of an op version, in words."""
    s, out = v.schema, set()
    for a in s.attrs.values():
        if a.type == "graph" and a.required:
            continue
        out.add(f"{a.name} given")
        if not a.required:
            out.add(f"{a.name} left out")
        out |= {f"{a.name}={e}" for e in a.enum or ()}
    for slot in s.inputs:
        out.add(f"input {slot.name} given")
        if slot.optional:
            out.add(f"input {slot.name} left out")
    for t in v.type_names:
        out |= {f"{t}: {d}" for d in s.dtypes(t)}
    return out


def seen(v: OpVersion, index: int) -> set[str]:
    inst = v.draw(Prng(case_seed(11, v.key, index)))
    out = set()
    for a in v.schema.attrs.values():
        x = inst.attrs.get(a.name)
        out.add(f"{a.name} left out" if x is None else f"{a.name} given")
        out.add(f"{a.name}={a.default if x is None else x}" if a.enum else f"{a.name}")
    for slot in v.schema.inputs:
        out.add(f"input {slot.name} given" if slot.name in inst.args else f"input {slot.name} left out")
        out |= {f"{slot.element}: {x.dtype}" for x in _leaves(inst.args.get(slot.name))}
    return out


def missing(v: OpVersion) -> set[str]:
    left = wanted(v)
    for i in range(RARE):
        left -= seen(v, i)
        if not left:
            break
    return left


WINDOW = "the text names no default before opset 11"
SILENT = "optional in the schema, and the text does not say what its absence means"
TREE = "a tree without it is none"
# op version or pattern -> (what is never drawn, a pattern; why)
NEVER = {
    "LpPool/1": {"* left out": WINDOW},
    "Col2Im/18": {"T: *": "sums of words, truth values"},
    "OptimizedRNN/1": {"hidden_size left out": SILENT},
    "Reshape/1": {"shape left out": SILENT},
    "RegexFullMatch/20": {"pattern left out": SILENT},
    "StringNormalizer/10": {"locale given": "what a locale means depends on the platform"},
    "CategoryMapper/1": {"cats_* left out": SILENT},
    "LabelEncoder/1": {"classes_strings left out": SILENT},
    "LinearClassifier/1": {"intercepts left out": "keep the scores of a row apart"},
    "LinearRegressor/1": {"coefficients left out": SILENT},
    "Scaler/1": {"* left out": SILENT},
    "SVMRegressor/1": {"* left out": SILENT},
    "TreeEnsemble*/*": {"* left out": TREE},
}


def _excused(v: OpVersion, what: str) -> bool:
    name = v.key.partition("/")[2]
    return any(fnmatchcase(name, ops) and any(fnmatchcase(what, p) for p in some) for ops, some in NEVER.items())


@pytest.mark.parametrize("ops", GROUPS, ids=lambda g: f"{g[0]}-{g[-1]}")
def test_what_a_schema_leaves_open_is_drawn_both_ways(ops: list[str]) -> None:
    left = {v.key: rest for v in VERSIONS if v.op in ops if (rest := {w for w in missing(v) if not _excused(v, w)})}
    assert not left


UNMADE = "no op makes one: SequenceInsert and SequenceConstruct take no such elements, Optional none before 28"
NARROW_ELEMENTS = ("bf16", "f8*", "f4*", "i4", "u4", "i2", "u2")
UNSEEN = {
    f"Loop/*: v_initial: {c.format(t)}": UNMADE
    for t in NARROW_ELEMENTS
    for c in ("seq({})", "optional({})", "optional(seq({}))")
}


def _name(a: Arg) -> str:
    """The type of an operand as a schema spells it."""
    items = [x for x in a.items or () if isinstance(x, Arg)]
    if a.kind == "map":
        return f"map({items[0].dtype},{items[1].dtype})"
    return f"{a.kind}({_name(items[0]) if items else a.dtype})" if a.kind in ("seq", "optional") else str(a.dtype)


def _containers(v: OpVersion) -> set[str]:
    out = set()
    for slot in v.schema.inputs:
        names = [
            slot.type.replace(slot.element, t) if slot.container else t
            for t in v.schema.types.get(slot.element, (slot.element,))
        ]
        out |= {f"{slot.name}: {name}" for name in names if "(" in name}
    return out


HOLDING = [v for v in VERSIONS if _containers(v)]


@pytest.mark.parametrize("v", HOLDING, ids=lambda v: v.key)
def test_every_container_that_a_schema_admits_is_drawn(v: OpVersion) -> None:
    left = {w for w in _containers(v) if not any(fnmatchcase(f"{v.op}/{v.version}: {w}", p) for p in UNSEEN)}
    assert left
    for i in range(5000):  # the types of Loop alone are 94
        args = v.draw(Prng(case_seed(12, v.key, i))).args
        left -= {f"{s}: {_name(x)}" for s, a in args.items() for x in (a if isinstance(a, list) else [a])}
        if not left:
            break
    assert not left


def test_no_excuse_is_stale() -> None:
    """What is listed as never drawn is indeed not drawn in any version that its pattern names."""
    used: dict[str, set[str]] = defaultdict(set)
    for v in VERSIONS:
        name = v.key.partition("/")[2]
        lists = [(ops, some) for ops, some in NEVER.items() if fnmatchcase(name, ops)]
        for what in missing(v) if lists else ():
            for ops, some in lists:
                used[ops] |= {p for p in some if fnmatchcase(what, p)}
    assert {ops: set(some) - used[ops] for ops, some in NEVER.items() if set(some) - used[ops]} == {}


# what a text says of ranks, where it is narrower than what later versions take
RANKS = {
    "BatchNormalization/1": {"X": {4}, "scale": {1}, "B": {1}, "mean": {1}, "var": {1}},
    "BatchNormalization/6": {"scale": {1}, "B": {1}, "mean": {1}, "var": {1}},
    "InstanceNormalization/1": {"input": {4}},
    "Tanh/1": {"input": {1}},
}


@pytest.mark.parametrize("op", RANKS)
def test_ranks_are_those_of_the_text(op: str) -> None:
    v = dialect.versions[f"onnx/{op}"]
    drawn = [v.draw(Prng(case_seed(7, v.key, i))) for i in range(100)]
    for slot, ranks in RANKS[op].items():
        assert {len(inst.tensor(slot).shape) for inst in drawn} == ranks
    if "spatial" in v.schema.attrs:
        assert {inst.attrs.get("spatial") for inst in drawn} == {None, 0, 1}


@pytest.mark.parametrize(("op", "parts"), [("Momentum", 3), ("Adagrad", 3), ("Adam", 4)])
def test_optimisers_get_gradients_of_either_sign(op: str, parts: int) -> None:
    """Running squares have none, but where special values take the place of an operand."""
    v, seen = dialect.versions[f"onnx/{op}/1"], set()
    for i in range(60):
        inst = v.draw(Prng(case_seed(12, v.key, i)))
        args, xs = inst.tensors("inputs"), arrays_of(inst)["inputs"]
        n = len(xs) // parts
        for k, (a, x) in enumerate(zip(args, xs)):
            if a.recipe != "special" and a.values is None and (x < 0).any():
                seen.add(k // n)
    assert seen == set(range(parts - (op != "Momentum")))


def test_rows_of_either_sign_are_normalised_by_their_maximum() -> None:
    """ "Max: Y = X / max(X)": the largest element, not the largest magnitude."""
    v, seen = dialect.versions["onnx/Normalizer/1"], 0
    for i in range(60):
        inst = v.draw(Prng(case_seed(12, v.key, i)))
        x = arrays_of(inst)["X"]
        if inst.attrs.get("norm", "MAX") == "MAX" and (abs(x).max(-1) > x.max(-1)).any():
            seen += 1
    assert seen > 5


def test_what_the_texts_of_features_allow_is_drawn() -> None:
    """Any rank where the text names the last axis alone, NaN against a threshold, extremes among the replaced, numbers
    with a fraction among categories, keys below 0, and in LabelEncoder-2 zeros told apart by their bits."""

    def drawn(op: str, n: int = 300) -> Iterator[tuple[Instance, np.ndarray]]:
        v = dialect.versions[f"onnx/{op}"]
        for i in range(n):
            inst = v.draw(Prng(case_seed(12, v.key, i)))
            yield inst, arrays_of(inst)["X"]

    assert {x.ndim for _, x in drawn("Binarizer/1")} >= {0, 1, 2, 3}
    assert any(x.dtype.kind == "f" and np.isnan(x).any() for _, x in drawn("Binarizer/1"))
    assert {x.ndim for i, x in drawn("Scaler/1") if len(i.attrs["scale"]) == 1} >= {1, 2, 3}
    assert {x.ndim for i, x in drawn("Imputer/1") if x.ndim and x.shape[-1] > 1} >= {1, 2, 3}
    assert any(abs(int(i.attrs.get("replaced_value_int64", 0))) > 1 << 53 for i, _ in drawn("Imputer/1"))
    assert any(x.dtype.kind == "f" and (x % 1 != 0).any() for _, x in drawn("OneHotEncoder/1"))
    assert any((x == -1).any() for _, x in drawn("LabelEncoder/1") if x.dtype.kind == "i")
    zeros = [(k, x) for i, x in drawn("LabelEncoder/2", 900) for k in i.attrs.get("keys_floats", ()) if k == 0]
    assert any(np.signbit(k) != np.signbit(x[x == 0]).all() for k, x in zeros if (x == 0).any())
    trees = [i.attrs for i, _ in drawn("TreeEnsembleClassifier/3")]
    trees = [a for a in trees if a.get("class_ids") and a.get("nodes_treeids")]
    votes = [list(zip(a["class_treeids"], a["class_nodeids"], a["class_ids"])) for a in trees]
    assert any(v != sorted(v) for v in votes)
    assert any(len(set(a["nodes_nodeids"])) == len(a["nodes_nodeids"]) for a in trees if a["nodes_treeids"][-1])
    grams = [i.attrs for i, _ in drawn("TfIdfVectorizer/9")]
    assert any(len(a["ngram_counts"]) == 3 == a["max_gram_length"] for a in grams)
    assert any(max(a["ngram_indexes"]) >= len(a["ngram_indexes"]) for a in grams)
    assert any(i.attrs.get("maxsplit") == 0 for i, _ in drawn("StringSplit/20"))
    v = dialect.versions["onnx/CastMap/1"]
    maps = [arrays_of(v.draw(Prng(case_seed(12, v.key, i))))["X"] for i in range(100)]
    assert any(min(m) < 0 for m in maps)
    assert any(max(m) > 1 << 32 for m in maps)


def test_zeros_of_either_sign_are_two_keys_where_bits_are_compared() -> None:
    """LabelEncoder-2: "bit-wise comparison is used"."""
    x = {"dtype": "f32", "shape": [3], "values": [0.0, -0.0, {"f": "nan"}]}
    for version, due in ((2, [7, 5, 6]), (4, [5, 5, 6])):
        inst = Instance.from_json(
            {
                "format": 1,
                "dialect": "onnx",
                "op": "LabelEncoder",
                "version": version,
                "opset": 11 if version == 2 else 21,
                "args": {"X": x},
                "attrs": {"keys_floats": [-0.0, {"f": "nan"}], "values_int64s": [5, 6], "default_int64": 7},
            }
        )
        (y,) = dialect.evaluate(inst, arrays_of(inst))
        assert y.value.tolist() == due


def test_fill_values_are_not_small_whole_numbers_alone() -> None:
    """A fill kept as an integer, or as f32, would pass: parts of one, infinities, what a float does not hold."""
    v, seen = dialect.versions["onnx/Pad/25"], set()
    for i in range(400):
        fill = arrays_of(v.draw(Prng(case_seed(12, v.key, i)))).get("constant_value")
        if fill is not None and fill.dtype.kind in "fi":
            x = float(fill.astype("f8")) if fill.dtype.kind == "f" else int(fill)
            seen |= {"infinite" if x in (float("inf"), -float("inf")) else "part" if x % 1 else "whole"}
            seen |= {"large"} if fill.dtype.kind == "i" and abs(x) > 2**24 else set()
    assert seen >= {"infinite", "part", "whole", "large"}


@pytest.mark.parametrize(
    ("op", "kinds"),
    [
        ("Loop/1", {"two types", "outer"}),
        ("Loop/11", {"nothing", "two types", "grows", "outer"}),
        ("Loop/13", {"nothing", "two types", "grows", "outer", "sequence"}),
        *(
            (
                f"Loop/{v}",
                {"nothing", "two types", "grows", "outer", "sequence", "optional", "optional sequence", "absent"},
            )
            for v in (16, 25)
        ),
        ("If/11", set()),
        ("If/13", {"sequence"}),
        *((f"If/{v}", {"sequence", "optional", "optional sequence", "absent"}) for v in (16, 25)),
    ],
)
def test_blocks_carry_what_their_texts_allow(op: str, kinds: set[str]) -> None:
    """No value at all from Loop-11 on (v_initial: 0 or more), values of several types, sequences from version 13 on,
    optionals with and without a value from version 16 on."""
    v, shown = dialect.versions[f"onnx/{op}"], set()
    for i in range(300):
        inst = v.draw(Prng(case_seed(12, v.key, i)))
        body = inst.attrs.get("body") or inst.attrs["then_branch"]
        types = {a.dtype for _, a in body.inputs[2:]}
        shown |= {"nothing"} if op[0] == "L" and not body.inputs[2:] else set()
        shown |= {"two types"} if len(types) > 1 else set()
        shown |= {"grows"} if any(n == "g" for n, _ in body.inputs) else set()
        shown |= {"outer"} if any("M" in n.inputs.values() for n in body.nodes) else set()
        boxes = [t for t in body.meta["out_types"].values() if t.startswith("optional")]
        shown |= {"optional sequence" if "seq" in boxes[0] else "optional"} if boxes else set()
        given = [a for a in inst.args.get("v_initial", []) if a.kind == "optional"] if op[0] == "L" else []  # type: ignore[union-attr]
        shown |= {"absent"} if any(not a.items for a in given) else set()
        shown |= {"absent"} if op[0] == "I" and any(n.op == "Optional" and not n.inputs for n in body.nodes) else set()
        shown |= {"sequence"} if "q" in body.meta["out_types"] or "q_out" in body.meta["out_types"] else set()
    assert shown == kinds


@pytest.mark.parametrize("op", ["Scan/8", "Scan/9", "Scan/11", "Scan/25"])
def test_scans_are_of_mixed_values(op: str) -> None:
    """States and scanned inputs of several types, shapes, axes and ways; none of either kind of output; no turn."""
    v, shown = dialect.versions[f"onnx/{op}"], set()
    slot = "initial_state_and_scan_inputs"
    for i in range(600):
        inst = v.draw(Prng(case_seed(12, v.key, i)))
        body, args, m = inst.attrs["body"], inst.args[slot], inst.attrs["num_scan_inputs"]
        assert isinstance(args, list)
        states, scanned = args[: len(args) - m], args[len(args) - m :]
        made = [body.meta["out_types"][o] for o in body.outputs[len(states) :]]
        given = {n for n, _ in body.inputs}
        turns = sum(scanned[0].shape[a] == 0 for a in inst.attrs.get("scan_input_axes", [0])[:1])
        lens = arrays_of(inst).get("sequence_lens")
        ways = inst.attrs.get("scan_input_directions", inst.attrs.get("directions", []))
        shown |= {
            word
            for word, there in {
                "no state": not states,
                "no output": not made,
                "three states": len(states) > 2,
                "types of states": len({a.dtype for a in states}) > 1,
                "shapes of states": len({a.shape for a in states}) > 1,
                "state unlike scanned": bool(states) and states[0].dtype is not scanned[0].dtype,
                "types of scanned": len({a.dtype for a in scanned}) > 1,
                "ranks": len({len(a.shape) for a in scanned}) > 1,
                "another type out": any(t not in {a.dtype.name for a in args} for t in made),
                "axes": len(set(inst.attrs.get("scan_input_axes", []))) > 1,
                "both ways": len(set(ways)) > 1,
                "as it is": any(o in given for o in body.outputs),
                "exchanged": any(o not in (f"s{k}", f"s{k}_out") for k, o in enumerate(body.outputs[: len(states)])),
                "around": any(str(x).startswith(slot) for n in body.nodes for x in n.inputs.values()),
                "nested": any(n.op == "If" for n in body.nodes),
                "no turn": bool(turns) or (lens is not None and 0 in lens),
                "padded": lens is not None and bool(made) and lens.min(initial=1 << 20) < scanned[0].shape[1],
            }.items()
            if there
        }
    own = {"axes"} if op == "Scan/8" else {"padded"}
    assert (
        shown
        == {
            "no state",
            "no output",
            "three states",
            "types of states",
            "shapes of states",
            "ranks",
            "padded",
            "state unlike scanned",
            "types of scanned",
            "another type out",
            "axes",
            "both ways",
            "as it is",
            "exchanged",
            "around",
            "nested",
            "no turn",
        }
        - own
    )


def test_a_block_sees_the_operands_of_its_node() -> None:
    """By the names of the slots, those of a variadic one numbered: in an instance as in the model built of it."""
    v, seen = dialect.versions["onnx/Loop/25"], 0
    for i in range(200):
        inst = v.draw(Prng(case_seed(12, v.key, i)))
        names = {str(x) for n in inst.attrs["body"].nodes for x in n.inputs.values()}
        if not names & {"v_initial0", "v_initial1", "v_initial2"}:
            continue
        seen += 1
        arrays = arrays_of(inst)
        model = dialect.build([inst], [arrays])
        fed = {n: arrays[s] if k is None else arrays[s][k] for n, s, k in model.inputs[0]}
        for got, due in zip(dialect.run_model(model.data, fed), dialect.evaluate(inst, arrays), strict=True):
            assert repr(got) == repr(due.value)
    assert seen > 5


def test_a_node_names_as_many_inputs_as_it_has_at_least() -> None:
    """Loop takes 2 inputs at least, and the last one that is given may be the first."""
    from suites.onnx import builder

    schema = dialect.versions["onnx/Loop/25"].schema
    assert [name for name, _, _ in builder.positions(schema, {"M": "m"})] == ["M", "cond"]
    v = dialect.versions["onnx/Loop/25"]
    drawn = (v.draw(Prng(case_seed(12, v.key, i))) for i in range(400))
    inst = next(x for x in drawn if set(x.args) == {"M"})
    graph = dialect.parse(dialect.build([inst], [arrays_of(inst)]).data)
    assert next(n for n in graph.nodes if n.op == "Loop").inputs["cond"] is None


def test_optional_outputs_are_skipped_before_others() -> None:
    """Each of them, with what comes after it asked for.  Attention's updated caches stand or go together."""
    for v in VERSIONS:
        optional = {j for j, o in enumerate(v.schema.outputs[:-1]) if o.optional and not o.variadic}
        if v.schema.outputs[-1].name == "saved_var":  # "Output case #1: Y, mean, var, saved_mean, saved_var"
            optional = set()
        met: set[int] = set()
        most = 1
        for i in range(ENOUGH if optional else 0):
            inst = v.draw(Prng(case_seed(13, v.key, i)))
            most = max(most, inst.outs)
            met |= set(inst.attrs.get(SKIPPED, ()))
            if met >= optional:
                break
        assert met == {j for j in optional if j < most - 1}, v.key


def test_a_skipped_output_has_no_name_in_the_model() -> None:
    w = {"shape": [1, 1, 1], "dtype": "f32", "values": [0.5]}
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": "onnx",
            "op": "LSTM",
            "version": 22,
            "opset": 22,
            "outs": 3,
            "attrs": {"hidden_size": 1, "@skipped": [1]},
            "args": {
                "X": w,
                "W": {**w, "shape": [1, 4, 1], "values": [0.5] * 4},
                "R": {**w, "shape": [1, 4, 1], "values": [0.5] * 4},
            },
        }
    )
    arrays = arrays_of(inst)
    model = dialect.build([inst], [arrays])
    node = dialect.parse(model.data).nodes[0]
    assert node.outputs == ["x0o0", "", "x0o2"] == model.outputs[0]
    y, nothing, c = dialect.evaluate(inst, arrays)
    assert nothing.value is None
    for got, due in zip(dialect.run_model(model.data, [arrays[k] for k in "XWR"]), (y, c), strict=True):
        np.testing.assert_array_equal(got, due.value)
    for wrong in ([2], [-1], "0", [0.0]):
        inst.attrs["@skipped"] = wrong
        assert "@skipped: expected numbers of outputs among [0, 1]" in str(
            validation_error(dialect.version_of(inst), inst)
        )
