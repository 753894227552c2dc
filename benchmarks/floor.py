"""What a runtime by itself takes for the models of a run: no harness, no process between, nothing judged.

``bench_throughput.py --floor`` keeps the models and data that its engine has sent and plays them again on the
backend's own class, in one process: load, run, destroy.  No engine is quicker with this runtime on these instances.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from harness.backends import process, registry, worker
from harness.backends.wire import Job

SETS = 3  # times that everything is played; the quickest counts


def backend_of(name: str) -> Any:
    """The class of a built-in backend, made in this process."""
    spec = registry.find(name)
    assert spec.file is not None, f"{name} is not a stand-alone file"
    sys.modules["opconform_worker"] = worker
    path = Path(process.__file__).with_name(spec.file)
    found = importlib.util.spec_from_file_location(f"floor_{path.stem}", path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return getattr(module, spec.cls)(**spec.kwargs)


def play(name: str, jobs: list[Job]) -> dict[str, Any]:
    """Microseconds of processor time an instance, by phase.  jobs: such as the runtime has answered, whole or in parts;
    those that it takes in parts only are left out."""
    backend = backend_of(name)
    asked = []
    for job in jobs:
        names = [x[0] for group in job.model.inputs for x in group]
        sets = [dict(zip(names, [v for row in rows for v in row], strict=True)) for rows in job.feeds]
        try:
            handle = backend.load(job.model.data, job.model.format)
            for values in sets:
                backend.run(handle, values)
        except Exception:
            continue
        asked.append((job, sets))
    instances = sum(len(job.model.outputs) for job, _ in asked)
    best: Counter[str] | None = None
    for _ in range(SETS):
        spent: Counter[str] = Counter()
        for job, sets in asked:
            start = time.process_time_ns()
            handle = backend.load(job.model.data, job.model.format)
            loaded = time.process_time_ns()
            for values in sets:
                got = backend.run(handle, values)
            ran = time.process_time_ns()
            del handle, got
            end = time.process_time_ns()
            spent.update(load=loaded - start, run=ran - loaded, destroy=end - ran)
        if best is None or spent.total() < best.total():
            best = spent
    assert best is not None and instances, "no model was taken"
    each = {phase: round(ns / 1e3 / instances, 1) for phase, ns in best.items()}
    return {"models": len(asked), "instances": instances, "floor_us": round(best.total() / 1e3 / instances, 1), **each,
            "at_most_per_second": round(1e9 * instances / best.total())}  # fmt: skip
