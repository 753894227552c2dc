"""Runtimes that a test asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harness.backends import registry
from harness.workers.pool import BackendHandle


@contextmanager
def running(name: str, *place: Any, hint: str = "") -> Iterator[BackendHandle]:
    """A backend while it runs; the test is skipped, with the reason, where its runtime is not there."""
    with registry.create(name, *place) as h:
        why = h.missing()
        if why is not None:
            pytest.skip(f"{hint or name}: {why}")
        yield h
