"""Run a native ONNX pack with plain ONNX Runtime: ``python run_ort.py PACK RESULTS``.

``opconform judge PACK RESULTS`` then gives the verdicts.
The script needs onnxruntime, numpy and safetensors, nothing of opconform.
"""

import hashlib
import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
from safetensors import deserialize

GAPS = (
    "NOT_IMPLEMENTED",
    "Could not find an implementation",
    "is not currently registered or supported",
    "is not a registered",
)
NARROW = (
    "bfloat16",
    "float8",
    "float4",
    "int4",
    "int2",
    "complex",
    "optional",
    "map",
    "sparse",
)  # no NumPy arrays for these
TYPES = {"f64": "f8", "f32": "f4", "f16": "f2", "bool": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
         "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8"}  # fmt: skip
ort.set_default_logger_severity(4)
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
options.log_severity_level = 4
options.intra_op_num_threads = 1


def array(told, tensors):
    """A tensor or sequence of case.json.  Raises KeyError for a type that NumPy has no name for."""
    if "sequence" in told:
        return [array(x, tensors) for x in told["sequence"]]
    if "strings" in told:
        return np.array(told["strings"], object).reshape(told["shape"])
    return np.frombuffer(tensors[told["tensor"]]["data"], TYPES[told["dtype"]]).reshape(told["shape"])


def run(file, case):
    """Outputs of one instance by ID/RUN/OUTPUT."""
    tensors, outputs = dict(deserialize((file.parent / "tensors.safetensors").read_bytes())), {}
    session = ort.InferenceSession(file.parent / case["model"], options, providers=["CPUExecutionProvider"])
    names, known = [x.name for x in session.get_outputs()], {x.name for x in session.get_inputs()}
    if any(word in x.type for x in session.get_outputs() for word in NARROW):
        raise TypeError("an output that NumPy has no array for")
    for r, one in enumerate(case["runs"]):
        feeds = {x["name"]: array(x["value"], tensors) for x in one["inputs"] if x["name"] in known}
        for n, v in zip(names, session.run(names, feeds)):
            parts = [(f"/{k}", x) for k, x in enumerate(v)] if isinstance(v, list) else [("", v)]
            outputs.update({f"{case['id']}/{r}/{n}{part}": x for part, x in parts})
    return {k: v.astype(str) if v.dtype == object else v for k, v in outputs.items()}


def status(file, case, results):
    """Run one instance and store its outputs; why there are none, or None."""
    try:
        outputs = run(file, case)
        np.savez(results / f"{case['id']}.npz", **outputs)
        return None if outputs else "value"  # an empty sequence leaves nothing to store
    except (AttributeError, KeyError, TypeError) as e:  # a type or a container that this script does not feed
        return {"status": "unsupported", "message": f"run_ort.py: {type(e).__name__}: {e}"}
    except Exception as e:
        return {"status": "unsupported" if any(g in str(e) for g in GAPS) else "rejected", "message": str(e)}


pack, results, statuses = Path(sys.argv[1]), Path(sys.argv[2]), {}
results.mkdir(parents=True)
for file in sorted(pack.glob("cases/*/case.json")):
    case, told = json.loads(file.read_text()), results / "status.json"
    if not (child := os.fork()):  # a process of its own: a crash costs one instance
        signal.alarm(20)
        told.write_text(json.dumps(status(file, case, results)))
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = json.loads(told.read_text()) if not ended else "timed_out"
    if ended and ended != -signal.SIGALRM:
        how = f"killed by {signal.Signals(-ended).name}" if ended < 0 else f"exited with code {ended}"
        found = {"status": "crashed", "message": how}
    statuses.update({case["id"]: found} if found else {})
told = {"format": "opconform-results-1", "pack": hashlib.sha256((pack / "manifest.json").read_bytes()).hexdigest(),
        "backend": {"name": "onnxruntime", "version": ort.__version__}, "statuses": statuses}  # fmt: skip
(results / "results.json").write_text(json.dumps(told))
