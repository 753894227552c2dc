"""ONNX: every operator at every opset, a model builder, and an interpreter for whole models."""

from suites.onnx.dialect import Onnx

dialect = Onnx("suites.onnx")
op = dialect.op
run_model = dialect.run_model

__all__ = ["dialect", "op", "run_model"]
