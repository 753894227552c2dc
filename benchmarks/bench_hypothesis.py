"""Examples a second of the Hypothesis front end, on one core: drawn alone, and with data and the reference's answer.

    python benchmarks/bench_hypothesis.py
    python benchmarks/bench_hypothesis.py --op Conv --op LSTM --opset 17 --examples 2000

The goal is 400 (DESIGN section 10).  Hypothesis itself takes most of it: the campaign's own engine draws the same
instances some tens of times as fast, which the last column says.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from harness.cases.case import fill
from harness.cases.strategies import instances
from harness.core.instance import Instance
from harness.declare import registry
from harness.generate.draw_engines import Prng, case_seed


def rate(work: Callable[[], Any], count: int) -> float:
    """Repetitions per CPU second."""
    start = time.process_time()
    work()
    return count / (time.process_time() - start)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--op", action="append", help="an ONNX operator, repeatable")
    p.add_argument("--opset", type=int, default=17)
    p.add_argument("--examples", type=int, default=1000)
    a = p.parse_args()
    plan = settings(
        max_examples=a.examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    print(f"{'op':<20}{'drawn/s':>10}{'evaluated/s':>14}{'own engine/s':>14}")
    for op in a.op or ["Add", "Conv", "Softmax", "ReduceSum", "Gather", "LSTM"]:
        drawn, evaluated, own = (rate(work, a.examples) for work in works(op, a.opset, a.examples, plan))
        print(f"{op:<20}{drawn:>10.0f}{evaluated:>14.0f}{own:>14.0f}")
    return 0


def works(op: str, opset: int, examples: int, plan: settings) -> tuple[Callable[[], Any], ...]:
    """Drawn by Hypothesis; drawn by it and evaluated; drawn by the campaign's engine."""
    version = registry.dialect("onnx").effective(op, opset)

    @plan
    @given(instances("onnx", op, opset=opset))
    def drawn(inst: Instance) -> None:
        pass

    @plan
    @given(instances("onnx", op, opset=opset))
    def evaluated(inst: Instance) -> None:
        fill(version, inst)

    def own() -> None:
        for i in range(examples):
            version.draw(Prng(case_seed(0, version.key, i)), opset)

    return drawn, evaluated, own


if __name__ == "__main__":
    sys.exit(main())
