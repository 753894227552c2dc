"""``python -m suites.onnx.graphs``: graphs through a backend and the reference, layer by layer.

Exit codes: 0 every layer is within its bound, 1 one is not or could not be judged, 2 the request cannot be carried out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import onnx

from harness.backends import registry
from harness.backends.pool import BackendHandle
from harness.backends.process import Place
from harness.core.errors import OpconformError, UsageError
from suites.onnx.graphs import listed
from suites.onnx.graphs.walk import walk

DEADLINE = 300.0  # seconds for one graph


def main(argv: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(
        "python -m suites.onnx.graphs", description="Name the first layer that is out of bounds."
    )
    p.add_argument("graph", nargs="*", help="listed names or model files (all that are listed and here)")
    p.add_argument("--input", action="append", default=[], metavar="NAME=SHAPE:RECIPE",
                   help="how an input of a model file is drawn, such as x=1,3,64,64:uniform:-1:1")  # fmt: skip
    p.add_argument("--backend", default="onnxruntime", metavar="NAME")
    p.add_argument("--backend-python", metavar="PATH", help="run the backend in this Python")
    p.add_argument("--backend-cpu", metavar="NAME", help="run it on this processor, emulated by qemu-user")
    p.add_argument("--fetch", action="store_true", help="get the packages that are not here, by pip")
    p.add_argument("--table", action="store_true", help="one line a layer")
    a = p.parse_args(argv)
    try:
        return run(a)
    except OpconformError as e:
        print(f"graphs: {e}", file=sys.stderr)
        return 2


def run(a: argparse.Namespace) -> int:
    files = [g for g in a.graph if g.endswith(".onnx")]
    names = [g for g in a.graph if g not in files] or ([] if files else list(listed.graphs()))
    for n in names:
        if n not in listed.graphs():
            raise UsageError(f"no graph {n!r}, expected a file or one of {' '.join(listed.graphs())}")
    wanted = [listed.graphs()[n] for n in names]
    if a.fetch:
        listed.fetch(wanted)
    good = True
    with registry.create(a.backend, Place(a.backend_python, a.backend_cpu), deadline=DEADLINE) as handle:
        why = handle.missing()
        if why:
            raise UsageError(f"{a.backend}: {why}")
        for file in files:
            if not Path(file).is_file():
                raise UsageError(f"no model file {file}")
            model = onnx.load(file)
            good &= tell(file, model, listed.draw(model, inputs_of(a.input)), (), handle, a.table)
        for one in wanted:
            path = listed.find(one)
            if path is None:
                print(f"{one.name}: not here, {one.package} is fetched with --fetch")
                continue
            model = onnx.load(path)
            title = f"{one.name} ({one.package}, {one.maker})"
            good &= tell(title, model, listed.draw(model, one.inputs), one.gaps, handle, a.table)
    return 0 if good else 1


def tell(name: str, model: onnx.ModelProto, inputs: dict[str, Any], gaps: tuple[str, ...], handle: BackendHandle,
         table: bool) -> bool:  # fmt: skip
    """Walk through one graph and print what was found; is it as it should be?"""
    try:
        found = walk(model, inputs, handle)
    except OpconformError as e:  # the others can still be run
        print(f"{name}: not run: {e}")
        return False
    print(f"{name}: {found}")
    if table:
        print(found.report.table())
    if found.fault is not None:
        path = listed.folder() / "fault.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found.fault.dumps())
        print(f"  opconform replay {path}")
    return found.good(gaps)


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
