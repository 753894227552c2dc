"""Where a backend class is, and where and how its worker processes are started."""

from __future__ import annotations

import argparse
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
from harness.workers.unwritten import HEAP, PATTERNS


class BackendError(OpconformError):
    """A backend cannot be started.  missing: the package that is not installed, if that is why."""

    def __init__(self, text: str, missing: str | None = None) -> None:
        super().__init__(text)
        self.missing = missing


@dataclass(frozen=True)
class Place:
    """Where the workers of a run live.

    python: another interpreter.
    cpu: a processor, by a name of ``qemu-x86_64 -cpu help``, that qemu-user emulates; so kernels for other machines are
        reached.
    claims: a file with claims, in place of those of the backend.
    named: the same for some backends: rows of a field's name, a pattern of backends, and the value.
    deadline: seconds for one model; None: the default.
    memory: GiB of a worker; None: as the backend's ``Spec`` says.
    """

    python: str | None = None
    cpu: str | None = None
    claims: str | None = None
    named: tuple[tuple[str, str, str], ...] = ()
    deadline: float | None = None
    memory: float | None = None

    def of(self, name: str) -> Place:
        """The place of one backend."""
        if not self.named:
            return self
        own: dict[str, Any] = {
            what: value for what, pattern, value in self.named if name == pattern or fnmatchcase(name, pattern)
        }
        return replace(self, named=(), **own)

    def to_json(self) -> dict[str, Any]:
        """What two runs in one place have in common."""
        more: dict[str, Any] = {"claims": self.claims, "named": [list(row) for row in self.named]}
        more |= {"deadline": self.deadline, "memory": self.memory}
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
        limits = (("--deadline", self.deadline), ("--memory", self.memory))
        given += [(name, f"{v:g}") for name, v in limits if v is not None]
        return "".join(f" {name} {shell(v)}" for name, v in given if v is not None)


HERE_ONLY = Place()


def above_zero(text: str) -> float:
    """A number above 0, not infinite."""
    try:
        s = float(text)
    except ValueError:
        s = -1.0
    if not 0 < s < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text}")
    return s


# Options that the command line and pytest share: limits of a worker process.
LIMITS: dict[str, dict[str, Any]] = {
    "--deadline": {"type": above_zero, "metavar": "S", "help": "seconds for one model, its load and its runs (20)"},
    "--memory": {"type": above_zero, "metavar": "GIB", "help": "memory of a worker process in GiB (8)"},
}


def placed_at(
    pythons: Sequence[str],
    cpu: str | None,
    claims: Sequence[str],
    names: Sequence[str] = (),
    deadline: float | None = None,
    memory: float | None = None,
) -> Place:
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
    return Place(plain["python"], cpu, plain["claims"], tuple(named), deadline, memory)


@dataclass(frozen=True)
class Spec:
    """Where a backend class is and how to create it.

    file, module: its source, one of the two.  cls: its name.
    kwargs: of the constructor.
    place: where its processes run.
    env: more environment variables.
    memory: limit of a worker in bytes (``--memory``).
    unwritten: the pattern that its memory holds before it is written to (``harness.workers.unwritten``).
    on_request: it runs only when the user names it.
    claims: attributes that take the place of the backend's own.
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
        return {**HEAP, **PATTERNS[self.unwritten], **self.env}

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
                "memory": self.memory if self.place.memory is None else round(self.place.memory * (1 << 30)),
                "cap": self.cap,
                "fork": fork,
            }
        )
