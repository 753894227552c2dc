"""The files of known differences and of the ambiguity ledger, found and read.

A folder ``known`` next to the dialects holds

* files ``*.toml``, which are all read, such as the ambiguities of each dialect,
* folders that ``folders.toml`` lists (``harness.ledger.folders``), with a file for each family of ops,
* next to each file its minimal instances, ``*.jsonl``,
* the folder ``defects`` with the functions that ``defect_model`` names.

``docs/known-differences.md`` lists the fields of an entry.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from harness.ledger.files import files, read
from harness.ledger.folders import listed
from harness.ledger.ledger import Ledger
from harness.ledger.own import own_entries
from harness.workers.info import BackendInfo


def folders() -> list[Path]:
    """The ``known`` folders beside the dialects (entry points ``opconform.dialects``)."""
    roots = {e.value.split(":")[0].split(".")[0] for e in metadata.entry_points(group="opconform.dialects")}
    out = []
    for root in sorted(roots):
        spec = find_spec(root)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            if (Path(place) / "known").is_dir():
                out.append(Path(place) / "known")
    return list(dict.fromkeys(out))


def load_ledger(
    places: Iterable[Path] | None = None,
    backends: Iterable[BackendInfo] | None = None,
    own: Iterable[Path] = (),
) -> Ledger:
    """The list in ``places``, those beside the dialects by default.  backends: of the folders in ``folders.toml``,
    only those that speak of these are read, and others once the ledger is asked about their backends.  own: files of a
    user's lists, tried after ours.  Raises FormatError naming file, line, entry and field."""
    ledger = Ledger()
    for place in places if places is not None else folders():
        for path in files(place):
            ledger.add(read(path, place))
        ledger.unread += listed(place)
    if backends is None:
        ledger.read_all()
    for info in backends or ():
        ledger.read_for(info)
    ledger.add(own_entries(own))
    return ledger
