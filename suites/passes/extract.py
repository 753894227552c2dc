"""Write ``schema.json`` from coremltools' registry of graph passes and its pipelines: ``python -m
suites.passes.extract``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NAMESPACES = ("common", "mil_backend", "nn_backend")  # the others belong to front ends and compression
PIPELINES = ("default", "cleanup")
TYPES = {"T": ["f32", "f16", "i32", "bool", "u8", "i8"]}


def _one(op: str, namespace: str = "common") -> dict[str, Any]:
    slot = {"name": "inputs", "type": "T", "optional": False, "variadic": True, "const": False}
    attrs = [
        {"name": n, "type": t, "required": True, "default": None, "enum": None}
        for n, t in (("program", "graph"), ("pattern", "str"))
    ]
    outputs = [
        {"name": "fired", "type": "bool", "optional": False, "variadic": False},
        {"name": "outputs", "type": "T", "optional": False, "variadic": True},
    ]
    return {
        "op": op,
        "domain": "",
        "version": 1,
        "first_opset": "ios13",
        "last_opset": "ios18",
        "deprecated": False,
        "inputs": [slot],
        "outputs": outputs,
        "attrs": attrs,
        "types": TYPES,
        "namespace": namespace,
    }


def schema() -> dict[str, Any]:
    """One op per pass of the namespaces, and one per pipeline."""
    import coremltools
    import coremltools.converters.mil.backend.mil.passes
    import coremltools.converters.mil.backend.nn.passes  # both register the passes of their pipelines
    from coremltools.converters.mil.mil.passes.pass_registry import PASS_REGISTRY

    found = sorted(k.split("::")[::-1] for k in PASS_REGISTRY.passes if k.split("::")[0] in NAMESPACES)
    ops = [_one(*p) for p in found] + [_one(f"{p}_pipeline") for p in PIPELINES]
    return {"dialect": "passes", "source": f"coremltools {coremltools.__version__}", "ops": ops}


def dumps(table: dict[str, Any]) -> str:
    ops = ",\n".join(" " + json.dumps(o) for o in table["ops"])
    return f'{{"dialect": "{table["dialect"]}", "source": "{table["source"]}", "ops": [\n{ops}\n]}}\n'


if __name__ == "__main__":
    text = dumps(schema())
    if "--check" in sys.argv:
        sys.exit(0 if (HERE / "schema.json").read_text() == text else 1)
    (HERE / "schema.json").write_text(text)
