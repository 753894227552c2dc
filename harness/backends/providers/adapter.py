"""One execution provider of ONNX Runtime.  Nothing runs on the CPU in its place: a model with a node that the provider
does not take is unsupported."""

from __future__ import annotations

import importlib
import os
from importlib import metadata
from typing import Any

import onnxruntime as ort
from opconform_worker import Unsupported, onnx_bytes, sibling

_base: Any = sibling("../onnxruntime", __spec__)
ALONE = "session.disable_cpu_ep_fallback"
# How the runtime says that a node is left without a kernel once the CPU may not take it.
GAPS = ("fallback to CPU EP has been explicitly disabled", "node_provider_type.empty() was false")


class Provider(_base.OnnxRuntime):  # type: ignore[misc]
    """One execution provider as a backend.

    provider: its name.  options: of the provider, as text.
    module, library: where a plug-in's library is; neither, if the build of the runtime has the provider.
    package: what to install.
    environ: variables of the process.
    known_as: further names in the list of known differences.
    gaps: texts by which it tells what the device lacks.
    declares: attributes of the class.
    """

    isolate_dtypes: tuple[str, ...] = ()
    path_kinds: tuple[str, ...] = ()
    pack = 16
    forks = False  # providers keep threads and devices

    def __init__(
        self,
        name: str,
        provider: str,
        options: dict[str, str],
        module: str,
        library: str,
        package: str,
        environ: dict[str, str],
        gaps: list[str],
        known_as: list[str],
        declares: dict[str, Any],
    ) -> None:
        for key, value in environ.items():
            os.environ.setdefault(key, value)
        _base.OnnxRuntime.__init__(self, "disable", name)
        self.acc: dict[str, str] = {}
        self.unused: tuple[str, ...] = ()
        for key, value in declares.items():
            setattr(self, key, value)
        self.family = name
        self.fast = False  # the private constructor knows no providers
        self.provider, self.given, self.package, self.known_as = provider, options, package, known_as
        self.gaps = (*GAPS, *gaps)
        self.options.add_session_config_entry(ALONE, "1")
        self.plugin = bool(module or library)
        if self.plugin:
            self._register(library or _library(module))
        elif provider not in ort.get_available_providers():
            raise RuntimeError(f"this build of onnxruntime has no {provider}; it comes with the package {package}")
        try:
            self._session(onnx_bytes.tiny_model())
        except Exception as e:  # a model that it does not take is no reason to stop; no device is
            if not isinstance(self._sorted(e), Unsupported):
                raise RuntimeError(f"{provider} cannot be started: {e}") from None

    def _register(self, library: str) -> None:
        ort.register_execution_provider_library(self.provider, library)
        devices = [d for d in ort.get_ep_devices() if d.ep_name == self.provider]
        if not devices:
            raise RuntimeError(f"{self.provider} of {library} offers no device here")
        self.options.add_provider_for_devices(devices[:1], self.given)

    def version(self) -> str:
        own = ""
        if self.package != "onnxruntime":
            try:
                own = f" ({self.package} {metadata.version(self.package)})"
            except metadata.PackageNotFoundError:  # the library was named by its path
                own = ""
        return f"{ort.__version__}{own}"

    def info(self) -> dict[str, Any]:
        """Opsets as of ONNX Runtime, and the options that the provider was given."""
        told = {
            "oldest_opset": 7,
            "provider": self.provider,
            "provider_options": self.given,
            "front_end": "onnxruntime",
            "known_as": self.known_as,
        }
        opset = getattr(_base, "newest_opset", None)
        return told if opset is None else {**told, "opset": opset()}

    def _session(self, model: bytes) -> Any:
        chosen = {} if self.plugin else {"providers": [(self.provider, self.given)]}
        return ort.InferenceSession(model, self.options, enable_fallback=0, **chosen)

    def load(self, model: bytes, format: str) -> Any:
        try:
            return _base.OnnxRuntime.load(self, model, format)
        except Exception as e:
            raise self._sorted(e) from None

    def run(self, handle: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        try:
            return dict(_base.OnnxRuntime.run(self, handle, inputs))
        except Exception as e:
            raise self._sorted(e) from None

    def _sorted(self, e: Exception) -> Exception:
        """The exception as a gap where the provider left a node to the CPU, or the device lacks something."""
        text = str(e)
        return Unsupported(text) if any(g in text for g in self.gaps) else e


def _library(module: str) -> str:
    found = importlib.import_module(module)
    return str((getattr(found, "get_library_path", None) or found.library_path)())
