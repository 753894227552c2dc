"""The folder of a failure: instance, model, data, and a script that needs only the backend and NumPy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.core.dtypes import of
from harness.core.outcome import Model, TypeOnly
from harness.run.case import Case
from harness.run.pack import build, feed
from harness.run.results import Judged
from harness.run.runs import at_run

COMPANY = "company.json"  # the instances of a model in which one goes wrong that is right alone, and of models before

BEFORE = "inputs-{}.npz"  # of the runs before the one that goes wrong


def write_folder(root: Path, judged: Judged, version: str) -> Path:
    """Write ``<root>/<op>-<id>-<backend>/`` and return it."""
    case = judged.case
    inst, v = case.inst, case.version
    asked = judged.asked or case  # what the backend was really given
    together = judged.company or (asked,)
    at = next(k for k, c in enumerate(together) if c is asked)
    folder = root / f"{inst.dialect}-{v.op}-{v.version}-{inst.id}-{judged.backend}".replace("/", "_")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "instance.json").write_text(json.dumps(inst.to_json(), indent=1) + "\n")
    (folder / "notation.txt").write_text(notation(judged) + "\n")
    try:
        model = build(asked.version.dialect, together)
    except Exception as error:
        (folder / "model.txt").write_text(f"the model could not be built: {type(error).__name__}: {error}\n")
        return folder
    name = "model" + asked.version.dialect.extension
    if asked is not case:
        (folder / "asked.json").write_text(json.dumps(asked.inst.to_json(), indent=1) + "\n")
    (folder / name).write_bytes(model.data)
    for r in range(judged.draw + 1):
        save(folder / ("inputs.npz" if r == judged.draw else BEFORE.format(r)), _given(together, model, r))
    earlier = [_earlier(folder, k, cases) for k, cases in enumerate(judged.before)]
    if judged.company or judged.before:
        listed: dict[str, Any] = {"at": at, "instances": [c.inst.to_json() for c in together]}
        if judged.before:
            listed["before"] = [[c.inst.to_json() for c in cases] for cases in judged.before]
        (folder / COMPANY).write_text(json.dumps(listed, indent=1) + "\n")
    expected, bounds, actual = {}, {}, {}
    outs = model.outputs[at]
    if case.expected is not None:
        for n, e in zip(outs, case.expected[judged.draw if judged.draw < len(case.expected) else 0]):
            expected[n] = e.value
            if isinstance(e.value, np.ndarray) and e.value.dtype.kind == "f":
                try:
                    bound = np.asarray(e.error.bound(e.context()), np.float64)
                    bounds[n] = np.broadcast_to(bound, e.value.shape)
                except Exception:  # an error class without numbers (sets, distributions)
                    continue
    for n, a in zip(outs, judged.outcome.outputs or ()):
        if isinstance(a, np.ndarray):
            actual[n] = a
    save(folder / "expected.npz", expected)
    save(folder / "bounds.npz", bounds)
    save(folder / "actual.npz", actual)
    (folder / "repro.py").write_text(script(judged, version, name, outs, earlier))
    return folder


def _earlier(folder: Path, k: int, cases: Sequence[Case]) -> tuple[str, list[str], list[str]]:
    """Write a model that the process served before, and its inputs; the names of the files, and its outputs."""
    dialect = cases[0].version.dialect
    model = build(dialect, cases)
    name, inputs = f"earlier-{k}{dialect.extension}", []
    (folder / name).write_bytes(model.data)
    for r in range(max(1, *(len(c.draws) for c in cases))):
        inputs.append(f"earlier-{k}-{r}.npz")
        save(folder / inputs[-1], _given(cases, model, r))
    return name, inputs, [n for group in model.outputs for n in group]


def _given(cases: Sequence[Case], model: Model, run: int) -> dict[str, Any]:
    """What a model of the cases is given in a run, by input."""
    out: dict[str, Any] = {}
    for c, names in zip(cases, model.inputs, strict=True):
        out.update(zip([n for n, _, _ in names], feed(c, names, run), strict=True))
    return out


def notation(judged: Judged) -> str:
    """The instance in its dialect's text, the runs after the first one, and the text of the dialect in which the
    backend was asked."""
    dialect, inst = judged.case.version.dialect, judged.case.inst
    text = dialect.notation(inst)
    for r in range(1, 1 + len(inst.reruns)):
        text += f"\nrun {r + 1} of the same loaded model:\n{dialect.notation(at_run(inst, r))}"
    if judged.asked is None:
        return text
    return f"{text}\nasked as\n{judged.asked.version.dialect.notation(judged.asked.inst)}"


def save(path: Path, arrays: dict[str, Any]) -> None:
    """An .npz; element types NumPy lacks are stored as unsigned integers under ``name|dtype``, strings as
    ``name|str``."""
    out: dict[str, Any] = {}
    for name, a in arrays.items():
        if isinstance(a, (list, tuple)):
            for i, x in enumerate(a):
                out.update(_storable(f"{name}[{i}]", x))
        elif a is not None and not isinstance(a, TypeOnly):
            out.update(_storable(name, a))
    np.savez(path, **out)


def _storable(name: str, a: Any) -> dict[str, Any]:
    a = np.asarray(a)
    d = of(a)
    if d.kind == "s":
        return {f"{name}|str": np.array([str(x) for x in a.ravel()], dtype=str).reshape(a.shape)}
    if a.dtype.kind in "fiubc":
        return {name: a}
    return {f"{name}|{d.name}": np.array(a, order="C").view(f"u{a.dtype.itemsize}")}


def script(judged: Judged, version: str, model: str, outputs: list[str],
           earlier: Sequence[tuple[str, list[str], list[str]]] = ()) -> str:  # fmt: skip
    """The text of repro.py.  earlier: models that the process serves first, with their inputs and outputs."""
    inst = judged.case.inst
    runner = next((text for prefix, text in _RUNNERS.items() if judged.backend.startswith(prefix)), None)
    if runner is None:
        runner = _PLUGIN.replace("@BACKEND@", judged.backend)
    level = "ORT_ENABLE_ALL" if judged.backend.endswith("-all") else (
        "ORT_ENABLE_BASIC" if judged.backend.endswith("-basic") else "ORT_DISABLE_ALL")  # fmt: skip
    resolver = {"litert-ref": "BUILTIN_REF", "litert-crossed": "BUILTIN_REF",
                "litert-opt": "BUILTIN_WITHOUT_DEFAULT_DELEGATES"}.get(judged.backend, "BUILTIN")  # fmt: skip
    what = f"{judged.case.version.key} at opset {inst.opset} on {judged.backend} {version}: {judged.verdict.value}"
    inputs = [BEFORE.format(r) for r in range(judged.draw)] + ["inputs.npz"]
    rule = f"  The instance breaks the rule {inst.rule}." if inst.rule else ""
    return (
        _HEAD.replace("@WHAT@", what).replace("@RULE@", rule).replace("@MODEL@", model)
        .replace("@OUTPUTS@", repr(outputs)).replace("@INPUTS@", repr(inputs))
        .replace("@FORMULA@", judged.judgement.formula if judged.judgement is not None else "")
        + runner.replace("@LEVEL@", level).replace("@RESOLVER@", resolver)
        + _TAIL.replace("@INVALID@", repr(inst.rule is not None))
        .replace("@SERVED@", _SERVED.replace("@EARLIER@", repr(list(earlier))) if earlier else "")
        .replace("@FIRST@", "    serve()\n" if earlier else "")
    )  # fmt: skip


_HEAD = '''"""@WHAT@.@RULE@

Needs NumPy and the backend only.  Prints expected and actual, exits 1 while the difference stands.
Rule: @FORMULA@
"""

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
MODEL = HERE / "@MODEL@"
OUTPUTS = @OUTPUTS@
INPUTS = @INPUTS@  # one loaded model is run with them in this order; the last run is the one that counts
EXTRA = {"bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2",
         "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn",
         "f6e2m3": "float6_e2m3fn", "f6e3m2": "float6_e3m2fn", "i4": "int4",
         "u4": "uint4", "i2": "int2", "u2": "uint2"}


def load(name):
    """Arrays of an .npz; types that NumPy lacks come back through ml_dtypes, lists from name[i]."""
    out = {}
    with np.load(HERE / name) as data:
        for key in data.files:
            a, (plain, _, tag) = data[key], key.partition("|")
            if tag == "str":
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
    "onnxruntime": '''def run(runs):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.@LEVEL@
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(MODEL), options, providers=["CPUExecutionProvider"])
    return [one(session, feeds) for feeds in runs][-1]


def one(session, feeds):
    import onnxruntime as ort

    numbers = {"bfloat16": 16, "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19, "float8_e5m2fnuz": 20,
               "uint4": 21, "int4": 22}
    values = {}
    for name, a in feeds.items():
        if isinstance(a, np.ndarray) and a.dtype.name in numbers:
            raw = a.view(f"u{a.dtype.itemsize}")
            values[name] = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, numbers[a.dtype.name])
        elif isinstance(a, np.ndarray):
            values[name] = ort.OrtValue.ortvalue_from_numpy(a)
        else:
            return session.run(OUTPUTS, feeds)
    found = session.run_with_ort_values(OUTPUTS, values)
    return [as_array(v) for v in found]


def as_array(value):
    """Also of types that onnxruntime does not turn into NumPy arrays."""
    try:
        return value.numpy()
    except Exception:
        import ctypes

        import ml_dtypes

        kind = value.data_type()
        name = {"tensor(bfloat16)": "bfloat16", "tensor(float8e4m3fn)": "float8_e4m3fn",
                "tensor(float8e5m2)": "float8_e5m2"}[kind]
        dtype = np.dtype(getattr(ml_dtypes, name))
        size = int(np.prod(value.shape())) * dtype.itemsize
        return np.frombuffer(ctypes.string_at(value.data_ptr(), size), dtype).reshape(value.shape())


''',
    "onnx-reference": '''def run(runs):
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = ReferenceEvaluator(onnx.load(str(MODEL)))
    return [model.run(OUTPUTS, feeds) for feeds in runs][-1]


''',
    "litert": '''def run(runs):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    it = Interpreter(str(MODEL), experimental_op_resolver_type=OpResolverType.@RESOLVER@, num_threads=1)
    it.allocate_tensors()
    for feeds in runs:
        given = [d for d in it.get_input_details() if d["name"] in feeds]
        for d in given:
            if tuple(d["shape"]) != feeds[d["name"]].shape:
                it.resize_tensor_input(d["index"], feeds[d["name"]].shape)
        it.reset_all_variables()
        it.allocate_tensors()
        for d in given:
            it.set_tensor(d["index"], feeds[d["name"]])
        it.invoke()
    by_name = {d["name"]: d["index"] for d in it.get_output_details()}
    return [it.get_tensor(by_name[n]) for n in OUTPUTS]


''',
}

_PLUGIN = '''def run(runs):
    """Runs the backend through opconform's own adapter, since it has no script form of its own."""
    from harness.backends import direct

    return direct("@BACKEND@", MODEL, runs, OUTPUTS)


'''

_SERVED = '''EARLIER = @EARLIER@  # models, inputs of their runs, outputs


def serve():
    """What the process must have done before."""
    global MODEL, OUTPUTS
    last = MODEL, OUTPUTS
    for model, inputs, outputs in EARLIER:
        MODEL, OUTPUTS = HERE / model, outputs
        run([load(name) for name in inputs])
    MODEL, OUTPUTS = last


'''

_TAIL = '''def different(e, a, bound):
    """Elements outside the bound, by index."""
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
            near = np.abs(x - y) <= (0.0 if bound is None else bound)
        bad = ~((x == y) | near | (np.isnan(x) & np.isnan(y)))
    else:
        bad = e != a
    return [tuple(int(k) for k in i) for i in np.argwhere(bad)]


@SERVED@def main():
@FIRST@    invalid = @INVALID@
    try:
        found = run([load(name) for name in INPUTS])
    except Exception as error:
        print(f"refused: {type(error).__name__}: {error}")
        return 0 if invalid else 1
    if invalid:
        print("accepted although the model is invalid")
        return 1
    expected, bounds = load("expected.npz"), load("bounds.npz")
    status = 0
    for name, a in zip(OUTPUTS, found):
        if name not in expected:
            continue
        e = expected[name]
        where = different(e, a, bounds.get(name))
        print(f"{name}: {len(where)} different")
        for i in where[:10]:
            if isinstance(i, tuple):
                print(f"  {list(i)}: expected {e[i]}, got {np.asarray(a)[i]}")
            else:
                print(f"  {i}")
        status = 1 if where else status
    return status


sys.exit(main())
'''
