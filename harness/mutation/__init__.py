"""Mutation: planted faults, and how many of them the suite catches."""
