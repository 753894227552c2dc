"""Programs that are respelt: any program of any dialect, changed in a small way that optimisers may trip over.

A ``Respelling`` is one small object: its name, where it applies, what it does.  It works on a ``View``, which a
dialect's ``Words`` completes.  What is expected of the changed program follows from its nodes, as for every program.
"""

from suites.programs.respell.apply import respelt
from suites.programs.respell.catalogue import BY_NAME, RESPELLINGS, Respelling
from suites.programs.respell.view import View, Words

__all__ = ["BY_NAME", "RESPELLINGS", "Respelling", "View", "Words", "respelt"]
