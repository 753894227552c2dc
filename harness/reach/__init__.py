"""Reach goals: what the instances of an op version must show once, derived without its generator.

``goals`` holds the table of kinds, ``facts`` what a kind may look at, ``unreached`` the ledger of goals that a clause
rules out or that are not reached yet, ``survey`` counts the goals that drawn instances meet.
"""
