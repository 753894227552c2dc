"""Limits on what an instance may ask of the host: memory that the machine has, and time for the reference."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness.core.errors import RuleError

SECONDS = 20.0  # of processor time, for one instance
AGAIN = 1.0  # the error is raised again after so long, where somebody caught it and went on


class _Timed:
    """Inside, what takes more than ``SECONDS`` of this process's own processor time raises RuleError "fits-time".

    Time in which the process waits for a processor does not count, so a loaded machine gives the same answer.  Python
    code is stopped.  A native kernel is stopped when it returns.  Only the main thread can be stopped; in others there
    is no deadline.  Contexts nest: the outermost counts.
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


def available() -> int:
    """Bytes that could still be allocated without taking them from anybody."""
    try:
        with open("/proc/meminfo") as f:
            found = next((line for line in f if line.startswith("MemAvailable:")), None)
        if found is not None:
            return int(found.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _mapped() -> int | None:
    """Bytes of address space that this process has; None where the system does not tell."""
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return None


@contextmanager
def bounded() -> Iterator[None]:
    """Inside, an allocation beyond what the machine has raises MemoryError, where the system lets us say so (Linux: it
    grants such an allocation, and kills the process that uses it)."""
    mapped = _mapped() if sys.platform == "linux" else None
    if mapped is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    ends = [n for n in (soft, hard, mapped + available()) if n != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(ends), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
