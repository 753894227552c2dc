"""The processor that a backend runs on: what it offers, and another one, emulated."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import cli
from harness.workers.spec import BackendError, Place
from harness.workers.worker import processor
from suites.meta.runtimes import running

EMULATOR = f"qemu-{platform.machine()}"
emulated = pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which(EMULATOR) is None, reason=f"needs {EMULATOR} (package qemu-user)"
)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/cpuinfo is Linux's")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="of an emulated Arm it tells of the machine around it")
def test_cpuid_agrees_with_the_system() -> None:
    words = processor.words()
    assert words
    assert words[0] in processor.ARCHITECTURES
    assert set(words[1:]) == processor._told() & set(processor.WORDS)


def test_features_come_from_the_system_if_code_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> set[str]:
        raise PermissionError("no memory that is written and executed")

    before = processor.words()
    monkeypatch.setattr(processor, "_cpuid", refused)
    assert processor.words() == (before if sys.platform == "linux" else [])


class _Arm:
    """What of a system's C library an Arm machine asks, as one with half-precision arithmetic answers it."""

    class getauxval:
        argtypes = restype = None

        def __new__(cls, entry: int) -> int:
            return {16: 1 << 1 | 1 << 10 | 1 << 20, 26: 1 << 13}[entry]

    @staticmethod
    def sysctlbyname(key: bytes, value: Any, size: Any, new: None, length: int) -> int:
        have = {
            b"hw.optional.AdvSIMD": 1,
            b"hw.optional.arm.FEAT_FP16": 1,
            b"hw.optional.arm.FEAT_DotProd": 1,
            b"hw.optional.arm.FEAT_I8MM": 1,
            b"hw.optional.arm.FEAT_BF16": 0,
        }
        if key not in have:
            return -1
        assert size._obj.value == 4
        value._obj.value = have[key]
        return 0


@pytest.mark.parametrize("system", ["Linux", "Darwin"])
def test_arm_features_come_from_the_kernel(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64" if system == "Linux" else "arm64")
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(processor.ctypes, "CDLL", lambda name: _Arm)
    monkeypatch.setattr(processor, "_told", lambda: {"avx2", "fma"})  # of the machine around an emulator
    assert processor.words() == ["aarch64", "asimd", "asimdhp", "asimddp", "i8mm"]
    monkeypatch.setattr(processor.ctypes, "CDLL", lambda name: object())
    assert processor.words() == [], "words of another architecture say nothing"


def test_a_processor_without_its_emulator(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(BackendError, match=r"--backend-cpu Haswell: needs Linux and qemu-.* \(package qemu-user\)"):
        Place(cpu="Haswell").command()
    assert cli.main(["run", "--dialect", "onnx", "--backend", "onnx-reference", "--backend-cpu", "Haswell"]) == 2
    assert "package qemu-user" in capsys.readouterr().err


def test_a_place_is_stated_as_on_the_command_line() -> None:
    assert Place("a b/python", "Haswell").options == " --backend-python 'a b/python' --backend-cpu Haswell"
    assert Place().options == ""


@emulated
def test_a_backend_on_an_emulated_processor() -> None:
    with running("onnx-reference", Place(cpu="Haswell")) as h:
        offers = set(h.info.cpu)
    assert {"x86_64", "avx2", "fma"} <= offers
    assert "avx512f" not in offers


@emulated
def test_an_unknown_processor_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    argv = ["run", "--dialect", "onnx", "--op", "Relu", "--backend", "onnx-reference", "--backend-cpu", "Hasbeen"]
    assert cli.main([*argv, "--out", str(tmp_path)]) == 2
    assert "Hasbeen" in capsys.readouterr().err
