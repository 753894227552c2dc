"""Reports: record files -> summary -> HTML page, JUnit, Markdown, JSON.

The reports read record files (JSON lines, written by the engine) and nothing else.  So a report can be made on any
machine, long after the run, and from the merged records of many machines.
"""

from reports.api import RenderResult, diff, export, held, merge, render, summarise

__all__ = ["RenderResult", "diff", "export", "held", "merge", "render", "summarise"]
