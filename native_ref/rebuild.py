"""Compile the kernels again and put them where the editable install has them, in seconds.

    python native_ref/rebuild.py            # all instruction sets
    python native_ref/rebuild.py --isa v4   # one of them and the bindings: the quickest round

Files are replaced by renaming, so that running processes keep the ones they have; a lock lets several people share one
tree.  Needs cmake, ninja, nanobind (the ``dev`` extra has it), and an earlier ``pip install -e .``.
"""

from __future__ import annotations

import argparse
import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--isa", action="append", help="base, v3, v4 (default: all)")
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build" / "dev")
    args = parser.parse_args()
    found = importlib.util.find_spec("_opconform_native")
    if found is None or found.origin is None:
        print("not installed yet: pip install -e .", file=sys.stderr)
        return 2
    missing = [p for p in ("cmake", "ninja") if not shutil.which(p)]
    if missing:
        print(f"needs {' and '.join(missing)}: pip install {' '.join(missing)}", file=sys.stderr)
        return 2
    module = Path(found.origin)
    args.build_dir.mkdir(parents=True, exist_ok=True)
    with open(args.build_dir / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (args.build_dir / "build.ninja").exists():
            subprocess.run(
                [
                    "cmake",
                    "-S",
                    ROOT,
                    "-B",
                    args.build_dir,
                    "-G",
                    "Ninja",
                    f"-DPython_EXECUTABLE={sys.executable}",
                    "-DCMAKE_BUILD_TYPE=Release",
                ],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        targets = ["_opconform_native", *(f"kernels_{i}" for i in args.isa)] if args.isa else ["all"]
        done = subprocess.run(["cmake", "--build", args.build_dir, "--target", *targets])
        if done.returncode:
            return done.returncode
        for built in [args.build_dir / module.name, *(args.build_dir / "_opconform_kernels").glob("*.so")]:
            to = module.parent / built.relative_to(args.build_dir)
            to.parent.mkdir(exist_ok=True)
            if not to.exists() or to.stat().st_mtime < built.stat().st_mtime:
                fresh = to.with_name(to.name + ".new")
                shutil.copy2(built, fresh)
                os.replace(fresh, to)
    return 0


if __name__ == "__main__":
    sys.exit(main())
