"""Models -> Graph: plain programs, mlprogram specs (protobuf message, bytes or ``.mlpackage``), pymil Programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.core.errors import FormatError, reading
from harness.core.instance import Graph
from suites.mil import plain


def parse(data: Any) -> Graph:
    """``data``: plain bytes, a pymil Program, a Model message or its bytes (weights inside), a path to an
    ``.mlpackage`` or ``.mlmodel``, or an MLModel.  Raises FormatError.
    """
    with reading("MIL model"):
        return _parse(data)


def _parse(data: Any) -> Graph:
    if isinstance(data, (bytes, bytearray, memoryview)):
        data = bytes(data)
        if data[:4] == plain.MAGIC:
            return plain.graph(data)
        return _spec(_message(data), None)
    if isinstance(data, (str, Path)):
        return _package(Path(data))
    kind = type(data).__name__
    if kind == "Program" and hasattr(data, "functions") and type(data).__module__.startswith("coremltools"):
        return _pymil(data)
    if kind == "MLModel":
        return _spec(data.get_spec(), data.weights_dir)
    if hasattr(data, "WhichOneof"):
        return _spec(data, None)
    raise FormatError(f"MIL model: cannot read {kind}; expected bytes, a path, a Program, a spec or an MLModel")


def _message(data: bytes) -> Any:
    from coremltools import proto

    m = proto.Model_pb2.Model()
    try:
        m.ParseFromString(data)
    except Exception as e:
        raise FormatError(f"MIL model: not a Core ML specification: {e}") from None
    return m


def _package(path: Path) -> Graph:
    if not path.exists():
        raise FormatError(f"{path}: no such model")
    if path.is_dir():
        from coremltools.libmodelpackage import ModelPackage

        root = Path(ModelPackage(str(path)).getRootModel().path())
        weights = path / "Data" / "com.apple.CoreML" / "weights"
        return _spec(_message(root.read_bytes()), str(weights) if weights.exists() else str(root.parent))
    return _parse(path.read_bytes())


def _spec(model: Any, weights: str | None) -> Graph:
    kind = model.WhichOneof("Type")
    if kind != "mlProgram":
        raise FormatError(f"expected a model of type mlProgram, got {kind}")
    from coremltools.converters.mil.frontend.milproto.load import load_mil_proto

    return _pymil(load_mil_proto(model.mlProgram, model.specificationVersion, weights or ""))


def _pymil(prog: Any) -> Graph:
    from suites.mil import pymil

    return plain.graph(pymil.packed(prog))
