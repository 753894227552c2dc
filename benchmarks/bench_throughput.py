"""Fresh op instances a second, end to end on one core: draw, reference, build, backend, judge, record.

    python benchmarks/bench_throughput.py                          # ONNX Runtime, the five families of the target
    python benchmarks/bench_throughput.py --backend litert-opt --draws 4 --seconds 20
    python benchmarks/bench_throughput.py --memory 1000000         # resident memory over a million cases

The host and the worker process are pinned to one core, crash isolation on.  The rate counts CPU seconds of both, which
on a shared machine moves less than the wall clock; both are printed.  Slowest op versions are listed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from harness.backends import registry as backends
from harness.run.engine import Engine
from harness.run.records import Writer
from harness.run.select import Selection, units, versions
from harness.spec import registry

FAMILIES = {"onnxruntime": ("onnx", "unary binary activation matmul linear reduction conv elementwise comparison logical"),
            "litert": ("tflite", "")}  # fmt: skip


def cpu(pid: int) -> float:
    """CPU seconds of a process and its threads so far."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss(pid: int | str = "self") -> float:
    """Resident MiB."""
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--backend", default="onnxruntime")
    p.add_argument("--families", help="op families, space separated; 'all' for the whole operator set")
    p.add_argument("--opset", help="e.g. onnx17")
    p.add_argument("--draws", type=int, default=1)
    p.add_argument("--seconds", type=float, default=15.0)
    p.add_argument("--memory", type=int, default=0, metavar="N", help="run N cases and print memory on the way")
    p.add_argument("--slowest", type=int, default=10)
    p.add_argument("--invalid", action="store_true", help="one case in eight breaks a rule, in a model of its own")
    p.add_argument("--profile", action="store_true", help="cProfile of the host")
    a = p.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    dialect, default = next(v for k, v in FAMILIES.items() if a.backend.startswith(k))
    wanted = (a.families if a.families is not None else default).split()
    known = {v.family for v in registry.dialect(dialect).versions.values()}
    families = [] if wanted in ([], ["all"]) else [f for f in wanted if f in known]
    chosen = versions(Selection((dialect,), families=families))
    with tempfile.TemporaryDirectory() as tmp, backends.create(a.backend) as handle:
        handle.start()
        with Writer(Path(tmp) / "records.jsonl") as writer:
            engine = Engine([handle], seed=int(time.time()), draws=a.draws, invalid=a.invalid, sink=writer.write)
            spent: dict[str, float] = defaultdict(float)
            end = time.monotonic() + a.seconds

            def work():
                n = 0
                for u in units(chosen, 0, None, endless=True):
                    if a.memory and n >= a.memory or not a.memory and time.monotonic() > end:
                        return
                    n += u.count
                    if a.memory and n % 100_000 < u.count:
                        print(f"{n:>9} cases: host {rss():.0f} MiB, worker {rss(handle._pid):.0f} MiB", flush=True)
                    yield u

            engine.run(u for u in units(chosen, 16))  # warm up: imports, plans, caches
            before = engine.summary.cases
            cpu0, wall0 = cpu(os.getpid()) + cpu(handle._pid), time.monotonic()
            host0 = cpu(os.getpid())
            if a.profile:
                import cProfile
                import pstats

                prof = cProfile.Profile()
                prof.runcall(engine.run, work())
                pstats.Stats(prof).sort_stats("tottime").print_stats(45)
            else:
                engine.run(work())
            used = cpu(os.getpid()) + cpu(handle._pid) - cpu0
            host = cpu(os.getpid()) - host0
            wall = time.monotonic() - wall0
    cases = engine.summary.cases - before
    total = cases * a.draws
    print(json.dumps({"backend": a.backend, "op_versions": len(chosen), "draws": a.draws, "cases": cases,
                      "instances_per_cpu_second": round(total / used), "instances_per_second": round(total / wall),
                      "host_share": round(host / used, 2),
                      "tally": {f"{d}/{b}": dict(c) for (d, b), c in engine.summary.tally.items()}}, indent=1))  # fmt: skip
    for key, s in sorted(spent.items(), key=lambda x: -x[1])[: a.slowest]:
        print(f"  {key}: {s:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
