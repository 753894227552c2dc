"""All respellings.  A new one is one line here, with two functions: where it applies, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from suites.programs.respell import data, flow, geometry, operands, spelling
from suites.programs.respell.view import Site, View


@dataclass(frozen=True)
class Respelling:
    """name: as goals and records call it.  sites: where it applies to a program, in plain values.  apply: changes the
    program at one of them.  preserves: do the outputs that were there before keep their values?"""

    name: str
    sites: Callable[[View], list[Site]]
    apply: Callable[[View, Site], None]
    preserves: bool = False


RESPELLINGS: tuple[Respelling, ...] = (
    Respelling("operands exchanged", operands.commutative, operands.exchange, True),
    Respelling("constant on the left", operands.constant_right, operands.exchange),
    Respelling("same operand twice", operands.pairs_of_a_type, operands.same_twice),
    Respelling("constant shared", operands.alike, operands.share),
    Respelling("constant with a second user", operands.constants, operands.second_user_of_constant, True),
    Respelling("constant scalar", operands.not_scalar, operands.scalar),
    Respelling("constant of shape [1]", operands.not_one, operands.one),
    Respelling("constant of the same rank", operands.below_rank, operands.same_rank, True),
    Respelling("constant of higher rank", operands.may_rise, operands.higher_rank),
    Respelling("constant spread", operands.spread_sites, operands.spread, True),
    Respelling("constant at run time", data.constants, data.at_run_time, True),
    Respelling("input constant", data.inputs, data.constant),
    Respelling("output too", flow.hidden, flow.output_too, True),
    Respelling("second user", flow.made, flow.second_user, True),
    Respelling("node twice", flow.twice_sites, flow.twice, True),
    Respelling("identity", flow.operands, flow.identity, True),
    Respelling("cast wider and back", flow.widened_sites, flow.cast_wider, True),
    Respelling("cast narrower and back", flow.narrowed_sites, flow.cast_narrower),
    Respelling("transpose there and back", flow.turned_sites, flow.transpose_pair, True),
    Respelling("reshape there and back", flow.laid_out_sites, flow.reshape_pair, True),
    Respelling("axis in the other sign", spelling.signed, spelling.other_sign, True),
    Respelling("-1 in a shape", spelling.sized, spelling.minus_one, True),
    Respelling("0 in a shape", spelling.kept, spelling.zero, True),
    Respelling("axes kept or not", spelling.reducing, spelling.keep),
    Respelling("broadcast that widens", geometry.widening, geometry.widen),
    Respelling("operand that is widened", geometry.narrowing, geometry.narrow),
    Respelling("extent of 1", geometry.extents, geometry.extent_of_one),
    Respelling("other rank", geometry.leading, geometry.drop),
    Respelling("extent left open", geometry.openable, geometry.leave_open, True),
    Respelling("another element type", data.floats, data.retype),
    Respelling("special values", data.drawn, data.special_inputs),
    Respelling("values that overflow", data.drawn, data.wide_inputs),
    Respelling("special constant", data.float_constants, data.special_constant),
)

BY_NAME = {r.name: r for r in RESPELLINGS}
