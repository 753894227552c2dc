"""Runs jobs on a backend object, in a serving process or in the caller's."""

from __future__ import annotations

import collections.abc
import gc
import os
import resource
import struct
import sys
import time
from typing import Any

import numpy as np

from . import processor
from .arrays import TypeOnly, dtype_name, sized
from .backend import error_form, named, sayable, stated
from .frames import Reader, Writer, recv_frame, send_frame

FLUSH = 0.004  # seconds of work at most that a crash makes undone
PAGE = struct.Struct("<qqqqd")  # batch, job, set, phase; when the job began
PHASES = ("idle", "load", "run", "answer")


class Server:
    """Runs jobs on a backend object; the same code serves a socket and, without a process, a caller."""

    def __init__(self, backend: Any, page: Any = None, cap: Any = 1 << 28) -> None:
        self.backend, self.page, self.cap = backend, page, cap
        self.rejects = tuple(getattr(backend, "rejects", ()))
        self.began = 0.0
        self.batch = self.job = 0
        self.home = os.getpid()

    def greeting(self) -> dict[str, Any]:
        """What the backend declares, and where it runs: see ``harness.workers.info``, which checks it."""
        b = self.backend
        info = getattr(b, "info", None)
        facts = info() if info else {}
        if not isinstance(facts, dict):
            raise TypeError(f"info(): expected a dict, got {facts!r:.200}")
        sayable("info()", facts)
        return {
            "attributes": stated(b),
            "version": str(b.version()),
            "info()": facts,
            "cpu": processor.words(),
            "python": sys.version.split()[0],
            "numpy": np.__version__,
        }

    def mark(self, phase: Any, index: int = 0, start: bool = False) -> None:
        if self.page is not None:
            if start:
                self.began = time.monotonic()
            PAGE.pack_into(self.page, 0, self.batch, self.job, index, phase, self.began)

    def execute(self, job: Any, reader: Any, out: Any) -> Any:
        """One job -> its answer (header form); outputs go into ``out``, a Writer."""
        began = time.perf_counter()
        self.mark(1, 0, True)
        answer = {"id": job["id"], "sets": []}
        try:
            model = reader.bytes(job["model"])
            feeds = []
            specs = job["specs"]
            for r in range(len(specs)):
                spec = specs[r] if specs[r] is not None else specs[0]
                feeds.append(dict(zip(job["ins"], map(reader.get, spec))))
        except Exception as e:  # an earlier model's backend has broken what is used here
            answer["load"] = {"kind": "harness_error", "phase": "load", "message": named(e)}
            return answer
        paths = getattr(self.backend, "paths", None)
        if paths is not None:
            self.backend.asked_paths = bool(job.get("paths"))
        try:
            handle = self.backend.load(model, job["format"])
        except BaseException as e:  # a plug-in may raise anything, SystemExit too
            only(self.home)
            answer["load"] = error_form(e, "load", self.rejects)
            return answer
        only(self.home)
        last = None
        for r, feed in enumerate(feeds):
            self.mark(2, r)
            try:
                got = self.backend.run(handle, feed)
            except BaseException as e:
                only(self.home)
                answer["sets"].append({"error": error_form(e, "run", self.rejects)})
                continue
            only(self.home)
            form = self.outputs(got, job["outs"], out)
            if "spec" in form and form["spec"] == last:
                form = {}
            elif "spec" in form:
                last = form["spec"]
            answer["sets"].append(form)
        if paths is not None and job.get("paths") and any("error" not in form for form in answer["sets"]):
            answer["paths"] = told_paths(paths, handle, job["outs"])
        answer["ms"] = (time.perf_counter() - began) * 1e3
        return answer

    def outputs(self, got: Any, names: Any, out: Any) -> Any:
        if isinstance(got, (list, tuple)) and len(got) == len(names):  # a runtime that lost the names: by position
            got = dict(zip(names, got))
        if not isinstance(got, collections.abc.Mapping):
            text = f"run returned {spoken(got)}, expected a dict of output name -> array"
            return {"error": {"kind": "harness_error", "phase": "run", "message": text}}
        mark = len(out.parts), out.size
        spec, name = [], ""
        try:
            for name in names:
                v: Any = got.get(name)
                size = sized(v)
                if size + out.size - mark[1] > self.cap:
                    if size <= self.cap:
                        raise ValueError(f"larger than the cap of {self.cap >> 20} MiB")
                    v = TypeOnly(dtype_name(v), v.shape)  # nobody expects that much: its shape tells
                spec.append(out.put(v))
            given, keys = sum(n in got for n in names), list(got)
        except Exception as e:  # what it gave is its own class, which may do anything
            del out.parts[mark[0] :]
            out.size = mark[1]
            form = error_form(e, "run")
            if form["kind"] != "crashed":  # memory ran out
                form.update(kind="harness_error", message=f"output {name!r}: {form['message']}")
            return {"error": form}
        form = {"spec": spec}
        if len(keys) > given:
            asked = set(names)
            extra = [n for n in keys if n not in asked][:4]
            if given < len(asked):  # under other names, most likely
                form["odd"] = f"run returned {extra}, expected {[n for n in names if n not in got][:4]}"
            else:  # more than was asked for is no fault, but its author may not know
                form["beside"] = f"run returned {extra} beside the outputs that were asked for; they are not looked at"
        return form

    def serve(self, sock: Any) -> None:
        """Answers until the peer goes away."""
        gc.freeze()  # the runtime's own objects stay: no collection has to look at them
        self.rss = Resident()
        while True:
            frame = recv_frame(sock)
            if frame is None:
                return
            header, payload = frame
            if header["op"] == "run":
                self.run_batch(sock, header, Reader(payload))

    def run_batch(self, sock: Any, header: dict[str, Any], reader: Any) -> None:
        self.batch = header["batch"]
        answers, out, flushed = [], Writer(), time.monotonic()
        jobs = header["jobs"]
        fatal = False
        for i, job in enumerate(jobs):
            self.job = job["id"]
            answers.append(self.execute(job, reader, out))
            fatal = any(e.get("kind") == "crashed" for e in errors_of(answers[-1]))
            now = time.monotonic()
            if i + 1 == len(jobs) or fatal or now - flushed > FLUSH or out.size > 1 << 20:
                self.mark(3)
                send_frame(sock, {"batch": self.batch, "answers": answers, "rss": self.rss()}, out.parts, out.size)
                answers, out, flushed = [], Writer(), now
            if fatal:
                os._exit(70)  # memory ran out once: what follows would fail for that reason alone
        self.job = -1
        self.mark(0)


def told_paths(paths: Any, handle: Any, names: Any) -> Any:
    """What computed each output, "" where that is not known.  A backend that fails to tell says so in its place."""
    try:
        told = paths(handle)
        return [str(told.get(n, ""))[:200] for n in names]
    except Exception as e:
        return ["not told: " + named(e)[:100]] * len(names)


def spoken(got: Any) -> str:
    """What ``run`` returned, in words."""
    return f"{len(got)} values" if isinstance(got, (list, tuple)) else type(got).__name__


def only(home: Any) -> None:
    """Ends a process that the backend forked and let return: two would answer."""
    if os.getpid() != home:
        os._exit(0)


def errors_of(answer: Any) -> list[Any]:
    """The error forms inside an answer."""
    return [answer["load"]] if "load" in answer else [f["error"] for f in answer["sets"] if "error" in f]


class Resident:
    """Resident memory of this process, in bytes (the peak where the current value is not to be had)."""

    def __init__(self) -> None:
        try:
            self.fd = os.open("/proc/self/statm", os.O_RDONLY)  # opening costs as much as a hundred readings
        except OSError:
            self.fd = -1

    def __call__(self) -> Any:
        try:
            return int(os.pread(self.fd, 64, 0).split()[1]) * resource.getpagesize()
        except (TypeError, OSError, ValueError, IndexError):
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
