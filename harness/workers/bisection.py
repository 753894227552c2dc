"""Which instance of a failed model is to blame: jobs taken apart, and their outcomes put together."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from harness.core.outcome import Outcome, Status
from harness.workers.history import History
from harness.workers.wire import JobResult, Root, Task, Unblamed

SURE = 4  # errors of the harness with the same words that a fresh process repeated: the next one is believed at once
SETS = 2  # data sets on which one instance may kill the process before the others are given up
DEATHS = (Status.CRASHED, Status.TIMED_OUT)
BARREN = 4  # deaths in a row between cases after which the first in line is blamed, so that there is an end


class Bisection:
    """The tasks that a backend has still to serve, and the outcomes of those that it served.

    queue: tasks not sent yet.  done: finished jobs.
    history: what the processes served.
    spoilt: the process serves nothing more, since it was given what may damage it, or the harness itself failed in it.
    remark: takes a remark on a death.
    stats: counts; "spawns" is the number of the process at work.
    """

    def __init__(self, stats: Counter[str], remark: Callable[[str], None]) -> None:
        self.stats, self.remark = stats, remark
        self.queue: deque[Task] = deque()
        self.done: deque[JobResult] = deque()
        self.history = History()
        self.spoilt = False
        self.barren = 0  # deaths in a row that no case can be blamed for
        self._repeated: Counter[str] = Counter()  # words of harness errors that a fresh process gave again

    def next(self) -> Task:
        """The first task of the queue, which stays there.  It need not be alone where its doubt is settled."""
        task = self.queue[0]
        if self._repeated[task.doubt] >= SURE:
            task.alone = False
        return task

    def served(self, task: Task) -> None:
        self.history.add(self.stats["spawns"], task)

    def give_up(self, outcome: Outcome) -> None:
        """The same outcome for all that is left."""
        while self.queue:
            task = self.queue.popleft()
            for r in task.sets:
                self._finish(task.root, r, task.instances, [outcome] * len(task.instances))

    def settle(self, task: Task, rows: Sequence[list[Outcome] | dict[str, Any]]) -> None:
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
            self.queue.appendleft(again)

    def _doubts(self, task: Task, form: dict[str, Any]) -> bool:
        """Is a failure to be asked again in a fresh process?  An error of the harness inside the worker is: something
        that the process served before may have broken what the harness uses there.  The process serves nobody else."""
        if form["kind"] != Status.HARNESS_ERROR.value:
            return False
        words = _words(form)
        if self._repeated[words] >= SURE:
            return False
        self.spoilt = True
        if task.alone:
            self._repeated[words] += 1
            return False
        self.remark(f"{form['message']}; asked once more in a fresh process")
        return True

    def _finish(self, root: Root, r: int, instances: Sequence[int], outcomes: Sequence[Outcome]) -> None:
        row = root.outcomes[r]
        for k, outcome in zip(instances, outcomes, strict=True):
            assert row[k] is None, "an instance was answered twice"
            row[k] = outcome
        root.left -= len(instances)
        if not root.left:
            done = JobResult(root.job, root.outcomes, root.unblamed, root.masked)  # type: ignore[arg-type]
            self.done.append(done)
            root.outcomes, root.failures = [], []  # the history remembers the task, not what it gave

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
        self.queue.extendleft(reversed(made))

    def orphaned(self, orphans: list[Task], busy: Task | None, outcome: Outcome, index: int, how: str) -> None:
        """The process died with tasks under way: blame the one that it was busy with, ask everything else again.
        index: of the set among those of the busy task.  how: the process ended."""
        culprit = busy
        if culprit is None and orphans:
            self.barren += 1
            if self.barren >= BARREN:
                culprit = orphans[0]
            else:
                self.remark(f"{how} between cases; {len(orphans)} were asked again")
                orphans[0].alone = len(orphans[0].instances) == 1
        again = [t for t in orphans if t is not culprit]
        if culprit is not None:
            at = next(i for i, t in enumerate(orphans) if t is culprit)
            for t in orphans[:at]:  # served, but the answers are lost
                self.served(t)
            again = self._blame(culprit, outcome, index) + again
        self.queue.extendleft(reversed(again))

    def _blame(self, task: Task, outcome: Outcome, index: int) -> list[Task]:
        """Narrow a death down: to one instance, then to one set, then once more alone; returns what to ask again."""
        phase = outcome.phase
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
        self.remark(f"{outcome.message}; asked once more alone")
        self._note(task, failed, outcome)

    def _note(self, task: Task, failed: list[int], outcome: Outcome) -> None:
        dead = outcome.status in DEATHS
        prior_models = self.history.of(self.stats["spawns"]) if dead else []
        task.root.failures.append(Unblamed(task.instances, failed, outcome, prior_models))

    def _blame_set(self, task: Task, bad: int, outcome: Outcome) -> list[Task]:
        """One instance ended the process on one of its sets.

        Once that is certain of an instance, its next such set needs no second look.  After ``SETS`` deaths the other
        sets are not run: a death costs more than all of them.  The second look includes the sets before it, since the
        death may need what the process kept of those.
        """
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
