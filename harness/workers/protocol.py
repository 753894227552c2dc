"""What a backend class must offer, as a type.  ``opconform.Backend`` is this class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Backend(Protocol):
    """A runtime under test: five members, which any class may have without deriving from this one.

    A class that does derive from it cannot be created until it defines all five (TypeError).  The object lives in a
    worker process of its own, so it may crash or hang.  Whatever ``load`` or ``run`` raises rejects the model.  An
    exception whose class, or a base of it, is called ``Unsupported``, ``NotImplementedError`` or ``NotImplemented``
    declares a gap instead, which is no failure.

    Optional attributes say what the class claims and what its arithmetic does:

    opsets: (oldest, newest) opset that it claims.  It gets no other model.
    dtypes: names of the element types that it claims, such as ("f32", "f16", "i64").  It gets no others.
    unsupported_ops: patterns of ops that it does not claim, such as ("Loop", "Sequence*").
    limits: {"max_rank": 4, "empty": False, "static": True, "constant": ["Conv:W"], "int64_as_int32": True}, each
        optional.
    absolute: {pattern of ops: absolute error of its approximation}, such as {"Erf": 1e-6}.
    validates: False if it makes no claim to reject models that break a rule.
    rejects: classes of exceptions by which it rejects; any other is a failure of its own code (none named: all reject).
    acc: {element type: type that sums are kept in}, where that is not f32 for the narrower floats.
    flushes: element types whose subnormals it may flush to zero.
    pack: number of instances that share one model (1: none), or {format: number}.
    isolate_dtypes: element types whose instances go in models of their own.
    recycle: number of models after which a fresh process takes over (None: never).
    memory: how the limit of its memory is held: "address-space", or "resident" for what reserves more than it uses.
    paths(): {output name: what computed it} of a handle that has run: a kind such as "delegate", or "kind: detail".
    path_kinds: the kinds that ``paths`` tells; one that never occurs is reported as never tested.
    paths_every: one case of an op version in so many is asked for its path.
    asked_paths: set by the worker before ``load``, if there is ``paths``: will it be asked of this model?
    forks: False if the runtime does not survive a fork after its import.
    family: a name that it has in common with the backends that share its code; their opinions count once.
    unused: processor features for which this build of the runtime has no kernels.
    info(): a dict with more facts for the report and the engine, such as {"opset": 26, "ir": 13}.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the backend in records and reports.  A class attribute will do: ``name = "mine"``."""
        ...

    @property
    @abstractmethod
    def formats(self) -> Sequence[str]:
        """Model formats that ``load`` takes, of "onnx", "tflite", "mil", "nn".  A class attribute will do."""
        ...

    @abstractmethod
    def version(self) -> str:
        """The version of the runtime.  Known differences are listed for ranges of it."""
        ...

    @abstractmethod
    def load(self, model: bytes, format: str) -> Any:
        """Load a model.

        model: the bytes of a model file.  format: one of ``formats``.
        Returns a handle, which ``run`` gets back.  Raises anything to reject the model.
        """
        ...

    @abstractmethod
    def run(self, handle: Any, inputs: dict[str, Any]) -> Mapping[str, Any]:
        """Run a loaded model once.  A model with dynamic axes is run several times, with other extents each time.

        inputs: input name -> NumPy array in row-major order; a list of arrays for a sequence; None if absent.
        Types that NumPy lacks (bf16, f8, i4) are ``ml_dtypes`` arrays.
        Returns output name -> array, list of arrays (sequence), dict (map), or None (not produced).
        Raises anything to reject the model at these inputs.
        """
        ...
