"""Compares a value that was read from JSON with its form.

A form is a function of a value.  It returns None if the value has that form, otherwise the place, what was expected,
and what was found.  ``harness.core.forms`` lists the forms of instances and records.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple


class Wrong(NamedTuple):
    """place: names and numbers from the outside in.  text: what was expected and what came."""

    place: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return ": ".join((*self.place, self.text))

    def inside(self, name: object) -> Wrong:
        return Wrong((str(name), *self.place), self.text)


Form = Callable[[Any], "Wrong | None"]


def brief(value: Any) -> str:
    """A value in a few words."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def expected(words: str, value: Any) -> Wrong:
    return Wrong((), f"expected {words}, got {brief(value)}")


def kind(words: str, *types: type) -> Form:
    """A value of one of these types.  A bool is no number."""

    def form(value: Any) -> Wrong | None:
        if isinstance(value, types) and (bool in types or not isinstance(value, bool)):
            return None
        return expected(words, value)

    return form


def that(words: str, holds: Callable[[Any], object]) -> Form:
    """A value for which a function gives a true answer; one that raises says no."""

    def form(value: Any) -> Wrong | None:
        try:
            return None if holds(value) else expected(words, value)
        except (TypeError, ValueError, OverflowError, KeyError):
            return expected(words, value)

    return form


def maybe(inner: Form) -> Form:
    """Null, which says as little as a field that is not there, or a value of a form."""
    return lambda value: None if value is None else inner(value)


def listed(inner: Form) -> Form:
    """A list of values of one form."""

    def form(value: Any) -> Wrong | None:
        if not isinstance(value, list):
            return expected("a list", value)
        for i, v in enumerate(value):
            wrong = inner(v)
            if wrong is not None:
                return wrong.inside(i)
        return None

    return form


def row(words: str, *inner: Form) -> Form:
    """A list with one value of each form."""

    def form(value: Any) -> Wrong | None:
        if not isinstance(value, list) or len(value) != len(inner):
            return expected(words, value)
        for i, (f, v) in enumerate(zip(inner, value)):
            wrong = f(v)
            if wrong is not None:
                return wrong.inside(i)
        return None

    return form


def table(inner: Form) -> Form:
    """An object whose values have one form, whatever their names."""

    def form(value: Any) -> Wrong | None:
        if not isinstance(value, dict):
            return expected("an object", value)
        for name, v in value.items():
            wrong = inner(v)
            if wrong is not None:
                return wrong.inside(name)
        return None

    return form


def fields(needed: Mapping[str, Form], others: Mapping[str, Form] | None = None, closed: bool = False) -> Form:
    """An object with the needed fields, and perhaps others.  closed: no field of another name, which nobody would
    read."""
    known = {**needed, **(others or {})}

    def form(value: Any) -> Wrong | None:
        if not isinstance(value, dict):
            return expected("an object", value)
        missing = [name for name in needed if name not in value]
        if missing:
            return Wrong((), f"expected also {' '.join(missing)}, got {brief(' '.join(value))}")
        for name, v in value.items():
            inner = known.get(name)
            if inner is not None:
                wrong = inner(v)
                if wrong is not None:
                    return wrong.inside(name)
            elif closed:
                return Wrong((), f"expected fields among {' '.join(sorted(known))}, got {name}")
        return None

    return form


def later(name: Callable[[], Form]) -> Form:
    """A form that is defined further down: forms that hold themselves need one."""
    return lambda value: name()(value)


def check_hooks(made: Any, base: type, own: Collection[str]) -> None:
    """Raises TypeError for a public member of an object's class that is no hook of ``base``, or none of its form.

    own: names of members that the class adds for itself."""
    for cls in type(made).__mro__[: type(made).__mro__.index(base)]:
        for name, value in vars(cls).items():
            if name.startswith("_") or name in own:
                continue
            where = f"{base.__name__.lower()} {made.name or cls.__name__}: {cls.__name__}.{name}"
            if not hasattr(base, name):
                close = difflib.get_close_matches(name, [n for n in vars(base) if not n.startswith("_")], 1)
                hint = f" (did you mean {close[0]}?)" if close else ""
                raise TypeError(f"{where} is no hook of {base.__name__}{hint}; a member of its own stands in `own`")
            default = vars(base)[name]
            if callable(default) and not callable(value):
                raise TypeError(f"{where}: expected a method, got {value!r}")
            if isinstance(default, (bool, int, str, tuple)) and type(value) is not type(default):
                raise TypeError(f"{where}: expected {type(default).__name__}, got {value!r}")
