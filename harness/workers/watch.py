"""Has a serving process been at one model for longer than its deadline?"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from harness.workers.process import Zygote
from harness.workers.wire import Task

PATIENCE = 4  # times the deadline at most for a process that waits for a processor
HANGS = 16  # what is known to hang at times is given this part of the deadline
SUSPECT = 8  # a job that has taken this part of its deadline is watched


class Watch:
    """Looks at the progress page of a serving process.  deadline: seconds for one model."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self._watched: tuple[int, int, float, float | None] = (0, 0, 0.0, None)  # batch, job, its seconds, starved ones

    def overdue(self, zygote: Zygote, pid: int, flying: Mapping[int, Iterable[Task]], heard: float) -> bool:
        """flying: what is under way, by batch.  heard: when the process was last sent something or answered."""
        batch, job, _, phase, seconds = zygote.progress()
        tasks = flying.get(batch, ()) if phase in ("load", "run") else ()
        task = next((t for t in tasks if t.id == job), None)
        if task is None:  # it is between two tasks, where nobody stays for long
            return time.monotonic() - heard > PATIENCE * self.deadline
        limit = self.deadline * (2 if task.alone else 1) / (HANGS if task.root.job.hangs else 1)
        if seconds <= limit / SUSPECT:
            return False
        if self._watched[:2] != (batch, job):
            self._watched = batch, job, seconds, zygote.starved_seconds(pid)
        if seconds <= limit:
            return False
        # On a loaded machine a process may have had little of that time: what it waited for is given to it.
        _, _, since, before = self._watched
        now = zygote.starved_seconds(pid)
        starved = 0.0 if now is None or before is None else now - before
        watched_late = since - limit / SUSPECT
        return seconds - starved - watched_late > limit or seconds > PATIENCE * limit
