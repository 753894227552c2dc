"""What the runner protocol costs: a runner against the built-in backend of the same runtime, in turn.

    cd examples/runners && npm install --ignore-scripts onnxruntime-node@1.30.0 && cd ../..
    python benchmarks/bench_runner.py --python ort130/bin/python     # an environment with onnxruntime==1.30.0 and numpy
    python benchmarks/bench_runner.py --runner 'node examples/runners/ort_web.mjs' --python ort130/bin/python

The aim: through the runner, ONNX Runtime for Node reaches half of the instances a second of the built-in backend of the
same release, cold starts apart.  Both run pinned to one core.  Before the clock starts, every op version runs until the
engine has learnt which types the backend takes.  Op versions that end a process are left out, since every death costs
the runner a cold start.  The rate counts the CPU seconds of the host, of the worker, and of the runner below it; only
judged values of op versions that both backends answer count.

Measured with release 1.30.0 under Node 20 on two shared, busy cores (values a CPU second, median of three; one run):

    built-in backend 3,090    ONNX Runtime for Node 1,610    ratio 0.51

Of the 585 us a value that the runner takes, the host has 235, Node and the adapter in the worker 350.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from bench_throughput import FAMILIES, Bench, buried, cpu, rounds

from harness.backends import registry as backends
from harness.cases.selection import UNIT, Selection, versions
from harness.session.record_writer import RecordWriter
from harness.workers.spec import Place


def below(pid: int) -> float:
    """CPU seconds of a process and of all that descends from it, those that have ended included."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        children = {c for t in tasks for c in Path(f"/proc/{pid}/task/{t}/children").read_text().split()}
        return cpu(pid) + buried(pid) + sum(below(int(c)) for c in children)
    except OSError:  # it has ended meanwhile
        return 0.0


def spend(bench: Bench, work: Any) -> tuple[int, float, float]:
    """Values judged, CPU seconds of this process, CPU seconds of all that works for it."""
    zygote = bench.handle.zygote
    assert zygote is not None
    values, host, other = bench.values, cpu(os.getpid()), below(zygote.process.pid)
    bench.engine.run(work)
    zygote = bench.handle.zygote
    assert zygote is not None
    return bench.values - values, cpu(os.getpid()) - host, below(zygote.process.pid) - other


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--runner", default="node examples/runners/ort_node.mjs", help="the command of the runner")
    p.add_argument("--backend", default="onnxruntime", help="the built-in backend of the same runtime")
    p.add_argument("--python", help="a Python with the same release of it")
    p.add_argument("--families", default=FAMILIES["onnxruntime"][1], help="op families; 'all' for the whole set")
    p.add_argument("--pairs", type=int, default=3, help="how often each of the two is measured")
    p.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    p.add_argument("--learn", type=int, default=96, help="cases per op version before the clock starts")
    a = p.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    families = [] if a.families == "all" else a.families.split()
    chosen = list(versions(Selection((FAMILIES["onnxruntime"][0],), families=families)))
    with ExitStack() as stack:
        tmp = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        benches = []
        for i, name in enumerate((a.backend, f"exec:{a.runner}")):
            handle = stack.enter_context(backends.create(name, Place(a.python) if name == a.backend else Place()))
            handle.start()
            writer = stack.enter_context(RecordWriter(tmp / f"{i}.jsonl"))
            benches.append(Bench(handle, writer, 0, 1, False))
        top = min(b.handle.info.opset or 99 for b in benches)
        chosen = [v for v in chosen if v.schema.first_opset <= top]
        live = chosen
        for b in benches:
            deadly = set()
            for v in live:
                deaths = b.handle.stats["deaths"]
                b.engine.run(rounds([v], None, 0, top, turns=a.learn // UNIT))
                if b.handle.stats["deaths"] > deaths:
                    deadly.add(v.key)
            live = [v for v in live if v.key in b.keys and v.key not in deadly]
        seen: list[list[tuple[int, float, float]]] = [[], []]
        for turn in range(a.pairs):
            for b, found in zip(benches, seen):
                end = time.monotonic() + a.seconds
                found.append(spend(b, rounds(live, None, a.learn + turn * 10_000 * UNIT, top, until=end)))
    rates = []
    for b, found in zip(benches, seen):
        rates.append([n / (host + other) for n, host, other in found])
        n, host, other = (sum(x[k] for x in found) for k in range(3))
        told = {"backend": b.handle.name, "version": b.handle.info.version, "op_versions": len(live), "values": n}
        told |= {"per_cpu_second": round(median(rates[-1])), "best": round(max(rates[-1]))}
        print(json.dumps({**told, "host_us": round(host / n * 1e6, 1), "worker_us": round(other / n * 1e6, 1)}))
    print(f"ratio {median(r / b for b, r in zip(*rates)):.2f} (the aim is 0.50)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
