"""The table of instances without elements: its rows name what op versions have, and the reference takes each."""

from __future__ import annotations

import pytest

from harness.core.instance import Instance
from harness.core.quiet import quiet
from harness.declare.op_version.far import changed, far_of, one_of, picked
from harness.generate.draw import Draw
from harness.generate.draw_engines import Prng
from suites.mil import _takes_widened, dialect, far

ROWS = [(key, i) for key, rows in far.TABLE.items() if not callable(rows) for i in range(len(rows))]
TRIES = 24


def _drawn(key: str, seed: int) -> tuple[Draw, Instance]:
    v = dialect.versions[key]
    engine = Prng(seed)
    return v.begin(engine, v.opsets[-1]), v.draw(engine, v.opsets[-1], edges=False)


@pytest.mark.parametrize(("key", "i"), ROWS)
def test_reference_takes_row(key: str, i: int) -> None:
    rows = far.TABLE[key]
    assert not callable(rows)
    found = [v for v in dialect.versions.values() if key in (v.op, f"{v.op}/{v.version}")]
    assert found, f"{key} names no op version"
    with quiet:
        for seed in range(TRIES):
            d, inst = _drawn(found[-1].key, seed)
            new = changed(found[-1], inst, picked(d, rows[i]))
            if new is not None and _takes_widened(found[-1], new):
                return
    pytest.fail(f"{found[-1].key}: the reference takes no instance of {rows[i]}")


def test_row_changes_shapes_elements_and_attributes() -> None:
    v = dialect.versions["mil/tile/ios15"]
    _, inst = _drawn(v.key, 1)
    new = changed(v, inst, {"x": (1, 0), "reps": [7, 2], "@const": {"x": True}})
    assert new is not None
    x, reps = new.tensor("x"), new.tensor("reps")
    assert (x.shape, x.values, x.const) == ((1, 0), None, True)
    assert (reps.shape, reps.values) == ((2,), [7, 2])
    assert changed(v, inst, {"x": (1, 0), "axis": 1}) is None, "tile has no axis"


def test_row_leaves_out_what_is_none() -> None:
    v = dialect.versions["mil/split/ios15"]
    _, inst = _drawn(v.key, 1)
    new = changed(v, inst, {"num_splits": None, "split_sizes": [0, 9], "@outs": 2})
    assert new is not None
    assert "num_splits" not in new.attrs
    assert (new.attrs["split_sizes"], new.outs) == ([0, 9], 2)


def test_choices_are_made_at_any_depth() -> None:
    d, _ = _drawn("mil/tile/ios15", 1)
    made = picked(d, one_of({"x": (one_of(3), 0), "k": [one_of([one_of(5)])]}))
    assert made == {"x": (3, 0), "k": [[5]]}


def test_an_instance_that_breaks_a_rule_and_an_op_without_a_row_stay() -> None:
    v = dialect.versions["mil/tile/ios15"]
    d, inst = _drawn(v.key, 1)
    table = {"tile": ({"x": (1, 0), "reps": [2, 2]},)}
    assert far_of(v, d, inst, _takes_widened, {}, 1) is inst
    assert far_of(v, d, inst, lambda *_: False, table, 1) is inst
    assert far_of(v, d, inst, _takes_widened, table, 1).tensor("x").shape == (1, 0)
    d.breaking = True
    assert far_of(v, d, inst, _takes_widened, table, 1) is inst
