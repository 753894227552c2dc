"""The public names of opconform.  Everything else, in this package and in the others of this project, is private.

instances(dialect, op, *, opset, version): Hypothesis strategy of valid instances of one op.
check(op, kernel, *, dtypes, device, ...): judge a Python callable as a kernel of one op; returns a Conformance or
raises NonConformance.
conforms(op, *, dtypes, ...): decorator that makes a pytest test of such a callable.
Instance: one op at one version with concrete attributes, shapes, types and data; ``dumps`` and ``from_json``.
Backend: the class to write for a runtime of your own; ``opconform run --backend module:Class`` runs it.
Tolerance: how far a correct implementation may be from the exact result.
__version__: the version of the installed package.

A minor version may change a public name; ``CHANGELOG.md`` then says so.

    from hypothesis import given
    from opconform import Instance, check, instances

    @given(instances("onnx", "Conv", opset=17))
    def test_conv(instance: Instance) -> None: ...

    check("onnx/Softmax-13", my_softmax, dtypes=("f32", "f16"))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harness.core import VERSION as __version__
from harness.core.instance import Instance
from harness.tolerance import Tolerance
from harness.workers.protocol import Backend

if TYPE_CHECKING:
    from harness.cases.strategies import instances
    from harness.kernels.check import Conformance, NonConformance, check
    from harness.kernels.marker import conforms

__all__ = [
    "Backend",
    "Conformance",
    "Instance",
    "NonConformance",
    "Tolerance",
    "__version__",
    "check",
    "conforms",
    "instances",
]
# Imported on first use: a worker process that needs ``Backend`` alone then imports neither Hypothesis nor the engine.
_LATE = {
    "instances": "harness.cases.strategies",
    "check": "harness.kernels.check",
    "Conformance": "harness.kernels.check",
    "NonConformance": "harness.kernels.check",
    "conforms": "harness.kernels.marker",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; public names: {', '.join(__all__)}")
    return getattr(import_module(_LATE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
