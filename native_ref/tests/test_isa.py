"""Every instruction set that this machine has: the same tests on a smaller sample, and the same bits after rounding."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import _opconform_native
import numpy as np
import pytest

import native_ref

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ISAS = _opconform_native.isas.split()


def run(isa: str, *command: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "OPCONFORM_ISA": isa, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run([sys.executable, *command], env=env, cwd=ROOT, capture_output=True, text=True)


def digest() -> str:
    """Results of every unary and of the arithmetic functions, rounded to f32 and f16, as one hash."""
    from native_ref.tests.reference import UNARY

    h = hashlib.sha256()
    x = np.concatenate([native_ref.fill(r, 9, (2000,), np.float32) for r in ("full", "uniform:-16:16", "branch")])
    for name, ref in sorted(UNARY.items()):
        for out in (np.float32, np.float16):
            y = native_ref.unary(name, x, *ref.params, out=out)
            h.update(np.where(np.isnan(y), np.array(0, out), y).tobytes())  # NaN payloads are free
    for name in ("add", "mul", "div", "pow", "floor_mod"):
        y = native_ref.binary(name, x, x[::-1], out=np.float32)
        h.update(np.where(np.isnan(y), np.float32(0), y).tobytes())
    return h.hexdigest()


@pytest.mark.parametrize("isa", [i for i in ISAS if i != native_ref.isa])
def test_other_instruction_sets(isa: str) -> None:
    probe = run(isa, "-c", "import native_ref.tests.test_isa as t; print(t.digest())")
    if "this processor does not have it" in probe.stderr:
        pytest.skip(f"this processor lacks {isa}")
    assert probe.returncode == 0, probe.stderr
    assert probe.stdout.strip() == digest(), f"{isa} and {native_ref.isa} differ after rounding"
    files = [str(HERE / f"test_{f}.py") for f in ("unary", "binary", "convert", "fill", "compare")]
    long = ("sixteen", "midpoint", "every_pair", "integers", "f64_ulp", "slow", "million")
    pick = " and ".join(f"not {word}" for word in long)
    done = run(isa, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", "-k", pick, *files)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


def test_unknown_instruction_set_is_refused() -> None:
    done = run("sse9", "-c", "import native_ref")
    assert done.returncode != 0
    assert "OPCONFORM_ISA=sse9: expected one of " + ", ".join(ISAS) in done.stderr
