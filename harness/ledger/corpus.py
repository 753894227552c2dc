"""The corpus: saved instances that are replayed before anything is drawn.

It has two sources.  The first are the minimal instances of known differences and ambiguities, so that every full run
tests whether each still occurs.  The second are the files ``corpus/<anything>.jsonl`` next to the dialects, one
instance a line: they show former defects of opconform.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any

from harness.cases.case import Case
from harness.cases.selection import Unit
from harness.core.errors import FormatError, UsageError
from harness.core.instance import Instance
from harness.declare import OpVersion
from harness.ledger.ledger import Ledger
from harness.ledger.loader import folders


def saved(ledger: Ledger, places: Iterable[Path] | None = None, ops: Container[str] | None = None) -> list[Instance]:
    """All saved instances, each once, in an order that does not depend on the folders that the ledger has read.  ops:
    only those of these, as dialect/op.  Raises FormatError naming file and line."""
    found = [e.instance for e in ledger.entries if e.instance is not None]
    found += (inst for folder in ledger.unread for inst in folder.instances(ops))
    for folder in places if places is not None else [f.parent / "corpus" for f in folders()]:
        for path in sorted(folder.glob("*.jsonl")):
            for i, line in enumerate(path.read_text().splitlines(), 1):
                if line.strip():
                    found.append(_read(line, f"{path.name}:{i}"))
    asked = (inst for inst in found if ops is None or f"{inst.dialect}/{inst.op}" in ops)
    return [inst for _, inst in sorted({inst.dumps(): inst for inst in asked}.items())]


def _read(line: str, where: str) -> Instance:
    try:
        return Instance.from_json(json.loads(line))
    except ValueError as e:
        raise FormatError(f"{where}: not an instance: {e}") from None
    except FormatError as e:
        raise FormatError(f"{where}: {e}") from None


def cases(instances: Iterable[Instance], chosen: Iterable[OpVersion], opset: Any = None) -> Iterator[tuple[Unit, Case]]:
    """The saved instances of the chosen op versions (at ``opset``, if given) as cases, not evaluated yet, with units of
    their own numbers: -1, -2, ... so that they are never taken for drawn ones."""
    versions = {v.key: v for v in chosen}
    count: dict[str, int] = {}
    for inst in instances:
        v = versions.get(inst.key)
        if v is None or (opset is not None and inst.opset != opset):
            continue
        if inst.opset not in v.opsets:
            raise UsageError(f"corpus: {inst.key} is not in force at opset {inst.opset}: {inst.dumps()[:120]}")
        number = count[v.key] = count.get(v.key, 0) + 1
        yield Unit(v, inst.opset, -number, 1), Case(v, inst, -number)
