"""How a model holds a constant is recorded in the instance: nothing of a model follows from the seed of its data."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from harness.core.errors import Unsupported
from harness.core.instance import Arg, Instance
from harness.declare import registry
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.programs import ProgramDialect


def reseeded(inst: Instance) -> Instance:
    """The same with the seed of every argument changed: the data has to come along."""
    out = deepcopy(inst)

    def change(a: Any) -> None:
        if isinstance(a, Arg):
            a.seed += 12345
            for x in a.items or ():
                change(x)
        for x in a if isinstance(a, list) else ():
            change(x)

    for a in out.args.values():
        change(a)
    return out


@pytest.mark.parametrize("name", registry.names())
def test_the_same_data_gives_the_same_bytes_whatever_its_seed(name: str) -> None:
    d = registry.dialect(name)
    built = constants = 0
    some = list(d.versions.values())[::5]
    for v in some:
        for i in range(max(4, 40 // len(some))):
            inst = v.draw(Prng(case_seed(41, v.key, i)), v.opsets[-1])
            arrays = arrays_of(inst)
            try:
                data = d.build([inst], [arrays]).data
            except Unsupported:
                continue
            assert d.build([reseeded(inst)], [arrays]).data == data, inst.dumps()
            built += 1
            constants += any(isinstance(a, Arg) and a.const for a in inst.args.values())
    assert built >= 40
    assert constants > 10 or isinstance(d, ProgramDialect)  # whose constants stand in the program
