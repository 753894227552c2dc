"""All respellings.  A new one is one line here, with two functions: where it applies, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from suites.programs.respell import added, data, flow, geometry, operands, spelling
from suites.programs.respell.view import Site, View


@dataclass(frozen=True)
class Respelling:
    """name: as goals and records call it.  sites: where it applies to a program, in plain values.  apply: changes the
    program at one of them.  preserves: do the outputs that were there before keep their values?  after: the respellings
    that give a program such a place where it has none.  often: how often it is drawn, as against others.  empties: may
    it leave values without elements?"""

    name: str
    sites: Callable[[View], list[Site]]
    apply: Callable[[View, Site], None]
    preserves: bool = False
    after: tuple[str, ...] = ()
    often: int = 1
    empties: bool = False


CONSTANT, INPUT, SUM, RESHAPE = "op with a constant", "op with an input", "reduction", "reshape there and back"
TYPE, WIDER = "another element type", "cast wider and back"

RESPELLINGS: tuple[Respelling, ...] = (
    Respelling("operands exchanged", operands.commutative, operands.exchange, True, after=(INPUT,)),
    Respelling("constant on the left", operands.constant_right, operands.exchange, after=(CONSTANT,)),
    Respelling("same operand twice", operands.pairs_of_a_type, operands.same_twice, after=(INPUT,)),
    Respelling("constant shared", operands.alike, operands.share, after=(CONSTANT, CONSTANT)),
    Respelling(
        "constant with a second user", operands.constants, operands.second_user_of_constant, True, after=(CONSTANT,)
    ),
    Respelling("constant scalar", operands.not_scalar, operands.scalar, after=(CONSTANT,)),
    Respelling("constant of shape [1]", operands.not_one, operands.one, after=(CONSTANT,)),
    Respelling("constant of the same rank", operands.below_rank, operands.same_rank, True, after=(CONSTANT,)),
    Respelling("constant of higher rank", operands.may_rise, operands.higher_rank, after=(CONSTANT,)),
    Respelling("constant spread", operands.spread_sites, operands.spread, True, after=(CONSTANT,)),
    Respelling("constant at run time", data.constants, data.at_run_time, True, after=(CONSTANT,)),
    Respelling("input constant", data.inputs, data.constant, after=(INPUT,)),
    Respelling("output too", flow.hidden, flow.output_too, True, after=(CONSTANT,)),
    Respelling("second user", flow.made, flow.second_user, True, after=(CONSTANT,)),
    Respelling("node twice", flow.twice_sites, flow.twice, True),
    Respelling("identity", flow.operands, flow.identity, True),
    Respelling(WIDER, flow.widened_sites, flow.cast_wider, True, after=(TYPE,)),
    Respelling("cast narrower and back", flow.narrowed_sites, flow.cast_narrower, after=(WIDER,)),
    Respelling("transpose there and back", flow.turned_sites, flow.transpose_pair, True),
    Respelling("reshape there and back", flow.laid_out_sites, flow.reshape_pair, True),
    Respelling("axis in the other sign", spelling.signed, spelling.other_sign, True, after=(SUM,)),
    Respelling("-1 in a shape", spelling.sized, spelling.minus_one, True, after=(RESHAPE,)),
    Respelling("0 in a shape", spelling.kept, spelling.zero, True, after=(RESHAPE,), often=2),
    Respelling("axes kept or not", spelling.reducing, spelling.keep, after=(SUM,)),
    Respelling("broadcast that widens", geometry.widening, geometry.widen, after=(INPUT,)),
    Respelling("operand that is widened", geometry.narrowing, geometry.narrow, after=(INPUT,)),
    Respelling("another extent", geometry.any_extents, geometry.other_extent, after=(INPUT,), often=4, empties=True),
    Respelling("extent of 1", geometry.extents, geometry.extent_of_one),
    Respelling("other rank", geometry.leading, geometry.drop, after=(INPUT,)),
    Respelling("extent left open", geometry.openable, geometry.leave_open, True, after=(INPUT,)),
    Respelling(TYPE, data.floats, data.retype),
    Respelling("special values", data.drawn, data.special_inputs, often=2),
    Respelling("values that overflow", data.drawn, data.wide_inputs),
    Respelling(CONSTANT, added.arithmetic, added.with_constant),
    Respelling(INPUT, added.with_input_sites, added.with_input, often=3, empties=True),
    Respelling("input of another type", added.typed_sites, added.with_typed_input, often=6, empties=True),
    Respelling(SUM, added.reducible, added.reduce),
    Respelling("special constant", data.float_constants, data.special_constant, after=(CONSTANT,)),
)

OFTEN = tuple(r for r in RESPELLINGS for _ in range(r.often))
BY_NAME = {r.name: r for r in RESPELLINGS}
