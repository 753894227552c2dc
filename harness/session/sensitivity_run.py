"""Planted faults for a whole selection, on several processes: what the judge catches, and what the ledger would hide.

Each op version, type and fault has one record, written when the op version is done.  The same command continues with
the missing ones.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from harness.cases.selection import versions
from harness.core.errors import UsageError
from harness.declare import registry
from harness.engine.run_records import end
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from harness.mutation.sensitivity import measure
from harness.session import record_writer, run_folder, session
from harness.workers.info import BackendInfo

SHOWN = 10  # entries that hide most

_ledger: Ledger | None = None


def run(plan: session.Plan, jobs: int, progress: Callable[[int, int], None] | None = None) -> list[str]:
    """Plant faults in up to ``plan.sensitivity`` instances of each op version and type, with ``jobs`` processes.

    Returns a line for each backend that could not be had.

    progress: called with the number of op versions that are done, and of all.  Raises UsageError."""
    chosen = versions(plan.selection)
    run_folder.prepare(plan)
    path = plan.out / run_folder.RECORDS
    with session.Backends(plan.place) as bench:
        handles = bench.open(plan.names or session.names_for(plan.selection), strict=bool(plan.names))
        infos = [h.info for h in handles]
        told = session.header(plan.command, handles, plan.selection.dialects or registry.names())
        missing = [f"not run: {name}: {why}" for name, why in bench.missing.items()]
    done = {o["key"] for o in record_writer.read(path) if o["t"] == "measured"} if path.is_file() else set()
    todo = [v.key for v in chosen if v.key not in done]
    context = multiprocessing.get_context("spawn")
    with record_writer.RecordWriter(path) as writer, ProcessPoolExecutor(jobs, mp_context=context) as pool:
        writer.write({**told, **session.identity(plan)})
        work = [pool.submit(_of, key, plan.seed, plan.sensitivity, infos) for key in todo]
        try:
            for n, got in enumerate(as_completed(work), 1):
                for record in got.result():
                    writer.write(record)
                if progress is not None:
                    progress(len(done) + n, len(chosen))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        writer.write(end(False))
    return missing


def _of(key: str, seed: int, instances: int, infos: Sequence[BackendInfo]) -> list[dict[str, Any]]:
    """The records of one op version, the last of which says that it is done."""
    global _ledger
    if _ledger is None:
        _ledger = load_ledger(backends=infos)
    version = registry.dialect(key.split("/")[0]).versions[key]
    found = measure([version], seed=seed, instances=instances, least=min(instances, 32), ledger=_ledger, backends=infos)
    return [*found.records(), {"t": "measured", "key": key}]


def table(found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Lines: faults that were caught, by dialect, the weakest first; faults that the list hides, by dialect and
    backend; the entries that hide most.

    found: "sensitivity" records.

    A caught fault is hidden if the list would excuse every wrong answer of it.  Hidden faults are counted in those op
    versions and backends that have a listed wrong answer.  A fault that is the listed defect itself is not hidden: the
    defect models of those entries give every wrong answer bit for bit.

    Raises UsageError where no fault could be planted.
    """
    planted: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    by_fault: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    behind: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    entries: Counter[str] = Counter()
    for r in found:
        dialect = r["key"].split("/")[0]
        planted[dialect] += r["planted"]
        caught[dialect] += r["caught"]
        n = by_fault[dialect, r.get("fault") or ""]
        n[0] += r["caught"]
        n[1] += r["planted"]
        for backend, ids in (r.get("behind") or {}).items():
            n = behind[dialect, backend]
            n[0] += bool(ids)
            n[1] += 1
            n[2] += backend in (r.get("identified") or {})
            entries.update(ids)
    if not planted:
        raise UsageError("no fault could be planted in these op versions")
    out = []
    for dialect, every in sorted(planted.items()):
        good = caught[dialect]
        out.append(f"{dialect}: caught {good:,} of {every:,} planted faults, {_share(good, every)}")
        weak = sorted((c / p, fault, c, p) for (d, fault), (c, p) in by_fault.items() if d == dialect and c < p)
        out += [f"  weakest: {fault}: {c:,} of {p:,}, {_share(c, p)}" for _, fault, c, p in weak[:3]]
        for (d, backend), (hidden, met, same) in sorted(behind.items()):
            if d == dialect:
                line = f"  {backend}: the list hides {hidden:,} of {met:,}, {_share(hidden, met)}"
                out.append(f"{line}; the listed defect itself: {same:,}")
    out += [f"hides {n:,}: {id}" for id, n in entries.most_common(SHOWN)]
    return out


def _share(n: int, of: int) -> str:
    return f"{100 * n / of:.2f} %" if of else "none"


def read(plan: session.Plan) -> list[dict[str, Any]]:
    """The "sensitivity" records of a plan's folder."""
    return [o for o in record_writer.read(plan.out / run_folder.RECORDS) if o["t"] == "sensitivity"]
