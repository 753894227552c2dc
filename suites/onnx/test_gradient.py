"""Gradient against difference quotients of plain loops, worked examples, and through whole models."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from harness.core.errors import RuleError, UsageError
from harness.core.instance import Graph, Node
from harness.declare import Call
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.onnx import dialect, notation
from suites.onnx.crossing import same

VERSION = dialect.versions["onnx/Gradient/1"]
ONE = {
    "Neg": lambda v: -v,
    "Exp": math.exp,
    "Tanh": math.tanh,
    "Sigmoid": lambda v: 1 / (1 + math.exp(-v)),
    "Softplus": lambda v: math.log1p(math.exp(v)),
    "Relu": lambda v: max(v, 0.0),
    "Identity": lambda v: v,
}
TWO = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": lambda a, b: a / b}
STEP = 1e-3
MANY = 64  # elements: a quotient of a quotient evaluates the graph sixteen times for each pair of them


def value(around: Graph, given: dict[str, Any], name: str) -> np.ndarray:
    """A tensor of the graph, element by element."""
    if name in given:
        return np.asarray(given[name], float)  # strings and complex numbers stand behind Size alone
    if name in around.consts:
        return around.consts[name].astype(float)
    node = next(n for n in around.nodes if name in n.outputs)
    if node.op == "Gradient":
        return quotient(around, node.attrs, given, node.outputs.index(name))
    if node.op == "Size":
        return np.array(float(np.size(given[node.value("data")])))
    xs = [value(around, given, node.value(k)) for k in node.inputs]
    if node.op == "Cast":
        return xs[0]
    if node.op in ONE:
        return np.array([ONE[node.op](v) for v in xs[0].ravel().tolist()]).reshape(xs[0].shape)
    if node.op == "ReduceSum":
        return np.array(math.fsum(xs[0].ravel().tolist()))
    if node.op == "MatMul":
        a, b = xs
        out = np.zeros((a.shape[0], b.shape[1]))
        for i, j, k in itertools.product(range(a.shape[0]), range(b.shape[1]), range(a.shape[1])):
            out[i, j] += a[i, k] * b[k, j]
        return out
    a, b = np.broadcast_arrays(*xs)
    return np.array([TWO[node.op](u, v) for u, v in zip(a.ravel().tolist(), b.ravel().tolist())]).reshape(a.shape)


def quotient(around: Graph, attrs: dict[str, Any], given: dict[str, Any], which: int) -> np.ndarray:
    """Central differences, of the fourth order, of the sum of y with respect to the elements of one of xs."""
    name = attrs["xs"][which]
    x = np.asarray(given[name], float)
    out = np.empty(x.shape)
    for at in np.ndindex(*x.shape):
        total = 0.0
        for k, weight in ((1, 8.0), (-1, -8.0), (2, -1.0), (-2, 1.0)):
            moved = x.copy()
            moved[at] += k * STEP
            total += weight * value(around, {**given, name: moved}, attrs["y"]).sum()
        out[at] = total / (12 * STEP)
    return out


def kinks(around: Graph, given: dict[str, Any]) -> bool:
    """Is the argument of a Relu within reach of 0?"""
    return any((np.abs(value(around, given, n.value("X"))) < 5 * STEP).any() for n in around.nodes if n.op == "Relu")


def far(given: dict[str, Any]) -> bool:
    """Is a factor of another type no number of a size that quotients hold?"""
    z = np.asarray(given.get("z", 0))
    return z.dtype.kind in "fiuV" and not bool((np.abs(z.astype(float)) < 100).all())


def test_gradients_are_the_limits_of_difference_quotients() -> None:
    seen, second = 0, 0
    for i in range(80):
        inst = VERSION.draw(Prng(case_seed(31, VERSION.key, i)))
        arrays = arrays_of(inst)
        around, names = inst.attrs["@around"], [*inst.attrs["xs"], *inst.attrs.get("zs", ())]
        given = dict(zip(names, arrays["Inputs"]))
        if sum(np.size(x) for x in given.values()) > MANY or kinks(around, given) or far(given):
            continue
        got = VERSION.evaluate(dialect.call_of(inst, arrays))
        for k, e in enumerate(got):
            want = quotient(around, inst.attrs, given, k)
            scale = 1 + np.abs(want).max()
            assert e.wide is not None
            assert e.value.shape == want.shape
            np.testing.assert_allclose(e.wide, want, atol=2e-6 * scale, rtol=0, err_msg=notation.text(inst))
        seen += 1
        second += any(n.op == "Gradient" for n in around.nodes)
    assert seen > 40
    assert second > 10


def test_a_model_is_differentiated_around_its_node() -> None:
    for i in range(25):
        inst = VERSION.draw(Prng(case_seed(37, VERSION.key, i)))
        arrays = arrays_of(inst)
        model = dialect.build([inst], [arrays])
        feeds = {n: arrays[s] if k is None else arrays[s][k] for n, s, k in model.inputs[0]}
        got = dialect.run_model(model.data, feeds)
        assert all(same(g, e.value) for g, e in zip(got, VERSION.evaluate(dialect.call_of(inst, arrays))))


def call(around: Graph, values: list[Any], **attrs: Any) -> Call:
    return Call(
        VERSION,
        {"@around": around, **attrs},
        {"Inputs": [np.asarray(v, np.float64) for v in values]},
        17,
        n_outs=len(attrs["xs"]),
    )


CUBE = Graph(
    [],
    [
        Node("Mul", {"A": "x", "B": "x"}, ["s"]),
        Node("Mul", {"A": "s", "B": "x"}, ["y"]),
        Node("Gradient", {"Inputs": ["x"]}, ["g"], {"xs": ["x"], "y": "y"}),
        Node("Gradient", {"Inputs": ["x"]}, ["h"], {"xs": ["x"], "y": "g"}),
    ],
)


@pytest.mark.parametrize(("y", "want"), [("y", 12.0), ("g", 12.0), ("h", 6.0), ("s", 4.0)])
def test_orders_of_the_cube(y: str, want: float) -> None:
    """x^3 at 2: 3 x^2, and of its derivatives 6 x and 6; x^2: 2 x."""
    assert VERSION.evaluate(call(CUBE, [2.0], xs=["x"], y=y))[0].value == want


def test_the_values_are_those_that_are_fed_not_those_of_the_graph() -> None:
    """With respect to a value in between, at another value than the graph has."""
    around = Graph(
        [], [Node("Exp", {"input": "c"}, ["h"]), Node("Mul", {"A": "h", "B": "z"}, ["y"])], ["y"], {"c": np.array(1.0)}
    )
    got = VERSION.evaluate(call(around, [5.0, 3.0], xs=["h", "z"], y="y"))
    assert [e.value.item() for e in got] == [3.0, 5.0]
    got = VERSION.evaluate(call(around, [3.0], xs=["z"], y="y"))
    assert got[0].value == math.e


def test_what_cannot_be_differentiated_is_reported() -> None:
    around = Graph([], [Node("Sin", {"input": "x"}, ["y"])], ["y"])
    with pytest.raises(UsageError, match="no derivative here for Sin"):
        VERSION.evaluate(call(around, [1.0], xs=["x"], y="y"))
    around = Graph([], [Node("Exp", {"input": "x"}, ["y"])], ["y"])
    with pytest.raises(RuleError, match="independent-set"):
        VERSION.evaluate(call(around, [1.0], xs=["w"], y="y"))
    with pytest.raises(RuleError, match="value-per-name"):
        VERSION.evaluate(call(around, [1.0, 2.0], xs=["x"], y="y"))


def test_outputs_may_be_skipped() -> None:
    """ "user can assign an empty string to the 1st output name of that Gradient to skip the generation of dY/dW"."""
    skipped = short = 0
    for i in range(200):
        inst = VERSION.draw(Prng(case_seed(41, VERSION.key, i)))
        inner = [n for n in inst.attrs["@around"].nodes if n.op == "Gradient"]
        short += inst.outs < len(inst.attrs["xs"])
        if not any("" in n.outputs for n in inner):
            continue
        skipped += inner[0].outputs[0] == ""
        arrays = arrays_of(inst)
        parsed = dialect.parse(dialect.build([inst], [arrays]).data)
        written = next(n for n in parsed.nodes if n.op == "Gradient")
        assert [not o for o in written.outputs] == [not o for o in inner[0].outputs]
        want = [e.value for e in dialect.evaluate(inst, arrays)]
        inner[0].outputs = [f"g{k}" for k in range(len(inner[0].outputs))]
        for a, b in zip(want, (e.value for e in dialect.evaluate(inst, arrays))):
            assert same(a, b)
    assert skipped > 3
    assert short > 10
