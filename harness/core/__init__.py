"""Vocabulary shared by every room: dtypes, instances, models, outcomes, verdicts, records, errors.

Imports nothing of ours.
"""

from importlib import metadata

VERSION = metadata.version("opconform")  # ``pyproject.toml`` states it; everything else reads it from the metadata
