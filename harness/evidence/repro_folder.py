"""The folder of a failure: instance, model, data, and a script that needs only the backend and NumPy."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.cases.case import Case
from harness.cases.result import Result
from harness.core.dtypes import of
from harness.core.escape import file_name, utf8, visible
from harness.core.outcome import Model, TypeOnly
from harness.declare import Expected
from harness.engine.batching import build, feed
from harness.engine.case_record import NEIGHBOURS, notation
from harness.evidence.repro_script import BEFORE, script
from harness.workers.unwritten import words

NONDETERMINISTIC = "nondeterministic.txt"  # in the folder where two runs of the model differ


def write_folder(root: Path, result: Result, version: str, processor: str = "", python: str | None = None) -> Path:
    """Write ``<root>/<op>-<id>-<backend>/`` and return it.  version: of the backend.  processor, python: that it ran on
    and in (None: this one)."""
    inst, v = result.case.inst, result.case.version
    folder = root / file_name(f"{inst.dialect}-{v.op}-{v.version}-{inst.id}-{result.backend}")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _fill(folder, result, version, processor, python)
    except OSError:  # half a folder would look like a whole one, and takes the room that the report needs
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _fill(folder: Path, result: Result, version: str, processor: str, python: str | None) -> None:
    """Write the files of a failure."""
    case = result.case
    inst = case.inst
    asked = result.asked or case  # what the backend was really given
    together = result.neighbours or (asked,)
    at = next(k for k, c in enumerate(together) if c is asked)
    (folder / "instance.json").write_text(json.dumps(inst.to_json(), indent=1) + "\n")
    (folder / "notation.txt").write_text(utf8(notation(result)) + "\n", encoding="utf-8")
    try:
        model = build(asked.version.dialect, together)
    except Exception as error:
        why = f"the model could not be built: {type(error).__name__}: {error}\n"
        (folder / "model.txt").write_text(utf8(why), encoding="utf-8")
        return
    name = "model" + asked.version.dialect.extension
    if asked is not case:
        (folder / "asked.json").write_text(json.dumps(asked.inst.to_json(), indent=1) + "\n")
    (folder / name).write_bytes(model.data)
    for r in range(result.draw + 1):
        save(folder / ("inputs.npz" if r == result.draw else BEFORE.format(r)), _given(together, model, r))
    earlier = [_earlier(folder, k, cases) for k, cases in enumerate(result.prior_models)]
    if result.neighbours or result.prior_models:
        listed: dict[str, Any] = {"at": at, "instances": [c.inst.to_json() for c in together]}
        if result.prior_models:
            listed["prior_models"] = [[c.inst.to_json() for c in cases] for cases in result.prior_models]
        (folder / NEIGHBOURS).write_text(json.dumps(listed, indent=1) + "\n")
    rows = case.expected or [[]]
    absent = _save_expected(folder, model.named(at, rows[result.draw if result.draw < len(rows) else 0]))
    came = model.named(at, result.outcome.outputs or ())
    save(folder / "actual.npz", {n: a for n, a in came if isinstance(a, np.ndarray)})
    if result.nondeterministic:
        _save_second(folder, result, model, at)
    text = script(result, version, name, _names(model, at), earlier, absent, processor, python)
    (folder / "repro.py").write_text(text, encoding="ascii")


def _save_second(folder: Path, result: Result, model: Model, at: int) -> None:
    """Write how two runs differ, and what the second one gave."""
    runs = (f"first run, actual.npz: {words(0)}", f"second run, actual-second.npz: {words(1)}")
    lines = (visible(result.nondeterministic), "Variables that repro.py is to be started with:", *runs)
    (folder / NONDETERMINISTIC).write_text("\n".join(lines) + "\n", encoding="utf-8")
    came = () if result.second is None else model.named(at, result.second.outputs or ())
    save(folder / "actual-second.npz", {n: a for n, a in came if isinstance(a, np.ndarray)})


def _save_expected(folder: Path, outputs: Sequence[tuple[str, Expected]]) -> list[str]:
    """Write what is expected of each output, before it was rounded, and its bounds; the names of those that are to be
    absent."""
    expected, wide, bounds = {}, {}, {}
    for n, e in outputs:
        expected[n] = e.value
        if isinstance(e.wide, np.ndarray) and e.wide.dtype.kind == "f":
            wide[n] = np.asarray(e.wide, np.float64)
        if isinstance(e.value, np.ndarray) and e.value.dtype.kind == "f":
            try:
                bound = np.asarray(e.error.bound(e.context()), np.float64)
                bounds[n] = np.broadcast_to(bound, e.value.shape)
            except Exception:  # a tolerance without numbers (sets, distributions)
                continue
    save(folder / "expected.npz", expected)
    save(folder / "wide.npz", wide)
    save(folder / "bounds.npz", bounds)
    return [n for n, v in expected.items() if v is None]


def _earlier(folder: Path, k: int, cases: Sequence[Case]) -> tuple[str, list[str], list[str]]:
    """Write a model that the process served before, and its inputs; the names of the files, and its outputs."""
    dialect = cases[0].version.dialect
    model = build(dialect, cases)
    name, inputs = f"earlier-{k}{dialect.extension}", []
    (folder / name).write_bytes(model.data)
    for r in range(max(1, *(len(c.draws) for c in cases))):
        inputs.append(f"earlier-{k}-{r}.npz")
        save(folder / inputs[-1], _given(cases, model, r))
    return name, inputs, [n for i in range(len(cases)) for n in _names(model, i)]


def _names(model: Model, i: int) -> list[str]:
    return [n for n, _ in model.named(i, model.outputs[i])]


def _given(cases: Sequence[Case], model: Model, run: int) -> dict[str, Any]:
    """What a model of the cases is given in a run, by input."""
    out: dict[str, Any] = {}
    for c, names in zip(cases, model.inputs, strict=True):
        out.update(zip([n for n, _, _ in names], feed(c, names, run), strict=True))
    return out


def save(path: Path, arrays: dict[str, Any]) -> None:
    """An .npz; element types NumPy lacks are stored as unsigned integers under ``name|dtype``, strings as
    ``name|str``, maps as JSON under ``name|map``."""
    out: dict[str, Any] = {}
    for name, a in arrays.items():
        if isinstance(a, dict):
            out[f"{name}|map"] = np.array(json.dumps([[_plain(k), _plain(v)] for k, v in a.items()]))
        elif isinstance(a, (list, tuple)):
            for i, x in enumerate(a):
                out.update(_storable(f"{name}[{i}]", x))
        elif a is not None and not isinstance(a, TypeOnly):
            out.update(_storable(name, a))
    np.savez(path, **out)


def _plain(x: Any) -> Any:
    return x.item() if isinstance(x, np.generic) else x


def _storable(name: str, a: Any) -> dict[str, Any]:
    a = np.asarray(a)
    d = of(a)
    if d.kind == "s":
        return {f"{name}|str": np.array([str(x) for x in a.ravel()], dtype=str).reshape(a.shape)}
    if a.dtype.isbuiltin == 1:  # one of ml_dtypes' types calls itself a float of one byte, which no .npz takes
        return {name: a}
    return {f"{name}|{d.name}": np.array(a, order="C").view(f"u{a.dtype.itemsize}")}
