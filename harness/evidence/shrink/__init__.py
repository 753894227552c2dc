"""How an instance is made smaller: its axes, its choices, its values."""
