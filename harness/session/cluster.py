"""A campaign on several machines: slices of it are tasks of a Ray cluster, and their records are copied back.

Slice ``round-R-part-I`` draws from the I-th share of the ops with the seed ``plan.seed + R``.  It needs nothing but the
plan, so any machine may run it, and a slice that is lost runs again elsewhere.  A slice whose records are here is
complete; the same command continues with the missing slices.  Every machine of the cluster has opconform and the
runtimes.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.backends import registry as backends
from harness.cases.selection import versions
from harness.core.errors import OpconformError, UsageError
from harness.core.escape import shell
from harness.engine.case_record import NEIGHBOURS
from harness.session import run_folder, session
from harness.session.campaign import CampaignOutcome
from harness.session.terminal import Progress

SLICE = 300.0  # seconds of a slice unless told otherwise: what is lost with a machine


@dataclass
class Slice:
    """What a task hands back.

    files: path in the slice's folder -> content.
    problem: why it could not run.
    cut: it had only the time that was left of the whole run.  That may be too short to start a backend, which is no
        problem after other slices.
    """

    name: str
    cut: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    cases: int = 0
    failures: int = 0
    tally: Counter[str] = field(default_factory=Counter)
    missing: dict[str, str] = field(default_factory=dict)
    problem: str = ""


def run(plan: session.Plan, address: str, jobs: int, seconds: float = SLICE, fresh: bool = False) -> CampaignOutcome:
    """Carry an endless plan out on the cluster at ``address`` ("local": this machine), ``jobs`` slices at a time.

    Raises UsageError when Ray is not installed, when the cluster cannot be reached, or when no slice came home."""
    for name in plan.names:
        backends.find(name, plan.place)  # a wrong name is told before a cluster is started
    versions(plan.selection)
    ray = _ray(address, jobs)
    if fresh:
        for old in plan.out.glob("round-*-part-*"):
            shutil.rmtree(old)
    work = ray.remote(num_cpus=1, max_retries=3)(carry_out)
    todo = _missing(plan, jobs)
    end = None if plan.seconds is None else time.monotonic() + plan.seconds
    out, flying = CampaignOutcome(), list[Any]()
    sums, start = Slice(""), time.monotonic()
    try:
        with Progress() as show:
            while True:
                while len(flying) < jobs and (end is None or time.monotonic() < end) and out.problem is None:
                    left = seconds if end is None else end - time.monotonic()
                    flying.append(work.remote(*next(todo), min(left, seconds), left < seconds))
                if not flying:
                    break
                ready, flying = ray.wait(flying, num_returns=1)
                try:
                    got: Slice = ray.get(ready[0])
                except ray.exceptions.RayError as e:
                    out.problem = UsageError(f"ray: a slice was lost: {str(e).strip().splitlines()[-1]}")
                    continue
                _home(plan, got, out)
                sums.cases += got.cases
                sums.failures += got.failures
                sums.tally += got.tally
                show.show(sums.cases, time.monotonic() - start, [sums.tally], sums.failures)
    except KeyboardInterrupt:
        out.interrupted = True
        for task in flying:
            ray.cancel(task, force=True)
    finally:
        ray.shutdown()
    out.records = sorted(
        p for p in plan.out.glob(f"round-*-part-*/{run_folder.RECORDS}") if run_folder.has_records(p.parent)
    )
    if not out.records:
        raise out.problem or UsageError("campaign: stopped before anything was judged")
    return out


def _ray(address: str, jobs: int) -> Any:
    try:
        import ray
    except ImportError:
        raise UsageError("--ray needs Ray: pip install 'opconform[scale]'") from None
    try:
        if address == "local":
            ray.init(
                address="local", num_cpus=jobs, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
            )
        else:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError) as e:
        raise UsageError(f"--ray {address}: {str(e).strip().splitlines()[0]}") from None
    return ray


def _missing(plan: session.Plan, jobs: int) -> Iterator[tuple[session.Plan, str]]:
    """Slices that have not come home yet, without end: all shares with one seed, then all with the next."""
    r = 0
    while True:
        for i in range(1, jobs + 1):
            name = f"round-{r}-part-{i}-of-{jobs}"
            if not (plan.out / name / run_folder.RECORDS).exists():
                shared = replace(plan.selection, shard=(i, jobs))
                yield replace(plan, selection=shared, seed=plan.seed + r, saved=r == 0), name
        r += 1


def carry_out(plan: session.Plan, name: str, seconds: float, cut: bool = False) -> Slice:
    """One slice, in a folder of its own on whatever machine it runs."""
    out = Slice(name, cut)
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        try:
            mine = replace(plan, out=Path(name), seconds=seconds)
            outcome = session.run(mine)
            out.missing = outcome.missing
            out.cases, out.failures = outcome.summary.cases, outcome.summary.failures
            out.tally = sum(outcome.summary.tally.values(), Counter())
            root = Path(name)
            out.files = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
        except OpconformError as e:
            out.problem = str(e)
        finally:
            os.chdir(before)
    return out


def _home(plan: session.Plan, got: Slice, out: CampaignOutcome) -> None:
    """Write what a task handed back; the records last and at once, since they say that the slice is complete."""
    out.missing.update(got.missing)
    if got.problem and got.cut and any(plan.out.glob(f"round-*-part-*/{run_folder.RECORDS}")):
        return
    if got.problem:
        out.problem = UsageError(f"ray: {got.name}: {got.problem}")
        return
    root = plan.out / got.name
    for name, data in got.files.items():
        if name != run_folder.RECORDS:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
    root.mkdir(parents=True, exist_ok=True)
    part = root / (run_folder.RECORDS + ".part")
    part.write_bytes(b"".join(_placed(got.files[run_folder.RECORDS], got.name, root)))
    part.replace(root / run_folder.RECORDS)


def _placed(records: bytes, name: str, root: Path) -> Iterator[bytes]:
    """Records whose folders and replay lines say where the files are here."""
    for line in records.splitlines(keepends=True):
        if line.startswith(b'{"t":"case"'):
            record = json.loads(line)
            if record.get("folder"):
                there = record["folder"]
                record["folder"] = there.replace(name, str(root), 1)
                for file in ("instance.json", NEIGHBOURS):
                    was, now = shell(f"{there}/{file}"), shell(f"{record['folder']}/{file}")
                    record["replay"] = record["replay"].replace(was, now, 1)
                line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        yield line
