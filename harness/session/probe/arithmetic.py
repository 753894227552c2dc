"""What a backend's arithmetic does: integers cut to 32 bits, subnormals taken for zero, the type in which it adds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from harness.cases.case import Case, fill
from harness.cases.result import Result
from harness.core.dtypes import BY_NAME, smallest_normal
from harness.core.outcome import Verdict
from harness.declare import OpVersion
from harness.session.probe.experiment import OPS, Experiment, odd, rank_of
from harness.tolerance.dot import Dot

NARROWER = {"f16": "f16", "bf16": "bf16", "f32": "f16"}  # element type -> a narrower type in which sums may be kept


def int64(probe: Experiment) -> None:
    """Are wide integers kept?  Writes the limit ``int64_as_int32``."""
    values = [5, 2**31 + 5, -(2**33) - 7, 2**40 + 1]
    kept = cut = 0
    for r in _unary(probe, "i64", values):
        got = r.outcome.outputs[0] if r.outcome.outputs else None
        if r.verdict is Verdict.AGREE:
            kept += 1
        elif isinstance(got, np.ndarray) and got.dtype.kind in "iu" and got.size == len(values):
            cut += bool((np.abs(got.astype(np.float64)) < 2.0**31).all())
    probe.tell(f"values of i64 beyond 32 bits: {kept} ops keep them, {cut} give 32 bits")
    if cut and not kept:
        probe.limit("int64_as_int32", True, int64_as_int32=True)


def flushes(probe: Experiment) -> None:
    """Are subnormals kept?  Writes ``flushes``."""
    held = probe.claims.dtypes or ()
    for name in ("f64", "f32", "f16", "bf16"):
        if name not in held:
            continue
        tiny = float(smallest_normal(BY_NAME[name]))
        kept = flushed = 0
        for r in _unary(probe, name, [tiny / 2, tiny / 4, -tiny / 2, 1.0]):
            got = r.outcome.outputs[0] if r.outcome.outputs else None
            assert r.case.expected is not None
            want = r.case.expected[0][0].value
            if not isinstance(got, np.ndarray) or got.size != want.size or got.dtype != want.dtype:
                continue
            got = got.reshape(want.shape)
            small = np.abs(np.asarray(want, np.float64)) < tiny
            small &= np.asarray(want, np.float64) != 0
            if small.any():
                zero = np.asarray(got, np.float64)[small] == 0
                flushed += bool(zero.all())
                kept += bool(not zero.any())
        probe.tell(f"subnormals of {name}: {kept} ops keep them, {flushed} flush them to zero")
        if flushed:
            probe.found.setdefault("flushes", []).append(name)


def sums(probe: Experiment) -> None:
    """In which type are sums kept?  Writes ``acc`` for an element type whose results are within their bounds only if
    the bounds are those of a narrower type."""
    held = probe.claims.dtypes or ()
    adds = [v for v in probe.takers if any(isinstance(e, Dot) for e in _tolerances(v))]
    for name, narrow in NARROWER.items():
        if name not in held:
            continue
        cases: list[Case] = []
        for v in adds[:: max(1, len(adds) // OPS)][:OPS]:
            cases += probe.drawn(v, 4, lambda c: c.dtype_name == name and not odd(c))  # noqa: B023
        wide = probe.results(cases)
        beyond = [r.case for r in wide if r.verdict is Verdict.MISMATCH]
        fit = sum(r.verdict is Verdict.AGREE for r in wide)
        settled = sum(r.verdict is Verdict.AGREE for r in probe.results(beyond, acc={name: narrow}))
        probe.tell(
            f"sums of {name}: {fit} of {fit + len(beyond)} results are within the bounds,"
            f" {settled} of the others would be if sums were kept in {narrow}"
        )
        if settled and 2 * settled >= len(beyond):
            probe.found.setdefault("acc", {})[name] = narrow


def _tolerances(v: OpVersion) -> tuple[Any, ...]:
    told = v.entry.error or (v.meaning.error if v.meaning is not None else ())
    return told if isinstance(told, tuple) else (told,)


def _unary(probe: Experiment, dtype: str, values: list[Any]) -> list[Result]:
    """Results of elementwise ops of one operand for some values."""
    cases: list[Case] = []
    for v in probe.takers:
        if len(v.schema.inputs) != 1 or v.schema.inputs[0].container or len(cases) == OPS:
            continue
        for c in probe.drawn(v, 1, lambda c: c.dtype_name == dtype and rank_of(c) == 2 and not odd(c)):
            slot = next(iter(c.inst.args))
            arg = replace(c.inst.tensor(slot), shape=(1, len(values)), values=values)
            inst = replace(c.inst, args={slot: arg}, choices=None)
            case = fill(v, inst)
            shapes = [getattr(e.value, "shape", None) for row in case.expected or () for e in row]
            if not case.problem and shapes == [(1, len(values))]:
                cases.append(case)
    return probe.results(cases)
