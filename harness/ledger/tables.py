"""One table of a file of known differences or of the ambiguity ledger: its fields, and the entry that it makes.

``docs/known-differences.md`` says what each field and each name of a condition means.  The minimal instance stands in
the file of the same name with the ending ``.jsonl``, one entry a line, or in the table, as a text in ``instance``.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from packaging.specifiers import InvalidSpecifier

from harness.core.errors import FormatError
from harness.core.instance import Instance, decode_value
from harness.core.outcome import Verdict
from harness.ledger.defect_models import model, taken_for
from harness.ledger.entry import ELEMENTS, REFUSALS, LedgerEntry
from harness.ledger.predicate import condition
from harness.ledger.releases import releases
from harness.workers.worker.processor import WORDS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

STATUSES = ("unreported", "reported", "confirmed")
# The fields of an entry in the order in which they are written.
ORDER = (
    "id",
    "status",
    "link",
    "backend",
    "versions",
    "cpu",
    "op",
    "op_versions",
    "opsets",
    "dtypes",
    "verdict",
    "kind",
    "message",
    "when",
    "behaves_as",
    "defect_model",
    "refused_if",
    "wide",
    "elements",
    "corrupts_process",
    "intermittent",
    "shown_by",
    "reason",
    "question",
    "readings",
    "clause",
    "neighbours",
    "instance",
)
KEYS = {
    "known": set(ORDER) - {"question", "readings", "elements"},
    "ambiguous": set(ORDER) - {"reason", "status", "behaves_as", "refused_if", "wide", "intermittent"},
}
_NEED = {
    "known": {"id", "backend", "op", "reason", "clause"},
    "ambiguous": {"id", "op", "question", "clause", "readings"},
}
_WHOLE = {"kind", "message", "verdict", "neighbours", "defect_model"}  # what is said of a whole answer
_TEXTS = ("reason", "question", "when", "message", "instance", "refused_if", "wide", "intermittent")
_BAD = {v.value for v in Verdict if v.bad}


class Shown(NamedTuple):
    """A line beside the file: the minimal instance of an entry, and those that stand before it in its model."""

    line: int
    instance: Instance
    neighbours: tuple[Instance, ...] = ()


def parsed(path: Path, text: str, source: str) -> dict[str, Any]:
    """The tables of a file.  Raises FormatError naming file and line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        at = re.search(r"at line (\d+)", str(e))
        raise FormatError(f"{source}:{at[1] if at else len(text.splitlines())}: {e}") from None


def entry(kind: str, t: dict[str, Any], source: str, place: Path, shown: Shown | None = None) -> LedgerEntry:
    """The entry of one table.  source: the file, as people are told of it; place: the folder with the defect models;
    shown: its minimal instance, where that stands beside the file.  Raises FormatError naming the field."""
    try:
        _check(kind, t, shown)
        behaves_as = [taken_for(_edit(x)) for x in texts(t, "behaves_as")]
        return LedgerEntry(
            t["id"],
            source,
            kind,
            texts(t, "backend", ("*",)),
            texts(t, "op"),
            t["clause"],
            t.get("reason") or t.get("question", ""),
            tuple(map(releases, texts(t, "versions"))),
            tuple(t.get("op_versions", ())),
            tuple(t.get("opsets", ())),
            texts(t, "dtypes"),
            condition(t["when"]) if "when" in t else None,
            _verdicts(t),
            texts(t, "kind"),
            re.compile(t["message"]) if "message" in t else None,
            t.get("link", ""),
            shown.instance if shown else _instance(t.get("instance")),
            texts(t, "readings"),
            corrupts_process=t.get("corrupts_process", False),
            neighbours=shown.neighbours if shown else tuple(map(_instance, texts(t, "neighbours"))),
            cpu=texts(t, "cpu"),
            shown_by=texts(t, "shown_by"),
            elements=t.get("elements", ""),
            defect_model=(*behaves_as, *(model(place, n) for n in texts(t, "defect_model"))),
            refused_if=model(place, t["refused_if"]) if "refused_if" in t else None,
            wide=t.get("wide", ""),
            intermittent=t.get("intermittent", ""),
            status=t.get("status", STATUSES[0] if kind == "known" else ""),
        )
    except InvalidSpecifier as e:
        raise FormatError(f"versions: {e}") from None
    except re.error as e:
        raise FormatError(f"message: {e}") from None
    except FormatError:
        raise
    except ValueError as e:
        raise FormatError(f"when: {e}") from None


def _check(kind: str, t: dict[str, Any], shown: Shown | None) -> None:
    """Raises FormatError for a table whose fields are unknown, missing, of another form, or at odds."""
    unknown, missing = sorted(set(t) - KEYS[kind]), sorted(_NEED[kind] - set(t))
    if unknown:
        raise FormatError(f"unknown field {unknown[0]!r}, expected some of {' '.join(sorted(KEYS[kind]))}")
    if missing:
        raise FormatError(f"field {missing[0]!r} is missing")
    for key in (*_TEXTS, "id", "clause"):
        if key in t and (not isinstance(t[key], str) or not t[key].strip()):
            raise FormatError(f"{key} must be a text, got {t[key]!r}")
    if not isinstance(t.get("link", ""), str):
        raise FormatError(f"link must be a text, got {t['link']!r}")
    status = t.get("status", STATUSES[0])
    if status not in STATUSES and not (
        isinstance(status, str) and re.fullmatch(r"fixed in [0-9][0-9A-Za-z.]*", status)
    ):
        raise FormatError(f"status {status!r}, expected {', '.join(STATUSES)} or fixed in RELEASE")
    if status in ("reported", "confirmed") and not t.get("link"):
        raise FormatError(f"status {status} needs the link to the issue")
    if not re.fullmatch(r"[\w.-]+", t["id"]):
        raise FormatError("an id is made of letters, digits, dots and dashes")
    for key in ("op_versions", "opsets"):
        if key in t and not isinstance(t[key], list):
            raise FormatError(f"{key} must be a list, got {t[key]!r}")
    _check_words(t)
    for key in ("behaves_as", "defect_model", "wide"):
        if key in t and Verdict.MISMATCH.value not in _verdicts(t):
            raise FormatError(f"{key} explains a mismatch alone")
    if "refused_if" in t and not REFUSALS.intersection(_verdicts(t)):
        raise FormatError(f"refused_if explains a refusal alone, expected a verdict of {' '.join(sorted(REFUSALS))}")
    if "wide" in t and {"behaves_as", "defect_model"} & set(t):
        raise FormatError("wide says why nothing is known of the answer, behaves_as and defect_model say what it is")
    whole = (_WHOLE & set(t)) | ({"neighbours"} if shown and shown.neighbours else set())
    if t.get("elements") and whole:
        raise FormatError(f"{min(whole)} speaks of a whole answer, elements of some of it")
    if shown and {"instance", "neighbours"} & set(t):
        raise FormatError(
            f"{min({'instance', 'neighbours'} & set(t))} stands beside the file too, in line {shown.line}"
        )
    for key in ("neighbours", "shown_by", "intermittent"):
        if key in t and "instance" not in t and not shown:
            raise FormatError(f"{key} needs the instance that shows it")


def _check_words(t: dict[str, Any]) -> None:
    """Raises FormatError for a word of a field that has no such word."""
    for w in texts(t, "cpu"):
        if w.removeprefix("!") not in WORDS:
            raise FormatError(f"cpu {w!r}, expected some of {' '.join(WORDS)}, each perhaps behind a !")
    for o in texts(t, "op"):
        if "/" not in o:
            raise FormatError(f"op reads dialect/op, got {o!r}")
    corrupts_process = t.get("corrupts_process", False)
    if not isinstance(corrupts_process, bool):
        raise FormatError(f"corrupts_process must be true or false, got {corrupts_process!r}")
    for v in _verdicts(t):
        if v not in _BAD:
            raise FormatError(f"verdict {v!r}, expected one of {' '.join(sorted(_BAD))}")
    elements = t.get("elements", "")
    if elements and elements not in ELEMENTS:
        raise FormatError(f"elements {elements!r}, expected one of {' '.join(ELEMENTS)}")


def texts(t: dict[str, Any], key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """A field that holds a text or a list of texts."""
    v = t.get(key)
    v = [v] if isinstance(v, str) else v
    if v is None:
        return default
    if not isinstance(v, list) or not v or not all(isinstance(x, str) and x for x in v):
        raise FormatError(f"{key} must be a text or a list of texts, got {t[key]!r}")
    return tuple(v)


def _verdicts(t: dict[str, Any]) -> tuple[str, ...]:
    return texts(t, "verdict", (Verdict.MISMATCH.value,))


def _edit(text: str) -> dict[str, dict[str, Any]]:
    """What an entry says that the backend takes the instance for."""
    try:
        edit = json.loads(text)
    except json.JSONDecodeError as e:
        raise FormatError(f"behaves_as: {e}") from None
    known = isinstance(edit, dict) and edit and not set(edit) - {"attrs", "args"}
    attrs, args = (edit.get(k, {}) for k in ("attrs", "args")) if known else (None, None)
    if not isinstance(attrs, dict) or not isinstance(args, dict):
        raise FormatError(f'behaves_as: expected {{"attrs": {{...}}, "args": {{...}}}}, got {text}')
    if any(v is not None for v in args.values()):
        raise FormatError(f"behaves_as: slots can only be left out (null), got {args}")
    return {"attrs": {k: None if v is None else decode_value(v) for k, v in attrs.items()}, "args": args}


def _instance(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return Instance.from_json(json.loads(text))
    except json.JSONDecodeError as e:
        raise FormatError(f"instance: {e}") from None
