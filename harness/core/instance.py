"""An instance: one op at one version with concrete attributes, shapes, types and data, as plain data.

Slot and attribute names are those of the dialect.  An instance is one line of JSON, and its id is a hash of its
content.  An instance is enough to replay a case on any machine.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, DType
from harness.core.errors import FormatError
from harness.core.forms import FORMATS, wrong_instance

FORMAT, RERUN_FORMAT = FORMATS  # of the JSON form, and of an instance with more than one run


@dataclass(slots=True)
class Arg:
    """One tensor (or list, sequence, optional, state) given to a slot.

    dtype, shape: of the tensor.  const: an initializer or constant, in place of a run-time input.
    recipe, seed: how the elements are filled (``harness.generate.recipes``); a flat list ``values`` overrides them.
    kind: "tensor", or a container that the dialect makes of ``items`` ("seq", "list", "optional", "state").
    quant: {"scale": [...], "zero_point": [...], "axis": int} for types that carry quantisation.
    dynamic: axes that are symbolic in the model.
    encoding: how the model holds a constant, one of the dialect's ``encodings``; "" for the usual way."""

    dtype: DType
    shape: tuple[int, ...]
    const: bool = False
    recipe: str = "small"
    seed: int = 0
    values: list[Any] | None = None
    kind: str = "tensor"
    items: list[Arg] | None = None
    quant: dict[str, Any] | None = None
    dynamic: tuple[int, ...] = ()
    encoding: str = ""

    @property
    def quantised(self) -> dict[str, Any]:
        """``quant`` of a tensor that is quantised.  Raises ValueError for another."""
        if self.quant is None:
            raise ValueError(f"expected a quantised tensor, got {self.dtype.name} without scales")
        return self.quant

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"dtype": self.dtype.name, "shape": list(self.shape)}
        if self.const:
            out["const"] = True
        if self.values is not None:
            out["values"] = [encode_value(v) for v in self.values]
        else:
            out["recipe"], out["seed"] = self.recipe, self.seed
        if self.kind != "tensor":
            out["kind"] = self.kind
        if self.items is not None:
            out["items"] = [a.to_json() for a in self.items]
        if self.quant:
            out["quant"] = self.quant
        if self.dynamic:
            out["dynamic"] = list(self.dynamic)
        if self.encoding:
            out["encoding"] = self.encoding
        return out

    @staticmethod
    def from_json(o: dict[str, Any]) -> Arg:
        values = o.get("values")
        return Arg(
            BY_NAME[o["dtype"]],
            tuple(o["shape"]),
            o.get("const", False),
            o.get("recipe", "small"),
            o.get("seed", 0),
            None if values is None else [decode_value(v) for v in values],
            o.get("kind", "tensor"),
            None if o.get("items") is None else [Arg.from_json(a) for a in o["items"]],
            o.get("quant"),
            tuple(o.get("dynamic", ())),
            o.get("encoding", ""),
        )


@dataclass(slots=True)
class Node:
    """A node of a ``Graph``.  inputs: slot name -> value name, list of names (variadic) or None (absent)."""

    op: str
    inputs: dict[str, str | list[str] | None]
    outputs: list[str]
    attrs: dict[str, Any] = field(default_factory=dict)
    version: int | str | None = None

    def value(self, slot: str) -> str:
        """Name of the one value that a slot is given.  Raises TypeError for a slot of none or of many."""
        name = self.inputs[slot]
        if not isinstance(name, str):
            raise TypeError(f"{self.op}: {slot}: expected one value, got {name!r}")
        return name

    def to_json(self) -> dict[str, Any]:
        return {
            "op": self.op,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "attrs": {k: encode_value(v) for k, v in self.attrs.items()},
            **({} if self.version is None else {"version": self.version}),
        }


@dataclass(slots=True)
class Graph:
    """A small program: block of a control-flow op, body of a function, subject of a pass, or a whole parsed model.

    inputs: (name, Arg) in order; an Arg's data recipe is used when the graph is the subject, its type always.
    consts: named arrays.  outputs: names of values.  A block may use names of the graph around it.
    """

    inputs: list[tuple[str, Arg]] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    consts: dict[str, np.ndarray] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def outer(self) -> set[str]:
        """Names that it uses, in blocks of its own too, and does not define."""
        mine = {n for n, _ in self.inputs} | set(self.consts) | {o for n in self.nodes for o in n.outputs}
        used = set(self.outputs)
        for node in self.nodes:
            for v in node.inputs.values():
                used.update(x for x in (v if isinstance(v, list) else [v]) if x is not None)
            for a in node.attrs.values():
                used |= a.outer if isinstance(a, Graph) else set()
        return used - mine

    def to_json(self) -> dict[str, Any]:
        return {
            "inputs": [[n, a.to_json()] for n, a in self.inputs],
            "nodes": [n.to_json() for n in self.nodes],
            "outputs": self.outputs,
            "consts": {k: encode_value(np.asarray(v)) for k, v in self.consts.items()},
            **({"meta": encode_value(self.meta)} if self.meta else {}),
        }

    @staticmethod
    def from_json(o: dict[str, Any]) -> Graph:
        return Graph(
            [(n, Arg.from_json(a)) for n, a in o["inputs"]],
            [
                Node(
                    n["op"],
                    n["inputs"],
                    n["outputs"],
                    {k: decode_value(v) for k, v in n["attrs"].items()},
                    n.get("version"),
                )
                for n in o["nodes"]
            ],
            o["outputs"],
            {k: decode_value(v) for k, v in o["consts"].items()},
            decode_value(o.get("meta", {"dict": {}})),
        )


SKIPPED = "@skipped"
SAME = "@same"


@dataclass(slots=True)
class Instance:
    """One case.  dialect/op/version name the ``OpVersion``; the model is built at ``opset``.

    args: slot name -> Arg, or a list of Args (variadic slot).  An optional input that is not given is missing.
    attrs: the dialect's attributes; the model omits a missing one.  Values: int, float, str, bool, lists of these,
        None, ``Graph`` (blocks), NumPy arrays (tensor attributes), DType.  Attributes with a meaning of ours:
        ``SKIPPED``: numbers of optional outputs before the last that are not asked for.  ``SAME``: {slot: another
        slot}, the model gives both one tensor while their arguments are equal (``shared``).
    outs: how many outputs are asked for; optional trailing outputs may be left out.
    rule: None for a valid instance, else the one stated rule that it breaks: a backend must refuse it.
    choices: the recorded draws, for shrinking; not part of the identity.
    reruns: further runs of the same loaded model, in order: slot -> what it gets there instead (other extents or data).
        Other slots keep their argument.
    evaluated: the arrays of the first run and what the reference makes of them, if a generator had to ask.  Only the
        instance straight from the generator has it: a copy has none, and an edit makes it wrong."""

    dialect: str
    op: str
    version: int | str
    opset: int | str
    attrs: dict[str, Any] = field(default_factory=dict)
    args: dict[str, Arg | list[Arg]] = field(default_factory=dict)
    outs: int = 1
    rule: str | None = None
    choices: list[int] | None = None
    reruns: tuple[dict[str, Arg | list[Arg]], ...] = ()
    evaluated: tuple[dict[str, Any], Any] | None = field(default=None, init=False, repr=False, compare=False)

    def tensor(self, slot: str) -> Arg:
        """What a slot of one tensor is given.  Raises KeyError where it is not given, TypeError for a variadic slot."""
        arg = self.args[slot]
        if isinstance(arg, list):
            raise TypeError(f"{self.key}: {slot}: expected one tensor, got {len(arg)}")
        return arg

    def tensors(self, slot: str) -> list[Arg]:
        """What a variadic slot is given, or a slot of one tensor as a list of that; none where it is not given."""
        arg = self.args.get(slot, [])
        return arg if isinstance(arg, list) else [arg]

    def shared(self) -> dict[str, str]:
        """Slot -> the earlier slot whose tensor it is given too; ``slot#k`` is tensor ``k`` of a variadic slot.  What
        was edited since on one side alone is left out."""
        told = self.attrs.get(SAME) or {}
        return {b: a for b, a in told.items() if (x := self._at(a)) is not None and x == self._at(b)}

    def _at(self, name: str) -> Arg | list[Arg] | None:
        """What a slot is given, or one tensor of a variadic one (``slot#k``)."""
        slot, _, k = name.partition("#")
        given = self.args.get(slot)
        if not k or given is None:
            return given
        return given[int(k)] if isinstance(given, list) and int(k) < len(given) else None

    @property
    def key(self) -> str:
        """``dialect/op/version``: the op version this is an instance of."""
        return f"{self.dialect}/{self.op}/{self.version}"

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "format": FORMAT,
            "dialect": self.dialect,
            "op": self.op,
            "version": self.version,
            "opset": self.opset,
            "attrs": {k: encode_value(v) for k, v in self.attrs.items()},
            "args": _args_to_json(self.args),
            "outs": self.outs,
        }
        if self.rule:
            out["rule"] = self.rule
        if self.reruns:
            out["format"] = RERUN_FORMAT
            out["reruns"] = [_args_to_json(r) for r in self.reruns]
        return out

    def dumps(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_json(), separators=(",", ":"), sort_keys=True)

    @property
    def id(self) -> str:
        """Twelve hex digits of the content hash."""
        return hashlib.sha256(self.dumps().encode()).hexdigest()[:12]

    @staticmethod
    def from_json(o: Any) -> Instance:
        """Raises FormatError that says what was expected and what came (``harness.core.forms``)."""
        if not isinstance(o, dict):
            raise FormatError(f"instance: expected a JSON object, got {type(o).__name__}")
        if o.get("format") not in FORMATS:
            raise FormatError(f"instance: expected format {FORMAT} or {RERUN_FORMAT}, got {o.get('format')!r}")
        wrong = wrong_instance(o)
        if wrong is not None:
            raise FormatError(f"instance: {wrong}")
        strange = {slot for r in o.get("reruns", ()) for slot in r} - set(o["args"])
        if strange:
            raise FormatError(f"instance: reruns: expected slots among {sorted(o['args'])}, got {sorted(strange)}")
        return Instance(
            o["dialect"],
            o["op"],
            o["version"],
            o["opset"],
            {k: decode_value(v) for k, v in o["attrs"].items()},
            _args_from_json(o["args"]),
            o.get("outs", 1),
            o.get("rule"),
            reruns=tuple(_args_from_json(r) for r in o.get("reruns", ())),
        )


def _args_to_json(args: dict[str, Arg | list[Arg]]) -> dict[str, Any]:
    return {k: [x.to_json() for x in a] if isinstance(a, list) else a.to_json() for k, a in args.items()}


def _args_from_json(o: dict[str, Any]) -> dict[str, Arg | list[Arg]]:
    return {k: [Arg.from_json(x) for x in a] if isinstance(a, list) else Arg.from_json(a) for k, a in o.items()}


def encode_value(v: Any) -> Any:
    """A JSON form of an attribute or element value; floats that JSON lacks become {"f": hex or name}."""
    if v is None or isinstance(v, (bool, int, str)):
        return v
    if isinstance(v, float):
        return v if v == v and abs(v) != float("inf") else {"f": repr(v)}
    if isinstance(v, (list, tuple)):
        return [encode_value(x) for x in v]
    if isinstance(v, DType):
        return {"dtype": v.name}
    if isinstance(v, Graph):
        return {"graph": v.to_json()}
    if isinstance(v, np.ndarray):
        from harness.core.dtypes import of

        d = of(v)
        if d.kind == "s":
            return {"strings": [encode_value(x) for x in v.ravel().tolist()], "shape": list(v.shape)}
        return {"array": d.name, "shape": list(v.shape), "hex": np.ascontiguousarray(v).tobytes().hex()}
    if isinstance(v, np.generic):
        return encode_value(v.item())
    if isinstance(v, bytes):
        return {"bytes": v.hex()}
    if isinstance(v, complex):
        return {"c": [encode_value(v.real), encode_value(v.imag)]}
    if isinstance(v, dict):
        return {"dict": {k: encode_value(x) for k, x in v.items()}}
    raise TypeError(f"no JSON form for {type(v).__name__}")


def decode_value(v: Any) -> Any:
    """Inverse of ``encode_value``."""
    if isinstance(v, list):
        return [decode_value(x) for x in v]
    if not isinstance(v, dict):
        return v
    if "f" in v:
        return float(v["f"])
    if "dtype" in v:
        return BY_NAME[v["dtype"]]
    if "graph" in v:
        return Graph.from_json(v["graph"])
    if "array" in v:
        return np.frombuffer(bytes.fromhex(v["hex"]), BY_NAME[v["array"]].np).reshape(v["shape"])
    if "strings" in v:
        return np.array([decode_value(x) for x in v["strings"]], object).reshape(v["shape"])
    if "bytes" in v:
        return bytes.fromhex(v["bytes"])
    if "c" in v:
        return complex(decode_value(v["c"][0]), decode_value(v["c"][1]))
    if "dict" in v:
        return {k: decode_value(x) for k, x in v["dict"].items()}
    raise FormatError(f"value: unknown form {sorted(v)}")
