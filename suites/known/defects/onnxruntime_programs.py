"""What comes where a difference is listed (``harness/run/defects.py``): programs that ONNX Runtime has rewritten."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from harness.run.defects import Given

Outputs = list[Any] | None


def epsilon_of_its_own(g: Given) -> Outputs:
    """1e-5 in place of an epsilon that stands first in its sum; of several the first."""
    program = deepcopy(g.attr("program"))
    roots = [m.inputs["X"] for m in program.nodes if m.op == "Sqrt"]
    found = False
    for node in program.nodes:
        if node.op == "Add" and node.outputs[0] in roots:
            for slot in ("A", "B"):
                value = program.consts.get(node.inputs[slot])
                if value is not None and (slot == "A" or value.size > 1):
                    one = 1e-5 if slot == "A" else value.flat[0]
                    program.consts[node.inputs[slot]] = np.full(value.shape, one, np.float32)
                    found = True
    return g.again({"program": program}) if found else None


def bias_times_alpha(g: Given) -> Outputs:
    """What is added to a product is multiplied by alpha as well."""
    program = deepcopy(g.attr("program"))
    for node in program.nodes:
        if node.op == "Gemm":
            node.attrs["beta"] = node.attrs.get("alpha", 1.0)
    return g.again({"program": program})
