"""A backend through a whole graph: every layer judged under its own bound, on the inputs that the backend gave it.

So errors do not add up on the way, and the first layer out of bounds is the one that has the fault.  The reference's
own run through the same graph goes along and says how far the two are apart in the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from harness.cases.case import Case
from harness.cases.result import Result
from harness.compare.layers import Layer, LayerRow, Report, judge_layer
from harness.core.dtypes import of
from harness.core.errors import OpconformError, RuleError
from harness.core.instance import Arg, Graph, Instance, Node
from harness.core.limits import bounded
from harness.core.outcome import Model, Outcome, Status, Verdict
from harness.declare import Expected
from harness.engine.verdict import judge_case
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo
from harness.workers.pool import BackendHandle
from harness.workers.wire import Job
from suites.onnx import dialect
from suites.onnx.interpret import Run, Scope
from suites.onnx_models.unfold import opset, unfold

CONTROL = ("If", "Loop", "Scan", "SequenceMap")


@dataclass(slots=True)
class Walk:
    """report: one row a layer that was judged, in the order of execution; a known difference is within its bound there.
    known: id of a listed difference or ambiguity -> layers that show it.  gaps: layer -> why it could not be judged.
    fault: the first layer out of bounds as an instance of its operator, with its values, to be replayed.
    outputs, own: of the graph, from the backend and from the reference's own run."""

    report: Report
    known: dict[str, list[str]]
    gaps: dict[str, str]
    fault: Instance | None
    outputs: dict[str, Any] = field(repr=False)
    own: dict[str, Any] = field(repr=False)

    def good(self, gaps: Sequence[str] = ()) -> bool:
        """Was every layer judged and found within its bound?  gaps: operators that are expected to have no meaning."""
        return bool(self.report) and all(any(f"for {op}" in why for op in gaps) for why in self.gaps.values())

    def __str__(self) -> str:
        lines = [str(self.report) if self.report.rows else "no layer could be judged"]
        lines += [f"  known, {k}: {len(v)} layers, the first {v[0]}" for k, v in self.known.items()]
        why = Counter(self.gaps.values())
        lines += [f"  not judged, {n} layers: {reason}" for reason, n in why.items()]
        return "\n".join(lines)


def layer_name(n: onnx.NodeProto) -> str:
    """Operator and first result, which is unique in a graph."""
    return f"{n.op_type} {next((o for o in n.output if o), '')}"


def walk(
    model: onnx.ModelProto,
    inputs: Mapping[str, Any],
    handle: BackendHandle,
    ledger: Ledger | None = None,
    subject: onnx.ModelProto | None = None,
) -> Walk:
    """Compare layer by layer.  inputs: by name.  ledger: known differences (all that are listed).  subject: what the
    backend runs instead of ``model``, with values of the same names (a planted fault).

    Raises OpconformError where the backend gives no values."""
    flat = unfold(model, inputs)
    got = values_of(flat if subject is None else unfold(subject, inputs), inputs, handle)
    steps = _Steps(
        dialect.parse(flat.SerializeToString()),
        opset(flat),
        inputs,
        handle.info,
        load_ledger() if ledger is None else ledger,
    )
    for proto, node in zip(flat.graph.node, steps.graph.nodes, strict=True):
        steps.take(layer_name(proto), node, [got.get(o) for o in proto.output])
    ends = [o.name for o in flat.graph.output]
    return Walk(
        Report(steps.rows),
        steps.known,
        steps.gaps,
        steps.fault,
        {o: got[o] for o in ends},
        {o: steps.ours[o] for o in ends},
    )


class _Steps:
    """The walk so far: values as the backend had them, values as the reference has them, and what was found."""

    def __init__(self, g: Graph, opset: int, inputs: Mapping[str, Any], info: BackendInfo, ledger: Ledger) -> None:
        self.graph, self.opset, self.info, self.ledger = g, opset, info, ledger
        self.run = Run(dialect.at, opset, g.meta["functions"])
        self.theirs, self.ours = Scope(None), Scope(None)
        for scope in (self.theirs, self.ours):
            scope.update(g.consts)
            scope.update(inputs)
        self.rows: list[LayerRow] = []
        self.known: dict[str, list[str]] = {}
        self.gaps: dict[str, str] = {}
        self.fault: Instance | None = None

    def take(self, name: str, node: Node, outs: list[Any]) -> None:
        """The next layer, whose results the backend says are ``outs``."""
        values: Sequence[Any] = outs  # after a layer that cannot be judged the reference goes on with these
        try:
            missing = [o for o, v in zip(node.outputs, outs) if o and v is None]
            if missing:
                raise OpconformError("the backend gave no value")
            if node.op in CONTROL:
                raise OpconformError(f"{node.op} that could not be laid flat")
            with bounded():
                fed = self.run.expect(node, self.theirs)
                own = self.run.expect(node, self.ours)
            self.rows.append(self.judged(name, node, fed, own, outs))
            values = [e.value for e in own]
        except RuleError as e:
            self.rows.append(LayerRow(name, wrong=f"the backend gives values for what is forbidden: {e}"))
        except OpconformError as e:
            self.gaps[name] = str(e)
        except Exception as e:  # our failure, to be seen among what was not judged
            self.gaps[name] = f"the reference failed: {type(e).__name__}: {e}"
        for o, v, w in zip(node.outputs, outs, values):
            if o:
                self.theirs[o], self.ours[o] = v, w

    def judged(self, name: str, node: Node, fed: list[Expected], own: list[Expected], outs: list[Any]) -> LayerRow:
        """The judge of single operators decides; the figures are those of the output that uses most of its bound, or of
        the one that is out of it."""
        named = [i for i, o in enumerate(node.outputs) if o]
        fed, own, outs = [fed[i] for i in named], [own[i] for i in named], [outs[i] for i in named]
        case = self.case(node, fed)
        verdict = judge_case(case, self.info, [Outcome(Status.VALUE, list(outs))], self.ledger)
        rows = [_figures(name, e, o, v) for e, o, v in zip(fed, own, outs)]
        if verdict.verdict not in (Verdict.MISMATCH, Verdict.UNKNOWN):
            if verdict.known or verdict.ambiguity:
                self.known.setdefault(str(verdict.known or verdict.ambiguity), []).append(name)
            row = max(rows, key=lambda r: min(r.share, 1.0), default=LayerRow(name))
            row.beyond, row.wrong, row.share = 0, "", min(row.share, 1.0)
            return row
        row = rows[verdict.judgement.output if verdict.judgement is not None else 0]
        if not row.out:
            row.wrong = _words(verdict)
        if self.fault is None:
            self.fault = _with_values(case)
        return row

    def case(self, node: Node, fed: list[Expected]) -> Case:
        """The layer as a case of its operator."""
        arrays: dict[str, Any] = {}
        for slot, name in node.inputs.items():
            if isinstance(name, list):
                arrays[slot] = [self.theirs[n] if n is not None else None for n in name]
            elif name is not None:
                arrays[slot] = self.theirs[name]
        args = {
            k: [_arg(x) for x in v] if isinstance(v, list) and _is_variadic(node, k) else _arg(v)
            for k, v in arrays.items()
        }
        version = dialect.at(node.op, node.version, self.opset)
        inst = Instance("onnx", node.op, version.version, self.opset, dict(node.attrs), args, max(1, len(node.outputs)))
        case = Case(version, inst, -1)
        case.set_data([arrays], [fed])
        return case


def _is_variadic(node: Node, slot: str) -> bool:
    return isinstance(node.inputs.get(slot), list)


def _arg(v: Any) -> Arg:
    """An argument's type; its values are written down only where a fault is to be shown."""
    if isinstance(v, np.ndarray):
        return Arg(of(v), v.shape)
    items = [_arg(x) for x in v or ()]
    return Arg(items[0].dtype if items else of(np.zeros(0, np.float32)), (), kind="seq", items=items)


def _with_values(case: Case) -> Instance:
    for slot, a in case.inst.args.items():
        given = case.draws[0][slot]
        for one, v in zip(a, given) if isinstance(a, list) else [(a, given)]:
            if isinstance(v, np.ndarray):
                one.values = v.ravel().tolist()
    return case.inst


def _words(j: Result) -> str:
    if j.judgement is None:
        return j.outcome.message or j.verdict.value
    return " ".join(x for x in (j.judgement.kind, j.judgement.detail) if x) or j.verdict.value


def _figures(name: str, fed: Expected, own: Expected, got: Any) -> LayerRow:
    """Errors against the bound; none where a bound is no number (strings, sequences, random results)."""
    arrays = isinstance(got, np.ndarray) and isinstance(fed.value, np.ndarray) and isinstance(own.value, np.ndarray)
    if not arrays or not fed.error.pointwise or fed.error.moves_integers or fed.dtype.kind not in "fiub":
        return LayerRow(name, size=getattr(got, "size", 0))
    want = fed.value
    bound: np.ndarray = np.zeros(())
    if fed.wide is not None and not fed.error.exact:
        want = fed.wide
        bound = np.asarray(fed.error.bound(fed.context()), np.float64)
        bound = np.where(np.isnan(bound), np.inf, bound)
    return judge_layer(Layer(name, own.value if own.value.shape == got.shape else got, got, bound, fed=want))


def values_of(model: onnx.ModelProto, inputs: Mapping[str, Any], handle: BackendHandle) -> dict[str, Any]:
    """Every value that the backend computes on the way, by name; what is too large to be handed over is None.  Raises
    OpconformError with the backend's words."""
    names = [o.name for o in model.graph.output]
    names += [o for n in model.graph.node for o in n.output if o and o not in names]
    return _ask(model, list(dict.fromkeys(names)), inputs, handle)


def _ask(model: onnx.ModelProto, names: list[str], inputs: Mapping[str, Any], handle: BackendHandle) -> dict[str, Any]:
    every = onnx.ModelProto()
    every.CopyFrom(model)
    have = {o.name: o for o in model.graph.output}
    del every.graph.output[:]
    every.graph.output.extend(have.get(n) or helper.make_empty_tensor_value_info(n) for n in names)
    fixed = {t.name for t in every.graph.initializer}
    fed = [i.name for i in every.graph.input if i.name not in fixed]
    job = Job(
        Model("onnx", every.SerializeToString(), [[(n, n, None) for n in fed]], [names]), [[[inputs[n] for n in fed]]]
    )
    (result,) = handle.run([job])
    outcome = result.outcomes[0][0]
    if outcome.status is Status.VALUE:
        return dict(zip(names, outcome.outputs or []))
    if "larger than the cap" not in outcome.message:
        raise OpconformError(f"{handle.name}: {outcome.status.value} in {outcome.phase}: {outcome.message}")
    if len(names) == 1:
        return {names[0]: None}
    half = len(names) // 2
    return {**_ask(model, names[:half], inputs, handle), **_ask(model, names[half:], inputs, handle)}
