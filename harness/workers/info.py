"""What a backend declares of itself: one typed record, checked once, when its worker process greets the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from harness.core.dtypes import BY_NAME
from harness.core.errors import FormatError
from harness.core.form_check import Form, fields, kind, listed, maybe, that
from harness.tolerance.claimed import NONE, Accuracy
from harness.workers.claims import EVERYTHING, Claims, absolute, claims_of, limits


@dataclass(frozen=True)
class BackendInfo:
    """What a backend says of itself and of its arithmetic.

    name: in records and reports.  version: of the runtime.
    formats: of the models that it takes.
    family: a name that it shares with the backends of the same code.
    python, numpy: versions in its process.
    more: further facts, for the report alone.

    Claims:

    claims: instances beyond them are neither drawn nor counted.
    oldest_opset, opset: the oldest and the newest that it takes; None: nothing said.
    dtypes: the element types that it takes; None: all.
    validates: does it claim to reject models that break a rule?

    Opsets and dtypes that ``info()`` tells are no claims: an instance beyond them may be rejected.

    Arithmetic:

    acc: {element type: type that sums are kept in}.
    flushes: element types whose subnormals it may flush to zero.
    absolute: {pattern of ops: error of its approximation beside the tolerance}; the error is a number, or the fields of
        ``harness.tolerance.claimed.Accuracy``.
    cpu: features of its processor (``harness.workers.worker.processor``), empty where that is not told.

    Handling:

    pack: instances for one model, or {format: instances}.
    isolate_dtypes: element types whose instances get models of their own.
    recycle: models after which a fresh process takes over; None: never for that alone.
    path_kinds: the paths (kernels, delegates) that it may take and tell.
    paths_every: one case of an op version in so many is asked for its path.

    Relations:

    target_dialect: it is given each instance as a model of that dialect.
    known_as: further names under which known differences list its runtime.
    front_end: the runtime that loads its models and computes nothing.  A listed difference of that runtime holds here
        only if it happens at loading.
    leaves_to: the backend that computes the nodes of a program that this one, a delegate, does not take; or that infers
        types from all extents.
    """

    name: str
    version: str = ""
    _: KW_ONLY
    formats: tuple[str, ...] = ()
    family: str = ""
    claims: Claims = EVERYTHING
    oldest_opset: int | None = None
    opset: int | None = None
    dtypes: frozenset[str] | None = None
    validates: bool = True
    acc: Mapping[str, str] = field(default_factory=dict)
    flushes: tuple[str, ...] = ()
    absolute: Mapping[str, float | Mapping[str, float]] = field(default_factory=dict)
    cpu: tuple[str, ...] = ()
    pack: int | Mapping[str, int] = 1
    isolate_dtypes: frozenset[str] = frozenset()
    recycle: int | None = None
    path_kinds: tuple[str, ...] = ()
    paths_every: int = 32
    target_dialect: str | None = None
    known_as: tuple[str, ...] = ()
    front_end: str | None = None
    leaves_to: str | None = None
    python: str = ""
    numpy: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    def pack_size(self, fmt: str) -> int:
        """Number of instances for one model of a format."""
        return self.pack if isinstance(self.pack, int) else self.pack.get(fmt, 1)

    def beyond(self, opset: Any) -> bool:
        """Is this opset above the newest that it claims?  One that is no number (MIL) is above none."""
        return self.opset is not None and isinstance(opset, int) and opset > self.opset

    def below(self, opset: Any) -> bool:
        """Is this opset below the oldest that it claims?"""
        return self.oldest_opset is not None and isinstance(opset, int) and opset < self.oldest_opset

    def accuracy(self, dialect: str, op: str) -> Accuracy:
        """The accuracy that it claims for an op beside the tolerance."""
        out = NONE
        for pattern, x in self.absolute.items():
            if fnmatchcase(op, pattern) or fnmatchcase(f"{dialect}/{op}", pattern):
                out = out.larger(Accuracy(**x) if isinstance(x, Mapping) else Accuracy(x))
        return out

    def told(self) -> dict[str, Any]:
        """The part that the first record of a run holds."""
        claims = {
            "oldest_opset": self.oldest_opset,
            "opset": self.opset,
            "validates": None if self.validates else False,
            "dtypes": None if self.dtypes is None else sorted(self.dtypes),
            "target_dialect": self.target_dialect,
            "known_as": list(self.known_as) or None,
            "front_end": self.front_end,
            "leaves_to": self.leaves_to,
            "path_kinds": list(self.path_kinds) or None,
            "claims": self.claims.to_json() or None,
            "absolute": dict(self.absolute) or None,
        }
        info = {**{k: v for k, v in claims.items() if v is not None}, **self.more}
        return {"version": self.version, "formats": list(self.formats), "python": self.python, "info": info}


def _count(value: Any) -> bool:
    return type(value) is int and value > 0


_TEXT = kind("a string", str)
_DTYPE = that(f"a name among {' '.join(BY_NAME)}", lambda x: x in BY_NAME)
_NAMES = listed(_TEXT)
_OPSET = that("a positive number", _count)
_OPSETS = that(
    "(oldest, newest), two positive numbers or two names",
    lambda x: (
        isinstance(x, list)
        and len(x) == 2
        and (all(map(_count, x)) or all(isinstance(o, str) for o in x))
        and x[0] <= x[1]
    ),
)
_PACK = that(
    "a positive number, or one for each format",
    lambda x: _count(x) or (isinstance(x, dict) and all(map(_count, x.values()))),
)
_YES_OR_NO = kind("True or False", bool)
# What a class may state, by its attribute: the worker sends those that are there.
ATTRIBUTES: dict[str, Form] = {
    "name": _TEXT,
    "formats": that("names such as ('onnx',)", lambda x: x and _NAMES(x) is None),
    "family": _TEXT,
    "opsets": maybe(_OPSETS),
    "dtypes": maybe(listed(_DTYPE)),
    "unsupported_ops": _NAMES,
    "limits": limits,
    "absolute": absolute,
    "validates": _YES_OR_NO,
    "acc": that(
        "{dtype: dtype}", lambda x: isinstance(x, dict) and all(d in BY_NAME for row in x.items() for d in row)
    ),
    "flushes": listed(_DTYPE),
    "unused": _NAMES,
    "pack": _PACK,
    "isolate_dtypes": listed(_DTYPE),
    "recycle": maybe(that("a positive number or None", _count)),
    "forks": _YES_OR_NO,
    "path_kinds": _NAMES,
    "paths_every": that("a positive number", _count),
    "memory": that("address-space or resident", lambda x: x in ("address-space", "resident")),
}
# What ``info()`` may return for the engine to read; other names are for the report.
FACTS: dict[str, Form] = {
    "oldest_opset": _OPSET,
    "opset": _OPSET,
    "validates": _YES_OR_NO,
    "dtypes": listed(_DTYPE),
    "target_dialect": _TEXT,
    "known_as": that("a name, or a list of names", lambda x: _TEXT(x) is None or _NAMES(x) is None),
    "front_end": _TEXT,
    "leaves_to": _TEXT,
}
_GREETING = fields(
    {"attributes": fields({"name": _TEXT, "formats": ATTRIBUTES["formats"]}, ATTRIBUTES), "version": _TEXT},
    {"info()": fields({}, FACTS), "cpu": _NAMES, "python": _TEXT, "numpy": _TEXT},
)


def declared(name: str, greeting: Any, more: Mapping[str, Any] | None = None) -> BackendInfo:
    """What the backend called ``name`` declares, from the greeting of its worker (``Server.greeting``).  more:
    attributes that take the place of its own.

    Raises FormatError that names the attribute, what was expected and what came."""
    if more and isinstance(greeting.get("attributes"), dict):
        greeting = {**greeting, "attributes": {**greeting["attributes"], **more}}
    wrong = _GREETING(greeting)
    if wrong is not None:
        place = [p for p in wrong.place if p != "attributes"]
        raise FormatError(": ".join((*place, wrong.text)))
    stated, facts = greeting["attributes"], dict(greeting.get("info()", {}))
    oldest, newest = (o if isinstance(o, int) else None for o in stated.get("opsets") or (None, None))
    dtypes = facts.pop("dtypes", stated.get("dtypes"))
    unused = stated.get("unused", ())
    known = facts.pop("known_as", ())
    return BackendInfo(
        name,
        greeting["version"],
        formats=tuple(stated["formats"]),
        family=stated.get("family") or stated["name"],
        claims=claims_of(stated),
        oldest_opset=facts.pop("oldest_opset", oldest),
        opset=facts.pop("opset", newest),
        dtypes=None if dtypes is None else frozenset(dtypes),
        validates=facts.pop("validates", stated.get("validates", True)),
        acc=stated.get("acc", {}),
        flushes=tuple(stated.get("flushes", ())),
        absolute=stated.get("absolute", {}),
        cpu=tuple(w for w in greeting.get("cpu", ()) if w not in unused),
        pack=stated.get("pack", 1),
        isolate_dtypes=frozenset(stated.get("isolate_dtypes", ())),
        recycle=stated.get("recycle"),
        path_kinds=tuple(stated.get("path_kinds", ())),
        paths_every=stated.get("paths_every", 32),
        target_dialect=facts.pop("target_dialect", None),
        known_as=(known,) if isinstance(known, str) else tuple(known),
        front_end=facts.pop("front_end", None),
        leaves_to=facts.pop("leaves_to", None),
        python=greeting.get("python", ""),
        numpy=greeting.get("numpy", ""),
        more=facts,
    )
