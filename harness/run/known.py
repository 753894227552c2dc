"""Known differences and the ambiguity ledger: reasons that are written down, matched against outcomes.

Every ``known/*.toml`` beside the dialects holds tables::

    [[known]]
    id = "ort-sigmoid-f16-tail"            # unique, words and dashes
    backend = "onnxruntime*"               # name or pattern, or a list of them
    versions = ">=1.20,<1.32"              # releases of the backend, or a list of ranges; omitted: all
    cpu = ["avx2", "!avx512_vnni"]         # what its processor offers or lacks (harness/backends/processor.py)
    op = "onnx/Sigmoid"                    # dialect/op or pattern, or a list
    op_versions = [6, 13]                  # omitted: all; also "opsets", "dtypes"
    when = "any_nan('X') or rank('X') == 0"  # a condition on the instance, see below; omitted: always
    verdict = "mismatch"                   # or a list; omitted: mismatch
    kind = "value"                         # of the judgement, or a list: shape, dtype, nan, inf, value; omitted: any
    message = "not implemented"            # regular expression searched in the backend's words; omitted: any
    reason = "..."                         # why it is a difference, in a sentence
    clause = "..."                         # the sentence of the specification it departs from
    link = "..."                           # upstream issue, if there is one
    spoils = true                          # it damages its process, even where the answer is right: nobody shares that
    instance = '{"format": 1, ...}'        # the minimal instance as JSON
    as_if = '{"attrs": {"saturate": 1}}'   # or a list: the answer is right for the instance with these attributes
                                           # (null: absent) and without the slots that are null in "args"
    shown_by = "coremltools-fold"          # those of the backends that it shows on, or a pattern; omitted: all
    company = ['{"format": 1, ...}']       # it shows beside these only, before it in one model; what matches goes alone

    [[ambiguous]]
    id, op, when, ... as above             # backend omitted: any
    question = "..."                       # what the specification leaves open
    clause = "..."
    readings = ["...", "..."]              # the readings seen; the first is ours
    elements = "nan"                       # of an elementwise op: open is what comes of such an element of its first
                                           # operand; or inf, lowest (the lowest integer).  The rest is judged

The condition is a Python expression over these names and nothing else:

* ``opset``, ``version`` (of the op), ``dtype`` (of the case), ``outs``, ``rule``; ``runs`` (of the loaded model, the
  wrong one the last: 1 for what shows in a run alone)
* of the verdict: ``ulp`` (largest error), ``error`` (largest absolute error of a wrong element, infinite where an
  infinity or NaN is wrong), ``factor`` (smallest multiple of the bound that passes), ``share`` (of wrong elements),
  ``clamped`` (share of these at which the largest finite number came in place of an infinity or NaN), ``wrong`` (what
  was expected and what came of each of them: ``all(a == 0 for e, a in wrong)``)
* ``attr(name, default=None)``; of a graph in an attribute ``ops(name)`` (those of its nodes) and ``unread(name)``
  (inputs that no node in it reads);
  ``has(slot)``, ``rank(slot)``, ``shape(slot)``, ``size(slot)``, ``dtype_of(slot)``,
  ``const(slot)``, ``dynamic(slot)`` (has it symbolic extents?), ``recipe(slot)``, ``scales(slot)`` (how many, 0
  without quantisation), ``zero_points(slot)`` (all, empty without); a slot of several tensors
  takes an index: ``shape('inputs', 1)``
* ``slots``: (slot, index) of every tensor that is given: ``any(const(s, i) and size(s, i) == 0 for s, i in slots)``
* ``any_nan(slot)``, ``any_inf``, ``any_negative``, ``any_zero``, ``any_negative_zero``, ``any_subnormal``,
  ``lowest(slot)``, ``highest(slot)`` (of the finite values); without a slot: over all inputs; ``elements(slot)``: the
  values themselves, in a row; of one of several tensors with its index
* ``len min max sum abs any all prod sorted set range int str zip``

A range of releases may begin with the name of a package, ``"tflite-runtime <2.15"``: it holds for a backend whose
release is told with that name, which is how two packages of one runtime that count differently are told apart.

Entries match outcomes, not tests; one whose instance a run replays and that never matches in it is reported, so that
the list shrinks.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from harness.backends.processor import WORDS
from harness.core.dtypes import int_range, of
from harness.core.errors import FormatError
from harness.core.outcome import Outcome, Status, Verdict
from harness.run.facts import OUTCOME, PREDICATES, Facts
from harness.spec import Silent, gathered, registry, silent

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

if TYPE_CHECKING:
    from harness.run.case import Case
    from harness.run.results import Judged, Profile

_COMMON = {"id", "backend", "versions", "cpu", "op", "op_versions", "opsets", "dtypes", "when", "verdict", "kind",
           "message", "clause", "link", "instance", "shown_by", "company", "spoils"}  # fmt: skip
_KEYS = {"known": _COMMON | {"reason", "as_if"}, "ambiguous": _COMMON | {"question", "readings", "elements"}}
_NEED = {
    "known": {"id", "backend", "op", "reason", "clause"},
    "ambiguous": {"id", "op", "question", "clause", "readings"},
}
_ELEMENTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "nan": lambda x: np.isnan(x.astype(np.float64)) if of(x).kind == "f" else np.zeros(x.shape, bool),
    "inf": lambda x: np.isinf(x.astype(np.float64)) if of(x).kind == "f" else np.zeros(x.shape, bool),
    "lowest": lambda x: x == int_range(of(x))[0] if of(x).kind == "i" else np.zeros(x.shape, bool),
}
_WHOLE = {"kind", "message", "verdict", "company"}  # what is said of a whole answer
_BAD = {v.value for v in Verdict if v.bad}
_REFUSALS = {Verdict.WRONGLY_REJECTED.value, Verdict.CRASHED.value, Verdict.TIMED_OUT.value}
_NODES = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Add, ast.Sub, ast.Mult,
    ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In,
    ast.NotIn, ast.Is, ast.IsNot, ast.Call, ast.Name, ast.Load, ast.Store, ast.Constant, ast.Subscript, ast.Slice,
    ast.Tuple, ast.List, ast.Set, ast.IfExp, ast.GeneratorExp, ast.ListComp, ast.comprehension, ast.keyword,
)  # fmt: skip
_PLAIN = {"len": len, "min": min, "max": max, "sum": sum, "abs": abs, "any": any, "all": all, "sorted": sorted,
          "set": set, "range": range, "int": int, "str": str, "zip": zip}  # fmt: skip


Range = tuple[str, SpecifierSet]  # name of a package and a space, or nothing; its releases


@dataclass(frozen=True)
class Condition:
    """A compiled condition and the names it asks for."""

    text: str
    code: CodeType
    names: frozenset[str]

    def __call__(self, facts: Mapping[str, Any]) -> bool:
        # All names are globals: the scope of a generator expression sees no locals.
        scope: dict[str, Any] = {n: facts[n] for n in self.names}
        scope["__builtins__"] = {}
        return bool(eval(self.code, scope))


def condition(text: str) -> Condition:
    """Compile a condition.  Raises ValueError naming what it may not contain."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as e:
        raise ValueError(f"no expression: {e.msg} in {text!r}") from None
    own = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise ValueError(f"{type(node).__name__} is not allowed in {text!r}")
        if isinstance(node, ast.Name) and node.id not in own and node.id not in PREDICATES and node.id not in _PLAIN:
            raise ValueError(f"unknown name {node.id!r} in {text!r}, expected one of {' '.join(sorted(PREDICATES))}")
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - own
    return Condition(text, compile(tree, "<condition>", "eval"), frozenset(names))


@dataclass
class Entry:
    """One table of a file; see the module's text for the fields."""

    id: str
    source: str
    kind_of: str
    backends: tuple[str, ...]
    ops: tuple[str, ...]
    clause: str
    reason: str = ""
    versions: tuple[Range, ...] = ()
    op_versions: tuple[Any, ...] = ()
    opsets: tuple[Any, ...] = ()
    dtypes: tuple[str, ...] = ()
    when: Condition | None = None
    verdicts: tuple[str, ...] = (Verdict.MISMATCH.value,)
    kinds: tuple[str, ...] = ()
    message: re.Pattern[str] | None = None
    link: str = ""
    instance: Any = None
    readings: tuple[str, ...] = ()
    hits: int = 0
    spoils: bool = False
    company: tuple[Any, ...] = ()
    cpu: tuple[str, ...] = ()
    shown_by: tuple[str, ...] = ()
    elements: str = ""
    as_if: tuple[dict[str, dict[str, Any]], ...] = ()
    _there: dict[tuple[str, frozenset[str]], bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    def matches(self, judged: Judged, profile: Profile) -> bool:
        inst = judged.case.inst
        if self.elements or judged.verdict.value not in self.verdicts:
            return False
        if not any(fnmatchcase(profile.name, b) for b in self.backends):
            return False
        if not any(fnmatchcase(f"{inst.dialect}/{inst.op}", o) for o in self.ops):
            return False
        if self.op_versions and inst.version not in self.op_versions:
            return False
        if self.opsets and inst.opset not in self.opsets:
            return False
        if self.dtypes and str(judged.case.dtype) not in self.dtypes:
            return False
        if self.company and len(judged.company) < 2:
            return False
        if self.kinds and (judged.judgement is None or judged.judgement.kind not in self.kinds):
            return False
        if self.message is not None and not self.message.search(judged.outcome.message):
            return False
        if not self.there(profile) or not self._holds(Facts(judged.case, _PLAIN, judged)):
            return False
        return not self.as_if or any(_answers(judged, profile, edit) for edit in self.as_if)

    def silence(self, case: Case, profile: Profile) -> Silent | None:
        """Of an instance of one run: the elements of its first operand that the entry says are open."""
        if not (any(fnmatchcase(profile.name, b) for b in self.backends) and self._fits(case, profile)
                and self._told(case)):  # fmt: skip
            return None
        x = case.draws[0].get(case.version.schema.inputs[0].name) if case.draws else None
        return silent(self.id, _ELEMENTS[self.elements](x)) if isinstance(x, np.ndarray) else None

    def _holds(self, facts: Facts) -> bool:
        """Does the condition hold?  Raises FormatError, naming the entry, where it cannot be evaluated."""
        try:
            return self.when is None or self.when(facts)
        except Exception as e:
            raise FormatError(f"{self.source}: {self.kind_of} {self.id}: when: {type(e).__name__}: {e}") from None

    def _told(self, case: Case) -> bool:
        """Does the condition hold of an instance that has no outcome yet?  One that cannot be evaluated foretells
        nothing; ``matches`` tells of it."""
        try:
            return self._holds(Facts(case, _PLAIN))
        except FormatError:
            return False

    def shuns(self, case: Case, profile: Profile) -> bool:
        """Is this one of the instances that go wrong in company?"""
        return self._fits(case, profile) and self._told(case)

    def there(self, profile: Profile) -> bool:
        """Are release and processor those of the entry?  An unknown processor may be any."""
        at = profile.version, profile.cpu
        known = self._there.get(at)
        if known is None:
            known = self._there[at] = _within(profile.version, self.versions) and (
                not profile.cpu or all((w.lstrip("!") in profile.cpu) != w.startswith("!") for w in self.cpu)
            )
        return known

    def _fits(self, case: Case, profile: Profile) -> bool:
        """Are version, opset, type, release and processor those of the entry?"""
        return (
            (not self.op_versions or case.inst.version in self.op_versions)
            and (not self.opsets or case.inst.opset in self.opsets)
            and (not self.dtypes or case.dtype_name in self.dtypes)
            and self.there(profile)
        )

    @cached_property
    def foretelling(self) -> bool:
        """Does the instance alone tell that it will be refused, end the process, or damage it?"""
        return (self.when is not None and not self.company and not self.when.names & OUTCOME
                and (self.spoils or all(v in _REFUSALS for v in self.verdicts)))  # fmt: skip

    @property
    def may_hang(self) -> bool:
        return Verdict.TIMED_OUT.value in self.verdicts

    def foretells(self, case: Case, profile: Profile) -> bool:
        """Will the backend refuse this instance in one of its runs, as far as its condition says?"""
        if self.when is None or not self._fits(case, profile):
            return False
        runs = len(case.inst.reruns)
        return any(self._told(case.at(r)) for r in range(1 + runs)) if runs else self._told(case)

    def concerns(self, keys: Iterable[str], backends: Iterable[Profile]) -> bool:
        """Could it have matched in a run over these op versions and backends?"""
        if not any(fnmatchcase(b.name, p) and self.there(b) and (b.cpu or not self.cpu)
                   for b in backends for p in self.backends):  # fmt: skip
            return False
        for key in keys:
            op, version = key.rsplit("/", 1)
            if any(fnmatchcase(op, o) for o in self.ops) and (
                not self.op_versions or version in {str(v) for v in self.op_versions}
            ):
                return True
        return False


def in_releases(version: str, text: str) -> bool:
    """Does the release of a version text lie in a range like those of an entry?  Raises InvalidSpecifier."""
    return _within(version, (_range(text),))


def _within(version: str, allowed: tuple[Range, ...]) -> bool:
    """Does the first thing in a version text that is a release lie in one of the ranges, or are there none?
    ("coremltools 9.0, macOS 15.1")"""
    if not allowed:
        return True
    found = re.search(r"\d+(\.\d+)*\w*", version)
    try:
        return found is not None and any(
            version.startswith(name) and r.contains(Version(found[0]), prereleases=True) for name, r in allowed
        )
    except InvalidVersion:
        return False


def _range(text: str) -> Range:
    """Of ``<1.24``, or with the name of a package before it.  Raises InvalidSpecifier."""
    name, space, rest = text.rpartition(" ")
    if not re.fullmatch(r"[a-z][\w-]*", name):
        name, space, rest = "", "", text
    return name + space, SpecifierSet(rest)


class Listed:
    """The differences of an op version and a backend that its instances tell before they are asked.

    foretelling: the backend refuses them, or they end or damage its process; those that damage it first.  shy: they go
    wrong beside others.  spoils, hangs: does one of them damage the process, or hang at times?"""

    def __init__(self, profile: Profile, foretelling: list[Entry], shy: list[Entry]) -> None:
        self.profile, self.foretelling, self.shy = profile, foretelling, shy
        self.spoils = any(e.spoils for e in foretelling)
        self.hangs = any(e.may_hang for e in foretelling)

    def foretells(self, case: Case) -> Entry | None:
        """The first known difference that says the backend will not take this instance; one that spoils before all."""
        for e in self.foretelling:
            if e.foretells(case, self.profile):
                return e
        return None

    def shuns(self, case: Case) -> bool:
        """Does a known difference say that the instance goes wrong beside others, and right alone?"""
        return any(e.shuns(case, self.profile) for e in self.shy)


@dataclass
class Ledger:
    """All entries.  ``explain`` turns a bad verdict into a known or ambiguous one where an entry says so.  lacks: saved
    instances, by id, and backends that do not take them."""

    entries: list[Entry] = field(default_factory=list)
    lacks: set[tuple[str, str]] = field(default_factory=set)

    def explain(self, judged: Judged, profile: Profile) -> Entry | None:
        """The first entry that matches, known differences before ambiguities; counts the hit.  An entry that cannot be
        evaluated leaves no verdict, and says why."""
        for e in self._candidates(judged.case.inst.dialect, judged.case.inst.op):
            try:
                matches = e.matches(judged, profile)
            except FormatError as error:
                judged.verdict, judged.judgement = Verdict.UNKNOWN, None
                judged.outcome = Outcome(Status.HARNESS_ERROR, judged.outcome.outputs, "judge", str(error))
                return None
            if matches:
                e.hits += 1
                if e.kind_of == "known":
                    judged.verdict, judged.known = Verdict.KNOWN, e.id
                else:
                    judged.verdict, judged.ambiguity = Verdict.AMBIGUOUS, e.id
                return e
        return None

    def silence(self, case: Case, profile: Profile) -> Silent | None:
        """What entries say is open of single elements of an instance of one run."""
        here = [e for e in self._candidates(case.inst.dialect, case.inst.op) if e.elements]
        return gathered(*(e.silence(case, profile) for e in here)) if here else None

    def met(self, id: str) -> None:
        """An entry, by its id, has explained an answer."""
        for e in self.entries:
            e.hits += e.id == id

    def listed(self, key: str, profile: Profile) -> Listed | None:
        """What is listed of an op version and a backend that an instance alone tells; None where nothing is."""
        dialect, op, version = key.split("/")
        here = [e for e in self._candidates(dialect, op) if any(fnmatchcase(profile.name, b) for b in e.backends)
                and (not e.op_versions or version in map(str, e.op_versions)) and e.there(profile)]  # fmt: skip
        foretelling = sorted((e for e in here if e.kind_of == "known" and e.foretelling), key=lambda e: not e.spoils)
        shy = [e for e in here if e.company]
        return Listed(profile, foretelling, shy) if foretelling or shy else None

    def _candidates(self, dialect: str, op: str) -> list[Entry]:
        key = f"{dialect}/{op}"
        if key not in self._by_op:
            self._by_op[key] = [e for e in self._ordered if any(fnmatchcase(key, o) for o in e.ops)]
        return self._by_op[key]

    @cached_property
    def _by_op(self) -> dict[str, list[Entry]]:
        return {}

    @cached_property
    def _ordered(self) -> list[Entry]:
        return sorted(self.entries, key=lambda e: e.kind_of != "known")

    def records(self) -> list[dict[str, Any]]:
        """The "known" records of the entries that matched."""
        return [
            {"t": "known", "id": e.id, "hits": e.hits, "reason": e.reason, "clause": e.clause, "link": e.link,
             "kind": e.kind_of, "readings": list(e.readings)}
            for e in self.entries if e.hits
        ]  # fmt: skip

    def unused(self, keys: Iterable[str], backends: Iterable[Profile],
               replayed: Container[str] | None = None) -> list[str]:  # fmt: skip
        """Ids of known differences that a run over these op versions and backends did not meet.  Of a backend that does
        not take the instance of an entry, or its models, nothing is known.

        replayed: the instances that the run did replay, of other entries it says nothing; all, where it is omitted."""
        keys, backends = list(keys), list(backends)

        def took(e: Entry) -> list[Profile]:
            if e.instance is None:
                return backends
            fmt = registry.dialect(e.instance.dialect).format
            return [b for b in backends if (e.instance.id, b.name) not in self.lacks and fmt in (b.formats or (fmt,))
                    and any(fnmatchcase(b.name, p) for p in e.shown_by or ("*",))]  # fmt: skip

        return [e.id for e in self.entries if e.kind_of == "known" and not e.hits and not e.company
                and (replayed is None or (e.instance is not None and e.instance.dumps() in replayed))
                and e.concerns(keys, took(e))]  # fmt: skip

    def unmarked(self) -> Ledger:
        """The same entries, none of them met yet: what is explained by this copy is not counted in the original."""
        return Ledger([replace(e, hits=0) for e in self.entries])

    def counts(self) -> Counter[str]:
        return Counter({e.id: e.hits for e in self.entries if e.hits})


def folders() -> list[Path]:
    """The ``known`` folders beside the dialects (entry points ``opconform.dialects``)."""
    roots = {e.value.split(":")[0].split(".")[0] for e in metadata.entry_points(group="opconform.dialects")}
    out = []
    for root in sorted(roots):
        spec = find_spec(root)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            if (Path(place) / "known").is_dir():
                out.append(Path(place) / "known")
    return list(dict.fromkeys(out))


def load_ledger(places: Iterable[Path] | None = None) -> Ledger:
    """Read all files.  Raises FormatError naming file, entry and field."""
    entries: list[Entry] = []
    for folder in places if places is not None else folders():
        for path in sorted(folder.glob("*.toml")):
            entries += read(path)
    seen: dict[str, str] = {}
    for e in entries:
        if e.id in seen:
            raise FormatError(f"{e.source}: id {e.id!r} is already taken in {seen[e.id]}")
        seen[e.id] = e.source
    return Ledger(entries)


def read(path: Path) -> list[Entry]:
    """The entries of one file."""
    try:
        data = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise FormatError(f"{path.name}: {e}") from None
    out = []
    for kind, tables in data.items():
        if kind not in _KEYS or not isinstance(tables, list):
            raise FormatError(f"{path.name}: expected [[known]] or [[ambiguous]] tables, got {kind!r}")
        out += [_entry(path.name, kind, t, i) for i, t in enumerate(tables)]
    return out


def _entry(source: str, kind: str, t: dict[str, Any], i: int) -> Entry:
    name = f"{source}: {kind} {t.get('id') or f'number {i + 1}'}"
    unknown, missing = sorted(set(t) - _KEYS[kind]), sorted(_NEED[kind] - set(t))
    if unknown:
        raise FormatError(f"{name}: unknown field {unknown[0]!r}, expected some of {' '.join(sorted(_KEYS[kind]))}")
    if missing:
        raise FormatError(f"{name}: field {missing[0]!r} is missing")

    def texts(key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        v = t.get(key)
        v = [v] if isinstance(v, str) else v
        if v is None:
            return default
        if not isinstance(v, list) or not v or not all(isinstance(x, str) and x for x in v):
            raise FormatError(f"{name}: {key} must be a text or a list of texts, got {t[key]!r}")
        return tuple(v)

    for key in ("id", "clause", "reason", "question", "link", "when", "message", "instance"):
        if key in t and (not isinstance(t[key], str) or not t[key].strip()):
            raise FormatError(f"{name}: {key} must be a text, got {t[key]!r}")
    if not re.fullmatch(r"[\w.-]+", t["id"]):
        raise FormatError(f"{name}: an id is made of letters, digits, dots and dashes")
    for key in ("op_versions", "opsets"):
        if key in t and not isinstance(t[key], list):
            raise FormatError(f"{name}: {key} must be a list, got {t[key]!r}")
    cpu = texts("cpu")
    for w in cpu:
        if w.removeprefix("!") not in WORDS:
            raise FormatError(f"{name}: cpu {w!r}, expected some of {' '.join(WORDS)}, each perhaps behind a !")
    ops = texts("op")
    for o in ops:
        if "/" not in o:
            raise FormatError(f"{name}: op reads dialect/op, got {o!r}")
    spoils = t.get("spoils", False)
    if not isinstance(spoils, bool):
        raise FormatError(f"{name}: spoils must be true or false, got {spoils!r}")
    as_if = tuple(_edit(name, x) for x in texts("as_if"))
    if as_if and verdicts_of(t) != (Verdict.MISMATCH.value,):
        raise FormatError(f"{name}: as_if explains a mismatch alone")
    elements = t.get("elements", "")
    if elements and elements not in _ELEMENTS:
        raise FormatError(f"{name}: elements {elements!r}, expected one of {' '.join(_ELEMENTS)}")
    if elements and _WHOLE & set(t):
        raise FormatError(f"{name}: {sorted(_WHOLE & set(t))[0]} speaks of a whole answer, elements of some of it")
    company = texts("company")
    if company and "instance" not in t:
        raise FormatError(f"{name}: company needs the instance that goes wrong in it")
    if "shown_by" in t and "instance" not in t:
        raise FormatError(f"{name}: shown_by needs the instance that shows")
    verdicts = texts("verdict", (Verdict.MISMATCH.value,))
    for v in verdicts:
        if v not in _BAD:
            raise FormatError(f"{name}: verdict {v!r}, expected one of {' '.join(sorted(_BAD))}")
    try:
        instance = _instance(t.get("instance"))
        return Entry(
            t["id"], source, kind, texts("backend", ("*",)), ops, t["clause"], t.get("reason") or t.get("question", ""),
            tuple(map(_range, texts("versions"))), tuple(t.get("op_versions", ())),
            tuple(t.get("opsets", ())), texts("dtypes"), condition(t["when"]) if "when" in t else None, verdicts,
            texts("kind"), re.compile(t["message"]) if "message" in t else None, t.get("link", ""), instance,
            texts("readings"), spoils=spoils, company=tuple(map(_instance, company)), cpu=cpu,
            shown_by=texts("shown_by"), elements=elements, as_if=as_if,
        )  # fmt: skip
    except InvalidSpecifier as e:
        raise FormatError(f"{name}: versions: {e}") from None
    except re.error as e:
        raise FormatError(f"{name}: message: {e}") from None
    except FormatError as e:
        raise FormatError(f"{name}: {e}") from None
    except ValueError as e:
        raise FormatError(f"{name}: when: {e}") from None


def verdicts_of(t: dict[str, Any]) -> tuple[str, ...]:
    """Those of a table as it stands in a file."""
    v = t.get("verdict", Verdict.MISMATCH.value)
    return (v,) if isinstance(v, str) else tuple(v)


def _edit(name: str, text: str) -> dict[str, dict[str, Any]]:
    """What an entry says that the backend takes the instance for."""
    from harness.core.instance import decode_value

    try:
        edit = json.loads(text)
    except json.JSONDecodeError as e:
        raise FormatError(f"{name}: as_if: {e}") from None
    known = isinstance(edit, dict) and edit and not set(edit) - {"attrs", "args"}
    attrs, args = (edit.get(k, {}) for k in ("attrs", "args")) if known else (None, None)
    if not isinstance(attrs, dict) or not isinstance(args, dict):
        raise FormatError(f'{name}: as_if: expected {{"attrs": {{...}}, "args": {{...}}}}, got {text}')
    if any(v is not None for v in args.values()):
        raise FormatError(f"{name}: as_if: slots can only be left out (null), got {args}")
    return {"attrs": {k: None if v is None else decode_value(v) for k, v in attrs.items()}, "args": args}


def _answers(judged: Judged, profile: Profile, edit: dict[str, dict[str, Any]]) -> bool:
    """Is the answer right for the instance that the backend takes this one for?"""
    from harness.run.case import Case
    from harness.run.results import judge_case

    case = judged.case
    attrs = {k: v for k, v in {**case.inst.attrs, **edit["attrs"]}.items() if v is not None}
    arrays = case.draws[min(judged.draw, len(case.draws) - 1)] if case.draws else {}
    inst = replace(case.inst, attrs=attrs, args={k: a for k, a in case.inst.args.items() if k not in edit["args"]},
                   reruns=(), choices=None)  # fmt: skip
    other = Case(case.version, inst, case.index)
    other._draws = [{k: a for k, a in arrays.items() if k not in edit["args"]}]
    if other.expected is None:  # it breaks a rule then: nothing is known of its answer
        return False
    found = judge_case(other, profile, [judged.outcome]).verdict
    why = other.silences[0] if found is Verdict.AMBIGUOUS else None
    open_in_part = isinstance(why, Silent) and why.masks(0) is not None  # where all is open, nothing is explained
    return found in (Verdict.AGREE, Verdict.MISTRUSTED) or open_in_part


def _instance(text: str | None) -> Any:
    if text is None:
        return None
    from harness.core.instance import Instance

    try:
        return Instance.from_json(json.loads(text))
    except json.JSONDecodeError as e:
        raise FormatError(f"instance: {e}") from None
