"""Backends: one file per runtime, the worker process they run in, and the pool that feeds it.

How to write one.  A backend is a class; inside the worker process it gets bytes and arrays and nothing of
ours::

    class MyRuntime:
        name = "my-runtime"
        formats = ("onnx",)

        def version(self):
            return my_runtime.__version__

        def load(self, model: bytes, format: str):
            return my_runtime.load(model)

        def run(self, handle, inputs):          # {input name: array} -> {output name: array}
            return handle(**inputs)

* Raise anything in ``load`` or ``run`` to reject; raise an exception class called ``Unsupported`` for a gap
  that you declare (an op, a dtype, a newer opset): it is counted as coverage, not as a failure.
* ``harness.workers.protocol.Backend`` (``opconform.Backend``) is the type of such a class and describes the optional
  attributes: ``pack`` (how many instances side by side in one model pay best), ``isolate_dtypes`` (element types that
  go in models of their own), ``family`` (what it has in common with backends that share its code), ``recycle`` (models
  after which its process gives way to a fresh one), ``forks``, ``acc`` and ``flushes`` (its arithmetic),
  ``unused`` (what of the processor it has no kernels for), ``info()``.  ``harness.workers.info`` checks them when the
  worker process starts.
* Types NumPy lacks arrive as ml_dtypes arrays, or, where that package is missing, as raw integers with a
  ``tag``; ``opconform_worker.dtype_name(a)``, ``raw(a)`` and ``from_raw(a, name)`` hide the difference.
* An output may be an array, None (not produced), a list (sequence), a dict (map), or ``TypeOnly(dtype,
  shape)`` when the backend infers types but computes no values.
* ``info()`` may say ``target_dialect: <dialect>``: instances of ``formats`` are then said in that dialect before the
  backend gets them (``harness.engine.cross_dialect``), and ``known_as: <name>``: under which its differences are
  listed there.
* Several names may share a class: ``registry.BUILTIN`` gives each name its class and the keywords it is
  created with.

Use it by ``--backend module:Class``, or register an entry point in the group ``opconform.backends``.
"""

import sys
from pathlib import Path
from typing import Any

from harness.workers import worker
from harness.workers.spec import BackendError

__all__ = ["BackendError", "direct"]

# The name under which backend files reach the worker's helpers, here and inside the worker process.
sys.modules.setdefault("opconform_worker", worker)


def direct(name: str, model: str | Path, runs: list[dict[str, Any]], outputs: list[str]) -> list[Any]:
    """``registry.direct``: one model file through one backend; what the ``repro.py`` of a plug-in calls."""
    from harness.backends.registry import direct as run

    return run(name, model, runs, outputs)
