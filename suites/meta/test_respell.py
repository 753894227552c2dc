"""Programs that are respelt: they stay valid, those that keep the meaning keep it, and each respelling can be drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.core.errors import OpconformError
from harness.core.quiet import quiet
from harness.declare import T, registry
from harness.generate.draw_engines import Prng, case_seed
from suites.programs.respell import RESPELLINGS, View
from suites.programs.respell.apply import applied

NAMES = [n for n in registry.names() if getattr(registry.dialect(n), "words", None) is not None]


def _plain(name: str, count: int) -> Any:
    """(dialect, view of a program as its generator writes it) of some op versions."""
    dialect = registry.dialect(name)
    for v in dialect.versions.values():
        for i in range(count):
            inst = v.draw(Prng(case_seed(17, v.key, i)), v.opsets[-1])
            g = inst.attrs["program"]
            if "respelt" in g.meta:
                continue
            d = v.begin(Prng(case_seed(18, v.key, i)), v.opsets[-1])
            inputs = [T(a.shape, a.recipe, a.dtype, False, a.values, kind=a.kind) for a in inst.tensors("inputs")]
            try:
                yield v, View(d, dialect.language, dialect.words, g, inputs)
            except OpconformError:
                continue


def _outputs(view: View, names: list[str], inputs: list[Any]) -> list[np.ndarray]:
    with quiet:
        scope = view.language.run(view.g, inputs, view.opset)
    return [np.asarray(getattr(scope[n], "value", scope[n])) for n in names]


def _data(view: View) -> list[np.ndarray]:
    from suites.programs.values import filled

    return [filled(t) for t in view.inputs]


@pytest.mark.parametrize("name", NAMES)
def test_what_keeps_the_meaning_keeps_the_values(name: str) -> None:
    """The reference computes both programs by itself: they agree bit for bit, or one of the two is wrong."""
    tried: Counter[str] = Counter()
    for v, view in _plain(name, 3 if len(registry.dialect(name).versions) > 20 else 16):
        before = _outputs(view, view.g.outputs, _data(view))
        for r in RESPELLINGS:
            if not r.preserves or r.name in view.words.absent:
                continue
            for at in r.sites(view)[:3]:
                new = applied(view, r, at)
                if new is None:
                    continue
                after = _outputs(new, view.g.outputs, _data(new))
                tried[r.name] += 1
                for out, x, y in zip(view.g.outputs, before, after, strict=True):
                    assert x.dtype == y.dtype, f"{v.key}: {r.name} at {at}: {out}"
                    assert np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"), f"{v.key}: {r.name} at {at}: {out}"
    wanted = {r.name for r in RESPELLINGS if r.preserves} - registry.dialect(name).words.absent
    assert not wanted - tried.keys()


def test_an_operand_of_a_loop_has_the_shape_that_the_body_states() -> None:
    """iOS15 while_loop: a loop that runs no iteration would show no misfit."""
    views = [view for v, view in _plain("passes", 3) if v.op == "loop_invariant_elimination"]
    assert views
    for view in views:
        assert view.words.valid(view)
        view.values["p1"] = replace(view.values["p1"], shape=(*view.values["p1"].shape, 2))
        assert not view.words.valid(view)
