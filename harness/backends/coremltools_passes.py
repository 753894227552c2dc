"""What the graph passes of coremltools are given, and whether they did what they promise.

Part of the worker file ``coremltools_mil.py``, which loads it: it sees pymil programs only.  More of a plain program's
header, all of it optional:

    "passes"        a pipeline's name, or names of passes
    "options"       {pass: {option: value}}, lists in place of tuples
    "watch"         what the last pass promises to change: see ``WATCHED``; "ops" if it is not said
    "names"         {output of an op: the name that the op gets}
    "shared"        constants that are one ``const`` op wherever they are used
    "images"        {input: "first" | "last"}: an image, its channels before or after height and width
    "output_types"  [dtype | null]: what the caller asked each output to be
    "function"      the function to run afterwards: "main"
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from coremltools import ImageType, RangeDim, TensorType
from coremltools.converters.mil.mil import types
from coremltools.converters.mil.mil.passes.graph_pass import PassOption
from coremltools.converters.mil.mil.passes.pass_pipeline import PassPipeline, PassPipelineManager
from coremltools.converters.mil.mil.passes.pass_registry import PASS_REGISTRY
from coremltools.converters.mil.mil.types.symbolic import any_symbolic


def unknown(h: dict[str, Any]) -> str | None:
    """The first pass of the header that this release does not have."""
    passes = h["passes"]
    return None if isinstance(passes, str) else next((p for p in passes if p not in PASS_REGISTRY), None)


def prepare(prog: Any, h: dict[str, Any], builtin: Callable[[str], Any]) -> None:
    """Put what a conversion knows of the function's inputs and outputs where passes look for it."""
    main = prog.functions["main"]
    main.input_types = []
    images = h.get("images", {})
    if images:
        shapes = {i[0]: tuple(RangeDim() if isinstance(n, str) else n for n in i[2]) for i in h["inputs"]}
        main.input_types = [
            ImageType(name=n, shape=shapes[n], channel_first=images[n] == "first")
            if n in images
            else TensorType(name=n, shape=shapes[n])
            for n in shapes
        ]
    if "output_types" in h:
        main.output_types = [TensorType(dtype=builtin(t) if t else None) for t in h["output_types"]]


def run(prog: Any, h: dict[str, Any]) -> None:
    """The passes of the header, with their options."""
    passes = h["passes"]
    if isinstance(passes, str):
        PassPipelineManager.apply_pipeline(prog, PassPipeline.get_pipeline(passes))
        return
    given = h.get("options", {})
    for name in passes:
        one = PASS_REGISTRY[name]
        values = given.get(name.split("::")[-1], {})
        one.set_options([PassOption(k, _value(v)) for k, v in values.items()])
        one(prog)


def _value(v: Any) -> Any:
    """An option as passes take it: tuples for lists."""
    if isinstance(v, dict):
        return {k: _value(x) for k, x in v.items()}
    return tuple(v) if isinstance(v, list) else v


# -- what is looked at before and after


def wiring(block: Any) -> list[Any]:
    """Op types, modes, shapes and where inputs come from."""
    at: dict[int, Any] = {}
    out: list[Any] = []
    for op in block.operations:
        if op.op_type == "const":
            continue
        inputs = []
        for slot in sorted(op.inputs):
            v = op.inputs[slot]
            for x in v if isinstance(v, (list, tuple)) else (v,):
                val = getattr(x, "val", None)
                inputs.append((slot, at.get(id(x), val if isinstance(val, (str, bool, np.bool_)) else None)))
        shapes = tuple(str(getattr(v, "shape", None)) for v in op.outputs)
        out.append((op.op_type, tuple(inputs), shapes, tuple(tuple(wiring(b)) for b in op.blocks)))
        for i, v in enumerate(op.outputs):
            at[id(v)] = (len(out), i)
    out.append(tuple(at.get(id(v), "input or constant") for v in block.outputs))
    return out


def _ops(block: Any) -> list[Any]:
    """Every op of a block and of the blocks in it."""
    return [o for op in block.operations for o in (op, *(x for b in op.blocks for x in _ops(b)))]


def _count(start: str) -> Callable[[Any], int]:
    """How many ops there are of types that start so."""
    return lambda block: sum(op.op_type.startswith(start) for op in _ops(block))


def _values(block: Any) -> list[bytes]:
    """The numbers in a function, op by op."""
    out = []
    for op in _ops(block):
        for slot in sorted(op.inputs):
            v = op.inputs[slot]
            for x in v if isinstance(v, (list, tuple)) else (v,):
                if op.op_type != "const" and isinstance(getattr(x, "val", None), (np.ndarray, np.generic)):
                    out.append(np.ascontiguousarray(x.val).tobytes())
    return out


def _names(block: Any) -> tuple[list[str], list[str], list[list[str]]]:
    """Names of ops, of everything that ops give, and of inputs and outputs, each in order."""
    ops = _ops(block)
    made = [v.name for op in ops for v in op.outputs]
    inner = [v.name for op in ops for b in op.blocks for v in b.inputs]
    ends = [[v.name for v in block.inputs.values()], [v.name for v in block.outputs]]
    return [op.name for op in ops if op.name is not None], [*made, *inner, *ends[0]], ends


def _symbols(block: Any) -> int:
    """How many results, inputs included, have an extent that is a symbol."""
    every = [*block.inputs.values(), *(v for op in _ops(block) for v in op.outputs)]
    return sum(any_symbolic(v.shape) for v in every if types.is_tensor(v.sym_type))


def _symbolic_reshapes(block: Any) -> int:
    """How many reshapes have a target with symbols in it."""
    found = [op for op in _ops(block) if op.op_type == "reshape"]
    return sum(op.shape.val is None and op.shape.sym_val is not None for op in found)


def _unique(before: Any, after: Any) -> bool:
    """Names changed, none is there twice now, and those of inputs and outputs are what they were."""
    ops, made, ends = after
    return after != before and len(set(ops)) == len(ops) and len(set(made)) == len(made) and ends == before[2]


def _valid(before: Any, after: Any) -> bool:
    """Names of inputs and outputs changed, and are identifiers of their own now."""
    now = [n for part in after[2] for n in dict.fromkeys(part)]
    fine = all(re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", n) for n in now) and len(set(now)) == len(now)
    whole = [len(set(p)) for p in after[2]] == [len(set(p)) for p in before[2]]
    return bool(after[2] != before[2] and fine and whole)


def _identifiers(before: Any, after: Any) -> bool:
    """Names changed, and those of all ops and results are identifiers now."""
    return after != before and all(re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", n) for n in [*after[0], *after[1]])


WATCHED: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], bool]]] = {
    "ops": (wiring, lambda a, b: a != b),
    "constants": (_count("const"), lambda a, b: b < a),
    "compressed constants": (_count("constexpr_"), lambda a, b: b < a),
    "values": (lambda f: (wiring(f), _values(f)), lambda a, b: a[0] == b[0] and a[1] != b[1]),
    "unique names": (_names, _unique),
    "valid names": (_names, _valid),
    "identifiers": (_names, _identifiers),
    "symbols": (_symbols, lambda a, b: b < a),
    "symbolic reshapes": (_symbolic_reshapes, lambda a, b: b < a),
}


def moved(prog: Any, h: dict[str, Any]) -> list[list[int] | None]:
    """For each input of the header the permutation that it now needs: None, or channels to the front of an image."""
    first = {t.name for t in prog.functions["main"].input_types if isinstance(t, ImageType) and t.channel_first}
    out: list[list[int] | None] = []
    for name, _, shape, _ in h["inputs"]:
        n, last = len(shape), h.get("images", {}).get(name) == "last"
        out.append([*range(n - 3), n - 1, n - 3, n - 2] if last and name in first else None)
    return out
