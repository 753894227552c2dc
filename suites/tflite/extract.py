"""Write tables.json and schema.json: every fact about the TFLite format and its operators that the suite uses.

Sources: the schema module of the installed ``ai_edge_litert`` (tables, slots, enums, defaults, operator codes), the
same package's interpreter (which operator versions have a kernel, asked one by one), and ``slots.txt`` beside this file
(operand names, element types, what each version added).  Run ``python -m suites.tflite.extract`` after upgrading the
package; nothing at run time imports it.
"""

from __future__ import annotations

import inspect
import json
import re
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any

from suites.tflite import custom

HERE = Path(__file__).parent
CUSTOM = 32  # BuiltinOperator.CUSTOM
_SCALARS = {
    "Bool": "bool",
    "Int8": "i8",
    "Uint8": "u8",
    "Int16": "i16",
    "Uint16": "u16",
    "Int32": "i32",
    "Uint32": "u32",
    "Int64": "i64",
    "Uint64": "u64",
    "Float32": "f32",
    "Float64": "f64",
}


def snake(name: str) -> str:
    """``dilationWFactor`` -> ``dilation_w_factor``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def read_tables(source: str) -> dict[str, Any]:
    """Slot, field, kind and default of every table, from the text of the generated schema module.

    kind: a scalar name, "str", "*Table" (offset), "[kind]" (vector), "|Union" (offset whose table the preceding
    ``<field>_type`` names).
    """
    tables: dict[str, list[list[Any]]] = {name: [] for name in re.findall(r"^def (\w+)Start\(builder\)", source, re.M)}
    hints = {
        (cls, field): kind
        for cls, body in re.findall(r"^class (\w+)T\(object\):(.*?)(?=^class |\Z)", source, re.M | re.S)
        for field, kind in re.findall(r"self\.(\w+) = \w+  # type: (.+)", body)
    }
    elements = {
        (cls, field[0].lower() + field[1:]): (int(size), body)
        for cls, field, size, body in [
            (*split_vector(tables, joined), size, "")
            for joined, size in re.findall(
                r"^def (\w+)Vector\(builder, numElems\):\n    return builder\.StartVector\((\d+)", source, re.M
            )
        ]
    }
    pack = {
        (cls, field): kind
        for cls, body in re.findall(r"^class (\w+)T\(object\):(.*?)(?=^class |\Z)", source, re.M | re.S)
        for kind, field in re.findall(r"builder\.Prepend(\w+)\(self\.(\w+)\[i\]\)", body)
    }
    for joined, arg, kind, slot, default in re.findall(
        r"^def (\w+)\(builder, (\w+)\):\n    builder\.Prepend(\w+)Slot\((\d+), .*?, ([-\d.einfa]+)\)$", source, re.M
    ):
        cls = next(c for c in sorted(tables, key=len, reverse=True) if joined.startswith(c + "Add"))
        hint = hints.get((cls, arg), "")
        if kind in _SCALARS:
            value: Any = float(default) if kind.startswith("Float") else int(default)
            tables[cls].append([int(slot), snake(arg), _SCALARS[kind], bool(value) if kind == "Bool" else value])
            continue
        inner = re.search(r"List\[(\w+)\]", hint)
        if inner:
            word = inner[1]
            if word in ("int", "float", "bool"):
                name = "[" + _SCALARS[pack.get((cls, arg), "Uint8")] + "]"
            else:
                name = "[str]" if word == "str" else f"[*{word[:-1]}]"
        elif "Union[" in hint or hint.startswith("None"):
            name = "|" + arg
        elif "Optional[str]" in hint:
            name = "str"
        else:
            name = "*" + re.sub(r"Optional\[(\w+)T\]", r"\1", hint)
        if (cls, arg) in elements and not name.startswith("["):
            raise SystemExit(f"{cls}.{arg}: a vector read as {name}")
        tables[cls].append([int(slot), snake(arg), name, None])
    return {name: sorted(fields) for name, fields in tables.items()}


def split_vector(tables: dict[str, Any], joined: str) -> tuple[str, str]:
    """``TensorStartShape`` -> ("Tensor", "Shape")."""
    cls = next(c for c in sorted(tables, key=len, reverse=True) if joined.startswith(c + "Start"))
    return cls, joined[len(cls) + 5 :]


def read_enums(module: Any) -> dict[str, dict[str, int]]:
    """Every enum of the module, names to numbers."""
    out = {}
    for name, cls in vars(module).items():
        if inspect.isclass(cls):
            members = {k: v for k, v in vars(cls).items() if isinstance(v, int) and not k.startswith("_")}
            if members and not hasattr(cls, "Init"):
                out[name] = members
    return out


def kernel_versions(codes: dict[str, int], highest: int = 20) -> dict[str, dict[str, list[int]]]:
    """Versions with a kernel per operator, for the optimised ("all") and the reference ("reference") op set.

    The interpreter answers at creation, before it looks at anything else, with a fixed sentence for an unknown version.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    from suites.tflite import flatbuffers

    out: dict[str, dict[str, list[int]]] = {}
    resolvers = {"all": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, "reference": OpResolverType.BUILTIN_REF}
    for op, code in codes.items():
        found: dict[str, list[int]] = {"all": [], "reference": []}
        for which, resolver in resolvers.items():
            for v in range(1, highest + 1):
                data = flatbuffers.encode(
                    "Model",
                    {
                        "version": 3,
                        "buffers": [{}],
                        "operator_codes": [
                            {"deprecated_builtin_code": min(code, 127), "version": v, "builtin_code": code}
                        ],
                        "subgraphs": [
                            {
                                "tensors": [],
                                "inputs": [],
                                "outputs": [],
                                "operators": [{"opcode_index": 0, "inputs": [], "outputs": []}],
                            }
                        ],
                    },
                )
                try:
                    Interpreter(model_content=data, experimental_op_resolver_type=resolver)
                except Exception as e:  # any failure but this one means that the version is known
                    if "Didn't find op for builtin" in str(e) or "out of range" in str(e):
                        continue
                found[which].append(v)
        out[op] = found
    return out


def read_slots(text: str) -> dict[str, dict[str, Any]]:
    """``slots.txt`` as data: inputs, outputs, types per letter, additions per version."""
    out = {}
    for line in text.splitlines():
        line = line.split("#")[0].rstrip()
        if not line:
            continue
        op, io, types, versions = (part.strip() for part in (line + " | ").split("|")[:4])
        before, _, after = io.partition("->")
        added: dict[int, list[str]] = {}
        for word in versions.split():
            if word[0] == "@":
                added[now := int(word[1:])] = []
            else:
                added[now].append(word)
        out[op] = {
            "inputs": [slot(w) for w in before.split()],
            "outputs": [slot(w) for w in after.split()],
            "types": {k: v.split(",") for k, v in (w.split("=") for w in types.split())},
            "added": added,
        }
    return out


def slot(word: str) -> dict[str, Any]:
    """``bias:B?`` -> its parts."""
    name, kind = word.split(":")
    marks = kind.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
    return {
        "name": name,
        "type": kind.rstrip("?*!"),
        "optional": "?" in marks,
        "variadic": "*" in marks,
        "state": "!" in marks,
        "const": False,
    }


def effective_types(
    facts: dict[str, Any], version: int
) -> tuple[dict[str, list[str]], dict[str, list[str]], list[str]]:
    """Types and quantised types per letter at one version, and the features that came later."""
    late: set[tuple[str, str]] = set()
    features = []
    first = next(iter(facts["types"]), "")
    words = {w for ws in facts["types"].values() for w in ws}
    for v, items in facts["added"].items():
        for item in items:
            letter, _, name = item.rpartition("=")
            if name in words:
                if v > version:
                    late.add((letter or first, name))
            elif v > version:
                features.append(item)
    plain = {k: [w for w in ws if w[0] != "q" and (k, w) not in late] for k, ws in facts["types"].items()}
    quant = {k: [w[1:] for w in ws if w[0] == "q" and (k, w) not in late] for k, ws in facts["types"].items()}
    return plain, {k: v for k, v in quant.items() if v}, features


def forms(
    facts: dict[str, Any], plain: dict[str, list[str]], quant: dict[str, list[str]], later: list[str]
) -> list[tuple[str, str, Any]]:
    """The ways one version may be used: (suffix of the version, domain, types per letter).

    "" plain types; "q" quantised: the main operand carries quantisation parameters; "h" hybrid: float activations with
    quantised weights.  A form whose main operand has no type yet at this version does not exist.
    """
    out: list[tuple[str, str, Any]] = []
    main = next(iter(facts["types"]), None)
    if main is None:
        return [("", "", {})]
    if plain[main]:
        letters = {k: (ts or quant.get(k, [])) for k, ts in plain.items()}
        if "B" in letters and "W" in letters:
            letters["B"] = ["f32"]
        out.append(("", "", letters))
    if quant.get(main):
        letters = {}
        for k, ts in plain.items():
            letters[k] = quant.get(k, ts)
            if k == "B":
                letters[k] = [t for t in dict.fromkeys(ts + quant.get(k, [])) if t != "f32"]
        if "O" in facts["types"] and "f32" in letters["O"]:
            letters["O"] = ["f32"]
        out.append(("q", "quantised", letters))
    weights = hybrid_weights(facts, quant, later)
    if "f32" in plain[main] and weights:
        letters = {**plain, "T": ["f32"], "W": weights}
        letters |= {k: ["f32"] for k in ("B", "N") if k in plain}
        letters |= {k: ["i8"] for k in ("P", "V") if k in plain}  # further weights, kept like the others
        out.append(("h", "hybrid", letters))
    return out


def hybrid_weights(facts: dict[str, Any], quant: dict[str, list[str]], later: list[str]) -> list[str]:
    """Types of quantised weights beside float activations: signed, 8 bits or fewer.

    Where the version rules name the hybrid form, int8 comes with it; elsewhere with the quantised weights themselves.
    """
    named = any("hybrid" in items for items in facts["added"].values())
    if "W" not in facts["types"] or "hybrid" in later:
        return []
    have = [t for t in quant.get("W", []) if t in ("i8", "i4", "i2")]
    return [t for t in ("i2", "i4", "i8") if t in have or (t == "i8" and named)]


_OPTIONS = {  # operators whose option table does not carry their own name
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "L2_POOL_2D": "Pool2DOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "MEAN": "ReducerOptions",
    "SUM": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "REDUCE_ANY": "ReducerOptions",
    "REDUCE_ALL": "ReducerOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
    "PADV2": "PadV2Options",
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
    "RANDOM_UNIFORM": "RandomOptions",
    "RANDOM_STANDARD_NORMAL": "RandomOptions",
    "MULTINOMIAL": "RandomOptions",
    "RELU_0_TO_1": None,
    "BASIC_LSTM": "LSTMOptions",
    "SOFTMAX": "SoftmaxOptions",
    "STABLEHLO_SHIFT_LEFT": "StablehloShiftLeftOptions",
    "STABLEHLO_PAD": "StablehloPadOptions",
    "STABLEHLO_COMPOSITE": "StableHLOCompositeOptions",
    "RIGHT_SHIFT": "RightShiftOptions",
}
# Operators of the dialect that share a builtin with another one: (builtin, first version).
SHARED = {"BASIC_LSTM": ("LSTM", 2)}
_REQUIRED = re.compile(r"(stride|filter)_[hwd]|depth_multiplier|block_size|num_splits|^num$|values_count|rank|num_bits")
_DIM = {
    "bool": "bool",
    "f32": "float",
    "f64": "float",
    "str": "str",
    "[i32]": "ints",
    "[i64]": "ints",
    "[f32]": "floats",
    "[bool]": "ints",
    "[u8]": "ints",
    "[str]": "strs",
    "[u32]": "ints",
}


def option_table(op: str, tables: dict[str, Any]) -> str | None:
    """Name of the operator's option table, None if it has none."""
    if op in _OPTIONS:
        return _OPTIONS[op]
    flat = op.replace("_", "").lower() + "options"
    return next((t for t in tables if t.lower() == flat), None)


def attributes(table: str | None, tables: dict[str, Any], enums: dict[str, Any], op: str) -> list[dict[str, Any]]:
    """Fields of an option table as attributes."""
    out = []
    for _, name, kind, default in tables.get(table, []) if table else []:
        entry: dict[str, Any] = {
            "name": name,
            "type": _DIM.get(kind, "int"),
            "required": bool(_REQUIRED.search(name)),
            "default": default,
            "enum": None,
        }
        enum = enum_of(name, table or "", op)
        if enum:
            entry["type"] = "dtype" if enum == "TensorType" else "str"
            if enum != "TensorType":
                entry["enum"] = list(enums[enum])
                entry["default"] = next(k for k, v in enums[enum].items() if v == default)
            else:
                entry["default"] = "f32"
            entry["of"] = enum
        if name.endswith("subgraph_index"):
            entry["type"] = "graph"
        if name.endswith("subgraph_indices"):
            entry["type"] = "graphs"
        out.append(entry)
    return out


def enum_of(field: str, table: str, op: str) -> str | None:
    """Which enum a numeric option is of; the generated Python does not say."""
    if field == "fused_activation_function":
        return "ActivationFunctionType"
    if field == "padding" and table != "StablehloPadOptions" and not table.startswith("Stablehlo"):
        return "Padding"
    if field in (
        "in_data_type",
        "out_data_type",
        "output_type",
        "out_type",
        "idx_out_type",
        "quantized_bias_type",
        "key_dtype",
        "value_dtype",
    ):
        return "TensorType"
    return {
        "mode": "MirrorPadMode",
        "weights_format": "FullyConnectedOptionsWeightsFormat",
        "kernel_type": "LSTMKernelType",
        "combiner": "CombinerType",
        "reduce_function": "ReduceWindowFunction",
        "algorithm": "RngAlgorithm",
    }.get(field) or ("LSHProjectionType" if table == "LSHProjectionOptions" and field == "type" else None)


def write_tables(tables: dict[str, Any], enums: dict[str, Any]) -> None:
    """The format's tables and enums, for the reader and the writer of files."""
    unions = {
        f: {v: k for k, v in enums[u].items() if v}
        for f, u in (
            ("builtinOptions", "BuiltinOptions"),
            ("builtinOptions2", "BuiltinOptions2"),
            ("details", "QuantizationDetails"),
            ("arraySegments", "SparseIndexVector"),
            ("arrayIndices", "SparseIndexVector"),
        )
    }
    lines = ",\n".join(f'  "{t}": {json.dumps(f)}' for t, f in tables.items())
    head = {"source": f"ai-edge-litert {package_version('ai-edge-litert')} schema", "unions": unions, "enums": enums}
    (HERE / "tables.json").write_text(json.dumps(head)[:-1] + ', "tables": {\n' + lines + "\n}}\n")


def write_schema(tables: dict[str, Any], enums: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of the schema, and the operators that have none, since no kernel has them."""
    slots = read_slots((HERE / "slots.txt").read_text())
    versions = kernel_versions(enums["BuiltinOperator"])
    rows = []
    builtins = enums["BuiltinOperator"]
    for op, (builtin, since) in {**{op: (op, 1) for op in builtins}, **SHARED}.items():
        if op in ("CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES") or not versions[builtin]["all"]:
            continue
        facts, table, code = slots[op], option_table(op, tables), builtins[builtin]
        for v in (v for v in versions[builtin]["all"] if v >= since):
            types, quantised, later = effective_types(facts, v)
            for form, domain, letters in forms(facts, types, quantised, later):
                rows.append(
                    {
                        "op": op,
                        "domain": domain,
                        "version": f"{v}{form}" if form else v,
                        "first_opset": 1,
                        "last_opset": 1,
                        "deprecated": False,
                        "inputs": facts["inputs"],
                        "outputs": facts["outputs"],
                        "attrs": attributes(table, tables, enums, op),
                        "types": letters,
                        "later": later,
                        "code": code,
                        "options": table,
                        "states": [x["name"] for x in facts["inputs"] if x["state"]],
                        "union": 2 if table in enums["BuiltinOptions2"] else 1,
                        "reference": v in versions[builtin]["reference"],
                    }
                )
    rows += [
        custom_row(op, slots[op], domain, letters) for op in custom.OPS for domain, letters in custom_forms(slots[op])
    ]
    no_kernel = [op for op in enums["BuiltinOperator"] if not versions[op]["all"]]
    head = {
        "dialect": "tflite",
        "source": f"ai-edge-litert {package_version('ai-edge-litert')}",
        "no_kernel": no_kernel,
    }
    body = ",\n".join(json.dumps(r, separators=(",", ":")) for r in rows)
    (HERE / "schema.json").write_text(json.dumps(head)[:-1] + ', "ops": [\n' + body + "\n]}\n")
    return rows, no_kernel


def custom_forms(facts: dict[str, Any]) -> list[tuple[str, Any]]:
    """(domain, types per letter) of a custom operator, which has one version."""
    plain, quant, later = effective_types(facts, 1)
    return [(domain, letters) for _, domain, letters in forms(facts, plain, quant, later)]


def custom_row(op: str, facts: dict[str, Any], domain: str, letters: dict[str, Any]) -> dict[str, Any]:
    """A custom operator: its code is that of all of them, ``custom`` its name in the file."""
    return {
        "op": op,
        "domain": domain,
        "version": "1q" if domain else 1,
        "first_opset": 1,
        "last_opset": 1,
        "deprecated": False,
        "inputs": facts["inputs"],
        "outputs": facts["outputs"],
        "attrs": list(custom.OPS[op].attributes),
        "types": letters,
        "later": [],
        "code": CUSTOM,
        "custom": op,
        "options": None,
        "states": [],
        "union": 1,
        "reference": op == "NumericVerify",
    }


def main() -> None:
    """Regenerate both files."""
    import ai_edge_litert.schema_py_generated as module

    tables, enums = read_tables(Path(module.__file__ or "").read_text()), read_enums(module)
    write_tables(tables, enums)
    rows, no_kernel = write_schema(tables, enums)
    ops = {r["op"] for r in rows}
    n = len({(r["op"], int(str(r["version"]).rstrip("qh"))) for r in rows})
    print(f"{len(tables)} tables, {len(ops)} operators, {n} versions in {len(rows)} forms")
    print(f"{len(no_kernel)} operators without kernel")


if __name__ == "__main__":
    main()
