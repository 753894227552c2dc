"""A MIL program as an ``.mlpackage``, written by coremltools.

``run`` returns a ZIP of the package as bytes, and as JSON the outputs whose type at the interface is not that of the
program: Core ML gives no bool, before iOS 16 no f16, and no rank 0.

The same program gives the same bytes: coremltools draws the identifiers of Manifest.json at random, here they are made
from the content.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import uuid
import zipfile
from typing import Any

import numpy as np
from opconform_worker import Unsupported, sibling

program = sibling("../coremltools_program", __spec__)
OUTPUT, GIVEN = "package", "given"
TYPES = {65552: "f16", 65568: "f32", 65600: "f64", 131104: "i32"}  # ArrayFeatureType.ArrayDataType
NO_INPUT = "no_input"  # a program has an input


class Package:
    """Takes MIL programs, gives packages."""

    name = "mlpackage"
    formats = ("mil",)
    family = "coremltools"
    recycle = 500  # coremltools keeps something of every conversion

    def version(self) -> str:
        return program.ct.__version__

    def load(self, model: bytes, format: str) -> tuple[bytes, bytes]:
        h, consts = program.unpack(model)
        for i in h["inputs"]:
            if not i[2] or 0 in i[2] or len(i[2]) > 5:
                raise Unsupported("an ML program has inputs of rank 1 to 5 with elements")
            if i[1] not in ("f32", "f16", "i32"):
                raise Unsupported(f"an ML program has no inputs of {i[1]}")
        if not h["inputs"]:
            h["inputs"] = [[NO_INPUT, "f32", [1], "tensor"]]
        program.mb.name_count.clear()  # the same program gets the same names whatever was built before
        ct, made = program.ct, program.build(h, consts)
        for name, v in zip(h["outputs"], made.functions["main"].outputs):
            v.name = name
        wants = {v.name: (program.ours(v.dtype), tuple(v.shape)) for v in made.functions["main"].outputs}
        kept = tempfile.tempdir
        with tempfile.TemporaryDirectory(prefix="opconform-mlpackage-") as folder, program.quietly():
            tempfile.tempdir = folder  # coremltools leaves its weights there
            try:
                package = ct.convert(
                    made,
                    convert_to="mlprogram",
                    minimum_deployment_target=program.target(h),
                    compute_precision=ct.precision.FLOAT32,
                    pass_pipeline=ct.PassPipeline(pass_names=[], pipeline_name="opconform"),
                    skip_model_load=True,
                )
                return zipped(package.package_path), _given(package.get_spec(), wants)
            finally:
                tempfile.tempdir = kept

    def run(self, handle: tuple[bytes, bytes], inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        return {name: np.frombuffer(x, np.uint8) for name, x in zip((OUTPUT, GIVEN), handle)}


def _given(spec: Any, wants: dict[str, Any]) -> bytes:
    """{output: {dtype, shape}} at the interface, where it is another one than in the program."""
    out = {}
    for o in spec.description.output:
        array = o.type.multiArrayType
        dtype = TYPES.get(array.dataType)
        shape = [1] if wants[o.name][1] == () else None
        if dtype is None:
            raise Unsupported(f"an output of type {array.dataType}")
        if dtype != wants[o.name][0] or shape:
            out[o.name] = {"dtype": dtype, **({"shape": shape} if shape else {})}
    return json.dumps(out, sort_keys=True).encode()


def zipped(folder: str) -> bytes:
    """All files of a folder, by name; no times."""
    files = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with open(path, "rb") as f:
                files[os.path.relpath(path, folder)] = f.read()
    spec = next(n for n in files if n.endswith(".mlmodel"))
    files[spec] = _same_bytes(files[spec])
    files["Manifest.json"] = _manifest(files, hashlib.sha256(files[spec]).hexdigest())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name in sorted(files):
            z.writestr(zipfile.ZipInfo(name), files[name])
    return out.getvalue()


def _same_bytes(data: bytes) -> bytes:
    """The spec with its maps in order."""
    from coremltools.proto import Model_pb2

    spec = Model_pb2.Model()
    spec.ParseFromString(data)
    return bytes(spec.SerializeToString(deterministic=True))


def _manifest(files: dict[str, bytes], seed: str) -> bytes:
    """Manifest.json with identifiers that follow from ``seed``, without a folder of weights that is empty."""
    manifest = json.loads(files["Manifest.json"])
    entries = {k: e for k, e in manifest["itemInfoEntries"].items() if any(f"Data/{e['path']}" in n for n in files)}
    new = {k: str(uuid.uuid5(uuid.NAMESPACE_OID, f"{seed}/{e['path']}")).upper() for k, e in entries.items()}
    manifest["itemInfoEntries"] = {new[k]: e for k, e in entries.items()}
    manifest["rootModelIdentifier"] = new[manifest["rootModelIdentifier"]]
    return json.dumps(manifest, indent=4, sort_keys=True).encode() + b"\n"
