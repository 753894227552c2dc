"""Reach goals: what the instances of an op version must show once, derived without its generator.

* ``goals``: the table of kinds of goals
* ``facts``: what a kind may read
* ``unreached``: the ledger of goals that a clause rules out or that are not reached yet
* ``survey``: counts the goals that drawn instances meet
"""
