"""What comes where a difference is listed (``harness/ledger/defect_models.py``): LiteRT's LSTM in 8 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.dtypes import I8, int_range
from harness.ledger.defect_models import Near
from suites.semantics.quantised.dynamic_recurrent import Numbers
from suites.semantics.quantised.output import finish
from suites.semantics.quantised.recurrent import STORED, Stages, held
from suites.tflite.ops.quantised_recurrent import lstm_numbers

Outputs = list[Any] | None


class _OfLiteRT(Stages):
    """outs: values that the cell gives.  apart: each row of the batch is a call of its own."""

    def __init__(self, outs: int, apart: bool) -> None:
        self.outs, self.apart, self.wraps, self.cancels = outs, apart, False, False

    def scaled(self, sums: np.ndarray, scale: float, place: float) -> np.ndarray:
        """A factor above 1 is one below 1 after a shift to the left, in 32 bits: that wraps."""
        factor, shift = np.frexp(scale / place)
        counted = np.rint(sums / scale) * 2.0 ** max(0, int(shift))
        wrapped = (counted + 2.0**31) % 2.0**32 - 2.0**31
        self.wraps = self.wraps or bool((wrapped != counted).any())
        return np.where(wrapped == counted, sums, wrapped * factor * place)

    def peephole(self, memory: Numbers, weights: np.ndarray) -> Numbers:
        """Rows of the memory, of the gate and of the weights are taken to be as long as the output: of a shorter
        output, the first elements alone are met."""
        rows, units = memory.value.shape
        if self.outs == units:
            return super().peephole(memory, weights)
        if self.outs > units:
            return Numbers(np.zeros(memory.value.shape), np.inf)
        factor = np.zeros((rows, units))
        many = 1 if self.apart else rows
        first = np.tile(weights[: self.outs], many)
        factor.reshape(rows // many, -1)[:, : len(first)] = first
        return Numbers(memory.value * factor, memory.error * np.abs(factor))

    def spread(self, n: Numbers, place: float) -> np.ndarray:
        """The variance is the sum of squares times 2**20 / n, cut to an integer, less the square of the mean: of a row
        far from 0 little is right of it, and what is not above 0 counts as 1."""
        row, many = n.value / place, max(1, n.value.shape[-1])
        lost = (row**2).mean(-1, keepdims=True) * (1.0 - many * ((1 << 20) // many) / (1 << 20))
        real = row.var(-1, keepdims=True)
        least = real - lost - 1.0 - 2.0 * np.sqrt(real) * (n.error / place).max(-1, keepdims=True)
        told = (least > 1.0) | (lost == 0.0)
        with np.errstate(all="ignore"):
            factor = np.where(lost > 0.0, np.sqrt(real / np.maximum(least, 1.0)) - 1.0, 0.0)
            size = np.abs(row - row.mean(-1, keepdims=True)) / np.sqrt(np.maximum(real, 1.0))
        self.cancels = self.cancels or bool((~told | (factor > 2.0**-7)).any())
        return np.where(told, size * factor, 2.0**16)

    def hidden(self, n: Numbers, q: Any) -> Numbers:
        """Stored around the zero point with the other sign, which is taken off again: the range is another one."""
        scale, zero = q["scale"][0], q["zero_point"][0]
        low, high = (scale * (limit + zero) for limit in int_range(I8))
        return held(Numbers(n.value, n.error + STORED * scale), low, high)

    def limited(self, n: Numbers, limit: float, state: Any) -> Numbers:
        """The stored numbers are limited around 0 in place of the zero point."""
        scale, zero = state["scale"][0], state["zero_point"][0]
        most = min(int(limit / scale), 127)
        if most == 0:
            return n
        low, high = scale * (-most - zero), scale * (most - zero)
        return Numbers(np.clip(n.value, low, high), n.error)


def _given(g: Given) -> tuple[_OfLiteRT, Outputs]:
    apart = len(g["input"].shape) == 3 and not g.attr("time_major", False)
    last = g["input_to_cell_weights"] if g["projection_weights"] is None else g["projection_weights"]
    stages = _OfLiteRT(len(last), apart)
    r, error, q = lstm_numbers(g.call, stages)
    return stages, [Near(finish(r, q, I8), np.where(np.isfinite(error), 1.0 + np.ceil(error), np.inf))]


def projected_in_8_bits(g: Given) -> Outputs:
    """An LSTM in 8 bits with a projection: what precedes it takes the length of a row, the sign of a zero point and
    the middle of a limit for other ones."""
    return None if g["projection_weights"] is None else _given(g)[1]


def sums_shifted_in_32_bits(g: Given) -> Outputs:
    """An LSTM in 8 bits: sums over the input that a shift takes beyond 32 bits wrap."""
    stages, made = _given(g)
    return made if stages.wraps else None


def rows_far_from_zero(g: Given) -> Outputs:
    """An LSTM in 8 bits with layer normalisation: of rows whose mean is large beside their spread the variance is
    another one, too small or none."""
    stages, made = _given(g)
    return made if stages.cancels else None
