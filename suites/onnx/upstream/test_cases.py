"""Every backend test case of the installed onnx through ``run_model``; what is excepted is listed with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import UsageError
from suites.onnx.test_schema import UNDECLARED, tomllib
from suites.onnx.upstream.cases import KINDS, Case, cases, check

EXCEPTIONS = tomllib.loads((Path(__file__).parent / "exceptions.toml").read_text())
EXCEPTED = {c for group in EXCEPTIONS.values() for c in group["cases"]}
WITHOUT = {v.partition("/")[0] for group in UNDECLARED.values() for v in group["versions"]}
CHUNKS = 16


def wrong(case: Case) -> str | None:
    """What goes wrong with a case, None where nothing does or the op is listed as undeclared."""
    try:
        return check(case)
    except UsageError as e:
        return None if case.ops & WITHOUT else str(e)
    except Exception as e:  # any exception is this case's failure
        return f"{type(e).__name__}: {e}"


def failures(kind: str, part: int) -> dict[str, str]:
    """name -> what went wrong, over one part of a kind's cases."""
    bad = {}
    for i, (name, case) in enumerate(cases(kind).items()):
        why = wrong(case) if i % CHUNKS == part else None
        if why is not None and name not in EXCEPTED:
            bad[name] = why
    return bad


@pytest.mark.parametrize("part", range(CHUNKS))
def test_node_cases(part: int) -> None:
    assert failures("node", part) == {}


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "node"])
def test_model_cases(kind: str) -> None:
    assert {k: v for part in range(CHUNKS) for k, v in failures(kind, part).items()} == {}


def test_exceptions_exist_and_are_needed() -> None:
    every = {name: case for kind in KINDS for name, case in cases(kind).items()}
    assert all(group["reason"] for group in EXCEPTIONS.values())
    assert set(every) >= EXCEPTED
    assert [name for name in sorted(EXCEPTED) if wrong(every[name]) is None] == []


def test_there_are_as_many_cases_as_published() -> None:
    assert len(cases("node")) >= 1884
    assert sum(len(cases(kind)) for kind in KINDS) >= 2020
