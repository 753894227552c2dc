"""A backend in the host: jobs in, outcomes out, whatever the backend does to its process.

Every (set, instance) of a submitted job gets exactly one ``Outcome``.  If a model is rejected, crashes or hangs, it is
bisected through the job's ``rebuild`` until the culprit is alone.  A lone suspect runs once more in a fresh process
before it is called crashed or timed out, since heap corruption may strike several cases late.  Instances that a dead
process had not answered run again.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from harness.core.errors import TimeIsUp
from harness.core.outcome import Outcome, Status
from harness.workers import wire
from harness.workers.bisection import Bisection
from harness.workers.info import BackendInfo
from harness.workers.process import Zygote
from harness.workers.spec import BackendError, Spec
from harness.workers.watch import DEADLINE, Limits, Watch
from harness.workers.wire import Job, JobResult, Root, Task

FRAME_TASKS = 32  # tasks that travel together at most
FRAME_BYTES = 1 << 20
EVENTS = 500  # remarks kept
LOOK = 0.25  # seconds between looks at whether the process is still there
STARTS = 3  # times in a row that no process could be had, after which nobody tries
TRIM = 64  # frames after which the runtime's chatter is looked at
DEPTH = 2  # frames under way: one being worked on, one waiting in the socket


class BackendHandle:
    """One backend with one serving process, which starts when first needed.

    limits: fields of ``harness.workers.watch.Limits``.
    declared: what the backend declares; None before its start.
    beside: what its author should know of outputs that nobody asked for.
    events: the latest remarks on deaths.
    stats: counts of tasks, frames, deaths, spawns, splits, timeouts.
    """

    def __init__(self, spec: Spec, **limits: Any) -> None:
        self.spec, self.limits = spec, Limits(**limits)
        self.name = spec.name
        self.beside = ""
        self.events: list[str] = []
        self.stats: Counter[str] = Counter()
        self.zygote: Zygote | None = None
        self.declared: BackendInfo | None = None
        self.channel: wire.Channel | None = None
        self.pid = 0
        self._parts = Bisection(self.stats, self._remark)
        self._flying: dict[int, deque[Task]] = {}  # frame number -> tasks not answered yet, in order
        self._ids = itertools.count(1)
        self._left = 0  # tasks until the process gives way to a fresh one
        self.rss = self._young = 0  # bytes: now, and at the first answer of the process
        self._fresh = False  # a process that has not been asked anything yet
        self._watch = Watch(self.limits.deadline or spec.place.deadline or DEADLINE)
        self._heard = self._looked = 0.0  # when it was last sent something or answered; when one looked for it
        self._starts = 0  # processes asked for since one was had
        self._why = ""  # none could be had
        self._burst = FRAME_TASKS  # tasks per frame: few after a death, since what flies has to be asked again

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> BackendInfo:
        """Import the runtime in its process; what the backend declares.  Raises BackendError."""
        if self.zygote is None:
            self.zygote = Zygote(self.spec, self.limits.left)
            self.declared = self.zygote.info
        return self.info

    @property
    def info(self) -> BackendInfo:
        """What the backend declares; it is started to say so.  Raises BackendError."""
        return self.declared or self.start()

    def another(self) -> BackendHandle:
        """A second handle of the same backend, which is known already: it need not start to be asked who it is."""
        out = type(self)(self.spec, **asdict(self.limits))
        out.declared, out.name = self.info, self.name
        return out

    @property
    def processor(self) -> str:
        """What its processor offers, and the name of an emulated one; empty where that is not told."""
        words, emulated = " ".join(self.info.cpu), self.spec.place.cpu
        return f"{words}, {emulated} emulated" if emulated else words

    def missing(self) -> str | None:
        """Why this backend cannot be had here, None when it can."""
        try:
            self.start()
        except BackendError as e:
            return str(e).removeprefix(f"{self.name}: ")  # the caller says whom it asked
        return None

    def renew(self) -> None:
        """The next job gets a process that was asked nothing before; the handle must be idle."""
        assert not self.pending, "a backend at work cannot be renewed"
        if not self._fresh:
            self._drop(kill=True)

    def close(self) -> None:
        self._drop(kill=True)
        if self.zygote is not None:
            self.zygote.close()
            self.zygote = None

    def __enter__(self) -> BackendHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- jobs ---------------------------------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Queue a job and keep the process fed; returns at once unless its buffers are full."""
        k, r = len(job.model.outputs), len(job.feeds)
        root = Root(job, [[None] * k for _ in range(r)], k * r)
        if not root.left:
            self._parts.done.append(JobResult(job, [[] for _ in range(r)]))
            return
        self._parts.queue.append(Task(root, list(range(k)), list(range(r)), job.model))
        self.pump(0.0)

    @property
    def pending(self) -> int:
        """Tasks queued or under way."""
        return len(self._parts.queue) + sum(len(q) for q in self._flying.values())

    def collect(self, wait: bool = False) -> list[JobResult]:
        """Finished jobs, in the order in which they finished; with ``wait`` all that were submitted."""
        self.pump(0.0)
        while wait and self.pending:
            self.pump(0.25)
        out = list(self._parts.done)
        self._parts.done.clear()
        return out

    def run(self, jobs: Iterable[Job]) -> list[JobResult]:
        """Submit and collect; results in the order of the jobs."""
        jobs = list(jobs)
        for job in jobs:
            self.submit(job)
        order = {id(job): i for i, job in enumerate(jobs)}
        return sorted(self.collect(wait=True), key=lambda r: order.get(id(r.job), -1))

    def prior_models(self, asked: Callable[[Task], bool]) -> list[Task]:
        """What the process had served when it answered the latest task of that kind: see ``History.before``."""
        return self._parts.history.before(asked)

    # -- the machine --------------------------------------------------------------------------------------------

    def pump(self, timeout: float) -> None:
        """Send what can be sent, take what has come, look after the dead; waits at most ``timeout`` seconds.
        Raises TimeIsUp."""
        if self.pending and self.limits.left == 0:
            self._drop(kill=True)
            self._parts.queue.clear()
            self._flying.clear()
            raise TimeIsUp
        self._feed()
        channel = self.channel
        if channel is None:
            return
        if timeout and self._flying:
            wire.wait([channel], timeout)
        ended = self._ended()  # before the last look at what it said
        channel.take()
        answered = False
        try:
            for header, payload in channel.frames():
                self._answers(header, payload)
                answered = True
        except wire.Garbled as e:
            self._died(f"{e}; {self._reap(kill=True)}")
            return self._feed()
        if channel.closed or (ended and not answered):
            self._died(self._reap())
        elif answered or not self._flying:
            pass
        elif self._overdue():
            self.stats["timeouts"] += 1
            self._died(self._reap(kill=True), timed_out=True)
        else:
            return  # nothing has changed
        self._feed()

    def _ended(self) -> bool:
        """Has the serving process ended?  Looked at now and then: its socket tells, unless something else holds it."""
        now = time.monotonic()
        if not self._flying or now - self._looked < LOOK:
            return False
        self._looked = now
        assert self.zygote is not None
        return self.zygote.gone(self.pid)

    def _overdue(self) -> bool:
        assert self.zygote is not None
        return self._watch.overdue(self.zygote, self.pid, self._flying, self._heard)

    def _feed(self) -> None:
        while self._parts.queue and len(self._flying) < DEPTH:
            alone = self._parts.next().alone
            stale = self._stale()
            if self._flying and (alone or stale or any(t.alone for q in self._flying.values() for t in q)):
                return
            if stale or (alone and not self._fresh):
                self._drop(kill=True)
            if self.channel is None:
                try:
                    self._spawn()
                except BackendError as e:
                    self._lost(str(e).removeprefix(f"{self.name}: "))
                    return
            tasks: list[Task] = []
            size = 0
            while self._parts.queue and len(tasks) < min(self._burst, self._left) and size < FRAME_BYTES:
                if self._parts.queue[0].alone and tasks:
                    break
                task = self._parts.queue.popleft()
                tasks.append(task)
                size += len(task.model.data)
                self._parts.spoilt = task.root.job.quarantine
                if task.alone or self._parts.spoilt:
                    break
            self._left -= len(tasks)
            self._send(tasks)

    def _stale(self) -> bool:
        worn = self._left <= 0 or self.rss - self._young > self.limits.growth
        return self.channel is not None and (self._parts.spoilt or worn)

    def _spawn(self) -> None:
        """Raises BackendError where it can be had no more."""
        if self._starts >= STARTS:
            raise BackendError(self._why)
        self._starts += 1
        self.start()
        assert self.zygote is not None
        used = not self.zygote.forks and self.stats["spawns"]
        if used or self.zygote.process.poll() is not None:
            self._anew()
        self.zygote.clear_log()
        try:
            self.channel, self.pid = self.zygote.spawn()
        except BackendError as e:
            self._remark(f"{e}; started anew")
            self.channel, self.pid = self._anew().spawn()
        self._starts = 0
        self._left, self.rss, self._young = min(self.limits.recycle, self.info.recycle or self.limits.recycle), 0, 0
        self._fresh = True
        self._parts.spoilt = False
        self.stats["spawns"] += 1

    def _anew(self) -> Zygote:
        """Another zygote; the one before is kept, closed, where none can be had: what it said of itself stands."""
        assert self.zygote is not None
        self.zygote.close()
        self.zygote = Zygote(self.spec)
        return self.zygote

    def _lost(self, why: str) -> None:
        """No process can be had: what is left to ask has crashed."""
        self._why = why
        outcome = Outcome(Status.CRASHED, None, "start", f"cannot be started again: {why}")
        self._parts.give_up(outcome)

    def _send(self, tasks: list[Task]) -> None:
        number = next(self._ids)
        for t in tasks:
            t.id = next(self._ids)
        header, w = wire.encode(tasks, number)
        self._flying[number] = deque(tasks)
        self._fresh = False
        self._heard = time.monotonic()
        self.stats["frames"] += 1
        self.stats["tasks"] += len(tasks)
        assert self.channel is not None
        try:
            self.channel.send(header, w)
        except (BrokenPipeError, ConnectionError):
            self.channel.closed = True  # pump finds it and asks again

    def _answers(self, header: dict[str, Any], payload: memoryview) -> None:
        self._heard = time.monotonic()
        flying = self._flying.get(header["batch"])
        if flying is None:
            return
        self.rss, self._young = header.get("rss", 0), self._young or header.get("rss", 0)
        for rows in wire.answered(flying, header, payload):
            task = flying.popleft()
            self._parts.served(task)
            self._parts.settle(task, rows)
        if not self.beside:
            self.beside = next((f["beside"] for a in header["answers"] for f in a["sets"] if "beside" in f), "")
        if not flying:
            del self._flying[header["batch"]]
            self._burst = min(FRAME_TASKS, 2 * self._burst)
            self._parts.barren = 0
        if self.stats["frames"] % TRIM == 0:
            assert self.zygote is not None
            self.zygote.trim_log()

    # -- death --------------------------------------------------------------------------------------------------

    def _reap(self, kill: bool = False) -> str:
        assert self.zygote is not None
        return self.zygote.reap(self.pid, kill)

    def _drop(self, kill: bool = False) -> None:
        """Let the serving process go (it is idle)."""
        if self.channel is not None and self.zygote is not None:
            self.channel.close()
            self.zygote.reap(self.pid, kill)
        self.channel = None

    def _remark(self, text: str) -> None:
        self.events.append(f"{self.name}: {text}")
        del self.events[:-EVENTS]

    def _died(self, how: str, timed_out: bool = False) -> None:
        """The process is gone: find whom it was working for, ask everything else again."""
        assert self.channel is not None
        assert self.zygote is not None
        self.channel.close()
        self.channel = None
        self.stats["deaths"] += 1
        self._burst = 2
        _, job, index, phase, seconds = self.zygote.progress()
        orphans = [t for q in self._flying.values() for t in q]
        self._flying.clear()
        busy = next((t for t in orphans if t.id == job and phase in ("load", "run")), None)
        if busy is None:
            phase, seconds = "start", time.monotonic() - self._heard  # if it is to blame, it has not begun
        status = Status.TIMED_OUT if timed_out else Status.CRASHED
        message = f"no answer within {seconds:.1f} s in {phase}" if timed_out else f"{how} (in {phase})"
        self._parts.orphaned(orphans, busy, Outcome(status, None, phase, message), index, how)
