"""Limits on what an instance may ask of the host: memory that the machine has, and time for the reference."""

from __future__ import annotations

import atexit
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from time import process_time
from types import FrameType
from typing import Any

from harness.core.errors import RuleError

SECONDS = 20.0  # of processor time, for one instance
TICK = 0.25  # of processor time, between two looks at how long an evaluation has taken
AGAIN = 1.0  # the error is raised again after so long, where somebody caught it and went on


class _Timed:
    """Inside, what takes more than ``SECONDS`` of this process's own processor time raises RuleError "fits-time".

    Time in which the process waits for a processor does not count, so a loaded machine gives the same answer.  Python
    code is stopped.  A native kernel is stopped when it returns.  Only the main thread can be stopped; in others there
    is no deadline.  Contexts nest: the outermost counts.

    To set an alarm costs as much as a short evaluation, and so does asking for the processor time.  So the alarm goes
    on ticking from one context to the next.  The first tick in a context starts its clock, which gives it up to one
    ``TICK`` more; a limit of its own counts from the start.  The second tick in a row without any context puts the
    alarm away.
    """

    __slots__ = ("_before", "_began", "_depth", "_idle", "_limit", "_ticking")

    def __init__(self) -> None:
        self._depth = 0
        self._began: float | None = None  # processor time at which the clock of the last context started
        self._idle = False  # has a tick seen no context since the last one?
        self._ticking = False
        self._limit: float | None = None  # of the context that is open, where it has one of its own

    def __enter__(self) -> None:
        if get_ident() != _main_thread:
            return
        if self._depth == 0:
            self._began = self._limit = None
            self._idle = False
            if not self._ticking:
                self._start()
        self._depth += 1

    def __exit__(self, *why: Any) -> None:
        if get_ident() == _main_thread:
            self._depth -= 1

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """The context with a limit of its own, for what may be given up.  The outermost context's counts."""
        with self:
            if self._depth == 1:
                self._began, self._limit = process_time(), seconds
            yield

    def _start(self) -> None:
        self._before = signal.signal(signal.SIGVTALRM, self._tick)
        signal.setitimer(signal.ITIMER_VIRTUAL, TICK, TICK)
        self._ticking = True

    def stop(self) -> None:
        """Put the alarm away."""
        if self._ticking:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, self._before)
            self._ticking = False

    def _tick(self, _: Any, frame: FrameType | None) -> None:
        if self._depth == 0:
            if self._idle:
                self.stop()
            self._idle = True
            return
        now, limit = process_time(), SECONDS if self._limit is None else self._limit
        if self._began is None:
            self._began = now
        if now - self._began >= limit and (frame is None or frame.f_code is not _Timed.__exit__.__code__):
            self._began = now - limit + AGAIN
            raise RuleError("fits-time", f"expected what the reference evaluates within {limit:g} s of processor time")


def _forked() -> None:
    """A forked process has no alarm, and its only thread is its main thread."""
    global _main_thread, _statm
    _main_thread = get_ident()
    if _statm is not None:  # it tells of the parent
        os.close(_statm)
        _statm = None
    timed.stop()


_main_thread = threading.main_thread().ident
timed = _Timed()
atexit.register(timed.stop)  # else a tick would end the process, once the interpreter has put its handlers away
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


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
    global _statm
    try:
        if _statm is None:  # opening costs as much as a hundred readings
            _statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        return int(os.pread(_statm, 64, 0).split()[0]) * _PAGE
    except (OSError, ValueError, IndexError):
        return None


_statm: int | None = None
_PAGE = resource.getpagesize()


class bounded:
    """Inside, an allocation beyond what the machine has raises MemoryError, where the system lets us say so (Linux: it
    grants such an allocation, and kills the process that uses it).  room: bytes, where less is to be allowed."""

    __slots__ = ("_before", "_room")

    def __init__(self, room: int | None = None) -> None:
        self._room = room

    def __enter__(self) -> None:
        self._before: tuple[int, int] | None = None
        mapped = _mapped() if sys.platform == "linux" else None
        if mapped is None:
            return
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        end = mapped + (available() if self._room is None else self._room)
        ends = [n for n in (soft, hard, end) if n != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_AS, (min(ends), hard))
        self._before = soft, hard

    def __exit__(self, *why: Any) -> None:
        if self._before is not None:
            resource.setrlimit(resource.RLIMIT_AS, self._before)
