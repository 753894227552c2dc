"""The layer tests that come with coremltools, written against Core ML, pass with our interpreter in its place."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

# why a test of theirs is left out
LEFT_OUT = {
    "gpu": "the same case again for another device",
    "random": "moments of long samples, minutes each; judged by distribution elsewhere",
    "Stress": "minutes",
    "torch": "needs torch",
    "conv3d": "needs torch",
    "pool3d": "needs torch",
    "pixel_shuffle": "needs torch",
    "dynamic_quantization": "not described: unsupported",
    "topk": "expects the order that an unstable argsort gives to equal elements",
    "custom": "loads a plug-in of the application",
}


def test_the_tests_of_coremltools() -> None:
    spec = importlib.util.find_spec("coremltools")
    assert spec is not None
    assert spec.origin is not None
    theirs = Path(spec.origin).parent / "test" / "neural_network" / "test_numpy_nn_layers.py"
    if not theirs.exists():
        pytest.skip("this coremltools brings no tests along")
    plugins = ["-p", "suites.nn.upstream", "-p", "no:cacheprovider", "-p", "no:opconform"]
    quiet = ["-q", "-W", "ignore", "--tb=short", "-c", "/dev/null", "--rootdir", str(theirs.parent)]
    chosen = ["-k", " and ".join(f"not {n}" for n in LEFT_OUT), str(theirs)]
    command = [sys.executable, "-m", "pytest", *plugins, *quiet, *chosen]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=Path(__file__).parents[2])
    counts = {n: int(c) for c, n in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    assert set(counts) == {"passed"}, done.stdout[-4000:]
    assert counts["passed"] >= 100
