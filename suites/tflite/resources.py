"""What a model keeps besides its tensors: variables, hash tables, and which initialisation has run.

Source: tfl dialect var_handle, read_variable, assign_variable, hashtable*, call_once (the session's initialisation);
schema: a variable's container and shared name, a hash table's number identify it across subgraphs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.core.errors import RuleError, UsageError
from harness.core.instance import Graph


@dataclass(eq=False, slots=True)
class Variable:
    """A tensor that lives as long as the session; value: None before the first assignment."""

    name: tuple[str, str]
    value: np.ndarray | None = None

    def read(self) -> np.ndarray:
        """Raises RuleError where nothing was assigned yet."""
        if self.value is None:
            raise RuleError("assigned-before-read", f"variable {self.name[1]!r} is read before it is assigned")
        return self.value


@dataclass(eq=False, slots=True)
class Table:
    """Keys and values, written once."""

    number: int
    entries: dict[Any, Any] | None = None

    def fill(self, keys: np.ndarray, values: np.ndarray) -> None:
        """The first import counts.  Raises RuleError for a key given twice with different values."""
        if self.entries is not None:
            return
        entries: dict[Any, Any] = {}
        for k, v in zip(map(_plain, keys.ravel().tolist()), values.ravel().tolist()):
            if entries.setdefault(k, v) != v:
                raise RuleError("unique-keys", f"key {k!r} has two values")
        self.entries = entries

    def find(self, keys: np.ndarray, default: np.ndarray) -> np.ndarray:
        """The value of every key, in the shape of ``keys``; the default where there is none."""
        other = default.ravel().tolist()[0]
        have = self.entries or {}
        out = np.empty(keys.size, default.dtype)
        out[:] = [have.get(_plain(k), other) for k in keys.ravel().tolist()]
        return out.reshape(keys.shape)


def _plain(key: Any) -> Any:
    """A key as the file has it: text is bytes there."""
    return key.encode() if isinstance(key, str) else key


def identity(graph: Graph) -> str:
    """Blocks of the same content are one subgraph: an instance that went through JSON holds copies."""
    return json.dumps(graph.to_json(), sort_keys=True)


@dataclass
class Store:
    """The resources of one session."""

    variables: dict[tuple[str, str], Variable] = field(default_factory=dict)
    tables: dict[int, Table] = field(default_factory=dict)
    initialised: set[str] = field(default_factory=set)

    def variable(self, container: str, name: str) -> Variable:
        return self.variables.setdefault((container, name), Variable((container, name)))

    def table(self, number: int) -> Table:
        return self.tables.setdefault(number, Table(number))

    def first_time(self, graph: Graph) -> bool:
        """Has this initialisation not run yet?  Marks it as run."""
        key = identity(graph)
        new = key not in self.initialised
        self.initialised.add(key)
        return new


_CURRENT: ContextVar[Store | None] = ContextVar("resources", default=None)


@contextmanager
def using(store: Store) -> Iterator[Store]:
    """What is evaluated inside keeps its resources in ``store``."""
    token = _CURRENT.set(store)
    try:
        yield store
    finally:
        _CURRENT.reset(token)


def current() -> Store:
    """Raises UsageError outside of a session."""
    store = _CURRENT.get()
    if store is None:
        raise UsageError("tflite: variables and hash tables need a session; use run_model or Session")
    return store
