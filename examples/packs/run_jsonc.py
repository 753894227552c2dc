"""Read an ``ort-jsonc`` pack as the tests of ONNX Runtime Web do, in Python: ``run_jsonc.py PACK``.

The real reader is js/web/test in ONNX Runtime's repository: copy ``ops/*.jsonc`` to ``test/data/ops`` and run
``npm test -- op``.  This script makes the same models and uses the same thresholds.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

TYPES = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "FLOAT16"}
KINDS = {"float": 1, "int": 2, "string": 3, "floats": 6, "ints": 7, "strings": 8}
ABSOLUTE, RELATIVE = 1e-4, 1.000001  # of the backend wasm in test-runner.ts


def tensor(told):
    """A tensor as NumPy array."""
    name = {"string": "object", "bool": "bool"}.get(told["type"], told["type"])
    return np.array(told["data"], name).reshape(told["dims"])


def model(test):
    """A model of one node, made as the runner makes it: inputs and outputs have types and no shapes."""
    first, opset = test["cases"][0], test["opset"]
    number = {
        k: getattr(TensorProto, TYPES.get(k, k.upper()))
        for io in ("inputs", "outputs")
        for k in (x["type"] for x in first[io])
    }
    node = helper.make_node(
        test["operator"],
        [f"input_{i}" for i in range(len(first["inputs"]))],
        [f"output_{i}" for i in range(len(first["outputs"]))],
        domain=opset["domain"],
    )
    node.attribute.extend(
        helper.make_attribute(a["name"], a["data"], attr_type=KINDS[a["type"]]) for a in test["attributes"]
    )
    graph = helper.make_graph(
        [node],
        "test",
        [helper.make_tensor_value_info(f"input_{i}", number[x["type"]], None) for i, x in enumerate(first["inputs"])],
        [helper.make_tensor_value_info(f"output_{i}", number[x["type"]], None) for i, x in enumerate(first["outputs"])],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid(opset["domain"], opset["version"])], ir_version=10
    )


def equal(actual, expected):
    """The runner's comparison of two tensors."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False
    if expected.dtype.kind != "f":
        return bool((actual == expected).all())
    with np.errstate(all="ignore"):
        a, b = actual.astype(np.float64), expected.astype(np.float64)
        near = (a == b) | ((a != a) & (b != b)) | (np.abs(a - b) < ABSOLUTE)
        return bool((near | ((a != 0) & (b != 0) & (a / b < RELATIVE) & (b / a < RELATIVE))).all())


def run(test):
    """ "passed", "failed", or why the runtime has no answer."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = ort.InferenceSession(model(test).SerializeToString(), options, providers=["CPUExecutionProvider"])
        for case in test["cases"]:
            got = session.run(None, {f"input_{i}": tensor(x) for i, x in enumerate(case["inputs"])})
            if not all(equal(a, tensor(x)) for a, x in zip(got, case["outputs"])):
                return "failed"
    except Exception as e:
        return str(e)
    return "passed"


if __name__ == "__main__":
    found = {}
    for file in sorted(Path(sys.argv[1]).glob("ops/*.jsonc")):
        text = "".join(x for x in file.read_text().splitlines(True) if not x.startswith("//"))
        found.update({test["name"]: run(test) for test in json.loads(text)})
    json.dump(found, sys.stdout, indent=1)
