"""Recurrent layers."""

from __future__ import annotations

from typing import Any

from harness.declare import Build, Call, Checks, Codec, Draw, Sampling, Slotted, Spelling
from suites.onnx import op
from suites.semantics import recurrent as s


class Layout(Codec):
    """``layout`` 1 puts the batch first; versions before 14 have only the other one."""

    def decode(self, call: Call) -> bool:
        return not call.attr("layout", 0)

    def encode(self, value: bool, b: Build) -> None:
        if "layout" in b.version.schema.attrs:
            b.attr("layout", int(not value))


class Recurrence(Slotted):
    """The recurrence weights, which also tell the hidden size."""

    def encode(self, value: Any, b: Build) -> None:
        super().encode(value, b)
        if not b.draw.chance(8):
            b.attrs["hidden_size"] = value.shape[-1]
        if "output_sequence" in b.version.schema.attrs:  # "Y ... is optional if `output_sequence` is 0"
            if not b.draw.chance(8):
                b.attrs["output_sequence"] = 1
            elif b.draw.bool():
                b.attrs["output_sequence"] = 0


class Direction(Codec):
    """GRU-1 spells its default wrongly in the schema ("foward")."""

    def decode(self, call: Call) -> str:
        v = call.attr("direction", "forward")
        return "forward" if v == "foward" else v

    def encode(self, value: str, b: Build) -> None:
        if value != "forward" or b.draw.bool():
            b.attrs["direction"] = value


class Activations(Codec):
    """The functions of each direction; the default of RNN is written for two of them."""

    def decode(self, call: Call) -> tuple[str, ...] | None:
        given = call.attrs.get("activations")
        if given is not None:
            return tuple(given)
        default = call.attr("activations")
        return None if default is None else tuple(default[: int(call.inputs["W"].shape[0])])

    def encode(self, value: Any, b: Build) -> None:
        b.attr("activations", value)


_COMMON = (
    Spelling(
        x="X",
        w="W",
        r=Recurrence("R"),
        b="B",
        lengths="sequence_lens",
        h0="initial_h",
        direction=Direction(),
        activations=Activations(),
    ),
    Checks(agrees={"hidden_size": lambda c: c.inputs["R"].shape[-1]}),
)


def _outs(d: Draw, values: dict) -> int:
    outs = d.version.schema.outputs
    return d.int(max([1, *(i + 1 for i, o in enumerate(outs) if not o.optional)]), len(outs))


_ranges: tuple[tuple[Spelling, dict[str, Any]], ...] = (
    (Spelling(fixed={"steps_first": True}), {"until": 13}),
    (Spelling(steps_first=Layout()), {"since": 14}),
)
for _order, _range in _ranges:
    op(
        "LSTM",
        s.lstm,
        *_COMMON,
        _order,
        Spelling(c0="initial_c", p="P", coupled="input_forget", fixed={"gates": "iofc"}),
        Sampling(outs=_outs),
        **_range,
    )
    op(
        "GRU",
        s.gru,
        *_COMMON,
        _order,
        Spelling(reset_after="linear_before_reset", fixed={"gates": "zrh"}),
        Sampling(outs=_outs),
        **_range,
    )
    op("RNN", s.rnn, *_COMMON, _order, Sampling(outs=_outs), **_range)
