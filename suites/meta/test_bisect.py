"""Bisecting releases: a folder of tiny wheels stands for the package index, so that nothing is downloaded."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from packaging.version import Version

from harness.cli import main
from harness.core.dtypes import F32
from harness.core.errors import UsageError
from harness.core.instance import Arg, Instance
from harness.ledger.entry import LedgerEntry
from harness.ledger.releases import releases as parsed
from harness.releases.bisect import find
from harness.releases.environments import NoRelease, Releases
from harness.releases.halving import Halving
from harness.releases.judging import judge_release
from harness.releases.ranges import Checked, ranges

RELEASES = ("1.0", "1.1", "1.2", "1.3", "1.4", "2.0")
WRONG = ("1.2", "1.3")
BACKEND = """
import numpy as np
import toyruntime
from opconform_worker import onnx_bytes

class Toy:
    name, formats = "toy", ("onnx",)

    def version(self):
        return toyruntime.VERSION

    def load(self, model, format):
        return list(onnx_bytes.Graph(model).made)

    def run(self, handle, inputs):
        (x,) = inputs.values()
        return {name: x if toyruntime.WRONG else np.maximum(x, 0) for name in handle}
"""


def wheel(folder: Path, name: str, version: str, files: dict[str, str], tag: str = "py3-none-any") -> None:
    """A wheel with these files."""
    info = f"{name}-{version}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = "".join(f"{n},,\n" for n in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-{version}-{tag}.whl", "w") as z:
        for n, text in {**files, f"{info}/RECORD": record}.items():
            z.writestr(n, text)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels as pip's only index: releases of a runtime, and the NumPy of this Python under its name."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for v in RELEASES:
        wheel(folder, "toyruntime", v, {"toyruntime.py": f"VERSION = {v!r}\nWRONG = {v in WRONG}\n"})
    wheel(folder, "toyruntime", "0.9", {"toyruntime.py": ""}, "cp27-cp27m-win32")
    beside = tmp_path / "beside"
    beside.mkdir()
    for package in (np, ml_dtypes):
        place = Path(package.__file__).parent
        for found in place.parent.glob(f"{place.name}*"):
            if not found.name.endswith("-info"):
                (beside / found.name).symlink_to(found)
        wheel(folder, place.name, "99", {f"{place.name}_of_the_host.pth": f"{beside}\n"})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("OPCONFORM_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The file of an instance that the wrong releases get wrong, and the backend as a module in this folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy_of_release.py").write_text(BACKEND)
    inst = Instance("onnx", "Relu", 14, 17, {}, {"X": Arg(F32, (2,), values=[-1.0, 2.0])})
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(inst.to_json()))
    return str(path)


def bisect(case: str, *more: str) -> int:
    return main(["bisect", case, "--package", "toyruntime", "--backend", "toy_of_release:Toy", *more])


def test_bisect_finds_the_first_bad_and_the_first_fixed_release(
    index: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = bisect(case)
    out = capsys.readouterr().out
    assert "last good    1.1" in out
    assert "first bad    1.2" in out
    assert "first fixed  1.4" in out
    assert code == 0, "no bad release is the newest"


def test_bisect_keeps_the_environments(index: Path, case: str) -> None:
    """The second time there is no index, and none is needed but for the list of the releases."""
    releases = Releases("toyruntime", "toyruntime", index.parent / "cache")
    python = releases.python(Version("1.2"))
    for path in index.glob("*.whl"):
        path.unlink()
    assert Releases("toyruntime", "toyruntime", index.parent / "cache").python(Version("1.2")) == python
    assert judge_release(python, ["toy_of_release:Toy"], [find(case)])[0] == {case: True}


def test_a_span_without_a_wheel_is_one_clear_line(index: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bisect(case, "--from", "0.1", "--to", "0.9") == 2
    err = capsys.readouterr().err.strip()
    assert err.count("\n") == 0
    assert "toyruntime: no wheel from 0.1 to 0.9 for Python" in err
    assert "there are 1.0 to 2.0" in err


def test_an_unknown_package_gives_one_clear_line(index: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", case, "--package", "no-such-runtime", "--backend", "toy_of_release:Toy"]) == 2
    assert "no-such-runtime: expected a package with wheels for Python" in capsys.readouterr().err


def test_a_release_that_does_not_import_is_named(index: Path, tmp_path: Path) -> None:
    wheel(index, "toyruntime", "3.0", {"toyruntime.py": "raise RuntimeError('needs a GPU')\n"})
    with pytest.raises(NoRelease, match=r"toyruntime 3\.0: does not import .*needs a GPU"):
        Releases("toyruntime", "toyruntime", tmp_path / "cache").python(Version("3.0"))


def test_a_version_that_is_none_is_refused(index: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"expected a release such as 1\.20 or 1\.20\.1, got 'latest'"):
        Releases("toyruntime", "toyruntime", tmp_path / "cache").span("latest", None)


HISTORIES = [  # what each release shows (1), does not (0), cannot tell (.); last good, first bad, last bad, first fixed
    ("00001111", (3, 4, 7, None)),
    ("11110000", (None, 0, 3, 4)),
    ("00110000", (1, 2, 3, 4)),
    ("11111111", (None, 0, 7, None)),
    ("00000000", (None, None, None, None)),
    (".." + "001111", (3, 4, 7, None)),
    ("0.1.1.00", (0, 2, 4, 6)),
    ("....1111", (None, 4, 7, None)),
]


@pytest.mark.parametrize(("shown", "expected"), HISTORIES)
def test_halving_finds_where_it_begins_and_ends(shown: str, expected: tuple[int | None, ...]) -> None:
    h = Halving(range(len(shown)), lambda i: {"1": True, "0": False, ".": None}[shown[i]])()
    assert (h.last_good, h.first_bad, h.last_bad, h.first_fixed) == expected


def test_halving_asks_few_releases() -> None:
    h = Halving(range(64), lambda i: i >= 41)()
    assert h.first_bad == 41
    assert len(h.answers) <= 10


def _checked(versions: str, shown: str) -> Checked:
    entry = LedgerEntry("toy-relu", "toy.toml", "known", ("toy",), ("onnx/Relu",), "", versions=(parsed(versions),))
    found = {Version(f"1.{i}"): {"1": True, "0": False, ".": None}[c] for i, c in enumerate(shown)}
    return Checked(entry, "toyruntime", found)


def test_ranges_are_held_against_what_shows() -> None:
    assert not _checked(">=1.2,<1.4", "0011").wrong
    wrong = _checked("<1.4", "0011.0")
    assert [str(v) for v in wrong.wrong] == ["1.0", "1.1"]
    assert wrong.line().endswith("listed for <1.4, shows not in 1.0 1.1; expected >=1.2,<1.5")


def test_an_unclear_release_contradicts_no_range() -> None:
    assert not _checked("<1.2", "1...").wrong
    assert ranges({Version("1.0"): True, Version("1.1"): None, Version("1.2"): False}) == ["<1.2"]


def test_known_ranges_refuses_a_package_of_no_backend(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["known", "--ranges", "requests"]) == 2
    assert "--package requests: expected one of ai-edge-litert coremltools onnx" in capsys.readouterr().err
