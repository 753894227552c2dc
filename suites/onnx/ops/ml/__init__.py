"""ai.onnx.ml: encoders, scalers, linear models and support vectors."""

from suites.onnx.ops.ml import features, labels, machines, maps, models

__all__ = ["features", "labels", "machines", "maps", "models"]
