"""Names of backends -> where their class is.

Built-in ones are listed here; others come from the entry point group ``opconform.backends`` or as
``module:Class``.
"""

from __future__ import annotations

import atexit
import os
import sys
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.core.errors import UsageError
from harness.core.outcome import Model, Status
from harness.workers.pool import BackendHandle
from harness.workers.process import HERE_ONLY, Place, Spec
from harness.workers.unwritten import compared
from harness.workers.wire import Job

GROUP = "opconform.backends"
HERE = Path(__file__).parent


def _spec(name: str, file: str, cls: str, /, **kwargs: object) -> Spec:
    return Spec(name, cls, file=str(HERE / file), kwargs=kwargs)


BUILTIN: dict[str, Spec] = {
    s.name: s
    for s in (
        _spec("onnxruntime", "onnxruntime.py", "OnnxRuntime", level="disable", name="onnxruntime"),
        _spec("onnxruntime-basic", "onnxruntime.py", "OnnxRuntime", level="basic", name="onnxruntime-basic"),
        _spec("onnxruntime-all", "onnxruntime.py", "OnnxRuntime", level="all", name="onnxruntime-all"),
        _spec("onnx-reference", "onnx_reference.py", "OnnxReference"),
        _spec("onnx-shape-inference", "onnx_tools.py", "ShapeInference"),
        _spec(
            "onnx-shape-inference-lenient",
            "onnx_tools.py",
            "ShapeInference",
            strict=False,
            name="onnx-shape-inference-lenient",
        ),
        _spec("onnx-data-propagation", "onnx_tools.py", "DataPropagation"),
        _spec("onnx-converter-up", "onnx_tools.py", "Converter"),
        _spec("onnx-converter-down", "onnx_tools.py", "Converter", direction="down", name="onnx-converter-down"),
        _spec("litert-ref", "litert.py", "LiteRt", kernels="ref", name="litert-ref"),
        _spec("litert-opt", "litert.py", "LiteRt", kernels="opt", name="litert-opt"),
        _spec("litert-xnnpack", "litert.py", "LiteRt", kernels="xnnpack", name="litert-xnnpack"),
        _spec("onnxruntime-cross-dialect", "onnxruntime.py", "CrossDialect"),
        _spec("litert-cross-dialect", "litert.py", "CrossDialect"),
        _spec("openvino", "openvino.py", "OpenVino"),
        _spec("coremltools-fold", "coremltools_mil.py", "Fold"),
        _spec("coremltools-types", "coremltools_mil.py", "Types"),
        _spec("coremltools-symbolic", "coremltools_mil.py", "Symbolic"),
        _spec("coremltools-roundtrip", "coremltools_mil.py", "RoundTrip"),
        _spec("coremltools-nn", "coremltools_mil.py", "NeuralNetwork"),
        _spec("coremltools-passes", "coremltools_mil.py", "Passes"),
        Spec("native-ref", "Native", module="harness.backends.native"),
        _spec("coreml-cpu", "coreml.py", "CoreMl", units="CPU_ONLY", name="coreml-cpu"),
        _spec("coreml-all", "coreml.py", "CoreMl", units="ALL", name="coreml-all"),
        _spec("coreml-cpu-f16", "coreml.py", "CoreMl", precision="f16", name="coreml-cpu-f16"),
        _spec("coreml-all-f16", "coreml.py", "CoreMl", units="ALL", precision="f16", name="coreml-all-f16"),
    )
}


# what a built-in takes, so that a test can be listed without starting a runtime; what runs only when asked for by name
_FORMATS = {
    "onnxruntime": ("onnx",),
    "onnx": ("onnx",),
    "litert": ("tflite",),
    "coremltools": ("mil",),
    "onnxruntime-cross-dialect": ("mil",),
    "litert-cross-dialect": ("mil",),
    "coremltools-passes": ("mil-passes",),
    "coreml": ("mil", "nn"),
    "openvino": ("onnx", "tflite"),
    "native": ("onnx", "tflite", "mil", "nn"),
}
_ON_REQUEST = {
    "native-ref",
    "onnxruntime-basic",
    "onnx-shape-inference",
    "onnx-shape-inference-lenient",
    "onnx-data-propagation",
    "onnx-converter-up",
    "onnx-converter-down",
    "openvino",
}


def names(fmt: str | None = None) -> list[str]:
    """Built-in names and those of installed plug-ins; with ``fmt`` those that run models of that format by default."""
    if fmt is None:
        return [*BUILTIN, *sorted(e.name for e in metadata.entry_points(group=GROUP) if e.name not in BUILTIN)]
    return [
        n
        for n in names()
        if n not in _ON_REQUEST
        and fmt in formats_of(n)
        and (n in BUILTIN or _installed(n))
        and (not n.startswith("coreml-") or sys.platform == "darwin")
    ]


def _installed(name: str) -> bool:
    with create(name) as handle:
        return handle.missing() is None


@cache
def formats_of(name: str) -> tuple[str, ...]:
    """Formats that a backend takes; a foreign one is started to be asked.  Raises UsageError, BackendError."""
    if name in BUILTIN:
        return _FORMATS.get(name) or _FORMATS[name.split("-")[0]]
    with create(name) as handle:
        return tuple(handle.hello["formats"])


def create(name: str, place: Place = HERE_ONLY, **kw: Any) -> BackendHandle:
    """A handle of the backend, not started yet; raises UsageError for an unknown name."""
    return BackendHandle(find(name, place), **kw)


def find(name: str, place: Place = HERE_ONLY) -> Spec:
    """The backend called ``name``, or the class ``module:Class``; place: where its processes are to live.

    Raises UsageError naming the known ones."""
    spec = BUILTIN.get(name)
    if spec is None and ":" in name:
        module, cls = name.split(":", 1)
        if not module or not cls:
            raise UsageError(f"backend {name!r}: expected module:Class")
        spec = Spec(name, cls, module=module)
    if spec is None:
        for e in metadata.entry_points(group=GROUP):
            if e.name == name:
                module, _, cls = e.value.partition(":")
                spec = Spec(name, cls, module=module)
    if spec is None:
        raise UsageError(f"unknown backend {name!r}, expected module:Class or one of {' '.join(names())}")
    python = None if place.python in ("", sys.executable) else place.python
    return replace(spec, place=replace(place, python=python))


def direct(name: str, model: str | Path, runs: list[dict[str, Any]], outputs: list[str]) -> list[Any]:
    """Run one model file through a backend, once for each set of inputs, and return the named outputs of the last run.
    Models asked for one after another are served by the same process.  Raises RuntimeError with the backend's words
    where it gives no values."""
    path = Path(model)
    kind = {".onnx": "onnx", ".tflite": "tflite", ".mlmodel": "nn"}.get(path.suffix, "mil")
    job = Job(
        Model(kind, path.read_bytes(), [[(n, n, None) for n in runs[0]]], [list(outputs)]),
        [[[inputs[n] for n in runs[0]]] for inputs in runs],
    )
    (result,) = _serving(name).run([job])
    outcome = result.unblamed[-1].outcome if result.unblamed else result.outcomes[-1][0]
    if outcome.status is not Status.VALUE:
        raise RuntimeError(f"{name}: {outcome.status.value} in {outcome.phase}: {outcome.message}")
    return list(outcome.outputs or [])


@cache
def _serving(name: str) -> BackendHandle:
    spec = find(name)
    chosen = {k: os.environ[k] for k in compared(0) if k in os.environ}  # by who started this process
    handle = BackendHandle(replace(spec, env={**spec.env, **chosen}))
    atexit.register(handle.close)
    return handle
