"""pytest plugin: coremltools' own tests of NeuralNetwork layers, with our interpreter in the place of Core ML.

The tests come with the package and compare Core ML's predictions with NumPy; they are skipped off macOS because nothing
there can predict.  ``python -m pytest -p suites.nn.upstream PATH`` with the path of one of their files runs it.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np

from suites.nn import dialect


def _stand_in() -> None:
    """Some of the tests import torch; the others must not miss it."""
    try:
        import torch  # noqa: F401
    except ImportError:
        module = types.ModuleType("torch")
        module.__version__ = "0"  # type: ignore[attr-defined]
        sys.modules["torch"] = module


class Engine:
    """What coremltools takes for Core ML."""

    def __init__(self, path: str, *rest: Any) -> None:
        self.graph = dialect.parse(path)

    @staticmethod
    def maximum_supported_specification_version() -> int:
        return 9

    def predict(self, data: Any, *rest: Any) -> Any:
        """{output: array} of one input dict, a list of them of a list."""
        if isinstance(data, list):
            return [self.predict(d) for d in data]
        with np.errstate(all="ignore"):
            outs = dialect.run_model(self.graph, {k: np.asarray(v) for k, v in data.items()})
        return dict(zip(self.graph.outputs, outs))


def pytest_configure(config: Any) -> None:
    """Before the tests are imported: they ask for the system in decorators."""
    import coremltools.models.model as model
    import coremltools.models.utils as utils

    _stand_in()
    model._MLModelProxy = Engine
    for module in (model, utils):
        module._is_macos, module._macos_version = (lambda: True), (lambda: (15, 0))
