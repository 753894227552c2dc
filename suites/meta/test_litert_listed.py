"""Listed differences of LiteRT: which answers of an instance they excuse, and which they do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.case import fill
from harness.core.dtypes import of
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.core.quiet import quiet
from harness.declare import registry
from harness.engine.verdict import judge_case
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo

LEDGER = load_ledger(backends=[BackendInfo("litert-ref", "2.3.0")])


def arg(values: Any, const: bool = False, dtype: Any = np.float32) -> Arg:
    x = np.asarray(values, dtype)
    return Arg(of(x), x.shape, const, values=x.ravel().tolist())


def instance(op: str, version: Any, args: dict[str, Arg], attrs: dict[str, Any], outs: int = 1) -> Instance:
    return Instance("tflite", op, version, 1, attrs, args, outs)


def verdict(inst: Instance, backend: str, *outputs: Any) -> tuple[Verdict, str | None]:
    """The verdict on an answer, and the entry that excuses it."""
    case = fill(registry.version_of(inst), inst)
    assert case.expected, case.problem
    row = [np.asarray(o, e.value.dtype) for o, e in zip(outputs, case.expected[0], strict=True)]
    with quiet:
        result = judge_case(case, BackendInfo(backend, "2.3.0"), [Outcome(Status.VALUE, row)], LEDGER)
    return result.verdict, result.known


def test_sparse_weights_read_as_dense_ones_meet_subnormals() -> None:
    layout = {"order": [0, 1], "block_map": [], "block": [], "csr": [False, True], "width": 8}
    x, w = [[1.1754942e-38, 1.0, 0.0], [1.0, 1.0, 1.0]], [[-2.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    inst = instance("FULLY_CONNECTED", 10, {"input": arg(x), "filter": arg(w, True)}, {"@sparsity": {"filter": layout}})
    dense, entry = np.array([-2.0, 1.0, 1.0]), "xnnpack-sparse-weights-as-dense"
    product = np.asarray(x, np.float32) @ dense
    assert verdict(inst, "litert-xnnpack", np.stack([product, [7, 7]], 1)) == (Verdict.KNOWN, entry)
    flushed = np.array([1.0, 0.0])
    small = instance(
        "FULLY_CONNECTED", 10, {"input": arg([[1.1754942e-38, 0.0, 0.0], x[1]]), "filter": arg(w, True)}, inst.attrs
    )
    for first, found in ((flushed[1], Verdict.KNOWN), (1e-38, Verdict.MISMATCH)):
        assert verdict(small, "litert-xnnpack", [[first, 7], [0, 7]])[0] is found
