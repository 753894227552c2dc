"""The text of a ``repro.py``: one model, its inputs and what was expected, with NumPy and the backend alone."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from harness.backends import registry
from harness.cases.result import Result
from harness.core.errors import UsageError

BEFORE = "inputs-{}.npz"  # of the runs before the one that counts


def script(
    result: Result,
    version: str,
    model: str,
    outputs: list[str],
    earlier: Sequence[tuple[str, list[str], list[str]]] = (),
    absent: Sequence[str] = (),
    processor: str = "",
) -> str:
    """The text of repro.py: fixed code, and all values as literals in one block of assignments.

    earlier: models that the process serves first, with their inputs and outputs.  absent: outputs that are to be an
    empty optional.  processor: on which it was seen."""
    inst, backend, j = result.case.inst, result.backend, result.judgement
    values: dict[str, Any] = {
        "WHAT": f"{result.case.version.key} at opset {inst.opset} on {backend} {version}: {result.verdict.value}",
        "BREAKS": inst.rule,  # the rule that the instance breaks
        "RULE": j.formula if j is not None else "",
        "SEEN_ON": processor,
        "ENVIRONMENT": _environment(backend),
        "MODEL": model,
        "OUTPUTS": outputs,
        "INPUTS": [BEFORE.format(r) for r in range(result.draw)] + ["inputs.npz"],
        "EARLIER": [list(e) for e in earlier],
        "KIND": j.kind if j is not None else "",
        "ABSENT": list(absent),
    }
    prefix = next((p for p in _RUNNERS if backend.startswith(p)), "") if backend in registry.BUILTIN else ""
    if not prefix:
        values |= {"BACKEND": backend, "FOLDER": os.getcwd()}
    elif prefix == "onnxruntime":
        level = {"all": "ORT_ENABLE_ALL", "basic": "ORT_ENABLE_BASIC"}
        values["LEVEL"] = level.get(backend.rpartition("-")[2], "ORT_DISABLE_ALL")
    elif prefix == "litert":
        resolver = {
            "litert-ref": "BUILTIN_REF",
            "litert-cross-dialect": "BUILTIN_REF",
            "litert-opt": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
        }
        values["RESOLVER"] = resolver.get(backend, "BUILTIN")
    return _HEAD + assignments(values) + _LOAD + _RUNNERS.get(prefix, _PLUGIN) + _TAIL


def assignments(values: Mapping[str, Any]) -> str:
    """Lines of Python that assign literals to names, in ASCII.  Raises TypeError for what JSON has no form for."""
    return "".join(f"{name} = {json.loads(json.dumps(v))!a}\n" for name, v in values.items())


def _environment(backend: str) -> dict[str, str]:
    """Variables that the backend's processes are started with."""
    try:
        return registry.find(backend).environment
    except UsageError:  # a class of a test, say
        return {}


_HEAD = '''"""Runs one model on one backend and compares the result with what was expected.  WHAT says which.

Needs NumPy and the backend only.  Prints expected and actual, exits 1 while the difference stands, 2 where the backend
cannot be had.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np

# BREAKS: the rule that the instance breaks, None for a valid one.  RULE: what was compared.  ENVIRONMENT: variables of
# the process that showed it; those that are set already stay.  INPUTS: one loaded model is run with them in this order;
# the last run is the one that counts.  EARLIER: models that the process serves first, inputs of their runs, outputs.
# KIND: what was wrong.  ABSENT: outputs that are to be an empty optional.
'''

_LOAD = '''
if not ENVIRONMENT.keys() <= os.environ.keys():
    os.execve(sys.executable, [sys.executable, *sys.argv], {**ENVIRONMENT, **os.environ})
HERE = Path(__file__).resolve().parent
MODEL = HERE / MODEL
EXTRA = {"bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2",
         "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn",
         "f6e2m3": "float6_e2m3fn", "f6e3m2": "float6_e3m2fn", "i4": "int4",
         "u4": "uint4", "i2": "int2", "u2": "uint2"}


def say(text):
    """Print a line; what has no glyph is shown as its escape."""
    print("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text))


def load(name):
    """Arrays of an .npz; types that NumPy lacks come back through ml_dtypes, lists from name[i]."""
    out = {}
    with np.load(HERE / name) as data:
        for key in data.files:
            a, (plain, _, tag) = data[key], key.partition("|")
            if tag == "map":
                a = dict(json.loads(str(a)))
            elif tag == "str":
                a = a.astype(object)
            elif tag:
                import ml_dtypes

                a = a.view(getattr(ml_dtypes, EXTRA[tag]))
            if plain.endswith("]") and "[" in plain:
                out.setdefault(plain[: plain.rindex("[")], []).append(a)
            else:
                out[plain] = a
    return out


'''

_RUNNERS = {
    "onnxruntime": """def run(runs):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, LEVEL)
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(MODEL), options, providers=["CPUExecutionProvider"])
    return [one(session, feeds) for feeds in runs][-1]


# ONNX Runtime's name of a type that it gives no arrays of: that of ml_dtypes, ONNX's number, bits
NARROW = {
    "tensor(bfloat16)": ("bfloat16", 16, 16), "tensor(float8e4m3fn)": ("float8_e4m3fn", 17, 8),
    "tensor(float8e4m3fnuz)": ("float8_e4m3fnuz", 18, 8), "tensor(float8e5m2)": ("float8_e5m2", 19, 8),
    "tensor(float8e5m2fnuz)": ("float8_e5m2fnuz", 20, 8), "tensor(uint4)": ("uint4", 21, 4),
    "tensor(int4)": ("int4", 22, 4), "tensor(float4e2m1)": ("float4_e2m1fn", 23, 4),
    "tensor(float8e8m0)": ("float8_e8m0fnu", 24, 8), "tensor(uint2)": ("uint2", 25, 2), "tensor(int2)": ("int2", 26, 2),
}


def one(session, feeds):
    kinds = {x.name: x.type for x in [*session.get_inputs(), *session.get_outputs()]}
    if not any(kind in NARROW for kind in kinds.values()):
        return session.run(OUTPUTS, feeds)
    import onnxruntime as ort

    values, kept = {}, []
    for name, a in feeds.items():
        if kinds.get(name) not in NARROW:
            values[name] = ort.OrtValue.ortvalue_from_numpy(a)
            continue
        _, number, bits = NARROW[kinds[name]]
        raw = np.array(a, order="C").view(f"u{a.dtype.itemsize}")
        if bits < 8:  # the binding takes the shape from the array, but reads the elements packed
            numbers, raw = raw.ravel(), np.zeros(a.shape, np.uint8)
            for i, v in enumerate(numbers):
                raw.reshape(-1)[i * bits // 8] |= (int(v) & ((1 << bits) - 1)) << (i * bits % 8)
        kept.append(raw)  # whose memory the value borrows
        values[name] = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, number)
    return [as_array(v) for v in session.run_with_ort_values(OUTPUTS, values)]


def as_array(value):
    if value.data_type() not in NARROW:
        return value.numpy()
    import ctypes

    import ml_dtypes

    name, _, bits = NARROW[value.data_type()]
    dtype, shape = np.dtype(getattr(ml_dtypes, name)), value.shape()
    count = int(np.prod(shape))
    data = ctypes.string_at(value.data_ptr(), -(-count * bits // 8)) if count else b""
    if bits < 8:
        data = bytes(data[i * bits // 8] >> (i * bits % 8) & ((1 << bits) - 1) for i in range(count))
    return np.frombuffer(data, dtype).reshape(shape)


""",
    "openvino": '''KEPT = []  # compiled models, which its processes never release


def run(runs):
    import openvino as ov

    core = ov.Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY", "INFERENCE_NUM_THREADS": 1,
                "NUM_STREAMS": 1, "CPU_DENORMALS_OPTIMIZATION": False}
    # from memory, as it was asked: an initialiser without elements is an input where the same model is a file
    source = (MODEL.read_bytes(), b"") if MODEL.suffix == ".onnx" else (str(MODEL),)
    compiled = core.compile_model(core.read_model(*source), "CPU", settings)
    KEPT.append(compiled)
    request = compiled.create_infer_request()
    for feeds in runs:
        for port in compiled.inputs:
            name = next((n for n in port.get_names() if n in feeds), None)
            if name is None:
                raise RuntimeError(f"an input that the model does not name: {port.get_names()}")
            request.set_tensor(port, tensor(feeds[name], port.get_element_type()))
        request.infer()
    return [array(request.get_tensor(next(p for p in compiled.outputs if n in p.get_names()))) for n in OUTPUTS]


def tensor(a, kind):
    import openvino as ov

    t = ov.Tensor(kind, list(a.shape))
    if not a.size:
        return t
    if a.dtype == object:
        t.bytes_data = np.array([str(x).encode() for x in a.ravel()], "S").reshape(a.shape)
    elif kind.bitwidth < 8 and kind.get_type_name() != "boolean":
        put(t, packed(a.view(np.uint8).ravel(), kind.bitwidth))
    else:
        put(t, np.ascontiguousarray(a).reshape(-1).view(np.uint8))
    return t


def put(t, data):
    t.data.reshape(-1).view(np.uint8)[:] = data


def packed(values, bits):
    """Several values a byte, the first in the low bits."""
    out = np.zeros(-(-values.size * bits // 8), np.uint8)
    for i, v in enumerate(values):
        out[i * bits // 8] |= (int(v) & ((1 << bits) - 1)) << (i * bits % 8)
    return out


def array(t):
    kind = t.get_element_type()
    shape = tuple(t.get_shape())
    if kind.get_type_name() == "string":
        return np.array([x.decode("utf-8", "replace") for x in np.ravel(t.bytes_data)], object).reshape(shape)
    name = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e8m0": "float8_e8m0fnu",
            "f4e2m1": "float4_e2m1fn", "i4": "int4", "u4": "uint4", "u2": "uint2"}.get(kind.get_type_name())
    if name is None:
        return np.array(t.data).reshape(shape)
    import ml_dtypes

    data = t.data.reshape(-1).view(np.uint8)
    bits = kind.bitwidth
    if bits < 8:
        data = np.array([data[i * bits // 8] >> (i * bits % 8) & ((1 << bits) - 1) for i in range(np.prod(shape))],
                        np.uint8)
    return data.view(getattr(ml_dtypes, name)).reshape(shape)


''',
    "onnx-reference": """def run(runs):
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = ReferenceEvaluator(onnx.load(str(MODEL)))
    return [model.run(OUTPUTS, feeds) for feeds in runs][-1]


""",
    "litert": """def run(runs):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    resolver = getattr(OpResolverType, RESOLVER)
    it = Interpreter(str(MODEL), experimental_op_resolver_type=resolver, num_threads=1)
    it.allocate_tensors()
    for feeds in runs:
        given = [d for d in it.get_input_details() if d["name"] in feeds]
        for d in given:
            if tuple(d["shape"]) != feeds[d["name"]].shape:
                it.resize_tensor_input(d["index"], feeds[d["name"]].shape)
        it.reset_all_variables()
        it.allocate_tensors()
        for d in given:
            a = feeds[d["name"]]
            it.set_tensor(d["index"], a.astype(np.int8) if a.dtype.name in ("int4", "int2") else a)
        it.invoke()
    by_name = {d["name"]: d["index"] for d in it.get_output_details()}
    return [it.get_tensor(by_name[n]) for n in OUTPUTS]


""",
}

_PLUGIN = '''def run(runs):
    """Runs the backend through opconform's own adapter, since it has no script form of its own."""
    from harness.backends import BackendError, direct

    sys.path.append(FOLDER)  # where it was found
    try:
        return direct(BACKEND, MODEL, runs, OUTPUTS)
    except BackendError as error:
        raise ImportError(str(error)) from None


'''

_TAIL = '''def serve():
    """What the process must have done before."""
    global MODEL, OUTPUTS
    last = MODEL, OUTPUTS
    for model, inputs, outputs in EARLIER:
        MODEL, OUTPUTS = HERE / model, outputs
        run([load(name) for name in inputs])
    MODEL, OUTPUTS = last


def different(e, a, bound, wide=None):
    """Elements outside the bound around the result before it was rounded, by index."""
    if isinstance(e, list):
        return [] if isinstance(a, list) and len(a) == len(e) and not any(
            different(x, y, None) for x, y in zip(e, a)) else ["sequence"]
    a = np.asarray(a)
    if a.shape != e.shape:
        return [f"shape {a.shape}, expected {e.shape}"]
    if a.dtype != e.dtype:
        return [f"dtype {a.dtype}, expected {e.dtype}"]
    if e.dtype.kind in "OUS":
        bad = e.astype(str) != a.astype(str)
    elif e.dtype.kind in "fV" or bound is not None:
        x, y = e.astype(np.float64), a.astype(np.float64)
        with np.errstate(invalid="ignore"):
            near = np.abs((x if wide is None else wide) - y) <= (0.0 if bound is None else bound)
        bad = ~((x == y) | near | (np.isnan(x) & np.isnan(y)))
        if KIND == "zero_sign":
            bad |= (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))
        if KIND == "flush":  # of some of the subnormal results, not of all
            bad |= (x != 0) & (y == 0)
    else:
        bad = e != a
    return [tuple(int(k) for k in i) for i in np.argwhere(bad)]


def main():
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        serve()
        found = run([load(name) for name in INPUTS])
    except ImportError as error:
        say(f"cannot be asked here: {error}")
        return 2
    except Exception as error:
        say(f"refused: {type(error).__name__}: {error}")
        return 0 if BREAKS is not None else 1
    if BREAKS is not None:
        say(f"accepted although the model breaks the rule {BREAKS}")
        return 1
    expected, wide, bounds = load("expected.npz"), load("wide.npz"), load("bounds.npz")
    status = 0
    for name, a in zip(OUTPUTS, found):
        if name in ABSENT and a is not None:
            say(f"{name}: expected an empty optional, got {a!r}")
            status = 1
        if name not in expected:
            continue
        e = expected[name]
        where = different(e, a, bounds.get(name), wide.get(name))
        say(f"{name}: {len(where)} different")
        for i in where[:10]:
            if isinstance(i, tuple):
                say(f"  {list(i)}: expected {e[i]}, got {np.asarray(a)[i]}")
            else:
                say(f"  {i}")
        status = 1 if where else status
    return status


sys.exit(main())
'''
