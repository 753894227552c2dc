"""Traits of an instance: plain facts from which a run learns what a backend takes.

type:x=f32  rank:x=4  const:w=no  empty:x=no  attr:padding=SAME  attr:axis=omitted  opset=17
"""

from __future__ import annotations

from collections.abc import Container
from functools import cache
from sys import intern

import numpy as np

from harness.cases.case import Case
from harness.core.dtypes import DType
from harness.core.instance import Arg

FAR = 1 << 24
LONGEST = 40  # characters of a value that tells instances apart; longer ones count alike
OMITTED, ATTR = "operand", "attr"  # two kinds, which take longest to tell


def kind(trait: str) -> str:
    """The kind of a trait."""
    return trait.partition("=")[0].partition(":")[0]


def traits(case: Case, kinds: Container[str] = (OMITTED, ATTR)) -> tuple[str, ...]:
    """The traits of a valid case, each "kind:name=value".  kinds: those that are wanted; others may be there too."""
    inst, schema = case.inst, case.version.schema
    out = [f"opset={inst.opset}", f"outputs={inst.outs}", f"runs={1 + len(inst.reruns)}"]
    for name, given in inst.args.items():
        arg: Arg | None
        if isinstance(given, list):
            out.append(f"number:{name}={len(given)}")
            arg = given[0] if given else None
        else:
            arg = given
        if arg is None:
            continue
        assert not isinstance(arg, list)
        quant = ",".join(sorted(arg.quant)) if arg.quant else "no"
        out += _of_operand(name, arg.dtype, len(arg.shape), arg.const, 0 in arg.shape, bool(arg.dynamic), quant)
    if OMITTED in kinds:
        out += [f"{OMITTED}:{s.name}=omitted" for s in schema.inputs if s.name not in inst.args]
    if ATTR in kinds:
        for name, value in inst.attrs.items():
            if not name.startswith("@"):
                text = str(value)
                out.append(f"{ATTR}:{name}={text if len(text) <= LONGEST else 'long'}")
        out += [f"{ATTR}:{a}=omitted" for a in schema.attrs if a not in inst.attrs]
    return tuple(out)


@cache
def _of_operand(
    name: str, dtype: DType, rank: int, const: bool, empty: bool, dynamic: bool, quant: str
) -> tuple[str, ...]:
    """The traits of an operand; kept, since few sorts of operands make up most instances.  One text for each trait."""
    found = (
        f"type:{name}={dtype}",
        f"rank:{name}={rank}",
        f"const:{name}={_answer(const)}",
        f"empty:{name}={_answer(empty)}",
        f"dynamic:{name}={_answer(dynamic)}",
        f"quantised:{name}={quant}",
    )
    return tuple(map(intern, found))


def far(case: Case) -> bool:
    """Has a case an operand without elements, beside an extent or a number from 2^24 on?

    A runtime may walk an axis that long, place by place, and then takes seconds."""
    arrays = [a for a in case.draws[0].values() if isinstance(a, np.ndarray)] if case.draws else []
    if not any(not a.size for a in arrays):
        return False
    numbers = [n for x in case.inst.attrs.values() for n in (x if isinstance(x, list) else [x]) if type(n) is int]
    return (
        any(n >= FAR for a in arrays for n in a.shape)
        or any(a.size and a.dtype.kind in "iu" and a.max() >= FAR for a in arrays)
        or any(n >= FAR for n in numbers)
    )


def _answer(x: object) -> str:
    return "yes" if x else "no"
