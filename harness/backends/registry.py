"""Names of backends -> where their class is.

Built-in ones are listed here; others come from the entry point group ``opconform.backends`` or as
``module:Class``.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import sys
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.backends.providers import table as providers
from harness.core.errors import OpconformError, UsageError
from harness.core.outcome import Model, Status
from harness.workers.claims import from_file
from harness.workers.info import BackendInfo
from harness.workers.pool import BackendHandle
from harness.workers.source import stated
from harness.workers.spec import HERE_ONLY, Place, Spec
from harness.workers.unwritten import compared
from harness.workers.wire import Job

GROUP = "opconform.backends"
RUNNER = "exec:"  # before the command of a runner (docs/runner-protocol.md)
HERE = Path(__file__).parent
_ASKED: dict[str, str] = {}  # name of a backend from outside, as it was started -> what it was asked for as


def _spec(name: str, file: str, cls: str, /, *, on_request: bool = False, **options: object) -> Spec:
    """A class of a file in this folder, created with its name and the options, if there are any."""
    kwargs = {**options, "name": name} if options else {}
    return Spec(name, cls, file=str(HERE / file), kwargs=kwargs, on_request=on_request)


# Adding a backend is one line here: its name, file and class, then the keywords that the class is created with.
# Everything else stands in the file.  on_request: run when asked for by name only.
BUILTIN: dict[str, Spec] = {
    s.name: s
    for s in (
        _spec("onnxruntime", "onnxruntime.py", "OnnxRuntime", level="disable"),
        _spec("onnxruntime-basic", "onnxruntime.py", "OnnxRuntime", level="basic", on_request=True),
        _spec("onnxruntime-all", "onnxruntime.py", "OnnxRuntime", level="all"),
        _spec("onnx-reference", "onnx_reference.py", "OnnxReference"),
        _spec("onnx-shape-inference", "onnx_tools.py", "ShapeInference", on_request=True),
        _spec("onnx-shape-inference-lenient", "onnx_tools.py", "ShapeInference", strict=False, on_request=True),
        _spec("onnx-data-propagation", "onnx_tools.py", "DataPropagation", on_request=True),
        _spec("onnx-converter-up", "onnx_tools.py", "Converter", direction="up", on_request=True),
        _spec("onnx-converter-down", "onnx_tools.py", "Converter", direction="down", on_request=True),
        _spec("litert-ref", "litert.py", "LiteRt", kernels="ref"),
        _spec("litert-opt", "litert.py", "LiteRt", kernels="opt"),
        _spec("litert-xnnpack", "litert.py", "LiteRt", kernels="xnnpack"),
        _spec("onnxruntime-cross-dialect", "onnxruntime.py", "CrossDialect"),
        _spec("litert-cross-dialect", "litert.py", "CrossDialect"),
        _spec("openvino", "openvino.py", "OpenVino", on_request=True),
        _spec("coremltools-fold", "coremltools_mil.py", "Fold"),
        _spec("coremltools-types", "coremltools_mil.py", "Types"),
        _spec("coremltools-symbolic", "coremltools_mil.py", "Symbolic"),
        _spec("coremltools-roundtrip", "coremltools_mil.py", "RoundTrip"),
        _spec("coremltools-nn", "coremltools_nn.py", "NeuralNetwork"),
        _spec("coremltools-passes", "coremltools_mil.py", "Passes"),
        Spec("native-ref", "Native", module="harness.backends.native", on_request=True),
        _spec("coreml-cpu", "coreml.py", "CoreMl", units="CPU_ONLY"),
        _spec("coreml-all", "coreml.py", "CoreMl", units="ALL"),
        _spec("coreml-cpu-f16", "coreml.py", "CoreMl", units="CPU_ONLY", precision="f16"),
        _spec("coreml-all-f16", "coreml.py", "CoreMl", units="ALL", precision="f16"),
    )
}


def names(fmt: str | None = None) -> list[str]:
    """Built-in names and those of installed plug-ins; with ``fmt`` those that run models of that format by default."""
    if fmt is None:
        return [*BUILTIN, *sorted(e.name for e in metadata.entry_points(group=GROUP) if e.name not in BUILTIN)]
    return [n for n in names() if (_by_default(BUILTIN[n]) if n in BUILTIN else _installed(n)) and fmt in formats_of(n)]


def _by_default(spec: Spec) -> bool:
    platforms = _stated(spec, "platforms")
    return not spec.on_request and (not platforms or sys.platform in platforms)


def _installed(name: str) -> bool:
    with create(name) as handle:
        return handle.missing() is None


def _stated(spec: Spec, attribute: str) -> Any:
    """What the class of a built-in states in its source; None where it is computed."""
    return stated(spec.file, spec.cls, attribute) if spec.file else None


@cache
def formats_of(name: str, place: Place = HERE_ONLY) -> tuple[str, ...]:
    """Formats that a backend takes; one that does not state them in a file of this folder is started to be asked, in
    its place.  Raises UsageError, BackendError."""
    formats = _stated(find(name), "formats")
    if formats:
        return tuple(formats)
    with create(name, place) as handle:
        return handle.info.formats


@cache
def family(name: str) -> str:
    """What backends that share their code have in common: ``litert-opt`` and ``litert-ref`` are one opinion.  A foreign
    one is started to be asked; what cannot be started stands for itself."""
    if name in BUILTIN:
        return str(_stated(BUILTIN[name], "family") or name)
    try:
        with create(name) as handle:
            return handle.info.family
    except OpconformError:
        return name


def packages_of(name: str) -> tuple[str, ...]:
    """Packages of the index that hold the runtime of a built-in backend, as its class states them in ``packages``."""
    return tuple(_stated(BUILTIN[name], "packages") or ())


def script(name: str) -> str | None:
    """Lines that define ``run(runs)`` for a ``repro.py``, None for a backend whose file has none."""
    return _stated(BUILTIN[name], "script") if name in BUILTIN else None


def options(name: str) -> dict[str, Any]:
    """Keywords that a built-in is created with, but its name: the OPTIONS of its ``script``."""
    return {k: v for k, v in BUILTIN[name].kwargs.items() if k != "name"}


def create(name: str, place: Place = HERE_ONLY, **kw: Any) -> BackendHandle:
    """A handle of the backend, not started yet; raises UsageError for an unknown name."""
    name = asked(name)
    named_here = ":" not in name or name.startswith(providers.PREFIX)
    return (BackendHandle if named_here else _Foreign)(find(name, place), **kw)


class _Foreign(BackendHandle):
    """A backend asked for as exec:COMMAND or module:Class.  It has the name that it states, unless another has it."""

    def start(self) -> BackendInfo:
        """As of any backend; then it has its own name."""
        info = super().start()
        if self.zygote is not None and info is self.zygote.info:
            own, asked = self.zygote.own_name, self.spec.name
            taken = own in names() or _ASKED.get(own, asked) != asked or not re.fullmatch(r"[\w.+-]+", own)
            self.name = asked if taken else own
            _ASKED[self.name] = asked
            aliases = () if taken else (own, asked)  # lists of known differences may call it by either
            self.declared = replace(info, name=self.name, known_as=(*info.known_as, *aliases))
        return self.info


def asked(name: str) -> str:
    """What to ask for to get the backend that goes by this name."""
    return _ASKED.get(name, name)


def find(name: str, place: Place = HERE_ONLY) -> Spec:
    """The backend called ``name``, or the class ``module:Class``; place: where its processes are to live.

    Raises UsageError naming the known ones."""
    name = asked(name)
    spec = BUILTIN.get(name)
    if spec is None and name.startswith(RUNNER):
        spec = Spec(name, "Runner", file=str(HERE / "runner" / "adapter.py"), kwargs={"command": _command(name)})
    if spec is None:
        spec = providers.spec_of(name)
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
        raise UsageError(
            f"unknown backend {name!r}, expected module:Class, exec:COMMAND, ep:PROVIDER or one of {' '.join(names())}"
        )
    place = place.of(name)
    python = None if place.python in ("", sys.executable) else place.python
    claims = from_file(place.claims) if place.claims else {}
    return replace(spec, place=replace(place, python=python), claims=claims)


def _command(name: str) -> str:
    """What stands behind ``exec:``.  Raises UsageError where a shell would not take it."""
    text = name.removeprefix(RUNNER).strip()
    try:
        words = shlex.split(text)
    except ValueError as e:
        raise UsageError(f"backend {name!r}: {e}") from None
    if not words:
        raise UsageError(f"backend {name!r}: expected exec:COMMAND, such as 'exec:node runner.mjs'")
    return text


def direct(name: str, model: str | Path, runs: list[dict[str, Any]], outputs: list[str]) -> list[Any]:
    """Run one model file through a backend, once for each set of inputs, and return the named outputs of the last run.
    Models asked for one after another are served by the same process.  Raises RuntimeError with the backend's words
    where it gives no values, BackendError where the backend cannot be had."""
    _serving(name).start()
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
