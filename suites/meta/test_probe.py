"""``opconform probe`` finds what a backend can claim, and a run takes the file."""

from __future__ import annotations

import json

import pytest

from suites.meta.test_cli import Cli, env, one_line, opconform  # noqa: F401 - fixtures

MODULE = "suites.meta.claim_backends"


def test_probed_claims_leave_nothing_unexplained(opconform: Cli) -> None:  # noqa: F811
    backend = ("--backend", f"{MODULE}:Silent")
    assert opconform("run", "--dialect", "toy", *backend, "--cases", "48", "--minimize", "0").returncode == 1
    done = opconform("probe", "--dialect", "toy", *backend, "--write", "claims.json")
    assert done.returncode == 0, done.stderr
    found = json.loads((opconform.folder / "claims.json").read_text())
    assert found["dtypes"] == ["f32"]
    assert found["unsupported_ops"] == ["toy/Flip", "toy/Sum"]
    assert found["limits"]["max_rank"] == 2
    assert found["limits"]["empty"] is False
    assert set(found["limits"]["constant"]) == {"toy/Add/1:y", "toy/MatMul/1:y", "toy/Max/1:y"}
    assert "flushes" not in found
    assert any("element types: bool 0 of" in text for text in found["measured"])
    assert "claims: claims.json" in done.stdout
    done = opconform("run", "--dialect", "toy", *backend, "--claims", "claims.json", "--cases", "48", "--out", "out")
    assert done.returncode == 0, done.stdout
    assert "0 unexplained" in done.stdout
    one_line(opconform("probe", "--dialect", "toy", *backend, "--write", "claims.json"), "--write", "new file")


def test_flushed_subnormals_are_found(opconform: Cli) -> None:  # noqa: F811
    for name, flushes in (("Flushing", ["f32"]), ("Narrow", None)):
        file = f"{name}.json"
        done = opconform("probe", "--dialect", "toy", "--backend", f"{MODULE}:{name}", "--write", file)
        assert done.returncode == 0, done.stderr
        assert json.loads((opconform.folder / file).read_text()).get("flushes") == flushes


def test_the_type_of_sums_is_found(opconform: Cli) -> None:  # noqa: F811
    for name, acc in (("NarrowSums", {"f32": "f16"}), ("Silent", None)):
        file = f"{name}.json"
        done = opconform("probe", "--dialect", "toy", "--backend", f"{MODULE}:{name}", "--write", file)
        assert done.returncode == 0, done.stderr
        found = json.loads((opconform.folder / file).read_text())
        assert found.get("acc") == acc
        assert any(line.startswith("sums of f32") for line in found["measured"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", ("claims.json: expected JSON",)),
        ("[1]", ("expected an object with fields among opsets",)),
        ('{"rank": 4}', ("expected an object with fields among opsets", "rank")),
        ('{"limits": {"rank": 4}}', ("limits: expected fields among max_rank",)),
    ],
)
def test_a_file_that_states_no_claims(opconform: Cli, text: str, words: tuple[str, ...]) -> None:  # noqa: F811
    (opconform.folder / "claims.json").write_text(text)
    one_line(opconform.run("Right", "--claims", "claims.json"), *words)


def test_claims_of_one_of_two_backends(opconform: Cli) -> None:  # noqa: F811
    (opconform.folder / "claims.json").write_text('{"dtypes": ["i32"]}')
    two = ("--backend", f"{MODULE}:Narrow", "--cases", "16", "--op", "Max")
    one_line(opconform.run("Right", *two, "--claims", "claims.json"), "--claims", "NAME=FILE")
    done = opconform.run("Right", *two, "--claims", "*:Right=claims.json", "--out", "out")
    assert done.returncode == 0, done.stdout
    seen = set()
    for line in (opconform.folder / "out/records.jsonl").read_text().splitlines():
        r = json.loads(line)
        seen |= {(b, d) for b, d, _, _ in r["tally"]} if r["t"] == "batch" else set()
    assert {d for b, d in seen if b == "right"} <= {"i32", "None"}
    assert ("narrow", "f32") in seen
