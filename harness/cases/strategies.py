"""The Hypothesis front end: the same generators behind ``@given``.

from opconform import instances

@given(instances("onnx", "Conv", opset=17))
def test_mine(inst): ...
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.core.instance import Instance
from harness.declare import OpVersion


class _Hypothesis:
    """Draw engine over a Hypothesis ``draw``; choices stay local and in reading order."""

    __slots__ = ("_draw", "choices")

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self.choices: list[int] = []

    def int(self, lo: int, hi: int) -> int:
        v: int = self._draw(st.integers(lo, hi)) if hi > lo else lo
        self.choices.append(v - lo)
        return v


def instances(dialect: str, op: str, *, opset: Any = None, version: Any = None) -> st.SearchStrategy[Instance]:
    """Valid instances of one op.

    opset: the model's opset, which implies the op version.
    version: an op version.  Without either: the newest.

    Raises UsageError for an unknown dialect, op or version.
    """
    return _strategy(_find(dialect, op, opset, version), opset)


def _find(dialect: str, op: str, opset: Any, version: Any) -> OpVersion:
    from harness.declare.registry import dialect as load

    d = load(dialect)
    if opset is not None and version is None:
        return d.effective(op, opset)
    found = [v for v in d.versions.values() if v.op == op and version in (None, v.version)]
    if not found:
        raise UsageError(f"{dialect}: no op {op!r}" + (f" at version {version}" if version is not None else ""))
    return max(found, key=lambda v: d.order(v.version))


@st.composite
def _strategy(draw: Any, v: OpVersion, opset: Any) -> Instance:
    engine = _Hypothesis(draw)
    inst = v.draw(engine, opset)
    inst.choices = engine.choices
    return inst
