"""The public names of opconform.  Everything else, in this package and in the others of this project, is private.

instances(dialect, op, *, opset, version): Hypothesis strategy of valid instances of one op.
Instance: one op at one version with concrete attributes, shapes, types and data; ``dumps`` and ``from_json``.
Backend: the class to write for a runtime of your own; ``opconform run --backend module:Class`` runs it.
Tolerance: how far a correct implementation may be from the exact result.
__version__: the version of the installed package.

A minor version may change a public name; ``CHANGELOG.md`` then says so.

    from hypothesis import given
    from opconform import Instance, instances

    @given(instances("onnx", "Conv", opset=17))
    def test_conv(instance: Instance) -> None: ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.core import VERSION as __version__
from harness.core.instance import Instance
from harness.tolerance import Tolerance
from harness.workers.protocol import Backend

if TYPE_CHECKING:
    from harness.cases.strategies import instances

__all__ = ["Backend", "Instance", "Tolerance", "__version__", "instances"]


def __getattr__(name: str) -> Any:
    """``instances`` on first use: a worker process that needs ``Backend`` alone then imports no Hypothesis."""
    if name != "instances":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; public names: {', '.join(__all__)}")
    from harness.cases.strategies import instances

    return instances


def __dir__() -> list[str]:
    return sorted(__all__)
