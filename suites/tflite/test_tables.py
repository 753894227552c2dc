"""16-bit functions by table: what the table gives passes, and so does the exact result, but nothing between the two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.compare import judge
from harness.compare.steps import others
from harness.core.dtypes import I16
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.semantics.quantised.functions import looked_up
from suites.tflite import dialect

# (operator, version, operand's scale, output's scale, operand, exact steps)
CASES = [
    ("RSQRT", "3q", 0.5, 1 / 1500, 1, 2121),  # the kind: the table says 24000
    ("LOG", "2q", 0.5, 0.02, 3, 20),
    ("EXP", "2q", 0.0004, 0.05, 20000, 32767),
    ("EXP", "2q", 0.0004, 0.05, 9000, 732),
]
# versions whose bound lets more than a handful of integers pass -> where that is derived
DERIVED = {
    "SOFTMAX": "_softmax_freedom: two readings of a table of exp",
    "BASIC_LSTM": "basic_lstm.py: every stored stage half a step, carried through the cell",
    "LSTM": "quantised_recurrent.py: the same",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "the same, over the steps of a sequence",
}


def quant(scale: Any) -> dict[str, Any]:
    return {"scale": [float(np.float32(scale))], "zero_point": [0], "axis": 0}


def expected(op: str, version: Any, scale: Any, out: Any, value: Any) -> Any:
    slot = dialect.versions[f"tflite/{op}/{version}"].schema.inputs[0].name
    inst = Instance(
        "tflite",
        op,
        version,
        1,
        {"@outputs": [{"dtype": "i16", "quant": quant(out)}]},
        {slot: Arg(I16, (1,), values=[value], quant=quant(scale))},
    )
    return dialect.evaluate(inst, arrays_of(inst))


@pytest.mark.parametrize(("op", "version", "scale", "out", "value", "exact"), CASES)
def test_the_exact_result_and_the_table_pass_alone(
    op: str, version: Any, scale: Any, out: Any, value: Any, exact: Any
) -> None:
    want = expected(op, version, scale, out, value)
    assert want[0].value.tolist() == [exact]
    table = int(looked_up(op.lower(), np.array([value]), quant(scale), quant(out))[0])
    allowed = {exact, *range(max(table - 1, -32768), min(table + 1, 32767) + 1)}
    tried = {*allowed, exact - 1, exact + 1, table - 2, table + 2, (exact + table) // 2, 0, -32768, 32767}
    for step in sorted(t for t in tried if -32768 <= t <= 32767):
        got = Outcome(Status.VALUE, [np.array([step], np.int16)])
        assert (judge(want, got).verdict is Verdict.AGREE) == (step in allowed), (step, allowed)


QUANTISED = sorted(k for k, v in dialect.versions.items() if v.schema.domain == "quantised")


@pytest.mark.parametrize("key", [k for k in QUANTISED if k.split("/")[1] not in DERIVED])
def test_few_integers_pass_next_to_the_reference(key: str) -> None:
    for n in range(6):
        inst = dialect.versions[key].draw(Prng(case_seed(5, key, n)))
        with np.errstate(all="ignore"):
            for e in dialect.evaluate(inst, arrays_of(inst)):
                if e.error.moves_integers or e.error.formula.startswith("SET: QUANT"):
                    assert others(e).max(initial=0) <= 6, (key, n, e.error.formula)
