"""Errors that carry a meaning across rooms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class OpconformError(Exception):
    """Base of our own errors."""


class UsageError(OpconformError):
    """The caller asked for something that does not exist or does not fit; one line, exit code 2."""


class TimeIsUp(Exception):
    """The time that a run was given is over."""


class RuleError(OpconformError):
    """Inputs break a rule that the operator set states.  ``rule`` names it."""

    def __init__(self, rule: str, detail: str = "") -> None:
        super().__init__(f"{rule}: {detail}" if detail else rule)
        self.rule = rule


class Unsupported(OpconformError):
    """A backend or a builder does not take this dtype, op or form at all: counted as coverage, not a failure."""


class FormatError(OpconformError):
    """A case file, record file or model does not parse; says what was expected and what came."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Whatever a reader stumbles over inside is a FormatError of ``what``, in one line."""
    try:
        yield
    except OpconformError:
        raise
    except OSError as e:
        where = f" {e.filename}" if e.filename else ""
        raise FormatError(f"{what}: cannot read{where}: {e.strerror or e}") from e
    except Exception as e:
        text = " ".join(str(e).split())
        raise FormatError(f"{what}: malformed: {type(e).__name__}: {text[:400]}") from e
