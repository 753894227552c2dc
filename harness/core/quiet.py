"""What a run keeps quiet: NumPy's warnings of NaN and infinities, which are drawn, and most garbage collections."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def few_collections() -> Iterator[None]:
    """Let Python look for garbage less often.

    Garbage with cycles is rare here.  Each search goes over some hundred thousand schema objects, which took a third of
    the host's time.  What exists already is left alone.  The rest, which is the packs under way and what was served
    last, is looked at less often.  Such a search takes a tenth of a second, and one object in a hundred is garbage.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(400_000, 20, 20)  # a case counts for two or three, the packs under way for some ten thousand
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
