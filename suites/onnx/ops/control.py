"""Control flow: If, Loop, Scan.  Blocks are drawn from a few ops that exist at every opset for the drawn type."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from harness.core.dtypes import BOOL, F32, I64, DType
from harness.core.errors import RuleError
from harness.core.instance import Arg, Graph
from harness.declare import (
    Call,
    Checks,
    Draw,
    Evaluation,
    Sampling,
    Spelling,
    T,
    exact,
    gathered,
    other_shape,
    underspecified,
)
from harness.generate.ends import MOST
from harness.generate.ends import elements as at_ends
from suites.onnx import op, schemas
from suites.onnx.blocks import PLAIN, Block, Value, kind, literal, recipe_of, takes
from suites.semantics import control
from suites.semantics.movement.common import norm_axis


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
    taken = c.attrs["then_branch" if bool(c.inputs["cond"].reshape(-1)[0]) else "else_branch"]
    return list(c.run(taken, []))


def _branch(
    d: Draw,
    dtypes: list[DType],
    shapes: list[tuple[int, ...]],
    held: DType | None = None,
    boxed: Type | None = None,
    sees: bool = True,
) -> Graph:
    """held: the type of the elements of a sequence, boxed: that of an optional, which are the last outputs.  sees: may
    it use the condition, a scalar?"""
    b = Block(d, [])
    for i, (t, s) in enumerate(zip(dtypes, shapes)):
        out = f"y{i}"
        if t is BOOL and s == () and sees and (int(d.opset) < 9 or d.bool()):  # a value of the graph around
            b.returns(b.node("Not", {"X": "cond"}, out), "bool")
            continue
        v = Value(f"a{i}", t, s)
        b.consts[v.name] = literal(d, t, s)
        for k in range(d.int(1, 4) if d.chance(4) else 0):  # a branch of some length
            v = Value(b.step(v, f"a{i}_{k}"), t, s)
        how = d.int(0, 5)
        if how == 0 and (b.as_is or v.name in {o for n in b.nodes for o in n.outputs}):
            b.returns(v.name, t.name)
        else:
            b.returns(b.chosen(v, out, [Value("cond", BOOL, ())]) if how == 1 and sees else b.step(v, out), t.name)
    if held is not None:
        items = [f"b{k}" for k in range(d.int(1, 3))]
        b.consts |= {x: literal(d, held, d.shape(0, 2)) for x in items}
        b.returns(b.node("SequenceConstruct", {"inputs": items}, "q"), f"seq({held.name})")
    if boxed is not None:
        b.returns(_full(d, b, boxed, "p") if d.int(0, 2) else b.node("Optional", {}, "p", type=boxed.held), boxed.text)
    return b.graph()


def _held(d: Draw) -> DType | None:
    """Now and then the type of the elements of a sequence among the values of a block, where they may be sequences."""
    makes = schemas.effective("SequenceInsert", int(d.opset))
    named = d.version.schema.types["V"]
    types = [t for t in makes.dtypes("T") if f"seq({t.name})" in named] if makes is not None else []
    return d.pick(types) if types and d.chance(5) else None


class Type(NamedTuple):
    """Of an optional: that of the elements, of a tensor or of the tensors of a sequence."""

    dtype: DType
    many: bool

    @property
    def held(self) -> str:
        return f"seq({self.dtype.name})" if self.many else self.dtype.name

    @property
    def text(self) -> str:
        return f"optional({self.held})"


def _boxed(d: Draw) -> Type | None:
    """Now and then the type of an optional among the values of a block, where they may be optionals."""
    makes = schemas.effective("Optional", int(d.opset))
    named = d.version.schema.types["V"]
    types = [t for t in makes.dtypes("V") if f"optional({t.name})" in named] if makes is not None else []
    if not types or not d.chance(5):
        return None
    t = d.pick([t for t in types if t.name in PLAIN]) if d.bool() else d.pick(types)
    return Type(t, d.chance(3) and f"optional(seq({t.name}))" in named and takes("SequenceConstruct", int(d.opset), t))


def _passes(op_name: str, d: Draw, t: Type) -> bool:
    """Does an op take such an optional?"""
    schema = schemas.effective(op_name, int(d.opset))
    if schema is None:
        return False
    slot = schema.inputs[0]
    return (t.held if slot.container == "optional" else t.text) in schema.types[slot.element]


def _full(d: Draw, b: Block, t: Type, out: str) -> str:
    """An optional with something in it."""
    items = [f"{out}{k}" for k in range(d.int(1, 2) if t.many else 1)]
    b.consts |= {x: literal(d, t.dtype, d.shape(0, 2)) for x in items}
    held = b.node("SequenceConstruct", {"inputs": items}, f"{out}q") if t.many else items[0]
    return b.node("Optional", {"input": held}, out)


def _draw_if(d: Draw) -> dict:
    early = int(d.opset) < 9  # constants are floats, a truth value can only come from outside
    all_types = d.version.schema.dtypes("V")
    types = [t for t in all_types if t.name in PLAIN and (not early or t.kind in "fb")]
    more = [t for t in all_types if t.name not in PLAIN] if d.version.version >= 13 else []
    dtypes = [d.pick(more) if more and d.chance(4) else d.pick(types) for _ in range(d.int(1, 3))]
    shapes = [() if t is BOOL and (early or d.bool()) else d.shape(0, 3) for t in dtypes]
    others = shapes if d.version.version < 11 else [d.shape(0, 3) if d.bool() else s for s in shapes]
    held, boxed = _held(d), _boxed(d)
    rank = 0 if early or not d.chance(4) else d.int(1, 8)  # "The tensor must contain a single element."
    return {
        "cond": T((1,) * rank, "bool"),
        "then_branch": _branch(d, dtypes, shapes, held, boxed, not rank),
        "else_branch": _branch(d, dtypes, others, held, boxed, not rank),
        "@outs": len(dtypes) + (held is not None) + (boxed is not None),
    }


def _floats_if(d: Draw, cond: tuple[int, ...], then: int, other: int) -> dict:
    """Branches of so many outputs, which are not made of cond."""
    shape = d.shape(0, 3)
    blocks = [_branch(d, [F32] * n, [shape] * n) for n in (then, other)]
    return {"cond": T(cond, "bool"), "then_branch": blocks[0], "else_branch": blocks[1], "@outs": then}


def _asking_if(d: Draw) -> dict:
    """A branch that takes a value, which nothing gives."""
    out = _floats_if(d, (), 1, 1)
    out[d.pick(("then_branch", "else_branch"))].inputs.append(("z", Arg(F32, (2,))))
    return out


op(
    "If",
    Evaluation(_if, exact(), "ONNX If-1, -11, -13, -16"),
    Spelling(out_dtype=None),
    Sampling(_draw_if),
    Checks(
        breaks={
            "single-element": lambda d: _floats_if(d, d.pick(((2,), (3, 1), (0,))), 1, 1),
            "body-outputs": lambda d: _floats_if(d, (), 2, d.pick((1, 3))),
            "body-inputs": _asking_if,
        }
    ),
)


def _flag(v: Any) -> bool | None:
    return None if v is None else bool(v.reshape(-1)[0])


def _loop(c: Call) -> list[Any]:
    """Raises RuleError "body-inputs", "body-outputs", "loop-ends"."""
    limit = c.inputs.get("M")
    body = c.attrs["body"]
    fits(body, 2 + len(c.inputs.get("v_initial") or []), 1 + c.n_outs)
    return control.loop(
        None if limit is None else int(limit.reshape(-1)[0]),
        _flag(c.inputs.get("cond")),
        c.inputs.get("v_initial") or [],
        lambda row: c.run(body, row),
        c.n_outs - len(c.inputs.get("v_initial") or []),
    )


def _never_made(c: Call) -> str | None:
    """Extents of scanned outputs after no iteration are known where the body declares those of its inputs, and has no
    others."""
    limit, start = c.inputs.get("M"), _flag(c.inputs.get("cond"))
    runs = (limit is None or int(limit.reshape(-1)[0]) > 0) and start is not False
    body = c.attrs["body"]
    open_ = bool(body.outer) or any(-1 in a.shape for _, a in body.inputs)
    first = len(c.inputs.get("v_initial") or [])
    if runs or not open_ or c.n_outs == first:
        return None
    why = "no iteration: extents of what would have been scanned that the body does not declare"
    ranks = enumerate([y.ndim for y in _loop(c)[first:]], first)
    return gathered(*(other_shape(why, i, shapes=((0, *(None,) * (r - 1)),)) for i, r in ranks if r > 1))


def _carry_optional(d: Draw, b: Block, t: Type) -> T:
    """An optional among the carried values: handed on, made anew, or another one where there was something."""
    one = T(d.shape(0, 2), dtype=t.dtype)
    held = T((), kind="seq", items=[one], dtype=t.dtype) if t.many else one
    there = t.many or d.int(0, 2) > 0  # of nothing, an operand does not tell that it would be a sequence
    like = Arg(t.dtype, (), kind="seq", items=[Arg(t.dtype, ())]) if t.many else Arg(t.dtype, ())
    b.parameters.append(("p", Arg(t.dtype, (), kind="optional", items=[like])))
    how = d.int(0, 3) if _passes("OptionalHasElement", d, t) else d.int(1, 2)
    if how == 0 and _passes("Identity", d, t):
        b.returns(b.node("Identity", {"input": "p"}, "p_out"), t.text)
    elif how < 2:
        b.returns(_full(d, b, t, "p_out"), t.text)
    elif how == 2:
        b.returns(b.node("Optional", {}, "p_out", type=t.held), t.text)
    else:  # nothing where there was something, and something where there was nothing
        sides = [Block(d, []), Block(d, [])]
        sides[0].returns(sides[0].node("Optional", {}, "p_none", type=t.held), t.text)
        sides[1].returns(_full(d, sides[1], t, "p_new"), t.text)
        b.node("OptionalHasElement", {"input": "p"}, "p_has")
        branches = {"then_branch": sides[0].graph(), "else_branch": sides[1].graph()}
        b.returns(b.node("If", {"cond": "p_has"}, "p_out", **branches), t.text)
    return T((), kind="optional", items=[held] if there else [], dtype=t.dtype)


def _casts(g: Graph) -> bool:
    """Is there a cast in a block, or in one inside it?"""
    inner = (x for n in g.nodes for x in n.attrs.values() if isinstance(x, Graph))
    return any(n.op == "Cast" for n in g.nodes) or any(map(_casts, inner))


def _at_ends(d: Draw, given: list[T], body: Graph) -> list[T]:
    """Now and then one of the values with elements at the ends of its type, where no cast could leave another's: sums
    of integers wrap, and nothing says that they do, so that a body that adds takes floats alone."""
    if d.breaking or not d.chance(4) or _casts(body):
        return given
    adds = not _only_moves(body)
    plain = [(k, t, t.dtype) for k, t in enumerate(given) if t.dtype is not None and t.kind == "tensor"]
    plain = [(k, t, dt) for k, t, dt in plain if t.items is None and 0 < math.prod(t.shape) <= MOST and dt.bits > 8]
    may = [(k, t, dt) for k, t, dt in plain if dt.kind in ("f" if adds else "fiu")]
    if not may:
        return given
    k, t, dt = d.pick(may)
    values = at_ends(d, Arg(dt, tuple(t.shape)))
    return [T(t.shape, dtype=dt, values=values) if j == k else x for j, x in enumerate(given)]


def _only_moves(g: Graph) -> bool:
    """Are there no sums in a block, nor in one inside it?"""
    inner = (x for n in g.nodes for x in n.attrs.values() if isinstance(x, Graph))
    return not any(n.op == "Add" for n in g.nodes) and all(map(_only_moves, inner))


def _draw_loop(d: Draw) -> dict:
    """Trip count, condition or both; the body counts with a comparison where the opset has one for int64.  Values that
    are carried differ in type and shape, grow, are sequences, or there are none."""
    dtype, shape = d.types["V"], d.shape(0, 8)
    least = 0 if d.version.schema.inputs[2].optional else 1
    n = 0 if not least and d.chance(8) else d.int(1, 3)
    kinds = [(dtype, shape)] * n
    if n > 1 and d.bool():
        kinds[1:] = [(kind(d), d.shape(0, 8) if d.bool() else shape) for _ in range(n - 1)]
    carried = [Value(f"v{k}", t, s, False) for k, (t, s) in enumerate(kinds)]
    given = [T(v.shape, dtype=v.dtype, recipe=recipe_of(v.dtype)) for v in carried]
    limit, start = d.pick((None, 0, 1, 3, 4)), d.pick((None, True, True, False))
    if not n and (limit == 0 or start is False):  # nothing would be known of its results
        limit, start = 3, True
    compares = int(d.opset) >= 9
    if limit is None and (start is None or not compares):
        limit = 2
    ends = compares and (limit is None or d.bool())  # the body says when
    if ends and limit and start is not None and d.chance(4):
        limit = d.pick((2**63 - 1, 2**24 + 1))  # loops without a count are written with the highest one
    elif limit == 0 and d.chance(3):
        limit = d.pick((-1, -(2**63)))
    around = [Value(f"v_initial{k}", v.dtype, v.shape) for k, v in enumerate(carried)]
    around += [Value("M", I64, ())] * (limit is not None) + [Value("cond", BOOL, ())] * (start is not None)
    turn = [Value("i", I64, ()), Value("c", BOOL, ())]
    b = Block(d, [*turn, *carried], around)
    b.parameters[:2] = [("i", Arg(I64, ())), ("c", Arg(BOOL, ()))]
    if ends:
        b.consts["top"] = np.array(d.int(0, 3), np.int64)
        b.node("Less", {"A": "i", "B": "top"}, "c_out")
    elif d.chance(4):  # once, or, without a condition, ignored
        b.node("Not", {"X": "c"}, "c_out")
    else:
        b.node("Identity", {"input": "c"}, "c_out")
    b.returns("c_out", "bool")
    b.carry(carried)
    joins = schemas.effective("Concat", int(d.opset))
    if (
        int(d.opset) >= 11 and joins and dtype in joins.dtypes("T") and d.chance(6)
    ):  # an element more in every iteration
        b.parameters.append(("g", Arg(dtype, (-1,))))
        given.append(T((d.dim(0, 3),), dtype=dtype, recipe=recipe_of(dtype)))
        b.consts["more"] = literal(d, dtype, (1,))
        b.returns(b.node("Concat", {"inputs": ["g", "more"]}, "g_out", axis=0), dtype.name)
    held = _held(d)
    if held is not None:
        items = [T(d.shape(0, 2), dtype=held) for _ in range(d.int(0, 2))]
        b.parameters.append(("q", Arg(held, (), kind="seq", items=[Arg(held, ())])))
        given.append(T((), kind="seq", items=items, dtype=held))
        b.consts["next"] = literal(d, held, d.shape(0, 2))
        b.returns(b.node("SequenceInsert", {"input_sequence": "q", "tensor": "next"}, "q_out"), f"seq({held.name})")
    boxed = _boxed(d)
    if boxed is not None:
        given.append(_carry_optional(d, b, boxed))
    for k in range(d.int(0 if given else 1, 2)):
        b.made(f"s{k}")
    if boxed is not None and _passes("OptionalHasElement", d, boxed):
        b.returns(b.node("OptionalHasElement", {"input": "p"}, "had"), "bool")
    out: dict[str, Any] = {"body": b.graph(), "@outs": len(b.outputs) - 1}
    if given:
        out["v_initial"] = _at_ends(d, given, out["body"])
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


def _one_fewer(d: Draw) -> dict:
    """The body makes a value less than the node has results."""
    out = _draw_loop(d)
    out["body"].outputs.pop()
    return out


_LOOP_BREAKS = {"body-inputs": _one_more(_draw_loop, "v_initial"), "body-outputs": _one_fewer}
op(
    "Loop",
    Evaluation(_loop, exact(), "ONNX Loop-1, -11, -13, -16"),
    Sampling(_draw_loop),
    Checks(breaks=_LOOP_BREAKS, ambiguous=_never_made),
)


# -- Scan

_SCAN_SLOT = "initial_state_and_scan_inputs"


def _per(values: Any, n: int, default: int = 0) -> list[int]:
    return [default] * n if values is None else [int(v) for v in values]


def _parted(c: Call) -> tuple[Graph, list[Any], list[Any]]:
    """Body, states and scanned inputs.  Raises RuleError "inputs-to-scan", "body-inputs", "body-outputs"."""
    body, m = c.attrs["body"], int(c.attrs["num_scan_inputs"])
    xs = c.inputs[_SCAN_SLOT]
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
    return control.scan(
        states,
        scans,
        lambda row: c.run(body, row),
        in_axes=[norm_axis(a, x.ndim) for a, x in zip(_list(c, "scan_input_axes", m), scans)],
        in_back=[bool(v) for v in _list(c, "scan_input_directions", m)],
        outs=outs,
        out_axes=_list(c, "scan_output_axes", outs),
        out_back=[bool(v) for v in _list(c, "scan_output_directions", outs)],
    )


def _scan8(c: Call) -> list[Any]:
    """Raises what ``_parted`` and the meaning raise, "one-per-scan", "batch-agrees", "length-fits".  Beyond the length
    of a sequence the outputs are zero."""
    body, states, scans = _parted(c)
    lens = c.inputs.get("sequence_lens")
    back = [bool(v) for v in _list(c, "directions", len(scans))]
    batch = {x.shape[:1] for x in (*states, *scans)} | ({lens.shape} if lens is not None else set())
    if len(batch) != 1 or () in batch:
        raise RuleError("batch-agrees", f"batches {sorted(batch)}")
    if lens is not None and ((lens < 0) | (lens > scans[0].shape[1])).any():
        raise RuleError("length-fits", f"lengths {lens.tolist()} of at most {scans[0].shape[1]}")
    rows = []
    some = len(scans[0]) > 0
    if not some:  # what one sequence would give tells types and extents
        states, scans = ([np.zeros((1, *x.shape[1:]), x.dtype) for x in given] for given in (states, scans))
        lens = None
    for b in range(len(scans[0])):
        rows.append(
            control.scan(
                [x[b, ...] for x in states],
                [x[b, ...] for x in scans],
                lambda row: c.run(body, row),
                in_axes=[0] * len(scans),
                in_back=back,
                outs=len(body.outputs) - len(states),
                out_axes=[],
                out_back=[],
                length=None if lens is None else int(lens[b]),
            )
        )
    n = len(states)
    whole = [np.stack([r[k] for r in rows]) for k in range(n)]
    out = [*whole, *(_padded([r[k] for r in rows], scans[0].shape[1]) for k in range(n, len(rows[0])))]
    return out if some else [x[:0] for x in out]


def _padded(rows: list[np.ndarray], length: int) -> np.ndarray:
    """Sequences of any length side by side."""
    out = np.zeros((len(rows), length, *rows[0].shape[1:]), rows[0].dtype)
    for b, r in enumerate(rows):
        out[b, : len(r)] = r
    return out


def _beyond(c: Call) -> str | None:
    """Where scanned outputs are beyond the length of their sequence."""
    lens = c.inputs.get("sequence_lens")
    if lens is None:
        return None
    n = len(c.inputs[_SCAN_SLOT]) - int(c.attrs["num_scan_inputs"])
    masks: list[np.ndarray | None] = [None] * n
    for x in _scan8(c)[n:]:
        late = np.arange(x.shape[1]) >= lens[:, None]
        masks.append(np.broadcast_to(late.reshape(late.shape + (1,) * (x.ndim - 2)), x.shape))
    return underspecified("beyond the length of its sequence an output has an undefined value", (*masks, None))


def _values(d: Draw, n: int, m: int) -> tuple[list[Value], list[Value]]:
    """n states and the elements of m scanned inputs: all of one type and shape, or each of its own."""
    most = 6 if d.version.version == 8 else 7  # a batch and a sequence come to it
    one = d.types["V"], d.shape(0, most)
    alike = d.bool()

    def value(name: str, still: bool) -> Value:
        dtype = one[0] if alike or d.chance(3) else kind(d)
        return Value(name, dtype, one[1] if alike or d.chance(3) else d.shape(0, most), still)

    return [value(f"s{k}", False) for k in range(n)], [value(f"x{k}", True) for k in range(m)]


def _scan_body(
    d: Draw,
    states: list[Value],
    elements: list[Value],
    args: list[T],
    outs: int,
) -> tuple[Graph, list[int]]:
    """The body, and the ranks of what it returns beside the states.  args: the node's operands: the body sees them."""
    around = [Value(f"{_SCAN_SLOT}{k}", t.dtype, tuple(t.shape)) for k, t in enumerate(args) if t.dtype is not None]
    b = Block(d, [*states, *elements], around)
    b.carry(states)
    ranks = [b.made(f"o{k}") for k in range(outs)]
    return b.graph(), ranks


def _given(v: Value, *lead: int) -> T:
    return T((*lead, *v.shape), recipe_of(v.dtype), v.dtype)


def _scanned(v: Value, length: int, axis: int) -> T:
    return T((*v.shape[:axis], length, *v.shape[axis:]), recipe_of(v.dtype), v.dtype)


def _many(d: Draw, m: int) -> int:
    """How many inputs are scanned: now and then more than there are of anything else."""
    return d.int(9, 12) if d.chance(32) and not d.breaking else m


def _draw_scan9(d: Draw) -> dict:
    n, m, outs, length = d.int(0, 3), d.int(1, 3), d.int(0, 3), d.int(1, 4)
    if n + outs == 0:
        outs = 1
    if d.chance(8 if outs else 4):  # no turn at all
        length = 0
    m = _many(d, m)
    states, elements = _values(d, n, m)
    axes = [d.int(0, len(v.shape)) for v in elements]
    args = [_given(v) for v in states] + [_scanned(v, length, a) for v, a in zip(elements, axes)]
    body, ranks = _scan_body(d, states, elements, args, outs)
    args = _at_ends(d, args, body)
    out: dict[str, Any] = {_SCAN_SLOT: args, "num_scan_inputs": m, "@outs": n + outs, "body": body}
    out_axes = [d.int(0, r) for r in ranks]
    signed = d.version.version >= 11  # since then axes may count from the end
    for name, given, of in (
        ("scan_input_axes", axes, [len(v.shape) for v in elements]),
        ("scan_output_axes", out_axes, ranks),
    ):
        if any(given) or d.bool():
            out[name] = [a - r - 1 if signed and d.chance(3) else a for a, r in zip(given, of)]
    if d.bool():
        out["scan_input_directions"] = [d.int(0, 1) for _ in range(m)]
    if d.bool():
        out["scan_output_directions"] = [d.int(0, 1) for _ in range(outs)]
    return out


def _draw_scan8(d: Draw) -> dict:
    n, m, outs, length, batch = d.int(0, 3), d.int(1, 3), d.int(0, 3), d.int(1, 4), d.int(1, 3)
    if n + outs == 0:
        outs = 1
    if d.empty:
        batch = 0
    elif d.chance(32) and not d.breaking:
        n, m, outs, length, batch = 0, 1, 1, 1, d.pick((17, 130, 300, 2049))
    m = _many(d, m)
    states, elements = _values(d, n, m)
    args = [_given(v, batch) for v in states] + [_given(v, batch, length) for v in elements]
    out: dict[str, Any] = {}
    if d.chance(3):
        out["sequence_lens"] = T((batch,), values=[d.int(0, length) for _ in range(batch)])
    body, _ = _scan_body(d, states, elements, args, outs)
    args = _at_ends(d, args, body)
    out |= {_SCAN_SLOT: args, "num_scan_inputs": m, "@outs": n + outs, "body": body}
    if d.bool():
        out["directions"] = [d.int(0, 1) for _ in range(m)]
    return out


def _uneven(d: Draw) -> dict:
    """Scanned inputs of different extents."""
    n = d.int(1, 3)
    v, w = (Value(f"x{k}", d.types["V"], d.shape(0, 2)) for k in range(2))
    args = [_scanned(v, n, 0), _scanned(w, n + 1, 0)]
    body, _ = _scan_body(d, [], [v, w], args, 1)
    return {_SCAN_SLOT: args, "num_scan_inputs": 2, "@outs": 1, "body": body}


def _axis_beyond(name: str) -> Any:
    def fn(d: Draw) -> dict:
        out = _draw_scan9(d)
        m = out["num_scan_inputs"]
        rank = len(out[_SCAN_SLOT][-1].shape)
        n = m if name == "scan_input_axes" else out["@outs"] - (len(out[_SCAN_SLOT]) - m)
        return {**out, name: [rank] * n}

    return fn


def _many_axes(d: Draw) -> dict:
    out = _draw_scan9(d)
    return {**out, "scan_input_axes": [*out.get("scan_input_axes", [0] * out["num_scan_inputs"]), 0]}


_SCAN_BREAKS = {
    "body-inputs": _one_more(_draw_scan9, _SCAN_SLOT),
    "scan-lengths-agree": _uneven,
    "axis-in-range": _axis_beyond("scan_input_axes"),
    "one-per-scan": _many_axes,
}
op(
    "Scan",
    Evaluation(_scan8, exact(), "ONNX Scan-8"),
    Sampling(_draw_scan8),
    Checks(ambiguous=_beyond, breaks={"body-inputs": _one_more(_draw_scan8, _SCAN_SLOT)}),
    until=8,
)
op(
    "Scan",
    Evaluation(_scan9, exact(), "ONNX Scan-9, -11, -16"),
    Sampling(_draw_scan9),
    Checks(breaks=_SCAN_BREAKS),
    since=9,
)
