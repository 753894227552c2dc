"""Sparse constants: what the file stores stands for the dense array again."""

from __future__ import annotations

import numpy as np
import pytest

from harness.core.errors import FormatError
from harness.generate.draw_engines import Prng, case_seed
from suites.tflite import dialect, sparsity
from suites.tflite import flatbuffers as fb


def test_the_schema_comment_example() -> None:
    """A 4x4 matrix in blocks of 2x2 of which three are there, rows dense and columns compressed."""
    x = np.array([[1, 0, 2, 3], [0, 4, 0, 0], [0, 0, 5, 0], [0, 0, 0, 6]], np.float32)
    layout = {
        "order": [0, 1, 2, 3],
        "block_map": [0, 1],
        "block": [2, 2],
        "csr": [False, True, False, False],
        "width": 8,
    }
    table, values = sparsity.encode(x, layout)
    assert values.tolist() == [1, 0, 0, 4, 2, 3, 0, 0, 5, 0, 0, 6]
    rows, columns = table["dim_metadata"][:2]
    assert rows == {"format": 0, "dense_size": 2}
    assert columns["array_segments"]["values"].tolist() == [0, 2, 3]
    assert columns["array_indices"]["values"].tolist() == [0, 1, 1]
    np.testing.assert_array_equal(sparsity.decode(table, values, x.shape), x)


@pytest.mark.parametrize("n", range(40))
def test_drawn_layouts_come_back(n: int) -> None:
    inst = dialect.versions["tflite/DENSIFY/1"].draw(Prng(case_seed(3, "sparse", n)))
    a = inst.tensor("input")
    x = np.array(a.values, np.float64).reshape(a.shape).astype(a.dtype.np)
    table, values = sparsity.encode(x, inst.attrs["@sparsity"]["input"])
    assert np.count_nonzero(x) == np.count_nonzero(values)
    np.testing.assert_array_equal(sparsity.decode(table, values, x.shape), x)


def test_short_values_are_refused() -> None:
    inst = dialect.versions["tflite/DENSIFY/1"].draw(Prng(case_seed(3, "sparse", 0)))
    a = inst.tensor("input")
    x = np.array(a.values, np.float64).reshape(a.shape).astype(a.dtype.np)
    table, values = sparsity.encode(x, inst.attrs["@sparsity"]["input"])
    with pytest.raises(FormatError, match="values needed"):
        sparsity.decode(table, values[:-1], x.shape)


def test_the_file_names_vectors_by_their_width() -> None:
    for width, name in ((8, "Uint8Vector"), (16, "Uint16Vector"), (32, "Int32Vector")):
        layout = {"order": [0], "block_map": [], "block": [], "csr": [True], "width": width}
        table, _ = sparsity.encode(np.array([0, 3, 0, 4], np.float32), layout)
        meta = table["dim_metadata"][0]
        assert meta["array_indices_type"] == fb.union_number("arrayIndices", name)
        assert meta["array_segments_type"] == fb.union_number("arraySegments", name)
