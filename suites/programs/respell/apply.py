"""Draw respellings of a program, and keep those that leave it a valid one."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import OpconformError
from harness.declare import Draw
from suites.programs.language import Language
from suites.programs.respell.catalogue import RESPELLINGS, Respelling
from suites.programs.respell.view import Site, View, Words

MOST_OUTPUTS = 4
MOST_ELEMENTS = 8192  # of a value of the program
HOW_MANY = (0, 0, 0, 1, 1, 1, 2, 3)


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
    for _ in range(count):
        found = [(r, sites) for r in RESPELLINGS if r.name not in words.absent and (sites := r.sites(view))]
        if not found:
            break
        r, sites = d.pick(found)
        at = d.pick(sites)
        changed = applied(view, r, at)
        if changed is not None:
            view = changed
            done.append({"name": r.name, "site": list(at)})
    if done:
        view.g.meta["respelt"] = done
        words.respelt(view)
    return {**made, "program": view.g, "inputs": view.inputs, "@outs": promises + len(view.g.outputs)}


def applied(view: View, r: Respelling, at: Site) -> View | None:
    """What a respelling makes of a program; None where that is no program of the specification, or one too large."""
    new = view.copy()
    r.apply(new, at)
    if len(new.g.outputs) > MOST_OUTPUTS:
        return None
    try:
        new.look()
    except OpconformError:
        return None
    if not view.words.valid(new):
        return None
    sizes = [int(np.prod(x.shape, dtype=np.int64)) for x in new.values.values()]
    return new if max(sizes) <= MOST_ELEMENTS and min(sizes) > 0 else None
