"""Collect the backend test cases of the installed onnx and compare one of them with the reference.

Kinds: ``node`` (built in memory), ``simple``, ``pytorch-operator``, ``pytorch-converted`` (files in the package).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from harness.core.dtypes import of
from harness.tolerance import ulp
from suites.onnx.decode import decode, decode_tensor

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")


@dataclass(slots=True)
class Case:
    """name, kind, the model's bytes, [(inputs, outputs)], tolerances as published."""

    name: str
    kind: str
    data: bytes
    sets: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float

    @property
    def ops(self) -> set[str]:
        """Operators of the main graph."""
        return {n.op for n in decode(self.data).graph.nodes}


@cache
def cases(kind: str) -> dict[str, Case]:
    """Every case of a kind by name."""
    return {c.name: c for c in (_nodes() if kind == "node" else _files(kind))}


def _nodes() -> Iterator[Case]:
    # With Pillow at hand the cases of ImageDecoder are made by it on the spot; without it they are the published data.
    with warnings.catch_warnings(), _hidden("PIL", "PIL.Image"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found = collect_testcases(None)
    for c in found:
        assert c.model is not None
        yield Case(c.name, "node", c.model.SerializeToString(), c.data_sets or [], c.rtol, c.atol)


@contextmanager
def _hidden(*names: str) -> Iterator[None]:
    """Importing these modules fails in here."""
    kept = {n: sys.modules.get(n) for n in names}
    sys.modules.update(dict.fromkeys(names))  # type: ignore[arg-type]  # None: not to be found
    try:
        yield
    finally:
        for n, module in kept.items():
            if module is None:
                del sys.modules[n]
            else:
                sys.modules[n] = module


def _files(kind: str) -> Iterator[Case]:
    import onnx
    from onnx.backend.test.loader import load_model_tests

    for c in load_model_tests(kind=kind):
        folder = Path(c.model_dir or "")
        model = onnx.load(folder / "model.onnx")
        sets = []
        for d in sorted(folder.glob("test_data_set_*")):
            ins = [
                _read(d / f"input_{i}.pb", v) for i, v in enumerate(model.graph.input) if (d / f"input_{i}.pb").exists()
            ]
            outs = [_read(d / f"output_{i}.pb", v) for i, v in enumerate(model.graph.output)]
            sets.append((ins, outs))
        yield Case(c.name, kind, (folder / "model.onnx").read_bytes(), sets, c.rtol, c.atol)


def _read(path: Path, info: Any) -> Any:
    import onnx
    from onnx import numpy_helper

    which = info.type.WhichOneof("value")
    kinds: dict[str, tuple[Any, Any]] = {
        "tensor_type": (onnx.TensorProto, numpy_helper.to_array),
        "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
        "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
    }
    box, to = kinds[which]
    message = box()
    message.ParseFromString(path.read_bytes())
    return to(message)


def plain(v: Any) -> Any:
    """A published value as one of ours: sequences as lists, optionals as their element."""
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    if hasattr(v, "SerializeToString"):  # types that NumPy lacks come as TensorProto
        return decode_tensor(v.SerializeToString())
    if isinstance(v, np.ndarray) and v.dtype.kind in "SU":
        return v.astype(object)
    if v is None or isinstance(v, dict):
        return v
    return np.asarray(v)


def difference(want: Any, got: Any, rtol: float, atol: float) -> str | None:
    """None, or why ``got`` is not the published ``want`` (tolerances as published, doubled for float8 and bf16)."""
    if want is None or got is None:
        return None if want is None and got is None else f"expected {type(want).__name__}, got {type(got).__name__}"
    if isinstance(want, dict):
        return None if want == got else f"expected {want}, got {got}"
    if isinstance(want, list):
        if not isinstance(got, list) or len(want) != len(got):
            return f"expected {len(want)} elements, got {got!r:.80}"
        return next((d for w, g in zip(want, got) if (d := difference(w, g, rtol, atol))), None)
    if not isinstance(got, np.ndarray):
        return f"expected a tensor, got {type(got).__name__}"
    if want.shape != got.shape:
        return f"shape: expected {want.shape}, got {got.shape}"
    if of(want) is not of(got):
        return f"type: expected {of(want)}, got {of(got)}"
    dtype = of(want)
    if dtype.kind in "fc":
        wide = np.complex128 if dtype.kind == "c" else np.float64
        a, b = want.astype(wide), got.astype(wide)
        if dtype.bits < 16:
            same = (a == b) | (np.isnan(a) & np.isnan(b))
        else:
            same = np.isclose(a, b, rtol, atol, equal_nan=True)
            if dtype.bits == 16:  # the published tolerance may lie below the resolution of the type
                with np.errstate(all="ignore"):
                    same |= np.abs(a - b) <= 2 * ulp(a, dtype)
    else:
        same = want == got
    if np.all(same):
        return None
    at = tuple(int(i) for i in np.argwhere(~np.asarray(same))[0])
    return f"{int((~np.asarray(same)).sum())} of {want.size} differ, first at {at}: expected {want[at]}, got {got[at]}"


def check(case: Case) -> str | None:
    """None, or how our interpreter's outputs differ from the published ones."""
    from suites.onnx import run_model

    for ins, outs in case.sets:
        with np.errstate(all="ignore"):
            got = run_model(case.data, [plain(v) for v in ins])
        for i, (w, g) in enumerate(zip(outs, got)):
            d = difference(plain(w), g, case.rtol, case.atol)
            if d is not None:
                return f"output {i}: {d}"
    return None
