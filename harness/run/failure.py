"""A failure becomes evidence: a smaller instance, a folder that reproduces it, a record."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.backends.pool import BackendHandle
from harness.backends.process import HERE_ONLY, Place
from harness.compare import blame
from harness.core.errors import FormatError, UsageError
from harness.core.instance import Instance
from harness.core.outcome import Verdict
from harness.run.case import Case, fill
from harness.run.engine import Engine, profile_of
from harness.run.known import Ledger
from harness.run.minimize import Budget, minimize
from harness.run.repro import COMPANY, notation, write_folder
from harness.run.results import Judged


class Evidence:
    """Makes the "case" record of a bad verdict.

    handle: gives a second handle of a backend by name, so that shrinking does not disturb the run.  folder: where the
    folders of failures go (None: none are written).  per_kind: how many failures of one (op version, backend,
    signature) are made smaller; the others are recorded as they are.  seconds: for all shrinking together.  ledger: a
    smaller instance must not be one that is listed already.
    """

    def __init__(self, handle: Callable[[str], BackendHandle], folder: Path | None, *, per_kind: int = 1,
                 seconds: float = 120.0, seed: int = 0, recorded: int = 20,
                 ledger: Ledger | None = None) -> None:  # fmt: skip
        self.ledger = ledger.unmarked() if ledger is not None else None
        self.handle, self.folder, self.per_kind, self.left = handle, folder, per_kind, seconds
        self.seed, self.recorded = seed, recorded
        self._kinds: Counter[tuple[Any, ...]] = Counter()

    def __call__(self, judged: Judged, votes: dict[str, str]) -> dict[str, Any] | None:
        kind = (judged.case.version.key, judged.backend, *judged.signature, judged.known)
        self._kinds[kind] += 1
        if self._kinds[kind] > self.recorded:
            return None
        small: Judged | None = None
        lonely = not judged.company and not judged.before
        if judged.verdict.bad and lonely and self._kinds[kind] <= self.per_kind and self.left > 0:
            start = time.monotonic()
            small = self.shrink(judged, Budget(seconds=min(6.0, self.left)))
            self.left -= time.monotonic() - start
        folder = None
        first = self._kinds[kind] <= self.per_kind or not lonely  # company is known to its folder alone
        if judged.verdict.bad and self.folder is not None and first:
            folder = self.write(small or judged)
        return record(judged, votes, small, folder, self.seed, self.handle(judged.backend).spec.place)

    def shrink(self, judged: Judged, budget: Budget) -> Judged | None:
        """The same failure on a smaller instance, or None if none was found."""
        case, want = judged.case, judged.signature
        engine = Engine([self.handle(judged.backend)], ledger=self.ledger)
        found: dict[str, Judged] = {}

        def fails(inst: Instance) -> bool:
            candidate = fill(case.version, inst)
            if candidate.problem or (inst.rule is None) != (case.inst.rule is None):
                return False
            if complete(case) and not complete(candidate):
                return False
            got = next(iter(engine.judge([candidate])), None)
            if got is None or got.signature != want:
                return False
            found[inst.dumps()] = got
            return True

        small = minimize(case.version, case.inst, fails, budget)
        return found.get(small.dumps())

    def write(self, judged: Judged) -> Path | None:
        assert self.folder is not None
        handle = self.handle(judged.backend)
        return write_folder(self.folder, judged, profile_of(handle).version, handle.processor)


def complete(case: Case) -> bool:
    """Does the reference give as many outputs as the instance asks for?"""
    return all(len(outs) == case.inst.outs for outs in case.expected or ())


def address(case: Case, seed: int) -> str:
    """``onnx/Conv/11@17#seed.index``: enough to draw the case again on any machine."""
    return f"{case.version.key}@{case.inst.opset}#{seed}.{case.index}"


def replay_line(judged: Judged, folder: Path | None, seed: int, place: Place = HERE_ONLY) -> str:
    """One line that runs the case again, in the same place."""
    name = COMPANY if judged.company or judged.before else "instance.json"
    what = str(folder / name) if folder is not None else address(judged.case, seed)
    return f"opconform replay {what} --backend {judged.backend}{place.options}"


def record(judged: Judged, votes: dict[str, str], small: Judged | None = None, folder: Path | None = None,
           seed: int = 0, place: Place = HERE_ONLY) -> dict[str, Any]:  # fmt: skip
    """The "case" record of a verdict; numbers are those of the smaller instance where there is one."""
    case, inst = judged.case, judged.case.inst
    shown = small or judged
    j = shown.judgement
    return {
        "t": "case", "id": inst.id, "key": case.version.key, "opset": inst.opset, "backend": judged.backend,
        "dtype": str(case.dtype), "verdict": judged.verdict.value, "status": judged.outcome.status.value,
        "phase": judged.outcome.phase, "message": judged.outcome.message, "rule": inst.rule,
        "instance": inst.to_json(), "minimal": shown.case.inst.to_json() if small is not None else None,
        "notation": notation(shown), "output": j.output if j is not None else 0,
        "class": j.klass if j is not None else "", "formula": j.formula if j is not None else "",
        "kind": j.kind if j is not None else "", "diff": j.diff() if j is not None else {}, "votes": votes,
        "blame": blame(votes).text,
        "company": [c.version.dialect.notation(c.inst) for c in judged.company],
        "before": [[c.version.dialect.notation(c.inst) for c in cases] for cases in judged.before],
        "known": judged.known, "ambiguity": judged.ambiguity, "replay": replay_line(judged, folder, seed, place),
        "folder": str(folder) if folder is not None else None, "cluster": None,
    }  # fmt: skip


def paragraph(rec: dict[str, Any], version: str = "") -> str:
    """A failure in words, for the terminal: what, where, which rule, by how much, the instance, how to run it again."""
    head = f"{rec['key']} at opset {rec['opset']}, {rec['backend']}" + (f" {version}" if version else "")
    lines = [f"{head}: {rec['verdict'].replace('_', ' ')}"]
    diff = rec.get("diff") or {}
    if rec["verdict"] == Verdict.MISMATCH.value:
        lines.append(f"  output {rec['output']}: {rec.get('kind') or 'value'}; rule {rec['formula'] or rec['class']}")
        if diff.get("count"):
            worst = _num(diff.get("max_ulp"))
            lines.append(f"  {diff['count']} of {diff['size']} elements; largest error {worst} ulp, "
                         f"smallest passing tolerance {_num(diff.get('factor'))} x the bound")  # fmt: skip
        if rec.get("kind") in ("shape", "dtype"):
            got = f"{diff.get('got_dtype')}{diff.get('got_shape')}"
            lines.append(f"  expected {diff.get('dtype')}{diff.get('shape')}, got {got}")
        if diff.get("detail"):
            lines.append(f"  {diff['detail']}")
        for e in diff.get("elements", ())[:2]:
            lines.append(f"  {e['why']} at {e['index']}: expected {e['expected']} ({e['expected_hex']}), "
                         f"got {e['actual']} ({e['actual_hex']})")  # fmt: skip
        lines.append(f"  votes: {rec.get('blame') or blame(rec['votes']).text}")
    elif rec["rule"]:
        lines.append(f"  the instance breaks the rule {rec['rule']}, which the backend must refuse")
    if rec["message"]:
        lines.append(f"  {rec['phase']}: {rec['message'][:500]}")
    lines += ["  | " + x for x in rec["notation"].splitlines()]
    if rec.get("company"):
        lines.append(f"  right alone, wrong in one model of {len(rec['company'])}:")
        lines += ["  & " + x for text in rec["company"] for x in text.splitlines()]
    if rec.get("before"):
        lines.append(f"  right in a fresh process, wrong in one that has served {len(rec['before'])} before:")
        lines += ["  < " + x for model in rec["before"] for text in model for x in text.splitlines()]
    if rec["folder"]:
        lines.append(f"  folder: {rec['folder']}")
    lines.append(f"  {rec['replay']}")
    return "\n".join(lines)


def _num(v: Any) -> str:
    return f"{v:.4g}" if isinstance(v, (int, float)) else "-"


def load_instance(path: Path) -> Instance:
    """An instance from a file: ``instance.json`` or a line of JSON.  Raises FormatError or UsageError."""
    try:
        return Instance.from_json(_json(path))
    except ValueError as e:
        raise FormatError(f"{path}: not a case file: {e}") from None


def load_company(path: Path) -> tuple[list[Instance], int, list[list[Instance]]]:
    """The instances of a ``company.json``, the place of the one that goes wrong beside the others, and the instances of
    the models that the process serves first.  Raises FormatError or UsageError."""
    try:
        form = _json(path)
        instances, at = [Instance.from_json(x) for x in form["instances"]], form["at"]
        instances[at]
        before = [[Instance.from_json(x) for x in model] for model in form.get("before", [])]
    except (FormatError, ValueError, KeyError, TypeError, IndexError) as e:
        raise FormatError(f"{path}: expected {{at, instances}} as in {COMPANY}: {type(e).__name__}: {e}") from None
    return instances, at, before


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except OSError as e:
        raise UsageError(f"cannot read {path}: {e.strerror}") from None
