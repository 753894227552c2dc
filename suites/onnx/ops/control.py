"""Control flow: If, Loop, Scan.  Blocks are drawn from a few ops that exist at every opset for the drawn type."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BOOL, F32, I64, DType
from harness.core.errors import RuleError
from harness.core.instance import Arg, Graph, Node
from harness.spec import Call, Draw, T, exact
from suites.onnx import op, schemas
from suites.onnx.ops.movement import literal
from suites.semantics import control
from suites.semantics.movement.common import norm_axis

# blocks are made of Add, Identity, Not and Less; integers below 2**3 keep every sum exact.  What Add does not take is
# handed on: from opset 13 on Identity and constants are of all types that the values of blocks have.
PLAIN = {"V": "f32 f64 i32 i64 f16 bool"}
OLD = {"V": "f32 f64 bool"}
WHY = "the values in blocks are of types that the ops drawn for blocks have at every opset"
_EXACT = ("f32", "f64", "f16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


def recipe_of(dtype: DType) -> str | None:
    """How what goes into a block is filled."""
    return "bool" if dtype is BOOL else "small" if dtype.name in _EXACT else None


def _adds(dtype: DType, opset: int) -> bool:
    """Can a block add a constant of this type?  Until opset 8 constants are floats."""
    schema = schemas.effective("Add", opset)
    known = schema is not None and dtype in schema.dtypes("T") and dtype.name in _EXACT
    return known and (opset > 8 or dtype.kind == "f")


def step(d: Draw, dtype: DType, shape: tuple[int, ...], source: str, out: str, consts: dict[str, Any]) -> Node:
    """One node from ``source`` to ``out`` that keeps type and shape."""
    if dtype is BOOL:
        return Node("Not", {"X": source}, [out]) if d.bool() else Node("Identity", {"input": source}, [out])
    if not _adds(dtype, int(d.opset)) or d.chance(4):
        return Node("Identity", {"input": source}, [out])
    name = f"k_{out}"
    consts[name] = literal(d, dtype, shape)
    return Node("Add", {"A": source, "B": name}, [out])


def fits(block: Graph, inputs: int, outputs: int) -> None:
    """Raises RuleError "body-inputs", "body-outputs" where a block takes or makes another number of values."""
    takes = sum(name not in block.consts for name, _ in block.inputs)  # until IR 3 constants are inputs too
    if takes != inputs:
        raise RuleError("body-inputs", f"a block of {takes} inputs is given {inputs}")
    if len(block.outputs) != outputs:
        raise RuleError("body-outputs", f"a block of {len(block.outputs)} outputs for {outputs} of the node")


def _if(c: Call) -> list[Any]:
    """Raises RuleError "single-element", "body-outputs", "body-inputs"."""
    if c.inputs["cond"].size != 1:
        raise RuleError("single-element", f"cond has shape {c.inputs['cond'].shape}")
    for name in ("then_branch", "else_branch"):
        fits(c.attrs[name], 0, c.n_outs)
    assert c.run is not None
    taken = c.attrs["then_branch" if bool(c.inputs["cond"].reshape(-1)[0]) else "else_branch"]
    return list(c.run(taken, []))


def _branch(d: Draw, dtypes: list[DType], shapes: list[tuple[int, ...]], held: DType | None = None) -> Graph:
    """held: the type of the elements of a sequence, which is the last output."""
    consts: dict[str, Any] = {}
    nodes = []
    for i, (t, s) in enumerate(zip(dtypes, shapes)):
        if t is BOOL and s == () and (d.opset < 9 or d.bool()):  # a value of the graph around
            nodes.append(Node("Not", {"X": "cond"}, [f"y{i}"]))
            continue
        consts[f"a{i}"] = literal(d, t, s)
        nodes.append(step(d, t, s, f"a{i}", f"y{i}", consts))
    types = {f"y{i}": t.name for i, t in enumerate(dtypes)}
    if held is not None:
        items = [f"b{k}" for k in range(d.int(1, 3))]
        consts |= {x: literal(d, held, d.shape(0, 2)) for x in items}
        nodes.append(Node("SequenceConstruct", {"inputs": items}, ["q"]))
        types["q"] = f"seq({held.name})"
    return Graph([], nodes, list(types), consts, {"out_types": types})


def _held(d: Draw) -> DType | None:
    """Now and then the type of the elements of a sequence among the values of a block, where they may be sequences."""
    makes = schemas.effective("SequenceInsert", int(d.opset))
    named = d.version.schema.types["V"]
    types = [t for t in makes.dtypes("T") if f"seq({t.name})" in named] if makes is not None else []
    return d.pick(types) if types and d.chance(5) else None


def _draw_if(d: Draw) -> dict:
    names = (OLD if d.opset < 7 else PLAIN)["V"].split()
    early = d.opset < 9  # constants are floats, a truth value can only come from outside
    all_types = d.version.schema.dtypes("V")
    types = [t for t in all_types if t.name in names and (not early or t.kind in "fb")]
    more = [t for t in all_types if t.name not in names] if d.version.version >= 13 else []
    dtypes = [d.pick(more) if more and d.chance(4) else d.pick(types) for _ in range(d.int(1, 3))]
    shapes = [() if t is BOOL and (early or d.bool()) else d.shape(0, 3) for t in dtypes]
    others = shapes if d.version.version < 11 else [d.shape(0, 3) if d.bool() else s for s in shapes]
    held = _held(d)
    return {"cond": T((), "bool"), "then_branch": _branch(d, dtypes, shapes, held),
            "else_branch": _branch(d, dtypes, others, held), "@outs": len(dtypes) + (held is not None)}  # fmt: skip


def _floats_if(d: Draw, cond: tuple[int, ...], then: int, other: int) -> dict:
    """Branches of so many outputs, which are not made of cond."""
    shape = d.shape(0, 3)
    blocks = [_branch(d, [F32] * n, [shape] * n) for n in (then, other)]
    return {"cond": T(cond, "bool"), "then_branch": blocks[0], "else_branch": blocks[1], "@outs": then}


op("If", evaluate=_if, error=exact(), draw=_draw_if, out_dtype=None, why=WHY,
   breaks={
       "single-element": lambda d: _floats_if(d, d.pick(((2,), (3, 1), (0,))), 1, 1),
       "body-outputs": lambda d: _floats_if(d, (), 2, d.pick((1, 3))),
   },
   source="ONNX If-1, -11, -13")  # fmt: skip


def _flag(v: Any) -> bool | None:
    return None if v is None else bool(v.reshape(-1)[0])


def _loop(c: Call) -> list[Any]:
    """Raises RuleError "body-inputs", "body-outputs", "loop-ends"."""
    limit = c.inputs.get("M")
    body = c.attrs["body"]
    fits(body, 2 + len(c.inputs.get("v_initial") or []), 1 + c.n_outs)
    assert c.run is not None
    return control.loop(
        None if limit is None else int(limit.reshape(-1)[0]),
        _flag(c.inputs.get("cond")),
        c.inputs.get("v_initial") or [],
        lambda row: c.run(body, row),  # type: ignore[misc]
        c.n_outs - len(c.inputs.get("v_initial") or []),
    )


def _draw_loop(d: Draw) -> dict:
    """Trip count, condition or both; the body counts with a comparison where the opset has one for int64.  Values that
    are carried differ in type and shape, grow, are sequences, or there are none."""
    kinds = d.version.candidates["V"]
    if d.opset < 7:
        kinds = tuple(t for t in kinds if t.name in OLD["V"].split())
    dtype, shape = d.types["V"] if d.types["V"] in kinds else F32, d.shape(0, 3)
    least = 0 if d.version.schema.inputs[2].optional else 1
    n = 0 if not least and d.chance(8) else d.int(1, 3)
    carried = [(dtype, shape)] * n
    if n > 1 and d.bool():
        carried[1:] = [(d.pick(kinds), d.shape(0, 3)) for _ in range(n - 1)]
    consts: dict[str, Any] = {}
    inputs = [("i", Arg(I64, ())), ("c", Arg(BOOL, ())), *((f"v{k}", Arg(t, s)) for k, (t, s) in enumerate(carried))]
    given = [T(s, dtype=t, recipe=recipe_of(t)) for t, s in carried]
    nodes: list[Node] = []
    limit, start = d.pick((None, 0, 1, 3, 4)), d.pick((None, True, True, False))
    if not n and (limit == 0 or start is False):  # nothing would be known of its results
        limit, start = 3, True
    compares = d.opset >= 9
    if limit is None and (start is None or not compares):
        limit = 2
    if compares and (limit is None or d.bool()):
        consts["top"] = np.array(d.int(0, 3), np.int64)
        nodes.append(Node("Less", {"A": "i", "B": "top"}, ["c_out"]))
    elif d.chance(4):  # once, or, without a condition, ignored
        nodes.append(Node("Not", {"X": "c"}, ["c_out"]))
    else:
        nodes.append(Node("Identity", {"input": "c"}, ["c_out"]))
    types = {"c_out": "bool"}
    for k, (t, s) in enumerate(carried):
        nodes.append(step(d, t, s, f"v{k}", f"v{k}_out", consts))
        types[f"v{k}_out"] = t.name
    joins = schemas.effective("Concat", int(d.opset))
    if d.opset >= 11 and joins and dtype in joins.dtypes("T") and d.chance(6):  # an element more in every iteration
        inputs.append(("g", Arg(dtype, (-1,))))
        given.append(T((d.dim(0, 3),), dtype=dtype, recipe=recipe_of(dtype)))
        consts["more"] = literal(d, dtype, (1,))
        nodes.append(Node("Concat", {"inputs": ["g", "more"]}, ["g_out"], {"axis": 0}))
        types["g_out"] = dtype.name
    held = _held(d)
    if held is not None:
        items = [T(d.shape(0, 2), dtype=held) for _ in range(d.int(0, 2))]
        inputs.append(("q", Arg(held, (), kind="seq", items=[Arg(held, ())])))
        given.append(T((), kind="seq", items=items, dtype=held))
        consts["next"] = literal(d, held, d.shape(0, 2))
        nodes.append(Node("SequenceInsert", {"input_sequence": "q", "tensor": "next"}, ["q_out"]))
        types["q_out"] = f"seq({held.name})"
    if limit != 0 and start is not False:  # what a scanned output is after no iteration, the spec does not say
        sources = [(f"v{k}", t, s) for k, (t, s) in enumerate(carried)]
        if compares:  # the iteration, and the trip count out of the graph around
            sources += [("i", I64, ())] + [("M", I64, ())] * (limit is not None)
        for k in range(d.int(0 if given else 1, 2)):
            source, t, s = d.pick(sources) if d.chance(3) or not carried else sources[d.int(0, n - 1)]
            nodes.append(step(d, t, s, source, f"s{k}", consts))
            types[f"s{k}"] = t.name
    out: dict[str, Any] = {"body": Graph(inputs, nodes, list(types), consts, {"out_types": types}),
                           "@outs": len(types) - 1}  # fmt: skip
    if given:
        out["v_initial"] = given
    if limit is not None:
        out["M"] = T((), values=[limit])
    if start is not None:
        out["cond"] = T((), values=[start])
    return out


def _one_more(draw: Any, slot: str) -> Any:
    """A value that the body does not take."""

    def fn(d: Draw) -> dict:
        out = draw(d)
        given = out.get(slot) or [T((), dtype=F32)]
        return {**out, slot: [given[0], *out.get(slot, ())], "@outs": out["@outs"] + 1}

    return fn


_LOOP_BREAKS = {"body-inputs": _one_more(_draw_loop, "v_initial")}
op("Loop", evaluate=_loop, error=exact(), draw=_draw_loop, until=11, types=PLAIN, why=WHY, breaks=_LOOP_BREAKS,
   source="ONNX Loop-1, -11")  # fmt: skip
op("Loop", evaluate=_loop, error=exact(), draw=_draw_loop, since=13, breaks=_LOOP_BREAKS, source="ONNX Loop-13")


# -- Scan

def _per(values: Any, n: int, default: int = 0) -> list[int]:
    return [default] * n if values is None else [int(v) for v in values]


def _parted(c: Call) -> tuple[Graph, list[Any], list[Any]]:
    """Body, states and scanned inputs.  Raises RuleError "inputs-to-scan", "body-inputs", "body-outputs"."""
    body, m = c.attrs["body"], int(c.attrs["num_scan_inputs"])
    xs = c.inputs["initial_state_and_scan_inputs"]
    if not 1 <= m <= len(xs):
        raise RuleError("inputs-to-scan", f"{m} of {len(xs)} inputs are scanned")
    fits(body, len(xs), c.n_outs)
    return body, xs[: len(xs) - m], xs[len(xs) - m :]


def _list(c: Call, name: str, n: int) -> list[int]:
    """An optional list of n numbers.  Raises RuleError "one-per-scan"."""
    values = _per(c.attr(name), n)
    if len(values) != n:
        raise RuleError("one-per-scan", f"{name} has {len(values)} elements for {n}")
    return values


def _scan9(c: Call) -> list[Any]:
    """Raises what ``_parted`` and the meaning raise, "one-per-scan", "axis-in-range"."""
    body, states, scans = _parted(c)
    m, outs = len(scans), len(body.outputs) - len(states)
    assert c.run is not None
    return control.scan(
        states,
        scans,
        lambda row: c.run(body, row),
        in_axes=[norm_axis(a, x.ndim) for a, x in zip(_list(c, "scan_input_axes", m), scans)],  # type: ignore[misc]
        in_back=[bool(v) for v in _list(c, "scan_input_directions", m)],
        out_axes=_list(c, "scan_output_axes", outs),
        out_back=[bool(v) for v in _list(c, "scan_output_directions", outs)],
    )


def _scan8(c: Call) -> list[Any]:
    """Raises what ``_parted`` and the meaning raise, "one-per-scan", "batch-agrees", "length-fits"."""
    body, states, scans = _parted(c)
    lens = c.inputs.get("sequence_lens")
    back = [bool(v) for v in _list(c, "directions", len(scans))]
    batch = {x.shape[:1] for x in (*states, *scans)} | ({lens.shape} if lens is not None else set())
    if len(batch) != 1 or () in batch:
        raise RuleError("batch-agrees", f"batches {sorted(batch)}")
    if lens is not None and ((lens < 0) | (lens > scans[0].shape[1])).any():
        raise RuleError("length-fits", f"lengths {lens.tolist()} of at most {scans[0].shape[1]}")
    assert c.run is not None
    rows = []
    for b in range(len(scans[0])):
        rows.append(
            control.scan(
                [x[b, ...] for x in states],
                [x[b, ...] for x in scans],
                lambda row: c.run(body, row),
                in_axes=[0] * len(scans),  # type: ignore[misc]
                in_back=back,
                out_axes=[],
                out_back=[],
                length=None if lens is None else int(lens[b]),
            )
        )
    return [np.stack([r[k] for r in rows]) for k in range(len(rows[0]))]


def _scan_body(d: Draw, dtype: DType, shape: tuple[int, ...], n: int, m: int, outs: int) -> Graph:
    consts: dict[str, Any] = {}
    inputs = [*((f"s{k}", Arg(dtype, shape)) for k in range(n)), *((f"x{k}", Arg(dtype, shape)) for k in range(m))]
    nodes = []
    for k in range(n):
        if dtype is not BOOL and _adds(dtype, int(d.opset)) and d.int(0, 3):
            nodes.append(Node("Add", {"A": f"s{k}", "B": f"x{d.int(0, m - 1)}"}, [f"s{k}_out"]))
        else:
            nodes.append(step(d, dtype, shape, f"s{k}", f"s{k}_out", consts))
    names = [f"s{k}_out" for k in range(n)]
    for k in range(outs):
        source = d.pick([f"x{j}" for j in range(m)] + [f"s{j}" for j in range(n)])
        nodes.append(step(d, dtype, shape, source, f"o{k}", consts))
        names.append(f"o{k}")
    return Graph(inputs, nodes, names, consts, {"out_types": dict.fromkeys(names, dtype.name)})


def _draw_scan9(d: Draw) -> dict:
    dtype, shape = d.types["V"], d.shape(0, 2)
    n, m, outs, length = d.int(0, 2), d.int(1, 2), d.int(0, 2), d.int(1, 4)
    if n + outs == 0:
        outs = 1
    recipe = recipe_of(dtype)
    axes = [d.int(0, len(shape)) for _ in range(m)]
    out_axes = [d.int(0, len(shape)) for _ in range(outs)]
    args = [T(shape, recipe, dtype) for _ in range(n)]
    args += [T((*shape[:a], length, *shape[a:]), recipe, dtype) for a in axes]
    out: dict[str, Any] = {"initial_state_and_scan_inputs": args, "num_scan_inputs": m, "@outs": n + outs,
                           "body": _scan_body(d, dtype, shape, n, m, outs)}  # fmt: skip
    signed = d.version.version >= 11  # since then axes may count from the end
    if any(axes) or d.bool():
        out["scan_input_axes"] = [a - len(shape) - 1 if signed and d.chance(3) else a for a in axes]
    if any(out_axes) or d.bool():
        out["scan_output_axes"] = [a - len(shape) - 1 if signed and d.chance(3) else a for a in out_axes]
    if d.bool():
        out["scan_input_directions"] = [d.int(0, 1) for _ in range(m)]
    if d.bool():
        out["scan_output_directions"] = [d.int(0, 1) for _ in range(outs)]
    return out


def _draw_scan8(d: Draw) -> dict:
    dtype, shape = d.types["V"], d.shape(0, 2)
    n, m, outs, length, batch = d.int(1, 2), d.int(1, 2), d.int(0, 2), d.int(1, 4), d.int(1, 3)
    recipe = recipe_of(dtype)
    out: dict[str, Any] = {}
    if d.chance(3):  # beyond its length an output is undefined, so then there is none
        outs = 0
        out["sequence_lens"] = T((batch,), f"ints:1:{length}")
    args = [T((batch, *shape), recipe, dtype) for _ in range(n)] + [
        T((batch, length, *shape), recipe, dtype) for _ in range(m)
    ]
    out |= {"initial_state_and_scan_inputs": args, "num_scan_inputs": m, "@outs": n + outs,
            "body": _scan_body(d, dtype, shape, n, m, outs)}  # fmt: skip
    if d.bool():
        out["directions"] = [d.int(0, 1) for _ in range(m)]
    return out


def _uneven(d: Draw) -> dict:
    """Scanned inputs of different extents."""
    dtype, shape, n = d.types["V"], d.shape(0, 2), d.int(1, 3)
    args = [T((k, *shape), recipe_of(dtype), dtype) for k in (n, n + 1)]
    return {"initial_state_and_scan_inputs": args, "num_scan_inputs": 2, "@outs": 1,
            "body": _scan_body(d, dtype, shape, 0, 2, 1)}  # fmt: skip


def _axis_beyond(name: str) -> Any:
    def fn(d: Draw) -> dict:
        out = _draw_scan9(d)
        m = out["num_scan_inputs"]
        rank = len(out["initial_state_and_scan_inputs"][-1].shape)
        n = m if name == "scan_input_axes" else out["@outs"] - (len(out["initial_state_and_scan_inputs"]) - m)
        return {**out, name: [rank] * n}

    return fn


def _many_axes(d: Draw) -> dict:
    out = _draw_scan9(d)
    return {**out, "scan_input_axes": [*out.get("scan_input_axes", [0] * out["num_scan_inputs"]), 0]}


_SCAN_SLOT = "initial_state_and_scan_inputs"
_SCAN_BREAKS = {
    "body-inputs": _one_more(_draw_scan9, _SCAN_SLOT),
    "scan-lengths-agree": _uneven,
    "axis-in-range": _axis_beyond("scan_input_axes"),
    "one-per-scan": _many_axes,
}
op("Scan", evaluate=_scan8, error=exact(), draw=_draw_scan8, until=8, types=PLAIN, why=WHY,
   breaks={"body-inputs": _one_more(_draw_scan8, _SCAN_SLOT)}, source="ONNX Scan-8")  # fmt: skip
op("Scan", evaluate=_scan9, error=exact(), draw=_draw_scan9, since=9, until=11, types=PLAIN, why=WHY,
   breaks=_SCAN_BREAKS, source="ONNX Scan-9, -11")  # fmt: skip
op("Scan", evaluate=_scan9, error=exact(), draw=_draw_scan9, since=16, breaks=_SCAN_BREAKS, source="ONNX Scan-16")
