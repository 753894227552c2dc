"""Options, and the bench: the backends of this pytest process, started when first needed."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import pytest

from harness.backends import registry as backends
from harness.backends.providers import table as providers
from harness.cases.case import fill
from harness.cases.result import Result
from harness.cases.wanted import OPTIONS, asked_for
from harness.core.errors import OpconformError
from harness.core.escape import one_line, shell_line
from harness.core.outcome import Verdict
from harness.declare import registry
from harness.engine.engine import Engine
from harness.engine.recheck import Recheck
from harness.engine.run_records import RunTotals, end
from harness.evidence.attribution import Attribution
from harness.evidence.failure import Evidence
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger, own_entries, own_files
from harness.session.record_writer import RecordWriter, in_use, read
from harness.session.session import header
from harness.workers.info import BackendInfo
from harness.workers.pool import BackendHandle
from harness.workers.spec import LIMITS, Place, placed_at


def add(parser: pytest.Parser) -> None:
    group = parser.getgroup("opconform", "conformance of operator sets")
    group.addoption("--cases", type=_positive, default=16, metavar="N", help="cases per op version and backend (16)")
    group.addoption("--draws", type=_positive, default=1, metavar="N", help="data draws per model (1)")
    for flag, how in OPTIONS.items():
        group.addoption(flag, **how)
    group.addoption(
        "--exclude-op", action="append", default=[], metavar="PATTERN", help="leave out these ops; repeatable"
    )
    group.addoption("--case-seed", type=int, default=0, metavar="N", help="seed of the drawn cases (0)")
    group.addoption(
        "--backend",
        action="append",
        default=[],
        metavar="NAME",
        help="only this backend; repeatable; module:Class takes a foreign one",
    )
    group.addoption("--provider", **providers.OPTION)
    group.addoption(
        "--backend-python",
        action="append",
        default=[],
        metavar="[NAME=]PATH",
        help="run the backends, or those of that name, in this Python; repeatable",
    )
    group.addoption(
        "--claims",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="claims in place of a backend's own; repeatable",
    )
    group.addoption("--backend-cpu", metavar="NAME", help="run them on this processor, emulated by qemu-user")
    for flag, how in LIMITS.items():
        group.addoption(flag, **how)
    group.addoption(
        "--known", action="append", default=[], metavar="FILE", help="known differences of your own; repeatable"
    )
    group.addoption("--evidence", default=".opconform/failures", metavar="DIR", help="folders of failures go here")
    group.addoption("--records", metavar="FILE", help="also write records (one file per pytest-xdist worker)")


def _positive(text: str) -> int:
    n = int(text) if text.strip().isdecimal() else 0
    if n < 1:  # nothing would be drawn, and pass
        raise argparse.ArgumentTypeError(f"expected a positive number, got {text}")
    return n


def check(config: pytest.Config) -> None:
    """Raises UsageError for places that cannot be written and backends that cannot be had, before anything is
    judged."""
    try:
        for name in config.getoption("--backend"):
            backends.formats_of(name, place_of(config))
    except OpconformError as e:
        raise pytest.UsageError(f"--backend: {one_line(e)}") from None
    records, places = config.getoption("--records"), {"--evidence": Path(config.getoption("--evidence"))}
    if records is not None:
        places["--records"] = Path(records).parent
        if Path(records).exists() and not Path(records).is_file():
            raise pytest.UsageError(f"--records: expected a file, got {records}")
        path = records_of(records, worker_of(config))
        if path.is_file() and path.stat().st_size:
            try:
                next(read(path), None)
            except OpconformError as e:
                raise pytest.UsageError(f"--records: {one_line(e)}") from None
            if in_use(path):
                raise pytest.UsageError(f"--records: another run is writing {path}")
    for name, folder in places.items():
        there = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
        if not (there.is_dir() and os.access(there, os.W_OK)):
            raise pytest.UsageError(f"{name}: cannot write below {there}")


def place_of(config: pytest.Config) -> Place:
    """Where the backends run.  Raises UsageError."""
    option = config.getoption
    limits = {"deadline": option("--deadline"), "memory": option("--memory")}
    where = option("--backend-python"), option("--backend-cpu"), option("--claims"), option("--backend")
    return placed_at(*where, **limits)


def worker_of(config: pytest.Config) -> str:
    """The name of this process among the workers of pytest-xdist, empty of another: their environment is inherited by
    what a test starts."""
    return str(getattr(config, "workerinput", {}).get("workerid", ""))


def records_of(path: str, worker: str) -> Path:
    """The file of records of this process: each worker of pytest-xdist has its own."""
    p = Path(path)
    return p.with_name(f"{p.stem}-{worker}{p.suffix}") if worker else p


class Bench:
    """Backends by name, one engine each, shared by all items of the process."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.summary = RunTotals()
        self.ledger: Ledger | None = None
        self.writer: RecordWriter | None = None
        self._handles: dict[str, BackendHandle] = {}
        self._spare: dict[str, BackendHandle] = {}
        self._engines: dict[str, Engine] = {}
        self._evidence: Evidence | None = None
        self._told: list[str] = []  # backends in the latest header
        self.tested: dict[str, set[str]] = {}  # op versions by backend
        try:
            self.wanted = asked_for(config.getoption)
        except OpconformError as e:
            raise pytest.UsageError(str(e)) from None
        try:
            self.known = own_files(config.getoption("--known"), config.rootpath)
            own_entries(self.known)
        except OpconformError as e:
            raise pytest.UsageError(f"--known: {one_line(e)}") from None

    def names_for(self, fmt: str) -> list[str]:
        """Backends to test a format on; raises UsageError for an unknown one."""
        asked = self.config.getoption("--backend")
        try:
            place = place_of(self.config)
            return [n for n in asked if fmt in backends.formats_of(n, place)] if asked else backends.names(fmt)
        except OpconformError as e:
            raise pytest.UsageError(one_line(e)) from None

    def handle(self, name: str) -> BackendHandle:
        """A started backend; raises pytest's skip when it cannot be had here, its failure when it was asked for."""
        h = self._handles.get(name)
        if h is None:
            h = self._handles[name] = self._make(name)
        why = h.missing()
        if why is not None:
            text = f"{name}: {one_line(why)}"
            if name in self.config.getoption("--backend"):
                pytest.fail(text, pytrace=False)
            pytest.skip(text)
        return h

    def _make(self, name: str) -> BackendHandle:
        return backends.create(name, place_of(self.config))

    def spare(self, name: str) -> BackendHandle:
        """A second handle, for shrinking."""
        if name not in self._spare:
            self._spare[name] = self.handle(name).another()
        return self._spare[name]

    def engine(self, name: str) -> Engine:
        if name not in self._engines:
            if self.ledger is None:
                self.ledger = load_ledger(backends=[], own=self.known)
            self.ledger.read_for(self.handle(name).info)
            option = self.config.getoption
            self._engines[name] = Engine(
                [self.handle(name)],
                seed=option("--case-seed"),
                draws=option("--draws"),
                ledger=self.ledger,
                recheck=Recheck(self.spare, self.ledger),
                wanted=self.wanted,
                attribute=Attribution(self.spare, self.ledger),
            )
        return self._engines[name]

    @property
    def evidence(self) -> Evidence:
        if self._evidence is None:
            folder = Path(self.config.getoption("--evidence"))
            self._evidence = Evidence(self.spare, folder, seed=self.config.getoption("--case-seed"), ledger=self.ledger)
        return self._evidence

    def sink(self, record: dict[str, Any]) -> None:
        """Keep a record, if records are asked for."""
        path = self.config.getoption("--records")
        if path is None:
            return
        if self.writer is None:
            self.writer = RecordWriter(records_of(path, worker_of(self.config)))
        if self._told != list(self._handles):  # a reader wants to know who is spoken of
            option = self.config.getoption
            self._told = list(self._handles)
            told = header(
                shell_line(["pytest", *self.config.invocation_params.args]),
                [h for h in self._handles.values() if h.missing() is None],
                registry.names(),
            )
            self.writer.write(
                {
                    **told,
                    "seed": option("--case-seed"),
                    "selection": {
                        "cases": option("--cases"),
                        "draws": option("--draws"),
                        "worker": worker_of(self.config),
                    },
                }
            )
        self.writer.write(record)

    def judged(self, results: list[Result]) -> None:
        """Remember what was asked, for ``stale``."""
        for r in results:
            self.tested.setdefault(r.backend, set()).add(r.case.version.key)
            if self.ledger is not None and r.verdict.decided and r.verdict is not Verdict.UNSUPPORTED:
                self.ledger.saw([r.case], self._info(r.backend))

    def _info(self, name: str) -> BackendInfo:
        return next(e.infos[name] for e in self._engines.values() if name in e.infos)

    def votes(self, result: Result) -> dict[str, str]:
        """The verdict on a failure, and those on its case of the other backends that are asked for and can be had."""
        out = {result.backend: result.verdict.value}
        for name in self.names_for(result.case.version.dialect.format):
            handle = self._handles.setdefault(name, self._handles.get(name) or self._make(name))
            if handle.missing() is None and handle.name not in out:
                out.update({r.backend: r.verdict.value for r in self.engine(name).judge([result.case])})
        return out

    def stale(self) -> list[str]:
        """Ids of entries of the user's own lists that no longer occur on the op versions and backends that were tested.

        To find out, the instance of an entry runs once more.  For an entry without one, a worker of pytest-xdist knows
        nothing, since another worker may have met it.
        """
        if self.ledger is None or not self.known:
            return []
        own = [e for e in self.ledger.entries if e.own and e.kind_of == "known"]
        replayed, infos = set(), [self._info(name) for name in self.tested]
        for engine in self._engines.values():
            for info in engine.infos.values():
                keys = sorted(self.tested.get(info.name, ()))
                for e in (e for e in own if e.instance is not None and e.concerns(keys, [info])):
                    assert e.instance is not None
                    case = fill(registry.version_of(e.instance), e.instance)
                    for r in engine.judge([case]):
                        if r.verdict is Verdict.UNSUPPORTED:
                            self.ledger.lacks.add((e.instance.id, info.name))
                    replayed.add(e.instance.dumps())
        alone = {e.id for e in own if e.instance is not None or not worker_of(self.config)}
        keys = sorted(set().union(*self.tested.values())) if self.tested else []
        return [i for i in self.ledger.unused(keys, infos, replayed) if i in alone]

    def finish(self, interrupted: bool) -> None:
        """Complete the records: a worker of pytest-xdist may be gone before it is unconfigured."""
        if self.writer is not None:
            self.writer.write(end(interrupted))
            self.writer.close()
            self.writer = None

    def close(self) -> None:
        for h in [*self._handles.values(), *self._spare.values()]:
            h.close()


BENCH = pytest.StashKey[Bench]()
