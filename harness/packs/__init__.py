"""Packs: frozen instances as files for other harnesses and devices, and verdicts on outputs that they return.

``docs/packs.md`` describes the files.
"""
