"""What there is: rows of text for ``opconform list``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from harness.backends import registry as backend_registry
from harness.run.known import load_ledger
from harness.run.select import Selection, versions
from harness.spec import registry

Rows = list[list[str]]


def dialects(sel: Selection) -> Rows:
    """Name, where its facts come from, number of ops and op versions."""
    rows = []
    for name in sel.dialects or registry.names():
        d = registry.dialect(name)
        ops = {v.op for v in d.versions.values()}
        rows.append([name, d.title, f"{len(ops)} ops", f"{len(d.versions)} op versions"])
    return rows


def opsets(sel: Selection) -> Rows:
    """pytest marker, dialect, number of op versions in force."""
    return [
        [marker, dialect, f"{len(versions(Selection([dialect], opset)))} op versions in force"]
        for marker, (dialect, opset) in registry.opset_markers().items()
        if not sel.dialects or dialect in sel.dialects
    ]


def families(sel: Selection) -> Rows:
    """Family, number of op versions."""
    counts = Counter(v.family for v in versions(sel))
    return [[f, f"{n} op versions"] for f, n in sorted(counts.items())]


def ops(sel: Selection) -> Rows:
    """Op version, family, opsets at which it is in force."""
    rows = []
    for v in versions(sel):
        first, last = v.opsets[0], v.opsets[-1]
        rows.append([v.key, v.family, f"opset {first}" if first == last else f"opsets {first} to {last}"])
    return rows


def backends(sel: Selection) -> Rows:
    """Name, formats, version or why it cannot be had here.  Starts each backend once."""
    rows = []
    for name in backend_registry.names():
        with backend_registry.create(name) as h:
            why = h.missing()
            formats = h.hello["formats"] if why is None else backend_registry.formats_of(name)
            state = str(h.hello.get("version", "")) if why is None else f"not here: {why}"
            rows.append([name, ",".join(formats), state])
    return rows


def known(sel: Selection) -> Rows:
    """Id, known or ambiguous, backends, ops, reason."""
    return [
        [e.id, e.kind_of, ",".join(e.backends), ",".join(e.ops), e.reason or e.clause]
        for e in load_ledger().entries
        if not sel.ops or any(o.split("/")[-1] in sel.ops or o in sel.ops for o in e.ops)
    ]


LISTS: dict[str, Callable[[Selection], Rows]] = {
    "dialects": dialects, "opsets": opsets, "families": families, "ops": ops, "backends": backends, "known": known,
}  # fmt: skip
