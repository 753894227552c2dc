"""What a runtime by itself takes for the models of a run: no harness, no process between, nothing judged.

``bench_throughput.py --floor`` keeps the instances that its engine has sent and plays them again on the backend's own
class, in one process each time: load, run, destroy.  Twice: in the models in which they were sent, and packed as full
as the backend likes, whatever went alone.  No engine is quicker with this runtime on these instances.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness.backends import registry
from harness.cases.case import Case
from harness.core.outcome import Model
from harness.engine.batching import build, feed
from harness.workers import worker
from harness.workers.wire import Job

SETS = 3  # times that everything is played; the quickest counts


def backend_of(name: str) -> Any:
    """The class of a built-in backend, made in this process."""
    spec = registry.find(name)
    assert spec.file is not None, f"{name} is not a stand-alone file"
    sys.modules["opconform_worker"] = worker
    path = Path(spec.file)
    found = importlib.util.spec_from_file_location(f"floor_{path.stem}", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return getattr(module, spec.cls)(**spec.kwargs)


def play(name: str, jobs: list[Job]) -> dict[str, Any]:
    """Microseconds of processor time an instance, by phase.  jobs: such as the runtime has answered in full."""

    def full() -> dict[str, Any]:
        backend = backend_of(name)
        liked = getattr(backend, "pack", 1)
        size = liked.get(jobs[0].model.format, 1) if jobs and isinstance(liked, dict) else liked
        return _played(backend, list(packed(jobs, size)))

    sent = apart(lambda: _played(backend_of(name), [(j.model, j.feeds) for j in jobs]))
    return {**sent, "packed_full": apart(full)}


def apart(played: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The same in a process of its own, which may die: nobody has seen these models together in one process."""
    answer = worker.memory_file()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.write(answer, json.dumps(played()).encode())
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    text = os.pread(answer, 1 << 20, 0)
    os.close(answer)
    return json.loads(text) if text else {"died": worker.ending(status)}  # type: ignore[no-any-return]


def packed(jobs: list[Job], size: int) -> Iterator[tuple[Model, list[list[list[Any]]]]]:
    """The cases of all jobs that run a model equally often, in models of so many: the models, and what to feed them."""
    groups: defaultdict[tuple[Any, int], list[Case]] = defaultdict(list)
    for job in jobs:
        pack, _, chunk = job.tag
        groups[pack.opset, len(job.feeds)] += chunk.cases
    for (_, runs), cases in groups.items():
        for i in range(0, len(cases), size):
            some = cases[i : i + size]
            model = build(some[0].version.dialect, some)
            yield model, [[feed(c, model.inputs[k], r) for k, c in enumerate(some)] for r in range(runs)]


def _played(backend: Any, models: list[tuple[Model, list[list[list[Any]]]]]) -> dict[str, Any]:
    """Those that the backend takes in parts only are left out."""
    asked = []
    for model, feeds in models:
        names = [x[0] for group in model.inputs for x in group]
        sets = [dict(zip(names, [v for row in rows for v in row], strict=True)) for rows in feeds]
        try:
            handle = backend.load(model.data, model.format)
            for values in sets:
                backend.run(handle, values)
        except Exception:
            continue
        asked.append((model, sets))
    instances = sum(len(model.outputs) for model, _ in asked)
    best: Counter[str] | None = None
    for _ in range(SETS):
        spent: Counter[str] = Counter()
        for model, sets in asked:
            start = time.process_time_ns()
            handle = backend.load(model.data, model.format)
            loaded = time.process_time_ns()
            for values in sets:
                got = backend.run(handle, values)
            ran = time.process_time_ns()
            del handle, got
            end = time.process_time_ns()
            spent.update(load=loaded - start, run=ran - loaded, destroy=end - ran)
        if best is None or spent.total() < best.total():
            best = spent
    assert best is not None, "no model was taken"
    assert instances, "no model was taken"
    each = {phase: round(ns / 1e3 / instances, 1) for phase, ns in best.items()}
    return {
        "models": len(asked),
        "instances": instances,
        "floor_us": round(best.total() / 1e3 / instances, 1),
        **each,
        "at_most_per_second": round(1e9 * instances / best.total()),
    }
