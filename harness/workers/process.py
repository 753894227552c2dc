"""Worker processes of one backend: the warm zygote, its serving children, their shared page and log."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from harness.core.errors import FormatError
from harness.workers import worker
from harness.workers.info import declared
from harness.workers.spec import BackendError, Spec
from harness.workers.wire import Channel, pair

WORKER = Path(__file__).with_name("worker")  # the folder that runs in the process
GRACE = 2.0  # seconds to end in, for a zygote that nobody needs any more
PARTING = 0.1  # for a serving process whose socket has closed
START_LIMIT = 180.0  # seconds for importing the runtime, on a loaded machine
LONG_START = 20.0  # after so many one is told whom one waits for
LOG = logging.getLogger("opconform")


_QUIET = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class Zygote:
    """The process that has imported the backend.  Raises BackendError when it cannot, also within ``limit`` s."""

    def __init__(self, spec: Spec, limit: float | None = None) -> None:
        self.spec, self.limit = spec, START_LIMIT if limit is None else min(START_LIMIT, max(0.1, limit))
        command = spec.place.command()
        self.log = tempfile.TemporaryFile("w+b", buffering=0)  # noqa: SIM115  lives as long as the process
        log_fd = self.log.fileno()
        fcntl.fcntl(log_fd, fcntl.F_SETFL, os.O_APPEND)  # appended to, so that it can be cut at any time
        self.page_fd = worker.memory_file()
        os.ftruncate(self.page_fd, 4096)
        self.page = mmap.mmap(self.page_fd, 4096)
        self.forks = False
        self.mark = f"{worker.MARK}={uuid.uuid4().hex}"
        try:
            self._start(command)
            frame = self._greeting(command[-1])
            self.info = declared(spec.name, frame["greeting"], spec.claims)
            self.own_name = str(frame["greeting"]["attributes"]["name"])
        except FormatError as e:
            self.close()
            raise BackendError(f"{spec.name}: {e}") from None
        except BaseException:  # Ctrl-C too
            self.close()
            raise
        self.forks = bool(frame["fork"])

    def _start(self, command: list[str]) -> None:
        """Start the worker under its supervisor, which outlives it.  ``process`` is the supervisor, ``pid`` the worker.
        Raises BackendError."""
        self.sock, theirs = pair()
        self.hold, watched = socket.socketpair()
        log_fd = self.log.fileno()
        config = self.spec.config(log_fd, self.page_fd, self.mark)
        host = json.dumps({"python": sys.executable, "path": [p or os.getcwd() for p in sys.path]})
        env = {**os.environ, **_QUIET, **self.spec.environment, "OPCONFORM_HOST": host, **dict([self.mark.split("=")])}
        with theirs, watched:
            passed = (theirs.fileno(), watched.fileno(), log_fd, self.page_fd)
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    str(WORKER / "supervisor.py"),
                    str(watched.fileno()),
                    *command,
                    str(WORKER / "__main__.py"),
                    str(theirs.fileno()),
                    config,
                ],
                pass_fds=passed,
                stdin=subprocess.DEVNULL,
                stdout=log_fd,
                stderr=log_fd,
                env=env,
                start_new_session=True,
            )
        self.hold.settimeout(START_LIMIT)
        try:
            word, _, number = self.hold.recv(64).decode().partition(" ")
        except OSError as e:
            word, number = "", str(e)
        if word == "errno":
            raise BackendError(f"{self.spec.name}: cannot start {command[-1]}: {os.strerror(int(number))}")
        if word != "pid":
            raise BackendError(f"{self.spec.name}: its supervisor {number or 'ended'}: {self.tail()}")
        self.pid = int(number)

    def _greeting(self, python: str) -> dict[str, Any]:
        """What the worker says once it has imported the backend.  Raises BackendError."""
        try:
            self._await()
            frame = worker.recv_frame(self.sock)
            why = "" if frame else f"{python} gave no sign of life: {self._end()}"
        except TimeoutError:
            frame, why = None, f"{python} gave no sign of life within {self.limit:.0f} s"
        except (OSError, ValueError) as e:
            frame, why = None, f"{python} gave no sign of life: {e}"
        if frame is None or "error" in frame[0]:
            missing = frame[0].get("missing") if frame else None
            raise BackendError(f"{self.spec.name}: {frame[0]['error'] if frame else why}", missing)
        header: dict[str, Any] = frame[0]
        return header

    def _await(self) -> None:
        """Until its first word, which may be long in coming.  Raises TimeoutError and OSError."""
        self.sock.settimeout(min(LONG_START, self.limit))
        try:
            self.sock.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            if self.limit <= LONG_START:
                raise
            LOG.warning(
                "%s: still starting after %.0f s, is given up after %.0f s", self.spec.name, LONG_START, self.limit
            )
            self.sock.settimeout(self.limit - LONG_START)
            self.sock.recv(1, socket.MSG_PEEK)
        self.sock.settimeout(START_LIMIT)

    def spawn(self) -> tuple[Channel, int]:
        """A serving process: its channel and process id.  Without forks it is the zygote itself."""
        self.page[: worker.PAGE.size] = b"\0" * worker.PAGE.size
        if not self.forks:
            return Channel(self.sock), self.pid
        ours, theirs = pair()
        anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, theirs.fileno().to_bytes(4, sys.byteorder))]
        text = b'{"op":"fork"}   '
        try:
            self.sock.sendmsg([worker.HEAD.pack(len(text), 0, 0)], anc)
            self.sock.sendall(text)
            answer = worker.recv_frame(self.sock)
        except (OSError, ValueError):
            answer = None
        finally:
            theirs.close()
        if answer is None:
            ours.close()
            raise BackendError(f"{self.spec.name}: its process {self._end()}")
        return Channel(ours), answer[0]["pid"]

    def _end(self) -> str:
        """How the zygote itself came to its end; it is made to where it does not answer any more."""
        self._wait(GRACE)
        return self._ending(self._status(self._stop()))

    def _stop(self) -> int:
        """Have the supervisor end the worker and all that descends from it; its code, as ``subprocess`` tells it."""
        self.hold.close()
        self._wait(GRACE)
        if self._running():  # it was stopped, or a process below it cannot be killed
            if sys.platform != "linux":  # there the worker has a parent-death signal
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)
            self.process.kill()
        return self.process.wait()

    def gone(self, pid: int) -> bool:
        """Has a serving process ended?  One that it left may hold its socket, which then tells nothing."""
        if not self.forks:
            return self.process.poll() is not None
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            return True
        return state in "ZX"

    def reap(self, pid: int, kill: bool = False) -> str:
        """Wait for a serving process and say how it ended, with what it left in the log."""
        until = time.monotonic() + PARTING
        while not kill and not self.gone(pid):
            time.sleep(0.001)
            kill = time.monotonic() > until  # it has closed its socket and goes on
        if not self.forks:
            return self._ending(self._status(self._stop()))
        if kill:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            worker.send_frame(self.sock, {"op": "reap", "pid": pid})
            answer = worker.recv_frame(self.sock)
        except (OSError, ValueError):
            answer = None
        return self._ending(answer[0]["status"]) if answer else "died with its zygote"

    @staticmethod
    def _status(code: int) -> int:
        """What ``os.wait`` says of a process that ended with a code of ``subprocess``."""
        return -code if code < 0 else code << 8

    def _ending(self, status: int | None) -> str:
        how, tail = worker.ending(status), self.tail()
        return f"{how}: {tail}" if tail else how

    def tail(self) -> str:
        """Last lines of the runtime's own words, without Python's stack frames."""
        size = self.log.seek(0, os.SEEK_END)
        self.log.seek(max(0, size - 4000))
        lines = self.log.read().decode("utf-8", "replace").splitlines()
        drop = ("  File ", "Extension modules", "Current thread", "Thread 0x", "Binary file", "  <no Python")
        keep = [x.strip() for x in lines if x.strip() and not x.startswith(drop)]
        return " | ".join(keep[-4:])[:800]

    def trim_log(self) -> None:
        """Forget chatter; keeps the file small over a long campaign."""
        if os.fstat(self.log.fileno()).st_size > 1 << 20:
            os.ftruncate(self.log.fileno(), 0)

    def clear_log(self) -> None:
        os.ftruncate(self.log.fileno(), 0)

    def progress(self) -> tuple[int, int, int, str, float]:
        """batch, job, set, phase of the serving process, and for how many seconds it has been at that job."""
        batch, job, index, phase, start = worker.PAGE.unpack_from(self.page)
        return batch, job, index, worker.PHASES[phase], time.monotonic() - start if start else 0.0

    def starved_seconds(self, pid: int) -> float | None:
        """For how long a thread of the serving process, the one that waited longest, has been ready to run without a
        processor; None where the system does not tell."""
        try:
            delays = [p.read_text().split()[1] for p in Path(f"/proc/{pid}/task").glob("*/schedstat")]
        except (OSError, IndexError):
            return None
        return max(map(int, delays)) / 1e9 if delays else None

    def close(self) -> None:
        """End the process and everything that descends from it."""
        if self.log.closed:
            return
        process = getattr(self, "process", None)
        if process is not None:
            self.sock.close()
            if self.forks:
                self._wait(GRACE)  # it ends by itself
            self._stop()
            worker.sweep(self.mark)  # for the case that the supervisor was killed
        self.log.close()
        self.page.close()
        os.close(self.page_fd)

    def _wait(self, seconds: float) -> None:
        """Give the supervisor time to end."""
        until = time.monotonic() + seconds
        while self._running() and time.monotonic() < until:
            time.sleep(0.001)

    def _running(self) -> bool:
        return self.process.poll() is None
