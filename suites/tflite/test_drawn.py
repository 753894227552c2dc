"""Every option's values, every element type of every operand, every optional operand with it and without it: drawn for
at least one version of the operator in each of its forms, or listed with the reason.  What is never drawn passes
unseen."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any

import pytest

from harness.generate.draw_engines import Prng, case_seed
from suites.tflite import dialect

DRAWS = 400
GROUPS = sorted({(v.op, v.schema.domain) for v in dialect.versions.values()})
_LSTM = "tanh alone, peephole weights of 16 bits, activations of 8: see quantised_recurrent.py"
# (operator, form, what) -> why no instance shows it; patterns
UNDRAWN = {
    ("BASIC_LSTM", "quantised", "fused_activation_function=*"): "the basic cell in 8 bits has tanh alone",
    ("BASIC_LSTM", "*", "kernel_type=FULL"): "the full kernel is LSTM",
    ("LSTM", "*", "kernel_type=BASIC"): "the basic kernel is BASIC_LSTM",
    ("FULLY_CONNECTED", "plain", "weights_format=SHUFFLED4x16INT8"): "a layout of uint8 weights",
    ("FULLY_CONNECTED", "hybrid", "weights_format=SHUFFLED4x16INT8"): "a layout of uint8 weights",
    ("HASHTABLE_IMPORT", "plain", "keys: *"): "in its program, not among its operands",
    ("HASHTABLE_IMPORT", "plain", "values: *"): "in its program, not among its operands",
    ("HASHTABLE_FIND", "plain", "keys: i32"): "tables map int64 to strings and back: no other has a kernel",
    ("HASHTABLE_FIND", "plain", "default_value: [fi]32"): "tables map int64 to strings and back: no other has a kernel",
    ("MaxUnpooling2D", "plain", "fused_activation_function=*"): "the kernel reads it and does nothing with it",
    ("LSH_PROJECTION", "plain", "type=UNKNOWN"): "the schema's word for a file that says nothing",
    ("REDUCE_WINDOW", "plain", "reduce_function=UNSUPPORTED"): "the schema's word for a file that says nothing",
    ("SVDF", "quantised", "feature_weights: u8"): "signed weights, as the specification asks",
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", "[hq]*", "diagonal_recurrent_tensors=True"): "of float weights alone",
    **{("*LSTM", "quantised", what): _LSTM for what in ("cell_to_*: i8", "input*: i16", "fused_activation_function=*")},
}


def needs(v: Any) -> Iterator[Any]:
    s = v.schema
    for name, a in s.attrs.items():
        if a.enum:
            yield from (f"{name}={x}" for x in a.enum)
        elif a.type == "bool":
            yield from (f"{name}={x}" for x in (False, True))
    for slot in s.inputs:
        if slot.type in s.types:
            yield from (f"{slot.name}: {t.name}" for t in s.dtypes(slot.type))
        if slot.optional:
            yield from (f"{slot.name}: {x}" for x in ("absent", "present"))


def shown(v: Any, inst: Any) -> Iterator[Any]:
    s = v.schema
    for name, a in s.attrs.items():
        yield f"{name}={inst.attrs.get(name, a.default)}"
    for slot in s.inputs:
        given = inst.args.get(slot.name)
        yield f"{slot.name}: {'absent' if given is None else 'present'}"
        for one in given if isinstance(given, list) else [given]:
            if one is not None:
                yield f"{slot.name}: {one.dtype.name}"


def undrawn(op: str, domain: Any) -> Any:
    versions = sorted(
        (v for v in dialect.versions.values() if (v.op, v.schema.domain) == (op, domain)),
        key=lambda v: -dialect.order(v.version),
    )
    lack = {x for v in versions for x in needs(v)}
    for v in versions:
        for i in range(DRAWS):
            if not lack:
                return lack
            lack -= set(shown(v, v.draw(Prng(case_seed(23, v.key, i)))))
    return lack


def listed(op: str, domain: Any, what: str) -> bool:
    return any(fnmatch(op, o) and fnmatch(domain or "plain", d) and fnmatch(what, w) for o, d, w in UNDRAWN)


@pytest.mark.parametrize(("op", "domain"), GROUPS)
def test_everything_that_an_operator_takes_is_drawn(op: str, domain: Any) -> None:
    lack = sorted(x for x in undrawn(op, domain) if not listed(op, domain, x))
    assert not lack, f"{op} {domain}: never drawn: {lack}"


def test_what_is_listed_is_not_drawn() -> None:
    lack = [(op, domain, x) for op, domain in GROUPS for x in undrawn(op, domain)]
    idle = [
        key
        for key in UNDRAWN
        if not any(
            fnmatch(op, key[0]) and fnmatch(domain or "plain", key[1]) and fnmatch(x, key[2]) for op, domain, x in lack
        )
    ]
    assert not idle


def test_branches_and_loops_are_of_mixed_values() -> None:
    """Values of several types, some as they were, some what another was; a branch in a branch; loops without a turn."""
    shown = set()
    for op, block in (("IF", "then_subgraph_index"), ("WHILE", "body_subgraph_index")):
        v = dialect.versions[f"tflite/{op}/1"]
        for i in range(300):
            inst = v.draw(Prng(case_seed(12, v.key, i)))
            g, args = inst.attrs[block], inst.args["input"]
            assert isinstance(args, list)
            given = {n: k for k, (n, _) in enumerate(g.inputs)}
            shown |= {(op, "types")} if len({a.dtype for a in args}) > 2 else set()
            shown |= {(op, "as it was")} if any(given.get(o) == k for k, o in enumerate(g.outputs)) else set()
            shown |= {(op, "exchanged")} if any(given.get(o, k) != k for k, o in enumerate(g.outputs)) else set()
            shown |= {(op, "nested")} if any(n.op == "IF" for n in g.nodes) else set()
            first = (args[0].values or [None])[0]
            if op == "WHILE" and first >= inst.attrs["cond_subgraph_index"].consts["limit"]:
                shown.add((op, "no turn"))
    assert shown == {
        ("IF", "types"),
        ("IF", "as it was"),
        ("IF", "nested"),
        ("WHILE", "types"),
        ("WHILE", "as it was"),
        ("WHILE", "exchanged"),
        ("WHILE", "no turn"),
    }
