"""Markers: one per opset, op family, dialect and backend; all registered, unknown ones refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from harness.backends import registry as backends
from harness.core.errors import OpconformError
from harness.declare import registry
from harness.declare.op_version import OpVersion

_WORDS = re.compile(r"[A-Za-z_][\w]*")
_BUILTIN = {"not", "and", "or", "True", "False"}


def register(config: pytest.Config) -> None:
    """Register our markers, then refuse expressions that use unknown ones."""
    try:
        opsets = registry.opset_markers()
    except OpconformError as e:
        raise pytest.UsageError(str(e)) from None
    for name, (dialect, opset) in opsets.items():
        config.addinivalue_line("markers", f"{name}: op versions in force at {dialect} {opset}, models built there")
    for name in sorted(families()):
        config.addinivalue_line("markers", f"{name}: op family")
    for name in registry.names():
        if name not in opsets:
            config.addinivalue_line("markers", f"{name}: everything of this dialect")
    for name in dict.fromkeys([*backends.names(), *config.getoption("--backend")]):
        config.addinivalue_line("markers", f"{marker(name)}: runs on backend {name}")
    config.addinivalue_line("markers", "conformance: a generated test of an op version on a backend")
    _refuse_unknown(config)


def families() -> set[str]:
    """Families of all dialects: the modules of their ``ops`` packages."""
    return {marker(e.family) for n in registry.names() for e in registry.dialect(n).entries}


def marker(name: str) -> str:
    """A name as a marker."""
    return re.sub(r"\W", "_", name)


def of(v: OpVersion, backend: str) -> list[str]:
    """Markers of one item."""
    d = v.dialect.name
    return [*(v.dialect.marker(o) for o in v.opsets), d, marker(v.family), marker(backend), "conformance"]


def chosen_opset(config: pytest.Config, dialect: str) -> Any:
    """The opset at which models are built: the one that ``-m`` names for this dialect, if exactly one; else None."""
    known = registry.opset_markers()
    words = {w for w in _WORDS.findall(config.option.markexpr or "") if known.get(w, ("",))[0] == dialect}
    return known[words.pop()][1] if len(words) == 1 else None


def _refuse_unknown(config: pytest.Config) -> None:
    text = config.option.markexpr or ""
    known = {line.split(":")[0].split("(")[0].strip() for line in config.getini("markers")}
    for word in _WORDS.findall(re.sub(r"\([^()]*=[^()]*\)", "", text)):
        if word not in known and word not in _BUILTIN:
            hint = registry.near(word, sorted(known))
            raise pytest.UsageError(f"-m: unknown marker {word!r}{hint}; `pytest --markers` lists them")


def without_modules(config: pytest.Config) -> frozenset[str]:
    """The words of ``-m``, where it asks for generated tests alone: an expression of our markers that is false without
    them.  Empty elsewhere."""
    text = config.option.markexpr or ""
    words = frozenset(_WORDS.findall(text)) - _BUILTIN
    if not words or not re.fullmatch(r"[\w\s()]+", text):
        return frozenset()
    ours = {*registry.opset_markers(), *families(), *registry.names(), "conformance"}
    ours |= {marker(n) for n in (*backends.names(), *config.getoption("--backend"))}
    try:
        alone = words <= ours and not eval(text, {"__builtins__": {}}, dict.fromkeys(words, False))
    except SyntaxError:  # pytest says so
        return frozenset()
    return words if alone else frozenset()
