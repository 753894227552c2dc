"""Updates of states, from iOS 18 on: where they stand, and who reads what they leave.

The last output is the state at the end: a pass must leave that as it was, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from harness.core.dtypes import F16
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Make, Program


def _stateful(make: Callable[[Draw, Program], dict[str, Any]]) -> Make:
    """A program with states; where the op set has none, a small one without."""

    @wraps(make)
    def program(d: Draw) -> dict[str, Any]:
        p = Program(d, F16)
        if d.opset == "ios18":
            return make(d, p)
        return p.done(p.op("relu", x=p.input((2, 3))), fires=False, pattern="near miss op set")

    return program


def _update(p: Program, state: str, value: str) -> Any:
    return p.op("coreml_update_state", state=state, value=value)


@_stateful
def _late(d: Draw, p: Program) -> dict[str, Any]:
    """Other ops stand between the value and the update; the update's result may have users, too."""
    shape = d.shape(1, 3, lo=1)
    s, x = p.input(shape, state=True), p.input(shape)
    v = p.op(d.pick(("mul", "add")), x=p.op("read_state", input=s), y=x)
    y = p.op(d.pick(("abs", "square", "relu")), x=v)
    for _ in range(d.int(0, 2)):
        y = p.op("add", x=y, y=0.5)
    u = _update(p, s, v)
    outs = [y, p.op("relu", x=u)] if d.bool() else [y]
    return p.done(*outs, p.op("read_state", input=s), pattern="match")


@_stateful
def _two_states(d: Draw, p: Program) -> dict[str, Any]:
    """One value goes into two states, or two states are updated after all is computed."""
    shape = d.shape(1, 2, lo=1)
    s, t, x = p.input(shape, state=True), p.input(shape, state=True), p.input(shape)
    v = p.op("add", x=p.op("read_state", input=s), y=x)
    w = v if d.bool() else p.op("mul", x=p.op("read_state", input=t), y=x)
    y = p.op("abs", x=w)
    _update(p, s, v)
    _update(p, t, w)
    return p.done(y, p.op("read_state", input=s), p.op("read_state", input=t), pattern="match two states")


@_stateful
def _in_place(d: Draw, p: Program) -> dict[str, Any]:
    """The update stands right behind the value, or takes an input as it is."""
    shape = d.shape(1, 3, lo=1)
    s, x = p.input(shape, state=True), p.input(shape)
    direct = d.bool()
    v = x if direct else p.op("mul", x=p.op("read_state", input=s), y=x)
    y = p.op("abs", x=_update(p, s, v))
    pattern = "near miss an input" if direct else "near miss in place"
    return p.done(y, p.op("read_state", input=s), fires=False, pattern=pattern)


@_stateful
def _read_between(d: Draw, p: Program) -> dict[str, Any]:
    """The state is read once more, or written another time, before the update: moved, it would be seen too early."""
    shape = d.shape(1, 3, lo=1)
    s, x = p.input(shape, state=True), p.input(shape)
    v = p.op("mul", x=p.op("read_state", input=s), y=x)
    if d.bool():
        y = p.op("add", x=p.op("read_state", input=s), y=1.0)
        kind = "read between"
    else:
        y = p.op("add", x=x, y=1.0)
        _update(p, s, y)
        kind = "written between"
    _update(p, s, v)
    return p.done(y, p.op("read_state", input=s), fires=False, pattern=f"near miss {kind}")


declare("canonicalize_inplace_pattern", _late, _two_states, _in_place, _read_between)


@_stateful
def _value_used(d: Draw, p: Program) -> dict[str, Any]:
    """What was written is used afterwards, by name of the value."""
    shape = d.shape(1, 3, lo=1)
    s, x = p.input(shape, state=True), p.input(shape)
    v = p.op(d.pick(("mul", "add")), x=p.op("read_state", input=s), y=x)
    early = [p.op("square", x=v)] if d.bool() else []
    u = _update(p, s, v)
    y = p.op("add", x=v, y=x)
    again = d.bool()
    if again:  # the old value is still wanted when the state has a new one
        _update(p, s, p.op("relu", x=y))
    outs = [p.op("abs", x=v), *early, *([p.op("sign", x=u)] if d.bool() else [])]
    return p.done(*outs, p.op("read_state", input=s), pattern="match again" if again else "match")


@_stateful
def _not_used(d: Draw, p: Program) -> dict[str, Any]:
    """Nobody, or nobody after the update, uses the value; or only another update does."""
    shape = d.shape(1, 2, lo=1)
    s, t, x = p.input(shape, state=True), p.input(shape, state=True), p.input(shape)
    v = p.op("mul", x=p.op("read_state", input=s), y=x)
    kind = d.pick(("nobody", "before", "another update"))
    outs = [p.op("abs", x=v)] if kind == "before" else []
    outs.append(p.op("relu", x=_update(p, s, v)))
    if kind == "another update":
        _update(p, t, v)
    return p.done(
        *outs, p.op("read_state", input=s), p.op("read_state", input=t), fires=False, pattern=f"near miss {kind}"
    )


declare("prefer_state_in_downstream", _value_used, _value_used, _not_used)
