"""Ranges of releases."""

from __future__ import annotations

import re

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

Range = tuple[str, SpecifierSet]  # name of a package and a space, or nothing; its releases


def in_releases(version: str, text: str) -> bool:
    """Does the release of a version text lie in a range like those of an entry?  Raises InvalidSpecifier."""
    return within(version, (releases(text),))


def within(version: str, allowed: tuple[Range, ...]) -> bool:
    """Does the first thing in a version text that is a release lie in one of the ranges, or are there none?
    ("coremltools 9.0, macOS 15.1")"""
    if not allowed:
        return True
    found = re.search(r"\d+(\.\d+)*\w*", version)
    try:
        return found is not None and any(
            version.startswith(name) and r.contains(Version(found[0]), prereleases=True) for name, r in allowed
        )
    except InvalidVersion:
        return False


def releases(text: str) -> Range:
    """Of ``<1.24``, or with the name of a package before it.  Raises InvalidSpecifier."""
    name, space, rest = text.rpartition(" ")
    if not re.fullmatch(r"[a-z][\w-]*", name):
        name, space, rest = "", "", text
    return name + space, SpecifierSet(rest)


def below(inner: Range, outer: Range) -> bool:
    """Do all releases of the inner range come before the end of the outer one, ``<RELEASE``, and in its package?"""
    (name, some), (package, end) = inner, outer
    ends = [Version(s.version) for s in end if s.operator == "<"]
    return name.startswith(package) and any(
        s.operator in ("<", "<=", "==") and (Version(s.version) < e or (s.operator == "<" and Version(s.version) == e))
        for e in ends
        for s in some
        if not s.version.endswith(".*")
    )
