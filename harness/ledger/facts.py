"""What the condition of a known difference may ask of a case and, once it is judged, of the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from harness.cases.case import Case
from harness.cases.instance_view import InstanceView
from harness.cases.result import Result
from harness.core.dtypes import of, smallest_normal
from harness.core.instance import Arg, Graph
from harness.declare import registry

# What only a verdict tells.
OUTCOME = {"ulp", "error", "factor", "share", "clamped", "wrong_pairs", "wrong_at", "which", "actual_shape", "zeroed"}
_VALUES = {"opset", "version", "dtype", "outs", "rule", "runs", "slots", "expected_shape"} | OUTCOME
_ASKS = {
    "attr",
    "has",
    "rank",
    "shape",
    "size",
    "dtype_of",
    "const",
    "recipe",
    "any_nan",
    "any_inf",
    "any_negative",
    "any_zero",
    "any_negative_zero",
    "any_subnormal",
    "lowest",
    "highest",
    "prod",
    "scales",
    "steps",
    "zero_points",
    "dynamic",
    "encoding",
    "unread",
    "elements",
    "ops",
    "returns",
    "outer",
    "operands",
    "made",
}
PREDICATES = _VALUES | _ASKS


class Facts(Mapping[str, Any]):
    """Names of a condition, computed when asked for."""

    def __init__(self, case: Case, plain: Mapping[str, Any], result: Result | None = None) -> None:
        self.view = InstanceView(case, result.draw if result is not None else 0)  # of the run that went wrong
        self.inst, self.plain, self.judged = self.view.inst, plain, result

    def __getitem__(self, name: str) -> Any:
        if name in self.plain:
            return self.plain[name]
        if name == "attr":
            return self.view.attr
        if name in _ASKS:
            return getattr(self, "_" + name)
        if name in ("wrong_pairs", "wrong_at", "which", "actual_shape"):
            return self._of_wrong(name)
        if name == "expected_shape":
            return self._due()
        if name == "zeroed":
            came, due = self["actual_shape"], self["expected_shape"]
            return came != due and len(came) == len(due) and all(c in (0, d) for c, d in zip(came, due))
        if name in OUTCOME:
            return self._diff(name)
        if name == "dtype":
            return self.view.case.dtype_name
        if name == "runs":
            return 1 + self.view.run
        if name == "slots":
            return self._slots()
        if name in _VALUES:
            return getattr(self.inst, name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(PREDICATES)

    def __len__(self) -> int:
        return len(PREDICATES)

    def _diff(self, name: str) -> float:
        j = self.judged.judgement if self.judged is not None else None
        diff = j.numbers() if j is not None else {}
        if name == "share":
            return diff["count"] / max(1, diff["size"]) if diff.get("size") else 0.0
        if name == "clamped":
            return float(diff.get("clamped", 0.0))
        key = {"ulp": "max_ulp", "error": "wrong_abs", "factor": "factor"}[name]
        value = diff.get(key)
        return float("inf") if value is None else float(value)

    def _of_wrong(self, name: str) -> Any:
        j = self.judged.judgement if self.judged is not None else None
        if name == "which":
            return j.output if j is not None else 0
        if name == "actual_shape":
            return j.came() if j is not None else ()
        pairs, places = j.wrong() if j is not None else ([], [])
        return pairs if name == "wrong_pairs" else places

    def _due(self) -> tuple[int, ...]:
        """Shape of the wrong output, the first where none is, as it is expected; empty where there is none."""
        row = self.view.expected
        return tuple(getattr(row[min(self["which"], len(row) - 1)].value, "shape", ())) if row else ()

    # -- the instance

    def _unread(self, name: str) -> int:
        """Inputs of the graph in an attribute that are no output of it and that none of its nodes reads."""
        g = self.inst.attrs.get(name)
        if not isinstance(g, Graph):
            return 0
        read: set[str | None] = set(g.outputs)
        for node in g.nodes:
            for v in node.inputs.values():
                read.update(v if isinstance(v, list) else [v])
        return sum(n not in read for n, _ in g.inputs)

    def _returns(self, name: str) -> list[int | None]:
        """Of each output of the graph in an attribute: the number of the parameter that it is, -1 where it is a
        constant, None where a node makes it."""
        g = self.inst.attrs.get(name)
        if not isinstance(g, Graph):
            return []
        given = {n: i for i, (n, _) in enumerate(g.inputs)}
        return [given.get(o, -1 if o in g.consts else None) for o in g.outputs]

    def _operands(self, name: str) -> list[tuple[int, ...]]:
        """Of each output of the graph in an attribute: the numbers of the parameters that the node reads which makes
        it, in the order of its operands, -1 for what is no parameter."""
        g = self.inst.attrs.get(name)
        if not isinstance(g, Graph):
            return []
        given = {n: i for i, (n, _) in enumerate(g.inputs)}
        makers = {o: node for node in g.nodes for o in node.outputs}
        read = [
            [x for v in makers[o].inputs.values() for x in (v if isinstance(v, list) else [v])] if o in makers else []
            for o in g.outputs
        ]
        return [tuple(given.get(x, -1) if x is not None else -1 for x in row) for row in read]

    def _made(self, op: str) -> list[tuple[int, ...]]:
        """The shapes of what the nodes of an op give in a program, of the first result of each."""
        program = self.view.case.version.dialect.unfold(self.inst, self.view.arrays)
        if program is None:
            return []
        scope, found = dict(program.values), []
        for k, names in enumerate(program.names):
            node = program.node(k, scope)
            row = Case(registry.version_of(node), node, 0).expected
            if row is None:
                break
            scope.update(zip(names, (e.value for e in row[0])))
            if node.op == op:
                found.append(np.shape(row[0][0].value))
        return found

    def _outer(self, name: str) -> list[str]:
        """The names that the graph in an attribute reads of the graph around it, in blocks of its own too."""
        g = self.inst.attrs.get(name)
        return sorted(g.outer) if isinstance(g, Graph) else []

    def _ops(self, name: str) -> list[str]:
        """The ops of the nodes of the graph in an attribute, in order."""
        g = self.inst.attrs.get(name)
        return [n.op for n in g.nodes] if isinstance(g, Graph) else []

    def _arg(self, slot: str, index: int = 0) -> Arg | None:
        a: Any = self.inst.args.get(slot)
        if isinstance(a, list):
            a = a[index] if index < len(a) else None
        return a

    def _slots(self) -> list[tuple[str, int]]:
        """Slot and index of every tensor; a sequence or an optional is no tensor."""
        out = []
        for slot, given in self.inst.args.items():
            for i, a in enumerate(given if isinstance(given, list) else [given]):
                if isinstance(a, Arg):
                    out.append((slot, i))
        return out

    def _has(self, slot: str) -> bool:
        return slot in self.inst.args

    def _shape(self, slot: str, index: int = 0) -> tuple[int, ...]:
        a = self._arg(slot, index)
        return tuple(a.shape) if a is not None else ()

    def _rank(self, slot: str, index: int = 0) -> int:
        return len(self._shape(slot, index))

    def _size(self, slot: str, index: int = 0) -> int:
        return self._prod(self._shape(slot, index))

    @staticmethod
    def _prod(values: Any) -> int:
        return int(np.prod(list(values), dtype=np.int64))

    def _dtype_of(self, slot: str, index: int = 0) -> str | None:
        a = self._arg(slot, index)
        held = self.inst.attrs.get(slot)
        return str(a.dtype) if a is not None else str(of(held)) if isinstance(held, np.ndarray) else None

    def _const(self, slot: str, index: int = 0) -> bool:
        a = self._arg(slot, index)
        return a is not None and a.const

    def _dynamic(self, slot: str, index: int = 0) -> bool:
        a = self._arg(slot, index)
        return a is not None and bool(a.dynamic)

    def _encoding(self, slot: str, index: int = 0) -> str:
        """How a constant is written in the model; "" for the usual way."""
        a = self._arg(slot, index)
        return a.encoding if a is not None else ""

    def _scales(self, slot: str, index: int = 0) -> int:
        a = self._arg(slot, index)
        return len(a.quant["scale"]) if a is not None and a.quant else 0

    def _steps(self, slot: str, index: int = 0) -> tuple[float, ...]:
        a = self._arg(slot, index)
        return tuple(a.quant["scale"]) if a is not None and a.quant else ()

    def _zero_points(self, slot: str, index: int = 0) -> tuple[int, ...]:
        a = self._arg(slot, index)
        return tuple(a.quant["zero_point"]) if a is not None and a.quant else ()

    def _recipe(self, slot: str, index: int = 0) -> str | None:
        a = self._arg(slot, index)
        return a.recipe if a is not None and a.values is None else None

    # -- the values

    def _arrays(self, slot: str | None) -> list[np.ndarray]:
        return [a for name, v in self.view.arrays.items() if slot is None or name == slot for a in _arrays_in(v)]

    def _elements(self, slot: str, index: int | None = None) -> list[Any]:
        arrays = self._arrays(slot)
        return [x for a in (arrays if index is None else arrays[index : index + 1]) for x in a.ravel().tolist()]

    def _some(self, slot: str | None, test: Callable[[np.ndarray], Any], floats: bool = False) -> bool:
        for a in self._arrays(slot):
            kind = of(a).kind
            if kind == "s" or (floats and kind != "f"):
                continue
            with np.errstate(invalid="ignore"):
                if bool(np.any(test(a.astype(np.float64) if kind == "f" else a))):
                    return True
        return False

    def _any_nan(self, slot: str | None = None) -> bool:
        return self._some(slot, np.isnan, True)

    def _any_inf(self, slot: str | None = None) -> bool:
        return self._some(slot, np.isinf, True)

    def _any_negative(self, slot: str | None = None) -> bool:
        return self._some(slot, lambda a: a < 0)

    def _any_zero(self, slot: str | None = None) -> bool:
        return self._some(slot, lambda a: a == 0)

    def _any_negative_zero(self, slot: str | None = None) -> bool:
        return self._some(slot, lambda a: (a == 0) & np.signbit(a), True)

    def _any_subnormal(self, slot: str | None = None) -> bool:
        for a in self._arrays(slot):
            d = of(a)
            if d.kind == "f":
                m = np.abs(a.astype(np.float64))
                if bool(np.any((m > 0) & (m < smallest_normal(d)))):
                    return True
        return False

    def _finite(self, slot: str | None) -> list[Any]:
        out: list[Any] = []
        for a in self._arrays(slot):
            kind = of(a).kind
            if kind in "iub" and a.size:
                out += [int(a.min()), int(a.max())]
            elif kind == "f" and a.size:
                w = a.astype(np.float64)
                w = w[np.isfinite(w)]
                out += [float(w.min()), float(w.max())] if w.size else []
        return out

    def _lowest(self, slot: str | None = None) -> float:
        return min(self._finite(slot), default=float("inf"))

    def _highest(self, slot: str | None = None) -> float:
        return max(self._finite(slot), default=float("-inf"))


def _arrays_in(v: Any) -> list[np.ndarray]:
    """The arrays of a value: itself, or those of a list, however deep."""
    if isinstance(v, (list, tuple)):
        return [a for x in v for a in _arrays_in(x)]
    return [v] if isinstance(v, np.ndarray) else []
