"""A run on several processes, each with its own share of the ops, its own backends and its own records.

Workers ignore Ctrl-C and similar signals.  The parent ends them by a message, so that each closes its records properly.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.backends import registry as backends
from harness.cases.selection import versions
from harness.core.errors import OpconformError, UsageError
from harness.engine.run_records import RunTotals
from harness.session import run_folder, session
from harness.session.terminal import Progress

STOP_WAIT = 120.0  # seconds a worker may take to close after it was told to
TOLD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # how somebody ends a campaign
INTERRUPT = signal.SIGUSR1  # to a worker, by itself
STOP_SOFT = 5.0  # of these it may finish the batch that it is at: then it is interrupted


@dataclass
class CampaignOutcome:
    """records: files of all workers.  missing: backends that could not be had.  problem: what stopped a worker."""

    records: list[Path] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    problem: UsageError | None = None
    interrupted: bool = False


def run(plan: session.Plan, jobs: int, fresh: bool = False) -> CampaignOutcome:
    """Carry the plan out with ``jobs`` processes.  Raises UsageError when no worker could begin."""
    for name in plan.names:
        backends.find(name, plan.place)  # a wrong name is told before anything starts
    versions(plan.selection)
    plan.out.mkdir(parents=True, exist_ok=True)  # a place that is none is told here too
    parts = [_part(plan, i, jobs) for i in range(jobs)]
    for part in parts:
        run_folder.prepare(part, fresh)
    # Whatever is started here inherits the mask: a SIGHUP to the group must not end multiprocessing's resource tracker,
    # which ignores the others, nor a worker that has not come to ``_work``.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, TOLD)
    ctx = multiprocessing.get_context("spawn")
    stop, told = ctx.Event(), ctx.Queue()
    workers = [ctx.Process(target=_work, args=(i, part, stop, told)) for i, part in enumerate(parts)]
    for w in workers:
        w.start()
    out = CampaignOutcome()
    seen: dict[int, tuple[int, int, Counter[str]]] = {}
    left, start = set(range(jobs)), time.monotonic()
    with Progress() as show:
        while left:
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                kind, i, *rest = told.get(timeout=0.5)
                if kind == "progress":
                    seen[i] = (rest[0], rest[1], rest[2])
                else:
                    left.discard(i)
                    out.missing.update(rest[0])
                    if rest[1]:
                        out.problem = UsageError(rest[1])
                cases, failures = sum(s[0] for s in seen.values()), sum(s[1] for s in seen.values())
                show.show(cases, time.monotonic() - start, [s[2] for s in seen.values()], failures)
            except queue.Empty:
                for i in [i for i in left if not workers[i].is_alive()]:
                    left.discard(i)
                    out.problem = UsageError(f"campaign: worker {i + 1} died with exit code {workers[i].exitcode}")
            except KeyboardInterrupt:
                out.interrupted = True
                stop.set()
    for w in workers:
        w.join(STOP_WAIT)
        w.kill()
    out.records = [path for p in parts if (path := p.out / run_folder.RECORDS).is_file() and path.stat().st_size]
    if not any(run_folder.has_records(path.parent) for path in out.records):
        raise out.problem or UsageError("campaign: stopped before anything was judged")
    return out


def _part(plan: session.Plan, i: int, jobs: int) -> session.Plan:
    sel = replace(plan.selection, shard=(i + 1, jobs))
    return replace(plan, selection=sel, out=plan.out / f"part-{i + 1}")


def _work(i: int, plan: session.Plan, stop: Any, told: Any) -> None:
    """One process: judge until told to stop or the time is up."""
    for number in TOLD:  # sent to the whole group: the parent tells
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, TOLD)
    parent = multiprocessing.parent_process()
    signal.signal(INTERRUPT, signal.default_int_handler)
    heard = threading.Event()
    threading.Thread(target=_interrupt, args=(stop, parent, heard), daemon=True).start()

    def progress(s: RunTotals) -> None:
        told.put(("progress", i, s.cases, s.failures, sum(s.tally.values(), Counter())))
        if stop.is_set() or parent is None or not parent.is_alive():
            heard.set()
            raise KeyboardInterrupt

    try:
        outcome = session.run(plan, progress)
        told.put(("end", i, outcome.missing, ""))
    except OpconformError as e:
        told.put(("end", i, {}, str(e)))
    except KeyboardInterrupt:  # before anything was judged
        told.put(("end", i, {}, ""))
    signal.signal(INTERRUPT, signal.SIG_IGN)
    if parent is None or not parent.is_alive():
        os._exit(0)  # nobody reads what is left in the queue


def _interrupt(stop: Any, parent: Any, heard: threading.Event) -> None:
    """A thread.  Interrupts a process that was told to stop, or has lost its parent, and has not ``heard`` of it after
    STOP_SOFT seconds.  Ends one that has not closed its records after STOP_WAIT seconds."""
    while not stop.is_set() and parent is not None and parent.is_alive():
        time.sleep(0.5)  # no ``stop.wait``: whoever sets an event waits for all that wait, those that have ended too
    if not heard.wait(STOP_SOFT):
        os.kill(os.getpid(), INTERRUPT)
    time.sleep(STOP_WAIT)
    os.kill(os.getpid(), signal.SIGKILL)
