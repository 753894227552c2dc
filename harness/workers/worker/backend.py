"""What a backend class may define, what of it the host is told, and what the exceptions that it raises mean."""

# Runs under any Python from 3.8 on.

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import Any

import numpy as np

from .frames import ENCODE

# Attributes that the greeting of a worker tells; ``harness.workers.info`` says what each may be.
DECLARED = (
    "name",
    "formats",
    "family",
    "opsets",
    "dtypes",
    "unsupported_ops",
    "limits",
    "absolute",
    "validates",
    "acc",
    "flushes",
    "unused",
    "pack",
    "isolate_dtypes",
    "recycle",
    "path_kinds",
    "paths_every",
    "forks",
    "memory",
)
ADAPTERS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "backends", "")
SLIPS = (LookupError, AttributeError, NameError)  # raised in a line of our own, by a mistake there
GAPS = ("Unsupported", "NotImplementedError", "NotImplemented")  # classes of exceptions that declare a gap


class Unsupported(Exception):
    """Raised by a backend that does not take this op, dtype or form: its declared gap, not a failure."""


class ProtocolError(Exception):
    """Raised by a backend whose other half, a process of its own, said what the protocol does not know."""


class Backend:
    """What a backend class may define.  Only ``name``, ``formats``, ``version``, ``load`` and ``run`` are
    required, and nobody has to derive from this class.

    formats: of "onnx", "tflite", "mil", "nn".  pack: instances per model that pay best (1: never together), or
    {format: instances}.  isolate_dtypes: our names of the element types whose instances are kept out of models of
    the others.  recycle: models after which a process gives way to a fresh one (None: never for that alone).
    path_kinds: what ``paths`` may tell.  paths_every: one case of an op version in so many is asked for its path.
    forks: may a process that imported the runtime fork?  acc: {dtype: accumulation dtype} if not f32 for the
    narrow ones.  flushes: dtypes whose subnormals it may flush to zero.  unused: words for what the processor offers
    (``processor.WORDS``) that this build of the runtime has no kernels for: it counts as a processor without.
    Claims, of which nothing beyond is asked.  opsets: (oldest, newest).  dtypes: our names of element types.
    unsupported_ops: patterns of ops.
    limits: {"max_rank", "min_rank", "empty", "static", "input", "input_dtypes", "constant", "int64_as_int32", "finite"}
    (``harness.workers.claims``).  absolute: {pattern of ops: absolute error of an approximation}.  validates: False of
    one that makes no claim to refuse models that break a rule.  rejects: names of the classes of exceptions by which it
    rejects, where these are its own; any other exception is then a failure of the backend's code, which says nothing
    about the model (empty: every exception rejects).
    family: a name that it has in common with the backends that share its code; their opinions count once.
    memory: how the limit of the worker's memory is held: "address-space" (the system refuses more), or "resident" for
    what reserves far more addresses than it uses (WebAssembly, Java, CUDA, sanitizers).
    platforms: values of ``sys.platform`` where it runs (empty: everywhere).  script: Python that defines ``run(runs)``
    for a ``repro.py`` (``harness.evidence.repro_script``).  The host reads these three and ``formats`` in the source of
    its own backends: there they are literals, or the name of a constant of the file.
    Raising in load or run means rejected; an exception whose class, or a class that it derives from, is called
    Unsupported, NotImplementedError or NotImplemented means unsupported.
    """

    name = "backend"
    family = ""
    platforms: tuple[str, ...] = ()
    script: Any = None
    formats: tuple[str, ...] = ()
    pack: int | dict[str, int] = 1
    isolate_dtypes: tuple[str, ...] = ()
    recycle: int | None = None
    path_kinds: tuple[str, ...] = ()
    paths_every = 32
    forks = True
    memory = "address-space"
    acc: dict[str, str] = {}
    flushes: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    rejects: tuple[str, ...] = ()

    def version(self) -> str:
        """The runtime's version."""
        raise NotImplementedError

    def load(self, model: bytes, format: str) -> Any:
        """Bytes of a model -> whatever ``run`` wants."""
        raise NotImplementedError

    def run(self, handle: Any, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """{input name: array, list or None} -> {output name: array, list, TypeOnly or None}."""
        raise NotImplementedError

    # Set by the worker before ``load``: will ``paths`` be asked of this model?
    asked_paths = False

    def paths(self, handle: Any) -> dict[str, Any]:
        """{output name: what computed it} of a model that has run: a kind such as "delegate", or "kind: detail".

        Nothing is told of an output that is missing here.  ``path_kinds`` lists the kinds; one that never occurs is
        reported as never tested.
        """
        return {}

    def info(self) -> dict[str, Any]:
        """More facts for the report and the engine, such as {"opset": 26, "ir": 13}."""
        return {}


def first_lines(text: Any, limit: int = 2000) -> Any:
    text = str(text).strip()
    return text if len(text) <= limit else text[:limit] + " ..."


def words(e: Any) -> Any:
    """What an exception says."""
    try:
        return first_lines(e)
    except Exception as odd:  # one that cannot say what it is
        return f"(its text: {type(odd).__name__})"


def named(e: Any) -> str:
    """The same after the name of its class."""
    return f"{type(e).__name__}: {words(e)}"


def slipped(e: Any) -> bool:
    """Did a line of ``harness/backends`` make a mistake?  The runtime that it calls has rejected nothing then."""
    last = e.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return isinstance(e, SLIPS) and last is not None and last.tb_frame.f_code.co_filename.startswith(ADAPTERS)


def error_form(e: Any, phase: Any, rejects: Any = ()) -> dict[str, Any]:
    """What an exception raised by a backend means.  rejects: as in ``Backend``."""
    kind, classes = "rejected", {c.__name__ for c in type(e).__mro__}
    if classes.intersection(GAPS):
        kind = "unsupported"
    elif isinstance(e, MemoryError):
        kind = "crashed"
    elif isinstance(e, ProtocolError) or slipped(e) or (rejects and not classes.intersection(rejects)):
        kind = "harness_error"
    name, text = type(e).__name__, words(e)
    if kind == "crashed":
        text = "out of memory" + (": " + text if text else "")
    elif name not in ("Unsupported", "RuntimeError", "ValueError") or not text:
        text = name + (": " + text if text else "")
    return {"kind": kind, "phase": phase, "message": text}


def stated(backend: Any) -> Any:
    """The attributes that a backend has of ``DECLARED``, in a form for JSON.  The host checks them.

    Raises TypeError for a value that JSON cannot say."""
    out: dict[str, Any] = {"name": type(backend).__name__}
    for name in DECLARED:
        if hasattr(backend, name):
            value = getattr(backend, name)
            out[name] = list(value) if isinstance(value, (tuple, set, frozenset)) else value
            sayable(name, out[name])
    return out


def sayable(name: str, value: Any) -> None:
    """Raises TypeError for a value that JSON cannot say."""
    try:
        ENCODE(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected a value that JSON can say, got {value!r:.200}") from None


def sibling(name: str, spec: Any) -> Any:
    """The module ``name`` beside the one whose ``__spec__`` is given, of the same package or folder; ``../name`` is one
    of the folder above."""
    if spec.parent:
        return importlib.import_module("." + name.replace("../", "."), spec.parent)
    full = "opconform_" + name.rpartition("/")[2]
    if full not in sys.modules:
        path = os.path.join(os.path.dirname(os.path.abspath(spec.origin)), name + ".py")
        found = importlib.util.spec_from_file_location(full, path)
        if found is None or found.loader is None:
            raise ImportError(f"{path}: no Python file")
        module = sys.modules[full] = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
    return sys.modules[full]
