"""Blocks run over values of every kind of element."""

from __future__ import annotations

import numpy as np
import pytest

from suites.semantics import control


@pytest.mark.parametrize("back", [False, True])
def test_a_slice_of_words_is_an_array_too(back: bool) -> None:
    words = np.array(["a", "bb", ""], object)
    seen: list[np.ndarray] = []

    def body(row: list[np.ndarray]) -> list[np.ndarray]:
        seen.append(row[0])
        return row

    (out,) = control.scan([], [words], body, in_axes=[0], in_back=[back], outs=1, out_axes=[0], out_back=[back])
    assert all(isinstance(x, np.ndarray) and x.shape == () for x in seen)
    assert [x.item() for x in seen] == (["", "bb", "a"] if back else ["a", "bb", ""])
    assert out.tolist() == words.tolist()


def test_slices_of_any_axis() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    for axis in range(3):
        (out,) = control.scan([], [x], list, in_axes=[axis], in_back=[False], outs=1, out_axes=[axis], out_back=[False])
        assert np.array_equal(out, x)


def test_a_body_that_stacks_nothing_is_run_once_a_turn() -> None:
    """Without a turn there is nothing to ask it for."""
    turns = []

    def body(row: list[np.ndarray]) -> list[np.ndarray]:
        turns.append(row)
        return [row[0] + row[1]]

    for n in (0, 3):
        x = np.arange(n, dtype=np.float32)
        (total,) = control.scan(
            [np.array(1, np.float32)], [x], body, in_axes=[0], in_back=[False], outs=0, out_axes=[], out_back=[]
        )
        assert total == 1 + x.sum()
        assert len(turns) == n
        turns.clear()
