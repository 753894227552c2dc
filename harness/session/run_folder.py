"""The folder of a run: go on with an unfinished run, set a finished one aside."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.core.errors import FormatError, UsageError
from harness.session.record_writer import checked, in_use
from harness.session.session import Plan, identity

RECORDS = "records.jsonl"
PREVIOUS = "previous"  # sub-folder that the last run is moved to; reports.records leaves it out
OURS = (RECORDS, "report.html", "report.json", "summary.md", "junit.xml", "failures")


@dataclass
class Kept:
    """resumed: the plan goes on with the records that are there.  previous: records of a finished run set aside."""

    resumed: bool = False
    previous: Path | None = None


def prepare(plan: Plan, fresh: bool = False) -> Kept:
    """Make ``plan.out`` ready: an unfinished run of the same plan is resumed, any other is moved to ``previous``.

    Only our own files are moved.  Raises FormatError when the records there are none or of another format, UsageError
    when another run is writing them.
    """
    path = plan.out / RECORDS
    if not path.is_file() or path.stat().st_size == 0:
        return Kept()
    if in_use(path):
        raise UsageError(f"{path}: another run is writing there; --out takes another folder")
    if fresh:
        _set_aside(plan.out)
        return Kept()
    try:
        head, finished = _last_run(path)
    except FormatError as e:
        raise FormatError(f"{e}; --fresh sets it aside, --out takes another folder") from None
    if not finished and _same(plan, head):
        return Kept(resumed=True)
    _set_aside(plan.out)
    return Kept(previous=plan.out / PREVIOUS / RECORDS if finished else None)


def has_records(out: Path) -> bool:
    """Does the folder hold anything to report?"""
    path = out / RECORDS
    if not path.is_file():
        return False
    with open(path, "rb") as f:
        return any(line.startswith(b'{"t":"batch"') for line in f)


def _last_run(path: Path) -> tuple[dict[str, Any], bool]:
    """The header of the last run in a file, and whether that run came to its end.

    An endless run (``cases`` 0) never does: it is always gone on with.
    """
    head: dict[str, Any] | None = None
    finished = False
    with open(path, "rb") as f:
        for number, line in enumerate(f, 1):
            if number > 1 and not line.startswith((b'{"t":"run"', b'{"t":"end"')):
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                if number == 1:
                    raise FormatError(f"{path}: not a record file") from None
                continue
            record = checked(record, f"{path}:{number}")
            if record["t"] == "run":
                head, finished = record, False
            elif record["t"] == "end":
                finished = not record.get("interrupted")
    if head is None:
        raise FormatError(f"{path}: not a record file")
    return head, finished and (head.get("selection") or {}).get("cases") != 0


def _same(plan: Plan, head: dict[str, Any]) -> bool:
    """Would the plan draw the instances that a header speaks of, for the same backends in the same place?"""
    return all(head.get(k) == v for k, v in json.loads(json.dumps(identity(plan))).items())


def _set_aside(out: Path) -> None:
    target = out / PREVIOUS
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name in OURS:
        if (out / name).exists():
            (out / name).rename(target / name)
