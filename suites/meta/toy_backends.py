"""Backends of the toy dialect: one that is right, and ones with one bug each."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from typing import Any

import numpy as np

_TYPES = {"f32": np.float32, "i32": np.int32, "bool": np.bool_}
_NEEDS = {"Add": ("x", "y"), "Max": ("x", "y"), "MatMul": ("x", "y"), "Sum": ("x",), "Flip": ("x",)}
_TAKES = {"Add": "f32 i32", "Max": "f32 i32", "MatMul": "f32", "Sum": "f32 i32", "Flip": "f32 i32 bool"}


class Right:
    """Checks what the toy operator set states, then computes with NumPy."""

    name = "right"
    formats = ("toy",)
    pack = 16

    def __init_subclass__(cls) -> None:
        """A class without a name of its own is called by its class: WrongDtype is wrong-dtype."""
        if "name" not in vars(cls):
            cls.name = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()

    def version(self) -> str:
        return "1.0"

    def load(self, model: bytes, format: str) -> Any:
        nodes = json.loads(model)
        for n in nodes:
            types, shapes = n["types"], n["shapes"]
            for slot in _NEEDS[n["op"]]:
                if slot not in types:
                    raise ValueError(f"{n['out']}: input {slot} is missing")
                if types[slot] not in _TAKES[n["op"]].split():
                    raise ValueError(f"{n['out']}: no {types[slot]}")
            if len(set(types.values())) > 1:
                raise ValueError(f"{n['out']}: types differ")
            if n["op"] in ("Add", "Max"):
                np.broadcast_shapes(*map(tuple, shapes.values()))
            if n["op"] == "MatMul" and shapes["x"][1] != shapes["y"][0]:
                raise ValueError(f"{n['out']}: inner extents differ")
            rank = len(shapes["x"])
            for axis in [n["attrs"].get("axis"), *(n["attrs"].get("axes") or [])]:
                if axis is not None and not -rank <= axis < rank:
                    raise ValueError(f"{n['out']}: axis {axis} is out of range")
        return nodes

    def run(self, handle: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        out = {}
        for n in handle:
            a = {k: inputs[v] for k, v in n["ins"].items()}
            for k, c in n["consts"].items():
                a[k] = np.frombuffer(bytes.fromhex(c["hex"]), _TYPES[c["dtype"]]).reshape(c["shape"])
            with np.errstate(all="ignore"):
                out[n["out"]] = self.compute(n["op"], n["attrs"], a)
        return out

    def compute(self, op: str, attrs: dict[str, Any], a: dict[str, Any]) -> Any:
        x, y = a["x"], a.get("y")
        if op == "Add":
            return x + y
        if op == "Max":
            return np.maximum(x, y)
        if op == "MatMul":
            return (x.astype(np.float64) @ y.astype(np.float64)).astype(np.float32)
        if op == "Flip":
            return np.flip(x, attrs["axis"]).copy()
        axes = attrs.get("axes")
        wide = x.astype(np.float64) if x.dtype == np.float32 else x
        return np.asarray(
            wide.sum(None if axes is None else tuple(axes), keepdims=attrs.get("keepdims") or False)
        ).astype(x.dtype)


class SwappedAxis(Right):
    """Flips the first axis whatever is asked, from rank 2 on."""

    name = "swapped-axis"

    def compute(self, op, attrs, a):
        if op == "Flip" and a["x"].ndim > 1:
            return np.flip(a["x"], 0).copy()
        return super().compute(op, attrs, a)


class DroppedNan(Right):
    """Max prefers the number to the NaN."""

    name = "dropped-nan"

    def compute(self, op, attrs, a):
        return np.fmax(a["x"], a["y"]) if op == "Max" else super().compute(op, attrs, a)


class OffByOne(Right):
    """MatMul forgets the last product once there are three."""

    name = "off-by-one"

    def compute(self, op, attrs, a):
        if op == "MatMul" and a["x"].shape[1] >= 3:
            a = {"x": a["x"][:, :-1], "y": a["y"][:-1]}
        return super().compute(op, attrs, a)


class Lenient(Right):
    """Refuses nothing by its types."""

    name = "lenient"

    def load(self, model, format):
        return json.loads(model)

    def run(self, handle, inputs):
        try:
            return super().run(handle, inputs)
        except Exception:
            return {n["out"]: np.zeros((), np.float32) for n in handle}


class Dies(Right):
    """Kills its process on a Flip of a 1-d bool tensor; hangs on a Sum of an empty one."""

    name = "dies"

    def run(self, handle, inputs):
        for n in handle:
            if n["op"] == "Flip" and n["types"]["x"] == "bool" and len(n["shapes"]["x"]) == 1:
                os.kill(os.getpid(), signal.SIGSEGV)
            if n["op"] == "Sum" and 0 in n["shapes"]["x"]:
                time.sleep(3600)
        return super().run(handle, inputs)


class Unwritten(Right):
    """A Sum of nothing is memory that nobody writes to: a young process finds zeros there, which are right."""

    name = "unwritten"

    def compute(self, op, attrs, a):
        out = super().compute(op, attrs, a)
        if op == "Sum" and not a["x"].size and out.size:
            size = out.nbytes
            return np.empty(1 << 20, np.uint8)[:size].copy().view(out.dtype).reshape(out.shape)  # none of NumPy's cache
        return out


class Dice(Right):
    """A Sum of nothing is random."""

    name = "dice"

    def compute(self, op, attrs, a):
        out = super().compute(op, attrs, a)
        if op == "Sum" and not a["x"].size and out.size:
            return np.frombuffer(os.urandom(out.nbytes), out.dtype).reshape(out.shape)
        return out


class Tired(Right):
    """From its thirtieth model on, a process adds one to what Add says."""

    name = "tired"
    runs = 0

    def run(self, handle, inputs):
        self.runs += 1
        out = super().run(handle, inputs)
        if self.runs >= 30:
            out.update({n["out"]: out[n["out"]] + 1 for n in handle if n["op"] == "Add"})
        return out


def after_flip(nodes):
    """The Max nodes that a Flip stands before, whatever lies between."""
    ops = [n["op"] for n in nodes]
    return [n for i, n in enumerate(nodes) if n["op"] == "Max" and "Flip" in ops[:i]]


class Overwrites(Right):
    """A Flip writes past its end: the Max that follows it in a model, whatever lies between, is one too high."""

    name = "overwrites"

    def run(self, handle, inputs):
        out = super().run(handle, inputs)
        out.update({n["out"]: out[n["out"]] + 1 for n in after_flip(handle)})
        return out


class Keeps(Right):
    """MatMul goes on with the inner extent of the first run of a loaded model where that is the smaller one."""

    name = "keeps"

    def load(self, model, format):
        return {"nodes": super().load(model, format), "inner": {}}

    def run(self, handle, inputs):
        self._inner, self._turn = handle["inner"], 0
        return super().run(handle["nodes"], inputs)

    def compute(self, op, attrs, a):
        self._turn += 1
        if op == "MatMul":
            first = self._inner.setdefault(self._turn, a["x"].shape[1])
            if first < a["x"].shape[1]:
                return self.surprise(a, first)
        return super().compute(op, attrs, a)

    def surprise(self, a, inner):
        return super().compute("MatMul", {}, {"x": a["x"][:, :inner], "y": a["y"][:inner]})


class KeepsAndDies(Keeps):
    """The same, but it ends the process."""

    name = "keeps-and-dies"

    def surprise(self, a, inner):
        os.kill(os.getpid(), signal.SIGSEGV)


class Jealous(Right):
    """Refuses a model in which a Max comes after a Flip, whatever lies between."""

    name = "jealous"

    def load(self, model, format):
        nodes = super().load(model, format)
        if after_flip(nodes):
            self.refuse()
        return nodes

    def refuse(self):
        raise RuntimeError("too much at once")


class JealousAndPoor(Jealous):
    """The same, and it lacks Add."""

    name = "jealous-and-poor"

    def load(self, model, format):
        if any(n["op"] == "Add" for n in json.loads(model)):
            raise RuntimeError("no sums")
        return super().load(model, format)


class JealousAndDies(Jealous):
    """The same, but it ends the process."""

    name = "jealous-and-dies"

    def refuse(self):
        os.kill(os.getpid(), signal.SIGSEGV)


class Frail(Right):
    """One process dies at its tenth model, and never again one: the file TOY_FRAIL tells."""

    name = "frail"
    runs = 0

    def run(self, handle, inputs):
        self.runs += 1
        if self.runs == 10 and not os.path.exists(os.environ["TOY_FRAIL"]):
            open(os.environ["TOY_FRAIL"], "w").close()
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().run(handle, inputs)


class Moody(Right):
    """One process is wrong about an Add, and never again one: the file TOY_FRAIL tells."""

    name = "moody"

    def compute(self, op, attrs, a):
        out = super().compute(op, attrs, a)
        if op == "Add" and out.size and not os.path.exists(os.environ["TOY_FRAIL"]):
            open(os.environ["TOY_FRAIL"], "w").close()
            return out + 1
        return out


class Remembers(Right):
    """Once a process has served a Flip of a 2-d tensor, in whatever model, a MatMul ends it."""

    name = "remembers"
    flipped = False

    def run(self, handle, inputs):
        if self.flipped and any(n["op"] == "MatMul" for n in handle):
            os.kill(os.getpid(), signal.SIGSEGV)
        self.flipped = self.flipped or any(n["op"] == "Flip" and len(n["shapes"]["x"]) == 2 for n in handle)
        return super().run(handle, inputs)


class Narrow(Right):
    """Has no kernel for matrices."""

    name = "narrow"

    class Unsupported(Exception):
        """What it does not claim."""

    def load(self, model, format):
        for n in json.loads(model):
            if len(n["shapes"]["x"]) == 2 and n["op"] == "Flip":
                raise self.Unsupported("no kernel for matrices")
        return super().load(model, format)
