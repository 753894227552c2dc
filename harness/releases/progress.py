"""A bar on the terminal, one line for each step where there is no terminal."""

from __future__ import annotations

import sys
from typing import TextIO

from harness.core.escape import visible

WIDTH = 24


class Bar:
    """``[######..................] 3 of 12  onnxruntime 1.24.0`` on stderr; steps may end sooner or later than said."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty()
        self.done = self.all = 0
        self._width = 0

    def start(self, steps: int) -> None:
        """So many steps are to come, about."""
        self.all, self.done = max(1, steps), 0

    def step(self, what: str) -> None:
        """The next step begins."""
        self.done += 1
        self.all = max(self.all, self.done)
        self._show(what)

    def line(self, what: str) -> None:
        """What is going on within a step."""
        self._show(what)

    def told(self, what: str) -> None:
        """What a step found, which stays on the screen."""
        self._clear()
        print(visible(what), file=self.stream, flush=True)

    def _show(self, what: str) -> None:
        if not self.live:
            return
        full = WIDTH * self.done // max(1, self.all)
        text = visible(f"[{'#' * full}{'.' * (WIDTH - full)}] {self.done} of about {self.all}  {what}")
        print("\r" + text.ljust(self._width), end="", file=self.stream, flush=True)
        self._width = len(text)

    def _clear(self) -> None:
        if self.live and self._width:
            print("\r" + " " * self._width + "\r", end="", file=self.stream, flush=True)
            self._width = 0

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()
