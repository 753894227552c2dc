"""Write the open goals of ``suites/<dialect>/unreached.toml`` anew, from what is drawn today.

    python scripts/reach.py onnx tflite     # these dialects; all without names
    python scripts/reach.py onnx --op 'Conv*'   # these op versions; the others keep what is written
    python scripts/reach.py --count         # writes nothing: prints goals, met, ruled out and open of each dialect

A goal that is met in ``OFTEN`` draws is no open one (``harness.reach.survey``).  One that was none stays so where
the draws of the law meet it: ``--draws 4000`` takes such goals off the list once.  A goal that a clause rules out is
never written, and one that is ruled out and met is an error.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor

from harness.cases.selection import matches
from harness.declare import registry
from harness.reach.goals import goals_of
from harness.reach.survey import DRAWS, OFTEN, met_in
from harness.reach.unreached import WRITTEN_BELOW, Unreached, written

PATIENCE = 3  # times the draws of the law, as its test has


def unmet(key: str, draws: int, listed: set[str]) -> tuple[str, set[str]]:
    """The goals of an op version that no instance meets.  listed: those that are open or ruled out so far."""
    version = registry.dialect(key.partition("/")[0]).versions[key]
    left = set(goals_of(version).ids) - met_in(version, draws)
    late = left - listed
    return key, left - met_in(version, PATIENCE * DRAWS - draws, first=draws, needed=late) if late else left


def main() -> int:
    """Exit code 1 if a goal that is ruled out is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dialects", nargs="*", metavar="DIALECT")
    parser.add_argument("--count", action="store_true", help="write nothing, print the numbers")
    parser.add_argument("--op", action="append", default=[], metavar="PATTERN", help="op versions, as in `opconform`")
    parser.add_argument("--draws", type=int, default=OFTEN, help=f"instances of each op version (default {OFTEN})")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    wrong = 0
    with ProcessPoolExecutor(args.jobs) as pool:
        for name in args.dialects or registry.names():
            dialect = registry.dialect(name)
            versions = list(dialect.versions.values())
            ledger = Unreached(dialect)
            keys = [v.key for v in versions if not args.op or any(matches(v.key, p) for p in args.op)]
            found = {v.key: ledger.open_goals(v) for v in versions} if args.op else {}
            known = [ledger.open_goals(v) | ledger.clauses(v).keys() for v in versions if v.key in set(keys)]
            found.update(pool.map(unmet, keys, [args.draws] * len(keys), known, chunksize=4))
            total = ruled = 0
            for v in versions:
                clauses = ledger.clauses(v)
                total, ruled = total + len(goals_of(v).ids), ruled + len(clauses)
                for goal in sorted(clauses.keys() - found[v.key] if v.key in keys else ()):
                    wrong += 1
                    print(f"{v.key}: {goal} is ruled out, and met: {clauses[goal]}")
                found[v.key] -= clauses.keys()
            left = sum(map(len, found.values()))
            print(f"{name}: {total} goals, {total - ruled - left} met, {ruled} ruled out, {left} open", flush=True)
            if not args.count:
                text = ledger.path.read_text().partition(WRITTEN_BELOW)[0] if ledger.path.exists() else ""
                ledger.path.write_text(f"{text.rstrip()}\n\n{WRITTEN_BELOW}\n{written(found, versions)}".lstrip())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
