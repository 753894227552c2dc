"""``python -m suites.onnx_models``: graphs through a backend and the reference, layer by layer.

Exit codes: 0 every layer is within its bound, 1 one is not or could not be judged, 2 the request cannot be carried out
or a model cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import onnx

from harness.backends import registry
from harness.core.errors import FormatError, OpconformError, UsageError, reading
from harness.core.escape import one_line, shell, visible
from harness.core.limits import bounded
from harness.workers.pool import BackendHandle
from harness.workers.spec import Place
from suites.onnx_models import listed
from suites.onnx_models.walk import walk

DEADLINE = 300.0  # seconds for one graph


def main(argv: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(
        "python -m suites.onnx_models", description="Name the first layer that is out of bounds."
    )
    p.add_argument("graph", nargs="*", help="listed names or model files (all that are listed and here)")
    p.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=SHAPE:RECIPE",
        help="how an input of a model file is drawn, such as x=1,3,64,64:uniform:-1:1",
    )
    p.add_argument("--backend", default="onnxruntime", metavar="NAME")
    p.add_argument("--backend-python", metavar="PATH", help="run the backend in this Python")
    p.add_argument("--backend-cpu", metavar="NAME", help="run it on this processor, emulated by qemu-user")
    p.add_argument("--fetch", action="store_true", help="get the packages that are not here, by pip")
    p.add_argument("--table", action="store_true", help="one line a layer")
    a = p.parse_args(argv)
    try:
        return run(a)
    except OpconformError as e:
        return refused(e)
    except KeyboardInterrupt:
        return refused("interrupted")


def refused(why: object) -> int:
    """Say in one line why something cannot be carried out."""
    print(f"graphs: {one_line(why)}", file=sys.stderr)
    return 2


def run(a: argparse.Namespace) -> int:
    files = [g for g in a.graph if g.endswith(".onnx")]
    names = [g for g in a.graph if g not in files] or ([] if files else list(listed.graphs()))
    for n in names:
        if n not in listed.graphs():
            raise UsageError(f"no graph {n!r}, expected a file or one of {' '.join(listed.graphs())}")
    for file in files:
        if not Path(file).is_file():
            raise UsageError(f"no model file {file}")
    given = inputs_of(a.input)
    wanted = [listed.graphs()[n] for n in names]
    if a.fetch:
        listed.fetch(wanted)
    codes = [0]
    with registry.create(a.backend, Place(a.backend_python, a.backend_cpu), deadline=DEADLINE) as handle:
        why = handle.missing()
        if why:
            raise UsageError(f"{a.backend}: {why}")
        for file in files:
            codes.append(tell(file, Path(file), given, (), handle, a.table))
        for one in wanted:
            path = listed.find(one)
            if path is None:
                print(f"{one.name}: not here, {one.package} is fetched with --fetch")
                continue
            title = f"{one.name} ({one.package}, {one.maker})"
            codes.append(tell(title, path, one.inputs, one.gaps, handle, a.table))
    return max(codes)


def tell(
    name: str, path: Path, given: dict[str, Any], gaps: tuple[str, ...], handle: BackendHandle, table: bool
) -> int:
    """Walk through one graph and print what was found; 0 where it is as it should be, 1 where it is not, 2 where it
    cannot be read."""
    try:
        with reading(name):
            model = onnx.load(path)
            with bounded():
                inputs = listed.draw(model, given)
        found = walk(model, inputs, handle)
    except (FormatError, UsageError) as e:  # the others can still be run
        return refused(e if str(e).startswith(name) else f"{name}: {e}")
    except OpconformError as e:
        print(visible(f"{name}: not run: {one_line(e)}"))
        return 1
    print(visible(f"{name}: {found}", keep="\n"))
    if table:
        print(visible(found.report.table(), keep="\n"))
    if found.fault is not None:
        path = listed.folder() / "fault.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found.fault.dumps())
        print(f"  opconform replay {shell(str(path))}")
    return 0 if found.good(gaps) else 1


def inputs_of(texts: list[str]) -> dict[str, Any]:
    out = {}
    for text in texts:
        name, _, rest = text.partition("=")
        shape, _, recipe = rest.partition(":")
        try:
            out[name] = {"shape": [int(x) for x in shape.split(",") if x], "recipe": recipe or "unit"}
        except ValueError:
            raise UsageError(f"--input {text}: expected NAME=SHAPE:RECIPE, such as x=1,3:unit") from None
    return out


if __name__ == "__main__":
    sys.exit(main())
