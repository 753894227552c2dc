"""Random graphs of the ops of any dialect: drawn forward, evaluated node by node, made smaller as graphs."""

from suites.graphs.dialect import GraphDialect
from suites.graphs.draw import Kind

__all__ = ["GraphDialect", "Kind"]
