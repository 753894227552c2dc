"""NaN and infinities are what is drawn: NumPy need not warn of them."""

from __future__ import annotations

from typing import Any

import numpy as np


class _Quiet:
    """``np.errstate(all="ignore")`` that costs next to nothing inside another one: a run enters it twice a case.

    For one thread: the one that judges."""

    __slots__ = ("_depth", "_state")

    def __init__(self) -> None:
        self._depth = 0

    def __enter__(self) -> None:
        if not self._depth:
            self._state = np.errstate(all="ignore")
            self._state.__enter__()
        self._depth += 1

    def __exit__(self, *why: Any) -> None:
        self._depth -= 1
        if not self._depth:
            self._state.__exit__(None, None, None)


quiet = _Quiet()
