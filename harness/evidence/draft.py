"""Drafts entries for a list of known differences from the failures of a run, for a person to edit.

A draft has an entry for each cluster: its condition is the fact of the cluster, its instance the smallest that shows
the failure.  For a wrong answer it states one of these, if it holds for all recorded elements:

* the right answer of the same instance with another attribute or without an operand (``behaves_as``)
* zeros, NaN, the end of the range, or an error of a few ulp (a condition on the answer)

Otherwise it states ``wide``: nothing is known about the answer.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from harness.cases.case import fill
from harness.cases.given import Given
from harness.core.errors import OpconformError
from harness.core.escape import file_name, one_line, visible
from harness.core.features import pattern_of
from harness.core.instance import Instance, encode_value
from harness.core.outcome import Verdict
from harness.core.quiet import quiet
from harness.declare import registry
from harness.ledger.facts import Facts
from harness.ledger.predicate import PLAIN, condition
from harness.ledger.tables import ORDER, entry

HEAD = """\
# Drafted by `opconform known --write`.  Read every entry before you keep it:
#   reason, clause: say what is wrong and which sentence of the specification decides it
#   when, behaves_as, wide: narrow them until nothing else is excused
"""
# After the name of an attribute or a slot: what is said of it, and the condition, where n is the name as a literal and
# k what the pattern found.
_TOLD: tuple[tuple[str, str], ...] = (
    (r" omitted", "attr({n}) is None"),
    (r" given", "attr({n}) is not None"),
    (r" negative", "attr({n}, 0) < 0"),
    (r": absent", "not has({n})"),
    (r": length (\d+)", "len(attr({n}, [])) == {k}"),
    (r": all (\S+)", "set(attr({n}, [])) == {{{k}}}"),
    (r": uneven", "len(set(attr({n}, []))) > 1"),
    (r": has negative", "min(attr({n}, [0])) < 0"),
    (r": (\d+) tensors", "len([s for s, i in slots if s == {n}]) == {k}"),
    (r": rank (\d+)", "has({n}) and rank({n}) == {k}"),
    (r": empty axis", "0 in shape({n})"),
    (r": axis of 1", "1 in shape({n})"),
    (r": constant", "const({n})"),
    (r": constant in (\w+)", "encoding({n}) == '{k}'"),
    (r": dynamic", "dynamic({n})"),
    (r": quantised per channel", "scales({n}) > 1"),
    (r": quantised per tensor", "scales({n}) == 1"),
    (r": data (\w+)", "str(recipe({n}))[:{size}] == '{k}'"),
)
FEW_ULP = 1024.0
TRIED = 4  # members of a cluster that a guess must explain
Rec = Mapping[str, Any]


def drafted(clusters: Sequence[Rec], cases: Iterable[Rec], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Tables of entries.  clusters, cases: of a summary of records.  names: of the backends, by label."""
    members: dict[int, list[Rec]] = defaultdict(list)
    for c in cases:
        if c.get("cluster_index") is not None and not c.get("neighbours") and not c.get("prior_models"):
            members[c["cluster_index"]].append(c)
    groups: dict[tuple[str, ...], list[Rec]] = defaultdict(list)
    for i, cluster in enumerate(clusters):
        fact = cluster["predicate"] if cluster["predicate"] not in ("every instance", "no single fact") else ""
        for c in members[i]:
            words = pattern_of(c["message"]) if c["verdict"] != Verdict.MISMATCH.value else c.get("kind") or ""
            op = c["key"].rpartition("/")[0]
            groups[names.get(c["backend"], c["backend"]), op, c["verdict"], words, fact].append(c)
    out: dict[str, dict[str, Any]] = {}
    for (backend, op, verdict, _, fact), some in groups.items():
        t = _table(backend, op, verdict, fact, some)
        base, n = t["id"], 1
        while t["id"] in out:
            n += 1
            t["id"] = f"{base}-{n}"
        out[t["id"]] = t
    return list(out.values())


def text_of(tables: Iterable[dict[str, Any]]) -> str:
    """The file of such tables."""
    parts = [HEAD]
    for t in tables:
        lines = ["[[known]]", *(f"{k} = {_toml(t[k])}" for k in ORDER if k in t)]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str) and "'" not in value and ("\\" in value or '"' in value) and value.isprintable():
        return f"'{value}'"
    return json.dumps(visible(value) if isinstance(value, str) else value, ensure_ascii=False)


def _table(backend: str, op: str, verdict: str, fact: str, some: Sequence[Rec]) -> dict[str, Any]:
    """The table of failures of one kind."""
    first = min(some, key=lambda c: (c.get("minimal") is None, len(json.dumps(c["instance"]))))
    t: dict[str, Any] = {
        "id": file_name(f"{backend}-{op.rpartition('/')[2]}-{verdict}-{first['id'][:6]}").replace("_", "-"),
        "backend": backend,
        "op": op,
        "op_versions": sorted({c["instance"]["version"] for c in some}, key=str),
        "clause": "draft: quote the sentence of the specification that decides",
    }
    if verdict != Verdict.MISMATCH.value:
        t["verdict"] = verdict
        words = re.split(r"\*+", pattern_of(first["message"]))
        if any(w.strip() for w in words):
            t["message"] = ".*".join(re.escape(w.strip()).replace(r"\ ", r"\s+") for w in words if w.strip())
    else:
        t["kind"] = first["kind"]
    said, when = condition_of(fact, first["instance"]) if fact else ({}, "")
    t |= said
    inst = Instance.from_json(first["minimal"] or first["instance"])
    if when and not _holds(when, inst):  # it was made smaller until the fact was gone
        inst = Instance.from_json(first["instance"])
        when = when if _holds(when, inst) else ""
    conditions = [when] if when else []
    if verdict == Verdict.MISMATCH.value:
        edit = _behaves_as(some)
        answer = "" if edit else _answer(some)
        if edit:
            t["behaves_as"] = edit
        elif answer:
            conditions.append(answer)
        else:
            t["wide"] = "draft: nobody has said yet what comes instead"
    if conditions:
        t["when"] = " and ".join(conditions)
    t["reason"] = "draft: " + one_line(_reason(first, fact))[:300]
    t["instance"] = inst.dumps()
    entry("known", t, "draft", Path())  # what a reader would refuse is a defect of this file
    return t


def _reason(c: Rec, fact: str) -> str:
    what = c["verdict"].replace("_", " ")
    diff = c.get("diff") or {}
    if c["verdict"] == Verdict.MISMATCH.value:
        told = diff.get("pattern") or diff.get("detail") or ""
        what += f", {c['kind']}" + (f": {told}" if told else "")
    elif c["message"]:
        what += f": {c['message']}"
    return f"{fact}: {what}" if fact else what


def _holds(when: str, inst: Instance) -> bool:
    """Does the condition hold of an instance?"""
    try:
        return condition(when)(Facts(fill(registry.version_of(inst), inst), PLAIN))
    except Exception:
        return False


def _answer(some: Sequence[Rec]) -> str:
    """A condition on the answer that holds of all recorded wrong elements, empty where none is found."""
    elements = [e for c in some for e in (c.get("diff") or {}).get("elements") or ()]
    if not elements:
        return ""
    got = [e["actual"] for e in elements]
    if all(_float(x) == 0 for x in got):
        return "all(a == 0 for e, a in wrong_pairs)"
    if all(math.isnan(_float(x)) for x in got) and not any(isinstance(x, str) and x[:3] != "nan" for x in got):
        return "all(a != a for e, a in wrong_pairs)"
    diffs = [c["diff"] for c in some]
    if all(d.get("clamped") == 1 for d in diffs):
        return "clamped == 1"
    ulps = [_float(d.get("max_ulp")) for d in diffs]
    worst = max(ulps)
    return f"ulp <= {math.ceil(worst)}" if all(math.isfinite(u) for u in ulps) and worst <= FEW_ULP else ""


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _behaves_as(some: Sequence[Rec]) -> str:
    """The edit of the instances for which the recorded elements are right, as JSON; empty where none is found."""
    tried = [c for c in some if (c.get("diff") or {}).get("elements")][:TRIED]
    if not tried:
        return ""
    for edit in islice(_edits(tried[0]["instance"], some), 24):
        try:
            if all(_explains(edit, c) for c in tried):
                return json.dumps(edit)
        except (OpconformError, ValueError, TypeError, KeyError, IndexError):
            continue
    return ""


def _edits(instance: Rec, some: Sequence[Rec]) -> Iterator[dict[str, Any]]:
    """Each attribute absent, switched, or as in another instance; each operand that may be absent left out."""
    version = registry.version_of(Instance.from_json(dict(instance)))
    for name, value in instance["attrs"].items():
        if name.startswith("@"):
            continue
        yield {"attrs": {name: None}}
        if value in (0, 1):
            yield {"attrs": {name: (not value) if isinstance(value, bool) else 1 - value}}
        others = {json.dumps(encode_value(c["instance"]["attrs"].get(name))): None for c in some}
        yield from ({"attrs": {name: json.loads(o)}} for o in islice(others, 4) if json.loads(o) not in (None, value))
    for slot in version.schema.inputs:
        if slot.optional and slot.name in instance["args"]:
            yield {"args": {slot.name: None}}


def _explains(edit: Mapping[str, Any], c: Rec) -> bool:
    """Is the right answer of the edited instance what was recorded?"""
    inst, diff = Instance.from_json(c["instance"]), c["diff"]
    case = fill(registry.version_of(inst), inst)
    with quiet:
        row = Given(case, 0).reevaluate(edit.get("attrs"), edit.get("args"))
    if not row or c["output"] >= len(row):
        return False
    value = row[c["output"]].value
    if not isinstance(value, np.ndarray) or list(value.shape) != list(diff.get("got_shape") or ()):
        return False
    for e in diff["elements"]:
        told, came = _float(value[tuple(e["index"])]), _float(e["actual"])
        near = math.isfinite(told) and abs(told - came) <= abs(told) * 1e-3
        if not (told == came or (math.isnan(told) and math.isnan(came)) or near):
            return False
    return True


def condition_of(fact: str, instance: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Fields of an entry, and a condition; both empty for a fact that no condition can say.

    instance: one that has the fact, in its JSON form, which tells the type of an attribute's value."""
    if fact.startswith("dtype="):
        return {"dtypes": [fact.removeprefix("dtype=")]}, ""
    if fact.startswith("opset="):
        return {"opsets": [instance["opset"]]}, ""
    if fact.startswith("breaks "):
        return {}, f"rule == {fact.removeprefix('breaks ')!r}"
    if fact == "shapes differ":
        return {}, "len(set([str(shape(s, i)) for s, i in slots])) > 1"
    for pattern, told in reversed(_TOLD):
        found = re.fullmatch(r"(.+?)" + pattern, fact)
        if found is not None and (found[1] in instance["args"] or found[1] in instance["attrs"] or "None" in told):
            k = found[2] if found.lastindex and found.lastindex > 1 else ""
            return {}, told.format(n=repr(found[1]), k=k, size=len(k))
        if found is not None and told.startswith("not has"):
            return {}, told.format(n=repr(found[1]))
    name, same, _ = fact.partition("=")
    value = instance["attrs"].get(name)
    if not same or name not in instance["attrs"]:
        return {}, ""
    if isinstance(value, dict):
        return {}, f"str(attr({name!r})) == {value['dtype']!r}" if "dtype" in value else ""
    return {}, f"attr({name!r}) == {value!r}"
