"""The command line, as a user meets it: real processes, a toy dialect, one bug per backend."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reports
from harness import cli
from harness.cases.case import draw_case
from harness.cases.selection import matches
from harness.core.outcome import Verdict
from suites.meta import golden
from suites.meta.toy import toy

ROOT = Path(__file__).resolve().parents[2]
TOY = "suites.meta.toy_backends"
VERBS = ("list", "run", "campaign", "replay", "minimize", "report", "diff", "merge")


@pytest.fixture(scope="session")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the toy dialect is installed."""
    site = tmp_path_factory.mktemp("site")
    info = site / "toy_dialect-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-dialect\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[opconform.dialects]\ntoy = suites.meta.toy:toy\n")
    path = os.pathsep.join([str(ROOT), str(site)])
    return {**os.environ, "PYTHONPATH": path, "COLUMNS": "100", "PYTHONDONTWRITEBYTECODE": "1"}


class Cli:
    """Runs ``opconform`` in a folder of its own; nothing that it starts outlives the test."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder, self.env = folder, env
        self.started: list[subprocess.Popen[str]] = []

    def command(self, *args: Any) -> list[str]:
        return [sys.executable, "-m", "harness.cli", *map(str, args)]

    def __call__(self, *args: Any) -> subprocess.CompletedProcess[str]:
        p = self.start(*args)
        try:
            out, err = p.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            self.end()
            raise
        return subprocess.CompletedProcess(p.args, p.returncode, out, err)

    def run(self, backend: str, *args: Any) -> subprocess.CompletedProcess[str]:
        """``run`` over the toy dialect on one backend."""
        backend = backend if ":" in backend else f"{TOY}:{backend}"
        return self("run", "--dialect", "toy", "--backend", backend, "--minimize", "5", *args)

    def start(self, *args: Any) -> subprocess.Popen[str]:
        """Start a verb in a process group of its own."""
        p = subprocess.Popen(
            self.command(*args),
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a CI job in the background ignores it
        )
        self.started.append(p)
        return p

    def end(self) -> None:
        """Kill what still runs, with all that it started."""
        for p in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
            p.wait()


@pytest.fixture
def opconform(tmp_path: Path, env: dict[str, str]) -> Iterator[Cli]:
    c = Cli(tmp_path, env)
    yield c
    c.end()


def one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """Exit code 2 and a single line that says why."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith("opconform"), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Traceback" not in done.stderr
    for w in words:
        assert w in done.stderr, done.stderr


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def cases_judged(path: Path) -> Counter[tuple[str, str]]:
    """Outcomes per op version and verdict, from the batches themselves."""
    out: Counter[tuple[str, str]] = Counter()
    for r in records(path):
        if r["t"] == "batch":
            for _, _, verdict, n in r["tally"]:
                out[r["key"], verdict] += n
    return out


def counted(outcomes: Counter[tuple[str, str]]) -> int:
    """Of some outcomes those that are judged."""
    return sum(n for (_, verdict), n in outcomes.items() if Verdict(verdict).judged)


def wait_for(test: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


# ------------------------------------------------------------------------------------------------------------- help


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as e:
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert e.value.code == 0
    assert all(f"\n    {v} " in text for v in VERBS)
    assert "exit codes" in text
    assert "examples:" in text


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_explained(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as e:
        cli.main([verb, "--help"])
    assert e.value.code == 0
    verbs = next(a for a in cli.parser()._actions if a.choices)
    options = verbs.choices[verb]._actions
    assert all(a.help for a in options), [a.dest for a in options if not a.help]
    assert len(capsys.readouterr().out.splitlines()) > 5


# --------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["frob"], ["invalid choice: 'frob'"]),
        ([], ["required", "VERB"]),
        (["run", "--dialect", "tory"], ["unknown dialect 'tory'", "did you mean toy?"]),
        (["run", "--dialect", "toy", "--op", "Addd"], ["no op matches 'Addd'", "did you mean Add?"]),
        (["run", "--dialect", "toy", "--family", "tooy"], ["no op family 'tooy'", "did you mean toy?"]),
        (["run", "--dialect", "toy", "--backend", "onxruntime"], ["unknown backend 'onxruntime'", "module:Class"]),
        (["run", "--dialect", "toy", "--backend", "nowhere:Class"], ["nowhere"]),
        (["run", "--dialect", "toy", "--backend", "suites.meta.toy_backends:Nobody"], ["Nobody"]),
        (["run", "--dialect", "toy", "--backend", "suites.meta.slow_backends:NoVersion"], ["not licensed"]),
        (["run", "--dialect", "toy", "--backend", f"{TOY}:Right", "--backend-python", "/no/python"], ["/no/python"]),
        (["run", "--cases", "none"], ["--cases", "none"]),
        (["run", "--cases", "0"], ["expected a positive number"]),
        (["run", "--cases", "x"], ["argument --cases: expected a positive number, got x"]),
        (["run", "--seed", "1.5"], ["argument --seed: expected a whole number, got '1.5'"]),
        (["run", "--seconds", "soon"], ["argument --seconds: expected seconds, got soon"]),
        (["run", "--opset", ""], ["unknown opset ''"]),
        (["run", "--dialect", "toy", "--baseline", "nothing.jsonl"], ["nothing.jsonl: no such record file"]),
        (
            ["campaign", "--dialect", "toy", "--backend", f"{TOY}:Right", "--seconds", "1", "--out", "/dev/null"],
            ["--out: expected a folder, /dev/null is a file"],
        ),
        (["merge", "/dev/zero", "--out", "x"], ["/dev/zero: expected a record file, got a device"]),
        (["run", "--shard", "5/4"], ["1 <= I <= N"]),
        (["run", "--shard", "half"], ["expected I/N"]),
        (["list", "planets"], ["invalid choice: 'planets'"]),
        (["replay", "toy/Add/1"], ["expected a file or dialect/op/version@opset#seed.index"]),
        (["replay", "toy/Add/7@1#0.0"], ["no op version 'toy/Add/7'"]),
        (["replay", "toy/Add/1@9#0.0"], ["no opset '9'"]),
        (["replay", "nothing.json"], ["nothing.json"]),
        (["minimize", "toy/Add/1@1#0.0"], ["--backend"]),
        (["report", "nothing.jsonl"], ["no such record file"]),
        (["report"], ["RECORDS"]),
        (["diff", "nothing.jsonl", "nothing.jsonl"], ["no such record file"]),
        (["merge", "nothing.jsonl", "--out", "x"], ["no such record file"]),
    ],
)
def test_bad_requests_are_reported_in_one_line(opconform: Cli, args: list[str], words: list[str]) -> None:
    one_line(opconform(*args), *words)
    assert not (opconform.folder / ".opconform").exists() or not list(opconform.folder.rglob("report.html"))


def test_unknown_opset(opconform: Cli) -> None:
    one_line(opconform("run", "--opset", "ios99"), "unknown opset 'ios99'", "ios17")


def test_opset_of_another_dialect(opconform: Cli) -> None:
    one_line(opconform("run", "--opset", "ios17", "--dialect", "toy"), "is of dialect mil, not toy")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"format":0,"op":"Add"}', ["expected format 1 or 2, got 0"]),
        ("{", ["not a case file"]),
        ("[]", ["expected a JSON object"]),
        ('{"format":1,"dialect":"toy","op":"Add","version":1,"opset":1,"attrs":{}}', ["expected also args"]),
        ('{"format":1,"dialect":"toy","op":"Nope","version":1,"opset":1,"attrs":{},"args":{}}', ["list ops --dialect"]),
        ('{"format":1,"dialect":"toy","op":"Add","version":1,"opset":9,"attrs":{},"args":{}}', ["not at 9"]),
        ('{"format":1,"dialect":"gone","op":"Add","version":1,"opset":1,"attrs":{},"args":{}}', ["unknown dialect"]),
    ],
)
def test_case_files_that_do_not_fit(opconform: Cli, text: str, words: list[str]) -> None:
    (opconform.folder / "case.json").write_text(text)
    one_line(opconform("replay", "case.json"), *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("hello\n", [":1: not a record"]),
        ('{"t":"run","format":0}\n', ["older"]),
        ('{"t":"run","format":9}\n', ["newer"]),
        ('{"t":"run","format":1}\n{"t":"batch"\n{"t":"end"}\n', [":2: not a record"]),
    ],
)
@pytest.mark.parametrize("verb", ["report", "diff", "merge"])
def test_record_files_that_do_not_fit(opconform: Cli, verb: str, text: str, words: list[str]) -> None:
    bad = opconform.folder / "bad.jsonl"
    bad.write_text(text)
    args = {"report": [bad], "diff": [bad, bad], "merge": [bad, "--out", "x.jsonl"]}[verb]
    one_line(opconform(verb, *args), "bad.jsonl", *words)
    assert not (opconform.folder / "x.jsonl").exists()


def test_truncated_records_are_reported_with_a_note(opconform: Cli) -> None:
    path = golden.write(opconform.folder / "r.jsonl", golden.records(seed=2, keep=0.3))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    done = opconform("report", path, "--out", "out")
    assert done.returncode == 1
    assert "cut short" in done.stderr
    assert (opconform.folder / "out/report.html").exists()


# --------------------------------------------------------------------------------------------------------- good runs


def test_a_clean_run(opconform: Cli) -> None:
    done = opconform.run("Right", "--cases", "40", "--out", "out")
    assert done.returncode == 0, done.stdout + done.stderr
    out = opconform.folder / "out"
    assert {p.name for p in out.iterdir()} >= {"records.jsonl", "report.html", "report.json", "summary.md", "junit.xml"}
    judged = cases_judged(out / "records.jsonl")
    assert sum(judged.values()) == 40 * 5
    assert not any(v == "mismatch" for _, v in judged)
    assert f"0 unexplained of {counted(judged)} judged outcomes" in done.stdout
    assert str(out / "report.html") in done.stdout
    assert re.search(r"^toy +right +1\.0 +\d+", done.stdout, re.M)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory, env: dict[str, str]) -> tuple[Cli, str]:
    """A run on a backend with one bug, and what it printed."""
    c = Cli(tmp_path_factory.mktemp("failed"), env)
    done = c.run("SwappedAxis", "--cases", "60", "--out", "out")
    assert done.returncode == 1, done.stdout + done.stderr
    return c, done.stdout


def test_a_failing_run_prints_failures_and_replay_lines(failed: tuple[Cli, str]) -> None:
    c, text = failed
    assert "mismatch" in text
    assert "largest error" in text
    assert "expected" in text
    assert " - x " not in text
    replay = re.search(r"^  (opconform replay (\S+) --backend \S+)$", text, re.M)
    assert replay
    folder = (c.folder / replay[2]).parent
    assert {"instance.json", "repro.py"} <= {p.name for p in folder.iterdir()}
    done = c(*shlex.split(replay[1])[1:])
    assert done.returncode == 1
    assert "mismatch" in done.stdout


def test_replay_on_a_right_backend_agrees(failed: tuple[Cli, str]) -> None:
    c, _ = failed
    case = next((c.folder / "out/failures").rglob("instance.json"))
    done = c("replay", case, "--backend", f"{TOY}:Right")
    assert done.returncode == 0
    assert "agree" in done.stdout


def test_outputs_beyond_those_requested_are_reported(opconform: Cli) -> None:
    done = opconform.run("suites.meta.contract_backends:Generous", "--cases", "8", "--out", "out")
    told = "note: generous: run returned ['inside'] beside"
    assert done.returncode == 0
    assert told in done.stderr
    again = opconform("report", "out", "--out", "again")
    assert told in again.stderr
    for page in ("out/report.json", "out/summary.md", "again/report.json", "again/summary.md"):
        assert "beside the outputs that were asked for" in (opconform.folder / page).read_text(), page


def test_an_unknown_place_is_reported_with_the_existing_ones(opconform: Cli) -> None:
    (opconform.folder / "file").touch()
    for args in (["run"], ["campaign"], ["minimize", "x", "--backend", "x"], ["report", "x"], ["export", "x"]):
        done = opconform(*args, "--out", "file/inside")
        assert done.returncode == 2, done.stderr
        assert "--out: expected a folder, file is a file" in done.stderr, done.stderr


def test_the_reason_of_an_unknown_verdict_is_printed(opconform: Cli) -> None:
    done = opconform.run("suites.meta.contract_backends:WrongContainer", "--cases", "8", "--out", "out")
    assert done.returncode == 1, done.stderr
    assert "without verdict" in done.stdout, done.stderr
    assert "wrong-container: run: run returned ndarray, expected a dict" in done.stdout


@pytest.mark.skipif(platform.machine() != "x86_64" or shutil.which("qemu-x86_64") is None, reason="needs qemu-x86_64")
def test_what_an_emulated_processor_shows_is_replayed_on_it(opconform: Cli) -> None:
    done = opconform.run("OffByOne", "--backend-cpu", "Haswell", "--cases", "8", "--out", "out")
    assert done.returncode == 1, done.stderr
    line = next(x.strip() for x in done.stdout.splitlines() if x.strip().startswith("opconform replay"))
    assert line.endswith(" --backend-cpu Haswell")
    head = json.loads((opconform.folder / "out/records.jsonl").read_text().splitlines()[0])
    assert head["cpu"].startswith("x86_64 ")
    assert head["cpu"].endswith(", Haswell emulated")
    script = next((opconform.folder / "out/failures").rglob("repro.py")).read_text()
    assert f"\nSEEN_ON = {head['cpu']!a}\n" in script
    again = opconform(*line.split()[1:])
    assert again.returncode == 1
    assert "mismatch" in again.stdout


def test_minimize_gives_a_smaller_instance(failed: tuple[Cli, str]) -> None:
    c, _ = failed
    case = next(r for r in records(c.folder / "out/records.jsonl") if r["t"] == "case" and r["verdict"] == "mismatch")
    (c.folder / "big.json").write_text(json.dumps(case["instance"]))
    done = c("minimize", "big.json", "--backend", f"{TOY}:SwappedAxis", "--seconds", "10", "--out", "small")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "mismatch" in done.stdout, done.stdout + done.stderr
    small = json.loads(next((c.folder / "small").rglob("instance.json")).read_text())

    def size(inst: dict[str, Any]) -> int:
        total = 0
        for a in inst["args"].values():
            n = 1
            for d in a["shape"]:
                n *= d
            total += n
        return total

    assert size(small) <= size(case["instance"])
    done = c("minimize", "big.json", "--backend", f"{TOY}:Right")
    assert done.returncode == 0
    assert "does not fail" in done.stdout


def test_a_second_run_compares_with_the_first(opconform: Cli) -> None:
    """A finished run is set aside, and what is new against it is told."""
    assert opconform.run("Right", "--cases", "20", "--out", "out").returncode == 0
    done = opconform.run("SwappedAxis", "--cases", "60", "--out", "out")
    assert done.returncode == 1
    data = json.loads((opconform.folder / "out/report.json").read_text())
    assert data["diff"] is not None
    assert (opconform.folder / "out/previous/records.jsonl").exists()


def test_foreign_files_in_the_folder_stay(opconform: Cli) -> None:
    out = opconform.folder / "out"
    out.mkdir()
    (out / "precious.txt").write_text("mine")
    for _ in range(2):
        assert opconform.run("Right", "--cases", "8", "--out", "out").returncode == 0
    assert (out / "precious.txt").read_text() == "mine"


def test_shards_make_the_whole(opconform: Cli) -> None:
    for i in (1, 2):
        assert opconform.run("Right", "--cases", "16", "--shard", f"{i}/2", "--out", f"s{i}").returncode == 0
    assert opconform.run("Right", "--cases", "16", "--out", "whole").returncode == 0
    done = opconform("merge", "s1", "s2", "--out", "all.jsonl")
    assert done.returncode == 0
    f = opconform.folder
    assert cases_judged(f / "all.jsonl") == cases_judged(f / "whole/records.jsonl")
    done = opconform("report", "s1/records.jsonl", "s2/records.jsonl", "--out", "merged")
    assert done.returncode == 0
    assert "0 unexplained of 80" in done.stdout
    done = opconform("diff", "whole/records.jsonl", "all.jsonl")
    assert done.returncode == 0
    assert "new: 0" in done.stdout


def test_diff_shows_what_is_new(opconform: Cli, failed: tuple[Cli, str]) -> None:
    bad = failed[0].folder / "out/records.jsonl"
    good = opconform.folder / "good.jsonl"
    rows = records(bad)
    for r in rows:
        if r["t"] == "batch":
            r["tally"] = [[b, d, "agree" if v == "mismatch" else v, n] for b, d, v, n in r["tally"]]
    golden.write(good, [r for r in rows if r["t"] != "case"])
    done = opconform("diff", good, bad)
    assert done.returncode == 1
    assert re.search(r"^new: [1-9]", done.stdout, re.M)
    assert "toy/Flip/1" in done.stdout
    done = opconform("diff", bad, good, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["gone"]


@pytest.mark.parametrize("pattern", ["Add", "toy/Add", "toy/Add/1", "A*", "toy/A*", "*/Add/*"])
def test_ops_are_chosen_by_name_dialect_and_version(pattern: str) -> None:
    assert [k for k in toy.versions if matches(k, pattern)] == ["toy/Add/1"]


def test_another_case_of_a_name_is_the_nearest(opconform: Cli) -> None:
    one_line(opconform("list", "ops", "--dialect", "onnx", "--op", "relu"), "did you mean Relu?")


def test_lists(opconform: Cli) -> None:
    assert opconform("list", "ops", "--dialect", "toy").stdout.split()[0] == "toy/Add/1"
    families = opconform("list", "families", "--dialect", "toy").stdout.split()
    assert families[:2] == ["toy", "5"]
    done = opconform("list", "dialects", "--dialect", "toy")
    assert done.returncode == 0
    assert "5 ops" in done.stdout
    (line,) = opconform("list", "meanings", "--dialect", "toy", "--op", "Max").stdout.splitlines()
    assert re.fullmatch(
        r"toy/Max/1 +toy Max +EXACT: every element equals the expected one +rules: required-input:x .*\btied-type\b.*",
        line,
    ), line


def test_known_differences_are_listed_by_dialect_and_pattern(opconform: Cli) -> None:
    found = opconform("list", "known", "--dialect", "onnx", "--op", "Scatter*").stdout.splitlines()
    assert any(x.startswith("onnx-scatter-nan ") for x in found)
    assert not any("mil/" in x and "onnx/" not in x for x in found)
    (entry,) = (x for x in found if x.startswith("onnx-scatter-nan "))
    assert "reduction max or min with a NaN" in entry
    assert "ONNX ScatterElements-18" in entry
    assert opconform("list", "known", "--dialect", "toy").stdout == ""
    assert "onnxruntime" not in opconform("list", "backends", "--dialect", "tflite").stdout


# ---------------------------------------------------------------------------------------- interruption and resumption


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_ends_a_session_is_as_good_as_ctrl_c(opconform: Cli, number: signal.Signals) -> None:
    p = opconform.start("run", "--dialect", "toy", "--backend", "suites.meta.slow_backends:Slow", "--out", "out")
    path = opconform.folder / "out/records.jsonl"
    wait_for(lambda: path.exists() and path.read_text().count('"t":"batch"') >= 1)
    os.killpg(p.pid, number)
    out, err = p.communicate(timeout=60)
    assert p.returncode == 2, out + err
    assert "the same command resumes here" in err, out + err
    assert (opconform.folder / "out/report.html").exists()
    assert records(path)[-1]["interrupted"] is True


def test_ctrl_c_keeps_everything_and_a_rerun_resumes(opconform: Cli) -> None:
    args = ["run", "--dialect", "toy", "--backend", "suites.meta.slow_backends:Slow", "--cases", "64", "--out", "out"]
    path = opconform.folder / "out/records.jsonl"
    p = opconform.start(*args)
    wait_for(lambda: path.exists() and path.read_text().count('"t":"batch"') >= 1)
    os.killpg(p.pid, signal.SIGINT)  # as the terminal does: the whole group gets it
    out, err = p.communicate(timeout=60)
    assert p.returncode == 2, out + err
    assert "Traceback" not in err
    assert "the same command resumes here" in err
    assert "report:" in out
    assert (opconform.folder / "out/report.html").exists()
    first = records(path)
    assert first[-1]["t"] == "end"
    assert first[-1]["interrupted"] is True
    done_before = sum(r["count"] for r in first if r["t"] == "batch")
    assert 0 < done_before < 64 * 5
    again = opconform(*args)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "resuming" in again.stderr, again.stdout + again.stderr
    batches = [(r["key"], r["opset"], r["first"]) for r in records(path) if r["t"] == "batch"]
    assert len(batches) == len(set(batches))  # nothing is judged twice
    assert sum(cases_judged(path).values()) == 64 * 5
    assert f"0 unexplained of {counted(cases_judged(path))} judged" in again.stdout
    whole = opconform(*args[:-1], "whole")
    assert whole.returncode == 0
    assert cases_judged(path) == cases_judged(opconform.folder / "whole/records.jsonl")


def test_a_killed_run_resumes(opconform: Cli) -> None:
    args = ["run", "--dialect", "toy", "--backend", "suites.meta.slow_backends:Slow", "--cases", "64", "--out", "out"]
    path = opconform.folder / "out/records.jsonl"
    p = opconform.start(*args)
    wait_for(lambda: path.exists() and path.read_text().count('"t":"batch"') >= 1)
    os.killpg(p.pid, signal.SIGKILL)
    p.communicate()
    with open(path, "ab") as f:
        f.write(b'{"t":"batch","key":"toy/A')  # half a line, as a write that was cut leaves it
    again = opconform(*args)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "resuming" in again.stderr, again.stdout + again.stderr
    assert sum(cases_judged(path).values()) == 64 * 5


def test_a_new_backend_runs_the_units_that_others_have_done(opconform: Cli) -> None:
    """A run of all that is here goes on after an upgrade: the new release is asked for everything."""
    path = opconform.folder / "out/records.jsonl"
    (opconform.folder / "mine.py").write_text(
        "from suites.meta.toy_backends import Right\n\n\nclass Mine(Right):\n    pass\n"
    )
    args = ["mine:Mine", "--cases", "16", "--out", "out"]
    assert opconform.run(*args).returncode == 0
    golden.write(path, [r for r in records(path) if r["t"] != "end"])
    for release, more in (("1.0", 0), ("2.0", 16 * 5)):
        (opconform.folder / "mine.py").write_text(
            "from suites.meta.toy_backends import Right\n\n\nclass Mine(Right):\n"
            f"    def version(self):\n        return {release!r}\n"
        )
        done = opconform.run(*args)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "resuming" in done.stderr, done.stdout + done.stderr
        assert sum(cases_judged(path).values()) == 16 * 5 + more
        assert f"0 unexplained of {counted(cases_judged(path))} judged" in done.stdout
        golden.write(path, [r for r in records(path) if r["t"] != "end"])


def test_a_run_without_backends_does_not_pass(opconform: Cli) -> None:
    one_line(opconform.run("suites.meta.slow_backends:WrongFormat", "--out", "out"), "takes models of toy")
    assert not (opconform.folder / "out/report.html").exists()


def test_two_runs_do_not_share_a_folder(opconform: Cli) -> None:
    args = ["run", "--dialect", "toy", "--backend", "suites.meta.slow_backends:Crawls", "--cases", "64", "--out", "out"]
    path = opconform.folder / "out/records.jsonl"
    first = opconform.start(*args)
    wait_for(lambda: path.exists() and path.stat().st_size > 0)
    for other in ([], ["--fresh"], ["--seed", "3"]):
        one_line(opconform(*args, *other), "another run is writing")
    assert first.poll() is None
    assert not (opconform.folder / "out/previous").exists()


def test_a_folder_with_blanks_is_named_so_that_the_shell_finds_it(opconform: Cli) -> None:
    done = opconform.run("SwappedAxis", "--cases", "32", "--out", "my run/ü")
    line = re.search(r"^  opconform (replay .*)$", done.stdout, re.M)
    assert done.returncode == 1
    assert line
    again = opconform(*shlex.split(line[1]))
    assert again.returncode == 1
    assert "mismatch" in again.stdout
    assert re.search(r"^  opconform (replay .*)$", again.stdout, re.M)[1] == line[1]


def test_every_replay_line_shows_the_failure(opconform: Cli) -> None:
    """Also that of a valid instance which stands where another run draws an invalid one."""
    assert opconform.run("SwappedAxis", "--cases", "64", "--no-invalid", "--out", "out").returncode == 1
    cases = [r for r in records(opconform.folder / "out/records.jsonl") if r["t"] == "case"]
    assert len(cases) > 5
    for r in cases:
        words = shlex.split(r["replay"])[2]
        found = json.loads((opconform.folder / words).read_text()) if words.endswith(".json") else None
        assert found in (None, r["minimal"], r["instance"])
        if found is None:
            v = toy.versions[r["key"]]
            seed, index = words.rpartition("#")[2].split(".")
            assert draw_case(v, r["opset"], int(seed), int(index)).inst.to_json() == r["instance"]


def test_a_path_that_is_no_text(opconform: Cli) -> None:
    strict = Cli(opconform.folder, {**opconform.env, "PYTHONIOENCODING": "utf-8:strict"})
    done = strict.run("SwappedAxis", "--cases", "16", "--out", os.fsdecode(b"odd\xff"))
    assert done.returncode == 1, done.stderr
    assert not done.stderr, done.stderr
    assert (opconform.folder / os.fsdecode(b"odd\xff") / "report.html").stat().st_size


def test_what_was_set_aside_is_another_run(opconform: Cli) -> None:
    assert opconform.run("SwappedAxis", "--cases", "16", "--out", "out").returncode == 1
    assert opconform.run("Right", "--cases", "16", "--out", "out").returncode == 0
    assert (opconform.folder / "out/previous/records.jsonl").exists()
    told = cases_judged(opconform.folder / "out/records.jsonl")
    assert sum(told.values()) == 80
    assert f"0 unexplained of {counted(told)} judged" in opconform("report", "out").stdout


def test_records_that_break_off_are_no_pass(opconform: Cli) -> None:
    assert opconform.run("Right", "--cases", "16", "--out", "out").returncode == 0
    path = golden.write(opconform.folder / "r.jsonl", records(opconform.folder / "out/records.jsonl")[:-1])
    done = opconform("report", path, "--out", "late")
    assert done.returncode == 2
    assert "did not come to its end" in done.stderr
    assert 'errors="1"' in (opconform.folder / "late/junit.xml").read_text()
    assert "r.jsonl: that run did not come to its end" in opconform("diff", path, path).stderr


def test_merge_replaces_files_only(opconform: Cli) -> None:
    assert opconform.run("Right", "--cases", "16", "--out", "out").returncode == 0
    os.mkfifo(opconform.folder / "pipe")
    one_line(opconform("merge", "out", "--out", "pipe"), "expected the name of a file")
    assert (opconform.folder / "pipe").is_fifo()


def test_fresh_does_not_resume(opconform: Cli) -> None:
    path = opconform.folder / "out/records.jsonl"
    assert opconform.run("Right", "--cases", "16", "--out", "out").returncode == 0
    head = records(path)[0]
    golden.write(path, [head])  # as if stopped right after the start
    done = opconform.run("Right", "--cases", "16", "--out", "out", "--fresh")
    assert done.returncode == 0
    assert "resuming" not in done.stderr
    assert records(opconform.folder / "out/previous/records.jsonl") == [head]


@pytest.mark.parametrize(
    "other",
    [["Right", "--seed", "5"], ["Keeps"], ["Right", "--no-invalid"], ["Right", "--backend-python", "python"]],
    ids=" ".join,
)
def test_another_plan_does_not_resume(opconform: Cli, other: list[str]) -> None:
    path = opconform.folder / "out/records.jsonl"
    assert opconform.run("Right", "--cases", "16", "--out", "out").returncode == 0
    golden.write(path, records(path)[:1])
    python = opconform.folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    other = [str(opconform.folder / x) if x == "python" else x for x in other]
    done = opconform.run(*other, "--cases", "16", "--out", "out")
    assert "resuming" not in done.stderr
    assert done.returncode == 0 or (other == ["Keeps"] and done.returncode == 1), done.stderr
    assert [r["seed"] for r in records(path) if r["t"] == "run"] == [5 if "--seed" in other else 0]


def test_records_of_another_format_in_the_folder(opconform: Cli) -> None:
    out = opconform.folder / "out"
    golden.write(out / "records.jsonl", [{"t": "run", "format": 0}])
    one_line(opconform.run("Right", "--cases", "8", "--out", "out"), "format", "--fresh")
    assert opconform.run("Right", "--cases", "8", "--out", "out", "--fresh").returncode == 0


FULL_DISK = """
import os, sys
from harness.session import record_writer
left, write = 24 << 10, os.write

class Disk:  # the records' own view of the operating system: a disk with little room
    def __getattr__(self, name):
        return getattr(os, name)
    def write(self, fd, data):
        global left
        if left == 0:
            raise OSError(28, "No space left on device")
        n = write(fd, data[:left])
        left -= n
        return n

record_writer.os = Disk()
from harness import cli
sys.exit(cli.main(sys.argv[1:]))
"""


def test_a_full_disk_is_reported_and_what_was_judged_is_kept(opconform: Cli) -> None:
    args = ["run", "--dialect", "toy", "--backend", f"{TOY}:Right", "--cases", "3000", "--out", "out"]
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, *args],
        cwd=opconform.folder,
        env=opconform.env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    one_line(done, "No space left on device", "what was judged before is kept")
    assert "report:" in done.stdout
    path = opconform.folder / "out/records.jsonl"
    assert path.stat().st_size == 24 << 10
    kept = reports.summarise(path).judged
    assert kept > 0
    assert f"of {kept:,} judged outcomes" in done.stdout
    again = opconform(*args)
    assert again.returncode == 0, again.stderr
    assert "resuming" in again.stderr, again.stderr
    assert sum(cases_judged(path).values()) == 3000 * 5


def test_a_device_without_space(opconform: Cli) -> None:
    out = opconform.folder / "out"
    out.mkdir()
    (out / "records.jsonl").symlink_to("/dev/full")
    one_line(opconform.run("Right", "--cases", "8", "--out", "out"), "No space left")


def test_evidence_that_cannot_be_written_ends_with_a_report(opconform: Cli) -> None:
    out = opconform.folder / "out"
    out.mkdir()
    (out / "failures").write_text("")  # a file where the folders would go: writing there fails as on a full disk
    done = opconform.run("SwappedAxis", "--cases", "60", "--out", "out")
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert "failures: cannot write" in done.stderr
    assert "what was judged before is kept" in done.stderr
    assert (out / "report.html").exists()
    assert "judged outcomes" in done.stdout


def test_version(opconform: Cli) -> None:
    done = opconform("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"opconform \d+\.\d+\.\d+\n", done.stdout)


@pytest.mark.parametrize("option", ["--opset", "--backend-python", "--shard"])
def test_an_option_that_is_given_twice_is_refused(opconform: Cli, option: str) -> None:
    values = ["1/2", "2/2"] if option == "--shard" else ["ios17", "ios18"]
    one_line(opconform("run", option, values[0], option, values[1]), option, "expected once")


def test_a_folder_that_cannot_be_made(opconform: Cli) -> None:
    (opconform.folder / "file").write_text("")
    one_line(opconform.run("Right", "--cases", "8", "--out", "file/out"), "file")


# ---------------------------------------------------------------------------------------------------------- campaigns


def test_a_campaign_ends_when_its_time_is_up(opconform: Cli) -> None:
    args = ["campaign", "--dialect", "toy", "--backend", f"{TOY}:Right", "--jobs", "3", "--out", "c"]
    every = {f"toy/{o}/1" for o in ("Add", "Sum", "Flip", "Max", "MatMul")}
    for seconds in ("3", "6", "12", "24", "48"):  # what a loaded machine needs until every share has judged something
        done = opconform(*args, "--seconds", seconds)
        parts = sorted((opconform.folder / "c").glob("part-*/records.jsonl"))
        keys = [{r["key"] for r in records(p) if r["t"] == "batch"} for p in parts]
        if set.union(set(), *keys) == every:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(parts) == 3
    keys = [k for k in keys if k]  # a share may be empty
    assert len(keys) == 2
    assert not keys[0] & keys[1]
    assert keys[0] | keys[1] == every
    judged = sum(sum(cases_judged(p).values()) for p in parts)
    for longer in (1, 2, 4, 8, 16):
        again = opconform(*args, "--seconds", str(int(seconds) * longer))
        assert again.returncode == 0
        if sum(sum(cases_judged(p).values()) for p in parts) > judged:  # it went on
            break
    else:
        pytest.fail("the campaign did not go on")
    batches = [(r["key"], r["opset"], r["first"]) for p in parts for r in records(p) if r["t"] == "batch"]
    assert len(batches) == len(set(batches))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_ends_a_campaign_with_a_report(opconform: Cli, number: signal.Signals) -> None:
    p = opconform.start("campaign", "--dialect", "toy", "--backend", f"{TOY}:Right", "--jobs", "3", "--out", "c")
    c = opconform.folder / "c"
    wait_for(lambda: len([f for f in c.glob("part-*/records.jsonl") if '"t":"batch"' in f.read_text()]) == 2)
    os.killpg(p.pid, number)
    out, err = p.communicate(timeout=90)
    assert p.returncode == 2, out + err
    assert "Traceback" not in err, out + err
    assert "resource_tracker" not in err, out + err
    assert (c / "report.html").exists()
    assert "judged outcomes" in out
    for f in c.glob("part-*/records.jsonl"):
        assert records(f)[-1]["t"] == "end"


def test_workers_end_when_the_campaign_is_killed(opconform: Cli) -> None:
    p = opconform.start("campaign", "--dialect", "toy", "--backend", f"{TOY}:Right", "--jobs", "3", "--out", "c")
    c = opconform.folder / "c"
    wait_for(lambda: len([f for f in c.glob("part-*/records.jsonl") if '"t":"batch"' in f.read_text()]) == 2)
    p.kill()
    p.wait()

    def left() -> bool:  # is anybody of its group alive?
        try:
            os.killpg(p.pid, 0)
        except ProcessLookupError:
            return False
        return True

    wait_for(lambda: not left())
    for f in c.glob("part-*/records.jsonl"):
        assert records(f)[-1]["t"] == "end"


def test_a_campaign_with_a_wrong_name(opconform: Cli) -> None:
    one_line(opconform("campaign", "--dialect", "toy", "--backend", "nobody", "--jobs", "2"), "unknown backend")


# ------------------------------------------------------------------------------------------------------------- README


def test_the_backend_in_the_readme_works(opconform: Cli) -> None:
    """The very text of the README, run as it says."""
    pytest.importorskip("onnxruntime")
    text = (ROOT / "README.md").read_text()
    section = text[text.index("## A backend of your own") :]
    code = re.search(r"```python\n(.*?)```", section, re.S)
    line = re.search(r"```sh\nopconform (run --backend .*)\n```", section)
    assert code
    assert line
    assert sum(bool(x.strip()) for x in code[1].splitlines()) <= 12
    (opconform.folder / "my_module.py").write_text(code[1])
    # as the installed script starts: this folder is not on the path
    script = "import sys; sys.path[:] = [p for p in sys.path if p]; from harness.cli import main; sys.exit(main())"
    args = [*shlex.split(line[1]), "--cases", "24", "--out", "out", "--minimize", "0"]
    done = subprocess.run(
        [sys.executable, "-c", script, *args],
        cwd=opconform.folder,
        env=opconform.env,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts: Counter[str] = Counter()
    for (_, v), n in cases_judged(opconform.folder / "out/records.jsonl").items():
        verdicts[v] += n
    assert verdicts["agree"] > 50, verdicts
    assert set(verdicts) <= {"agree", "unsupported"}, verdicts
