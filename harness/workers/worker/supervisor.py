"""Runs one command and ends all processes that descend from it.  Stand-alone: needs nothing but Python.

Started by ``harness.workers.process`` as ``python -I -S supervisor.py FD COMMAND...``, one for each worker process.
FD is a socket whose other end the host holds.  The supervisor answers "pid N", or "errno N" if the command cannot be
started.  It ends every descendant in four cases:

* the command ends,
* the host closes its end, as the system does when the host dies in any way,
* its own parent changes,
* SIGTERM.

Then it ends as the command did.

On Linux it is a child subreaper: a process whose parent ends becomes its child, whatever session, group or environment
that process has.  So no descendant is left once the supervisor has no children.  If the supervisor itself is killed, a
parent-death signal ends the command.  On other systems it kills the process group of the command.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import socket
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
LOOK = 1.0  # seconds between looks at whether the parent is still the same
PAUSE = 0.05  # seconds at most between two rounds of killing


def prctl(option: int, value: int) -> bool:
    """prctl(2); False where the system has no such call."""
    try:
        return ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0) == 0
    except (AttributeError, OSError):
        return False


def die_with(parent: int) -> None:
    """Let the system kill this process when its parent ends; end at once if ``parent`` is the parent no more."""
    if prctl(PR_SET_PDEATHSIG, signal.SIGKILL) and os.getppid() != parent:
        os._exit(1)


def descendants() -> list[int]:
    """Process ids below this process; none where there is no /proc."""
    below: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as f:
                    parent = int(f.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):  # it has ended meanwhile
                continue
            below.setdefault(parent, []).append(int(name))
    out, todo = [], [os.getpid()]
    while todo:
        found = below.get(todo.pop(), [])
        out += found
        todo += found
    return out


class Supervisor:
    """One command and what descends from it."""

    def __init__(self, command: list[str], host: socket.socket) -> None:
        self.host, self.parent = host, os.getppid()
        self.status: int | None = None
        self.child = 0
        self.stop = False
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        self.woken, wakes = socket.socketpair()
        for end in (self.woken, wakes):
            end.setblocking(False)
        self.wakes = wakes
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._term)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self.command = command

    def _term(self, *_: object) -> None:
        self.stop = True

    def start(self) -> int:
        """Start the command in a session of its own; 0, or the number of the error that prevented it."""
        known, tells = os.pipe()  # closed by exec
        here = os.getpid()
        self.child = os.fork()
        if self.child == 0:
            try:
                for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD):
                    signal.signal(number, signal.SIG_DFL)
                os.setsid()
                die_with(here)
                self.host.close()
                os.execvp(self.command[0], self.command)
            except OSError as e:
                os.write(tells, str(e.errno).encode())
            finally:
                os._exit(127)
        os.close(tells)
        error = os.read(known, 16)
        os.close(known)
        return int(error or 0)

    def watch(self) -> None:
        """Until the command has ended or is to end."""
        poll = select.poll()
        for end in (self.host, self.woken):
            poll.register(end, select.POLLIN)
        while True:
            self.reap()
            if self.status is not None or self.stop or os.getppid() != self.parent:
                return
            for fd, _ in poll.poll(LOOK * 1000):
                if fd == self.host.fileno():  # the host says nothing: this is its end
                    return
                with contextlib.suppress(BlockingIOError):
                    self.woken.recv(64)

    def reap(self) -> bool:
        """Take the status of every child that has ended; are others left?"""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.child:
                self.status = status

    def kill(self) -> None:
        """End all descendants; returns when there is none."""
        pause = 0.001
        while self.reap():
            found = descendants()
            if not found and self.status is None:  # no /proc
                with contextlib.suppress(OSError):
                    os.killpg(self.child, signal.SIGKILL)
            for pid in found:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(pause)
            pause = min(PAUSE, 2 * pause)

    def end(self) -> None:
        """End as the command did."""
        status = self.status or 0
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            os._exit(128 + number)  # a signal that ends nobody
        os._exit(os.WEXITSTATUS(status))


def main() -> None:
    host = socket.socket(fileno=int(sys.argv[1]))
    host.set_inheritable(False)
    it = Supervisor(sys.argv[2:], host)
    error = it.start()
    with contextlib.suppress(OSError):  # the host has gone: the next look tells
        host.sendall(b"errno %d" % error if error else b"pid %d" % it.child)
    it.watch()
    it.kill()
    it.end()


if __name__ == "__main__":
    main()
