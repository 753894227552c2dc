"""Backends: one file for each runtime, and the registry.

How to write one.  A backend is a class.  It runs in the worker process, where it gets bytes and arrays and imports
nothing of opconform::

    class MyRuntime:
        name = "my-runtime"
        formats = ("onnx",)

        def version(self):
            return my_runtime.__version__

        def load(self, model: bytes, format: str):
            return my_runtime.load(model)

        def run(self, handle, inputs):          # {input name: array} -> {output name: array}
            return handle(**inputs)

* To reject a model or its inputs, raise any exception in ``load`` or ``run``.
* For a gap that you declare (an op, a dtype, a newer opset), raise an exception whose class is called ``Unsupported``.
  It counts as coverage and not as a failure.
* ``harness.workers.protocol.Backend`` (``opconform.Backend``) is the type of such a class.  ``harness.workers.info``
  checks the optional attributes when the worker process starts:

  * ``pack``: how many instances share a model
  * ``isolate_dtypes``: element types whose instances go into models of their own
  * ``family``: a name shared by backends that share code
  * ``recycle``: number of models after which a fresh process takes over; ``forks``: whether the process may fork
  * ``acc``, ``flushes``: what its arithmetic does
  * ``unused``: features of the processor for which it has no kernels
  * ``info()``: anything else

* Types that NumPy lacks arrive as ml_dtypes arrays.  Without that package they arrive as raw integers with a ``tag``.
  ``opconform_worker.dtype_name(a)``, ``raw(a)`` and ``from_raw(a, name)`` hide the difference.
* An output may be an array, None (not produced), a list (sequence), a dict (map), or ``TypeOnly(dtype, shape)`` if the
  backend infers types but computes no values.
* If ``info()`` has ``target_dialect: <dialect>``, instances of ``formats`` are translated into that dialect before the
  backend gets them (``harness.engine.cross_dialect``).  ``known_as: <name>`` is the name under which known differences
  of that dialect list the backend.
* Several names may share a class: ``registry.BUILTIN`` gives each name its class and the keywords that create it.

Use it with ``--backend module:Class``, or register an entry point in the group ``opconform.backends``.
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
