"""A runner of the toy operator set, with faults on request:  python runner.py [FAULT]"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from toy_backends import Right

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
backend = Right()
models: dict[Any, Any] = {}
source, out = sys.stdin.buffer, sys.stdout.buffer


def send(header, payload=b""):
    if payload:
        header["payload"] = len(payload)
    out.write(b"\x1e" + json.dumps(header).encode() + b"\n" + payload)
    out.flush()


def answer(header, payload):
    """-> result, payload of it"""
    method = header["method"]
    if method == "hello":
        said = {"name": "toy-runner" + (FAULT and "-" + FAULT), "version": "2.0", "formats": ["toy"], "pack": 4}
        return {**said, "pack": 0} if FAULT == "pack" else said, b""
    if method == "load":
        if FAULT == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if FAULT == "exit":
            sys.exit(3)
        if FAULT == "eat":
            eaten = b"x" * (600 << 20)
            time.sleep(1000 + len(eaten) * 0)
        if FAULT == "hang":
            time.sleep(1000)
        models[header["model"]] = backend.load(payload, header["format"])
        return {}, b""
    if method == "release":
        del models[header["model"]]
        return {}, b""
    feeds = {}
    for x in header["inputs"]:
        kind = {"f32": "<f4", "i32": "<i4", "bool": "?"}[x["dtype"]]
        size = int(np.prod(x["shape"]))
        feeds[x["name"]] = np.frombuffer(payload, kind, size, x["offset"]).reshape(x["shape"])
    forms, data = [], b""
    for name, v in backend.run(models[header["model"]], feeds).items():
        v = np.asarray(v)
        form = {"name": name, "dtype": {"f": "f32", "i": "i32", "b": "bool"}[v.dtype.kind], "shape": list(v.shape)}
        form.update(offset=len(data), bytes=v.nbytes + (4 if FAULT == "bytes" else 0))
        if FAULT == "nameless":
            del form["name"]
        forms.append(form)
        data += v.tobytes()
    return {"outputs": forms}, data


while line := source.readline():
    header = json.loads(line[1:])
    payload = source.read(header.get("payload", 0))
    if FAULT == "noise":
        print("a line of the runtime", flush=True)
        sys.stdout.write("and a part of one")
        sys.stdout.flush()
    if FAULT == "json" and header["method"] == "run":
        out.write(b"\x1e{nothing}\n")
        out.flush()
        continue
    try:
        result, data = answer(header, payload)
    except NotImplementedError as e:
        send({"id": header["id"], "error": {"kind": "unsupported", "message": str(e)}})
    except Exception as e:
        send({"id": header["id"], "error": {"kind": "rejected", "message": str(e)}})
    else:
        send({"id": header["id"], "result": result}, data)
