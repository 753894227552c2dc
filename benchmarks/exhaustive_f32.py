"""Every one of the 2**32 f32 inputs of a unary function: how many results are not correctly rounded?

    python benchmarks/exhaustive_f32.py exp tanh            # minutes a function; progress on stderr
    python benchmarks/exhaustive_f32.py --out done.jsonl    # all of them; started again, it goes on where it was
    python benchmarks/exhaustive_f32.py --shard 3/16        # a sixteenth of the inputs of every function
    python benchmarks/exhaustive_f32.py --stride 4096 sin   # a quick look: every 4096th block of 65,536 inputs

Three steps, each for what the one before leaves open.  NumPy's f64 functions, taken to be good to 2**-39, settle all
results but one in some 10,000; then the two of ``native_ref.tests.reference``: long double, and mpmath.  Nothing is
called wrong by the first step.

One line of JSON a function: inputs judged (finite, and inside the function's domain), results not correctly rounded,
how many came to the second step and to mpmath, the first few wrong inputs.  Exit code 1 when more than one in a million
is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import native_ref
from native_ref.tests.reference import UNARY, Ref, wrong

BLOCK = 1 << 16
BLOCKS = 1 << 16
PART = 1 << 14  # of a block, at a time: what fits into a cache
REPORT = 1024  # blocks between two lines of progress, and of --out
OVERFLOW = float(np.ldexp(2.0 - 2.0**-24, 127))
LOW = np.int64((1 << 29) - 1)  # the bits of an f64 that an f32 does not have
MARGIN = np.int64(1 << 13)  # of the f64 functions, in units of their last place


def unsettled(ref: Ref, wide: np.ndarray, got: np.ndarray) -> tuple[np.ndarray, int]:
    """Indices of the inputs whose results f64 arithmetic cannot call right, and how many inputs count at all.

    wide: finite inputs as f64.  got: their results.  An f64 value that is no tie of f32, give or take MARGIN, has one
    rounding: where ``got`` is that, it is right.  Zero is zero, or far below the smallest f32.
    """
    near = ref.wide(wide, *ref.params).astype(np.float64, copy=False)
    low = near.view(np.int64) & LOW
    low -= LOW >> 1
    sure = np.abs(low, out=low) > MARGIN
    size = np.abs(near)
    small = np.flatnonzero(size < 2.0**-126)
    if small.size:  # f32 is evenly spaced there
        steps = size[small] * 2.0**149
        sure[small] = np.abs(steps - np.floor(steps) - 0.5) > 2.0**-14
    sure &= near.astype(np.float32) == got
    inside = ref.domain(wide)
    sure |= ~inside
    return np.flatnonzero(~sure), int(np.count_nonzero(inside))


@np.errstate(all="ignore")
def judge(name: str, block: int) -> tuple[int, int, int, list[str]]:
    """Inputs judged, by the second step, by mpmath; the wrong ones of one block of inputs."""
    ref = UNARY[name]
    counts, bad = np.zeros(3, np.int64), []
    for part in range(block * BLOCK, (block + 1) * BLOCK, PART):
        x = np.arange(part, part + PART, dtype=np.uint32).view(np.float32)
        if not np.isfinite(x[0]):  # a part is far smaller than a binade
            continue
        got = native_ref.unary(name, x, *ref.params, out=np.float32)
        left, count = unsettled(ref, x.astype(np.float64), got)
        counts[0] += count
        if left.size:
            at, asked = wrong(ref, x[left], got[left], 32, OVERFLOW)
            counts[1:] += left.size, asked
            bad += [float(v).hex() for v in x[left[at]]]
    return int(counts[0]), int(counts[1]), int(counts[2]), bad


def earlier(path: Path | None, key: dict[str, Any]) -> dict[str, Any] | None:
    """The last line of this function, instruction set and choice of blocks in the file of an earlier run."""
    if path is None or not path.exists():
        return None
    lines = (json.loads(line) for line in path.read_text().splitlines())
    return next((v for v in reversed(list(lines)) if {k: v.get(k) for k in key} == key), None)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", default=sorted(UNARY), help="default: all")
    parser.add_argument("--shard", default="1/1", help="i/n: every n-th block, starting at the i-th")
    parser.add_argument("--stride", type=int, default=1, help="only every so many-th block of the shard")
    parser.add_argument("--out", type=Path, help="append progress here as JSON lines, and go on from what it holds")
    args = parser.parse_args(argv)
    unknown = set(args.functions) - set(UNARY)
    if unknown:
        parser.error(f"unknown functions {sorted(unknown)}, expected some of {' '.join(sorted(UNARY))}")
    index, count = (int(v) for v in args.shard.split("/"))
    blocks = range(index - 1, BLOCKS, count * args.stride)
    worst = 0.0
    for name in args.functions:
        key = {"function": name, "isa": native_ref.isa, "shard": args.shard, "stride": args.stride}
        none = dict.fromkeys(("blocks", "inputs", "wrong", "by_long_double", "by_mpmath"), 0)
        line: dict[str, Any] = earlier(args.out, key) or {**key, **none, "first": [], "seconds": 0.0}
        started, before = time.monotonic() - line["seconds"], line["blocks"]
        for done, block in enumerate(blocks[before:], before + 1):
            judged, second, asked, bad = judge(name, block)
            line["inputs"] += judged
            line["wrong"] += len(bad)
            line["by_long_double"] += second
            line["by_mpmath"] += asked
            line["first"] += bad[: max(0, 8 - len(line["first"]))]
            if done % REPORT == 0 or done == len(blocks):
                line["blocks"], line["seconds"] = done, round(time.monotonic() - started, 1)
                left = line["seconds"] / done * (len(blocks) - done)
                print(f"{name}: {done}/{len(blocks)} blocks, {line['wrong']} wrong, {left:.0f} s left", file=sys.stderr)
                if args.out:
                    with args.out.open("a") as f:
                        f.write(json.dumps(line) + "\n")
        worst = max(worst, line["wrong"] / max(line["inputs"], 1))
        print(json.dumps(line), flush=True)
    return 1 if worst > 1e-6 else 0


if __name__ == "__main__":
    sys.exit(main())
