"""What a version of an operator brings is shown by at least one instance drawn for that very version."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from harness.generate.draw_engines import Prng, case_seed
from suites.tflite import dialect
from suites.tflite.extract import read_slots
from suites.tflite.schemas import number_of

DRAWS = 400
FACTS = read_slots((Path(__file__).parent / "slots.txt").read_text())
# What no instance shows, each with the reason.
UNSHOWN: dict[tuple[str, str], str] = {
    ("SVDF", "W=qu8"): "8-bit weights beside float are signed, and no other form takes unsigned ones",
}


def attr(name: str, default: Any = 0) -> Any:
    return lambda v, inst: inst.attrs.get(name, default) != default


def args_of(inst: Any) -> Iterator[Any]:
    for a in inst.args.values():
        yield from a if isinstance(a, list) else [a]


def rank(n: int) -> Any:
    return lambda v, inst: max((len(a.shape) for a in args_of(inst)), default=0) >= n


def broadcasts(v: Any, inst: Any) -> Any:
    shapes = [a.shape for a in args_of(inst)]
    return len(set(shapes)) > 1 and max(map(len, shapes)) >= 5


def quants(inst: Any) -> Iterator[Any]:
    for a in args_of(inst):
        if a.quant:
            yield a.quant
    for o in inst.attrs.get("@outputs") or []:
        if o and o.get("quant"):
            yield o["quant"]


def per_channel(v: Any, inst: Any) -> bool:
    return any(len(q["scale"]) > 1 for q in quants(inst))


def hybrid(v: Any, inst: Any) -> Any:
    return v.schema.domain == "hybrid"


def rescales(v: Any, inst: Any) -> Any:
    if v.schema.domain != "quantised":
        return False
    x, y, z = (
        next(iter(q["scale"]))
        for q in (inst.tensor("lhs").quant, inst.tensor("rhs").quant, inst.attrs["@outputs"][0]["quant"])
    )
    return x * y / z >= 1


FEATURES = {
    "rank3": lambda v, i: len(i.args["input"].shape) == 3,
    "rank5": rank(5),
    "rank6": rank(6),
    "rank7": rank(7),
    "rank5_broadcast": broadcasts,
    "hybrid": hybrid,
    "hybrid_per_channel": lambda v, i: hybrid(v, i) and per_channel(v, i),
    "hybrid_asymmetric": lambda v, i: hybrid(v, i) and i.attrs.get("asymmetric_quantize_inputs"),
    "grouped": lambda v, i: i.args["input"].shape[-1] != i.args["filter"].shape[-1],
    "quantized_bias_type": attr("quantized_bias_type", None),
    "dilation": lambda v, i: max(i.attrs.get("dilation_h_factor", 1), i.attrs.get("dilation_w_factor", 1)) > 1,
    "per_channel": per_channel,
    "narrow_range": attr("narrow_range", False),
    "shuffled": attr("weights_format", "DEFAULT"),
    "keep_num_dims": attr("keep_num_dims", False),
    "no_bias": lambda v, i: "bias" not in i.args,
    "bias": lambda v, i: "bias" in i.args,
    "sparse": attr("@sparsity", None),
    "i16xi4": lambda v, i: i.args["input"].dtype.name == "i16" and i.args["filter"].dtype.name == "i4",
    "batch_dims": attr("batch_dims"),
    "rescale_above_one": rescales,
    "half_pixel_centers": attr("half_pixel_centers", False),
    "ellipsis_or_new_axis": lambda v, i: i.attrs.get("ellipsis_mask") or i.attrs.get("new_axis_mask"),
    "offset": attr("offset", False),
    "fused_activation": attr("fused_activation_function", "NONE"),
    "diagonal_recurrent_tensors": attr("diagonal_recurrent_tensors", False),
}


def has_type(op: str, letter: Any, word: str) -> Any:
    """Does an operand or output of that letter have the type, with parameters exactly if the word says so?"""
    quantised = word[0] == "q"
    name = word[1:] if quantised else word

    def found(v: Any, inst: Any) -> bool:
        for slot in v.schema.inputs:
            a = inst.args.get(slot.name)
            for one in a if isinstance(a, list) else [a]:
                if slot.type != letter or one is None or one.dtype.name != name:
                    continue
                if bool(one.quant) == quantised or letter == "B":  # a bias has its parameters from input and weights
                    return True
        if "@program" in inst.attrs:
            return any(str(t.get("dtype")) == name for t in inst.attrs["@program"].meta["tensors"].values())
        outs = inst.attrs.get("@outputs") or []
        for slot, o in zip(v.schema.outputs, outs):
            if slot.type == letter and o and str(o["dtype"]) == name and bool(o.get("quant")) == quantised:
                return True
        wanted = {"in_data_type": "T", "out_data_type": "O", "output_type": "O", "out_type": "O", "idx_out_type": "O"}
        return any(letter == wanted.get(k) and str(x) == name for k, x in inst.attrs.items())

    return found


def novelties() -> Iterator[Any]:
    for op, facts in FACTS.items():
        words = {w for ws in facts["types"].values() for w in ws}
        first = next(iter(facts["types"]), "")
        for n, items in facts["added"].items():
            for item in items:
                letter, _, word = item.rpartition("=")
                check = has_type(op, letter or first, word) if word in words else FEATURES[item]
                yield pytest.param(op, n, item, check, id=f"{op}-{n}-{item}")


@cache
def versions(op: str) -> list[Any]:
    return [v for v in dialect.versions.values() if v.op == op]


@cache
def drawn(key: str, i: int) -> Any:
    return dialect.versions[key].draw(Prng(case_seed(11, key, i)))


@pytest.mark.parametrize(("op", "n", "item", "check"), list(novelties()))
def test_a_versions_novelty_is_drawn(op: str, n: int, item: Any, check: Any) -> None:
    forms = [v for v in versions(op) if number_of(v.version) == n]
    if not forms:
        pytest.skip("no kernel has this version")
    for i in count():
        shown = i < DRAWS and any(check(v, drawn(v.key, i)) for v in forms)
        if shown or i == DRAWS:
            break
    reason = UNSHOWN.get((op, item))
    assert shown or reason, f"{op} version {n} brings {item}, which none of {DRAWS} instances of {len(forms)} forms has"
    assert not (shown and reason), f"{op} {item} is listed as not shown, but it is"
