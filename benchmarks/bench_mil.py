"""MIL instances a second on one core through coremltools, and how much of their cost is coremltools' own.

    python benchmarks/bench_mil.py                        # iOS17: folding, type inference, round trip
    python benchmarks/bench_mil.py --opset ios15 --pack 1 # every instance in a program of its own
    python benchmarks/bench_mil.py --skip 'complex_*'     # without the ops that become a hundred others each
    python benchmarks/bench_mil.py --profile --backend coremltools-roundtrip

``rate``: instances a CPU second of the whole machine (draw, reference, model, worker process, judge, record), as in
bench_throughput.py; valid instances of the op versions of which the backend gives a value, the op versions in turn.
``bare``: CPU time inside coremltools' own calls alone, the ``mb.*`` builders with their type inference and folding, the
exporter, the loader, the pass that takes complex numbers apart, on the same instances in this process: nothing of ours
is in it, so that ``limit``, its inverse, is what a machine without any cost of its own would reach.

Targets: 2,000 a second through folding and type inference, 500 through export and load.  They are not met, and most of
the way to them is not ours.  coremltools 9.0, iOS17, microseconds of a core shared with twenty processes, which doubles
them (a program of one relu: 66 to build at best, 140 on average); undisturbed in brackets, where it was measured:

                      rate     all    host    worker  bare         limit
    folding            908   1,101     224    (483)    611 (375)   1,637 (2,667)
    type inference     912   1,097     253    (469)    745 (335)   1,342 (2,985)
    round trip         266   3,757     298  (2,806)  2,780 (1,855)   360 (539) without complex_*, which take 60 ms each
    round trip          73  13,755     439             5,357         187   all ops

    type inference   1,116     896     218             268         3,731 on an idle machine
    round trip         299   3,345     405           1,502           666 without complex_*, on an idle machine

A core without any work of ours would so reach the first target with a third to spare, the second with a fourteenth, and
only undisturbed.  ``bare`` flatters coremltools besides: it is the quickest of seven turns of the same program, with
everything in the caches, while in a run no program comes twice and a worker spends twice as much on each.  What is ours
in a worker, reading the program, the feeds, executing what was loaded, is a quarter of folding and a third of a round
trip.  Taken of the cheap routes: direct export and load without ``ct.convert``, no pipeline, no printing of symbols,
rare collections (up to a third of folding otherwise), one weight folder for all.  Not taken: many instances in one
program.  It takes a seventh off a round trip, and programs of lists and of complex numbers fail in neighbours.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import os
import pstats
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from bench_throughput import Bench, figures, rounds

from harness.backends import registry as backends
from harness.cases.case import Case, draw_case
from harness.cases.selection import UNIT, Selection, versions
from harness.engine.batching import build, feed
from harness.session.record_writer import RecordWriter
from harness.workers import worker

BACKENDS = ("coremltools-fold", "coremltools-types", "coremltools-roundtrip")


class Clock:
    """CPU seconds of this thread inside the callables that it was put around, nested calls counted once."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._depth = 0

    def around(self, name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            if self._depth:
                return fn(*args, **kwargs)
            self._depth, began = 1, time.thread_time()
            try:
                return fn(*args, **kwargs)
            finally:
                self.spent[name] = self.spent.get(name, 0.0) + time.thread_time() - began
                self._depth = 0

        return timed


class Builders:
    """``mb`` with a clock around every call."""

    def __init__(self, mb: Any, clock: Clock) -> None:
        self._mb, self._clock, self._made = mb, clock, {}  # type: ignore[var-annotated]

    def __getattr__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._clock.around("build", getattr(self._mb, name))
        return self._made[name]


@contextmanager
def clocked(module: Any) -> Iterator[Clock]:
    """Clocks around what the backend file calls of coremltools."""
    from coremltools.converters.mil.backend.mil import load as export
    from coremltools.converters.mil.frontend.milproto import load
    from coremltools.converters.mil.mil.passes.defs.lower_complex_dialect_ops import lower_complex_dialect_ops

    clock = Clock()
    was = module.mb, export.MILProtoExporter.export, load.load_mil_proto, lower_complex_dialect_ops.apply
    module.mb = Builders(module.mb, clock)
    export.MILProtoExporter.export = clock.around("export", was[1])
    load.load_mil_proto = clock.around("load", was[2])
    lower_complex_dialect_ops.apply = clock.around("pass", was[3])
    try:
        yield clock
    finally:
        module.mb, export.MILProtoExporter.export, load.load_mil_proto, lower_complex_dialect_ops.apply = was


def bare(name: str, cases: list[Case], pack: int, turns: int) -> dict[str, Any]:
    """Microseconds an instance in this process: of the worker's part, and inside coremltools by kind of call.  Of every
    program the turn that took least, which on a shared machine is the one that was not disturbed.  Only instances that
    the backend answers alone count."""
    spec = backends.find(name)
    b = worker.make_backend({"file": spec.file, "class": spec.cls, "kwargs": spec.kwargs})

    def job(part: list[Case]) -> tuple[bytes, dict[str, Any]]:
        m = build(part[0].version.dialect, part)
        fed = {n: v for c, ins in zip(part, m.inputs) for (n, _, _), v in zip(ins, feed(c, ins, 0))}
        return m.data, fed

    def run(data: bytes, fed: dict[str, Any]) -> None:
        b.run(b.load(data, "mil"), fed)

    good = []
    for c in cases:
        try:
            run(*job([c]))
            good.append(c)
        except Exception:  # refused, or nothing folds: not among what a rate counts
            continue
    gc.collect()
    gc.freeze()  # as in a worker
    jobs = []
    for i in range(0, len(good), pack):
        part = good[i : i + pack]
        try:
            run(*job(part))
            jobs.append(job(part))
        except Exception:  # one that passes alone and fails in neighbours: they travel alone, as in the real thing
            jobs += [job([c]) for c in part]
    took, spent = 0.0, Counter()  # type: ignore[var-annotated]
    with clocked(sys.modules["opconform_backend"]) as clock:
        for data, fed in jobs:
            seen = []
            for _ in range(turns):
                clock.spent = {}
                began = time.thread_time()
                run(data, fed)
                seen.append((time.thread_time() - began, clock.spent))
            best = min(seen, key=lambda x: x[0])
            took += best[0]
            spent.update(best[1])
    gc.unfreeze()
    us = {k: round(v / len(good) * 1e6) for k, v in spent.items()}
    return {
        "instances": len(good),
        "worker_us": round(took / len(good) * 1e6),
        "bare_us": sum(us.values()),
        "of_which": us,
        "limit": round(1e6 / sum(us.values())),
    }


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--backend", action="append", choices=BACKENDS, help="repeatable; all three")
    p.add_argument("--opset", default="ios17")
    p.add_argument("--skip", action="append", default=[], metavar="PATTERN", help="ops to leave out: 'complex_*'")
    p.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    p.add_argument("--pairs", type=int, default=3, help="measurements")
    p.add_argument("--learn", type=int, default=96, help="cases per op version before the clock starts")
    p.add_argument("--pack", type=int, help="instances in one program (what the backend likes)")
    p.add_argument("--bare", type=int, default=8, help="instances per op version of the bare measurement")
    p.add_argument("--turns", type=int, default=7, help="of the bare measurement")
    p.add_argument("--profile", action="store_true", help="cProfile of the worker's part instead of a rate")
    a = p.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    chosen = [
        v
        for v in versions(Selection(("mil",)))
        if a.opset in v.opsets and not any(fnmatchcase(v.op, p) for p in a.skip)
    ]
    for name in a.backend or BACKENDS:
        with tempfile.TemporaryDirectory() as tmp, backends.create(name) as handle:
            handle.start()
            if a.pack:
                handle.declared = replace(handle.info, pack=a.pack)
            with RecordWriter(Path(tmp) / "records.jsonl") as writer:
                bench = Bench(handle, writer, 0, 1, False)
                bench.spend(rounds(chosen, a.opset, 0, None, turns=a.learn // UNIT))
                live = [v for v in chosen if v.key in bench.keys]
                seen = []
                for _ in range(0 if a.profile else a.pairs):
                    first = bench.engine.summary.cases // len(live) // UNIT * UNIT + UNIT
                    seen.append(bench.spend(rounds(live, a.opset, first, None, until=time.monotonic() + a.seconds)))
            pack = min(handle.info.pack_size(chosen[0].dialect.format), chosen[0].dialect.package_size)
        cases = [draw_case(v, a.opset, 0, i, invalid=False) for i in range(a.bare) for v in live]
        if a.profile:
            prof = cProfile.Profile()
            prof.runcall(bare, name, cases, pack, 1)
            pstats.Stats(prof).sort_stats("tottime").print_stats(40)
            continue
        rate = figures(1, seen)
        line = {
            "backend": name,
            "opset": a.opset,
            "pack": pack,
            "op_versions": len(live),
            "of": len(chosen),
            "rate": rate["instances_per_cpu_second"],
            "median": rate["median"],
            "us": rate["us_per_value"],
            "host_us": rate["host_us"],
        }
        print(json.dumps({**line, "bare": bare(name, cases, pack, a.turns)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
