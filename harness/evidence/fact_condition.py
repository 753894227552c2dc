"""The fact of a cluster (``harness.core.features``) as fields and a condition of an entry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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
