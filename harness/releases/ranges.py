"""What the list says of releases, held against what shows in each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from packaging.version import Version

from harness.cases.selection import matches
from harness.core.errors import UsageError
from harness.ledger.entry import LedgerEntry
from harness.ledger.loader import load_ledger
from harness.ledger.releases import within
from harness.releases.bisect import releases_of
from harness.releases.environments import NoRelease
from harness.releases.judging import Subject, backends_of, judge_release, of_entry
from harness.releases.progress import Bar

PACKAGES = ("onnxruntime", "ai-edge-litert", "tflite-runtime", "coremltools", "onnx")


@dataclass
class Checked:
    """An entry and what shows in the releases of a package: True, False, or None where that cannot be told.  names: how
    the backends call each release."""

    entry: LedgerEntry
    package: str
    found: dict[Version, bool | None] = field(default_factory=dict)
    names: Mapping[Version, str] = field(default_factory=dict)

    @property
    def wrong(self) -> list[Version]:
        """Releases of which the list says otherwise.  Of an intermittent difference, one that does not show says
        nothing."""
        return [
            v
            for v, shows in self.found.items()
            if shows is not None
            and shows is not self.claimed(v)
            and (shows or not (self.entry.intermittent or self.entry.cpu))
        ]

    def claimed(self, version: Version) -> bool:
        """Does the list say that the release shows it?"""
        return within(self.names.get(version) or str(version), self.entry.versions)

    @property
    def spans(self) -> str:
        """The releases with it as ranges in the form of the list: ``>=1.21,<1.25``."""
        return " or ".join(ranges(self.found))

    def line(self) -> str:
        """What is wrong, in words."""
        said = " or ".join(name + str(r) for name, r in self.entry.versions) or "all releases"
        more = [str(v) for v in self.wrong if self.found[v]]
        less = [str(v) for v in self.wrong if not self.found[v]]
        parts = [f"also in {' '.join(more)}"] if more else []
        parts += [f"not in {' '.join(less)}"] if less else []
        shows, wanted = ", ".join(parts), self.spans or "none"
        return f"{self.entry.id}: {self.package}: listed for {said}, shows {shows}; expected {wanted}"


def ranges(found: Mapping[Version, bool | None]) -> list[str]:
    """The releases in which something shows as ranges; what cannot be told belongs to the range around it."""
    told = sorted((v, shows) for v, shows in found.items() if shows is not None)
    out: list[str] = []
    start: Version | None = None
    open_ = False
    for i, (v, shows) in enumerate(told):
        if shows and not open_:
            start, open_ = (v if i else None), True
        elif not shows and open_:
            out.append(_range(start, v))
            open_ = False
    if open_:
        out.append(_range(start, None))
    return out


def _range(start: Version | None, end: Version | None) -> str:
    parts = ([f">={start}"] if start is not None else []) + ([f"<{end}"] if end is not None else [])
    return ",".join(parts) or "all releases"


def concerned(package: str, ops: Iterable[str] = ()) -> list[Subject]:
    """The known differences of the backends that a package serves, of all ops or of those that a pattern names."""
    names, ops = backends_of(package), list(ops)
    out = []
    ledger = load_ledger()
    for e in ledger.entries:
        if e.kind_of != "known" or e.instance is None or (ops and not any(matches(e.instance.key, o) for o in ops)):
            continue
        subject = of_entry(e, ledger)
        if any(subject.asks(n) for n in names) and not (e.shown_by and not set(e.shown_by) & set(names)):
            out.append(subject)
    return out


def check(
    packages: Sequence[str], first: str, last: str, bar: Bar, ops: Iterable[str] = ()
) -> tuple[list[Checked], list[str]]:
    """Every entry of the packages against every final release from first to last: one process for each release and
    backend judges all instances.  Also a line for each release of which nothing can be told.  Raises UsageError."""
    out: list[Checked] = []
    skipped: list[str] = []
    for package in packages:
        subjects = concerned(package, ops)
        if not subjects:
            continue
        try:
            releases = releases_of(package, bar)
            span = releases.span(first, last)
        except UsageError as e:
            skipped.append(str(e))
            continue
        names: dict[Version, str] = {}
        rows = {s.name: Checked(s.entry, package, names=names) for s in subjects if s.entry is not None}
        bar.start(len(span))
        for version in span:
            bar.step(f"{package} {version}")
            try:
                found, missing, names[version] = judge_release(releases.python(version), backends_of(package), subjects)
            except NoRelease as e:
                skipped.append(str(e))
                continue
            skipped += [f"{package} {version}: {n}: {why}" for n, why in missing.items()]
            for name, shows in found.items():
                rows[name].found[version] = shows
            bar.told(f"{package} {version}: {sum(x is True for x in found.values())} of {len(found)} show")
        out += rows.values()
    return out, skipped
