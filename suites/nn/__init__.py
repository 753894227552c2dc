"""Core ML NeuralNetwork: every layer, a specification builder and parser, and an interpreter for whole networks."""

from suites.nn.dialect import Nn
from suites.nn.spell import declare

dialect = Nn("suites.nn")
op = declare(dialect)
run_model = dialect.run_model

__all__ = ["dialect", "op", "run_model"]
