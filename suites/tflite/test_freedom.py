"""How far a quantised result may be off is counted from the real number, on either side of it, and ends where the
result is clamped: one step further fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.compare import judge
from harness.core.dtypes import int_range
from harness.core.instance import Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.semantics.quantised.fixed import CURVES
from suites.semantics.quantised.recurrent import GATE, lstm
from suites.semantics.tensorflow_recurrent import GATES, sigmoid
from suites.tflite import dialect

QUANTISED = sorted(k for k, v in dialect.versions.items() if v.schema.domain == "quantised")


def judged(expected: Any, values: Any, i: int) -> Any:
    """The verdict on output ``i`` when it holds ``values``, all others as expected."""
    got = [values if n == i else e.value for n, e in enumerate(expected)]
    return judge(expected, Outcome(Status.VALUE, got)).verdict


def at(value: Any, place: Any, step: Any) -> Any:
    out = value.copy()
    out[place] = step
    return out


@pytest.mark.parametrize("key", QUANTISED)
def test_the_last_step_within_the_freedom_passes_and_the_next_fails(key: str) -> None:
    for n in range(4):
        inst = dialect.versions[key].draw(Prng(case_seed(11, key, n)))
        with np.errstate(all="ignore"):
            expected = dialect.evaluate(inst, arrays_of(inst))
            for i, e in enumerate(expected):
                if not e.error.moves_integers or not e.value.size:
                    continue
                ctx = e.context()
                low, high = (np.broadcast_to(x, e.value.shape) for x in e.error.span(ctx))
                if ctx.params.get("activation") in CURVES:  # which the real result goes through yet
                    continue
                real = np.broadcast_to(e.error.real(ctx), e.value.shape)
                free = np.broadcast_to(e.error.tie(ctx), e.value.shape)
                least, most = int_range(e.dtype)
                for flat in np.random.default_rng(n).permutation(e.value.size)[:3]:
                    p = np.unravel_index(flat, e.value.shape)
                    a, b = low[p], high[p]
                    assert a <= e.value[p] <= b, (inst.id, p)
                    assert judged(expected, at(e.value, p, a), i) is not Verdict.MISMATCH, (inst.id, p, a)
                    assert judged(expected, at(e.value, p, b), i) is not Verdict.MISMATCH, (inst.id, p, b)
                    for beyond in (a - 1, b + 1):
                        if least <= beyond <= most:
                            assert judged(expected, at(e.value, p, beyond), i) is Verdict.MISMATCH, (inst.id, p, beyond)
                    reach = 0.5 + free[p] + 1e-9
                    if (
                        real[p] + reach < a or real[p] - reach > b
                    ):  # an activation's limit, which has a freedom of its own
                        assert b - a <= 1, (inst.id, p)
                        continue
                    for end in {a, b} - {e.value[p]}:
                        assert abs(end - real[p]) <= reach, (inst.id, p, end)


def quant(scale: Any, zero: int = 0) -> dict[str, Any]:
    return {"scale": [scale], "zero_point": [zero], "axis": 0}


def wide_product(steps: Any, activation: str = "NONE", out: Any = None) -> Any:
    """FULLY_CONNECTED of one 16-bit number whose real result is ``steps`` output steps."""
    x, w = (32767 if steps > 0 else -32767), 127
    scale = x * w / steps
    output = {"dtype": "i16", "quant": {"dict": quant(scale if out is None else out)}}
    value = {
        "format": 1,
        "dialect": "tflite",
        "op": "FULLY_CONNECTED",
        "version": "7q",
        "opset": 1,
        "outs": 1,
        "attrs": {"fused_activation_function": activation, "@outputs": [{"dict": output}]},
        "args": {
            "input": {"dtype": "i16", "shape": [1, 1], "values": [x], "quant": quant(1.0)},
            "filter": {
                "dtype": "i8",
                "shape": [1, 1],
                "values": [w],
                "const": True,
                "quant": quant(1.0 if out is None else out / scale),
            },
        },
    }
    inst = Instance.from_json(value)
    return dialect.evaluate(inst, arrays_of(inst))


@pytest.mark.parametrize("steps", [31722.26, 20000.4, -28000.7, 30000.02, -30000.45])
def test_a_multiplier_of_half_its_bits_moves_the_real_result_not_the_reference(steps: Any) -> None:
    """16-bit activations: the multiplier keeps 16 bits, 2**-15 of the result; both ends are counted from it."""
    expected = wide_product(steps)
    free = 0.5 + abs(steps) * 2.0**-15 + 2.0**-8 + 2.0**-15
    near = int(np.floor(steps))
    passing = [
        n for n in range(near - 4, near + 6) if judged(expected, np.array([[n]], np.int16), 0) is not Verdict.MISMATCH
    ]
    assert passing == [n for n in range(near - 4, near + 6) if abs(n - steps) <= free]


def test_freedom_does_not_leave_a_fused_activation() -> None:
    """RELU6 at 6 / (6 / 30000) = 30000 steps: what the multiplier loses below, no step above."""
    (e,) = wide_product(31000.0, "RELU6", out=6 / 30000)
    assert e.value.item() == 30000
    assert judged([e], np.array([[30001]], np.int16), 0) is Verdict.MISMATCH
    (e,) = wide_product(29999.6, "RELU6", out=6 / 30000)
    for n, verdict in ((29999, Verdict.AGREE), (30000, Verdict.AGREE), (30001, Verdict.MISMATCH)):
        assert judged([e], np.array([[n]], np.int16), 0) is verdict, n


def test_the_activation_of_a_low_rank_filter_is_applied() -> None:
    """SVDF with RELU: a negative sum next to one that is off by a permitted step."""
    args = {
        "input": ("i8", [1, 2], [100, -100], 0.5),
        "feature_weights": ("i8", [2, 2], [100, 0, 0, 100], 0.01),
        "time_weights": ("i16", [2, 1], [8000, 8000], 0.0001),
        "activation_state": ("i16", [1, 2], [0, 0], 0.01),
    }
    value = {
        "format": 1,
        "dialect": "tflite",
        "op": "SVDF",
        "version": "3q",
        "opset": 1,
        "outs": 1,
        "attrs": {
            "rank": 1,
            "fused_activation_function": "RELU",
            "@outputs": [{"dict": {"dtype": "i8", "quant": {"dict": quant(0.79, 5)}}}],
        },
        "args": {
            n: {"dtype": t, "shape": s, "values": v, "quant": quant(q), "const": n.endswith("weights")}
            for n, (t, s, v, q) in args.items()
        },
    }
    inst = Instance.from_json(value)
    (e,) = dialect.evaluate(inst, arrays_of(inst))
    assert e.value.tolist() == [[56, 5]]  # 50.63 + 5 and -50.63 + 5
    assert judged([e], np.array([[56, -46]], np.int8), 0) is Verdict.MISMATCH
    assert judged([e], np.array([[57, 5]], np.int8), 0) is Verdict.MISMATCH


@pytest.mark.parametrize("key", sorted(k for k, v in dialect.versions.items() if v.schema.domain == "hybrid"))
def test_the_bound_of_a_hybrid_form_is_informative(key: str) -> None:
    """Half a step of the activations is small beside most results: at most two instances in five have a bound above a
    tenth of the result in most elements."""
    dull = []
    for n in range(40):
        inst = dialect.versions[key].draw(Prng(case_seed(4, key, n)))
        with np.errstate(all="ignore"):
            e = dialect.evaluate(inst, arrays_of(inst))[0]
            bound = np.broadcast_to(e.error.bound(e.context()), e.value.shape)
            if e.value.size and np.isfinite(bound).all():  # of NaN and infinities, which are quantised, nothing is told
                wide = np.maximum(0.1 * np.abs(e.wide), 1e-6)  # a result of 0 is exact, as of a sign bit
                dull.append((bound > wide).mean() > 0.5)
    assert np.mean(dull) <= (0.4 if "LSTM" in key else 0.2)


@pytest.mark.parametrize(("activation", "most"), [("NONE", np.inf), ("RELU6", 6.0)])
def test_a_bound_ends_where_a_fused_activation_does(activation: Any, most: Any) -> None:
    """What RELU6 makes of [h - bound, h + bound], and not the bound itself, is how far a result may be off."""
    args = {
        "input": {"dtype": "f32", "shape": [1, 2], "values": [1e3, -1e3]},
        "filter": {
            "dtype": "i8",
            "shape": [2, 2],
            "const": True,
            "values": [127, 126, -127, 0],
            "quant": {"scale": [1.0], "zero_point": [0], "axis": 0},
        },
        "bias": {"dtype": "f32", "shape": [2], "const": True, "values": [0.0, 0.0]},
    }
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": "tflite",
            "op": "FULLY_CONNECTED",
            "version": "3h",
            "opset": 1,
            "attrs": {"fused_activation_function": activation},
            "args": args,
        }
    )
    (e,) = dialect.evaluate(inst, arrays_of(inst))
    bound = e.error.bound(e.context())
    assert bound[0, 0] <= most
    assert bound[0, 1] > 100 if activation == "NONE" else bound[0, 1] == 0


def test_what_the_input_gives_a_gate_may_be_clamped_before_the_state_is_added() -> None:
    """10 - 8 is 2, or 8 - 8 is 0, in the output gate of the second step."""
    one = np.ones((1, 1))
    q = {"scale": [2.0**-7], "zero_point": [0], "axis": 0}
    p: dict[str, Any] = {f"w_{g}": one * 0 for g in GATES} | {f"r_{g}": one * 0 for g in GATES}
    p |= {f"b_{g}": np.array([7.0]) for g in GATES} | {"proj": None}
    p |= {"w_output": one * 10, "b_output": np.zeros(1), "r_output": one * -8}
    h = lstm(np.ones((2, 1, 1)), p, 2.0**-11, q, q, 0.0)
    first = float(h.value[0, 0, 0])
    early = sigmoid(np.clip(10, -8, 8 - GATE) - 8 * first) * np.tanh(2 * sigmoid(7.0))
    assert abs(early - h.value[1, 0, 0]) <= h.error[1, 0, 0]
    calm = lstm(np.ones((2, 1, 1)), p | {"w_output": one * 7}, 2.0**-11, q, q, 0.0)
    assert calm.error[1, 0, 0] < 0.02
