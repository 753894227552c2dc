"""Tolerances: what a correct implementation may give, and what the specification leaves open."""
