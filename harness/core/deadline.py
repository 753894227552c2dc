"""A deadline on what the reference computes, so that no instance makes the host hang."""

from __future__ import annotations

import signal
import threading
from typing import Any

from harness.core.errors import RuleError

SECONDS = 20.0  # of processor time, for one instance
AGAIN = 1.0  # the error is raised again after so long, where somebody caught it and went on


class _Timed:
    """Inside, what takes more than ``SECONDS`` of this process's own processor time raises RuleError "fits-time".

    Time in which the process waits for a processor does not count, so a loaded machine gives the same answer.  Python
    code is stopped, and so is a regular expression: the matcher of ``re`` looks for signals.  A native kernel is
    stopped when it returns.  Only the main thread can be stopped; in others there is no deadline.  Contexts nest: the
    outermost counts.
    """

    __slots__ = ("_before", "_depth")

    def __init__(self) -> None:
        self._depth = 0

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth += 1
        if self._depth == 1:
            self._before = signal.signal(signal.SIGVTALRM, self._over)
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS, AGAIN)

    def __exit__(self, *why: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if self._depth == 1:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, self._before)
        self._depth -= 1

    def _over(self, *_: Any) -> None:
        raise RuleError("fits-time", f"expected what the reference evaluates within {SECONDS:.0f} s of processor time")


timed = _Timed()
