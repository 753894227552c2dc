"""Layers that move elements: shapes, slices, joins, borders, and tensors made from nothing."""

from suites.nn.ops.movement import join, making, padding, shape, slicing

__all__ = ["join", "making", "padding", "shape", "slicing"]
