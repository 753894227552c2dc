"""The process that imports a backend and, where it can, forks a serving child for every socket that it is given."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import importlib
import importlib.util
import json
import mmap
import os
import resource
import signal
import socket
import sys
import time
import traceback
from typing import Any

from . import memory_watch, supervisor
from .backend import named
from .frames import ENCODE, memory_file, recv_frame, send_frame, text_of
from .serving import Server, only

MARK = "OPCONFORM_PROCESS"  # in the environment of all processes of a backend, in whatever session they are
SWEEP = 2.0  # seconds at most to end those


def make_backend(config: Any) -> Any:
    """Import the backend class and create it."""
    sys.path[:0] = [p for p in config.get("path", []) if p not in sys.path]
    if config.get("file"):
        spec = importlib.util.spec_from_file_location("opconform_backend", config["file"])
        if spec is None or spec.loader is None:
            raise ImportError(f"{config['file']}: no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules["opconform_backend"] = module
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(config["module"])
    cls: Any = module
    for part in config["class"].split("."):
        cls = getattr(cls, part)
    backend = cls(**config.get("kwargs", {}))
    for need in ("formats", "version", "load", "run"):
        if not hasattr(backend, need):
            what = "a backend needs formats, version(), load(), run()"
            raise TypeError(f"{config['class']} has no {need!r}: {what}")
    return backend


def limit(config: Any, backend: Any) -> None:
    """Resource limits of a serving process: no core files, a cap on the address space (a lower one stays) or on what
    is resident."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = config.get("memory")
    if memory and getattr(backend, "memory", "") == "resident":
        memory_watch.start(memory)
    elif memory and sys.platform != "darwin":  # macOS does not enforce it
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        memory = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def ended(pid: Any) -> Any:
    """Wait for a child; its status, None where something else in this process has taken that."""
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return None


def ending(status: Any) -> str:
    """A status in words."""
    if status is None:
        return "ended, nobody can say how"
    if os.WIFSIGNALED(status):
        names = {int(n): n.name for n in signal.Signals}  # those of real time have none
        return f"killed by {names.get(os.WTERMSIG(status), os.WTERMSIG(status))}"
    return f"exited with code {os.WEXITSTATUS(status)}"


def forked_greeting(backend: Any) -> Any:
    """The greeting, asked for in a child: probing runs the runtime, and a zygote must stay untouched."""
    answer = memory_file()  # no pipe: its end would not come while a process that the backend left holds it
    here = os.getpid()
    pid = os.fork()
    if pid == 0:
        home = os.getpid()
        supervisor.die_with(here)
        try:
            out: dict[str, Any] = {"greeting": Server(backend).greeting()}
        except BaseException as e:
            out = {"error": named(e)}
        only(home)
        os.pwrite(answer, ENCODE(out).encode(), 0)
        os._exit(0)
    status = ended(pid)
    text = os.pread(answer, 1 << 20, 0)
    os.close(answer)
    return text_of(text) if text else {"error": f"its process {ending(status)} when asked for its version"}


def serve_forked(control: Any, backend: Any, config: Any, page: Any) -> None:
    """The zygote: a child per socket handed over, an exit status per child asked about."""
    while True:
        frame = recv_frame(control, with_fd=True)
        if frame is None:
            return
        header, _, fd = frame
        if header["op"] == "fork":
            here = os.getpid()
            pid = os.fork()
            if pid == 0:
                control.close()
                try:
                    supervisor.die_with(here)
                    limit(config, backend)
                    Server(backend, page, config.get("cap", 1 << 28)).serve(socket.socket(fileno=fd))
                except BaseException:
                    traceback.print_exc()  # into the log, whose end the host quotes
                    os._exit(71)
                os._exit(0)
            if fd >= 0:  # -1: none could be handed over
                os.close(fd)
            send_frame(control, {"pid": pid})
        elif header["op"] == "reap":
            send_frame(control, {"status": ended(header["pid"])})


def marked(mark: Any) -> Any:
    """Processes but this one whose environment began with ``mark``; none where the system does not tell (macOS)."""
    out, text = [], mark.encode()
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open("/proc/" + name + "/environ", "rb", buffering=0) as f:
                if text in f.readall().split(b"\0"):
                    out.append(int(name))
        except OSError:  # it has gone, or is somebody else's
            pass
    return out


def sweep(mark: Any) -> None:
    """Ends what a backend left in a session or a group of its own, and what that forks meanwhile."""
    until = time.monotonic() + SWEEP
    while time.monotonic() < until:
        found = marked(mark)
        if not found:
            return
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def last() -> None:
    """The end: threads that go on go along.  The supervisor ends the processes that a backend left."""
    atexit._run_exitfuncs()  # noqa: SLF001 - CPython has no public name for it
    os._exit(0)


def main() -> None:
    sock = socket.socket(fileno=int(sys.argv[1]))
    config = json.loads(sys.argv[2])
    log, page_fd = config["log"], config["page"]
    os.dup2(log, 1)  # a runtime's chatter must reach neither the protocol nor the terminal
    os.dup2(log, 2)
    faulthandler.enable(2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to the host
    page = mmap.mmap(page_fd, 4096)
    home = os.getpid()
    try:
        backend = make_backend(config)
        only(home)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else nobody learns how a child ended
        fork = bool(config.get("fork")) and getattr(backend, "forks", True)
        first = forked_greeting(backend) if fork else {"greeting": Server(backend).greeting()}
    except BaseException as e:
        only(home)
        missing = e.name if isinstance(e, ModuleNotFoundError) else None
        send_frame(sock, {"error": named(e), "missing": missing})
        return
    first["fork"] = fork
    send_frame(sock, first)
    if "error" in first:
        return
    if fork:
        serve_forked(sock, backend, config, page)
    else:
        limit(config, backend)
        Server(backend, page, config.get("cap", 1 << 28)).serve(sock)
