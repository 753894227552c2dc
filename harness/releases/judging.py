"""Instances and known differences judged by the backends of one release, each in a process of that release."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from harness.backends import registry as backends
from harness.cases.case import Case, fill
from harness.cases.result import Result
from harness.core.errors import UsageError
from harness.core.outcome import Verdict
from harness.declare import registry
from harness.engine.engine import Engine
from harness.evidence.known_report import in_neighbours
from harness.ledger.entry import LedgerEntry
from harness.ledger.ledger import Ledger
from harness.session.session import Backends
from harness.workers.pool import BackendHandle
from harness.workers.spec import Place

UNTOLD = (Verdict.UNSUPPORTED, Verdict.UNKNOWN)  # verdicts that tell nothing of a release


@dataclass(frozen=True)
class Subject:
    """What is looked for in a release: a known difference, or any wrong answer to an instance.

    ledger: where another entry of it is listed for the release and explains the answer, nothing is told."""

    name: str
    case: Case
    entry: LedgerEntry | None = None
    ledger: Ledger | None = None

    def asks(self, backend: str) -> bool:
        """Is it for this backend?"""
        return self.entry is None or any(fnmatchcase(backend, p) for p in self.entry.backends)

    def shows(self, handle: BackendHandle) -> bool | None:
        """Does it show on a started backend?  None where the backend does not take the instance."""
        if self.case.version.dialect.format not in handle.info.formats:
            return None
        result = self._result(handle)
        if result is None or result.verdict in UNTOLD:
            return None
        if self.entry is None:
            return result.verdict.bad
        if result.verdict is Verdict.AMBIGUOUS and result.outcome.status.value == "rejected":
            result = replace(result, verdict=Verdict.WRONGLY_REJECTED, ambiguity=None)
        if not (result.verdict.bad and replace(self.entry, versions=()).matches(result, handle.info)):
            return False
        if self.ledger is not None and not self.entry.there(handle.info):
            other = self.ledger.explain(replace(result), handle.info)
            return None if other is not None else True
        return True

    def _result(self, handle: BackendHandle) -> Result | None:
        e = self.entry
        if e is not None and (e.neighbours or e.may_hang):
            return in_neighbours(e, handle)
        return next(iter(Engine([handle]).judge([self.case])), None)


def of_entry(entry: LedgerEntry, ledger: Ledger | None = None) -> Subject:
    """Raises UsageError for an entry without an instance.  ledger: see ``Subject``."""
    if entry.instance is None:
        raise UsageError(f"{entry.id}: expected an entry with an instance, this one has none")
    return Subject(entry.id, fill(registry.version_of(entry.instance), entry.instance), entry, ledger)


def backends_of(package: str) -> list[str]:
    """The built-in backends that a package serves.  Raises UsageError for a package of none."""
    names = [n for n in backends.BUILTIN if package in backends.packages_of(n)]
    if not names:
        known = sorted({p for n in backends.BUILTIN for p in backends.packages_of(n)})
        raise UsageError(f"--package {package}: expected one of {' '.join(known)}, or --backend module:Class with it")
    return names


def judge_release(
    python: str, names: Sequence[str], subjects: Iterable[Subject]
) -> tuple[dict[str, bool | None], dict[str, str], str]:
    """What shows in the release that an interpreter holds, by the name of the subject: on one of the backends is
    enough.  Also why backends could not start, by name, and the release as they say it."""
    found: dict[str, bool | None] = {}
    version = ""
    with Backends(Place(python)) as bench:
        handles = bench.open(names, strict=False)
        for s in subjects:
            told = [s.shows(h) for h in handles if s.asks(h.name)]
            found[s.name] = True if True in told else False if False in told else None
        if handles:
            version = handles[0].info.version
        return found, dict(bench.missing), version
