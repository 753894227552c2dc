"""Vocabulary shared by every room: dtypes, instances, models, outcomes, verdicts, records, errors.

Imports nothing of ours.
"""
