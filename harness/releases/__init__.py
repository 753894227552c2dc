"""Many releases of one runtime: their environments, and which of them show a difference."""
