"""Has a serving process been at one model for longer than its deadline?  And who has an answer first?"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.workers import wire
from harness.workers.process import Zygote
from harness.workers.wire import Task

DEADLINE = 20.0  # seconds for one model
GROWTH = 256 << 20  # bytes that a process may grow by
PATIENCE = 4  # times the deadline at most for a process that waits for a processor
HANGS = 16  # what is known to hang at times is given this part of the deadline
SUSPECT = 8  # a job that has taken this part of its deadline is watched


@dataclass(frozen=True)
class Limits:
    """Limits on the processes of one backend.

    deadline: seconds for one model, load and all sets; time in which the process waits for a processor does not count.
        None: that of its place, else DEADLINE.
    recycle: a fresh process after so many tasks, or after as many as the backend asks for.
    growth: also a fresh process once resident memory grew by so many bytes since the first answer.
    until: by the monotonic clock.  What is not answered then is given up with TimeIsUp.
    """

    deadline: float | None = None
    recycle: int = 50_000
    growth: int = GROWTH
    until: float | None = None

    @property
    def left(self) -> float | None:
        """Seconds that are left, None without an end."""
        return None if self.until is None else max(0.0, self.until - time.monotonic())


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


class Working(Protocol):
    """A backend in the host: see ``harness.workers.pool.BackendHandle``."""

    channel: wire.Channel | None

    @property
    def pending(self) -> int: ...

    def pump(self, timeout: float) -> Any: ...


def wait_all(handles: Sequence[Working], timeout: float = 0.25) -> None:
    """Wait until one of several backends has something, or the time is up."""
    waiting = [h for h in handles if h.pending]
    channels = [h.channel for h in waiting if h.channel is not None]
    if channels:
        wire.wait(channels, timeout)
    elif waiting:
        time.sleep(0.001)
    for h in waiting:
        h.pump(0.0)
