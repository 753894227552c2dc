"""Packs: frozen instances as files for other harnesses and devices, and verdicts on outputs that came from there.

``docs/packs.md`` describes the files.
"""
