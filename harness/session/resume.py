"""What the records of an unfinished run hold already: which units are judged, and what was learnt from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.core.errors import reading
from harness.core.outcome import Verdict
from harness.engine.learning_stages import Answers
from harness.session.record_writer import read

Name = tuple[str, Any, int]  # of a unit: op version, opset, first case


@dataclass
class Resumed:
    """What the records of an earlier run hold.

    done: units that all backends asked now have judged.
    learnt: from those units, by backend.
    hits: verdicts that listed entries explain, by the entry's id.
    lacks: units, and backends that found them unsupported.
    cases: the "case" records of the done units, by ``harness.evidence.failure.kind_of``.
    """

    done: set[Name] = field(default_factory=set)
    learnt: dict[Name, dict[str, Answers]] = field(default_factory=dict)
    hits: Counter[str] = field(default_factory=Counter)
    lacks: set[tuple[Name, str]] = field(default_factory=set)
    cases: Counter[tuple[str, ...]] = field(default_factory=Counter)


def resumed(
    path: Path,
    versions: Callable[[str], Mapping[str, str]],
    kind_of: Callable[[Mapping[str, Any]], tuple[str, ...]] | None = None,
) -> Resumed:
    """What a record file holds for the backends that are asked now.

    versions: dialect -> {name: release} of the backends that get its models.

    A unit is not done if its run lacked one of them, or had another release of it.  Neither is a unit whose results are
    judged over the whole run, since the records do not hold them.  Raises FormatError.
    """
    out = Resumed()
    had: dict[str, str] = {}
    cases: list[Mapping[str, Any]] = []  # of the unit whose batch follows
    for o in read(path) if path.is_file() else ():
        with reading(f"{path}: a {o['t']!r} record"):
            if o["t"] == "run":
                had = {name: str(b.get("version")) for name, b in o.get("backends", {}).items()}
                cases = []
            elif o["t"] == "case" and kind_of is not None:
                cases.append(o)
            elif o["t"] == "batch":
                asked = versions(o["key"].partition("/")[0])
                if asked.items() <= had.items() and not o.get("pooled"):
                    _take(out, o, asked)
                    out.cases.update(kind_of(c) for c in cases if kind_of is not None)
                cases = []
    return out


def _take(out: Resumed, o: Mapping[str, Any], asked: Mapping[str, str]) -> None:
    name = o["key"], o["opset"], o["first"]
    if name in out.done:
        return
    out.done.add(name)
    for _, id, n in o.get("explained", ()):
        out.hits[id] += n
    for backends, told in o.get("learnt", ()):
        answers = Answers.from_json(told)
        out.learnt.setdefault(name, {}).update({b: answers for b in backends if b in asked})
    for backend, _, verdict, _ in o["tally"] if o["first"] < 0 else ():
        if verdict == Verdict.UNSUPPORTED.value:
            out.lacks.add((name, backend))
    if o["first"] < 0:
        out.lacks.update((name, backend) for backend, *_ in o.get("unasked", ()))
