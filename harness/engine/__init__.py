"""The engine: cases to models, outcomes to verdicts, and what it learns of each backend."""
