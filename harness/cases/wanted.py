"""Drawing within claims: what a backend takes, or a user asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.cases.case import Case, draw_case
from harness.core.dtypes import BY_NAME
from harness.core.errors import UsageError
from harness.core.instance import Arg
from harness.declare import OpVersion
from harness.generate.draw_engines import mix
from harness.workers.claims import ALL_BUT_FIRST, Claims

# Options that select instances, of the command line and of pytest.
OPTIONS: dict[str, dict[str, Any]] = {
    "--dtype": {
        "action": "append",
        "default": [],
        "metavar": "NAME",
        "help": "only instances of these element types: f32, i64 (docs/backends.md lists them)",
    },
    "--max-rank": {"metavar": "N", "help": "only tensors up to this rank"},
    "--no-empty": {"action": "store_true", "help": "no tensors with an axis of extent 0"},
    "--static": {"action": "store_true", "help": "only extents that are known when the model is loaded"},
    "--constant-operands": {"action": "store_true", "help": "all operands but the first are constants"},
}
TRIES = 24  # draws of an instance until one is within the claims


def draw_within(
    claims: Claims,
    v: OpVersion,
    opset: Any,
    seed: int,
    index: int,
    draws: int = 1,
    invalid: bool = True,
    lazy: bool = False,
) -> Case | None:
    """As ``draw_case``, of an instance within the claims; None where no draw gives one.

    Operands become constants, and extents known, where the claims ask for it."""
    if not claims:
        return draw_case(v, opset, seed, index, draws, invalid, lazy)
    invalid = invalid and claims.validates
    for k in range(TRIES):
        case = draw_case(v, opset, seed if k == 0 else mix(seed + k * 0x9E3779B97F4A7C15), index, draws, invalid, lazy)
        if case.problem:
            return case
        case = shaped(case, claims)
        if not claims.beyond(case.inst, v.schema):
            return case
    return None


def shaped(case: Case, claims: Claims) -> Case:
    """The case with constants and known extents where the claims ask for them; itself where they do not."""
    inst, slots = case.inst, claims.to_fix(case.inst)
    fixed = claims.static and (inst.reruns or any(a.dynamic for given in inst.args.values() for a in _listed(given)))
    if not slots and not fixed:
        return case
    if inst.rule is not None and slots:  # which operand breaks the rule may depend on it
        return case
    args = {s: _shaped(given, s in slots, claims.static) for s, given in inst.args.items()}
    inst = replace(inst, args=args, reruns=() if fixed or slots else inst.reruns, choices=None)
    return Case(case.version, inst, case.index, case.count, drawn=True)


def _listed(given: Any) -> list[Arg]:
    return given if isinstance(given, list) else [given]


def _shaped(given: Any, const: bool, static: bool) -> Any:
    """Containers have no constants."""
    if isinstance(given, list):
        return [_shaped(a, const, static) for a in given]
    const = given.const or (const and given.items is None and given.kind == "tensor")
    return replace(given, const=const, dynamic=() if static or const else given.dynamic)


def beyond(case: Case, claims: Claims) -> str:
    """What puts a case outside of the claims, in words: the instance, its data, what the specification expects."""
    if not claims or case.problem:
        return ""
    why = claims.beyond(case.inst, case.version.schema)
    if why or not claims.of_values:
        return why
    return claims.beyond_values(case.draws, [[e.value for e in row] for row in case.expected or ()])


def asked_for(get: Callable[[str], Any]) -> Claims:
    """The claims that these options state.  get: the value of an option by its name.  Raises UsageError."""
    types, rank = get("dtype"), get("max_rank")
    for name in types:
        if name not in BY_NAME:
            raise UsageError(f"--dtype: expected a name among {' '.join(BY_NAME)}, got {name}")
    if rank is not None and not str(rank).isdecimal():
        raise UsageError(f"--max-rank: expected a whole number, 0 or more, got {rank}")
    return Claims(
        dtypes=frozenset(types) if types else None,
        max_rank=None if rank is None else int(rank),
        empty=not get("no_empty"),
        static=bool(get("static")),
        constant=(ALL_BUT_FIRST,) if get("constant_operands") else (),
    )
