"""The processor that a backend runs on: what it offers, and another one, emulated."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

import pytest

from harness import cli
from harness.backends import processor, registry
from harness.backends.process import BackendError, Place

EMULATOR = f"qemu-{platform.machine()}"
emulated = pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which(EMULATOR) is None, reason=f"needs {EMULATOR} (package qemu-user)"
)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/cpuinfo is Linux's")
def test_the_instruction_tells_what_the_system_tells() -> None:
    words = processor.words()
    assert words and words[0] in processor.ARCHITECTURES
    assert set(words[1:]) == processor._told() & set(processor.WORDS)


def test_what_the_system_tells_serves_where_nobody_may_run_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> set[str]:
        raise PermissionError("no memory that is written and executed")

    before = processor.words()
    monkeypatch.setattr(processor, "_cpuid", refused)
    assert processor.words() == (before if sys.platform == "linux" else [])


def test_a_processor_without_its_emulator(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(BackendError, match=r"--backend-cpu Haswell: needs Linux and qemu-.* \(package qemu-user\)"):
        Place(cpu="Haswell").command()
    assert cli.main(["run", "--dialect", "onnx", "--backend", "onnx-reference", "--backend-cpu", "Haswell"]) == 2
    assert "package qemu-user" in capsys.readouterr().err


def test_a_place_is_said_as_on_the_command_line() -> None:
    assert Place("a b/python", "Haswell").options == " --backend-python 'a b/python' --backend-cpu Haswell"
    assert Place().options == ""


@emulated
def test_a_backend_on_an_emulated_processor() -> None:
    with registry.create("onnx-reference", Place(cpu="Haswell")) as h:
        if h.missing():
            pytest.skip(str(h.missing()))
        offers = set(h.hello["cpu"])
    assert {"x86_64", "avx2", "fma"} <= offers and "avx512f" not in offers


@emulated
def test_an_unknown_processor_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    argv = ["run", "--dialect", "onnx", "--op", "Relu", "--backend", "onnx-reference", "--backend-cpu", "Hasbeen"]
    assert cli.main([*argv, "--out", str(tmp_path)]) == 2
    assert "Hasbeen" in capsys.readouterr().err
