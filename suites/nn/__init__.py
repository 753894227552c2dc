"""Core ML NeuralNetwork: every layer, a specification builder and parser, and an interpreter for whole networks."""

from suites.nn.dialect import Nn

dialect = Nn("suites.nn")
op = dialect.op
run_model = dialect.run_model

__all__ = ["dialect", "op", "run_model"]
