"""The kinds of random graphs."""

from __future__ import annotations

from suites.mil_graphs import KINDS, dialect

for name in KINDS:
    dialect.declare(name)
