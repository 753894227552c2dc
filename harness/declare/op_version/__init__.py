"""Entry x schema -> OpVersion, which draws, evaluates and breaks instances."""

from harness.declare.op_version.evaluator import OpVersion

__all__ = ["OpVersion"]
