"""The content of memory that was never written: the allocator of a worker fills it with one of two patterns.

A kernel that forgets to write its output returns whatever the memory holds.  In a young process that is zero, which is
often the right answer.  With a pattern it is the same wrong value in every run, and two patterns give two values.
Every worker runs with the first pattern.  To write a pattern touches every page of a block, so a worker keeps the pages
of large blocks that it frees (``HEAP``).  Without this, ONNX Runtime took 30 % more processor time with the pattern.
"""

from __future__ import annotations

import sys

# glibc (mallopt(3), M_PERTURB): new memory holds the complement of the byte, freed memory the byte itself.  Unwritten
# bytes are 0x5a, which is no plausible zero in any type, or 0x00, which a young process gives.
# macOS (malloc(3)): 0xaa and 0x55, or nothing.
_MAC: tuple[dict[str, str], ...] = ({"MallocPreScribble": "1", "MallocScribble": "1"}, {})
PATTERNS: tuple[dict[str, str], ...] = (
    _MAC if sys.platform == "darwin" else tuple({"MALLOC_PERTURB_": byte} for byte in ("165", "255"))
)
# glibc (mallopt(3)): blocks below 32 MiB, the most that it adapts itself to, come from the heap, and up to 64 MiB stay
# at its end.  By default a block of 128 KiB and more, such as the arena of each session, is a mapping of its own.
HEAP: dict[str, str] = (
    {}
    if sys.platform == "darwin"
    else {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(64 << 20)}
)
# The cache of a thread gives small blocks (up to 1 KiB) back as they were.  Two runs that are compared do without it.
# Other runs keep it: without it LiteRT 2.3.0 crashes in STABLEHLO_SCATTER, which is not listed yet.
_NO_CACHE = {} if sys.platform == "darwin" else {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


def compared(k: int) -> dict[str, str]:
    """The variables of the run with pattern ``k``, of two that are compared."""
    return {**PATTERNS[k], **_NO_CACHE}


def words(k: int) -> str:
    """The same as they stand before a command."""
    return " ".join(f"{n}={v}" for n, v in compared(k).items()) or "no variables"
