"""Every one of the 2**32 f32 inputs of a unary function: how many results are not correctly rounded?

    python benchmarks/exhaustive_f32.py exp tanh            # hours; progress on stderr
    python benchmarks/exhaustive_f32.py --shard 3/16        # a sixteenth of the inputs of every function
    python benchmarks/exhaustive_f32.py --stride 4096 sin   # a quick look: every 4096th block of 65,536 inputs

One line of JSON a function: inputs judged, results not correctly rounded, how many mpmath decided, the first few
inputs. Exit code 1 when more than one in a million is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import numpy as np

import native_ref
from native_ref.tests.reference import UNARY, wrong

BLOCK = 1 << 16
BLOCKS = 1 << 16
OVERFLOW = float(np.ldexp(2.0 - 2.0**-24, 127))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", default=sorted(UNARY), help="default: all")
    parser.add_argument("--shard", default="1/1", help="i/n: every n-th block, starting at the i-th")
    parser.add_argument("--stride", type=int, default=1, help="only every so many-th block of the shard")
    args = parser.parse_args(argv)
    unknown = set(args.functions) - set(UNARY)
    if unknown:
        parser.error(f"unknown functions {sorted(unknown)}, expected some of {' '.join(sorted(UNARY))}")
    index, count = (int(v) for v in args.shard.split("/"))
    blocks = range(index - 1, BLOCKS, count * args.stride)
    worst = 0.0
    for name in args.functions:
        ref, started, judged, bad, asked, first = UNARY[name], time.monotonic(), 0, 0, 0, []
        for done, block in enumerate(blocks, 1):
            x = (np.arange(BLOCK, dtype=np.uint32) + np.uint32(block * BLOCK)).view(np.float32)
            with np.errstate(all="ignore"):
                got = native_ref.unary(name, x, *ref.params, out=np.float32)
                at, near = wrong(ref, x, got, 32, OVERFLOW)
            judged, bad, asked = judged + BLOCK, bad + at.size, asked + near
            first += [float(v).hex() for v in x[at[: max(0, 8 - len(first))]]]
            if done % 64 == 0 or done == len(blocks):
                spent = time.monotonic() - started
                left = spent / done * (len(blocks) - done)
                print(f"{name}: {done}/{len(blocks)} blocks, {bad} wrong, {left:.0f} s left", file=sys.stderr)
        worst = max(worst, bad / judged)
        line = {
            "function": name,
            "isa": native_ref.isa,
            "inputs": judged,
            "wrong": bad,
            "by_mpmath": asked,
            "first": first,
            "seconds": round(time.monotonic() - started, 1),
        }
        print(json.dumps(line), flush=True)
    return 1 if worst > 1e-6 else 0


if __name__ == "__main__":
    sys.exit(main())
