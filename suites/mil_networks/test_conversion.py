"""What ``suites/known/conversion.md`` says of coremltools still stands."""

from __future__ import annotations

from typing import Any

import pytest

EXTRA = "networks are written in PyTorch: pip install 'opconform[networks]'"
torch: Any = pytest.importorskip("torch", reason=EXTRA)
ct = pytest.importorskip("coremltools", reason=EXTRA)

import numpy as np  # noqa: E402


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = torch.nn.Module()
        self.part.register_buffer("n", torch.zeros(1))

    def forward(self, x: Any) -> Any:
        self.part.n.add_(x)
        return self.part.n + 1


def test_states_are_renamed_by_conversion() -> None:
    traced = torch.jit.trace(Counter(), torch.ones(1), check_trace=False)
    states = [ct.StateType(ct.TensorType(shape=(1,), dtype=np.float16), name="part.n")]
    how = {"inputs": [ct.TensorType("x", (1,))], "minimum_deployment_target": ct.target.iOS18, "skip_model_load": True}
    ct.convert(traced, states=states, **how)
    assert states[0].name == "part_n"
    with pytest.raises(ValueError, match="StateType named part_n not provided or not found"):
        ct.convert(traced, states=states, **how)


def test_an_exported_lstm_is_not_converted() -> None:
    exported = torch.export.export(torch.nn.LSTM(2, 3).eval(), (torch.zeros(4, 1, 2),)).run_decompositions({})
    with pytest.raises(NotImplementedError, match=r"kind lstm\.input"):
        ct.convert(exported, minimum_deployment_target=ct.target.iOS15, skip_model_load=True)
