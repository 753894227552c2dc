"""``conforms``: a kernel as a pytest test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.core.errors import UsageError
from harness.kernels.check import check, find


def conforms(op: str, *, dtypes: Sequence[str] = (), **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator that makes a pytest test of a kernel, one for each element type.

    The test takes the name of the variable that holds it, so that name must begin with ``test_``::

        @conforms("onnx/Softmax-13", dtypes=("f32", "f16"))
        def test_softmax(x, axis): ...

        test_relu = conforms("onnx/Relu-14")(my_library.relu)

    dtypes: element types of the first operand; without them one test draws all.  options: as of ``check``.  Raises
    UsageError at import for an op that does not exist, and where pytest is not installed."""
    find(op)
    if isinstance(dtypes, str):
        raise UsageError(f"dtypes: expected a tuple of names, got {dtypes!r}")
    try:
        import pytest
    except ImportError:
        raise UsageError("conforms needs pytest; check does the same without it") from None

    def decorate(kernel: Callable[..., Any]) -> Any:
        def judged(dtype: str | None) -> None:
            __tracebackhide__ = True
            check(op, kernel, dtypes=() if dtype is None else (dtype,), **options)

        def test_all_types() -> None:
            __tracebackhide__ = True
            judged(None)

        def test_type(dtype: str) -> None:
            __tracebackhide__ = True
            judged(dtype)

        test: Any = pytest.mark.parametrize("dtype", tuple(dtypes))(test_type) if dtypes else test_all_types
        test.__name__ = getattr(kernel, "__name__", type(kernel).__name__)
        test.__doc__ = getattr(kernel, "__doc__", None)
        test.__module__ = getattr(kernel, "__module__", test.__module__)
        test.kernel = kernel
        return test

    return decorate
