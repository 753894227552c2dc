"""The reference evaluator of the onnx package as a runner, in Python:  pip install onnx numpy

    opconform run --dialect onnx --backend 'exec:python examples/runners/onnx_reference.py'

A class is the shorter way in for Python (docs/backends.md); this shows the protocol, for an interpreter of its own.
"""

import json
import os
import sys
from math import prod

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

TYPES = {
    "f64": "<f8",
    "f32": "<f4",
    "f16": "<f2",
    "i64": "<i8",
    "i32": "<i4",
    "i16": "<i2",
    "i8": "i1",
    "u64": "<u8",
    "u32": "<u4",
    "u16": "<u2",
    "u8": "u1",
    "bool": "?",
}
NAMES = {np.dtype(v): k for k, v in TYPES.items()}


class Unsupported(Exception):
    """What the runtime does not take: a declared gap, no failure."""


def receive(stream):
    """One message -> its header and payload; None at the end."""
    line = stream.readline()
    if not line:
        return None
    header = json.loads(line[1:])  # behind the byte 0x1E
    return header, stream.read(header.get("payload", 0))


def send(stream, header, payload=b""):
    if payload:
        header["payload"] = len(payload)
    stream.write(b"\x1e" + json.dumps(header).encode() + b"\n" + payload)
    stream.flush()


def value(form, payload):
    """The form of an input -> what the evaluator takes."""
    if form.get("absent"):
        return None
    if "sequence" in form:
        return [value(x, payload) for x in form["sequence"]]
    if "strings" in form:
        return np.array(form["strings"], dtype=object).reshape(form["shape"])
    if form.get("dtype") not in TYPES:
        raise Unsupported(f"no values like {form.get('dtype', 'a map')}")
    count = prod(form["shape"])
    return np.frombuffer(payload, TYPES[form["dtype"]], count, form["offset"]).reshape(form["shape"])


def form(v, payload):
    """A result -> its form; its elements go behind the payload, a bytearray."""
    if v is None:
        return {"absent": True}
    if isinstance(v, list):
        return {"sequence": [form(x, payload) for x in v]}
    v = np.asarray(v)
    if v.dtype.kind in "OU":
        return {"dtype": "str", "shape": list(v.shape), "strings": [str(x) for x in v.ravel()]}
    if v.dtype not in NAMES:
        raise Unsupported(f"a result of type {v.dtype}")
    data, offset = v.tobytes(), len(payload)
    payload += data
    return {"dtype": NAMES[v.dtype], "shape": list(v.shape), "offset": offset, "bytes": len(data)}


HELLO = {
    "name": "onnx-reference-runner",
    "version": onnx.__version__,
    "formats": ["onnx"],
    "dtypes": [*TYPES, "str"],
    "validates": False,
}
models = {}


def answer(header, payload):
    """A request -> its result and the payload of that."""
    method, number, out = header["method"], header.get("model"), bytearray()
    if method == "hello":
        return HELLO, out
    if method == "load":
        models[number] = ReferenceEvaluator(onnx.load_model_from_string(payload))
        return {}, out
    if method == "run":
        model = models[number]
        feeds = {x["name"]: value(x, payload) for x in header["inputs"] if not x.get("absent")}
        results = model.run(None, feeds)
        return {"outputs": [{"name": n, **form(v, out)} for n, v in zip(model.output_names, results)]}, out
    if method == "release":
        models.pop(number, None)
        return {}, out
    raise Unsupported(f"method {method}")


def main():
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever libraries print goes to stderr
    while (message := receive(requests)) is not None:
        header, payload = message
        try:
            result, out = answer(header, payload)
        except (Unsupported, NotImplementedError) as e:
            send(answers, {"id": header["id"], "error": {"kind": "unsupported", "message": str(e)}})
        except Exception as e:
            send(answers, {"id": header["id"], "error": {"kind": "rejected", "message": f"{type(e).__name__}: {e}"}})
        else:
            send(answers, {"id": header["id"], "result": result}, bytes(out))


if __name__ == "__main__":
    main()
