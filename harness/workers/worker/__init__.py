"""The worker process, in which a backend runs.

This folder is stand-alone.  It needs Python 3.8 or newer, NumPy 1 or 2 and the backend's package; it imports nothing
else of opconform.  The host starts it by its path, in the Python that has the backend's package::

    python .../worker/__main__.py FD CONFIG

With "fork" in the configuration the process is a *zygote*: it imports the backend once.  Then it forks a serving child
for every socket that the host passes, so a crash costs a fork (10-20 ms) and not an import.  Without "fork" (macOS,
runtimes that do not survive a fork) the process serves FD itself.

Backend files import this package under the name ``opconform_worker``, in the worker process and in the host.  A backend
is any class with ``name``, ``formats``, ``version()``, ``load(model, format)``, ``run(handle, inputs)``; see
``Backend`` for the optional members.
"""

from . import onnx_bytes, processor
from .arrays import TypeOnly, dtype_name, from_raw, pack, raw, storage, unpack
from .backend import DECLARED, Backend, ProtocolError, Unsupported, named, sibling
from .frames import (
    HEAD,
    Reader,
    Writer,
    map_body,
    memory_file,
    pack_frame,
    recv_frame,
    send_frame,
    text_of,
    unhead,
)
from .serving import PAGE, PHASES, Server
from .supervisor import die_with
from .zygote import MARK, ending, make_backend, sweep

__all__ = [
    "DECLARED",
    "HEAD",
    "MARK",
    "PAGE",
    "PHASES",
    "Backend",
    "ProtocolError",
    "Reader",
    "Server",
    "TypeOnly",
    "Unsupported",
    "Writer",
    "die_with",
    "dtype_name",
    "ending",
    "from_raw",
    "make_backend",
    "map_body",
    "memory_file",
    "named",
    "onnx_bytes",
    "pack",
    "pack_frame",
    "processor",
    "raw",
    "recv_frame",
    "send_frame",
    "sibling",
    "storage",
    "sweep",
    "text_of",
    "unhead",
    "unpack",
]
