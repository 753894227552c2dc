"""A backend in the host: jobs in, outcomes out, whatever the backend does to its process.

What holds: every (set, instance) of a submitted job gets exactly one ``Outcome``.  A model that is refused, crashes
or hangs is bisected through the job's ``rebuild`` until the culprit stands alone; a lone suspect is asked once more
in a fresh process before it is called crashed or timed out, since heap corruption may strike several cases late.
What a dead process had not answered is asked again.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from harness.backends import wire
from harness.backends.process import BackendError, Spec, Zygote
from harness.backends.wire import Job, JobResult, Root, Task, Unblamed
from harness.core.outcome import Outcome, Status

FRAME_TASKS = 32  # tasks that travel together at most
FRAME_BYTES = 1 << 20
SURE = 4  # errors of the harness with the same words that a fresh process repeated: the next one is believed at once
SETS = 2  # data sets on which one instance may kill the process before the others are given up
BARREN = 4  # deaths in a row between cases after which the first in line is blamed, so that there is an end
EVENTS = 500  # remarks kept
PATIENCE = 4  # times the deadline at most for a process that waits for a processor
HANGS = 16  # what is known to hang at times is given this part of the deadline
LOOK = 0.25  # seconds between looks at whether the process is still there
STARTS = 3  # times in a row that no process could be had, after which nobody tries
SUSPECT = 8  # a job that has taken this part of its deadline is watched
DEATHS = (Status.CRASHED, Status.TIMED_OUT)
MEMORY = 64  # tasks that a process served last, told where it died or went wrong
HISTORY, HISTORY_CASES = 1024, 2048  # tasks remembered, and instances in them: answers are judged some time later
TRIM = 64  # frames after which the runtime's chatter is looked at
DEPTH = 2  # frames under way: one being worked on, one waiting in the socket


class BackendHandle:
    """One backend with one serving process, started when first needed.

    deadline: seconds for one model, load and all sets, in which the process waits for a processor not counted.
    recycle: a fresh process after so many tasks, or as many as the backend asks for.  rss_limit: or above so much
    resident memory.
    beside: what its author should know of outputs that nobody asked for.  events: the latest remarks on deaths.
    stats: counts of tasks, frames, deaths, spawns, splits, timeouts.
    """

    def __init__(self, spec: Spec, *, deadline: float = 20.0, recycle: int = 50_000, rss_limit: int = 2 << 30) -> None:
        self.spec, self.deadline, self.recycle, self.rss_limit = spec, deadline, recycle, rss_limit
        self.name = spec.name
        self.beside = ""
        self.events: list[str] = []
        self.stats: Counter[str] = Counter()
        self._zygote: Zygote | None = None
        self._hello: dict[str, Any] = {}
        self._channel: wire.Channel | None = None
        self._pid = 0
        self._queue: deque[Task] = deque()
        self._flying: dict[int, deque[Task]] = {}  # frame number -> tasks not answered yet, in order
        self._done: deque[JobResult] = deque()
        self._ids = itertools.count(1)
        self._left = 0  # tasks until the process gives way to a fresh one
        self._history: deque[tuple[int, Task]] = deque()  # number of the process, what it served
        self._remembered = 0  # instances in it
        self._rss = 0
        self._fresh = False  # a process that has not been asked anything yet
        self._spoilt = False  # one that was asked what may damage it, or in which the harness itself failed
        self._repeated: Counter[str] = Counter()  # words of harness errors that a fresh process gave again
        self._watched: tuple[int, int, float, float | None] = (0, 0, 0.0, None)  # batch, job, its seconds, starved ones
        self._heard = self._looked = 0.0  # when it was last sent something or answered; when one looked for it
        self._starts = 0  # processes asked for since one was had
        self._why = ""  # none could be had
        self._barren = 0  # deaths in a row that no case can be blamed for
        self._burst = FRAME_TASKS  # tasks per frame: few after a death, since what flies has to be asked again

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> dict[str, Any]:
        """Import the runtime in its process; what it says of itself.  Raises BackendError."""
        if self._zygote is None:
            self._zygote = Zygote(self.spec)
        self._hello = self._zygote.hello
        return self._hello

    @property
    def hello(self) -> dict[str, Any]:
        """name, version, formats, pack, acc, flushes, python, numpy, info."""
        return self._hello or self.start()

    def another(self) -> BackendHandle:
        """A second handle of the same backend, which is known already: it need not start to be asked who it is."""
        out = BackendHandle(self.spec, deadline=self.deadline, recycle=self.recycle, rss_limit=self.rss_limit)
        out._hello = self.hello
        return out

    @property
    def processor(self) -> str:
        """What its processor offers, and the name of an emulated one; empty where that is not told."""
        words, emulated = " ".join(self.hello.get("cpu") or ()), self.spec.place.cpu
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
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None

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
            self._done.append(JobResult(job, [[] for _ in range(r)]))
            return
        self._queue.append(Task(root, list(range(k)), list(range(r)), job.model))
        self.pump(0.0)

    @property
    def pending(self) -> int:
        """Tasks queued or under way."""
        return len(self._queue) + sum(len(q) for q in self._flying.values())

    def collect(self, wait: bool = False) -> list[JobResult]:
        """Finished jobs, in the order in which they finished; with ``wait`` all that were submitted."""
        self.pump(0.0)
        while wait and self.pending:
            self.pump(0.25)
        out = list(self._done)
        self._done.clear()
        return out

    def run(self, jobs: Iterable[Job]) -> list[JobResult]:
        """Submit and collect; results in the order of the jobs."""
        jobs = list(jobs)
        for job in jobs:
            self.submit(job)
        order = {id(job): i for i, job in enumerate(jobs)}
        return sorted(self.collect(wait=True), key=lambda r: order.get(id(r.job), -1))

    def prior_models(self, asked: Callable[[Task], bool]) -> list[Task]:
        """What the process had served when it answered the latest task of that kind, the latest last; as much of it as
        is still remembered."""
        for i in range(len(self._history) - 1, -1, -1):
            number, task = self._history[i]
            if asked(task):
                return self._served_by(number, i)
        return []

    def _remember(self, task: Task) -> None:
        self._history.append((self.stats["spawns"], task))
        self._remembered += len(task.instances)
        while len(self._history) > HISTORY or self._remembered > HISTORY_CASES:
            self._remembered -= len(self._history.popleft()[1].instances)

    def _served_by(self, number: int, end: int) -> list[Task]:
        """The latest tasks that a process served, of the first ``end`` in the history."""
        return [t for n, t in itertools.islice(self._history, end) if n == number][-MEMORY:]

    # -- the machine --------------------------------------------------------------------------------------------

    def pump(self, timeout: float) -> None:
        """Send what can be sent, take what has come, look after the dead; waits at most ``timeout`` seconds."""
        self._feed()
        channel = self._channel
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
        assert self._zygote is not None
        return self._zygote.gone(self._pid)

    def _overdue(self) -> bool:
        assert self._zygote is not None
        batch, job, _, phase, seconds = self._zygote.progress()
        flying = self._flying.get(batch, ()) if phase in ("load", "run") else ()
        task = next((t for t in flying if t.id == job), None)
        if task is None:  # it is between two tasks, where nobody stays for long
            return time.monotonic() - self._heard > PATIENCE * self.deadline
        limit = self.deadline * (2 if task.alone else 1) / (HANGS if task.root.job.hangs else 1)
        if seconds <= limit / SUSPECT:
            return False
        if self._watched[:2] != (batch, job):
            self._watched = batch, job, seconds, self._zygote.starved_seconds(self._pid)
        if seconds <= limit:
            return False
        # On a loaded machine a process may have had little of that time: what it waited for is given to it.
        _, _, since, before = self._watched
        now = self._zygote.starved_seconds(self._pid)
        starved = 0.0 if now is None or before is None else now - before
        watched_late = since - limit / SUSPECT
        return seconds - starved - watched_late > limit or seconds > PATIENCE * limit

    def _feed(self) -> None:
        while self._queue and len(self._flying) < DEPTH:
            if self._repeated[self._queue[0].doubt] >= SURE:
                self._queue[0].alone = False
            alone = self._queue[0].alone
            stale = self._stale()
            if self._flying and (alone or stale or any(t.alone for q in self._flying.values() for t in q)):
                return
            if stale or (alone and not self._fresh):
                self._drop(kill=True)
            if self._channel is None:
                try:
                    self._spawn()
                except BackendError as e:
                    self._lost(str(e).removeprefix(f"{self.name}: "))
                    return
            tasks: list[Task] = []
            size = 0
            while self._queue and len(tasks) < min(self._burst, self._left) and size < FRAME_BYTES:
                if self._queue[0].alone and tasks:
                    break
                task = self._queue.popleft()
                tasks.append(task)
                size += len(task.model.data)
                self._spoilt = task.root.job.quarantine
                if task.alone or self._spoilt:
                    break
            self._left -= len(tasks)
            self._send(tasks)

    def _stale(self) -> bool:
        return self._channel is not None and (self._spoilt or self._left <= 0 or self._rss > self.rss_limit)

    def _spawn(self) -> None:
        """Raises BackendError where it can be had no more."""
        if self._starts >= STARTS:
            raise BackendError(self._why)
        self._starts += 1
        self.start()
        assert self._zygote is not None
        used = not self._zygote.forks and self.stats["spawns"]
        if used or self._zygote.process.poll() is not None:
            self._anew()
        self._zygote.clear_log()
        try:
            self._channel, self._pid = self._zygote.spawn()
        except BackendError as e:
            self._remark(f"{e}; started anew")
            self._channel, self._pid = self._anew().spawn()
        self._starts = 0
        wanted = self.hello["recycle"]
        self._left, self._rss = self.recycle if wanted is None else min(self.recycle, max(1, int(wanted))), 0
        self._fresh, self._spoilt = True, False
        self.stats["spawns"] += 1

    def _anew(self) -> Zygote:
        """Another zygote; the one before is kept, closed, where none can be had: what it said of itself stands."""
        assert self._zygote is not None
        self._zygote.close()
        self._zygote = Zygote(self.spec)
        return self._zygote

    def _lost(self, why: str) -> None:
        """No process can be had: what is left to ask has crashed."""
        self._why = why
        outcome = Outcome(Status.CRASHED, None, "start", f"cannot be started again: {why}")
        while self._queue:
            task = self._queue.popleft()
            for r in task.sets:
                self._finish(task.root, r, task.instances, [outcome] * len(task.instances))

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
        assert self._channel is not None
        try:
            self._channel.send(header, w)
        except (BrokenPipeError, ConnectionError):
            self._channel.closed = True  # pump finds it and asks again

    def _answers(self, header: dict[str, Any], payload: memoryview) -> None:
        self._heard = time.monotonic()
        flying = self._flying.get(header["batch"])
        if flying is None:
            return
        self._rss = header.get("rss", 0)
        for rows in wire.answered(flying, header, payload):
            task = flying.popleft()
            self._remember(task)
            self._settle(task, rows)
        if not self.beside:
            self.beside = next((f["beside"] for a in header["answers"] for f in a["sets"] if "beside" in f), "")
        if not flying:
            del self._flying[header["batch"]]
            self._burst = min(FRAME_TASKS, 2 * self._burst)
            self._barren = 0
        if self.stats["frames"] % TRIM == 0:
            assert self._zygote is not None
            self._zygote.trim_log()

    # -- outcomes -----------------------------------------------------------------------------------------------

    def _settle(self, task: Task, rows: Sequence[list[Outcome] | dict[str, Any]]) -> None:
        """Take the answered sets of a task; a set in which the model failed is taken apart."""
        failed: list[int] = []
        why: dict[str, Any] = {}
        doubtful: list[int] = []
        why_doubted: dict[str, Any] = {}
        for r, row in zip(task.sets, rows, strict=True):
            if isinstance(row, dict) and self._doubts(task, row):
                doubtful.append(r)
                why_doubted = row
            elif isinstance(row, list):
                self._finish(task.root, r, task.instances, row)
            elif len(task.instances) == 1 or task.root.job.rebuild is None:
                together = len(task.instances)
                self._finish(task.root, r, task.instances, [_failure(row, together) for _ in task.instances])
            else:
                failed.append(r)
                why = row
        if failed:
            self._split(Task(task.root, task.instances, failed, task.model), failed, _failure(why, 1))
        if doubtful:
            again = Task(task.root, task.instances, doubtful, task.model, alone=True, doubt=_words(why_doubted))
            self._queue.appendleft(again)

    def _doubts(self, task: Task, form: dict[str, Any]) -> bool:
        """Is a failure to be asked again in a fresh process?  An error of the harness inside the worker is: something
        that the process served before may have broken what the harness uses there.  The process serves nobody else."""
        if form["kind"] != Status.HARNESS_ERROR.value:
            return False
        words = _words(form)
        if self._repeated[words] >= SURE:
            return False
        self._spoilt = True
        if task.alone:
            self._repeated[words] += 1
            return False
        self._remark(f"{form['message']}; asked once more in a fresh process")
        return True

    def _finish(self, root: Root, r: int, instances: Sequence[int], outcomes: Sequence[Outcome]) -> None:
        row = root.outcomes[r]
        for k, outcome in zip(instances, outcomes, strict=True):
            assert row[k] is None, "an instance was answered twice"
            row[k] = outcome
        root.left -= len(instances)
        if not root.left:
            done = JobResult(root.job, root.outcomes, root.unblamed, root.masked)  # type: ignore[arg-type]
            self._done.append(done)

    def _split(self, task: Task, failed: list[int], outcome: Outcome) -> None:
        """Two smaller models instead of one that failed on some sets; the message may name the culprit, else halves."""
        self.stats["splits"] += 1
        self._note(task, failed, outcome)
        suspects = _named(task, outcome.message)
        if suspects and len(suspects) < len(task.instances):
            parts = [suspects, [k for k in task.instances if k not in set(suspects)]]
        else:
            half = len(task.instances) // 2
            parts = [task.instances[:half], task.instances[half:]]
        made = []
        for part in parts:
            assert task.root.job.rebuild is not None
            try:
                made.append(Task(task.root, part, list(task.sets), task.root.job.rebuild(part)))
            except Exception as e:
                text = f"rebuilding the model of {len(part)} instances failed: {type(e).__name__}: {e}"
                for r in task.sets:
                    unbuilt = [Outcome(Status.HARNESS_ERROR, None, "build", text) for _ in part]
                    self._finish(task.root, r, part, unbuilt)
        self._queue.extendleft(reversed(made))

    # -- death --------------------------------------------------------------------------------------------------

    def _reap(self, kill: bool = False) -> str:
        assert self._zygote is not None
        return self._zygote.reap(self._pid, kill)

    def _drop(self, kill: bool = False) -> None:
        """Let the serving process go (it is idle)."""
        if self._channel is not None and self._zygote is not None:
            self._channel.close()
            self._zygote.reap(self._pid, kill)
        self._channel = None

    def _remark(self, text: str) -> None:
        self.events.append(f"{self.name}: {text}")
        del self.events[:-EVENTS]

    def _died(self, how: str, timed_out: bool = False) -> None:
        """The process is gone: find whom it was working for, ask everything else again."""
        assert self._channel is not None and self._zygote is not None
        self._channel.close()
        self._channel = None
        self.stats["deaths"] += 1
        self._burst = 2
        _, job, index, phase, seconds = self._zygote.progress()
        orphans = [t for q in self._flying.values() for t in q]
        self._flying.clear()
        culprit = next((t for t in orphans if t.id == job and phase in ("load", "run")), None)
        if culprit is None and orphans:
            self._barren += 1
            if self._barren >= BARREN:
                culprit, phase, seconds = orphans[0], "start", time.monotonic() - self._heard  # it has not begun
            else:
                self._remark(f"{how} between cases; {len(orphans)} were asked again")
                orphans[0].alone = len(orphans[0].instances) == 1
        status = Status.TIMED_OUT if timed_out else Status.CRASHED
        message = f"no answer within {seconds:.1f} s in {phase}" if timed_out else f"{how} (in {phase})"
        again = [t for t in orphans if t is not culprit]
        if culprit is not None:
            at = next(i for i, t in enumerate(orphans) if t is culprit)
            for t in orphans[:at]:  # served, but the answers are lost
                self._remember(t)
            again = self._blame(culprit, status, message, phase, index) + again
        self._queue.extendleft(reversed(again))

    def _blame(self, task: Task, status: Status, message: str, phase: str, index: int) -> list[Task]:
        """Narrow a death down: to one instance, then to one set, then once more alone; returns what to ask again."""
        outcome = Outcome(status, None, phase, message)
        failed = [task.sets[index]] if phase == "run" else task.sets
        if len(task.instances) > 1:
            if task.root.job.rebuild is not None:
                self._split(task, failed, outcome)
                return []
        elif phase == "run" and len(task.sets) > 1:
            return self._blame_set(task, failed[0], outcome)
        if not task.alone:
            self._suspect(task, failed, outcome)
            task.alone = True
            return [task]
        for r in task.sets:
            self._finish(task.root, r, task.instances, [outcome] * len(task.instances))
            task.root.deaths.update(task.instances)
        return []

    def _suspect(self, task: Task, failed: list[int], outcome: Outcome) -> None:
        """A lone instance that seems to have killed its process is asked again."""
        self._remark(f"{outcome.message}; asked once more alone")
        self._note(task, failed, outcome)

    def _note(self, task: Task, failed: list[int], outcome: Outcome) -> None:
        dead = outcome.status in DEATHS
        prior_models = self._served_by(self.stats["spawns"], len(self._history)) if dead else []
        task.root.failures.append(Unblamed(task.instances, failed, outcome, prior_models))

    def _blame_set(self, task: Task, bad: int, outcome: Outcome) -> list[Task]:
        """One instance died on one of its sets.  Once that is certain of the instance the next such set needs no second
        look, and from ``SETS`` deaths on the rest is not asked any more: a death costs more than all other sets.  The
        second look is at the sets before it too, since it may take what the process kept of those."""
        root, k = task.root, task.instances[0]
        at = task.sets.index(bad)
        before, after = task.sets[:at], task.sets[at + 1 :]
        out = []
        if root.deaths[k] or task.alone:
            out = [Task(root, task.instances, before, task.model)] if before else []
            self._finish(root, bad, [k], [outcome])
            root.deaths[k] += 1
        else:
            self._suspect(task, [bad], outcome)
            out.append(Task(root, task.instances, [*before, bad], task.model, alone=True))
        if after and root.deaths[k] >= SETS:
            unasked = replace(outcome, message=f"not asked: {outcome.message} on other data")
            for r in after:
                self._finish(root, r, [k], [unasked])
        elif after:
            out.append(Task(root, task.instances, after, task.model))
        return out


def _failure(form: dict[str, Any], count: int) -> Outcome:
    shared = f" (one of {count} in its model)" if count > 1 else ""
    return Outcome(Status(form["kind"]), None, form["phase"], form["message"] + shared)


def _words(form: dict[str, Any]) -> str:
    """What two failures of one kind have in common."""
    return re.sub(r"\d+", "#", form["message"])


def _named(task: Task, message: str) -> list[int]:
    """Instances of which a name occurs in the message: input, output or (``meta["nodes"]``) node names."""
    words = set(re.findall(r"[\w.:/-]+", message))
    words |= {part for w in words for part in w.split("_")}  # runtimes derive names of their own from ours
    words.discard("")
    nodes = task.model.meta.get("nodes") or [[]] * len(task.instances)
    out = []
    for i, k in enumerate(task.instances):
        names = {x[0] for x in task.model.inputs[i]} | set(task.model.outputs[i]) | set(nodes[i])
        if words & names:
            out.append(k)
    return out


def wait_all(handles: Sequence[BackendHandle], timeout: float = 0.25) -> None:
    """Wait until one of several backends has something, or the time is up."""
    waiting = [h for h in handles if h.pending]
    channels = [h._channel for h in waiting if h._channel is not None]
    if channels:
        wire.wait(channels, timeout)
    elif waiting:
        time.sleep(0.001)
    for h in waiting:
        h.pump(0.0)
