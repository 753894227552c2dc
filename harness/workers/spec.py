"""Where a backend class is, and where and how its worker processes are started."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from harness.core.errors import OpconformError, UsageError
from harness.core.escape import shell
from harness.workers.unwritten import PATTERNS


class BackendError(OpconformError):
    """A backend cannot be started.  missing: the package that is not installed, if that is why."""

    def __init__(self, text: str, missing: str | None = None) -> None:
        super().__init__(text)
        self.missing = missing


@dataclass(frozen=True)
class Place:
    """Where the workers of a run live.  python: another interpreter.  cpu: the name of a processor (those of
    ``qemu-x86_64 -cpu help``) that qemu-user emulates for them, so that kernels for other machines are reached.
    claims: a file with claims, which take the place of those of the backend.  named: the same for some backends: rows
    of a field's name, a pattern of backends, and the value."""

    python: str | None = None
    cpu: str | None = None
    claims: str | None = None
    named: tuple[tuple[str, str, str], ...] = ()

    def of(self, name: str) -> Place:
        """The place of one backend."""
        if not self.named:
            return self
        own = {what: value for what, pattern, value in self.named if name == pattern or fnmatchcase(name, pattern)}
        return replace(self, named=(), **own)

    def to_json(self) -> dict[str, Any]:
        """What two runs in one place have in common."""
        more = {"claims": self.claims, "named": [list(row) for row in self.named]}
        return {"python": self.python, "cpu": self.cpu, **{k: v for k, v in more.items() if v}}

    def command(self) -> list[str]:
        """What starts an interpreter there.  Raises BackendError where the emulator is not to be had."""
        python = self.python or sys.executable
        if self.cpu is None:
            return [python]
        emulator = f"qemu-{platform.machine()}"
        if sys.platform != "linux" or shutil.which(emulator) is None:
            raise BackendError(f"--backend-cpu {self.cpu}: needs Linux and {emulator} (package qemu-user)")
        return [emulator, "-cpu", self.cpu, python]

    @property
    def options(self) -> str:
        """The same on a command line, a blank before each."""
        given = [("--backend-python", self.python), ("--backend-cpu", self.cpu), ("--claims", self.claims)]
        flags = {"python": "--backend-python", "claims": "--claims"}
        given += [(flags[what], f"{pattern}={value}") for what, pattern, value in self.named]
        return "".join(f" {name} {shell(v)}" for name, v in given if v is not None)


HERE_ONLY = Place()


def placed_at(pythons: Sequence[str], cpu: str | None, claims: Sequence[str], names: Sequence[str] = ()) -> Place:
    """The place that the options state; a value may have a backend's name or a pattern before it, ``NAME=VALUE``.
    names: of the backends that are asked for.  Raises UsageError."""
    plain: dict[str, str | None] = {"python": None, "claims": None}
    named = []
    for what, flag, values in (("python", "--backend-python", pythons), ("claims", "--claims", claims)):
        for text in values:
            pattern, same, value = text.rpartition("=")
            if same and not os.path.exists(text):
                named.append((what, pattern, os.path.abspath(value) if what == "claims" else value))
                continue
            if plain[what] is not None:
                raise UsageError(f"{flag}: expected once without a name, got {plain[what]} and {text}")
            plain[what] = os.path.abspath(text) if what == "claims" else text
    if plain["claims"] is not None and len(names) != 1:
        raise UsageError(f"--claims {claims[0]}: expected one --backend, or NAME=FILE for each, got {len(names)}")
    return Place(plain["python"], cpu, plain["claims"], tuple(named))


@dataclass(frozen=True)
class Spec:
    """Where a backend class is and how to create it.

    file or module: the source.  cls: its name.  kwargs: of the constructor.
    place: where its processes live.  env: more environment variables.  memory: address space of a worker, bytes.
    unwritten: which pattern its memory holds before it is written to (``harness.workers.unwritten``).
    on_request: it is run when asked for by name only.  claims: attributes that take the place of the backend's own.
    """

    name: str
    cls: str
    file: str | None = None
    module: str | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)
    place: Place = HERE_ONLY
    env: dict[str, str] = field(default_factory=dict)
    memory: int = 8 << 30
    cap: int = 1 << 28
    unwritten: int = 0
    on_request: bool = False
    claims: dict[str, Any] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that its processes are started with."""
        return {**PATTERNS[self.unwritten], **self.env}

    def config(self, log: int, page: int, mark: str) -> str:
        fork = sys.platform == "linux" and self.place.cpu is None  # qemu-user does not always survive one
        path = [os.getcwd()] if self.place.python else [p or os.getcwd() for p in sys.path]
        if self.name.startswith(f"{self.module}:"):  # asked for as module:Class: also of a file in this folder
            path.append(os.getcwd())
        return json.dumps(
            {
                "file": self.file,
                "module": self.module,
                "class": self.cls,
                "kwargs": self.kwargs,
                "path": path,
                "log": log,
                "page": page,
                "mark": mark,
                "memory": self.memory,
                "cap": self.cap,
                "fork": fork,
            }
        )
