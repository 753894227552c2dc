"""What there is: rows of text for ``opconform list``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase

import numpy as np

from harness.backends import registry as backend_registry
from harness.backends.providers.table import PROVIDERS
from harness.cases.selection import Selection, versions
from harness.compare.steps import others
from harness.core.quiet import quiet
from harness.declare import registry
from harness.declare.invalid import invalid_generators_of
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from harness.ledger.ledger import elements_of
from harness.ledger.loader import load_ledger
from harness.reach.excused import MOST, Sentences, share_of
from harness.reach.goals import goals_of
from harness.reach.survey import met_in
from harness.reach.unreached import Unreached
from harness.tolerance.underspecified import Openness

Rows = list[list[str]]


def dialects(sel: Selection) -> Rows:
    """Name, where its facts come from, number of ops and op versions."""
    rows = []
    for name in sel.dialects or registry.names():
        d = registry.dialect(name)
        ops = {v.op for v in d.versions.values()}
        rows.append([name, d.title, f"{len(ops)} ops", f"{len(d.versions)} op versions"])
    return rows


def opsets(sel: Selection) -> Rows:
    """pytest marker, dialect, number of op versions in force."""
    return [
        [marker, dialect, f"{len(versions(Selection([dialect], opset)))} op versions in force"]
        for marker, (dialect, opset) in registry.opset_markers().items()
        if not sel.dialects or dialect in sel.dialects
    ]


def families(sel: Selection) -> Rows:
    """Family, number of op versions."""
    counts = Counter(v.family for v in versions(sel))
    return [[f, f"{n} op versions"] for f, n in sorted(counts.items())]


def ops(sel: Selection) -> Rows:
    """Op version, family, opsets at which it is in force."""
    rows = []
    for v in versions(sel):
        first, last = v.opsets[0], v.opsets[-1]
        rows.append([v.key, v.family, f"opset {first}" if first == last else f"opsets {first} to {last}"])
    return rows


def meanings(sel: Selection) -> Rows:
    """Op version, what decides its result, the tolerance of each output, and the rules that a runtime must hold."""
    rows = []
    for v in versions(sel):
        told = v.entry.error or (v.meaning.error if v.meaning is not None else ())
        errors = told if isinstance(told, tuple) else (told,)
        source = v.entry.source or (v.meaning.source if v.meaning is not None else "")
        formulas = "; ".join(dict.fromkeys(e.formula for e in errors))
        rows.append([v.key, source, formulas, "rules: " + " ".join(invalid_generators_of(v))])
    return rows


_INSTANCES = 24  # of each op version that ``bounds`` looks at


def bounds(sel: Selection) -> Rows:
    """For each op version and output: how many integers beside the reference its derived bound lets pass.

    That is the median and the most over the elements of some drawn instances; then comes the formula.  Exact results
    are left out.
    """
    rows = []
    for v in versions(sel):
        more: dict[int, list[np.ndarray]] = {}
        formulas: dict[int, str] = {}
        for n in range(_INSTANCES):
            inst = v.draw(Prng(case_seed(0, v.key, n)))
            with quiet:
                for i, e in enumerate(v.dialect.evaluate(inst, arrays_of(inst))):
                    passing = others(e)
                    if passing is not None:
                        more.setdefault(i, []).append(passing.ravel())
                        formulas[i] = e.error.formula
        for i, parts in sorted(more.items()):
            count = np.concatenate(parts)
            if count.size and count.max() > 0:
                told = [f"median {np.median(count):g}", f"most {count.max():g}", formulas[i]]
                rows.append([v.key, f"output {i}", *told])
    return rows


def backends(sel: Selection) -> Rows:
    """Name, formats, version or why it cannot be had here.  Starts each backend once."""
    rows = []
    asked = {registry.dialect(d).format for d in sel.dialects}
    for name in backend_registry.names():
        if asked and name in backend_registry.BUILTIN and asked.isdisjoint(backend_registry.formats_of(name)):
            continue
        with backend_registry.create(name) as h:
            why = h.missing()
            formats = h.info.formats if why is None else backend_registry.formats_of(name)
            state = h.info.version if why is None else f"not here: {why}"
            rows.append([name, ",".join(formats), state])
    return rows


def providers(sel: Selection) -> Rows:
    """Execution providers of ONNX Runtime: name, backend, package and its version in this Python, what it needs."""
    return [
        [p.name, p.backend, f"{p.package} {p.installed or 'not installed here'}", p.needs or "no special hardware"]
        for p in PROVIDERS
    ]


def known(sel: Selection) -> Rows:
    """Id, known or ambiguous, backends, ops, reason or what is open, clause."""
    asked = {v.key.rpartition("/")[0] for v in versions(sel)} if sel.dialects or sel.ops or sel.families else None
    return [
        [e.id, e.kind_of, ",".join(e.backends), ",".join(e.ops), e.reason, e.clause]
        for e in load_ledger().entries
        if asked is None or any(fnmatchcase(op, o) for op in asked for o in e.ops)
    ]


def unconditioned(sel: Selection) -> Rows:
    """Known differences that excuse whatever comes instead of the right answer: id, file, backends, ops, why nothing is
    said of the answer; then the share of them in each folder."""
    asked = {v.key.rpartition("/")[0] for v in versions(sel)} if sel.dialects or sel.ops or sel.families else None
    entries = [
        e
        for e in load_ledger().entries
        if e.of_answers and (asked is None or any(fnmatchcase(op, o) for op in asked for o in e.ops))
    ]
    rows = [
        [e.id, e.source, ",".join(e.backends), ",".join(e.ops), e.wide or "no reason given"]
        for e in entries
        if e.unconditioned
    ]
    every = Counter(e.folder for e in entries)
    open_ = Counter(e.folder for e in entries if e.unconditioned)
    told = [*sorted(every.items()), ("all folders", every.total())]
    for folder, n in told:
        some = open_.total() if folder == "all folders" else open_[folder]
        rows.append([f"{some} of {n}", folder, f"{100 * some / n:.1f} %" if n else "", "", ""])
    return rows


def reach(sel: Selection, draws: int) -> Rows:
    """Op version, goal, and its state in so many drawn instances, with its clause: "met", "unmet", "open" (the ledger
    says that it is unmet) or "ruled out".  The numbers of each op version come last."""
    rows, totals = [], []
    ledgers: dict[str, Unreached] = {}
    for v in versions(sel):
        ledger = ledgers.setdefault(v.dialect.name, Unreached(v.dialect))
        clauses, gaps, found = ledger.clauses(v), ledger.open_goals(v), met_in(v, draws)
        counts: Counter[str] = Counter()
        for goal in goals_of(v).ids:
            how = "met" if goal in found else "ruled out" if goal in clauses else "open" if goal in gaps else "unmet"
            counts[how] += 1
            rows.append([v.key, goal, how, clauses.get(goal, "")])
        told = ", ".join(f"{counts[how]} {how}" for how in ("met", "ruled out", "open", "unmet"))
        totals.append([v.key, f"{sum(counts.values())} goals", f"{told} in {draws} draws", ""])
    return rows + totals


def excused(sel: Selection, draws: int) -> Rows:
    """Op version, and of its drawn valid instances the shares that the specification leaves open: "excused" (wholly, or
    in some elements that are compared with nothing), "wholly" alone, and "readings" (every open element is compared
    with the readings that are enumerated); then why.  Op versions that leave nothing open are left out."""
    rows = []
    ledger = load_ledger()
    sentences: dict[str, Sentences] = {}
    for v in versions(sel):
        s = share_of(v, draws, elements_of(ledger, v))
        if not s.counts:
            continue
        told = sentences.setdefault(v.dialect.name, Sentences(v.dialect)).of(v.key)
        why = told if s.excused > MOST and told else "; ".join(s.reasons)
        wholly, readings = (s.counts[o] / s.valid for o in (Openness.WHOLLY, Openness.READINGS))
        shares = f"excused {100 * s.excused:.1f} %", f"wholly {100 * wholly:.1f} %", f"readings {100 * readings:.1f} %"
        rows.append([v.key, *shares, f"of {s.valid}", why])
    return rows


LISTS: dict[str, Callable[[Selection], Rows]] = {
    "dialects": dialects,
    "opsets": opsets,
    "families": families,
    "ops": ops,
    "meanings": meanings,
    "bounds": bounds,
    "backends": backends,
    "providers": providers,
    "known": known,
    "unconditioned": unconditioned,
}
DRAWN: dict[str, Callable[[Selection, int], Rows]] = {"reach": reach, "excused": excused}  # of so many instances
