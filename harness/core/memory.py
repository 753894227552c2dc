"""What somebody's sizes ask for may be more than the machine has: an error then, not the end of the process."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def available() -> int:
    """Bytes that could still be allocated without taking them from anybody."""
    try:
        with open("/proc/meminfo") as f:
            found = next((line for line in f if line.startswith("MemAvailable:")), None)
        if found is not None:
            return int(found.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _mapped() -> int | None:
    """Bytes of address space that this process has; None where the system does not tell."""
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return None


@contextmanager
def bounded() -> Iterator[None]:
    """Inside, an allocation beyond what the machine has raises MemoryError, where the system lets us say so (Linux: it
    grants such an allocation, and kills the process that uses it)."""
    mapped = _mapped() if sys.platform == "linux" else None
    if mapped is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    ends = [n for n in (soft, hard, mapped + available()) if n != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(ends), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
