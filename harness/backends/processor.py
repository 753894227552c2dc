"""What the processor offers that runtimes choose their kernels by: the same model may take another path, and come out
differently, where an instruction is missing.

Stand-alone like the worker, in whose process it asks.  Names as in Linux's ``/proc/cpuinfo``; on x86 the instruction
CPUID itself is asked, since under an emulator that file tells of the machine around it.
"""

# mypy: ignore-errors
# Runs under any Python from 3.8 on.

import ctypes
import mmap
import platform
import re

# (leaf, subleaf, register a b c d) -> bit -> name.  Source: Intel SDM vol. 2A, CPUID; Linux arch/x86 cpufeatures.h
_CPUID = {
    (1, 0, 2): {9: "ssse3", 12: "fma", 19: "sse4_1", 20: "sse4_2", 28: "avx", 29: "f16c"},
    (7, 0, 1): {5: "avx2", 16: "avx512f", 17: "avx512dq", 30: "avx512bw", 31: "avx512vl"},
    (7, 0, 2): {1: "avx512vbmi", 11: "avx512_vnni"},
    (7, 0, 3): {22: "amx_bf16", 23: "avx512_fp16", 25: "amx_int8"},
    (7, 1, 0): {4: "avx_vnni", 5: "avx512_bf16"},
}
_ARM = ("asimd", "asimdhp", "asimddp", "asimdfhm", "i8mm", "bf16", "sve", "sve2", "sme")
ARCHITECTURES = ("x86_64", "aarch64")
WORDS = (*ARCHITECTURES, *(n for bits in _CPUID.values() for n in bits.values()), *_ARM)
# push rbx; mov r8, rdx; mov eax, edi; mov ecx, esi; cpuid; four stores through r8; pop rbx; ret
_CODE = bytes.fromhex("53 4989d0 89f8 89f1 0fa2 418900 41895804 41894808 4189500c 5b c3")


def words():
    """The architecture, then what is there of WORDS; [] where it cannot be told."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine())
    if machine not in ARCHITECTURES:
        return []
    try:
        found = _cpuid() if machine == "x86_64" and platform.system() in ("Linux", "Darwin") else _told()
    except (OSError, ValueError):  # a system that lets nobody write what is executed
        found = _told()
    return [machine, *(n for n in WORDS if n in found)] if found else []


def _cpuid():
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(_CODE)
    start = ctypes.c_char.from_buffer(page)
    ask = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(ctypes.addressof(start))
    answer = (ctypes.c_uint32 * 4)()
    ask(0, 0, answer)
    highest = answer[0]
    out = set()
    for (leaf, sub, register), bits in _CPUID.items():
        if leaf <= highest:
            ask(leaf, sub, answer)
            out.update(name for bit, name in bits.items() if answer[register] >> bit & 1)
    del ask, start
    page.close()
    return out


def _told():
    """What the system tells: Linux of the first processor."""
    try:
        with open("/proc/cpuinfo") as f:
            line = re.search(r"^(?:flags|Features)\s*:(.*)$", f.read(), re.M)
    except OSError:
        return set()
    return set(line[1].split()) if line else set()
