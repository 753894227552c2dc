"""Two trees, or two settings of one, by the same measure: turn by turn, so that a busy machine slows both alike.

    T=benchmarks/bench_throughput.py
    python benchmarks/in_step.py "OLD/bin/python OLD/$T --in-step" "NEW/bin/python NEW/$T --in-step" --turns 24
    python benchmarks/in_step.py "... --in-step" "... --in-step --no-edges --no-pattern"

Each command is a ``bench_throughput.py --in-step``.  A turn is 16 cases of every op version.  The figures are CPU
microseconds of host and worker a judged value (medians over the turns), and medians of the ratios of single turns,
the first command over the second: above 1 the second is quicker.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
from contextlib import ExitStack
from statistics import median, quantiles


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("commands", nargs=2)
    p.add_argument("--turns", type=int, default=16)
    a = p.parse_args()
    with ExitStack() as stack:
        sides = [stack.enter_context(started(c)) for c in a.commands]
        for side in sides:
            turn(side)  # the first also learns what the backend takes, and is no measure
        seen = [pair(sides, first=i % 2) for i in range(a.turns)]
        for side in sides:
            assert side.stdin is not None
            side.stdin.close()
    for k, command in enumerate(a.commands):
        n = sum(pair[k][0] for pair in seen)
        us = {name: round(median(pair[k][i] for pair in seen), 1) for i, name in enumerate(PARTS, 1)}
        print(json.dumps({"command": command, "values": n, "us": us}))
    ratios = {name: [first[i] / second[i] for first, second in seen] for i, name in enumerate(PARTS, 1)}
    print(json.dumps({name: [round(x, 3) for x in quantiles(r)] for name, r in ratios.items()}))
    return 0


PARTS = ("host", "worker", "all")
Figures = tuple[int, float, float, float]


def started(command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def pair(sides: list[subprocess.Popen[str]], first: int) -> list[Figures]:
    """A turn of each side, that of number ``first`` before the other."""
    figures = {k: turn(sides[k]) for k in (first, 1 - first)}
    return [figures[0], figures[1]]


def turn(side: subprocess.Popen[str]) -> Figures:
    """Values of one turn; CPU microseconds a value of host, worker and both."""
    assert side.stdin is not None
    assert side.stdout is not None
    side.stdin.write("\n")
    side.stdin.flush()
    n, host, worker = json.loads(side.stdout.readline())
    return n, host / n * 1e6, worker / n * 1e6, (host + worker) / n * 1e6


if __name__ == "__main__":
    raise SystemExit(main())
