"""Made-up but realistic records: every verdict, known defects of made-up backends, two shards, a baseline.

The reports are tested on these, so that a change of the engine cannot quietly change what the page tests see.
Numbers are computed, not invented: each mismatch comes from a NumPy result and a defect applied to it.

    python -m suites.meta.golden OUT.jsonl [mismatches] [seed]
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from harness.core import VERSION
from harness.core.dtypes import dtype
from harness.core.features import features
from harness.core.instance import Arg, Instance
from harness.core.record_format import FORMAT

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


def diff_of(inst: Instance, rng: random.Random) -> tuple[dict[str, Any], str, str]:
    """(diff, class, formula) of a computed wrong result."""
    arg = next(iter(inst.args.values()))
    assert isinstance(arg, Arg)
    gen = np.random.default_rng(rng.getrandbits(32))
    shape = tuple(max(n, 1) for n in arg.shape) or (1,)
    np_type = arg.dtype.np if arg.dtype.name in ("f32", "f16") else np.dtype(np.float32)
    want = gen.normal(size=shape).astype(np_type)
    got = want.copy()
    kind = rng.choice(["few", "channel", "all", "nan"])
    wrong = np.zeros(shape, bool)
    wrong[...] = kind in ("all",)
    if kind == "channel":
        wrong[..., -1] = True
    if kind in ("few", "nan"):
        wrong.reshape(-1)[gen.integers(0, wrong.size, max(1, wrong.size // 9))] = True
    scale = 2.0 ** rng.randrange(3, 9) * np.finfo(np_type).eps
    got[wrong] = np.nan if kind == "nan" else (want[wrong] * (1 + scale)).astype(np_type)
    wrong &= ~(want == got)
    wrong = wrong if wrong.any() else np.ones(shape, bool)
    ulp = np.where(np.isnan(got), np.inf, np.abs(got.astype(float) - want) / np.spacing(np.abs(want)).astype(float))
    bound = 2.0 * np.spacing(np.abs(want)).astype(float)
    flat = np.flatnonzero(wrong.reshape(-1))
    finite = np.where(np.isfinite(ulp), ulp, -1).reshape(-1)
    picks = [
        (flat[0], "first"),
        (flat[np.argmax(finite[flat])], "worst"),
        (rng.choice(flat.tolist()), "random"),
    ]
    hist: Counter[str] = Counter()
    for u in ulp.reshape(-1):
        hist["inf" if np.isinf(u) else "0" if u < 0.5 else str(2 ** int(np.log2(max(u, 1))))] += 1
    rows = int(np.prod(shape[:-1], dtype=int))

    def hexed(v: Any) -> str:
        return "0x" + np.asarray(v, np_type).tobytes()[::-1].hex()

    diff = {
        "count": int(wrong.sum()),
        "size": int(wrong.size),
        "max_ulp": float(ulp.max()),
        "p99_ulp": float(np.quantile(np.where(np.isinf(ulp), 1e9, ulp), 0.99)),
        "max_abs": float(np.nanmax(np.abs(got.astype(float) - want))) if not np.isnan(got).all() else float("nan"),
        "factor": float("inf") if kind == "nan" else float((np.abs(got.astype(float) - want) / bound).max()),
        "shape": list(shape),
        "got_shape": list(shape),
        "got_dtype": str(arg.dtype),
        "elements": [
            {
                "index": [int(i) for i in np.unravel_index(f, shape)],
                "expected": float(want.reshape(-1)[f]),
                "actual": float(got.reshape(-1)[f]),
                "expected_hex": hexed(want.reshape(-1)[f]),
                "actual_hex": hexed(got.reshape(-1)[f]),
                "ulp": float(ulp.reshape(-1)[f]),
                "bound": float(bound.reshape(-1)[f]),
                "why": why,
            }
            for f, why in picks
        ],
        "ulp_histogram": dict(hist),
        "map": {"shape": [rows, shape[-1]], "cells": "".join("1" if w else "0" for w in wrong.reshape(-1))},
        "pattern": {
            "channel": "last index of the last axis",
            "all": "every element",
            "nan": "NaN where a number is due",
        }.get(kind),
    }
    if inst.op in ("Conv", "CONV_2D", "MatMul"):
        return diff, "DOT(K=24, f32)", "gamma(24) * sum |x * w| + 0.5 ulp = 2.9e-6 * 3.41 + 0.5 ulp"
    return diff, "ROUNDED(2)", "2 ulp of the wide result, f32: 2 * 2^-23 * |y|"


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
    out: list[dict[str, Any]] = [
        {
            "t": "run",
            "format": FORMAT,
            "started": f"2026-03-{10 + seed % 18:02d}T08:15:00Z",
            "seed": seed,
            "isa": "avx2",
            "cpu": cpu,
            "command": f"opconform run --seed {seed}",
            "opconform": VERSION,
            "backends": {
                b: {"version": v, "formats": [BACKENDS[b][0]], "python": "3.11.7"} for b, v in versions.items()
            },
            "dialects": {
                "onnx": "onnx 1.23.2",
                "mil": "coremltools 9.0",
                "tflite": "ai-edge-litert 2.3.0",
                "nn": "9.0",
            },
            "selection": {},
        }
    ]
    keys = list(OPS)[: max(1, round(len(OPS) * keep))]
    each = max(BATCH, cases // len(keys))
    for key in keys:
        out += _op_version(rng, key, each, seed, fixed, lacks)
    out.append(
        {
            "t": "known",
            "id": "coremltools/gather-negative-axis",
            "hits": sum(r.get("known") is not None for r in out),
            "reason": "Value inference indexes the flattened tensor when axis is negative "
            "and the rank is 2; the converted program is right.",
            "clause": "MIL gather (iOS17): axis in [-rank(x), rank(x))",
            "backend": "coremltools",
            "link": "coremltools issue 2400",
        }
    )
    out.append(
        {
            "t": "known",
            "id": "litert-xnnpack/relu6-nan",
            "hits": 0,
            "reason": "Fixed upstream, to be removed.",
            "clause": "TFLite RELU6",
            "backend": "litert-xnnpack",
        }
    )
    out.append(
        {
            "t": "ambiguity",
            "id": "resize-integer-rounding",
            "hits": 0,
            "clause": "ONNX Resize-19, no word on rounding",
            "reason": "The specification does not say how an interpolated value becomes an integer.",
        }
    )
    out.append({"t": "end", "elapsed": 214.6, "cases": each * len(keys), "interrupted": False})
    return out


def _op_version(
    rng: random.Random, key: str, each: int, seed: int, fixed: frozenset[str], lacks: frozenset[tuple[str, str]]
) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    _, opsets, dtypes = OPS[key]
    dialect, op, _ = key.split("/")
    runners = [b for b, (d, _) in BACKENDS.items() if d == dialect]
    choices: Counter[str] = Counter()
    drawn: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    uninformative = 0
    for turn, first in enumerate(range(0, each, BATCH)):
        opset = opsets[[-1, 0, rng.randrange(len(opsets))][turn % 3]]
        tally: Counter[tuple[str, str, str]] = Counter()
        for index in range(first, min(first + BATCH, each)):
            inst = draw(rng, key, opset, rng.choice(dtypes))
            dt = inst.to_json()["args"][next(iter(inst.args))]["dtype"]
            broken = rng.random() < 0.1
            if broken:
                inst.rule = rng.choice(["rank-at-least-one", "dtypes-equal", "axis-in-range"])
                rules[inst.rule] += 1
            drawn[dt] += 1
            if not broken:
                choices.update(features(inst.to_json(), _attrs(key), _slots(key)))
            votes = {b: _verdict(inst, b, rng, broken, fixed, lacks) for b in runners}
            if not broken and rng.random() < 0.01:
                votes = dict.fromkeys(votes, "uninformative")
                uninformative += 1
            for b, v in votes.items():
                tally[b, dt, v] += 1
                if v not in ("agree", "unsupported", "uninformative"):
                    out.append(_case(inst, b, v, votes, dt, rng, index, seed))
        out.append(
            {
                "t": "batch",
                "key": key,
                "opset": opset,
                "first": first,
                "count": min(BATCH, each - first),
                "tally": [[*k, n] for k, n in tally.items()],
            }
        )
    total = len(choices) * 9
    out.append(
        {
            "t": "coverage",
            "key": key,
            "dtype": dict(drawn),
            "choices": dict(choices),
            "rules": dict(rules),
            "pairs": [min(total, each // 2 + rng.randrange(20)), total],
            "valid": sum(drawn.values()) - sum(rules.values()),
            "counted": sum(drawn.values()) - sum(rules.values()),
            "uninformative": uninformative,
            "reach": {
                "goals": ["rank:X=0", "rank:X=1", "extent:X[0]=0", "data:nan:X"],
                "ruled_out": ["rank:X=0"],
                "met": ["rank:X=1"],
            },
        }
    )
    for fault in FAULTS:
        for dt in dtypes:
            caught = 200 - (rng.randrange(30) if rng.random() < 0.1 else 0)
            out.append(
                {
                    "t": "sensitivity",
                    "key": key,
                    "dtype": dt,
                    "fault": fault,
                    "planted": 200,
                    "caught": caught,
                    "missed": [] if caught == 200 else [f"{op} {dt}: outputs too small to tell"],
                    "behind": {"litert-opt 2.3": ["litert/odd-pads"] * (fault == "off_by_one_pad" and dt == "f32")},
                }
            )
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


def _case(
    inst: Instance,
    backend: str,
    verdict: str,
    votes: dict[str, str],
    dt: str,
    rng: random.Random,
    index: int,
    seed: int,
) -> dict[str, Any]:
    status = {"crashed": "crashed", "timed_out": "timed_out", "wrongly_rejected": "rejected"}.get(verdict, "value")
    message = {
        "crashed": "worker ended with signal 11 (SIGSEGV) while running the model",
        "timed_out": "no answer within 20 s",
        "unknown": "reference: index rule not met by the drawn data",
        "flaky": "mismatch once, right when asked again in a fresh process",
        "wrongly_rejected": "tensorflow/lite/kernels/conv.cc:412 stride_width != 3 was not true.\n"
        "Node 0 failed to prepare.",
    }.get(verdict, "")
    out: dict[str, Any] = {
        "t": "case",
        "id": inst.id,
        "key": inst.key,
        "opset": inst.opset,
        "backend": backend,
        "dtype": dt,
        "verdict": verdict,
        "status": status,
        "phase": {"wrongly_rejected": "load"}.get(verdict, "run"),
        "message": message,
        "rule": inst.rule,
        "instance": inst.to_json(),
        "minimal": None,
        "notation": notation(inst),
        "output": 0,
        "class": None,
        "formula": None,
        "diff": None,
        "votes": {"native_ref": "agree", **votes},
        "known": "coremltools/gather-negative-axis" if verdict == "known" else None,
        "ambiguity": "resize-integer-rounding" if verdict == "ambiguous" else None,
        "replay": f"opconform replay {inst.key}:{index} --seed {seed} --backend {backend}",
        "folder": f".opconform/failures/{inst.op}-{inst.id}",
        "cluster": None,
    }
    if verdict in ("mismatch", "known", "ambiguous"):
        out["diff"], out["class"], out["formula"] = diff_of(inst, rng)
    if verdict == "mismatch":
        small = Instance.from_json(inst.to_json())
        for a in small.args.values():
            if isinstance(a, Arg):
                a.shape = tuple(min(n, 2) for n in a.shape)
                a.values = [1.0] * int(np.prod(a.shape, dtype=int))
        out["minimal"] = small.to_json()
        out["notation"] = notation(small)
    return out


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
        tally = [[r["backend"], r["dtype"], r["verdict"], 1]]
        copies.append(r | {"id": name})
        copies.append(
            {
                "t": "batch",
                "key": r["key"],
                "opset": r["opset"],
                "first": 10**6 + n,
                "count": 1,
                "tally": tally,
            }
        )
    return [*rows[:-1], *copies, rows[-1]]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write records as the engine does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in rows), encoding="utf-8")
    return path


if __name__ == "__main__":
    target = Path(sys.argv[1])
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    s = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    print(write(target, many(n, s) if n else records(seed=s)))
