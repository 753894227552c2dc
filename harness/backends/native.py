"""The reference as a backend: the model is parsed again and run by the whole-model interpreter.

It shares the kernels with the expected values, so agreement says that builder, parser and interpreter keep the
meaning; the kernels themselves are judged against definition loops and multi-precision arithmetic in the tests.
"""

from __future__ import annotations

from typing import Any


class Native:
    """Takes every format that an installed dialect has."""

    name = "native-ref"
    pack = 64

    def __init__(self) -> None:
        from harness.declare import registry

        self._dialects = {registry.dialect(n).format: registry.dialect(n) for n in registry.names()}
        self.formats = tuple(self._dialects)

    def version(self) -> str:
        import native_ref
        from harness.core.version import VERSION

        return f"{VERSION} {native_ref.isa}"

    def info(self) -> dict[str, Any]:
        """An interpreter runs what it can; it makes no claim to refuse the rest."""
        return {"validates": False}

    def load(self, model: bytes, format: str) -> Any:
        """The dialect and the parsed graph; parse errors are refusals."""
        d = self._dialects[format]
        graph = d.parse(model)
        return d, model, graph.outputs

    def run(self, handle: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        d, model, outputs = handle
        return dict(zip(outputs, d.run_model(model, inputs)))
