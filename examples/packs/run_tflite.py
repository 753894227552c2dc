"""Run a native TFLite pack with plain LiteRT: ``python run_tflite.py PACK RESULTS``.

``opconform judge PACK RESULTS`` then gives the verdicts.
The script needs ai-edge-litert, numpy and safetensors, nothing of opconform.
"""

import sys
from importlib.metadata import version

from ai_edge_litert.interpreter import Interpreter, OpResolverType
from results import Unsupported, collect

GAPS = ("unresolved custom op", "Didn't find op for builtin opcode", "not supported", "Unsupported")


def interpreter(model):
    """The model with the reference kernels, without a delegate."""
    resolver = OpResolverType.BUILTIN_REF
    return Interpreter(str(model), experimental_op_resolver_type=resolver, num_threads=1)


def run(model, runs, names):
    """Outputs of each run of one loaded model."""
    try:
        loaded, out = interpreter(model), []
        for feeds, wanted in zip(runs, names):
            given = [d for d in loaded.get_input_details() if d["name"] in feeds]
            for d in given:
                loaded.resize_tensor_input(d["index"], feeds[d["name"]].shape)
            loaded.allocate_tensors()
            for d in given:
                loaded.set_tensor(d["index"], feeds[d["name"]])
            loaded.invoke()
            index = {d["name"]: d["index"] for d in loaded.get_output_details()}
            out.append({n: loaded.get_tensor(index[n]) for n in wanted})
        return out
    except (RuntimeError, ValueError) as e:
        if any(g in str(e) for g in GAPS):
            raise Unsupported(str(e)) from None
        raise


if __name__ == "__main__":
    collect(*sys.argv[1:3], {"name": "litert-ref", "version": version("ai-edge-litert"), "family": "litert"}, run)
