"""Which op versions a run covers: dialects, opsets, ops, families; shards; work units."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from harness.core.errors import UsageError
from harness.declare import OpVersion, registry
from harness.generate.draw_engines import mix
from harness.workers.claims import EVERYTHING, Claims


@dataclass
class Selection:
    """What the user asked for.

    opset: build at exactly this opset, with the versions in force there.
    ops: patterns of an op's name (``Conv``, ``Reduce*``), of ``dialect/op`` or of ``dialect/op/version``.
    without: the same patterns, of ops that are left out.
    shard: (i, n), counted from 1.
    claims: instances beyond them are neither drawn nor counted.
    """

    dialects: Sequence[str] = ()
    opset: Any = None
    ops: Sequence[str] = ()
    families: Sequence[str] = ()
    shard: tuple[int, int] = (1, 1)
    extra: dict[str, Any] = field(default_factory=dict)
    without: Sequence[str] = ()
    claims: Claims = EVERYTHING

    def to_json(self) -> dict[str, Any]:
        return {
            "dialects": list(self.dialects),
            "opset": self.opset,
            "ops": list(self.ops),
            "families": list(self.families),
            "shard": list(self.shard),
            **({"without": list(self.without)} if self.without else {}),
            **({"claims": self.claims.to_json()} if self.claims else {}),
            **self.extra,
        }


def parse_opset(text: str) -> tuple[str, Any]:
    """``ios17``, ``onnx17``, ``tflite`` or the marker ``opset_ios17`` -> (dialect, opset); raises UsageError."""
    known = registry.opset_markers()
    marker = text if text.startswith("opset_") or text in known else f"opset_{text}"
    if marker not in known:
        raise UsageError(f"unknown opset {text!r}{registry.near(marker, list(known))}, expected e.g. ios17, onnx17")
    return known[marker]


def versions(sel: Selection) -> list[OpVersion]:
    """The op versions selected; raises UsageError where a name matches nothing."""
    out: list[OpVersion] = []
    for name in sel.dialects or registry.names():
        for v in registry.dialect(name).versions.values():
            if sel.opset is not None and sel.opset not in v.opsets:
                continue
            out.append(v)
    if sel.ops:
        for pattern in sel.ops:
            if not any(matches(v.key, pattern) for v in out):
                raise UsageError(f"no op matches {pattern!r}{registry.near(pattern, sorted({v.op for v in out}))}")
        out = [v for v in out if any(matches(v.key, p) for p in sel.ops)]
    for pattern in sel.without:
        if not any(matches(v.key, pattern) for v in out):
            raise UsageError(f"no op matches {pattern!r}{registry.near(pattern, sorted({v.op for v in out}))}")
    out = [v for v in out if not any(matches(v.key, p) for p in sel.without)]
    if sel.families:
        known = {v.family for v in out}
        for f in sel.families:
            if f not in known:
                names = sorted(known)
                raise UsageError(f"no op family {f!r}{registry.near(f, names)}; there are {' '.join(names)}")
        out = [v for v in out if v.family in sel.families]
    i, n = sel.shard
    if not 1 <= i <= n:
        raise UsageError(f"shard: expected i/n with 1 <= i <= n, got {i}/{n}")
    return [v for v in out if n == 1 or mix(hash_key(v.key)) % n == i - 1]


def matches(key: str, pattern: str) -> bool:
    """Does a pattern (``Conv``, ``onnx/Conv``, ``onnx/Conv/11``, with wildcards) take in an op version?"""
    dialect, op, _ = key.split("/")
    return any(fnmatch.fnmatchcase(name, pattern) for name in (op, f"{dialect}/{op}", key))


@cache
def hash_key(key: str) -> int:
    """A number of a key that is the same on every machine."""
    h = 0
    for ch in key.encode():
        h = (h * 1000003 ^ ch) & 0xFFFFFFFFFFFF
    return h


@dataclass(frozen=True, slots=True)
class Unit:
    """Cases first..first+count-1 of one op version, built at one opset: what is judged and recorded together."""

    version: OpVersion
    opset: Any
    first: int
    count: int

    @property
    def name(self) -> tuple[str, Any, int]:
        return self.version.key, self.opset, self.first


UNIT = 16


def units(
    chosen: Sequence[OpVersion],
    cases: int | None,
    opset: Any = None,
    done: set[tuple[str, Any, int]] | None = None,
    endless: bool = False,
    top: Any = None,
    claims: Callable[[OpVersion], Claims] = lambda _: EVERYTHING,
) -> Iterator[Unit]:
    """Work units in rounds, so that every op is reached early.

    cases: number for each op version; None: as many as its dialect says.  They are spread over the opsets at which it
        is in force, with more at the ends.
    top: the newest opset that all backends know.
    done: names of units to leave out, when a run is resumed.
    claims: op versions and opsets beyond them are left out.
    """
    asked = [(v, claims(v)) for v in chosen]
    asked = [(v, c) for v, c in asked if c.takes(v.key) and c.opsets_of(v.opsets if opset is None else [opset])]
    first = 0
    while asked:  # a shard may be empty
        at = [(v, opset_at(v, first // UNIT, opset, top, c)) for v, c in asked]
        for v, o in sorted(at, key=lambda x: str(x[1])):
            if done is None or (v.key, o, first) not in done:
                yield Unit(v, o, first, UNIT if endless else min(UNIT, (cases or v.dialect.cases) - first))
        first += UNIT
        asked = [(v, c) for v, c in asked if endless or first < (cases or v.dialect.cases)]


def opset_at(v: OpVersion, turn: int, fixed: Any = None, top: Any = None, claims: Claims | None = None) -> Any:
    """Opset of the turn-th unit of a version: the newest that all backends know, the first, the last, then any."""
    if fixed is not None:
        return fixed
    r = v.opsets if claims is None else claims.opsets_of(v.opsets)
    ends = known(r, top)[-1], r[0], r[-1]
    return ends[turn % 4] if turn % 4 < 3 else r[mix(hash_key(v.key) + turn) % len(r)]


def known(opsets: Sequence[Any], top: Any) -> Sequence[Any]:
    """Those of some opsets that a backend knows; all, if it knows none of them."""
    return [o for o in opsets if o <= top] or opsets if isinstance(top, int) and isinstance(opsets[0], int) else opsets
