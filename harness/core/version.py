"""The version of this package.  ``pyproject.toml`` states it; everything else reads it from the installed metadata."""

from __future__ import annotations

from importlib import metadata

VERSION = metadata.version("opconform")
