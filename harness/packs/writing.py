"""``opconform pack``: draw instances, freeze them, write their files and the manifest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.cases.case import Case, draw_case
from harness.cases.selection import Selection, versions
from harness.core import VERSION
from harness.core.errors import OpconformError, Unsupported, UsageError
from harness.core.quiet import quiet
from harness.declare import OpVersion, registry
from harness.ledger.loader import load_ledger
from harness.packs import tensors
from harness.packs.files import FORMAT, MANIFEST, SUM, Entry, sha256, sink
from harness.packs.frozen import NOBODY, Form, Frozen, LeftOut, freeze
from harness.packs.models import PRIVATE, WRITTEN
from harness.packs.native import Native
from harness.packs.onnx_node import OnnxNode
from harness.packs.ort_jsonc import OrtJsonc

FORMS: dict[str, type] = {"native": Native, "onnx-node": OnnxNode, "ort-jsonc": OrtJsonc}
TRIES = 8  # draws for one instance that a form can say
LARGEST = 1 << 16  # bytes of the inputs and expected outputs of an instance


@dataclass
class PackPlan:
    """What a pack holds.  opsets: the first and the last that are wanted, None for no limit.  each: instances of an op
    version.  form: a name of ``FORMS``."""

    dialect: str
    form: str
    out: Path
    ops: Sequence[str] = ()
    families: Sequence[str] = ()
    opsets: tuple[Any, Any] = (None, None)
    each: int = 10
    seed: int = 0


@dataclass
class Packed:
    """What came of it.  short: op versions with fewer instances than wanted, with the commonest reason."""

    entries: list[Entry] = field(default_factory=list)
    op_versions: int = 0
    size: int = 0
    short: dict[str, tuple[int, str]] = field(default_factory=dict)
    sum: str = ""


def pack(plan: PackPlan, progress: Any = None) -> Packed:
    """Write a pack.  Raises UsageError for what does not exist, and where no instance can be frozen."""
    if plan.form not in FORMS:
        raise UsageError(f"--format {plan.form}: expected one of {' '.join(FORMS)}")
    form: Form = FORMS[plan.form]()
    if form.dialects and plan.dialect not in form.dialects:
        raise UsageError(f"--format {plan.form} takes {' '.join(form.dialects)}, not {plan.dialect}")
    if registry.dialect(plan.dialect).extension == PRIVATE and plan.dialect not in WRITTEN:
        raise UsageError(f"--dialect {plan.dialect} has no model files for others")
    chosen = list(_chosen(plan))
    ledger = load_ledger(backends=[NOBODY])
    packed, left = Packed(op_versions=len(chosen)), dict[str, Counter[str]]()
    out, whole = sink(plan.out), False
    try:
        for n, (version, opset) in enumerate(chosen):
            found = 0
            reasons: Counter[str] = Counter()
            for frozen in _frozen(plan, version, opset, ledger, reasons):
                try:
                    files, model, more = form.files(frozen)
                except LeftOut as e:
                    reasons[str(e)] += 1
                    continue
                for name, data in files.items():
                    out.put(name, data)
                packed.size += sum(map(len, files.values()))
                packed.entries.append(_entry(frozen, files, model, more))
                found += 1
                if found == plan.each:
                    break
            if found < plan.each:
                packed.short[version.key] = found, reasons.most_common(1)[0][0] if reasons else "drawn too rarely"
            if reasons:
                left[version.key] = reasons
            if progress is not None:
                progress(n + 1, len(chosen), len(packed.entries))
        if not packed.entries:
            why = next(iter(packed.short.values()))[1]
            raise UsageError(f"no instance of {len(chosen)} op versions can be packed as {plan.form}: {why}")
        rest = form.rest()
        for name, data in rest.items():
            out.put(name, data)
            packed.size += len(data)
        data = _manifest(plan, packed, left, rest)
        packed.sum = sha256(data)
        out.put(MANIFEST, data)
        out.put(SUM, f"{packed.sum}  {MANIFEST}\n".encode())
        packed.size += len(data)
        whole = True
    finally:
        out.close(whole)
    return packed


def _chosen(plan: PackPlan) -> Iterator[tuple[OpVersion, Any]]:
    """The op versions in force in the span, each with the first opset of the span: what old readers take, too."""
    order = list(registry.dialect(plan.dialect).opsets)
    first, last = (order.index(o) if o is not None else None for o in plan.opsets)
    selection = Selection([plan.dialect], None, list(plan.ops), list(plan.families))
    found = False
    for v in versions(selection):
        opsets = [o for o in v.opsets if (first or 0) <= order.index(o) <= (len(order) if last is None else last)]
        if opsets:
            found = True
            yield v, opsets[0]
    if not found:
        raise UsageError("--opset: no op version is in force there")


def _frozen(plan: PackPlan, version: OpVersion, opset: Any, ledger: Any, reasons: Counter[str]) -> Iterator[Frozen]:
    for index in range(plan.each * TRIES):
        case = draw_case(version, opset, plan.seed, index, lazy=True)
        try:
            with quiet:
                if _bytes(case) > LARGEST:
                    reasons[f"more than {LARGEST >> 10} KiB"] += 1
                    continue
                yield freeze(case, ledger)
        except (LeftOut, Unsupported) as e:
            reasons[" ".join(str(e).split())[:120]] += 1
        except OpconformError as e:
            reasons[f"{type(e).__name__}: {' '.join(str(e).split())[:100]}"] += 1


def _bytes(case: Case) -> int:
    """Size of what goes in and of what is expected."""
    given = [v for arrays in case.draws for v in arrays.values()]
    expected = [e.value for row in case.expected or () for e in row]
    return sum(_size(v) for v in (*given, *expected))


def _size(v: Any) -> int:
    if isinstance(v, (list, tuple)):
        return sum(map(_size, v))
    return int(getattr(v, "nbytes", 0))


def _entry(frozen: Frozen, files: dict[str, bytes], model: str, more: dict[str, Any]) -> Entry:
    case = frozen.case
    return Entry(
        frozen.id,
        case.version.key,
        case.inst.opset,
        case.index,
        case.inst.rule,
        model,
        frozen.names,
        len(frozen.inputs),
        next(n for n in files if n.endswith("instance.json") or n.startswith("instances/")),
        tensors.digest([case.draws[min(r, len(case.draws) - 1)] for r in range(len(frozen.inputs))]),
        tensors.digest([[e.value for e, _ in row] for row in frozen.outputs]),
        {name: sha256(data) for name, data in files.items()},
        more,
    )


def _manifest(plan: PackPlan, packed: Packed, left: dict[str, Counter[str]], rest: dict[str, bytes]) -> bytes:
    told = {
        "format": FORMAT,
        "opconform": VERSION,
        "dialect": plan.dialect,
        "form": plan.form,
        "seed": plan.seed,
        "each": plan.each,
        "arithmetic": "sums of f16, bf16 and 8-bit floats are kept in f32; subnormals are not flushed",
        "op_versions": packed.op_versions,
        "left_out": {key: dict(reasons.most_common()) for key, reasons in left.items()},
        "files": {name: sha256(data) for name, data in rest.items()},
        "instances": [vars(e) for e in packed.entries],
    }
    return json.dumps(told, indent=1, sort_keys=True).encode() + b"\n"
