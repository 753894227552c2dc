"""What the samples of native packs have in common: read the instances, run each in a process of its own, store results.

Needs numpy and safetensors, nothing of opconform.  The ``run_*.py`` beside it say how a model
is run.
"""

import hashlib
import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
from safetensors import deserialize

DEADLINE = 20  # seconds for one instance
TYPES = {"f64": "f8", "f32": "f4", "f16": "f2", "bool": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
         "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8"}  # fmt: skip


class Unsupported(Exception):
    """The runtime does not claim this instance, or the script cannot feed it."""


def array(told, tensors):
    """A tensor or a sequence of case.json.  Raises Unsupported for a value that NumPy has no array for."""
    if "sequence" in told:
        return [array(x, tensors) for x in told["sequence"]]
    if "strings" in told:
        return np.array(told["strings"], object).reshape(told["shape"])
    if told.get("dtype") not in TYPES:
        raise Unsupported(f"{Path(sys.argv[0]).name}: a value of {told.get('dtype', 'several tensors')}")
    return np.frombuffer(tensors[told["tensor"]]["data"], TYPES[told["dtype"]]).reshape(told["shape"])


def answered(file, case, run, results):
    """Run one instance and store its outputs.  Why there are none, or None."""
    tensors = dict(deserialize((file.parent / "tensors.safetensors").read_bytes()))
    try:
        runs = [{x["name"]: array(x["value"], tensors) for x in r["inputs"]} for r in case["runs"]]
        names = [[x["name"] for x in r["outputs"]] for r in case["runs"]]
        answers = run(file.parent / case["model"], runs, names)
        outputs = {f"{case['id']}/{r}/{name}": v for r, got in enumerate(answers) for name, v in got.items()}
        np.savez(results / f"{case['id']}.npz", **outputs)
        return None if outputs else "value"  # an empty sequence leaves nothing to store
    except Unsupported as e:
        return {"status": "unsupported", "message": str(e)}
    except Exception as e:
        return {"status": "rejected", "message": str(e)}


def collect(pack, results, backend, run):
    """Write the results folder.  backend: {"name", "version", ...}.  run(model file, inputs of each run, names of the
    outputs of each run) gives {name: array} of each run."""
    pack, results, statuses = Path(pack), Path(results), {}
    results.mkdir(parents=True)
    for file in sorted(pack.glob("cases/*/case.json")):
        case, told = json.loads(file.read_text()), results / "status.json"
        if not (child := os.fork()):  # a process of its own: a crash costs one instance
            signal.alarm(DEADLINE)
            told.write_text(json.dumps(answered(file, case, run, results)))
            os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        found = json.loads(told.read_text()) if not ended else "timed_out"
        if ended and ended != -signal.SIGALRM:
            how = f"killed by {signal.Signals(-ended).name}" if ended < 0 else f"exited with code {ended}"
            found = {"status": "crashed", "message": how}
        statuses.update({case["id"]: found} if found else {})
    digest = hashlib.sha256((pack / "manifest.json").read_bytes()).hexdigest()
    told = {"format": "opconform-results-1", "pack": digest, "backend": backend, "statuses": statuses}
    (results / "results.json").write_text(json.dumps(told))
