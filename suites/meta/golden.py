"""Made-up but realistic records: every verdict, known defects of made-up backends, two shards, a baseline.

The reports are tested on these.  The engine's own builders make them (``RunRecords``, ``record``, ``header``), so that
they hold what a run writes.  Numbers are computed, not invented: each mismatch is what the judge says of a NumPy result
and a defect applied to it.

    python -m suites.meta.golden OUT.jsonl [mismatches] [seed]
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from harness.cases.case import Case
from harness.cases.coverage import Cover
from harness.cases.result import Result
from harness.cases.selection import Unit
from harness.compare import judge
from harness.compare.judgement import UNINFORMATIVE
from harness.core.dtypes import DType, dtype
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import Expected
from harness.engine.case_record import record
from harness.engine.run_records import RunRecords, UnitCounts, batch, end
from harness.ledger.entry import LedgerEntry
from harness.ledger.ledger import Ledger
from harness.mutation.sensitivity import Sensitivity, Sight
from harness.session.session import Plan, header, identity
from harness.tolerance import Context, rounded
from harness.workers.info import BackendInfo

OPS: dict[str, tuple[str, list[Any], list[Any]]] = {
    # key -> family, opsets at which it is in force, dtypes
    "onnx/Add/7": ("binary", list(range(7, 13)), ["f32", "f16", "i32"]),
    "onnx/Add/14": ("binary", list(range(14, 24)), ["f32", "f16", "bf16", "i32", "i8"]),
    "onnx/Conv/11": ("conv", list(range(11, 22)), ["f32", "f16"]),
    "onnx/MatMul/13": ("matmul", list(range(13, 24)), ["f32", "f16", "i32"]),
    "onnx/ReduceSum/11": ("reduction", [11, 12], ["f32", "i32", "i64"]),
    "onnx/ReduceSum/13": ("reduction", list(range(13, 24)), ["f32", "f16", "i32", "i64"]),
    "onnx/Softmax/13": ("norm", list(range(13, 24)), ["f32", "f16"]),
    "onnx/Resize/19": ("resize", list(range(19, 24)), ["f32", "u8"]),
    "mil/add/ios15": ("binary", ["ios15", "ios16", "ios17", "ios18"], ["f32", "f16", "i32"]),
    "mil/reduce_sum/ios15": ("reduction", ["ios15", "ios16", "ios17", "ios18"], ["f32", "f16", "i32"]),
    "mil/softmax/ios15": ("norm", ["ios15", "ios16", "ios17", "ios18"], ["f32", "f16"]),
    "mil/gather/ios17": ("gather", ["ios17", "ios18"], ["f32", "f16", "i32"]),
    "tflite/ADD/1": ("binary", [1], ["f32", "i8", "i32"]),
    "tflite/CONV_2D/1": ("conv", [1], ["f32", "i8"]),
    "tflite/FLOOR_DIV/1": ("binary", [1], ["f32", "i32"]),
    "nn/add/1": ("binary", [1], ["f32"]),
    "nn/softmax/1": ("norm", [1], ["f32"]),
}
BACKENDS = {
    "onnxruntime": ("onnx", "1.31.1"),
    "onnx.reference": ("onnx", "1.23.2"),
    "litert-xnnpack": ("tflite", "2.3.0"),
    "litert-ref": ("tflite", "2.3.0"),
    "coremltools": ("mil", "9.0"),
    "coremltools-nn": ("nn", "9.0"),
}
FAULTS = [
    "off_by_one_pad",
    "swapped_axis",
    "ignored_attribute",
    "wrong_default",
    "dropped_nan",
    "lost_minus_zero",
    "f16_accumulation",
    "saturate_for_wrap",
]
BATCH = 64


def draw(rng: random.Random, key: str, opset: Any, dt: str) -> Instance:
    """A valid-looking instance of one of ``OPS``."""
    dialect, op, version = key.split("/")
    family = OPS[key][0]
    d = dtype(dt)

    def arg(shape: tuple[int, ...], **kw: Any) -> Arg:
        recipe = rng.choice(["small", "unit", "wide", "special", "ties"])
        return Arg(d, shape, recipe=recipe, seed=rng.getrandbits(32), **kw)

    rank = rng.choice([1, 2, 2, 3, 4])
    shape = tuple(rng.choice([0, 1, 1, 2, 3, 5, 7, 8] if i == 0 else [1, 2, 3, 5, 7]) for i in range(rank))
    inst = Instance(dialect, op, int(version) if version.isdigit() else version, opset)
    if family == "binary":
        inst.args = {
            "A": arg(shape),
            "B": arg(shape if rng.random() < 0.5 else shape[1:], const=rng.random() < 0.3),
        }
    elif family == "conv":
        c, g = rng.choice([2, 4, 6]), rng.choice([1, 2])
        inst.args = {
            "X": arg((rng.choice([1, 2]), c, 9, 7)),
            "W": arg((4, c // g, 3, 2), const=rng.random() < 0.7),
        }
        if rng.random() < 0.5:
            inst.args["B"] = arg((4,))
        inst.attrs = {
            "group": g,
            "strides": [rng.choice([1, 2, 3])] * 2,
            "pads": [rng.randrange(3) for _ in range(4)],
        }
        if rng.random() < 0.4:
            inst.attrs["dilations"] = [2, 1]
    elif family == "matmul":
        k = rng.choice([0, 1, 8, 63])
        inst.args = {"A": arg((rng.choice([1, 5]), k)), "B": arg((k, 7))}
    elif family == "gather":
        inst.args = {"x": arg((5, 3)), "indices": Arg(dtype("i32"), (4,), recipe="signed_index:5", seed=1)}
        inst.attrs = {"axis": rng.choice([0, -2]), "validate_indices": rng.random() < 0.5}
    else:
        inst.args = {"data": arg(shape)}
        inst.attrs = {"axis": rng.choice([0, -1]), "keepdims": rng.choice([0, 1])}
        if rng.random() < 0.3:
            del inst.attrs["keepdims"]
    return inst


def defect(inst: Instance, backend: str) -> str | None:
    """The made-up backends' defects: what they do wrong with an instance, or None."""
    j = inst.to_json()
    first = next(iter(inst.args.values()))
    assert isinstance(first, Arg)
    if backend == "onnxruntime" and inst.op == "Conv" and inst.attrs["group"] == 2 and "dilations" in inst.attrs:
        return "mismatch"
    if backend == "onnxruntime" and inst.op == "MatMul" and 0 in first.shape:
        return "crashed"
    if backend == "onnxruntime" and inst.op == "Softmax" and first.dtype.name == "f16":
        return "mismatch"
    if (
        backend == "litert-xnnpack"
        and inst.op == "FLOOR_DIV"
        and first.dtype.name == "f32"
        and first.recipe == "special"
    ):
        return "mismatch"
    if backend == "litert-ref" and inst.op == "CONV_2D" and inst.attrs["strides"][0] == 3:
        return "wrongly_rejected"
    if backend == "coremltools" and inst.op == "reduce_sum" and 0 in first.shape:
        return "timed_out" if j["attrs"]["axis"] == 0 else "mismatch"
    if backend == "coremltools" and inst.op == "gather" and inst.attrs["axis"] == -2:
        return "known"
    if backend == "onnx.reference" and inst.op == "Resize" and first.dtype.name == "u8":
        return "ambiguous"
    return None


def answers(inst: Instance, rng: random.Random) -> tuple[Expected, np.ndarray]:
    """A right result and a wrong one of an instance."""
    arg = next(iter(inst.args.values()))
    assert isinstance(arg, Arg)
    gen = np.random.default_rng(rng.getrandbits(32))
    shape = tuple(max(n, 1) for n in arg.shape) or (1,)
    d: DType = arg.dtype if arg.dtype.name in ("f32", "f16") else dtype("f32")
    wide = gen.normal(size=shape)
    want = wide.astype(d.np)
    kind = rng.choice(["few", "channel", "all", "nan"])
    wrong = np.full(shape, kind == "all")
    if kind == "channel":
        wrong[..., -1] = True
    if kind in ("few", "nan"):
        wrong.reshape(-1)[gen.integers(0, wrong.size, max(1, wrong.size // 9))] = True
    scale = 2.0 ** rng.randrange(3, 9) * np.finfo(d.np).eps
    got = np.where(wrong, np.nan if kind == "nan" else want * (1 + scale), want).astype(d.np)
    return Expected(want, wide, d, rounded(2), lambda: Context({}, {}, wide, d)), got


ENTRIES = (
    LedgerEntry(
        id="coremltools/gather-negative-axis",
        source="golden",
        kind_of="known",
        backends=("coremltools",),
        ops=("mil/gather",),
        clause="MIL gather (iOS17): axis in [-rank(x), rank(x))",
        reason="Value inference indexes the flattened tensor when axis is negative and the rank is 2; the converted "
        "program is right.",
        link="coremltools issue 2400",
    ),
    LedgerEntry(
        id="resize-integer-rounding",
        source="golden",
        kind_of="ambiguous",
        backends=("*",),
        ops=("onnx/Resize",),
        clause="ONNX Resize-19, no word on rounding",
        reason="The specification does not say how an interpolated value becomes an integer.",
    ),
)
UNUSED = "litert-xnnpack/relu6-nan"  # a listed difference that does not occur any more


class GoldenCover(Cover):
    """Counts the reach goals of the first batch, too."""

    told = False

    def taken(self) -> dict[str, Any]:
        goals = ["rank:X=0", "rank:X=1", "extent:X[0]=0", "data:nan:X"]
        reach = {"reach": {"goals": goals, "ruled_out": goals[:1], "met": goals[1:2]}}
        out = {**super().taken(), **({} if self.told else reach)}
        self.told = True
        return out


@dataclass
class Version:
    """What records ask of an op version."""

    key: str

    def __post_init__(self) -> None:
        self.dialect = SimpleNamespace(name=self.key.split("/")[0], notation=notation)
        self.schema = SimpleNamespace(
            attrs=_attrs(self.key), inputs=[SimpleNamespace(name=n) for n in _slots(self.key)]
        )


def records(
    cases: int = 4000,
    seed: int = 1,
    keep: float = 1.0,
    backends: dict[str, str] | None = None,
    fixed: frozenset[str] = frozenset(),
    lacks: frozenset[tuple[str, str]] = frozenset(),
    cpu: str = "x86_64 avx2",
) -> list[dict]:
    """Records of a run over ``OPS`` with ``cases`` instances in all.

    keep: share of the op versions that are run at all (a baseline that did less).  backends: other versions
    by name.
    cpu: what the processor offers.
    fixed: ops whose defects do not show in this run.  lacks: backends and types that they do not take.
    """
    rng = random.Random(seed)
    versions = {b: (backends or {}).get(b, v) for b, (_, v) in BACKENDS.items()}
    handles: Sequence[Any] = [
        SimpleNamespace(
            name=b, processor=cpu, info=BackendInfo(b, v, formats=(BACKENDS[b][0],), python="3.11.7"), beside=""
        )
        for b, v in versions.items()
    ]
    fixed_words = {
        "started": f"2026-03-{10 + seed % 18:02d}T08:15:00Z",
        "isa": "avx2",
        "platform": "Linux-6.1-x86_64",
        "python": "3.11.7",
    }
    head = header(f"opconform run --seed {seed}", handles, ["onnx", "mil", "tflite", "nn"])
    out: list[dict[str, Any]] = [{**head, **identity(Plan(seed=seed)), **fixed_words}]
    run = RunRecords(handles, {}, seed, Ledger(list(ENTRIES)), out.append, lambda r, votes: _case(r, votes, seed))
    keys = list(OPS)[: max(1, round(len(OPS) * keep))]
    each = max(BATCH, cases // len(keys))
    for key in keys:
        run.cover[key] = GoldenCover()
        _op_version(run, rng, key, each, fixed, lacks)
        out += _sensitivity(rng, key).records()
    out.append(end(False, elapsed=214.6, cases=each * len(keys), unused=[UNUSED], beside={}))
    return out


def _op_version(
    run: RunRecords, rng: random.Random, key: str, each: int, fixed: frozenset[str], lacks: frozenset[tuple[str, str]]
) -> None:
    version: Any = Version(key)
    _, opsets, dtypes = OPS[key]
    runners = [b for b, (d, _) in BACKENDS.items() if d == version.dialect.name]
    for turn, first in enumerate(range(0, each, BATCH)):
        opset = opsets[[-1, 0, rng.randrange(len(opsets))][turn % 3]]
        counts, count = UnitCounts(), min(BATCH, each - first)
        for index in range(first, first + count):
            inst = draw(rng, key, opset, rng.choice(dtypes))
            if rng.random() < 0.1:
                inst.rule = rng.choice(["rank-at-least-one", "dtypes-equal", "axis-in-range"])
            expected, got = answers(inst, rng)
            dt = inst.to_json()["args"][next(iter(inst.args))]["dtype"]
            case = Case(version, inst, index, _dtype=dt, _expected=([[expected]] if inst.rule is None else None,))
            run.cover[key].meet([case])
            said = {b: Verdict(_verdict(inst, b, rng, inst.rule is not None, fixed, lacks)) for b in runners}
            if inst.rule is None and rng.random() < 0.01:
                said = dict.fromkeys(said, Verdict.UNINFORMATIVE)
            for b, v in said.items():
                if v is Verdict.AGREE:
                    counts.agreed(b, [case])
                    continue
                result = _result(case, b, v, got)
                counts.count(result)
                run.verdict(result, {name: x.value for name, x in said.items()})
        run.unit(Unit(version, opset, first, count), counts, {})


def _result(case: Case, backend: str, verdict: Verdict, got: np.ndarray) -> Result:
    status = {
        Verdict.CRASHED: Status.CRASHED,
        Verdict.TIMED_OUT: Status.TIMED_OUT,
        Verdict.WRONGLY_REJECTED: Status.REJECTED,
        Verdict.UNSUPPORTED: Status.UNSUPPORTED,
    }.get(verdict, Status.VALUE)
    phase = "load" if status in (Status.REJECTED, Status.UNSUPPORTED) else "run"
    outcome = Outcome(status, [got] if status is Status.VALUE else None, phase, MESSAGES.get(verdict, ""))
    result = Result(case, backend, verdict, outcome)
    if verdict in (Verdict.MISMATCH, Verdict.KNOWN, Verdict.AMBIGUOUS):
        assert case.expected is not None
        result.judgement = judge(case.expected[0], outcome)
        assert result.judgement.verdict is Verdict.MISMATCH
    elif verdict is Verdict.UNINFORMATIVE:
        result.judgement = UNINFORMATIVE
    result.known = ENTRIES[0].id if verdict is Verdict.KNOWN else None
    result.ambiguity = ENTRIES[1].id if verdict is Verdict.AMBIGUOUS else None
    return result


MESSAGES = {
    Verdict.CRASHED: "worker ended with signal 11 (SIGSEGV) while running the model",
    Verdict.TIMED_OUT: "no answer within 20 s",
    Verdict.UNKNOWN: "reference: index rule not met by the drawn data",
    Verdict.FLAKY: "mismatch once, right when asked again in a fresh process",
    Verdict.WRONGLY_REJECTED: "tensorflow/lite/kernels/conv.cc:412 stride_width != 3 was not true.\n"
    "Node 0 failed to prepare.",
}


def _case(result: Result, votes: dict[str, str], seed: int) -> dict[str, Any]:
    """The record of a verdict; a mismatch has a smaller instance, too."""
    inst, small = result.case.inst, None
    if result.verdict is Verdict.MISMATCH:
        smaller = Instance.from_json(inst.to_json())
        for a in smaller.args.values():
            if isinstance(a, Arg):
                a.shape = tuple(min(n, 2) for n in a.shape)
                a.values = [1.0] * int(np.prod(a.shape, dtype=int))
        small = replace(result, case=Case(result.case.version, smaller, result.case.index))
    return record(result, votes, small, Path(f".opconform/failures/{inst.op}-{inst.id}"), seed)


def _sensitivity(rng: random.Random, key: str) -> Sensitivity:
    """Planted faults: one in a hundred is missed, one is hidden by what is listed of a backend."""
    out = Sensitivity()
    _, op, _ = key.split("/")
    for fault in FAULTS:
        for dt in OPS[key][2]:
            missed = rng.random() < 0.01
            hidden = fault == "off_by_one_pad" and dt == "f32" and not missed
            sight = Sight(key, dt, fault, shown=rng.randrange(1, 200), caught=-1 if missed else rng.randrange(20))
            sight.missed = f"{op} {dt}: outputs too small to tell" if missed else ""
            sight.behind = {"litert-opt 2.3": Counter({"litert/odd-pads": 16}) if hidden else None}
            sight.inexact = {"litert-opt 2.3"} if hidden else set()
            out.sights.append(sight)
    return out


def _verdict(
    inst: Instance,
    backend: str,
    rng: random.Random,
    broken: bool,
    fixed: frozenset[str],
    lacks: frozenset[tuple[str, str]],
) -> str:
    first = next(iter(inst.args.values()))
    assert isinstance(first, Arg)
    if (backend, first.dtype.name) in lacks | {("onnx.reference", "bf16")}:
        return "unsupported"
    if backend.startswith("litert") and first.dtype.name == "i8" and inst.op == "ADD" and rng.random() < 0.4:
        return "unsupported"
    if broken:
        return "wrongly_accepted" if backend == "litert-ref" and inst.rule == "axis-in-range" else "agree"
    planted = None if inst.op in fixed else defect(inst, backend)
    if planted is not None:
        return planted
    roll = rng.random()
    return "unknown" if roll < 0.001 else "flaky" if roll < 0.002 else "agree"


def notation(inst: Instance) -> str:
    """A plain text form; the real ones are each dialect's own."""
    args = ", ".join(f"{s}: {a.dtype}{list(a.shape)}" for s, a in inst.args.items() if isinstance(a, Arg))
    attrs = ", ".join(f"{k}={v}" for k, v in inst.attrs.items())
    return f"{inst.dialect} opset {inst.opset}\n%y = {inst.op}<{attrs}>({args})"


def _attrs(key: str) -> tuple[str, ...]:
    return {
        "conv": ("group", "strides", "pads", "dilations"),
        "binary": (),
        "matmul": (),
        "gather": ("axis", "validate_indices"),
    }.get(OPS[key][0], ("axis", "keepdims"))


def _slots(key: str) -> tuple[str, ...]:
    return ("X", "W", "B") if OPS[key][0] == "conv" else ()


def many(mismatches: int, seed: int = 5) -> list[dict[str, Any]]:
    """A run with at least ``mismatches`` unexplained cases: those of ``records``, each many times under other ids."""
    rows = records(4000, seed)
    bad = [r for r in rows if r["t"] == "case" and r["verdict"] not in ("known", "ambiguous", "unknown", "flaky")]
    copies = []
    for n in range(mismatches):
        r = bad[n % len(bad)]
        name = hashlib.sha256(f"{r['id']}-{n}".encode()).hexdigest()[:12]
        tally = {(r["backend"], r["dtype"], r["verdict"]): 1}
        copies.append(r | {"id": name})
        copies.append(batch(r["key"], r["opset"], 10**6 + n, 1, tally))
    return [*rows[:-1], *copies, rows[-1]]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write records as the engine does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in rows), encoding="utf-8")
    return path


def one_unit(path: Path, tally: list[Any], **more: list[Any]) -> Path:
    """Records of a run in which one op version was asked of one backend.  tally: [type, verdict, number].  more: other
    fields of the unit's record, rows without the backend's name."""
    head = next(r for r in records() if r["t"] == "run")
    backend = next(iter(head["backends"]))
    rows = {k: [[backend, *row] for row in v] for k, v in {"tally": tally, **more}.items()}
    batch = {"t": "batch", "key": "onnx/Relu/14", "opset": 14, "first": 0, "count": 16, **rows}
    return write(path, [head, batch, {"t": "end", "interrupted": False}])


if __name__ == "__main__":
    target = Path(sys.argv[1])
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    s = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    print(write(target, many(n, s) if n else records(seed=s)))
