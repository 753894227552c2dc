"""StableHLO operators that the runtime has kernels for; their bodies are further subgraphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.core.dtypes import BOOL, DType
from harness.core.instance import Arg, Graph, Node
from harness.declare import Call, Checks, Draw, Evaluation, Fn, Sampling, Spelling, T, rounded
from suites.semantics import elementwise as e
from suites.semantics import stablehlo as s
from suites.tflite import op, readings
from suites.tflite.codecs import literal, nan_extreme, shape_input
from suites.tflite.ops.control import block, declared, given, kinds

# -- elementwise: operands of one shape


def _same(*slots: str, recipe: str | None = None) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        shape = d.shape(1, 4, 0 if d.chance(4) else 1)
        return {n: T(shape, recipe) for n in slots}

    return draw


for _name, _meaning in (
    ("ADD", e.add),
    ("MULTIPLY", e.mul),
    ("MAXIMUM", e.maximum),
    ("MINIMUM", e.minimum),
    ("AND", s.conjunction),
):
    op(
        f"STABLEHLO_{_name}",
        _meaning,
        Sampling(_same("lhs", "rhs")),
        Checks(stated={"lhs": "*d", "rhs": "*d"}),
        x="lhs",
        y="rhs",
    )


def _draw_shift(d: Draw) -> dict[str, Any]:
    shape = d.shape(0, 4, 0 if d.chance(4) else 1)
    return {"lhs": T(shape, "full"), "rhs": T(shape, f"ints:0:{d.types['T'].bits - 1}")}


op(
    "STABLEHLO_SHIFT_LEFT",
    e.bit_shift,
    Spelling(x="lhs", y="rhs", fixed={"direction": "LEFT"}),
    Sampling(_draw_shift),
    Checks(stated={"lhs": "*d", "rhs": "*d"}, breaks={"shapes-stated": None}),
)
op(
    "STABLEHLO_PAD",
    s.pad,
    x="operand",
    value="padding_value",
    low="edge_padding_low",
    high="edge_padding_high",
    interior="interior_padding",
)

# -- windows


def _draw_reduce_window(d: Draw) -> dict[str, Any]:
    v = s.draw_windows(d, True)
    told = {"shape": v["size"], "strides": v["strides"], "dilations": v["dilations"]}
    return {
        "input": v["x"],
        "init_value": v["start"],
        **{f"window_{n}": literal(np.array(x, np.int64), const=True) for n, x in told.items()},
        "reduce_function": v["fold"].upper(),
    }


def _breaks(draw: Any, size: str, *others: str) -> dict[str, Any]:
    """Breaks the rules of a window: one number too many, or one below 1."""

    def many(d: Draw) -> dict[str, Any]:
        v, name = draw(d), d.pick((size, *others))
        return v | {name: _changed(v[name], lambda n: [*n, 1])}

    def below(d: Draw) -> dict[str, Any]:
        v = draw(d)
        while not v["input"].shape:
            v = draw(d)
        name = d.pick((size, *others))
        return v | {name: _changed(v[name], lambda n: [*n[:-1], d.pick((0, -1))])}

    return {"one-per-axis": many, "window-positive": below}


def _changed(given: Any, change: Any) -> Any:
    """A list, or an operand that holds one, after ``change``."""
    return literal(change(list(given.values)), const=True) if isinstance(given, T) else change(list(given))


def _no_pads(call: Call) -> Any:
    return [(0, 0)] * call.inputs["input"].ndim


_EXTREMES = ("MINIMUM", "MAXIMUM")
op(
    "REDUCE_WINDOW",
    s.reduce_window,
    Sampling(_draw_reduce_window, ranks=(1, 6)),
    Checks(
        ambiguous=lambda call: nan_extreme(call) if call.attr("reduce_function") in _EXTREMES else None,
        breaks=_breaks(_draw_reduce_window, "window_shape", "window_strides", "window_dilations"),
    ),
    x="input",
    start="init_value",
    size=shape_input("window_shape"),
    strides=shape_input("window_strides"),
    dilations=shape_input("window_dilations"),
    pads=Fn(_no_pads),
    base=Fn(lambda call: [1] * call.inputs["input"].ndim),
    fold=Fn(lambda call: call.attr("reduce_function").lower()),
)

_BODIES = {
    "add": "STABLEHLO_ADD",
    "mul": "STABLEHLO_MULTIPLY",
    "minimum": "STABLEHLO_MINIMUM",
    "maximum": "STABLEHLO_MAXIMUM",
    "all": "STABLEHLO_AND",
}
_FOLD = {v: k for k, v in _BODIES.items()}


def body(fold: str, dt: DType) -> Graph:
    """A subgraph of one operator over two scalars, or of none: what it gives is the second of them."""
    a = Arg(dt, ())
    types = {n: {"dtype": dt, "shape": ()} for n in ("a", "b", "c")}
    if fold == "update":
        del types["c"]
        return Graph([("a", a), ("b", a)], [], ["b"], {}, {"opset": 1, "tensors": types})
    return Graph(
        [("a", a), ("b", a)],
        [Node(_BODIES[fold], {"lhs": "a", "rhs": "b"}, ["c"], version=1)],
        ["c"],
        {},
        {"opset": 1, "tensors": types},
    )


def _body_of(attr: str) -> Fn:
    return Fn(lambda call: _fold_of(call, attr))


def _fold_of(call: Call, attr: str = "update_computation_subgraph_index") -> str:
    nodes = call.attrs[attr].nodes
    return _FOLD[nodes[0].op] if nodes else "update"


def _draw_hlo_window(d: Draw) -> dict[str, Any]:
    v = s.draw_windows(d, False)
    dt = d.types["T"]
    fold = "all" if dt is BOOL else v["fold"]
    return {
        "input": v["x"],
        "init_value": v["start"],
        "window_dimensions": v["size"],
        "window_strides": v["strides"],
        "base_dilations": v["base"],
        "window_dilations": v["dilations"],
        "padding": [n for p in v["pads"] for n in p],
        "body_subgraph_index": body(fold, dt),
    }


op(
    "STABLEHLO_REDUCE_WINDOW",
    s.reduce_window,
    Sampling(_draw_hlo_window),
    Checks(breaks=_breaks(_draw_hlo_window, "window_dimensions", "window_strides", "window_dilations")),
    x="input",
    start="init_value",
    size="window_dimensions",
    strides="window_strides",
    base="base_dilations",
    dilations="window_dilations",
    fold=_body_of("body_subgraph_index"),
    pads=Fn(lambda call: list(zip(call.attr("padding")[::2], call.attr("padding")[1::2]))),
)

# -- gather, scatter


def _draw_gather(d: Draw) -> dict[str, Any]:
    """The file declares the result's shape, as StableHLO's types do."""
    v = s.gather.derive(d)
    kept = iter(n for a, n in enumerate(v["sizes"]) if a not in v["collapsed"])
    batch = [n for a, n in enumerate(v["indices"].shape) if a != v["index_dim"]]
    rank = len(batch) + len(v["sizes"]) - len(v["collapsed"])
    outer = iter(batch)
    shape = [next(kept) if a in v["offset_dims"] else next(outer) for a in range(rank)]
    return {
        "operand": v["x"],
        "start_indices": v["indices"],
        "offset_dims": v["offset_dims"],
        "collapsed_slice_dims": v["collapsed"],
        "start_index_map": v["start_map"],
        "index_vector_dim": v["index_dim"],
        "slice_sizes": v["sizes"],
        "indices_are_sorted": v["sorted"] and d.bool(),
        "@outputs": [{"dtype": d.types["T"].name, "shape": shape}],
    }


def _rows_of(**other: Any) -> Callable[[Draw], dict[str, Any]]:
    """Rows of a matrix, but for what breaks a rule."""

    def draw(d: Draw) -> dict[str, Any]:
        return {
            "operand": T((3, 3)),
            "start_indices": T((2, 1), values=[d.int(0, 2) for _ in range(2)]),
            "offset_dims": [1],
            "collapsed_slice_dims": [0],
            "start_index_map": [0],
            "index_vector_dim": 1,
            "slice_sizes": [1, 3],
            "indices_are_sorted": False,
            "@outputs": [{"dtype": d.types["T"].name, "shape": [2, 3]}],
            **other,
        }

    return draw


op(
    "STABLEHLO_GATHER",
    s.gather,
    Sampling(_draw_gather),
    Checks(
        breaks={
            "collapsed-axes-exist": _rows_of(collapsed_slice_dims=[2]),
            "mapped-axes-exist": _rows_of(start_index_map=[2]),
            "offset-axes-exist": _rows_of(offset_dims=[2]),
            "slices-fit": _rows_of(slice_sizes=[1, 4]),
            "index-vector-dim-in-range": _rows_of(index_vector_dim=3),
            "index-tuples-fit": _rows_of(start_index_map=[0, 1]),
        }
    ),
    x="operand",
    indices="start_indices",
    offset_dims="offset_dims",
    collapsed="collapsed_slice_dims",
    start_map="start_index_map",
    index_dim="index_vector_dim",
    sizes="slice_sizes",
)


def _draw_scatter(d: Draw) -> dict[str, Any]:
    v = s.scatter.derive(d)
    return {
        "input": v["x"],
        "scatter_indices": v["indices"],
        "updates": v["updates"],
        "update_window_dims": v["window_dims"],
        "inserted_window_dims": v["inserted"],
        "scatter_dims_to_operand_dims": v["to_operand"],
        "index_vector_dim": v["index_dim"],
        "indices_are_sorted": v["sorted"] and d.bool(),
        "unique_indices": v["unique"] and d.bool(),
        "update_computation_subgraph_index": body(v["body"], d.types["T"]),
    }


def _scattered(call: Call) -> str | None:
    fold = _fold_of(call)
    return nan_extreme(call) if fold in ("minimum", "maximum") else readings.scattered(call, fold)


def _into_rows(**other: Any) -> Callable[[Draw], dict[str, Any]]:
    """Rows of a matrix that are added to, but for what breaks a rule."""

    def draw(d: Draw) -> dict[str, Any]:
        return {
            "input": T((3, 3)),
            "scatter_indices": T((2, 1), values=[d.int(0, 2) for _ in range(2)]),
            "updates": T((2, 3)),
            "update_window_dims": [1],
            "inserted_window_dims": [0],
            "scatter_dims_to_operand_dims": [0],
            "index_vector_dim": 1,
            "indices_are_sorted": False,
            "unique_indices": False,
            "update_computation_subgraph_index": body("add", d.types["T"]),
            **other,
        }

    return draw


op(
    "STABLEHLO_SCATTER",
    s.scatter,
    Sampling(_draw_scatter, tags=("scalar-body",)),
    Checks(
        ambiguous=_scattered,
        breaks={
            "inserted-axes-exist": _into_rows(inserted_window_dims=[2]),
            "mapped-axes-exist": _into_rows(scatter_dims_to_operand_dims=[2]),
            "window-axes-exist": _into_rows(update_window_dims=[2]),
            "updates-fit": _into_rows(updates=T((2, 4))),
            "index-vector-dim-in-range": _into_rows(index_vector_dim=3),
            "index-tuples-fit": _into_rows(scatter_dims_to_operand_dims=[0, 1]),
        },
    ),
    x="input",
    indices="scatter_indices",
    window_dims="update_window_dims",
    inserted="inserted_window_dims",
    to_operand="scatter_dims_to_operand_dims",
    index_dim="index_vector_dim",
    body=_body_of("update_computation_subgraph_index"),
)

# -- blocks


def _draw_composite(d: Draw) -> dict[str, Any]:
    args = [Arg(t, d.shape(1, 3, 0 if d.chance(8) else 1)) for t in kinds(d, d.int(1, 4))]
    said = {"composite_attributes_format": 0} if d.chance(4) else {}
    return {
        "inputs": given(args),
        "name": "opconform.composite",
        "version": 1,
        **said,
        # no FlexBuffer, or one that holds null, null of another width, or 7
        "composite_attributes": d.pick(([0, 0, 1], [0, 0, 1], [], [1, 1, 1], [7, 4, 1])),
        "decomposition_subgraph_index": block(d, args, 1),
        "@outputs": declared(args[:1]),
        "@outs": 1,
    }


op(
    "STABLEHLO_COMPOSITE",
    Evaluation(
        lambda call: call.run(call.attrs["decomposition_subgraph_index"], list(call.inputs["inputs"])),
        rounded(64),
        "StableHLO composite: its decomposition",
    ),
    Sampling(_draw_composite),
)


def _draw_case(d: Draw) -> dict[str, Any]:
    args = [Arg(t, d.shape(1, 3, 0 if d.chance(8) else 1)) for t in kinds(d, d.int(1, 4))]
    n = d.int(1, 3)
    return {
        "index": T((), values=[d.pick((2**31 - 1, -(2**31), 2**25)) if d.chance(8) else d.int(-1, n)]),
        "input": given(args),
        "branch_subgraph_indices": [block(d, args, 1) for _ in range(n)],
        "@outputs": declared(args[:1]),
        "@outs": 1,
    }


def _case(call: Call) -> list[Any]:
    """An index outside takes the last branch."""
    branches, i = call.attrs["branch_subgraph_indices"], int(call.inputs["index"].ravel()[0])
    return call.run(branches[i if 0 <= i < len(branches) else -1], list(call.inputs["input"]))


op("STABLEHLO_CASE", Evaluation(_case, rounded(64), "StableHLO case: default is the last branch"), Sampling(_draw_case))
