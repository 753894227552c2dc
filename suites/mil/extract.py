"""Write ``schema.json`` from the op registry of the installed coremltools, read beside ``catalogue.json``.

    python -m suites.mil.extract                  rewrite the file
    python -m suites.mil.extract --check          fail if the file differs from what would be written
    python -m suites.mil.extract --differences    list where registry and documentation disagree

``catalogue.json`` is a digest of the published MIL pages, the documentation.  Each fact comes from one of the two:

* registry: which classes exist, the opsets in which a class is effective, names, order, required, const, type domains
  and defaults
* documentation: whether a constant is a scalar or a vector, the legal strings of an enum, and the types of outputs,
  which the registry infers in code

Classes registered for iOS13 are those that the documentation calls iOS15.  A constant of a fixed type is an attribute.
A constant that shares a type letter with a tensor is an attribute if it is a scalar (its letter goes to ``dtype``),
otherwise a constant input.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OPSETS = ("ios15", "ios16", "ios17", "ios18")
_NAMES = {"fp16": "f16", "fp32": "f32", "complex64": "c64", "string": "str", "str": "str", "bool": "bool"}

# Scalars or vectors of classes that the documentation does not hold, and of inputs that it forgets.
FORMS = {
    "conv_quantized": {
        "quant_scale": "tensor",
        "quant_bias": "tensor",
        "weight": "tensor",
        "strides": "vector",
        "pad": "vector",
        "dilations": "vector",
    },
    "complex_fftn": {"shapes": "vector", "dims": "vector"},
    "complex_ifftn": {"shapes": "vector", "dims": "vector"},
    "complex_rfftn": {"shapes": "vector", "dims": "vector"},
    "complex_irfftn": {"shapes": "vector", "dims": "vector"},
    "complex_stft": {"window": "tensor"},
    "torch_tensor_assign": dict.fromkeys(
        ("begin", "end", "stride", "begin_mask", "end_mask", "squeeze_mask"), "vector"
    ),
    "torch_upsample_nearest_neighbor": {},
    "torch_upsample_bilinear": {},
    "tf_lstm_block": {},
    "tf_lstm_block_cell": {},
    "tf_make_list": {"elem_shape": "vector"},
}
ENUMS = {
    "conv_quantized.quantization_type": ["linear", "lut"],
    "conv_quantized.pad_type": ["valid", "custom", "same", "same_lower"],
    "complex_*.norm": ["forward", "backward", "ortho"],
    "gru.recurrent_activation": ["hard_sigmoid", "linear", "relu", "scaled_tanh", "sigmoid", "tanh"],
    "gru.activation": ["hard_sigmoid", "linear", "relu", "scaled_tanh", "sigmoid", "tanh"],
    "constexpr_cast.output_dtype": ["fp32"],
    "affine.padding_mode": ["constant"],
}
# Output types that the documentation leaves to prose: "letter:domain" invents a letter for a type chosen by an
# attribute.
OUTPUTS = {
    "cast": ["O"],
    "constexpr_cast": ["f32"],
    "quantize": ["DstT"],
    "reduce_argmax@ios17": ["O"],
    "reduce_argmin@ios17": ["O"],
    "topk@ios17": ["T", "O"],
    "matmul@ios17": ["V"],
    "linear@ios17": ["V"],
    "split": ["T..."],
    "concat": ["T"],
    "stack": ["T"],
    "einsum": ["T"],
    "identity": ["T"],
    "cond": ["T..."],
    "while_loop": ["T..."],
    "const": ["T"],
    "shape": ["i32"],
    "random_categorical": ["T"],
    "make_list": ["list(E)"],
    "list_write": ["list(T)"],
    "list_scatter": ["list(T)"],
    "list_read": ["E"],
    "list_gather": ["E"],
    "list_length": ["i32"],
    "classify": ["ClassT", "dict(ClassT,f32)"],
    "read_state": ["S"],
    "coreml_update_state": ["T"],
    "conv_quantized": ["T"],
    "_const_symbolic": ["i32"],
    "constexpr_lut_to_sparse": ["u1", "T"],
    "constexpr_sparse_blockwise_shift_scale": ["u1", "DstT"],
    "complex": ["c64"],
    "complex_real": ["f32"],
    "complex_imag": ["f32"],
    "complex_abs": ["f32"],
    "complex_shape": ["i32"],
    "complex_fft": ["c64"],
    "complex_fftn": ["c64"],
    "complex_ifft": ["c64"],
    "complex_ifftn": ["c64"],
    "complex_rfft": ["c64"],
    "complex_rfftn": ["c64"],
    "complex_irfft": ["f32"],
    "complex_irfftn": ["f32"],
    "complex_stft": ["c64"],
    "torch_tensor_assign": ["T"],
    "torch_upsample_nearest_neighbor": ["T"],
    "torch_upsample_bilinear": ["T"],
    "tf_lstm_block": ["T"] * 7,
    "tf_lstm_block_cell": ["T"] * 7,
    "tf_make_list": ["list(E)"],
}
_I8_16 = ["i8", "u8", "i16", "u16", "i32"]
EXTRA_TYPES = {
    "cast@ios15": {"O": ["i32", "f16", "f32", "bool"]},
    "cast@ios17": {"O": [*_I8_16, "f16", "f32", "bool"]},
    "reduce_argmax@ios17": {"O": ["u16", "i32"]},
    "reduce_argmin@ios17": {"O": ["u16", "i32"]},
    "topk@ios17": {"O": ["u16", "i32"]},
    "matmul@ios17": {"V": ["f16", "f32", "i32"]},
    "linear@ios17": {"V": ["f16", "f32", "i32"]},
    "make_list": {"E": ["bool", "f16", "f32", "i32"]},
    "tf_make_list": {"E": ["bool", "f16", "f32", "i32"]},
    "concat": {"T": ["f16", "f32", "i32", "bool"]},
    "stack": {"T": ["f16", "f32", "i32", "bool"]},
    "einsum": {"T": ["f16", "f32"]},
    "identity": {"T": ["f16", "f32", "i32", "bool"]},
    "cond": {"T": ["f16", "f32", "i32", "bool"]},
    "while_loop": {"T": ["f16", "f32", "i32", "bool"]},
    "list_read": {"E": ["bool", "f16", "f32", "i32"]},
    "list_gather": {"E": ["bool", "f16", "f32", "i32"]},
    "list_length": {"E": ["bool", "f16", "f32", "i32"]},
    "classify": {"ClassT": ["str", "i64"]},
    "read_state": {"S": ["f16", "f32", "i8", "i16", "i32", "u8", "u16", "bool"]},
    "const": {"T": ["f16", "f32", *_I8_16, "bool", "str"]},
    "reshape_like@ios16": {"R": ["f16", "f32", "i32", "bool"]},
    "reshape_like@ios17": {"R": ["f16", "f32", *_I8_16, "bool"]},
}
DTYPE_ATTRS = {
    ("cast", "dtype"),
    ("constexpr_cast", "output_dtype"),
    ("quantize", "output_dtype"),
    ("reduce_argmax", "output_dtype"),
    ("reduce_argmin", "output_dtype"),
    ("topk", "output_indices_dtype"),
    ("make_list", "dtype"),
    ("tf_make_list", "dtype"),
}
# TupleInputType tells nothing of what is inside: tensors of one type, tensors of any type, or constants.
TUPLES = {
    "values": "T",
    "ref_tensors": "R",
    "loop_vars": "T",
    "begins": "ints",
    "ends": "ints",
    "end_masks": "bools",
    "elem_shape": "ints",
}
FRONTENDS = ("torch.dialect_ops",)  # registered on import; tensorflow's needs tensorflow itself


def ours(name: str) -> str:
    """Our dtype name for a registry or documentation one: fp16 -> f16, uint8 -> u8."""
    if name in _NAMES:
        return _NAMES[name]
    m = re.fullmatch(r"(u?)int(\d+)", name)
    return ("u" if m[1] else "i") + m[2] if m else name


def _defaults(cls: Any) -> dict[str, Any]:
    """Defaults of a class: literals as they are, ``[v] * n`` as {"fill": v}, anything else as {"expr": source}."""
    out: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        fn = base.__dict__.get("default_inputs")
        if fn is None:
            continue
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(fn)))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "DefaultInputs":
                out.update({k.arg: _literal(k.value) for k in node.keywords if k.arg is not None})
    return out


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        src = ast.unparse(node)
        if m := re.fullmatch(r"nptype_from_builtin\(self\.x\.dtype\)\((.+)\)", src):
            return float(m[1])
        if m := re.fullmatch(r"\[(\d+)\] \* .*", src):
            return {"fill": int(m[1])}
        return {"expr": src}


def _registry() -> list[tuple[str, str, str, str, str, type]]:
    """(op, domain, version, first, last, class) of every class registered by coremltools and its torch front end."""
    import importlib

    import coremltools  # noqa: F401
    from coremltools.converters.mil._deployment_compatibility import AvailableTarget
    from coremltools.converters.mil.mil.ops.registry import SSAOpRegistry as reg

    for name in FRONTENDS:
        importlib.import_module("coremltools.converters.mil.frontend." + name)
    rows = []
    for op, variants in reg.core_ops.items():
        for cls in dict.fromkeys(variants.values()):
            active = [o for o in OPSETS if variants.get(AvailableTarget[o.replace("ios", "iOS")]) is cls]
            rows.append((op, "", active[0], active[0], active[-1], cls))
    for op, cls in reg.dialect_ops.items():
        first = "ios18" if cls._dialect_namespace == "coreml" else "ios15"
        rows.append((op, cls._dialect_namespace, first, first, "ios18", cls))
    return sorted(rows, key=lambda r: (r[1], r[0], r[2]))


def _row(op: str, domain: str, version: str, first: str, last: str, cls: Any, doc: dict[str, Any]) -> dict[str, Any]:
    types = {k: _names(v) for k, v in getattr(cls, "type_domains", {}).items()}
    for key in (op, f"{op}@{version}"):
        types.update(EXTRA_TYPES.get(key, {}))
    inputs, attrs = _taken(op, domain, cls, doc, types)
    outs = OUTPUTS.get(f"{op}@{version}") or OUTPUTS.get(op) or doc["outputs"]
    outputs = [
        {
            "name": f"out{i}" if len(outs) > 1 else "out",
            "type": t.removesuffix("..."),
            "optional": False,
            "variadic": t.endswith("..."),
        }
        for i, t in enumerate(outs)
    ]
    family = doc.get("family") or cls.__module__.rsplit(".", 1)[-1]
    typed = {a["name"]: a.pop("dtype") for a in attrs if "dtype" in a}
    computed = {a["name"]: a["default"] for a in attrs if isinstance(a["default"], dict)}
    for a in attrs:
        a["default"] = None if a["name"] in computed else a["default"]
    return {
        "op": op,
        "domain": domain,
        "version": version,
        "first_opset": first,
        "last_opset": last,
        "deprecated": False,
        "family": family,
        "inputs": inputs,
        "outputs": outputs,
        "attrs": attrs,
        "types": types,
        "attr_types": typed,
        "computed_defaults": computed,
    }


def _names(types: Any) -> list[str]:
    from coremltools.converters.mil.mil.types.type_mapping import builtin_to_string

    return [ours(builtin_to_string(t)) for t in types]


def _taken(
    op: str, domain: str, cls: Any, doc: dict[str, Any], types: dict[str, list[str]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What a class declares that it takes: inputs and attributes."""
    inputs: list[dict[str, Any]] = []
    attrs: list[dict[str, Any]] = []

    def slot(kind: str, variadic: bool = False, const: bool = False) -> None:
        inputs.append({"name": name, "type": kind, "optional": not need, "variadic": variadic, "const": const})

    def attr(kind: str) -> None:
        attrs.append({"name": name, "type": kind, "required": need, "default": None, "enum": None})

    defaults = _defaults(cls)
    for name, spec in cls.input_spec.input_types.items():
        kind, facts = type(spec).__name__, doc.get("inputs", {}).get(name, {})
        if kind == "InternalInputType" and name == "_existing_blocks":
            continue
        need = not spec.optional
        if kind == "PyFunctionInputType":
            attr("graph")
        elif kind == "InternalInputType":
            attr("tensor")
        elif kind == "TupleInputType" and TUPLES[name] in ("ints", "bools"):
            attr(TUPLES[name])
        elif kind == "TupleInputType":
            slot(TUPLES[name], variadic=True)
        elif kind == "ListInputType" and op == "classify":
            attr("strs")
        elif kind in ("ListInputType", "StateInputType", "ListOrTensorOrDictInputType"):
            letter = "T" if "T" in types else next((k for k in ("E", "S") if k in types), "T")
            slot({"L": f"list({letter})", "S": f"state({letter})"}[kind[0]] if kind[4:6] != "Or" else "T")
        else:
            fixed = spec.type_domain_id is None
            letter = _names(spec.type_domain)[0] if fixed else spec.type_domain_id
            form = FORMS.get(op, {}).get(name, facts.get("form", "scalar" if spec.const else "tensor"))
            if spec.const and (form == "scalar" or (form == "vector" and fixed)):
                enum = facts.get("allowed") or ENUMS.get(f"{op}.{name}") or ENUMS.get(f"{domain}_*.{name}")
                allowed = types.get(letter, [letter])
                attrs.append(_attr(op, name, form, letter, allowed, fixed, need, defaults.get(name), enum))
            else:
                slot(letter, const=spec.const)
    return inputs, attrs


def _attr(
    op: str, name: str, form: str, letter: str, domain: list[str], fixed: bool, need: bool, default: Any, enum: Any
) -> dict[str, Any]:
    base = domain[0]
    kind = {"str": "str", "bool": "bool"}.get(base, "float" if any(d[0] == "f" for d in domain) else "int")
    if (op, name) in DTYPE_ATTRS:
        kind, enum = "dtype", [ours(e) for e in enum] if enum else None
        default = ours(default) if default else None
    if form == "vector":
        kind += "s"
    return {
        "name": name,
        "type": kind,
        "required": need,
        "default": default,
        "enum": enum,
        "dtype": letter if not fixed else base,
    }


def schema() -> dict[str, Any]:
    """The whole table, ops sorted by domain, name and version."""
    import coremltools

    docs = {(d["op"], d["version"]): d for d in json.loads((HERE / "catalogue.json").read_text())}
    ops = []
    for op, domain, version, first, last, cls in _registry():
        doc = docs.get((op, version)) or docs.get((op, "ios15")) or {"outputs": ["T"]}
        if op not in {d for d, _ in docs} and op not in FORMS and op not in OUTPUTS:
            raise SystemExit(f"{domain or 'core'} op {op}: neither documented nor described here")
        ops.append(_row(op, domain, version, first, last, cls, doc))
    return {"dialect": "mil", "source": f"coremltools {coremltools.__version__}", "ops": ops}


def _notation(d: dict[str, Any]) -> bool:
    """The same default in two notations: None in the code for the zeros, ones or "all" of the pages."""
    doc, code = d["documentation"], d["registry"]
    if d["what"] != "default":
        return False
    return (code is None and (isinstance(doc, dict) or not doc)) or (doc is None and isinstance(code, dict))


def differences() -> list[dict[str, Any]]:
    """Where the registry and the documentation disagree about a signature: op, version, input, what, both sides."""
    from coremltools.converters.mil.mil.types.type_mapping import builtin_to_string

    rows = {(op, v): cls for op, _, v, _, _, cls in _registry()}
    out = []
    for doc in json.loads((HERE / "catalogue.json").read_text()):
        cls: Any = rows[doc["op"], doc["version"]]
        spec, defaults = cls.input_spec.input_types, _defaults(cls)

        def add(name: str, what: str, ours_: Any, theirs: Any, doc: dict[str, Any] = doc) -> None:
            out.append(
                {
                    "op": doc["op"],
                    "version": doc["version"],
                    "input": name,
                    "what": what,
                    "documentation": ours_,
                    "registry": theirs,
                }
            )

        for name, said in doc["inputs"].items():
            if name not in spec:
                add(name, "exists", True, False)
                continue
            t = spec[name]
            internal = type(t).__name__ in ("PyFunctionInputType", "InternalInputType")
            if said["const"] != t.const and not internal:
                add(name, "const", said["const"], t.const)
            if said["required"] == t.optional:
                add(name, "required", said["required"], not t.optional)
            if (said.get("default") is None) != (defaults.get(name) is None):
                add(name, "default", said.get("default"), defaults.get(name))
            elif isinstance(said.get("default"), str) and said["default"] != defaults.get(name):
                add(name, "default", said["default"], defaults.get(name))
        for name in spec:
            if name not in doc["inputs"] and name != "_existing_blocks":
                add(name, "exists", False, True)
        for letter, ts in getattr(cls, "type_domains", {}).items():
            have = sorted(ours(builtin_to_string(t)) for t in ts)
            if sorted(doc["types"].get(letter, [])) != have:
                add(letter, "types", doc["types"].get(letter), have)
    return [d for d in out if not _notation(d)]


def dumps(table: dict[str, Any]) -> str:
    """One op a line: short diffs, greppable."""
    ops = ",\n".join(" " + json.dumps(o) for o in table["ops"])
    return f'{{"dialect": "{table["dialect"]}", "source": "{table["source"]}", "ops": [\n{ops}\n]}}\n'


def main(argv: list[str]) -> int:
    if "--differences" in argv:
        for d in differences():
            print(json.dumps(d))
        return 0
    text, path = dumps(schema()), HERE / "schema.json"
    if "--check" in argv:
        same = path.exists() and path.read_text() == text
        print("schema.json is up to date" if same else "schema.json differs from the installed coremltools")
        return 0 if same else 1
    path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
