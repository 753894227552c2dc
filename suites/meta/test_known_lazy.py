"""Which folders of known differences a run reads: those of its backends and their releases."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from harness.backends import registry as backends
from harness.cases.case import fill
from harness.core.errors import FormatError
from harness.core.outcome import Outcome, Status
from harness.declare import registry
from harness.engine.verdict import judge_case
from harness.ledger import corpus
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo
from suites.meta.test_known_files import ABS, RELU, TABLE, line

full = cache(load_ledger)
RELEASES = ("1.20.1", "1.32.0", "2.0.3", "2.3.0", "tflite-runtime 2.14.0", "coremltools 9.0", "2026.4.1", "unknown")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Entries of two backends, of the first in two folders by release; what is listed of the second is damaged."""
    (tmp_path / "folders.toml").write_text(
        "[mine-old]\nbackend = 'mine*'\nversions = '<2'\n[mine]\nbackend = 'mine*'\n[other]\nbackend = 'other'\n"
    )
    old = TABLE.format(id="old", backend="mine") + "versions = '<1.5'\n"
    for folder, text in (("mine-old", old), ("mine", TABLE.format(id="new", backend="mine")), ("other", "damaged")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "activation.toml").write_text(text)
    (tmp_path / "mine/activation.jsonl").write_text(line("new"))
    (tmp_path / "mine-old/activation.jsonl").write_text(line("old", ABS))
    return tmp_path


@pytest.mark.parametrize(
    ("info", "ids"),
    [
        (BackendInfo("mine", "2.0"), ["new"]),
        (BackendInfo("mine-fast", "1.6"), ["old", "new"]),
        (BackendInfo("somebody's", "2.0"), []),
        (BackendInfo("cross", "2.0", known_as=("mine",)), ["new"]),
        (BackendInfo("plugged", "2.0", front_end="mine"), ["new"]),
    ],
)
def test_a_ledger_reads_the_folders_of_a_backend_and_its_release(
    place: Path, info: BackendInfo, ids: list[str]
) -> None:
    ledger = load_ledger([place], backends=[])
    assert not ledger.entries
    ledger.excuses("onnx/Relu/14", info)
    assert [e.id for e in ledger.entries] == ids


def test_a_question_about_a_wrong_answer_reads_the_folder(place: Path) -> None:
    ledger, case = load_ledger([place], backends=[]), fill(registry.version_of(RELU), RELU)
    outcome = Outcome(Status.VALUE, [np.full(2, 7, np.float32)], "run")
    copy = ledger.unmarked()
    assert judge_case(case, BackendInfo("mine", "2.0"), [outcome], ledger).known == "new"
    assert judge_case(case, BackendInfo("mine", "2.0"), [outcome], copy).known == "new"
    assert (ledger.counts(), copy.counts()) == ({"new": 1}, {"new": 1}), "a copy reads and counts for itself"


def test_a_damaged_folder_is_an_error_when_its_backend_runs(place: Path) -> None:
    ledger = load_ledger([place], backends=[])
    ledger.read_for(BackendInfo("mine", "2.0"))
    with pytest.raises(FormatError, match=r"^other/activation\.toml:1: "):
        ledger.read_for(BackendInfo("other", "1"))
    with pytest.raises(FormatError, match=r"^other/activation\.toml:1: "):
        load_ledger([place])


def test_saved_instances_do_not_depend_on_what_was_read(place: Path) -> None:
    (place / "other/activation.toml").unlink()
    lazy, read = load_ledger([place], backends=[]), load_ledger([place])
    lazy.read_for(BackendInfo("mine", "2.0"))
    assert [f.path.name for f in lazy.unread] == ["mine-old", "other"]
    assert [i.id for i in corpus.saved(lazy, [])] == [i.id for i in corpus.saved(read, [])]
    assert {i.id for i in corpus.saved(lazy, [])} == {RELU.id, ABS.id}
    assert [i.id for i in corpus.saved(lazy, [], {"onnx/Abs"})] == [ABS.id]


@pytest.mark.parametrize("name", backends.names())
def test_every_entry_of_a_backend_is_read(name: str) -> None:
    for version in RELEASES:
        info, ledger = BackendInfo(name, version), load_ledger(backends=[])
        ledger.read_for(info)
        read = [e.id for e in ledger.entries]
        needed = [e.id for e in full().entries if e.there(info) and any(fnmatchcase(info.name, b) for b in e.backends)]
        assert [i for i in read if i in set(needed)] == needed, "in the order of the whole list"


@pytest.mark.parametrize(
    ("info", "folders"),
    [
        (BackendInfo("onnxruntime", "1.32.0"), {"onnxruntime"}),
        (BackendInfo("onnxruntime-all", "1.23.2"), {"onnxruntime", "onnxruntime-old"}),
        (BackendInfo("litert-ref", "2.3.0"), {"litert"}),
        (BackendInfo("litert-ref", "tflite-runtime 2.14.0"), {"litert", "litert-old"}),
        (BackendInfo("openvino", "2026.4.1"), {"openvino"}),
    ],
)
def test_a_run_does_not_read_other_runtimes_and_old_releases(info: BackendInfo, folders: set[str]) -> None:
    ledger = load_ledger(backends=[])
    ledger.read_for(info)
    assert {e.folder for e in ledger.entries if e.kind_of == "known"} == folders
