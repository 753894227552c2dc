"""Planted faults: answers of a wrong implementation, made from the reference.

Each fault is a function of a ``FaultContext`` (one case, one data draw).  It returns the answer of the faulty
implementation, or None if the instance cannot show the fault.  No fault knows an operator: it changes the outputs, or
it changes an attribute, parameter or input and evaluates the reference again.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.mutation.argument_faults import (
    dropped_bias,
    ignored_attribute,
    operands_swapped,
    other_mode,
    pad_off_by_one,
    parameter_off_by_one,
    saturates,
    ties_broken_otherwise,
    truncated_division,
    wrong_axis,
    wrong_default,
)
from harness.mutation.fault_context import FaultContext, Outputs
from harness.mutation.output_faults import (
    f16_accumulation,
    infinity_clipped,
    k_ulp,
    nan_dropped,
    negative_zero_lost,
    output_transposed,
    stale_memory,
    subnormals_flushed,
    through_f32,
    truncated_result,
)

Fault = Callable[[FaultContext], Outputs | None]
FAULTS: dict[str, Fault] = {
    "pad off by one": pad_off_by_one,
    "wrong axis": wrong_axis,
    "ignored attribute": ignored_attribute,
    "wrong default": wrong_default,
    "other mode": other_mode,
    "parameter off by one": parameter_off_by_one,
    "dropped bias": dropped_bias,
    "operands swapped": operands_swapped,
    "rounded toward zero": truncated_result,
    "ties broken otherwise": ties_broken_otherwise,
    "k-ulp error": k_ulp,
    "NaN dropped": nan_dropped,
    "infinity clipped": infinity_clipped,
    "-0 lost": negative_zero_lost,
    "subnormals flushed": subnormals_flushed,
    "saturates": saturates,
    "integers through f32": through_f32,
    "f16 accumulation": f16_accumulation,
    "truncated division": truncated_division,
    "stale memory": stale_memory,
    "output transposed": output_transposed,
}
