"""Entry x schema -> OpVersion: what can be drawn, evaluated and broken."""

from harness.declare.op_version.evaluator import OpVersion

__all__ = ["OpVersion"]
