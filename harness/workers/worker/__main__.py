"""Starts a worker: ``python .../worker/__main__.py FD CONFIG``, or ``python .../worker FD CONFIG``."""

from __future__ import annotations

# Runs under any Python from 3.8 on.
import importlib.util
import os
import sys
from typing import Any


def package() -> Any:
    """This folder as the package ``opconform_worker``, off the path: its modules must not hide those of a runtime."""
    folder = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.abspath(sys.path[0]) == folder:
        del sys.path[0]
    file = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location("opconform_worker", file, submodule_search_locations=[folder])
    if spec is None or spec.loader is None:
        raise ImportError(f"{file}: no Python file")
    module = sys.modules["opconform_worker"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    zygote = package().zygote
    zygote.main()
    zygote.last()
