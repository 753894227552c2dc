"""Host side of the protocol: jobs into frames, answers into outcomes, frames over a socket that must never block."""

from __future__ import annotations

import array
import os
import select
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.core.outcome import Model, Outcome, Status, TypeOnly
from harness.workers import worker

CHUNK = 1 << 18  # read from a socket at once
Rebuild = Callable[[Sequence[int]], Model]


class Garbled(Exception):
    """What came from a worker is no answer: its backend has written to its socket, or to what it answers."""

    def __init__(self, why: Exception) -> None:
        super().__init__(f"its answer cannot be read: {type(why).__name__}: {why}")


@dataclass(slots=True)
class Job:
    """A model of K instances, and R sets of values to run through it.

    feeds: feeds[r][k] are the values of instance k in set r, in the order of ``model.inputs[k]``: arrays, lists
        (sequences), None.
    rebuild: makes the model of some of the instances, so that a failing one can be found.  Without it all instances get
        the outcome of the model.
    tag: the caller's own.
    quarantine: it may damage its process, so that process serves nothing after it.
    hangs: it is known to hang at times, so it gets a shorter deadline.
    paths: is the backend asked what computed the outputs?
    """

    model: Model
    feeds: list[list[list[Any]]]
    rebuild: Rebuild | None = None
    tag: Any = None
    quarantine: bool = False
    hangs: bool = False
    paths: bool = False


@dataclass(slots=True)
class Unblamed:
    """A failure of a model that none of its instances shows in a model of its own.  sets: in which it failed.  before:
    what its process had served, the latest last, if it died."""

    instances: list[int]
    sets: list[int]
    outcome: Outcome
    prior_models: list[Task] = field(default_factory=list)


@dataclass(slots=True)
class JobResult:
    """outcomes: outcomes[r][k] is what the backend did with instance k on set r.
    unblamed: failures that no outcome tells.
    masked: instances that passed, of a failed model that also held others which fail alone.  Whether those that passed
        fail together was not seen.
    """

    job: Job
    outcomes: list[list[Outcome]]
    unblamed: list[Unblamed] = field(default_factory=list)
    masked: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Task:
    """What is asked of a worker at once: some instances and sets of a job."""

    root: Root
    instances: list[int]
    sets: list[int]
    model: Model
    id: int = 0
    alone: bool = False  # the suspect once more, by itself in a fresh process
    doubt: str = ""  # words of the harness error for which it is asked again

    @property
    def names(self) -> list[str]:
        return [n for group in self.model.outputs for n in group]


@dataclass(slots=True)
class Root:
    """A job while parts of it are under way."""

    job: Job
    outcomes: list[list[Outcome | None]]
    left: int
    deaths: Counter[int] = field(default_factory=Counter)  # instance -> sets on which the process certainly died
    failures: list[Unblamed] = field(default_factory=list)  # what was asked again in parts or alone, in this order

    @property
    def unblamed(self) -> list[Unblamed]:
        """The failures of which every instance came out with a value; of those within each other the smallest."""
        out: list[Unblamed] = []
        for f in reversed(self.failures):
            found = (self.outcomes[r][k] for r in f.sets for k in f.instances)
            passed = all(o is not None and o.status is Status.VALUE for o in found)
            if passed and not any(set(u.instances) <= set(f.instances) for u in out):
                out.append(f)
        return out

    @property
    def masked(self) -> list[int]:
        """Instances beside which others fail alone in the largest model that failed, where that tells nothing of them
        together: two or more, and none of them was in a failure of their own."""
        whole = max((f for f in self.failures if len(f.instances) > 1), key=lambda f: len(f.instances), default=None)
        if whole is None or self.unblamed:
            return []
        passed = [
            k
            for k in whole.instances
            if all((o := self.outcomes[r][k]) is not None and o.status is Status.VALUE for r in whole.sets)
        ]
        return passed if 1 < len(passed) < len(whole.instances) else []


def encode(tasks: Sequence[Task], batch: int) -> tuple[dict[str, Any], worker.Writer]:
    """One frame that asks for all tasks."""
    w = worker.Writer()
    put = w.put
    jobs = []
    for t in tasks:
        model = t.model
        size = w.bytes(model.data)
        specs: list[Any] = []
        for r in t.sets:
            row = t.root.job.feeds[r]
            spec = [put(v) for k in t.instances for v in row[k]]
            specs.append(None if specs and spec == specs[0] else spec)
        ins = [x[0] for group in model.inputs for x in group]
        job = {"id": t.id, "format": model.format, "model": size, "ins": ins, "outs": t.names, "specs": specs}
        if t.root.job.paths:
            job["paths"] = True
        jobs.append(job)
    return {"op": "run", "batch": batch, "jobs": jobs}, w


def outcomes(task: Task, answer: dict[str, Any], reader: worker.Reader) -> list[list[Outcome] | dict[str, Any]]:
    """Per set the outcomes of the task's instances, or the error form when the model as a whole failed."""
    if "load" in answer:
        return [answer["load"]] * len(task.sets)
    out: list[list[Outcome] | dict[str, Any]] = []
    spec: list[Any] = []
    millis = answer.get("ms", 0.0) / max(1, len(task.sets) * len(task.instances))
    value = Status.VALUE
    paths = _paths(task, answer.get("paths"))
    for form in answer["sets"]:
        if "error" in form:
            out.append(form["error"])
            continue
        spec = form.get("spec", spec)
        values = list(map(reader.get, spec))
        if worker.TypeOnly in map(type, values):
            values = [TypeOnly(v.dtype, v.shape) if type(v) is worker.TypeOnly else v for v in values]
        odd = form.get("odd", "")
        row, at = [], 0
        for k, group in enumerate(task.model.outputs):
            end = at + len(group)
            row.append(Outcome(value, values[at:end], "", odd, millis, paths[k] if paths else ""))
            at = end
        out.append(row)
    return out


def _paths(task: Task, told: Any) -> list[str]:
    """What computed each instance: of the paths of its outputs the distinct ones, in their order."""
    if not told:
        return []
    out, at = [], 0
    for group in task.model.outputs:
        end = at + len(group)
        out.append(" + ".join(dict.fromkeys(p for p in told[at:end] if p)))
        at = end
    return out


def answered(tasks: Iterable[Task], header: dict[str, Any], payload: memoryview) -> list[Any]:
    """What a frame says of the first of the tasks (see ``outcomes``), all of it read.  Raises Garbled."""
    reader, out = worker.Reader(payload), []
    try:
        for task, answer in zip(tasks, header["answers"]):
            rows = outcomes(task, answer, reader)
            if task.id != answer["id"] or len(rows) != len(task.sets):
                raise ValueError(f"an answer to {answer['id']}, expected one to {task.id}")
            out.append(rows)
    except Exception as e:
        raise Garbled(e) from None
    return out


def wait(channels: Sequence[Channel], seconds: float | None, writing: bool = False) -> bool:
    """Wait until one of the channels has something to read (or, ``writing``, takes something); True for the former."""
    p = select.poll()  # select.select stops at descriptor 1023
    for c in channels:
        p.register(c, select.POLLIN | (select.POLLOUT if writing else 0))
    ready = p.poll(None if seconds is None else max(1, round(seconds * 1000)))
    return any(event & ~select.POLLOUT for _, event in ready)


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends, each of which takes some frames before they are read."""
    ends = socket.socketpair()
    for sock in ends:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, 1 << 20)
    return ends


class Channel:
    """A socket to a worker.  ``send`` never deadlocks: while the peer's buffer is full, what the peer has to say is
    taken in.  ``frames`` yields what has arrived whole."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.setblocking(False)
        self._in = bytearray()
        self._room = memoryview(bytearray(CHUNK))  # to read to: new memory each time costs five times as much
        self._fds: list[int] = []
        self.closed = False

    def fileno(self) -> int:
        return self.sock.fileno()

    def send(self, header: dict[str, Any], w: worker.Writer) -> None:
        """Raises BrokenPipeError when the peer is gone."""
        head, rest, fd = worker.pack_frame(header, w.parts, w.size)
        try:
            if fd is not None:
                anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
                self._push(memoryview(head), anc)
            else:
                self._push(memoryview(b"".join([head, *rest])), [])
        finally:
            if fd is not None:
                os.close(fd)

    def _push(self, view: memoryview, anc: list[Any]) -> None:
        while len(view):
            try:
                view = view[self.sock.sendmsg([view], anc) :]
                anc = []
            except BlockingIOError:
                if wait([self], None, writing=True):
                    self.take()
                    if self.closed:
                        raise BrokenPipeError("worker is gone") from None

    def take(self) -> None:
        """Read what is there; sets ``closed`` at the end."""
        n = CHUNK
        while n == CHUNK:  # after less there is no more, but perhaps the end: the next call finds it
            try:
                n, anc, _, _ = self.sock.recvmsg_into([self._room], socket.CMSG_SPACE(16 * 4))
            except BlockingIOError:
                return
            except ConnectionError:
                self.closed = True
                return
            for _, kind, value in anc:
                if kind == socket.SCM_RIGHTS:
                    fds = array.array("i")
                    fds.frombytes(value[: len(value) - len(value) % fds.itemsize])
                    self._fds.extend(fds)
            if not n:
                self.closed = True
                return
            self._in += self._room[:n]

    def frames(self) -> Iterator[tuple[dict[str, Any], memoryview]]:
        """Whole frames so far; a frame that a dying worker left half written stays behind.  Raises Garbled."""
        while True:
            try:
                frame = self._frame()
            except (ValueError, OSError) as e:
                raise Garbled(e) from None
            if frame is None:
                return
            yield frame

    def _frame(self) -> tuple[dict[str, Any], memoryview] | None:
        start = worker.HEAD.size
        if len(self._in) < start:
            return None
        n_text, flags, size = worker.unhead(self._in)
        if flags & 1:
            if not self._fds:
                return None
            del self._in[:start]
            return worker.map_body(self._fds.pop(0), n_text, size)
        middle, end = start + n_text, start + n_text + size
        if len(self._in) < end:
            return None
        if len(self._in) == end:  # most often: then nothing has to be copied
            frame, self._in = memoryview(self._in), bytearray()
        else:
            frame = memoryview(bytes(self._in[:end]))
            del self._in[:end]
        return worker.text_of(frame[start:middle]), frame[middle:].toreadonly()

    def close(self) -> None:
        self.sock.close()
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
