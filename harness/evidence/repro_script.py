"""The text of a ``repro.py``: one model, its inputs and what was expected, with NumPy and the backend alone."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from harness.backends import registry
from harness.cases.result import Result
from harness.core.errors import UsageError

BEFORE = "inputs-{}.npz"  # of the runs before the one that counts


def script(
    result: Result,
    version: str,
    model: str,
    outputs: list[str],
    earlier: Sequence[tuple[str, list[str], list[str]]] = (),
    absent: Sequence[str] = (),
    processor: str = "",
    python: str | None = None,
) -> str:
    """The text of repro.py: fixed code, and all values as literals in one block of assignments.

    earlier: models that the process serves first, with their inputs and outputs.
    absent: outputs that are to be an empty optional.
    processor: on which the failure was seen.
    python: in which the backend ran; None: this one.
    """
    inst, backend, j = result.case.inst, result.backend, result.judgement
    values: dict[str, Any] = {
        "WHAT": f"{result.case.version.key} at opset {inst.opset} on {backend} {version}: {result.verdict.value}",
        "BREAKS": inst.rule,  # the rule that the instance breaks
        "RULE": j.formula if j is not None else "",
        "SEEN_ON": processor,
        "ENVIRONMENT": _environment(backend),
        "MODEL": model,
        "OUTPUTS": outputs,
        "INPUTS": [BEFORE.format(r) for r in range(result.draw)] + ["inputs.npz"],
        "EARLIER": [list(e) for e in earlier],
        "KIND": j.kind if j is not None else "",
        "ABSENT": list(absent),
    }
    runner = registry.script(backend)
    if runner is None:
        values |= {
            "BACKEND": registry.asked(backend),
            "FOLDER": os.getcwd(),
            "FORMAT": (result.asked or result.case).version.dialect.format,
        }
        values |= {"CLASS": _class_of(backend), "PYTHON": python or sys.executable}
    else:
        values["OPTIONS"] = registry.options(backend)
    return _HEAD + assignments(values) + _LOAD + (_PLUGIN if runner is None else f"{runner.strip()}\n\n\n") + _TAIL


def _class_of(backend: str) -> list[str] | None:
    """Module and name of a class that its own environment can run; None of a runner."""
    try:
        spec = registry.find(backend)
    except UsageError:
        return None
    return [spec.module, spec.cls] if spec.module is not None else None


def assignments(values: Mapping[str, Any]) -> str:
    """Lines of Python that assign literals to names, in ASCII.  Raises TypeError for what JSON has no form for."""
    return "".join(f"{name} = {json.loads(json.dumps(v))!a}\n" for name, v in values.items())


def _environment(backend: str) -> dict[str, str]:
    """Variables that the backend's processes are started with."""
    try:
        return registry.find(backend).environment
    except UsageError:  # a class of a test, say
        return {}


_HEAD = '''"""Runs one model on one backend and compares the result with what was expected.  WHAT says which.

Needs NumPy and the backend only.  Prints expected and actual, exits 1 while the difference stands, 2 where the backend
cannot be had.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np

# BREAKS: the rule that the instance breaks, None for a valid one.  RULE: what was compared.  ENVIRONMENT: variables of
# the process that showed it; those that are set already stay.  INPUTS: one loaded model is run with them in this order;
# the last run is the one that counts.  EARLIER: models that the process serves first, inputs of their runs, outputs.
# KIND: what was wrong.  ABSENT: outputs that are to be an empty optional.  OPTIONS: what the backend was created with.
'''

_LOAD = '''
if not ENVIRONMENT.keys() <= os.environ.keys():
    os.execve(sys.executable, [sys.executable, *sys.argv], {**ENVIRONMENT, **os.environ})
HERE = Path(__file__).resolve().parent
MODEL = HERE / MODEL
EXTRA = {"bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2",
         "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn",
         "f6e2m3": "float6_e2m3fn", "f6e3m2": "float6_e3m2fn", "i4": "int4",
         "u4": "uint4", "i2": "int2", "u2": "uint2"}


def say(text):
    """Print a line; what has no glyph is shown as its escape."""
    print("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text))


def load(name):
    """Arrays of an .npz; types that NumPy lacks come back through ml_dtypes, lists from name[i]."""
    out = {}
    with np.load(HERE / name) as data:
        for key in data.files:
            a, (plain, _, tag) = data[key], key.partition("|")
            if tag == "map":
                a = dict(json.loads(str(a)))
            elif tag == "str":
                a = a.astype(object)
            elif tag:
                import ml_dtypes

                a = a.view(getattr(ml_dtypes, EXTRA[tag]))
            if plain.endswith("]") and "[" in plain:
                out.setdefault(plain[: plain.rindex("[")], []).append(a)
            else:
                out[plain] = a
    return out


'''

_PLUGIN = '''MADE = []  # the backend, once it is there


def run(runs):
    """Loads the model into the backend's own class and runs it.  That needs nothing of opconform."""
    import importlib

    sys.path.append(FOLDER)  # where it was found
    if CLASS is None:
        return adapted(runs)
    try:
        if not MADE:
            MADE.append(getattr(importlib.import_module(CLASS[0]), CLASS[1])())
    except (ImportError, AttributeError) as error:
        if os.environ.get("REPRO_PYTHON") != PYTHON and os.path.exists(PYTHON):  # another Python than it ran in
            os.execve(PYTHON, [PYTHON, *sys.argv], {**os.environ, "REPRO_PYTHON": PYTHON})
        if getattr(error, "name", None) == "opconform_worker":
            return adapted(runs)
        raise ImportError(f"{':'.join(CLASS)}: {error}") from None
    handle = MADE[0].load(MODEL.read_bytes(), FORMAT)
    for inputs in runs:
        got = MADE[0].run(handle, inputs)
    return [got.get(name) for name in OUTPUTS] if isinstance(got, dict) else list(got)


def adapted(runs):
    """Runs a command, or a class that needs the worker's helpers, through opconform."""
    from harness.backends import BackendError, direct
    from harness.core.errors import UsageError

    try:
        return direct(BACKEND, MODEL, runs, OUTPUTS)
    except (BackendError, UsageError) as error:
        raise ImportError(str(error)) from None


'''

_TAIL = '''def serve():
    """What the process must have done before."""
    global MODEL, OUTPUTS
    last = MODEL, OUTPUTS
    for model, inputs, outputs in EARLIER:
        MODEL, OUTPUTS = HERE / model, outputs
        run([load(name) for name in inputs])
    MODEL, OUTPUTS = last


def different(e, a, bound, wide=None):
    """Elements outside the bound around the result before it was rounded, by index."""
    if isinstance(e, list):
        return [] if isinstance(a, list) and len(a) == len(e) and not any(
            different(x, y, None) for x, y in zip(e, a)) else ["sequence"]
    a = np.asarray(a)
    if a.shape != e.shape:
        return [f"shape {a.shape}, expected {e.shape}"]
    if a.dtype != e.dtype:
        return [f"dtype {a.dtype}, expected {e.dtype}"]
    if e.dtype.kind in "OUS":
        bad = e.astype(str) != a.astype(str)
    elif e.dtype.kind in "fV" or bound is not None:
        x, y = e.astype(np.float64), a.astype(np.float64)
        with np.errstate(invalid="ignore"):
            near = np.abs((x if wide is None else wide) - y) <= (0.0 if bound is None else bound)
        bad = ~((x == y) | near | (np.isnan(x) & np.isnan(y)))
        if KIND == "zero_sign":
            bad |= (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))
        if KIND == "flush":  # of some of the subnormal results, not of all
            bad |= (x != 0) & (y == 0)
    else:
        bad = e != a
    return [tuple(int(k) for k in i) for i in np.argwhere(bad)]


def main():
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        serve()
        found = run([load(name) for name in INPUTS])
    except ImportError as error:
        say(f"cannot be asked here: {error}")
        return 2
    except Exception as error:
        say(f"refused: {type(error).__name__}: {error}")
        return 0 if BREAKS is not None else 1
    if BREAKS is not None:
        say(f"accepted although the model breaks the rule {BREAKS}")
        return 1
    expected, wide, bounds = load("expected.npz"), load("wide.npz"), load("bounds.npz")
    status = 0
    for name, a in zip(OUTPUTS, found):
        if name in ABSENT and a is not None:
            say(f"{name}: expected an empty optional, got {a!r}")
            status = 1
        if name not in expected:
            continue
        e = expected[name]
        where = different(e, a, bounds.get(name), wide.get(name))
        say(f"{name}: {len(where)} different")
        for i in where[:10]:
            if isinstance(i, tuple):
                say(f"  {list(i)}: expected {e[i]}, got {np.asarray(a)[i]}")
            else:
                say(f"  {i}")
        status = 1 if where else status
    return status


sys.exit(main())
'''
