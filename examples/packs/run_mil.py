"""Run a native MIL pack with Core ML, on macOS: ``python run_mil.py PACK RESULTS``.

``opconform judge PACK RESULTS`` then gives the verdicts.
The script needs coremltools, numpy and safetensors, nothing of opconform.  On other systems it ends with code 2.
"""

import platform
import sys

if sys.platform != "darwin":
    sys.exit(print(f"run_mil.py: Core ML needs macOS, this is {sys.platform}", file=sys.stderr) or 2)

import coremltools as ct
import numpy as np
from results import collect


def run(model, runs, names):
    """Outputs of each run of one loaded model, on the CPU."""
    loaded = ct.models.MLModel(str(model), compute_units=ct.ComputeUnit.CPU_ONLY)
    known = {x.name for x in loaded.get_spec().description.input}
    out = []
    for feeds, wanted in zip(runs, names):
        given = {n: v for n, v in feeds.items() if n in known} or {"no_input": np.zeros(1, np.float32)}
        got = loaded.predict(given)
        out.append({n: np.asarray(got[n]) for n in wanted})
    return out


if __name__ == "__main__":
    release = platform.mac_ver()[0]
    collect(*sys.argv[1:3], {"name": "coreml-cpu", "version": f"macOS {release}", "family": "coreml"}, run)
