"""Bytes of resident memory that an instance leaves behind, in the host and in the workers, in one run.

    python benchmarks/bench_memory.py                                              # ONNX Runtime, then coremltools-fold
    python benchmarks/bench_memory.py --backend onnxruntime --families arithmetic activation --cases 60000

Each backend gets instances of its first dialect.  The run is cut in four parts.  The first one fills caches; each later
one tells by how much the host grew for an instance, and a worker for a model.  What grows without end shows the same
figure in all of them.  A worker counts while one process lives: a fresh one gives back what it has grown by.  ``peak``
is the most that one process held.

Measured on two shared cores, ONNX Runtime 1.32.0 over the families arithmetic and activation, coremltools 9.0:

    onnxruntime, 40,000 instances       host 2,900 450 527 333        worker 2,543 4,634 4,151 4,774
    the same before caches were cut     host 2,911 454 584 690        worker 2,515 4,766 3,812 4,658
    the same, 64,000, in eight parts    host - 503 641 261 186 43 66 148
    coremltools-fold, 6,000 instances   host 12,490 683 1,100 279     worker 15,711 17,547 16,089 10,675, peak 119 MiB
    the same, never renewed, 4,000      host 16,851 2,163 729 1,114   worker 20,298 11,152 13,346 15,835, peak 146 MiB

What the host grows by has an end.  All 668 op versions of ONNX, 160,320 instances, MiB resident after so many:

    instances           10,688   21,376   42,752   74,816   117,568   160,320
    MiB                  116.7    131.5    158.9    154.9     158.5     161.3
    bytes an instance             1,450    1,340     -130        88        69

The first 42,752 are 64 an op version.  tracemalloc says what stays of them (a quarter of the op versions, 2,752 to
11,008 instances: 5.5 MiB, 700 bytes an instance; the 7 MiB that the history of processes holds are not among them):

    26 %  forms of arrays that travel (``frames``): a cache, 8,192 of each then, 1,024 now, 400 bytes each
    12 %  types of tensors in models (``suites/onnx/proto.py``): a cache, the same
    23 %  what is learnt of each op version: decides what is asked, has an end at case 128 of an op version
    13 %  texts of the traits in it: one text for each trait now
    10 %  pairs of features that were met: for the report, 20,000 pairs an op version at most
     7 %  draws of random ops, which are judged together at the end: about 50,000 of each at most

The rest of what is resident is room between: freed memory that malloc keeps for reuse (``malloc_trim`` gave back 13 MiB
after 42,752 instances, 5 after 160,320), and arenas of Python that are not full (10 MiB, then 22).

What a worker of ONNX Runtime grows by is no leak of the runtime.  2,767 models of these families, again and again,
bytes of a model in each pass: 182 to 331 in a bare loop (the last four of seven passes; malloc_trim gave them back), 0
through ``Server.execute`` in one process (the last three of five), 423 to 3,331 in a worker (six).  Where in sending
and receiving they stay is not known.  A process gives way once it has grown by 256 MiB
(``harness.workers.watch.GROWTH``), or after 50,000 models.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from harness.backends import registry as backends
from harness.cases.selection import Selection, Unit, units, versions
from harness.declare import registry
from harness.engine.engine import Engine
from harness.engine.recheck import Recheck
from harness.evidence.failure import Evidence
from harness.ledger.loader import load_ledger
from harness.session.record_writer import RecordWriter
from harness.workers.pool import BackendHandle

PARTS = 4
MIB = 2**20


def resident() -> int:
    """Bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@dataclass
class Meter:
    """Resident memory of a backend's processes and of the host.  parts: for each part of the run, bytes that were added
    while one process lived, and models that it served meanwhile.  host: bytes at the beginning of each part."""

    handle: BackendHandle
    peak: int = 0
    parts: list[list[int]] = field(default_factory=lambda: [[0, 0] for _ in range(PARTS)])
    host: list[int] = field(default_factory=list)
    _last: tuple[int, int, int] | None = None  # number of the process, its bytes, models served by all

    def look(self, part: int) -> None:
        while len(self.host) <= min(part, PARTS):
            self.host.append(resident())
        now = self.handle.stats["spawns"], self.handle.rss, self.handle.stats["tasks"]
        if not now[1] or part >= PARTS:
            return
        self.peak = max(self.peak, now[1])
        if self._last is not None and self._last[0] == now[0]:
            self.parts[part][0] += now[1] - self._last[1]
            self.parts[part][1] += now[2] - self._last[2]
        self._last = now

    def rows(self, cases: int) -> list[str]:
        """The host's line and the workers'."""
        host = [(b - a) / (cases / PARTS) for a, b in zip(self.host, self.host[1:])]
        worker = [b / n if n else 0.0 for b, n in self.parts]
        spawns = self.handle.stats["spawns"]
        return [
            _row("host, bytes an instance", host, f"peak {max(self.host) / MIB:.0f} MiB"),
            _row("worker, bytes a model", worker, f"peak {self.peak / MIB:.0f} MiB, {spawns} processes"),
        ]


def _row(name: str, rates: list[float], more: str) -> str:
    return f"  {name:<24}" + "".join(f"{r:>10,.0f}" for r in rates) + f"   {more}"


def measure(name: str, families: list[str], cases: int, seed: int) -> Meter:
    """Run so many instances of a backend's first dialect."""
    with ExitStack() as stack:
        handle = stack.enter_context(backends.create(name))
        formats = handle.start().formats
        dialect = next(d for d in registry.names() if registry.dialect(d).format in formats)
        chosen = list(versions(Selection([dialect], families=families)))
        spare = stack.enter_context(handle.another())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        writer = stack.enter_context(RecordWriter(folder / "records.jsonl"))
        ledger, meter = load_ledger(), Meter(handle)
        engine = Engine(
            [handle],
            seed=seed,
            ledger=ledger,
            sink=writer.write,
            on_failure=Evidence(lambda _: spare, None, seconds=0, ledger=ledger),
            recheck=Recheck(lambda _: spare, ledger),
        )

        def work() -> Iterator[Unit]:
            """Units, and a look at the memory between them."""
            for u in units(chosen, 0, None, endless=True):
                part = engine.summary.cases * PARTS // cases
                meter.look(part)
                if part >= PARTS:
                    return
                yield u

        engine.run(work())
    return meter


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--backend", nargs="+", default=["onnxruntime", "coremltools-fold"])
    p.add_argument("--families", nargs="*", default=[], help="op families; all where none is given")
    p.add_argument("--cases", type=int, default=20_000, help="instances for each backend")
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    for name in a.backend:
        meter = measure(name, a.families, a.cases, a.seed)
        print(f"{name}, {a.cases:,} instances", *meter.rows(a.cases), sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
