"""ai.onnx.ml: encoders, scalers, linear models and support vectors."""

from suites.onnx.ops.ml import features, labels, maps, models

__all__ = ["features", "labels", "maps", "models"]
