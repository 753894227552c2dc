"""Install a built wheel where no compiler can be found, run it from another folder, and say what that took.

    python scripts/prove_wheel.py dist/opconform-*.whl [arguments of opconform run]

The programs on PATH are those of the new environment alone.  Every package comes as a wheel.  Without arguments the
run is ``opconform run --cases 2``.  Exit code: that of the run, or 1 if the wheel lacks something.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# what a wheel must contain beside the code: names end so
CONTENTS = ("licenses/LICENSE", "opconform/py.typed", "harness/py.typed", "_opconform_native.abi3.so")
PROBE = """
import importlib.metadata as m, shutil
assert not [c for c in ("cc", "gcc", "g++", "c++", "clang", "clang++", "cmake", "ninja") if shutil.which(c)]
import opconform
from harness.core.instance import Instance
assert opconform.Instance is Instance and opconform.__version__ == m.version("opconform")
names = [str(f) for f in m.files("opconform")]
print(m.metadata("opconform")["License-Expression"], *names, sep="\\n")
"""


def main() -> int:
    """Prove the wheel that the command line names."""
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_file():
        print(f"prove_wheel: expected the path of a wheel, got {' '.join(sys.argv[1:2]) or 'nothing'}", file=sys.stderr)
        return 2
    wheel, arguments = Path(sys.argv[1]).resolve(), sys.argv[2:] or ["--cases", "2"]
    with tempfile.TemporaryDirectory(prefix="opconform-wheel-") as folder:
        subprocess.run([sys.executable, "-m", "venv", "env"], cwd=folder, check=True)
        programs = Path(folder, "env", "bin")
        hidden = ("PYTHONPATH", "VIRTUAL_ENV", "CC", "CXX")
        env = {k: v for k, v in os.environ.items() if k not in hidden} | {"PATH": str(programs)}
        python = str(programs / "python")
        began = time.monotonic()
        pip = [python, "-m", "pip", "install", "-q", "--only-binary=:all:", str(wheel)]
        subprocess.run(pip, cwd=folder, env=env, check=True)
        installed = time.monotonic() - began
        licence, *names = subprocess.run(
            [python, "-c", PROBE], cwd=folder, env=env, check=True, stdout=subprocess.PIPE, text=True
        ).stdout.splitlines()
        missing = [c for c in CONTENTS if not any(n.endswith(c) for n in names)]
        if licence != "Apache-2.0" or missing:
            print(f"prove_wheel: expected Apache-2.0 and {CONTENTS}, got {licence}, without {missing}", file=sys.stderr)
            return 1
        began = time.monotonic()
        run = [str(programs / "opconform"), "run", *arguments, "--out", "run"]
        code = subprocess.run(run, cwd=folder, env=env).returncode
        ran = time.monotonic() - began
        if not Path(folder, "run", "report.html").is_file():
            print("prove_wheel: expected run/report.html, found none", file=sys.stderr)
            return code or 1
    print(f"{wheel.name}: install {installed:.0f} s, run and report {ran:.0f} s, {installed + ran:.0f} s together")
    return code


if __name__ == "__main__":
    sys.exit(main())
