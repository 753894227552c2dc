"""One instance again: found by its address or its file, checked, judged, made smaller."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.backends import registry as backends
from harness.cases.case import Case, draw_case
from harness.cases.result import Result
from harness.core.errors import OpconformError, Unsupported, UsageError, reading
from harness.core.instance import Instance
from harness.declare import OpVersion, registry
from harness.declare.invalid import invalid_generators_of
from harness.declare.validation import validation_error
from harness.engine.batching import build
from harness.engine.case_record import record
from harness.engine.engine import Engine
from harness.engine.requery import judge_beside
from harness.evidence.attribution import Attribution
from harness.evidence.budget import Budget
from harness.evidence.failure import Evidence, load_instance, load_neighbours
from harness.ledger.loader import load_ledger
from harness.session.session import Backends
from harness.workers.spec import HERE_ONLY, Place


def parse_address(text: str) -> tuple[str, str, int, int]:
    """``onnx/Conv/11@17#seed.index`` -> key, opset, seed, index; raises UsageError."""
    try:
        key, rest = text.rsplit("@", 1)
        opset, rest = rest.split("#", 1)
        seed, index = rest.split(".", 1)
        return key, opset, int(seed), int(index)
    except ValueError:
        raise UsageError(f"case {text!r}: expected a file or dialect/op/version@opset#seed.index") from None


def find_case(text: str) -> Instance:
    """The instance named by a file or an address."""
    path = Path(text)
    if path.exists() or text.endswith(".json"):
        return checked(load_instance(path / "instance.json" if path.is_dir() else path))
    key, opset, seed, index = parse_address(text)
    d = registry.dialect(key.split("/")[0])
    if key not in d.versions:
        raise UsageError(f"no op version {key!r}{registry.near(key, list(d.versions))}")
    at = next((o for o in d.opsets if str(o) == opset), None)
    if at is None:
        raise UsageError(f"{d.name}: no opset {opset!r}, expected one of {' '.join(map(str, d.opsets))}")
    _in_force(d.versions[key], at)
    return draw_case(d.versions[key], at, seed, index).inst


def checked(inst: Instance) -> Instance:
    """Raises UsageError where somebody's instance is none of its op version, which no backend is to be blamed for."""
    v = registry.version_of(inst)
    _in_force(v, inst.opset)
    with reading(inst.key):
        why = validation_error(v, inst)
    if why is not None:
        raise UsageError(f"{v.key}: {why}")
    return inst


def _in_force(v: OpVersion, opset: Any) -> None:
    """Raises UsageError where that opset has another version of the op, or none."""
    if opset not in v.opsets:
        raise UsageError(f"{v.key} is in force at opset {v.opsets[0]} to {v.opsets[-1]}, not at {opset!r}")


def usable(inst: Instance) -> Case:
    """The case of an instance; raises UsageError where it breaks a rule after all, the reference cannot evaluate it, or
    it can be neither written nor built: then no backend is to be blamed for it."""
    v = registry.version_of(inst)
    if inst.rule is not None and inst.rule not in invalid_generators_of(v) and _valid(replace(inst, rule=None)):
        raise UsageError(f"{inst.key}: rule: expected one that the instance breaks, got {inst.rule!r}")
    case = Case(v, inst, 0)
    try:
        case.hold()
    except OpconformError as e:
        raise UsageError(f"{inst.key}: {e}") from None
    _ = case.draws
    if case.problem:
        raise UsageError(f"{inst.key}: {case.problem}")
    with suppress(Unsupported), reading(f"{inst.key}: as a model"):
        v.dialect.notation(inst)
        build(v.dialect, [case])
    return case


def _valid(inst: Instance) -> bool:
    """Has the reference an answer to it?"""
    try:
        usable(checked(inst))
    except OpconformError:
        return False
    return True


def replay(
    inst: Instance,
    names: Sequence[str],
    place: Place = HERE_ONLY,
    explain: bool = True,
    known: Sequence[Path] = (),
) -> list[Result]:
    """Judge one instance again on some backends (all that fit, if none is named).  explain: by the known differences;
    known: files of the user's own lists.  Raises UsageError when the reference itself cannot evaluate it."""
    case = usable(inst)
    with Backends(place) as bench:
        handles = bench.open(names or backends.names(case.version.dialect.format), strict=bool(names))
        ledger = load_ledger(backends=[h.info for h in handles], own=known) if explain else None
        attribute = Attribution(bench.spare, ledger) if explain else None
        engine = Engine(handles, ledger=ledger, wanted=None, attribute=attribute)
        twice = bench.two_runs(engine.ledger)
        return [twice(r, engine.infos[r.backend]) for r in engine.judge([case])]


def replay_neighbours(
    path: Path,
    names: Sequence[str],
    place: Place = HERE_ONLY,
    explain: bool = True,
    known: Sequence[Path] = (),
) -> list[Result]:
    """Judge the instance of a ``neighbours.json`` beside the others in one model, after the models before it.  Raises
    UsageError and FormatError."""
    instances, at, earlier = load_neighbours(path)
    cases, *prior_models = [[usable(checked(i)) for i in some] for some in (instances, *earlier)]
    case = cases[at]
    with Backends(place) as bench:
        handles = bench.open(names or backends.names(case.version.dialect.format), strict=bool(names))
        ledger = load_ledger(backends=[h.info for h in handles], own=known) if explain else None
        twice = bench.two_runs(ledger)
        return [twice(judge_beside(h, i := h.info, case, cases, ledger, prior_models), i) for h in handles]


def minimize(
    inst: Instance, backend: str, folder: Path, seconds: float = 60.0, place: Place = HERE_ONLY
) -> tuple[Result | None, dict[str, Any] | None]:
    """Make a failing instance smaller and write its folder; (None, None) if it does not fail."""
    with Backends(place) as bench:
        evidence = Evidence(bench.spare, folder)
        case = usable(inst)
        engine = Engine(bench.open([backend], strict=True), wanted=None)
        result = next(iter(engine.judge([case])), None)
        if result is None or not result.verdict.bad:
            return None, None
        small = evidence.shrink(result, Budget(evaluations=3000, seconds=seconds)) or result
        small = bench.two_runs()(small, engine.infos[result.backend])
        path = evidence.write(small)
        return small, record(result, {result.backend: result.verdict.value}, small, path, place=place)
