"""The model files of a frozen instance: what its dialect builds, as the format's own readers take it."""

from __future__ import annotations

from harness.packs.frozen import Frozen


def model_files(frozen: Frozen) -> tuple[str, dict[str, bytes]]:
    """Name of the model, a file or a folder, and its files."""
    name = f"model{frozen.case.version.dialect.extension}"
    return name, {name: bytes(frozen.model.data)}
