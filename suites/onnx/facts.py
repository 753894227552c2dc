"""One op version as a short fingerprint, from either source: ``schema.json`` or the catalogue of operator sets.

The catalogue was read from the same release by other code; equal fingerprints say that neither reading lost a slot, a
type, an attribute or a default.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

_ATTR = {
    "int": "INT",
    "float": "FLOAT",
    "str": "STRING",
    "tensor": "TENSOR",
    "graph": "GRAPH",
    "ints": "INTS",
    "floats": "FLOATS",
    "strs": "STRINGS",
    "sparse_tensor": "SPARSE_TENSOR",
    "type_proto": "TYPE_PROTO",
    "dtype": "INT",
}


def _default(v: Any) -> Any:
    from harness.core.dtypes import BY_NAME
    from suites.onnx.proto import CODES

    if isinstance(v, float):
        return f"{v:.6g}"
    if isinstance(v, str) and v in BY_NAME:
        return CODES[v]
    return v


def _fingerprint(inputs: Any, outputs: Any, attrs: Any, types: Any) -> str:
    text = json.dumps([inputs, outputs, attrs, types], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _option(p: dict[str, Any]) -> str:
    return "variadic" if p.get("variadic") else "optional" if p.get("optional") else ""


def line_of_schema(row: dict[str, Any]) -> str:
    """Fingerprint of a row of ``schema.json``."""
    boxed = {}
    for p in (*row["inputs"], *row["outputs"]):
        head, _, rest = p["type"].partition("(")
        if rest and rest[:-1] in row["types"]:
            boxed[rest[:-1]] = head

    def slot(p: dict[str, Any]) -> list[Any]:
        inner = p["type"].partition("(")[2][:-1]
        return [p["name"], inner if inner in boxed else p["type"], _option(p)]

    types = {}
    for k, names in row["types"].items():
        every = [*names, *row.get("beyond", {}).get(k, [])]
        types[k] = sorted(f"{boxed[k]}({n})" if k in boxed else n for n in every)
    attrs = sorted([a["name"], _ATTR[a["type"]], a["required"], _default(a["default"])] for a in row["attrs"])
    return _fingerprint([slot(p) for p in row["inputs"]], [slot(p) for p in row["outputs"]], attrs, types)
