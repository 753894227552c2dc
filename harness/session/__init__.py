"""A session: a whole run, its folder and records, campaigns, what the terminal shows."""
