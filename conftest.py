"""What is wrong when pytest runs here but cannot find us; the plugin itself is an entry point."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

HOW = "in this folder: pip install -e '.[dev]'"


def pytest_configure(config: pytest.Config) -> None:
    if find_spec("_opconform_native") is None:
        raise pytest.UsageError(f"opconform is not installed in this environment; {HOW}")
    found = find_spec("harness")
    if found is None or Path(str(found.origin)).resolve().parent.parent != Path(__file__).resolve().parent:
        raise pytest.UsageError(f"the opconform that is installed is a copy and not this checkout; {HOW}")
