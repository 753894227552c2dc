"""One call of a kernel: the operands and attributes of an instance in, an outcome out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.cases.case import Case
from harness.core.dtypes import BY_NAME, DType
from harness.core.errors import Unsupported
from harness.core.instance import SKIPPED, Arg, Graph
from harness.core.outcome import Outcome, Status
from harness.kernels.arrays import taken

Give = Callable[[np.ndarray], Any]
GAPS = ("Unsupported", "NotImplementedError", "NotImplemented")  # names of exceptions, as for a backend's class


@dataclass(frozen=True)
class Call:
    """One call, as NumPy arrays and plain values.  outs: how many outputs the instance asks for.  skipped: those among
    them that it leaves out.  sequence: is the one output a list?"""

    operands: list[Any]
    keywords: dict[str, Any]
    outs: int
    skipped: tuple[int, ...] = ()
    sequence: bool = False


def outcomes(case: Case, ask: Callable[[Call], Outcome]) -> list[Outcome]:
    """What the kernel did with each run of a case; it stops at the first run without a value.  ask: calls it."""
    why = beyond(case)
    if why is not None:
        return [Outcome(Status.UNSUPPORTED, None, "call", why)]
    out: list[Outcome] = []
    for arrays in case.draws:
        out.append(ask(_call(case, arrays)))
        if out[-1].status is not Status.VALUE:
            break
    return out


def beyond(case: Case) -> str | None:
    """Why no Python callable can be given the instance; None where it can."""
    inst = case.inst
    if any(isinstance(x, Graph) for v in inst.attrs.values() for x in (v if isinstance(v, list) else [v])):
        return "an attribute is a graph"
    given = (a for v in inst.args.values() for a in (v if isinstance(v, list) else [v]))
    if any(isinstance(a, Arg) and a.quant for a in given):
        return "an operand carries a scale and a zero point"
    return None


def _call(case: Case, arrays: dict[str, Any]) -> Call:
    rows = case.expected
    first = rows[0][0].value if rows and rows[0] else None
    return Call(
        [arrays.get(s.name) for s in case.version.schema.inputs],
        {k: v.np if isinstance(v, DType) else v for k, v in attributes(case).items()},
        case.inst.outs,
        tuple(case.inst.attrs.get(SKIPPED, ())),
        case.inst.outs == 1 and isinstance(first, list),
    )


def called(kernel: Callable[..., Any], call: Call, give: Give) -> Outcome:
    """What the kernel does with one call.  give: makes an operand of a NumPy array."""
    try:
        operands = [_given(v, give) for v in call.operands]
        keywords = {k: _attribute(v, give) for k, v in call.keywords.items()}
    except Unsupported as e:
        return Outcome(Status.UNSUPPORTED, None, "call", str(e))
    except Exception as e:  # a library that cannot hold the operand: not the kernel's fault
        return Outcome(Status.UNSUPPORTED, None, "call", f"operands: {type(e).__name__}: {e}")
    try:
        got = kernel(*operands, **keywords)
        return Outcome(Status.VALUE, _results(call, got), "run")
    except (Exception, SystemExit) as e:
        gap = any(c.__name__ in GAPS for c in type(e).__mro__)
        return Outcome(Status.UNSUPPORTED if gap else Status.REJECTED, None, "run", f"{type(e).__name__}: {e}")


def _given(v: Any, give: Give) -> Any:
    """An operand: None where it is absent, a list of a variadic slot or a sequence, else an array of the library.  It
    is a copy, so that a kernel which writes to it does not change what is expected."""
    if isinstance(v, (list, tuple)):
        return [_given(x, give) for x in v]
    if isinstance(v, dict):
        return {k: _given(x, give) for k, x in v.items()}
    return give(np.array(v, order="C")) if isinstance(v, np.ndarray) else v


def attributes(case: Case) -> dict[str, Any]:
    """Every attribute of the schema: as the instance has it, else its default, else None."""
    inst, schema = case.inst, case.version.schema
    stated = {n: BY_NAME.get(a.default, a.default) if a.type == "dtype" else a.default for n, a in schema.attrs.items()}
    return stated | {n: v for n, v in inst.attrs.items() if not n.startswith("@")}


def _attribute(v: Any, give: Give) -> Any:
    return _given(v, give) if isinstance(v, np.ndarray) else v


def _results(call: Call, got: Any) -> list[Any]:
    """The outputs in their order; those after the last that the instance asks for are left out."""
    many = isinstance(got, tuple) or (isinstance(got, list) and not call.sequence)
    values = [taken(x) for x in (got if many else [got])][: call.outs]
    for i in call.skipped:
        if i < len(values):
            values[i] = None
    return values
