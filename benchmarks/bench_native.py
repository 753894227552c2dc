"""native_ref against ONNX Runtime's session.run and NumPy, one thread, in one process: ratios of one run.

    python benchmarks/bench_native.py [--family unary ...] [--sizes 64 4096 262144] [--json FILE]

Below 1 means that native_ref is faster.  native_ref takes f32, computes in f64 and rounds once to f32; ONNX Runtime and
NumPy compute in f32.  Each cell is the best of several short rounds, the contenders taking turns, so that a busy
machine hits all of them alike.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

import native_ref

F32 = np.float32
Thunk = Callable[[], Any]


@dataclass
class Case:
    """One row: what is timed, how many elements (for ns an element), and the contenders."""

    family: str
    name: str
    elements: int
    native: Thunk
    ort: Thunk | None = None
    numpy: Thunk | None = None


def session(
    op: str, inputs: list[np.ndarray], attrs: dict[str, Any] | None = None, out: int = TensorProto.FLOAT
) -> Thunk:
    names = [f"x{i}" for i in range(len(inputs))]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], **(attrs or {}))],
        "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in zip(names, inputs)
        ],
        [helper.make_tensor_value_info("y", out, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    s = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feed = dict(zip(names, inputs))
    return lambda: s.run(None, feed)


UNARY: dict[str, tuple[str, Callable[..., Any] | None, str, dict[str, Any], tuple[float, ...]]] = {
    "abs": ("Abs", np.abs, "uniform:-8:8", {}, ()),
    "relu": ("Relu", lambda x: np.maximum(x, 0), "uniform:-8:8", {}, ()),
    "sqrt": ("Sqrt", np.sqrt, "positive", {}, ()),
    "reciprocal": ("Reciprocal", np.reciprocal, "positive", {}, ()),
    "exp": ("Exp", np.exp, "uniform:-8:8", {}, ()),
    "log": ("Log", np.log, "positive", {}, ()),
    "tanh": ("Tanh", np.tanh, "uniform:-8:8", {}, ()),
    "sigmoid": ("Sigmoid", None, "uniform:-8:8", {}, ()),
    "erf": ("Erf", None, "uniform:-4:4", {}, ()),
    "sin": ("Sin", np.sin, "uniform:-8:8", {}, ()),
    "atan": ("Atan", np.arctan, "uniform:-8:8", {}, ()),
    "asinh": ("Asinh", np.arcsinh, "uniform:-8:8", {}, ()),
    "softplus": ("Softplus", None, "uniform:-8:8", {}, ()),
    "gelu_exact": ("Gelu", None, "uniform:-4:4", {}, ()),
    "gelu_tanh": ("Gelu", None, "uniform:-4:4", {"approximate": "tanh"}, ()),
    "elu": ("Elu", None, "uniform:-4:4", {"alpha": 1.5}, (1.5,)),
    "leaky_relu": ("LeakyRelu", None, "uniform:-4:4", {"alpha": 0.25}, (0.25,)),
    "hard_sigmoid": ("HardSigmoid", None, "uniform:-4:4", {"alpha": 0.25, "beta": 0.5}, (0.25, 0.5)),
}
BINARY = {
    "add": ("Add", np.add),
    "mul": ("Mul", np.multiply),
    "div": ("Div", np.divide),
    "pow": ("Pow", np.power),
    "maximum": ("Max", np.maximum),
    "less": ("Less", np.less),
}


def unary(sizes: list[int]) -> Iterator[Case]:
    for name, (op, fn, recipe, attrs, params) in UNARY.items():
        for n in sizes:
            x = native_ref.fill(recipe, 1, (n,), F32)
            yield Case(
                "unary",
                f"{name} {n}",
                n,
                lambda x=x, name=name, p=params: native_ref.unary(name, x, *p, out=F32),
                session(op, [x], attrs),
                None if fn is None else lambda x=x, fn=fn: fn(x),
            )


def binary(sizes: list[int]) -> Iterator[Case]:
    for name, (op, fn) in BINARY.items():
        for n in sizes:
            x, y = (native_ref.fill("positive", s, (n,), F32) for s in (1, 2))
            out = TensorProto.BOOL if name == "less" else TensorProto.FLOAT
            yield Case(
                "binary",
                f"{name} {n}",
                n,
                lambda x=x, y=y, name=name: native_ref.binary(name, x, y, None if name == "less" else F32),
                session(op, [x, y], out=out),
                lambda x=x, y=y, fn=fn: fn(x, y),
            )
    for n in sizes:
        m = max(1, n // 32)
        x, y = native_ref.fill("unit", 1, (m, 32), F32), native_ref.fill("unit", 2, (32,), F32)
        yield Case(
            "binary",
            f"add broadcast {m}x32",
            m * 32,
            lambda x=x, y=y: native_ref.binary("add", x, y, F32),
            session("Add", [x, y]),
            lambda x=x, y=y: x + y,
        )


def data(sizes: list[int]) -> Iterator[Case]:
    for n in sizes:
        x = native_ref.fill("wide", 1, (n,), F32)
        h = x.astype(np.float16)
        yield Case(
            "data",
            f"f32 to f16 {n}",
            n,
            lambda x=x: native_ref.convert(x, np.float16),
            session("Cast", [x], {"to": TensorProto.FLOAT16}, TensorProto.FLOAT16),
            lambda x=x: x.astype(np.float16),
        )
        yield Case(
            "data",
            f"f16 to f32 {n}",
            n,
            lambda h=h: native_ref.convert(h, F32),
            session("Cast", [h], {"to": TensorProto.FLOAT}),
            lambda h=h: h.astype(F32),
        )
        rng = np.random.default_rng(1)
        yield Case(
            "data",
            f"fill unit {n}",
            n,
            lambda n=n: native_ref.fill("unit", 1, (n,), F32),
            None,
            lambda n=n, rng=rng: rng.random(n, F32),
        )
        yield Case("data", f"fill special {n}", n, lambda n=n: native_ref.fill("special", 1, (n,), F32))
        w = native_ref.fill("unit", 1, (n,), np.float64)
        a = w.astype(F32)
        yield Case(
            "data",
            f"compare {n}",
            n,
            lambda a=a, w=w: native_ref.compare(a, w, ulps=1.0),
            None,
            lambda a=a, w=w: np.allclose(a, w),
        )


def linear(sizes: list[int]) -> Iterator[Case]:
    for n in (8, 33, 64, 256):
        a, b = (native_ref.fill("unit", s, (n, n), F32) for s in (1, 2))
        yield Case(
            "linear",
            f"matmul {n}",
            n**3,
            lambda a=a, b=b: native_ref.matmul(a, b, F32),
            session("MatMul", [a, b]),
            lambda a=a, b=b: a @ b,
        )
    shapes = (
        ((1, 3, 8, 8), (4, 3, 3, 3), 1),
        ((2, 16, 14, 14), (32, 16, 3, 3), 1),
        ((1, 32, 28, 28), (32, 1, 3, 3), 32),
    )
    for x, w, g in shapes:
        a, k = native_ref.fill("unit", 1, x, F32), native_ref.fill("unit", 2, w, F32)
        pads = (1, 1, 1, 1)
        yield Case(
            "linear",
            f"conv {'x'.join(map(str, x))} m{w[0]} g{g}",
            int(np.prod(x)) * w[0] * 9 // g,
            lambda a=a, k=k, g=g, pads=pads: native_ref.conv(a, k, None, (1, 1), (1, 1), pads, g, out=F32),
            session("Conv", [a, k], {"pads": list(pads), "group": g}),
        )


def folds(sizes: list[int]) -> Iterator[Case]:
    for n in sizes:
        m = max(1, n // 64)
        x = native_ref.fill("unit", 1, (m, 64), F32)
        axes = np.array([1])
        yield Case(
            "folds",
            f"reduce_sum {m}x64",
            n,
            lambda x=x: native_ref.reduce("sum", x, (1,), False, F32),
            session("ReduceSum", [x, axes], {"keepdims": 0}),
            lambda x=x: x.sum(1),
        )
        yield Case(
            "folds",
            f"reduce_max {m}x64",
            n,
            lambda x=x: native_ref.reduce("max", x, (1,), False, F32),
            session("ReduceMax", [x, axes], {"keepdims": 0}),
            lambda x=x: x.max(1),
        )
        yield Case(
            "folds",
            f"softmax {m}x64",
            n,
            lambda x=x: native_ref.softmax(x, 1, out=F32),
            session("Softmax", [x], {"axis": 1}),
        )


FAMILIES = {"unary": unary, "binary": binary, "data": data, "linear": linear, "folds": folds}


def measure(case: Case, budget: float) -> dict[str, float]:
    """Best seconds a call of every contender, which take turns in short rounds."""
    runs = {k: f for k, f in (("native", case.native), ("ort", case.ort), ("numpy", case.numpy)) if f is not None}
    counts = {}
    for k, f in runs.items():
        f()
        t = time.thread_time()
        f()
        counts[k] = max(1, int(budget / 10 / max(time.thread_time() - t, 1e-7)))
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(7):
        for k, f in runs.items():
            t = time.thread_time()
            for _ in range(counts[k]):
                f()
            best[k] = min(best[k], (time.thread_time() - t) / counts[k])
    return best


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", action="append", choices=list(FAMILIES))
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 4096, 262144])
    parser.add_argument("--budget", type=float, default=0.05, help="seconds a contender and row")
    parser.add_argument("--json", help="also write the figures here")
    args = parser.parse_args(argv)
    versions = f"onnxruntime {ort.__version__}, numpy {np.__version__}, onnx {onnx.__version__}"
    print(f"native_ref {native_ref.isa}, {versions}")
    print(f"{'':34} {'us':>9} {'ns/element':>11} {'/ ORT run':>10} {'/ NumPy':>8}")
    rows = []
    for family in args.family or FAMILIES:
        for case in FAMILIES[family](args.sizes):
            t = measure(case, args.budget)
            ratio = {k: t["native"] / v for k, v in t.items() if k != "native"}
            cells = [f"{ratio[k]:.2f}" if k in ratio else "" for k in ("ort", "numpy")]
            ns = t["native"] / max(case.elements, 1) * 1e9
            name = f"{case.family} {case.name}"
            print(f"{name:34} {t['native'] * 1e6:9.2f} {ns:11.3f} {cells[0]:>10} {cells[1]:>8}", flush=True)
            rows.append({"family": case.family, "name": case.name, "seconds": t, "ratio": ratio})
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"isa": native_ref.isa, "rows": rows}, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
