"""A limit on the resident memory of a process and of its descendants.

Some runtimes reserve far more addresses than they use.  A limit on the address space would reject them without need.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from .supervisor import descendants

PAUSE = 0.2  # seconds between two looks


def resident(pids: list[int]) -> int:
    """Bytes of memory that are theirs and in use; what they share is counted once for each."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm") as f:
                total += int(f.read().split()[1])
        except (OSError, IndexError):
            continue
    return total * os.sysconf("SC_PAGE_SIZE")


def start(limit: int) -> None:
    """Ends this process, and what it started with it, once more than ``limit`` bytes are resident."""
    if not os.path.exists("/proc/self/statm"):
        return

    def watch() -> None:
        here = os.getpid()
        while True:
            time.sleep(PAUSE)
            used = resident([here, *descendants()])
            if used > limit:
                sys.stderr.write(f"\nout of memory: {used >> 20} MiB are resident, the limit is {limit >> 20} MiB\n")
                sys.stderr.flush()
                os._exit(70)

    threading.Thread(target=watch, daemon=True).start()
