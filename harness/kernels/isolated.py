"""Runs a kernel in a forked process of its own, so that a crash or a hang costs one instance.

A fork keeps everything that a callable refers to, such as closures and handles of libraries.  It does not keep threads,
and most GPU runtimes do not survive it.  ``safe`` returns whether isolation is the default for a device.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from harness.core.outcome import Outcome, Status
from harness.kernels.call import Call, Give, called
from harness.workers.worker import die_with, ending


def safe(device: Any) -> bool:
    """Does a kernel with operands there survive a fork?  NumPy's and torch's on the CPU do, on Linux."""
    return sys.platform == "linux" and device in (None, "torch", "torch:cpu")


class Isolated:
    """Answers calls in a child process, which is started when first needed and after each death.

    deadline: seconds for one call."""

    def __init__(self, kernel: Callable[..., Any], give: Give, deadline: float) -> None:
        self.kernel, self.give, self.deadline = kernel, give, deadline
        self._pid = 0
        self._pipe: Connection[Any, Any] | None = None

    def __call__(self, call: Call) -> Outcome:
        """What the kernel did with a call."""
        if self._pipe is None:
            self._start()
        assert self._pipe is not None
        try:
            self._pipe.send(call)
            if not self._pipe.poll(self.deadline):
                self.close()
                return Outcome(Status.TIMED_OUT, None, "run", f"no answer within {self.deadline:g} s in run")
            answer: Outcome = self._pipe.recv()
            return answer
        except (EOFError, ConnectionError):
            return Outcome(Status.CRASHED, None, "run", f"{ending(self.close(kill=False))} (in run)")

    def _start(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        here = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads: ``safe`` says where
            pid = os.fork()
        if pid == 0:
            try:
                ours.close()
                die_with(here)
                self._serve(theirs)
            finally:
                os._exit(0)
        theirs.close()
        self._pid, self._pipe = pid, ours

    def _serve(self, pipe: Connection[Any, Any]) -> None:
        """The child: answers until nobody asks any more."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        faulthandler.disable()  # pytest's would print a trace for each death
        if "torch" in sys.modules:  # the pool of threads is gone, and would be waited for
            sys.modules["torch"].set_num_threads(1)
        while True:
            try:
                call = pipe.recv()
            except EOFError:
                return
            pipe.send(called(self.kernel, call, self.give))

    def close(self, kill: bool = True) -> int:
        """End the child; how it ended, as ``os.waitpid`` tells it."""
        if self._pipe is None:
            return 0
        self._pipe.close()
        self._pipe = None
        if kill:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        return os.waitpid(self._pid, 0)[1]
