"""Random graphs a second, how many have finite values throughout, and how many pairs of ops stand side by side.

    python benchmarks/bench_graphs.py                            # 500 ONNX graphs of each kind, at the newest opset
    python benchmarks/bench_graphs.py --dialect onnx-graphs --count 2000 --opset 17

``models a second``: graphs drawn a CPU second of this process, evaluated by the reference on the way, which settles
what each node is given.  ``finite``: the share of graphs in which no input, constant, intermediate or output has a NaN
or an infinity.  ``pairs``: distinct (op, op) where the second takes a result of the first, after all graphs.

900 graphs, seed 0, on a core shared with others:

                        models a second   finite   ops   distinct pairs
    onnx-graphs   small             725   96.7 %
                  medium            460   95.0 %
                  large             287   93.7 %   166            5,083

The figures to compare with are those of NNSmith (Liu et al., ASPLOS 2023, doi 10.1145/3575693.3575707, section 5.3):
its artifact measures time and share without NaN and infinity on 512 models each of 10, 20 and 30 nodes
(ganler/nnsmith-asplos-artifact, docs/source/markdown/rdmore.md, EX2).  The text of the paper was not at hand, so that
its numbers do not stand here.  NNSmith searches inputs by gradients; here a node whose result is not finite is drawn
again, seven times in eight.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from harness.core.instance import Graph
from harness.declare import registry
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.programs import operands


def pairs_of(g: Graph) -> Iterator[tuple[str, str]]:
    """The ops of nodes that stand side by side."""
    makers = {o: n.op for n in g.nodes for o in n.outputs}
    for node in g.nodes:
        for _, _, name in operands(node):
            if name in makers:
                yield makers[name], node.op


def finite(scope: dict[str, Any]) -> bool:
    """Has no value a NaN or an infinity?"""
    floats = [x for x in scope.values() if isinstance(x, np.ndarray) and x.dtype.kind not in "iubOSU"]
    return all(bool(np.isfinite(x.astype(np.float64)).all()) for x in floats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialect", default="onnx-graphs")
    parser.add_argument("--count", type=int, default=500, help="graphs of each kind (500)")
    parser.add_argument("--opset", default=None, help="the newest by default")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    d = registry.dialect(args.dialect)
    opset = next(o for o in reversed(d.opsets) if args.opset in (None, str(o)))
    pairs: set[tuple[str, str]] = set()
    ops: set[str] = set()
    for v in d.versions.values():
        v.draw(Prng(1), opset)  # what is made once
        start = time.process_time()
        drawn = [v.draw(Prng(case_seed(args.seed, v.key, i)), opset) for i in range(args.count)]
        seconds = time.process_time() - start
        kept, nodes = 0, 0
        for inst in drawn:
            g: Graph = inst.attrs["program"]
            pairs.update(pairs_of(g))
            ops.update(n.op for n in g.nodes)
            nodes += len(g.nodes)
            with np.errstate(all="ignore"):
                kept += finite(d.language.run(g, arrays_of(inst)["inputs"], opset))  # type: ignore[attr-defined]
        print(
            f"{v.op:8} {args.count / seconds:7.1f} models a second, {nodes / args.count:4.1f} nodes each, "
            f"{kept / args.count:6.1%} finite throughout",
            flush=True,
        )
    print(f"{len(ops)} ops, {len(pairs)} distinct pairs of ops after {args.count * len(d.versions)} models")


if __name__ == "__main__":
    main()
