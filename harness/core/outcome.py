"""What a backend did with a case, what we say about it, and the model that travels between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

X = TypeVar("X")


class Status(str, Enum):
    """What a backend did.  ``unsupported`` is the backend's own declared gap, counted as coverage."""

    VALUE = "value"
    REJECTED = "rejected"
    UNSUPPORTED = "unsupported"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    HARNESS_ERROR = "harness_error"

    __hash__ = str.__hash__


class Verdict(str, Enum):
    """What we say.  ``known`` is a listed difference, ``ambiguous`` a case where the spec is silent,
    ``flaky`` a wrong answer that was right when asked for again in a fresh process, ``uninformative`` an instance whose
    output, or its bound, says too little for its agreement to count, ``unknown`` no verdict possible.

    ``judged`` tells whether the answer of a backend was compared and the result counts: ``uninformative``,
    ``unsupported`` and ``unknown`` are no judged outcomes."""

    AGREE = "agree"
    MISMATCH = "mismatch"
    WRONGLY_REJECTED = "wrongly_rejected"
    WRONGLY_ACCEPTED = "wrongly_accepted"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    KNOWN = "known"
    AMBIGUOUS = "ambiguous"
    FLAKY = "flaky"
    UNINFORMATIVE = "uninformative"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"

    bad: bool  # does it fail a run?
    judged: bool  # was the answer compared, and does the result count?
    __hash__ = str.__hash__  # the one of Enum runs in Python, and verdicts are counted for every case


for _v in Verdict:
    _v.judged = _v.value not in ("uninformative", "unsupported", "unknown")
    _v.bad = _v.value in ("mismatch", "wrongly_rejected", "wrongly_accepted", "crashed", "timed_out")


@dataclass(slots=True)
class Model:
    """A model file holding one or more independent instances side by side.

    format: "onnx", "tflite", "mil", "nn".  data: the bytes a backend loads.
    inputs[i], outputs[i]: names of instance i's run-time inputs and outputs inside the model.  An input is
    (name, slot, index in a variadic slot or None).  A constant argument is inside ``data``.  An output that is skipped
    has no name ("").
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
    """

    status: Status
    outputs: list[Any] | None = None
    phase: str = ""
    message: str = ""
    millis: float = 0.0


@dataclass(frozen=True, slots=True)
class TypeOnly:
    """An output of which a backend tells the type alone (type inference).

    dtype: our name, or None where it cannot say.  shape: None for an unknown rank; a dimension may be None or a
    symbol's name."""

    dtype: str | None
    shape: tuple[int | str | None, ...] | None
