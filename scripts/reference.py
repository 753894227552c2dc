"""Write the tables of docs/verdicts.md and docs/records.md, and the verdict table of README.md.

    python scripts/reference.py          # rewrites the tables
    python scripts/reference.py --check  # 1 if a table is not current

The sentences of verdicts come from ``harness/core/outcome.py``, the fields of records from ``harness/core/forms.py``,
and the sentences of fields from ``docs/record_fields.toml``.  A table stands between two comments in its page.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from harness.core import forms
from harness.core.form_check import Form
from harness.core.outcome import Status, Verdict

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
FIELDS = ROOT / "docs/record_fields.toml"
SECTIONS = ("COVER", "LISTED", "DIFF", "ELEMENT", "SELECTION", "BACKEND", "PLACE", "INSTANCE", "ARG", "GRAPH", "NODE")
NAMED = {id(getattr(forms, name)): name.lower() for name in SECTIONS} | {
    id(forms.ARGS): "object: slot name -> [arg](#arg) or list of them",
    id(forms.value): "a value",
    id(forms.anything): "anything",
}


def sentences(of: type[Enum]) -> dict[str, str]:
    """Value -> its sentence in the class's docstring.  Raises ValueError for a value that has none."""
    found = dict(re.findall(r"^(\w+): (.+)$", inspect.cleandoc(of.__doc__ or ""), re.M))
    missing = [m.value for m in of if m.value not in found]
    if missing:
        raise ValueError(f"{of.__name__}: the docstring has no line for {' '.join(missing)}")
    return {m.value: found[m.value] for m in of}


def verdict_table(marks: bool) -> list[str]:
    """The table of verdicts.  marks: whether a run fails as a mark beside the name, else as columns."""
    if marks:
        rows = [f"| `{v.value}`{' ✗' if v.bad else ''} | {v.sentence} |" for v in Verdict]
        return ["| Verdict | Meaning |", "| --- | --- |", *rows]
    yes = {True: "yes", False: "no"}
    rows = [f"| `{v.value}` | {v.sentence} | {yes[v.judged]} | {yes[v.bad]} |" for v in Verdict]
    return ["| Verdict | Meaning | Judged | Unexplained |", "| --- | --- | --- | --- |", *rows]


def status_table() -> list[str]:
    """The table of outcomes."""
    return ["| Outcome | Meaning |", "| --- | --- |", *(f"| `{k}` | {x} |" for k, x in sentences(Status).items())]


def inside(form: Form) -> Mapping[str, Any]:
    """What a form of ``harness.core.form_check`` was made of: the names in its closure."""
    return inspect.getclosurevars(form).nonlocals


def words(form: Form) -> str:
    """A form in words, as a cell of a table."""
    if id(form) in NAMED:
        name = NAMED[id(form)]
        return f"[{name}](#{name})" if name.upper() in SECTIONS else name
    made, maker = inside(form), form.__qualname__.partition(".")[0]
    if maker in ("kind", "that"):
        return str(made["words"])
    if maker == "maybe":
        return f"{words(made['inner'])}, or null"
    if maker == "listed":
        return f"list of {words(made['inner'])}"
    if maker == "table":
        return f"object: name -> {words(made['inner'])}"
    if maker == "row":
        return str(made["words"]) if made["words"].startswith("[") else f"[{', '.join(map(words, made['inner']))}]"
    if maker == "later":
        return words(made["name"]())
    if maker == "fields":
        return "object with " + ", ".join(f"`{name}`" for name in made["known"])
    return "anything"


def field_rows(name: str, form: Form, told: Mapping[str, str]) -> list[str]:
    """The section of one record or part.  Raises ValueError where ``told`` and the form name other fields."""
    made = inside(form)
    if set(told) - {"_"} != set(made["known"]):
        odd = sorted((set(told) - {"_"}) ^ set(made["known"]))
        raise ValueError(f"{FIELDS.name}: [{name}]: missing or superfluous: {' '.join(odd)}")
    out = ["", f"### {name}", "", told["_"], "", "| Field | Form | Meaning |", "| --- | --- | --- |"]
    for field, inner in made["known"].items():
        needed = field in made["needed"]
        form_words = words(inner) if needed else words(inner).removesuffix(", or null")  # the page says that of all
        out.append(f"| `{field}`{'' if needed else ' (optional)'} | {form_words} | {told[field]} |")
    return out


def record_tables() -> list[str]:
    """All kinds of records, then the parts that they refer to."""
    told = tomllib.loads(FIELDS.read_text("utf-8"))
    kinds = {**forms.RECORDS, **{name.lower(): getattr(forms, name) for name in SECTIONS}}
    if set(told) != set(kinds):
        raise ValueError(f"{FIELDS.name}: missing or superfluous: {' '.join(sorted(set(told) ^ set(kinds)))}")
    out = ["## Kinds of records"]
    for name, form in kinds.items():
        if name == SECTIONS[0].lower():
            out += ["", "## Parts of records"]
        out += field_rows(name, form, told[name])
    return out


TABLES = {
    "README.md": {"verdicts": lambda: verdict_table(marks=True)},
    "docs/verdicts.md": {"verdicts": lambda: verdict_table(marks=False), "outcomes": status_table},
    "docs/records.md": {"records": record_tables},
}


def current(page: str) -> str:
    """The text of a page with its tables made anew.  Raises ValueError where a table has no place."""
    text = (ROOT / page).read_text("utf-8")
    for name, table in TABLES[page].items():
        begin, end = f"<!-- {name}: scripts/reference.py -->\n", "\n<!-- end -->"
        head, found, rest = text.partition(begin)
        _, closed, tail = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"{page}: expected a line {begin.strip()!r} and, below it, {end.strip()!r}")
        text = head + begin + "\n".join(["", *table(), ""]) + end + tail
    return text


def main() -> int:
    """Rewrite the pages, or say which one is not current."""
    code = 0
    for page in TABLES:
        new, path = current(page), ROOT / page
        if new == path.read_text("utf-8"):
            continue
        if "--check" in sys.argv[1:]:
            print(f"{page} is not current: run python scripts/reference.py")
            code = 1
        else:
            path.write_text(new, "utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
