"""Small TFLite programs: how they are written down and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from harness.core.dtypes import F32, DType, of
from harness.core.instance import Arg, Graph, Instance
from harness.core.quiet import quiet
from harness.declare import Draw, OpVersion, T
from harness.generate.recipes import materialize
from suites import programs
from suites.programs import Language
from suites.tflite import dialect as tflite
from suites.tflite.quantisation import draw_quant
from suites.tflite.schemas import number_of

__all__ = ["LANGUAGE", "Program", "V", "declare_tensors", "quantised_inputs"]

Quant = dict[str, Any] | None
LANGUAGE = Language(tflite)
_LEAST = {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 6, "ADD": 2, "SUB": 2, "MUL": 2}  # i8, no bias


class V(NamedTuple):
    """A value under construction.  quant: its scale and zero point; None of floats."""

    name: str
    shape: tuple[int, ...]
    dtype: DType = F32
    quant: Quant = None


class Program(programs.Program):
    """A program under construction: ``p.given``, ``p.weight`` and ``p.step`` give values, ``p.end`` ends it.

    What is known of values beside their elements stands in ``meta["tensors"]``: type, shape and quantisation, as in a
    parsed model."""

    def __init__(self, d: Draw) -> None:
        super().__init__(d, F32)
        self.told: dict[str, dict[str, Any]] = {}
        self.g.meta["tensors"] = self.told

    def literal(self, value: Any) -> np.ndarray:
        """Floats are f32, integers i32; arrays keep another type."""
        a = np.asarray(value)
        return a.astype({np.dtype(np.float64): np.float32, np.dtype(np.int64): np.int32}.get(a.dtype, a.dtype))

    def entry(self, shape: Sequence[int], dtype: DType = F32) -> V:
        """A run-time input: of floats, or quantised."""
        quant = draw_quant(self.d, dtype) if dtype is not F32 else None
        name = self.input(shape, "full" if quant else None, dtype)
        if quant:
            self.told[name] = {"dtype": dtype, "quant": quant}
        return V(name, tuple(shape), dtype, quant)

    def weight(self, value: np.ndarray, quant: Quant = None) -> V:
        """A constant, quantised where it is said."""
        name = self.const(value)
        held = self.g.consts[name]
        if quant:
            self.told[name] = {"dtype": of(held), "quant": quant}
        return V(name, held.shape, of(held), quant)

    def step(
        self,
        op: str,
        operands: Mapping[str, V | list[V]],
        attrs: dict[str, Any],
        dtype: DType = F32,
        quant: Quant = None,
    ) -> V:
        """A node of the newest version of its op, in its quantised form where its first operand is quantised.  dtype,
        quant: of the result."""
        slots = {k: [x.name for x in v] if isinstance(v, list) else v.name for k, v in operands.items()}
        first = next(iter(operands.values()))
        first = first[0] if isinstance(first, list) else first
        domain = "quantised" if first.quant else ""
        version = self._version(op, domain, dtype)
        stated = {k: v for k, v in attrs.items() if v is not None}
        name = self.node(op, slots, {**stated, **({"@domain": domain} if domain else {})})
        self.g.nodes[-1].version = version.version
        self.told[name] = {"dtype": dtype, **({"quant": quant} if quant else {})}
        scope = LANGUAGE.run(self.g, self._sample(), 1)
        return V(name, scope[name].shape, dtype, quant)

    def _version(self, op: str, domain: str, dtype: DType) -> OpVersion:
        """The newest version of an op, or most often the oldest one of this form that has all that is used here."""
        newest = tflite.effective(op, 1, domain)
        if self.d.chance(4):
            return newest
        every = [v for v in tflite.versions.values() if v.op == op and v.schema.domain == domain]
        least = _LEAST.get(op, 1)
        fitting = [
            v for v in every if number_of(v.version) >= least and dtype in v.schema.dtypes(v.schema.outputs[0].element)
        ]
        return min(fitting, key=lambda v: number_of(v.version), default=newest)

    def _sample(self) -> list[np.ndarray]:
        with quiet:
            return [np.zeros(t.shape, (t.dtype or F32).np) for t in self.tensors]

    def end(self, *outputs: V, pattern: str = "match") -> dict[str, Any]:
        """What the generator of an entry returns."""
        declare_tensors(self.g, self.tensors)
        return self.finished([v.name for v in outputs], pattern)


def declare_tensors(g: Graph, inputs: Sequence[T]) -> None:
    """State type and shape of every result, as converters do: delegates read them before any kernel prepares."""
    with quiet:
        scope = LANGUAGE.run(g, [_filled(t) for t in inputs], 1)
    told: dict[str, dict[str, Any]] = dict(g.meta["tensors"])
    for node in g.nodes:
        for name in node.outputs:
            value = np.asarray(scope[name])
            told[name] = {**told.get(name, {}), "dtype": of(value), "shape": list(value.shape)}
    g.meta["tensors"] = told


def _filled(t: T) -> np.ndarray:
    assert t.dtype is not None
    if t.values is not None:
        return np.array(t.values, t.dtype.np).reshape(t.shape)
    return np.asarray(materialize(Arg(t.dtype, tuple(t.shape), False, t.recipe or "unit", 1)))


def quantised_inputs(inst: Instance) -> Instance:
    """The instance with the scales of its inputs at their arguments."""
    told = inst.attrs["program"].meta.get("tensors", {})
    args = [replace(a, quant=told.get(f"p{i}", {}).get("quant")) for i, a in enumerate(inst.tensors("inputs"))]
    return replace(inst, args={**inst.args, "inputs": args})
