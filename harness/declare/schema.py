"""Facts per op version, as extracted from the upstream package into ``suites/<dialect>/schema.json``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.core.dtypes import BY_NAME, DType
from harness.core.errors import FormatError

_CONTAINER = re.compile(r"^(seq|optional|list|state|map|sparse)\((.*)\)$")


@dataclass(frozen=True)
class Slot:
    """A formal input or output.  type: a key of ``OpSchema.types``, a dtype name, or a container such as ``seq(T)``.
    const: must be known when the model is built."""

    name: str
    type: str
    optional: bool = False
    variadic: bool = False
    const: bool = False
    doc: str = ""

    @cached_property
    def container(self) -> str | None:
        m = _CONTAINER.match(self.type)
        return m.group(1) if m else None

    @cached_property
    def element(self) -> str:
        """The type inside the container, if any."""
        m = _CONTAINER.match(self.type)
        return m.group(2) if m else self.type


@dataclass(frozen=True)
class Attr:
    """A formal attribute.  default None and not required: no default is stated."""

    name: str
    type: str
    required: bool = False
    default: Any = None
    enum: tuple[str, ...] | None = None


@dataclass(frozen=True)
class OpSchema:
    """One op version: where it is effective (first_opset..last_opset of the dialect's list), slots, attributes,
    types."""

    op: str
    version: int | str
    first_opset: int | str
    last_opset: int | str
    domain: str
    deprecated: bool
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    attrs: dict[str, Attr]
    types: dict[str, tuple[str, ...]]
    extra: dict[str, Any]

    @cached_property
    def _by_name(self) -> dict[str, Slot]:
        return {s.name: s for s in self.inputs}

    def input(self, name: str) -> Slot | None:
        return self._by_name.get(name)

    @property
    def refusable(self) -> str | None:
        """Why a runtime may refuse every model with this op version; None where it may not.  ``extra["left"]`` is the
        day on which an op left the list before the first release of the operator set."""
        if self.deprecated:
            return "deprecated at this version"
        return "in no released operator set" if "left" in self.extra else None

    def dtypes(self, type_name: str) -> tuple[DType, ...]:
        """Element types that a type name admits (containers and types of other worlds left out)."""
        names = self.types.get(type_name, (type_name,))
        return tuple(BY_NAME[n] for n in names if n in BY_NAME)


_KNOWN = {"op", "domain", "version", "first_opset", "last_opset", "deprecated", "inputs", "outputs", "attrs", "types"}


def load(path: Path) -> list[OpSchema]:
    """Read a schema.json; raises FormatError."""
    try:
        data = json.loads(path.read_text())
        return [_one(o) for o in data["ops"]]
    except (OSError, KeyError, ValueError, TypeError) as e:
        raise FormatError(f"{path}: not a schema file: {type(e).__name__}: {e}") from e


def _one(o: dict[str, Any]) -> OpSchema:
    def slots(items: list[dict[str, Any]]) -> tuple[Slot, ...]:
        return tuple(
            Slot(s["name"], s["type"], s.get("optional", False), s.get("variadic", False), s.get("const", False))
            for s in items
        )

    attrs = {
        a["name"]: Attr(
            a["name"],
            a["type"],
            a.get("required", False),
            a.get("default"),
            tuple(a["enum"]) if a.get("enum") else None,
        )
        for a in o.get("attrs", ())
    }
    return OpSchema(
        o["op"],
        o["version"],
        o["first_opset"],
        o["last_opset"],
        o.get("domain", ""),
        o.get("deprecated", False),
        slots(o["inputs"]),
        slots(o["outputs"]),
        attrs,
        {k: tuple(v) for k, v in o.get("types", {}).items()},
        {k: v for k, v in o.items() if k not in _KNOWN},
    )
