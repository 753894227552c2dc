"""Whatever somebody makes of an instance is evaluated, or told in one line: nothing else ever comes out."""

from __future__ import annotations

import copy
import json
import signal
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from harness.cases.case import draw_case
from harness.core.errors import OpconformError
from harness.core.instance import Instance
from harness.declare import OpVersion, registry
from harness.session.replay import checked, usable

EDITS = 3  # of each op version
SECONDS = 20
WRONG: tuple[Any, ...] = (
    0,
    -1,
    7,
    1 << 44,
    -(1 << 63),
    1.5,
    {"f": "nan"},
    {"f": "inf"},
    "x",
    "",
    None,
    True,
    [],
    [1],
    [-1, 0],
    ["a"],
    {"dtype": "f16"},
)
NUMBERS = (0, -1, 1, 2, 7, -7, 1 << 44, -(1 << 63))  # never what a machine may have room for


def other(x: Any, r: Random) -> Any:
    """Another value of the same type."""
    if isinstance(x, bool):
        return not x
    if isinstance(x, int):
        return r.choice(NUMBERS)
    if isinstance(x, float):
        return r.choice((0.0, -1.0, 1e308, {"f": "nan"}, {"f": "-inf"}))
    if isinstance(x, str):
        return r.choice(("", "x", x.lower(), x.upper(), x + ","))
    if isinstance(x, list):
        i = r.randrange(len(x)) if x else 0
        return r.choice((x[:-1], x + x[-1:], [], x + x, [*x[:i], *(other(y, r) for y in x[i : i + 1]), *x[i + 1 :]]))
    return x


def edited(form: dict[str, Any], r: Random) -> dict[str, Any]:
    """An instance with one thing changed."""
    form = copy.deepcopy(form)
    attrs, args = form["attrs"], form["args"]
    tensors = [a for given in args.values() for a in (given if isinstance(given, list) else [given])]
    if attrs and (not tensors or r.random() < 0.5):
        name = r.choice(list(attrs))
        attrs[name] = r.choice((other(attrs[name], r), other(attrs[name], r), r.choice(WRONG)))
        if r.random() < 0.2:
            del attrs[name]
    elif tensors:
        a, slot = r.choice(tensors), r.choice(list(args))
        shape, values = a["shape"], [*(a.get("values") or [1])]
        i = r.randrange(len(shape)) if shape else 0
        extents = [*shape[:i], r.choice((*NUMBERS, 3, 1 << 62, 2.5, "n", None)), *shape[i + 1 :]]
        edit: Callable[[], Any] = r.choice(
            (
                lambda: args.pop(slot),
                lambda: args.update({slot: []}),
                lambda: args.update({slot: [args[slot]]}),
                lambda: a.update(dtype=r.choice(("f32", "f16", "i32", "i64", "bool", "str", "u8", "c64", "i4"))),
                lambda: a.update(
                    shape=r.choice(([], shape[:-1], [*shape, 2], [1, *shape], shape[1:], shape + [1] * 8))
                ),
                lambda: a.update(shape=extents),
                lambda: a.update(shape=extents),
                lambda: a.update(values=[r.choice(WRONG), *values[1:]]),
                lambda: a.update(values=values[1:]),
                lambda: a.update(values=[r.choice(NUMBERS) for _ in values]),
                lambda: a.update(quant=r.choice(({}, [], {"scale": [0.0], "zero_point": [0]}, {"scale": "x"}))),
                lambda: a.update(kind=r.choice(("seq", "list", "optional", "state", "map", "box", 3))),
            )
        )
        edit()
    else:
        form["outs"] = r.choice((0, 5, -1, "1"))
    return form


def told(v: OpVersion, i: int) -> str | None:
    """What is wrong with what comes of one edit."""
    form = draw_case(v, v.opsets[i % len(v.opsets)], 21, i, invalid=False, lazy=True).inst.to_json()
    form = edited(form, Random(f"{v.key} {i}"))
    signal.alarm(SECONDS)
    try:
        usable(checked(Instance.from_json(json.loads(json.dumps(form)))))
    except OpconformError as e:
        return None if "\n" not in str(e) and len(str(e)) < 1000 else f"{len(str(e))} characters: {str(e)[:300]!r}"
    except Exception as e:
        return f"{type(e).__name__}: {str(e)[:200]}"
    finally:
        signal.alarm(0)
    return None


def _late(*_: object) -> None:
    raise TimeoutError(f"still at it after {SECONDS} s")


@pytest.mark.parametrize("name", sorted(registry.names()))
def test_an_edited_instance_is_evaluated_or_reported(name: str) -> None:
    before = signal.signal(signal.SIGALRM, _late)
    try:
        bad = [
            f"{v.key} {i}: {why}"
            for v in registry.dialect(name).versions.values()
            for i in range(EDITS)
            if (why := told(v, i)) is not None
        ]
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not bad, f"{len(bad)}: " + "\n".join(bad[:20])
