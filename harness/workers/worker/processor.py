"""The features of the processor by which runtimes choose their kernels.  Without one of them, a model may take another
path and give another result.

This file is stand-alone; it runs in the worker process.  Names are those of Linux's ``/proc/cpuinfo``.  Under an
emulator that file describes the host machine, so a better source comes first.  On x86 it is the instruction CPUID; on
Arm it is what the kernel gives to every program (Linux) or the system's table (macOS).
"""

from __future__ import annotations

# Runs under any Python from 3.8 on.
import ctypes
import mmap
import platform
import re
from typing import Any

# (leaf, subleaf, register a b c d) -> bit -> name.  Source: Intel SDM vol. 2A, CPUID; Linux arch/x86 cpufeatures.h
_CPUID = {
    (1, 0, 2): {9: "ssse3", 12: "fma", 19: "sse4_1", 20: "sse4_2", 28: "avx", 29: "f16c"},
    (7, 0, 1): {5: "avx2", 16: "avx512f", 17: "avx512dq", 30: "avx512bw", 31: "avx512vl"},
    (7, 0, 2): {1: "avx512vbmi", 11: "avx512_vnni"},
    (7, 0, 3): {22: "amx_bf16", 23: "avx512_fp16", 25: "amx_int8"},
    (7, 1, 0): {4: "avx_vnni", 5: "avx512_bf16"},
}
# name -> entry of the auxiliary vector, bit of it (Linux arch/arm64 hwcap.h); name in macOS's table (Apple,
# "Determining instruction set characteristics"), where it has one
_ARM = {
    "asimd": (16, 1, "AdvSIMD"),
    "asimdhp": (16, 10, "arm.FEAT_FP16"),
    "asimddp": (16, 20, "arm.FEAT_DotProd"),
    "asimdfhm": (16, 23, "arm.FEAT_FHM"),
    "sve": (16, 22, None),
    "sve2": (26, 1, None),
    "i8mm": (26, 13, "arm.FEAT_I8MM"),
    "bf16": (26, 14, "arm.FEAT_BF16"),
    "sme": (26, 23, "arm.FEAT_SME"),
}
ARCHITECTURES = ("x86_64", "aarch64")
_OF = {"x86_64": [n for bits in _CPUID.values() for n in bits.values()], "aarch64": list(_ARM)}
WORDS = (*ARCHITECTURES, *_OF["x86_64"], *_OF["aarch64"])
# push rbx; mov r8, rdx; mov eax, edi; mov ecx, esi; cpuid; four stores through r8; pop rbx; ret
_CODE = bytes.fromhex("53 4989d0 89f8 89f1 0fa2 418900 41895804 41894808 4189500c 5b c3")


def words() -> list[Any]:
    """The architecture, then what is there of WORDS; [] where it cannot be told."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine())
    if machine not in ARCHITECTURES:
        return []
    ask = {
        ("x86_64", "Linux"): _cpuid,
        ("x86_64", "Darwin"): _cpuid,
        ("aarch64", "Linux"): _handed,
        ("aarch64", "Darwin"): _listed,
    }.get((machine, platform.system()), _told)
    try:
        found = ask()
    except (OSError, ValueError, AttributeError):  # a system that lets nobody write what is executed, or lacks the call
        found = _told()
    own = [n for n in _OF[machine] if n in found]
    return [machine, *own] if own else []


def _cpuid() -> Any:
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(_CODE)
    start = ctypes.c_char.from_buffer(page)
    ask = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(ctypes.addressof(start))
    answer = (ctypes.c_uint32 * 4)()
    ask(0, 0, answer)
    highest = answer[0]
    out: set[str] = set()
    for (leaf, sub, register), bits in _CPUID.items():
        if leaf <= highest:
            ask(leaf, sub, answer)
            out.update(name for bit, name in bits.items() if answer[register] >> bit & 1)
    del ask, start
    page.close()
    return out


def _handed() -> Any:
    """Linux on Arm."""
    ask = ctypes.CDLL(None).getauxval
    ask.argtypes, ask.restype = [ctypes.c_ulong], ctypes.c_ulong
    return {name for name, (entry, bit, _) in _ARM.items() if ask(entry) >> bit & 1}


def _listed() -> Any:
    """macOS on Arm."""
    ask = ctypes.CDLL(None).sysctlbyname
    out = set()
    for name, (_, _, key) in _ARM.items():
        value, size = ctypes.c_int(), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
        found = key and ask(b"hw.optional." + key.encode(), ctypes.byref(value), ctypes.byref(size), None, 0) == 0
        if found and value.value:
            out.add(name)
    return out


def _told() -> set[Any]:
    """What the system tells: Linux of the first processor."""
    try:
        with open("/proc/cpuinfo") as f:
            line = re.search(r"^(?:flags|Features)\s*:(.*)$", f.read(), re.M)
    except OSError:
        return set()
    return set(line[1].split()) if line else set()
