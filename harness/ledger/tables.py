"""One table of a file of known differences or of the ambiguity ledger: its fields, and the entry that it makes.

A file holds tables ``[[known]]`` and ``[[ambiguous]]``::

    [[known]]
    id = "ort-sigmoid-f16-tail"
    status = "reported"
    link = "..."
    backend = "onnxruntime*"
    versions = ">=1.20,<1.32"
    op = "onnx/Sigmoid"
    op_versions = [6, 13]
    when = "any_nan('X') or rank('X') == 0"
    reason = "..."
    clause = "..."

The minimal instance is in a file of the same name with the ending ``.jsonl``, one entry a line::

    {"id":"ort-sigmoid-f16-tail","instance":{"format":1,...}}

A file without such a neighbour has it in the table, as a text in the field ``instance``.

Fields that state where an entry holds; a missing field holds everywhere:

* ``backend``, ``op``: a name or pattern, or a list of them; ``op`` reads dialect/op
* ``versions``: releases of the backend, a range or a list of ranges.  A range may begin with the name of a package,
  ``"tflite-runtime <2.15"``: it holds for a backend that reports its release with that name.  So two packages of one
  runtime may count their releases differently
* ``op_versions``, ``opsets``, ``dtypes``: lists
* ``cpu``: features of the processor, or ``!`` and a feature that it lacks (``harness/workers/worker/processor.py``)
* ``when``: a condition on the instance and on the answer, see below
* ``verdict``: one or a list; without it "mismatch"
* ``kind``: of the judgement, one or a list of shape, dtype, nan, inf, value
* ``message``: a regular expression that is searched in the backend's words
* ``neighbours``: instances as JSON, or a list in the line of the minimal instance; the entry shows in a model with
  these, and an instance that matches it runs alone
* ``shown_by``: the backends, of those in ``backend``, on which the minimal instance shows it

Fields that state what the backend answers instead; a mismatch needs one of them, or a condition on the answer:

* ``behaves_as``: JSON such as ``{"attrs": {"saturate": 1}}``, or a list: the answer is right for the instance with
  these attributes (null: absent) and without the slots that are null in "args"
* ``defect_model``: a function in the folder ``defects``, or a list (``harness/ledger/defect_models.py``): the answer is
  what it returns
* ``wide``: why the entry says nothing of a wrong answer

A rejection may need more than a condition can state, such as the operands of one node of a program:

* ``refused_if``: a function in the folder ``defects`` that returns whether the backend rejects the instance

Other fields:

* ``reason``: why it is a difference
* ``clause``: the sentence of the specification that the backend departs from
* ``status``: "unreported", "reported", "confirmed" or "fixed in RELEASE"
* ``link``: the upstream issue
* ``instance``: the minimal instance as JSON, if it is not in the file next to the table
* ``corrupts_process = true``: the instance damages its process even if the answer is right, so it shares a process with
  no other
* ``intermittent``: why the minimal instance shows the difference in some processes only, such as memory that was never
  written; such an entry is not reported as gone

An ambiguity has the same fields, except ``reason``, ``status`` and ``wide``, and these:

* ``question``: what the specification leaves open
* ``readings``: the possible answers; the first is ours
* ``elements``: "nan", "inf" or "lowest", for an elementwise op.  The result at such elements of the first operand is
  open, and the other elements are judged

The condition is a Python expression over these names and nothing else:

* ``opset``, ``version`` (of the op), ``dtype`` (of the case), ``outs``, ``rule``; ``runs`` (of the loaded model up to
  the wrong one: 1 if the first run is wrong)
* of the verdict:

  * ``ulp`` and ``error``: largest error of a wrong element, in ulp and absolute; infinite where an infinity or NaN is
    wrong
  * ``factor``: smallest multiple of the bound that passes; ``share``: share of wrong elements
  * ``clamped``: share of the wrong elements with the largest finite number in place of an infinity or NaN
  * ``wrong_pairs``: expected and actual value of each wrong element: ``all(a == 0 for e, a in wrong_pairs)``
  * ``wrong_at``: their indices, in the same order: ``all(p[1] > 0 for p in wrong_at)``
  * ``which``: number of the wrong output; ``actual_shape``: its shape, empty if it has none
  * ``zeroed``: whether that shape is the expected one, except for extents of 0

* ``expected_shape``: the shape of the output, of the wrong one among several; empty if it has none
* ``attr(name, default=None)``; and for a graph in an attribute:

  * ``ops(name)``: ops of its nodes; ``unread(name)``: inputs that no node in it reads
  * ``returns(name)``: for each output the number of the input that it is, -1 for a constant, None for a node's result
  * ``operands(name)``: for each output the numbers of the inputs that its node reads, -1 for anything else
  * ``outer(name)``: names of the outer graph that it reads

* ``made(op)``: of a program, the shapes of the first results of its nodes of that op

* of a slot, and with an index of one tensor of several, ``shape('inputs', 1)``:

  * ``has(slot)``, ``rank(slot)``, ``shape(slot)``, ``size(slot)``, ``const(slot)``, ``recipe(slot)``
  * ``dtype_of(slot)``: also for a tensor in an attribute; ``dynamic(slot)``: whether it has symbolic extents
  * ``encoding(slot)``: how a constant is written in the model, "" for the usual way
  * ``scales(slot)``: how many, 0 without quantisation; ``steps(slot)``, ``zero_points(slot)``: all scales and zero
    points, empty without

* ``slots``: (slot, index) of every given tensor: ``any(const(s, i) and size(s, i) == 0 for s, i in slots)``
* ``any_nan(slot)``, ``any_inf``, ``any_negative``, ``any_zero``, ``any_negative_zero``, ``any_subnormal``,
  ``lowest(slot)``, ``highest(slot)`` (of the finite values); without a slot: over all inputs
* ``elements(slot)``: the values in a row; with an index of one tensor of several
* ``len min max sum abs any all prod sorted set range int str zip``
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
