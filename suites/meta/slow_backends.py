"""Backends for the tests of the command line: slow ones, and ones that do not even start."""

from __future__ import annotations

import time
from typing import Any

from suites.meta.toy_backends import Right


class Slow(Right):
    """Right, but a batch takes a while."""

    name = "slow"

    def run(self, handle: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.03)
        return super().run(handle, inputs)


class Crawls(Right):
    """Right, but done when a test has long ended."""

    name = "crawls"

    def run(self, handle: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        time.sleep(5)
        return super().run(handle, inputs)


class NoVersion(Right):
    """Raises as soon as it is asked what it is."""

    def version(self) -> str:
        raise RuntimeError("this runtime is not licensed")


class WrongFormat(Right):
    """Takes models that nobody makes."""

    formats = ("punched-cards",)
