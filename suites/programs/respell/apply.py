"""Draw respellings of a program, and keep those that leave it a valid one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from harness.core.errors import OpconformError
from harness.core.limits import bounded
from harness.core.quiet import quiet
from harness.declare import Draw
from suites.programs.language import Language
from suites.programs.respell.catalogue import BY_NAME, OFTEN, Respelling
from suites.programs.respell.view import Site, View, Words
from suites.programs.values import filled

MOST_OUTPUTS = 4
SEEDS = (2, 3)  # of the data on which a program of integers is tried, beside that of ``View``
ROOM = 1 << 28  # bytes that a program may need
MOST_ELEMENTS = 8192  # of a value of the program
HOW_MANY = (0, 0, 0, 1, 1, 2, 2, 3)
TRIES = 3  # until a respelling has a place, and leaves a program that is valid


def respelt(d: Draw, made: dict[str, Any], language: Language, words: Words) -> dict[str, Any]:
    """What a generator returns, respelt or as it is.

    ``meta["respelt"]`` of the program holds what was done, in order: the name of each respelling, and its site.  It
    plays no part in what the program means."""
    count = d.pick(HOW_MANY)
    if not count:
        return made
    try:
        view = View(d, language, words, made["program"], made["inputs"])
    except OpconformError:  # the reference refuses the generator's own program on this data
        return made
    promises = made["@outs"] - len(view.g.outputs)
    done: list[dict[str, Any]] = []
    some = [r for r in OFTEN if r.name not in words.absent]
    for _ in range(count):
        for _ in range(TRIES):
            r = d.pick(some)
            before = [BY_NAME[name] for name in r.after] if words.absent.isdisjoint(r.after) else []
            changed, told = _in_turn(view, [r]) if r.sites(view) or not before else (None, [])
            if changed is None and before:  # it has no place, or leaves no program at the one that was drawn
                changed, told = _in_turn(view, [*before, r])
            if changed is not None:
                view = changed
                done += told
                break
    if done and _holds(view):
        view.g.meta["respelt"] = done
        words.respelt(view)
    else:
        return made
    return {**made, "program": view.g, "inputs": view.inputs, "@outs": promises + len(view.g.outputs)}


def _holds(view: View) -> bool:
    """Is the program valid on other data too?  An index that is in range may be out of it elsewhere."""
    if all(t.dtype is None or t.dtype.kind == "f" for t in view.inputs):
        return True
    try:
        with quiet, bounded(ROOM):
            for seed in SEEDS:
                view.language.hold(view.g, [filled(t, seed) for t in view.inputs], view.opset)
    except (OpconformError, MemoryError):
        return False
    return True


def _in_turn(view: View, steps: list[Respelling]) -> tuple[View | None, list[dict[str, Any]]]:
    """The program after respellings, each at a place that is drawn, and what was done; None where one has no place or
    leaves no program."""
    told: list[dict[str, Any]] = []
    now: View | None = view
    for r in steps:
        assert now is not None
        sites = r.sites(now)
        if not sites:
            return None, []
        at = view.d.pick(sites)
        now = applied(now, r, at)
        if now is None:
            return None, []
        told.append({"name": r.name, "site": list(at)})
    return now, told


def applied(view: View, r: Respelling, at: Site) -> View | None:
    """What a respelling makes of a program; None where that is no program of the specification, or one too large."""
    new = view.copy()
    r.apply(new, at)
    if len(new.g.outputs) > MOST_OUTPUTS:
        return None
    ranks = [len(t.shape) for t in new.inputs]
    if ranks and not view.words.input_rank <= min(ranks) <= max(ranks) <= view.words.max_rank:
        return None
    shapes = [*(tuple(t.shape) for t in new.inputs), *(c.shape for c in new.g.consts.values())]
    if max((math.prod(s) for s in shapes), default=0) > MOST_ELEMENTS:
        return None
    try:
        with bounded(ROOM):
            new.look()
    except (OpconformError, MemoryError):
        return None
    if not view.words.valid(new):
        return None
    sizes = [int(np.prod(x.shape, dtype=np.int64)) for x in new.values.values()]
    empty = r.empties or any(0 in x.shape for x in view.values.values())
    return new if max(sizes) <= MOST_ELEMENTS and (empty or min(sizes) > 0) else None
