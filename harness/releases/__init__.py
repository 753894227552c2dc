"""Many releases of one runtime: their environments, and what shows in which of them."""
