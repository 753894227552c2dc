"""Records of one or many runs -> one summary, from which every page is made.

Files are streamed.  The summary keeps one counter for each (op version, opset, backend, dtype, verdict), and the case
records of everything that did not agree.  Beyond a limit, which the page states, it only counts them.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.core.errors import reading
from harness.core.features import Pairs
from harness.core.outcome import WORST_FIRST, Kind, Verdict
from reports.causes import find_causes, sentence
from reports.clusters import find_clusters
from reports.records import PathLike, expand, read

VERDICTS = tuple(v.value for v in Verdict)
BAD = tuple(v.value for v in Verdict if v.bad)
JUDGED = tuple(v.value for v in Verdict if v.judged)
PER_GROUP = 2000  # cases kept per op version, backend and verdict: more of one kind tell nothing new
RANK = {v.value: i for i, v in enumerate(WORST_FIRST)}
LIMIT = 20_000  # cases kept in all

_RESUMED = ("seed", "command", "selection", "shard")  # the same in a run and in what resumes it
_MACHINE = ("python", "platform", "isa", "cpu")

Cell = tuple[str, Any, str, str, str]  # key, opset, backend, dtype, verdict
Named = tuple[str, str]  # backend and its version


@dataclass
class Summary:
    """The facts from which the pages are made; ``to_json`` is also the JSON report.

    cube: (key, opset, backend, dtype, verdict) -> number of outcomes.
    cases: case records that were kept, each with a ``cluster_index`` or None.
    omitted: (key, backend, verdict) -> number of case records beyond the limits.
    elements: key -> backend -> four numbers: elements that were not judged, all elements, answers to valid instances
    that were compared, and uninformative ones among them.
    paths: key -> backend -> path -> number of instances, among those whose path was requested.
    labels: how often an instance with a label of its dialect took each kind of path.
    unasked: key -> backend -> element type -> why a case did not run -> number of cases.
    beside: backend -> a sentence for its author about surplus outputs.
    notes: sentences about the records themselves (cut short, repeated, interrupted).
    gaps: the most frequent reasons for unsupported outcomes.
    causes: see ``reports.causes``.
    cut: whether the time limit ended a run before all instances had an outcome."""

    runs: list[dict[str, Any]] = field(default_factory=list)
    backends: dict[str, dict[str, Any]] = field(default_factory=dict)
    cube: Counter[Cell] = field(default_factory=Counter)
    cases: list[dict[str, Any]] = field(default_factory=list)
    omitted: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    clusters: list[dict[str, Any]] = field(default_factory=list)
    coverage: dict[str, dict[str, Any]] = field(default_factory=dict)
    sensitivity: list[dict[str, Any]] = field(default_factory=list)
    elements: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    paths: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    labels: list[dict[str, Any]] = field(default_factory=list)
    unasked: dict[str, dict[str, dict[str, dict[str, int]]]] = field(default_factory=dict)
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    ambiguity: dict[str, dict[str, Any]] = field(default_factory=dict)
    beside: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    elapsed: float = 0.0
    interrupted: bool = False
    gaps: Counter[str] = field(default_factory=Counter)
    causes: list[dict[str, Any]] = field(default_factory=list)
    cut: bool = False
    partial: bool = False  # some shards of the run are not among the records

    @property
    def totals(self) -> dict[str, int]:
        """Outcomes per verdict, in the order of ``Verdict``; verdicts that never occur are left out."""
        sums: Counter[str] = Counter()
        for (_, _, _, _, verdict), n in self.cube.items():
            sums[verdict] += n
        return {v: sums[v] for v in VERDICTS if sums[v]}

    @property
    def bad(self) -> int:
        """Unexplained outcomes: those that fail a run."""
        return sum(n for v, n in self.totals.items() if v in BAD)

    @property
    def undecided(self) -> int:
        """Outcomes without a verdict: no agreement, so they fail a run too."""
        return self.totals.get(Verdict.UNKNOWN.value, 0)

    @property
    def unused(self) -> list[str]:
        """Listed differences that a full run did not meet."""
        return sorted(k for k, e in self.known.items() if not (e["hits"] or e.get("cases")))

    @property
    def clean(self) -> bool:
        """Is everything explained, and does everything listed stand?"""
        return not (self.bad or self.undecided or self.unused)

    @property
    def judged(self) -> int:
        """Judged outcomes, one per instance and backend: not those that are unsupported, say too little to count, or
        have no verdict."""
        return sum(n for v, n in self.totals.items() if v in JUDGED)

    @property
    def nothing_judged(self) -> str:
        """Why nothing was judged, in words; empty where something was, and of a shard without op versions: the whole
        run tells."""
        if self.judged or self.undecided or (self.partial and not self.totals):
            return ""
        told = ", ".join(f"{n:,} {v}" for v, n in self.unjudged.items())
        if self.not_asked:
            told += f"{', ' if told else ''}{self.not_asked:,} unasked"
        if told:
            why = "; ".join(f"{text} ({n:,})" for text, n in self.gaps.most_common(3))
            return f"nothing was judged: {told}" + (f"; most often {why}" if why else "")
        if self.cut:
            return "nothing was judged: the time was over before the first instances were answered"
        claims = {name: (info.get("info") or {}).get("claims") for name, info in self.backends.items()}
        stated = "; ".join(f"{name} claims {json.dumps(c)}" for name, c in claims.items() if c)
        return "nothing was judged: no instance that was asked for is within the claims" + (
            f"; {stated}" if stated else ""
        )

    @property
    def unjudged(self) -> dict[str, int]:
        """The outcomes that were not judged, by verdict; empty verdicts are left out."""
        return {v: n for v, n in self.totals.items() if v not in JUDGED}

    @property
    def not_asked(self) -> int:
        """Cases that a backend was not asked, by what it made of others; they have no outcome."""
        return sum(n for by in self.unasked.values() for t in by.values() for why in t.values() for n in why.values())

    @property
    def uninformative(self) -> list[dict[str, Any]]:
        """Op versions of which, on some backend, more than half of the answers to valid instances say too little to
        count. backends: such answers and all, by backend."""
        out = []
        for key in sorted(self.elements, key=key_order):
            backends = {b: [n[3], n[2]] for b, n in sorted(self.elements[key].items()) if 2 * n[3] > n[2]}
            if backends:
                out.append({"key": key, "backends": backends})
        return out

    @property
    def untested_paths(self) -> list[list[str]]:
        """(key, backend, kind): paths that a backend can take and tells, and that no instance of the op version took
        although the backend judged some of them."""
        judged = {(key, b) for (key, _, b, _, verdict), n in self.cube.items() if n and verdict in JUDGED}
        tellers = {b for by in self.paths.values() for b in by}
        out = []
        for key, backend in sorted(judged | {(key, b) for (key, _, b, _, _) in self.cube if b in tellers}, key=_place):
            kinds = (self.backends.get(backend, {}).get("info") or {}).get("path_kinds") or ()
            taken = {path.split(":")[0] for path in self.paths.get(key, {}).get(backend, ())}
            out += [[key, backend, kind] for kind in kinds if kind not in taken]
        return out

    @property
    def told(self) -> list[str]:
        """The notes, and those on backends."""
        return [*self.notes, *(f"{name}: {text}" for name, text in self.beside.items())]

    def to_json(self) -> dict[str, Any]:
        """Plain data; the cube as rows of indices into name lists, which is how the page embeds it."""
        names: list[list[Any]] = [sorted({c[i] for c in self.cube}, key=_order(i)) for i in range(4)]
        names.append(list(VERDICTS))
        index = [{n: i for i, n in enumerate(column)} for column in names]
        rows = [[*(index[i][c[i]] for i in range(5)), n] for c, n in self.cube.items()]
        rows.sort()
        labels = ("keys", "opsets", "backends", "dtypes", "verdicts")
        return {
            "format": 1,
            "runs": self.runs,
            "backends": self.backends,
            "totals": self.totals,
            "judged": self.judged,
            "unjudged": self.unjudged,
            "judged_verdicts": list(JUDGED),
            "uninformative": self.uninformative,
            "elements": self.elements,
            "paths": self.paths,
            "untested_paths": self.untested_paths,
            "labels": self.labels,
            "unasked": self.unasked,
            "not_asked": self.not_asked,
            "bad": self.bad,
            "undecided": self.undecided,
            "unused": self.unused,
            "bad_verdicts": list(BAD),
            "verdicts": [
                {"name": v.value, "label": v.label, "sign": v.sign, "kind": v.kind.value, "sentence": v.sentence}
                for v in WORST_FIRST
            ],
            "kinds": [k.value for k in Kind],
            "elapsed": self.elapsed,
            "interrupted": self.interrupted,
            "cube": {**dict(zip(labels, names, strict=True)), "rows": rows},
            "cases": self.cases,
            "omitted": [[*group, n] for group, n in sorted(self.omitted.items())],
            "clusters": self.clusters,
            "causes": [c | {"sentence": sentence(c)} for c in self.causes],
            "coverage": self.coverage,
            "sensitivity": self.sensitivity,
            "known": self.known,
            "ambiguity": self.ambiguity,
            "notes": self.told,
        }


def _place(place: tuple[str, str]) -> tuple[Any, ...]:
    return key_order(place[0]), place[1]


def _order(column: int) -> Any:
    if column == 0:
        return key_order
    return natural if column == 1 else str


def natural(value: Any) -> tuple[Any, ...]:
    """Sort key under which 9 comes before 10 and ios15 before ios18, numbers and names mixed."""
    text = str(value)
    digits = "".join(ch for ch in text if ch.isdigit())
    return (text.rstrip("0123456789"), int(digits) if digits else -1, text)


def key_order(key: str) -> tuple[Any, ...]:
    """Sort key for ``dialect/op/version``."""
    dialect, _, rest = key.partition("/")
    op, _, version = rest.rpartition("/")
    return (dialect, op.lower(), op, natural(version))


def summarise(paths: PathLike | list[PathLike], limit: int = LIMIT) -> Summary:
    """Read and merge record files (or folders of them): shards, resumed runs, runs of other machines.

    limit: case records kept; the counts stay complete.  Raises FormatError (see ``reports.records``).
    """
    reader = _Reader(limit)
    for path in expand(paths):
        reader.file(path)
    return reader.finish()


class _Reader:
    """Sums up records.  A backend is (name, version) until the end, when names met with several versions are
    told apart.
    """

    def __init__(self, limit: int) -> None:
        self.s = Summary()
        self.limit = limit
        self.cube: Counter[tuple[str, Any, Named, str, str]] = Counter()
        self.cases: dict[tuple[str, Named, str], list[dict[str, Any]]] = defaultdict(list)
        self.seen_runs: set[str] = set()
        self.seen_rows: set[int] = set()  # hashes: a long campaign has millions
        self.seen_cases: set[tuple[Any, ...]] = set()
        self.seen_faults: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.reach: dict[str, dict[str, dict[str, None]]] = {}
        self.info: dict[Named, dict[str, Any]] = {}
        self.kept = self.repeated = self.differing = 0
        self.hits: Counter[str] = Counter()  # verdicts that listed entries explain, by id
        self.elements: dict[str, dict[Named, list[int]]] = defaultdict(dict)
        self.paths: dict[str, dict[Named, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        self.labels: dict[tuple[str, str, Named], Counter[str]] = defaultdict(Counter)
        self.unasked: dict[str, dict[Named, dict[str, Counter[str]]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(Counter))
        )
        self.pairs: dict[str, Pairs] = defaultdict(Pairs)  # of features, by op version
        self.shards: dict[str, tuple[int, set[int]]] = {}  # by what those of a run share: their number, which were met

    def file(self, path: Any) -> None:
        """One file: runs, each with those that resumed it.  The last of these says whether a run came to its end."""
        run: dict[str, Any] = {}
        skip = ended = closed = False
        cut = 0
        for r in read(path, self.s.notes):
            kind = r["t"]
            if kind == "run":
                if run and not ended and not skip:
                    if any(run.get(f) != r.get(f) for f in _RESUMED):
                        self.unended(f"{path.name}: {run.get('command') or 'a run'}")
                    elif not closed:
                        cut += 1
                run, ended, closed = r, False, False
                skip = self.start(r, path.name)
            elif skip:
                continue
            elif kind == "end":
                ended, closed = not r.get("interrupted"), True
                self.s.elapsed += r.get("elapsed") or 0.0
                for name in r.get("unused") or ():
                    _listed(self.s.known, {"id": name})
                self.s.beside.update(r.get("beside") or {})
                self.s.gaps.update(r.get("gaps") or {})
                self.s.cut |= bool(r.get("cut"))
            elif kind in _HANDLERS:
                with reading(f"{path}: a {kind!r} record"):
                    _HANDLERS[kind](self, r, run)
        if cut:
            lost = "the elapsed time lacks what was cut off"
            self.s.notes.append(f"{path.name}: cut off and resumed {cut} times; {lost}")
        if not ended and not skip:
            self.unended(path.name)

    def unended(self, name: str) -> None:
        self.s.interrupted = True
        self.s.notes.append(f"{name}: that run did not come to its end: stopped, or still going on")

    def start(self, r: dict[str, Any], name: str) -> bool:
        ident = repr([r.get(f) for f in (*_RESUMED, *_MACHINE, "started", "backends")])
        if ident in self.seen_runs:
            self.s.notes.append(f"{name}: holds a run that was already read; counted once")
            return True
        self.seen_runs.add(ident)
        self.s.runs.append({k: v for k, v in r.items() if k != "t"})
        self.part(r)
        for backend, why in (r.get("missing") or {}).items():
            self.s.notes.append(f"{name}: {backend} was not run: {why}")
        for backend, info in r.get("backends", {}).items():
            self.info.setdefault((backend, str(info.get("version", ""))), info)
        return False

    def part(self, r: dict[str, Any]) -> None:
        """Remember which shard of a run this is."""
        selection = r.get("selection") or {}
        i, n = selection.get("shard") or (1, 1)
        whole = repr([{**selection, "shard": n}, *(r.get(f) for f in ("seed", "asked", "place"))])
        self.shards.setdefault(whole, (n, set()))[1].add(i)

    def named(self, backend: str, run: dict[str, Any]) -> Named:
        version = str(run.get("backends", {}).get(backend, {}).get("version", ""))
        self.info.setdefault((backend, version), {"version": version})
        return backend, version

    def batch(self, r: dict[str, Any], run: dict[str, Any]) -> None:
        self.covered(r, run)
        for told in r.get("listed") or ():
            _listed(self.s.ambiguity if told.get("kind") == "ambiguous" else self.s.known, told)
        self.s.beside.update(r.get("beside") or {})
        by_backend: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
        for backend, dtype, verdict, n in r["tally"]:
            by_backend[backend].append((dtype, verdict, n))
        left_out: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
        for backend, dtype, why, n in r.get("unasked") or ():
            left_out[backend].append((dtype, why, n))
        for backend in [*by_backend, *(b for b in left_out if b not in by_backend)]:
            rows = by_backend[backend]
            named = self.named(backend, run)
            # first as text: saved instances are numbered downward, and hash(-1) is hash(-2)
            ident = (run.get("seed"), r["key"], str(r["opset"]), str(r["first"]), r["count"], named)
            # A matrix asks the same of many machines: what they agree on counts once, where one departs it counts too.
            same = (
                hash((ident, tuple(sorted(rows)), tuple(sorted(left_out[backend])))),
                hash((ident, *(run.get(f) for f in _MACHINE))),
            )
            if not self.seen_rows.isdisjoint(same):
                self.repeated += 1
                continue
            for name, id, n in r.get("explained") or ():
                if name == backend:
                    self.hits[id] += n
            for name, *counts in r.get("elements") or ():
                if name == backend:
                    old = self.elements[r["key"]].get(named, [0, 0, 0, 0])
                    self.elements[r["key"]][named] = [a + b for a, b in zip(old, counts, strict=True)]
            for name, path, n in r.get("paths") or ():
                if name == backend:
                    self.paths[r["key"]][named][path] += n
            for dtype, why, n in left_out[backend]:
                self.unasked[r["key"]][named][_dtype(dtype)][why] += n
            for name, label, kind, n in r.get("labels") or ():
                if name == backend:
                    self.labels[r["key"], label, named][kind] += n
            self.differing += hash(ident) in self.seen_rows
            self.seen_rows.update((hash(ident), *same))
            for dtype, verdict, n in rows:
                self.cube[r["key"], r["opset"], named, _dtype(dtype), verdict] += n

    def case(self, r: dict[str, Any], run: dict[str, Any]) -> None:
        named = self.named(r["backend"], run)
        ident = (r["id"], str(r["opset"]), named, r["verdict"], r.get("output", 0))
        if ident in self.seen_cases:
            return
        self.seen_cases.add(ident)
        group = (r["key"], named, r["verdict"])
        if len(self.cases[group]) >= PER_GROUP or self.kept >= self.limit:
            self.s.omitted[group[0], "\0".join(named), group[2]] += 1
            return
        self.kept += 1
        kept = {k: _exact(v) for k, v in r.items() if k != "t"}
        self.cases[group].append(kept | {"dtype": _dtype(r.get("dtype"))})

    def covered(self, r: dict[str, Any], run: dict[str, Any]) -> None:
        """What the instances of a batch cover: once, however many runs and machines asked them."""
        told = r.get("cover")
        ident = hash(("cover", run.get("seed"), r["key"], str(r["opset"]), str(r["first"]), r["count"]))
        if not told or ident in self.seen_rows:
            return
        self.seen_rows.add(ident)
        self.coverage(r["key"], told)

    def coverage(self, key: str, r: dict[str, Any]) -> None:
        """Add what the instances of a batch cover to what is known of the op version."""
        c = self.s.coverage.get(key)
        if c is None:
            c = self.s.coverage[key] = {
                "dtype": {},
                "choices": {},
                "pairs": [0, 0],
                "rules": {},
                "uninformative": 0,
                "instances": 0,
                "valid": 0,
                "counted": 0,
            }
        if r.get("reach"):
            told = self.reach.setdefault(key, {})
            for part, names in r["reach"].items():
                told.setdefault(part, {}).update(dict.fromkeys(names))
        for part in ("dtype", "choices", "rules"):
            for name, n in (r.get(part) or {}).items():
                name = _dtype(name) if part == "dtype" else name
                c[part][name] = c[part].get(name, 0) + n
        names = list(r.get("choices") or {})
        for places in r.get("sets") or ():
            self.pairs[key].meet([names[i] for i in places])
        c["instances"] += sum((r.get("dtype") or {}).values())
        c["valid"] += r.get("valid", 0)
        c["counted"] += r.get("counted", 0)

    def sensitivity(self, r: dict[str, Any], run: dict[str, Any]) -> None:
        ident = (run.get("seed"), r["key"], r["dtype"], r.get("fault"))
        old = self.seen_faults.get(ident)
        if old is None:
            self.seen_faults[ident] = {k: v for k, v in r.items() if k != "t"}
            self.s.sensitivity.append(self.seen_faults[ident])
        elif r.get("behind"):  # the same measurement from another machine of a matrix, with other backends, counts once
            old["behind"] = {**old.get("behind", {}), **r["behind"]}
            if same := {**old.get("identified", {}), **r.get("identified", {})}:
                old["identified"] = same

    def finish(self) -> Summary:
        s = self.s
        versions = Counter(name for name, _ in self.info)
        label = {n: n[0] if versions[n[0]] == 1 or not n[1] else f"{n[0]} {n[1]}" for n in self.info}
        s.backends = {label[n]: {"name": n[0], **info} for n, info in sorted(self.info.items())}
        for (key, opset, named, dtype, verdict), n in self.cube.items():
            s.cube[key, opset, label[named], dtype, verdict] += n
        s.elements = {key: {label[named]: n for named, n in by.items()} for key, by in self.elements.items()}
        s.paths = {
            key: {label[named]: dict(n.most_common()) for named, n in by.items()} for key, by in self.paths.items()
        }
        s.labels = [
            {"key": key, "label": told, "backend": label[named], "paths": dict(n.most_common())}
            for (key, told, named), n in sorted(self.labels.items(), key=lambda x: (*x[0][:2], label[x[0][2]]))
        ]
        s.unasked = {
            key: {label[named]: {d: dict(n.most_common()) for d, n in types.items()} for named, types in by.items()}
            for key, by in self.unasked.items()
        }
        for (key, _, _, _, verdict), n in s.cube.items():
            if verdict == Verdict.UNINFORMATIVE.value and key in s.coverage and key in s.elements:
                s.coverage[key]["uninformative"] += n
        for key, told in self.reach.items():
            reached, ruled_out = told.get("met", {}), told.get("ruled_out", {})
            unmet = [g for g in told.get("goals", {}) if g not in reached and g not in ruled_out]
            s.coverage[key]["reach"] = {"met": len(reached), "ruled_out": len(ruled_out), "unmet": unmet}
        for id, n in self.hits.items():
            _listed(s.ambiguity if id in s.ambiguity else s.known, {"id": id, "hits": n})
        for key, pairs in self.pairs.items():
            seen, total = s.coverage[key]["pairs"]
            possible = max(total, _pairs_possible(s.coverage[key]["choices"]))
            s.coverage[key]["pairs"] = [max(seen, min(pairs.count, possible)), possible]
        s.omitted = Counter({(k, label[_named(b)], v): n for (k, b, v), n in s.omitted.items()})
        for (_, named, _), cases in self.cases.items():
            for case in cases:
                case["backend"] = label[named]
                s.cases.append(case)
        for n, met in self.shards.values():
            if len(met) < n:
                s.partial = True
                s.notes.append(f"of a run in {n} shards these records hold {' '.join(map(str, sorted(met)))} alone")
        if self.repeated:
            s.notes.append(f"{self.repeated} batches were recorded more than once; counted once")
        if self.differing:
            s.notes.append(f"{self.differing} batches ended otherwise on another machine; each ending is counted")
        if s.omitted:
            s.notes.append(
                f"{sum(s.omitted.values()):,} case records beyond {PER_GROUP} of one kind or {self.limit:,} "
                "in all are counted but not shown one by one"
            )
        s.clusters = find_clusters(s.cases, s.cube, s.coverage, BAD)
        s.cases.sort(key=lambda c: (RANK[c["verdict"]], key_order(c["key"]), c["backend"]))
        _number_clusters(s)
        s.causes = find_causes(s.cases, s.cube, s.coverage)
        for c in s.cases:
            for ledger, name in ((s.known, c.get("known")), (s.ambiguity, c.get("ambiguity"))):
                if name:
                    ledger.setdefault(name, {"id": name, "hits": 0, "reason": "", "clause": "", "unlisted": True})
                    ledger[name]["cases"] = ledger[name].get("cases", 0) + 1
        for entry in s.ambiguity.values():
            entry["hits"] = entry["hits"] or entry.get("cases", 0)
        return s


def hidden_faults(sensitivity: Iterable[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Of every backend with known differences: planted faults that these excuse wherever they were tried, and all that
    met them."""
    out: dict[str, tuple[int, int]] = {}
    for r in sensitivity:
        for backend, ids in (r.get("behind") or {}).items():
            hidden, met = out.get(backend, (0, 0))
            out[backend] = hidden + bool(ids), met + 1
    return out


def identified_faults(sensitivity: Iterable[dict[str, Any]]) -> Counter[str]:
    """Of every backend: planted faults that are a listed defect itself, bit for bit; they are not hidden."""
    return Counter(backend for r in sensitivity for backend in r.get("identified") or ())


def _pairs_possible(choices: Iterable[str]) -> int:
    """Pairs of features of different attributes or operands."""
    names = Counter(f.split("=")[0].split(" ")[0] for f in choices)
    n = names.total()
    return (n * n - sum(x * x for x in names.values())) // 2


def _dtype(name: Any) -> str:
    """An instance that lacks its first argument has no type of its own."""
    return "-" if name in (None, "", "None") else str(name)


def _exact(value: Any) -> Any:
    """Integers beyond 2^53 as words: the page's numbers are doubles and would round them."""
    if isinstance(value, dict):
        return {k: _exact(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_exact(v) for v in value]
    return str(value) if isinstance(value, int) and abs(value) > 1 << 53 else value


def _named(joined: str) -> Named:
    name, _, version = joined.partition("\0")
    return name, version


def _listed(ledger: dict[str, dict[str, Any]], r: dict[str, Any]) -> None:
    entry = ledger.setdefault(r["id"], {"id": r["id"], "hits": 0, "reason": "", "clause": ""})
    entry["hits"] += r.get("hits") or 0
    for name, value in r.items():
        if name not in ("t", "id", "hits") and value:
            entry[name] = value


def _number_clusters(s: Summary) -> None:
    """Turn the clusters' case lists into an index on each case, so that the JSON holds every case once."""
    for case in s.cases:
        case["cluster_index"] = None
    for i, cluster in enumerate(s.clusters):
        for case in cluster.pop("members"):
            case["cluster_index"] = i


_HANDLERS = {k: getattr(_Reader, k) for k in ("batch", "case", "sensitivity")}
