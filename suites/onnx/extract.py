"""Write ``schema.json``: what the installed ``onnx`` package states about every operator version.

    python -m suites.onnx.extract            rewrite the file
    python -m suites.onnx.extract --check    fail if the file differs from what would be written

It holds facts only: slots, arities, types, attributes, defaults, and the opsets over which a version is in effect.  A
version of another domain (``ai.onnx.ml`` ...) gets its range in opsets of the default domain, by the release table of
the package.  So one number names the opset of every model.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME

PATH = Path(__file__).with_name("schema.json")

# onnx type word -> our dtype name; a type without a dtype of ours would be listed under "beyond".
TYPES = {
    "double": "f64",
    "float": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint64": "u64",
    "uint32": "u32",
    "uint16": "u16",
    "uint8": "u8",
    "bool": "bool",
    "string": "str",
    "float8e4m3fn": "f8e4m3fn",
    "float8e4m3fnuz": "f8e4m3fnuz",
    "float8e5m2": "f8e5m2",
    "float8e5m2fnuz": "f8e5m2fnuz",
    "float8e8m0": "f8e8m0",
    "float4e2m1": "f4e2m1",
    "float6e2m3": "f6e2m3",
    "float6e3m2": "f6e3m2",
    "int4": "i4",
    "uint4": "u4",
    "int2": "i2",
    "uint2": "u2",
    "complex64": "c64",
    "complex128": "c128",
}
ORDER = {name: i for i, name in enumerate(BY_NAME)}

# Attributes of type INT that hold an element type.
DTYPE_ATTRS = {"to", "dtype", "output_dtype", "output_datatype", "stash_type", "softmax_precision", "precision"}
# String attributes with a closed set of values; the schema objects keep those in prose only.
PADS = ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]
COORDINATES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"]
# A list of lists: each row is (first version, values).
ENUMS: dict[str, dict[str, list]] = {
    "*": {"auto_pad": PADS},
    "DepthToSpace": {"mode": ["DCR", "CRD"]},
    "BitShift": {"direction": ["LEFT", "RIGHT"]},
    "Gelu": {"approximate": ["none", "tanh"]},
    "Pad": {"mode": [(1, ["constant", "reflect", "edge"]), (19, ["constant", "reflect", "edge", "wrap"])]},
    "ScatterElements": {"reduction": [(16, ["none", "add", "mul"]), (18, ["none", "add", "mul", "max", "min"])]},
    "ScatterND": {"reduction": [(16, ["none", "add", "mul"]), (18, ["none", "add", "mul", "max", "min"])]},
    "Upsample": {"mode": [(1, ["nearest", "bilinear"]), (7, ["nearest", "linear"])]},
    "Resize": {
        "mode": [(10, ["nearest", "linear"]), (11, ["nearest", "linear", "cubic"])],
        "coordinate_transformation_mode": [
            (11, [*COORDINATES, "tf_half_pixel_for_nn"]),
            (13, COORDINATES),
            (19, [*COORDINATES, "half_pixel_symmetric"]),
        ],
        "nearest_mode": ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"],
        "keep_aspect_ratio_policy": ["stretch", "not_larger", "not_smaller"],
    },
    "GridSample": {
        "mode": [(16, ["bilinear", "nearest", "bicubic"]), (20, ["linear", "nearest", "cubic"])],
        "padding_mode": ["zeros", "border", "reflection"],
    },
    "SpaceToDepth": {"mode": ["DCR", "CRD"]},
    "LSTM": {"direction": ["forward", "reverse", "bidirectional"]},
    "GRU": {"direction": ["forward", "reverse", "bidirectional"]},
    "RNN": {"direction": ["forward", "reverse", "bidirectional"]},
    "Cast": {"round_mode": ["up", "down", "nearest"]},
    "CastLike": {"round_mode": ["up", "down", "nearest"]},
    "TensorScatter": {"mode": ["linear", "circular"]},
}


def type_name(text: str) -> str:
    """``seq(tensor(float))`` -> ``seq(f32)``; ``map(int64, float)`` -> ``map(i64,f32)``."""
    head, _, rest = text.replace(" ", "").partition("(")
    if not rest:
        return TYPES.get(head, head)
    inner = rest[:-1]
    if head == "tensor":
        return TYPES[inner]
    if head == "map":
        key, _, value = inner.partition(",")
        return f"map({TYPES[key]},{type_name(value) if '(' in value else TYPES[value]})"
    return f"{head}({type_name(inner)})"


def leaf(name: str) -> str:
    """The element type inside any containers."""
    return name.rstrip(")").rsplit("(", 1)[-1].rsplit(",", 1)[-1]


def _slot(p: Any, minimum: int, position: int, boxed: dict[str, str]) -> dict[str, Any]:
    kind = type_name(p.type_str)
    out = {
        "name": p.name,
        "type": f"{boxed[kind]}({kind})" if kind in boxed else kind,
        "optional": p.option.name == "Optional",
        "variadic": p.option.name == "Variadic",
        "const": False,
    }
    if out["variadic"]:  # one of which none is needed may be left out
        out["min"], out["homogeneous"] = max(0, minimum - position), p.is_homogeneous
        out["optional"] = out["min"] == 0
    return out


def _attr(op: str, version: int, name: str, a: Any) -> dict[str, Any]:
    import onnx

    kind = a.type.name.lower()
    kind = {"string": "str", "strings": "strs"}.get(kind, kind)
    if name in DTYPE_ATTRS and kind == "int":
        kind = "dtype"
    default = None
    if a.default_value is not None and a.default_value.type:
        default = onnx.helper.get_attribute_value(a.default_value)
        if isinstance(default, bytes):
            default = default.decode()
        elif isinstance(default, float):
            default = float(str(np.float32(default)))  # the shortest decimal of the stored f32
        elif isinstance(default, onnx.TensorProto):
            default = {"tensor": onnx.numpy_helper.to_array(default).tolist()}
        elif not isinstance(default, (int, str)):
            default = [x.decode() if isinstance(x, bytes) else x for x in default]
    if kind == "dtype" and default is not None:
        default = DTYPE_CODES.get(default)
    enum = ENUMS.get(op, {}).get(name) or ENUMS["*"].get(name)
    if enum and isinstance(enum[0], tuple):
        enum = [values for since, values in enum if since <= version][-1]
    return {"name": name, "type": kind, "required": a.required, "default": default, "enum": enum}


# TensorProto.DataType of the onnx IR specification
DTYPE_CODES = {
    1: "f32",
    2: "u8",
    3: "i8",
    4: "u16",
    5: "i16",
    6: "i32",
    7: "i64",
    8: "str",
    9: "bool",
    10: "f16",
    11: "f64",
    12: "u32",
    13: "u64",
    14: "c64",
    15: "c128",
    16: "bf16",
    17: "f8e4m3fn",
    18: "f8e4m3fnuz",
    19: "f8e5m2",
    20: "f8e5m2fnuz",
    21: "u4",
    22: "i4",
    23: "f4e2m1",
    24: "f8e8m0",
    25: "u2",
    26: "i2",
    27: "f6e2m3",
    28: "f6e3m2",
}


def releases() -> dict[str, Any]:
    """Per default-domain opset: the oldest IR version and the versions of the other domains released with it."""
    from onnx import helper

    table: dict[int, dict[str, int]] = {}
    for row in helper.VERSION_TABLE:
        entry = {"ir": row[1], "ai.onnx.ml": row[3]}
        if len(row) > 4:  # the training domain came with opset 12
            entry["ai.onnx.preview.training"] = row[4]
        table.setdefault(row[2], entry)
    last = max(table)
    table[last]["ai.onnx.preview"] = 1  # the release table does not name this domain: the newest opset is sure
    for opset in range(last, 0, -1):  # opsets 2-4 were never released on their own: they read as the next one did
        table.setdefault(opset, table.get(opset + 1, table[last]))
    return {str(k): table[k] for k in sorted(table)}


def extract() -> dict[str, Any]:
    """The whole file as one object."""
    import onnx

    table = releases()
    last = max(int(k) for k in table)
    by_op: dict[tuple[str, str], list[Any]] = {}
    for s in onnx.defs.get_all_schemas_with_history():
        by_op.setdefault((s.domain, s.name), []).append(s)
    ops = []
    for (domain, name), versions in sorted(by_op.items()):
        versions.sort(key=lambda s: s.since_version)
        for i, s in enumerate(versions):
            until = versions[i + 1].since_version - 1 if i + 1 < len(versions) else 10**6
            own = {int(k): int(k) if domain == "" else row.get(domain, 0) for k, row in table.items()}
            effective = [k for k, v in own.items() if s.since_version <= v <= until]
            types: dict[str, list[str]] = {}
            beyond: dict[str, list[str]] = {}
            for c in s.type_constraints:
                names = sorted(
                    (type_name(t) for t in c.allowed_type_strs), key=lambda n: (n.count("("), ORDER[leaf(n)], n)
                )
                types[c.type_param_str] = [n for n in names if leaf(n) in BY_NAME]
                if len(types[c.type_param_str]) < len(names):
                    beyond[c.type_param_str] = [n for n in names if leaf(n) not in BY_NAME]
            kinds = {
                k: {n.partition("(")[0] if "(" in n else "" for n in [*v, *beyond.get(k, ())]} for k, v in types.items()
            }
            boxed = {k: kind.pop() for k, kind in kinds.items() if kind in ({"seq"}, {"optional"})}
            for (
                k,
                head,
            ) in boxed.items():  # a name that stands for sequences only: the slot says so, the name for its elements
                types[k] = [n[len(head) + 1 : -1] for n in types[k]]
                if k in beyond:
                    beyond[k] = [n[len(head) + 1 : -1] for n in beyond[k]]
            row = {
                "op": name,
                "domain": domain,
                "version": s.since_version,
                "first_opset": min(effective, default=last),
                "last_opset": max(effective, default=last),
                "deprecated": s.deprecated,
                "inputs": [_slot(p, s.min_input, j, boxed) for j, p in enumerate(s.inputs)],
                "outputs": [_slot(p, s.min_output, j, boxed) for j, p in enumerate(s.outputs)],
                "attrs": [_attr(name, s.since_version, k, s.attributes[k]) for k in sorted(s.attributes)],
                "types": types,
                "function": s.has_function or s.has_context_dependent_function,
            }
            if beyond:
                row["beyond"] = beyond
            least = max((j + 1 for j, x in enumerate(row["inputs"]) if not x["optional"]), default=0)
            if s.min_input > least:  # a node names so many, absent ones by the empty string
                row["least"] = s.min_input
            ops.append(row)
    return {"dialect": "onnx", "source": f"onnx {onnx.__version__}", "opsets": [1, last], "releases": table, "ops": ops}


def dumps(data: dict[str, Any]) -> str:
    """One line an operator version, so that a change reads as a diff."""
    head = {k: v for k, v in data.items() if k != "ops"}
    lines = ",\n".join(json.dumps(o, separators=(",", ":")) for o in data["ops"])
    return json.dumps(head, separators=(",", ":"))[:-1] + ',"ops":[\n' + lines + "\n]}\n"


def main(argv: list[str]) -> int:
    text = dumps(extract())
    if "--check" in argv:
        same = PATH.read_text() == text
        print("schema.json is current" if same else "schema.json differs from the installed onnx", file=sys.stderr)
        return 0 if same else 1
    PATH.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
