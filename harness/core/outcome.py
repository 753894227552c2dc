"""The outcome of a backend, the verdict of the judge, and the model that the harness sends to a backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

X = TypeVar("X")


class Status(str, Enum):
    """What a backend did with an instance.

    value: The backend returned values or types.
    rejected: The backend refused the model or the inputs with an exception.
    unsupported: The backend, or the model builder, declared that it does not take this instance.
    crashed: The process of the backend ended, or ran out of memory.
    timed_out: The backend gave no answer within the deadline.
    harness_error: The harness itself failed, so the instance says nothing about the backend.

    ``docs/verdicts.md`` shows these sentences (``scripts/reference.py``)."""

    VALUE = "value"
    REJECTED = "rejected"
    UNSUPPORTED = "unsupported"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    HARNESS_ERROR = "harness_error"

    __hash__ = str.__hash__


class Kind(Enum):
    """What a verdict says of the answer: the column of the report that counts it."""

    AGREED = "agreed"
    DIFFERS = "differs"  # unexplained: it fails a run
    LISTED = "listed"
    FLAKY = "flaky"
    UNINFORMATIVE = "uninformative"
    GAP = "gap"


class Verdict(str, Enum):
    """What the judge says about one instance on one backend.

    This is the one table of verdicts: value, kind, how bad it is (a cell of the report takes the colour of the worst
    verdict in it), sign, sentence.  The order is that of tables.  README.md and ``docs/verdicts.md``
    (``scripts/reference.py``), the page, JUnit and the terminal read this table.  Only the colours stand elsewhere, in
    ``reports/static/style.css``."""

    AGREE = "agree", Kind.AGREED, 2, "✓", "The backend gave the expected answer, or rejected an invalid instance."
    MISMATCH = "mismatch", Kind.DIFFERS, 10, "≠", "The backend gave an answer outside the tolerance."
    WRONGLY_REJECTED = (
        "wrongly_rejected",
        Kind.DIFFERS,
        8,
        "⊘",
        "The backend rejected a valid instance that it claims to support.",
    )
    WRONGLY_ACCEPTED = (
        "wrongly_accepted",
        Kind.DIFFERS,
        9,
        "⊕",
        "The backend accepted an instance that breaks a stated rule.",
    )
    CRASHED = (
        "crashed",
        Kind.DIFFERS,
        11,
        "✕",
        "The process of the backend ended while it worked on the instance.",
    )
    TIMED_OUT = "timed_out", Kind.DIFFERS, 7, "◷", "The backend gave no answer within the deadline."
    KNOWN = (
        "known",
        Kind.LISTED,
        5,
        "≡",
        "The answer is wrong, and an entry in the list of known differences explains it.",
    )
    AMBIGUOUS = (
        "ambiguous",
        Kind.LISTED,
        4,
        "?",
        "The specification gives no single answer here, so the answer is not called wrong.",
    )
    FLAKY = (
        "flaky",
        Kind.FLAKY,
        6,
        "≈",
        "The answer was wrong once, and right each time the harness asked again.",
    )
    UNINFORMATIVE = (
        "uninformative",
        Kind.UNINFORMATIVE,
        1,
        "~",
        "The answer is right, but it or its error bound says too little to count as agreement.",
    )
    UNSUPPORTED = (
        "unsupported",
        Kind.GAP,
        0,
        "–",
        "The backend does not claim to support this operator, element type or opset.",
    )
    UNKNOWN = (
        "unknown",
        Kind.UNINFORMATIVE,
        3,
        "·",
        "The harness could not reach a verdict, for example because the reference failed.",
    )

    kind: Kind
    severity: int
    sign: str
    sentence: str
    bad: bool  # does it fail a run?
    judged: bool  # was the answer compared, and does the result count?
    decided: bool  # is it a failure or a pass, when failures are compared with passes?
    __hash__ = str.__hash__  # the one of Enum runs in Python, and verdicts are counted for every case

    def __new__(cls, value: str, *row: Any) -> Verdict:
        self = str.__new__(cls, value)
        self._value_ = value
        self.kind, self.severity, self.sign, self.sentence = row
        self.bad = self.kind is Kind.DIFFERS
        self.decided = self.kind in (Kind.AGREED, Kind.DIFFERS, Kind.LISTED)
        self.judged = self.decided or self.kind is Kind.FLAKY
        return self

    @property
    def label(self) -> str:
        """The name as a person reads it."""
        return self.value.replace("_", " ")


WORST_FIRST = tuple(sorted(Verdict, key=lambda v: -v.severity))


@dataclass(slots=True)
class Model:
    """A model file with one or more independent instances side by side.

    format: "onnx", "tflite", "mil", "nn".
    data: the bytes that a backend loads.
    inputs: inputs[i] are the run-time inputs of instance i in the model, as (name, slot, index in a variadic slot or
        None).  Constant arguments are inside ``data``.
    outputs: outputs[i] are the names of the outputs of instance i; "" for one that is skipped.
    """

    format: str
    data: bytes
    inputs: list[list[tuple[str, str, int | None]]]
    outputs: list[list[str]]
    meta: dict[str, Any] = field(default_factory=dict)

    def named(self, i: int, row: Sequence[X]) -> list[tuple[str, X]]:
        """What a row tells of the outputs of instance i, with their names: nothing of those that are skipped."""
        return [(n, x) for n, x in zip(self.outputs[i], row) if n]


@dataclass(slots=True)
class Outcome:
    """What a backend did with one instance.

    outputs: NumPy arrays in output order (None where the backend gave nothing); containers are lists.
    phase: build, start, load, run: where it stopped.  message: the backend's own words, first lines.
    path: what computed it, where the backend tells: a kind, or ``kind: detail``.
    """

    status: Status
    outputs: list[Any] | None = None
    phase: str = ""
    message: str = ""
    millis: float = 0.0
    path: str = ""


@dataclass(frozen=True, slots=True)
class TypeOnly:
    """An output of which a backend tells the type alone (type inference).

    dtype: our name, or None where it cannot say.  shape: None for an unknown rank; a dimension may be None or a
    symbol's name."""

    dtype: str | None
    shape: tuple[int | str | None, ...] | None
