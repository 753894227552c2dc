"""Does drawing alone meet what is known to be wrong, and after how long?

    python benchmarks/bench_rediscovery.py                         # every dialect, default backends, the default run
    python benchmarks/bench_rediscovery.py --dialect onnx --seeds 1 2 3
    python benchmarks/bench_rediscovery.py --draws 1 4 --rounds 4  # which default meets more in the same time?

Each listed difference of the installed releases is a known target.  The bench draws as ``opconform run`` does, with the
saved instances left out, and notes the CPU seconds (host and worker processes) at which the first judged verdict names
the entry.  A dialect is a run of its own, so seconds count from the start of its run.

It prints, for each dialect and for all: the entries that apply, the share met within the default run (the default
number of cases of each op version), the median CPU seconds over all entries (one never met counts as infinite), and
the ids that were not met.  ``--rounds N`` goes on for N times the default number of cases.  ``--invalid``:
0 draws no instances that break a rule, any other number draws them as by default.

Several numbers of ``--draws`` or ``--invalid`` are compared by how many entries each meets in the CPU seconds that the
first setting takes for its whole run.

Measured with seed 1 and the default backends (ONNX Runtime 1.32.0, LiteRT 2.3.0, coremltools 9.0 ...): 621 of 1,067
entries met within the default run (58 %), 716 CPU seconds in all, the median 44.  onnx 313 of 535 in 101 seconds, mil
85 of 151, tflite 137 of 214, passes 60 of 86, rewrites 21 of 55, random graphs and TFLite programs 5 of 26.  The
machine was shared, so the seconds are upper bounds.  Most entries that are not met stand behind one place at an edge,
and one instance in 16 has any.

An entry of which no instance can be drawn for these backends counts as not met.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from bench_throughput import buried, cpu

from harness.backends import registry as backends
from harness.cases.selection import Selection, units, versions
from harness.core.errors import OpconformError
from harness.declare import registry
from harness.engine.engine import Engine
from harness.ledger.loader import load_ledger
from harness.workers.pool import BackendHandle


class Clock:
    """CPU seconds of the host and of all worker processes since it was made."""

    def __init__(self, handles: Sequence[BackendHandle]) -> None:
        self.handles = handles
        self.start = self._now()

    def __call__(self) -> float:
        return self._now() - self.start

    def _now(self) -> float:
        return time.process_time() + sum(map(_spent, self.handles))


def _spent(h: BackendHandle) -> float:
    """CPU seconds of a backend's zygote and of all its workers, those that ended included."""
    if h.zygote is None:
        return 0.0
    own, alive = h.zygote.pid, 0.0
    try:
        if h.channel is not None and h.pid != own:
            alive = cpu(h.pid)
        return cpu(own) + buried(own) + alive
    except FileNotFoundError:  # it has just ended, and is counted with the next reading
        return cpu(own) + buried(own)


def opened(dialect: str) -> list[BackendHandle]:
    """The default backends of a dialect that start here."""
    out = []
    for name in backends.names(registry.dialect(dialect).format):
        h = backends.create(name)
        try:
            h.start()
        except OpconformError as e:
            print(f"  {name}: {e}", file=sys.stderr)
            h.close()
            continue
        out.append(h)
    return out


def measure(dialect: str, rounds: int, seed: int, draws: int, invalid: bool) -> dict[str, Any]:
    """One run: the seconds at which each entry was first met, those not met, and the seconds in all."""
    handles = opened(dialect)
    try:
        chosen = versions(Selection((dialect,)))
        ledger = load_ledger(backends=[h.info for h in handles])
        met: dict[str, tuple[float, int]] = {}
        clock = Clock(handles)

        def sink(record: dict[str, Any]) -> None:
            for _, entry, _ in record.get("explained") or () if record["t"] == "batch" else ():
                if entry not in met:
                    met[entry] = clock(), record["first"]

        engine = Engine(handles, seed=seed, draws=draws, invalid=invalid, ledger=ledger, sink=sink)
        tops = [i.opset for i in engine.infos.values() if i.opset is not None]
        cases = registry.dialect(dialect).cases
        engine.run(units(chosen, cases * rounds, top=min(tops, default=None)))
        total = clock()
        ledger.count(engine.records.hits)
        missed = ledger.unused([v.key for v in chosen], engine.infos.values())
        known = {id: (at, first < cases) for id, (at, first) in met.items() if ledger.by_id[id].verdicts}
        return {"met": known, "missed": missed, "seconds": total, "cases": engine.summary.cases}
    finally:
        for h in handles:
            h.close()


def figures(runs: Sequence[dict[str, Any]], budgets: Sequence[float]) -> dict[str, Any]:
    """Over some runs: entries, share met by the default run, median seconds.  budgets: CPU seconds that each of the
    runs has in common with the first setting."""
    seconds = [s for r in runs for s, _ in r["met"].values()] + [math.inf] * sum(len(r["missed"]) for r in runs)
    within = sum(default for r in runs for _, default in r["met"].values())
    middle = median(seconds) if seconds else math.inf
    return {
        "entries": len(seconds),
        "met": sum(len(r["met"]) for r in runs),
        "within_default_run": within,
        "share": round(within / max(1, len(seconds)), 3),
        "median_cpu_seconds": round(middle, 1) if middle < math.inf else None,
        "cpu_seconds": round(sum(r["seconds"] for r in runs)),
        "met_in_the_time_of_the_first": sum(s <= b for r, b in zip(runs, budgets) for s, _ in r["met"].values()),
    }


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dialect", nargs="+", default=list(registry.names()))
    p.add_argument("--seeds", type=int, nargs="+", default=[1])
    p.add_argument("--rounds", type=int, default=1, help="times the default run that is drawn")
    p.add_argument("--draws", type=int, nargs="+", default=[1], help="data draws a model; several are compared")
    p.add_argument(
        "--invalid", type=int, nargs="+", default=[1], help="1: with instances that break a rule, 0: without"
    )
    a = p.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    spent: dict[str, list[float]] = {}  # of the first setting, by dialect
    for draws in a.draws:
        for invalid in a.invalid:
            every, budgets = [], []
            for dialect in a.dialect:
                runs = [measure(dialect, a.rounds, seed, draws, bool(invalid)) for seed in a.seeds]
                spent.setdefault(dialect, [r["seconds"] for r in runs])
                every += runs
                budgets += spent[dialect]
                figure = figures(runs, spent[dialect])
                told = {"dialect": dialect, "draws": draws, "invalid": invalid, **figure}
                print(json.dumps(told), flush=True)
                always = set.intersection(*(set(r["missed"]) for r in runs))
                for id in sorted(always):
                    print(f"  not met: {id}", flush=True)
            told = {"dialect": "all", "draws": draws, "invalid": invalid, **figures(every, budgets)}
            print(json.dumps(told), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
