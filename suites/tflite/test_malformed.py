"""A malformed TFLite model is refused in one line that says what was expected and what came, without internals."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from harness.core.errors import OpconformError
from harness.core.instance import Instance
from harness.core.quiet import quiet
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.tflite import dialect
from suites.tflite import flatbuffers as fb

ONE_EACH = sorted({(v.op, v.schema.domain): k for k, v in dialect.versions.items()}.values())
# words of Python, NumPy and nanobind that mean nothing to who wrote the model
INTERNAL = re.compile(
    r"\w+Error\b|\w\(\)|NoneType|StopIteration|out of (range|bounds)|unpack|incompatible|gufunc|newaxis"
)
GENERIC = "expected operands and attributes as stated"
MUTANTS = 8

Path = tuple[Any, ...]


def plain(v: Any) -> Any:
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    return [plain(x) for x in v] if isinstance(v, list) else v.tolist() if isinstance(v, np.ndarray) else v


def tables(inst: Instance) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tables of an instance's model, and what it is run on."""
    arrays = arrays_of(inst)
    model = dialect.build([inst], [arrays])
    given = {n: arrays[s] if j is None else arrays[s][j] for n, s, j in model.inputs[0]}
    return plain(fb.decode("Model", model.data)), given


def drawn(key: str, i: int) -> Instance:
    return dialect.versions[key].draw(Prng(case_seed(7, key, i)))


def numbers(v: Any, path: Path = ()) -> list[Path]:
    """Where the numbers of some tables are; data of buffers are one place."""
    if path and path[-1] == "data":
        return [path]
    parts: Any = v.items() if isinstance(v, dict) else enumerate(v) if isinstance(v, list) else ()
    here = [path] if isinstance(v, (int, float)) else []
    return here + [p for k, x in parts if k != "version" for p in numbers(x, (*path, k))]


def mutant(model: dict[str, Any], r: Random) -> dict[str, Any]:
    out = copy.deepcopy(model)
    path = r.choice(numbers(out))
    at: Any = out
    for k in path[:-1]:
        at = at[k]
    old = at[path[-1]]
    if isinstance(old, list):
        new: Any = r.choice((old[: r.randrange(len(old) or 1)], old + [7] * r.randrange(1, 9)))
    elif isinstance(old, bool):
        new = not old
    else:
        new = r.choice((-2, -1, 0, 1, 2, 3, 5, 7, 100, 1000) if isinstance(old, int) else (0.0, -1.0, np.nan, np.inf))
    at[path[-1]] = new
    return out


def test_mutants_are_refused_without_internals() -> None:
    bad, generic, refused = [], 0, 0
    for key in ONE_EACH:
        model, given = tables(drawn(key, 0))
        r = Random(key)
        for _ in range(MUTANTS):
            try:
                data = fb.encode("Model", mutant(model, r))
            except (ValueError, KeyError):  # more than the field holds, a table that the union has not
                continue
            try:
                with quiet:
                    dialect.run_model(data, given)
            except OpconformError as e:
                refused += 1
                generic += GENERIC in str(e)
                if INTERNAL.search(str(e)) or "\n" in str(e):
                    bad.append(f"{key}: {e}")
            except Exception as e:
                bad.append(f"{key}: {type(e).__name__}: {e}")
    assert not bad, "\n".join(bad)
    assert refused > 500, (generic, refused)
    assert generic < 0.01 * refused, (generic, refused)


def quant(**kw: Any) -> Callable[[dict[str, Any]], None]:
    return lambda m: m["subgraphs"][0]["tensors"][0]["quantization"].update(kw)


def operator(**kw: Any) -> Callable[[dict[str, Any]], None]:
    return lambda m: m["subgraphs"][0]["operators"][0].update(kw)


def option(**kw: Any) -> Callable[[dict[str, Any]], None]:
    def change(m: dict[str, Any]) -> None:
        node = m["subgraphs"][0]["operators"][0]
        node["builtin_options2" if "builtin_options2" in node else "builtin_options"].update(kw)

    return change


CASES: dict[str, tuple[str, Callable[[dict[str, Any]], None], str]] = {
    "output -1 of a node": ("ADD/5", operator(outputs=[-1]), r"operators\[0\].outputs: expected the index of one of 3"),
    "output -1 of a graph": ("ADD/5", lambda m: m["subgraphs"][0].update(outputs=[-1]), r"outputs: .*, got -1$"),
    "branch -1": ("IF/1", option(then_subgraph_index=-1), r"then_subgraph_index: expected the index of one of 3 .*-1$"),
    "a branch of a list -1": ("STABLEHLO_CASE/1", option(branch_subgraph_indices=[-1]), r"subgraphs, got -1$"),
    "a block that is the graph around": ("IF/1", option(else_subgraph_index=0), r"subgraphs\[0\] calls itself"),
    "a scale of 0": ("ADD/5q", quant(scale=[0.0]), r"scale: expected positive numbers, got 0.0$"),
    "a scale of -1": ("ADD/5q", quant(scale=[-1.0]), r"scale: expected positive numbers, got -1.0$"),
    "a scale of NaN": ("ADD/5q", quant(scale=[np.nan]), r"scale: expected positive numbers, got nan$"),
    "a scale of infinity": ("ADD/5q", quant(scale=[np.inf]), r"scale: expected positive numbers, got inf$"),
    "a zero point of 40000": ("ADD/5q", quant(zero_point=[40000]), r"zero_point: expected values of [iu]\d+, got \[40"),
    "zero points without scales": ("ADD/5q", quant(zero_point=[0, 0]), r"one for each of 1 scales, got 2$"),
    "an index vector beyond the rank": ("STABLEHLO_SCATTER/1", option(index_vector_dim=7), "index-vector-dim-in-range"),
    "a fused TANH of integers": ("ADD/2", option(fused_activation_function=4), "TANH of integers, expected floats"),
    "an activation of no name": ("ADD/5", option(fused_activation_function=77), r"RELU6 or TANH.*, got number 77$"),
    "data of another size": ("CONV_2D/3", lambda m: m["buffers"][1].update(data=[1, 2, 3]), r"bytes of data .*got 3$"),
    "an operator of no number": ("ADD/5", lambda m: m["operator_codes"][0].update(builtin_code=999), "got number 999$"),
    "a table of another operator": (
        "CONV_2D/3",
        operator(builtin_options_type=6, builtin_options={}),
        "expected Conv2DOptions, number 1, got",
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_what_the_schema_forbids_is_refused(what: str) -> None:
    key, change, words = CASES[what]
    inst = next(i for i in (drawn(f"tflite/{key}", k) for k in range(99)) if fits(what, i))
    model, given = tables(inst)
    dialect.run_model(fb.encode("Model", model), given)
    change(model)
    with pytest.raises(OpconformError, match=words) as e:
        dialect.run_model(fb.encode("Model", model), given)
    assert "\n" not in str(e.value)


def fits(what: str, inst: Instance) -> bool:
    """Options are written, as the change of one needs them to be, and constants are there."""
    if "of integers" in what and inst.tensor("lhs").dtype.kind != "i":
        return False
    return what != "data of another size" or inst.tensor("filter").const


def test_index_tuples_of_one_component_need_no_axis() -> None:
    """StableHLO scatter: index_vector_dim may be the rank of the indices."""
    v = dialect.versions["tflite/STABLEHLO_SCATTER/1"]
    seen = [
        i
        for i in (drawn(v.key, k) for k in range(60))
        if i.attrs["index_vector_dim"] == len(i.tensor("scatter_indices").shape)
    ]
    assert seen
    for inst in seen:
        (got,) = dialect.evaluate(inst, arrays_of(inst))
        index = inst.tensor("scatter_indices")
        wide = Instance.from_json(
            {
                **inst.to_json(),
                "args": {**inst.to_json()["args"], "scatter_indices": {**index.to_json(), "shape": [*index.shape, 1]}},
            }
        )
        np.testing.assert_array_equal(got.value, dialect.evaluate(wide, arrays_of(wide))[0].value)
