"""The forms of an instance and of each kind of record in files: the one definition of each field.

Both readers of records (``harness.session.record_writer``, ``reports.records``) and ``Instance.from_json`` check what
they read against these forms first.  A record may have fields that are not listed; an instance may not.
"""

from __future__ import annotations

import math
from typing import Any

from harness.core.dtypes import BY_NAME
from harness.core.form_check import (
    Form,
    Wrong,
    brief,
    expected,
    fields,
    kind,
    later,
    listed,
    maybe,
    row,
    table,
    that,
)
from harness.core.outcome import Verdict

anything: Form = lambda value: None  # noqa: E731
text, name = kind("text", str), kind("a name", str)
flag = kind("true or false", bool)
whole = that("a whole number of 64 bits", lambda v: type(v) is int and -(1 << 63) <= v < 1 << 64)
number = that("a number", lambda v: type(v) in (int, float) and math.isfinite(v))
version = kind("a number or a name", int, str)
count = that("a whole number, 0 or more", lambda v: type(v) is int and 0 <= v < 1 << 63)
key = that("dialect/op/version", lambda v: isinstance(v, str) and v.count("/") == 2)
dtype = that("an element type such as f32", lambda v: isinstance(v, str) and v in BY_NAME)
hexadecimal = that("pairs of hex digits", lambda v: isinstance(v, str) and bytes.fromhex(v) is not None)

# ---- instances

KINDS = ("tensor", "seq", "list", "optional", "map", "state")  # of an argument; tensors and states have no items
extents = listed(count)


def _array(v: Any) -> Wrong | None:
    if not isinstance(v["array"], str) or v["array"] not in BY_NAME:
        return expected("an element type such as f32", v["array"]).inside("array")
    d, wrong = BY_NAME[v["array"]], extents(v["shape"])
    if wrong is not None:
        return wrong.inside("shape")
    if d.kind == "s":
        return expected("the form {strings, shape} of an array of strings", v["array"]).inside("array")
    size = math.prod(v["shape"]) * d.np.itemsize
    return None if len(v["hex"]) == 2 * size else expected(f"{size} bytes of data", v["hex"]).inside("hex")


def _strings(v: Any) -> Wrong | None:
    size = math.prod(v["shape"])
    return None if len(v["strings"]) == size else expected(f"{size} strings", v["strings"]).inside("strings")


def _both(form: Form, more: Form) -> Form:
    return lambda value: form(value) or more(value)


def _only(**inner: Form) -> Form:
    return fields(inner, closed=True)


def value(v: Any) -> Wrong | None:
    """A value of an attribute or an element: plain JSON, or an object that says what JSON has no form for."""
    if v is None or isinstance(v, (bool, int, float, str)):
        return None
    if isinstance(v, list):
        return _values(v)
    if isinstance(v, dict):
        for field, form in _OBJECTS.items():
            if field in v:
                return form(v)
    return expected(f"a value, or an object with one of the fields {' '.join(_OBJECTS)}", v)


_values = listed(value)
_float = that("a float", lambda v: isinstance(v, str) and isinstance(float(v), float))
_OBJECTS: dict[str, Form] = {
    "f": _only(f=_float),
    "dtype": _only(dtype=dtype),
    "graph": _only(graph=later(lambda: GRAPH)),
    "array": _both(_only(array=text, shape=extents, hex=hexadecimal), _array),
    "strings": _both(_only(strings=_values, shape=extents), _strings),
    "bytes": _only(bytes=hexadecimal),
    "c": _only(c=row("a real and an imaginary part", value, value)),
    "dict": _only(dict=table(value)),
}
ARG: Form = fields(
    {"dtype": dtype, "shape": listed(whole)},
    {
        "const": flag,
        "recipe": text,
        "seed": whole,
        "values": maybe(_values),
        "kind": that(f"one of {' '.join(KINDS)}", lambda v: v in KINDS),
        "items": maybe(listed(later(lambda: ARG))),
        "quant": maybe(table(anything)),
        "dynamic": listed(whole),
        "encoding": text,
    },
    closed=True,
)
NODE = fields(
    {
        "op": text,
        "inputs": table(lambda v: None if v is None or isinstance(v, str) else listed(maybe(text))(v)),
        "outputs": listed(text),
        "attrs": table(value),
    },
    {"version": maybe(version)},
    closed=True,
)
GRAPH: Form = fields(
    {
        "inputs": listed(row("a name and an argument", text, ARG)),
        "nodes": listed(NODE),
        "outputs": listed(text),
        "consts": table(value),
    },
    {"meta": value},
    closed=True,
)
ARGS = table(lambda v: listed(ARG)(v) if isinstance(v, list) else ARG(v))
_outs = that("a whole number, 1 or more", lambda v: type(v) is int and 0 < v < 1 << 31)
FORMATS = (1, 2)  # of an instance; 2 has reruns, which a reader of 1 does not know
INSTANCE = fields(
    {
        "format": that("format 1 or 2", lambda v: type(v) is int and v in FORMATS),
        "dialect": name,
        "op": name,
        "version": version,
        "opset": version,
        "attrs": table(value),
        "args": ARGS,
    },
    {"outs": _outs, "rule": maybe(name), "reruns": listed(ARGS)},
    closed=True,
)

# ---- records

VERDICTS = tuple(v.value for v in Verdict)
verdict = that("a verdict", lambda v: v in VERDICTS)
opset = maybe(version)
words, numbers = listed(text), table(count)
ELEMENT = fields(
    {"index": listed(count), "expected": anything, "actual": anything},
    {"expected_hex": maybe(text), "actual_hex": maybe(text), "why": text},
)
_figure = maybe(kind("a number or its name", int, float, str))
DIFF = fields(
    {},
    {
        "dtype": text,
        "shape": extents,
        "got_dtype": maybe(text),
        "got_shape": maybe(extents),
        "count": count,
        "size": count,
        "elements": listed(ELEMENT),
        "pattern": maybe(text),
        "detail": maybe(text),
        "map": maybe(fields({"shape": row("two extents", count, count), "cells": text})),
        "ulp_histogram": maybe(numbers),
        "max_abs": _figure,
        "max_ulp": _figure,
        "p99_ulp": _figure,
        "factor": _figure,
        "wrong_abs": _figure,
    },
)
_TALLY = row("[backend, type, verdict, number]", text, maybe(text), verdict, count)
BACKEND = fields({}, {"formats": maybe(words), "python": maybe(text), "info": maybe(table(anything))})
PLACE = fields(
    {},
    {
        "python": maybe(text),
        "cpu": maybe(text),
        "claims": maybe(text),
        "named": maybe(listed(row("[field, pattern of backends, value]", text, text, text))),
        "deadline": maybe(number),
        "memory": maybe(number),
    },
)
SELECTION = fields(
    {},
    {
        "dialects": words,
        "opset": opset,
        "ops": words,
        "families": words,
        "cases": maybe(count),
        "draws": maybe(count),
        "invalid": maybe(flag),
        "shard": row("[which part, number of parts]", count, count),
    },
)
COVER = fields(
    {},
    {
        "dtype": maybe(numbers),
        "choices": maybe(numbers),
        "rules": maybe(numbers),
        "valid": count,
        "counted": count,
        "sets": maybe(listed(listed(count))),
        "reach": maybe(fields({}, {"goals": maybe(words), "ruled_out": maybe(words), "met": maybe(words)})),
    },
)
_foretold = table(row("[asked, true]", count, count))
_LEARNT = fields(
    {},
    {
        "types": listed(row("[asked, types, opset, passed, gaps, asked, refused]", text, text, opset, *[count] * 4)),
        "entries": _foretold,
        "rules": _foretold,
        "excused": flag,
        "traits": table(row("[taken, unsupported]", count, count)),
    },
)
LISTED = fields(
    {"id": text},
    {
        "reason": maybe(text),
        "clause": maybe(text),
        "link": maybe(text),
        "status": maybe(text),
        "kind": maybe(text),
        "readings": maybe(words),
    },
)
RECORDS: dict[str, Form] = {
    "run": fields(
        {"format": whole},
        {
            "command": maybe(text),
            "started": maybe(text),
            "opconform": maybe(text),
            "isa": maybe(text),
            "platform": maybe(text),
            "python": maybe(text),
            "cpu": maybe(text),
            "seed": maybe(whole),
            "backends": table(BACKEND),
            "dialects": maybe(table(text)),
            "op_versions": maybe(numbers),
            "missing": maybe(table(text)),
            "selection": maybe(SELECTION),
            "asked": maybe(words),
            "place": maybe(PLACE),
        },
    ),
    "batch": fields(
        {"key": key, "opset": opset, "first": whole, "count": count, "tally": listed(_TALLY)},
        {
            "cover": maybe(COVER),
            "learnt": listed(row("[backends, what was learnt]", words, _LEARNT)),
            "pooled": maybe(flag),
            "beside": maybe(table(text)),
            "listed": maybe(listed(LISTED)),
            "explained": listed(row("[backend, entry, number]", text, text, count)),
            "elements": listed(row("[backend, not judged, all, answers, uninformative]", text, *[count] * 4)),
            "paths": listed(row("[backend, path, number]", text, text, count)),
            "labels": listed(row("[backend, label, kind of path, number]", text, text, text, count)),
            "unasked": listed(row("[backend, type, why, number]", text, maybe(text), text, count)),
        },
    ),
    "case": fields(
        {"id": text, "key": key, "opset": opset, "backend": text, "verdict": verdict},
        {
            "dtype": maybe(text),
            "status": maybe(text),
            "phase": maybe(text),
            "message": maybe(text),
            "rule": maybe(text),
            "instance": maybe(INSTANCE),
            "minimal": maybe(INSTANCE),
            "notation": maybe(text),
            "output": maybe(count),
            "class": maybe(text),
            "formula": maybe(text),
            "kind": maybe(text),
            "diff": maybe(DIFF),
            "votes": maybe(table(text)),
            "blame": maybe(text),
            "neighbours": maybe(words),
            "prior_models": maybe(listed(words)),
            "nondeterministic": maybe(text),
            "known": maybe(text),
            "ambiguity": maybe(text),
            "replay": maybe(text),
            "folder": maybe(text),
        },
    ),
    "sensitivity": fields(
        {"key": key, "dtype": maybe(text), "planted": count, "caught": count},
        {
            "fault": maybe(text),
            "instances": maybe(count),
            "at": maybe(whole),
            "missed": maybe(listed(anything)),
            "behind": maybe(table(words)),
            "identified": maybe(table(words)),
        },
    ),
    "end": fields(
        {},
        {
            "elapsed": maybe(number),
            "cases": maybe(count),
            "interrupted": maybe(flag),
            "unused": maybe(words),
            "gaps": maybe(numbers),
            "cut": maybe(flag),
            "beside": maybe(table(text)),
        },
    ),
}


def wrong_instance(instance: Any) -> str | None:
    """What is wrong with an instance in its JSON form: the place, what was expected and what came."""
    return _told(INSTANCE, instance)


def _told(form: Form, what: Any) -> str | None:
    try:
        wrong = form(what)
    except RecursionError:
        return "expected fewer levels of lists and objects"
    return None if wrong is None else str(wrong)


def wrong_record(record: Any) -> str | None:
    """What is wrong with a record: the place, what was expected and what came.  A kind that is not known has any
    form."""
    if not isinstance(record, dict) or not isinstance(record.get("t"), str):
        return f"not a record: expected an object with a field 't', got {brief(record)}"
    wrong = _told(RECORDS.get(record["t"], anything), record)
    return None if wrong is None else f"a {record['t']!r} record: {wrong}"
