"""What the processes of a backend served, as far as it is remembered."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable

from harness.workers.wire import Task

MEMORY = 64  # tasks that a process served last, told where it died or went wrong
HISTORY, HISTORY_CASES = 1024, 2048  # tasks remembered, and instances in them: answers are judged some time later


class History:
    """Tasks in the order in which they were served, each with the number of the process that served it."""

    def __init__(self) -> None:
        self._served: deque[tuple[int, Task]] = deque()
        self._instances = 0

    def add(self, process: int, task: Task) -> None:
        self._served.append((process, task))
        self._instances += len(task.instances)
        while len(self._served) > HISTORY or self._instances > HISTORY_CASES:
            self._instances -= len(self._served.popleft()[1].instances)

    def before(self, asked: Callable[[Task], bool]) -> list[Task]:
        """What the process had served when it answered the latest task of that kind, the latest last; as much of it as
        is still remembered."""
        for i in range(len(self._served) - 1, -1, -1):
            process, task = self._served[i]
            if asked(task):
                return self.of(process, i)
        return []

    def of(self, process: int, end: int | None = None) -> list[Task]:
        """The latest tasks that a process served, of the first ``end`` that are remembered (None: all)."""
        return [t for n, t in itertools.islice(self._served, end) if n == process][-MEMORY:]
