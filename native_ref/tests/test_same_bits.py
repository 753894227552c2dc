"""Every instruction set gives the same bits once results are rounded to the type asked for."""

from __future__ import annotations

import os
import subprocess
import sys

import _opconform_native
import pytest

PROGRAM = """
import hashlib
import numpy as np
import native_ref as native

rng = np.random.default_rng(0)
f32, f16 = np.dtype(np.float32), np.dtype(np.float16)
h = hashlib.sha256()


def take(name, a):
    h.update(np.ascontiguousarray(a).tobytes())
    print(name, h.hexdigest()[:12])


def draw(*shape):
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 6, shape)).astype(f32)


for m, k, n in ((1, 700, 70), (3, 5, 7), (40, 300, 50), (64, 513, 1)):
    a, b = draw(m, k), draw(k, n)
    take("matmul", native.matmul(a, b, f32))
    take("matmul f16", native.matmul(a.astype(f16), b.astype(f16), f16))
    take("matmul f64", native.matmul(a.astype(float), b.astype(float)))
    huge = np.where(np.arange(k) % 97 == 5, 1e305, a.astype(float)), np.where(np.arange(k) % 97 == 5, 0, b.T).T
    take("matmul f64 of huge ones", native.matmul(*huge))
    take("matmul i8", native.matmul((a * 10).astype(np.int8), (b * 10).astype(np.int8)))
x, w = draw(2, 6, 13, 11), draw(4, 3, 3, 3)
take("conv", native.conv(x, w, draw(4), (2, 1), (1, 2), (1, 0, 2, 1), 2, f32))
take("depthwise", native.conv(x, draw(6, 1, 3, 3), None, groups=6, out=f32))
take("conv_transpose", native.conv_transpose(x, draw(6, 2, 3, 2), None, (2, 3), groups=3, out=f32))
for name in native.REDUCTIONS[:10]:
    for axes in ((0,), (1, 3), (2,), None):
        take(name, native.reduce(name, abs(x), axes, False, f32))
        if name in ("sum", "max", "min", "mean", "l1"):
            take(name + " f64", native.reduce(name, x.astype(float), axes, False))
for axis in range(4):
    take("softmax", native.softmax(x, axis, False, f32))
    take("log_softmax", native.softmax(x, axis, True, f32))
    take("cumulative", native.cumulative("sum", x, axis, False, True, f32))
for kind in ("max", "avg", "lp"):
    take(kind, native.pool(kind, x, (3, 2), (2, 1), out=f32))
acts = [("sigmoid", 0, 0), ("tanh", 0, 0), ("tanh", 0, 0)]
y, *_ = native.recurrent("lstm", draw(5, 3, 4), draw(24, 4), draw(24, 6), activations=acts)
take("lstm", y.astype(f32))
"""


def run(isa: str) -> list[str] | None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, "OPCONFORM_ISA": isa}, capture_output=True, text=True
    )
    if "does not have it" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_same_bits_everywhere() -> None:
    isas = _opconform_native.isas.split()
    got = {isa: lines for isa in isas if (lines := run(isa)) is not None}
    if len(got) < 2:
        pytest.skip(f"this processor runs only {' '.join(got)}")
    first, *rest = got
    for other in rest:
        for a, b in zip(got[first], got[other], strict=True):
            assert a == b, f"{first} and {other} part at {a.split()[0]}"
