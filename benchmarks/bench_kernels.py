"""Kernels of the reference against ONNX Runtime's session.run on the same data, one thread, in one process, CPU time.

    python benchmarks/bench_kernels.py [--family conv] [--rounds 7]

Every row is the ratio of the two minima of one interleaved run; compare ratios, not times of different runs.
``limit`` is the target of the design: 1.0 up to 4k elements or 64^3, then by kind.

Over it when last measured, all rows of this file and of bench_native.py, on a machine with other work (rows near 1.0
stand on either side of it by the run):

AVX-512: matmul 64^3 (1.02 to 1.08, idle up to 1.13).  Its products in f64 take 10.2 us at the rate of the multipliers
with operands from memory, session.run takes 11.1 to 12 in all; reading b in place, a bound in place of exact norms, and
rounding from registers each gain up to 4 % on one kind of data and lose up to twice the time on another.  Close to it:
matmul 512^3 and the convolution of 56x56 (2.0 to 2.1), matrix times vector 1.7.

AVX2: matmul 64^3 (0.95 to 1.17), 256^3 and 512^3 (2.0 to 2.5), the convolution of 56x56 (2.2 to 2.5): products are
bound by f64. Close to it: pow of 4,096 elements (0.9 to 0.97); erf, gelu_exact, gelu_tanh, tanh, sigmoid and atan 0.6
to 0.9, erf 1.08 in one run of some ten.

The baseline build, without fused products and with two f64 to a vector: elementary functions of 4,096 elements 1.1 to
5.4 (pow 8, gelu_tanh 9 to 11), of 262,144 3 to 17 (pow 11, gelu_tanh 30 to 36); of 262,144 also abs, relu, sqrt,
reciprocal, leaky_relu and maximum 3 to 4.3, hard_sigmoid 9.5, f32 to f16 5 to 9 and back 8 to 11; products 3 to 6,
convolutions 1.3 to 5.8, Dot2 29, softmax of 64 lines 3, of 512 lines 13 and of 4,096 9; LSTM 3.2, pools 3, sums of
262,144 5.1.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import native_ref as native

Array = np.ndarray


@dataclass
class Row:
    """family, text: what is measured.  node: (op, attributes, inputs by name).  ours: the same through the
    reference."""

    family: str
    text: str
    op: str
    attrs: dict
    inputs: dict[str, Array]
    ours: Callable[[], object]
    limit: float


def _f32(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def rows() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    f32 = np.dtype(np.float32)
    for n in (4, 16, 64, 256, 512):
        a, b = _f32(rng, n, n), _f32(rng, n, n)
        yield Row(
            "matmul",
            f"f32 {n}^3",
            "MatMul",
            {},
            {"A": a, "B": b},
            lambda a=a, b=b: native.matmul(a, b, f32),
            1.0 if n <= 64 else 2.2,
        )
    for shapes in (((8, 64, 32), (8, 32, 48)), ((1, 512), (512, 512)), ((512, 512), (512, 1))):
        a, b = _f32(rng, *shapes[0]), _f32(rng, *shapes[1])
        yield Row(
            "matmul",
            f"f32 {shapes[0]} x {shapes[1]}",
            "MatMul",
            {},
            {"A": a, "B": b},
            lambda a=a, b=b: native.matmul(a, b, f32),
            2.2,
        )
    for n in (16, 64, 256, 512):
        a, b = (rng.integers(-128, 128, (n, n)).astype(np.int8) for _ in range(2))
        yield Row(
            "matmul",
            f"i8 {n}^3",
            "MatMulInteger",
            {},
            {"A": a, "B": b},
            lambda a=a, b=b: native.matmul(a, b, np.dtype(np.int32)),
            1.0 if n <= 64 else 4.0,
        )
    a, b = rng.standard_normal((256, 256)), rng.standard_normal((256, 256))
    yield Row("matmul", "f64 256^3 (Dot2)", "MatMul", {}, {"A": a, "B": b}, lambda: native.matmul(a, b), 10)
    for x, m, k, p, g in (
        ((1, 3, 8, 8), 4, 3, 1, 1),
        ((1, 3, 16, 16), 8, 3, 1, 1),
        ((2, 16, 14, 14), 32, 3, 1, 1),
        ((1, 32, 28, 28), 32, 3, 1, 32),
        ((1, 64, 14, 14), 128, 1, 0, 1),
        ((1, 64, 56, 56), 64, 3, 1, 1),
    ):
        v, w = _f32(rng, *x), _f32(rng, m, x[1] // g, k, k)
        yield Row(
            "conv",
            f"f32 {x} m{m} k{k} g{g}",
            "Conv",
            {"pads": [p] * 4, "group": g},
            {"X": v, "W": w},
            lambda v=v, w=w, p=p, g=g: native.conv(v, w, None, (1, 1), (1, 1), (p,) * 4, g, f32),
            1.0 if v.size <= 4096 and m * v.size * k * k <= 64**3 * x[1] else 2.2,
        )
    v, w = _f32(rng, 1, 16, 14, 14), _f32(rng, 16, 16, 3, 3)
    yield Row(
        "conv",
        "transpose (1, 16, 14, 14) k3 s2",
        "ConvTranspose",
        {"strides": [2, 2]},
        {"X": v, "W": w},
        lambda: native.conv_transpose(v, w, None, (2, 2), out=f32),
        2.2,
    )
    for shape, axes in (
        ((16, 16), (1,)),
        ((64, 64), (1,)),
        ((64, 64), (0,)),
        ((512, 512), (1,)),
        ((512, 512), (0,)),
        ((512, 512), (0, 1)),
    ):
        x = _f32(rng, *shape)
        for name, op in (("sum", "ReduceSum"), ("max", "ReduceMax"), ("l2", "ReduceL2")):
            yield Row(
                "reduce",
                f"{op} {shape} over {axes}",
                op,
                {"axes": list(axes), "keepdims": 0},
                {"data": x},
                lambda x=x, name=name, axes=axes: native.reduce(name, x, axes, False, f32),
                1.0 if x.size <= 4096 else 5.0,
            )
    for shape, axis in (((16, 16), 1), ((64, 64), 1), ((512, 512), 1), ((64, 8, 512), 1)):
        x = _f32(rng, *shape)
        yield Row(
            "softmax",
            f"{shape} over {axis}",
            "Softmax",
            {"axis": axis},
            {"input": x},
            lambda x=x, axis=axis: native.softmax(x, axis, False, f32),
            1.0 if x.size <= 4096 else 5.0,
        )
    for shape in ((1, 2, 16, 16), (1, 32, 56, 56)):
        x = _f32(rng, *shape)
        for kind, op in (("max", "MaxPool"), ("avg", "AveragePool")):
            yield Row(
                "pool",
                f"{op} {shape} k3 s2",
                op,
                {"kernel_shape": [3, 3], "strides": [2, 2]},
                {"X": x},
                lambda x=x, kind=kind: native.pool(kind, x, (3, 3), (2, 2), out=f32),
                1.0 if x.size <= 4096 else 2.5,
            )
    for t, b, i, h in ((4, 1, 8, 8), (10, 2, 32, 64)):
        x, w, r = _f32(rng, t, b, i), _f32(rng, 1, 4 * h, i), _f32(rng, 1, 4 * h, h)
        acts = [("sigmoid", 0, 0), ("tanh", 0, 0), ("tanh", 0, 0)]
        yield Row(
            "rnn",
            f"LSTM t{t} b{b} i{i} h{h}",
            "LSTM",
            {"hidden_size": h},
            {"X": x, "W": w, "R": r},
            lambda x=x, w=w, r=r, acts=acts: native.recurrent("lstm", x, w[0], r[0], activations=acts),
            2.5,
        )


def session(row: Row) -> Callable[[], object]:
    """The same node as a model of its own in ONNX Runtime, one thread."""
    import onnxruntime as ort
    from onnx import helper
    from onnx.helper import np_dtype_to_tensor_dtype as dtype

    ins = [helper.make_tensor_value_info(n, dtype(v.dtype), v.shape) for n, v in row.inputs.items()]
    outs = ["y"] if row.op != "LSTM" else ["y", "h", "c"]
    node = helper.make_node(row.op, list(row.inputs), outs, **row.attrs)
    kind = dtype(np.dtype(np.int32)) if row.op == "MatMulInteger" else ins[0].type.tensor_type.elem_type
    infos = [helper.make_tensor_value_info(o, kind, None) for o in outs]
    opset = 17 if row.op.startswith("Reduce") and row.op != "ReduceSum" else 12 if row.op == "ReduceSum" else 17
    model = helper.make_model(
        helper.make_graph([node], "g", ins, infos), opset_imports=[helper.make_opsetid("", opset)], ir_version=8
    )
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    s = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: s.run(None, row.inputs)


def measure(fns: list[Callable[[], object]], rounds: int, budget: float = 0.01) -> list[float]:
    """Least time a call of each, rounds interleaved so that both meet the same machine."""
    counts = []
    for fn in fns:
        t = time.thread_time()
        fn()
        counts.append(max(1, int(budget / max(time.thread_time() - t, 1e-7))))
    best = [float("inf")] * len(fns)
    for _ in range(rounds):
        for k, fn in enumerate(fns):
            t = time.thread_time()
            for _ in range(counts[k]):
                fn()
            best[k] = min(best[k], (time.thread_time() - t) / counts[k])
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", action="append")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    print(f"kernels: {native.isa}")
    over = 0
    for row in rows():
        if args.family and row.family not in args.family:
            continue
        ours, theirs = measure([row.ours, session(row)], args.rounds)
        ratio = ours / theirs
        over += ratio > row.limit
        print(
            f"{row.family:8} {row.text:34} {ours * 1e6:10.1f} us {theirs * 1e6:10.1f} us  ratio {ratio:6.2f}  limit "
            f"{row.limit:4.1f}{'  over' if ratio > row.limit else ''}",
            flush=True,
        )
    print(f"{over} over their limit")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
