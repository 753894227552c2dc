"""The release in which a wrong answer begins, and the one in which it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil, log2

from packaging.version import Version

from harness.core.errors import UsageError
from harness.ledger.entry import LedgerEntry
from harness.ledger.loader import load_ledger
from harness.releases.environments import NoRelease, Releases, cache_folder
from harness.releases.halving import Halving, History
from harness.releases.judging import Subject, backends_of, judge_release, of_entry
from harness.releases.progress import Bar
from harness.session.replay import find_case, usable

MODULES = {"ai-edge-litert": "ai_edge_litert.interpreter", "tflite-runtime": "tflite_runtime.interpreter"}


@dataclass
class Bisected:
    """What a bisection found.  skipped: a line for each release of which nothing can be told."""

    subject: Subject
    package: str
    first: Version
    last: Version
    history: History[Version]
    skipped: list[str] = field(default_factory=list)

    @property
    def shows_in_the_newest(self) -> bool:
        """Does it show in the newest release that takes it?"""
        return self.history.last_bad is not None and self.history.first_fixed is None

    def lines(self) -> list[str]:
        """The result in words."""
        h = self.history
        span = f"{self.package} {self.first} to {self.last}"
        if h.first_bad is None and h.last_bad is None:
            told = [v for v, a in h.answers.items() if a is not None]
            return [f"{self.subject.name}: shows in none of the {len(told)} releases of {span} that were asked"]
        return [
            f"{self.subject.name}: {span}, {len(h.answers)} releases asked",
            f"last good    {h.last_good or f'none: it shows in {h.first_bad}, the oldest that takes it'}",
            f"first bad    {h.first_bad}",
            f"first fixed  {h.first_fixed or f'none: it shows in {h.last_bad}, the newest'}",
        ]


def find(text: str) -> Subject:
    """The entry of that id, else the instance that a file or an address names.  Raises UsageError."""
    entry = load_ledger().by_id.get(text)
    if entry is not None:
        return of_entry(entry)
    try:
        return Subject(text, usable(find_case(text)))
    except UsageError as e:
        if "/" in text or "@" in text or text.endswith(".json"):
            raise
        raise UsageError(f"{text}: no known difference has this id, and {e}") from None


def releases_of(package: str, log: Bar) -> Releases:
    """The releases of a package, in the user's cache."""
    module = MODULES.get(package, package.replace("-", "_"))
    return Releases(package, module, cache_folder(), log.line)


def bisect(subject: Subject, package: str, names: Sequence[str], first: str, last: str, bar: Bar) -> Bisected:
    """names: backends, empty for all that the package serves.  Raises UsageError."""
    chosen = list(names) or [n for n in backends_of(package) if subject.asks(n)]
    if not chosen:
        raise UsageError(f"{subject.name}: expected a difference of a backend that {package} serves")
    releases = releases_of(package, bar)
    span = releases.span(first, last)
    bar.start(2 + 2 * ceil(log2(len(span) + 1)))
    skipped: list[str] = []
    halving = Halving(span, partial(_ask, releases, chosen, subject, bar, skipped))
    history = halving(likely(subject.entry, span))
    return Bisected(subject, package, span[0], span[-1], history, skipped)


def likely(entry: LedgerEntry | None, span: Sequence[Version]) -> list[Version]:
    """Releases of which an entry says that they show it: the newest, and one in the middle."""
    if entry is None or not entry.versions:
        return []
    listed = [v for v in span if any(r.contains(v, prereleases=True) for _, r in entry.versions)]
    return [listed[-1], listed[len(listed) // 2]] if listed else []


def _ask(
    releases: Releases, names: Sequence[str], subject: Subject, bar: Bar, skipped: list[str], version: Version
) -> bool | None:
    bar.step(f"{releases.package} {version}")
    try:
        python = releases.python(version)
    except NoRelease as e:
        skipped.append(str(e))
        return None
    found, missing, _ = judge_release(python, names, [subject])
    told = found.get(subject.name)
    if told is None:
        why = "; ".join(f"{n}: {w}" for n, w in missing.items()) or "it does not take the instance"
        skipped.append(f"{releases.package} {version}: {why}")
    bar.told(f"{releases.package} {version}: {_WORDS[told]}")
    return told


_WORDS = {True: "wrong", False: "right", None: "cannot be told"}
