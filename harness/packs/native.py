"""The form ``native``: a model, a JSON file and a safetensors file for each instance, of any dialect."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from harness.core.dtypes import of
from harness.core.instance import encode_value
from harness.declare import Expected
from harness.packs import tensors
from harness.packs.bounds import Rule, overflow
from harness.packs.frozen import Frozen
from harness.packs.models import model_files

FORMAT = "opconform-case-1"
CASE, TENSORS = "case.json", "tensors.safetensors"


class Native:
    """Per-element bounds, masks of what is underspecified, and rule-breaking instances."""

    name = "native"
    dialects: tuple[str, ...] = ()

    def __init__(self) -> None:
        tensors.package()

    def files(self, frozen: Frozen) -> tuple[dict[str, bytes], str, dict[str, Any]]:
        """See ``Form``."""
        case, at = frozen.case, f"cases/{frozen.id}"
        model, models, interface = model_files(frozen)
        stored: dict[str, np.ndarray] = {}
        runs = []
        for r, given in enumerate(frozen.inputs):
            run: dict[str, Any] = {
                "inputs": [
                    {"name": n, "slot": frozen.slots[n], "value": stated(stored, f"{r}.input.{n}", v)}
                    for n, v in given.items()
                ]
            }
            if frozen.outputs:
                run["outputs"] = [
                    {"name": n}
                    if not n
                    else {
                        "name": n,
                        **({"given": interface[n]} if n in interface else {}),
                        **_output(stored, f"{r}.output.{i}", e, rule),
                    }
                    for i, (n, (e, rule)) in enumerate(zip(frozen.names, frozen.outputs[r], strict=True))
                ]
            runs.append(run)
        told = {
            "format": FORMAT,
            "id": frozen.id,
            "key": case.version.key,
            "opset": case.inst.opset,
            "must": "answer" if case.inst.rule is None else "refuse",
            "rule": case.inst.rule,
            "model": model,
            "tensors": TENSORS,
            "runs": runs,
        }
        out = {f"{at}/{name}": data for name, data in models.items()}
        out[f"{at}/{CASE}"] = json.dumps(told, indent=1, allow_nan=False).encode() + b"\n"
        out[f"{at}/{TENSORS}"] = tensors.write(stored)
        out[f"{at}/instance.json"] = case.inst.dumps().encode() + b"\n"
        return out, f"{at}/{model}", {"given": interface} if interface else {}

    def rest(self) -> dict[str, bytes]:
        """See ``Form``."""
        return {}


def stated(stored: dict[str, np.ndarray], name: str, v: Any) -> Any:
    """A value in JSON; its numbers go to ``stored`` under ``name``.

    * a tensor: {dtype, shape, tensor}; texts are in {strings} in place of {tensor}
    * a sequence: {sequence}
    * a map: {map}
    * an optional that holds nothing: None
    """
    if v is None:
        return None
    if isinstance(v, dict):
        return {"map": [[_plain(k), stated(stored, f"{name}.{i}", x)] for i, (k, x) in enumerate(v.items())]}
    if isinstance(v, (list, tuple)):
        return {"sequence": [stated(stored, f"{name}.{i}", x) for i, x in enumerate(v)]}
    a = np.asarray(v)
    d = of(a)
    told = {"dtype": d.name, "shape": list(a.shape)}
    if d.kind == "s":
        return {**told, "strings": [_plain(x) for x in a.ravel().tolist()]}
    stored[name] = a
    return {**told, "tensor": name}


def _output(stored: dict[str, np.ndarray], name: str, e: Expected, rule: Rule) -> dict[str, Any]:
    """What is expected of an output, and how it is compared."""
    told: dict[str, Any] = {"expected": stated(stored, name, e.value), "rule": rule.name, "formula": rule.formula}
    for part in ("reference", "bound", "low", "high", "open"):
        a = getattr(rule, part)
        if a is not None:
            told[part] = f"{name}.{part}"
            stored[told[part]] = np.asarray(a)
    if rule.open is not None:
        told["why"] = rule.why
    if rule.signed_zero:
        told["signed_zero"] = True
    if rule.reference is not None and e.dtype.kind == "f" and math.isfinite(overflow(e)):
        told["overflow"] = overflow(e)
    return told


def _plain(x: Any) -> Any:
    x = x.item() if isinstance(x, np.generic) else x
    return encode_value(x.decode("utf-8", "surrogateescape") if isinstance(x, bytes) else x)
