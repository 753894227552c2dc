"""``opconform judge``: outputs that were computed elsewhere get the verdicts, records and report of a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.cases.case import Case
from harness.cases.result import Result
from harness.cases.selection import Unit
from harness.core.errors import FormatError, UsageError
from harness.core.escape import shell_line
from harness.core.instance import SKIPPED, Instance
from harness.core.outcome import Outcome
from harness.core.quiet import quiet
from harness.declare import registry
from harness.engine.engine import Engine
from harness.engine.run_records import RunTotals, end
from harness.evidence.failure import Evidence
from harness.ledger.loader import load_ledger
from harness.packs import tensors
from harness.packs.files import Entry, Pack, opened
from harness.packs.results import Results
from harness.session.record_writer import RecordWriter
from harness.session.session import header
from harness.workers.info import BackendInfo
from harness.workers.spec import HERE_ONLY, Spec
from harness.workers.wire import Job, JobResult


class Recorded:
    """Stands where a backend's handle stands, and answers from what is known already.

    answers: id of a case object -> one outcome a run."""

    pending = 0
    channel = None
    beside = ""
    processor = ""

    def __init__(self, info: BackendInfo, answers: dict[int, list[Outcome]]) -> None:
        self.info, self.name, self.answers = info, info.name, answers
        self.spec = Spec(info.name, "", place=HERE_ONLY)
        self._done: list[JobResult] = []

    def submit(self, job: Job) -> None:
        """Answer a model of one case."""
        (case,) = job.tag[2].cases
        rows = self.answers[id(case)]
        self._done.append(JobResult(job, [[rows[min(r, len(rows) - 1)]] for r in range(len(job.feeds))]))

    def collect(self, wait: bool = False) -> list[JobResult]:
        """What was answered since the last call."""
        out, self._done = self._done, []
        return out

    def prior_models(self, asked: Any) -> list[Any]:
        """What was run before is not known."""
        return []


@dataclass
class Judged:
    """The result of judging a pack.

    path: of the records.
    changed: instances of which the reference expects something else today than when the pack was made.  The verdicts
        are those of today.
    """

    summary: RunTotals
    path: Path
    changed: list[str]


def judge_pack(pack: Path, results: Path, out: Path, *, partial: bool = False, known: Sequence[Path] = ()) -> Judged:
    """Judge the results of a pack, and write records to ``out``.  Raises UsageError and FormatError, one line each."""
    with opened(pack) as read:
        came = Results(results, read, partial)
        work: list[tuple[Unit, Case]] = []
        answers: dict[int, list[Outcome]] = {}
        changed = []
        for entry in came.entries:
            case = case_of(read, entry)
            if tensors.digest([[e.value for e in row] for row in case.expected or ()]) != entry.expected:
                changed.append(entry.id)
            answers[id(case)] = came.outcomes(entry, case.expected, case.inst.attrs.get(SKIPPED, ()))
            work.append((Unit(case.version, case.inst.opset, entry.index, 1), case))
        seed = int(read.manifest["seed"])
        dialect = str(read.manifest["dialect"])
    path = out / "records.jsonl"
    if path.exists():
        raise UsageError(f"--out {out}: holds records already; expected another folder")
    handle: Any = Recorded(came.info, answers)
    line = shell_line(["opconform", "judge", str(pack), str(results)])
    with RecordWriter(path) as writer:
        told = header("opconform " + shell_line(sys.argv[1:]), [handle], [dialect])
        how = {"dialects": [dialect], "opset": None, "ops": [], "families": [], "shard": [1, 1]}
        each = {"cases": int(read.manifest["each"]), "draws": 1, "invalid": True}
        place = {"python": None, "cpu": None}
        more = {"selection": {**how, **each}, "seed": seed, "asked": [handle.name], "place": place}
        writer.write({**told, **more, "missing": {}})
        ledger = load_ledger(backends=[came.info], own=known)
        evidence = Evidence(lambda name: handle, out / "failures", seconds=0, seed=seed, ledger=ledger)

        def on_failure(result: Result, votes: dict[str, str]) -> dict[str, Any] | None:
            rec = evidence(result, votes)
            return None if rec is None else {**rec, "replay": line}

        engine = Engine([handle], seed=seed, ledger=ledger, sink=writer.write, on_failure=on_failure)
        summary = engine.run([], work)
        told = end(summary.interrupted, elapsed=round(summary.seconds, 3), cases=summary.cases, unused=[], beside={})
        writer.write(told)
    return Judged(summary, path, changed)


def case_of(pack: Pack, entry: Entry) -> Case:
    """The case of an instance of a pack.  Raises FormatError where its data would not be those in the pack."""
    try:
        inst = Instance.from_json(json.loads((pack.path / entry.instance).read_bytes()))
    except ValueError as e:
        raise FormatError(f"{pack.path / entry.instance}: not JSON: {e}") from None
    version = registry.version_of(inst)
    case = Case(version, inst, entry.index, 1, drawn=True)
    with quiet:
        draws = case.draws
        _ = case.expected
    if case.problem:
        raise FormatError(f"{pack.path}: {entry.id}: {case.problem}")
    if tensors.digest([draws[min(r, len(draws) - 1)] for r in range(entry.runs)]) != entry.inputs:
        made = pack.manifest["opconform"]
        raise FormatError(
            f"{pack.path}: {entry.id}: opconform {made} drew other inputs; judge the pack with that release"
        )
    return case


def entries(pack: Path) -> Iterator[Entry]:
    """What a pack holds, once all of it was checked."""
    with opened(pack) as read:
        yield from read.entries
