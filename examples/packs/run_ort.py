"""Run a native ONNX pack with plain ONNX Runtime: ``python run_ort.py PACK RESULTS``.

``opconform judge PACK RESULTS`` then gives the verdicts.
The script needs onnxruntime, numpy and safetensors, nothing of opconform.
"""

import sys

import onnxruntime as ort
from results import Unsupported, collect

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
ort.set_default_logger_severity(4)
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
options.log_severity_level = 4
options.intra_op_num_threads = 1


def parts(name, value):
    """An output by name; the elements of a sequence by NAME/INDEX.  Strings are an array of NumPy's own."""
    if isinstance(value, list):
        return {f"{name}/{k}": x for k, v in enumerate(value) for x in parts(name, v).values()}
    return {name: value.astype(str) if value.dtype == object else value}


def run(model, runs, names):
    """Outputs of each run of one loaded model."""
    try:
        session, out = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"]), []
        outputs, known = [x.name for x in session.get_outputs()], {x.name for x in session.get_inputs()}
        if any(word in x.type for x in session.get_outputs() for word in NARROW):
            raise TypeError("an output that NumPy has no array for")
        for feeds in runs:
            given = session.run(outputs, {k: v for k, v in feeds.items() if k in known})
            out.append({k: x for name, v in zip(outputs, given) for k, x in parts(name, v).items()})
        return out
    except (AttributeError, KeyError, TypeError) as e:  # a type or a container that this script does not feed
        raise Unsupported(f"run_ort.py: {type(e).__name__}: {e}") from None
    except Exception as e:
        raise (Unsupported(str(e)) if any(g in str(e) for g in GAPS) else e) from None


if __name__ == "__main__":
    collect(*sys.argv[1:3], {"name": "onnxruntime", "version": ort.__version__}, run)
